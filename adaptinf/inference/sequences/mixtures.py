"""Mixtures of martingales that use more than the variance of rewards: that they are binary, or bounded.

References
----------
Robbins, H. (1970). Statistical methods related to the law of the iterated logarithm (beta-binomial).

Howard, S. R., Ramdas, A., McAuliffe, J. and Sekhon, J. (2021). Time-uniform, nonparametric, nonasymptotic
confidence sequences (its prior around the claimed mean, and the gamma-exponential mixture).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammainc, gammaln, xlogy

from adaptinf.compilation import compiled
from adaptinf.inference.sequences.sides import mixture_scale, predictable_moments, running_largest
from adaptinf.typing import FloatArray, IntArray

# Logarithms are slow, so wealth is moved into them only before it leaves this range, and not in every round.
_SMALL, _LARGE = 1e-100, 1e100
# Bisection in [0, 1] ends at this length, about a hundred times the rounding error of 1.
_PRECISION = 1e-14
_MOST = 700.0  # exp overflows at about 709.
_LEAST = 1e-3  # The prior must count as a positive number of scores.
# Newton's method starts from a table with this many knots, so few steps suffice; a step this small ends it.
_KNOTS, _STEPS, _CLOSE = 256, 30, 1e-9


@compiled
def beta_peak(score: FloatArray, mean: float, size: float, threshold: float, count: int) -> float:
    """Largest log wealth over the first scores, until it reaches a threshold; score (n,) of 0 and 1.

    The wealth is the probability of the scores under the prior Beta(size * mean, size * (1 - mean)), divided
    by the probability under the claimed mean. The wealth is used if the mean of the scores is above the
    claimed mean.
    """
    wealth, offset, peak = 1.0, 0.0, 0.0
    highest, goal = 1.0, math.exp(min(threshold, _MOST))
    wins, raised = 0, False
    for i in range(count):
        if mean >= 1.0:
            break
        if score[i] > 0.5:
            if mean <= 0.0:
                return np.inf
            wealth *= (size + wins / mean) / (size + i)
            wins += 1
        else:
            wealth *= (size + (i - wins) / (1.0 - mean)) / (size + i)
        if wealth > highest and wins > mean * (i + 1.0):
            highest, raised = wealth, True
            if wealth >= goal:
                break
        if wealth > _LARGE or wealth < _SMALL:
            peak = offset + math.log(highest) if raised else peak
            offset += math.log(wealth)
            wealth, raised = 1.0, False
            highest, goal = math.exp(min(peak - offset, _MOST)), math.exp(min(threshold - offset, _MOST))
    return offset + math.log(highest) if raised else peak


@compiled
def beta_bounds(
    score: FloatArray, size: float, threshold: float, counts: IntArray, bounds: FloatArray
) -> None:
    """Write the largest mean in [0, 1] against which the log wealth ever reached a threshold.

    Shapes: score (n,), counts (r,), bounds (r,). The log wealth is convex in the claimed mean, and at most 0
    at the mean of the scores. Below the mean of the scores, the wealth decreases in the claimed mean wherever
    it exceeds 1, so bisection finds the bound.
    """
    low = 0.0
    for r in range(len(counts)):
        high = 1.0
        step = min(low + _PRECISION, 1.0)
        if low < 1.0 and beta_peak(score, step, size, threshold, counts[r]) >= threshold:
            while high - low > _PRECISION:
                middle = 0.5 * (low + high)
                if beta_peak(score, middle, size, threshold, counts[r]) >= threshold:
                    low = middle
                else:
                    high = middle
        bounds[r] = low


def beta_size(t_opt: float, alpha: float) -> float:
    """Weight of the prior, as a number of scores, that gives the narrowest limits at `t_opt` scores."""
    # With this size, the prior's variance mean (1 - mean) / (size + 1) equals that of a normal prior, sigma^2
    # / scale, whose optimal scale is known.
    return max(mixture_scale(t_opt, alpha) - 1.0, _LEAST)


@dataclass(frozen=True, slots=True, eq=False)
class BetaBinomialSide:
    """The beta-binomial mixture for scores of 0 and 1 that exceed a claimed mean; score (n,)."""

    score: FloatArray
    size: float
    lowest = 0.0

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite for a mean below 0, which is impossible."""
        if mean < 0.0:
            return math.inf
        return float(beta_peak(self.score, mean, self.size, math.inf, len(self.score)))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 if no mean is rejected."""
        result = np.zeros(len(counts))
        beta_bounds(self.score, self.size, threshold, counts, result)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class BetaBinomialCounts:
    """The beta-binomial mixture for scores that are counted only at some times; wins, count (n,)."""

    wins: FloatArray
    count: FloatArray
    size: float
    lowest = 0.0

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite for a mean below 0, which is impossible."""
        if mean < 0.0:
            return math.inf
        above = self.wins > mean * self.count
        return float(np.max(self._wealth(np.full(len(above), mean))[above], initial=0.0))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 if no mean is rejected."""
        low, high = np.zeros(len(self.wins)), self.wins / self.count
        while np.any(high - low > _PRECISION):
            middle = 0.5 * (low + high)
            rejected = self._wealth(middle) >= threshold
            low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
        return running_largest(low, counts, 0.0)

    def _wealth(self, mean: FloatArray) -> FloatArray:
        """Log wealth against claimed means, shape (n,)."""
        wins, losses = self.wins, self.count - self.wins
        alpha, beta = self.size * mean, self.size * (1.0 - mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = betaln(alpha + wins, beta + losses) - betaln(alpha, beta)
            wealth = prior - xlogy(wins, mean) - xlogy(losses, 1.0 - mean)
        certain = np.where(mean <= 0.0, np.where(wins > 0.0, np.inf, 0.0), 0.0)
        return np.where((mean > 0.0) & (mean < 1.0), wealth, certain)


def gamma_wealth(excess: FloatArray, variance: FloatArray, scale: float) -> FloatArray:
    """Log wealth of the gamma-exponential mixture; excess, variance (n,), both at least 0; returns (n,).

    The wealth is the average of exp(b * excess - psi(b) * variance), where psi(b) = -log(1 - b) - b, over
    shares b in [0, 1). The distribution of 1 - b is the gamma distribution with shape and rate `scale`,
    restricted to values below 1.
    """
    shape = variance + scale
    reach = excess + shape
    constant = scale * math.log(scale) - float(gammaln(scale)) - math.log(gammainc(scale, scale))
    with np.errstate(divide="ignore"):
        inside = np.log(gammainc(shape, reach))
    return np.asarray(constant + gammaln(shape) + inside - shape * np.log(reach) + excess + variance)


def gamma_boundary(variance: FloatArray, threshold: float, scale: float) -> FloatArray:
    """Excess at which the gamma-exponential mixture reaches a threshold; variance (n,) must increase."""
    if len(variance) <= _KNOTS:
        return _newton(variance, threshold, scale, _far(variance, threshold, scale))
    knots = np.quantile(variance, np.linspace(0.0, 1.0, _KNOTS))
    near = _newton(knots, threshold, scale, _far(knots, threshold, scale))
    return _newton(variance, threshold, scale, np.interp(variance, knots, near))


def _far(variance: FloatArray, threshold: float, scale: float) -> FloatArray:
    """An excess above the boundary, at which Newton's method starts."""
    far = np.sqrt((variance + scale) * (np.log1p(variance / scale) + 2.0 * threshold)) + threshold
    while np.any(short := gamma_wealth(far, variance, scale) < threshold):
        far = np.where(short, 2.0 * far, far)
    return far


