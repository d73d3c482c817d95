"""A normal estimate that is seen only between two limits: its law, and the means that agree with it."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import log_ndtr

_FAR = 1e12
"""Standard errors beyond which a limit is infinite."""


def log_between(low: float, high: float) -> float:
    """Log of the standard normal probability between two limits; -inf where they do not differ."""
    if not low < high:
        return -math.inf
    if low > 0.0:
        low, high = -high, -low
    if high <= 0.0:
        larger, smaller = float(log_ndtr(high)), float(log_ndtr(low))
        return larger + _log1mexp(smaller - larger) if smaller < larger else -math.inf
    return math.log1p(-math.exp(float(log_ndtr(low))) - math.exp(float(log_ndtr(-high))))


def log_distribution(x: float, mean: float, low: float, high: float) -> float:
    """Log of the distribution function at x of a normal law of variance 1, given a value in [low, high]."""
    if x <= low:
        return -math.inf
    if x >= high:
        return 0.0
    whole = log_between(low - mean, high - mean)
    if whole == -math.inf:  # so far out that the law is all at the nearer end
        return 0.0 if mean < low else -math.inf
    return min(0.0, log_between(low - mean, x - mean) - whole)


def mean_at(
    log_probability: float,
    x: float,
    low: float,
    high: float,
    window: float = math.inf,
    law: Callable[[float, float, float, float], float] = log_distribution,
) -> float:
    """The mean at which the law given [low, high], and within `window` of the mean, has a probability at x.

    The distribution function falls in the mean, from 1 to 0.
    """

    def gap(mean: float) -> float:
        ends = max(low, mean - window), min(high, mean + window)
        return max(law(x, mean, *ends), -1e300) - log_probability

    if math.isfinite(window):
        return _root(gap, x - window, x + window)
    left, right = x - 1.0, x + 1.0
    while gap(left) < 0.0 and x - left < _FAR:
        left = x - 2.0 * (x - left)
    while gap(right) > 0.0 and right - x < _FAR:
        right = x + 2.0 * (right - x)
    if gap(left) < 0.0:
        return -math.inf
    return math.inf if gap(right) > 0.0 else _root(gap, left, right)


def _root(gap: Callable[[float], float], left: float, right: float) -> float:
    """Where a falling function is 0; an end where it is not between."""
    if gap(left) <= 0.0:
        return left
    if gap(right) >= 0.0:
        return right
    return float(brentq(gap, left, right, xtol=1e-12 * max(1.0, abs(left), abs(right)), rtol=1e-14))


def _log1mexp(negative: float) -> float:
    """log(1 - exp(x)) for x < 0."""
    return math.log(-math.expm1(negative)) if negative > -math.log(2.0) else math.log1p(-math.exp(negative))
