"""Scores with the same conditional mean in every round, and with bounds known before the round.

A confidence sequence for a mean, a contrast or a policy value is a sequence for the mean of such scores, on a
scale where the mean of the scores lies in [0, 1].

References
----------
Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro (2024), "Anytime-valid off-policy inference for contextual
bandits" (inverse-propensity scores need no bound on the weights).
"""

from __future__ import annotations

import numpy as np

from adaptinf.inference.scores.inverse import indicators, running_means
from adaptinf.inference.sequences.sequence_records import Scores, Weights
from adaptinf.typing import FloatArray, IntArray


def arm_scores(action: IntArray, reward: FloatArray, code: int, mirror: float) -> Scores:
    """The rewards of one arm in the order of its pulls, as scores; action (T,), reward (T,)."""
    pulled = action == code
    own = reward[pulled]
    floor = np.zeros(len(own)) if mirror == 1.0 else None
    return Scores(own, mirror - own, floor, floor, np.cumsum(pulled, dtype=np.int64))


def inverse_scores(action: IntArray, reward: FloatArray, propensity: FloatArray, weights: Weights) -> Scores:
    """Inverse-propensity scores of rewards in [0, 1]; each side uses nonnegative scores.

    Shapes: action (T,), reward, propensity (T,).
    """
    ratio = weights.ratios(action, propensity)
    size = np.abs(ratio) / (weights.negative + weights.positive)
    success = np.where(ratio >= 0.0, reward, 1.0 - reward)
    zeros = np.zeros(len(action))
    return Scores(size * success, size * (1.0 - success), zeros, zeros, np.arange(1, len(action) + 1))


def augmented_scores(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    weights: Weights,
    outcome: FloatArray,
    bounded: bool,
) -> FloatArray:
    """Augmented inverse-propensity scores for a quantity.

    Shapes: action (T,), reward, propensity (T,), outcome (T, K); returns (T,).
    """
    ratio = weights.ratios(action, propensity)
    direct = np.einsum("tk,tk->t", weights.arms, outcome)
    score = direct + ratio * (reward - outcome[np.arange(len(action)), action])
    if not bounded:
        return np.asarray(score, dtype=np.float64)
    return np.asarray((score + weights.negative) / (weights.negative + weights.positive), dtype=np.float64)


def running_outcomes(action: IntArray, reward: FloatArray, n_arms: int) -> FloatArray:
    """Running means of all arms before each round, shape (T, K); 0 before an arm's first reward."""
    return running_means(indicators(action, np.arange(n_arms, dtype=np.int64)), reward)


def score_floors(
    weights: Weights, outcome: FloatArray, smallest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds on augmented scores that are known before each round.

    Shapes: outcome (T, K), smallest (T, K); returns lower, upper (T,). Scores are linear in the weights, so
    for a policy that may depend on the context, the bounds are those for the worst single arm.
    """
    if weights.by_context:
        low = np.min(outcome - outcome / smallest, axis=1)
        high = np.max(outcome + (1.0 - outcome) / smallest, axis=1)
    else:
        used = np.any(weights.arms != 0.0, axis=0)
        share, model, least = weights.arms[:, used], outcome[:, used], smallest[:, used]
        up, down = np.maximum(share, 0.0), np.maximum(-share, 0.0)
        direct = np.einsum("tk,tk->t", share, model)
        low = direct - np.max((up * model + down * (1.0 - model)) / least, axis=1)
        high = direct + np.max((up * (1.0 - model) + down * model) / least, axis=1)
    span = weights.negative + weights.positive
    lower = np.minimum((low + weights.negative) / span, 0.0)
    return lower, np.minimum(1.0 - (high + weights.negative) / span, 0.0)
