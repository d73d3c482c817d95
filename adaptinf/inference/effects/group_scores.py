"""Effects within groups from arrays: group codes, tallies, and adaptively weighted AIPW.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (the weighted scores, here within each group). Satterthwaite (1946), "An approximate distribution
of estimates of variance components".
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

    Shapes: estimate, std_error (G,), df (G,), count, used (G, 2), ess (G,), min_propensity (G,); arm_error,
    skewness, unevenness (G, 2), correlation (G,).

    `count` is the number of rewards of each arm, `used` the number with a weight. With influences d of an
    arm's mean, its error is (sum d^2)^(1/2) and its skewness sum d^3 / (sum d^2)^(3/2); `correlation` is that
    of the two means. The squared skewness of an arm's mean is that of the rewards times `unevenness`, (sum
    g^3)^2 / (sum g^2)^3 over the arm's rounds with g = h/e.
    """

    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray
    count: FloatArray
    used: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    arm_error: FloatArray
    skewness: FloatArray
    unevenness: FloatArray
    correlation: FloatArray


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
    """Sorted distinct labels and their codes; labels of mixed types are sorted as text."""
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
    """Moments of rewards by group and arm, computed relative to one reward of each cell.

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


def arm_skewness(group: IntArray, treated: IntArray, reward: FloatArray, moments: ArmMoments) -> FloatArray:
    """Skewness of each group and arm's mean reward: that of rewards over the square root of their number.

    Shapes: group (T,), treated (T,), reward (T,); returns (G, 2).
    """
    centred = reward - moments.mean[group, treated]
    size = moments.count.size
    squares, cubes = (
        np.bincount(2 * group + treated, weights=centred**power, minlength=size).reshape(-1, 2)
        for power in (2, 3)
    )
    root = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    return np.asarray(cubes / root / root / root, dtype=np.float64)


def group_aipw(
    group: IntArray,
    treated: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    n_groups: int,
    propensities: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> GroupEffects:
    """Adaptively weighted AIPW estimates of the effect within each group of one log.

    Shapes: group (T,), treated (T,), reward, propensity (T,), propensities, weights (T, 2).

    The outcome model is the arm's mean reward over earlier rounds of the group; before the arm's first round
    it is the mean of all earlier rewards of the group, or of all groups before the group's first. The first
    round has no earlier rewards and no weight. Therefore adding a constant to all rewards does not change the
    estimates.

    The variance of the difference is the sum of squared differences of the two arms' influences. Its degrees
    of freedom are those of a sum of squares of unequal variances (Satterthwaite 1946), (sum w)^2 / sum w^2
    over the rounds of an arm with w = h^2 / e^2, minus 1, for the arm with fewer.
    """
    both = (propensity, propensity) if propensities is None else (propensities[:, 0], propensities[:, 1])
    # Differences from the first reward keep the digits of rewards that are far from 0.
    shifted = reward - reward[:1].sum()
    every, fits = group_rows(group, n_groups), []
    starts = [int(rows[0]) if rows.size else 0 for rows in every]
    totals = np.cumsum(shifted[: max(starts)])
    for rows, start in zip(every, starts, strict=True):
        known = totals[start - 1] / start if start else 0.0
        fits.append(_one_group(rows, treated, shifted, both, weights, float(known)))
    counts = np.array([fit[0] for fit in fits])
    estimate, std_error, df, ess, lowest = np.array([fit[1:6] for fit in fits]).T
    shapes = np.array([fit[6] for fit in fits])
    smaller = counts[:, 1].min(axis=1)
    return GroupEffects(
        estimate=np.where(smaller >= 1, estimate, np.nan),
        std_error=np.where((smaller >= 2) & (std_error > 0), std_error, np.nan),
        df=np.maximum(df, 0.0),
        count=counts[:, 0],
        used=counts[:, 1],
        ess=ess,
        min_propensity=lowest,
        arm_error=shapes[:, 0],
        skewness=shapes[:, 1],
        unevenness=shapes[:, 2],
        correlation=shapes[:, 3, 0],
    )


def _one_group(
    rows: IntArray,
    treated: IntArray,
    reward: FloatArray,
    propensities: tuple[FloatArray, FloatArray],
    weights: FloatArray | None,
    known: float,
) -> tuple[list[list[float]], float, float, float, float, float, list[list[float]]]:
    """Counts of rewards and of weighted ones, estimate, standard error, df, effective size, least propensity.

    The last values are the errors, skewness and unevenness of the arms, and twice their correlation. `known`
    is the mean of all rewards before the group's first round.
    """
    if rows.size == 0:
        return [[0.0, 0.0], [0.0, 0.0]], np.nan, np.nan, 0.0, 0.0, np.nan, _no_shape()
    arms = control, treatment = [
        _one_arm(rows, treated == code, reward, propensity, _share(weights, rows, code), known)
        for code, propensity in enumerate(propensities)
    ]
    totals = [float(arm.weights.sum()) for arm in arms]
    means = [
        float(arm.scores.sum()) / total if total > 0.0 else np.nan
        for arm, total in zip(arms, totals, strict=True)
    ]
    error, shape = _errors(control, treatment, means, totals)
    return (
        [[arm.count for arm in arms], [arm.used for arm in arms]],
        means[1] - means[0],
        error,
        min(arm.freedom for arm in arms),
        min(arm.ess for arm in arms),
        min(arm.lowest for arm in arms),
        shape,
    )


def _share(weights: FloatArray | None, rows: IntArray, arm: int) -> FloatArray:
    """Weights for an arm in a group's rounds, 0 in the log's first; weights (T, 2); returns (m,)."""
    share = np.ones(rows.size) if weights is None else weights[rows, arm]
    if rows[0] == 0:
        share[0] = 0.0
    return share


def _no_shape() -> list[list[float]]:
    return [[np.nan, np.nan]] * 4


def _errors(
    control: _ArmScores, treatment: _ArmScores, means: list[float], totals: list[float]
) -> tuple[float, list[list[float]]]:
    """Root of the sum of squared differences between the arms' influences, and the shape of each sum."""
    if min(totals) <= 0.0:
        return np.nan, _no_shape()
    change_squares, product, squares, cubes = 0.0, 0.0, np.zeros(2), np.zeros(2)
    for start in range(0, control.scores.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        parts = [
            (arm.scores[block] - mean * arm.weights[block]) / total
            for arm, mean, total in zip((control, treatment), means, totals, strict=True)
        ]
        change = parts[1] - parts[0]
        change_squares += float(change @ change)
        product += float(parts[0] @ parts[1])
        for arm, part in enumerate(parts):
            square = part * part
            squares[arm] += square.sum()
            cubes[arm] += square @ part
    root = np.sqrt(squares)
    skewness = [_ratio(_ratio(cube, size * size), size) for cube, size in zip(cubes, root, strict=True)]
    correlation = _ratio(product, root[0] * root[1])
    unevenness = [control.unevenness, treatment.unevenness]
    return float(np.sqrt(change_squares)), [root.tolist(), skewness, unevenness, [correlation] * 2]


@dataclass(frozen=True, slots=True)
class _ArmScores:
    """Weight times score and weight, each of shape (m,), and what the table of results needs."""

    scores: FloatArray
    weights: FloatArray
    count: float
    used: float
    freedom: float
    ess: float
    lowest: float
    unevenness: float


def _one_arm(
    rows: IntArray,
    chosen: BoolArray,
    reward: FloatArray,
    propensity: FloatArray,
    weights: FloatArray,
    known: float,
) -> _ArmScores:
    """Weighted AIPW scores of one arm in one group, in blocks that fit into the processor's cache."""
    scores, lead = np.empty(rows.size), _before_first(rows, chosen, reward, known)
    count, total, used, lowest, gains = 0, 0.0, 0, np.inf, np.zeros(4)
    for start in range(0, rows.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        here = rows[block]
        mine, y, e, weight = chosen[here], reward[here], propensity[here], weights[block]
        picked = np.flatnonzero(mine)
        totals = total + np.cumsum(y[picked])
        before = np.cumsum(mine.astype(np.int64)) - mine
        # A round may use only the mean of earlier rewards, so means after 0, 1, 2, ... rewards of the arm are
        # computed first, and each round then takes its own.
        means = np.append(total, totals) / np.maximum(np.arange(count, count + picked.size + 1), 1)
        predicted = means[before]
        without = lead[block]
        predicted[: without.size] = without
        scores[block] = weight * predicted
        gain = weight[picked] / e[picked]
        scores[start + picked] += gain * (y[picked] - predicted[picked])
        count, used = count + picked.size, used + int(np.count_nonzero(gain))
        total = float(totals[-1]) if picked.size else total
        lowest = min(lowest, float(e.min()))
        squared = np.square(gain)
        gains += gain.sum(), squared.sum(), squared @ squared, squared @ gain
    ess, size = _ratio(gains[0] ** 2, gains[1]), _ratio(gains[1] ** 2, gains[2])
    unevenness = _ratio(gains[3] ** 2, gains[1] ** 3)
    return _ArmScores(scores, weights, count, used, size - 1.0, ess, lowest, unevenness)


def _before_first(rows: IntArray, chosen: BoolArray, reward: FloatArray, known: float) -> FloatArray:
    """Predictions up to the arm's first round: the group's mean reward so far; shape (m,) at most."""
    first = rows.size - 1
    for start in range(0, rows.size, _BLOCK):
        mine = chosen[rows[start : start + _BLOCK]]
        if mine.any():
            first = start + int(np.argmax(mine))
            break
    seen = np.cumsum(reward[rows[:first]])
    return np.append(known, seen / np.arange(1, first + 1))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0.0 else 0.0
