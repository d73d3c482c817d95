"""Inverse-propensity scores of arm means, with outcome models that only look back, and their weights.

All weights of a round are known before its arm is drawn, given the propensities: they stabilise the variance.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed" (augmented inverse weighting). Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals
for policy evaluation in adaptive experiments" (constant allocation, and two-point allocation).
"""

from __future__ import annotations

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray, IntArray


def indicators(action: IntArray, codes: IntArray) -> FloatArray:
    """Which rounds chose which arm; action (T,), codes (k,); returns (T, k)."""
    return np.asarray(action[:, None] == codes[None, :], dtype=np.float64)


def running_means(chosen: FloatArray, reward: FloatArray) -> FloatArray:
    """Mean reward of every arm over the rounds before each round; 0 before an arm's first one.

    Shapes: chosen (T, k), reward (T,); returns (T, k).
    """
    sums, counts = np.zeros(chosen.shape), np.zeros(chosen.shape)
    np.cumsum(chosen[:-1] * reward[:-1, None], axis=0, out=sums[1:])
    np.cumsum(chosen[:-1], axis=0, out=counts[1:])
    return np.asarray(sums / np.maximum(counts, 1.0), dtype=np.float64)


def ipw_scores(chosen: FloatArray, reward: FloatArray, propensity: FloatArray) -> FloatArray:
    """Inverse-propensity scores: the reward over the propensity where the arm was chosen, else 0.

    Shapes: chosen (T, k), reward, propensity (T,); returns (T, k).
    """
    return np.asarray(chosen * (reward / propensity)[:, None], dtype=np.float64)


def aipw_scores(
    chosen: FloatArray, reward: FloatArray, propensity: FloatArray, outcome: FloatArray
) -> FloatArray:
    """Augmented inverse-propensity scores.

    Shapes: chosen (T, k), reward, propensity (T,), outcome (T, k); returns (T, k).
    """
    residual = (reward[:, None] - outcome) / propensity[:, None]
    return np.asarray(outcome + chosen * residual, dtype=np.float64)


def arm_scores(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    *,
    weights: str = "uniform",
    decay: float | None = None,
    outcome: FloatArray | str | None = "running-mean",
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Choices of arms, their scores (IPW where `outcome` is None) and the weights of these.

    Shapes: action (T,), reward, propensity (T,), propensities (T, K), codes (k,), outcome (T, k); returns
    (T, k) each.
    """
    chosen = indicators(action, codes)
    if outcome is None:
        scores = ipw_scores(chosen, reward, propensity)
    else:
        predicted = running_means(chosen, reward) if isinstance(outcome, str) else outcome
        scores = aipw_scores(chosen, reward, propensity, predicted)
    if propensities is None or weights == "uniform":
        return chosen, scores, uniform_weights(*chosen.shape)
    every = propensities[:, codes]
    return chosen, scores, sqrt_weights(every) if decay is None else two_point_weights(every, decay)


def uniform_weights(n_rounds: int, n_arms: int) -> FloatArray:
    """Weights of one for every score; returns (T, k)."""
    return np.ones((n_rounds, n_arms))


def sqrt_weights(propensities: FloatArray) -> FloatArray:
    """Constant-allocation weights: square roots of the propensities; propensities (T, k); returns (T, k)."""
    return np.asarray(np.sqrt(propensities), dtype=np.float64)


def two_point_weights(propensities: FloatArray, decay: float) -> FloatArray:
    """Two-point allocation weights.

    Shapes: propensities (T, k); returns (T, k).

    The share interpolates between the two futures that an arm may have: to be drawn always (probability e of
    it), or only as often as the floor demands (probability 1 - e).
    """
    floored, always = two_point_shares(len(propensities), decay)
    share = (1.0 - propensities) * floored[:, None] + propensities * always[:, None]
    share = np.clip(share, 0.0, 1.0)
    # What is left of the budget is the product of the shares that earlier rounds left: no cancellation.
    left = np.ones(share.shape)
    np.cumprod(1.0 - share[:-1], axis=0, out=left[1:])
    return np.asarray(np.sqrt(share * left * propensities), dtype=np.float64)


def two_point_shares(n_rounds: int, decay: float) -> tuple[FloatArray, FloatArray]:
    """Shares of the remaining variance budget in the two futures of two-point allocation.

    Returns shape floored, always (T,).
    """
    if not 0.0 <= decay < 1.0:
        raise ParameterError("two-point weights", [f"decay must be in [0, 1), got {decay!r}"])
    t = np.arange(1.0, n_rounds + 1.0)
    floored = (1.0 - decay) / ((1.0 - decay) + n_rounds * (t / n_rounds) ** decay - t)
    return floored, 1.0 / (1.0 + n_rounds - t)
