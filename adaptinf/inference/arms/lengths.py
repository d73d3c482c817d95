"""Lengths to expect of intervals for arm means, of one arm on average, or for a contrast."""

from __future__ import annotations

import math

import numpy as np

from adaptinf.inference.arms.question import Question
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.scores.inverse import combined_weights, two_point_weights
from adaptinf.inference.validity.lengths import (
    LOG_ALPHA,
    binomial_length,
    combined_error,
    some_arms,
    student_length,
    typical,
    weighted_errors,
)
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import FloatArray, IntArray

_NORMAL = np.inf


def typical_arms(question: Question) -> tuple[IntArray, FloatArray]:
    """The arms whose lengths stand for all, and their counts."""
    counts = question.profile.pulls
    codes = some_arms(counts, question.codes)
    return codes, counts[codes]


def sample_length(question: Question, verdict: Verdict) -> float:
    """Of t intervals, exact ones, or those at the corrected level where a correction makes them valid."""
    profile, (_, count) = question.profile, typical_arms(question)
    correction = profile.correction if verdict.corrected else None
    level = LOG_ALPHA if correction is None else correction.level(LOG_ALPHA)
    if profile.binary and (verdict.label == "exact" or correction is not None):
        lengths = binomial_length(count, profile.pooled_mean, level)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = student_length(profile.pooled_std / np.sqrt(count), count - 1.0)
        wider = float(normal_quantile(level - math.log(2.0)) / normal_quantile(LOG_ALPHA - math.log(2.0)))
        lengths = lengths * wider
    return typical(lengths, difference=question.contrast)


def weighted_length(question: Question, verdict: Verdict) -> float:
    """Of inverse-propensity scores, augmented or not."""
    profile, (codes, _) = question.profile, typical_arms(question)
    if profile.sums is not None:
        return math.nan
    arrays, kind = profile.log.arrays, verdict.arguments.get("weights")
    mean = 0.0 if verdict.arguments["estimator"] == "aipw" else profile.pooled_mean
    std = profile.pooled_std
    if question.contrast:  # of plain scores, whose product is never positive, only squares are left
        mean, std = 0.0, math.hypot(std, mean)
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
    if not question.contrast:
        return typical(student_length(error, freedom))
    both = np.hypot(*error) if one is None else combined_error(one, std)
    return float(student_length(np.array(both), freedom.min()))


def batched_length(question: Question, verdict: Verdict) -> float:
    """Of batched least squares: by the arms' counts in each batch."""
    if question.profile.sums is not None:
        return math.nan
    arrays = question.profile.log.arrays
    if arrays.batch is None:
        return math.nan
    control, treated = (
        np.bincount(arrays.batch[arrays.action == code], minlength=int(arrays.batch[-1]) + 1)
        for code in question.codes
    )
    both = (control > 0) & (treated > 0)
    total = float(np.sqrt(control[both] * treated[both] / (control[both] + treated[both])).sum())
    error = question.profile.pooled_std * math.sqrt(np.count_nonzero(both)) / total if total else math.inf
    return float(student_length(np.array(error), _NORMAL))
