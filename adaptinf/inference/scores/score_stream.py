"""The scoring engine: weighted scores round by round, without an array as large as the propensities.

A `Stream` defines how rounds are scored and weighted. Accumulators call `enter` for the weights and
predictions of each round, and pass its reward to `learn`. Accumulators compute means of arms in this module,
drift in `diagnostics.accumulators`, and scores for shared levels in `joint_levels`. For short logs, `inverse`
computes the same scores in NumPy.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.inference.inputs.rounds import middles
from adaptinf.inference.scores.inverse import LAGGED, first_weighted, origin_of, two_point_shares
from adaptinf.inference.scores.means import (
    ScoreMeans,
    movement,
    negligible,
    standardised,
    unevenness,
)
from adaptinf.parameters import refuse
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray

_UNIFORM, _SQRT, _TWO_POINT, _SHARED, _LAGGED = range(5)
_WEIGHTS = {"uniform": _UNIFORM, "sqrt": _SQRT, "two-point": _TWO_POINT, LAGGED: _LAGGED}
_NOTHING, _RUNNING, _GIVEN = range(3)
_SUMS = 12
_TOTAL, _SCORE, _PULLS, _REWARDS, _USED, _SMALLEST, _SMALLEST_CHOSEN = range(7)
_GAIN, _GAIN_SQUARES, _GAIN_CUBES, _GAIN_FOURTHS, _MOMENT = range(7, _SUMS)
STATE = 8
"""Number of rows of the state that `enter` and `learn` share, and that accumulators also use."""
_PROPENSITY, WEIGHT, OUTCOME, _LEFT, _COUNT, _SUM, _EVERY, _UNSEEN = range(STATE)


class Stream(NamedTuple):
    """Rounds, and how they are scored and weighted; empty arrays represent missing inputs.

    Predictions that are given are relative to the origin. Rewards are shifted round by round, without another
    array.
    """

    action: IntArray
    reward: FloatArray
    origin: float
    propensity: FloatArray
    propensities: FloatArray
    codes: IntArray
    place: IntArray
    """Position of each action among the codes, or -1 if it is not among them."""
    weights: int
    outcome: int
    given: FloatArray
    shared: FloatArray
    floored: FloatArray
    always: FloatArray
    start: int
    jointly: bool
    batch: IntArray
    middle: FloatArray
    pair: bool
    """Whether two arms share a weight in each round, so that changes in their contrast are tested."""


def streamed_means(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    **options: Any,
) -> ScoreMeans:
    """Estimate arm means from the scores of `stream_of` with the same arguments."""
    stream = stream_of(action, reward, propensity, propensities, codes, **options)
    size = len(codes)
    state, sums = np.zeros((STATE, size)), np.zeros((_SUMS, size))
    estimate, covariance, cubes = np.zeros(size), np.zeros((size, size)), np.zeros(size)
    _add_up(stream, state, sums)
    positive = sums[_TOTAL] > 0.0
    total = np.where(positive, sums[_TOTAL], 1.0)
    estimate[:] = sums[_SCORE] / total
    state[:] = 0.0
    slope = np.zeros(2)
    _spread(stream, estimate, 1.0 / total, sums[_MOMENT, 0] / total[0], state, covariance, cubes, slope)
    # If all scores are equal, only the rounding error of their mean remains.
    constant = negligible(np.sqrt(np.diag(covariance)), estimate, stream.origin)
    covariance[constant, :] = covariance[:, constant] = 0.0
    missing = np.where(positive, 0.0, np.nan)
    smallest = sums[_SMALLEST if stream.propensities.shape[0] else _SMALLEST_CHOSEN]
    squares, fourths = (np.where(row > 0.0, row, 1.0) for row in (sums[_GAIN_SQUARES], sums[_GAIN_FOURTHS]))
    return ScoreMeans(
        above=estimate + missing,
        origin=stream.origin,
        covariance=covariance + missing[:, None] + missing[None, :],
        pulls=sums[_PULLS],
        successes=sums[_REWARDS] + stream.origin * sums[_PULLS],
        ess=sums[_GAIN] ** 2 / squares,
        freedom=np.maximum(sums[_GAIN_SQUARES] ** 2 / fourths - 1.0, 0.0),
        min_propensity=np.where(np.isfinite(smallest), smallest, np.nan),
        used=sums[_USED],
        skewness=standardised(cubes, np.diag(covariance)),
        unevenness=unevenness(sums[_GAIN_SQUARES], sums[_GAIN_CUBES]),
        movement=movement(slope[:1], slope[1:]),
    )


def stream_of(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    *,
    weights: str | FloatArray = "uniform",
    decay: float | None = None,
    outcome: FloatArray | str | None = "running-mean",
    start: int | None = None,
    jointly: bool = False,
    batch: IntArray | None = None,
) -> Stream:
    """Check the scoring and weighting options and fill in their defaults.

    Shapes: action, reward, propensity (T,), propensities (T, K), codes (k,), weights (T,), if all arms share
    them, outcome (T, k), batch (T,). The time of a batch's rounds is that of its middle.

    Rounds before `start` (see `first_weighted`), for which an outcome model had no reward, have weight 0; so
    do those in which an arm (any of the arms, if requested jointly) could not be chosen.
    """
    rounds, origin = len(action), origin_of(reward, outcome)
    given = outcome - origin if isinstance(outcome, np.ndarray) else np.zeros((0, 0))
    shared = weights if isinstance(weights, np.ndarray) else np.zeros(0)
    weights = "shared" if isinstance(weights, np.ndarray) else weights
    _check_options(rounds, len(codes), weights, shared, decay, outcome, knows_every=propensities is not None)
    shares = (np.zeros(0), np.zeros(0))
    if weights == "two-point" and decay is not None:
        shares = two_point_shares(rounds, decay)
    kind = _NOTHING if outcome is None else _RUNNING if isinstance(outcome, str) else _GIVEN
    every = np.zeros((0, 0)) if propensities is None else propensities
    place = np.full(max(int(action.max(initial=0)), int(codes.max(initial=0))) + 1, -1)
    place[codes] = np.arange(len(codes))
    pair = weights == "shared" and len(codes) == 2
    batch = np.zeros(0, dtype=np.int64) if batch is None or not pair else batch
    return Stream(
        np.ascontiguousarray(action, dtype=np.int64),
        np.ascontiguousarray(reward, dtype=np.float64),
        origin,
        np.ascontiguousarray(propensity, dtype=np.float64),
        np.ascontiguousarray(every, dtype=np.float64),
        np.ascontiguousarray(codes, dtype=np.int64),
        place,
        _WEIGHTS.get(weights, _SHARED),
        kind,
        np.ascontiguousarray(given, dtype=np.float64),
        np.ascontiguousarray(shared, dtype=np.float64),
        shares[0],
        shares[1],
        first_weighted(outcome, start),
        jointly,
        np.ascontiguousarray(batch, dtype=np.int64),
        middles(np.bincount(batch).astype(np.float64)) if len(batch) else np.zeros(0),
        pair,
    )


def _check_options(
    rounds: int,
    n_arms: int,
    weights: str,
    shared: FloatArray,
    decay: float | None,
    outcome: FloatArray | str | None,
    *,
    knows_every: bool,
) -> None:
    """Refuse weights and predictions that do not fit the rounds."""
    problems = []
    if weights == "shared" and shared.shape != (rounds,):
        problems.append(f"weights must have shape {(rounds,)}, got {shared.shape}")
    if weights != "shared" and weights not in _WEIGHTS:
        problems.append(unlisted("weights", _WEIGHTS, weights))
    if weights in ("sqrt", LAGGED, "two-point") and not knows_every:
        problems.append(f"{weights} weights require the propensities of all arms")
    if weights == "two-point" and decay is None:
        problems.append("two-point weights require decay=")
    if isinstance(outcome, str) and outcome != "running-mean":
        problems.append(f"outcome must be 'running-mean', an array or None, got {outcome!r}")
    if isinstance(outcome, np.ndarray) and outcome.shape != (rounds, n_arms):
        problems.append(f"outcome must have shape {(rounds, n_arms)}, got {outcome.shape}")
    refuse("scores of arms", problems)


@kernel
def prepare(stream: Stream, state: FloatArray) -> None:
    """Set the initial state, before any reward; state (STATE, k)."""
    for j in range(stream.codes.shape[0]):
        state[_PROPENSITY, j] = 1.0
        state[WEIGHT, j] = 1.0
        state[OUTCOME, j] = 0.0
        state[_LEFT, j] = 1.0
        state[_COUNT, j] = 0.0
        state[_SUM, j] = 0.0
        state[_EVERY, j] = 0.0
    state[_UNSEEN, 0] = stream.codes.shape[0]


@kernel
def enter(stream: Stream, t: int, state: FloatArray) -> int:
    """Store the propensities, weights and predictions of a round; returns the position of its arm, or -1."""
    size = stream.codes.shape[0]
    chosen: int = stream.place[stream.action[t]]
    if stream.propensities.shape[0] > 0:
        for j in range(size):
            state[_PROPENSITY, j] = stream.propensities[t, stream.codes[j]]
    elif stream.propensity.shape[0] > 0:  # If one arm has propensity 1, the others cannot be chosen.
        sure = stream.propensity[t] >= 1.0
        for j in range(size):
            state[_PROPENSITY, j] = 0.0 if sure and j != chosen else 1.0
    if stream.weights == _SHARED:
        for j in range(size):
            state[WEIGHT, j] = stream.shared[t] if state[_PROPENSITY, j] > 0.0 else 0.0
    elif stream.weights == _UNIFORM:
        for j in range(size):
            state[WEIGHT, j] = 1.0 if state[_PROPENSITY, j] > 0.0 else 0.0
    elif stream.weights == _SQRT:
        for j in range(size):
            state[WEIGHT, j] = math.sqrt(state[_PROPENSITY, j])
    elif stream.weights == _LAGGED:
        for j in range(size):
            e = 1.0 / stream.propensities.shape[1]
            if t > 0:
                e = stream.propensities[t - 1, stream.codes[j]]
            state[WEIGHT, j] = math.sqrt(e) if state[_PROPENSITY, j] > 0.0 else 0.0
    elif stream.weights == _TWO_POINT:
        for j in range(size):
            state[WEIGHT, j] = _two_point(stream, t, j, state[_PROPENSITY, j], state)
    _leave_out(stream, t, state)
    if stream.outcome == _GIVEN:
        for j in range(size):
            state[OUTCOME, j] = stream.given[t, j]
    return chosen


@kernel
def own_weight(stream: Stream, t: int, j: int, state: FloatArray) -> float:
    """Weight of an arm in a round in which every arm could be chosen: uniform, sqrt or two-point.

    `enter` stores the same weights for all arms; this separate function makes a pass that needs each weight
    only once faster by a sixth.
    """
    if stream.weights == _UNIFORM:
        return 1.0 if t >= stream.start else 0.0
    e: float = stream.propensities[t, stream.codes[j]]
    if stream.weights == _SQRT:
        return math.sqrt(e) if t >= stream.start else 0.0
    weight = _two_point(stream, t, j, e, state)
    return weight if t >= stream.start else 0.0


@kernel
def _two_point(stream: Stream, t: int, j: int, e: float, state: FloatArray) -> float:
    """Two-point weight of an arm with propensity e, which spends its share of the arm's remaining budget."""
    share = min(max((1.0 - e) * stream.floored[t] + e * stream.always[t], 0.0), 1.0)
    weight = math.sqrt(share * state[_LEFT, j] * e)
    state[_LEFT, j] *= 1.0 - share
    return weight


