"""The release backend: exact integer noise on a fixed-point grid, never seeded.

Floating-point noise leaks through its low-order bits. Values that leave the curator are rounded to a grid of
2^20 units, and receive discrete Laplace or discrete Gaussian noise, which OpenDP draws in exact integer
arithmetic from the operating system's randomness.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import MissingDependencyError, ParameterError
from adaptinf.parameters import POSITIVE, Count, Number, check, number_array
from adaptinf.typing import IntArray

GRID_UNITS = 1 << 20
"""Number of grid units in the width of an item's range, or in the sensitivity of a statistic."""

# With a larger scale a draw could exceed 64 bits; at this one the probability is exp(-2^63 / 2^55) = 1e-111.
_SCALE = Number(0.0, 2.0**55, open_low=True)
_EXACT = 2.0**53
_KEPT = 256


def to_grid(values: ArrayLike, width: float = 1.0) -> IntArray:
    """Round items to a grid with 2^20 units per `width`.

    Parameters
    ----------
    values : array_like of shape (n, ...)
        Items, such as rewards, measured from the lower end of their range and clipped to it.
    width : float
        Width of the range of an item.

    Returns
    -------
    ndarray of int64, of the shape of `values`
        Whole units. Grid values: items in [0, width] become 0, ..., 2^20, so their sum has a sensitivity of
        exactly 2^20 units.

    Raises
    ------
    ParameterError
        If the width is not positive, or a value is not finite or too large for the grid.

    Notes
    -----
    An item changes by at most half a unit, 2^-21 of the width; 0 and the width itself do not change. Sums of
    the results are exact.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.privacy.to_grid([0.0, 0.25, 1.0])
    array([      0,  262144, 1048576])
    """
    check("to_grid", width=(width, POSITIVE))
    array = number_array(values)
    if array is None:
        raise ParameterError(
            "to_grid", [f"values must be numbers in rows of equal length, got {values!r:.60}"]
        )
    if not np.all(np.abs(array) <= _EXACT / GRID_UNITS * width):
        raise ParameterError("to_grid", ["values must be finite and below 2^33 widths"])
    units = np.rint(array / width * GRID_UNITS)
    return units.astype(np.int64)


def item_on_grid(item: float) -> float:
    """An item in [0, 1] as `to_grid` rounds it, in widths: a whole number of units of 2^-20."""
    return round(item * GRID_UNITS) / GRID_UNITS


def to_units(values: ArrayLike, sensitivity: float) -> list[int]:
    """Round statistics to the nearest of 2^20 units per `sensitivity`, ties upwards, exactly."""
    # In exact arithmetic, rounding commutes with shifts by whole units, so values at most m units apart (m
    # whole) stay at most m units apart. A scalar statistic thus keeps a sensitivity of exactly 2^20 units.
    unit = Fraction(float(sensitivity)) / GRID_UNITS
    above, below = unit.numerator, unit.denominator
    units = []
    for value in np.asarray(values, dtype=np.float64).ravel().tolist():
        top, bottom = value.as_integer_ratio()
        units.append((2 * top * below + bottom * above) // (2 * bottom * above))
    return units


def from_units(units: Iterable[int], sensitivity: float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Floats of the given shape from whole units: rounding is harmless, because this is post-processing."""
    return np.array([u / GRID_UNITS * sensitivity for u in units], dtype=np.float64).reshape(shape)


def scale_above(sensitivity: int, epsilon: float | Fraction) -> float:
    """Smallest float that is at least sensitivity / epsilon, so that rounding never weakens a guarantee."""
    exact = sensitivity / (epsilon if isinstance(epsilon, Fraction) else Fraction(float(epsilon)))
    scale = float(exact)
    return scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf)


def discrete_laplace(scale: float, size: int) -> IntArray:
    """Integers with probability proportional to exp(-abs(k) / scale), exactly.

    Parameters
    ----------
    scale : float
        Scale in units, taken as the exact value of the float.
    size : int
        Number of independent draws.

    Returns
    -------
    ndarray of int64, shape (size,)
        Draws from OpenDP's sampler. The draws cannot be seeded and take about 10 microseconds each.

    Raises
    ------
    MissingDependencyError
        If OpenDP is not installed.
    ParameterError
        If the scale is not positive or exceeds 2^55, or the size is negative.

    References
    ----------
    Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy. NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.privacy.discrete_laplace(ai.privacy.GRID_UNITS / 0.5, size=3).dtype
    dtype('int64')
    """
    check("discrete_laplace", scale=(scale, _SCALE), size=(size, Count(0)))
    return _draw(_samplers.laplace(_opendp("discrete Laplace noise"), float(scale)), size)


def discrete_gaussian(scale: float, size: int) -> IntArray:
    """Integers with probability proportional to exp(-k^2 / (2 scale^2)), exactly.

    Parameters
    ----------
    scale : float
        Scale in units, taken as the exact value of the float; it is nearly the standard deviation.
    size : int
        Number of independent draws.

    Returns
    -------
    ndarray of int64, shape (size,)
        Draws from OpenDP's sampler. The draws cannot be seeded and take about 20 microseconds each.

    Raises
    ------
    MissingDependencyError
        If OpenDP is not installed.
    ParameterError
        If the scale is not positive or exceeds 2^55, or the size is negative.

    References
    ----------
    Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy. NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.privacy.discrete_gaussian(4.0 * ai.privacy.GRID_UNITS, size=3).dtype
    dtype('int64')
    """
    check("discrete_gaussian", scale=(scale, _SCALE), size=(size, Count(0)))
    return _draw(_samplers.gaussian(_opendp("discrete Gaussian noise"), float(scale)), size)


def _laplace(library: Any, scale: float) -> Any:
    space = library.vector_domain(library.atom_domain(T="i64")), library.l1_distance(T="i64")
    return library.m.make_laplace(*space, scale=scale)


def _gaussian(library: Any, scale: float) -> Any:
    space = library.vector_domain(library.atom_domain(T="i64")), library.l2_distance(T="f64")
    return library.m.make_gaussian(*space, scale=scale)


class _Samplers(threading.local):
    """Samplers by scale, separate for each thread; they are stateless, and slow to create."""

    def __init__(self) -> None:
        self.laplace, self.gaussian = (lru_cache(maxsize=_KEPT)(make) for make in (_laplace, _gaussian))


_samplers = _Samplers()


def _opendp(purpose: str) -> Any:
    try:
        library = import_module("opendp.prelude")
    except ImportError as error:
        raise MissingDependencyError(purpose, "opendp", "release") from error
    library.enable_features("contrib")
    return library


def _draw(measurement: Any, size: int) -> IntArray:
    # Only one thread may use a measurement. T="i64" is needed, because OpenDP reads T=int as 32 bits.
    return np.array(measurement([0] * size), dtype=np.int64)
