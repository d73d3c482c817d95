"""Tests of an arm's mean over a bin, computed from noisy sums, and the inversion of these tests.

The proofs are on the documentation page on intervals from locally private sums. Both tests remain valid even
though the sums themselves determine when they end.

References
----------
Hall, Heyde (1980), "Martingale limit theory and its application". Ville (1939), "Étude critique de la notion
de collectif" (a nonnegative supermartingale rarely gets large). Fieller (1954), "Some problems in interval
estimation" (intervals for a ratio by inverting a test).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd

from adaptinf.claims.privacy import bin_means as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.tails import LOG_2, log_normal_tail
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.typing import BoolArray, FloatArray, IntArray

_TOTALS = ("participants", "count", "sum")
_WEIGHTED = ("weighted_count", "weighted_sum", "weighted_squares")
_CLEAR = 3.0


@dataclass(frozen=True, slots=True)
class BinReports:
    """What a server knows about k pairs of a bin and an arm.

    Shapes: bins (k,), low, high (k, d), participants, count, total (k,), ahead (k,), spent (k, stages),
    weighted_count, weighted_total, weighted_squares (k, stages).
    """

    bins: IntArray
    arms: tuple[Any, ...]
    low: FloatArray
    high: FloatArray
    participants: FloatArray
    count: FloatArray
    total: FloatArray
    ahead: FloatArray
    spent: FloatArray
    weighted_count: FloatArray
    weighted_total: FloatArray
    weighted_squares: FloatArray
    scale: float
    words: tuple[int, ...]

    def clear(self) -> BoolArray:
        """Whether a count is expected to exceed three standard deviations of its noise.

        The expected count is derived from the other arms of the bin; a single arm is compared with its own
        count. The result indicates whether a ratio of the sums is meaningful. The result must not be used to
        select pairs for inference: it depends on how long reports on this arm and the others continued, which
        their own sums determined, so intervals for the selected pairs would miss more often than they should.
        """
        bins = np.unique(self.bins, return_inverse=True)[1]
        others = np.bincount(bins, self.count)[bins] - self.count
        seen = np.bincount(bins, self.participants)[bins] - self.participants
        alone = seen == 0.0
        rate = np.where(alone, self.count, others) / np.where(alone, self.participants, seen)
        return np.asarray(rate * np.sqrt(self.participants) > _CLEAR * self.scale * np.sqrt(2.0))


def read_reports(log: AdaptiveLog | PublicLog) -> BinReports:
    """Sums by bin and arm, with bins in order and arms within bins."""
    releases = log.releases
    codes, names = pd.factorize(releases["name"])
    named = {str(name): code for code, name in enumerate(names)}
    if not any(name.startswith("participants_") for name in named):
        raise InvalidForLog("BinMeans", claims.NO_BIN_SUMS(), ["a log of LDPBandit, which releases them"])
    if "spent" not in named:
        raise InvalidForLog("BinMeans", claims.NO_STAGES(), ["bin_sums, which returns the available sums"])
    if len({str(arm) for arm in log.arms}) < log.n_arms:
        raise InvalidForLog(
            "BinMeans", claims.SAME_LABELS(), ["a log whose arms have labels that differ when printed"]
        )
    rows = _Rows(
        code=np.asarray(codes, dtype=np.int64),
        group=releases["group"].to_numpy().astype(np.int64),
        round=releases["round"].to_numpy(dtype=float),
        value=releases["value"].to_numpy(dtype=float),
        named=named,
    )
    bins = int(rows.group.max()) + 1
    participants, count, total = (_by_arm(rows, log, part, bins) for part in _TOTALS)
    until = _by_arm(rows, log, "count", bins, of_round=True)
    group, arm = np.nonzero(np.isfinite(count))
    spent, weighted = _stages(rows, log, bins)
    found: BoolArray = np.asarray(np.isfinite(weighted).all(axis=0))
    if not (np.isfinite(total) & np.isfinite(participants) & found[:, :, 0])[group, arm].all():
        raise InvalidForLog(
            "BinMeans", claims.SUMS_MISSING(), ["a log of LDPBandit with all of its releases"]
        )
    present = found[group, arm]
    steps = np.where(present, np.diff(weighted[:, group, arm], axis=-1, prepend=0.0), 0.0)
    seen = participants[group, arm]
    return BinReports(
        bins=group,
        arms=tuple(log.arms[code] for code in arm),
        low=_corners(rows, "low", bins)[group],
        high=_corners(rows, "high", bins)[group],
        participants=seen,
        count=count[group, arm],
        total=total[group, arm],
        ahead=rows.round.max() - (until[group, arm] - seen),
        spent=np.where(present, np.diff(spent[group], axis=-1, prepend=0.0), 0.0),
        weighted_count=steps[0],
        weighted_total=steps[1],
        weighted_squares=steps[2],
        scale=float(releases["scale"].max()),
        words=_digest(rows.value),
    )


def _digest(values: FloatArray) -> tuple[int, ...]:
    digest = hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()
    return tuple(np.frombuffer(digest, dtype="<u4").tolist())


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns of the releases; `named` maps each name to its code."""

    code: IntArray
    group: IntArray
    round: FloatArray
    value: FloatArray
    named: dict[str, int]

    def of(self, name: str) -> IntArray:
        """Rows with the given name."""
        return np.flatnonzero(self.code == self.named.get(name, -1))


