"""What `PolicyValue` and `PolicyContrast` ask of a log: policies, and what the design would have done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.claims import policies as claims
from adaptinf.claims import propensities, units
from adaptinf.errors import InvalidForLog
from adaptinf.inference.policies.inputs import Policy, check_support
from adaptinf.inference.scores.outcome_predictions import Outcome, outcome_model
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.policies import LoggingPolicies, PolicySnapshots, logging_policies
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.log import AdaptiveLog
from adaptinf.typing import BoolArray, FloatArray

UNOBSERVED = 0.01
"""Share of a policy on arms that were never chosen from which on its value is not estimated."""


@dataclass(frozen=True, eq=False)
class PolicyQuestion:
    """Values of policies, or their differences from a baseline, which then is the last of the policies."""

    profile: LogProfile
    policies: tuple[Policy, ...]
    contrast: bool = False
    snapshots: Any = None
    source: AdaptiveLog | None = None
    """The log of which the profile's is a part; None where it is the whole."""
    keep: BoolArray | None = None
    """Which rounds of the source these are, shape (T,)."""
    notes: tuple[str, ...] = ()

    def check_support(self, subject: str) -> None:
        """Refuse policies that take arms which the design could not choose."""
        check_support(subject, self.profile.log, self.policies)

    @property
    def _without_propensities(self) -> str:
        """What the log supports in the place of a policy's value."""
        if self.profile.context_refusal:
            return self.profile.in_place_of_means
        return claims.MEANS_OF_ARMS()

    def check_propensities(self, subject: str) -> FloatArray:
        """Propensities of the chosen arms, shape (T,)."""
        propensity = self.profile.propensity
        if self.profile.contradicted_draws:
            raise InvalidForLog(
                subject,
                self.profile.contradicted_draws,
                ["the actual assignment probabilities as propensities (propensity=)"],
            )
        if propensity is None:
            raise InvalidForLog(subject, propensities.NEEDED(), [self._without_propensities])
        return propensity

    def check_logging(self, method: str) -> LoggingPolicies:
        """What the design would have done with other rounds' contexts, where that is known."""
        if self.profile.one_draw_a_unit:
            raise InvalidForLog(method, units.NOT_DRAWN_BY_ROUND(), ["weights='uniform'"])
        try:
            return self._logging
        except InvalidForLog as error:
            raise InvalidForLog(method, error.reason, error.alternatives) from None

    def check_combined(self, method: str) -> LoggingPolicies | None:
        """The design's policies where one weight for both may come from them; None where from past rounds.

        A round's own propensities may decide its weight where they were fixed before its context: contexts
        had no part, or those of the arms in which the policies differ stay within batches.
        """
        profile, log = self.profile, self.profile.log
        if self.snapshots is not None or profile.one_draw_a_unit:
            return self.check_logging(method)
        if not profile.knows_every_propensity:
            raise InvalidForLog(method, propensities.EVERY_ONE_NEEDED(), ["weights='uniform'"])
        *policies, baseline = self.policies
        apart = np.any(
            [(one.probabilities != baseline.probabilities).any(axis=0) for one in policies], axis=0
        )
        if profile.fixed_in_time or profile.fixed_before_contexts[apart].all():
            return logging_policies(log, "context-free", method)
        return None

    @cached_property
    def settled_logging(self) -> bool:
        """Whether that is known without a word of the user."""
        return not refusal(self.check_logging, "")

    @cached_property
    def _logging(self) -> LoggingPolicies:
        log, given = self.profile.log, self.snapshots
        if given is None and not log.context and not all(policy.constant for policy in self.policies):
            raise InvalidForLog(
                "",
                claims.UNLOGGED_CONTEXTS(),
                [
                    "snapshots='context-free', if the design did not use contexts",
                    "logged contexts (context=) with PolicySnapshots",
                    "weights='uniform' (estimates may not be asymptotically normal if propensities depend on "
                    "the data)",
                ],
            )
        if self.source is None or self.keep is None or not isinstance(given, PolicySnapshots):
            return logging_policies(log, given, "PolicyValue.fit")
        return logging_policies(self.source, given, "PolicyValue.fit").within(self.keep)

    def outcome(self, subject: str, asked: Any, ridge: Any) -> Outcome:
        """The outcome model for the rounds used; predictions of the user's own are for all of the source."""
        log = self.profile.log
        if self.source is None or self.keep is None or asked is None or isinstance(asked, str):
            return outcome_model(subject, log, np.arange(log.n_arms), asked, ridge)
        every = outcome_model(subject, self.source, np.arange(log.n_arms), asked, ridge)
        assert isinstance(every.values, np.ndarray)
        return replace(every, values=every.values[self.keep])

    def unobserved(self, fewest: int = 1) -> FloatArray:
        """Share of each policy on arms that were chosen less often than `fewest` times; shape (k,)."""
        log = self.profile.log
        rare = np.bincount(log.arrays.action, minlength=log.n_arms) < fewest
        return np.array([float(one.probabilities[:, rare].sum(axis=1).mean()) for one in self.policies])
