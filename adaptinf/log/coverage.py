"""What of a log its privacy guarantee covers, part by part, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import Claim, Said, first
from adaptinf.claims.logs import coverage as claims
from adaptinf.log.traits import BLANKED, PLANNED, Outputs

if TYPE_CHECKING:
    from adaptinf.log.log import AdaptiveLog
    from adaptinf.log.public import PublicLog

_NEVER = ("unit_id", "reward", "received", "observation", "outcome_round", "batch", "randomised")
"""Columns that no guarantee covers, whether the log has them or not."""


@dataclass(frozen=True, slots=True)
class Part:
    """One column or field, whether the guarantee covers it, and why or why not."""

    name: str
    covered: bool
    reason: str


class _Facts:
    """What claims ask of the guarantee, of what the design states, and of one part by its name."""

    always = True

    def __init__(self, log: AdaptiveLog, name: str, declared: Collection[str] = ()) -> None:
        assert log.guarantee is not None
        self.log, self.guarantee, self.name, self._declared = log, log.guarantee, name, declared
        self.outputs = stated_outputs(log) or Outputs()

    @property
    def anticipating(self) -> bool:
        return self.guarantee.notion != "standard"

    @property
    def has_estimates(self) -> bool:
        return self.log.propensity_status == "estimated"

    @property
    def outputs_by_context(self) -> bool:
        return self.outputs.propensities == "by-context"

    @property
    def outputs_without_propensities(self) -> bool:
        return self.outputs.propensities == "not covered"

    @property
    def counts_rounds(self) -> bool:
        return np.array_equal(self.log.column("t"), np.arange(1, self.log.n_rounds + 1))

    @property
    def phase_by_calendar(self) -> bool:
        return self.outputs.phase == "calendar"

    @property
    def phase_by_outputs(self) -> bool:
        return self.outputs.phase == "outputs" and not self.anticipating

    @property
    def protects_contexts(self) -> dict[str, str]:
        return {} if self.guarantee.unit == "reward" else {"unit": self.guarantee.unit}

    @property
    def context_is_public(self) -> bool:
        return self.name in self._declared

    @property
    def length_by_releases(self) -> bool:
        return self.outputs.length != "declared"

    @property
    def ended_early(self) -> bool:
        return self.log.design is not None and PLANNED in self.log.design.parameters

    @property
    def stopped_by_data(self) -> bool:
        return self.log.stopping == "data-chosen"

    @property
    def recommends_by_releases(self) -> bool:
        return bool(self.outputs.recommended)


def column_coverage(
    log: AdaptiveLog, names: Iterable[str], contexts: Collection[str] = ()
) -> tuple[Part, ...]:
    """Columns of a private log, by canonical names; contexts are those declared public."""
    return tuple(_part(_claims_of(log, name), _Facts(log, name, contexts)) for name in names)


def public_columns(log: AdaptiveLog, contexts: Collection[str]) -> tuple[Part, ...]:
    """Columns of which the public part speaks; contexts are those declared public.

    They follow from what was declared, and never from which columns the log happens to have: whether an
    outcome was late, or a participant erased, is no output.
    """
    declared = [name for name in map(str, log.frame) if name.startswith("propensity") or name == "phase"]
    columns = column_coverage(log, ["action", *declared, *_NEVER, *log.outcomes], contexts)
    about = tuple(_part(claims.CONTEXT, _Facts(log, name, contexts)) for name in context_names(log))
    by_round = any(part.name == "action" and part.covered for part in columns)
    counted = (Part("t", True, claims.COUNTS_ROUNDS()),) if by_round else ()
    return (*counted, *columns, *about)


def field_coverage(log: AdaptiveLog) -> tuple[Part, ...]:
    """Everything of a private log that is no column."""
    return tuple(_part(listed, _Facts(log, name)) for name, listed in claims.FIELDS.items())


def context_names(log: AdaptiveLog) -> list[str]:
    """Names of the declared contexts, in the log or erased."""
    blanked = [] if log.design is None else log.design.parameters.get(BLANKED, [])
    return [*log.context, *(name for name in blanked if name not in log.context)]


def stated_outputs(log: AdaptiveLog | PublicLog) -> Outputs | None:
    """What the log's design states of its outputs."""
    traits = None if log.design is None else log.design.traits
    return None if traits is None else traits.outputs


def not_covered(log: AdaptiveLog, names: Iterable[str]) -> dict[str, str]:
    """Columns of a private log outside its guarantee, with the reason; empty where it promises none."""
    if log.guarantee is None:
        why = log.unpromised
        return dict.fromkeys(names, claims.UNPROMISED(reasons="; ".join(why))) if why else {}
    if math.isinf(log.guarantee.epsilon):
        return dict.fromkeys(names, claims.INFINITE())
    return {part.name: part.reason for part in column_coverage(log, names) if not part.covered}


def noise_told(noise: str | None) -> str:
    """The backend of the noise, after a guarantee in print."""
    told = {"simulation": "; simulated noise, not private", "release": "; exact noise (release)"}
    return told.get(noise or "", "")


def _claims_of(log: AdaptiveLog, name: str) -> Sequence[Claim]:
    """What can be said of a column."""
    if name in log.context:
        return claims.CONTEXT
    if name in log.outcomes:
        return (claims.OUTCOME,)
    if name == "propensity" or name.startswith("propensity_"):
        return claims.PROPENSITY
    return claims.COLUMNS[name]


def _part(listed: Sequence[Claim], facts: _Facts) -> Part:
    """The first claim that is so: a reason why the part is covered, or what it would need."""
    told = first(listed, facts)
    assert isinstance(told, Said)
    return Part(facts.name, told.claim.kind == "reason", told)
