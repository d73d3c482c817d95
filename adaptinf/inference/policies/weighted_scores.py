"""Policy values by inverse propensities, augmented by an outcome model or not, with weights over the rounds.

References
----------
Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from contextual
bandits". Satterthwaite (1946), "An approximate distribution of estimates of variance components".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptinf.inference.policies.by_unit import (
    difference_support,
    policy_support,
    with_unit_errors,
)
from adaptinf.inference.policies.contrast_weights import contrast_weights
from adaptinf.inference.policies.inputs import Policy
from adaptinf.inference.policies.lengths import policy_length
from adaptinf.inference.policies.question import PolicyQuestion
from adaptinf.inference.policies.scores import (
    COMMON,
    SHARED,
    PolicyFit,
    PolicyOptions,
    ScoreParts,
    difference_size,
    policy_fit,
    score_parts,
)
from adaptinf.inference.policies.verdicts import policy_verdict
from adaptinf.inference.policies.weight_facts import WeightFacts
from adaptinf.inference.policies.weights import contextual_fit, mean_variances, stabiliser
from adaptinf.inference.scores.means import effective_size, weighted_means
from adaptinf.inference.validity.methods import MethodRecord
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import BoolArray, FloatArray

_OWN = (
    ("stable-variance", False),
    ("stable-variance", True),
    ("min-variance", False),
    ("min-variance", True),
)
"""Weights of a policy's own, and whether they are contextual."""


def _assess(question: PolicyQuestion, estimator: str) -> list[Verdict]:
    """With each kind of weights."""
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
    # Shares of contexts' total weights are shares of the estimate already.
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
    """Differences from the baseline, each of one score with one weight; propensity (T,)."""
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
    """Weights, made 0 in rounds of which the outcome model knew nothing; weights (T, k), known (T,)."""
    weights[:start] = 0.0
    if known is not None:
        weights *= known[:, None]
    return weights


AIPW: MethodRecord[PolicyQuestion] = MethodRecord(
    "aipw", lambda question: _assess(question, "aipw"), _fit, length=policy_length
)
"""With an outcome model."""
IPW: MethodRecord[PolicyQuestion] = MethodRecord(
    "ipw", lambda question: _assess(question, "ipw"), _fit, length=policy_length
)
"""Without one."""
