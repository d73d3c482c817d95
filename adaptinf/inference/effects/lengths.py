"""Lengths to expect of intervals for effects: of one group on average, or of a projection's mean effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.effects.weighted_projection import contrast_weights
from adaptinf.inference.scores.inverse import combined_weights
from adaptinf.inference.validity.lengths import student_length, typical, weighted_errors
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.projected_scores import ProjectionQuestion
    from adaptinf.inference.effects.question import GroupQuestion
    from adaptinf.inference.validity.verdicts import Verdict


def difference_length(question: GroupQuestion, verdict: Verdict) -> float:
    """Of differences in means, by the counts of the rounds used."""
    rounds = question.pooled if verdict.arguments.get("pooled") else question.randomised
    action, size = question.profile.log.arrays.action, len(question.labels)
    control, treated = (
        np.bincount(question.group[rounds.keep & (action == code)], minlength=size) for code in question.pair
    )
    with np.errstate(divide="ignore"):
        error = question.profile.pooled_std * np.sqrt(1.0 / control + 1.0 / treated)
    return typical(student_length(error, np.minimum(control, treated) - 1.0))


def aipw_length(question: GroupQuestion, verdict: Verdict) -> float:
    """Of inverse-propensity scores, by the propensities of the rounds used."""
    log, size = question.profile.log, len(question.labels)
    kind, std = verdict.arguments["weights"], question.profile.pooled_std
    assert log.arrays.propensity is not None
    role = np.full(log.n_arms, -1)
    role[question.pair] = (0, 1)
    rows = np.flatnonzero(question.weightable.keep & (role[log.arrays.action] >= 0))
    own = log.arrays.propensity[rows]
    weight = np.sqrt(own) if kind == "sqrt" else np.ones(len(rows))
    keep, one = question.weightable.keep, None
    if kind == "combined":
        assert question.propensities is not None
        one = combined_weights(question.propensities)
        weight = one[rows]
    position = 2 * question.group[rows] + role[log.arrays.action[rows]]
    error, freedom = weighted_errors(position, own, weight, 2 * size, 0.0, std)
    spread = np.sqrt((error.reshape(size, 2) ** 2).sum(axis=1))
    if one is not None:
        spread = _combined_errors(one[keep], question.group[keep], size, std)
    return typical(student_length(spread, freedom.reshape(size, 2).min(axis=1)))


def _combined_errors(weight: FloatArray, group: IntArray, size: int, std: float) -> FloatArray:
    """Standard errors of differences with combined weights, whose terms all have one variance.

    Shapes: weight, group (n,); returns (size,).
    """
    total = np.bincount(group, weights=weight, minlength=size)
    count = np.bincount(group, minlength=size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0.0, std * np.sqrt(count) / total, np.inf)


def projection_length(question: ProjectionQuestion, verdict: Verdict) -> float:
    """Of the mean effect over the rounds used, in whose place a projection's terms stand."""
    log, kept, kind = question.profile.log, question.kept, verdict.arguments["weights"]
    both, std = question.propensities, question.profile.pooled_std
    if both is None:
        assert log.arrays.propensity is not None
        ratio = question.chosen.sum(axis=1) / log.arrays.propensity[kept]
        variance = ratio**2  # its mean given the past is 1/e1 + 1/e0
    else:
        variance = (1.0 / both[kept]).sum(axis=1)
    weight = np.ones(len(kept))
    if both is not None:
        weight = contrast_weights(both, kind, verdict.arguments.get("decay"))[kept]
    error = std * np.sqrt(float(weight**2 @ variance)) / float(weight.sum())
    return float(student_length(np.array(error), np.inf))
