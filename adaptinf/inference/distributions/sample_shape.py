"""The shape of a sample, however its values are coded: two values, rare outcomes, and skewness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adaptinf.typing import FloatArray, IntArray

_NO_PULL = 1e-9
_FEW_CELLS, _MANY_CELLS = 16, 256
_BLOCK = 1 << 17
"""Number of values in a block, chosen so that temporary arrays fit into the processor's cache."""


def two_values(values: FloatArray) -> tuple[float, float] | None:
    """The two values that a sample takes, or None if these are not known; values has shape (n,).

    If the sample contains only 0 or only 1, the two values are 0 and 1. The two values are unknown if all
    entries have another value, and do not exist if there are more than two.
    """
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if low == high:
        return (0.0, 1.0) if low in (0.0, 1.0) else None
    return (low, high) if bool(np.all((values == low) | (values == high))) else None


def uncommon_outcomes(cell: IntArray, values: FloatArray, n_cells: int) -> FloatArray:
    """Number of uncommon outcomes in each cell; infinite if no outcome is common.

    Shapes: cell, values (n,); returns (n_cells,).

    An outcome is common if at least half of the two or more values in a cell are equal to it. If rewards take
    two values, the uncommon outcomes are the successes or the failures, whichever are fewer. A common outcome
    is one of the two middle values in sorted order, so nothing else needs to be counted.
    """
    if n_cells > _MANY_CELLS:
        return _uncommon_in_order(cell, values, n_cells)
    found = np.full(n_cells, math.inf)
    for code, own in enumerate(_values_of_cells(cell, values, n_cells)):
        common = common_outcome(own)
        if common is not None:
            found[code] = own.size - np.count_nonzero(own == common)
    return found