@kernel
def _leave_out(stream: Stream, t: int, state: FloatArray) -> None:
    """Set weights to 0 before the start, and in rounds in which a jointly requested arm is impossible."""
    size = stream.codes.shape[0]
    possible = t >= stream.start
    if stream.jointly:
        for j in range(size):
            possible = possible and state[_PROPENSITY, j] > 0.0
    if not possible:
        for j in range(size):
            state[WEIGHT, j] = 0.0


@kernel
def _time(stream: Stream, t: int) -> float:
    """Time of a round, or of the middle of its batch, on a scale from -1/2 to 1/2."""
    if stream.batch.shape[0] > 0:
        middle: float = stream.middle[stream.batch[t]]
        return middle
    rounds: int = stream.action.shape[0]
    return (t + 0.5) / rounds - 0.5


@kernel
def learn(stream: Stream, t: int, chosen: int, state: FloatArray) -> None:
    """Add the round's reward to the running means of its arm and of arms that have no rewards yet."""
    if stream.outcome != _RUNNING:
        return
    if chosen >= 0:
        if state[_COUNT, chosen] == 0.0:
            state[_UNSEEN, 0] -= 1.0
        state[_COUNT, chosen] += 1.0
        state[_SUM, chosen] += stream.reward[t] - stream.origin
        state[OUTCOME, chosen] = state[_SUM, chosen] / state[_COUNT, chosen]
    if state[_UNSEEN, 0] > 0.0:
        state[_EVERY, 0] += stream.reward[t] - stream.origin
        for j in range(stream.codes.shape[0]):
            if state[_COUNT, j] == 0.0:
                state[OUTCOME, j] = state[_EVERY, 0] / (t + 1.0)


