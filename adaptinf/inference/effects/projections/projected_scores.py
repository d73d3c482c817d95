"""The one method of `CATE.from_formula`: weighted projections of AIPW scores on covariates.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Semenova, Chernozhukov (2021), "Debiased machine learning of conditional average treatment
effects and other causal functions".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims import first, propensities, said, sentence, under_table, units
from adaptinf.claims.effects import by_covariates as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.effects.effect_methods import PROJECTIONS, EffectMethod, effect, warn_of_tiny
from adaptinf.inference.effects.group_question import (
    Past,
    Rounds,
    arm_pair,
    arm_propensities,
    past_of,
    weightable_rounds,
)
from adaptinf.inference.effects.group_scores import group_codes
from adaptinf.inference.effects.projection_facts import ProjectionFacts, ProjectionFit
from adaptinf.inference.effects.projections.weighted_projection import (
    combined_weights,
    contrast_weights,
    influence_rows,
    projection_law,
    projection_length,
    standard_errors,
)
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.inputs.formulas import CovariateModel, covariate_model
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.inference.regression.score_projection import Projection, check_columns, weighted_projection
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.scores.inverse import Fixed, aipw_scores, indicators, predictions
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.scores.outcome_predictions import Outcome, outcome_model
from adaptinf.inference.scores.unit_errors import others_means
from adaptinf.inference.validity.methods import Verdict, refusal
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, check_alpha, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray

SUBJECT = "CATEProjection.fit"
WEIGHTS = ("uniform", "combined", "two-point")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProjectionResults(Results):
    """Coefficients of the effect's projection on covariates; made by `CATEProjection.fit`.

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
        """Effects at given covariates.

        Parameters
        ----------
        frame : DataFrame, or mapping of name to values
            Covariates by the names in the formula.
        alpha : float
            One minus the level of each interval, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns effect, std_error, low and high. The intervals, by Student's t, are for the value of the
            projection, one at a time; where the formula does not hold exactly it is not the effect there.

        Raises
        ------
        ParameterError
            If a covariate is missing, or has a label that the log has not.
        """
        check_alpha("predict", alpha)
        rows = self.covariates.rows("predict", frame)
        effect, std_error, df = self.projection.predict(rows)
        std_error = np.where(np.all(np.isfinite(self.std_error)) & (std_error > 0.0), std_error, np.nan)
        low, high = StudentReference(effect, std_error, df).interval(math.log(alpha)).T
        columns = {"effect": effect, "std_error": std_error, "low": low, "high": high}
        return pd.DataFrame(columns, index=frame.index if isinstance(frame, pd.DataFrame) else None)


