"""Weights of effect scores, and the laws, errors and lengths of their projections on covariates.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (weights that are known before the arm is drawn).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import Said
from adaptinf.claims.effects import by_covariates as claims
from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.sample_shape import part_shapes
from adaptinf.inference.inputs.rounds import turns
from adaptinf.inference.regression.score_projection import Projection
from adaptinf.inference.scores.inverse import (
    Fixed,
    combined_stays,
    lagged_combined_weights,
    two_point_weights,
)
from adaptinf.inference.scores.unit_errors import unit_rows
from adaptinf.inference.validity.lengths import student_length
from adaptinf.inference.validity.rare import PartsLaw, law_of_parts
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.group_question import Past
    from adaptinf.inference.effects.projections.projected_scores import ProjectionQuestion
    from adaptinf.inference.validity.methods import Verdict

COVARIANCES = ("HC0", "HC1", "HC2", "HC3")
_PARTS = 5


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


def standard_errors(fit: Projection, kept: IntArray) -> tuple[FloatArray, list[Said]]:
    """Standard errors where there are any, and why there are none; kept (n,); returns (p,)."""
    n, p = len(kept), len(fit.coefficient)
    alone = np.asarray(kept)[np.isnan(fit.influence).any(axis=1)]
    if n > p and 0 < len(alone) < n:
        shown = ", ".join(map(str, alone[:10])) + (", ..." if len(alone) > 10 else "")
        return np.full(p, np.nan), [claims.ALONE_BY_HC(rounds=shown)]
    std_error = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    if n <= p:
        return np.full(p, np.nan), [claims.FEW_ROUNDS(n=n, columns=p)]
    if not np.all(np.isfinite(std_error)) or np.all(std_error == 0.0):
        return np.full(p, np.nan), [claims.NO_SPREAD()]
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
