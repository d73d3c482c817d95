"""Sums over the rounds of a log, without an array of the size of the propensities."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.inference.scores.inverse import two_point_shares
from adaptinf.typing import FloatArray, IntArray

UNIFORM, SQRT, TWO_POINT = range(3)
WEIGHTS = {"uniform": UNIFORM, "sqrt": SQRT, "two-point": TWO_POINT}
_ROUNDS, _EXPECTED, _OBSERVED, _SQUARES = range(4)
_TOTAL, _SCORE, _TIME, _TIME_SQUARES, _TIME_SCORE, _PULLS, _REWARD = range(7)
_COUNT, _SUM, _LEFT, _GAP, _SLOPE = range(5)


class Rounds(NamedTuple):
    """Rounds that are scored by AIPW, and how; shapes: action, reward, propensity, group (T,), others below.

    `propensities` (T, K), or (0, 0) where weights need none; `codes` (k,); `floored`, `always` (T,) for
    two-point weights, else (0,). Rewards are taken about `origin`.
    """

    action: IntArray
    reward: FloatArray
    propensity: FloatArray
    propensities: FloatArray
    codes: IntArray
    group: IntArray
    weights: int
    floored: FloatArray
    always: FloatArray
    origin: float


class ScoreSums(NamedTuple):
    """What is known of k arms after two passes over the rounds.

    Shapes: estimate, mean, pulls, change, drift (k,), change_covariance, drift_covariance (k, k), group_mean,
    group_variance (G, k). `change` is the sample mean less the weighted mean of scores, `drift` the slope of
    the scores over the log from its first round to its last.
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


def rounds_of(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    group: IntArray,
    weights: str,
    decay: float | None,
) -> Rounds:
    """Rounds with their weights; shapes as in `Rounds`."""
    shares = (np.zeros(0), np.zeros(0))
    if weights == "two-point" and decay is not None:
        shares = two_point_shares(len(action), decay)
    every = np.zeros((0, 0)) if propensities is None or weights == "uniform" else propensities
    return Rounds(
        np.ascontiguousarray(action, dtype=np.int64),
        np.ascontiguousarray(reward, dtype=np.float64),
        np.ascontiguousarray(propensity, dtype=np.float64),
        np.ascontiguousarray(every, dtype=np.float64),
        np.ascontiguousarray(codes, dtype=np.int64),
        np.ascontiguousarray(group, dtype=np.int64),
        WEIGHTS[weights],
        *shares,
        float(reward[0]) if len(reward) else 0.0,
    )


