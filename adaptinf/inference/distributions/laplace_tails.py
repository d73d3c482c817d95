"""Log tails of a normal variable plus one or two Laplace variables, all independent and centred.

These are the laws of privately released sums: sampling error is close to normal and the noise of the
release is Laplace. Everything is in logs and keeps its relative precision far beyond the point where
the probability itself underflows.

References
----------
Reed (2006), "The normal-Laplace distribution and its relatives" (one Laplace part); the law with two
follows by partial fractions of the characteristic function.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.typing import FloatArray

_ROOT_HALF = np.sqrt(0.5)
_NEGLIGIBLE = 1e-12
_DIRECT = -5.0
_COINCIDE = 1e-4
_SPREAD = 5e-5


def log_normal_laplace_tail(x: ArrayLike, sigma: ArrayLike, scale: ArrayLike) -> FloatArray:
    """Log of P(sigma Z + Laplace(scale) > x) for x >= 0.

    With z = x/sigma and k = sigma/scale the tail is a sum of three terms of which two overflow
    separately; each is written with the scaled complementary error function, and the growing one
    directly where its argument is below -5.
    """
    point, spread, width = np.broadcast_arrays(
        np.asarray(x, dtype=float), np.asarray(sigma, dtype=float), np.asarray(scale, dtype=float)
    )
    return _log_tail(point, np.maximum(spread, _NEGLIGIBLE * width), np.maximum(width, _NEGLIGIBLE * spread))


def _log_tail(x: FloatArray, sigma: FloatArray, scale: FloatArray) -> FloatArray:
    z, k = x / sigma, sigma / scale
    difference = k - z
    far = difference < _DIRECT
    exponent = np.where(far, 0.5 * k * k - x / scale, -0.5 * z * z)
    growing = 0.5 * special.erfcx(np.maximum(difference, _DIRECT) * _ROOT_HALF)
    rest = special.erfcx(z * _ROOT_HALF) - 0.5 * special.erfcx((k + z) * _ROOT_HALF)
    if np.any(far):
        growing = np.where(far, special.ndtr(-difference), growing)
        rest = np.where(far, rest * np.exp(-0.5 * difference * difference), rest)
    return np.asarray(exponent + np.log(0.5 * (growing + rest)), dtype=float)


def log_normal_two_laplace_tail(
    x: ArrayLike, sigma: ArrayLike, scale_a: ArrayLike, scale_b: ArrayLike
) -> FloatArray:
    """Log of P(sigma Z + Laplace(scale_a) + Laplace(scale_b) > x) for x >= 0.

    Partial fractions give (a^2 T_a - b^2 T_b) / (a^2 - b^2) with T the one-Laplace tails. Where the
    squares nearly coincide the scales are spread symmetrically, which costs a relative error of about
    2.5e-9 times (x/scale)^2.
    """
    larger = np.maximum(scale_a, scale_b).astype(float)
    smaller = np.minimum(scale_a, scale_b).astype(float)
    close = larger * larger - smaller * smaller < _COINCIDE * larger * larger
    middle = 0.5 * (larger + smaller)
    larger = np.where(close, middle * (1.0 + _SPREAD), larger)
    smaller = np.where(close, middle * (1.0 - _SPREAD), smaller)
    upper = log_normal_laplace_tail(x, sigma, larger)
    lower = _lower_tail(x, sigma, smaller, upper)
    weight = np.square(smaller / np.where(larger > 0.0, larger, 1.0))
    return np.asarray(upper + np.log((1.0 - weight * np.exp(lower - upper)) / (1.0 - weight)), dtype=float)


def _lower_tail(x: ArrayLike, sigma: ArrayLike, smaller: FloatArray, upper: FloatArray) -> FloatArray:
    """Tail with the smaller scale; of no weight, and not to be computed, where that scale is 0."""
    positive = np.broadcast_to(smaller > 0.0, upper.shape)
    if not np.any(positive):
        return upper
    return np.where(positive, log_normal_laplace_tail(x, sigma, np.where(positive, smaller, 1.0)), upper)
