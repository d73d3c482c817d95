"""Totals by unit, computed by an engine: the query, and a check of its result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Any

import narwhals as nw

from adaptinf.log.validation.frame_columns import EXACT, inexact_unit
from adaptinf.sums.engine.queries import LOGS, SURE
from adaptinf.sums.engine.query_columns import ARM, PROPENSITY, REWARD, Columns, label_of, missing, named_rows
from adaptinf.sums.unit_totals import SAME, UnitTotals, drawn_before, products

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log.validation import Label
    from adaptinf.log.validation.frame_columns import Findings
    from adaptinf.sums.groups import Parts

UNIT = "unit"
_UNNAMED, _INEXACT = "unnamed", "inexact"
_LEAST = "least_log"
_OF_CHOSEN = ("keeping", "sure")
"""Totals that are based on the query by batch and arm, because a logarithm for every row is slow."""


def unit_query(
    table: nw.LazyFrame[Any], columns: Columns, arms: Sequence[Label], centre: float
) -> nw.LazyFrame[Any]:
    """A query that returns the totals over all units in one row."""
    assert columns.unit is not None
    schema = table.collect_schema()
    unit, kind = label_of(columns.unit, schema), schema[columns.unit]
    rows = table.select(unit.alias(UNIT), *named_rows(columns, schema))
    units = rows.with_columns(**_of_rows(arms, centre)).group_by(UNIT).agg(**_added(len(arms)))
    found = units.with_columns(**_of_units(len(arms)), **{_INEXACT: _inexact(kind)})
    summed = {
        name: reduce(mul, [nw.col(factor) for factor in factors]).sum()
        for name, factors in products(len(arms)).items()
        if name not in _OF_CHOSEN
    }
    return found.select(**summed, **{name: nw.col(name).sum() for name in (_LEAST, _UNNAMED, _INEXACT)})


def exact_units(kind: nw.dtypes.DType) -> int:
    """The largest absolute value up to which floats of a column's type represent every integer."""
    # Of their 32 bits, single floats use 24 for the digits; doubles use 53.
    return 2**24 if kind == nw.Float32 else EXACT


def _inexact(kind: nw.dtypes.DType) -> nw.Expr:
    """1.0 if a unit's number may have been rounded because of the column's type."""
    if not (kind.is_float() or kind.is_decimal()):
        return nw.lit(0.0)
    unit = nw.col(UNIT)
    return _flag(~missing(unit) & (unit.abs() >= float(exact_units(kind))))


def _of_rows(arms: Sequence[Label], centre: float) -> dict[str, nw.Expr]:
    """Columns computed for each row, whose sums within units give the columns of units."""
    reward, share = nw.col(REWARD), nw.col(PROPENSITY)
    found = {"above": reward - centre}
    for place, arm in enumerate(arms):
        chosen = nw.col(ARM) == nw.lit(arm)
        found[f"inverse_{place}"] = _where(chosen, 1.0 / share)
        found[f"weighted_{place}"] = _where(chosen, (reward - centre) / share)
        found[f"had_{place}"] = _flag(chosen)
        found[f"events_{place}"] = _flag(chosen & (reward != 0.0))
    return found


def _added(n_arms: int) -> dict[str, nw.Expr]:
    """The quantities that are summed over the rows of each unit."""
    names = ["inverse", "weighted", "had", "events"]
    by_arm = [f"{name}_{arm}" for name in names for arm in range(n_arms)]
    share = nw.col(PROPENSITY)
    return {
        "rows": nw.len(),
        **{name: nw.col(name).sum() for name in ("above", *by_arm)},
        "least": share.min(),
        "most": share.max(),
    }


def _of_units(n_arms: int) -> dict[str, nw.Expr]:
    """The columns with one value per unit; see `products`."""
    n = nw.col("rows").cast(nw.Float64())
    had = dict[str, nw.Expr]()
    for arm in range(n_arms):
        rounds, events = nw.col(f"had_{arm}"), nw.col(f"events_{arm}")
        counts = {"had": rounds, "events": events, "others": rounds - events}
        had |= {f"{name}_{arm}": _flag(count > 0.5) for name, count in counts.items()}
    several = reduce(lambda one, other: one + other, [had[f"had_{arm}"] for arm in range(n_arms)])
    return {
        **had,
        "one": nw.lit(1.0),
        "n": n,
        "mean": nw.col("above") / n,
        "switched": _flag(several > 1.5),
        "moved": _flag(nw.col("most") - nw.col("least") > SAME),
        _LEAST: nw.col("least").log(),
        _UNNAMED: nw.when(nw.col(UNIT).is_null()).then(n).otherwise(nw.lit(0.0)),
    }


def _flag(holds: nw.Expr) -> nw.Expr:
    """1.0 if a condition holds, otherwise 0.0."""
    return _where(holds, nw.lit(1.0))


def _where(holds: nw.Expr, value: nw.Expr) -> nw.Expr:
    """A value if a condition holds, otherwise 0.0."""
    return nw.when(holds).then(value).otherwise(nw.lit(0.0))


def totals_of(
    frames: tuple[pd.DataFrame, pd.DataFrame],
    unit: str,
    limit: int,
    read: tuple[Parts, tuple[Label, ...]],
    found: Findings,
) -> UnitTotals | None:
    """The totals, from the queries by batch and by unit; None if a row has no unit, or if rows have changed.

    `limit` is the largest absolute value up to which the column of units represents every integer.
    """
    cells, frame = frames
    values = {str(name): float(frame[name].iloc[0]) for name in frame.columns}
    unnamed, inexact, rounds = int(values.pop(_UNNAMED)), values.pop(_INEXACT), read[0].n_rounds
    values |= {"keeping": float(cells[LOGS].sum()) - values.pop(_LEAST), "sure": float(cells[SURE].sum())}
    totals = UnitTotals(values, len(read[1]))
    if unnamed:
        found.add("missing-unit", f"{unnamed:,} row{'s have' if unnamed > 1 else ' has'} no unit")
    elif inexact:
        found.add("inexact-unit", f"unit column {unit!r} {inexact_unit(limit)}")
    elif totals.rounds != rounds:
        found.add(
            "changed-table",
            f"the table had {rounds:,} rows when batches were summed, but {totals.rounds:,} when units were "
            f"summed: aggregate a copy that does not change",
        )
    elif (problem := drawn_before(totals)) is not None:
        found.add("drawn-before", problem)
    return None if found.problems else totals
