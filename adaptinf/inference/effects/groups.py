"""Effects within groups from arrays: group codes, tallies, and adaptively weighted AIPW.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (the weighted scores, here within each group).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.typing import BoolArray, FloatArray, IntArray

_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """Counts, means and unbiased variances of rewards, by group and arm; count, mean, variance (G, 2)."""

    count: FloatArray
    mean: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """Weighted AIPW estimates of the effect within groups.

    Shapes: estimate, std_error (G,), df (G,), count (G, 2), ess (G,), min_propensity (G,).
    """

    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray
    count: FloatArray
    ess: FloatArray
    min_propensity: FloatArray


def group_codes(columns: Sequence[NDArray[Any]]) -> tuple[IntArray, list[tuple[Any, ...]]]:
    """Codes of the combinations of labels that occur; columns (T,); returns codes (T,)."""
    levels, parts = zip(*(_levels(column) for column in columns), strict=True)
    sizes = tuple(len(level) for level in levels)
    combined = np.ravel_multi_index(parts, sizes)
    present, codes = np.unique(combined, return_inverse=True)
    positions = np.unravel_index(present, sizes)
    chosen = [[level[i] for i in position] for level, position in zip(levels, positions, strict=True)]
    return np.asarray(codes, dtype=np.int64), list(zip(*chosen, strict=True))


def _levels(column: NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Sorted distinct labels and their codes; labels of several types are sorted as text."""
    try:
        values, codes = np.unique(column, return_inverse=True)
        return values.tolist(), codes.astype(np.int64)
    except TypeError:
        labels = sorted(set(column.tolist()), key=str)
        place = {label: code for code, label in enumerate(labels)}
        return labels, np.array([place[label] for label in column.tolist()], dtype=np.int64)


def group_rows(group: IntArray, n_groups: int) -> list[IntArray]:
    """Rows of each group, in their order; group (T,)."""
    small = group.astype(np.uint16) if n_groups <= np.iinfo(np.uint16).max else group
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=n_groups))
    return np.split(order, ends[:-1])


def arm_moments(group: IntArray, treated: IntArray, reward: FloatArray, n_groups: int) -> ArmMoments:
    """Moments of rewards by group and arm, computed about a reward of each cell.

    Shapes: group (T,), treated (T,), reward (T,).
    """
    cell = 2 * group + treated
    size = 2 * n_groups
    origin = np.zeros(size)
    origin[cell] = reward
    shifted = reward - origin[cell]
    count = np.bincount(cell, minlength=size).astype(np.float64)
    mean = np.bincount(cell, weights=shifted, minlength=size) / np.maximum(count, 1.0)
    squares = np.bincount(cell, weights=np.square(shifted - mean[cell]), minlength=size)
    parts = count, origin + mean, squares / np.maximum(count - 1.0, 1.0)
    return ArmMoments(*(part.reshape(n_groups, 2) for part in parts))


def group_aipw(
    group: IntArray,
    treated: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    n_groups: int,
    propensities: FloatArray | None = None,
) -> GroupEffects:
    """Adaptively weighted AIPW estimates of the effect within each group of one log.

    Shapes: group (T,), treated (T,), reward, propensity (T,), propensities (T, 2).

    The outcome model is the arm's mean reward over earlier rounds of the group. Each arm has its own
    weights; the variance of the difference is the sum of squared differences of the two arms' influences.
    The numbers are those of `scores`, `weights` and `estimates`, in one pass that does not leave the cache.
    """
    both = (propensity, propensity) if propensities is None else (propensities[:, 0], propensities[:, 1])
    fits = [
        _one_group(rows, treated, reward, both, weighted=propensities is not None)
        for rows in group_rows(group, n_groups)
    ]
    estimate, std_error, ess, lowest = np.array([fit[1:] for fit in fits]).T
    count = np.array([fit[0] for fit in fits])
    smaller = count.min(axis=1)
    return GroupEffects(
        estimate=np.where(smaller >= 1, estimate, np.nan),
        std_error=np.where((smaller >= 2) & (std_error > 0), std_error, np.nan),
        df=np.maximum(smaller - 1.0, 0.0),
        count=count,
        ess=ess,
        min_propensity=lowest,
    )


def _one_group(
    rows: IntArray,
    treated: IntArray,
    reward: FloatArray,
    propensities: tuple[FloatArray, FloatArray],
    *,
    weighted: bool,
) -> tuple[list[float], float, float, float, float]:
    """Counts of the two arms, estimate, standard error, effective size and smallest propensity."""
    if rows.size == 0:
        return [0.0, 0.0], np.nan, np.nan, 0.0, np.nan
    arms = control, treatment = [
        _one_arm(rows, treated == code, reward, propensity, weighted=weighted)
        for code, propensity in enumerate(propensities)
    ]
    mean0, mean1 = (float(arm.scores.sum() / arm.weights.sum()) for arm in arms)
    return (
        [arm.count for arm in arms],
        mean1 - mean0,
        _error_of_difference(control, treatment, mean0, mean1),
        min(arm.ess for arm in arms),
        min(arm.lowest for arm in arms),
    )


def _error_of_difference(control: _ArmScores, treatment: _ArmScores, mean0: float, mean1: float) -> float:
    """Root of the sum of squared differences of the two arms' influences."""
    total0, total1 = control.weights.sum(), treatment.weights.sum()
    squares = 0.0
    for start in range(0, control.scores.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        change = (treatment.scores[block] - mean1 * treatment.weights[block]) / total1
        change -= (control.scores[block] - mean0 * control.weights[block]) / total0
        squares += change @ change
    return float(np.sqrt(squares))


@dataclass(frozen=True, slots=True)
class _ArmScores:
    """Weight times score and weight, each of shape (m,), and what the table of results needs."""

    scores: FloatArray
    weights: FloatArray
    count: float
    ess: float
    lowest: float


def _one_arm(
    rows: IntArray, chosen: BoolArray, reward: FloatArray, propensity: FloatArray, *, weighted: bool
) -> _ArmScores:
    """Weighted AIPW scores of one arm in one group, in blocks that stay in the processor's cache."""
    scores, weights = np.empty(rows.size), np.ones(rows.size)
    count, total, gain_sum, gain_squares, lowest = 0, 0.0, 0.0, 0.0, np.inf
    for start in range(0, rows.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        here = rows[block]
        mine, y, e = chosen[here], reward[here], propensity[here]
        weight = np.sqrt(e, out=weights[block]) if weighted else weights[block]
        picked = np.flatnonzero(mine)
        totals = total + np.cumsum(y[picked])
        before = np.cumsum(mine.astype(np.int64)) - mine
        # Means after 0, 1, 2, ... further rewards of this arm, then the one that each round could know.
        means = np.append(total, totals) / np.maximum(np.arange(count, count + picked.size + 1), 1)
        gain = weight[picked] / e[picked]
        scores[block] = weight * means[before]
        scores[start + picked] += gain * (y[picked] - means[:-1])
        count += picked.size
        total = float(totals[-1]) if picked.size else total
        gain_sum, gain_squares = gain_sum + float(gain.sum()), gain_squares + float(gain @ gain)
        lowest = min(lowest, float(e.min()))
    return _ArmScores(scores, weights, count, gain_sum**2 / gain_squares if count else 0.0, lowest)
