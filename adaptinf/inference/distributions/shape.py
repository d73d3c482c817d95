"""The shape of a sample, whatever the coding of its values: two values, rare outcomes, skewness."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adaptinf.typing import FloatArray, IntArray

_NO_PULL = 1e-9


def two_values(values: FloatArray) -> tuple[float, float] | None:
    """The two values that a sample takes, 0 and 1 where it takes only one of these; values (n,).

    None where it takes more, or one that is neither 0 nor 1: what the other would be is unknown.
    """
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if low == high:
        return (0.0, 1.0) if low in (0.0, 1.0) else None
    return (low, high) if bool(np.all((values == low) | (values == high))) else None


def uncommon_outcomes(cell: IntArray, values: FloatArray, n_cells: int) -> FloatArray:
    """Number of outcomes other than the commonest in each cell; infinite where none is common.

    Shapes: cell, values (n,); returns (n_cells,).

    An outcome is common that makes up at least half of a cell of two or more. With two values the others
    are the successes or the failures, whichever are fewer. In order, at least half of the values lie on one
    of the two in the middle, so that nothing else need be counted.
    """
    counts = np.bincount(cell, minlength=n_cells)
    short = cell.astype(np.uint16) if n_cells <= np.iinfo(np.uint16).max else cell
    order = np.argsort(short, kind="stable")
    found = np.full(n_cells, math.inf)
    for code, rows in enumerate(np.split(order, np.cumsum(counts)[:-1])):
        if rows.size < 2:
            continue
        own = values[rows]
        middle = {own.size // 2, (own.size - 1) // 2}
        parted = np.partition(own, sorted(middle))
        common = max(np.count_nonzero(own == parted[place]) for place in middle)
        if 2 * common >= own.size and common > 1:
            found[code] = own.size - common
    return found


@np.errstate(under="ignore")
def squared_skewness(values: FloatArray) -> float:
    """Square of the standardised third central moment, 0 for values that are all the same; values (n,)."""
    if values.size == 0:
        return 0.0
    # Differences from one of the values: those that are all the same have no spread, whatever their level.
    moved = values - values[0]
    largest = float(np.max(np.abs(moved)))
    if largest == 0.0:
        return 0.0
    centred = moved / largest
    centred -= centred.mean()
    squares = centred * centred
    spread = float(squares.mean())
    return float((squares @ centred / values.size) ** 2 / spread**3)


@dataclass(frozen=True, slots=True, eq=False)
class PartShapes:
    """Shape of k estimates that are sums of m parts.

    Shapes: error, skewness (k, m), expected, uncommon (k,).

    `error` and `skewness` are those of the parts, by the influences of their rounds; `expected` is the
    largest squared skewness of a part that the skewness of all rewards leads to, and `uncommon` the fewest
    outcomes of a part other than its commonest.
    """

    error: FloatArray
    skewness: FloatArray
    expected: FloatArray
    uncommon: FloatArray


@np.errstate(under="ignore")
def part_shapes(
    part: IntArray, influence: FloatArray, pull: FloatArray, reward: FloatArray, size: int, skewness: float
) -> PartShapes:
    """Shapes of estimates whose rounds fall into parts, for each estimate its own.

    Shapes: part, influence, pull (n, k), reward (n,).

    `pull` is what a unit of the round's reward adds to the estimate, in size; rounds without have no reward
    that counts. With it as c a part is expected to have the squared skewness of the rewards times
    (sum c^3)^2 / (sum c^2)^3: `skewness` is that of all of them.
    """
    count = influence.shape[1]
    error, shape = np.zeros((count, size)), np.zeros((count, size))
    expected, uncommon = np.zeros(count), np.full(count, math.inf)
    for j in range(count):
        cell, d, c = part[:, j], influence[:, j], pull[:, j]
        used = c > _NO_PULL * c.max(initial=0.0)
        uncommon[j] = uncommon_outcomes(cell[used], reward[used], size).min()
        weight, here = c[used], cell[used]
        squares, cubes = (np.bincount(here, weights=weight**power, minlength=size) for power in (2, 3))
        spread = np.where(squares > 0.0, squares, math.inf)
        expected[j] = skewness * float(((cubes / spread) ** 2 / spread).max())
        squares, cubes = (np.bincount(cell, weights=d**power, minlength=size) for power in (2, 3))
        root = np.sqrt(np.where(squares > 0.0, squares, math.inf))
        error[j], shape[j] = np.sqrt(squares), cubes / root / root / root
    return PartShapes(error, shape, expected, uncommon)
