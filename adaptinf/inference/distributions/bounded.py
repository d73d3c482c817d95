"""Exact inference on the difference of two means of bounded rewards, at any sample size and far out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy import special

from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray, FloatArray

Limits: TypeAlias = tuple[FloatArray, FloatArray]

_NUISANCE_SHARE = 0.05
_BISECTIONS = 42
_POSITIONS = 16
_NEWTON_STEPS = 14
_TINY = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class BoundedDifferenceReference:
    """Tests and intervals of a difference of two means of independent rewards in [0, 1].

    A difference d is rejected at level alpha when, for all pairs of true means that differ by d and lie
    within their own intervals at level 1 - alpha/20 together, Chernoff's bound on the tail of the observed
    difference is below 19/40 alpha. Bernoulli rewards have the largest moment generating function of all
    rewards in [0, 1] of the same mean, so the bound holds for every reward law in [0, 1] and every sample
    size. It is a factor of a few units above the exact tail for 0/1 rewards: conservative at the usual
    levels, nearly sharp far out, where a normal approximation cannot be trusted and a difference of two
    intervals wastes half of the exponent.

    Hoeffding, W. (1963). Probability inequalities for sums of bounded random variables. JASA 58, 13-30.

    Berger, R. L. and Boos, D. D. (1994). P values maximized over a confidence set for the nuisance parameter.
    JASA 89, 1012-1016.
    """

    means: FloatArray
    counts: FloatArray
    control_means: FloatArray
    control_counts: FloatArray
    name: str = field(default="bounded difference (exact)", init=False)
    exact: bool = field(default=True, init=False)
    statistic, normal, uses_std_error = "z", False, False

    def __post_init__(self) -> None:
        names = ("means", "counts", "control_means", "control_counts")
        arrays = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(getattr(self, name), dtype=float)) for name in names)
        )
        problems = []
        for name, array in zip(names, arrays, strict=True):
            if "means" in name and np.any((array < 0.0) | (array > 1.0)):
                problems.append(f"{name} must lie in [0, 1]")
            if "counts" in name and not np.all(array >= 0.0):
                problems.append(f"{name} must be at least 0")
            object.__setattr__(self, name, array)
        refuse("BoundedDifferenceReference", problems)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        low = np.full(self.means.shape, -2.0)
        while np.any(active := self._rejects(null, low, self._nuisance(low))) and np.min(low) > -1e6:
            low = np.where(active, 2.0 * low, low)
        high = np.zeros(self.means.shape)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            rejected = self._rejects(null, middle, self._nuisance(middle))
            low, high = np.where(rejected, low, middle), np.where(rejected, middle, high)
        if abs(null) > 1.0:
            high = np.full(high.shape, -np.inf)
        return np.where(self._known(), high, np.nan)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        level = np.full(self.means.shape, float(log_alpha))
        nuisance = self._nuisance(level)
        observed = np.where(self._known(), self.means - self.control_means, 0.0)
        limits = []
        for end in (-1.0, 1.0):
            kept, dropped = observed, np.full(observed.shape, end)
            for _ in range(_BISECTIONS):
                middle = 0.5 * (kept + dropped)
                rejected = self._rejects(middle, level, nuisance)
                kept, dropped = np.where(rejected, kept, middle), np.where(rejected, middle, dropped)
            limits.append(np.where(self._rejects(np.full(observed.shape, end), level, nuisance), kept, end))
        return np.where(self._known()[:, None], np.column_stack(limits), np.nan)

    def _known(self) -> BoolArray:
        return (self.counts >= 1) & (self.control_counts >= 1)

    def _nuisance(self, log_alpha: FloatArray) -> tuple[Limits, Limits]:
        """Limits of either arm's true mean, wrong with probability alpha/20 together."""
        log_tail = np.log(0.25 * _NUISANCE_SHARE) + log_alpha
        return (
            relative_entropy_limits(self.means, self.counts, log_tail),
            relative_entropy_limits(self.control_means, self.control_counts, log_tail),
        )

    def _rejects(
        self, null: float | FloatArray, log_alpha: FloatArray, nuisance: tuple[Limits, Limits]
    ) -> BoolArray:
        """Whether the difference `null` is rejected at level exp(log_alpha)."""
        value = np.broadcast_to(np.asarray(null, dtype=float), self.means.shape)
        observed = self.means - self.control_means
        above = observed >= value

        def arrange(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
            # A difference below the null is the mirror image of one above it, with the arms exchanged.
            return np.where(above, first, second), np.where(above, second, first)

        counts, control_counts = arrange(self.counts, self.control_counts)
        low, control_low = arrange(nuisance[0][0], nuisance[1][0])
        high, control_high = arrange(nuisance[0][1], nuisance[1][1])
        shift = np.where(above, value, -value)
        floor = np.maximum(control_low, low - shift)
        ceiling = np.minimum(control_high, high - shift)
        bound = log_chernoff_difference(
            np.abs(observed - value) + shift, shift, counts, control_counts, floor, ceiling
        )
        tail = np.log(0.5 * (1.0 - _NUISANCE_SHARE)) + log_alpha
        return np.asarray((floor > ceiling) | (bound <= tail))


def log_chernoff_difference(
    observed: FloatArray,
    null: FloatArray,
    counts: FloatArray,
    control_counts: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Log of Chernoff's bound on P(difference of sample means >= observed), at the worst control mean.

    Shapes: observed, null (k,), counts, control_counts (k,), low, high (k,); returns (k,).

    With a = lambda/n1 and b = lambda/n0 the exponent is n1 log(1 + (p + null)(e^a - 1)) +
    n0 log(1 + p (e^-b - 1)) - lambda * observed. It is concave in p, with its maximum in closed form, and the
    maximum is convex in lambda: false position on its derivative finds the smallest. Every lambda gives a
    valid bound.
    """
    n1, n0 = np.maximum(counts, 1.0), np.maximum(control_counts, 1.0)
    floor = np.minimum(low, high)

    def exponent(rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The exponent at its largest over p, and its derivative in lambda."""
        grow, shrink = np.expm1(rate / n1), np.expm1(-rate / n0)
        base = 1.0 + null * grow
        with np.errstate(divide="ignore", invalid="ignore"):
            best = -(n1 * grow + n0 * shrink * base) / (grow * shrink * (n1 + n0))
        best = np.clip(np.where(np.isfinite(best), best, floor), floor, high)
        first = np.maximum(base + best * grow, _TINY)
        second = np.maximum(1.0 + best * shrink, _TINY)
        value = n1 * np.log(first) + n0 * np.log(second) - rate * observed
        slope = (best + null) * (1.0 + grow) / first - best * (1.0 + shrink) / second - observed
        return value, slope

    left, right = np.zeros(observed.shape), 30.0 * np.minimum(n1, n0)
    guess = np.minimum(right, 2.0 * (observed - null) / (0.25 / n1 + 0.25 / n0))
    smallest, slope = exponent(guess)
    left_slope, right_slope = exponent(left)[1], exponent(right)[1]
    for _ in range(_POSITIONS):
        up = slope > 0.0
        # Illinois: an end that stays has its slope halved, so that both ends move in.
        left_slope = np.where(up, 0.5 * left_slope, slope)
        right_slope = np.where(up, slope, 0.5 * right_slope)
        left, right = np.where(up, left, guess), np.where(up, guess, right)
        with np.errstate(divide="ignore", invalid="ignore"):
            guess = (left * right_slope - right * left_slope) / (right_slope - left_slope)
        guess = np.where((guess > left) & (guess < right), guess, 0.5 * (left + right))
        value, slope = exponent(guess)
        smallest = np.minimum(smallest, value)
    return np.minimum(0.0, smallest)


def relative_entropy_limits(
    means: FloatArray, counts: FloatArray, log_tail: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Limits of a mean of rewards in [0, 1]: where n KL(sample mean, p) = -log_tail.

    Shapes: means, counts (k,), log_tail (k,); returns low, high (k,).
    """
    budget = -log_tail / np.maximum(counts, 1.0)
    return 1.0 - _upper_limit(1.0 - means, budget), _upper_limit(means, budget)


def _upper_limit(means: FloatArray, budget: FloatArray) -> FloatArray:
    """The p above the mean with KL(mean, p) = budget: Newton on u = log(1 - p).

    There the divergence is convex and falls as u rises; from the left of the root Newton climbs to it.
    """
    rest = 1.0 - means
    entropy = -(special.xlogy(means, means) + special.xlogy(rest, rest))
    safe = np.maximum(rest, _TINY)
    u = -(budget + entropy) / safe
    for _ in range(_NEWTON_STEPS):
        p = -np.expm1(u)
        excess = -entropy - special.xlogy(means, p) - rest * u - budget
        slope = means * np.exp(u) / np.maximum(p, _TINY) - rest
        u = np.minimum(u - excess / np.minimum(slope, -_TINY), np.log(safe))
    return np.where(rest > 0.0, -np.expm1(u), 1.0)
