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

__all__ = ["ArmMoments", "GroupEffects", "arm_moments", "group_aipw", "group_codes", "group_rows"]

_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """Counts, means and unbiased variances of rewards, by group and arm.

    Attributes
    ----------
    count, mean, variance : ndarray, shape (G, 2)
        Control first, treatment second. A mean without rewards and a variance with fewer than two are 0.
    """

    count: FloatArray
    mean: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """Weighted AIPW estimates of the effect within groups.

    Attributes
    ----------
    estimate, std_error : ndarray, shape (G,)
        NaN where an arm has no rewards, and the standard error where one has fewer than two or none vary.
    df : ndarray, shape (G,)
        Rewards of the smaller arm minus 1.
    count : ndarray, shape (G, 2)
        Rewards of control and treatment.
    ess : ndarray, shape (G,)
        Effective sample size of the smaller arm.
    min_propensity : ndarray, shape (G,)
        Smallest propensity divided by; NaN without rounds.
    """

    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray
    count: FloatArray
    ess: FloatArray
    min_propensity: FloatArray


def group_codes(columns: Sequence[NDArray[Any]]) -> tuple[IntArray, list[tuple[Any, ...]]]:
    """Codes of the combinations of labels that occur.

    Parameters
    ----------
    columns : sequence of ndarray, each of shape (T,)
        Labels.

    Returns
    -------
    codes : ndarray of int64, shape (T,)
        Positions in `labels`.
    labels : list of tuple
        Combinations in sorted order, as plain Python values.

    Examples
    --------
    >>> group_codes([np.array([2, 1, 2]), np.array(["b", "a", "b"])])
    (array([1, 0, 1]), [(1, 'a'), (2, 'b')])
    """
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
    """Rows of each group, in their order.

    Parameters
    ----------
    group : ndarray of int64, shape (T,)
        Group codes.
    n_groups : int
        Number of groups.

    Returns
    -------
    list of ndarray of int64
        One a group.
    """
    small = group.astype(np.uint16) if n_groups <= np.iinfo(np.uint16).max else group
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=n_groups))
    return np.split(order, ends[:-1])


def arm_moments(group: IntArray, treated: IntArray, reward: FloatArray, n_groups: int) -> ArmMoments:
    """Moments of rewards by group and arm, computed about a reward of each cell.

    Parameters
    ----------
    group : ndarray of int64, shape (T,)
        Group codes.
    treated : ndarray of int64, shape (T,)
        0 for control and 1 for treatment.
    reward : ndarray, shape (T,)
        Rewards.
    n_groups : int
        Number of groups G.

    Returns
    -------
    ArmMoments
        The variance of a cell whose rewards are all equal is exactly 0.

    Examples
    --------
    >>> moments = arm_moments(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([0.5, 1.0, 3.0]), 1)
    >>> moments.mean, moments.variance
    (array([[0.5, 2. ]]), array([[0., 2.]]))
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

    Parameters
    ----------
    group : ndarray of int64, shape (T,)
        Group codes, rounds in their order.
    treated : ndarray of int64, shape (T,)
        1 where the treatment was chosen, 0 where the control was, -1 where another arm was.
    reward, propensity : ndarray, shape (T,)
        Rewards, and propensities of the chosen arms.
    n_groups : int
        Number of groups G.
    propensities : ndarray, shape (T, 2), optional
        Positive propensities of control and treatment: the scores are weighted by their square roots.
        Without them every score has the same weight.

    Returns
    -------
    GroupEffects

    Notes
    -----
    The outcome model is the arm's mean reward over earlier rounds of the group. Each arm has its own
    weights; the variance of the difference is the sum of squared differences of the two arms' influences.
    The numbers are those of `scores`, `weights` and `estimates`, in one pass that does not leave the cache.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> treated = rng.integers(0, 2, 400)
    >>> half = np.full((400, 2), 0.5)
    >>> result = group_aipw(np.zeros(400, int), treated, 1.0 * treated, half[:, 0], 1, half)
    >>> bool(abs(result.estimate[0] - 1.0) < 0.05)
    True
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
