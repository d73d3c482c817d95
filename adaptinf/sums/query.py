"""One lazy query that adds up a log's rows by batch and arm in the engine that holds them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, and_, or_
from typing import Any

import narwhals as nw

from adaptinf.log.validation.arms import PARSERS, find_arm_columns
from adaptinf.log.validation.columns import Label
from adaptinf.log.validation.faults import (
    EXACT,
    FAULTS,
    MATCH_TOLERANCE,
    SUM_TOLERANCE,
    out_of_range,
    outside,
)
from adaptinf.log.validation.findings import Findings
from adaptinf.log.validation.roles import Roles, missing_column
from adaptinf.sums.cells import DEGREES
from adaptinf.sums.further.columns import further_columns
from adaptinf.sums.further.products import COVARIATE, DENOMINATOR, Further, further_triples
from adaptinf.sums.groups import group_names
from adaptinf.sums.periods import WITHIN
from adaptinf.sums.sources import as_number, is_long, no_labels, readied

HIGHEST = 3
"""Inverse powers of propensities whose sums go with powers of rewards; of the next the counts alone do."""
BATCH, ARM, COUNT, GROUP = "batch", "arm", "n", "group_"
LEAST, MOST, FAULTY = "least__reward", "most__reward", "faulty"
_ROLES = ("action", "reward", "batch", "propensity", "unit")
_OPTIONAL = ("propensity", "unit")
_PREFIX = "propensity_"
REWARD, PROPENSITY, _WEIGHT = "__reward", "__propensity", "__weight"
_FURTHER, _SHARE = "__further_", "__share_"
_WHOLE = "__whole"
"""Ending of a column of long whole numbers as they were before they became floats."""
_NO_LABELS = (nw.List, nw.Array, nw.Struct, nw.Binary, nw.Duration, nw.Time)
FURTHER_ROLES = {DENOMINATOR: "outcome", COVARIATE: "context"}
"""What a log calls further columns."""
Schema = Mapping[str, nw.dtypes.DType]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Names of a table's columns: the chosen arm's propensity, and each arm's, as far as there are any."""

    action: str
    reward: str
    batch: str
    propensity: str | None
    every: Mapping[Label, str]
    groups: tuple[str, ...]
    further: Further
    unit: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column of the table that is read."""
        single = (self.action, self.reward, self.batch, self.propensity, self.unit)
        several = (*self.every.values(), *self.groups, *self.further.names)
        return tuple(dict.fromkeys(name for name in (*single, *several) if name is not None))

    @property
    def numbers(self) -> dict[str, tuple[str, str]]:
        """Columns of numbers and their roles in a log, by their names in the query."""
        found = {REWARD: (self.reward, "reward")}
        if self.propensity is not None:
            found[PROPENSITY] = (self.propensity, "propensity")
        for place, name in enumerate(self.every.values()):
            found[f"{_SHARE}{place}"] = (name, "propensity")
        for place, (name, role) in enumerate(zip(self.further.names, self.further.roles, strict=True)):
            found[f"{_FURTHER}{place}"] = (name, FURTHER_ROLES[role])
        return found


def columns_of(
    table: nw.LazyFrame[Any], given: Mapping[str, Any], arms: Sequence[Label] | None, found: Findings
) -> Columns | None:
    """The columns of the roles, None where some are absent."""
    names = list(table.collect_schema())
    for role in _ROLES:
        name = given[role]
        if name is None and role not in _OPTIONAL:
            found.add("bad-column-name", f"{role}= must name a column")
        elif name is not None and name not in names:
            missing_column(name, role, names, found)
    single = {role: given[role] for role in _ROLES if given[role]}
    groups = _several("by", group_names("by", given["by"]), names, tuple(single.values()), found)
    further = further_columns("aggregate", given["denominator"], given["covariate"])
    used = (*single.values(), *groups)
    for role in (DENOMINATOR, COVARIATE):
        _several(role, further.having(role), names, used, found)
    if found.problems:
        return None
    roles = Roles(
        single, (*groups, *further.names), {name: place for place, name in enumerate(names)}, tuple(names)
    )
    action = given["action"]
    kind = readied(table, [action]).collect_schema()[action]
    pairs = _arm_columns(given["propensities"], kind, arms, roles, found)
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
        further,
        given["unit"],
    )


def check_types(rows: nw.LazyFrame[Any], columns: Columns, found: Findings) -> None:
    """Columns of types that hold no label, no batch, or no number at all."""
    schema = rows.collect_schema()
    labels = {columns.action: "action", columns.batch: "batch", **dict.fromkeys(columns.groups, "context")}
    labels |= {} if columns.unit is None else {columns.unit: "unit"}
    for name, role in labels.items():
        kind = schema[name]
        times = role != "batch" and isinstance(kind, (nw.Datetime, nw.Date))
        if isinstance(kind, _NO_LABELS) or times or (role != "batch" and no_labels(rows, name)):
            found.add(f"bad-{role}", f"{role} column {name!r} holds no labels, but {kind}")
    for name, role in columns.numbers.values():
        kind = schema[name]
        if not (kind.is_numeric() or (role != "propensity" and isinstance(kind, nw.Boolean))):
            code = "bad-context" if role == "context" else f"non-numeric-{role}"
            found.add(code, f"{role} column {name!r} must hold numbers, and is of type {kind}")


def _check_unit(given: Mapping[str, Any], knows_every: bool, found: Findings) -> None:
    """What a column of units does not go with."""
    others = [role for role in _ROLES if role != "unit" and given[role] == given["unit"]]
    if others:
        found.add("bad-unit", f"column {given['unit']!r} of unit= has another role: {', '.join(others)}")
    if given["propensity"] is None and not knows_every:
        found.add("missing-propensity", "unit= needs propensities: errors by unit are of inverse weighting")
    if given["denominator"] or given["covariate"]:
        found.add("bad-unit", "unit= goes without denominator= and covariate=: with them it needs the rows")
    if given["by"]:
        found.add("bad-unit", "unit= and by= do not go together: errors by unit within groups need the rows")


def _several(
    role: str, asked: tuple[str, ...], names: Sequence[str], used: Sequence[str], found: Findings
) -> tuple[str, ...]:
    """Columns of a role that several may have."""
    for name in asked:
        if name not in names:
            missing_column(name, role, list(names), found)
        elif name in used:
            code = "bad-group" if role == "by" else "bad-column-name"
            found.add(code, f"column {name!r} of {role}= has another role")
    return asked


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
        known = [_label_of(text, kind) for text in texts if text]
    every = find_arm_columns(asked, known, arms, roles, found)
    return {arm: str(name) for arm, name in every.pairs}


def _label_of(text: str, kind: nw.dtypes.DType) -> Label:
    """The label, of the type of the arms, that a column's name ends in."""
    for own, is_own in (
        (int, kind.is_integer()),
        (float, kind.is_float() or kind.is_decimal()),
        (bool, kind == nw.Boolean),
    ):
        pattern, parse = PARSERS[own]
        if is_own and re.fullmatch(pattern, text):
            return parse(text)
    return text


