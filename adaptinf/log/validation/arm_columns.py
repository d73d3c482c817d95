"""Arms: their labels and order, the codes of chosen arms, and every arm's propensity."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from adaptinf.log.validation.column_roles import Roles, is_hashable, missing_column
from adaptinf.log.validation.frame_columns import (
    FAULTS,
    SUM_TOLERANCE,
    Column,
    Findings,
    Label,
    Labels,
    alike_labels,
    blank_rows,
    label_key,
    mixed_labels,
    plain_label,
    read_labels,
)
from adaptinf.log.validation.propensity_rounding import settle_chosen, settle_sums, tell_rounding
from adaptinf.log.validation.propensity_shapes import Supplied
from adaptinf.spelling import told_apart
from adaptinf.texts import did_you_mean, listed
from adaptinf.typing import BoolArray, FloatArray, IntArray

_PREFIX = "propensity_"
_HOLDER = "{arm}"
_SHOWN = 8
_BLOCK = 1 << 17
"""Number of rows processed at a time, to limit memory."""
PARSERS: dict[type, tuple[str, Callable[[str], Label]]] = {
    str: (r"(?s).*", str),
    int: (r"-?\d+", int),
    float: (r".*\d.*", float),
    bool: (r"True|False", lambda text: text == "True"),
}
"""The text for a label, and the label itself, by type."""


@dataclass(frozen=True, slots=True)
class ArmColumns:
    """Propensity columns keyed by arm."""

    pairs: list[tuple[Label, Hashable]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


def declare_arms(arms: object, found: Findings) -> list[Label] | None:
    """Labels that the user passed as arms=, or None."""
    if arms is None:
        return None
    if isinstance(arms, (str, bytes, Mapping, Set)) or not isinstance(arms, Iterable):
        found.add("bad-arms", f"arms= must be a list of labels in the desired order, got {arms!r}")
        return None
    given = list(arms)
    labels = [label for label in map(plain_label, given) if label is not None]
    if len(labels) < len(given) or not given:
        found.add(
            "bad-arms", f"arms= must list strings, whole numbers, booleans or finite numbers, got {given!r}"
        )
        return None
    if len(set(map(label_key, labels))) < len(labels):
        found.add("bad-arms", f"arms= lists an arm twice: {given!r}")
    return [label for _, label in dict.fromkeys(map(label_key, labels))]


def find_arm_columns(
    propensities: object,
    observed: Sequence[Label],
    declared: Sequence[Label] | None,
    roles: Roles,
    found: Findings,
) -> ArmColumns:
    """Columns of the arms' propensities, from the user's mapping or pattern, or named propensity_<arm>."""
    if propensities is None:
        return _columns_by_name(observed, declared, roles, found)
    if isinstance(propensities, str):
        pattern = _pattern(propensities, roles, found)
        return _columns_by_pattern(pattern, declared or observed, roles, found) if pattern else ArmColumns()
    if not isinstance(propensities, Mapping) or not propensities:
        found.add(
            "bad-propensities",
            f"propensities= must be a mapping from arms to columns or numbers, {_TEXTS}, got "
            f"{propensities!r:.60}",
        )
        return ArmColumns()
    columns = ArmColumns()
    for arm, name in propensities.items():
        label = plain_label(arm)
        if label is None or not is_hashable(name):
            found.add(
                "bad-propensities", f"propensities= must map arms to column names, got {arm!r}: {name!r}"
            )
            continue
        columns.labels.append(label)
        if isinstance(name, Supplied) or name in roles.names:
            columns.pairs.append((label, name))
        else:
            missing_column(name, f"the propensity of arm {label!r}", roles.names, found)
    return columns


_TEXTS = (
    f"or a string: a pattern such as 'p_{_HOLDER}', the common prefix of the column names, or a column that "
    "contains lists or JSON objects"
)
"""The allowed texts for propensities=."""


def _pattern(text: str, roles: Roles, found: Findings) -> str:
    """The pattern that a text gives, or that of columns with this prefix; empty if there is a problem."""
    if _HOLDER in text:
        return text
    used = {name for _, name in roles.users}
    named = [name for name in roles.names if isinstance(name, str) and name not in used and name != text]
    if text and any(name.startswith(text) for name in named):
        return text + _HOLDER
    if text in roles.names:
        told = (
            "is a column that contains neither lists nor JSON objects (name the chosen arm's column in "
            "propensity=)"
        )
        hint = f", and no other column name begins with it; the frame has {listed(roles.names)}"
    else:
        told = "is not a column, and no column name begins with it"
        near = did_you_mean(text, [name for name in roles.names if isinstance(name, str)])
        hint = near or f"; the frame has {listed(roles.names)}"
    found.add("bad-propensities", f"propensities={text!r:.60} {told}{hint}")
    return ""


def arms_of_entries(
    texts: Sequence[str],
    what: str,
    observed: Sequence[Label],
    declared: Sequence[Label] | None,
    found: Findings,
) -> list[tuple[Label, str]]:
    """The arms to which the entries of objects belong, by their texts; unknown ones are problems."""
    known = observed if declared is None else declared
    pairs = [(arm, str(arm)) for arm in known if str(arm) in texts]
    if declared is None and observed:
        free = {text: text for text in texts}
        pairs += [(arm, str(text)) for arm, text in _unchosen_arms(observed, free, found)]
    own = {text for _, text in pairs}
    strangers = [text for text in texts if text not in own]
    if strangers:
        found.add(
            "unmatched-propensity-columns",
            f"{what} has entries for {listed(strangers)}, which are not arms ({listed(known)})",
        )
    return pairs


def _columns_by_pattern(pattern: str, arms: Sequence[Label], roles: Roles, found: Findings) -> ArmColumns:
    """Columns whose names match a pattern with an arm: one for every arm, and an arm for every column."""
    before, holder, after = pattern.partition(_HOLDER)
    if not holder or _HOLDER in after:
        found.add(
            "bad-propensities",
            f"propensities= must be a pattern with one {_HOLDER}, such as 'p_{_HOLDER}', or a mapping from "
            f"arms to columns, got {pattern!r:.60}",
        )
        return ArmColumns()
    used = {name for _, name in roles.users}
    columns = {
        name[len(before) : len(name) - len(after)]: name
        for name in roles.names
        if isinstance(name, str)
        and len(name) > len(before) + len(after)
        and name.startswith(before)
        and name.endswith(after)
        and name not in used
    }
    known = {str(arm): arm for arm in arms}
    without = [f"{arm!r} ({before}{text}{after})" for text, arm in known.items() if text not in columns]
    strangers = [name for text, name in columns.items() if text not in known]
    problems = [f"no column for {', '.join(without[:_SHOWN])}"] if without else []
    if strangers:
        problems.append(
            f"no arm for {listed(strangers)} (an arm that was never chosen must be named in arms=, and "
            "other columns must be dropped)"
        )
    if problems and arms:
        found.add(
            "unmatched-propensity-columns",
            f"propensities={pattern!r:.60} finds {' and '.join(problems)}; the arms are {listed(arms)}",
        )
    pairs: list[tuple[Label, Hashable]] = [
        (arm, columns[text]) for text, arm in known.items() if text in columns
    ]
    # A missing column has already been reported.
    return ArmColumns(pairs, [] if problems else [arm for arm, _ in pairs])


def _columns_by_name(
    observed: Sequence[Label], declared: Sequence[Label] | None, roles: Roles, found: Findings
) -> ArmColumns:
    used = {name for _, name in roles.users}
    free = {
        name.removeprefix(_PREFIX): name
        for name in roles.names
        if isinstance(name, str) and name.startswith(_PREFIX) and name not in used
    }
    known = observed if declared is None else declared
    pairs: list[tuple[Label, Hashable]] = [(arm, free[str(arm)]) for arm in known if str(arm) in free]
    if not pairs:
        if len(free) > ("propensity" in roles.single) and known:
            found.add(
                "unmatched-propensity-columns",
                f"the columns {listed(free.values())} look like propensities, but do not "
                f"match the arms ({listed(known)}); rename them after the arms, name them in "
                f"propensities= (or propensity=), or drop them",
            )
        return ArmColumns()
    if declared is None:
        pairs += _unchosen_arms(observed, free, found)
    return ArmColumns(pairs, [label for label, _ in pairs])


def _unchosen_arms(
    observed: Sequence[Label], free: Mapping[str, str], found: Findings
) -> list[tuple[Label, Hashable]]:
    """Arms that were never chosen but have a propensity column; labels get the type of the others."""
    rest = {text: name for text, name in free.items() if text not in set(map(str, observed))}
    kinds = {type(label) for label in observed}
    if len(kinds) > 1:
        for name in rest.values():
            found.add(
                "ambiguous-propensity-column",
                f"column {name!r} may belong to an arm that was never chosen; give propensities= or arms=",
            )
        return []
    pattern, parse = PARSERS[kinds.pop()]
    pairs: list[tuple[Label, Hashable]] = []
    for text, name in rest.items():
        label = parse(text) if re.fullmatch(pattern, text) else None
        if label is not None and str(label) == text:
            pairs.append((label, name))
    return pairs


def order_arms(
    observed: Sequence[Label], declared: Sequence[Label] | None, columns: ArmColumns, found: Findings
) -> tuple[Label, ...]:
    """All arms: as declared; otherwise sorted if of one type, or in order of first appearance."""
    if declared is not None:
        arms = list(declared)
        _check_declared(arms, columns, found)
    else:
        arms = [label for _, label in dict.fromkeys(map(label_key, [*observed, *columns.labels]))]
        if len(set(map(type, arms))) == 1:
            arms.sort()
    if columns.labels:
        have = set(map(label_key, columns.labels))
        without = [arm for arm in arms if label_key(arm) not in have]
        if without:
            found.add(
                "arm-without-propensity",
                f"there is no propensity column for {listed(without)}; give one for every arm or for none "
                f"(a number and a string are different labels)",
            )
    return tuple(arms)


def _check_declared(arms: Sequence[Label], columns: ArmColumns, found: Findings) -> None:
    known = set(map(label_key, arms))
    unknown = [label for label in columns.labels if label_key(label) not in known]
    if unknown:
        problem = f"propensities= names {listed(unknown)}, which arms= does not list"
        found.add("unknown-propensity-arm", problem + did_you_mean(unknown[0], arms))


def check_actions(column: Column, name: object, role: str, as_written: bool, found: Findings) -> Labels:
    """Labels of the chosen arms; missing, blank or invalid ones are reported as problems."""
    labels, what = read_labels(column), f"{role} column {name!r}"
    found.add_rows("missing-action", f"{what} has no value", labels.missing)
    found.add_rows(
        "bad-action", f"{what} must contain strings, whole numbers, booleans or finite numbers", labels.bad
    )
    if not as_written:
        found.add_rows("blank-action", f"{what} has a label that consists only of spaces", blank_rows(labels))
    return labels


def code_actions(
    labels: Labels, arms: Sequence[Label], declared: bool, what: str, found: Findings
) -> IntArray:
    """`what` describes their column. `what` is their column."""
    _check_distinct(labels, arms, what, found)
    position = {label_key(arm): code for code, arm in enumerate(arms)}
    codes = np.array([position.get(label_key(label), -1) for label in labels.values] + [-1], dtype=np.int64)
    action = codes[labels.codes]
    if declared:
        unseen = [label for label, code in zip(labels.values, codes, strict=False) if code < 0]
        found.add_rows(
            "unseen-arm",
            f"actions {listed(unseen)} are not among arms={list(arms)!r} "
            "(a number and a string are different labels)",
            (action < 0) & (labels.codes >= 0),
        )
    return action


def _check_distinct(labels: Labels, arms: Sequence[Label], what: str, found: Findings) -> None:
    """Report arms whose labels are equal, or look alike, although their types differ or are mixed."""
    every = [*arms, *labels.values]
    groups = alike_labels(every)
    for alike in groups or mixed_labels(every):
        keys = set(map(label_key, alike))
        member = np.array([label_key(label) in keys for label in labels.values] + [False], dtype=bool)
        told = told_apart(alike) if groups else listed(alike)
        message = (
            f"{what}: the labels {told} cannot be distinguished in releases and files; use arm labels of "
            "one type, without surrounding spaces"
        )
        if member.any():
            found.add_rows("ambiguous-arm", message, member[labels.codes])
        else:
            found.add("ambiguous-arm", message)


def _of_chosen(table: FloatArray, action: IntArray) -> FloatArray:
    """The entry for each row's action, NaN if the action is -1; table (T, K), action (T,)."""
    own = np.empty(len(action))
    for first in range(0, len(action), _BLOCK):
        rows = slice(first, first + _BLOCK)
        place = np.maximum(action[rows], 0)[:, None]
        own[rows] = np.where(action[rows] < 0, np.nan, np.take_along_axis(table[rows], place, axis=1)[:, 0])
    return own


