"""Totals of units from rows in an engine, and their products: errors by unit are polynomials in them.

With one prediction m for all rounds, the score of a round and an arm is m + I (y - m) / e, I whether the arm
was chosen and e its propensity. So what a unit adds to the error of an arm's mean is
(n (m - mean) - m A + Y) / T, with its rounds n and the arm's totals A of I / e and Y of I y / e: the squares
of that are sums of products of n, A and Y, whatever m and the mean turn out to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from operator import mul
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from adaptinf.log.validation.frame_columns import EXACT, inexact_unit
from adaptinf.sums.cells import Cells
from adaptinf.sums.engine.query_columns import ARM, PROPENSITY, REWARD, Columns, label_of, missing, named_rows
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log.validation import Label
    from adaptinf.log.validation.frame_columns import Findings
    from adaptinf.sums.groups import Parts


SAME = 1e-9
"""Propensities closer than this are the same: rounding of a frame that was written and read."""
_BY_ARM = ("had", "events", "others")
_FLAGS = ("switched", "moved", "keeping", "sure")


def products(n_arms: int) -> dict[str, tuple[str, ...]]:
    """Names of sums over units, with the columns of units whose product each is the sum of.

    Columns are ``n``, ``inverse_k`` and ``weighted_k`` of arm k, A and Y; ``had_k``, ``events_k`` and
    ``others_k``, whether the unit had the arm, a reward of it that is not 0, and one that is; ``mean`` of its
    rewards; ``switched``, whether it had several arms; ``moved``, whether the propensities of its chosen arms
    differ; ``keeping``, the log probability of all of its chosen arms but the least likely; ``sure``, its
    rounds with propensity 1. Rewards in Y and `mean` are less the centre.
    """
    found: dict[str, tuple[str, ...]] = {"units": ("one",), "rounds": ("n",)}
    base = vector(n_arms)
    for first, second in combinations_with_replacement(range(len(base)), 2):
        found[f"pair_{first}_{second}"] = (base[first], base[second])
    for arm in range(n_arms):
        found |= {f"{name}_{arm}": (f"{name}_{arm}",) for name in _BY_ARM}
        found[f"squares_{arm}"] = (f"had_{arm}", "n", "n")
        found[f"fourths_{arm}"] = (f"had_{arm}", "n", "n", "n", "n")
    found |= {f"mean_{power}": ("mean",) * power for power in (1, 2, 3)}
    return found | {name: (name,) for name in _FLAGS}


def vector(n_arms: int) -> list[str]:
    """Columns of a unit of which products of two are summed: n, every A, every Y."""
    return ["n", *(f"{name}_{arm}" for name in ("inverse", "weighted") for arm in range(n_arms))]


@dataclass(frozen=True, slots=True, eq=False)
class UnitTotals:
    """Sums over units, by the names of `products`, of rewards less the centre of the cells beside them."""

    values: Mapping[str, float]
    n_arms: int

    @property
    def count(self) -> int:
        """Number of units."""
        return int(self.values["units"])

    @property
    def rounds(self) -> int:
        """Number of their rounds."""
        return int(self.values["rounds"])

    @property
    def pairs(self) -> FloatArray:
        """Sums of products of n, every A and every Y, shape (1 + 2K, 1 + 2K)."""
        size = 1 + 2 * self.n_arms
        found = np.empty((size, size))
        for first, second in combinations_with_replacement(range(size), 2):
            found[first, second] = found[second, first] = self.values[f"pair_{first}_{second}"]
        return found

    @property
    def means(self) -> FloatArray:
        """Number of units, and sums of powers of their mean rewards less the centre, shape (4,)."""
        return np.array([self.values["units"], *(self.values[f"mean_{power}"] for power in (1, 2, 3))])

    def by_arm(self, name: str) -> FloatArray:
        """Sums with one value an arm, shape (K,)."""
        return np.array([self.values[f"{name}_{arm}"] for arm in range(self.n_arms)])

    @property
    def keeps_arms(self) -> bool:
        """Whether every unit has one arm in all of its rounds."""
        return self.values["switched"] == 0.0


def unit_problem(cells: Cells) -> str | None:
    """Why errors by unit cannot be had, as far as sums by batch tell; None where they can."""
    if np.all(cells.possible):
        return None
    return (
        "an arm could not be chosen in some batches: with units every arm must be possible in every row; add "
        "up the batches in which it was by themselves"
    )


def drawn_before(totals: UnitTotals) -> str | None:
    """Why propensities are not those of the draws: arms were drawn once, and 1 is what came after."""
    if not (totals.keeps_arms and totals.rounds > totals.count and totals.values["sure"] > 0.0):
        return None
    return (
        "every unit keeps one arm, with propensity 1 in some rounds: give the propensity of the one draw in "
        "all rounds of the unit"
    )


UNIT = "unit"
_UNNAMED, _INEXACT = "unnamed", "inexact"


def unit_query(
    table: nw.LazyFrame[Any], columns: Columns, arms: Sequence[Label], centre: float
) -> nw.LazyFrame[Any]:
    """Totals of units, one row of them."""
    assert columns.unit is not None
    schema = table.collect_schema()
    unit, kind = label_of(columns.unit, schema), schema[columns.unit]
    exact = not (kind.is_float() or kind.is_decimal())
    inexact = nw.lit(0.0) if exact else _flag(~missing(unit) & (unit.abs() >= float(exact_units(kind))))
    rows = table.select(unit.alias(UNIT), inexact.alias(_INEXACT), *named_rows(columns, schema))
    units = rows.with_columns(**_of_rows(arms, centre)).group_by(UNIT).agg(**_added(len(arms)))
    found = units.with_columns(**_of_units(len(arms)))
    summed = {
        name: reduce(mul, [nw.col(factor) for factor in factors]).sum()
        for name, factors in products(len(arms)).items()
    }
    return found.select(**summed, **{name: nw.col(name).sum() for name in (_UNNAMED, _INEXACT)})


def exact_units(kind: nw.dtypes.DType) -> int:
    """The size up to which a column's floats have every whole number."""
    # Floats of 32 bits have 24 of them for the digits, those of 64 bits have 53.
    return 2**24 if kind == nw.Float32 else EXACT


