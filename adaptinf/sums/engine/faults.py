"""Rows that must not be summed: whether there are any, and how many of each fault, by the checks of a log."""

from __future__ import annotations

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
from adaptinf.sums.engine.sources import is_long
from adaptinf.sums.further_products import DENOMINATOR


def fine(columns: Columns, reward_range: tuple[float, float] | None) -> nw.Expr:
    """Whether a row has none of the faults, in as few steps as it takes: it is nearly always so."""
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
    """What rows must not be: by code what is said of it, and whether a row of `named_rows` is so."""
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
    """Every arm's propensities against each other, and against the chosen arm's."""
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
    """1 where a flag is set, 0 elsewhere and where it is missing: floats, whose sums are the quicker."""
    return nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def column_of_fault(code: str) -> str:
    """Column in which the rows of a fault are counted; not every warehouse takes hyphens."""
    return code.replace("-", "_")
