"""Checks of parameters that many rooms share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

__all__ = ["choice_problem", "count_problem", "number_problem"]


def number_problem(
    name: str, value: Any, low: float, high: float = math.inf, *, open_low: bool = False
) -> list[str]:
    """Say what is wrong with a number that must lie in [low, high], or (low, high]."""
    if low == -math.inf and high == math.inf:
        span = "that is finite"
    else:
        span = f"{'above' if open_low else 'at least'} {low:g}"
        span += f" and at most {high:g}" if high < math.inf else ""
    if isinstance(value, bool) or not isinstance(value, Real):
        return [f"{name} must be a number {span}, got {value!r}"]
    value = float(value)
    inside = (value > low if open_low else value >= low) and value <= high and not math.isinf(value)
    return [] if inside else [f"{name} must be {span.removeprefix('that is ')}, got {value!r}"]


def count_problem(name: str, value: Any, low: int = 1) -> list[str]:
    """Say what is wrong with a whole number that must be at least `low`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        return [f"{name} must be a whole number of at least {low}, got {value!r}"]
    return []


def choice_problem(name: str, value: Any, choices: tuple[str, ...]) -> list[str]:
    """Say what is wrong with a name that must be one of `choices`."""
    return [] if value in choices else [f"{name} must be one of {', '.join(choices)}, got {value!r}"]