def _by_arm(
    rows: _Rows, log: AdaptiveLog | PublicLog, part: str, bins: int, *, of_round: bool = False
) -> FloatArray:
    """Values (or rounds) of one kind of release by bin and arm, shape (bins, arms); NaN if absent."""
    table = np.full((bins, log.n_arms), np.nan)
    for code, arm in enumerate(log.arms):
        own = rows.of(f"{part}_{arm}")
        table[rows.group[own], code] = (rows.round if of_round else rows.value)[own]
    return table


def _corners(rows: _Rows, end: str, bins: int) -> FloatArray:
    """Lower or upper ends of the bins along each axis, shape (bins, d)."""
    axes = [name[len("low_") :] for name in rows.named if name.startswith("low_")]
    table = np.full((bins, len(axes)), np.nan)
    for column, axis in enumerate(axes):
        own = rows.of(f"{end}_{axis}")
        table[rows.group[own], column] = rows.value[own]
    return table


def _stages(rows: _Rows, log: AdaptiveLog | PublicLog, bins: int) -> tuple[FloatArray, FloatArray]:
    """Sums up to the end of each stage: spent (bins, stages) and weighted (3, bins, arms, stages)."""
    ends = rows.of("spent")
    ends = ends[np.lexsort((rows.round[ends], rows.group[ends]))]
    group = rows.group[ends]
    stage = np.arange(ends.size) - np.searchsorted(group, group)
    width = rows.round.max() + 1.0
    keys = group * width + rows.round[ends]
    shape = (bins, int(stage.max()) + 1)
    spent = np.full(shape, np.nan)
    spent[group, stage] = rows.value[ends]
    weighted = np.full((3, bins, log.n_arms, shape[1]), np.nan)
    for part, name in enumerate(_WEIGHTED):
        for code, arm in enumerate(log.arms):
            own = rows.of(f"{name}_{arm}")
            at = np.searchsorted(keys, rows.group[own] * width + rows.round[own])
            weighted[part, rows.group[own], code, stage[np.minimum(at, ends.size - 1)]] = rows.value[own]
    return spent, weighted


_GRID = np.linspace(0.0, 1.0, 257)
_BISECTIONS = 50
_SECTIONS = 40
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_SLOPES = 10
_LARGEST_SLOPE = 8.0


class MeanTest(Protocol):
    """Two-sided tests of k means."""

    @property
    def size(self) -> int:
        """Number of means."""

    def log_pvalues_at(self, value: FloatArray) -> FloatArray:
        """Logs of the p-values at candidate means in [0, 1]; values and result have shape (k, m)."""


