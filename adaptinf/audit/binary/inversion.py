"""Exact intervals for an effect: every effect that an exact test does not reject at some nuisance rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from adaptinf.audit.binary.law import CountLaw
from adaptinf.audit.binary.states import block_starts, log_factorials
from adaptinf.audit.binary.statistics import TIE
from adaptinf.parameters import OneOf, alpha_problems, problems_of
from adaptinf.typing import FloatArray

LONGEST_INTERVAL = 300
"""Rounds: an interval then takes about 15 s, and four times as long for every doubling."""
SIDES = {"two-sided": 0.0, "greater": 1.0, "less": -1.0}
_GRID = 129
"""Nuisance rates, even in their arcsine; around the worst the p-value is searched more finely."""
_FINER, _CLOSE = 17, 0.8
_COARSE, _FINE = 4, 32
"""Steps per standard error: outwards from the estimate, then inwards to the outermost effect that is kept."""
_PATIENCE, _HALVINGS = 10, 8
_FARTHEST = 16.0
"""Log ratios beyond 16, ratios of nine million, are infinite."""

Rates: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Rate and its variance of arm 1, then of arm 0."""


@dataclass(frozen=True)
class Scale:
    """A way to compare two rates, theta1 to theta0, by one number: 0 where they are equal.

    `start` gives an estimate of it and a step; `statistic` says how far rates are from an effect, in standard
    errors; `rates` gives theta1 and theta0 at an effect for nuisance positions in [0, 1]; `shown` gives the
    effect as it is printed. The effect lies in [-reach, reach].
    """

    name: str
    label: str
    start: Callable[..., tuple[float, float]]
    statistic: Callable[..., FloatArray]
    rates: Callable[[float, FloatArray], tuple[FloatArray, FloatArray]]
    shown: Callable[[float], float]
    reach: float
    bounds: tuple[float, float]


def interval_problems(scale: Any, alternative: Any, alpha: Any) -> list[str]:
    """What is wrong with the options of an interval."""
    named = problems_of(scale=(scale, OneOf(*SCALES)), alternative=(alternative, OneOf(*SIDES)))
    return named + alpha_problems(alpha)


def smoothed(n1: Any, s1: Any, n0: Any, s0: Any) -> Rates:
    """Rates with half a success and half a failure more, and their variances."""
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
    """The larger rate goes up from 0 evenly in its arcsine, then the smaller one to 1, which mirrors it."""
    turning = math.asin(math.sqrt(special.expit(0.5 * abs(effect))))
    rising = position <= 0.5
    angle = 2.0 * turning * np.where(rising, position, 1.0 - position)
    near = np.sin(angle) ** 2
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
        Scale("odds-ratio", "odds ratio", _odds_start, _odds, _odds_rates, math.exp, _FARTHEST, _RATIOS),
    )
}  # fmt: skip


class Inversion:
    """Tests of one effect after another, for one outcome of a trial; `turn` is 0 for the two-sided test."""

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

    def pvalue(self, effect: float, enough: float = 1.0) -> float:
        """Largest probability, over the nuisance rate, of a statistic as large.

        Where `enough` is given, it is the largest one only in so far as it decides whether that is exceeded.
        """
        seen = float(self._size(effect, *self.own))
        least = seen - TIE * max(abs(seen), TIE)
        terms = np.where(self._size(effect, *self.every) >= least, self.ways, 0.0)
        position = np.linspace(0.0, 1.0, _GRID)
        found = self._chance(terms, effect, position)
        most = int(found.argmax())
        if found[most] > enough or (enough < 1.0 and found[most] < _CLOSE * enough):
            return min(float(found[most]), 1.0)
        near = np.linspace(position[max(most - 1, 0)], position[min(most + 1, _GRID - 1)], _FINER)
        return min(float(max(found[most], self._chance(terms, effect, near).max())), 1.0)

    def limit(self, alpha: float, side: float) -> float:
        """Outermost effect that is not rejected, below (side -1) or above (side 1) the estimate."""
        step, reach = self.error / _COARSE, self.scale.reach
        start = kept = min(max(side * self.effect, -reach), reach)
        place, number = start, 0
        while place < reach and place - kept < _PATIENCE * step:
            number += 1
            place = min(start + number * step, reach)
            if self._kept(place, side, alpha):
                kept = place
        if kept >= reach:
            return side * reach
        step = self.error / _FINE
        inner, outer = kept, min(kept + step, reach)
        for farther in np.arange(kept + step, min(place, reach), step)[::-1]:
            if self._kept(farther, side, alpha):
                inner, outer = farther, min(farther + step, reach)
                break
        for _ in range(_HALVINGS):
            middle = 0.5 * (inner + outer)
            inner, outer = (middle, outer) if self._kept(middle, side, alpha) else (inner, middle)
        return side * float(outer)

    def _kept(self, place: float, side: float, alpha: float) -> bool:
        return self.pvalue(side * place, alpha) > alpha

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
    """Limits of the effect, as printed; one-sided ones leave the other end open."""
    inversion = Inversion(law, scale, outcome, SIDES[alternative])
    low, high = scale.bounds
    if alternative != "less":
        below = inversion.limit(alpha, -1.0)
        low = low if below <= -scale.reach else scale.shown(below)
    if alternative != "greater":
        above = inversion.limit(alpha, 1.0)
        high = high if above >= scale.reach else scale.shown(above)
    return low, high