def common_outcome(values: FloatArray) -> float | None:
    """The value of at least half of the outcomes, or None; the values, shape (n,), are reordered."""
    if values.size < 2:
        return None
    middle = sorted({values.size // 2, (values.size - 1) // 2})
    values.partition(middle)
    counts = {float(values[place]): np.count_nonzero(values == values[place]) for place in middle}
    value = max(counts, key=lambda one: counts[one])
    return value if 2 * counts[value] >= values.size and counts[value] > 1 else None


def _uncommon_in_order(cell: IntArray, values: FloatArray, n_cells: int) -> FloatArray:
    """`uncommon_outcomes` for many cells at once, by counting runs of equal values in sorted order."""
    order = np.lexsort((values, cell))
    cell, values = cell[order], values[order]
    new = np.ones(len(cell), dtype=bool)
    new[1:] = (cell[1:] != cell[:-1]) | (values[1:] != values[:-1])
    starts = np.flatnonzero(new)
    size, common = np.bincount(cell, minlength=n_cells), np.zeros(n_cells, dtype=np.int64)
    np.maximum.at(common, cell[starts], np.diff(starts, append=len(cell)))
    return np.where((2 * common >= size) & (common > 1), (size - common).astype(np.float64), math.inf)


def _values_of_cells(cell: IntArray, values: FloatArray, n_cells: int) -> Iterator[FloatArray]:
    """Copies of the values, one cell after another; cell and values have shape (n,)."""
    if n_cells <= _FEW_CELLS:
        # For so few cells, repeated passes are fast enough, and sorting all values would take more memory.
        yield from (values[cell == code] for code in range(n_cells))
        return
    yield from (values[rows] for rows in rows_of_cells(cell, n_cells))


def rows_of_cells(cell: IntArray, n_cells: int) -> list[IntArray]:
    """The rows of each cell, in their original order; cell has shape (n,)."""
    small = cell.astype(np.uint16) if n_cells <= np.iinfo(np.uint16).max else cell
    order = np.argsort(small, kind="stable")
    return np.split(order, np.cumsum(np.bincount(cell, minlength=n_cells))[:-1])


@np.errstate(under="ignore")
def squared_skewness(values: FloatArray) -> float:
    """Square of the standardised third central moment; 0 if all values are equal; values has shape (n,)."""
    if values.size == 0:
        return 0.0
    # Differences from one of the values are exactly 0 if all values are equal.
    largest = max(float(values.max()) - values[0], values[0] - float(values.min()))
    if largest == 0.0:
        return 0.0
    second, third, _ = central_moments(values, values[0], largest)
    return third**2 / second**3


def skewness_doubt(squared: float, count: float) -> float:
    """Relative standard error of the third moment of a sample with this squared skewness; at most 1.

    The variance of the third moment of n values is at most 1/n times their sixth moment. Since the sample's
    sixth moment is a very poor estimate if tails are heavy, that of a gamma distribution with skewness g is
    used; in standard units, it is 15 + 32.5 g^2 + 7.5 g^4.
    """
    if not squared > 0.0 or count <= 0.0:
        return 1.0
    return min(1.0, math.sqrt((15.0 / squared + 32.5 + 7.5 * squared) / count))


def combined_skewness(skewness: FloatArray, variance: FloatArray) -> FloatArray:
    """Sum of squares of the contributions of independent parts to the skewness of their sum.

    Shapes: skewness (k, m), the squared skewness of the parts; variance (k, m), up to a factor; returns (k,).
    A part with a share r of the variance contributes r^(3/2) times its skewness.
    """
    total = variance.sum(axis=1, keepdims=True)
    share = np.divide(variance, total, out=np.zeros(variance.shape), where=total > 0.0)
    return np.asarray((skewness * share**3).sum(axis=1), dtype=np.float64)


def central_moments(values: FloatArray, origin: float, scale: float) -> tuple[float, float, float]:
    """Second, third and fourth central moments of (values - origin) / scale, computed without a copy."""
    blocks = [slice(first, first + _BLOCK) for first in range(0, values.size, _BLOCK)]
    moved = [((values[rows] - origin) / scale).sum() for rows in blocks]
    mean, sums = math.fsum(moved) / values.size, np.zeros(3)
    for rows in blocks:
        centred = (values[rows] - origin) / scale - mean
        squares = centred * centred
        sums += squares.sum(), squares @ centred, squares @ squares
    second, third, fourth = (sums / values.size).tolist()
    return second, third, fourth


@dataclass(frozen=True, slots=True, eq=False)
class PartShapes:
    """Errors, skewness and uncommon outcomes of k estimates that are sums of m parts.

    Shapes: error, skewness (k, m), expected, combined, uncommon (k,). `error` and `skewness` are those of the
    parts, computed from the influences of their rounds. The skewness of all rewards implies an expected
    squared skewness of each part; `expected` is the largest of these, and `combined` is the result of
    `combined_skewness`. `uncommon` is the smallest number of uncommon outcomes in a part.
    """

    error: FloatArray
    skewness: FloatArray
    expected: FloatArray
    combined: FloatArray
    uncommon: FloatArray


@np.errstate(under="ignore")
def part_shapes(
    part: IntArray, influence: FloatArray, pull: FloatArray, reward: FloatArray, size: int, skewness: float
) -> PartShapes:
    """Compute `PartShapes` for estimates whose rounds are divided into parts, separately for each estimate.

    Shapes: part, influence, pull (n, k), reward (n,).

    `pull` is the absolute amount that one unit of the round's reward adds to the estimate; it is 0 for rounds
    whose reward is not used. If c is this amount, the expected squared skewness of a part is that of all
    rewards, `skewness`, times (sum c^3)^2 / (sum c^2)^3.
    """
    count = influence.shape[1]
    error, shape = np.zeros((count, size)), np.zeros((count, size))
    expected, variance, uncommon = (
        np.zeros((count, size)),
        np.zeros((count, size)),
        np.full(count, math.inf),
    )
    for j in range(count):
        cell, d, c = part[:, j], influence[:, j], pull[:, j]
        used = c > _NO_PULL * c.max(initial=0.0)
        uncommon[j] = uncommon_outcomes(cell[used], reward[used], size).min()
        weight, here = c[used], cell[used]
        squares, cubes = (np.bincount(here, weights=weight**power, minlength=size) for power in (2, 3))
        spread = np.where(squares > 0.0, squares, math.inf)
        expected[j], variance[j] = skewness * ((cubes / spread) ** 2 / spread), squares
        squares, cubes = (np.bincount(cell, weights=d**power, minlength=size) for power in (2, 3))
        root = np.sqrt(np.where(squares > 0.0, squares, math.inf))
        error[j], shape[j] = np.sqrt(squares), cubes / root / root / root
    combined = combined_skewness(expected, variance)
    return PartShapes(error, shape, expected.max(axis=1), combined, uncommon)
