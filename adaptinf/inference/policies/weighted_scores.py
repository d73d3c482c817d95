"""Policy values by inverse propensities, augmented by an outcome model or not, with weights over the rounds.

References
----------
Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from contextual
bandits". Satterthwaite (1946), "An approximate distribution of estimates of variance components".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.inference.policies.by_unit import unit_verdicts, with_unit_errors
from adaptinf.inference.policies.inputs import Policy
from adaptinf.inference.policies.lengths import policy_length
from adaptinf.inference.policies.question import PolicyQuestion
from adaptinf.inference.policies.scores import (
    PolicyFit,
    PolicyOptions,
    policy_fit,
    policy_verdict,
    score_parts,
)
from adaptinf.inference.policies.weights import contextual_fit, mean_variances, stabiliser
from adaptinf.inference.scores.means import effective_size, weighted_means
from adaptinf.inference.validity.methods import MethodRecord
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import BoolArray, FloatArray

_SETTLE = "propensities settle"
_VARIANTS = (
    ("stable-variance", False, "the design's policy is known at all contexts: the variance is kept even", ""),
    ("stable-variance", True, "weights by context often give shorter intervals", _SETTLE),
    ("min-variance", False, "the least variance where the propensities settle", _SETTLE),
    ("min-variance", True, "weights by context, for the least variance", _SETTLE),
    ("uniform", None, "every round counts alike", ""),
)


def _assess(question: PolicyQuestion, estimator: str, first: float) -> list[Verdict]:
    found = []
    for place, (weights, contextual, reason, assumes) in enumerate(_VARIANTS):
        kind = "" if contextual is None else ", contextual" if contextual else ", non-contextual"
        call: dict[str, Any] = {"estimator": estimator, "weights": weights}
        call |= {} if contextual is None else {"contextual": contextual}
        name, rank = f"{estimator} with {weights} weights{kind}", first + 2.0 * place
        uniform = contextual is None
        found.append(policy_verdict(question, name, rank, call, reason, assumes, uniform=uniform))
    if question.profile.repeated_units:
        return unit_verdicts(found, first, moves=question.profile.moves)
    return found


def _fit(question: PolicyQuestion, options: PolicyOptions) -> PolicyFit:
    propensity = question.check_propensities(options.estimator)
    parts = score_parts(question.profile, question.policies, options.outcome)
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
    return with_unit_errors(question, fit, influence, weights, parts.taken / propensity[:, None], unit)


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
    weights[:start] = 0.0
    if known is not None:
        weights *= known[:, None]
    means = weighted_means(scores, weights)
    return means.estimate, means.influence, weights


AIPW: MethodRecord[PolicyQuestion] = MethodRecord(
    "aipw", lambda question: _assess(question, "aipw", 10.0), _fit, length=policy_length
)
"""With an outcome model."""
IPW: MethodRecord[PolicyQuestion] = MethodRecord(
    "ipw", lambda question: _assess(question, "ipw", 30.0), _fit, length=policy_length
)
"""Without one."""
