"""Scores of a log's rounds with their weights, whatever the log is like, for whoever keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from adaptinf.inference.arms.circumstances import by_unit
from adaptinf.inference.arms.circumstances.deviations import seen_rounds
from adaptinf.inference.arms.circumstances.from_sums import refuse_rows
from adaptinf.inference.scores.inverse import ArmScores, arm_scores
from adaptinf.inference.scores.means import weighted_means
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.circumstances.by_unit import Columns
    from adaptinf.inference.arms.fit import ArmFit
    from adaptinf.inference.arms.question import Question


def rows(
    question: Question, fit: ArmFit, columns: Callable[[], Columns], options: Callable[[], dict[str, Any]]
) -> Mapping[str, FloatArray]:
    """Scores, weights, and what they contribute to the error of each estimate, shape (T, k) each."""
    if question.profile.sums is not None:
        refuse_rows()
    found = _scored_rounds(question, fit, columns, options)
    influence = weighted_means(found.scores, found.weights).influence
    kept = {"scores": found.scores + found.origin, "weights": found.weights, "influence": influence}
    return kept if fit.by_unit is None else {**kept, **by_unit.contributions(question, influence)}


def _scored_rounds(
    question: Question, fit: ArmFit, columns: Callable[[], Columns], options: Callable[[], dict[str, Any]]
) -> ArmScores:
    """Scores and weights of inverse weighting; columns of a log without all rewards are not asked for."""
    if fit.outcome is not None and fit.outcome.seen is not None:
        return seen_rounds(question, fit.outcome, options())
    if question.profile.repeated_units:
        return by_unit.unit_scores(question, columns(), options())
    return arm_scores(*columns(), question.codes, **options())
