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

from adaptinf.claims import propensities, units
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.base import StudentReference
from adaptinf.inference.effects.groups import group_codes
from adaptinf.inference.effects.notes import (
    BOTH_PROPENSITIES,
    bare_columns,
    check_by_unit,
    estimated_propensities,
    few_effective,
    low_propensity,
    projection_meaning,
    tiny_cautions,
    unit_support,
    warn_of_tiny,
)
from adaptinf.inference.effects.projections.weighted_projection import (
    combined_weights,
    contrast_weights,
    influence_rows,
    projection_law,
    projection_length,
    standard_errors,
)
from adaptinf.inference.effects.question import arm_pair
from adaptinf.inference.effects.rounds import (
    MARKED_ROUNDS,
    Past,
    Rounds,
    arm_propensities,
    past_of,
    weightable_rounds,
)
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.inputs.formulas import CovariateModel, covariate_model
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.facts import LogFacts
from adaptinf.inference.scores.by_unit.units import others_means
from adaptinf.inference.scores.inverse import Fixed, aipw_scores, indicators, predictions
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.scores.outcome_models import Outcome, outcome_model
from adaptinf.inference.scores.projection import Projection, check_columns, weighted_projection
from adaptinf.inference.validity.methods import MethodRecord, refusal
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, check_alpha, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray

SUBJECT = "CATEProjection.fit"
WEIGHTS = ("uniform", "combined", "two-point")
_GROUPS = "CATE(log, by=...).fit() with rounds= that marks the rounds whose arm was drawn at random"


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
            raise InvalidForLog("aipw", "it divides by propensities, and the log has none", [_GROUPS])
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
            reason = f"in the rounds used, {' and '.join(empty)} was never chosen"
            raise InvalidForLog("a projection of the effect", reason, ["other rounds=", "other arms"])
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
                raise InvalidForLog(method, BOTH_PROPENSITIES, ["uniform weights"])
            return np.ones(len(kept))
        if kind == "combined" and self.combined is not None:
            return self.combined[0]
        return contrast_weights(both, kind, decay)[kept]

    @property
    def alternatives(self) -> list[str]:
        """What errors offer."""
        return [MARKED_ROUNDS, *([] if self.profile.log.releases.empty else ["released"])]


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
    for place, weights in enumerate(WEIGHTS):
        name, call = f"projection with {weights} weights", dict[str, Any](weights=weights)
        if weights == "two-point" and decay is None:
            reason = "its weights need decay=, fixed in advance"
            found.append(Verdict(name, "not valid", 13.0, call, reason))
            continue
        call |= {"decay": decay} if weights == "two-point" else {}
        rank = 9.0 if weights == default else 10.0 + place
        reason = why or (
            "" if weights == "uniform" or question.propensities is not None else BOTH_PROPENSITIES
        )
        if reason:
            found.append(Verdict(name, "not valid", rank, call, reason))
            continue
        assumes = "contexts do not depend on the past; the logged propensities are the design's own"
        assumes += "; drift common to both arms is allowed, an effect that changes is averaged"
        if weights == "two-point" or (weights == "combined" and question.combined is None):
            assumes += "; weights count contexts by their propensities, right where the formula holds"
        caution = propensities.UNSETTLED() if weights == "uniform" and question.profile.moves else ""
        reason = "the best linear approximation of the effect by the formula"
        if question.unit is not None:
            reason = f"{reason}; {units.BY_UNIT()}"
            assumes = f"{assumes}; {units.INDEPENDENT()}, and {units.NO_CARRY_OVER()}"
            caution = caution if weights == "uniform" else units.TIED()
        found.append(Verdict(name, "asymptotic", rank, call, reason, (assumes,), caution))
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
    said, cautions, known = _support(question, model, kind, covariance)
    std_error = std_error if known else np.full(len(names), np.nan)
    size = np.full(len(names), effective_size(gain[used]).min())
    lowest = np.full(len(names), (own if both is None else both[kept]).min())
    tiny = tiny_cautions(["the projection"], lowest[:1], size[:1])
    warn_of_tiny(SUBJECT, tiny)
    notes = _notes(question, kind, said, covariance, float(lowest[0]))
    reward = log.arrays.reward[kept][used]
    skewness = question.profile.squared_skewness if unit is None else None
    law = projection_law(fit, std_error, reward, skewness, names)
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
        notes=(*notes, *gaps, *law.notes),
        cautions=(
            *question.profile.propensity_cautions,
            *cautions,
            *few_effective(names, fit.df, law.std_error),
            *law.cautions,
            *tiny,
        ),
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


def _support(
    question: ProjectionQuestion, model: Outcome, kind: str, covariance: str
) -> tuple[list[str], list[str], bool]:
    """The outcome model and what errors by unit rest on, cautions, and whether there are errors."""
    unit, profile = question.unit, question.profile
    if unit is None:
        return [model.note], [], True
    own_past = not isinstance(model.values, str) and model.start > 0
    check_by_unit(profile, covariance, own_past=own_past)
    arms = [str(question.control), str(question.treatment)]
    rounds = question.chosen, profile.log.arrays.reward[question.kept], unit
    notes, cautions, known = unit_support(profile, arms, *rounds, uniform=kind == "uniform")
    told = model.note if isinstance(model.values, np.ndarray) else units.OTHERS_MEAN()
    return [told, *notes], cautions, known


def _notes(
    question: ProjectionQuestion, kind: str, said: list[str], covariance: str, lowest: float
) -> tuple[str, ...]:
    x, rounds = question.covariates.matrix[question.kept], question.rounds
    return (
        f"Effect of {question.treatment!r} over {question.control!r}: {question.formula.strip()}. Covariance "
        f"{covariance}.",
        *rounds.notes,
        *said,
        *projection_meaning(
            kind,
            question.combined[1] if kind == "combined" and question.combined is not None else None,
            fixed=kind == "uniform" or question.past.free,
            complete=len(rounds.notes) == 1,
            saturated=question.saturated,
        ),
        "Assumes contexts that do not depend on earlier rewards or actions. Student's t, for each term by "
        "the effective number of the smaller arm's rewards.",
        *low_propensity(lowest),
        *bare_columns(x, question.chosen, question.covariates.names),
        *estimated_propensities(question.profile),
    )


PROJECTION: MethodRecord[ProjectionQuestion] = MethodRecord(
    "projection", _assess, _fit, length=projection_length
)
