"""The methods of `PolicyValue` and `PolicyContrast`, and their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from adaptinf.claims.policies import CONTEXTUAL_BY_UNIT
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.policies.cadr import CADR, default_burn_in
from adaptinf.inference.policies.policy_question import PolicyQuestion
from adaptinf.inference.policies.policy_scores import COMMON, SHARED, PolicyOptions
from adaptinf.inference.policies.policy_weights import KINDS
from adaptinf.inference.policies.weighted_scores import AIPW, IPW
from adaptinf.inference.validity.methods import MethodRecord, refusal
from adaptinf.inference.validity.policies import snapshots_problems
from adaptinf.parameters import (
    COUNT,
    FINITE,
    FLAG,
    OneOf,
    refuse,
)
from adaptinf.texts import unlisted

METHODS: Mapping[str, MethodRecord[PolicyQuestion]] = {one.name: one for one in (AIPW, IPW, CADR)}
"""Methods keyed by estimator."""
_WEIGHTS = ("uniform", *KINDS)


class Request(NamedTuple):
    """The arguments of a fit."""

    weights: Any
    contextual: Any
    estimator: Any
    outcome: Any
    ridge: Any
    snapshots: Any
    burn_in: Any
    null: Any
    keep_scores: Any
    stationary: Any


def policy_options(subject: str, question: PolicyQuestion, asked: Request) -> PolicyOptions:
    """Complete the user's options with defaults, and check them."""
    log, estimator, weights = question.profile.log, asked.estimator, asked.weights
    problems = snapshots_problems(asked.snapshots) + _argument_problems(question, asked)
    refuse(subject, problems)
    question.check_propensities(subject)
    outcomes = None
    if estimator != "ipw":
        outcomes = question.outcome(subject, asked.outcome, asked.ridge)
    elif asked.ridge is not None:
        raise ParameterError(subject, ["ridge= applies to an outcome model, but ipw has none"])
    method, defaulted = "cadr", False
    if estimator != "cadr":
        if weights is None:
            weights = _own_default(question, asked) if asked.stationary else _default(question, asked)
            defaulted = weights == "uniform"
        method = f"{estimator} with {weights} weights"
    logging = None
    if weights == COMMON:
        logging = question.check_combined(method)
    elif weights != "uniform" or asked.snapshots is not None:
        logging = question.check_logging(method)
    burn = default_burn_in(log.n_rounds) if asked.burn_in is None else int(asked.burn_in)
    by_context = weights is not None and asked.contextual is True
    if by_context and question.profile.repeated_units:
        raise InvalidForLog("contextual weights", CONTEXTUAL_BY_UNIT(), ["weights='uniform'"])
    return PolicyOptions(
        estimator,
        weights,
        by_context,
        None if weights == "uniform" else logging,
        outcomes,
        burn,
        stationary=asked.stationary,
        defaulted=defaulted,
    )


def _default(question: PolicyQuestion, asked: Request) -> str:
    """Weights that allow for drift of all rewards: shared by both policies or, for a value, uniform."""
    if asked.contextual is not None:
        return "stable-variance"
    alone = not question.contrast or question.profile.repeated_units
    return "uniform" if alone or refusal(question.check_combined, "") else COMMON


def _own_default(question: PolicyQuestion, asked: Request) -> str:
    """Weights that are specific to each policy, if the design's policies are known and nothing drifts."""
    if asked.contextual is not None or asked.snapshots is not None:
        return "stable-variance"
    plain = not question.settled_logging or question.profile.repeated_units
    return "uniform" if plain else "stable-variance"


def _argument_problems(question: PolicyQuestion, asked: Request) -> list[str]:
    weights, contextual, estimator, burn_in = asked.weights, asked.contextual, asked.estimator, asked.burn_in
    problems = OneOf(*METHODS)("estimator", estimator)
    problems += _weights_problems(weights, (COMMON, *_WEIGHTS) if question.contrast else _WEIGHTS)
    problems += FLAG("contextual", contextual) + FLAG("keep_scores", asked.keep_scores)
    problems += FLAG("stationary", asked.stationary)
    problems += FINITE("null", asked.null)
    if estimator == "cadr":
        if weights is not None or contextual is not None:
            problems.append("cadr has its own weights: omit weights and contextual")
        if burn_in is not None:
            problems += COUNT("burn_in", burn_in)
            rounds = question.profile.log.n_rounds
            if not problems and burn_in >= rounds:
                problems.append(f"burn_in must be below the log's {rounds} rounds, got {burn_in}")
    elif burn_in is not None:
        problems.append("burn_in applies only to estimator='cadr'")
    if estimator == "ipw" and asked.outcome is not None:
        problems.append("ipw has no outcome model: omit outcome, or use aipw")
    if contextual is True and weights in SHARED:
        problems.append(f"{weights} weights are not contextual: omit contextual")
    return problems


def _weights_problems(weights: Any, known: Sequence[str]) -> list[str]:
    """Problems with the name of the weights, with a hint if another model has such weights."""
    if weights is None or weights in known:
        return []
    hints = {
        "sqrt": " (stable-variance weights are the sqrt weights of a policy: the two agree for a single arm)",
        COMMON: " (combined weights are shared by both policies of a PolicyContrast)",
    }
    hint = hints.get(weights, "") if isinstance(weights, str) else ""
    return [unlisted("weights", known, weights) + hint]
