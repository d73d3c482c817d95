"""Adaptively weighted least squares: square roots of importance weights keep the variance of scores even.

References
----------
Zhang, Janson, Murphy (2021), "Statistical inference with M-estimators on adaptively collected data".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptinf.inference.scores.least_squares import least_squares
from adaptinf.typing import FloatArray, IntArray

__all__ = ["WeightedFit", "stabilising_weights", "weighted_least_squares"]


@dataclass(frozen=True, slots=True, eq=False)
class WeightedFit:
    """Weighted least squares.

    Attributes
    ----------
    estimate : ndarray, shape (d,)
        Coefficients.
    covariance : ndarray, shape (d, d)
        The sandwich.
    ess : float
        Effective sample size (sum W)^2 / sum W^2 of the weights.
    perfect : bool
        Whether the residuals are rounding.
    decided : int
        Number of rows that decide a coefficient alone: they leave nothing to divide by for small samples.
    """

    estimate: FloatArray
    covariance: FloatArray
    ess: float
    perfect: bool
    decided: int


def stabilising_weights(action: IntArray, propensity: FloatArray, target: FloatArray) -> FloatArray:
    """Square roots of importance weights.

    Parameters
    ----------
    action : ndarray of int64, shape (n,)
        Arm codes.
    propensity : ndarray, shape (n,)
        Propensities of the chosen arms, positive.
    target : ndarray, shape (K,)
        Probabilities of the arms under the stabilising policy, fixed in advance.

    Returns
    -------
    ndarray, shape (n,)
        sqrt(target probability / propensity).

    Examples
    --------
    >>> stabilising_weights(np.array([0, 1]), np.array([0.125, 0.5]), np.array([0.5, 0.5]))
    array([2., 1.])
    """
    return np.asarray(np.sqrt(target[action] / propensity), dtype=np.float64)


def weighted_least_squares(
    design: FloatArray,
    response: FloatArray,
    weight: FloatArray,
    names: Sequence[str] = (),
    *,
    small_samples: bool = False,
) -> WeightedFit:
    """Weighted least squares with the sandwich covariance.

    Parameters
    ----------
    design : ndarray, shape (n, d)
        Regressors of full column rank.
    response : ndarray, shape (n,)
        Rewards.
    weight : ndarray, shape (n,)
        Weights W of the squared errors, not negative.
    names : sequence of str, optional
        Names of the columns, for errors.
    small_samples : bool
        Whether residuals are divided by 1 minus the leverage of their row, as in HC3; NaN where that is 0.

    Returns
    -------
    WeightedFit

    Notes
    -----
    With G = sum W x x' and residuals e the estimate is G^-1 sum W x y, and its covariance G^-1 M G^-1 with
    M = sum W^2 e^2 x x'. If W = sqrt(target / propensity), then given the past W^2 turns the law of the
    round's actions into the target's, so that the conditional variance of a score W x (y - x'beta) is the
    same in every round whatever the propensities have become: their sum is normal in the limit.
    That needs contexts of one law, rewards whose conditional mean is x'beta for every arm and context (a
    projection will not do: which one is estimated would move with the propensities), the same conditional
    variances throughout, and propensities above a floor of the order 1 / T.

    Examples
    --------
    >>> found = weighted_least_squares(np.ones((2, 1)), np.array([1.0, 4.0]), np.array([2.0, 1.0]))
    >>> found.estimate, found.covariance.round(4), round(found.ess, 4)
    (array([2.]), array([[0.8889]]), 1.8)
    """
    root = np.sqrt(weight)
    labels = tuple(names) or tuple(map(str, range(design.shape[1])))
    solved = least_squares(root[:, None] * design, root * response, labels)
    middle = solved.middle("HC3" if small_samples else "HC0")
    return WeightedFit(
        solved.coefficient,
        solved.root @ middle @ solved.root.T,
        float(weight.sum() ** 2 / (weight @ weight)),
        solved.perfect,
        solved.decided,
    )
