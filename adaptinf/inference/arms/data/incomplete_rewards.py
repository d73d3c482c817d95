"""Missing or late rewards: predictions and scores that use only known rewards, and bounds.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed". Manski (1990), "Nonparametric bounds on treatment effects".
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import said
from adaptinf.claims.data import missing_rewards
from adaptinf.claims.units import INCOMPLETE
from adaptinf.inference.arms.data.data_facts import FILLED, MissingRewardsFacts, at_one_end, shares_of
from adaptinf.inference.arms.question import ArmModel, Asked, Question, Refused
from adaptinf.inference.inputs.rounds import times_of
from adaptinf.inference.results.ends import both_ends
from adaptinf.inference.scores.inverse import ArmScores, arm_scores
from adaptinf.inference.scores.means import ScoreMeans, score_means
from adaptinf.inference.scores.missing import (
    PastRewards,
    SeenRounds,
    past_rewards,
    seen_scores,
    strata,
)
from adaptinf.inference.scores.outcome_predictions import (
    BATCH_MEAN,
    RUNNING_MEAN,
    Covariates,
    Outcome,
    checked_penalty,
    outcome_model,
    running_regression,
)
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.log import AdaptiveLog


_MOST_STRATA = 50
_ROUNDS_A_CELL = 20
"""Smallest average number of rounds for each combination of an arm and a stratum."""


def past_outcome(question: Question, asked: Asked) -> Outcome:
    """Predictions from rewards that were observed and known in time, with probabilities of observation.

    The predictions are running means or running regressions. If rewards are missing, the regressions have an
    intercept for each arm and each stratum of the observed shares, so that the residuals average 0 in each of
    these, as those of the mean do.
    """
    profile, codes = question.profile, question.codes
    log = profile.log
    named = asked.outcome if isinstance(asked.outcome, str) else None
    covariates = asked.outcome if isinstance(asked.outcome, Covariates) else None
    regression = named == "running-ridge" or (covariates is not None and not covariates.by_batch)
    running = asked.ridge is None and (asked.outcome is None or named == "running-mean")
    fitted = named == BATCH_MEAN or covariates is not None
    if not running and not regression and (profile.incomplete or fitted):
        raise Refused(
            "an outcome model other than running means and regressions",
            "errors in the estimated observation share are harmless only with means that are updated "
            "together with it"
            if profile.incomplete
            else "it would use rewards before they were known",
        )
    if not running and not regression:
        return outcome_model(asked.subject, log, codes, asked.outcome, asked.ridge)
    if profile.incomplete and profile.repeated_units:
        raise Refused("aipw with missing rewards", INCOMPLETE())
    if profile.repeated_units:  # If units have several rounds, predictions come from other units' rewards.
        return RUNNING_MEAN
    arrays, gaps = log.arrays, log.kept.get(FILLED)
    observed = log.arrays.observed if gaps is None else gaps
    most = max(1, min(_MOST_STRATA, log.n_rounds // (_ROUNDS_A_CELL * log.n_arms)))
    context = arrays.context if profile.incomplete or gaps is not None else {}
    cells, used, left_out = strata(context, log.n_rounds, most)
    seen = np.ones(log.n_rounds, dtype=bool) if observed is None else observed
    past = past_rewards(arrays.action, arrays.recorded, seen, cells, codes, arrays.known)
    started = np.repeat(past.pooled[:, None] > 0.0, len(codes), axis=1)
    probability, ready = np.ones(log.n_rounds), started
    if arrays.observation is not None:
        probability = arrays.observation
    elif observed is not None:
        ready = (past.count > 0.0) & started
        probability = probability if gaps is not None else _shares(past, arrays.action, codes)
    if question.contrast:
        ready = np.broadcast_to(ready.all(axis=1, keepdims=True), ready.shape)
    values, within = past.mean, f" in strata of {', '.join(used)}" if used else ""
    known = "" if arrays.known is None else " known at the time"
    note: str = missing_rewards.MEAN(known=known, within=within)
    if regression:
        penalty = checked_penalty(asked.subject, asked.ridge)
        found = running_regression(asked.subject, log, codes, penalty, covariates, cells)
        assert isinstance(found.values, np.ndarray)
        values, note = found.values, found.note
    if gaps is not None:
        every = SeenRounds(np.ones(log.n_rounds, dtype=bool), probability, ready)
        return Outcome(values, note, seen=every, notes=(missing_rewards.SAME_WEIGHTS(),))
    facts = MissingRewardsFacts(question, left_out=left_out, ready=ready, used=used)
    return Outcome(
        values,
        note,
        seen=SeenRounds(seen, probability, ready),
        notes=tuple(said(missing_rewards.FIT, facts, "note")),
        assumes=tuple(said(missing_rewards.FIT, facts, "assumes")),
        cautions=tuple(said(missing_rewards.FIT, facts, "caution")),
        covariates=() if covariates is None else covariates.names,
    )


def _shares(past: PastRewards, action: IntArray, codes: IntArray) -> FloatArray:
    """Share of the earlier rewards of each round's arm that were observed, shape (T,); 1 for other arms."""
    mine = action[:, None] == codes[None, :]
    return np.where(mine.any(axis=1), (past.share * mine).sum(axis=1), 1.0)