@compiled
def score_rounds(stream: Stream, begin: int, state: FloatArray, scores: FloatArray, gain: FloatArray) -> None:
    """Scores by running means for rounds from `begin` on, with each score's coefficient of its own reward.

    Shapes: state (STATE, k), after the rounds before; scores, gain (n, k), initially 0.
    """
    if begin == 0:
        prepare(stream, state)
    for row in range(scores.shape[0]):
        t = begin + row
        chosen = stream.place[stream.action[t]]
        for j in range(scores.shape[1]):
            scores[row, j] = state[OUTCOME, j]
        if chosen >= 0:
            above = stream.reward[t] - stream.origin
            scores[row, chosen] += (above - state[OUTCOME, chosen]) / stream.propensity[t]
            gain[row, chosen] = 1.0 / stream.propensity[t]
        learn(stream, t, chosen, state)


@compiled
def _add_up(stream: Stream, state: FloatArray, sums: FloatArray) -> None:
    """First pass: sums of weights, of weighted scores, and of other columns of tables."""
    size = stream.codes.shape[0]
    prepare(stream, state)
    for j in range(size):
        sums[_SMALLEST, j] = np.inf
        sums[_SMALLEST_CHOSEN, j] = np.inf
    for t in range(stream.action.shape[0]):
        chosen = enter(stream, t, state)
        if stream.pair:
            sums[_MOMENT, 0] += state[WEIGHT, 0] * _time(stream, t)
        for j in range(size):
            sums[_TOTAL, j] += state[WEIGHT, j]
            sums[_SCORE, j] += state[WEIGHT, j] * state[OUTCOME, j]
            if state[WEIGHT, j] > 0.0:
                sums[_USED, j] += 1.0
                sums[_SMALLEST, j] = min(sums[_SMALLEST, j], state[_PROPENSITY, j])
        if chosen >= 0:
            y, e = stream.reward[t] - stream.origin, stream.propensity[t]
            gain = state[WEIGHT, chosen] / e
            sums[_SCORE, chosen] += gain * (y - state[OUTCOME, chosen])
            sums[_PULLS, chosen] += 1.0
            sums[_REWARDS, chosen] += y
            sums[_GAIN, chosen] += gain
            sums[_GAIN_SQUARES, chosen] += gain**2
            sums[_GAIN_CUBES, chosen] += gain**3
            sums[_GAIN_FOURTHS, chosen] += gain**4
            if gain > 0.0:
                sums[_SMALLEST_CHOSEN, chosen] = min(sums[_SMALLEST_CHOSEN, chosen], e)
        learn(stream, t, chosen, state)


