"""Rounded propensities in an engine: rounding is recognised from their digits, and rows are renormalised."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import narwhals as nw

from adaptinf.log.validation.frame_columns import MATCH_TOLERANCE, SUM_TOLERANCE, Findings
from adaptinf.log.validation.propensity_rounding import (
    MOST_DECIMALS,
    ROUND_HINT,
    Rounding,
    no_flag,
    slack_of,
)
from adaptinf.sums.engine.engine_tables import as_number, collected
from adaptinf.sums.engine.query_columns import Columns, label_of


def settled_shares(
    rows: nw.LazyFrame[Any], columns: Columns, asked: object, found: Findings
) -> nw.LazyFrame[Any]:
    """Lazy rows; on request, propensities are renormalised if rounding explains why they do not sum to 1."""
    if not isinstance(asked, bool):
        found.add(*no_flag(asked))
        return rows
    rounding = _rounding(rows, columns) if asked and columns.every else None
    if rounding is None:
        return rows
    schema = rows.collect_schema()
    shares = {arm: as_number(name, schema) for arm, name in columns.every.items()}
    total = reduce(add, shares.values())
    miss = (total - 1.0).abs()
    rounded = (miss > SUM_TOLERANCE) & (miss <= rounding.most)
    new = {
        columns.every[arm]: nw.when(rounded).then(share / total).otherwise(share)
        for arm, share in shares.items()
    }
    if columns.propensity is not None:
        own, label = as_number(columns.propensity, schema), label_of(columns.action, schema)
        changed: Any = own
        for arm, share in shares.items():
            same = rounded & (label == nw.lit(arm)) & ((share - own).abs() <= MATCH_TOLERANCE * share)
            changed = nw.when(same).then(own / total).otherwise(changed)
        new[columns.propensity] = changed
    return rows.with_columns(**new)


def told_rounding(rows: nw.LazyFrame[Any], columns: Columns, asked: bool) -> str:
    """The range of the rows' sums of propensities, with advice if rounding explains why they are not 1."""
    schema = rows.collect_schema()
    total = reduce(add, [as_number(name, schema) for name in columns.every.values()])
    off = nw.when((total - 1.0).abs() > SUM_TOLERANCE).then(total)
    ends = collected(
        rows.select(off.alias("total")).select(least=nw.col("total").min(), most=nw.col("total").max())
    )
    least, most = float(ends["least"].iloc[0]), float(ends["most"].iloc[0])
    told = f" but to {least:.7g}" + (f" to {most:.7g}" if most > least else "")
    rounding = None if asked else _rounding(rows, columns)
    if rounding is None or max(abs(least - 1.0), abs(most - 1.0)) > rounding.most:
        return told
    return f"{told}; if they were rounded to {rounding}, {ROUND_HINT};"


def _rounding(rows: nw.LazyFrame[Any], columns: Columns) -> Rounding | None:
    """The rounding that the digits of all propensities indicate; None if they were not rounded."""
    schema = rows.collect_schema()
    shares = [as_number(name, schema) for name in columns.every.values()]
    far = {
        f"digits_{decimals}_{place}": (share - (share * 10.0**decimals).round() / 10.0**decimals).abs()
        for decimals in range(1, MOST_DECIMALS + 1)
        for place, share in enumerate(shares)
    }
    ends = collected(rows.select(**far).select(**{name: nw.col(name).max() for name in far})).iloc[0]
    if ends.isna().any():  # A column without values shows no digits.
        return None
    for decimals in range(1, MOST_DECIMALS + 1):
        most = max(float(ends[f"digits_{decimals}_{place}"]) for place in range(len(shares)))
        if most <= slack_of(decimals):
            return Rounding(decimals, len(shares))
    return None
