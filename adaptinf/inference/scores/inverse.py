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
    """Which rounds chose which arm.

    Parameters
    ----------
    action : ndarray of int64, shape (T,)
        Arm codes.
    codes : ndarray of int64, shape (k,)
        The arms of interest.

    Returns
    -------
    ndarray of float64, shape (T, k)
        1 where the round chose the arm, else 0.
    """
    return np.asarray(action[:, None] == codes[None, :], dtype=np.float64)


def running_means(chosen: FloatArray, reward: FloatArray) -> FloatArray:
    """Mean reward of every arm over the rounds before each round; 0 before an arm's first one.

    Parameters
    ----------
    chosen : ndarray, shape (T, k)
        Indicators of the arms.
    reward : ndarray, shape (T,)
        Rewards.

    Returns
    -------
    ndarray, shape (T, k)
        Row t uses the rewards of earlier rounds only.

    Examples
    --------
    >>> chosen = np.array([[1.0], [0.0], [1.0], [1.0]])
    >>> running_means(chosen, np.array([0.4, 9.0, 0.8, 0.1])).ravel().round(3)
    array([0. , 0.4, 0.4, 0.6])
    """
    sums, counts = np.zeros(chosen.shape), np.zeros(chosen.shape)
    np.cumsum(chosen[:-1] * reward[:-1, None], axis=0, out=sums[1:])
    np.cumsum(chosen[:-1], axis=0, out=counts[1:])
    return np.asarray(sums / np.maximum(counts, 1.0), dtype=np.float64)


def ipw_scores(chosen: FloatArray, reward: FloatArray, propensity: FloatArray) -> FloatArray:
    """Inverse-propensity scores: the reward over the propensity where the arm was chosen, else 0.

    Parameters
    ----------
    chosen : ndarray, shape (T, k)
        Indicators of the arms.
    reward, propensity : ndarray, shape (T,)
        Rewards, and propensities of the chosen arms.

    Returns
    -------
    ndarray, shape (T, k)
        Scores; each has the arm's mean as its expectation given the past.
    """
    return np.asarray(chosen * (reward / propensity)[:, None], dtype=np.float64)


def aipw_scores(
    chosen: FloatArray, reward: FloatArray, propensity: FloatArray, outcome: FloatArray
) -> FloatArray:
    """Augmented inverse-propensity scores.

    Parameters
    ----------
    chosen : ndarray, shape (T, k)
        Indicators of the arms.
    reward, propensity : ndarray, shape (T,)
        Rewards, and propensities of the chosen arms.
    outcome : ndarray, shape (T, k)
        Predicted rewards; row t may depend on earlier rounds (and this round's context) only.

    Returns
    -------
    ndarray, shape (T, k)
        Scores; each has the arm's mean as its expectation given the past, whatever the predictions.
    """
    residual = (reward[:, None] - outcome) / propensity[:, None]
    return np.asarray(outcome + chosen * residual, dtype=np.float64)
