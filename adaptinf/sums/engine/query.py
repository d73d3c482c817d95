"""One lazy query that adds up a log's rows by batch and arm in the engine that holds them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import narwhals as nw

from adaptinf.log.validation.frame_columns import EXACT
from adaptinf.sums.cells import DEGREES
from adaptinf.sums.engine.faults import counted, fine
from adaptinf.sums.engine.query_columns import (
    ARM,
    BATCH,
    FURTHER,
    PROPENSITY,
    REWARD,
    SHARE,
    Columns,
    selected,
)
from adaptinf.sums.further_products import further_triples

COUNT = "n"
HIGHEST = 3
"""Inverse powers of propensities whose sums go with powers of rewards; of the next the counts alone do."""
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
    """Sums by batch and arm of rewards and columns less their centres, and counts of faulty rows, lazily.

    `within` are pieces of batches, by which rows are told apart too; `ends` asks for the ends of rewards.
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
    found["nonzero"] = counted(nw.col(REWARD) != 0.0)
    return found


def highest_power(columns: Columns) -> int:
    """The highest inverse power of propensities whose sums go with rewards."""
    return HIGHEST if columns.propensity is not None or columns.every else 0


def _products(columns: Columns, centres: Sequence[float]) -> dict[str, nw.Expr]:
    """Products of up to three of rewards and further columns over powers of propensities."""
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
    """1 / share, missing where that is none: many engines stop at a division by 0."""
    return nw.when(share > 0.0).then(1.0 / share)


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
