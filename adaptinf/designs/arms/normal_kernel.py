"""The probability that each of several normal variables is the largest, by quadrature."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special

from adaptinf.compilation import kernel
from adaptinf.typing import FloatArray

_CELLS, _ORDER = 32, 6
_REACH = 8.0
"""Number of standard deviations beyond which a normal tail, of probability 6e-16, is treated as empty."""
_STEP, _WIDTH, _HALVINGS, _NEGLIGIBLE = 0.05, 4.0, 5, 1e-13
"""Settings of the nodes: their spacing in the logarithm, their first width in units of the smallest spread,
the number of bisections for their start, and the largest probability that the maximum is below the start.
"""


@functools.cache
def normal_table() -> FloatArray:
    """Taylor coefficients of the normal distribution function at 32 points per unit; shape (513, 7)."""
    point = np.arange(2 * int(_REACH) * _CELLS + 1) / _CELLS - _REACH
    density = np.exp(-0.5 * point**2) / math.sqrt(2.0 * math.pi)
    before, hermite, terms = np.zeros_like(point), np.ones_like(point), [special.ndtr(point)]
    for order in range(_ORDER):
        terms.append((-1.0) ** order * hermite * density / math.factorial(order + 1))
        before, hermite = hermite, point * hermite - order * before
    return np.ascontiguousarray(np.stack(terms, axis=1))


@kernel
def _distribution(table: FloatArray, z: float) -> float:
    """Normal distribution function; constant below -8."""
    if z >= _REACH:
        return 1.0
    place = (max(z, -_REACH) + _REACH) * _CELLS
    cell = int(place + 0.5)
    d = (place - cell) / _CELLS
    value = table[cell, _ORDER]
    for order in range(_ORDER - 1, -1, -1):
        value = table[cell, order] + d * value
    return float(value)


@kernel
def _hazard(table: FloatArray, z: float) -> tuple[float, float]:
    """Normal distribution function, and the density divided by it, on [-8, 8]."""
    place = (max(z, -_REACH) + _REACH) * _CELLS
    cell = int(place + 0.5)
    d = (place - cell) / _CELLS
    value, slope = table[cell, _ORDER], _ORDER * table[cell, _ORDER]
    for order in range(_ORDER - 1, 0, -1):
        value = table[cell, order] + d * value
        slope = order * table[cell, order] + d * slope
    value = table[cell, 0] + d * value
    return value, slope / value


@kernel
def _start(table: FloatArray, mean: FloatArray, inverse: FloatArray, n_arms: int, low: float) -> float:
    """A point at or above `low` below which the maximum lies with probability under 1e-13."""
    high = -np.inf
    for arm in range(n_arms):
        high = max(high, mean[arm])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = 1.0
        for arm in range(n_arms):
            below *= _distribution(table, (middle - mean[arm]) * inverse[arm])
        if below < _NEGLIGIBLE:
            low = middle
        else:
            high = middle
    return low


@kernel
def best_of_normals(
    table: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    n_arms: int,
    best: FloatArray,
    inverse: FloatArray,
    hazard: FloatArray,
) -> None:
    """Write into `best` the probabilities that each variable is the largest; they sum to 1.

    Shapes: mean, spread, best, inverse, hazard (at least n_arms,); the last two are working space.
    """
    # At a point, the density of "arm a is the maximum" is the density of the maximum times a's share of the
    # hazard rates. The integral starts at `low`; every arm that can still win has its mean within 8 standard
    # deviations of that point, so nodes whose distance from it grows geometrically resolve all of them,
    # however different their spreads. In the logarithm of the distance this is the trapezoidal rule, which is
    # about as accurate as Gauss's rule for such integrands.
    low, high, ahead = -np.inf, -np.inf, 0
    for arm in range(n_arms):
        inverse[arm] = 1.0 / spread[arm]
        high = max(high, mean[arm] + _REACH * spread[arm])
        if mean[arm] - _REACH * spread[arm] > low:
            low = mean[arm] - _REACH * spread[arm]
            ahead = arm
    low = _start(table, mean, inverse, n_arms, low)
    narrow = np.inf
    for arm in range(n_arms):
        best[arm] = 0.0
        hazard[arm] = 0.0
        if mean[arm] + _REACH * spread[arm] > low:
            narrow = min(narrow, spread[arm])
    x, gap = low, _WIDTH * narrow
    growth = math.expm1(_STEP)
    while x < high:
        weight = gap
        for arm in range(n_arms):
            z = (x - mean[arm]) * inverse[arm]
            hazard[arm] = 0.0
            if z < _REACH:
                below, rate = _hazard(table, z)
                weight *= below
                hazard[arm] = rate * inverse[arm]
        for arm in range(n_arms):
            best[arm] += weight * hazard[arm]
        x += gap * growth
        gap *= 1.0 + growth
    total = 0.0
    for arm in range(n_arms):
        best[arm] *= _STEP
        # The probability that such an arm beats the leader is below 1e-13, too small for the quadrature, so
        # it is computed directly.
        if mean[arm] + _REACH * spread[arm] <= low:
            distance = (mean[ahead] - mean[arm]) / math.hypot(spread[ahead], spread[arm])
            best[arm] = 0.5 * math.erfc(distance / math.sqrt(2.0))
        total += best[arm]
    for arm in range(n_arms):
        best[arm] /= total
