"""One lazy query that adds up a log's rows by batch and arm in the engine that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from adaptinf.log.validation.arms import find_arm_columns
from adaptinf.log.validation.columns import Label
from adaptinf.log.validation.findings import Findings
from adaptinf.log.validation.roles import Roles, missing_column
from adaptinf.sums.cells import DEGREES
from adaptinf.sums.groups import group_names

HIGHEST = 3
"""Inverse powers of propensities whose sums go with powers of rewards; of the next the counts alone do."""
SUM_TOLERANCE = 1e-6
MATCH_TOLERANCE = 1e-6
BATCH, ARM, COUNT, GROUP = "batch", "arm", "n", "group_"
_ROLES = ("action", "reward", "batch", "propensity", "unit")
_OPTIONAL = ("propensity", "unit")
_PREFIX = "propensity_"
_REWARD, _PROPENSITY, _WEIGHT = "__reward", "__propensity", "__weight"
FAULTS = {
    "missing-group": "group columns have no value",
    "missing-reward": "rewards are missing",
    "infinite-reward": "rewards are infinite or not a number",
    "propensity-out-of-range": "propensities of the chosen arm are missing or outside (0, 1]",
    "propensities-out-of-range": "propensities of some arm are missing or outside [0, 1]",
    "propensities-sum": f"propensities do not sum to 1 (tolerance {SUM_TOLERANCE:g})",
    "propensity-mismatch": "the propensity of the chosen arm differs from the arm's own column",
}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Names of a table's columns: the chosen arm's propensity, and each arm's, as far as there are any."""

    action: str
    reward: str
    batch: str
    propensity: str | None
    every: Mapping[Label, str]
    groups: tuple[str, ...] = ()
    unit: str | None = None


def columns_of(
    table: nw.LazyFrame[Any], given: Mapping[str, Any], arms: Sequence[Label] | None, found: Findings
) -> Columns | None:
    """The columns of the roles, None where some are absent or hold no numbers where these are due."""
    schema = table.collect_schema()
    names = list(schema)
    for role in _ROLES:
        name = given[role]
        if name is None and role not in _OPTIONAL:
            found.add("bad-column-name", f"{role}= must name a column")
        elif name is not None and name not in names:
            missing_column(name, role, names, found)
    single = {role: given[role] for role in _ROLES if given[role]}
    groups = _groups(given["by"], names, tuple(single.values()), found)
    if found.problems:
        return None
    roles = Roles(single, groups, {name: place for place, name in enumerate(names)}, tuple(names))
    pairs = _arm_columns(given["propensities"], schema[given["action"]], arms, roles, found)
    for name in (given["reward"], given["propensity"], *pairs.values()):
        kind = None if name is None else schema[name]
        if kind is not None and not (kind.is_numeric() or (name == given["reward"] and kind == nw.Boolean)):
            found.add("non-numeric", f"column {name!r} must hold numbers, and is of type {kind}")
    if given["unit"] is not None:
        _check_unit(given, bool(pairs), found)
    if found.problems:
        return None
    return Columns(
        given["action"],
        given["reward"],
        given["batch"],
        given["propensity"],
        pairs,
        groups,
        given["unit"],
    )


def _check_unit(given: Mapping[str, Any], knows_every: bool, found: Findings) -> None:
    """What a column of units does not go with."""
    others = [role for role in _ROLES if role != "unit" and given[role] == given["unit"]]
    if others:
        found.add("bad-unit", f"column {given['unit']!r} of unit= has another role: {', '.join(others)}")
    if given["propensity"] is None and not knows_every:
        found.add("missing-propensity", "unit= needs propensities: errors by unit are of inverse weighting")
    if given["by"]:
        found.add("bad-unit", "unit= and by= do not go together: errors by unit within groups need the rows")


def _groups(by: Any, names: Sequence[str], used: Sequence[str], found: Findings) -> tuple[str, ...]:
    """Columns whose labels make groups."""
    groups = group_names("by", by)
    for name in groups:
        if name not in names:
            missing_column(name, "by", list(names), found)
        elif name in used:
            found.add("bad-group", f"column {name!r} of by= has another role")
    return groups


def _arm_columns(
    asked: Any, kind: nw.dtypes.DType, arms: Sequence[Label] | None, roles: Roles, found: Findings
) -> dict[Label, str]:
    """Columns of the arms' propensities; labels in a pattern's names are of the type of the actions."""
    used = {*roles.single.values(), *roles.context}
    if asked is None and any(str(name).startswith(_PREFIX) and name not in used for name in roles.names):
        asked = _PREFIX + "{arm}"
    if asked is None:
        return {}
    known = list(arms or ())
    if isinstance(asked, str) and not known:
        before, _, after = asked.partition("{arm}")
        texts = [
            str(name)[len(before) : len(str(name)) - len(after)]
            for name in roles.names
            if name not in used and str(name).startswith(before) and str(name).endswith(after)
        ]
        known = [int(text) if kind.is_integer() and text.isdecimal() else text for text in texts if text]
    every = find_arm_columns(asked, known, arms, roles, found)
    return {arm: str(name) for arm, name in every.pairs}


