"""What of a log its privacy guarantee covers, part by part, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.collected import BLANKED, PLANNED
from adaptinf.log.traits import Outputs

if TYPE_CHECKING:
    from adaptinf.log.log import AdaptiveLog
    from adaptinf.log.public import PublicLog

_NEVER: Mapping[str, str] = {
    "unit_id": "who took part is no output",
    "reward": "rewards are what is protected",
    "received": "what a participant took is no output",
    "observation": "which rewards are observed is no output",
    "outcome_round": "times are no outputs",
    "batch": "batches are not stated to follow from the calendar or from outputs",
    "randomised": "it shows the design's coins",
}
_OWN_ACTION = "the guarantee leaves out a participant's own action, which can name their context"


@dataclass(frozen=True, slots=True)
class Part:
    """One column or field, whether the guarantee covers it, and why or why not."""

    name: str
    covered: bool
    reason: str


def column_coverage(
    log: AdaptiveLog, names: Iterable[str], contexts: Collection[str] = ()
) -> tuple[Part, ...]:
    """Columns of a private log, by canonical names; contexts are those declared public."""
    guarantee = log.guarantee
    assert guarantee is not None
    outputs = stated_outputs(log) or Outputs()
    parts = []
    for name in names:
        if name in log.context:
            parts.append(_context_part(name, guarantee, name in contexts))
        elif name in log.outcomes:
            parts.append(Part(name, False, "outcomes are what is protected, as rewards are"))
        elif name == "propensity" or name.startswith("propensity_"):
            parts.append(_propensity_part(name, guarantee, outputs, log.propensity_status))
        elif name == "t":
            parts.append(_round_part(log))
        elif name == "action":
            parts.append(action_part(name, guarantee))
        elif name == "phase":
            parts.append(_phase_part(guarantee, outputs))
        else:
            parts.append(Part(name, False, _NEVER[name]))
    return tuple(parts)


def public_columns(log: AdaptiveLog, contexts: Collection[str]) -> tuple[Part, ...]:
    """Columns of which the public part speaks; contexts are those declared public.

    They follow from what was declared, and never from which columns the log happens to have: whether an
    outcome was late, or a participant erased, is no output.
    """
    guarantee = log.guarantee
    assert guarantee is not None
    declared = [name for name in map(str, log.frame) if name.startswith("propensity") or name == "phase"]
    columns = column_coverage(log, ["t", "action", *declared, *_NEVER, *log.outcomes], contexts)
    about = tuple(_context_part(name, guarantee, name in contexts) for name in context_names(log))
    by_round = any(part.name == "action" and part.covered for part in columns)
    counted = (Part("t", True, "it counts the rounds"),) if by_round else ()
    others = tuple(part for part in columns if part.name != "t")
    return (*counted, *others, *about)


def field_coverage(log: AdaptiveLog) -> tuple[Part, ...]:
    """Everything of a private log that is no column."""
    guarantee = log.guarantee
    assert guarantee is not None
    outputs = stated_outputs(log) or Outputs()
    return (
        Part("releases", True, "outputs, with the scales of their noise, which are declared"),
        Part("design", True, "its name and parameters are declared beforehand"),
        Part("arms", True, "declared beforehand"),
        Part("guarantee", True, "declared beforehand"),
        Part("noise", True, "declared beforehand"),
        _length_part(log, outputs),
        action_part("pulls", guarantee),
        _recommended_part(outputs),
        Part("reward_range", False, "it may have been taken from the data"),
        Part("adaptive_rounds", False, "it may count coins that are no outputs"),
        Part("seeds, timestamps, delays", False, "they are no outputs"),
        Part("counts of missing or clipped outcomes", False, "they are computed from rewards"),
        Part("digests of the log", False, "guesses at the log can be checked against them"),
    )


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
        return (
            dict.fromkeys(names, f"nothing is promised: {'; '.join(log.unpromised)}")
            if log.unpromised
            else {}
        )
    if math.isinf(log.guarantee.epsilon):
        return dict.fromkeys(names, "the guarantee is infinite")
    return {part.name: part.reason for part in column_coverage(log, names) if not part.covered}


def noise_told(noise: str | None) -> str:
    """The backend of the noise, after a guarantee in print."""
    told = {"simulation": "; simulated noise, not private", "release": "; exact noise (release)"}
    return told.get(noise or "", "")


def action_part(name: str, guarantee: PrivacyGuarantee) -> Part:
    """Actions, and what is counted from them."""
    if guarantee.notion == "standard":
        return Part(name, True, "actions are outputs, protected jointly with the releases")
    return Part(name, False, _OWN_ACTION)


def _length_part(log: AdaptiveLog, outputs: Outputs) -> Part:
    if outputs.length != "declared":
        return Part("n_rounds", True, "decided by releases")
    if log.design is not None and PLANNED in log.design.parameters:
        reason = "how many had come when the log was made, at a moment that nobody chose by outcomes"
        return Part("n_rounds", True, reason)
    return Part("n_rounds", True, "declared beforehand")


def _round_part(log: AdaptiveLog) -> Part:
    if np.array_equal(log.column("t"), np.arange(1, log.n_rounds + 1)):
        return Part("t", True, "it counts the rounds")
    return Part("t", False, "times and numbers of rounds that a user gave are no outputs")


def _propensity_part(name: str, guarantee: PrivacyGuarantee, outputs: Outputs, status: str) -> Part:
    if status == "estimated":
        return Part(name, False, "estimated from the data: they are no numbers of the design")
    if outputs.propensities == "by-context":
        return Part(name, False, "a round's can name its context; those of each context follow from releases")
    if outputs.propensities == "not covered":
        return Part(name, False, "the design does not state that they follow from actions and releases")
    if guarantee.notion != "standard":
        return Part(name, False, _OWN_ACTION)
    return Part(name, True, "computed from actions, proposals and releases, which are outputs")


def _phase_part(guarantee: PrivacyGuarantee, outputs: Outputs) -> Part:
    if outputs.phase == "calendar":
        return Part("phase", True, "it follows from the calendar")
    if outputs.phase == "outputs" and guarantee.notion == "standard":
        return Part("phase", True, "it follows from actions and releases")
    return Part("phase", False, "it is not stated to follow from outputs alone")


def _context_part(name: str, guarantee: PrivacyGuarantee, declared: bool) -> Part:
    if guarantee.unit != "reward":
        return Part(name, False, f"the guarantee is per {guarantee.unit}: contexts are what it protects")
    if declared:
        return Part(name, True, "declared public")
    return Part(name, False, "it was not declared public")


def _recommended_part(outputs: Outputs) -> Part:
    if outputs.recommended:
        return Part("recommended", True, "computed from releases")
    return Part("recommended", False, "the design does not state that it is computed from releases")
