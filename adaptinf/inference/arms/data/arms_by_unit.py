"""Inverse weighting for arm means if units have several rounds: scores, standard errors and notes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import units
from adaptinf.inference.arms.question import Refused
from adaptinf.inference.scores.inverse import ArmScores, arm_scores, indicators
from adaptinf.inference.scores.means import ScoreMeans, score_means, standardised, weighted_means
from adaptinf.inference.scores.unit_errors import FEWEST_EVENTS, others_means, unit_errors, unit_rows
from adaptinf.inference.validity.units import event_gaps, unit_cautions, unit_notes

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import ArmFit, Question
    from adaptinf.typing import FloatArray, IntArray


Columns = tuple["IntArray", "FloatArray", "FloatArray", "FloatArray | None"]
"""Actions, rewards and propensities of the chosen arm, shape (T,) each; and of every arm, shape (T, K)."""


def unit_scores(question: Question, columns: Columns, options: dict[str, Any]) -> ArmScores:
    """Scores whose running means leave out the unit's own rounds, and weights; both have shape (T, k)."""
    codes, unit = question.codes, question.profile.units
    if not isinstance(options["outcome"], str) or unit is None:
        if options["outcome"] is not None and question.profile.one_draw_a_unit:
            _check_outcome(options["start"])
        return arm_scores(*columns, codes, **options)
    chosen, arrival = indicators(columns[0], codes), question.profile.log.arrays.known
    predicted, known = others_means(chosen, columns[1], unit, arrival=arrival)
    found = arm_scores(*columns, codes, **{**options, "outcome": predicted, "start": 0})
    return replace(found, weights=found.weights * known[:, None])


def _check_outcome(start: int) -> None:
    """Refuse running regressions, which would reveal the result of a unit's single draw."""
    if start > 0:
        raise Refused("outcome='running-ridge'", units.OWN_PAST_TELLS(), first=("outcome='running-mean'",))


def unit_means(question: Question, scored: ArmScores, columns: Columns) -> ScoreMeans:
    """Weighted means of the scores, with covariance and degrees of freedom clustered by unit."""
    _, reward, propensity, propensities = columns
    unit = question.profile.units
    assert unit is not None
    every = None if propensities is None else propensities[:, question.codes]
    means = score_means(scored, reward, propensity, every)
    level = np.maximum(np.abs(means.above), np.abs(means.above + means.origin))
    influence = weighted_means(scored.scores, scored.weights).influence
    observed = scored.chosen / propensity[:, None]
    errors = unit_errors(level, influence, scored.weights, observed, reward, unit)
    (sums,) = unit_rows(influence, unit).values()
    cubes = np.einsum("uk,uk,uk->k", sums, sums, sums)
    return replace(
        means,
        covariance=errors.covariance,
        freedom=errors.freedom,
        skewness=standardised(cubes, np.diag(errors.covariance)),
        by_unit=errors,
    )


def contributions(question: Question, influence: FloatArray) -> dict[str, FloatArray]:
    """Contribution of each unit to the errors; influence has shape (T, k)."""
    unit = question.profile.units
    assert unit is not None
    return unit_rows(influence, unit)


def fit_notes(question: Question, fit: ArmFit) -> list[str]:
    """Notes on the basis of clustered standard errors, or on the reason why there are none."""
    assert fit.by_unit is not None
    profile, errors = question.profile, fit.by_unit
    notes = _model_note(question, fit) + unit_notes(profile, profile.n_units, profile.log.n_rounds)
    notes += event_gaps(fit.labels, errors.events, FEWEST_EVENTS)
    alone = [label for label, n in zip(fit.labels, errors.units, strict=True) if n == 1]
    return [*notes, *(units.ONE_UNIT(arm=label) for label in alone)]


def _model_note(question: Question, fit: ArmFit) -> list[str]:
    """A note on the outcome model, if there is one."""
    if fit.outcome is None:
        return []
    if question.profile.rows_refusal or not isinstance(fit.outcome.values, str):
        return [fit.outcome.note]
    return [units.OTHERS_MEAN() if question.profile.log.arrays.known is None else units.LATE_MEAN()]


def fit_cautions(question: Question, fit: ArmFit) -> list[str]:
    """Reasons why clustered standard errors may be too small."""
    assert fit.by_unit is not None
    counts, uniform = (fit.by_unit.units, fit.by_unit.events), fit.choice.weights == "uniform"
    found = unit_cautions(question.profile, question.profile.n_units, fit.labels, *counts, uniform=uniform)
    own = fit.outcome is not None and not isinstance(fit.outcome.values, str) and fit.outcome.start > 0
    return [*found, units.OWN_PAST()] if own else found
