"""The definition of a method of inference, and its validity and place in the recommendations for a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from adaptinf.errors import InvalidForLog
from adaptinf.inference.validity.order import Rank


@dataclass(frozen=True, slots=True)
class Verdict:
    """The validity of one method for a log."""

    name: str
    label: str
    rank: Rank
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    assumes: tuple[str, ...] = ()
    warning: str = ""
    baseline: bool = False
    """Whether the method can be run although it is not valid."""
    offered: bool = True
    """Whether error messages suggest the method as an alternative."""
    corrected: bool = False
    """Whether the valid columns are those with corrected values."""
    length: float = math.nan
    """Expected length of the method's 95% intervals, if known, not based on the rewards of single arms."""
    unanswered: int = 0
    """Number of arms without an interval because their outcomes are too rare."""
    opening: str = ""
    """First sentence about a fit that is not valid for the given reason; empty for the usual sentence."""

    @property
    def order(self) -> tuple[bool, int, Rank]:
        """Sort key: valid methods come first, and among these, methods with intervals for more arms."""
        return not self.valid, self.unanswered if self.valid else 0, self.rank

    @property
    def valid(self) -> bool:
        """Whether the label of the verdict is not "not valid"."""
        return self.label != "not valid"


Question = TypeVar("Question")
"""The subject of a model: the profile of a log, and the arms, groups or policies of interest."""


def unknown_length(question: Any, verdict: Verdict) -> float:
    """NaN, for a method whose interval length is unknown in advance."""
    return math.nan


@dataclass(frozen=True, slots=True, eq=False)
class MethodRecord(Generic[Question]):
    """One method of inference.

    `assess` gives the verdict on each variant, for example for each kind of weights. A verdict is a label
    with the reason, assumptions and cautions, or "not valid" with the reason. `fit` computes the results,
    with notes that make the same statements about one fit. `length` is the expected length of the intervals
    of a variant, from counts, propensities and the pooled mean and variance of the rewards.
    """

    name: str
    assess: Callable[..., Sequence[Verdict]]
    fit: Callable[..., Any]
    length: Callable[[Any, Verdict], float] = field(default=unknown_length, kw_only=True)


def verdicts(methods: Iterable[MethodRecord[Question]], question: Question) -> list[Verdict]:
    """Verdicts on all variants of the methods, sorted by validity and then by rank."""
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
