"""Scores of many contrasts with one control, summed in one compiled pass over the rounds.

The results are the same as those of a separate stream for each pair (`score_stream`): predictions are the
arms' running means, and a round has one weight for both arms of a pair. The control's part of a round is
computed once for all pairs.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.inference.scores.inverse import origin_of
from adaptinf.inference.scores.means import ScoreMeans, movement, negligible, standardised, unevenness
from adaptinf.typing import FloatArray, IntArray

_BLOCK = 2048
"""Number of rounds whose contributions to the errors are in memory at the same time."""
_STATE = 6
_PROPENSITY, _WEIGHT, _OUTCOME, _COUNT, _SUM, _SEEN = range(_STATE)
_SUMS = 7
_TOTAL, _TIME, _USED, _SCORE, _REWARDS, _PULLS, _SMALLEST = range(_SUMS)
_MOMENTS = 4
_SPREAD, _CUBES, _PRODUCT, _SLOPE = range(_MOMENTS)


class PairRounds(NamedTuple):
    """The rounds of a log, and how pairs are scored and weighted.

    Shapes: action, reward, propensity, time (T,), propensities (T, K), first (P,), place (K,). `first`
    contains the treatments, and `place` the position of each arm among them, which is P for the control
    `second` and -1 for other arms. Weights are combined or uniform. Without running means (`running` is
    False), the rewards themselves are weighted.
    """

    action: IntArray
    reward: FloatArray
    origin: float
    propensity: FloatArray
    propensities: FloatArray
    time: FloatArray
    first: IntArray
    second: int
    place: IntArray
    uniform: bool
    running: bool


def pair_scores(
    columns: tuple[IntArray, FloatArray, FloatArray, FloatArray],
    codes: IntArray,
    time: FloatArray,
    *,
    uniform: bool,
    running: bool,
) -> tuple[ScoreMeans, ...]:
    """Estimates of both means of each pair, over rounds in which both arms could be chosen.

    `columns` contains actions, rewards and propensities of the chosen arm, shapes (T,), and propensities of
    every arm, (T, K). Shapes of the others: codes (P, 2), control last, time (T,).
    """
    action, reward, propensity, propensities = columns
    first, second, size = codes[:, 0], int(codes[0, 1]), len(codes)
    place = np.full(propensities.shape[1], -1)
    place[first], place[second] = np.arange(size), size
    rounds = PairRounds(
        np.ascontiguousarray(action, dtype=np.int64),
        np.ascontiguousarray(reward, dtype=np.float64),
        origin_of(reward, "running-mean" if running else None),
        np.ascontiguousarray(propensity, dtype=np.float64),
        np.ascontiguousarray(propensities, dtype=np.float64),
        np.ascontiguousarray(time, dtype=np.float64),
        np.ascontiguousarray(first, dtype=np.int64),
        second,
        place,
        uniform,
        running,
    )
    state, sums, gains = np.zeros((_STATE, size + 1)), np.zeros((2, _SUMS, size)), np.zeros((2, 4, size))
    sums[:, _SMALLEST] = np.inf
    _add_up(rounds, state, sums, gains)
    positive = sums[0, _TOTAL] > 0.0
    total = np.where(positive, sums[0, _TOTAL], 1.0)
    estimate, scale, centre = sums[:, _SCORE] / total, 1.0 / total, sums[0, _TIME] / total
    moments, products = np.zeros((2, _MOMENTS, size)), np.zeros((size, size))
    state[:] = 0.0
    block = np.zeros((min(_BLOCK, len(action)), size))
    for begin in range(0, len(action), _BLOCK):
        part = block[: len(action) - begin]
        _spread(rounds, begin, (estimate, scale, centre), state, moments, part)
        products += part.T @ part
    described = _described(rounds, sums, gains, estimate, moments)
    return tuple(replace(means, products=products) for means in described)


def _described(
    rounds: PairRounds, sums: FloatArray, gains: FloatArray, estimate: FloatArray, moments: FloatArray
) -> list[ScoreMeans]:
    """The estimates for each pair, with the quantities that tests and tables require."""
    origin, found = rounds.origin, list[ScoreMeans]()
    for p in range(len(rounds.first)):
        spread, product = moments[:, _SPREAD, p], moments[0, _PRODUCT, p]
        covariance = np.array([[spread[0], product], [product, spread[1]]])
        constant = negligible(np.sqrt(spread), estimate[:, p], origin)
        covariance[constant, :] = covariance[:, constant] = 0.0
        missing = np.where(sums[:, _TOTAL, p] > 0.0, 0.0, np.nan)
        gain, squares, cubes, fourths = gains[:, :, p].T
        pulls, smallest = sums[:, _PULLS, p], sums[:, _SMALLEST, p]
        slope = np.zeros((2, 1)) if rounds.uniform else moments[:, _SLOPE, p : p + 1]
        found.append(
            ScoreMeans(
                above=estimate[:, p] + missing,
                origin=origin,
                covariance=covariance + missing[:, None] + missing[None, :],
                pulls=pulls,
                successes=sums[:, _REWARDS, p] + origin * pulls,
                ess=gain**2 / np.where(squares > 0.0, squares, 1.0),
                freedom=np.maximum(squares**2 / np.where(fourths > 0.0, fourths, 1.0) - 1.0, 0.0),
                min_propensity=np.where(np.isfinite(smallest), smallest, np.nan),
                used=sums[:, _USED, p],
                skewness=standardised(moments[:, _CUBES, p], np.diag(covariance)),
                unevenness=unevenness(squares, cubes),
                movement=movement(slope[0], slope[1]),
            )
        )
    return found


@kernel
def _weigh(rounds: PairRounds, t: int, state: FloatArray) -> None:
    """Propensities and weights of a round; weights are 0 if an arm is impossible or has no prediction."""
    size = rounds.first.shape[0]
    last = rounds.propensities[t, rounds.second]
    usable = last > 0.0 and (t > 0 or not rounds.running)
    inverse = 1.0 / last
    state[_PROPENSITY, size] = last
    for p in range(size):
        state[_PROPENSITY, p] = rounds.propensities[t, rounds.first[p]]
    if not usable:
        for p in range(size):
            state[_WEIGHT, p] = 0.0
    elif rounds.uniform:
        for p in range(size):
            state[_WEIGHT, p] = 1.0 if state[_PROPENSITY, p] > 0.0 else 0.0
    else:
        for p in range(size):
            state[_WEIGHT, p] = 1.0 / math.sqrt(1.0 / state[_PROPENSITY, p] + inverse)


@kernel
def _learn(rounds: PairRounds, t: int, chosen: int, state: FloatArray) -> None:
    """Add the round's reward to the running means of its arm and of arms that have no rewards yet."""
    if not rounds.running:
        return
    above = rounds.reward[t] - rounds.origin
    if chosen >= 0:
        if state[_COUNT, chosen] == 0.0:
            state[_SEEN, 0] += 1.0
        state[_COUNT, chosen] += 1.0
        state[_SUM, chosen] += above
        state[_OUTCOME, chosen] = state[_SUM, chosen] / state[_COUNT, chosen]
    arms = rounds.first.shape[0] + 1
    if state[_SEEN, 0] < arms:
        state[_SEEN, 1] += above
        for j in range(arms):
            if state[_COUNT, j] == 0.0:
                state[_OUTCOME, j] = state[_SEEN, 1] / (t + 1.0)


