"""Probabilities that one of several test statistics leaves its region at each look.

The scores of J treatments against one control are jointly normal with independent increments. Within an
increment, the control is a factor that they share: given its value x, the increments of the treatments are
independent, with means a_j x and standard deviations s_j. The density of the scores that have not left is
carried from look to look on a grid with J axes. A step is an integral over x, by the trapezoidal rule, of
products of one-dimensional kernels; integrals along an axis use Gauss-Legendre quadrature. With one treatment
there is no factor, and the result is that of `crossing`.

References
----------
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control". Genz, Bretz
(2009), "Computation of Multivariate Normal and t Probabilities" (products of one-dimensional integrals).
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

from adaptinf.inference.group_sequential.boundaries import critical_value
from adaptinf.typing import FloatArray

MOST = 4
"""Largest number of treatments: a grid has as many axes."""
# These keep errors below 1e-7. Beyond this many standard deviations, a normal variable has probability 4e-8.
_REACH = 5.5
# Nodes for each standard deviation of a kernel, more of them, and the largest number on an axis, by J.
_DENSITY, _EXTRA, _LIMITS = 1.0, 8, (0, 600, 240, 96, 40)
# Distance of the factor's values, in standard deviations of the narrowest integrand.
_SPACING = 1.2
_LARGEST_LOADING = 0.995
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


class _Step(NamedTuple):
    """An increment: shift (q, J), spread (J,), and the factor's weights (q,)."""

    shift: FloatArray
    spread: FloatArray
    weight: FloatArray


class JointWalk:
    """The scores of J treatments that have not left their region so far.

    `products` (J, J) is the covariance of the scores at the last look. The grid of that look is only made
    once the next increment is known, whose spread decides how fine it must be.
    """

    def __init__(self, many: int) -> None:
        self.products = np.zeros((many, many))
        self._nodes, self._mass = [np.zeros(1)] * many, np.ones((1,) * many)
        self._kept: tuple[FloatArray, FloatArray, _Step] | None = None

    def leaving(self, products: FloatArray, low: FloatArray, high: FloatArray) -> float:
        """Probability that some score leaves at the next look, and none has left before; low, high (J,)."""
        step = self._settled(products)
        inside = 0.0
        for shift, weight in zip(step.shift, step.weight, strict=True):
            part = self._mass
            for j in reversed(range(len(low))):
                mean = self._nodes[j] + shift[j]
                upper, lower = ((limit[j] - mean) / step.spread[j] for limit in (high, low))
                part = part @ np.maximum(special.ndtr(upper) - special.ndtr(lower), 0.0)
            inside += float(weight * part)
        return float(self._mass.sum()) - inside

    def proceed(self, products: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Keep the scores at the next look that lie between low and high (J,)."""
        step = self._settled(products)
        reach = _REACH * np.sqrt(np.diag(products))
        self._kept = np.maximum(low, -reach), np.minimum(high, reach), step
        self.products = products

    def critical_value(self, products: FloatArray, tested: FloatArray, sides: int, may: float) -> float:
        """Common critical value of the standardised scores that are tested at the next look, 1 or 0 (J,)."""
        return critical_value(
            lambda _, bound: self.leaving(products, *limits(products, tested, sides, bound)), 1.0, may
        )

    def _settled(self, products: FloatArray) -> _Step:
        """The next increment, after the grid of the last look has been made for it."""
        step = _step_of(products - self.products)
        if self._kept is not None:
            low, high, own = self._kept
            self._kept = None
            grids = [
                _grid(low[j], high[j], min(own.spread[j], step.spread[j]), len(low)) for j in range(len(low))
            ]
            self._carry(own, grids)
        return step

    def _carry(self, step: _Step, grids: list[tuple[FloatArray, FloatArray]]) -> None:
        """Carry the mass to the nodes of new grids."""
        total = np.zeros([len(nodes) for nodes, _ in grids])
        for shift, weight in zip(step.shift, step.weight, strict=True):
            part = self._mass
            for j, (nodes, width) in enumerate(grids):
                distance = (nodes[:, None] - self._nodes[j] - shift[j]) / step.spread[j]
                kernel = (
                    np.exp(-0.5 * distance * distance) * (width / (step.spread[j] * _ROOT_TWO_PI))[:, None]
                )
                # The axis that is carried is always the first; it becomes the last.
                part = np.tensordot(part, kernel, axes=(0, 1))
            total += weight * part
        self._nodes, self._mass = [nodes for nodes, _ in grids], total


def limits(
    products: FloatArray, tested: FloatArray, sides: int, bound: float
) -> tuple[FloatArray, FloatArray]:
    """Limits of the scores, (J,) each, for a common critical value of those that are tested."""
    high = np.where(tested > 0.0, bound * np.sqrt(np.diag(products)), np.inf)
    return (-high if sides == 2 else np.full(len(high), -np.inf)), high


def _step_of(increment: FloatArray) -> _Step:
    """Shifts, spreads and weights of an increment with a covariance; increment (J, J)."""
    deviation = np.sqrt(np.diag(increment))
    loading = factor(increment / np.outer(deviation, deviation))
    precision = 1.0 + float((loading**2 / (1.0 - loading**2)).sum())
    reach = 0.0 if precision == 1.0 else _REACH
    size = math.ceil(reach * math.sqrt(precision) / _SPACING)
    value = np.linspace(-reach, reach, 2 * size + 1)
    weight = np.exp(-0.5 * value * value)
    return _Step(
        np.outer(value, loading * deviation), deviation * np.sqrt(1.0 - loading**2), weight / weight.sum()
    )


def factor(correlation: FloatArray) -> FloatArray:
    """Loadings of one factor, (J,): their products are close to the correlations (J, J), exact for J = 2."""
    many = len(correlation)
    if many == 1:
        return np.zeros(1)
    others = correlation - np.diag(np.diag(correlation))
    if many == 2:
        size = min(math.sqrt(abs(float(others[0, 1]))), _LARGEST_LOADING)
        return np.array([size, math.copysign(size, float(others[0, 1]))])
    found = np.full(many, math.sqrt(max(float(others.sum()) / (many * (many - 1)), 0.0)))
    for _ in range(200):
        before = found.copy()
        for j in range(many):
            rest = float(found @ found - found[j] ** 2)
            found[j] = min(max(float(others[j] @ found) / rest, 0.0), _LARGEST_LOADING) if rest else 0.0
        if np.abs(found - before).max() < 1e-12:
            break
    return found


def _grid(low: float, high: float, spread: float, many: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights from low to high, for kernels of a spread; (n,) each."""
    size = min(math.ceil(_DENSITY * (high - low) / spread) + _EXTRA, _LIMITS[many])
    node, weight = _legendre(size)
    half = 0.5 * (high - low)
    return low + half * (1.0 + node), half * weight


@cache
def _legendre(size: int) -> tuple[FloatArray, FloatArray]:
    node, weight = np.polynomial.legendre.leggauss(size)
    return node, weight
