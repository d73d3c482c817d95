"""The role of each column, and whether the names can be distinguished."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeGuard

from adaptinf.log.validation.frame_columns import Findings, Label
from adaptinf.texts import did_you_mean, listed, shown

# A log stores columns under these canonical names, whatever the user's own names are.
CANONICAL = {
    "round": "t",
    "unit": "unit_id",
    "id": "decision_id",
    "action": "action",
    "reward": "reward",
    "propensity": "propensity",
    "batch": "batch",
    "phase": "phase",
    "randomised": "randomised",
    "received": "received",
    "observation": "observation",
    "outcome_round": "outcome_round",
}
LATER = ("id", "received", "observation", "outcome_round")
"""Roles whose canonical names are available for contexts if the log has no such column."""
_IN_ORDER = (
    *("action", "reward", "propensity", "batch", "unit", "id", "round", "phase", "randomised"),
    *("observation", "outcome_round"),
)
"""Arguments that name role columns, in the order in which problems are reported."""
_REQUIRED = ("action", "reward")


def columns_by_role(given: Mapping[str, object], assigned: object) -> dict[str, object]:
    """Columns keyed by role, from a log's arguments; if `assigned` is given, `action` is the arm received."""
    columns = {role: given.get(role) for role in _IN_ORDER}
    if assigned is None:
        return columns
    return columns | {"action": assigned, "received": columns["action"]}


@dataclass(frozen=True, slots=True)
class Roles:
    """Columns that were found in a frame."""

    single: dict[str, Hashable]
    context: tuple[str, ...]
    positions: dict[Hashable, int]
    names: tuple[Hashable, ...]
    outcomes: tuple[str, ...] = ()

    @property
    def users(self) -> list[tuple[str, Hashable]]:
        """Every role with its column; there may be several contexts and outcomes."""
        several = {"context": self.context, "outcomes": self.outcomes}
        return [*self.single.items(), *((role, name) for role, names in several.items() for name in names)]

    def position(self, role: str) -> int | None:
        """Position of a single role's column, or None if there is no usable one."""
        return self.positions.get(self.single[role]) if role in self.single else None


def locate_roles(
    names: Sequence[Hashable],
    single: Mapping[str, object],
    context: object,
    found: Findings,
    outcomes: object = None,
) -> Roles:
    """Find the columns of the roles; absent, repeated and conflicting ones become problems."""
    positions: dict[Hashable, int] = {}
    repeated: dict[Hashable, None] = {}
    for position, name in enumerate(names):
        if positions.setdefault(name, position) != position:
            repeated[name] = None
    if repeated:
        listed = ", ".join(map(repr, repeated))
        found.add("duplicate-columns", f"several columns have the same name: {listed}; rename or drop them")
    roles = Roles(
        single=_single_columns(single, positions, found),
        context=_several_columns("context", context, positions, found),
        outcomes=_several_columns("outcomes", outcomes, positions, found),
        positions={name: position for name, position in positions.items() if name not in repeated},
        names=tuple(positions),
    )
    _check_used_once(roles, found)
    _check_canonical_names(roles, found)
    return roles


def missing_column(name: Hashable, role: str, names: Sequence[Hashable], found: Findings) -> None:
    """Report a column missing from the frame, and suggest the most similar names."""
    if name in found.index:
        told = f"{shown(name)}, the column for {role}, is the frame's index: pass frame.reset_index()"
        found.add("missing-column", told)
        return
    hint = did_you_mean(name, names) or f"; the frame has {listed(names)}"
    found.add("missing-column", f"there is no column {shown(name)} for {role}{hint}")


def _single_columns(
    single: Mapping[str, object], positions: Mapping[Hashable, int], found: Findings
) -> dict[str, Hashable]:
    columns: dict[str, Hashable] = {}
    for role, name in single.items():
        if name is None and role in _REQUIRED:
            found.add("bad-column-name", f"{role}= must name a column")
        elif not is_hashable(name):
            found.add("bad-column-name", f"{role}= must name one column, got {name!r}")
        elif name is not None and name not in positions:
            missing_column(name, role, list(positions), found)
        elif name is not None:
            columns[role] = name
    return columns


def is_hashable(name: object) -> TypeGuard[Hashable]:
    """Whether a value can be a column name at all; a tuple containing a list cannot."""
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _several_columns(
    role: str, given: object, positions: Mapping[Hashable, int], found: Findings
) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given]
    ordered = isinstance(given, Iterable) and not isinstance(given, (Mapping, Set))
    names = list(given) if isinstance(given, Iterable) else []
    if not ordered or not all(isinstance(name, str) for name in names):
        found.add("bad-column-name", f"{role}= must be a list of column names (strings), got {given!r}")
        return ()
    for name in names:
        if name not in positions:
            missing_column(name, role, list(positions), found)
    return tuple(str(name) for name in names if name in positions)


def _check_used_once(roles: Roles, found: Findings) -> None:
    users: dict[Hashable, list[str]] = {}
    for role, name in roles.users:
        users.setdefault(name, []).append(role)
    for name, parts in users.items():
        if len(parts) > 1:
            found.add(
                "column-used-twice",
                f"column {name!r} is used as {' and as '.join(parts)}; use a separate "
                f"copy of it for each role",
            )


def _check_canonical_names(roles: Roles, found: Findings) -> None:
    canonical = {name for role, name in CANONICAL.items() if role not in LATER or role in roles.single}
    for role, name in roles.single.items():
        if name in canonical and name != CANONICAL[role]:
            found.add(
                "name-collision",
                f"column {name!r} is used as {role}, but the log reserves this name for another purpose; "
                "rename it",
            )
    for role, name in roles.users[len(roles.single) :]:
        if name in canonical:
            found.add(
                "name-collision",
                f"{role.removesuffix('s')} column {name!r} has a name that the log reserves "
                f"({', '.join(name for name in CANONICAL.values() if name in canonical)}, "
                "propensity_<arm>); rename it",
            )


def check_arm_names(
    roles: Roles, arms: Sequence[Label], columns: Sequence[tuple[Label, Hashable]], found: Findings
) -> None:
    """Report columns named like another arm's propensity, or with a second role."""
    reserved = {f"propensity_{arm}" for arm in arms}
    others = roles.users
    for role, name in others:
        if name in reserved:
            found.add(
                "name-collision",
                f"column {name!r} is used as {role}, but the log reserves this name for an arm's "
                "propensity; rename it",
            )
    taken = {name: role for role, name in others}
    for arm, name in columns:
        if name in taken and name not in reserved:
            found.add(
                "column-used-twice",
                f"column {name!r} is used as {taken[name]} and as propensity of arm {arm!r}; use a "
                f"separate copy of it for each role",
            )
        taken.setdefault(name, f"propensity of arm {arm!r}")
        if name != f"propensity_{arm}" and name in reserved | set(CANONICAL.values()):
            found.add(
                "name-collision",
                f"column {name!r} is used as propensity of arm {arm!r}, but the log reserves this name for "
                "another purpose; rename it",
            )