def check_propensity_rows(
    chosen: FloatArray | None,
    table: FloatArray,
    action: IntArray | None,
    names: Sequence[Hashable],
    rounded: bool,
    found: Findings,
) -> FloatArray | None:
    """Check rows of propensities, and return those of the chosen arms, shape (T,).

    Shapes: chosen (T,), table (T, K), action (T,). If `rounded`, rows of the table whose sum differs from 1
    by rounding are renormalised in place.
    """
    # A row's sum may differ from 1 by 1e-6, and the two versions of the chosen arm's propensity by a
    # millionth of it, because files round numbers.
    written = None if action is None else _of_chosen(table, action)
    changed, rounding = settle_sums(table, names, rounded, found)
    if action is None or written is None:
        return chosen
    if chosen is None:
        found.add_rows("chosen-propensity-zero", FAULTS["chosen-propensity-zero"], written == 0)
        own = _of_chosen(table, action) if changed.any() else written
    else:
        own = settle_chosen(chosen, written, table, action, rounding, rounded, found)
    if rounding is not None and changed.any() and not found.problems:
        tell_rounding(rounding, int(np.count_nonzero(changed)), own, found)
    return own


FROM_BATCHES = "from batches"
"""Value of `propensities=` if the chosen arms' propensities are to determine every arm's."""
_SAME = 1e-9
"""Propensities that differ by less are equal, except for rounding when a frame was written and read."""
_BATCHES_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class BatchCells:
    """The chosen arms' propensities by batch; batch, arm and propensity have shape (C,).

    `moved` (B,) marks batches in which a propensity changes between rounds, and `total` (B,) contains the
    sums of propensities.
    """

    batch: IntArray
    arm: IntArray
    propensity: FloatArray
    moved: BoolArray
    total: FloatArray


