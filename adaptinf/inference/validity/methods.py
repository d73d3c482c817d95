"""The definition of a method of inference, its validity for a log, and the order of recommendation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from adaptinf.errors import InvalidForLog
from adaptinf.inference.validity.order import Rank


@dataclass(frozen=True, slots=True)
class Verdict:
    """Validity of one method for a log."""

    name: str
    label: str
    rank: Rank
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    assumes: tuple[str, ...] = ()
    warning: str = ""
    baseline: bool = False
    """Whether the method runs although it is not valid."""
    offered: bool = True
    """Whether errors suggest the method as an alternative."""
    corrected: bool = False
    """Whether the valid columns are the corrected ones."""
    length: float = math.nan
    """Expected length of its 95% intervals, if known; not based on any arm's own rewards."""
    unanswered: int = 0
    """Number of arms without an interval because their outcomes are too rare."""
    opening: str = ""
    """The opening of a fit that is treated as not valid for this reason; empty for the usual opening."""

    @property
    def order(self) -> tuple[bool, int, Rank]:
        """Sort key: valid methods first; among these, the ones with intervals for most arms; then by rank."""
        return not self.valid, self.unanswered if self.valid else 0, self.rank

    @property
    def valid(self) -> bool:
        """Whether its label is other than "not valid"."""
        return self.label != "not valid"


Question = TypeVar("Question")
"""The subject of a model: the log's profile, and the arms, groups or policies of interest."""


def unknown_length(question: Any, verdict: Verdict) -> float:
    """NaN, for a method whose interval length is unknown in advance."""
    return math.nan


@dataclass(frozen=True, slots=True, eq=False)
class MethodRecord(Generic[Question]):
    """One method of inference.

    `assess` gives the verdict on each variant (such as each kind of weights): the label, the reason,
    assumptions and cautions; or "not valid", and the reason. `fit` computes it; its notes make the same
    statements about one fit. `length` is the expected length of the intervals of a variant, from counts,
    propensities and the pooled mean and variance of the rewards.
    """

    name: str
    assess: Callable[..., Sequence[Verdict]]
    fit: Callable[..., Any]
    length: Callable[[Any, Verdict], float] = field(default=unknown_length, kw_only=True)


def verdicts(methods: Iterable[MethodRecord[Question]], question: Question) -> list[Verdict]:
    """Verdicts on every variant of some methods, valid ones first, each by its rank."""
    found: list[Verdict] = []
    for method in methods:
        found += method.assess(question)
    return sorted(found, key=lambda verdict: (verdict.label == "not valid", verdict.rank))


def refusal(check: Callable[..., Any], *arguments: Any) -> str:
    """The reason why a check refuses a log; empty if it does not."""
    try:
        check(*arguments)
    except InvalidForLog as error:
        return error.reason
    return ""
