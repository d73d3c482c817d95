"""What one way to weight the scores of policies is worth, and its place in the order of recommendation."""

from __future__ import annotations

from typing import Any

from adaptinf.claims import first, said, sentence
from adaptinf.claims import policies as claims
from adaptinf.inference.policies.facts.weights import WeightFacts
from adaptinf.inference.validity.order import Order
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.inference.validity.verdicts import Verdict

VALUES = Order(
    [
        # Right whatever drifts.
        "aipw with uniform weights",
        # Rewards must not drift. Those that need no propensities that settle come first; CADR reads how much
        # scores vary, where stable-variance weights rely on propensities alone.
        "aipw with stable-variance weights, non-contextual",
        "cadr",
        # Propensities must settle, too; often shorter.
        "aipw with stable-variance weights, contextual",
        "aipw with min-variance weights, non-contextual",
        "aipw with min-variance weights, contextual",
        # The same without an outcome model, hence longer.
        "ipw with uniform weights",
        "ipw with stable-variance weights, non-contextual",
        "ipw with stable-variance weights, contextual",
        "ipw with min-variance weights, non-contextual",
        "ipw with min-variance weights, contextual",
        # They hold at every round, which is more than was asked.
        "sequences",
    ]
)
"""Ways to the value of a policy."""
DIFFERENCES = Order(
    [
        # Where units have several rounds: these weights tie no units together.
        "aipw with uniform weights, by unit",
        # One weight a round for both policies: right under a drift that all arms share.
        "aipw with combined weights",
        "aipw with uniform weights",
        "cadr",
        # Weights of each policy's own, which such a drift spoils.
        "aipw with stable-variance weights, non-contextual",
        "aipw with stable-variance weights, contextual",
        "aipw with min-variance weights, non-contextual",
        "aipw with min-variance weights, contextual",
        # The same without an outcome model, hence longer.
        "ipw with uniform weights, by unit",
        "ipw with combined weights",
        "ipw with uniform weights",
        "ipw with stable-variance weights, non-contextual",
        "ipw with stable-variance weights, contextual",
        "ipw with min-variance weights, non-contextual",
        "ipw with min-variance weights, contextual",
    ]
)
"""Ways to the difference of two policies."""


def policy_verdict(facts: WeightFacts) -> Verdict:
    """What one way to weight is worth."""
    question, name, case = facts.question, facts.name, facts.name
    if question.contrast and question.profile.repeated_units and facts.is_uniform:
        case = f"{name}, by unit"
    rank = (DIFFERENCES if question.contrast else VALUES)[case]
    call = _call(facts)
    if reason := first(claims.NEEDS, facts):
        return Verdict(name, "not valid", rank, call, reason)
    why, warning = sentence(said(claims.REASONS, facts)), sentence(said(claims.ROW_CAUTIONS, facts))
    return Verdict(name, "asymptotic", rank, call, why, tuple(said(claims.ASSUMES, facts)), warning)


def _call(facts: WeightFacts) -> dict[str, Any]:
    """Arguments of the fit."""
    call: dict[str, Any] = {"estimator": facts.estimator}
    if not facts.is_cadr:
        call["weights"] = facts.weights
    if not facts.is_cadr and not facts.allows_drift:
        call["contextual"] = facts.contextual
    if not facts.allows_drift and not (facts.is_cadr and facts.question.contrast):
        call |= STATED
    if facts.question.snapshots is not None:
        call["snapshots"] = facts.question.snapshots
    return call