def batch_cells(batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int) -> BatchCells:
    """The cells of rounds; batch (from 0), action and propensity of the chosen arm have shape (T,)."""
    size = int(batch.max(initial=-1)) + 1
    cell, served = pd.factorize(batch * n_arms + action)
    one = np.empty(len(served))
    one[cell] = propensity
    moved = np.zeros(size, dtype=bool)
    moved[batch[np.abs(propensity - one[cell]) > _SAME]] = True
    place, arm = np.divmod(np.asarray(served, dtype=np.int64), n_arms)
    total = np.bincount(place, weights=one, minlength=size).astype(np.float64)
    return BatchCells(place, arm, one, moved, total)


def full_batches(batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int) -> BoolArray:
    """Batches in which each chosen arm has one propensity and these sum to 1, so no other arm was possible.

    Batch (from 0), action and propensity of the chosen arm have shape (T,), and the result (B,).
    """
    return _full(batch_cells(batch, action, propensity, n_arms))


def _full(cells: BatchCells) -> BoolArray:
    return np.asarray(~cells.moved & (np.abs(cells.total - 1.0) <= SUM_TOLERANCE))


def propensities_as_far_as_known(
    batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int
) -> FloatArray | None:
    """Every arm's propensity if the chosen arms' determine it; None if no arm is ruled out.

    Batch (from 0), action and propensity of the chosen arm have shape (T,), and the result (T, K): the logged
    value for the chosen arm; 0 beside an arm that was certain, and for arms without rounds in a batch whose
    chosen arms have probabilities that sum to 1; otherwise 1.
    """
    cells = batch_cells(batch, action, propensity, n_arms)
    lacking = _full(cells) & (np.bincount(cells.batch, minlength=len(cells.total)) < n_arms)
    if not lacking.any():
        return None
    place, inside = np.cumsum(lacking) - 1, lacking[cells.batch]
    served = np.zeros((int(lacking.sum()), n_arms))
    served[place[cells.batch[inside]], cells.arm[inside]] = 1.0
    rows = np.flatnonzero(lacking[batch])
    table = np.ones((len(action), n_arms))
    table[rows] = served[place[batch[rows]]]
    table[propensity >= 1.0] = 0.0
    table[np.arange(len(action)), action] = propensity
    return table


