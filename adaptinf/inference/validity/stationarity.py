"""Do the mean rewards of arms stay the same? A trend of each arm's own rewards, and what is said of it.

With the rewards y of one arm at times t, the sum of (t - mean t) (y - mean y) over the root of the sum of its
squared terms is about standard normal where the mean stays and nothing adapts, whatever the law of rewards.
Adaptive choice of arms moves it a little, to -.7 on average under a greedy design with four arms: an arm that
begins badly is given up. So the level is small.

The same holds of scores w 1{A = k} (y - mean) / e with weights w and propensities e, which are of no arm, but
of the mean that the scores have in every round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.claims import Claim, Finding
from adaptinf.claims import stationarity as claims
from adaptinf.texts import several
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.sums.cells import Cells

STATED: dict[str, bool] = {"stationary": True}
"""What a recommended call states for a method that needs means that stay."""
SEEN = 1e-3
"""P-value, times the number of arms that are tested, below which rewards are taken to drift."""
LEAST_ROUNDS = 20
"""Rewards of an arm, or units with rewards of it, from which they are tested."""
_BLOCK, _SHOWN = 2**18, 5


@dataclass(frozen=True, slots=True, eq=False)
class Trends:
    """Standardised slopes of rewards in time; z (K,), NaN where there is nothing to test."""

    z: FloatArray

    @property
    def tested(self) -> BoolArray:
        """Which are tested, shape (K,)."""
        return np.isfinite(self.z)

    @property
    def pvalues(self) -> FloatArray:
        """Two-sided, shape (K,); NaN where there is nothing to test."""
        return np.asarray(2.0 * special.ndtr(-np.abs(self.z)), dtype=np.float64)

    @property
    def seen(self) -> BoolArray:
        """Which are told apart from chance, shape (K,)."""
        return np.asarray(self.pvalues < SEEN / max(1, int(self.tested.sum())))

    def of(
        self, codes: Iterable[int], arms: Sequence[Any], claim: Claim = claims.ARM_DRIFTS
    ) -> Finding | None:
        """What they say of means that are to stay; None where none of these arms is tested."""
        codes = [code for code in codes if self.tested[code]]
        if not codes:
            return None
        found = [
            claim(arm=arms[code], move=_move(self.z[code]), p=self.pvalues[code])
            for code in codes
            if self.seen[code]
        ]
        return Finding(tuple(found))


def _move(z: float) -> str:
    return "rise" if z > 0.0 else "fall"


def trend_of_values(terms: Sequence[str], z: Sequence[float]) -> Finding | None:
    """What standardised slopes of scores say of values that are to stay; None where one has no slope."""
    found = Trends(np.array(z))
    if not found.tested.all():
        return None
    every = zip(terms, found.z, found.pvalues, found.seen, strict=True)
    return Finding(
        tuple(claims.VALUE_DRIFTS(term=term, move=_move(z), p=p) for term, z, p, yes in every if yes)
    )


def midpoints(rounds: FloatArray) -> FloatArray:
    """The middle of each batch, of a log that lasts from -1/2 to 1/2; rounds (B,)."""
    total = float(rounds.sum())
    return np.asarray((np.cumsum(rounds) - 0.5 * rounds) / total - 0.5, dtype=np.float64)


def times(rounds: int, batch: IntArray | None) -> FloatArray:
    """Time of each round, that of the middle of its batch where there are several; batch (T,)."""
    if batch is None or batch[-1] == batch[0]:
        return (np.arange(rounds) + 0.5) / rounds - 0.5
    return midpoints(np.bincount(batch).astype(np.float64))[batch]


def trends_of_rows(
    action: IntArray, reward: FloatArray, time: FloatArray, n_arms: int, unit: IntArray | None = None
) -> Trends:
    """Of the arms' own rewards; action, reward, time, unit (n,), where rounds of one may be dependent."""
    low, high = reward.min(initial=np.inf), reward.max(initial=-np.inf)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(reward), _BLOCK)]
    middle, scale = low + 0.5 * (high - low), max(high - low, np.finfo(np.float64).tiny)
    count, clock, level = np.zeros((3, n_arms))
    for part in blocks:
        arm = action[part]
        count += np.bincount(arm, minlength=n_arms)
        clock += np.bincount(arm, time[part], n_arms)
        level += np.bincount(arm, (reward[part] - middle) / scale, n_arms)
    some = np.maximum(count, 1.0)
    clock, level = clock / some, level / some
    total, squares = np.zeros((2, n_arms))
    for part in blocks if unit is None else ():
        arm = action[part]
        term = (time[part] - clock[arm]) * ((reward[part] - middle) / scale - level[arm])
        total += np.bincount(arm, term, n_arms)
        squares += np.bincount(arm, term * term, n_arms)
    if unit is not None:
        size = np.int64(unit.max(initial=0) + 1)
        pair, label = pd.factorize(action * size + unit)
        term = (time - clock[action]) * ((reward - middle) / scale - level[action])
        own, arm = np.bincount(pair, term, len(label)), label // size
        count = np.bincount(arm, minlength=n_arms).astype(np.float64)
        total += np.bincount(arm, own, n_arms)
        squares += np.bincount(arm, own * own, n_arms)
    return _trends(count, total, squares)


def trends_of_sums(cells: Cells) -> Trends:
    """Of the arms' own rewards, at the middle of their batches."""
    number, first, second = cells.moments[0, :3]
    time = midpoints(cells.rounds)
    count = number.sum(axis=0)
    some = np.maximum(count, 1.0)
    clock, level = time @ number / some, first.sum(axis=0) / some
    away = time[:, None] - clock
    spread = np.maximum(second - 2.0 * level * first + level**2 * number, 0.0)
    # What is left of squares that cancel is their rounding.
    spread[spread <= 1e-12 * second] = 0.0
    total = (away * (first - level * number)).sum(axis=0)
    return _trends(count, total, (away**2 * spread).sum(axis=0))


def _trends(count: FloatArray, total: FloatArray, squares: FloatArray) -> Trends:
    usable = (count >= LEAST_ROUNDS) & (squares > 0.0) & np.isfinite(squares)
    return Trends(np.where(usable, total / np.sqrt(np.where(usable, squares, 1.0)), np.nan))


class ConstantMeans:
    """What claims ask of a method that needs the means of some arms to stay; codes (k,)."""

    profile: LogProfile
    codes: Iterable[int]
    stationary = False

    @cached_property
    def drift_found(self) -> Finding | None:
        """A trend in the rewards of the arms; None where none of them can be tested."""
        return self.profile.trends.of(self.codes, self.profile.log.arms)

    @property
    def drift_untested(self) -> bool:
        """Nobody says that means stay, and no reward does."""
        return self.drift_found is None and not self.stationary

    @property
    def no_trend(self) -> dict[str, str]:
        """Arms that were tested, where none has a trend."""
        found = self.drift_found
        if found is None or found.contradicted:
            return {}
        tested, arms = self.profile.trends.tested, self.profile.log.arms
        return {
            "arms": several([f"arm {arms[code]!r}" for code in sorted(self.codes) if tested[code]], _SHOWN)
        }

    @property
    def mix_may_move(self) -> bool:
        """A trend may be that of contexts."""
        found = self.drift_found
        return found is not None and found.contradicted and not self.profile.context_free
