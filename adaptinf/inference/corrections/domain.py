"""Which arguments the max-information correction accepts; every violation is reported at once."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray

__all__ = [
    "bound_problems",
    "check",
    "interval_problems",
    "level_problems",
    "log_of_level",
    "pvalue_problems",
]


def check(subject: str, epsilon: float, n: float, problems: list[str], least: int = 0) -> None:
    """Raise a `ParameterError` for a bad epsilon or n, and for the problems that the caller found."""
    found = []
    if not _is_number(epsilon) or not 0.0 <= epsilon < math.inf:
        found.append(f"epsilon must be a finite number, 0 or more, got {epsilon!r}")
    if not _is_number(n) or not least <= n < math.inf or n != int(n):
        found.append(f"n must be a whole number of rounds, {least} or more, got {n!r}")
    if found or problems:
        raise ParameterError(subject, found + problems)


def log_of_level(subject: str, alpha: float) -> float:
    """Natural logarithm of a level strictly between 0 and 1."""
    if not _is_number(alpha) or not 0.0 < alpha < 1.0:
        raise ParameterError(subject, [f"alpha must be strictly between 0 and 1, got {alpha!r}"])
    return math.log(alpha)


def level_problems(alpha: float) -> list[str]:
    """Problem of a level outside [0, 0.5), such as a confidence level."""
    if _is_number(alpha) and 0.0 <= alpha < 0.5:
        return []
    return [f"alpha must be between 0 and 0.5 (0.05 for what counts as significant at 5%), got {alpha!r}"]


def interval_problems(name: str, value: float, *, closed: bool) -> list[str]:
    """Problem of a value outside [0, 1), or outside [0, 1] where closed."""
    inside = _is_number(value) and 0.0 <= value <= 1.0 and (closed or value < 1.0)
    return [] if inside else [f"{name} must be in [0, 1{']' if closed else ')'}, got {value!r}"]


def bound_problems(bound: str, beta: float | str) -> list[str]:
    """Problems of a bound's name and of the beta that goes with it."""
    problems = []
    if bound not in ("max-information", "moment"):
        problems.append(f"bound must be 'max-information' or 'moment', got {bound!r}")
    if beta == "optimal":
        return problems
    if isinstance(beta, str):
        return [*problems, f"beta must be 'optimal' or a number in [0, 1), got {beta!r}"]
    if bound == "moment":
        problems.append("the moment bound has no beta: leave it 'optimal'")
    return problems + interval_problems("beta", beta, closed=False)


def pvalue_problems(name: str, values: FloatArray, low: float, high: float) -> list[str]:
    """Problem of p-values, or logarithms of p-values, outside [low, high]; NaN is no problem."""
    bad = (values < low) | (values > high)
    count = int(np.sum(bad))
    if count == 0:
        return []
    first = float(values[bad].flat[0])
    return [f"{name} must lie in [{low:g}, {high:g}]; {count} of {values.size} do not (first: {first:g})"]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
