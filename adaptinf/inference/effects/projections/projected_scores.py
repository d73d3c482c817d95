"""The only method of `CATE.from_formula`: weighted projections of AIPW scores on covariates.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Semenova, Chernozhukov (2021), "Debiased machine learning of conditional average treatment
effects and other causal functions".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims import first, said, sentence, under_table, units
from adaptinf.claims.effects import by_covariates as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.effects.effect_methods import PROJECTIONS, EffectMethod, effect, warn_of_tiny
from adaptinf.inference.effects.projection_facts import ProjectionFacts, ProjectionFit
from adaptinf.inference.effects.projections.projection_question import ProjectionQuestion
from adaptinf.inference.effects.projections.weighted_projection import (
    influence_rows,
    projection_law,
    projection_length,
    standard_errors,
)
from adaptinf.inference.inputs.formulas import CovariateModel
from adaptinf.inference.regression.score_projection import Projection, check_columns, weighted_projection
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.scores.inverse import aipw_scores, predictions
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.scores.outcome_predictions import Outcome, outcome_model
from adaptinf.inference.scores.unit_errors import others_means
from adaptinf.inference.validity.methods import Verdict, refusal
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.parameters import check_alpha
from adaptinf.typing import BoolArray, FloatArray

SUBJECT = "CATEProjection.fit"
WEIGHTS = ("uniform", "combined", "two-point")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProjectionResults(Results):
    """Coefficients of the effect's projection on covariates; created by `CATEProjection.fit`.

    Attributes
    ----------
    covariates : CovariateModel
        The formula, with the levels and statistics of the log.
    projection : Projection
        The fit.
    """

    covariates: CovariateModel
    projection: Projection

    def predict(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Predict effects at given covariates.

        Parameters
        ----------
        frame : DataFrame, or mapping of name to values
            Covariates by the names in the formula.
        alpha : float
            One minus the level of each interval, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns effect, std_error, low and high. Each interval, by Student's t, is for a single value of
            the projection. If the formula does not hold exactly, this is not the effect at those covariates.

        Raises
        ------
        ParameterError
            If a covariate is missing, or has a label that is not in the log.
        """
        check_alpha("predict", alpha)
        rows = self.covariates.rows("predict", frame)
        effect, std_error, df = self.projection.predict(rows)
        std_error = np.where(np.all(np.isfinite(self.std_error)) & (std_error > 0.0), std_error, np.nan)
        low, high = StudentReference(effect, std_error, df).interval(math.log(alpha)).T
        columns = {"effect": effect, "std_error": std_error, "low": low, "high": high}
        return pd.DataFrame(columns, index=frame.index if isinstance(frame, pd.DataFrame) else None)


def _assess(question: ProjectionQuestion, decay: float | None = None) -> list[Verdict]:
    """A verdict on each kind of weights; `decay` is used if the design does not declare a decay."""
    decay = question.profile.usable_decay if decay is None else decay
    why = refusal(lambda: question.chosen)
    default = ""
    if not why:
        check_columns(question.covariates.matrix[question.kept], question.covariates.names)
        default = question.default_weights
    found = []
    for weights in WEIGHTS:
        name, call = f"projection with {weights} weights", dict[str, Any](weights=weights)
        rank = PROJECTIONS["weights by default" if weights == default else f"{weights} weights"]
        facts = ProjectionFacts(question, weights, decay)
        if weights == "two-point" and decay is not None:
            call |= {"decay": decay}
        if reason := first(claims.NEEDS, facts):
            found.append(Verdict(name, "not valid", rank, call, reason))
            continue
        reason, assumed = sentence(said(claims.REASONS, facts)), tuple(said(claims.ASSUMES, facts))
        caution = sentence(said(claims.ROW_CAUTIONS, facts))
        found.append(Verdict(name, "asymptotic", rank, call, reason, assumed, caution))
    return found


