"""Probabilities that one of several test statistics leaves its region at each look.

The scores of J treatments against one control are jointly normal with independent increments. Within an
increment, the control is a factor that the treatments share: given its value x, the increments of the
treatments are independent, with means a_j x and standard deviations s_j. The density of the scores that have
not left the region is propagated from look to look on a grid with J axes. Each step is an integral over x, by
the trapezoidal rule, of products of one-dimensional kernels; integrals along an axis use Gauss-Legendre
quadrature. If there is only one treatment, there is no factor, and the result is that of `crossing`.

References
----------
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control". Genz, Bretz
(2009), "Computation of Multivariate Normal and t Probabilities" (products of one-dimensional integrals).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

from adaptinf.inference.group_sequential.boundaries import critical_value
from adaptinf.typing import BoolArray, FloatArray

MOST = 4
"""Largest number of treatments, which is the number of axes of a grid."""
# These keep errors below 1e-7. Beyond this many standard deviations, a normal variable has probability 4e-8.
_REACH = 5.5
# Nodes for each standard deviation of a kernel, more of them, and the largest number on an axis, by J.
_DENSITY, _EXTRA, _LIMITS = 1.0, 8, (0, 600, 240, 96, 40)
# Distance of the factor's values, in standard deviations of the narrowest integrand.
_SPACING = 1.2
_LARGEST_LOADING = 0.995
# Critical values: their error, the rounding error of a probability, the smallest probability and value that
# are found by secants, and the most steps.
_EXACT, _ROUNDING, _SMALL, _LOWEST, _TRIES = 1e-13, 1e-15, 1e-8, 0.5, 12
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


class _Step(NamedTuple):
    """An increment; shapes: shift (q, J), spread (J,), and weights of the factor's values (q,)."""

    shift: FloatArray
    spread: FloatArray
    weight: FloatArray


