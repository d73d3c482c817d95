"""Exact intervals for an effect: every effect that an exact test does not reject at some nuisance rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import fft, special

from adaptinf.audit.binary.count_law import CountLaw
from adaptinf.audit.binary.count_states import TIE, block_starts, log_factorials
from adaptinf.parameters import OneOf, alpha_problems, problems_of
from adaptinf.typing import FloatArray

# With this many rounds an interval takes about half a minute; the time grows steeply with the number of
# rounds.
LONGEST_INTERVAL = 300
SIDES = {"two-sided": 0.0, "greater": 1.0, "less": -1.0}
# Steps between the first nuisance rates of a piece. They are doubled until the Chebyshev expansion has
# converged.
_NODES = 64
# The expansion has converged when the last quarter of its coefficients adds up to less than this.
_ENDED = 1e-9
# The converged expansion is evaluated at this many times more points than it was fitted at, so that its
# maximum is hardly missed.
_DENSER = 32
# The search for a limit stops at steps of this many standard errors; a limit is at most about three steps too
# wide.
_LEAF = 1.0 / 1024.0
# Log ratios beyond 16, which are ratios of nine million, count as infinite.
_FARTHEST = 16.0

# The order is the rate of arm 1 and its variance, then those of arm 0.
Rates: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Scale:
    """A comparison of the rates theta1 and theta0 by a number that is 0 if they are equal."""

    # `start` gives a first estimate and a step. `statistic` measures how far rates are from an effect, in
    # standard errors. `rates` gives theta1 and theta0 for an effect at nuisance positions in [0, 1]; evenly
    # spaced positions are Chebyshev points of the rate within each of `pieces` equal pieces. `shown`
    # transforms an effect for printing. Effects lie in [-reach, reach], and the statistic decreases in the
    # effect, on which the search relies.

    name: str
    label: str
    start: Callable[..., tuple[float, float]]
    statistic: Callable[..., FloatArray]
    rates: Callable[[float, FloatArray], tuple[FloatArray, FloatArray]]
    shown: Callable[[float], float]
    reach: float
    bounds: tuple[float, float]
    pieces: int = 1


def interval_problems(scale: Any, alternative: Any, alpha: Any) -> list[str]:
    """Problems with the options of an interval."""
    named = problems_of(scale=(scale, OneOf(*SCALES)), alternative=(alternative, OneOf(*SIDES)))
    return named + alpha_problems(alpha)


def smoothed(n1: Any, s1: Any, n0: Any, s0: Any) -> Rates:
    """Rates after adding half a success and half a failure, and their variances."""
    one, zero = (s1 + 0.5) / (n1 + 1.0), (s0 + 0.5) / (n0 + 1.0)
    return one, one * (1.0 - one) / (n1 + 1.0), zero, zero * (1.0 - zero) / (n0 + 1.0)


def _difference_start(one: float, first: float, zero: float, second: float) -> tuple[float, float]:
    return one - zero, math.sqrt(first + second)


def _difference(effect: float, one: Any, first: Any, zero: Any, second: Any) -> FloatArray:
    return np.asarray((one - zero - effect) / np.sqrt(first + second))


def _difference_rates(effect: float, position: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = max(0.0, -effect), min(1.0, 1.0 - effect)
    zero = low + (high - low) * np.sin(0.5 * math.pi * position) ** 2
    return np.clip(zero + effect, 0.0, 1.0), zero


def _ratio_start(one: float, first: float, zero: float, second: float) -> tuple[float, float]:
    return math.log(one / zero), math.sqrt(first / one**2 + second / zero**2)


def _ratio(effect: float, one: Any, first: Any, zero: Any, second: Any) -> FloatArray:
    ratio = math.exp(effect)
    return np.asarray((one - ratio * zero) / np.sqrt(first + ratio**2 * second))


def _ratio_rates(effect: float, position: FloatArray) -> tuple[FloatArray, FloatArray]:
    larger = np.sin(0.5 * math.pi * position) ** 2
    smaller = math.exp(-abs(effect)) * larger
    return (larger, smaller) if effect >= 0.0 else (smaller, larger)


def _odds_start(one: float, first: float, zero: float, second: float) -> tuple[float, float]:
    spread = first / (one * (1.0 - one)) ** 2 + second / (zero * (1.0 - zero)) ** 2
    return math.log(one / (1.0 - one)) - math.log(zero / (1.0 - zero)), math.sqrt(spread)


def _odds(effect: float, one: Any, first: Any, zero: Any, second: Any) -> FloatArray:
    ratio = math.exp(effect)
    gap = one * (1.0 - zero) - ratio * zero * (1.0 - one)
    spread = (1.0 - zero + ratio * zero) ** 2 * first + (one + ratio * (1.0 - one)) ** 2 * second
    return np.asarray(gap / np.sqrt(spread))


def _odds_rates(effect: float, position: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rates with a given log odds ratio: by position, the larger rate rises first, and then the smaller."""
    rising = position <= 0.5
    top = special.expit(0.5 * abs(effect))
    near = top * np.sin(math.pi * np.where(rising, position, 1.0 - position)) ** 2
    far = special.expit(special.logit(near) - abs(effect))
    larger, smaller = np.where(rising, near, 1.0 - far), np.where(rising, far, 1.0 - near)
    return (larger, smaller) if effect >= 0.0 else (smaller, larger)


