"""Distribution of the highest of several normal estimates, or of its lead, given its independent part."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtri

from adaptinf.claims.laws import TRUNCATED
from adaptinf.inference.distributions.references import EnclosedReference
from adaptinf.inference.winners.contest import Contest, split
from adaptinf.typing import FloatArray

_REACH = 12.0
"""Number of standard errors beyond which the density of the estimate is negligible in double precision."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FAR_APART = 45.0
"""Number of scales beyond which the density of the noise is negligible."""


@dataclass(frozen=True, eq=False)
class NoisyChoice:
    """Log probability of the selection as a function of the estimate, which is in standard errors."""

    log_chance: CubicSpline

    @classmethod
    def of(
        cls, x: FloatArray, sigma: FloatArray, contest: Contest, noise: FloatArray, scale: float
    ) -> NoisyChoice:
        """The probability given the part that is independent of the estimate; x, noise (k,), sigma (k, k)."""
        direction = contest.direction
        slope, rest = split(x, sigma, direction)
        own = float(direction @ x) / scale
        others = [second for _, second in contest.ahead]
        step = min(0.05, float(noise.min()) / scale / 10.0)
        at = own + np.linspace(-_REACH, _REACH, 2 * int(np.ceil(_REACH / step)) + 1)
        every = rest[:, None] + slope[:, None] * (scale * at)
        gaps = every[contest.won] - every[others]
        return cls(CubicSpline(at, log_choice(gaps.T, float(noise[contest.won]), noise[others])))

    def log_tail(self, x: float, mean: float, low: float, high: float, *, upper: bool) -> float:
        """Log probability that the estimate is below (or above) x, given the selection.

        The estimate is known to lie in [low, high]. Limits that are more than 12 standard errors away from
        the estimate are moved to this distance.
        """
        first, last = float(self.log_chance.x[0]), float(self.log_chance.x[-1])
        low, high = max(low, first), min(high, last)
        if not low < x < high:
            return 0.0 if (x <= low) == upper else -np.inf
        below, above = self._log_mass(mean, low, x), self._log_mass(mean, x, high)
        return float((above if upper else below) - np.logaddexp(below, above))

    def _log_mass(self, mean: float, low: float, high: float) -> float:
        """Log of the integral of a normal density times the selection probability."""
        edges = np.linspace(low, high, int(np.ceil((high - low) / 0.5)) + 1)
        half = 0.5 * np.diff(edges)[:, None]
        at = edges[:-1, None] + half * (1.0 + _NODES)
        # The constant factor of the density is omitted, because it cancels in ratios of masses.
        logs = self.log_chance(at) - 0.5 * np.square(at - mean)
        return float(logsumexp(logs, b=half * _WEIGHTS))


def log_choice(gaps: FloatArray, own: float, noise: FloatArray) -> FloatArray:
    """Log probability that the winner is still ahead after noise is added to all estimates.

    Shapes: gaps (n, m), the winner's lead over each other arm before noise; noise (m,), the scales of the
    other arms' noise. `own` is the scale of the winner's noise.
    """
    if gaps.shape[1] == 1 and noise[0] == own:
        return _log_two(gaps[:, 0] / own)
    return np.array([_log_of_several(row, own, noise) for row in gaps])


def _log_two(lead: FloatArray) -> FloatArray:
    """For two arms with equal scales: F(d) = 1 - exp(-d) (2 + d) / 4 if d >= 0, and otherwise 1 - F(-d)."""
    size = np.abs(lead)
    log_tail = np.log(0.25 * (2.0 + size)) - size
    return np.where(lead < 0.0, log_tail, np.log1p(-np.exp(log_tail)))


def _log_of_several(lead: FloatArray, own: float, noise: FloatArray) -> float:
    """Log of the integral, over the winner's noise, of the probability that all others stay below."""
    # Laplace densities have kinks, at which Gauss's rule would lose accuracy, so pieces end there.
    kinks = np.unique(np.concatenate([[0.0], -lead]))
    width, most = min(own, float(noise.min())), max(own, float(noise.max()))
    ends = [kinks[0] - _FAR_APART * most, *kinks, kinks[-1] + _FAR_APART * most]
    edges = np.concatenate(
        [
            np.linspace(start, stop, int(np.ceil((stop - start) / (4.0 * width))) + 1)[:-1]
            for start, stop in pairwise(ends)
        ]
        + [[ends[-1]]]
    )
    half = 0.5 * np.diff(edges)[:, None]
    u = edges[:-1, None] + half * (1.0 + _NODES)
    logs = -np.abs(u) / own - np.log(2.0 * own)
    for gap, scale in zip(lead, noise, strict=True):
        below = (gap + u) / scale
        tail = -np.log(2.0) - np.abs(below)
        logs = logs + np.where(below < 0.0, tail, np.log1p(-np.exp(tail)))
    return float(logsumexp(logs, b=half * _WEIGHTS))