def cell_query(
    table: nw.LazyFrame[Any], batch: nw.Expr, columns: Columns, centre: float
) -> nw.LazyFrame[Any]:
    """Sums by batch and arm with the counts of faults, lazily."""
    arms = {place: nw.col(name).cast(nw.Float64()) for place, name in enumerate(columns.every.values())}
    rows = table.select(
        batch.alias(BATCH),
        nw.col(columns.action).alias(ARM),
        *(nw.col(name).alias(f"{GROUP}{place}") for place, name in enumerate(columns.groups)),
        nw.col(columns.reward).cast(nw.Float64()).alias(_REWARD),
        own_propensity(columns).alias(_PROPENSITY),
        *(share.alias(f"__share_{place}") for place, share in arms.items()),
    )
    rows = rows.with_columns(_inverse(nw.col(_PROPENSITY)).alias(_WEIGHT))
    summed = _summands(columns, centre) | _over_all(len(arms)) | _faults(columns)
    wide = rows.with_columns(**summed)
    least = [f"__share_{place}" for place in arms] or [_PROPENSITY]
    keys = [f"{GROUP}{place}" for place in range(len(columns.groups))]
    return wide.group_by(BATCH, ARM, *keys).agg(
        nw.len().alias(COUNT),
        *(nw.col(name).sum().alias(name) for name in summed),
        *(nw.col(name).min().alias(f"least{name}") for name in least),
    )


def own_propensity(columns: Columns) -> nw.Expr:
    """The propensity of the chosen arm: its own column, or that of the arm; 1 where there is none."""
    if columns.propensity is not None:
        return nw.col(columns.propensity).cast(nw.Float64())
    if not columns.every:
        return nw.lit(1.0)
    found: nw.Expr | None = None
    for arm, name in columns.every.items():
        known = nw.when(nw.col(columns.action) == nw.lit(arm)).then(nw.col(name).cast(nw.Float64()))
        found = known if found is None else known.otherwise(found)
    assert found is not None
    return found


def _summands(columns: Columns, centre: float) -> dict[str, nw.Expr]:
    """Powers of rewards over powers of propensities."""
    above, weight = _powers(nw.col(_REWARD) - centre), _powers(nw.col(_WEIGHT))
    highest = HIGHEST if columns.propensity is not None or columns.every else 0
    found = {}
    for power in range(highest + 1):
        for degree in range(DEGREES):
            if power and degree:
                found[f"moment_{power}_{degree}"] = weight[power - 1] * above[degree - 1]
            elif power or degree:
                found[f"moment_{power}_{degree}"] = weight[power - 1] if power else above[degree - 1]
    if highest:
        found[f"moment_{highest + 1}_0"] = weight[highest]
    found["nonzero"] = _counted(nw.col(_REWARD) != 0.0)
    return found


def _inverse(share: nw.Expr) -> Any:
    """1 / share, missing where that is none: many engines stop at a division by 0."""
    return nw.when(share > 0.0).then(1.0 / share)


def _counted(flag: nw.Expr) -> nw.Expr:
    """1 where a flag is set, 0 elsewhere and where it is missing: floats, whose sums are the quicker."""
    return nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def _counted_unless(flag: nw.Expr, otherwise: nw.Expr | None = None) -> nw.Expr:
    """0 where a flag is set; elsewhere, and where it is missing, 1 or what is given."""
    return nw.when(flag).then(nw.lit(0.0)).otherwise(nw.lit(1.0) if otherwise is None else otherwise)


def _powers(base: nw.Expr) -> list[nw.Expr]:
    """The first powers, by products."""
    found = [base]
    for _ in range(HIGHEST):
        found.append(found[-1] * base)
    return found


def _over_all(n_arms: int) -> dict[str, nw.Expr]:
    """Of every arm's propensity, chosen or not: 1 / e, e and e (1 - e)."""
    found = {}
    for place in range(n_arms):
        share = nw.col(f"__share_{place}")
        # Of arms that cannot be chosen there is no inverse: batches of them are known by the least share.
        found[f"inverse_{place}"] = _inverse(share).otherwise(nw.lit(0.0))
        found[f"expected_{place}"] = share
        found[f"spread_{place}"] = share * (1.0 - share)
    return found


def _faults(columns: Columns) -> dict[str, nw.Expr]:
    """One for each row that must not be counted, by what is wrong with it."""
    reward, own = nw.col(_REWARD), nw.col(_PROPENSITY)
    nowhere = nw.lit(False)
    for place in range(len(columns.groups)):
        nowhere = nowhere | nw.col(f"{GROUP}{place}").is_null()
    found = {
        **({"missing-group": _counted(nowhere)} if columns.groups else {}),
        "missing-reward": _counted(reward.is_null()),
        "infinite-reward": _counted_unless(reward.is_finite(), _counted_unless(reward.is_null())),
        "propensity-out-of-range": _counted_unless((own > 0.0) & (own <= 1.0)),
    }
    shares = [nw.col(f"__share_{place}") for place in range(len(columns.every))]
    if shares:
        total, good = sum(shares[1:], shares[0]), _possible(shares[0])
        for share in shares[1:]:
            good = good & _possible(share)
        found["propensities-out-of-range"] = _counted_unless(good)
        # Engines evaluate the inner condition where the outer one failed: in hardly any row.
        found["propensities-sum"] = _counted_unless((total - 1.0).abs() <= SUM_TOLERANCE, _counted(good))
    if shares and columns.propensity is not None:
        differs = nw.lit(False)
        for place, arm in enumerate(columns.every):
            gap = (shares[place] - own).abs() > MATCH_TOLERANCE * shares[place]
            differs = differs | ((nw.col(ARM) == nw.lit(arm)) & gap).fill_null(False)
        found["propensity-mismatch"] = _counted(differs)
    return {column_of_fault(code): counted for code, counted in found.items()}


def _possible(share: nw.Expr) -> nw.Expr:
    """Whether a share is in [0, 1]; missing where it is."""
    return (share >= 0.0) & (share <= 1.0)


def column_of_fault(code: str) -> str:
    """Column in which the rows of a fault are counted; not every warehouse takes hyphens."""
    return code.replace("-", "_")
