"""What claims ask of one way to weight the scores of policies, before there is a fit."""

from __future__ import annotations

from adaptinf.claims import Finding, units
from adaptinf.claims.facts import KindOfWeights
from adaptinf.inference.policies.question import PolicyQuestion
from adaptinf.inference.policies.scores import SHARED
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import SMALL

_NEEDS_SETTLING = "min-variance"
"""Weights whose estimate is normal only where propensities settle, as that of contextual ones is."""


class WeightFacts(KindOfWeights):
    """What claims ask of one way to weight."""

    def __init__(
        self, question: PolicyQuestion, estimator: str, weights: str | None, *, contextual: bool = False
    ) -> None:
        self.question, self.profile = question, question.profile
        self.estimator, self.weights, self.contextual = estimator, weights, contextual

    @property
    def name(self) -> str:
        """The method in words, for tables and errors."""
        if self.is_cadr:
            return "cadr"
        name = f"{self.estimator} with {self.weights} weights"
        if self.weights in SHARED:
            return name
        return f"{name}, {'contextual' if self.contextual else 'non-contextual'}"

    # Why it does not serve

    @property
    def rounds_refusal(self) -> str:
        return self.profile.unit_refusal if self.is_cadr else ""

    @property
    def support_refusal(self) -> str:
        return refusal(self.question.check_support, self.name)

    @property
    def propensities_refusal(self) -> str:
        return refusal(self.question.check_propensities, self.name)

    @property
    def weights_refusal(self) -> str:
        """Why weights of a policy's own, or one for both policies, cannot be made."""
        if self.is_combined:
            return refusal(self.question.check_combined, self.name)
        if self.is_uniform and self.question.snapshots is None:
            return ""
        return refusal(self.question.check_logging, self.name)

    @property
    def contextual_by_unit(self) -> bool:
        return self.contextual and self.profile.repeated_units

    # Why it does

    @property
    def is_cadr(self) -> bool:
        return self.estimator == "cadr"

    @property
    def is_stable(self) -> bool:
        return self.weights == "stable-variance" and not self.contextual

    @property
    def is_stable_by_context(self) -> bool:
        return self.weights == "stable-variance" and self.contextual

    @property
    def is_least(self) -> bool:
        return self.weights == _NEEDS_SETTLING and not self.contextual

    @property
    def is_least_by_context(self) -> bool:
        return self.weights == _NEEDS_SETTLING and self.contextual

    # What it assumes

    @property
    def allows_drift(self) -> bool:
        return self.weights in SHARED

    @property
    def allows_no_drift(self) -> bool:
        return not self.allows_drift

    @property
    def drift_found(self) -> Finding | None:
        """A trend in some arm's rewards; None where none is tested, or does harm.

        It does none where propensities, and so weights, never move.
        """
        if self.profile.constant_propensities or (self.question.contrast and self.is_cadr):
            return None
        found: Finding | None = self.profile.trends.of(range(self.profile.log.n_arms), self.profile.log.arms)
        return found

    @property
    def policies_are_given(self) -> bool:
        return True

    @property
    def needs_settling(self) -> bool:
        return (self.contextual or self.weights == _NEEDS_SETTLING) and self.profile.adaptive

    @property
    def knows_chosen_alone(self) -> bool:
        return self.profile.log.arrays.propensities is None

    # Why its intervals may be worth less

    @property
    def tied(self) -> str:
        ties = self.profile.repeated_units and self.profile.moves and not self.is_uniform
        return units.TIED() if ties else ""

    @property
    def small_propensities(self) -> bool:
        if self.tied or self.unsettled:
            return False
        return bool(self.question.check_propensities(self.name).min(initial=1.0) < SMALL)