def seen_rounds(question: Question, model: Outcome, options: Mapping[str, Any]) -> ArmScores:
    """Scores and weights that use only observed and known rewards."""
    return _scored(question, model, options)[0]


def seen_means(question: Question, model: Outcome, options: Mapping[str, Any]) -> ScoreMeans:
    """Estimates of the arm means from observed and known rewards."""
    scored, reward, propensity = _scored(question, model, options)
    every, log = _every(question), question.profile.log
    every = None if every is None else every[:, question.codes]
    paired = question.contrast and isinstance(options["weights"], np.ndarray)
    time = times_of(log.n_rounds, log.arrays.batch) if paired else None
    return score_means(scored, reward, propensity, every, time)


def _scored(
    question: Question, model: Outcome, options: Mapping[str, Any]
) -> tuple[ArmScores, FloatArray, FloatArray]:
    """Scores, rewards (missing ones set to the first), and propensities times observation probabilities."""
    arrays, codes, seen = question.profile.log.arrays, question.codes, model.seen
    assert arrays.propensity is not None
    assert seen is not None
    assert isinstance(model.values, np.ndarray)
    reward = np.where(seen.observed, arrays.recorded, arrays.recorded[np.argmax(seen.observed)])
    scored = arm_scores(arrays.action, reward, arrays.propensity, _every(question), codes, **options)
    found = seen_scores(scored, reward, arrays.propensity, model.values, seen)
    return found, reward, arrays.propensity * seen.probability


def _every(question: Question) -> FloatArray | None:
    """Propensities of all arms, as far as they are known; shape (T, K)."""
    known = question.profile.log.arrays.propensities
    return question.profile.partial_propensities if known is None else known


def at_both_ends(model: ArmModel, arguments: Mapping[str, Any]) -> Results:
    """A model's results with missing rewards set to their lowest and to their highest value.

    A control's rewards, which are subtracted, are set to the opposite end.
    """
    log, opposed = model.log, (getattr(model, "control", None),)
    assert log.reward_range is not None
    assert log.missing is not None
    low, high = log.reward_range
    ends = {arm: (high, low) if arm in opposed else (low, high) for arm in log.arms}
    lowest = on_log(model, at_one_end(log, {arm: own[0] for arm, own in ends.items()})).fit(**arguments)
    # If the method was chosen by default, the fit at the other end has to use the same one.
    same = {"estimator": lowest.estimator, "weights": lowest.weights}
    settled = {name: value for name, value in same.items() if arguments.get(name) is None}
    highest = on_log(model, at_one_end(log, {arm: own[1] for arm, own in ends.items()})).fit(
        **{**arguments, **settled}
    )
    return both_ends(lowest, highest, log.missing, missing_rewards.SHARES(**shares_of(log)))


def on_log(model: Any, log: AdaptiveLog) -> Any:
    """The same model applied to another log with the same arms."""
    other = copy(model)
    other.log = log
    return other
