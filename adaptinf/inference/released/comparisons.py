"""Comparisons of privately released effects of several groups, by combining their intervals.

Sampling error is normal and the noise is Laplace, with scales that depend on the true effect: differences
and quadratic forms have no law of a known form. Intervals of the groups combine by Bonferroni's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adaptinf.claims.privacy import releases
from adaptinf.inference.distributions.tails import LOG_2
from adaptinf.inference.released.effects import NoisyEffect
from adaptinf.typing import FloatArray, IntArray

_BISECTIONS = 50
_DEEPEST = -1e6


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedDifferenceReference:
    """Differences of released effects, between the limits of two intervals at alpha/2 each.

    Shapes: plus, minus (k,).

    The interval holds the difference where both intervals hold their effects, which fails with probability
    at most alpha. The p-value is the smallest alpha at which the interval excludes the null.
    """

    effect: NoisyEffect
    plus: IntArray
    minus: IntArray
    name: str = releases.TWO_INTERVALS()
    exact: bool = False
    statistic, normal, uses_std_error = "z", False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        return np.array(
            [
                _smallest_level(self._pair_holds(i, j, null)) if self._valid(i, j) else math.nan
                for i, j in zip(self.plus, self.minus, strict=True)
            ],
            dtype=np.float64,
        )

    def interval(self, log_alpha: float) -> FloatArray:
        """Limits at level ``1 - exp(log_alpha)``, shape (k, 2); NaN where a group has no interval."""
        low, high = self.effect.interval(log_alpha - LOG_2)
        return np.column_stack((low[self.plus] - high[self.minus], high[self.plus] - low[self.minus]))

    def _valid(self, i: int, j: int) -> bool:
        return bool(self.effect.valid[i] and self.effect.valid[j])

    def _pair_holds(self, i: int, j: int, null: float) -> Callable[[float], bool]:
        pair = _subset(self.effect, np.array([i, j]))

        def holds(log_alpha: float) -> bool:
            low, high = pair.interval(log_alpha - LOG_2)
            # Comparisons with NaN are false: an empty interval holds nothing.
            return bool(low[0] - high[1] <= null <= high[0] - low[1])

        return holds


def log_common_pvalue(effect: NoisyEffect, groups: IntArray) -> float:
    """Log of the smallest alpha at which the groups' intervals at alpha/G have no effect in common.

    Shapes: groups (G,).
    """
    compared = _subset(effect, groups)
    share = math.log(len(groups))

    def overlap(log_alpha: float) -> bool:
        low, high = compared.interval(log_alpha - share)
        return bool(np.max(low) <= np.min(high))

    return _smallest_level(overlap)


def _smallest_level(accepts: Callable[[float], bool]) -> float:
    """Log of the smallest alpha that rejects, for a test that rejects at every larger one too."""
    rejected, accepted = 0.0, -1.0
    if accepts(rejected):
        return 0.0
    while not accepts(accepted):
        rejected, accepted = accepted, 2.0 * accepted
        if accepted < _DEEPEST:
            return -math.inf
    for _ in range(_BISECTIONS):
        middle = 0.5 * (rejected + accepted)
        rejected, accepted = (rejected, middle) if accepts(middle) else (middle, accepted)
    return rejected


def _subset(effect: NoisyEffect, rows: IntArray) -> NoisyEffect:
    parts = {
        name: np.broadcast_to(getattr(effect, name), effect.valid.shape)[rows]
        for name in ("center", "size", "scale", "slope", "twin", "valid")
    }
    return replace(effect, **parts)
