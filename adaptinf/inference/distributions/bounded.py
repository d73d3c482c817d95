"""Exact inference on the difference between two means of bounded rewards, for any sample size and tail."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from adaptinf.parameters import refuse
from adaptinf.typing import FloatArray

_NUISANCE_SHARE = 0.05
_BISECTIONS = 42
_POSITIONS = 16
_NEWTON_STEPS = 14
_TINY = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class BoundedDifferenceReference:
    """Tests and intervals for a difference between two means of independent rewards in [0, 1].

    A difference d is rejected at level alpha if Chernoff's bound on the tail of the observed difference is
    below 19/40 alpha for all pairs of true means that differ by d and lie in their own intervals, whose joint
    level is 1 - alpha/20. Bernoulli rewards have the largest moment generating function among all rewards in
    [0, 1] with the same mean, so the bound holds for every reward distribution on [0, 1] and every sample
    size. For 0/1 rewards, the bound exceeds the exact tail by a small factor. The bound is conservative at
    the usual levels, and nearly sharp far in the tail, where a normal approximation cannot be trusted and a
    combination of two separate intervals would lose half of the exponent.

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
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return np.array([_log_pvalue(pair, null) for pair in self._pairs()], dtype=np.float64)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        limits = [_interval(pair, float(log_alpha)) for pair in self._pairs()]
        return np.array(limits, dtype=np.float64).reshape(-1, 2)

    def _pairs(self) -> list[_Pair]:
        columns = self.means, self.counts, self.control_means, self.control_counts
        return [_Pair(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


class _Pair(NamedTuple):
    """Sample means and counts for two arms."""

    mean: float
    trials: float
    control_mean: float
    control_trials: float

    @property
    def known(self) -> bool:
        """Whether both arms have at least one reward."""
        return self.trials >= 1.0 and self.control_trials >= 1.0


# Each pair is handled alone, with plain floats: each step depends on the one before, and arrays of one number
# are slow.


def _log_pvalue(pair: _Pair, null: float) -> float:
    """Logarithm of the smallest level at which a difference is rejected; NaN if an arm has no rewards."""
    if not pair.known:
        return math.nan
    if abs(null) > 1.0:
        return -math.inf
    low, high = -2.0, 0.0
    while low > -1e6 and _rejects(pair, null, low, _nuisance(pair, low)):
        low = 2.0 * low
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if _rejects(pair, null, middle, _nuisance(pair, middle)):
            high = middle
        else:
            low = middle
    return high


def _interval(pair: _Pair, log_alpha: float) -> tuple[float, float]:
    """Limits of the set of differences that are not rejected; NaN if an arm has no rewards."""
    if not pair.known:
        return math.nan, math.nan
    nuisance = _nuisance(pair, log_alpha)
    limits = []
    for end in (-1.0, 1.0):
        kept, dropped = pair.mean - pair.control_mean, end
        if not _rejects(pair, end, log_alpha, nuisance):
            limits.append(end)
            continue
        for _ in range(_BISECTIONS):
            middle = 0.5 * (kept + dropped)
            if _rejects(pair, middle, log_alpha, nuisance):
                dropped = middle
            else:
                kept = middle
        limits.append(kept)
    return limits[0], limits[1]


def _nuisance(pair: _Pair, log_alpha: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits for the true means of both arms, with joint error probability alpha/20."""
    log_tail = math.log(0.25 * _NUISANCE_SHARE) + log_alpha
    return (
        _entropy_limits(pair.mean, pair.trials, log_tail),
        _entropy_limits(pair.control_mean, pair.control_trials, log_tail),
    )


def _rejects(
    pair: _Pair, null: float, log_alpha: float, nuisance: tuple[tuple[float, float], tuple[float, float]]
) -> bool:
    """Whether a difference is rejected at level exp(log_alpha)."""
    observed = pair.mean - pair.control_mean
    counts, shift = (pair.trials, pair.control_trials), null
    first, second = nuisance
    if observed < null:
        # The test of a difference below the null is that of one above it, with the arms exchanged.
        counts, shift, first, second = (pair.control_trials, pair.trials), -null, second, first
    floor, ceiling = max(second[0], first[0] - shift), min(second[1], first[1] - shift)
    if floor > ceiling:
        return True
    bound = _chernoff(abs(observed - null) + shift, shift, *counts, floor, ceiling)
    return bound <= math.log(0.5 * (1.0 - _NUISANCE_SHARE)) + log_alpha


def _chernoff(
    observed: float, null: float, count: float, control_count: float, low: float, high: float
) -> float:
    """Log of Chernoff's bound on P(difference of sample means >= observed), for the worst control mean.

    With a = lambda/n1 and b = lambda/n0, the exponent is n1 log(1 + (p + null)(e^a - 1)) + n0 log(1 + p
    (e^(-b) - 1)) - lambda * observed. It is concave in p, and its maximum over p has a closed form. This
    maximum is convex in lambda; its minimum is found by the method of false position for the derivative.
    Every lambda gives a valid bound.
    """
    n1, n0 = max(count, 1.0), max(control_count, 1.0)
    floor = min(low, high)

    def exponent(rate: float) -> tuple[float, float]:
        """The exponent maximised over p, and its derivative in lambda."""
        grow, shrink = math.expm1(rate / n1), math.expm1(-rate / n0)
        base = 1.0 + null * grow
        curve = grow * shrink * (n1 + n0)
        best = -(n1 * grow + n0 * shrink * base) / curve if curve != 0.0 else floor
        best = min(max(best, floor), high)
        first, second = max(base + best * grow, _TINY), max(1.0 + best * shrink, _TINY)
        value = n1 * math.log(first) + n0 * math.log(second) - rate * observed
        slope = (best + null) * (1.0 + grow) / first - best * (1.0 + shrink) / second - observed
        return value, slope

    left, right = 0.0, 30.0 * min(n1, n0)
    guess = min(right, 2.0 * (observed - null) / (0.25 / n1 + 0.25 / n0))
    smallest, slope = exponent(guess)
    left_slope, right_slope = exponent(left)[1], exponent(right)[1]
    for _ in range(_POSITIONS):
        # This is the Illinois method: the slope at an end that did not move is halved, so that both ends
        # converge.
        if slope > 0.0:
            right, right_slope, left_slope = guess, slope, 0.5 * left_slope
        else:
            left, left_slope, right_slope = guess, slope, 0.5 * right_slope
        gap = right_slope - left_slope
        guess = (left * right_slope - right * left_slope) / gap if gap != 0.0 else math.nan
        if not left < guess < right:
            guess = 0.5 * (left + right)
        value, slope = exponent(guess)
        smallest = min(smallest, value)
    return min(0.0, smallest)


def _entropy_limits(mean: float, count: float, log_tail: float) -> tuple[float, float]:
    """Limits p for a mean of rewards in [0, 1], at which n KL(sample mean, p) = -log_tail."""
    budget = -log_tail / max(count, 1.0)
    return 1.0 - _upper_limit(1.0 - mean, budget), _upper_limit(mean, budget)


def _upper_limit(mean: float, budget: float) -> float:
    """The p above the mean with KL(mean, p) = budget, by Newton's method on u = log(1 - p).

    The divergence is convex and decreasing in u, so Newton's method converges from the left of the root.
    """
    rest = 1.0 - mean
    if rest <= 0.0:
        return 1.0
    entropy = -(_xlogy(mean, mean) + _xlogy(rest, rest))
    safe = max(rest, _TINY)
    u, top = -(budget + entropy) / safe, math.log(safe)
    for _ in range(_NEWTON_STEPS):
        p = -math.expm1(u)
        excess = -entropy - _xlogy(mean, p) - rest * u - budget
        slope = mean * math.exp(u) / max(p, _TINY) - rest
        u = min(u - excess / min(slope, -_TINY), top)
    return -math.expm1(u)


def _xlogy(x: float, y: float) -> float:
    """The product x log(y), or 0 if x is 0."""
    if x == 0.0:
        return 0.0
    return x * math.log(y) if y > 0.0 else -math.inf