class JointWalk:
    """The scores of J treatments that have not left their region so far.

    The covariance of the scores at the last look, `products`, has shape (J, J). The grid of that look is
    created only once the next increment is known, because its spread determines how fine the grid must be.
    """

    def __init__(self, many: int) -> None:
        self.products = np.zeros((many, many))
        self._nodes, self._mass = [np.zeros(1)] * many, np.ones((1,) * many)
        self._kept: tuple[FloatArray, FloatArray, _Step] | None = None
        self._ahead: tuple[FloatArray, _Step] | None = None

    def leaving(self, products: FloatArray, low: FloatArray, high: FloatArray) -> float:
        """Probability that some score leaves the region at the next look, but none before; low, high (J,)."""
        return self._leaves(self._settled(products))(low, high)

    def proceed(self, products: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Keep the scores at the next look that lie between low and high, shape (J,)."""
        step = self._settled(products)
        reach = _REACH * np.sqrt(products.diagonal())
        self._kept = np.maximum(low, -reach), np.minimum(high, reach), step
        self.products, self._ahead = products, None

    def critical_value(self, products: FloatArray, tested: FloatArray, sides: int, may: float) -> float:
        """Common critical value of the standardised scores that are tested at the next look; tested (J,)."""
        if may <= 0.0:
            return math.inf
        leaves = self._leaves(self._settled(products))
        root, free = np.sqrt(products.diagonal()), tested == 0.0

        def tail(_: float, bound: float) -> float:
            return leaves(*_region(root, free, sides, bound))

        highest = -float(special.ndtri(may / (sides * tested.sum())))
        found = _secant(lambda bound: tail(1.0, bound), may, highest)
        return critical_value(tail, 1.0, may) if math.isnan(found) else found

    def _leaves(self, step: _Step) -> Callable[[FloatArray, FloatArray], float]:
        """The probability of leaving the region in an increment, as a function of the limits."""
        spread, total = step.spread, float(self._mass.sum())
        means = [(nodes + step.shift[:, j, None]) / spread[j] for j, nodes in enumerate(self._nodes)]

        def probability(low: FloatArray, high: FloatArray) -> float:
            *others, last = (
                _within(low[j] / spread[j], high[j] / spread[j], mean) for j, mean in enumerate(means)
            )
            part = self._mass @ last.T
            for inside in reversed(others):
                part = np.einsum("...aq,qa->...q", part, inside)
            return total - float(step.weight @ part)

        return probability

    def _settled(self, products: FloatArray) -> _Step:
        """The next increment, after the grid of the last look has been created for it."""
        if self._ahead is not None and np.array_equal(self._ahead[0], products):
            return self._ahead[1]
        step = _step_of(products - self.products)
        if self._kept is not None:
            low, high, own = self._kept
            self._kept = None
            grids = [
                _grid(low[j], high[j], min(own.spread[j], step.spread[j]), len(low)) for j in range(len(low))
            ]
            self._carry(own, grids)
        self._ahead = products, step
        return step

    def _carry(self, step: _Step, grids: list[tuple[FloatArray, FloatArray]]) -> None:
        """Propagate the mass to the nodes of new grids."""
        part = self._mass[None]
        for j, (nodes, width) in enumerate(grids):
            factor = width / (step.spread[j] * _ROOT_TWO_PI)
            distance = (nodes[:, None] - self._nodes[j]) / step.spread[j]
            kernel = np.exp(-0.5 * (distance - step.shift[:, j, None, None] / step.spread[j]) ** 2)
            # The axis that is carried is always the first; it becomes the last.
            kernel *= factor[:, None] * (step.weight[:, None, None] if j == 0 else 1.0)
            flat = part.reshape(len(part), part.shape[1], -1).transpose(0, 2, 1)
            carried = flat @ kernel.transpose(0, 2, 1)
            part = carried.reshape(len(kernel), *part.shape[2:], len(nodes))
        self._nodes, self._mass = [nodes for nodes, _ in grids], part.sum(axis=0)


def _within(low: float, high: float, mean: FloatArray) -> FloatArray:
    """Probabilities that normal variables with these means and variance 1 lie between two limits."""
    above = special.ndtr(high - mean)
    return np.asarray(above if low == -math.inf else np.maximum(above - special.ndtr(low - mean), 0.0))


def _secant(tail: Callable[[float], float], may: float, highest: float) -> float:
    """Point at which a tail equals a probability, starting from Bonferroni's value; NaN if not found."""
    aim, noise = math.log(may), max(_EXACT, _ROUNDING / may)
    if may < _SMALL or highest < _LOWEST:
        return math.nan
    bound, before = highest, (math.nan, math.nan)
    for _ in range(_TRIES):
        excess = math.log(max(tail(bound), 1e-320)) - aim
        if abs(excess) <= noise:
            return bound
        # The first step uses the slope of a normal tail.
        slope = -bound - 1.0 / bound
        if not math.isnan(before[0]):
            slope = (excess - before[1]) / (bound - before[0])
        if not slope < 0.0:
            return math.nan
        before, bound = (bound, excess), bound - excess / slope
        if abs(bound - before[0]) <= _EXACT:
            return bound
        if bound < _LOWEST:
            return math.nan
    return math.nan


def limits(
    products: FloatArray, tested: FloatArray, sides: int, bound: float
) -> tuple[FloatArray, FloatArray]:
    """Limits of the scores, shape (J,), for a common critical value of the scores that are tested."""
    return _region(np.sqrt(products.diagonal()), tested == 0.0, sides, bound)


def _region(root: FloatArray, free: BoolArray, sides: int, bound: float) -> tuple[FloatArray, FloatArray]:
    high = bound * root
    high[free] = np.inf
    return (-high if sides == 2 else np.full(len(high), -np.inf)), high


def _step_of(increment: FloatArray) -> _Step:
    """Shifts, spreads and weights of an increment with this covariance, shape (J, J)."""
    deviation = np.sqrt(increment.diagonal())
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
    """Loadings of one factor, shape (J,), whose products approximate the correlations (exactly for J = 2)."""
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
    """Nodes and weights from low to high, shape (n,), for kernels with this spread."""
    size = min(math.ceil(_DENSITY * (high - low) / spread) + _EXTRA, _LIMITS[many])
    node, weight = _legendre(size)
    half = 0.5 * (high - low)
    return low + half * (1.0 + node), half * weight


@cache
def _legendre(size: int) -> tuple[FloatArray, FloatArray]:
    node, weight = np.polynomial.legendre.leggauss(size)
    return node, weight
