"""One-sided confidence sequences, and the wealth of bettors against a claimed mean.

Each function is for the lower side, which collects evidence that the mean is larger than claimed. The scores
have the same conditional mean in every round, and are bounded below by a value known before the round. The
upper side is the same with mirrored scores.

References
----------
Waudby-Smith, Ramdas (2024), "Estimating means of bounded random variables by betting". Howard, Ramdas,
McAuliffe, Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences". Waudby-Smith,
Arbour, Sinha, Kennedy, Ramdas (2024), "Time-uniform central limit theory and asymptotic confidence
sequences".
Waudby-Smith, Ramdas (2024), "Estimating means of bounded random variables by betting" (predictable plug-in
bets, empirical Bernstein, betting). Robbins (1970), "Statistical methods related to the law of the iterated
logarithm" (normal mixture). Howard, Ramdas, McAuliffe, Sekhon (2021), "Time-uniform, nonparametric,
nonasymptotic confidence sequences" (its tuning).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import lambertw

from adaptinf.compilation import compiled, kernel
from adaptinf.typing import FloatArray, IntArray

# A bettor stakes at most half of the wealth, so that one round can never cost all of it.
CAP = 0.5
# Logarithms are slow, so wealth is moved into them only before it leaves this range, and not in every round.
_SMALL, _LARGE = 1e-100, 1e100
# Bisection in [0, 1] ends at this length, about a hundred times the rounding error of 1.
_PRECISION = 1e-14


@compiled
def _write_moments(score: FloatArray, centre: FloatArray, variance: FloatArray) -> None:
    total, squares = 0.0, 0.0
    mean, spread = 0.5, 0.25
    for i in range(len(score)):
        centre[i], variance[i] = mean, spread
        count = i + 2.0
        total += score[i]
        mean = (0.5 + total) / count
        if mean < 0.0:
            mean = 0.0
        elif mean > 1.0:
            mean = 1.0
        off = score[i] - mean
        squares += off * off
        spread = (0.25 + squares) / count


def predictable_moments(score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the scores before each round.

    Both include an initial score of 1/2 with the largest possible variance, 1/4 (Waudby-Smith, Ramdas).
    Shapes: score (n,); returns centre, variance (n,).
    """
    centre, variance = np.empty(len(score)), np.empty(len(score))
    _write_moments(np.ascontiguousarray(score, dtype=np.float64), centre, variance)
    return centre, variance


def plug_in_bets(variance: FloatArray, alpha: float) -> FloatArray:
    """Bets that would be nearly optimal if the variance so far were the true variance.

    Shapes: variance (n,); returns (n,).
    """
    t = np.arange(1.0, len(variance) + 1.0)
    return np.asarray(np.sqrt(2.0 * math.log(2.0 / alpha) / (variance * t * np.log1p(t))), dtype=np.float64)


