"""Tests of whether the mean rewards of arms are constant in time, and statements about the results.

For the rewards y of one arm at times t, take the sum of (t - mean t) (y - mean y), divided by the square root
of the sum of its squared terms. This ratio is approximately standard normal if the mean is constant and
nothing adapts, whatever the distribution of rewards. Adaptive choice of arms shifts the ratio slightly, to
-.7 on average under a greedy design with four arms, because an arm that begins badly is abandoned. The level
of the test is therefore small. If arms drift together, the sum of their sums shows the drift sooner than the
sums of single arms. Periodic changes, such as weekends, have no slope. For these, sums of y - mean y over all
arms by eighths of the log are compared with a chi-squared distribution. The same tests are used for scores w
1{A = k} (y - mean) / e with weights w and propensities e, where the mean that must be constant is that of the
scores in every round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.claims import Claim, Finding
from adaptinf.claims import stationarity as claims
from adaptinf.inference.inputs.rounds import middles, times_of
from adaptinf.sums.cells import shifted
from adaptinf.texts import several
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.sums.cells import Cells

STATED: dict[str, bool] = {"stationary": True}
"""The argument that a recommended call needs for a method that requires constant means."""
SEEN = 5e-4
"""Rewards are assumed to drift if the p-value times the number of tested arms is below this.

This level is used for the slopes of single arms, and for levels by stretch of the log.
"""
SEEN_ALONE = SEEN_TOGETHER = 1e-3
"""A slope that is tested alone, or is common to the arms, is treated as drift if the p-value is below
this."""
SEEN_BESIDE = 1e-2
"""The level of the p-value if the arms' shares of the rounds change although nothing adapts."""
STRETCHES = 8
"""Number of stretches into which a log is divided to compare levels."""
_SKEWED = 0.3
"""The sum of a stretch is not treated as normal if its skewness is above this value."""
LEAST_ROUNDS = 20
"""Smallest number of rewards, or of units with rewards, for which an arm is tested."""
_BLOCK, _FEW, _SHOWN = 2**14, 4, 5
_SMALL = 2_000_000
"""Largest number of rounds for which NumPy is faster than loading Numba."""
_SPAN = 1e-8
"""Directions in which sums vary by less than this share of the largest are rounding errors."""


@dataclass(frozen=True, eq=False)
class Trends:
    """Standardised slopes of rewards in time; z (K,), NaN if there is nothing to test."""

    z: FloatArray
    scale: FloatArray | None = None
    """Divisors of the slopes, shape (K,), which are needed to combine arms."""
    stretches: FloatArray | None = None
    """By stretch and arm, numbers of rewards and sums of 3 powers of their deviations; shape (4, S, K)."""

    @cached_property
    def tested(self) -> BoolArray:
        """Whether each arm is tested, shape (K,)."""
        return np.isfinite(self.z)

    @cached_property
    def pvalues(self) -> FloatArray:
        """Two-sided p-values, shape (K,); NaN if there is nothing to test."""
        return np.asarray(2.0 * special.ndtr(-np.abs(self.z)), dtype=np.float64)

    @cached_property
    def seen(self) -> BoolArray:
        """Whether each slope is distinguishable from chance, shape (K,)."""
        level = SEEN_ALONE if self.scale is None else SEEN
        return np.asarray(self.pvalues < level / max(1, int(self.tested.sum())))

    def of(
        self, codes: Iterable[int], arms: Sequence[Any], claim: Claim = claims.ARM_DRIFTS
    ) -> Finding | None:
        """Evidence on means of arms that must be constant; None if none of these arms is tested."""
        codes = [code for code in codes if self.tested[code]]
        if not codes:
            return None
        found = [
            claim(arm=arms[code], move=_move(self.z[code]), p=self.pvalues[code])
            for code in codes
            if self.seen[code]
        ]
        return Finding(tuple(found) or self._of_all(codes, arms))

    def _of_all(self, codes: Sequence[int], arms: Sequence[Any]) -> tuple[str, ...]:
        """Joint evidence from all arms, for the case that no arm alone is sufficient."""
        if (p := self.common_pvalue(codes)) < SEEN_TOGETHER:
            move = _move(self._common_z(codes))
            named = several([repr(arms[code]) for code in codes], _SHOWN)
            return (claims.ARMS_DRIFT(arms=named, move=move, p=p),)
        if (p := self.stretches_pvalue(codes)) < SEEN:
            return (claims.LEVEL_MOVES(n=STRETCHES, p=p),)
        return ()

    def _common_z(self, codes: Iterable[int]) -> float:
        """Standardised slope of several arms together; NaN if no arm is tested."""
        kept = [code for code in codes if self.tested[code]]
        if self.scale is None or not kept:
            return math.nan
        scale = self.scale[kept]
        return float(self.z[kept] @ scale) / math.sqrt(float(scale @ scale))

    def common_pvalue(self, codes: Iterable[int]) -> float:
        """P-value for a common slope of these arms; NaN if no arm is tested."""
        return float(2.0 * special.ndtr(-abs(self._common_z(codes))))

    def stretches_pvalue(self, codes: Iterable[int]) -> float:
        """P-value for constant levels of these arms over all stretches; NaN if there are too few rewards.

        With n_sk rewards of arm k in stretch s, and n_k in total, the sums of residuals over arms for
        stretches s and r have covariance sum_k v_k (n_sk [s = r] - n_sk n_rk / n_k), where v_k is the
        variance of the arm's rewards.
        """
        if self.stretches is None:
            return math.nan
        kept = [code for code in codes if self.tested[code]]
        number, total, squares, cubes = self.stretches[:, :, kept]
        every = number.sum(axis=0)
        variance, third = squares.sum(axis=0) / every, cubes.sum(axis=0) / every
        own = number @ variance
        covariance = np.diag(own) - (number * (variance / every)) @ number.T
        some = own > 0.0
        if some.sum() < 2 or np.any(np.abs(number @ third)[some] > _SKEWED * own[some] ** 1.5):
            return math.nan
        # An arm's residuals add up to 0 over all stretches, so at least one direction does not vary.
        values, directions = np.linalg.eigh(covariance)
        usable = values > _SPAN * values.max()
        statistic = float(((directions.T @ total.sum(axis=1))[usable] ** 2 / values[usable]).sum())
        return float(special.chdtrc(float(usable.sum()), statistic))


