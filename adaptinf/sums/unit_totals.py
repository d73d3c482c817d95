"""Totals of units and their products, of which clustered errors are polynomials.

If all rounds have one prediction m, the score of a round and an arm is m + I (y - m) / e, where I indicates
whether the arm was chosen and e is its propensity. A unit's contribution to the error of an arm's mean is
therefore (n (m - mean) - m A + Y) / T, where n is its number of rounds and the arm's totals are A of I / e
and Y of I y / e; the squares of these contributions are sums of products of n, A and Y, for any values of m
and the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from adaptinf.sums.cells import Cells
from adaptinf.typing import FloatArray

SAME = 1e-9
"""Propensities that differ by less are equal, except for rounding when a frame was written and read."""
_BY_ARM = ("had", "events", "others")
_FLAGS = ("switched", "moved", "keeping", "sure")


def products(n_arms: int) -> dict[str, tuple[str, ...]]:
    """Names of sums over units, with the unit columns whose product is summed.

    Columns are ``n``, ``inverse_k`` and ``weighted_k`` of arm k, A and Y; ``had_k``, ``events_k`` and
    ``others_k``, whether the unit had the arm, a reward of it that is not 0, and one that is 0; ``mean`` of
    its rewards; ``switched``, whether it had several arms; ``moved``, whether the propensities of its chosen
    arms differ; ``keeping``, the log probability of all of its chosen arms except the least likely; ``sure``,
    its rounds with propensity 1. Rewards in Y and `mean` have the centre subtracted.
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
    """Columns of units whose pairwise products are summed: n, every A and every Y."""
    return ["n", *(f"{name}_{arm}" for name in ("inverse", "weighted") for arm in range(n_arms))]


@dataclass(frozen=True, slots=True, eq=False)
class UnitTotals:
    """Sums over units, keyed by the names in `products`, of rewards minus the cells' centre."""

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
        """Number of units, and sums of powers of their mean rewards minus the centre, shape (4,)."""
        return np.array([self.values["units"], *(self.values[f"mean_{power}"] for power in (1, 2, 3))])

    def by_arm(self, name: str) -> FloatArray:
        """Sums with one value per arm, shape (K,)."""
        return np.array([self.values[f"{name}_{arm}"] for arm in range(self.n_arms)])

    @property
    def keeps_arms(self) -> bool:
        """Whether every unit has one arm in all of its rounds."""
        return self.values["switched"] == 0.0


def unit_problem(cells: Cells) -> str | None:
    """Why sums by batch rule out clustered errors; None if they do not."""
    if np.all(cells.possible):
        return None
    return (
        "an arm could not be chosen in some batches, but with units every arm must be possible in every "
        "row: aggregate separately the batches in which it was possible"
    )


def drawn_before(totals: UnitTotals) -> str | None:
    """Why propensities are not those of the draws: arms were drawn once, with 1 logged afterwards."""
    if not (totals.keeps_arms and totals.rounds > totals.count and totals.values["sure"] > 0.0):
        return None
    return (
        "every unit keeps one arm, with propensity 1 in some rounds: use the propensity of the unit's "
        "single randomisation in all of its rounds"
    )
