"""Inverse-propensity scores of arm means, with outcome models that only look back.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed" (augmented inverse weighting). Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals
for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

import numpy as np

from adaptinf.typing import FloatArray, IntArray

__all__ = ["aipw_scores", "indicators", "ipw_scores", "running_means"]


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