_RATIOS = (0.0, math.inf)
SCALES = {
    one.name: one
    for one in (
        Scale(
            "difference", "risk difference", _difference_start, _difference, _difference_rates, float, 1.0,
            (-1.0, 1.0),
        ),
        Scale("ratio", "risk ratio", _ratio_start, _ratio, _ratio_rates, math.exp, _FARTHEST, _RATIOS),
        Scale("odds-ratio", "odds ratio", _odds_start, _odds, _odds_rates, math.exp, _FARTHEST, _RATIOS, 2),
    )
}  # fmt: skip


class Inversion:
    """Tests of successive effects, for one outcome of a trial; `turn` is 0 for the two-sided test."""

    def __init__(self, law: CountLaw, scale: Scale, outcome: tuple[int, int, int, int], turn: float) -> None:
        self.scale, self.horizon, self.turn = scale, law.horizon, turn
        self.own = smoothed(*outcome)
        self.effect, self.error = scale.start(*self.own)
        self.starts = block_starts(law.horizon)
        table = log_factorials(law.horizon)
        self.ways, self.every = np.empty(law.weights.size), np.empty((4, law.weights.size))
        for place, n1, s1, n0, s0 in law.states():
            ways = table[n1] - table[s1] - table[n1 - s1] + table[n0] - table[s0] - table[n0 - s0]
            self.ways[place] = law.weights[place] * np.exp(ways)
            self.every[:, place] = smoothed(n1, s1, n0, s0)

    def pvalue(self, effect: float) -> float:
        """Largest probability over the nuisance rate of a statistic at least as large as the observed one."""
        return min(self._worst(self._as_far(effect, effect), effect), 1.0)

    def limit(self, alpha: float, side: float) -> float:
        """Outermost effect that is not rejected, below (side -1) or above (side 1) the estimate."""
        reach = self.scale.reach
        start = min(max(side * self.effect, -reach), reach)
        found = self._outermost(start, reach, side, alpha)
        return side * (start if found is None else found)

    def _outermost(self, inner: float, outer: float, side: float, alpha: float) -> float | None:
        """Outer end of the outermost step that may contain an accepted effect; None if all are rejected."""
        if not self._may_be_kept(side * inner, side * outer, alpha):
            return None
        if outer - inner <= _LEAF * self.error:
            return outer
        middle = 0.5 * (inner + outer)
        found = self._outermost(middle, outer, side, alpha)
        return self._outermost(inner, middle, side, alpha) if found is None else found

    def _may_be_kept(self, inner: float, outer: float, alpha: float) -> bool:
        """Whether an effect between `inner` and `outer` might not be rejected."""
        terms = self._as_far(inner, outer)
        return self._worst(terms, inner, alpha) > alpha or self._worst(terms, outer, alpha) > alpha

    def _as_far(self, inner: float, outer: float) -> FloatArray:
        """Weights of outcomes whose statistic is at least as large at some effect in the range, or 0."""
        # Statistics decrease in the effect. For effects in this range, the log's own statistic is therefore
        # smallest at the inner end, and that of an outcome is largest at one of the two ends.
        seen = float(self._size(inner, *self.own))
        sizes = self._size(inner, *self.every)
        if outer != inner:
            sizes = np.maximum(sizes, self._size(outer, *self.every))
        return np.where(sizes >= seen - TIE * max(abs(seen), TIE), self.ways, 0.0)

    def _worst(self, terms: FloatArray, effect: float, enough: float = math.inf) -> float:
        """Largest probability of a set of states over the nuisance rate; the search stops above `enough`."""
        # The probability is computed at Chebyshev points and interpolated between them. On scales with a
        # single piece the interpolation is exact in theory, because the probability is a polynomial whose
        # degree is the number of rounds.
        steps = _NODES
        while True:
            ends = np.linspace(0.0, 1.0, self.scale.pieces + 1)
            position = np.linspace(ends[:-1], ends[1:], steps + 1, axis=1)
            found = self._chance(terms, effect, position.ravel()).reshape(position.shape)
            if found.max() > enough:
                return float(found.max())
            series = fft.dct(found, type=1, axis=1) / steps
            series[:, [0, -1]] *= 0.5
            whole = self.scale.pieces == 1 and steps >= self.horizon
            if whole or steps >= 4 * self.horizon or np.abs(series[:, -(steps // 4) :]).sum() <= _ENDED:
                break
            steps *= 2
        longer = np.zeros((self.scale.pieces, _DENSER * steps + 1))
        longer[:, : steps + 1] = 0.5 * series
        longer[:, 0] *= 2.0
        return float(max(found.max(), fft.dct(longer, type=1, axis=1).max()))

    def _size(self, effect: float, *rates: Any) -> FloatArray:
        values = self.scale.statistic(effect, *rates)
        return np.asarray(self.turn * values if self.turn else np.abs(values))

    def _chance(self, terms: FloatArray, effect: float, position: FloatArray) -> FloatArray:
        """Probability of a set of states, given by their weights, at nuisance positions (g,)."""
        one, zero = self.scale.rates(effect, position)
        powers = np.arange(self.horizon + 1)
        up1, up0 = one[:, None] ** powers, zero[:, None] ** powers
        down1, down0 = (1.0 - one[:, None]) ** powers, (1.0 - zero[:, None]) ** powers
        total = np.zeros(position.size)
        for n1, start in enumerate(self.starts):
            n0 = self.horizon - n1
            block = terms[start : start + (n1 + 1) * (n0 + 1)].reshape(n1 + 1, n0 + 1)
            left = up1[:, : n1 + 1] * down1[:, n1::-1]
            right = up0[:, : n0 + 1] * down0[:, n0::-1]
            total += np.einsum("gs,gs->g", left @ block, right)
        return total


def interval_limits(
    law: CountLaw, scale: Scale, outcome: tuple[int, int, int, int], alternative: str, alpha: float
) -> tuple[float, float]:
    """Confidence limits on the scale that is printed; one-sided intervals have an open end."""
    inversion = Inversion(law, scale, outcome, SIDES[alternative])
    low, high = scale.bounds
    if alternative != "less":
        below = inversion.limit(alpha, -1.0)
        low = low if below <= -scale.reach else scale.shown(below)
    if alternative != "greater":
        above = inversion.limit(alpha, 1.0)
        high = high if above >= scale.reach else scale.shown(above)
    return low, high
