"""Probabilities that a test statistic leaves its continuation region at each look.

The statistic at a look with information I is a score S, which is normal with mean drift * I and variance I
and has independent increments. The density of the scores that have not left the region is propagated from
look to look by Gauss-Legendre quadrature.

References
----------
Armitage, McPherson, Rowe (1969), "Repeated significance tests on accumulating data". Jennison, Turnbull
(2000), "Group Sequential Methods with Applications to Clinical Trials", chapter 19.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from adaptinf.typing import FloatArray

# Beyond this many standard deviations, the normal distribution has a probability of 1e-22, which is
# negligible.
_REACH = 9.8
# A panel as long as the standard deviation of one increment gets this many nodes, which keeps errors near
# 1e-14.
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(12)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


class Walk:
    """The distribution of scores that have not left the region: nodes, and the mass at each; shape (n,)."""

    def __init__(self, drift: float = 0.0) -> None:
        self.drift, self.information = drift, 0.0
        self.score, self.mass = np.zeros(1), np.ones(1)

    def below(self, information: float, bound: float) -> float:
        """Probability that the score leaves the region for the first time at the next look, below a bound."""
        mean, spread = self._next(information)
        return float(self.mass @ special.ndtr((bound - mean) / spread))

    def above(self, information: float, bound: float) -> float:
        """Probability that the score leaves the region for the first time at the next look, above a bound."""
        mean, spread = self._next(information)
        return float(self.mass @ special.ndtr((mean - bound) / spread))

    def proceed(self, information: float, low: float, high: float) -> None:
        """Keep the scores at the next look that lie between two bounds."""
        mean, spread = self._next(information)
        middle, reach = self.drift * information, _REACH * math.sqrt(information)
        self.information = information
        self.score, weight = _panels(max(low, middle - reach), min(high, middle + reach), spread)
        distance = (self.score[:, None] - mean) / spread
        self.mass = weight * (np.exp(-0.5 * distance * distance) @ self.mass) / (spread * _ROOT_TWO_PI)

    def _next(self, information: float) -> tuple[FloatArray, float]:
        step = information - self.information
        return self.score + self.drift * step, math.sqrt(step)


def _panels(low: float, high: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights, shape (n,), of a quadrature from low to high in panels of limited length."""
    if not low < high:
        return np.zeros(0), np.zeros(0)
    ends = np.linspace(low, high, math.ceil((high - low) / longest) + 1)
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * (ends[1:] - ends[:-1])
    return (middle[:, None] + half[:, None] * _NODE).ravel(), (half[:, None] * _WEIGHT).ravel()


def crossing(
    lower: FloatArray, upper: FloatArray, information: FloatArray, drift: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Probabilities of leaving the region for the first time at each look, below and above.

    Critical values of z, lower and upper, and ascending information have shape (k,), as do both results.
    """
    walk, below, above = Walk(drift), np.zeros(len(upper)), np.zeros(len(upper))
    for look, size in enumerate(information):
        low, high = lower[look] * math.sqrt(size), upper[look] * math.sqrt(size)
        below[look], above[look] = walk.below(size, low), walk.above(size, high)
        walk.proceed(size, low, high)
    return below, above