def cell_query(
    rows: nw.LazyFrame[Any],
    batch: nw.Expr,
    within: nw.Expr | None,
    columns: Columns,
    centres: Sequence[float],
    reward_range: tuple[float, float] | None,
    ends: bool,
) -> nw.LazyFrame[Any]:
    """Sums by batch and arm of rewards and columns less their centres, and counts of faulty rows, lazily.

    `within` are pieces of batches, by which rows are told apart too; `ends` asks for the ends of rewards.
    """
    named, keys = _named(rows, batch, within, columns)
    usable = [REWARD, *(f"{_FURTHER}{place}" for place in range(len(columns.further.names)))]
    clean = named.with_columns(
        *(_usable(nw.col(name)).alias(name) for name in usable),
        _inverse(nw.col(PROPENSITY)).alias(_WEIGHT),
        nw.when(_fine(columns, reward_range)).then(nw.lit(0.0)).otherwise(nw.lit(1.0)).alias(FAULTY),
    )
    summed = _summands(columns, centres[0]) | _products(columns, centres) | _over_all(len(columns.every))
    wide = clean.with_columns(**summed)
    least = [f"{_SHARE}{place}" for place in range(len(columns.every))] or [PROPENSITY]
    with warnings.catch_warnings():
        # Of an eager frame of pandas, to which narwhals adds column by column.
        warnings.filterwarnings("ignore", "DataFrame is highly fragmented")
        return wide.group_by(BATCH, ARM, *keys).agg(
            nw.len().alias(COUNT),
            *(nw.col(name).sum().alias(name) for name in (*summed, FAULTY)),
            *(nw.col(name).min().alias(f"least{name}") for name in least),
            *([nw.col(REWARD).min().alias(LEAST), nw.col(REWARD).max().alias(MOST)] if ends else []),
        )


