"""Distributions, errors, lengths and influences for projections of effect scores on covariates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import Said
from adaptinf.claims.effects import by_covariates as claims
from adaptinf.inference.distributions.sample_shape import part_shapes
from adaptinf.inference.effects.effect_weights import contrast_weights
from adaptinf.inference.regression.score_projection import Projection
from adaptinf.inference.scores.unit_errors import unit_rows
from adaptinf.inference.validity.lengths import student_length
from adaptinf.inference.validity.rare import PartsLaw, law_of_parts
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.projections.projection_question import ProjectionQuestion
    from adaptinf.inference.validity.methods import Verdict
    from adaptinf.inference.validity.reward_facts import RewardFacts

COVARIANCES = ("HC0", "HC1", "HC2", "HC3")
_PARTS = 5


def projection_law(
    fit: Projection,
    std_error: FloatArray,
    reward: FloatArray,
    pooled: RewardFacts | None,
    names: Sequence[str],
) -> PartsLaw:
    """Student's t or, if rewards are skewed, MOVER over the parts of each coefficient.

    Shapes: std_error (p,), reward (n,).

    A coefficient is a sum over rounds. The parts of this sum are the rounds of the two arms whose scores
    raise it, the rounds of the two arms whose scores lower it, and the rounds of other arms. For an
    indicator, the parts are the rounds of its group, by arm. Each part has a variance and a skewness,
    computed from the influences of its rounds, and Hall's interval. A coefficient has no standard error if a
    part has too few uncommon outcomes. `pooled` describes all rewards; it is None if rounds depend on each
    other, in which case Student's t is used.
    """
    if pooled is None:
        return PartsLaw.student(fit.coefficient, std_error, fit.covariance, fit.df)
    arm = np.where(fit.gain[:, 1] > 0.0, 1, np.where(fit.gain[:, 0] > 0.0, 0, 2))[:, None]
    part = np.where(arm < 2, 2 * arm + (fit.pull > 0.0), _PARTS - 1)
    weight = np.abs(fit.pull) * fit.gain.max(axis=1, keepdims=True)
    shapes = part_shapes(part, fit.influence, weight, reward, _PARTS, pooled.squared_skewness)
    doubt = pooled.skewness_doubt
    return law_of_parts(names, shapes, fit.coefficient, std_error, fit.covariance, fit.df, doubt)


def standard_errors(fit: Projection, kept: IntArray) -> tuple[FloatArray, list[Said]]:
    """Standard errors, shape (p,), and notes on why there are none, if this is the case; kept (n,)."""
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
    """Expected length for the mean effect over the rounds used, which represents all terms."""
    log, kept, kind = question.profile.log, question.kept, verdict.arguments["weights"]
    both, std = question.propensities, question.profile.pooled_std
    if both is None:
        assert log.arrays.propensity is not None
        ratio = question.chosen.sum(axis=1) / log.arrays.propensity[kept]
        # Given the past, this has mean 1/e1 + 1/e0, so it needs no propensities of arms that were not chosen.
        variance = ratio**2
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
    """Influences of all rounds, shape (T, p), 0 for rounds that are left out, and of units."""
    rows = np.zeros((n_rounds, fit.influence.shape[1]))
    rows[kept] = fit.influence
    return {"influence": rows} if unit is None else {"influence": rows, **unit_rows(fit.influence, unit)}