def coins(reports: BinReports, seed: int) -> FloatArray:
    """Standard normal draws, shape (k,), seeded by all digits of the released numbers.

    Because of the noise in the releases, their digits are as good as a new source of randomness. The seed
    must not be chosen for its result.
    """
    source = np.random.SeedSequence([int(seed), *reports.words])
    return np.random.default_rng(source).standard_normal(reports.count.size)


@dataclass(frozen=True, slots=True, eq=False)
class BudgetTest:
    """Normal test of a weighted sum, where a random draw uses the rest of the variance budget; coin (k,)."""

    reports: BinReports
    coin: FloatArray

    @property
    def size(self) -> int:
        """Number of means."""
        return int(self.coin.size)

    def statistic(self, value: FloatArray) -> FloatArray:
        """The z statistic at candidate means; takes and returns shape (k, m).

        Let A_s be the budget spent in stage s, S_s and C_s the weighted sum and count, and D_s the count with
        squared weights. Then z(f) is the sum over stages of sqrt(A_s) (S_s - f C_s) / sqrt(q_s(f)), plus
        sqrt(1 - sum A_s) times the random draw, where q_s(f) = 2 b^2 (1 + f^2) A_s + max(D_s, 0) f (1 - f).
        """
        known = self.reports
        value = np.asarray(value, dtype=float)
        result = np.sqrt(np.maximum(1.0 - known.spent.sum(axis=1), 0.0))[:, None] * self.coin[:, None]
        result = np.broadcast_to(result, value.shape).copy()
        for stage in range(known.spent.shape[1]):
            spent, count, total, squares = (
                part[:, stage, None]
                for part in (
                    known.spent,
                    known.weighted_count,
                    known.weighted_total,
                    known.weighted_squares,
                )
            )
            noise = 2.0 * known.scale**2 * (1.0 + value * value) * spent
            variance = noise + np.maximum(squares, 0.0) * value * (1.0 - value)
            result += np.sqrt(spent) * (total - value * count) / np.sqrt(np.where(spent > 0.0, variance, 1.0))
        return result

    def log_pvalues_at(self, value: FloatArray) -> FloatArray:
        """Logs of the p-values at candidate means, shape (k, m)."""
        tail = log_normal_tail(np.abs(self.statistic(value)))
        return np.minimum(0.0, LOG_2 + tail)


@dataclass(frozen=True, slots=True, eq=False)
class AnytimeTest:
    """Test by the inverse of a mixture of supermartingales, valid in finite samples at any stop."""

    reports: BinReports

    @property
    def size(self) -> int:
        """Number of means."""
        return int(self.reports.count.size)

    def slopes(self) -> FloatArray:
        """Exponents, shape (k, 20), of sizes that suit the rest of the trial and the scale of the noise."""
        known = self.reports
        noise = known.scale**2
        low = 2.0 / np.sqrt(known.ahead * (4.0 * noise + 0.25))
        high = np.maximum(min(0.5 / known.scale, _LARGEST_SLOPE), 2.0 * low)
        high = np.minimum(high, 0.9 / known.scale)
        powers = np.linspace(0.0, 1.0, _SLOPES)
        rates = np.minimum(low, high)[:, None] * (high / np.minimum(low, high))[:, None] ** powers
        return np.concatenate([-rates, rates], axis=1)

    def log_wealth(self, value: FloatArray) -> FloatArray:
        """Log of the mixture at candidate means of shape (k, m).

        The mixture is the mean over slopes l of exp(l V - g U) ((1 - l^2 b^2) (1 - g^2 b^2))^t, where g =
        log(1 - f + f e^l).
        """
        known = self.reports
        slopes = self.slopes()
        noise = known.scale**2
        wealth = np.full(value.shape, -np.inf)
        for column in range(slopes.shape[1]):
            slope = slopes[:, column, None]
            growth = np.log1p(value * np.expm1(slope))
            cost = np.log1p(-noise * slope * slope) + np.log1p(-noise * growth * growth)
            gained = slope * known.total[:, None] - growth * known.count[:, None]
            np.logaddexp(wealth, gained + known.participants[:, None] * cost, out=wealth)
        return np.asarray(wealth - np.log(slopes.shape[1]), dtype=float)

    def log_pvalues_at(self, value: FloatArray) -> FloatArray:
        """Logs of the p-values at candidate means, shape (k, m)."""
        return np.minimum(0.0, -self.log_wealth(value))


