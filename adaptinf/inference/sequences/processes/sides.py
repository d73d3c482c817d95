"""One-sided confidence sequences: running lower bounds and the evidence against a claimed mean.

References
----------
Waudby-Smith, Ramdas (2024), "Estimating means of bounded random variables by betting". Howard, Ramdas,
McAuliffe, Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences". Waudby-Smith,
Arbour, Sinha, Kennedy, Ramdas (2024), "Time-uniform central limit theory and asymptotic confidence
sequences".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adaptinf.inference.sequences.processes.wealth import (
    CAP,
    bernstein_sums,
    betting_bounds,
    betting_peak,
    mixture_scale,
    plug_in_bets,
    predictable_moments,
)
from adaptinf.typing import FloatArray, IntArray


class Side(Protocol):
    """Evidence that the mean of n scores is larger than claimed, and what it leaves possible."""

    def peak(self, mean: float) -> float:
        """Largest log wealth ever reached against a claimed mean: at least 0, and falling in the mean."""

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest means against which the log wealth has reached a threshold, shape (r,).

        `counts`, in ascending order, are the numbers of scores after which the bound is wanted.
        """


@dataclass(frozen=True, slots=True, eq=False)
class LinearSide:
    """Log wealth ``gain - mean * stake``: the empirical Bernstein process; gain, stake (n,)."""

    gain: FloatArray
    stake: FloatArray

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite below 0, where no mean can be."""
        if mean < 0.0:
            return math.inf
        return float(np.max(self.gain - mean * self.stake, initial=0.0))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 where none is."""
        return running_largest((self.gain - threshold) / self.stake, counts, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class BettingSide:
    """Wealth of bets on the scores themselves; score, bet, floor (n,)."""

    score: FloatArray
    bet: FloatArray
    floor: FloatArray
    cap: float = CAP

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite below 0, where no mean can be."""
        if mean < 0.0:
            return math.inf
        return float(betting_peak(self.score, self.bet, self.floor, mean, self.cap))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 where none is."""
        result = np.zeros(len(counts))
        betting_bounds(self.score, self.bet, self.floor, self.cap, threshold, counts, result)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class MixtureSide:
    """Normal mixture of exponential martingales, for sums that lie above what was claimed.

    Shapes: total (n,), the sums of all scores so far; count (n,), how many these are; variance (n,).
    """

    total: FloatArray
    count: FloatArray
    variance: FloatArray
    scale: float
    lowest: float

    @classmethod
    def of_scores(cls, score: FloatArray, variance: FloatArray, scale: float, lowest: float) -> MixtureSide:
        """The mixture after each of some scores; score, variance (n,)."""
        return cls(np.cumsum(score), np.arange(1.0, len(score) + 1.0), variance, scale, lowest)

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite where no mean can be."""
        if mean < self.lowest:
            return math.inf
        excess = self.total - self.count * mean
        use = (excess > 0.0) & (self.variance > 0.0)
        total = self.variance[use] + self.scale
        wealth = excess[use] ** 2 / (2.0 * total) - 0.5 * np.log(total / self.scale)
        return float(np.max(wealth, initial=0.0))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); the smallest possible mean where none is."""
        total = self.variance + self.scale
        width = np.sqrt(total * (np.log(total / self.scale) + 2.0 * threshold)) / self.count
        bound = np.where(self.variance > 0.0, self.total / self.count - width, -np.inf)
        return running_largest(bound, counts, self.lowest)


def bernstein_side(score: FloatArray, floor: FloatArray, alpha: float) -> LinearSide:
    """Empirical Bernstein with predictable plug-in bets; score (n,), floor (n,)."""
    centre, variance = predictable_moments(score)
    scale = 1.0 - floor
    bet = np.minimum(CAP / scale, plug_in_bets(variance, alpha))
    return LinearSide(*bernstein_sums(score, bet, centre, scale))


def betting_side(score: FloatArray, floor: FloatArray, alpha: float) -> BettingSide:
    """Betting with predictable plug-in bets; the parameters are those of `bernstein_side`."""
    _, variance = predictable_moments(score)
    own = np.ascontiguousarray(score, dtype=np.float64)
    return BettingSide(own, plug_in_bets(variance, alpha), np.ascontiguousarray(floor, dtype=np.float64))


def asymptotic_side(
    total: FloatArray,
    count: FloatArray,
    spread: FloatArray,
    clock: IntArray,
    alpha: float,
    t_opt: float,
    start: int,
    lowest: float,
) -> MixtureSide:
    """Normal mixture with the running variance of the scores in place of a known one.

    Shapes: total (n,), sums of scores so far; count (n,), how many these are; spread (n,), their variance;
    clock (n,), the rewards that they rest on.
    """
    variance = np.where(clock >= start, count * spread, 0.0)
    known = np.flatnonzero(variance > 0.0)
    first = spread[known[0]] if len(known) else 1.0
    return MixtureSide(total, count, variance, mixture_scale(first * t_opt, alpha), lowest)


def running_largest(bound: FloatArray, counts: IntArray, lowest: float) -> FloatArray:
    """Largest of the first bounds, shape (r,), and of what no bound falls below; bound (n,), counts (r,)."""
    running = np.maximum.accumulate(np.concatenate(([lowest], bound)))
    return np.asarray(running[counts], dtype=np.float64)
