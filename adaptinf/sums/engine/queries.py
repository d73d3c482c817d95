"""One lazy query that sums a log's rows by batch and arm in the engine that stores them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from operator import add, and_, or_
from typing import Any

import narwhals as nw

from adaptinf.log.validation.frame_columns import (
    EXACT,
    FAULTS,
    MATCH_TOLERANCE,
    SUM_TOLERANCE,
    out_of_range,
    outside,
)
from adaptinf.sums.cells import DEGREES
from adaptinf.sums.covariate_products import DENOMINATOR, further_triples
from adaptinf.sums.engine.engine_tables import is_long
from adaptinf.sums.engine.query_columns import (
    ARM,
    BATCH,
    FURTHER,
    PROPENSITY,
    REWARD,
    SHARE,
    WHOLE,
    Columns,
    Schema,
    finite,
    infinite,
    missing,
    selected,
)


def fine(columns: Columns, reward_range: tuple[float, float] | None) -> nw.Expr:
    """Whether a row has no faults, in as few steps as possible, because this is nearly always so."""
    reward, own = nw.col(REWARD), nw.col(PROPENSITY)
    fine = finite(reward) & (reward.abs() < float(EXACT))
    if reward_range is not None:
        fine = fine & (reward >= reward_range[0]) & (reward <= reward_range[1])
    for place, role in enumerate(columns.further.roles):
        further = nw.col(f"{FURTHER}{place}")
        fine = fine & finite(further) & (further.abs() < float(EXACT))
        fine = fine & (further >= 0.0) if role == DENOMINATOR else fine
    shares = [nw.col(f"{SHARE}{place}") for place in range(len(columns.every))]
    if shares:
        total = sum(shares[1:], shares[0])
        fine = fine & finite(total) & ((total - 1.0).abs() <= SUM_TOLERANCE)
        fine = reduce(and_, [(share >= 0.0) & (share <= 1.0) for share in shares], fine)
    if shares or columns.propensity is not None:
        fine = fine & (own > 0.0)
    if columns.propensity is not None:
        fine = fine & finite(own) & (own <= 1.0)
        for arm, share in zip(columns.every, shares, strict=True):
            near = (share - own).abs() <= MATCH_TOLERANCE * share
            fine = fine & ((nw.col(ARM) != nw.lit(arm)) | near)
    return fine


def fault_query(
    rows: nw.LazyFrame[Any],
    batch: nw.Expr,
    columns: Columns,
    reward_range: tuple[float, float] | None,
) -> nw.LazyFrame[Any]:
    """Numbers of rows with each fault, by batch and arm: where `cell_query` counted faulty rows."""
    read, _ = selected(rows, batch, None, columns)
    faults = faults_of(columns, rows.collect_schema(), reward_range)
    flagged = read.with_columns(
        **{column_of_fault(code): counted(flag) for code, (_, flag) in faults.items()}
    )
    return flagged.group_by(BATCH, ARM).agg(
        *(nw.col(column_of_fault(code)).sum().alias(column_of_fault(code)) for code in faults)
    )


def faults_of(
    columns: Columns, schema: Schema, reward_range: tuple[float, float] | None
) -> dict[str, tuple[str, nw.Expr]]:
    """Conditions that rows must not meet: keyed by code, the message and the test on `named_rows`."""
    found = dict[str, tuple[str, nw.Expr]]()

    def add(code: str, told: str, flag: nw.Expr) -> None:
        known = found.get(code)
        found[code] = (told, flag) if known is None else (known[0], known[1] | flag)

    for own, (name, role) in columns.numbers.items():
        number, kind, what = nw.col(own), schema[name], f"{role} column {name!r}"
        whole, known = nw.col(f"{own}{WHOLE}"), ~missing(number)
        add(f"missing-{role}", f"{what} {FAULTS['missing']}", whole.is_null() if is_long(kind) else ~known)
        if role == "propensity":
            chosen = own == PROPENSITY
            low = number <= 0.0 if chosen else number < 0.0
            told = f"{what} {outside('(0' if chosen else '[0')}"
            add("propensity-out-of-range", told, known & (low | (number > 1.0)))
        elif not kind.is_integer():
            add(f"infinite-{role}", f"{what} {FAULTS['infinite']}", infinite(number))
            large = finite(number) & (number.abs() >= float(EXACT))
            add(f"rounded-{role}", f"{what} of type {kind} {FAULTS['rounded']}", large)
        if is_long(kind):
            add(f"inexact-{role}", f"{what} {FAULTS['inexact']}", ~whole.is_null() & number.is_null())
    reward = nw.col(REWARD)
    if reward_range is not None:
        lowest, highest = reward_range
        beyond = finite(reward) & ((reward < lowest) | (reward > highest))
        add("reward-out-of-range", out_of_range(lowest, highest), beyond)
    for place, role in enumerate(columns.further.roles):
        below = nw.col(f"{FURTHER}{place}")
        if role == DENOMINATOR:
            told = f"denominator {columns.further.names[place]!r} is negative"
            add("bad-denominator", told, ~missing(below) & (below < 0.0))
    return found | _faults_of_shares(columns)


def _faults_of_shares(columns: Columns) -> dict[str, tuple[str, nw.Expr]]:
    """Checks every arm's propensities against each other, and against the chosen arm's."""
    shares = {arm: nw.col(f"{SHARE}{place}") for place, arm in enumerate(columns.every)}
    if not shares:
        return {}
    total, known = reduce(add, shares.values()), ~reduce(or_, map(missing, shares.values()))
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
    return found | {code: (FAULTS[code], known & ~missing(own) & reduce(or_, gaps))}


def counted(flag: nw.Expr) -> nw.Expr:
    """1 if a flag is set, 0 otherwise and if it is missing: floats, which sum faster."""
    return nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def column_of_fault(code: str) -> str:
    """Column that counts the rows with a fault; some warehouses do not accept hyphens."""
    return code.replace("-", "_")


COUNT = "n"
HIGHEST = 3
"""Highest inverse power of propensities used with powers of rewards; the next is used for counts alone."""
LEAST, MOST, FAULTY = "least__reward", "most__reward", "faulty"
_WEIGHT = "__weight"


def cell_query(
    rows: nw.LazyFrame[Any],
    batch: nw.Expr,
    within: nw.Expr | None,
    columns: Columns,
    centres: Sequence[float],
    reward_range: tuple[float, float] | None,
    ends: bool,
) -> nw.LazyFrame[Any]:
    """Lazy sums by batch and arm of rewards and columns minus their centres, and counts of faulty rows.

    `within` contains pieces of batches, by which rows are also grouped; `ends` requests the extremes of
    rewards.
    """
    read, keys = selected(rows, batch, within, columns)
    usable = [REWARD, *(f"{FURTHER}{place}" for place in range(len(columns.further.names)))]
    clean = read.with_columns(
        *(_usable(nw.col(name)).alias(name) for name in usable),
        _inverse(nw.col(PROPENSITY)).alias(_WEIGHT),
        nw.when(fine(columns, reward_range)).then(nw.lit(0.0)).otherwise(nw.lit(1.0)).alias(FAULTY),
    )
    summed = _summands(columns, centres[0]) | _products(columns, centres) | _over_all(len(columns.every))
    wide = clean.with_columns(**summed)
    least = [f"{SHARE}{place}" for place in range(len(columns.every))] or [PROPENSITY]
    with warnings.catch_warnings():
        # Of an eager frame of pandas, to which narwhals adds column by column.
        warnings.filterwarnings("ignore", "DataFrame is highly fragmented")
        return wide.group_by(BATCH, ARM, *keys).agg(
            nw.len().alias(COUNT),
            *(nw.col(name).sum().alias(name) for name in (*summed, FAULTY)),
            *(nw.col(name).min().alias(f"least{name}") for name in least),
            *([nw.col(REWARD).min().alias(LEAST), nw.col(REWARD).max().alias(MOST)] if ends else []),
        )


def _usable(number: nw.Expr) -> Any:
    """A number whose powers can be summed; missing if it is too large, which is a fault."""
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
    found["nonzero"] = counted(nw.col(REWARD) != 0.0)
    return found


def highest_power(columns: Columns) -> int:
    """The highest inverse power of propensities used with rewards."""
    return HIGHEST if columns.propensity is not None or columns.every else 0


def _products(columns: Columns, centres: Sequence[float]) -> dict[str, nw.Expr]:
    """Products of up to three rewards and additional columns over powers of propensities."""
    count = len(columns.further.names)
    names = (REWARD, *(f"{FURTHER}{place}" for place in range(count)))
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
        found[f"positive_{place}"] = counted(nw.col(f"{FURTHER}{place}") > 0.0)
    return found


def _inverse(share: nw.Expr) -> Any:
    """1 / share, missing if the share is: many engines stop at division by 0."""
    return nw.when(share > 0.0).then(1.0 / share)


def _powers(base: nw.Expr) -> list[nw.Expr]:
    """The first powers, by multiplication."""
    found = [base]
    for _ in range(HIGHEST):
        found.append(found[-1] * base)
    return found


def _over_all(n_arms: int) -> dict[str, nw.Expr]:
    """For every arm's propensity, whether chosen or not: 1 / e, e and e (1 - e)."""
    found = {}
    for place in range(n_arms):
        share = nw.col(f"__share_{place}")
        # Of arms that cannot be chosen there is no inverse: batches of them are known by the least share.
        found[f"inverse_{place}"] = _inverse(share).otherwise(nw.lit(0.0))
        found[f"expected_{place}"] = share
        found[f"spread_{place}"] = share * (1.0 - share)
    return found
