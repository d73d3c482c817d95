"""Weighted AIPW scores of two arms within groups, summed in two compiled passes over all rounds."""

from __future__ import annotations

from typing import NamedTuple

from adaptinf.compilation import compiled, kernel
from adaptinf.typing import FloatArray, IntArray

STATE = 6
_COUNT, _SUM, _PREDICTED, _SEEN, _TOTAL, _WEIGHT = range(STATE)
SUMS = 9
COUNT, USED, WEIGHTS, SCORES, LOWEST, GAINS, GAIN_SQUARES, GAIN_CUBES, GAIN_FOURTHS = range(SUMS)
MOMENTS = 4
SQUARES, CUBES, PRODUCT, CHANGE = range(MOMENTS)


class GroupRounds(NamedTuple):
    """Rounds by group; empty arrays stand for missing inputs.

    Shapes: group, treated, reward, propensity (T,), propensities (T, 2), weights (T, 2). `treated` is 1 for
    the treatment, 0 for the control and -1 otherwise, and `propensity` is that of the chosen arm. In
    `propensities` and `weights`, the control comes first. Weights of shape (T, 1) are shared by both arms;
    shape (0, 0) stands for weights of 1.
    """

    group: IntArray
    treated: IntArray
    reward: FloatArray
    propensity: FloatArray
    propensities: FloatArray
    weights: FloatArray


@kernel
def _enter(rounds: GroupRounds, t: int, every: float, state: FloatArray) -> None:
    """Prepare a round's group: predictions and weights of both arms; state has shape (STATE, G, 2).

    `every` is the sum of all earlier rewards.
    """
    g, own = rounds.group[t], rounds.weights.shape[1] - 1
    for arm in range(2):
        if state[_COUNT, g, arm] > 0.0:
            predicted = state[_SUM, g, arm] / state[_COUNT, g, arm]
        elif state[_SEEN, g, 0] > 0.0:
            predicted = state[_TOTAL, g, 0] / state[_SEEN, g, 0]
        else:
            predicted = every / t if t > 0 else 0.0
        state[_PREDICTED, g, arm] = predicted
        weight = rounds.weights[t, min(arm, own)] if own >= 0 else 1.0
        state[_WEIGHT, g, arm] = weight if t > 0 else 0.0  # nothing is known in the first round


@kernel
def _learn(rounds: GroupRounds, t: int, state: FloatArray) -> None:
    """Add the round's reward to the sums of its group, and of its arm within the group."""
    g, arm = rounds.group[t], rounds.treated[t]
    state[_SEEN, g, 0] += 1.0
    state[_TOTAL, g, 0] += rounds.reward[t]
    if arm >= 0:
        state[_COUNT, g, arm] += 1.0
        state[_SUM, g, arm] += rounds.reward[t]


@kernel
def _propensity(rounds: GroupRounds, t: int, arm: int) -> float:
    """An arm's own propensity, if it is known."""
    e: float = rounds.propensities[t, arm] if rounds.propensities.shape[0] > 0 else rounds.propensity[t]
    return e


@compiled
def add_groups(rounds: GroupRounds, state: FloatArray, sums: FloatArray) -> None:
    """First pass; state (STATE, G, 2), sums (SUMS, G, 2), initially 0 except for smallest propensities."""
    every = 0.0
    for t in range(rounds.group.shape[0]):
        g, chosen = rounds.group[t], rounds.treated[t]
        _enter(rounds, t, every, state)
        for arm in range(2):
            e, weight = _propensity(rounds, t, arm), state[_WEIGHT, g, arm]
            sums[LOWEST, g, arm] = min(sums[LOWEST, g, arm], e)
            sums[WEIGHTS, g, arm] += weight
            sums[SCORES, g, arm] += weight * state[_PREDICTED, g, arm]
            if arm == chosen:
                gain = weight / e
                sums[SCORES, g, arm] += gain * (rounds.reward[t] - state[_PREDICTED, g, arm])
                sums[COUNT, g, arm] += 1.0
                if gain != 0.0:
                    sums[USED, g, arm] += 1.0
                sums[GAINS, g, arm] += gain
                sums[GAIN_SQUARES, g, arm] += gain**2
                sums[GAIN_CUBES, g, arm] += gain**3
                sums[GAIN_FOURTHS, g, arm] += gain**4
        _learn(rounds, t, state)
        every += rounds.reward[t]


@compiled
def add_errors(
    rounds: GroupRounds, means: FloatArray, totals: FloatArray, state: FloatArray, moments: FloatArray
) -> None:
    """Second pass, for the contributions of rounds to the errors of both means and of their difference.

    Shapes: means, totals (G, 2), state (STATE, G, 2), moments (MOMENTS, G, 2). The last two are initially
    zero.
    """
    every = 0.0
    for t in range(rounds.group.shape[0]):
        g, chosen = rounds.group[t], rounds.treated[t]
        _enter(rounds, t, every, state)
        for arm in range(2):
            weight, predicted = state[_WEIGHT, g, arm], state[_PREDICTED, g, arm]
            score = weight * predicted
            if arm == chosen:
                score += weight / _propensity(rounds, t, arm) * (rounds.reward[t] - predicted)
            part = (score - means[g, arm] * weight) / totals[g, arm]
            state[_PREDICTED, g, arm] = part
            moments[SQUARES, g, arm] += part * part
            moments[CUBES, g, arm] += part * part * part
        change = state[_PREDICTED, g, 1] - state[_PREDICTED, g, 0]
        moments[PRODUCT, g, 0] += state[_PREDICTED, g, 1] * state[_PREDICTED, g, 0]
        moments[CHANGE, g, 0] += change * change
        _learn(rounds, t, state)
        every += rounds.reward[t]
