"""What `PolicyValue` and `PolicyContrast` share: choice of weights, scores, and the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.choice import valid_alternatives
from adaptinf.inference.policies.cadr import cadr_fit, default_burn_in
from adaptinf.inference.policies.inputs import Policy
from adaptinf.inference.policies.weights import KINDS, contextual_fit, mean_variances, stabiliser
from adaptinf.inference.scores.inverse import indicators, running_means
from adaptinf.inference.scores.means import effective_size, weighted_means
from adaptinf.inference.scores.outcome_models import Outcome, outcome_model
from adaptinf.inference.validity.policies import LoggingPolicies, logging_policies, snapshots_problems
from adaptinf.inference.validity.profile import profile_of
from adaptinf.parameters import choice_problem, count_problem, flag_problem, number_problem
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "ESTIMATORS",
    "UNOBSERVED",
    "WEIGHTS",
    "PolicyFit",
    "PolicyOptions",
    "fit_policies",
    "policy_options",
    "unobserved",
]

ESTIMATORS = ("aipw", "ipw", "cadr")
WEIGHTS = ("uniform", *KINDS)
UNOBSERVED = 0.01
"""Share of a policy on arms that were never chosen from which on its value is not estimated."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyOptions:
    """A valid way to estimate policy values from a log."""

    estimator: str
    weights: str | None
    contextual: bool
    logging: LoggingPolicies | None
    outcome: Outcome | None
    burn_in: int = 0
    defaulted: bool = False

    @property
    def label(self) -> str:
        """Weights in words, for a table."""
        if self.weights is None:
            return "1 / conditional sd"
        if self.weights == "uniform":
            return "uniform"
        return f"{self.weights}, {'contextual' if self.contextual else 'non-contextual'}"


@dataclass(frozen=True, slots=True, eq=False)
class PolicyFit:
    """Estimates of k values; estimate (k,), covariance (k, k), ess, min_propensity (k,), rows (T, k)."""

    estimate: FloatArray
    covariance: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    rows: dict[str, FloatArray]


def policy_options(
    subject: str,
    log: AdaptiveLog,
    policies: Sequence[Policy],
    *,
    weights: Any,
    contextual: Any,
    estimator: Any,
    outcome: Any,
    ridge: Any,
    snapshots: Any,
    burn_in: Any,
    null: Any,
    keep_scores: Any,
) -> PolicyOptions:
    """Complete and check what a user asked for."""
    problems = snapshots_problems(snapshots)
    problems += _argument_problems(log, weights, contextual, estimator, outcome, burn_in, null, keep_scores)
    if problems:
        raise ParameterError(subject, problems)
    if log.arrays.propensity is None:
        raise InvalidForLog(
            subject,
            "it needs propensities, and the log has none (give propensity= or propensities= if known)",
            valid_alternatives(log),
        )
    outcomes = None
    if estimator != "ipw":
        outcomes = outcome_model(subject, log, np.arange(log.n_arms), outcome, ridge)
    elif ridge is not None:
        raise ParameterError(subject, ["ridge= belongs to an outcome model, and ipw has none"])
    method = "cadr" if estimator == "cadr" else f"{estimator} with {weights} weights"
    logging, defaulted = None, False
    if weights is None and estimator != "cadr":
        known = contextual is not None or snapshots is not None or _knows_logging(log, policies)
        weights, defaulted = ("stable-variance", False) if known else ("uniform", True)
        method = f"{estimator} with {weights} weights"
    if weights != "uniform":
        _check_contexts(method, log, policies, snapshots)
        logging = logging_policies(log, snapshots, method)
    elif snapshots is not None:
        logging_policies(log, snapshots, method)
    burn = default_burn_in(log.n_rounds) if burn_in is None else int(burn_in)
    by_context = weights is not None and weights != "uniform" and contextual is True
    return PolicyOptions(estimator, weights, by_context, logging, outcomes, burn, defaulted)


def fit_policies(
    log: AdaptiveLog, policies: Sequence[Policy], options: PolicyOptions, baseline: Policy | None = None
) -> PolicyFit:
    """Estimate the values of policies, or their differences from a baseline."""
    every = [*policies] if baseline is None else [*policies, baseline]
    arrays = log.arrays
    propensity = np.ones(0) if arrays.propensity is None else arrays.propensity
    plain, change, taken = _parts(log, every, options.outcome)
    scores = plain + change / propensity[:, None]
    smallest = np.array([_smallest(log, one) for one in every])
    pairs = np.arange(len(policies))
    if options.estimator == "cadr":
        assert options.logging is not None
        if baseline is not None:
            plain, change = plain[:, :-1] - plain[:, -1:], change[:, :-1] - change[:, -1:]
        cadr = cadr_fit(options.logging, arrays.action, propensity, plain, change, options.burn_in)
        estimate, covariance, weights = cadr.estimate, cadr.covariance, cadr.weights
        observed = taken / propensity[:, None]
        if baseline is None:
            ess = effective_size(weights * observed)
        else:
            last = effective_size(weights * observed[:, -1:])
            ess = np.minimum(effective_size(weights * observed[:, :-1]), last)
        scores = plain + change / propensity[:, None]
    else:
        estimate, influence, weights = _weighted(options, every, scores)
        ess = effective_size(weights * taken / propensity[:, None])
        if baseline is not None:
            estimate = estimate[:-1] - estimate[-1]
            influence = influence[:, :-1] - influence[:, -1:]
            ess = np.minimum(ess[:-1], ess[-1])
        covariance = influence.T @ influence
    if baseline is not None:
        smallest = np.minimum(smallest[:-1], smallest[-1])
    gone, bare = (unobserved(log, every, fewest) >= UNOBSERVED for fewest in (1, 2))
    gone, bare = (one[pairs] | (one[-1] & (baseline is not None)) for one in (gone, bare))
    empty = np.where(gone | ~np.isfinite(estimate), np.nan, 0.0)
    vague = np.where(bare, np.nan, empty)
    return PolicyFit(
        estimate=estimate + empty,
        covariance=covariance + vague[:, None] + vague[None, :],
        ess=ess,
        min_propensity=smallest,
        rows={"scores": scores, "weights": weights},
    )