def _newton(variance: FloatArray, threshold: float, scale: float, start: FloatArray) -> FloatArray:
    """Newton steps, which approach from above after the first step because the log wealth is convex."""
    shape, excess = variance + scale, start
    for _ in range(_STEPS):
        reach = excess + shape
        density = np.exp((shape - 1.0) * np.log(reach) - reach - gammaln(shape))
        slope = 1.0 - shape / reach + density / gammainc(shape, reach)
        step = (gamma_wealth(excess, variance, scale) - threshold) / slope
        excess = np.maximum(excess - step, 0.0)
        if np.all(np.abs(step) <= _CLOSE * (1.0 + excess)):
            break
    return excess


@dataclass(frozen=True, slots=True, eq=False)
class GammaExponentialSide:
    """The gamma-exponential mixture of ``gain - mean * stake``; gain, stake, variance (n,)."""

    gain: FloatArray
    stake: FloatArray
    variance: FloatArray
    scale: float
    lowest = 0.0

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite for a mean below 0, which is impossible."""
        if mean < 0.0:
            return math.inf
        excess = self.gain - mean * self.stake
        use = excess > 0.0
        return float(np.max(gamma_wealth(excess[use], self.variance[use], self.scale), initial=0.0))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 if no mean is rejected."""
        last = int(counts[-1])
        boundary = gamma_boundary(self.variance[:last], threshold, self.scale) if last else np.zeros(0)
        return running_largest((self.gain[:last] - boundary) / self.stake[:last], counts, 0.0)


def gamma_side(score: FloatArray, floor: FloatArray, t_opt: float, alpha: float) -> GammaExponentialSide:
    """The gamma-exponential mixture, tuned for a standard deviation of half the range; score, floor (n,)."""
    centre, _ = predictable_moments(score)
    stake = 1.0 / (1.0 - floor)
    variance = np.cumsum(((score - centre) * stake) ** 2)
    return GammaExponentialSide(
        np.cumsum(score * stake), np.cumsum(stake), variance, mixture_scale(0.25 * t_opt, alpha)
    )
