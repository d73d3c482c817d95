"""Checks of the arguments of the formulas, which may be numbers or arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import LARGEST, OneOf, refuse
from adaptinf.typing import FloatArray, IntArray

_LEAST, _LEAST_ERROR = 1e-250, 1e-60


@dataclass(frozen=True)
class Numbers:
    """A number in a range, or an array of such numbers."""

    low: float = 0.0
    high: float = math.inf
    _: KW_ONLY
    open_low: bool = True
    open_high: bool = False
    infinite: bool = False

    def read(self, name: str, values: ArrayLike, problems: list[str]) -> FloatArray:
        """Values as floats; anything that is not a number in the range is added to the problems."""
        low, high = self.low, self.high
        span = f"{'above' if self.open_low else 'at least'} {low:g}" if low > -math.inf else "finite"
        if high < math.inf:
            span += f" and {'below' if self.open_high else 'at most'} {high:g}"
        array = _plain(values)
        if array is None:
            problems.append(f"{name} must be {span}: a number or an array of them, got {values!r:.60}")
            return np.full(1, np.nan)
        inside = array > low if self.open_low else array >= low
        inside &= array < high if self.open_high else array <= high
        bad = array[~inside | (np.isinf(array) & (not self.infinite))]
        if bad.size:
            problems.append(f"{name} must be {span}, got {bad.flat[0]:g}")
        least = 0.0 if not self.open_low or low != 0.0 else _LEAST
        extreme = array[~np.isinf(array) & ((np.abs(array) > LARGEST) | (np.abs(array) < least))]
        if extreme.size and not bad.size:
            size = f"from {least:g} to {LARGEST:g}"
            problems.append(
                f"{name} must be within the range that can be computed, {size}, got {extreme.flat[0]:g}"
            )
        return array


@dataclass(frozen=True)
class Counts:
    """An integer of at least `low`, or an array of such integers."""

    low: int = 1

    def read(self, name: str, values: ArrayLike, problems: list[str]) -> IntArray:
        """Values as integers; anything else is added to the problems."""
        array = _plain(values)
        if array is None:
            problems.append(f"{name} must be a whole number, or an array of them, got {values!r:.60}")
            return np.full(1, self.low)
        bad = array[~((array >= self.low) & (array == np.floor(array)) & (array < 2.0**62))]
        if bad.size:
            problems.append(f"{name} must be a whole number of at least {self.low}, got {bad.flat[0]:g}")
            return np.full(array.shape, self.low)
        return np.asarray(values, dtype=np.int64)


EACH_COUNT, EACH_POSITIVE, EACH_LEVEL = Counts(), Numbers(), Numbers(infinite=True)
EACH_SHARE = Numbers(0.0, 1.0, open_high=True)
FORM = OneOf("explicit", "published")


def read_arrays(
    problems: list[str], /, **declared: tuple[ArrayLike, Numbers | Counts]
) -> dict[str, FloatArray | IntArray]:
    """Arrays from arguments given as name=(values, constraint); problems with invalid arguments are added."""
    arrays = {name: each.read(name, values, problems) for name, (values, each) in declared.items()}
    together(problems, **arrays)
    return arrays


def together(problems: list[str], /, **arrays: FloatArray | IntArray) -> None:
    """Add a problem if the shapes do not broadcast."""
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        problems.append(f"the shapes must be compatible for broadcasting, got {shapes}")


def check_arrays(
    subject: str, problems: list[str] | None = None, /, **declared: tuple[ArrayLike, Numbers | Counts]
) -> tuple[FloatArray | IntArray, ...]:
    """Arrays from arguments; if there are problems, given or found, a single error lists them all."""
    listed = list(problems or [])
    arrays = read_arrays(listed, **declared)
    refuse(subject, listed)
    return tuple(arrays.values())


def _means_within(arrays: dict[str, FloatArray | IntArray], problems: list[str]) -> None:
    """Add a problem if a mean exceeds the bound, or an error is so small that its square vanishes."""
    if problems:
        return
    size = np.abs(arrays["mean"]) / arrays["bound"]
    if (size > 1.0).any():
        problems.append("mean must lie in [-bound, bound]")
    error = arrays["alpha"] * size
    if ((error > 0.0) & (error < _LEAST_ERROR)).any():
        problems.append(f"alpha abs(mean) / bound must be 0 or at least {_LEAST_ERROR:g}")


def each(function: Callable[..., float], *arrays: FloatArray | IntArray) -> FloatArray:
    """Apply a scalar function to arrays that broadcast; if all are numbers, the result is a number."""
    spread = np.broadcast_arrays(*arrays)
    rows = zip(*(array.ravel().tolist() for array in spread), strict=True)
    values = np.array([function(*row) for row in rows], dtype=np.float64)
    result: FloatArray = values.reshape(spread[0].shape)[()]
    return result


def _plain(values: Any) -> FloatArray | None:
    """Values as floats, or None if they are not numbers (booleans do not count as numbers)."""
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    if array.size == 0 or array.dtype.kind not in "iuf":
        return None
    return array.astype(np.float64)


def stopping_numbers(
    problems: list[str], *arguments: ArrayLike, largest_beta: float | None = None
) -> dict[str, FloatArray | IntArray]:
    """Arrays of mean, alpha, beta, epsilon and bound; beta must be below 1, or at most `largest_beta`."""
    failure = EACH_SHARE if largest_beta is None else Numbers(0.0, largest_beta)
    constraints = (Numbers(-math.inf), EACH_SHARE, failure, EACH_LEVEL, EACH_POSITIVE)
    given = zip(arguments, constraints, strict=True)
    arrays = read_arrays(
        problems, **dict(zip(("mean", "alpha", "beta", "epsilon", "bound"), given, strict=True))
    )
    _means_within(arrays, problems)
    return arrays