def _move(z: float) -> str:
    return "rise" if z > 0.0 else "fall"


def trend_of_values(terms: Sequence[str], z: Sequence[float]) -> Finding | None:
    """Evidence from slopes of scores against constant values; None if one of the slopes is unknown."""
    found = Trends(np.array(z))
    if not found.tested.all():
        return None
    every = zip(terms, found.z, found.pvalues, found.seen, strict=True)
    return Finding(
        tuple(claims.VALUE_DRIFTS(term=term, move=_move(z), p=p) for term, z, p, yes in every if yes)
    )


def times(rounds: int, batch: IntArray | None) -> FloatArray:
    """Time of each round, or of the middle of its batch if there are several batches; batch (T,)."""
    return times_of(rounds, None if batch is None or batch[-1] == batch[0] else batch)


def standardised(terms: FloatArray) -> float:
    """The sum of terms (n,), divided by the square root of the sum of squared terms, which is NaN for 0."""
    size = float(np.sqrt(terms @ terms))
    return float(terms.sum()) / size if 0.0 < size < math.inf else math.nan


def trends_of_rows(
    action: IntArray,
    reward: FloatArray,
    time: FloatArray | None,
    n_arms: int,
    unit: IntArray | None = None,
    pulls: FloatArray | None = None,
) -> Trends:
    """Trends in the arms' own rewards; rounds are taken as successive if no time is given.

    Shapes: action, reward, time, unit (n,), pulls (K,). `unit` is needed if rounds of a unit may be
    dependent, and `pulls` may be given if already known.
    """
    low, high = reward.min(initial=np.inf), reward.max(initial=-np.inf)
    # Standardised slopes depend on neither origin nor unit, so rewards may be rescaled, which prevents
    # overflow.
    middle, scale = low + 0.5 * (high - low), max(high - low, np.finfo(np.float64).tiny)
    if unit is None and len(reward) > _SMALL:
        from adaptinf.inference.validity.passes.kernel import add_trends

        found = np.zeros((5, n_arms))
        known = np.zeros(0) if time is None else time
        rows = np.ascontiguousarray(action), np.ascontiguousarray(reward), np.ascontiguousarray(known)
        add_trends(*rows, middle, scale, found)
        return _trends(found[0], *found[3:])
    blocks = partial(_blocks, action, reward, time, middle, scale, n_arms)
    if len(reward) <= _BLOCK:
        blocks = partial(iter, tuple(blocks()))
    clock, level = np.zeros((2, n_arms))
    for arms, moment, value in blocks():
        clock += arms.sums(moment)
        level += arms.sums(value)
    count = np.bincount(action, minlength=n_arms).astype(np.float64) if pulls is None else pulls
    some = np.maximum(count, 1.0)
    clock, level = clock / some, level / some
    total, squares = np.zeros((2, n_arms))
    for arms, moment, value in blocks() if unit is None else ():
        term = moment - arms.rows(clock)
        term *= value - arms.rows(level)
        total += arms.sums(term)
        term *= term
        squares += arms.sums(term)
    if unit is not None:
        size = np.int64(unit.max(initial=0) + 1)
        pair, label = pd.factorize(action * size + unit)
        terms = [(moment - arms.rows(clock)) * (value - arms.rows(level)) for arms, moment, value in blocks()]
        own, arm = np.bincount(pair, np.concatenate([np.zeros(0), *terms]), len(label)), label // size
        count = np.bincount(arm, minlength=n_arms).astype(np.float64)
        total += np.bincount(arm, own, n_arms)
        squares += np.bincount(arm, own * own, n_arms)
    return _trends(count, total, squares)


