"""Tails and quantiles of sums of independent Laplace variables, the law of a counter's noise."""

from __future__ import annotations

import functools

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from adaptinf.parameters import OneOf, check
from adaptinf.privacy.counters.sums import COUNTERS, counter_scales, counter_slots, noise_nodes
from adaptinf.typing import FloatArray

_CONTOUR = np.linspace(0.0, 6.0, 65)
_RAY = 0.7
_KNOTS = 48
_AT_ONCE = 16


def laplace_sum_log_tail(x: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """Log P(S > x) for S a sum of independent centred Laplace variables.

    Shapes: x (n,), scales, terms (n, groups); returns (n,).

    Lugannani-Rice inversion without the approximation: the moment generating function is integrated along a
    curve through the saddle point that bends around the nearest pole, where the trapezoidal rule converges
    geometrically. With several scales the curve levels off to a ray steeper than 45 degrees, where no factor
    1 - b^2 s^2 is smaller than 1, so that the poles further out do no harm.
    """
    log_tail: FloatArray = log_tail_and_slope(np.asarray(x, dtype=np.float64), scales, terms)[0]
    return log_tail


def laplace_sum_quantile(log_tail: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """The x with log P(S > x) equal to `log_tail`, for tails of at most one half.

    Shapes: log_tail (n,), scales, terms (n, groups); returns (n,).
    """
    log_tail = np.asarray(log_tail, dtype=np.float64)
    spread = np.sqrt(2.0 * (terms * scales**2).sum(axis=1))
    x = spread * np.sqrt(np.maximum(-log_tail, 0.7))
    # the log tail is concave: Newton from the right of the root descends monotonically, from the left it
    # overshoots once and then descends
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
    """Every law of a counter's noise at epsilon = 1: its row in a table, scales and numbers of terms."""
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
    """Points from 2 to 2^(slots + 1), so many between powers of two."""
    first, last = points_an_octave, points_an_octave * (slots + 1)
    return np.asarray(2.0 ** (np.arange(first, last + 1) / points_an_octave), dtype=np.float64)


@functools.lru_cache(maxsize=32)
def counter_quantiles(counter: str, horizon: int, points_an_octave: int = 4) -> tuple[FloatArray, FloatArray]:
    """Table of the 1 - 1/t quantiles of a counter's noise at epsilon = 1, for every law it can have.

    Returns shape grid (g,), quantiles (g, rows).
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
    """An x with P(S > x) at most a failure probability, S a sum of independent centred Laplace variables.

    Shapes: log_failure (n,), scales, terms (n, groups); returns (n,).

    Chan, Shi and Song bound P(S > x) by exp(-x^2 / (8 v^2)) for v^2 of at least the sum of squared scales and
    0 < x < 2 sqrt(2) v^2 / max b. With x = v sqrt(8 L) the bound is the failure probability, and the range
    asks for v > sqrt(L) max b; the smallest such v is approached, and the tail is continuous.

    Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics. ACM Transactions
    on Information and System Security 14, Lemma 2.8.
    """
    effort = -np.asarray(log_failure, dtype=np.float64)
    present = np.where(terms > 0, scales, 0.0)
    spread = np.sqrt((terms * present**2).sum(axis=1))
    bound = np.sqrt(8.0 * effort) * np.maximum(spread, np.sqrt(effort) * present.max(axis=1))
    return np.asarray(bound, dtype=np.float64)


@functools.lru_cache(maxsize=32)
def counter_tail_bounds(counter: str, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Table of bounds on a counter's noise at epsilon = 1 that fail with probability 1/t, law by law.

    Returns shape grid (g,), bounds (g, rows).
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
