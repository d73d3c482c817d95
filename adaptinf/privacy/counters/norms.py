"""Upper quantiles of the Euclidean norm of a noise vector, for counters of vectors.

A coordinate of a counter's noise is a sum of independent Laplace variables, or a normal variable; the
coordinates are independent and of one law. Every function returns an upper bound: the norm exceeds it with at
most the probability asked for.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from adaptinf.parameters import COUNT, FINITE, NON_NEGATIVE, Count, Each, Is, check
from adaptinf.privacy.counters.laplace_sums import laplace_sum_quantile, log_tail_and_slope
from adaptinf.typing import FloatArray

_LOG_FAILURE = Each(FINITE, Is(lambda log: log < 0.0, "below 0"))

_KNOTS = 128
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
        Scales of the two groups of Laplace variables in a coordinate. For a hybrid counter after 2^k items
        they are the noises on powers of two, and nodes of k times the second of `Counter.scales`.
    trunk_terms, node_terms : int
        Numbers of variables in each group; a group without terms does not count.
    dimension : int
        Coordinates of the vector, independent of each other.
    log_failure : float
        Natural logarithm of the probability with which the norm may exceed the bound; below 0.

    Returns
    -------
    float
        The bound. Exact in one dimension, at most 2% above the quantile up to 64 dimensions, and up to 40%
        above it beyond (or where the probability is below 1e-260).

    Notes
    -----
    The smallest of up to three bounds; Z is a coordinate, p the probability.

    Union bound: sqrt(d) times the two-sided quantile of Z at p / d.

    Convolution (to 64 dimensions): the log tail of Z is concave, so that its tangents bound it; the law of
    Z^2 that they give is rounded up to a grid and convolved with itself. Both steps move mass upwards only.

    Exponential moments: v -> g(v) = sqrt(c^2 + v) - c is concave with g(0) = 0, hence g(L^2), L the length
    of the vector of Z_k, is at most the sum of g(Z_k^2), and P(L > r) <= E[exp(s g(Z_1^2))]^d exp(-s g(r^2))
    for every c > 0 and s below 1 over the largest scale.

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
        Variables in a coordinate.
    dimension : int
        Coordinates of the vector, independent of each other.
    log_failure : float
        Natural logarithm of the probability with which the norm may exceed the bound; below 0.

    Returns
    -------
    float
        sigma sqrt(terms) times the quantile of a chi variable, exact down to a probability of 1e-280; beyond
        it from the bound (y e^(1 - y))^(d/2) on the tail of a chi-square variable at d y.

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
    if log_failure > -640.0:  # below it exp loses digits, and then is 0
        square = 2.0 * float(special.gammainccinv(0.5 * dimension, math.exp(log_failure)))
    else:
        # the root beyond 1 of log y + 1 - y = 2 log_failure / d
        rest = 1.0 - 2.0 * log_failure / dimension
        ratio = rest
        for _ in range(60):
            ratio = rest + math.log(ratio)
        square = dimension * ratio
    return sigma * math.sqrt(terms * square)


def _tangents(highest: float, scales: FloatArray, terms: FloatArray) -> tuple[FloatArray, ...]:
    """Knots on [0, highest], and the log of P(|Z| > x) with its slope there."""
    knots = highest * np.linspace(0.0, 1.0, _KNOTS) ** 1.5
    value, slope = log_tail_and_slope(
        knots, np.repeat(scales, _KNOTS, axis=0), np.repeat(terms, _KNOTS, axis=0)
    )
    return knots, value + math.log(2.0), slope


def _log_tail_above(x: FloatArray, knots: FloatArray, value: FloatArray, slope: FloatArray) -> FloatArray:
    """Upper bound of the log of P(|Z| > x): the lower one of the tangents at the knots on both sides."""
    right = np.clip(np.searchsorted(knots, x), 1, knots.size - 1)
    tangents = [value[k] + slope[k] * (x - knots[k]) for k in (right - 1, right)]
    return np.minimum(np.minimum(*tangents), 0.0)


def _convolution_bound(
    start: float, scales: FloatArray, terms: FloatArray, dimension: int, log_failure: float
) -> float:
    """Upper quantile of the norm from the convolved law of squares, on ranges that shrink around it."""
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
    """Law of a sum of `times` copies: masses on the grid, and an upper bound of the mass beyond it."""
    if times == 1:
        return mass, beyond
    half = _power(mass, beyond, times // 2)
    total = _sum_of(half, half)
    return _sum_of(total, (mass, beyond)) if times % 2 else total


def _sum_of(first: tuple[FloatArray, float], second: tuple[FloatArray, float]) -> tuple[FloatArray, float]:
    # direct, not by Fourier transforms: sums of positive terms keep their relative accuracy far out
    law = np.convolve(first[0], second[0])
    size = first[0].size
    either = first[1] + (1.0 - first[1]) * second[1]
    return law[:size], min(float(law[size:].sum()) + either, 1.0)


def _moment_bound(
    start: float, scales: FloatArray, terms: FloatArray, dimension: int, log_failure: float
) -> float:
    """Smallest bound by exponential moments of sqrt(c^2 + Z^2) - c on a grid of c and s; scales at most 1."""
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
        # beyond the last knot the tail stays below its tangent and g grows at a rate of at most 1
        last = math.sqrt(bend**2 + start**2) - bend
        beyond = rates[:, 0] * np.exp(rates[:, 0] * last + value[-1]) / (-slope[-1] - rates[:, 0])
        log_moment = np.log1p(inside + beyond)
        reach = float(np.min((dimension * log_moment - log_failure) / rates[:, 0]))
        best = min(best, math.sqrt(reach * (reach + 2.0 * bend)))
    return best
