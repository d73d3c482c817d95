"""Distribution of a counter's noise: tails and quantiles of Laplace sums, and norms of vectors.

A coordinate of a counter's noise is a sum of independent Laplace variables, or a normal variable; the
coordinates are independent and identically distributed. Every bound on a norm is an upper bound: the norm
exceeds it with at most the given probability.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special
from scipy.interpolate import CubicHermiteSpline

from adaptinf.parameters import COUNT, FINITE, NON_NEGATIVE, Count, Each, Is, OneOf, check
from adaptinf.privacy.tree_sums import COUNTERS, counter_scales, counter_slots, noise_nodes
from adaptinf.typing import FloatArray

_CONTOUR = np.linspace(0.0, 6.0, 65)
_RAY = 0.7
_KNOTS = 48
_AT_ONCE = 16


def laplace_sum_log_tail(x: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """Log P(S > x) for a sum S of independent centred Laplace variables.

    Shapes: x (n,), scales, terms (n, groups); returns (n,).
    """
    # This is Lugannani-Rice inversion without its approximation: the moment generating function is integrated
    # along a curve through the saddle point that bends around the nearest pole, where the trapezoidal rule
    # converges geometrically. With several scales the curve levels off to a ray steeper than 45 degrees, on
    # which no factor 1 - b^2 s^2 is smaller than 1 in absolute value, so poles further out do no harm.
    log_tail: FloatArray = log_tail_and_slope(np.asarray(x, dtype=np.float64), scales, terms)[0]
    return log_tail


def laplace_sum_quantile(log_tail: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """The x with log P(S > x) equal to `log_tail`, for tails of at most one half.

    Shapes: log_tail (n,), scales, terms (n, groups); returns (n,).
    """
    log_tail = np.asarray(log_tail, dtype=np.float64)
    spread = np.sqrt(2.0 * (terms * scales**2).sum(axis=1))
    x = spread * np.sqrt(np.maximum(-log_tail, 0.7))
    # The log tail is concave, so Newton's method from the right of the root decreases monotonically; from the
    # left it overshoots once and then decreases.
    for _ in range(60):
        value, slope = log_tail_and_slope(x, scales, terms)
        step = (value - log_tail) / slope
        x = np.maximum(x - step, 1e-9 * spread)
        if np.all(np.abs(step) <= 1e-12 * x + 1e-15):
            break
    return np.asarray(np.where(log_tail >= np.log(0.5), 0.0, x), dtype=np.float64)


def noise_quantile(
    counter: str, epsilon: float, horizon: int, count: int, p: FloatArray | float
) -> FloatArray:
    """Quantiles of a counter's noise at one count."""
    trunk, node = counter_scales(counter, epsilon, horizon)
    trunk_terms, node_terms, level = noise_nodes(counter, count)
    p = np.asarray(p, dtype=np.float64)
    log_tail = np.where(p < 0.5, np.log(p), np.log1p(-p)).ravel()
    scales = np.tile([[trunk, node * level]], (log_tail.size, 1))
    terms = np.tile([[float(trunk_terms), float(node_terms)]], (log_tail.size, 1))
    distance = laplace_sum_quantile(log_tail, scales, terms).reshape(p.shape)
    return np.where(p < 0.5, -distance, distance) + 0.0