def score_sums(rounds: Rounds) -> ScoreSums:
    """Estimates of the arms' means and of their drift, with covariances from what each round contributes.

    An arm's score is Gamma_t = m_t + 1{A_t = k} (Y_t - m_t) / e_t, m_t its mean reward so far (of all arms
    before its first one). Round 0, before which nothing is known, has weight 0. The slope is that of least
    squares with the weights h_t of the scores on x_t = (t + 1/2) / T,

        sum h (x - c) Gamma / sum h (x - c)^2,    c = sum h x / sum h,

    and a round contributes h (x - c) (Gamma - Q) / sum h (x - c)^2 to its error where the mean Q is the same
    in all rounds.
    """
    size, groups = len(rounds.codes), int(rounds.group.max(initial=0)) + 1
    state, sums = np.zeros((5, size)), np.zeros((7, size))
    by_group = np.zeros((2, groups, size))
    place = np.full(int(max(rounds.action.max(initial=0), rounds.codes.max(initial=0))) + 1, -1)
    place[rounds.codes] = np.arange(size)
    _add_up(rounds, place, state, sums, by_group)
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
    group_variance = np.zeros((groups, size))
    change_covariance, drift_covariance = np.zeros((size, size)), np.zeros((size, size))
    state[:] = 0.0
    _spread(
        rounds,
        place,
        centres,
        scales,
        np.nan_to_num(group_mean),
        state,
        group_variance,
        change_covariance,
        drift_covariance,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        group_variance = group_variance / by_group[0] ** 2
    return ScoreSums(
        estimate + rounds.origin,
        mean + rounds.origin,
        sums[_PULLS],
        mean - estimate,
        change_covariance,
        drift,
        drift_covariance,
        group_mean + rounds.origin,
        group_variance,
    )


@kernel
def _weight(rounds: Rounds, t: int, j: int, state: FloatArray) -> float:
    """Weight of an arm's score, known before the arm is drawn."""
    if rounds.weights == UNIFORM:
        return 1.0 if t > 0 else 0.0
    e = rounds.propensities[t, rounds.codes[j]]
    if rounds.weights == SQRT:
        return math.sqrt(e) if t > 0 else 0.0
    share = min(max((1.0 - e) * rounds.floored[t] + e * rounds.always[t], 0.0), 1.0)
    weight = math.sqrt(share * state[_LEFT, j] * e)
    state[_LEFT, j] *= 1.0 - share
    return weight if t > 0 else 0.0


@kernel
def _score(rounds: Rounds, t: int, j: int, chosen: int, state: FloatArray, before: float) -> float:
    """AIPW score of an arm, about the origin; `before` is the mean of all rewards so far."""
    count = float(state[_COUNT, j])
    predicted: float = state[_SUM, j] / count if count > 0.0 else before
    if j == chosen:
        score: float = predicted + (rounds.reward[t] - rounds.origin - predicted) / rounds.propensity[t]
        return score
    return predicted


@compiled
def _add_up(
    rounds: Rounds, place: IntArray, state: FloatArray, sums: FloatArray, by_group: FloatArray
) -> None:
    """First pass: weighted sums of scores and of time."""
    horizon, size = rounds.action.shape[0], rounds.codes.shape[0]
    total = 0.0
    for j in range(size):
        state[_LEFT, j] = 1.0
    for t in range(horizon):
        chosen = place[rounds.action[t]]
        before = total / t if t > 0 else 0.0
        x = (t + 0.5) / horizon
        g = rounds.group[t]
        for j in range(size):
            weight = _weight(rounds, t, j, state)
            score = _score(rounds, t, j, chosen, state, before)
            sums[_TOTAL, j] += weight
            sums[_SCORE, j] += weight * score
            sums[_TIME, j] += weight * x
            sums[_TIME_SQUARES, j] += weight * x * x
            sums[_TIME_SCORE, j] += weight * x * score
            by_group[0, g, j] += weight
            by_group[1, g, j] += weight * score
        y = rounds.reward[t] - rounds.origin
        total += y
        if chosen >= 0:
            state[_COUNT, chosen] += 1.0
            state[_SUM, chosen] += y
            sums[_PULLS, chosen] += 1.0
            sums[_REWARD, chosen] += y


@compiled
def _spread(
    rounds: Rounds,
    place: IntArray,
    centres: FloatArray,
    scales: FloatArray,
    group_mean: FloatArray,
    state: FloatArray,
    group_variance: FloatArray,
    change: FloatArray,
    drift: FloatArray,
) -> None:
    """Second pass: products of what each round contributes to the errors of two arms."""
    horizon, size = rounds.action.shape[0], rounds.codes.shape[0]
    total = 0.0
    for j in range(size):
        state[_LEFT, j] = 1.0
    for t in range(horizon):
        chosen = place[rounds.action[t]]
        before = total / t if t > 0 else 0.0
        x = (t + 0.5) / horizon
        g = rounds.group[t]
        y = rounds.reward[t] - rounds.origin
        for j in range(size):
            weight = _weight(rounds, t, j, state)
            score = _score(rounds, t, j, chosen, state, before)
            gap = weight * (score - centres[0, j])
            own = weight * (score - group_mean[g, j])
            group_variance[g, j] += own * own
            state[_SLOPE, j] = gap * (x - centres[1, j]) * scales[1, j]
            state[_GAP, j] = -gap * scales[0, j]
            if j == chosen:
                state[_GAP, j] += (y - centres[2, j]) * scales[2, j]
        for j in range(size):
            first, second = state[_GAP, j], state[_SLOPE, j]
            for k in range(j + 1):
                change[j, k] += first * state[_GAP, k]
                drift[j, k] += second * state[_SLOPE, k]
        total += y
        if chosen >= 0:
            state[_COUNT, chosen] += 1.0
            state[_SUM, chosen] += y
    for j in range(size):
        for k in range(j):
            change[k, j] = change[j, k]
            drift[k, j] = drift[j, k]


@compiled
def bin_sums(
    action: IntArray, propensities: FloatArray, edges: FloatArray, place: IntArray, sums: FloatArray
) -> None:
    """Rounds, expected and observed choices and squared propensities by arm and fine bin of the propensity.

    Shapes: action (T,), propensities (T, K), edges (E,), place (n,), sums (K, E + 1, 4). `place` gives, for
    each of n - 1 equal cells of (0, 1) and for 1, the bin of its lower end.
    """
    cells = place.shape[0] - 1
    for t in range(action.shape[0]):
        for k in range(propensities.shape[1]):
            e = propensities[t, k]
            if e > 0.0 and e < 1.0:
                code = place[int(e * cells)]
                while code < edges.shape[0] and e > edges[code]:
                    code += 1
                sums[k, code, _ROUNDS] += 1.0
                sums[k, code, _EXPECTED] += e
                sums[k, code, _SQUARES] += e * e
                if action[t] == k:
                    sums[k, code, _OBSERVED] += 1.0


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
    """Sums of products of two arms' propensities by their bins, below the diagonal.

    Shapes: propensities (T, K), codes (k,), merged (k, E + 1): position of each arm's fine bin among all
    J bins; cell (k,); products (J, J).
    """
    cells = place.shape[0] - 1
    for t in range(propensities.shape[0]):
        for i in range(codes.shape[0]):
            e = propensities[t, codes[i]]
            cell[i] = -1
            if e > 0.0 and e < 1.0:
                code = place[int(e * cells)]
                while code < edges.shape[0] and e > edges[code]:
                    code += 1
                cell[i] = merged[i, code]
                for j in range(i):
                    if cell[j] >= 0:
                        products[cell[i], cell[j]] += e * propensities[t, codes[j]]


@compiled
def wealth_path(
    action: IntArray, propensities: FloatArray, seen: FloatArray, due: FloatArray, path: FloatArray
) -> float:
    """Largest log wealth of bets on each arm's past choices over its past propensities; at least 0.

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
        # The rows are divided by their sums, which may differ from 1 by rounding.
        wealth += math.log(seen[chosen] / due[chosen] * whole / total)
        largest = max(largest, wealth)
        if path.shape[0] > 0:
            path[t] = wealth
        for k in range(propensities.shape[1]):
            due[k] += propensities[row, k]
        seen[chosen] += 1.0
    return largest