@dataclass(frozen=True, slots=True, eq=False)
class InvertedTest:
    """Reference distribution that inverts a test of means in [0, 1].

    An interval is the hull of the accepted means, so a mean between two accepted means has a p-value at least
    as large as the smaller of their p-values. The best-fitting mean is always accepted. If noise moves the
    sums beyond the reach of every mean, the interval consists of this point alone.
    """

    test: MeanTest
    name: str
    exact: bool
    _curve: FloatArray = field(init=False, repr=False)
    _best: FloatArray = field(init=False, repr=False)
    statistic, normal, uses_std_error = "z", False, False

    def __post_init__(self) -> None:
        curve = self.test.log_pvalues_at(np.broadcast_to(_GRID, (self.test.size, _GRID.size)))
        object.__setattr__(self, "_curve", curve)
        object.__setattr__(self, "_best", self._fitting_best())

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,); -inf for means outside [0, 1]."""
        if not 0.0 <= null <= 1.0:
            return np.full(self.test.size, -np.inf)
        curve, best = self._curve, self._best
        own = self._at(np.full(self.test.size, float(null)))
        left, right = null >= _GRID, null <= _GRID
        outside = np.where(
            null < best,
            np.max(curve, axis=1, where=left[None], initial=-np.inf),
            np.max(curve, axis=1, where=right[None], initial=-np.inf),
        )
        return np.where(null == best, 0.0, np.maximum(own, outside))

    def interval(self, log_alpha: float) -> FloatArray:
        """Limits at level ``1 - exp(log_alpha)``, shape (k, 2)."""
        kept = self._curve > log_alpha
        low = self._limit(kept, self._best, log_alpha)
        high = 1.0 - self._limit(kept[:, ::-1], 1.0 - self._best, log_alpha, mirrored=True)
        # If a single mean is accepted, 1 - (1 - mean) may be smaller than it in the last bit.
        return np.column_stack((low, np.maximum(low, high)))

    def _limit(
        self, kept: BoolArray, best: FloatArray, log_alpha: float, *, mirrored: bool = False
    ) -> FloatArray:
        """The smallest accepted mean, found by bisection below an accepted grid point."""
        first = np.where(kept.any(axis=1), np.argmax(kept, axis=1), _GRID.size - 1)
        anchor = np.minimum(np.where(kept.any(axis=1), _GRID[first], np.inf), best)
        below = np.searchsorted(_GRID, anchor, side="left") - 1
        accepted, rejected = anchor, np.where(below >= 0, _GRID[np.maximum(below, 0)], anchor)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (accepted + rejected)
            keep = self._at(1.0 - middle if mirrored else middle) > log_alpha
            accepted, rejected = np.where(keep, middle, accepted), np.where(keep, rejected, middle)
        return accepted

    def _at(self, value: FloatArray) -> FloatArray:
        return self.test.log_pvalues_at(value[:, None])[:, 0]

    def _fitting_best(self) -> FloatArray:
        """The mean with the largest p-value, found by golden-section search around the best grid point."""
        top = np.argmax(self._curve, axis=1)
        low, high = _GRID[np.maximum(top - 1, 0)], _GRID[np.minimum(top + 1, _GRID.size - 1)]
        for _ in range(_SECTIONS):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            rising = self._at(right) > self._at(left)
            low, high = np.where(rising, left, low), np.where(rising, high, right)
        best = 0.5 * (low + high)
        kept = self._at(best) >= self._curve.max(axis=1)
        return np.asarray(np.where(kept, best, _GRID[top]), dtype=float)