def fault_query(
    rows: nw.LazyFrame[Any],
    batch: nw.Expr,
    columns: Columns,
    reward_range: tuple[float, float] | None,
) -> nw.LazyFrame[Any]:
    """Numbers of rows with each fault, by batch and arm: where `cell_query` counted faulty rows."""
    named, _ = _named(rows, batch, None, columns)
    faults = faults_of(columns, rows.collect_schema(), reward_range)
    counted = named.with_columns(
        **{column_of_fault(code): _counted(flag) for code, (_, flag) in faults.items()}
    )
    return counted.group_by(BATCH, ARM).agg(
        *(nw.col(column_of_fault(code)).sum().alias(column_of_fault(code)) for code in faults)
    )


def _named(
    rows: nw.LazyFrame[Any], batch: nw.Expr, within: nw.Expr | None, columns: Columns
) -> tuple[nw.LazyFrame[Any], list[str]]:
    """Rows with the columns that are read, and the names of those of groups and pieces of batches."""
    schema = rows.collect_schema()
    keys = {f"{GROUP}{place}": label_of(name, schema) for place, name in enumerate(columns.groups)}
    keys |= {} if within is None else {WITHIN: within}
    own = _plain(batch, schema[columns.batch]).alias(BATCH)
    return rows.select(own, *named_rows(columns, schema), **keys), list(keys)


def named_rows(columns: Columns, schema: Schema) -> list[nw.Expr]:
    """Arms and numbers of rows; long whole numbers as they are, beside the floats that they become."""
    numbers = {own: name for own, (name, _) in columns.numbers.items()}
    found = [as_number(name, schema).alias(own) for own, name in numbers.items()]
    long = {f"{own}{_WHOLE}": name for own, name in numbers.items() if is_long(schema[name])}
    if columns.propensity is None:
        found.append(_own_propensity(columns, schema).alias(PROPENSITY))
    return [
        label_of(columns.action, schema).alias(ARM),
        *found,
        *(nw.col(name).alias(own) for own, name in long.items()),
    ]


def label_of(name: str, schema: Schema) -> nw.Expr:
    """A column of labels."""
    return _plain(nw.col(name), schema[name])


def _plain(column: nw.Expr, kind: nw.dtypes.DType) -> nw.Expr:
    """Labels or batches of a type: categories are their text, and 0 has no sign."""
    if isinstance(kind, (nw.Categorical, nw.Enum)):
        return column.cast(nw.String())
    if kind.is_float() or kind.is_decimal():
        number = column.cast(nw.Float64())
        # To Arrow -0.0 is another group than 0.0, and NaN another than what is missing.
        known = nw.when(~_missing(number)).then(number)
        return nw.when(number == 0.0).then(nw.lit(0.0)).otherwise(known)
    return column


def _own_propensity(columns: Columns, schema: Schema) -> nw.Expr:
    """The propensity of the chosen arm by the arm's own column; 1 where there is none."""
    if not columns.every:
        return nw.lit(1.0)
    found: Any = None
    for arm, name in columns.every.items():
        chosen = label_of(columns.action, schema) == nw.lit(arm)
        known = nw.when(chosen).then(as_number(name, schema))
        found = known if found is None else known.otherwise(found)
    return found  # type: ignore[no-any-return]


