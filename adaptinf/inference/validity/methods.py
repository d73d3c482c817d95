"""The record of a method of inference: one a file, and a model is a list of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from adaptinf.errors import InvalidForLog
from adaptinf.inference.validity.verdicts import Verdict

Question = TypeVar("Question")
"""What a model asks about: the log's profile, and the arms, groups or policies of interest."""


def unknown_length(question: Any, verdict: Verdict) -> float:
    """Of a method whose intervals nothing is known of beforehand."""
    return math.nan


@dataclass(frozen=True, slots=True, eq=False)
class MethodRecord(Generic[Question]):
    """One method of inference.

    `assess` says what each variant of it (such as each kind of weights) is worth: the label, why, what it
    assumes, what to be careful about; or "not valid", and why. `fit` computes it; its notes say the same of
    one fit. `length` is the expected length of the intervals of a variant, by counts, propensities and the
    pooled mean and variance of the rewards.
    """

    name: str
    assess: Callable[..., Sequence[Verdict]]
    fit: Callable[..., Any]
    length: Callable[[Any, Verdict], float] = field(default=unknown_length, kw_only=True)


def verdicts(methods: Iterable[MethodRecord[Question]], question: Question) -> list[Verdict]:
    """What every variant of some methods is worth, the valid ones first, each by its rank."""
    found: list[Verdict] = []
    for method in methods:
        found += method.assess(question)
    return sorted(found, key=lambda verdict: (verdict.label == "not valid", verdict.rank))


def refusal(check: Callable[..., Any], *arguments: Any) -> str:
    """Why a check refuses a log; empty where it does not."""
    try:
        check(*arguments)
    except InvalidForLog as error:
        return error.reason
    return ""
