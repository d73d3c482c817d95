"""Weighted least squares of effect scores on covariates, with the sandwich covariance of a martingale.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (weights that are known before the arm is drawn). Semenova, Chernozhukov (2021), "Debiased
machine learning of conditional average treatment effects and other causal functions" (projections of effect
scores). White (1980), "A heteroskedasticity-consistent covariance matrix estimator and a direct test for
heteroskedasticity". MacKinnon, White (1985), "Some heteroskedasticity-consistent covariance matrix estimators
with improved finite sample properties".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from adaptinf.errors import ParameterError
from adaptinf.inference.regression.least_squares import FULL_LEVERAGE
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.scores.unit_errors import effective_units, unit_covariance
from adaptinf.typing import BoolArray, FloatArray, IntArray

# Columns are scaled to length 1, so a smaller pivot is the rounding error of a linearly dependent column.
_DEPENDENT = 1e-10
# Centring leaves only rounding error in a column if less than this share of it remains.
_CONSTANT = 1e-12
# This many numbers in the leverages of some predictions take 32 MB as doubles.
_CELLS = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Coefficients of a weighted projection.

    Shapes: coefficient (p,), covariance (p, p), influence (n, p), center, df (p,), leverage, pull (n, p),
    gain (n, 2).

    `df` contains the degrees of freedom of the coefficients' standard errors. One unit of weighted residual
    adds `leverage` to the centered coefficients, and `pull` to the original ones. `gain` is the weight of
    each arm's reward in the score. If errors are clustered by unit, a prediction has at most `most_df`
    degrees of freedom.
    """

    coefficient: FloatArray
    covariance: FloatArray
    influence: FloatArray
    center: FloatArray
    centered_coefficient: FloatArray
    centered_covariance: FloatArray
    df: FloatArray
    leverage: FloatArray
    pull: FloatArray
    gain: FloatArray
    most_df: float = math.inf

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fitted values with standard errors and degrees of freedom, shapes (m,); rows (m, p)."""
        centered = rows - self.center
        variance = np.einsum("ij,jk,ik->i", centered, self.centered_covariance, centered)
        df, block = np.empty(len(rows)), max(1, _CELLS // max(len(self.gain), 1))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            df[part] = freedom(self.leverage @ centered[part].T, self.gain)
        error = np.sqrt(np.maximum(variance, 0.0))
        return centered @ self.centered_coefficient, error, np.minimum(df, self.most_df)


def freedom(leverage: FloatArray, gain: FloatArray) -> FloatArray:
    """Degrees of freedom of sums of squared residuals: the smaller value of the two arms.

    Shapes: leverage (n, p), gain (n, 2); returns (p,).

    The variance is a sum over rounds of (a h)^2 times a squared residual. If an arm's rewards are normal with
    a common variance, the part of its rounds has the mean and the variance of chi-squared with (sum w)^2 /
    sum w^2 degrees of freedom, where w = (a h / e)^2 (Satterthwaite 1946). From this, 1 is subtracted for the
    arm's mean. For the indicator of a group, the result is that of the group itself.
    """
    sizes = [effective_size(np.square(leverage * one[:, None])) for one in gain.T]
    return np.maximum(np.minimum(*sizes) - 1.0, 0.0)


def weighted_projection(
    covariates: FloatArray,
    score: FloatArray,
    weight: FloatArray,
    names: Sequence[str],
    covariance: str = "HC0",
    gain: FloatArray | None = None,
    unit: IntArray | None = None,
) -> Projection:
    """Weighted least-squares regression of scores on covariates.

    Shapes: covariates (n, p), score (n,), weight (n,), gain (n, 2), unit (n,). `gain` is h / e for the chosen
    arm and 0 for the other; `unit` is given if errors are clustered by unit.

    Let x be the rows, h the weights and u the residuals. The coefficients b solve sum h x (score - x'b) = 0.
    Their covariance is B^-1 (sum h^2 u^2 x x') B^-1, where B = sum h x x'. HC2 and HC3 are undefined if a row
    has leverage 1, for example if a column varies only in this row, because the residual of the row is then 0
    for any score. If a column is constant, the others are centered, and the system is solved by QR of the
    weighted columns.
    """
    center, back = _centering(covariates)
    centered = covariates - center
    size = _sizes(centered, covariates)
    root = np.sqrt(weight)
    _check_rank(centered / size, names)
    q, r = linalg.qr(root[:, None] * (centered / size), mode="economic")
    solved = linalg.solve_triangular(r, q.T @ (root * score)) / size
    residual = score - centered @ solved
    if covariance in ("HC2", "HC3"):
        left = 1.0 - np.einsum("tj,tj->t", q, q)
        left = np.where(left > FULL_LEVERAGE, left, np.nan)
        residual = residual / (np.sqrt(left) if covariance == "HC2" else left)
    leverage = linalg.solve_triangular(r, q.T, check_finite=False).T / size
    influence = leverage * (root * residual)[:, None]
    # `leverage` already contains one square root of the weight h of a score, and the gain contains the other
    # one times 1 / e.
    arms = np.column_stack([weight, weight]) if gain is None else gain
    arms = np.divide(arms, root[:, None], out=np.zeros(arms.shape), where=root[:, None] > 0.0)
    if covariance == "HC1":
        n, p = covariates.shape
        influence = influence * np.sqrt(n / (n - p)) if n > p else influence * np.nan
    original, pull = influence @ back.T, leverage @ back.T
    df, most = freedom(pull, arms), math.inf
    if unit is not None:
        df = np.minimum(df, unit_freedom(pull * root[:, None], arms, unit))
        most = float(df.min())
    return Projection(
        coefficient=back @ solved,
        covariance=_covariance(original, unit),
        influence=original,
        center=center,
        centered_coefficient=solved,
        centered_covariance=_covariance(influence, unit),
        df=df,
        leverage=leverage,
        pull=pull,
        gain=arms,
        most_df=most,
    )


def unit_freedom(share: FloatArray, gain: FloatArray, unit: IntArray) -> FloatArray:
    """Degrees of freedom for errors by unit, from the arm with fewer effective units.

    Shapes: share (n, p), the amount that a score adds to each coefficient; gain (n, 2); unit (n,); returns
    (p,).
    """
    weights = np.abs(share)
    sizes = [effective_units(weights, (weights > 0.0) * (one[:, None] > 0.0), unit) for one in gain.T]
    return np.maximum(np.minimum(*sizes) - 1.0, 0.0)


def _covariance(influence: FloatArray, unit: IntArray | None) -> FloatArray:
    """Covariance of coefficients, by round or by unit; influence (n, p), unit (n,); returns (p, p)."""
    return influence.T @ influence if unit is None else unit_covariance(influence, unit)


def _centering(covariates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The means to subtract, and the matrix that maps centred coefficients to the original ones."""
    size = covariates.shape[1]
    center, back = np.zeros(size), np.eye(size)
    constant: BoolArray = (covariates == covariates[0]).all(axis=0) & (covariates[0] != 0.0)
    if not constant.any():
        return center, back
    base = int(np.argmax(constant))
    others = np.arange(size) != base
    shifted = covariates[0] + (covariates - covariates[0]).mean(axis=0)
    center[others] = shifted[others]
    back[base, others] = -center[others] / covariates[0, base]
    return center, back


def check_columns(covariates: FloatArray, names: Sequence[str]) -> None:
    """Refuse columns that are linear combinations of others; covariates (n, p)."""
    centered = covariates - _centering(covariates)[0]
    _check_rank(centered / _sizes(centered, covariates), names)


def _sizes(centered: FloatArray, covariates: FloatArray) -> FloatArray:
    """Norms of the centred columns, or of the columns themselves if these are constant; shape (p,)."""
    size, own = np.linalg.norm(centered, axis=0), np.linalg.norm(covariates, axis=0)
    return np.where(size > _CONSTANT * own, size, np.where(own > 0.0, own, 1.0))


def _check_rank(scaled: FloatArray, names: Sequence[str]) -> None:
    n, p = scaled.shape
    if p == 0:
        raise ParameterError("projection", ["the formula has no columns"])
    r = np.linalg.qr(scaled, mode="r")
    _, triangle, order = linalg.qr(r, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int(np.sum(diagonal > _DEPENDENT))
    if rank < p:
        named = ", ".join(names[i] for i in sorted(order[rank:]))
        problem = f"the columns {named} cannot be distinguished from the others: "
        problem += (
            f"there are {n} rounds for {p} columns" if n < p else "they are linear combinations of others"
        )
        raise ParameterError("projection", [problem])
