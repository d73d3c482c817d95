"""The validity of each kind of weights for scores of policies, and its rank among recommendations."""

from __future__ import annotations

from typing import Any

from adaptinf.claims import first, said, sentence
from adaptinf.claims import policies as claims
from adaptinf.inference.policies.fit_facts import WeightFacts
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.order import Order, Rank
from adaptinf.inference.validity.stationarity import STATED

VALUES = Order(
    [
        # Uniform weights estimate the average value whatever drifts.
        "aipw uniform",
        # These require that rewards do not drift, but not that propensities settle. Weights that depend only
        # on propensities come before CADR, whose weights use estimated variances.
        "aipw stable-variance",
        "cadr",
        # These require in addition that propensities settle.
        "aipw stable-variance contextual",
        "aipw min-variance",
        "aipw min-variance contextual",
        # IPW does the same without an outcome model, so its intervals are longer.
        "ipw uniform",
        "ipw stable-variance",
        "ipw stable-variance contextual",
        "ipw min-variance",
        "ipw min-variance contextual",
        # Sequences hold at every round, which is more than was asked for, so they are the widest.
        "sequences",
    ]
)
"""Ways to estimate the value of a policy, in the order in which they are recommended."""
DIFFERENCES = Order(
    [
        # If units have several rounds, these weights do not make them dependent.
        "aipw uniform by unit",
        # One weight per round for both policies accounts for drift that all arms share. CADR comes last,
        # because its weights use estimated variances.
        "aipw combined",
        "aipw uniform",
        "cadr",
        # Such drift invalidates separate weights for each policy.
        "aipw stable-variance",
        "aipw stable-variance contextual",
        "aipw min-variance",
        "aipw min-variance contextual",
        # IPW does the same without an outcome model, so its intervals are longer.
        "ipw uniform by unit",
        "ipw combined",
        "ipw uniform",
        "ipw stable-variance",
        "ipw stable-variance contextual",
        "ipw min-variance",
        "ipw min-variance contextual",
    ]
)
"""Ways to estimate the difference between two policies, in the order in which they are recommended."""


def policy_verdict(facts: WeightFacts) -> Verdict:
    """The verdict on one kind of weights."""
    name, rank, call = facts.name, _rank(facts), _call(facts)
    if reason := first(claims.NEEDS, facts):
        return Verdict(name, "not valid", rank, call, reason)
    why, warning = sentence(said(claims.REASONS, facts)), sentence(said(claims.ROW_CAUTIONS, facts))
    return Verdict(name, "asymptotic", rank, call, why, tuple(said(claims.ASSUMES, facts)), warning)


def _rank(facts: WeightFacts) -> Rank:
    question, case = facts.question, facts.estimator
    if not facts.is_cadr:
        case = f"{case} {facts.weights}"
    if facts.contextual:
        case = f"{case} contextual"
    if not question.contrast:
        return VALUES[case]
    alone = facts.is_uniform and question.profile.repeated_units
    return DIFFERENCES[f"{case} by unit" if alone else case]


def _call(facts: WeightFacts) -> dict[str, Any]:
    """The arguments of `fit` for this kind of weights."""
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
