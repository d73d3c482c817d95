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
    """Weighted least squares; estimate (d,), covariance (d, d)."""

    estimate: FloatArray
    covariance: FloatArray
    ess: float
    perfect: bool
    decided: int


def stabilising_weights(action: IntArray, propensity: FloatArray, target: FloatArray) -> FloatArray:
    """Square roots of importance weights; action (n,), propensity (n,), target (K,); returns (n,)."""
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

    Shapes: design (n, d), response (n,), weight (n,).

    Notes
    -----
    With G = sum W x x' and residuals e the estimate is G^-1 sum W x y, and its covariance G^-1 M G^-1 with
    M = sum W^2 e^2 x x'. If W = sqrt(target / propensity), then given the past W^2 turns the law of the
    round's actions into the target's, so that the conditional variance of a score W x (y - x'beta) is the
    same in every round whatever the propensities have become: their sum is normal in the limit.
    That needs contexts of one law, rewards whose conditional mean is x'beta for every arm and context (a
    projection will not do: which one is estimated would move with the propensities), the same conditional
    variances throughout, and propensities above a floor of the order 1 / T.
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