def _usable(number: nw.Expr) -> Any:
    """A number whose powers can be summed, missing where it is too large, which is a fault."""
    return nw.when(number.abs() < float(EXACT)).then(number)


def _summands(columns: Columns, centre: float) -> dict[str, nw.Expr]:
    """Powers of rewards over powers of propensities."""
    above, weight = _powers(nw.col(REWARD) - centre), _powers(nw.col(_WEIGHT))
    highest = highest_power(columns)
    found = {}
    for power in range(highest + 1):
        for degree in range(DEGREES):
            if power and degree:
                found[f"moment_{power}_{degree}"] = weight[power - 1] * above[degree - 1]
            elif power or degree:
                found[f"moment_{power}_{degree}"] = weight[power - 1] if power else above[degree - 1]
    if highest:
        found[f"moment_{highest + 1}_0"] = weight[highest]
    found["nonzero"] = _counted(nw.col(REWARD) != 0.0)
    return found


def highest_power(columns: Columns) -> int:
    """The highest inverse power of propensities whose sums go with rewards."""
    return HIGHEST if columns.propensity is not None or columns.every else 0


def _products(columns: Columns, centres: Sequence[float]) -> dict[str, nw.Expr]:
    """Products of up to three of rewards and further columns over powers of propensities."""
    count = len(columns.further.names)
    names = (REWARD, *(f"{_FURTHER}{place}" for place in range(count)))
    above = [nw.col(name) - centre for name, centre in zip(names, centres, strict=True)]
    weight, found = _powers(nw.col(_WEIGHT)), dict[str, nw.Expr]()
    for power in range(highest_power(columns) + 1):
        for triple in further_triples(count):
            first, *others = (above[place - 1] for place in triple if place)
            for other in others:
                first = first * other
            name = f"product_{power}_{'_'.join(map(str, triple))}"
            found[name] = first * weight[power - 1] if power else first
    for place in range(count):
        found[f"positive_{place}"] = _counted(nw.col(f"{_FURTHER}{place}") > 0.0)
    return found


def _inverse(share: nw.Expr) -> Any:
    """1 / share, missing where that is none: many engines stop at a division by 0."""
    return nw.when(share > 0.0).then(1.0 / share)


def _counted(flag: nw.Expr) -> nw.Expr:
    """1 where a flag is set, 0 elsewhere and where it is missing: floats, whose sums are the quicker."""
    return nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


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


def _fine(columns: Columns, reward_range: tuple[float, float] | None) -> nw.Expr:
    """Whether a row has none of the faults, in as few steps as it takes: it is nearly always so."""
    reward, own = nw.col(REWARD), nw.col(PROPENSITY)
    fine = _finite(reward) & (reward.abs() < float(EXACT))
    if reward_range is not None:
        fine = fine & (reward >= reward_range[0]) & (reward <= reward_range[1])
    for place, role in enumerate(columns.further.roles):
        further = nw.col(f"{_FURTHER}{place}")
        fine = fine & _finite(further) & (further.abs() < float(EXACT))
        fine = fine & (further >= 0.0) if role == DENOMINATOR else fine
    shares = [nw.col(f"{_SHARE}{place}") for place in range(len(columns.every))]
    if shares:
        total = sum(shares[1:], shares[0])
        fine = fine & _finite(total) & ((total - 1.0).abs() <= SUM_TOLERANCE)
        fine = reduce(and_, [(share >= 0.0) & (share <= 1.0) for share in shares], fine)
    if shares or columns.propensity is not None:
        fine = fine & (own > 0.0)
    if columns.propensity is not None:
        fine = fine & _finite(own) & (own <= 1.0)
        for arm, share in zip(columns.every, shares, strict=True):
            near = (share - own).abs() <= MATCH_TOLERANCE * share
            fine = fine & ((nw.col(ARM) != nw.lit(arm)) | near)
    return fine


