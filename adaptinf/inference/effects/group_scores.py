"""Effects within groups, from arrays: codes of groups, moments of rewards, and adaptively weighted AIPW.

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

from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """Counts, means and unbiased variances of rewards by group and arm; all shapes (G, 2)."""

    count: FloatArray
    mean: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """Weighted AIPW estimates of the effect within groups.

    Shapes: estimate, std_error (G,), df (G,), count, used (G, 2), ess (G,), min_propensity (G,); arm_error,
    skewness, unevenness (G, 2), correlation (G,).

    `count` is the number of rewards of each arm, and `used` the number of those with a weight. If d are the
    influences of an arm's mean, its error is (sum d^2)^(1/2), and its skewness is sum d^3 / (sum d^2)^(3/2).
    `correlation` is the correlation between the two means. The squared skewness of an arm's mean is the
    squared skewness of the rewards times `unevenness`, which is (sum g^3)^2 / (sum g^2)^3 over the arm's
    rounds, where g = h/e.
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
    """Codes, shape (T,), of the combinations of labels that occur, and the combinations; columns (T,)."""
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


def arm_moments(group: IntArray, treated: IntArray, reward: FloatArray, n_groups: int) -> ArmMoments:
    """Moments of rewards by group and arm, computed relative to one of the rewards in each cell.

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
    """Skewness of the mean reward by group and arm: that of rewards over the square root of their number.

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

    Shapes: group (T,), treated (T,), reward, propensity (T,), propensities (T, 2), weights (T, 2), or (T, 1)
    if both arms share them.

    The outcome model is the arm's mean reward over earlier rounds of the group; before the arm's first round,
    it is the mean of all earlier rewards of the group, or of all groups before the group's first. The first
    round, before which there are no rewards, has no weight. Therefore, adding a constant to all rewards does
    not change the estimates.

    The variance of the difference is the sum of squared differences of the two arms' influences. Its degrees
    of freedom are (sum w)^2 / sum w^2 - 1, where w = h^2 / e^2 over the rounds of an arm, as for a sum of
    squares with unequal variances (Satterthwaite 1946). The smaller of the two arms' values is used.
    """
    from adaptinf.inference.effects import group_kernel as kernel  # Numba loads when it is needed

    # Differences from the first reward keep the digits of rewards that are far from 0.
    shifted, missing = reward - reward[:1].sum(), np.zeros((0, 2))
    rounds = kernel.GroupRounds(
        np.ascontiguousarray(group, dtype=np.int64),
        np.ascontiguousarray(treated, dtype=np.int64),
        shifted,
        np.ascontiguousarray(propensity, dtype=np.float64),
        missing if propensities is None else np.ascontiguousarray(propensities, dtype=np.float64),
        np.zeros((0, 0)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64),
    )
    sums = np.zeros((kernel.SUMS, n_groups, 2))
    sums[kernel.LOWEST] = np.inf
    kernel.add_groups(rounds, np.zeros((kernel.STATE, n_groups, 2)), sums)
    means = _over(sums[kernel.SCORES], sums[kernel.WEIGHTS], np.nan)
    moments, state = np.zeros((kernel.MOMENTS, n_groups, 2)), np.zeros((kernel.STATE, n_groups, 2))
    kernel.add_errors(rounds, means, sums[kernel.WEIGHTS], state, moments)
    return _described(sums, means, moments)


def _described(sums: FloatArray, means: FloatArray, moments: FloatArray) -> GroupEffects:
    """Effects computed from the sums over rounds; means has shape (G, 2)."""
    count, used, totals, _, lowest, gains, squares, cubes, fourths = sums
    known = totals.min(axis=1) > 0.0
    spread, skew, product, change = np.where(known[:, None], moments, np.nan)
    root, correlation = np.sqrt(spread), product[:, 0]
    std_error, smaller = np.sqrt(change[:, 0]), used.min(axis=1)
    freedom = (_over(squares**2, fourths) - 1.0).min(axis=1)
    correlation = np.where(known, _over(correlation, root[:, 0] * root[:, 1]), np.nan)
    shapes = np.array([_over(_over(skew, root * root), root), _over(cubes**2, squares**3)])
    skewness, unevenness = np.where(known[:, None], shapes, np.nan)
    return GroupEffects(
        estimate=np.where(smaller >= 1, means[:, 1] - means[:, 0], np.nan),
        std_error=np.where((smaller >= 2) & (std_error > 0), std_error, np.nan),
        df=np.maximum(freedom, 0.0),
        count=count,
        used=used,
        ess=_over(gains**2, squares).min(axis=1),
        min_propensity=np.where(np.isfinite(lowest), lowest, np.nan).min(axis=1),
        arm_error=root,
        skewness=skewness,
        unevenness=unevenness,
        correlation=correlation,
    )


def _over(numerator: FloatArray, denominator: FloatArray, otherwise: float = 0.0) -> FloatArray:
    """Quotients; if a denominator is not positive, the entry is `otherwise`."""
    found = np.full(np.shape(numerator), otherwise)
    return np.asarray(np.divide(numerator, denominator, out=found, where=denominator > 0.0))
