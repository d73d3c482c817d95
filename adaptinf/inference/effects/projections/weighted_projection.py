"""Weighted least squares of effect scores on covariates, with the sandwich of a martingale.

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
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.shape import part_shapes
from adaptinf.inference.inputs.rounds import turns
from adaptinf.inference.scores.inverse import (
    Fixed,
    combined_stays,
    lagged_combined_weights,
    two_point_weights,
)
from adaptinf.inference.scores.least_squares import FULL_LEVERAGE
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.scores.units import effective_units, unit_covariance, unit_rows
from adaptinf.inference.validity.lengths import student_length
from adaptinf.inference.validity.rare import PartsLaw, law_of_parts
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.projections.projected_scores import ProjectionQuestion
    from adaptinf.inference.effects.rounds import Past
    from adaptinf.inference.validity.verdicts import Verdict

COVARIANCES = ("HC0", "HC1", "HC2", "HC3")
_DEPENDENT = 1e-10
_CONSTANT = 1e-12
_CELLS = 4_000_000
_PARTS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Coefficients of a weighted projection.

    Shapes: coefficient (p,), covariance (p, p), influence (n, p), center, df (p,), leverage, pull (n, p),
    gain (n, 2).

    `df` are the degrees of freedom of the coefficients' standard errors, `leverage` what a unit of weighted
    residual adds to the centered coefficients, `pull` to the others, and `gain` the weight of each arm's
    reward in the score. With errors by unit a prediction has `most_df` at most.
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
        """Fitted values, their standard errors and degrees of freedom; rows (m, p); returns (m,) each."""
        centered = rows - self.center
        variance = np.einsum("ij,jk,ik->i", centered, self.centered_covariance, centered)
        df, block = np.empty(len(rows)), max(1, _CELLS // max(len(self.gain), 1))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            df[part] = freedom(self.leverage @ centered[part].T, self.gain)
        error = np.sqrt(np.maximum(variance, 0.0))
        return centered @ self.centered_coefficient, error, np.minimum(df, self.most_df)


def freedom(leverage: FloatArray, gain: FloatArray) -> FloatArray:
    """Degrees of freedom of sums of squared residuals, by the arm that has fewer.

    Shapes: leverage (n, p), gain (n, 2); returns (p,).

    In the sum over rounds of (a h)^2 times a squared residual, the part of the rounds that chose an arm has
    the mean and variance of chi-squared with (sum w)^2 / sum w^2 degrees of freedom, w = (a h / e)^2, where
    that arm's rewards are normal with one variance (Satterthwaite 1946); its mean takes 1. For an indicator
    of a group this is the group's own.
    """
    sizes = [effective_size(np.square(leverage * one[:, None])) for one in gain.T]
    return np.maximum(np.minimum(*sizes) - 1.0, 0.0)


def projection_law(
    fit: Projection,
    std_error: FloatArray,
    reward: FloatArray,
    skewness: float | None,
    names: Sequence[str],
) -> PartsLaw:
    """Student's t, or with skewed rewards MOVER over the parts of each coefficient.

    Shapes: std_error (p,), reward (n,).

    A coefficient is a sum over rounds. Its parts are the rounds of either arm that raise it with their score,
    those of either arm that lower it, and those of other arms: for an indicator the rounds of its group, by
    arm. Each has a variance and a skewness, by the influences of its rounds, and Hall's interval. A part with
    too few outcomes other than its commonest leaves its coefficient without a standard error. `skewness` is
    the squared one of all rewards, None where rounds depend on each other: then it is Student's t.
    """
    if skewness is None:
        return PartsLaw.student(fit.coefficient, std_error, fit.covariance, fit.df)
    arm = np.where(fit.gain[:, 1] > 0.0, 1, np.where(fit.gain[:, 0] > 0.0, 0, 2))[:, None]
    part = np.where(arm < 2, 2 * arm + (fit.pull > 0.0), _PARTS - 1)
    weight = np.abs(fit.pull) * fit.gain.max(axis=1, keepdims=True)
    shapes = part_shapes(part, fit.influence, weight, reward, _PARTS, skewness)
    return law_of_parts(names, shapes, fit.coefficient, std_error, fit.covariance, fit.df)


def contrast_weights(propensities: FloatArray, weights: str, decay: float | None = None) -> FloatArray:
    """Weights of effect scores that are known before the arm is drawn.

    Shapes: propensities (T, 2); returns (T,).

    With rewards of variance s^2 the score has variance s^2 (1/e1 + 1/e0). ``"combined"`` weights,
    h = (1/e1 + 1/e0)^(-1/2), give every weighted score the same variance. ``"two-point"`` are Hadad and
    others' for an arm of propensity q = 4 / (1/e1 + 1/e0), which is 1 where both arms are drawn by a fair
    coin and otherwise at most 4 times the rarer arm's propensity: either the arms stay balanced (q = 1
    always), or one of them falls to its floor.
    """
    total = propensities.sum(axis=1)
    product = propensities[:, 0] * propensities[:, 1]
    balance = np.where(product > 0.0, product / np.where(total > 0.0, total, 1.0), 0.0)
    if weights == "uniform":
        return np.asarray(balance > 0.0, dtype=np.float64)
    if weights == "combined":
        return np.sqrt(balance)
    if decay is None:
        raise ParameterError("two-point weights", ["decay must be in [0, 1), got None"])
    return two_point_weights(np.minimum(4.0 * balance, 1.0)[:, None], decay)[:, 0]


def combined_weights(
    propensities: FloatArray, past: Past, *, movers: bool
) -> tuple[FloatArray, Fixed] | None:
    """Combined weights that are fixed before the round's context is seen, and by whose propensities.

    Shapes: propensities (n, 2), both positive; returns (n,). None where there are none.

    Within a cell (a group, or a combination of contexts) a round's own propensities serve where no other
    context is known to have a part, or the weights are seen to stay. Else a weight that follows the round's
    own context, which the log may lack, gives contexts other shares than they have: the mean of 1/e1 + 1/e0
    over the cell's previous batch serves, without batches over its previous round, which the past alone
    decides; at first a cell has weight 1. Without batches there are none where contexts of the log may move
    propensities within a cell (`movers`).
    """
    batch = past.batch
    if past.free or combined_stays(propensities, past.cell, batch):
        return contrast_weights(propensities, "combined"), "round"
    if batch is None and movers:
        return None
    if batch is None or len(np.unique(batch)) == len(batch):
        fixed: Fixed = "round before" if batch is None else "batch"
        return lagged_combined_weights(propensities, turns(past.cell, past.unit)[0], past.cell), fixed
    return lagged_combined_weights(propensities, batch, past.cell), "batch"


def weighted_projection(
    covariates: FloatArray,
    score: FloatArray,
    weight: FloatArray,
    names: Sequence[str],
    covariance: str = "HC0",
    gain: FloatArray | None = None,
    unit: IntArray | None = None,
) -> Projection:
    """Weighted least squares of scores on covariates.

    Shapes: covariates (n, p), score (n,), weight (n,), gain (n, 2): h / e of each arm where it was chosen,
    unit (n,) for errors by unit.

    With rows x, weights h and residuals u the coefficients solve sum h x (score - x'b) = 0. Their covariance
    is B^-1 (sum h^2 u^2 x x') B^-1 with B = sum h x x'. HC2 and HC3 have none where a row has leverage 1, as
    when it alone varies in some column: its residual is 0 whatever its score. Where a column is constant the
    others are centered, and the system is solved by QR of the weighted columns.
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
    # For a score of weight h the root is in `leverage` already, and the gain holds the other one with 1 / e.
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
    """Degrees of freedom by unit, of the arm that fewer units had.

    Shapes: share (n, p), what a score adds to each coefficient, gain (n, 2), unit (n,); returns (p,).
    """
    weights = np.abs(share)
    sizes = [effective_units(weights, (weights > 0.0) * (one[:, None] > 0.0), unit) for one in gain.T]
    return np.maximum(np.minimum(*sizes) - 1.0, 0.0)


def _covariance(influence: FloatArray, unit: IntArray | None) -> FloatArray:
    """Of coefficients, by round or by unit; influence (n, p), unit (n,); returns (p, p)."""
    return influence.T @ influence if unit is None else unit_covariance(influence, unit)


def _centering(covariates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means to subtract, and the matrix that turns coefficients of centered columns into the others."""
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
    """Norms of the centered columns, of the columns themselves where these are constant; shape (p,)."""
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
        reason = (
            f"there are {n} rounds for {p} columns" if n < p else "they are linear combinations of others"
        )
        raise ParameterError("projection", [f"cannot tell the columns {named} apart from the rest: {reason}"])


def standard_errors(fit: Projection, kept: IntArray) -> tuple[FloatArray, list[str]]:
    """Standard errors where there are any, and why there are none; kept (n,); returns (p,)."""
    n, p = len(kept), len(fit.coefficient)
    alone = np.asarray(kept)[np.isnan(fit.influence).any(axis=1)]
    if n > p and 0 < len(alone) < n:
        shown = ", ".join(map(str, alone[:10])) + (", ..." if len(alone) > 10 else "")
        reason = f"round {shown} (counted from 0) alone decides a coefficient, so that it has no residual"
        return np.full(p, np.nan), [f"No standard errors by HC2 or HC3: {reason}; HC0 and HC1 exist."]
    std_error = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    if n <= p:
        return np.full(p, np.nan), [f"No standard errors: {n} rounds for {p} columns."]
    if not np.all(np.isfinite(std_error)) or np.all(std_error == 0.0):
        return np.full(p, np.nan), ["No standard errors: the scores do not vary about the fit."]
    return np.where(std_error > 0.0, std_error, np.nan), []


def projection_length(question: ProjectionQuestion, verdict: Verdict) -> float:
    """Of the mean effect over the rounds used, in whose place a projection's terms stand."""
    log, kept, kind = question.profile.log, question.kept, verdict.arguments["weights"]
    both, std = question.propensities, question.profile.pooled_std
    if both is None:
        assert log.arrays.propensity is not None
        ratio = question.chosen.sum(axis=1) / log.arrays.propensity[kept]
        variance = ratio**2  # its mean given the past is 1/e1 + 1/e0
    else:
        variance = (1.0 / both[kept]).sum(axis=1)
    weight = np.ones(len(kept))
    if both is not None:
        weight = contrast_weights(both, kind, verdict.arguments.get("decay"))[kept]
    error = std * np.sqrt(float(weight**2 @ variance)) / float(weight.sum())
    return float(student_length(np.array(error), np.inf))


def influence_rows(
    fit: Projection, kept: IntArray, n_rounds: int, unit: IntArray | None
) -> dict[str, FloatArray]:
    """Influence of every round, 0 where left out, shape (T, p), and of units; kept, unit (n,)."""
    rows = np.zeros((n_rounds, fit.influence.shape[1]))
    rows[kept] = fit.influence
    return {"influence": rows} if unit is None else {"influence": rows, **unit_rows(fit.influence, unit)}