def faults_of(
    columns: Columns, schema: Schema, reward_range: tuple[float, float] | None
) -> dict[str, tuple[str, nw.Expr]]:
    """What rows must not be: by code what is said of it, and whether a row of `named_rows` is so."""
    found = dict[str, tuple[str, nw.Expr]]()

    def add(code: str, told: str, flag: nw.Expr) -> None:
        known = found.get(code)
        found[code] = (told, flag) if known is None else (known[0], known[1] | flag)

    for own, (name, role) in columns.numbers.items():
        number, kind, what = nw.col(own), schema[name], f"{role} column {name!r}"
        whole, known = nw.col(f"{own}{_WHOLE}"), ~_missing(number)
        add(f"missing-{role}", f"{what} {FAULTS['missing']}", whole.is_null() if is_long(kind) else ~known)
        if role == "propensity":
            chosen = own == PROPENSITY
            low = number <= 0.0 if chosen else number < 0.0
            told = f"{what} {outside('(0' if chosen else '[0')}"
            add("propensity-out-of-range", told, known & (low | (number > 1.0)))
        elif not kind.is_integer():
            add(f"infinite-{role}", f"{what} {FAULTS['infinite']}", _infinite(number))
            large = _finite(number) & (number.abs() >= float(EXACT))
            add(f"rounded-{role}", f"{what} of type {kind} {FAULTS['rounded']}", large)
        if is_long(kind):
            add(f"inexact-{role}", f"{what} {FAULTS['inexact']}", ~whole.is_null() & number.is_null())
    reward = nw.col(REWARD)
    if reward_range is not None:
        lowest, highest = reward_range
        beyond = _finite(reward) & ((reward < lowest) | (reward > highest))
        add("reward-out-of-range", out_of_range(lowest, highest), beyond)
    for place, role in enumerate(columns.further.roles):
        below = nw.col(f"{_FURTHER}{place}")
        if role == DENOMINATOR:
            told = f"denominator {columns.further.names[place]!r} is negative"
            add("bad-denominator", told, ~_missing(below) & (below < 0.0))
    return found | _faults_of_shares(columns)


def _faults_of_shares(columns: Columns) -> dict[str, tuple[str, nw.Expr]]:
    """Every arm's propensities against each other, and against the chosen arm's."""
    shares = {arm: nw.col(f"{_SHARE}{place}") for place, arm in enumerate(columns.every)}
    if not shares:
        return {}
    total, known = reduce(add, shares.values()), ~reduce(or_, map(_missing, shares.values()))
    names = ", ".join(map(repr, columns.every.values()))
    off = known & ((total - 1.0).abs() > SUM_TOLERANCE)
    found = {"propensities-sum": (f"rows of {names} {FAULTS['propensities-sum']}", off)}
    own = nw.col(PROPENSITY)
    if columns.propensity is None:
        code = "chosen-propensity-zero"
        return found | {code: (FAULTS[code], own == 0.0)}
    gaps = [
        (nw.col(ARM) == nw.lit(arm)) & ((share - own).abs() > MATCH_TOLERANCE * share)
        for arm, share in shares.items()
    ]
    code = "propensity-mismatch"
    return found | {code: (FAULTS[code], known & ~_missing(own) & reduce(or_, gaps))}


def _missing(number: nw.Expr) -> nw.Expr:
    """Whether there is no number: null, or NaN, which engines compare in different ways."""
    return number.is_null() | ~(_finite(number) | _infinite(number))


def _finite(number: nw.Expr) -> nw.Expr:
    """Whether a number is finite; DuckDB's isnan believes the statistics of Parquet files, which skip NaN."""
    return number - number == 0.0


def _infinite(number: nw.Expr) -> nw.Expr:
    """Whether a number is infinite, which NaN equals nowhere."""
    return number.abs() == float("inf")


def column_of_fault(code: str) -> str:
    """Column in which the rows of a fault are counted; not every warehouse takes hyphens."""
    return code.replace("-", "_")
