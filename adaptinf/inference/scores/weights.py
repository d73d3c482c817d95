"""Weights that stabilise the variance of inverse-propensity scores.

All weights of a round are known before its arm is drawn, given the propensities.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (constant allocation, and two-point allocation).
"""

from __future__ import annotations

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray

__all__ = ["sqrt_weights", "two_point_shares", "two_point_weights", "uniform_weights"]


def uniform_weights(n_rounds: int, n_arms: int) -> FloatArray:
    """Weights of one for every score.

    Parameters
    ----------
    n_rounds, n_arms : int
        Shape.

    Returns
    -------
    ndarray, shape (T, k)
        Ones.
    """
    return np.ones((n_rounds, n_arms))


def sqrt_weights(propensities: FloatArray) -> FloatArray:
    """Constant-allocation weights: square roots of the propensities.

    Parameters
    ----------
    propensities : ndarray, shape (T, k)
        Propensities of the arms of interest, chosen or not.

    Returns
    -------
    ndarray, shape (T, k)
        Every weighted score then has about the same variance.
    """
    return np.asarray(np.sqrt(propensities), dtype=np.float64)


def two_point_weights(propensities: FloatArray, decay: float) -> FloatArray:
    """Two-point allocation weights.

    Parameters
    ----------
    propensities : ndarray, shape (T, k)
        Propensities of the arms of interest, chosen or not.
    decay : float
        Exponent a in [0, 1) of the propensity floor, which falls like t^-a; fixed in advance.

    Returns
    -------
    ndarray, shape (T, k)
        Square roots of the share of the remaining variance budget times the propensity.

    Raises
    ------
    ParameterError
        If decay is not in [0, 1).

    Notes
    -----
    The share interpolates between the two futures that an arm may have: to be drawn always (probability e of
    it), or only as often as the floor demands (probability 1 - e).

    Examples
    --------
    >>> two_point_weights(np.array([[0.5], [0.5]]), decay=0.5).ravel().round(4)
    array([0.5116, 0.4881])
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

    Parameters
    ----------
    n_rounds : int
        Horizon T.
    decay : float
        Exponent a in [0, 1) of the propensity floor.

    Returns
    -------
    floored, always : ndarray, shape (T,)
        The share of round t if the arm will be drawn as often as the floor demands, and if always.

    Raises
    ------
    ParameterError
        If decay is not in [0, 1).

    Examples
    --------
    >>> floored, always = two_point_shares(2, decay=0.5)
    >>> floored.round(4), always
    (array([0.5469, 1.    ]), array([0.5, 1. ]))
    """
    if not 0.0 <= decay < 1.0:
        raise ParameterError("two-point weights", [f"decay must be in [0, 1), got {decay!r}"])
    t = np.arange(1.0, n_rounds + 1.0)
    floored = (1.0 - decay) / ((1.0 - decay) + n_rounds * (t / n_rounds) ** decay - t)
    return floored, 1.0 / (1.0 + n_rounds - t)
