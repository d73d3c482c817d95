"""Inputs to models of policies: the policies that users supply, and the rounds that can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims import policies as claims
from adaptinf.claims import propensities, units
from adaptinf.claims.policies import BEYOND_SUPPORT
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import by_arm
from adaptinf.inference.scores.outcome_predictions import Outcome, outcome_model
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.policies import (
    LoggingPolicies,
    PolicySnapshots,
    logging_policies,
    predict,
    probability_problems,
)
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.texts import did_you_mean, listed, shown
from adaptinf.typing import BoolArray, FloatArray

_LONGEST = 40


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A policy at the contexts of a log; probabilities has shape (T, K)."""

    name: str
    probabilities: FloatArray
    constant: bool

    def within(self, keep: BoolArray) -> Policy:
        """The policy in the rounds that are kept; keep (T,)."""
        if self.constant and keep.any():
            shape = (int(keep.sum()), self.probabilities.shape[1])
            return Policy(self.name, np.broadcast_to(self.probabilities[0], shape), True)
        return Policy(self.name, self.probabilities[keep], self.constant)


def read_policies(
    subject: str, log: AdaptiveLog, policy: Any, names: Sequence[str] | None = None
) -> tuple[Policy, ...]:
    """Read policies given in any of the allowed forms."""
    given = list(policy) if isinstance(policy, (list, tuple)) else [policy]
    problems: list[str] = []
    if not given:
        problems.append("give at least one policy")
    wanted = [names] if isinstance(names, str) else names
    if wanted is not None and (len(wanted) != len(given) or not all(isinstance(n, str) for n in wanted)):
        problems.append(f"names must be {len(given)} strings, one per policy, got {names!r:.80}")
        wanted = None
    read: list[Policy] = []
    for position, one in enumerate(given):
        label = _name(log, one, position, len(given)) if wanted is None else wanted[position]
        values, found = _probabilities(subject, log, one, label)
        problems += found
        if values is not None and not found:
            constant = len(values) == 1 or values.strides[0] == 0 or bool(np.all(values == values[0]))
            read.append(Policy(label, values, constant))
    labels = [one.name for one in read]
    if len(set(labels)) < len(labels):
        problems.append(f"two policies have the same name: {', '.join(labels)} (names= can distinguish them)")
    refuse(subject, problems)
    return tuple(read)


def check_support(method: str, log: AdaptiveLog, policies: Sequence[Policy]) -> None:
    """Refuse policies with arms that the design could not choose."""
    profile = profile_of(log)
    for policy in policies:
        taken = policy.probabilities > 0.0
        impossible: BoolArray
        known = profile.partial_propensities if profile.propensities is None else profile.propensities
        if known is not None:
            impossible = taken & (known <= 0.0)
        elif profile.propensity is not None:
            certain = (profile.propensity >= 1.0)[:, None]
            impossible = taken & certain & (log.arrays.action[:, None] != np.arange(log.n_arms))
        else:
            return
        counts = impossible.sum(axis=0)
        if counts.any():
            arms = ", ".join(
                f"{log.arms[code]!r} in {int(counts[code])}" for code in np.flatnonzero(counts)[:5]
            )
            raise InvalidForLog(
                method,
                BEYOND_SUPPORT(policy=policy.name, arms=arms, rounds=log.n_rounds),
                [
                    "a policy that assigns only arms with positive propensity",
                    "an analysis of only the randomised rounds",
                ],
            )


def _name(log: AdaptiveLog, policy: Any, position: int, count: int) -> str:
    if isinstance(policy, str) or _is_arm(log, policy):
        return str(policy)
    own = getattr(policy, "__name__", None)
    if isinstance(own, str) and own.isidentifier():
        return own
    if isinstance(policy, Mapping) and all(isinstance(one, (str, int, float)) for one in policy.values()):
        written = "{" + ", ".join(f"{arm}: {_short(one)}" for arm, one in policy.items()) + "}"
        if len(written) <= _LONGEST:
            return written
    return "policy" if count == 1 else f"policy {position + 1}"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _is_arm(log: AdaptiveLog, policy: Any) -> bool:
    plain = isinstance(policy, (str, int, float, bool, np.generic))
    return plain and policy in log.arms


