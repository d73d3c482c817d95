"""Arguments of the formulas: checked together, numbers or arrays alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.parameters import LARGEST
from adaptinf.typing import FloatArray, IntArray

__all__ = ["counts", "each", "means_within", "numbers", "refuse", "stopping_numbers", "together"]

_LEAST, _LEAST_ERROR = 1e-250, 1e-60


def numbers(
    name: str,
    values: ArrayLike,
    problems: list[str],
    low: float = 0.0,
    high: float = math.inf,
    *,
    open_low: bool = True,
    open_high: bool = False,
    infinite: bool = False,
) -> FloatArray:
    """Values as floats; whatever is not a number in the range joins the problems."""
    span = f"{'above' if open_low else 'at least'} {low:g}" if low > -math.inf else "finite"
    if high < math.inf:
        span += f" and {'below' if open_high else 'at most'} {high:g}"
    array = _plain(values)
    if array is None:
        problems.append(f"{name} must be {span}: a number or an array of them, got {_shown(values)}")
        return np.full(1, np.nan)
    inside = (array > low if open_low else array >= low) & (array < high if open_high else array <= high)
    bad = array[~inside | (np.isinf(array) & (not infinite))]
    if bad.size:
        problems.append(f"{name} must be {span}, got {bad.flat[0]:g}")
    least = 0.0 if not open_low or low != 0.0 else _LEAST
    extreme = array[~np.isinf(array) & ((np.abs(array) > LARGEST) | (np.abs(array) < least))]
    if extreme.size and not bad.size:
        size = f"from {least:g} to {LARGEST:g}"
        problems.append(
            f"{name} must be of a size that can be computed with, {size}, got {extreme.flat[0]:g}"
        )
    return array


def counts(name: str, values: ArrayLike, problems: list[str], low: int = 1) -> IntArray:
    """Values as whole numbers of at least `low`; anything else joins the problems."""
    array = _plain(values)
    if array is None:
        problems.append(f"{name} must be a whole number, or an array of them, got {_shown(values)}")
        return np.full(1, low)
    bad = array[~((array >= low) & (array == np.floor(array)) & (array < 2.0**62))]
    if bad.size:
        problems.append(f"{name} must be a whole number of at least {low}, got {bad.flat[0]:g}")
        return np.full(array.shape, low)
    return np.asarray(values, dtype=np.int64)


def together(problems: list[str], **arrays: FloatArray | IntArray) -> None:
    """Add a problem where the shapes do not broadcast."""
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        problems.append(f"the shapes must broadcast, got {shapes}")


def means_within(arrays: dict[str, FloatArray | IntArray], problems: list[str]) -> None:
    """Add a problem where a mean is beyond the bound, or an error so small that squares of it vanish."""
    if problems:
        return
    size = np.abs(arrays["mean"]) / arrays["bound"]
    if (size > 1.0).any():
        problems.append("mean must lie in [-bound, bound]")
    error = arrays["alpha"] * size
    if ((error > 0.0) & (error < _LEAST_ERROR)).any():
        problems.append(f"alpha abs(mean) / bound must be 0 or at least {_LEAST_ERROR:g}")


def refuse(subject: str, problems: list[str]) -> None:
    """Raise all problems at once, where there are any."""
    if problems:
        raise ParameterError(subject, problems)


def each(function: Callable[..., float], *arrays: FloatArray | IntArray) -> FloatArray:
    """Value of a function of numbers at every entry of arrays that broadcast; a number for numbers."""
    spread = np.broadcast_arrays(*arrays)
    rows = zip(*(array.ravel().tolist() for array in spread), strict=True)
    values = np.array([function(*row) for row in rows], dtype=np.float64)
    result: FloatArray = values.reshape(spread[0].shape)[()]
    return result


def _shown(values: Any) -> str:
    return f"{values!r:.60}"


def _plain(values: Any) -> FloatArray | None:
    """Values as floats, or None where they are not numbers (truth values are none)."""
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    if array.size == 0 or array.dtype.kind not in "iuf":
        return None
    return array.astype(np.float64)


def stopping_numbers(
    mean: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    epsilon: ArrayLike,
    bound: ArrayLike,
    problems: list[str],
    largest_beta: float | None = None,
) -> dict[str, FloatArray | IntArray]:
    """Arguments of a sample size as arrays; beta is below 1, or at most `largest_beta` where given."""
    highest = 1.0 if largest_beta is None else largest_beta
    arrays: dict[str, FloatArray | IntArray] = {
        "mean": numbers("mean", mean, problems, -math.inf),
        "alpha": numbers("alpha", alpha, problems, 0.0, 1.0, open_high=True),
        "beta": numbers("beta", beta, problems, 0.0, highest, open_high=largest_beta is None),
        "epsilon": numbers("epsilon", epsilon, problems, infinite=True),
        "bound": numbers("bound", bound, problems),
    }
    together(problems, **arrays)
    means_within(arrays, problems)
    return arrays