def bernstein_sums(
    score: FloatArray, bet: FloatArray, centre: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Log wealth of the empirical Bernstein process, which is linear in the claimed mean.

    Shapes: score (n,), bet (n,), centre (n,), scale (n,); returns gain, stake (n,). For y >= -1 and 0 <= b <
    1, exp(b y - psi(b) y^2) <= 1 + b y, where psi(b) = -log(1 - b) - b. With y = (score - centre)/scale and b
    = bet * scale, the expectation of the left side is at most exp(bet (mean - centre)).
    """
    share = bet * scale
    penalty = (-np.log1p(-share) - share) / scale**2
    gain = np.cumsum(bet * score - penalty * (score - centre) ** 2)
    return gain, np.cumsum(bet)


def running_variance(score: FloatArray) -> FloatArray:
    """Variance, with divisor t, of the first t scores for every t; score (n,); returns (n,)."""
    if len(score) == 0:
        return np.zeros(0)
    t = np.arange(1.0, len(score) + 1.0)
    moved = score - score[0]
    mean = np.cumsum(moved) / t
    return np.asarray(np.maximum(np.cumsum(moved**2) / t - mean**2, 0.0), dtype=np.float64)


def mixture_scale(variance: float, alpha: float) -> float:
    """Scale of the two-sided normal mixture that is narrowest at a given accumulated variance.

    For accumulated variance v and scale r, the derivative of the bound in r vanishes if u - log(u) = 1 + 2
    log(1/alpha), where u = 1 + v/r. A common closed form replaces u - 1 with 2 log(1/alpha) + log(1 + 2
    log(1/alpha)). At alpha = 0.05, the closed form gives 7.9 instead of the solution 8.2, and the resulting
    bound exceeds the smallest bound by 3 parts in 100,000.
    """
    # The equation u - log(u) = 1 + 2 log(1/alpha) is equivalent to u exp(-u) = alpha^2 / e, and branch -1 of
    # Lambert's W gives its root above 1.
    solution = -float(np.real(lambertw(-(alpha**2) / math.e, -1)))
    return variance / (solution - 1.0)


@kernel
def _factor(score: float, bet: float, floor: float, mean: float, cap: float) -> float:
    room = mean - floor
    stake = bet
    if stake * room > cap:
        stake = cap / room
    return 1.0 + stake * (score - mean)


@compiled
def betting_peak(score: FloatArray, bet: FloatArray, floor: FloatArray, mean: float, cap: float) -> float:
    """Largest log wealth ever reached by a bettor against a claimed mean; score, bet (n,), floor (n,)."""
    wealth, top, offset, peak = 1.0, 1.0, 0.0, 0.0
    for i in range(len(score)):
        wealth *= _factor(score[i], bet[i], floor[i], mean, cap)
        if wealth > top:
            top = wealth
        if wealth > _LARGE or wealth < _SMALL:
            peak = max(peak, offset + math.log(top))
            offset += math.log(wealth)
            wealth = 1.0
            top = 1.0
    return max(peak, offset + math.log(top))


@compiled
def _crosses(
    score: FloatArray,
    bet: FloatArray,
    floor: FloatArray,
    mean: float,
    cap: float,
    threshold: float,
    count: int,
) -> bool:
    wealth, offset = 1.0, 0.0
    goal = math.exp(threshold)
    for i in range(count):
        wealth *= _factor(score[i], bet[i], floor[i], mean, cap)
        if wealth >= goal:
            return True
        if wealth < _SMALL or wealth > _LARGE:
            offset += math.log(wealth)
            wealth = 1.0
            goal = math.exp(threshold - offset)
    return False


@compiled
def betting_bounds(
    score: FloatArray,
    bet: FloatArray,
    floor: FloatArray,
    cap: float,
    threshold: float,
    counts: IntArray,
    bounds: FloatArray,
) -> None:
    """Write the largest mean in [0, 1] against which the log wealth ever reached a threshold.

    Shapes: score, bet, floor (n,), counts (r,), bounds (r,). Every factor of the wealth decreases as the
    claimed mean increases, so bisection finds the bound.
    """
    low = 0.0
    for r in range(len(counts)):
        high = 1.0
        if low < 1.0 and _crosses(score, bet, floor, high, cap, threshold, counts[r]):
            low = 1.0
        step = min(low + _PRECISION, 1.0)
        if low < 1.0 and _crosses(score, bet, floor, step, cap, threshold, counts[r]):
            while high - low > _PRECISION:
                middle = 0.5 * (low + high)
                if _crosses(score, bet, floor, middle, cap, threshold, counts[r]):
                    low = middle
                else:
                    high = middle
        bounds[r] = low


class Side(Protocol):
    """The evidence that the mean of n scores is larger than claimed, and the means that remain possible."""

    @property
    def lowest(self) -> float:
        """Smallest possible mean, which no bound falls below."""

    def peak(self, mean: float) -> float:
        """Largest log wealth ever reached against a claimed mean; at least 0, and decreasing in the mean."""

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest means against which the log wealth has reached a threshold, shape (r,).

        `counts` contains, in ascending order, the numbers of scores after which bounds are needed.
        """


@dataclass(frozen=True, slots=True, eq=False)
class LinearSide:
    """The empirical Bernstein process with log wealth ``gain - mean * stake``; gain, stake (n,)."""

    gain: FloatArray
    stake: FloatArray
    lowest = 0.0

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite below 0, which is impossible."""
        if mean < 0.0:
            return math.inf
        return float(np.max(self.gain - mean * self.stake, initial=0.0))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 if none is."""
        return running_largest((self.gain - threshold) / self.stake, counts, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class BettingSide:
    """The wealth from bets on the scores themselves; score, bet, floor (n,)."""

    score: FloatArray
    bet: FloatArray
    floor: FloatArray
    cap: float = CAP
    lowest = 0.0

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite below 0, which is impossible."""
        if mean < 0.0:
            return math.inf
        return float(betting_peak(self.score, self.bet, self.floor, mean, self.cap))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); 0 if none is."""
        result = np.zeros(len(counts))
        betting_bounds(self.score, self.bet, self.floor, self.cap, threshold, counts, result)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class MixtureSide:
    """The normal mixture of exponential martingales, for sums that exceed the claimed mean.

    Shapes: total, count, variance (n,): for each time, the sum of all scores so far, their number, and their
    accumulated variance.
    """

    total: FloatArray
    count: FloatArray
    variance: FloatArray
    scale: float
    lowest: float

    @classmethod
    def of_scores(cls, score: FloatArray, variance: FloatArray, scale: float, lowest: float) -> MixtureSide:
        """The mixture after each of the given scores; score, variance (n,)."""
        return cls(np.cumsum(score), np.arange(1.0, len(score) + 1.0), variance, scale, lowest)

    def peak(self, mean: float) -> float:
        """Largest log wealth against a claimed mean; infinite if no mean is possible."""
        if mean < self.lowest:
            return math.inf
        excess = self.total - self.count * mean
        use = (excess > 0.0) & (self.variance > 0.0)
        total = self.variance[use] + self.scale
        wealth = excess[use] ** 2 / (2.0 * total) - 0.5 * np.log(total / self.scale)
        return float(np.max(wealth, initial=0.0))

    def bounds(self, threshold: float, counts: IntArray) -> FloatArray:
        """Largest rejected means, shape (r,); the smallest possible mean if no mean is rejected."""
        total = self.variance + self.scale
        width = np.sqrt(total * (np.log(total / self.scale) + 2.0 * threshold)) / self.count
        bound = np.where(self.variance > 0.0, self.total / self.count - width, -np.inf)
        return running_largest(bound, counts, self.lowest)


def bernstein_side(score: FloatArray, floor: FloatArray, alpha: float) -> LinearSide:
    """The empirical Bernstein process with predictable plug-in bets; score (n,), floor (n,)."""
    centre, variance = predictable_moments(score)
    scale = 1.0 - floor
    bet = np.minimum(CAP / scale, plug_in_bets(variance, alpha))
    return LinearSide(*bernstein_sums(score, bet, centre, scale))


def betting_side(score: FloatArray, floor: FloatArray, alpha: float) -> BettingSide:
    """The wealth from predictable plug-in bets; the parameters are those of `bernstein_side`."""
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
    """The normal mixture with the running variance of the scores in place of a known variance.

    Shapes: total, count, spread, clock (n,): for each time, the sum of the scores so far, their number, their
    variance, and the number of rewards that they use.
    """
    variance = np.where(clock >= start, count * spread, 0.0)
    known = np.flatnonzero(variance > 0.0)
    first = spread[known[0]] if len(known) else 1.0
    return MixtureSide(total, count, variance, mixture_scale(first * t_opt, alpha), lowest)


def running_largest(bound: FloatArray, counts: IntArray, lowest: float) -> FloatArray:
    """Largest of the first bounds and of the lower limit, shape (r,); bound (n,), counts (r,)."""
    running = np.maximum.accumulate(np.concatenate(([lowest], bound)))
    return np.asarray(running[counts], dtype=np.float64)
