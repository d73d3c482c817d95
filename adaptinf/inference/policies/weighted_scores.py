"""Policy values by weighted inverse-propensity scores, with or without an outcome model.

References
----------
Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from contextual
bandits". Satterthwaite (1946), "An approximate distribution of estimates of variance components".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adaptinf.inference.policies.fit_facts import WeightFacts
from adaptinf.inference.policies.policy_order import policy_verdict
from adaptinf.inference.policies.policy_question import Policy, PolicyQuestion
from adaptinf.inference.policies.policy_scores import (
    COMMON,
    SHARED,
    PolicyFit,
    PolicyOptions,
    ScoreParts,
    deciding_sides,
    difference_size,
    policy_fit,
    policy_length,
    score_parts,
)
from adaptinf.inference.policies.policy_weights import (
    contextual_fit,
    contrast_weights,
    differs,
    mean_variances,
    stabiliser,
)
from adaptinf.inference.scores.means import effective_size, weighted_means
from adaptinf.inference.scores.unit_errors import FEWEST_EVENTS, unit_covariance, unit_support
from adaptinf.inference.validity.methods import MethodRecord, Verdict
from adaptinf.typing import BoolArray, FloatArray, IntArray

Support = tuple[IntArray, FloatArray, FloatArray]
"""For k estimates, the numbers of units, degrees of freedom, and numbers of units with events; shapes
(k,)."""


def with_unit_errors(fit: PolicyFit, support: Support, unit: IntArray) -> PolicyFit:
    """The fit, with covariance and degrees of freedom clustered by unit; unit (T,)."""
    units, freedom, events = support
    covariance = unit_covariance(fit.influence, unit)
    lost = np.where((events < FEWEST_EVENTS) | np.isnan(np.diag(fit.covariance)), np.nan, 0.0)
    covariance += lost[:, None] + lost[None, :]
    return replace(fit, covariance=covariance, df=np.minimum(fit.df, freedom), units=units, events=events)


def policy_support(
    question: PolicyQuestion, weights: FloatArray, observed: FloatArray, unit: IntArray
) -> Support:
    """How much data each estimate is based on; for a difference, that of the policy with less data.

    Shapes: weights, observed (T, m), unit (T,), for m policies. `observed` is the factor by which a reward is
    multiplied in a score.
    """
    units, freedom, events = unit_support(weights, observed, question.profile.log.arrays.reward, unit)
    if question.contrast:
        units, events = np.minimum(units[:-1], units[-1]), np.minimum(events[:-1], events[-1])
        freedom = np.minimum(freedom[:-1], freedom[-1])
    return units, freedom, events


def difference_support(
    question: PolicyQuestion, weights: FloatArray, share: FloatArray, unit: IntArray
) -> Support:
    """How much data differences are based on: rewards that raise them, or rewards that lower them if fewer.

    Shapes: weights, share (T, k), unit (T,). `share` is the amount that one unit of a reward adds to the
    estimate.
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


_OWN = (
    ("stable-variance", False),
    ("stable-variance", True),
    ("min-variance", False),
    ("min-variance", True),
)
"""Kinds of weights that are specific to a policy, each with whether they are contextual."""


def _assess(question: PolicyQuestion, estimator: str) -> list[Verdict]:
    """A verdict on each kind of weights."""
    shared = (COMMON, "uniform") if question.contrast else ("uniform",)
    kinds = [*((weights, False) for weights in shared), *_OWN]
    return [
        policy_verdict(WeightFacts(question, estimator, weights, contextual=contextual))
        for weights, contextual in kinds
    ]


def _fit(question: PolicyQuestion, options: PolicyOptions) -> PolicyFit:
    propensity = question.check_propensities(options.estimator)
    parts = score_parts(question.profile, question.policies, options.outcome)
    if question.contrast and options.weights in SHARED:
        return _difference(question, options, parts, propensity)
    scores = parts.plain + parts.change / propensity[:, None]
    estimate, influence, weights = _weighted(options, question.policies, scores, parts.known)
    observed = weights * parts.taken / propensity[:, None]
    ess, total = effective_size(observed), weights.sum(axis=0)
    # With contextual weights, these are already shares of the estimate.
    share = observed if options.contextual else observed / np.where(total > 0.0, total, 1.0)
    rows = {"scores": scores + parts.origin, "weights": weights}
    if not question.contrast:
        estimate = estimate + parts.origin
    else:
        estimate = estimate[:-1] - estimate[-1]
        influence = influence[:, :-1] - influence[:, -1:]
        share = share[:, :-1] - share[:, -1:]
        ess = np.minimum(ess[:-1], ess[-1])
    fit = policy_fit(question, estimate, influence.T @ influence, influence, share, ess, rows)
    unit = question.profile.units
    if unit is None or not question.profile.repeated_units:
        return fit
    support = policy_support(question, weights, parts.taken / propensity[:, None], unit)
    return with_unit_errors(fit, support, unit)


def _difference(
    question: PolicyQuestion, options: PolicyOptions, parts: ScoreParts, propensity: FloatArray
) -> PolicyFit:
    """Differences from the baseline, each from a single score and weight per round; propensity (T,)."""
    plain, change, taken = (part[:, :-1] - part[:, -1:] for part in (parts.plain, parts.change, parts.taken))
    scores = plain + change / propensity[:, None]
    if options.weights == COMMON:
        weights = contrast_weights(question, options.logging)
    else:
        weights = np.ones(scores.shape)
    weights = _usable(weights, 0 if options.outcome is None else options.outcome.start, parts.known)
    means, total = weighted_means(scores, weights), weights.sum(axis=0)
    share = weights * taken / propensity[:, None] / np.where(total > 0.0, total, 1.0)
    rows = {"scores": scores, "weights": weights}
    size = difference_size(share)
    fit = policy_fit(question, means.estimate, means.covariance, means.influence, share, size, rows)
    unit = question.profile.units
    if unit is None or not question.profile.repeated_units:
        return fit
    return with_unit_errors(fit, difference_support(question, weights, share, unit), unit)


def _weighted(
    options: PolicyOptions, policies: Sequence[Policy], scores: FloatArray, known: BoolArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    start = 0 if options.outcome is None else options.outcome.start
    if options.contextual and options.weights is not None and options.logging is not None:
        fit = contextual_fit(options.logging, policies, scores, options.weights, start)
        unweighted = np.where(fit.share.any(axis=0), 0.0, np.nan)
        return fit.estimate + unweighted, fit.influence, fit.share
    if options.weights is None or options.logging is None:
        weights = np.ones(scores.shape)
    else:
        weights = stabiliser(options.weights, mean_variances(options.logging, policies))
    means = weighted_means(scores, _usable(weights, start, known))
    return means.estimate, means.influence, weights


def _usable(weights: FloatArray, start: int, known: BoolArray | None) -> FloatArray:
    """Weights, set to 0 in rounds before the model had a reward; weights (T, k), known (T,)."""
    weights[:start] = 0.0
    if known is not None:
        weights *= known[:, None]
    return weights


AIPW: MethodRecord[PolicyQuestion] = MethodRecord(
    "aipw", lambda question: _assess(question, "aipw"), _fit, length=policy_length
)
"""A method that uses an outcome model."""
IPW: MethodRecord[PolicyQuestion] = MethodRecord(
    "ipw", lambda question: _assess(question, "ipw"), _fit, length=policy_length
)
"""A method that does not use an outcome model."""