def _fit(
    question: ProjectionQuestion,
    null: float,
    *,
    weights: str | None,
    decay: float | None,
    covariance: str,
    outcome: Any,
    ridge: float | None,
    keep_scores: bool,
) -> ProjectionResults:
    log, names, both = question.profile.log, question.covariates.names, question.propensities
    kept, kind, unit = question.kept, weights or question.default_weights, question.unit
    weight, chosen = question.weights(kind, decay), question.chosen
    model = outcome_model(SUBJECT, log, question.pair, outcome, ridge)
    assert question.profile.propensity is not None
    own, (score, used) = question.profile.propensity[kept], _effect_scores(question, model)
    used &= kept >= model.start
    x, gain = question.covariates.matrix[kept], chosen * (weight / own)[:, None]
    who = None if unit is None else unit[used]
    fit = weighted_projection(x[used], score[used], weight[used], names, covariance, gain[used], who)
    std_error, gaps = standard_errors(fit, kept[used])
    size = np.full(len(names), effective_size(gain[used]).min())
    lowest = np.full(len(names), (own if both is None else both[kept]).min())
    if unit is not None:
        check_by_unit(question.profile, covariance, own_past=_own_past(model))
    facts = ProjectionFacts(question, kind, decay)
    if not facts.has_errors:
        std_error = np.full(len(names), np.nan)
    reward = log.arrays.reward[kept][used]
    law = projection_law(fit, std_error, reward, question.profile if unit is None else None, names)
    facts.fit = ProjectionFit(covariance, model, law, gaps, fit.df, size, lowest)
    warn_of_tiny(SUBJECT, facts.tiny_propensities)
    notes, cautions = under_table(claims.FIT, facts)
    return ProjectionResults(
        model="CATE projection",
        estimands=tuple(
            Estimand("projection", treatment=question.treatment, control=question.control) for _ in names
        ),
        terms=names,
        estimate=fit.coefficient,
        std_error=law.std_error,
        covariance=law.covariance,
        reference=law.reference,
        estimator="aipw",
        facts=LogFacts.of(log, by_unit=unit is not None),
        validity="asymptotic",
        weights=kind,
        null=null,
        details={"ess": size, "min_propensity": lowest},
        notes=(effect(question), *notes),
        cautions=tuple(cautions),
        scores=influence_rows(fit, kept[used], log.n_rounds, who) if keep_scores else None,
        covariates=question.covariates,
        projection=fit,
    )


def _effect_scores(question: ProjectionQuestion, model: Outcome) -> tuple[FloatArray, BoolArray]:
    """AIPW scores for the effect in the rounds used, and whether there was an earlier reward; shape (n,)."""
    reward, kept, chosen = question.profile.log.arrays.reward, question.kept, question.chosen
    assert question.profile.propensity is not None
    origin = float(reward[kept[0]])
    above, known = reward[kept] - origin, np.ones(len(kept), dtype=bool)
    if not isinstance(model.values, str):
        predicted = model.values[kept] - origin
    elif question.unit is not None:
        predicted, known = others_means(chosen, above, question.unit)
    else:
        predicted, known = predictions(chosen, above), np.arange(len(kept)) > 0
    scores = aipw_scores(chosen, above, question.profile.propensity[kept], predicted)
    return scores[:, 1] - scores[:, 0], known


def _own_past(model: Outcome) -> bool:
    """Whether predictions may use a unit's own earlier rounds."""
    return not isinstance(model.values, str) and model.start > 0


def check_by_unit(profile: LogProfile, covariance: str, *, own_past: bool) -> None:
    """Refuse options that clustered errors do not allow, such as predictions from a unit's own past."""
    if covariance != "HC0":
        ways = ["clustering with covariance='HC0'"]
        raise InvalidForLog(f"covariance={covariance!r}", claims.NOT_BY_UNIT(), ways)
    if profile.one_draw_a_unit and own_past:
        raise InvalidForLog("outcome='running-ridge'", units.OWN_PAST_TELLS(), ["outcome='running-mean'"])


PROJECTION: EffectMethod[ProjectionQuestion] = EffectMethod(
    "projection", _assess, _fit, claims.FIT, length=projection_length
)
