"""W-decorrelation: least squares plus a correction whose weights undo the dependence on earlier rewards.

References
----------
Deshpande, Mackey, Syrgkanis, Taddy (2018), "Accurate inference for adaptive linear models".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.base import NormalReference
from adaptinf.inference.regression.data import (
    LINEAR,
    Adjustment,
    CoefficientFit,
    FitOptions,
    RegressionData,
    check_freedom,
    perfect_notes,
)
from adaptinf.inference.scores.least_squares import least_squares
from adaptinf.parameters import POSITIVE, OrNone, check
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

_NAME = "w-decorrelation"
_LARGEST_LEFT = 0.2
"""Share of the error of least squares that it may leave out of its standard errors."""
_UNEVEN, _RARE = 10.0, 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Decorrelated:
    """Decorrelated coefficients; estimate (d,), covariance (d, d), remainder (d, d)."""

    estimate: FloatArray
    covariance: FloatArray
    remainder: FloatArray
    ridge: float

    @property
    def left(self) -> float:
        """Largest share of an error of least squares that is left in the estimate, the norm of I - W X."""
        return float(np.linalg.norm(self.remainder, 2))


def decorrelated(design: FloatArray, response: FloatArray, ridge: float | None = None) -> Decorrelated:
    """Decorrelate the least-squares estimate.

    Shapes: design (T, d), response (T,).

    With least-squares coefficients b and the columns w_1, w_2, ... of W,

        w_t = (I - W_{t-1} X_{t-1}) x_t / (|x_t|^2 + lambda),    estimate = b + sum w_t (y_t - x_t'b),

    where w_t minimises |I - W_t X_t|^2 + lambda |w_t|^2 given the columns before it. The estimate's error is
    (I - W X)(b - beta), a bias that shrinks with lambda, plus sum w_t noise_t, a sum of martingale
    differences if lambda and x_t are known before the noise of round t: normal with covariance sigma^2 W W'.
    The variance of the noise, taken to be the same in all rounds, is estimated by the residuals of least
    squares over T - d. A large lambda leaves the bias of least squares under a small standard error, a small
    one gives nearly all weight to the first rounds. The time is of order T d^2. Unlike least squares, the
    estimate depends on the units of the regressors.

    The default reads the whole design matrix, and with it every action: weights made from it are, strictly,
    not known before their round. The source takes a low quantile of the smallest eigenvalue over simulated
    experiments in its place, which is fixed beforehand: `audit.decorrelation_ridge`.
    """
    check("W-decorrelation", ridge=(ridge, OrNone(POSITIVE)))
    size = design.shape[1]
    solved = least_squares(design, response, tuple(map(str, range(size))))
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
    """Turn `left` from I into I - W X, and add W W' to `spread` and W times the residuals to `step`."""
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


def default_refusal(data: RegressionData) -> tuple[str, list[str]]:
    """Why it cannot be the default, by the columns alone, and what mends that."""
    left = decorrelated(data.x, data.y).left if data.nobs > data.size else 0.0
    return ("", []) if left <= _LARGEST_LEFT else (_left_reason(data, left), _left_ways(data, None))


def _preferred(data: RegressionData, profile: LogProfile) -> str:
    if data.selector is not None or default_refusal(data)[0]:
        return ""
    return "it needs no propensities, batches or privacy guarantee"


def _left_reason(data: RegressionData, left: float) -> str:
    """Why W-decorrelation cannot be used where it leaves too much of the error of least squares."""
    told = (
        f"it would leave up to {left:.0%} of the error of least squares in the estimates, bias included, "
        "which its standard errors do not count: "
    )
    if _uneven(data):
        return f"{told}columns of very different size do that, and large ridges"
    name, rounds = _rarest(data)
    if rounds < _RARE * data.nobs:
        seen = f"here {name}, in {rounds} of {data.nobs} rounds"
        return f"{told}an arm or level that rarely comes does that, {seen}"
    return f"{told}large ridges do that, and few rounds"


def _left_ways(data: RegressionData, ridge: float | None) -> list[str]:
    """What mends that."""
    ways = ["covariates on one scale, such as scale(age) in the formula"] if _uneven(data) else []
    if not ways and _rarest(data)[1] < _RARE * data.nobs:
        ways = ["more rounds of what rarely comes", "Contrast or ArmMeans, by propensities, for arms"]
    return ways if ridge is None else [*ways, "a smaller ridge="]


def _uneven(data: RegressionData) -> bool:
    """Whether columns, where they are not 0, are of very different size."""
    count = np.count_nonzero(data.x, axis=0)
    size = np.sqrt((data.x**2).sum(axis=0) / np.maximum(count, 1))
    return bool(size.max() > _UNEVEN * size.min())


def _rarest(data: RegressionData) -> tuple[str, int]:
    """The column that is 0 in most rounds, and in how many it is not."""
    count = np.count_nonzero(data.x, axis=0)
    place = int(np.argmin(count))
    return data.names[place], int(count[place])


def _fit(data: RegressionData, profile: LogProfile, options: FitOptions) -> CoefficientFit:
    check_freedom(_NAME, data)
    ridge = options.settings.get("ridge")
    found = decorrelated(data.x, data.y, ridge)
    if found.left > _LARGEST_LEFT:
        raise InvalidForLog(_NAME, _left_reason(data, found.left), _left_ways(data, ridge))
    errors = np.sqrt(np.diag(found.covariance))
    source = (
        "its default, from the whole design matrix and so not, strictly, known before the first round"
        if ridge is None
        else "taken to be fixed before the data"
    )
    notes = [
        f"W-decorrelation: assumes {LINEAR}, and noise of one variance; needs no propensities.",
        f"Ridge {found.ridge:.4g}: {source}.",
        f"Up to {found.left:.1%} of the error of least squares is left in the estimate, bias included; the "
        "standard errors do not count that.",
    ]
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=NormalReference(found.estimate, errors),
        estimator="w-decorrelated",
        covariance=found.covariance,
        notes=(*notes, *perfect_notes(errors)),
        details={"error_left": np.linalg.norm(found.remainder, axis=1)},
        df_resid=float(data.nobs - data.size),
    )


DECORRELATION = Adjustment(_NAME, 4.0, _fit, preferred=_preferred, options=("ridge",), steady=True)
"""Takes out the bias by weights made from the columns alone."""