@compiled
def _add_up(rounds: PairRounds, state: FloatArray, sums: FloatArray, gains: FloatArray) -> None:
    """First pass: sums of weights, of weighted scores, and of other columns of tables.

    Shapes: state (STATE, P + 1), sums (2, SUMS, P), gains (2, 4, P).
    """
    size = rounds.first.shape[0]
    for t in range(rounds.action.shape[0]):
        _weigh(rounds, t, state)
        chosen = rounds.place[rounds.action[t]]
        last, control, time = state[_PROPENSITY, size], state[_OUTCOME, size], rounds.time[t]
        for p in range(size):
            h = state[_WEIGHT, p]
            sums[0, _TOTAL, p] += h
            sums[0, _TIME, p] += h * time
            sums[0, _SCORE, p] += h * state[_OUTCOME, p]
            sums[1, _SCORE, p] += h * control
            if h > 0.0:
                sums[0, _USED, p] += 1.0
                sums[0, _SMALLEST, p] = min(sums[0, _SMALLEST, p], state[_PROPENSITY, p])
                sums[1, _SMALLEST, p] = min(sums[1, _SMALLEST, p], last)
        if chosen >= 0:
            above, own = rounds.reward[t] - rounds.origin, rounds.propensity[t]
            of_control = chosen == size
            side, begin, stop = (1, 0, size) if of_control else (0, chosen, chosen + 1)
            residual = above - state[_OUTCOME, chosen]
            for p in range(begin, stop):
                gain = state[_WEIGHT, p] / own
                sums[side, _SCORE, p] += gain * residual
                sums[side, _PULLS, p] += 1.0
                sums[side, _REWARDS, p] += above
                gains[side, 0, p] += gain
                gains[side, 1, p] += gain**2
                gains[side, 2, p] += gain**3
                gains[side, 3, p] += gain**4
        _learn(rounds, t, chosen, state)
    for p in range(size):
        sums[1, _TOTAL, p] = sums[0, _TOTAL, p]
        sums[1, _USED, p] = sums[0, _USED, p]


@compiled
def _spread(
    rounds: PairRounds,
    begin: int,
    found: tuple[FloatArray, FloatArray, FloatArray],
    state: FloatArray,
    moments: FloatArray,
    block: FloatArray,
) -> None:
    """Second pass over a block of rounds: squares, cubes and products of their contributions to errors.

    `found` contains estimates (2, P), scales (P,) and centres of time (P,). Shapes of the others: moments (2,
    MOMENTS, P), block (n, P), which receives the contributions to the pairs' differences.
    """
    estimate, scale, centre = found
    size = rounds.first.shape[0]
    for row in range(block.shape[0]):
        t = begin + row
        _weigh(rounds, t, state)
        chosen = rounds.place[rounds.action[t]]
        control, time = state[_OUTCOME, size], rounds.time[t]
        residual = 0.0
        if chosen >= 0:
            above = rounds.reward[t] - rounds.origin
            residual = (above - state[_OUTCOME, chosen]) / rounds.propensity[t]
        of_control = residual if chosen == size else 0.0
        for p in range(size):
            share = state[_WEIGHT, p] * scale[p]
            first = share * (state[_OUTCOME, p] - estimate[0, p])
            if p == chosen:
                first += share * residual
            second = share * (control - estimate[1, p]) + share * of_control
            difference = first - second
            slope = difference * (time - centre[p])
            moments[0, _SPREAD, p] += first * first
            moments[1, _SPREAD, p] += second * second
            moments[0, _PRODUCT, p] += first * second
            moments[0, _CUBES, p] += first**3
            moments[1, _CUBES, p] += second**3
            moments[0, _SLOPE, p] += slope
            moments[1, _SLOPE, p] += slope * slope
            block[row, p] = difference
        _learn(rounds, t, chosen, state)