def _probabilities(
    subject: str, log: AdaptiveLog, policy: Any, name: str
) -> tuple[FloatArray | None, list[str]]:
    shape, what = (log.n_rounds, log.n_arms), f"policy {name!r}"
    if _is_arm(log, policy):
        if policy == "uniform":
            problem = (
                "'uniform' is ambiguous because it is also an arm of this log: give the probabilities "
                "as an array of shape (K,)"
            )
            return None, [problem]
        return np.broadcast_to(np.eye(log.n_arms)[log.arms.index(policy)], shape), []
    if isinstance(policy, str) and policy == "uniform":
        return np.broadcast_to(np.full(log.n_arms, 1.0 / log.n_arms), shape), []
    if policy is None or isinstance(policy, (str, int, float, np.generic)):
        hint = did_you_mean(policy, [*log.arms, "uniform"])
        problem = (
            f"{shown(policy)} is not an arm of the log ({listed(log.arms)}); a policy is an arm, 'uniform', "
            "an array of shape (T, K) or (K,), a frame with a column per arm, a mapping from arms to "
            f"columns, a callable of the contexts, or a model with predict_proba{hint}"
        )
        return None, [problem]
    if isinstance(policy, Mapping):
        return _from_columns(log, policy, what)
    values: FloatArray | None
    if callable(policy) or hasattr(policy, "predict_proba"):
        values = predict(subject, what, policy, log.frame[list(log.context)], log.arms)
    else:
        values, problems = by_arm(what, policy, log.arms, pd.RangeIndex(log.n_rounds))
        if problems:
            return None, problems
    if values is not None and values.shape == (log.n_arms,):
        values = np.broadcast_to(values, shape)
    return values, probability_problems(what, values, shape, 0)


def _from_columns(
    log: AdaptiveLog, policy: Mapping[Any, Any], what: str
) -> tuple[FloatArray | None, list[str]]:
    """Probabilities from a mapping of arms to columns, arrays or numbers; arms left out have none."""
    if policy and not any(arm in log.arms for arm in policy):
        known, keys = ", ".join(map(repr, log.arms)), ", ".join(map(repr, [*policy][:5]))
        problem = (
            f"{what}: its keys ({keys}) are not arms of the log ({known}); pass several policies as a list, "
            "with their labels in names="
        )
        return None, [problem]
    problems: list[str] = []
    columns = dict(policy)
    for arm, source in policy.items():
        if isinstance(source, str) and arm in log.arms:
            try:
                columns[arm] = log.column(source)
            except (KeyError, ParameterError) as error:
                problems.append(f"{what}: {error}")
                columns[arm] = 0.0
    values, found = by_arm(what, columns, log.arms, pd.RangeIndex(log.n_rounds))
    problems += found
    return values, problems or probability_problems(what, values, (log.n_rounds, log.n_arms), 0)


UNOBSERVED = 0.01
"""The value of a policy is not estimated if its probability of arms that were never chosen is at least
this."""


@dataclass(frozen=True, eq=False)
class PolicyQuestion:
    """A question about values of policies, or about differences from a baseline, the last of the policies."""

    profile: LogProfile
    policies: tuple[Policy, ...]
    contrast: bool = False
    snapshots: Any = None
    source: AdaptiveLog | None = None
    """The log from which the profile's log was selected; None if the profile's log is complete."""
    keep: BoolArray | None = None
    """The rounds of the source that are used, shape (T,)."""
    notes: tuple[str, ...] = ()

    def check_support(self, subject: str) -> None:
        """Refuse policies with arms that the design could not choose."""
        check_support(subject, self.profile.log, self.policies)

    @property
    def _without_propensities(self) -> str:
        """What the log can be used for instead of a policy's value."""
        if self.profile.context_refusal:
            return self.profile.in_place_of_means
        return claims.MEANS_OF_ARMS()

    def check_propensities(self, subject: str) -> FloatArray:
        """Return the propensities of the chosen arms, shape (T,), or refuse the log."""
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
        """Return the design's probabilities at the contexts of other rounds, or refuse the method."""
        if self.profile.one_draw_a_unit:
            raise InvalidForLog(method, units.NOT_DRAWN_BY_ROUND(), ["weights='uniform'"])
        try:
            return self._logging
        except InvalidForLog as error:
            raise InvalidForLog(method, error.reason, error.alternatives) from None

    def check_combined(self, method: str) -> LoggingPolicies | None:
        """The design's policies, if these can determine combined weights; None if past rounds determine them.

        A round's own propensities can determine its weight if they were fixed before its context. This is the
        case if contexts did not affect the choice, or if the propensities of the arms in which the policies
        differ are constant within batches.
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
        """Whether the design's policies at all contexts are known without a declaration by the user."""
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
        """The outcome model for the rounds used; a user's predictions refer to all rounds of the source."""
        log = self.profile.log
        if self.source is None or self.keep is None or asked is None or isinstance(asked, str):
            return outcome_model(subject, log, np.arange(log.n_arms), asked, ridge)
        every = outcome_model(subject, self.source, np.arange(log.n_arms), asked, ridge)
        assert isinstance(every.values, np.ndarray)
        return replace(every, values=every.values[self.keep])

    def unobserved(self, fewest: int = 1) -> FloatArray:
        """Each policy's probability of arms that were chosen fewer than `fewest` times, shape (k,)."""
        log = self.profile.log
        rare = log._rounds_by_arm() < fewest
        return np.array([float(one.probabilities[:, rare].sum(axis=1).mean()) for one in self.policies])
