"""Arm means from the rows of a log: data for shared weights, and the scores that a result stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.inference.arms.data import arms_by_unit, weight_propensities
from adaptinf.inference.arms.data.arms_of_sums import refuse_rows
from adaptinf.inference.arms.data.incomplete_rewards import seen_rounds
from adaptinf.inference.inputs.rounds import times_of
from adaptinf.inference.scores.inverse import ArmScores, arm_scores
from adaptinf.inference.scores.joint_levels import LogRounds, round_pieces, rounds_of, whole_pieces
from adaptinf.inference.scores.means import weighted_means
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.data.arms_by_unit import Columns
    from adaptinf.inference.arms.question import ArmFit, Question
    from adaptinf.inference.scores.outcome_predictions import Outcome


def rows(
    question: Question, fit: ArmFit, columns: Callable[[], Columns], options: Callable[[], dict[str, Any]]
) -> Mapping[str, FloatArray]:
    """Scores, weights, and their contributions to the error of each estimate, shape (T, k) each."""
    if question.profile.sums is not None:
        refuse_rows()
    found = _scored_rounds(question, fit, columns, options)
    influence = weighted_means(found.scores, found.weights).influence
    kept = {"scores": found.scores + found.origin, "weights": found.weights, "influence": influence}
    return kept if fit.by_unit is None else {**kept, **arms_by_unit.contributions(question, influence)}


def _scored_rounds(
    question: Question, fit: ArmFit, columns: Callable[[], Columns], options: Callable[[], dict[str, Any]]
) -> ArmScores:
    """Scores and weights for inverse weighting; logs with missing rewards have a separate way."""
    if fit.outcome is not None and fit.outcome.seen is not None:
        return seen_rounds(question, fit.outcome, options())
    if question.profile.repeated_units:
        return arms_by_unit.unit_scores(question, columns(), options())
    return arm_scores(*columns(), question.codes, **options())


def joint_rounds(question: Question, model: Outcome | None) -> LogRounds:
    """The rounds of a log in the form that shared weights need, with columns for the requested arms."""
    profile, codes, log = question.profile, question.codes, question.profile.log
    own, every = profile.propensity, profile.propensities
    fixed = None if profile.fixed_in_time else weight_propensities.joint_propensities(question)
    assert own is not None
    assert every is not None
    smallest, time = profile.smallest_propensity[codes], times_of(log.n_rounds, log.arrays.batch)
    if model is not None and model.seen is not None:
        scored = seen_rounds(question, model, {"outcome": model.values, "start": model.start})
        used = scored.weights > 0.0
        gain = used * scored.chosen / (own * model.seen.probability)[:, None]
        fixed = every[:, codes] if fixed is None else fixed
        found = rounds_of(scored.scores, gain, fixed, used, time)
        total = np.where(model.seen.observed, log.arrays.recorded, 0.0) @ scored.chosen
        tabled = (scored.chosen.sum(axis=0), total, smallest)
        return LogRounds(whole_pieces(found), log.n_rounds, tabled, scored.origin)
    action, reward = log.arrays.action, log.arrays.reward
    successes = np.bincount(action, reward, log.n_arms).astype(np.float64)
    outcome, start = (None, None) if model is None else (model.values, model.start)
    return round_pieces(
        *(action, reward, own, every, codes),
        tabled=(profile.pulls[codes], successes[codes], smallest),
        time=time,
        fixed=fixed,
        outcome=outcome,
        start=start,
    )