def unobserved(log: AdaptiveLog, policies: Sequence[Policy], fewest: int = 1) -> FloatArray:
    """Share of each policy's probability on arms that were chosen less often than `fewest` times.

    Returns shape (k,).
    """
    rare = np.bincount(log.arrays.action, minlength=log.n_arms) < fewest
    return np.array([float(policy.probabilities[:, rare].sum(axis=1).mean()) for policy in policies])


def _weighted(
    options: PolicyOptions, policies: Sequence[Policy], scores: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if options.weights is None or options.logging is None:
        uniform = weighted_means(scores, np.ones(scores.shape))
        return uniform.estimate, uniform.influence, np.ones(scores.shape)
    if options.contextual:
        fit = contextual_fit(options.logging, policies, scores, options.weights)
        unweighted = np.where(fit.share.any(axis=0), 0.0, np.nan)
        return fit.estimate + unweighted, fit.influence, fit.share
    weights = stabiliser(options.weights, mean_variances(options.logging, policies))
    means = weighted_means(scores, weights)
    return means.estimate, means.influence, weights


def _parts(
    log: AdaptiveLog, policies: Sequence[Policy], outcome: Outcome | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Policy means of the predictions, policy probabilities times residuals, and those probabilities."""
    arrays = log.arrays
    rounds = np.arange(log.n_rounds)
    taken = np.column_stack([policy.probabilities[rounds, arrays.action] for policy in policies])
    if outcome is None:
        return np.zeros(taken.shape), taken * arrays.reward[:, None], taken
    predicted = (
        running_means(indicators(arrays.action, np.arange(log.n_arms)), arrays.reward)
        if isinstance(outcome.values, str)
        else outcome.values
    )
    plain = np.column_stack(
        [
            predicted @ policy.probabilities[0]
            if policy.constant
            else np.einsum("tk,tk->t", predicted, policy.probabilities)
            for policy in policies
        ]
    )
    residual = arrays.reward - predicted[rounds, arrays.action]
    return plain, taken * residual[:, None], taken


def _smallest(log: AdaptiveLog, policy: Policy) -> float:
    """Smallest propensity, as far as the log tells, of an arm that the policy takes."""
    arrays = log.arrays
    if arrays.propensities is not None:
        return float(np.min(arrays.propensities, where=policy.probabilities > 0.0, initial=1.0))
    assert arrays.propensity is not None
    taken = policy.probabilities[np.arange(log.n_rounds), arrays.action] > 0.0
    return float(np.min(arrays.propensity, where=taken, initial=1.0))


def _knows_logging(log: AdaptiveLog, policies: Sequence[Policy]) -> bool:
    return (
        log.arrays.propensities is not None
        and profile_of(log).context_free
        and not _hidden_contexts(log, policies)
    )


def _hidden_contexts(log: AdaptiveLog, policies: Sequence[Policy]) -> bool:
    return not log.context and not all(policy.constant for policy in policies)


def _check_contexts(method: str, log: AdaptiveLog, policies: Sequence[Policy], snapshots: Any) -> None:
    if snapshots is None and _hidden_contexts(log, policies):
        raise InvalidForLog(
            method,
            "the policy differs between rounds, so there are contexts, but the log has none: whether its "
            "propensities depend on them is unknown",
            [
                "snapshots='context-free' if the design never looked at contexts",
                "context= of the log, with PolicySnapshots",
                "weights='uniform' (not normal in general when propensities move with the data)",
            ],
        )


def _argument_problems(
    log: AdaptiveLog,
    weights: Any,
    contextual: Any,
    estimator: Any,
    outcome: Any,
    burn_in: Any,
    null: Any,
    keep_scores: Any,
) -> list[str]:
    problems = choice_problem("estimator", estimator, ESTIMATORS)
    if weights is not None and weights not in WEIGHTS:
        hint = ""
        if weights == "sqrt":
            hint = " (stable-variance weights are the sqrt weights of a policy: the same for one arm)"
        problems.append(f"weights must be one of {', '.join(WEIGHTS)}, got {weights!r:.60}{hint}")
    problems += flag_problem("contextual", contextual) + flag_problem("keep_scores", keep_scores)
    problems += number_problem("null", null, -np.inf)
    if estimator == "cadr":
        if weights is not None or contextual is not None:
            problems.append("cadr has weights of its own: leave weights and contextual out")
        if burn_in is not None:
            problems += count_problem("burn_in", burn_in)
            if not problems and burn_in >= log.n_rounds:
                problems.append(f"burn_in must be below the log's {log.n_rounds} rounds, got {burn_in}")
    elif burn_in is not None:
        problems.append("burn_in belongs to estimator='cadr'")
    if estimator == "ipw" and outcome is not None:
        problems.append("ipw has no outcome model: leave outcome out, or ask for aipw")
    if contextual is True and weights == "uniform":
        problems.append("uniform weights are not contextual: leave contextual out")
    return problems
