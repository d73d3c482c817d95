"""W-decorrelation: a correction of least squares by weights that remove the dependence on earlier rewards.

References
----------
Deshpande, Mackey, Syrgkanis, Taddy (2018), "Accurate inference for adaptive linear models".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.inference.regression.least_squares import least_squares
from adaptinf.parameters import POSITIVE, OrNone, check
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Decorrelated:
    """Decorrelated coefficients; estimate (d,), covariance (d, d), remainder (d, d)."""

    estimate: FloatArray
    covariance: FloatArray
    remainder: FloatArray
    ridge: float

    @property
    def left(self) -> float:
        """Largest share of the least-squares error that remains in the estimate: the norm of I - W X."""
        return float(np.linalg.norm(self.remainder, 2))


def decorrelated(design: FloatArray, response: FloatArray, ridge: float | None = None) -> Decorrelated:
    """Decorrelate the least-squares estimate.

    Shapes: design (T, d), response (T,).

    Let b be the least-squares coefficients, and w_1, w_2, ... the columns of W. The estimate is

        b + sum w_t (y_t - x_t'b), where w_t = (I - W_{t-1} X_{t-1}) x_t / (x_t'x_t + lambda).

    Given the columns before it, w_t minimises the squared norm of I - W_t X_t plus lambda times that of w_t.
    The error of the estimate has two parts. The first is (I - W X)(b - beta), a bias that decreases with
    lambda. The second is sum w_t noise_t, a sum of martingale differences if lambda and x_t are known before
    the noise of round t; it is normal with covariance sigma^2 W W'. The variance of the noise, assumed to be
    constant, is estimated by the sum of squared residuals of least squares divided by T - d. If lambda is
    large, the bias of least squares remains and standard errors are small; if lambda is small, nearly all
    weight is on the first rounds. Computing time is of order T d^2. Unlike least squares, the estimate
    depends on the units of the regressors.

    The default lambda uses the whole design matrix, and therefore every action, so that, strictly speaking,
    weights are not known before their round. The source instead uses a low quantile of the smallest
    eigenvalue over simulated experiments, which is fixed in advance: see `audit.decorrelation_ridge`.
    """
    check("W-decorrelation", ridge=(ridge, OrNone(POSITIVE)))
    size = design.shape[1]
    solved = least_squares(design, response, tuple(map(str, range(size))))
    # Since root root' = (X'X)^-1, the squared norm of root is one over the smallest eigenvalue of X'X.
    smallest = float(np.linalg.norm(solved.root, 2)) ** -2
    amount = smallest / math.log(len(design)) if ridge is None else float(ridge)
    left, spread, step = np.eye(size), np.zeros((size, size)), np.zeros(size)
    _decorrelate(np.ascontiguousarray(design), solved.residual, amount, np.zeros(size), left, spread, step)
    variance = solved.rss / (len(design) - size)
    return Decorrelated(solved.coefficient + step, variance * spread, left, amount)


@compiled
def _decorrelate(
    design: FloatArray,
    residual: FloatArray,
    ridge: float,
    weight: FloatArray,
    left: FloatArray,
    spread: FloatArray,
    step: FloatArray,
) -> None:
    """Update `left` from I to I - W X, and add W W' to `spread` and W times the residuals to `step`."""
    size = design.shape[1]
    for t in range(design.shape[0]):
        scale = ridge
        for a in range(size):
            scale += design[t, a] * design[t, a]
        for a in range(size):
            value = 0.0
            for b in range(size):
                value += left[a, b] * design[t, b]
            weight[a] = value / scale
        for a in range(size):
            step[a] += weight[a] * residual[t]
            for b in range(size):
                left[a, b] -= weight[a] * design[t, b]
                spread[a, b] += weight[a] * weight[b]
