"""Which arguments the max-information correction accepts."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from adaptinf.parameters import Is, check
from adaptinf.typing import FloatArray


def _is_rounds(value: Any, least: int) -> bool:
    return _is_number(value) and least <= value < math.inf and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


EPSILON = Is(lambda value: _is_number(value) and 0.0 <= value < math.inf, "a finite number, 0 or more")
ROUNDS = Is(lambda value: _is_rounds(value, 0), "a whole number of rounds, 0 or more")
SOME_ROUNDS = Is(lambda value: _is_rounds(value, 1), "a whole number of rounds, 1 or more")
BETA = Is(lambda value: _is_number(value) and 0.0 <= value <= 1.0, "in [0, 1]")
_BETA_BELOW_ONE = Is(lambda value: _is_number(value) and 0.0 <= value < 1.0, "in [0, 1)")
_OPEN_LEVEL = Is(lambda value: _is_number(value) and 0.0 < value < 1.0, "strictly between 0 and 1")
LEVEL = Is(
    lambda value: _is_number(value) and 0.0 <= value < 0.5,
    "between 0 and 0.5 (0.05 for what counts as significant at 5%)",
)


def log_of_level(subject: str, alpha: float) -> float:
    """Natural logarithm of a level strictly between 0 and 1."""
    check(subject, alpha=(alpha, _OPEN_LEVEL))
    return math.log(alpha)


def bound_problems(bound: str, beta: float | str = "optimal") -> list[str]:
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
    return problems + _BETA_BELOW_ONE("beta", beta)


def pvalue_problems(name: str, values: FloatArray, low: float, high: float) -> list[str]:
    """Problem of p-values, or logarithms of p-values, outside [low, high]; NaN is no problem."""
    bad = (values < low) | (values > high)
    count = int(np.sum(bad))
    if count == 0:
        return []
    first = float(values[bad].flat[0])
    return [f"{name} must lie in [{low:g}, {high:g}]; {count} of {values.size} do not (first: {first:g})"]