def _saddle(x: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """Root of sum 2 m b^2 s / (1 - b^2 s^2) - x - 1/s on (0, 1 / largest scale), by bisection."""
    largest = scales.max(axis=1)
    low = np.zeros_like(x)
    high = (1.0 - 1e-15) / largest
    for _ in range(40):
        middle = 0.5 * (low + high)
        square = (scales * middle[:, None]) ** 2
        slope = (2.0 * terms * square / (1.0 - square)).sum(axis=1) / middle - x - 1.0 / middle
        low = np.where(slope < 0, middle, low)
        high = np.where(slope < 0, high, middle)
    return np.asarray(0.5 * (low + high), dtype=np.float64)


@np.errstate(under="ignore")
def log_tail_and_slope(x: FloatArray, scales: FloatArray, terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """`laplace_sum_log_tail` and its derivative in x; the log tail is concave, so tangents bound it."""
    scales = np.where(terms > 0, scales, 0.0)
    saddle = _saddle(x, scales, terms)
    square = (scales * saddle[:, None]) ** 2
    rest = 1.0 - square
    second = (2.0 * terms * scales**2 * (1.0 + square) / rest**2).sum(axis=1) + saddle**-2.0
    third = (4.0 * terms * scales**3 * np.sqrt(square) * (3.0 + square) / rest**3).sum(
        axis=1
    ) - 2.0 * saddle**-3.0
    bend = np.maximum(third / (6.0 * second), 0.05 * np.sqrt(second))[:, None]
    several = ((scales > 0.0) & (scales < scales.max(axis=1, keepdims=True))).any(axis=1, keepdims=True)
    along = np.sinh(_CONTOUR) / np.sqrt(second)[:, None]
    root = np.sqrt(1.0 + (2.0 * bend * along / np.where(several, _RAY, np.inf)) ** 2)
    point = saddle[:, None] + 1j * along + 2.0 * bend * along**2 / (1.0 + root)
    speed = (1j + 2.0 * bend * along / root) * np.cosh(_CONTOUR) / np.sqrt(second)[:, None]
    log_mgf = -(terms[:, None, :] * np.log(1.0 - (scales[:, None, :] * point[:, :, None]) ** 2)).sum(axis=2)
    start = -(terms * np.log1p(-square)).sum(axis=1) - saddle * x
    density = np.exp(log_mgf - point * x[:, None] - start[:, None]) * speed
    weight = np.full(_CONTOUR.size, _CONTOUR[1] - _CONTOUR[0])
    weight[0] *= 0.5
    tail = (density / point).imag @ weight / np.pi
    log_tail: FloatArray = start + np.log(tail)
    return log_tail, -(density.imag @ weight / np.pi) / tail


def counter_laws(counter: str, slots: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Every noise distribution of a counter at epsilon = 1: table row, scales, numbers of terms."""
    check("counter_laws", counter=(counter, OneOf(*COUNTERS)))
    trunk, node = counter_scales(counter, 1.0, (1 << slots) - 1)
    if counter == "binary":
        laws = [(nodes, (trunk, node), (0, nodes)) for nodes in range(1, slots + 1)]
    else:
        laws = [
            (level * slots + nodes, (trunk, node * level), (level + 1, nodes))
            for level in range(slots)
            for nodes in range(level + 1)
        ]
    rows, scales, terms = (np.array([law[part] for law in laws], dtype=np.float64) for part in range(3))
    return rows, scales, terms


def octave_grid(slots: int, points_an_octave: int = 4) -> FloatArray:
    """Points from 2 to 2^(slots + 1), with the given number between powers of two."""
    first, last = points_an_octave, points_an_octave * (slots + 1)
    return np.asarray(2.0 ** (np.arange(first, last + 1) / points_an_octave), dtype=np.float64)


@functools.lru_cache(maxsize=32)
def counter_quantiles(counter: str, horizon: int, points_an_octave: int = 4) -> tuple[FloatArray, FloatArray]:
    """Table of the 1 - 1/t quantiles of a counter's noise at epsilon = 1, for every possible distribution.

    The grid has shape (g,), and the quantiles (g, rows).
    """
    slots = counter_slots(horizon)
    grid = octave_grid(slots, points_an_octave)
    rows, scales, terms = counter_laws(counter, slots)
    largest = laplace_sum_quantile(np.full(rows.size, -np.log(grid[-1])), scales, terms)
    fractions = np.linspace(1e-4, 1.0, _KNOTS) ** 2
    x = largest[:, None] * fractions
    table = np.zeros((grid.size, slots * slots + slots if counter == "hybrid" else slots + 1))
    for first in range(0, rows.size, _AT_ONCE):
        laws = slice(first, first + _AT_ONCE)
        repeated = (np.repeat(part[laws], _KNOTS, axis=0) for part in (scales, terms))
        log_tail, slope = (
            part.reshape(-1, _KNOTS) for part in log_tail_and_slope(x[laws].ravel(), *repeated)
        )
        for law, row in enumerate(rows[laws]):
            inverse = CubicHermiteSpline(-log_tail[law], x[first + law], -1.0 / slope[law])
            table[:, int(row)] = inverse(np.log(grid))
    return grid, table


def laplace_sum_tail_bound(log_failure: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """An x with P(S > x) at most a failure probability, for a sum S of independent centred Laplace variables.

    Shapes: log_failure (n,), scales, terms (n, groups); returns (n,).
    """
    # Chan, Shi and Song bound P(S > x) by exp(-x^2 / (8 v^2)) for v^2 of at least the sum of squared scales
    # and 0 < x < 2 sqrt(2) v^2 / max b. At x = v sqrt(8 L) the bound equals the failure probability, and the
    # range requires v > sqrt(L) max b. The smallest such v may be used as a limit, because the tail is
    # continuous.
    # Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics. ACM
    # Transactions on Information and System Security 14, Lemma 2.8.
    effort = -np.asarray(log_failure, dtype=np.float64)
    present = np.where(terms > 0, scales, 0.0)
    spread = np.sqrt((terms * present**2).sum(axis=1))
    bound = np.sqrt(8.0 * effort) * np.maximum(spread, np.sqrt(effort) * present.max(axis=1))
    return np.asarray(bound, dtype=np.float64)


@functools.lru_cache(maxsize=32)
def counter_tail_bounds(counter: str, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Table of bounds on a counter's noise at epsilon = 1 that fail with probability 1/t, by distribution.

    The grid has shape (g,), and the bounds (g, rows).
    """
    slots = counter_slots(horizon)
    grid = octave_grid(slots)
    rows, scales, terms = counter_laws(counter, slots)
    table = np.zeros((grid.size, slots * slots + slots if counter == "hybrid" else slots + 1))
    for i, t in enumerate(grid):
        table[i, rows.astype(np.int64)] = laplace_sum_tail_bound(
            np.full(rows.size, -np.log(t)), scales, terms
        )
    return grid, table


_LOG_FAILURE = Each(FINITE, Is(lambda log: log < 0.0, "below 0"))

_TANGENTS = 128
_CELLS = 2048
_CONVOLVED = 64
_DEEPEST = -600.0
_MARGIN = 1e-6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def laplace_norm_bound(
    trunk: float, trunk_terms: int, node: float, node_terms: int, dimension: int, log_failure: float
) -> float:
    """Upper quantile of the L2 norm of a vector of sums of Laplace variables.

    Parameters
    ----------
    trunk, node : float
        Scales of the two groups of Laplace variables in a coordinate. For a hybrid counter after 2^k items,
        these are the noise at powers of two, and nodes with k times the second of `Counter.scales`.
    trunk_terms, node_terms : int
        Number of Laplace variables in each group; an empty group is ignored.
    dimension : int
        Dimension of the vector, whose coordinates are independent.
    log_failure : float
        Natural logarithm of the probability with which the norm may exceed the bound; below 0.

    Returns
    -------
    float
        The bound. The bound is exact in one dimension, at most 2% above the quantile in up to 64 dimensions,
        and up to 40% above it in more dimensions (or if the probability is below 1e-260).

    Notes
    -----
    The result is the smallest of up to three bounds, where Z is a coordinate and p the probability.

    Union bound: sqrt(d) times the two-sided quantile of Z at p / d.

    Convolution (up to 64 dimensions): the log tail of Z is concave, so its tangents bound it; the resulting
    distribution of Z^2 is rounded up to a grid and convolved with itself. Both steps move probability mass
    upwards only.

    Exponential moments: v -> g(v) = sqrt(c^2 + v) - c is concave with g(0) = 0, hence g(L^2), where L is the
    length of the vector of the Z_k, is at most the sum of the g(Z_k^2), and P(L > r) <= E[exp(s g(Z_1^2))]^d
    exp(-s g(r^2)) for every c > 0 and every s below 1 over the largest scale.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> bound = ai.privacy.laplace_norm_bound(0.0, 0, 3.0, 1, dimension=1, log_failure=np.log(0.05))
    >>> bool(abs(bound - 3.0 * np.log(20.0)) < 1e-9)
    True
    >>> 15.7 < ai.privacy.laplace_norm_bound(0.0, 0, 1.0, 1, dimension=5, log_failure=np.log(1e-6)) < 15.9
    True
    """
    check(
        "laplace_norm_bound",
        trunk=(trunk, NON_NEGATIVE),
        node=(node, NON_NEGATIVE),
        trunk_terms=(trunk_terms, Count(0)),
        node_terms=(node_terms, Count(0)),
        dimension=(dimension, COUNT),
        log_failure=(log_failure, _LOG_FAILURE),
    )
    groups = [(scale, terms) for scale, terms in ((trunk, trunk_terms), (node, node_terms)) if scale * terms]
    if not groups:
        return 0.0
    scales = np.array([[scale for scale, _ in groups]])
    terms = np.array([[terms for _, terms in groups]], dtype=np.float64)
    largest = float(scales.max())
    scales = scales / largest
    both_sides = np.array([log_failure - math.log(2.0 * dimension)])
    bound = math.sqrt(dimension) * float(laplace_sum_quantile(both_sides, scales, terms)[0])
    if dimension == 1:
        return largest * bound
    if dimension <= _CONVOLVED and log_failure > _DEEPEST:
        return largest * _convolution_bound(bound, scales, terms, dimension, log_failure)
    return largest * min(bound, _moment_bound(bound, scales, terms, dimension, log_failure))


def gaussian_norm_bound(sigma: float, terms: int, dimension: int, log_failure: float) -> float:
    """Upper quantile of the L2 norm of a vector of sums of normal variables.

    Parameters
    ----------
    sigma : float
        Standard deviation of each variable.
    terms : int
        Number of variables in a coordinate.
    dimension : int
        Dimension of the vector, whose coordinates are independent.
    log_failure : float
        Natural logarithm of the probability with which the norm may exceed the bound; below 0.

    Returns
    -------
    float
        sigma sqrt(terms) times the quantile of a chi variable, exact down to a probability of 1e-280; beyond
        that, from the bound (y e^(1 - y))^(d/2) on the tail of a chi-square variable at d y.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> bound = ai.privacy.gaussian_norm_bound(2.0, 4, dimension=1, log_failure=np.log(0.05))
    >>> bool(abs(bound - 4.0 * 1.959963984540054) < 1e-9)
    True
    """
    check(
        "gaussian_norm_bound",
        sigma=(sigma, NON_NEGATIVE),
        terms=(terms, Count(0)),
        dimension=(dimension, COUNT),
        log_failure=(log_failure, _LOG_FAILURE),
    )
    if log_failure > -640.0:  # For smaller arguments, exp loses digits and then underflows to 0.
        square = 2.0 * float(special.gammainccinv(0.5 * dimension, math.exp(log_failure)))
    else:
        # Far out, the quantile solves log y + 1 - y = 2 log_failure / d, whose root above 1 this iteration
        # finds.
        rest = 1.0 - 2.0 * log_failure / dimension
        ratio = rest
        for _ in range(60):
            ratio = rest + math.log(ratio)
        square = dimension * ratio
    return sigma * math.sqrt(terms * square)


def _tangents(highest: float, scales: FloatArray, terms: FloatArray) -> tuple[FloatArray, ...]:
    """Knots on [0, highest], and the log of P(abs(Z) > x) and its slope at the knots."""
    knots = highest * np.linspace(0.0, 1.0, _TANGENTS) ** 1.5
    value, slope = log_tail_and_slope(
        knots, np.repeat(scales, _TANGENTS, axis=0), np.repeat(terms, _TANGENTS, axis=0)
    )
    return knots, value + math.log(2.0), slope


def _log_tail_above(x: FloatArray, knots: FloatArray, value: FloatArray, slope: FloatArray) -> FloatArray:
    """Upper bound on the log of P(abs(Z) > x): the lower of the tangents at the knots on both sides."""
    right = np.clip(np.searchsorted(knots, x), 1, knots.size - 1)
    tangents = [value[k] + slope[k] * (x - knots[k]) for k in (right - 1, right)]
    return np.minimum(np.minimum(*tangents), 0.0)


def _convolution_bound(
    start: float, scales: FloatArray, terms: FloatArray, dimension: int, log_failure: float
) -> float:
    """Upper quantile of the norm from the convolved distribution of squares, on shrinking ranges."""
    failure = math.exp(log_failure) * (1.0 - _MARGIN)
    tangents = _tangents(start, scales, terms)
    bound = start
    for cells in (_CELLS // 8, _CELLS // 2, _CELLS):
        squares = np.linspace(0.0, bound**2, cells + 1)
        tail = np.exp(_log_tail_above(np.sqrt(squares), *tangents))
        mass = np.concatenate([[0.0], tail[:-1] - tail[1:]])
        law, beyond = _power(mass, float(tail[-1]), dimension)
        exceeding = beyond + np.concatenate([np.cumsum(law[:0:-1])[::-1], [0.0]])
        enough = exceeding <= failure
        if enough.any():
            bound = math.sqrt(float(squares[np.argmax(enough)]))
    return bound


def _power(mass: FloatArray, beyond: float, times: int) -> tuple[FloatArray, float]:
    """Distribution of a sum of `times` copies: masses on the grid, and an upper bound on the mass beyond."""
    if times == 1:
        return mass, beyond
    half = _power(mass, beyond, times // 2)
    total = _sum_of(half, half)
    return _sum_of(total, (mass, beyond)) if times % 2 else total


def _sum_of(first: tuple[FloatArray, float], second: tuple[FloatArray, float]) -> tuple[FloatArray, float]:
    # The convolution is direct and not by Fourier transforms, because sums of positive terms keep their
    # relative accuracy far out in the tail.
    law = np.convolve(first[0], second[0])
    size = first[0].size
    either = first[1] + (1.0 - first[1]) * second[1]
    return law[:size], min(float(law[size:].sum()) + either, 1.0)


def _moment_bound(
    start: float, scales: FloatArray, terms: FloatArray, dimension: int, log_failure: float
) -> float:
    """Smallest bound from exponential moments of sqrt(c^2 + Z^2) - c over a grid; scales at most 1."""
    spread = math.sqrt(2.0 * float((terms * scales**2).sum()))
    knots, value, slope = _tangents(start, scales, terms)
    edges = np.concatenate([[0.0], np.geomspace(1e-3 * start, start, 40)])
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half * (_NODES + 1.0)).ravel()
    log_weight = np.log((half * _WEIGHTS).ravel()) + _log_tail_above(x, knots, value, slope)
    rates = -slope[-1] * np.geomspace(0.02, 1.0, 40, endpoint=False)[:, None]
    best = math.inf
    for bend in spread * np.geomspace(0.05, 3.0 * dimension, 40):
        root = np.sqrt(bend**2 + x**2)
        inside = (rates * x / root * np.exp(rates * (root - bend) + log_weight)).sum(axis=1)
        # Beyond the last knot, the tail stays below its tangent and g grows at a rate of at most 1, so this
        # bounds the rest of the integral.
        last = math.sqrt(bend**2 + start**2) - bend
        beyond = rates[:, 0] * np.exp(rates[:, 0] * last + value[-1]) / (-slope[-1] - rates[:, 0])
        log_moment = np.log1p(inside + beyond)
        reach = float(np.min((dimension * log_moment - log_failure) / rates[:, 0]))
        best = min(best, math.sqrt(reach * (reach + 2.0 * bend)))
    return best