_FAR = 1e12
"""Limits that are more standard errors away than this are treated as infinite."""


def log_between(low: float, high: float) -> float:
    """Log of the standard normal probability between two limits; -inf if they are equal."""
    if not low < high:
        return -math.inf
    # Near 1, probabilities have lost digits that the lower tail still has, so the sign is reversed.
    if low > 0.0:
        low, high = -high, -low
    if high <= 0.0:
        larger, smaller = float(log_ndtr(high)), float(log_ndtr(low))
        return larger + _log1mexp(smaller - larger) if smaller < larger else -math.inf
    return math.log1p(-math.exp(float(log_ndtr(low))) - math.exp(float(log_ndtr(-high))))


Tail = Callable[..., float]
"""The type of functions such as `log_tail`: log tail probability by x, mean, low, high and `upper`."""


def log_tail(x: float, mean: float, low: float, high: float, *, upper: bool) -> float:
    """Log probability of a tail, below or above x, of a normal variable with variance 1 in [low, high].

    Each tail is computed by itself, because rounding would make it inexact if it is the smaller of the two
    and computed from the other.
    """
    if upper:
        x, mean, low, high = -x, -mean, -high, -low
    if x <= low:
        return -math.inf
    if x >= high:
        return 0.0
    whole = log_between(low - mean, high - mean)
    if whole == -math.inf:  # So far out, the whole distribution is at the nearer end.
        return 0.0 if mean < low else -math.inf
    return min(0.0, log_between(low - mean, x - mean) - whole)


def mean_at(
    log_probability: float,
    x: float,
    low: float,
    high: float,
    window: float = math.inf,
    law: Tail = log_tail,
    *,
    upper: bool = False,
) -> float:
    """The mean, within `window`, for which the lower (or upper) tail at x has this log probability.

    The distribution is restricted to [low, high]. As the mean increases, the probability of the lower tail
    decreases from 1 to 0, and that of the upper tail increases.
    """
    sign = -1.0 if upper else 1.0

    def gap(mean: float) -> float:
        ends = max(low, mean - window), min(high, mean + window)
        return sign * (max(law(x, mean, *ends, upper=upper), -1e300) - log_probability)

    if math.isfinite(window):
        return _root(gap, x - window, x + window)
    left, right = x - 1.0, x + 1.0
    while gap(left) < 0.0 and x - left < _FAR:
        left = x - 2.0 * (x - left)
    while gap(right) > 0.0 and right - x < _FAR:
        right = x + 2.0 * (right - x)
    if gap(left) < 0.0:
        return -math.inf
    return math.inf if gap(right) > 0.0 else _root(gap, left, right)


def _root(gap: Callable[[float], float], left: float, right: float) -> float:
    """The root of a decreasing function, or one of the ends if there is no root between them."""
    if gap(left) <= 0.0:
        return left
    if gap(right) >= 0.0:
        return right
    return float(brentq(gap, left, right, xtol=1e-12 * max(1.0, abs(left), abs(right)), rtol=1e-14))


def _log1mexp(negative: float) -> float:
    """log(1 - exp(x)) for x < 0."""
    # Each form loses digits on the other side of -log 2 (Mächler 2012, on log(1 - exp(-a))).
    return math.log(-math.expm1(negative)) if negative > -math.log(2.0) else math.log1p(-math.exp(negative))


METHODS = ("hybrid", "conditional", "projection")
NEAR = 0.02
"""Largest lead, in standard errors, at which two arms count as tied for the hybrid method."""
_SHARE = 0.1
"""Share of alpha that a hybrid interval spends on its projection, as proposed by its authors."""
_STEPS = 60
_USUAL = 0.005


