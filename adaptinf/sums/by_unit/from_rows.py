"""Totals of units from rows in memory."""

from __future__ import annotations

from functools import reduce

import numpy as np

from adaptinf.sums.by_unit.totals import SAME, UnitTotals, products
from adaptinf.typing import FloatArray, IntArray


def totals_of_rows(
    action: IntArray, reward: FloatArray, propensity: FloatArray, unit: IntArray, n_arms: int, centre: float
) -> UnitTotals:
    """Totals of rounds whose units are numbered without a gap; all (T,)."""
    size = int(unit.max()) + 1
    columns = _of_units(reward - centre, propensity, unit, size)
    weight = 1.0 / propensity

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(unit, weights=values, minlength=size).astype(np.float64)

    for arm in range(n_arms):
        chosen = (action == arm).astype(np.float64)
        columns[f"inverse_{arm}"] = total(chosen * weight)
        columns[f"weighted_{arm}"] = total(chosen * weight * (reward - centre))
        kinds = {"had": chosen, "events": chosen * (reward != 0.0), "others": chosen * (reward == 0.0)}
        for name, rows in kinds.items():
            columns[f"{name}_{arm}"] = (total(rows) > 0.0).astype(np.float64)
    arms = sum(columns[f"had_{arm}"] for arm in range(n_arms))
    columns["switched"] = np.asarray(arms > 1.0, dtype=np.float64)
    found = {
        name: float(reduce(np.multiply, [columns[factor] for factor in factors]).sum())
        for name, factors in products(n_arms).items()
    }
    return UnitTotals(found, n_arms)


def _of_units(above: FloatArray, propensity: FloatArray, unit: IntArray, size: int) -> dict[str, FloatArray]:
    """Columns of units whatever their arms; above, propensity, unit (T,)."""
    n = np.bincount(unit, minlength=size).astype(np.float64)
    least, most = np.full(size, np.inf), np.zeros(size)
    np.minimum.at(least, unit, propensity)
    np.maximum.at(most, unit, propensity)
    return {
        "one": np.ones(size),
        "n": n,
        "mean": np.bincount(unit, weights=above, minlength=size) / n,
        "moved": (most - least > SAME).astype(np.float64),
        "keeping": np.bincount(unit, weights=np.log(propensity), minlength=size) - np.log(least),
        "sure": np.bincount(unit, weights=propensity >= 1.0 - SAME, minlength=size),
    }
