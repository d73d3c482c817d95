"""Estimates after a stop, by stage-wise ordering of the possible outcomes.

Among trials that stopped above the region, an outcome is more extreme the earlier the trial stopped and, at
the same look, the larger the statistic is. The probability of a more extreme outcome increases with the
effect, which yields a p-value, a median-unbiased estimate and an interval. Only looks up to the stop are
used, so later looks may depend on the data.

References
----------
Tsiatis, Rosner, Mehta (1984), "Exact confidence intervals following a group sequential test". Jennison,
Turnbull (2000), "Group Sequential Methods with Applications to Clinical Trials", chapter 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import optimize, special

from adaptinf.inference.group_sequential.crossing import Walk
from adaptinf.typing import FloatArray

_EXACT = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Stopped:
    """A trial that stopped at its last look with the statistic `score`; arrays have shape (k,).

    The score at look j has mean effect * slope_j and variance information_j. If the estimator is efficient,
    slope and information are equal.
    """

    information: FloatArray
    slope: FloatArray
    lower: FloatArray
    upper: FloatArray
    score: float

    def tail(self, effect: float) -> float:
        """Probability of an outcome at least as extreme in the upper direction."""
        walk, before = Walk(), 0.0
        mean, root = effect * self.slope, np.sqrt(self.information)
        low, high = self.lower * root - mean, self.upper * root - mean
        *earlier, last = self.information.tolist()
        for look, size in enumerate(earlier):
            before += walk.above(size, high[look])
            walk.proceed(size, low[look], high[look])
        return before + walk.above(last, self.score - mean[-1])

    @property
    def pvalue(self) -> float:
        """Two-sided p-value for an effect of 0."""
        above = self.tail(0.0)
        return min(1.0, 2.0 * min(above, 1.0 - above))

    def effect(self, probability: float) -> float:
        """Effect for which an outcome at least as extreme has this probability."""
        centre = self.score / float(self.slope[-1])
        spread = math.sqrt(float(self.information[-1])) / float(self.slope[-1])
        near = -spread * float(special.ndtri(1.0 - probability))
        low, high = centre + near - 0.5 * spread, centre + near + 0.5 * spread

        @cache
        def excess(effect: float) -> float:
            return self.tail(effect) - probability

        while excess(low) > 0.0:
            low -= 2.0 * spread
        while excess(high) < 0.0:
            high += 2.0 * spread
        return float(optimize.brentq(excess, low, high, xtol=_EXACT * spread))

    @property
    def estimate(self) -> float:
        """The median-unbiased estimate of the effect."""
        return self.effect(0.5)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Limits that contain the effect with probability 1 - alpha."""
        return self.effect(0.5 * alpha), self.effect(1.0 - 0.5 * alpha)
