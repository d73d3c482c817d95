"""What sums of rewards cannot be: each check adds its problem, with the rows of the table.

References
----------
Bhatia, Davis (2000), "A better bound on the variance".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from adaptinf.log.validation.frame_columns import SUM_TOLERANCE, Findings
from adaptinf.sums.cells import Cells
from adaptinf.typing import BoolArray, FloatArray, IntArray

_SLACK = 1e-9
"""Relative error that sums of floats may have."""
_IMPOSSIBLE = 1e-12
"""P-value, times the number of cells, of shares that propensities cannot have led to."""
_LEAST_VARIANCE = 25.0
_CLEAR = 25.0
"""Squared z from which the mean of a cell is known to differ from 0."""
_UNITS = 20.0
"""Ratio of reward sizes from which they are of two units."""
_FAR = 1e4
"""Standard deviations from the mean within which a centre leaves variances eight digits."""
_SHOWN = 5


def check_rows(
    sums: Mapping[str, FloatArray],
    propensity: FloatArray | None,
    centre: float,
    reward_range: tuple[float, float] | None,
    found: Findings,
) -> None:
    """Checks of one cell at a time; shapes sums, propensity (R,)."""
    n, first, squares, cubes, nonzero = sums.values()
    size = np.maximum(n, 0.0)
    found.add_rows("negative-count", "n must be at least 0", n < 0.0)
    found.add_rows("broken-count", "n must be a whole number of rounds", (n >= 0.0) & (n % 1.0 != 0.0))
    empty = (n == 0.0) & ((first != 0.0) | (squares != 0.0) | (np.nan_to_num(cubes) != 0.0))
    found.add_rows("sums-of-nobody", "n is 0, and the sums are not", empty)
    found.add_rows("negative-squares", "sum_squares must be at least 0", squares < 0.0)
    least = first * first
    found.add_rows(
        "impossible-squares",
        "the squared sum is above n * sum_squares, which no rewards can give: look for a mean in place of a "
        "sum, squares of rounded rewards, or columns of different rounds",
        (n > 0.0) & (squares >= 0.0) & (least > size * squares * (1.0 + _SLACK)),
    )
    with np.errstate(invalid="ignore"):
        found.add_rows(
            "impossible-cubes",
            "sum_cubes is larger than sum_squares ** 1.5, which no rewards can give",
            np.abs(cubes) > np.maximum(squares, 0.0) ** 1.5 * (1.0 + _SLACK),
        )
        counted = (nonzero < 0.0) | (nonzero > n) | (np.isfinite(nonzero) & (nonzero % 1.0 != 0.0))
        few = (centre == 0.0) & (least > nonzero * squares * (1.0 + _SLACK))
        found.add_rows(
            "impossible-nonzero",
            "nonzero, the number of rewards other than 0, must be a whole number from 0 to n, and at least "
            "sum ** 2 / sum_squares",
            counted | few,
        )
    if reward_range is not None:
        low, high = reward_range[0] - centre, reward_range[1] - centre
        slack = _SLACK * np.maximum(size * max(abs(low), abs(high)), 1e-300)
        # Of rewards within [low, high] the sum of (y - low) (high - y) is not negative.
        wide = squares - ((low + high) * first - size * low * high) > slack * max(abs(low), abs(high))
        outside = (first < size * low - slack) | (first > size * high + slack) | wide
        found.add_rows(
            "reward-out-of-range",
            f"rewards within reward_range [{reward_range[0]:g}, {reward_range[1]:g}] cannot have these sums; "
            "correct them or widen the range",
            outside & (n > 0.0),
        )
    if propensity is not None:
        found.add_rows(
            "chosen-propensity-zero", "n is above 0 at propensity 0", (propensity == 0.0) & (n > 0.0)
        )


def check_cells(
    batch: IntArray,
    arm: IntArray,
    sums: Mapping[str, FloatArray],
    propensity: FloatArray | None,
    *,
    arms: Sequence[Any],
    batches: NDArray[Any],
    estimated: bool,
    ranged: bool,
    found: Findings,
) -> None:
    """Checks of rows against each other; shapes batch, arm, sums, propensity (R,), batches (B,)."""
    cell, n_arms = batch * len(arms) + arm, len(arms)
    counts = np.bincount(cell, minlength=len(batches) * n_arms)
    found.add_rows(
        "repeated-cell",
        "a batch and arm have several rows: sum them if they are of different rounds, drop copies if not "
        "(a + b merges Sums of different rounds)",
        counts[cell] > 1,
    )
    if np.any(counts > 1) or found.problems:
        return
    rounds = np.bincount(batch, weights=sums["n"], minlength=len(batches)).astype(np.float64)
    found.add_rows("empty-batch", "a batch has no rounds at all: leave it out", rounds[batch] == 0.0)
    absent = ~counts.reshape(-1, n_arms).astype(bool)
    if propensity is None:
        _check_shared(batch, arms, batches, absent, sums["n"], found)
    else:
        _check_totals(batch, arms, batches, absent, propensity, found)
        if not estimated and not found.problems:
            _check_shares(batch, arm, n_arms, rounds, sums["n"], propensity, found)
    if not ranged:
        _check_units(sums, found)


def _check_shared(
    batch: IntArray,
    arms: Sequence[Any],
    batches: NDArray[Any],
    absent: BoolArray,
    n: FloatArray,
    found: Findings,
) -> None:
    """Without propensities every arm needs rounds in every batch: shares stand in."""
    message = "without propensity= every arm needs rounds in every batch, whose shares stand in for it"
    if np.any(absent):
        found.add(
            "missing-arm", f"{_missing(arms, batches, absent)}: {message}; give propensity=, or wider batches"
        )
    found.add_rows("arm-without-rounds", f"{message}: give it, or wider batches", n == 0.0)


def _check_totals(
    batch: IntArray,
    arms: Sequence[Any],
    batches: NDArray[Any],
    absent: BoolArray,
    propensity: FloatArray,
    found: Findings,
) -> None:
    """Propensities of a batch add up to 1, over rows of all arms but those that could not be chosen."""
    total = np.bincount(batch, weights=propensity, minlength=len(batches))
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    lacking = off & absent.any(axis=1) & (total < 1.0)
    if np.any(lacking):
        found.add(
            "missing-arm",
            f"{_missing(arms, batches, absent & lacking[:, None])}, and the propensities of the others leave "
            f"it some ({1.0 - total[np.argmax(lacking)]:.3g} in the first): give its row, with n = 0 if "
            "nobody got it",
        )
    found.add_rows(
        "propensities-sum",
        f"the propensities of a batch do not sum to 1 (tolerance {SUM_TOLERANCE:g})",
        (off & ~lacking)[batch],
    )


def _missing(arms: Sequence[Any], batches: NDArray[Any], absent: BoolArray) -> str:
    """Which batches lack which arms; absent (B, K)."""
    pairs = [f"batch {batches[b]} has no row of arm {arms[k]!r}" for b, k in np.argwhere(absent)[:_SHOWN]]
    more = int(absent.sum()) - len(pairs)
    return "; ".join(pairs) + (f" and {more} more" if more else "")


def _check_shares(
    batch: IntArray,
    arm: IntArray,
    n_arms: int,
    rounds: FloatArray,
    n: FloatArray,
    propensity: FloatArray,
    found: Findings,
) -> None:
    """Counts that the propensities cannot have led to, by cell and by arm; shapes of rows (R,)."""
    expected = rounds[batch] * propensity
    variance = expected * (1.0 - propensity)
    tests = len(n) + n_arms
    cells = improbable(n - expected, variance, tests)
    gaps, spreads = (
        np.bincount(arm, weights=each, minlength=n_arms).astype(np.float64)
        for each in (n - expected, variance)
    )
    wrong = cells | improbable(gaps, spreads, tests)[arm]
    found.add_rows(
        "shares-against-propensities",
        f"arms have shares that their propensities cannot have led to by chance (p < {_IMPOSSIBLE:g}): look "
        "for propensities of another period, rounds that were lost, or averages over batches "
        "(propensity_status='estimated' if they are estimates)",
        wrong,
    )


def check_centre(centre: float, powers: FloatArray, least: float, most: float, found: Findings) -> None:
    """Refuse a centre so far from rewards that the squares of what is left keep no digits.

    `powers` (3,) are the number of rewards and sums of them and of their squares, less the centre; `least`
    and `most` are the rewards' ends. Rewards that are all alike lose nothing.
    """
    count, first, squares = powers
    away = first / count
    if most > least and away * away > _FAR**2 * (squares / count - away * away):
        found.add(
            "far-centre",
            f"centre={centre:g} is so far from the rewards, from {least:g} to {most:g}, that squares about "
            "it keep too few digits: leave it out, or give a value among them",
        )


def check_cell_shares(cells: Cells, found: Findings) -> None:
    """Counts that the propensities cannot have led to, by cell and by arm."""
    if not cells.knows_every:
        return
    gap, variance = cells.pulls - cells.expected, cells.spread
    tests = gap.size + gap.shape[1]
    by_arm = improbable(gap.sum(axis=0), variance.sum(axis=0), tests)
    if np.any(improbable(gap.ravel(), variance.ravel(), tests)) or np.any(by_arm):
        found.add(
            "shares-against-propensities",
            "arms were chosen by shares that their propensities cannot have led to by chance: look for rows "
            "that were lost, or propensities of another period",
        )


def improbable(gap: FloatArray, variance: FloatArray, tests: int) -> BoolArray:
    """Whether sums of choices less their propensities are beyond chance; gap, variance (n,)."""
    usable = variance >= _LEAST_VARIANCE
    z = np.abs(gap) / np.sqrt(np.where(usable, variance, 1.0))
    return np.asarray(usable & (2.0 * special.ndtr(-z) * tests < _IMPOSSIBLE))


def _check_units(sums: Mapping[str, FloatArray], found: Findings) -> None:
    """Rewards of one unit: sum_squares / sum, the size of rewards other than 0, is of one order; (R,)."""
    first, squares = sums["sum"], sums["sum_squares"]
    clear = (squares > 0.0) & (first * first >= _CLEAR * squares)
    if np.count_nonzero(clear) < 2:
        return
    size = np.where(clear, squares / np.where(clear, np.abs(first), 1.0), np.nan)
    usual = math.exp(float(np.nanmedian(np.log(np.where(clear, size, np.nan)))))
    # Where two units share the rows evenly, the median lies between them.
    ratio = np.where(clear, np.maximum(size / usual, usual / np.where(clear, size, 1.0)), 1.0)
    spread = float(np.nanmax(size) / np.nanmin(size))
    if spread < _UNITS:
        return
    wrong = ratio >= math.sqrt(_UNITS)
    found.add_rows(
        "mixed-units",
        f"rewards seem to be of several units: their usual size, sum_squares / sum, is {usual:.3g} in the "
        f"table and {spread:.3g} times as large at the most as at the least (0/1 beside 0/100, or cents "
        "beside a currency); use one unit, or give reward_range= if this is right",
        wrong,
    )
