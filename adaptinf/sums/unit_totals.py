"""Sums of products of unit totals, from which clustered standard errors can be computed.

If the prediction m is the same in all rounds, the score of an arm in a round is m + I (y - m) / e, where I
indicates whether the arm was chosen and e is its propensity. A unit with n rounds therefore contributes (Y +
n (m - mean) - m A) / T to the error of the arm's mean, where A and Y are the unit's totals of I / e and I y /
e. For any values of m and the mean, the squares of these contributions are linear combinations of products of
n, A and Y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from adaptinf.sums.cells import Cells
from adaptinf.typing import FloatArray

SAME = 1e-9
"""Propensities that differ by less are treated as equal, because writing and reading a frame rounds them."""
_BY_ARM = ("had", "events", "others")
_FLAGS = ("switched", "moved", "keeping", "sure")


def products(n_arms: int) -> dict[str, tuple[str, ...]]:
    """The names of sums over units, each with the columns of units whose product is summed.

    The columns are ``n``; for each arm k, the totals ``inverse_k`` (A) and ``weighted_k`` (Y), and whether
    the unit had the arm (``had_k``), a nonzero reward from it (``events_k``) and a zero reward from it
    (``others_k``); the unit's mean reward, ``mean``; whether it had several arms, ``switched``; whether the
    propensities of its chosen arms differ, ``moved``; the log probability of all of its choices except the
    least likely one, ``keeping``; and its number of rounds with propensity 1, ``sure``. The centre is
    subtracted from the rewards in Y and `mean`.
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
    """The columns of units whose pairwise products are summed: n, every A and every Y."""
    return ["n", *(f"{name}_{arm}" for name in ("inverse", "weighted") for arm in range(n_arms))]


@dataclass(frozen=True, slots=True, eq=False)
class UnitTotals:
    """Sums over units, keyed by the names in `products`; the cells' centre is subtracted from rewards."""

    values: Mapping[str, float]
    n_arms: int

    @property
    def count(self) -> int:
        """Number of units."""
        return int(self.values["units"])

    @property
    def rounds(self) -> int:
        """Number of rounds of all units."""
        return int(self.values["rounds"])

    @property
    def pairs(self) -> FloatArray:
        """Sums of the pairwise products of n, every A and every Y, shape (1 + 2K, 1 + 2K)."""
        size = 1 + 2 * self.n_arms
        found = np.empty((size, size))
        for first, second in combinations_with_replacement(range(size), 2):
            found[first, second] = found[second, first] = self.values[f"pair_{first}_{second}"]
        return found

    @property
    def means(self) -> FloatArray:
        """Number of units, and sums of the first three powers of their centred mean rewards, shape (4,)."""
        return np.array([self.values["units"], *(self.values[f"mean_{power}"] for power in (1, 2, 3))])

    def by_arm(self, name: str) -> FloatArray:
        """The sums that have one value for each arm, shape (K,)."""
        return np.array([self.values[f"{name}_{arm}"] for arm in range(self.n_arms)])

    @property
    def keeps_arms(self) -> bool:
        """Whether every unit has one arm in all of its rounds."""
        return self.values["switched"] == 0.0


def unit_problem(cells: Cells) -> str | None:
    """The reason why sums by batch rule out clustered standard errors; None if they do not."""
    if np.all(cells.possible):
        return None
    return (
        "an arm could not be chosen in some batches, but with units every arm must be possible in every "
        "row: aggregate separately the batches in which it was possible"
    )


def drawn_before(totals: UnitTotals) -> str | None:
    """A message if each unit's arm seems to have been drawn once and then logged with propensity 1."""
    if not (totals.keeps_arms and totals.rounds > totals.count and totals.values["sure"] > 0.0):
        return None
    return (
        "every unit keeps one arm, with propensity 1 in some rounds: use the propensity of the unit's "
        "single randomisation in all of its rounds"
    )
