"""Sums over the rounds of a log, computed without an array as large as that of the propensities."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.inference.scores.score_stream import (
    OUTCOME,
    STATE,
    Stream,
    learn,
    own_weight,
    prepare,
)
from adaptinf.typing import FloatArray, IntArray

WEIGHTS = ("uniform", "sqrt", "two-point")
"""Kinds of weights that are separate for each arm, not shared by a pair or a table."""
_ROUNDS, _EXPECTED, _OBSERVED, _SQUARES = range(4)
_TOTAL, _SCORE, _TIME, _TIME_SQUARES, _TIME_SCORE, _PULLS, _REWARD = range(7)
_GAP, _SLOPE = range(2)
_BLOCK = 2048
"""Number of rounds whose contributions to the errors are in memory at the same time."""


class ScoreSums(NamedTuple):
    """Sums for k arms after two passes over the rounds.

    Shapes: estimate, mean, pulls, change, drift (k,), change_covariance, drift_covariance (k, k), group_mean,
    group_variance (G, k). `change` is the sample mean minus the weighted mean of scores, and `drift` is the
    change in the scores from the first round to the last according to a regression on time.
    """

    estimate: FloatArray
    mean: FloatArray
    pulls: FloatArray
    change: FloatArray
    change_covariance: FloatArray
    drift: FloatArray
    drift_covariance: FloatArray
    group_mean: FloatArray
    group_variance: FloatArray


def score_sums(stream: Stream, group: IntArray) -> ScoreSums:
    """Estimates of the arms' means and of their drift, with covariances from each round's contributions.

    Shapes: group (T,), the block of batches to which each round belongs.

    The score of arm k is Gamma_t = m_t + 1{A_t = k} (Y_t - m_t) / e_t, where m_t is the arm's mean reward so
    far (before its first reward, the mean over all arms). Nothing is known before round 0, so its weight is
    zero. The slope on time, x_t = (t + 1/2) / T, is estimated by least squares with the weights h_t of the
      scores:

        sum h (x - c) Gamma / sum h (x - c)^2,    c = sum h x / sum h,

    If the mean Q is the same in all rounds, a round contributes h (x - c) (Gamma - Q) / sum h (x - c)^2 to
    the error of the slope.
    """
    size, groups = len(stream.codes), int(group.max(initial=0)) + 1
    state, sums = np.zeros((STATE, size)), np.zeros((7, size))
    by_group = np.zeros((2, groups, size))
    _add_up(stream, group, state, sums, by_group)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = sums[_SCORE] / sums[_TOTAL]
        centre = sums[_TIME] / sums[_TOTAL]
        spread = sums[_TIME_SQUARES] - centre * sums[_TIME]
        drift = (sums[_TIME_SCORE] - centre * sums[_SCORE]) / spread
        mean = sums[_REWARD] / sums[_PULLS]
        group_mean = by_group[1] / by_group[0]
        scales = np.stack([1.0 / sums[_TOTAL], 1.0 / spread, 1.0 / sums[_PULLS]])
    centres = np.stack([estimate, centre, mean])
    scales[~np.isfinite(scales)] = 0.0
    centres[~np.isfinite(centres)] = 0.0
    group_variance, errors = np.zeros((groups, size)), np.zeros((2, _BLOCK, size))
    change_covariance, drift_covariance = np.zeros((size, size)), np.zeros((size, size))
    found = centres, scales, np.nan_to_num(group_mean)
    for begin in range(0, len(group), _BLOCK):
        rows = errors[:, : len(group) - begin]
        _errors(stream, begin, group, found, state, rows, group_variance)
        change_covariance += rows[_GAP].T @ rows[_GAP]
        drift_covariance += rows[_SLOPE].T @ rows[_SLOPE]
    with np.errstate(divide="ignore", invalid="ignore"):
        group_variance = group_variance / by_group[0] ** 2
    return ScoreSums(
        estimate + stream.origin,
        mean + stream.origin,
        sums[_PULLS],
        mean - estimate,
        change_covariance,
        drift,
        drift_covariance,
        group_mean + stream.origin,
        group_variance,
    )


@kernel
def _score(stream: Stream, t: int, j: int, chosen: int, state: FloatArray) -> float:
    """The score of an arm in a round, relative to the origin."""
    score: float = state[OUTCOME, j]
    if j == chosen:
        score += (stream.reward[t] - stream.origin - score) / stream.propensity[t]
    return score


@compiled
def _add_up(
    stream: Stream, group: IntArray, state: FloatArray, sums: FloatArray, by_group: FloatArray
) -> None:
    """First pass: weighted sums of scores and of times."""
    horizon, size = stream.action.shape[0], stream.codes.shape[0]
    prepare(stream, state)
    for t in range(horizon):
        chosen = stream.place[stream.action[t]]
        x = (t + 0.5) / horizon
        g = group[t]
        for j in range(size):
            weight = own_weight(stream, t, j, state)
            score = _score(stream, t, j, chosen, state)
            sums[_TOTAL, j] += weight
            sums[_SCORE, j] += weight * score
            sums[_TIME, j] += weight * x
            sums[_TIME_SQUARES, j] += weight * x * x
            sums[_TIME_SCORE, j] += weight * x * score
            by_group[0, g, j] += weight
            by_group[1, g, j] += weight * score
        if chosen >= 0:
            sums[_PULLS, chosen] += 1.0
            sums[_REWARD, chosen] += stream.reward[t] - stream.origin
        learn(stream, t, chosen, state)


@compiled
def _errors(
    stream: Stream,
    begin: int,
    group: IntArray,
    found: tuple[FloatArray, FloatArray, FloatArray],
    state: FloatArray,
    errors: FloatArray,
    group_variance: FloatArray,
) -> None:
    """Second pass over a block of rounds: their contributions to the errors of all arms; errors (2, n, k)."""
    centres, scales, group_mean = found
    horizon, size = stream.action.shape[0], stream.codes.shape[0]
    if begin == 0:
        prepare(stream, state)
    for row in range(errors.shape[1]):
        t = begin + row
        chosen = stream.place[stream.action[t]]
        x = (t + 0.5) / horizon
        g = group[t]
        for j in range(size):
            score = _score(stream, t, j, chosen, state)
            weight = own_weight(stream, t, j, state)
            gap = weight * (score - centres[0, j])
            own = weight * (score - group_mean[g, j])
            group_variance[g, j] += own * own
            errors[_SLOPE, row, j] = gap * (x - centres[1, j]) * scales[1, j]
            errors[_GAP, row, j] = -gap * scales[0, j]
            if j == chosen:
                errors[_GAP, row, j] += (stream.reward[t] - stream.origin - centres[2, j]) * scales[2, j]
        learn(stream, t, chosen, state)


@kernel
def _bin(e: float, edges: FloatArray, place: IntArray) -> int:
    """The fine bin of a propensity between 0 and 1."""
    code: int = place[int(e * (place.shape[0] - 1))]
    while code < edges.shape[0] and e > edges[code]:
        code += 1
    return code


@kernel
def _lasts(propensities: FloatArray, t: int) -> bool:
    """Whether the next round has the same propensities, so that the two can be counted together."""
    ends, k = t + 1 >= propensities.shape[0], 0
    while not ends and k < propensities.shape[1]:
        ends = propensities[t + 1, k] != propensities[t, k]
        k += 1
    return not ends


@compiled
def bin_sums(
    action: IntArray, propensities: FloatArray, edges: FloatArray, place: IntArray, sums: FloatArray
) -> None:
    """Sums of rounds, propensities, choices and squared propensities, by arm and fine bin of propensity.

    Shapes: action (T,), propensities (T, K), edges (E,), place (n,), sums (K, E + 1, 4). The interval (0, 1)
    is divided into n - 1 equal cells; `place` contains the bin of each cell's lower end, and the bin of 1.
    """
    alike = 1.0
    for t in range(action.shape[0]):
        own = propensities[t, action[t]]
        if own > 0.0 and own < 1.0:
            sums[action[t], _bin(own, edges, place), _OBSERVED] += 1.0
        if _lasts(propensities, t):
            alike += 1.0
            continue
        for k in range(propensities.shape[1]):
            e = propensities[t, k]
            if e > 0.0 and e < 1.0:
                code = _bin(e, edges, place)
                sums[k, code, _ROUNDS] += alike
                sums[k, code, _EXPECTED] += alike * e
                sums[k, code, _SQUARES] += alike * e * e
        alike = 1.0


@compiled
def bin_products(
    propensities: FloatArray,
    codes: IntArray,
    edges: FloatArray,
    place: IntArray,
    merged: IntArray,
    cell: IntArray,
    products: FloatArray,
) -> None:
    """Sums of products of two arms' propensities, by pair of bins, below the diagonal of `products`.

    Shapes: propensities (T, K), codes (k,), merged (k, E + 1), cell (k,), products (J, J). `merged` contains
    the position of each arm's fine bins among all J bins.
    """
    alike = 1.0
    for t in range(propensities.shape[0]):
        if _lasts(propensities, t):
            alike += 1.0
            continue
        for i in range(codes.shape[0]):
            e = propensities[t, codes[i]]
            cell[i] = -1
            if e > 0.0 and e < 1.0:
                cell[i] = merged[i, _bin(e, edges, place)]
                for j in range(i):
                    if cell[j] >= 0:
                        products[cell[i], cell[j]] += alike * e * propensities[t, codes[j]]
        alike = 1.0


@compiled
def wealth_path(
    action: IntArray, propensities: FloatArray, seen: FloatArray, due: FloatArray, path: FloatArray
) -> float:
    """Largest log wealth of bets on arms that are based on past choices and propensities; at least 0.

    Shapes: action (T,), propensities (T, K) or (1, K), seen, due (K,), path (T,) or (0,).
    """
    wealth, largest = 0.0, 0.0
    fixed = propensities.shape[0] == 1
    for t in range(action.shape[0]):
        row = 0 if fixed else t
        total, whole = 0.0, 0.0
        for k in range(propensities.shape[1]):
            e = propensities[row, k]
            total += e * seen[k] / due[k]
            whole += e
        chosen = action[t]
        # The rows are divided by their sums, because rounding may keep these from being exactly 1.
        wealth += math.log(seen[chosen] / due[chosen] * whole / total)
        largest = max(largest, wealth)
        if path.shape[0] > 0:
            path[t] = wealth
        for k in range(propensities.shape[1]):
            due[k] += propensities[row, k]
        seen[chosen] += 1.0
    return largest