@compiled
def _spread(
    stream: Stream,
    estimate: FloatArray,
    scale: FloatArray,
    centre: float,
    state: FloatArray,
    covariance: FloatArray,
    cubes: FloatArray,
    slope: FloatArray,
) -> None:
    """Second pass: products of each round's contributions to the errors of two arms, and cubes.

    For a contrast, the sums of its slopes over time, and of their squares, are also computed; slope (2,).
    """
    size = stream.codes.shape[0]
    prepare(stream, state)
    for t in range(stream.action.shape[0]):
        chosen = enter(stream, t, state)
        for j in range(size):
            state[_PROPENSITY, j] = state[WEIGHT, j] * scale[j] * (state[OUTCOME, j] - estimate[j])
        if chosen >= 0:
            above = stream.reward[t] - stream.origin
            residual = (above - state[OUTCOME, chosen]) / stream.propensity[t]
            state[_PROPENSITY, chosen] += state[WEIGHT, chosen] * scale[chosen] * residual
        learn(stream, t, chosen, state)
        if stream.pair:
            term = (state[_PROPENSITY, 0] - state[_PROPENSITY, 1]) * (_time(stream, t) - centre)
            slope[0] += term
            slope[1] += term * term
        for j in range(size):
            influence = state[_PROPENSITY, j]
            cubes[j] += influence**3
            for k in range(j + 1):
                covariance[j, k] += influence * state[_PROPENSITY, k]
    for j in range(size):
        for k in range(j):
            covariance[k, j] = covariance[j, k]