def _of_rows(arms: Sequence[Label], centre: float) -> dict[str, nw.Expr]:
    """Columns of rows, the sums of which are columns of units."""
    reward, share = nw.col(REWARD), nw.col(PROPENSITY)
    found = {"above": reward - centre, "log": share.log(), "sure": _flag(share >= 1.0 - SAME)}
    for place, arm in enumerate(arms):
        chosen = nw.col(ARM) == nw.lit(arm)
        found[f"inverse_{place}"] = _where(chosen, 1.0 / share)
        found[f"weighted_{place}"] = _where(chosen, (reward - centre) / share)
        found[f"had_{place}"] = _flag(chosen)
        found[f"events_{place}"] = _flag(chosen & (reward != 0.0))
        found[f"others_{place}"] = _flag(chosen & (reward == 0.0))
    return found


def _added(n_arms: int) -> dict[str, nw.Expr]:
    """What is added up within units."""
    names = ["inverse", "weighted", "had", "events", "others"]
    by_arm = [f"{name}_{arm}" for name in names for arm in range(n_arms)]
    share = nw.col(PROPENSITY)
    return {
        "rows": nw.len(),
        **{name: nw.col(name).sum() for name in ("above", "log", "sure", _INEXACT, *by_arm)},
        "least": share.min(),
        "most": share.max(),
    }


def _of_units(n_arms: int) -> dict[str, nw.Expr]:
    """Columns of units; see `products`."""
    n = nw.col("rows").cast(nw.Float64())
    had = {
        f"{name}_{arm}": _flag(nw.col(f"{name}_{arm}") > 0.5)
        for name in ("had", "events", "others")
        for arm in range(n_arms)
    }
    several = reduce(lambda one, other: one + other, [had[f"had_{arm}"] for arm in range(n_arms)])
    return {
        **had,
        "one": nw.lit(1.0),
        "n": n,
        "mean": nw.col("above") / n,
        "switched": _flag(several > 1.5),
        "moved": _flag(nw.col("most") - nw.col("least") > SAME),
        "keeping": nw.col("log") - nw.col("least").log(),
        _UNNAMED: nw.when(nw.col(UNIT).is_null()).then(n).otherwise(nw.lit(0.0)),
    }


def _flag(holds: nw.Expr) -> nw.Expr:
    """1.0 where a condition holds, 0.0 elsewhere."""
    return _where(holds, nw.lit(1.0))


def _where(holds: nw.Expr, value: nw.Expr) -> nw.Expr:
    """A value where a condition holds, 0.0 elsewhere."""
    return nw.when(holds).then(value).otherwise(nw.lit(0.0))


def totals_of(
    frame: pd.DataFrame, unit: str, limit: int, read: tuple[Parts, tuple[Label, ...]], found: Findings
) -> UnitTotals | None:
    """The totals that a query returned; None where rows have no unit, or are others than before.

    `limit` is the size up to which the column of units has every whole number.
    """
    values = {str(name): float(frame[name].iloc[0]) for name in frame.columns}
    unnamed, inexact, rounds = int(values.pop(_UNNAMED)), values.pop(_INEXACT), read[0].n_rounds
    totals = UnitTotals(values, len(read[1]))
    if unnamed:
        found.add("missing-unit", f"{unnamed:,} row{'s have' if unnamed > 1 else ' has'} no unit")
    elif inexact:
        found.add("inexact-unit", f"unit column {unit!r} {inexact_unit(limit)}")
    elif totals.rounds != rounds:
        found.add(
            "changed-table",
            f"the table had {rounds:,} rows when batches were added up and {totals.rounds:,} when units "
            "were: aggregate a copy that does not change",
        )
    elif (problem := drawn_before(totals)) is not None:
        found.add("drawn-before", problem)
    return None if found.problems else totals
