"""Expected lengths of intervals for arm means, averaged over arms, or for a contrast."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from adaptinf.inference.arms.data.arms_of_sums import batch_weights, joint_means_of_sums
from adaptinf.inference.arms.data.weight_propensities import joint_propensities
from adaptinf.inference.arms.question import Question
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.scores.inverse import combined_weights, indicators, two_point_weights
from adaptinf.inference.scores.joint_levels import JOINT, expected_spread
from adaptinf.inference.scores.outcome_predictions import BATCH_MEAN, Outcome
from adaptinf.inference.validity.lengths import (
    LOG_ALPHA,
    binomial_length,
    combined_error,
    error_of_even_terms,
    errors_of_sums,
    some_arms,
    student_length,
    typical,
    weighted_errors,
)
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.rare import RARE
from adaptinf.typing import FloatArray, IntArray

_NORMAL = np.inf
_FEWEST = 10
"""Effective number of an arm's rewards up to which the length of its interval is not predicted."""
_MOST_ROUNDS = 2_000
"""Number of rounds of a long log from which lengths with joint weights are computed, up to a factor of 2."""


def typical_arms(question: Question) -> tuple[IntArray, FloatArray]:
    """A selection of arms whose interval lengths represent those of all arms, and the arms' counts."""
    counts = question.profile.pulls
    codes = some_arms(counts, question.codes)
    return codes, counts[codes]


def sample_length(question: Question, verdict: Verdict) -> float:
    """Length of t or exact intervals, at the corrected level if a correction makes them valid."""
    profile, (_, count) = question.profile, typical_arms(question)
    correction = profile.correction if verdict.corrected else None
    level = LOG_ALPHA if correction is None else correction.level(LOG_ALPHA)
    if compared(question).binary and (verdict.label == "exact" or correction is not None):
        lengths = binomial_length(count, profile.pooled_mean, level)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = student_length(profile.pooled_std / np.sqrt(count), count - 1.0)
        wider = float(normal_quantile(level - math.log(2.0)) / normal_quantile(LOG_ALPHA - math.log(2.0)))
        lengths = lengths * wider
    return typical(lengths, difference=question.contrast)


def weighted_length(question: Question, verdict: Verdict) -> float:
    """Length of intervals from inverse-propensity scores, augmented or not."""
    profile, (codes, _) = question.profile, typical_arms(question)
    kind = verdict.arguments.get("weights")
    mean = 0.0 if verdict.arguments["estimator"] == "aipw" else profile.pooled_mean
    std = profile.pooled_std
    # Plain scores of the two arms are never both nonzero, so the variance of a contrast contains raw squares
    # of rewards.
    if question.contrast:
        mean, std = 0.0, math.hypot(std, mean)
    if kind == JOINT:
        return _joint_length(replace(question, codes=codes), math.hypot(std, mean))
    if profile.sums is not None:
        return _length_from_sums(question, codes, kind or "uniform", mean, std)
    arrays = profile.log.arrays
    if arrays.propensity is None:
        return math.nan
    place = np.full(profile.log.n_arms, -1)
    place[codes] = np.arange(len(codes))
    position = place[arrays.action]
    rows = np.flatnonzero(position >= 0)
    own = arrays.propensity[rows]
    weight, one = np.ones(len(rows)), None
    if kind == "combined":
        if arrays.propensities is None:
            return math.nan
        one = combined_weights(arrays.propensities[:, codes])
        weight = one[rows]
    elif kind == "sqrt":
        weight = np.sqrt(own)
    elif kind == "two-point":
        decay = verdict.arguments.get("decay", profile.usable_decay)
        if arrays.propensities is None or decay is None:
            return math.nan
        weight = two_point_weights(arrays.propensities[:, codes], decay)[rows, position[rows]]
    error, freedom = weighted_errors(position[rows], own, weight, len(codes), mean, std)
    if not foreseeable(question, freedom):
        return math.nan
    if not question.contrast:
        return typical(student_length(error, freedom))
    both = np.hypot(*error) if one is None else combined_error(one, std)
    return float(student_length(np.array(both), freedom.min()))


def foreseeable(question: Question, freedom: FloatArray) -> bool:
    """Whether lengths of t intervals can be predicted; freedom, the arms' degrees of freedom, has shape (k,).

    If there are few effective rewards, the outcome model is imprecise, and intervals are corrected or based
    on counts.
    """
    size, rate = float(freedom.min(initial=np.inf)) + 1.0, question.profile.rare_rate
    return size > _FEWEST and not (0.0 < rate <= RARE and size * rate < FEW_EVENTS)


def _joint_length(question: Question, std: float) -> float:
    """Length of intervals with weights shared by the arms, computed from some of the rounds of a long log."""
    profile, codes = question.profile, question.codes
    if profile.sums is not None:
        found = joint_means_of_sums(question, Outcome(BATCH_MEAN, ""))
        assert found.squares is not None
        squares, freedom = found.squares, found.freedom
    else:
        every, own = profile.propensities, joint_propensities(question)
        assert every is not None
        step = max(1, len(every) // _MOST_ROUNDS)
        chosen = indicators(profile.log.arrays.action[::step], codes)
        propensities = every[::step, codes]
        fixed = propensities if own is None else own[::step]
        squares, freedom = expected_spread(chosen, fixed, propensities, len(every) / len(chosen))
        if not foreseeable(question, freedom):
            return math.nan
    with np.errstate(invalid="ignore"):
        return typical(student_length(std * np.sqrt(squares), freedom))


def _length_from_sums(question: Question, codes: IntArray, kind: str, mean: float, std: float) -> float:
    """Length of intervals from scores with one weight for each batch; codes has shape (k,)."""
    assert question.profile.sums is not None
    cells = question.profile.sums.cells
    weight = batch_weights(replace(question, codes=codes), kind)
    parts = [(1, 1), (2, 2), (2, 1), (4, 4)]
    sums = [(weight**h * cells.moments[e, 0][:, codes]).sum(axis=0) for h, e in parts]
    error, freedom = errors_of_sums((sums[0], sums[1], sums[2], sums[3]), mean, std)
    if not question.contrast:
        return typical(student_length(error, freedom))
    if kind == "combined":
        one = weight[:, 0]
        both = error_of_even_terms(float(one @ cells.rounds), float((one > 0.0) @ cells.rounds), std)
    else:
        both = float(np.hypot(*error))
    return float(student_length(np.array(both), freedom.min()))


def batched_length(question: Question, verdict: Verdict) -> float:
    """Length of intervals from batched least squares, computed from the arms' counts in each batch."""
    profile = question.profile
    counts = profile.batch_pulls(question.codes)
    if counts is None:
        return math.nan
    control, treated = counts.T
    both = (control > 0) & (treated > 0)
    total = float(np.sqrt(control[both] * treated[both] / (control[both] + treated[both])).sum())
    error = question.profile.pooled_std * math.sqrt(np.count_nonzero(both)) / total if total else math.inf
    return float(student_length(np.array(error), _NORMAL))
