"""Errors by unit of policy values, where units have several rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adaptinf.inference.policies.contrast_weights import differs
from adaptinf.inference.policies.question import PolicyQuestion
from adaptinf.inference.policies.scores import PolicyFit, deciding_sides
from adaptinf.inference.scores.by_unit.units import FEWEST_EVENTS, unit_covariance, unit_support
from adaptinf.typing import FloatArray, IntArray

Support = tuple[IntArray, FloatArray, FloatArray]
"""Units, degrees of freedom, and units with events, (k,) each, of k estimates."""


def with_unit_errors(fit: PolicyFit, support: Support, unit: IntArray) -> PolicyFit:
    """A fit with covariance and degrees of freedom by unit; unit (T,)."""
    units, freedom, events = support
    covariance = unit_covariance(fit.influence, unit)
    lost = np.where((events < FEWEST_EVENTS) | np.isnan(np.diag(fit.covariance)), np.nan, 0.0)
    covariance += lost[:, None] + lost[None, :]
    return replace(fit, covariance=covariance, df=np.minimum(fit.df, freedom), units=units, events=events)


def policy_support(
    question: PolicyQuestion, weights: FloatArray, observed: FloatArray, unit: IntArray
) -> Support:
    """What each policy rests on, or where they are compared, the policy with less of a pair.

    Shapes: weights, observed (T, m), unit (T,), of the m policies: what a reward counts for in its score.
    """
    units, freedom, events = unit_support(weights, observed, question.profile.log.arrays.reward, unit)
    if question.contrast:
        units, events = np.minimum(units[:-1], units[-1]), np.minimum(events[:-1], events[-1])
        freedom = np.minimum(freedom[:-1], freedom[-1])
    return units, freedom, events


def difference_support(
    question: PolicyQuestion, weights: FloatArray, share: FloatArray, unit: IntArray
) -> Support:
    """What differences rest on: what counts for them or against them, the less.

    Shapes: weights, share (T, k), unit (T,): what a reward adds to the estimate.
    """
    apart, reward = weights * differs(question), question.profile.log.arrays.reward
    sides = []
    for side, says in deciding_sides(share):
        observed = np.divide(side, apart, out=np.zeros_like(side), where=apart > 0.0)
        found = unit_support(apart, observed, reward, unit)
        sides.append([np.where(says, one, np.inf) for one in found])
    least = [np.minimum(*pair) for pair in zip(*sides, strict=True)]
    units, freedom, events = (np.where(np.isfinite(least[0]), one, 0.0) for one in least)
    return units.astype(np.int64), freedom, events