def filled_from_batches(
    batch: IntArray | None,
    action: IntArray,
    propensity: FloatArray | None,
    n_arms: int,
    found: Findings,
) -> FloatArray | None:
    """Every arm's propensity, shape (T, K), from those of the chosen arms; None if there is a problem.

    Shapes: batch, from 0, action, propensity (T,).
    """
    # Propensities of a batch add up to 1: if the chosen arms use all of it, other arms have propensity 0, and
    # a single other arm has the remainder.
    if batch is None or propensity is None:
        found.add("no-batches", f"propensities={FROM_BATCHES!r} requires batch= and propensity=")
        return None
    cells = batch_cells(batch, action, propensity, n_arms)
    size = len(cells.total)
    chosen = np.bincount(cells.batch, minlength=size)
    full, over = np.abs(cells.total - 1.0) <= SUM_TOLERANCE, cells.total > 1.0 + SUM_TOLERANCE
    short = ~full & ~over
    reasons = {
        "a chosen arm's propensity is not the same in all rounds": cells.moved,
        "the chosen arms' propensities sum to more than 1": over & ~cells.moved,
        "every arm was chosen, but their propensities do not sum to 1": (
            short & (chosen == n_arms) & ~cells.moved
        ),
        "several arms were not chosen, and their propensities cannot be determined": (
            short & (chosen < n_arms - 1) & ~cells.moved
        ),
    }
    for reason, batches in reasons.items():
        if batches.any():
            places = np.flatnonzero(batches)
            first = places[:_BATCHES_SHOWN].tolist()
            shown = ", ".join(map(str, first if len(places) <= _BATCHES_SHOWN else [*first, "..."]))
            told = f"in {len(places)} batches ({shown}, counted from 0)"
            found.add("unfilled-propensities", f"propensities={FROM_BATCHES!r}: {told} {reason}")
    if any(batches.any() for batches in reasons.values()):
        return None
    left = np.where(full, 0.0, 1.0 - cells.total)
    table = np.repeat(left[:, None], n_arms, axis=1)
    table[cells.batch, cells.arm] = cells.propensity
    return table[batch]