def _blocks(
    action: IntArray, reward: FloatArray, time: FloatArray | None, middle: float, scale: float, n_arms: int
) -> Iterator[tuple[_Arms, FloatArray, FloatArray]]:
    """Arms, times and scaled rewards in blocks of rounds that fit in the processor's cache."""
    for start in range(0, len(reward), _BLOCK):
        part = slice(start, min(start + _BLOCK, len(reward)))
        if time is None:
            # Time is counted in rounds, because standardised slopes do not depend on its unit.
            moment = np.arange(part.start, part.stop, dtype=np.float64)
        else:
            moment = time[part]
        value = reward[part] - middle
        value /= scale
        yield _Arms(action[part], n_arms), moment, value


class _Arms:
    """The arms of a block of rounds, and sums by arm.

    For few arms, products with indicators are twice as fast.
    """

    def __init__(self, action: IntArray, n_arms: int) -> None:
        self._action, self._size = action, n_arms
        few = n_arms <= _FEW
        self._chosen = (action == np.arange(n_arms)[:, None]).astype(np.float64) if few else None

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums by arm of values by round; values (n,), returns (K,)."""
        if self._chosen is not None:
            return np.asarray(self._chosen @ values, dtype=np.float64)
        return np.bincount(self._action, values, self._size).astype(np.float64)

    def rows(self, values: FloatArray) -> FloatArray:
        """The value of the arm of each round; values (K,), returns (n,)."""
        if self._chosen is not None:
            return np.asarray(values @ self._chosen, dtype=np.float64)
        return values[self._action]


def stretches_of_rows(action: IntArray, reward: FloatArray, time: FloatArray, n_arms: int) -> FloatArray:
    """Numbers of rewards, and sums of 3 powers of deviations from arms' means, by stretch; (4, S, K)."""
    count = np.maximum(np.bincount(action, minlength=n_arms), 1.0)
    size = max(float(np.abs(reward).max(initial=0.0)), np.finfo(np.float64).tiny)
    away = reward / size
    away = away - (np.bincount(action, away, n_arms) / count)[action]
    cell = stretch_at(time) * n_arms + action
    squares = away * away
    powers = [None, away, squares, squares * away]
    found = [np.bincount(cell, power, STRETCHES * n_arms) for power in powers]
    return np.array(found, dtype=np.float64).reshape(4, STRETCHES, n_arms)


def about_means(cells: Cells) -> FloatArray:
    """Numbers of rewards in sums, and sums of 3 powers of deviations from arms' means; (4, B, K)."""
    number, first = cells.moments[0, :2]
    found = shifted(cells.moments[0], -first.sum(axis=0) / np.maximum(number.sum(axis=0), 1.0))
    np.maximum(found[2], 0.0, out=found[2])
    return found


def stretch_at(time: FloatArray) -> IntArray:
    """The stretch that contains each time; times are between -1/2 and 1/2."""
    return np.minimum(((time + 0.5) * STRETCHES).astype(np.int64), STRETCHES - 1)


def trends_of_sums(cells: Cells) -> Trends:
    """Trends of the arms' own rewards, where the time of a reward is the middle of its batch."""
    moments, time = about_means(cells), middles(cells.rounds)
    number, first, second = moments[:3]
    count = number.sum(axis=0)
    away = time[:, None] - time @ number / np.maximum(count, 1.0)
    # If sums of squares cancel, what remains is rounding error.
    spread = np.where(second <= 1e-12 * cells.moments[0, 2], 0.0, second)
    total, squares = (away * first).sum(axis=0), (away**2 * spread).sum(axis=0)
    stretches = np.zeros((4, STRETCHES, number.shape[1]))
    np.add.at(stretches.transpose(1, 0, 2), stretch_at(time), moments.transpose(1, 0, 2))
    return replace(_trends(count, total, squares), stretches=stretches)


def _trends(count: FloatArray, total: FloatArray, squares: FloatArray) -> Trends:
    usable = (count >= LEAST_ROUNDS) & (squares > 0.0) & np.isfinite(squares)
    scale = np.sqrt(np.where(usable, squares, 1.0))
    return Trends(np.where(usable, total / scale, np.nan), scale)