@dataclass(frozen=True, eq=False)
class WinnerLaw(EnclosedReference):
    """Intervals and p-values for the winner's mean or its lead, as a `Reference` with one term.

    Attributes
    ----------
    family : int
        Number of questions that could have been selected.
    own, low, high : float
        The estimate, and the limits within which the same question would be selected, in standard errors.
    scale : float
        The standard error of the estimate.
    method : str
        The method of computing intervals.
    tied : bool
        Whether another estimate is equally or nearly as high.
    law : callable
        Function that returns the log probability of either tail at a value, for a mean and limits.
    """

    family: int
    own: float
    low: float
    high: float
    scale: float
    method: str
    tied: bool
    law: Tail = log_tail
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "z", False, False

    @classmethod
    def of(
        cls,
        x: FloatArray,
        sigma: FloatArray,
        method: str,
        contest: Contest,
        noise: FloatArray | None = None,
    ) -> WinnerLaw:
        """The distribution for estimates x (k,) with covariance sigma (k, k); noise contains scales (k,)."""
        direction = contest.direction
        scale = math.sqrt(float(direction @ sigma @ direction))
        if noise is not None:
            own, choice = float(direction @ x) / scale, NoisyChoice.of(x, sigma, contest, noise, scale)
            ends = -math.inf, math.inf
            return cls(contest.family, own, *ends, scale, method, tied=False, law=choice.log_tail)
        low, high = contest.limits(x, sigma)
        tied = contest.tied(x, sigma, NEAR if method == "hybrid" else 0.0)
        own = float(direction @ x) / scale
        used = "projection" if tied else method
        return cls(contest.family, own, low / scale, high / scale, scale, used, tied)

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return "simultaneous normal" if self.method == "projection" else TRUNCATED()

    @property
    def median(self) -> float:
        """The mean for which the estimate is its median; for a tie, the estimate itself.

        Except for the conditional method, it is searched within the simultaneous interval of level .995.
        """
        if self.tied:
            return self.own * self.scale
        window = math.inf if self.method == "conditional" else self._critical(_USUAL)
        return mean_at(math.log(0.5), self.own, self.low, self.high, window, self.law) * self.scale

    def interval(self, log_alpha: float) -> FloatArray:
        """Interval at level 1 - exp(log_alpha), shape (1, 2)."""
        alpha = math.exp(log_alpha)
        if alpha == 0.0:
            return np.array([[-math.inf, math.inf]])
        if self.method == "projection":
            return self.enclosure(log_alpha)
        level = alpha
        if self.method == "hybrid":
            beta = _SHARE * alpha
            # Both the projection and the interval within it may miss, so the level satisfies beta + (1 -
            # beta) level = alpha.
            level = (alpha - beta) / (1.0 - beta)
        window = self._window(alpha)
        of = math.log(0.5 * level), self.own, self.low, self.high, window, self.law
        ends = [mean_at(*of, upper=upper) for upper in (True, False)]
        return np.array([ends]) * self.scale

    def enclosure(self, log_alpha: float) -> FloatArray:
        """The projection interval, which contains the interval at level 1 - exp(log_alpha); shape (1, 2)."""
        width = self._window(math.exp(log_alpha))
        return np.array([[self.own - width, self.own + width]]) * self.scale

    def log_pvalues(self, null: float) -> FloatArray:
        """Log of the smallest alpha for which the interval excludes the null, shape (1,)."""
        if self.method == "projection":
            single = min(0.0, math.log(2.0) + float(log_ndtr(-abs(self.own - null / self.scale))))
            kept = self.family * math.log1p(-math.exp(single)) if single < 0.0 else -math.inf
            # If the single p-value underflows, Šidák's 1 - (1 - p)^m equals m p to the last digit.
            far = single + math.log(self.family)
            return np.array([far if kept == 0.0 else math.log(-math.expm1(kept))])
        # Intervals need the level itself, and exp(-708) is the smallest normal double.
        low, high = -700.0, 0.0
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            ends = self.interval(middle)[0]
            low, high = (middle, high) if ends[0] <= null <= ends[1] else (low, middle)
        return np.array([high])

    def _window(self, alpha: float) -> float:
        """Half the hybrid's projection, in standard errors; infinite for the conditional method."""
        if self.method == "conditional":
            return math.inf
        return self._critical(alpha if self.method == "projection" else _SHARE * alpha)

    def _critical(self, level: float) -> float:
        """Simultaneous critical value by Šidák's inequality, in standard errors."""
        return -float(ndtri(-0.5 * math.expm1(math.log1p(-level) / self.family)))
