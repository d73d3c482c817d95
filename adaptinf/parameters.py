"""Checks of parameters that many rooms share."""

from __future__ import annotations

import dataclasses
import inspect
import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray

__all__ = [
    "LARGEST",
    "SMALLEST",
    "alpha_problems",
    "arity_problem",
    "check_alpha",
    "choice_problem",
    "count_problem",
    "flag_problem",
    "jobs_problem",
    "number_array",
    "number_problem",
    "plain_fields",
    "seed_problem",
]

SMALLEST, LARGEST = 1e-30, 1e100
_MOST = 2**53


def number_problem(
    name: str, value: Any, low: float, high: float = math.inf, *, open_low: bool = False
) -> list[str]:
    """Say what is wrong with a number that must lie in [low, high], or (low, high].

    Where there is no upper end, sizes whose squares or inverses leave the range of floats are refused too.
    """
    if low == -math.inf and high == math.inf:
        span = "that is finite"
    else:
        span = f"{'above' if open_low else 'at least'} {low:g}"
        span += f" and at most {high:g}" if high < math.inf else ""
    if isinstance(value, bool) or not isinstance(value, Real):
        return [f"{name} must be a number {span}, got {value!r:.60}"]
    size = _as_float(value)
    span = span.removeprefix("that is ")
    if not ((size > low if open_low else size >= low) and size <= high):
        return [f"{name} must be {span}, got {size!r}"]
    if high == math.inf and abs(size) > LARGEST:
        return [f"{name} must be {span}, and at most {LARGEST:g} in size, got {size!r}"]
    if open_low and low == 0.0 and high == math.inf and size < SMALLEST:
        return [f"{name} must be {span}, and at least {SMALLEST:g} in size, got {size!r}"]
    return []


def check_alpha(subject: str, alpha: object) -> None:
    """Refuse an alpha that is not between 0 and 0.5."""
    problems = alpha_problems(alpha)
    if problems:
        raise ParameterError(subject, problems)


def alpha_problems(alpha: object) -> list[str]:
    """Say what is wrong with an alpha, which must lie between 0 and 0.5."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0.0 < float(alpha) < 0.5:
        return [f"alpha must be between 0 and 0.5 (0.05 gives 95% intervals), got {alpha!r}"]
    return []


def count_problem(name: str, value: Any, low: int = 1) -> list[str]:
    """Say what is wrong with a whole number that must be at least `low`, and small enough for a float."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        return [f"{name} must be a whole number of at least {low}, got {value!r:.60}"]
    if int(value) > _MOST:
        return [f"{name} must be a whole number of at most 2^53, got {value!r:.30}"]
    return []


def choice_problem(name: str, value: Any, choices: tuple[str, ...]) -> list[str]:
    """Say what is wrong with a name that must be one of `choices`."""
    if isinstance(value, str) and value in choices:
        return []
    return [f"{name} must be one of {', '.join(choices)}, got {value!r:.60}"]


def arity_problem(name: str, function: Any, arguments: tuple[str, ...]) -> list[str]:
    """Say what is wrong with a function that cannot be called with these arguments by position."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        return [f"{name} is called with {len(arguments)} arguments, ({', '.join(arguments)}): {error}"]
    except ValueError:  # a built-in function without a signature
        return []
    return []


def flag_problem(name: str, value: Any) -> list[str]:
    """Say what is wrong with an optional truth value."""
    if value is None or isinstance(value, bool):
        return []
    return [f"{name} must be True, False or None, got {value!r:.60}"]


def jobs_problem(n_jobs: Any) -> list[str]:
    """Say what is wrong with a number of worker processes, or -1 for all cores."""
    return [] if n_jobs == -1 else count_problem("n_jobs, where it is not -1,", n_jobs)


def seed_problem(rng: Any) -> list[str]:
    """Say what is wrong with a source of randomness."""
    known = rng is None or isinstance(rng, (np.random.SeedSequence, np.random.Generator))
    if known or (not isinstance(rng, bool) and isinstance(rng, Integral) and int(rng) >= 0):
        return []
    return [f"rng must be a whole number of at least 0, a SeedSequence, a Generator or None, got {rng!r:.60}"]


def number_array(values: Any) -> FloatArray | None:
    """Values as an array of floats; None where they are not numbers in rows of one length."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and not all(isinstance(entry, Real) for entry in array.flat):
            return None
        return array.astype(np.float64) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def plain_fields(parameters: Any) -> None:
    """Make the numbers in a frozen dataclass Python's own, so that they print, and divide, as such."""
    for field in dataclasses.fields(parameters):
        value: Any = getattr(parameters, field.name)
        if not isinstance(value, bool) and isinstance(value, Real):
            plain = int(value) if isinstance(value, Integral) else float(value)
            object.__setattr__(parameters, field.name, plain)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