@dataclass(frozen=True, eq=False)
class ProjectionQuestion:
    """Effect of one arm over another by covariates; marked (T,), pair (2,) with the control first."""

    profile: LogProfile
    formula: str
    covariates: CovariateModel
    treatment: Any
    control: Any
    marked: BoolArray | None
    pair: IntArray

    @cached_property
    def propensities(self) -> FloatArray | None:
        """Of both arms in every round, as far as the log tells; shape (T, 2)."""
        return arm_propensities(self.profile, self.pair)

    @cached_property
    def rounds(self) -> Rounds:
        """Rounds in which both arms could be chosen."""
        log = self.profile.log
        if log.arrays.propensity is None:
            raise InvalidForLog("aipw", propensities.NEEDED(), [claims.GROUPS_INSTEAD()])
        return weightable_rounds(self.profile, self.marked, self.propensities)

    @property
    def kept(self) -> IntArray:
        """Their numbers, shape (n,)."""
        return np.flatnonzero(self.rounds.keep)

    @cached_property
    def unit(self) -> IntArray | None:
        """Units of these rounds, None where none has several of them; shape (n,)."""
        units, keep = self.profile.units, self.rounds.keep
        return None if units is None or not self.profile.repeats_in(keep) else units[keep]

    @cached_property
    def chosen(self) -> FloatArray:
        """Which of the two arms was chosen in each of them; shape (n, 2)."""
        chosen = indicators(self.profile.log.arrays.action, self.pair)[self.kept]
        counts = chosen.sum(axis=0)
        empty = [repr(arm) for arm, n in zip((self.control, self.treatment), counts, strict=True) if n == 0]
        if empty:
            reason = claims.NEVER_CHOSEN(arms=" and ".join(empty))
            raise InvalidForLog(
                "a projection of the effect", reason, ["other rounds (rounds=)", "other arms"]
            )
        return chosen

    @cached_property
    def saturated(self) -> bool:
        """Whether the formula gives every combination of contexts its own effect."""
        columns = [values[self.rounds.keep] for values in self.profile.log.arrays.context.values()]
        width = len(self.covariates.names)
        # Few distinct rows first: counting combinations of continuous contexts is slow and needless.
        if any(len(np.unique(column)) > width for column in columns if column.dtype.kind in "fiub"):
            return False
        return len(group_codes(columns)[1]) == width

    @cached_property
    def past(self) -> Past:
        """What is known before each used round's contexts, beside its cell where the formula is saturated."""
        contexts, kept = self.profile.log.arrays.context, self.kept
        cell = np.zeros(len(kept), dtype=np.int64)
        if self.saturated:
            cell = group_codes([values[kept] for values in contexts.values()])[0]
        return past_of(self.profile, cell, self.rounds.keep, others=not self.saturated)

    @cached_property
    def combined(self) -> tuple[FloatArray, Fixed] | None:
        """Combined weights that do not follow the round's context, and whose they are; shape (n,)."""
        if self.propensities is None:
            return None
        movers = not (self.profile.context_free or self.saturated)
        return combined_weights(self.propensities[self.kept], self.past, movers=movers)

    @property
    def default_weights(self) -> str:
        """Combined where they cannot change what is estimated and tie no units together, else uniform."""
        return "uniform" if self.combined is None or self.unit is not None else "combined"

    def weights(self, kind: str, decay: float | None) -> FloatArray:
        """Weights of the rounds used, one for both arms; shape (n,)."""
        both, kept = self.propensities, self.kept
        if both is None:
            if kind != "uniform":
                method = f"a projection with {kind} weights"
                raise InvalidForLog(method, effects.LACKS_BOTH_PROPENSITIES(), ["uniform weights"])
            return np.ones(len(kept))
        if kind == "combined" and self.combined is not None:
            return self.combined[0]
        return contrast_weights(both, kind, decay)[kept]

    @property
    def alternatives(self) -> list[str]:
        """What errors offer."""
        return [effects.MARK_THE_ROUNDS(), *([] if self.profile.log.releases.empty else ["released"])]


def projection_question(
    formula: str, log: AdaptiveLog, treatment: Any, control: Any, rounds: Any, trusted: bool = False
) -> ProjectionQuestion:
    """Check and complete what a user asks."""
    require_log("CATE.from_formula", log)
    treatment, control, problems = arm_pair(log, treatment, control)
    if not log.context:
        problems.append("the log has no context columns for a formula: give context= when making the log")
    refuse("CATEProjection", [*problems, *BOOLEAN("trusted", trusted)])
    covariates = covariate_model("CATEProjection", formula, log, trusted=trusted)
    marked = round_mask("CATE", log, rounds)
    pair = np.array([log.arms.index(control), log.arms.index(treatment)])
    return ProjectionQuestion(profile_of(log), formula, covariates, treatment, control, marked, pair)


def _assess(question: ProjectionQuestion, decay: float | None = None) -> list[Verdict]:
    """A verdict for each kind of weights; `decay` where the design states none."""
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
    skewness = question.profile.squared_skewness if unit is None else None
    law = projection_law(fit, std_error, reward, skewness, names)
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
    """AIPW scores of the effect in the rounds used, and which of them a reward was known for; shape (n,)."""
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
    """Whether predictions are made from a unit's own earlier rounds, too."""
    return not isinstance(model.values, str) and model.start > 0


def check_by_unit(profile: LogProfile, covariance: str, *, own_past: bool) -> None:
    """Refuse what errors by unit do not allow for, such as predictions from a unit's own past."""
    if covariance != "HC0":
        ways = ["clustering with covariance='HC0'"]
        raise InvalidForLog(f"covariance={covariance!r}", claims.NOT_BY_UNIT(), ways)
    if profile.one_draw_a_unit and own_past:
        raise InvalidForLog("outcome='running-ridge'", units.OWN_PAST_TELLS(), ["outcome='running-mean'"])


PROJECTION: EffectMethod[ProjectionQuestion] = EffectMethod(
    "projection", _assess, _fit, claims.FIT, length=projection_length
)
