"""The facts about sums by batch and arm that determine validity, with the same names as for logs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from adaptinf.claims import Finding
from adaptinf.claims import propensities as claims
from adaptinf.claims.arms.batched import MOVED_INSIDE
from adaptinf.inference.distributions.sample_shape import skewness_doubt
from adaptinf.inference.inputs.rounds import all_at_once
from adaptinf.inference.validity.assignment import (
    MOVED_WITHIN,
    VISIBLE,
    association_of_counts,
    shares_pvalue_of_counts,
)
from adaptinf.inference.validity.calibration import (
    calibration_caution,
    chosen_alone_caution,
    frequency_statistics,
    miscalibrated_sums,
)
from adaptinf.inference.validity.profile import PROFILES, LogProfile
from adaptinf.inference.validity.stationarity import Trends, about_means, trends_of_sums
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.frame_columns import SUM_TOLERANCE
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.sums.cells import Cells, chosen_with_one, other_value, shifted
from adaptinf.typing import BoolArray, FloatArray, IntArray

_SMALLEST = 1e-99
"""Smaller p-values are reported as below this value."""
_SAME = 1e-9
"""Propensities that differ by less are treated as equal, because writing and reading a frame rounds them."""


class SumsProfile(LogProfile):
    """The facts about one set of sums, each of which is computed when it is first used."""

    sums: Sums
    cells: Cells

    def __init__(self, sums: Sums) -> None:
        # Sums have the same attributes as a log for arms, guarantee, design and everything else that
        # describes it.
        super().__init__(cast(AdaptiveLog, sums))
        self.sums, self.cells = sums, sums.cells

    data_name = "sums"
    rows_refusal = NEEDS_ROWS

    @property
    def n_pieces(self) -> int:
        """Number of batches."""
        return self.sums.n_batches

    @property
    def piece_sizes(self) -> FloatArray:
        """Number of rounds of each batch, shape (B,)."""
        return self.cells.rounds

    def possible(self, codes: IntArray, *, jointly: bool) -> BoolArray:
        """Whether each arm, or all arms jointly, could be chosen in each batch; codes (k,), result (B, k)."""
        return all_at_once(self.cells.possible[:, codes]) if jointly else self.cells.possible[:, codes]

    def drawn(self, codes: IntArray) -> BoolArray:
        """Whether each arm is known to be drawn at random in some round of each batch; shape (B, k)."""
        spread = self.cells.spread[:, codes]
        return np.asarray(np.isnan(spread) | (spread > 0.0))

    def batch_pulls(self, codes: IntArray) -> FloatArray:
        """Number of rounds of each arm by batch; codes (k,), returns (B, k)."""
        return self.cells.pulls[:, codes]

    @cached_property
    def expected_pulls(self) -> FloatArray | None:
        """Sum of the propensities of each arm, shape (K,), or None if they are not all known."""
        return np.asarray(self.cells.expected.sum(axis=0)) if self.cells.knows_every else None

    def own_skewness(self, codes: IntArray) -> FloatArray:
        """For each arm, sum of cubed residuals over sum of squares to the power 3/2; codes, result (k,)."""
        total = self.cells.moments[0].sum(axis=1, keepdims=True)
        inside = shifted(total, -total[1] / np.maximum(total[0], 1.0))[:, 0]
        root = np.sqrt(np.where(inside[2] > 0.0, inside[2], np.inf))
        return np.asarray((inside[3] / root / root / root)[codes], dtype=np.float64)

    def read_facts(self) -> dict[str, Any]:
        """Facts on the data that were summed, and on how they were summed."""
        by = " and ".join(["arm", *self.sums.group_names])
        return {"rounds": self.sums.n_rounds, "batches": self.sums.n_batches, "by": by}

    @cached_property
    def incomplete(self) -> bool:
        """Whether some rewards are missing; sums include only observed rewards."""
        return False

    @cached_property
    def two_values(self) -> tuple[float, float] | None:
        """The two values of rewards, one of which is 0, in ascending order; None for all other rewards."""
        raw = self._raw
        value = other_value(raw[1], raw[2])
        always = value is not None and raw[1].sum() / value > raw[0].sum() - 0.5
        if value is None or (always and value != 1.0):
            return None
        return min(0.0, value), max(0.0, value)

    @cached_property
    def successes(self) -> FloatArray:
        """For each arm, number of rewards equal to the larger of two values, or 0 for other rewards; (K,)."""
        if self.two_values is None:
            return np.zeros(self.log.n_arms)
        low, high = self.two_values
        count = np.rint(self._raw[1].sum(axis=0) / (low + high))
        return np.asarray(count if low == 0.0 else self.pulls - count, dtype=np.float64)

    @cached_property
    def uncommon(self) -> FloatArray:
        """For each arm, number of rewards other than the most common one, infinite if unknown; (K,).

        Unless rewards take two values, only 0 can be known to be the most common reward.
        """
        pulls = self.pulls
        others = self.cells.nonzero.sum(axis=0)
        fewer = np.minimum(self.successes, pulls - self.successes) if self.binary else others
        common = pulls - fewer
        known = (pulls > 1.0) & (2.0 * common >= pulls) & (common > 1.0)
        return np.where(known, fewer, math.inf)

    @cached_property
    def rare_rate(self) -> float:
        """Share of the rewards other than the most common one; 0 if none is known to be common."""
        pulls = float(self.pulls.sum())
        others = float(self.successes.sum()) if self.binary else float(self.cells.nonzero.sum())
        fewer = min(others, pulls - others) if self.binary else others
        return fewer / pulls if 2.0 * (pulls - fewer) >= pulls else 0.0

    @cached_property
    def squared_skewness(self) -> float:
        """Squared skewness of all rewards together; NaN if cubes are unknown."""
        return _squared_skewness(self.cells.moments[0].sum(axis=(1, 2)))

    @cached_property
    def skewness_doubt(self) -> float:
        """Relative error of the skewness of all rewards together."""
        return skewness_doubt(self.squared_skewness, float(self.cells.moments[0, 0].sum()))

    def all_at(self, low: float, high: float) -> bool:
        """Whether every reward is one of two values, because (y - low) (high - y) sums to 0."""
        above = self.cells.about(low).moments[0]
        reach = (high - low) * above[1]
        return bool(np.all(np.abs(reach - above[2]) <= _SAME * reach))

    @property
    def knows_skewness(self) -> bool:
        """Whether the sums show how skewed rewards are."""
        return not math.isnan(self.squared_skewness)

    @property
    def knows_rarity(self) -> bool:
        """Whether the sums show how rare outcomes are."""
        return bool(np.isfinite(self.cells.nonzero).all())

    @cached_property
    def heavy_tailed(self) -> bool:
        """Always False, because heavy tails cannot be detected without sums of fourth powers."""
        return False

    @cached_property
    def pooled_mean(self) -> float:
        """Mean of all rewards, pooled over arms."""
        return float(self._raw[1].sum() / self._raw[0].sum())

    @cached_property
    def pooled_std(self) -> float:
        """Standard deviation of all rewards, pooled over arms."""
        count, first, squares = (part.sum() for part in self.cells.moments[0, :3])
        return math.sqrt(max(squares / count - (first / count) ** 2, 0.0))

    @cached_property
    def _raw(self) -> FloatArray:
        """Counts, sums, squares and cubes about 0, shape (4, B, K)."""
        return np.asarray(self.cells.about(0.0).moments[0], dtype=np.float64)

    @cached_property
    def varied(self) -> bool:
        """Whether rewards take more than one value."""
        return self.pooled_std > 0.0

    def _with_arms(self, arms: tuple[int, ...]) -> LogProfile:
        """The profile of the cells of some arms, for use if only these arms' rewards are of interest."""
        if not self.pulls[list(arms)].any():
            return self
        part = SumsProfile(self.sums)
        outside = np.ones(self.log.n_arms, dtype=bool)
        outside[list(arms)] = False
        moments, nonzero = self.cells.moments.copy(), self.cells.nonzero.copy()
        moments[..., outside], nonzero[:, outside] = 0.0, 0.0
        part.cells = replace(self.cells, moments=moments, nonzero=nonzero)
        if not part.varied:
            part.two_values, part.successes = self.two_values, self.successes
        return part

    def _trends(self) -> Trends:
        """No trend is tested if units return, because sums do not contain their times."""
        if self.repeated_units:
            return Trends(np.full(self.log.n_arms, np.nan))
        return trends_of_sums(self.cells)

    @cached_property
    def n_units(self) -> int:
        """Number of units, or of rounds if the sums do not contain totals of units."""
        return self.log.n_rounds if self.sums.n_units is None else self.sums.n_units

    @cached_property
    def unit_skewness(self) -> float:
        """Squared skewness of the units' mean rewards, pooled over arms; 0 if no unit returned."""
        totals = self.sums.by_unit
        return 0.0 if totals is None or not self.repeated_units else _squared_skewness(totals.means)

    @cached_property
    def one_arm_a_unit(self) -> bool:
        """Whether units return, and each keeps its first arm."""
        totals = self.sums.by_unit
        return totals is not None and self.repeated_units and totals.keeps_arms

    @cached_property
    def drawn_once(self) -> bool:
        """Always False, because logs whose arms are drawn once per unit are not summed."""
        return False

    @cached_property
    def contradicted_draws(self) -> str:
        """The reason why propensities are not those of the choices; empty if no reason is found."""
        return self.context_refusal if self.deciding_context else super().contradicted_draws

    @cached_property
    def _moves_within_units(self) -> bool:
        return self.sums.by_unit is not None and self.sums.by_unit.values["moved"] > 0.0

    @cached_property
    def _chance_of_keeping(self) -> float:
        """Log probability that draws by round give every unit the same arm again; 0 if an arm changed."""
        totals = self.sums.by_unit
        return totals.values["keeping"] if totals is not None and self.one_arm_a_unit else 0.0

    @cached_property
    def deciding_context(self) -> str:
        """Name of a group column that visibly determines arms, if shares replace propensities."""
        sums = self.sums
        if not sums.shares or self.context_free or self.decides_by_context:
            return ""
        found, least = "", VISIBLE / max(1, len(sums.group_names))
        for name in sums.group_names:
            p = association_of_counts(sums.by_groups(name).counts)
            if p < least:
                found, least = name, p
        return found

    @property
    def _all_sure(self) -> bool:
        return self.logs_propensities and bool(np.nanmin(self._chosen_smallest[0]) >= 1.0 - _SAME)

    @property
    def visible_context(self) -> None:
        """Always None, because only groups in sums could show a context, and methods are then refused."""

    @cached_property
    def in_place_of_means(self) -> str:
        """Suggestion to estimate effects within groups, if groups determine arms."""
        deciding = self.deciding_context
        return f"CATE(sums, by={deciding!r})" if deciding else super().in_place_of_means

    @cached_property
    def knows_propensities(self) -> bool:
        """Whether inverse propensities were summed, which may have been computed from shares of batches."""
        return True

    @property
    def partial_propensities(self) -> None:
        """Always None, because the chosen arms' propensities exclude arms by batch, not by round."""
        return None

    @property
    def rules_out(self) -> bool:
        """Whether the chosen arms' propensities alone show that an arm was impossible in some batch."""
        return not (self.knows_every_propensity or bool(self.cells.possible.all()))

    @cached_property
    def batched(self) -> bool:
        """Always True, because sums are by batch."""
        return True

    @cached_property
    def pulls(self) -> FloatArray:
        """Number of rounds in which each arm was chosen, shape (K,)."""
        return np.asarray(self.cells.pulls.sum(axis=0), dtype=np.float64)

    def _inverse_powers(self, power: int) -> FloatArray:
        return np.asarray(self.cells.moments[power, 0].sum(axis=0), dtype=np.float64)

    @cached_property
    def knows_every_propensity(self) -> bool:
        """Whether the propensities of all arms are known in every round."""
        return self.cells.knows_every

    @cached_property
    def usable_decay(self) -> float | None:
        """Always None, because two-point weights change from round to round."""
        return None

    @cached_property
    def moving_batches(self) -> BoolArray:
        """Whether the propensity of some arm may change within each batch, shape (B,)."""
        return np.asarray(~self.cells.constant.all(axis=1))

    @cached_property
    def fixed_before_contexts(self) -> BoolArray:
        """Whether the propensity of each arm is fixed before the context of a round, shape (K,)."""
        cells = self.cells
        if self.fixed_in_time:
            return np.ones(self.log.n_arms, dtype=bool)
        # If all batches had one round, constant propensities within them would show nothing.
        single = self.log.n_rounds < 2 * len(cells.rounds)
        return np.asarray(cells.constant.all(axis=0) & (not single), dtype=bool)

    @cached_property
    def constant_propensities(self) -> bool:
        """Whether the propensity of every arm is known to be constant; estimates do not count as known."""
        return self._never_move and not self.log.adaptive

    @cached_property
    def _never_move(self) -> bool:
        """Whether propensities are not estimates and are constant over all rounds for every arm."""
        if self.estimated or self.varying_propensities:
            return False
        full = abs(float(np.nansum(self._chosen_smallest[0])) - 1.0) <= SUM_TOLERANCE
        return self.knows_every_propensity or full

    @cached_property
    def _chosen_smallest(self) -> FloatArray:
        """Smallest and largest value over batches of each arm's least propensity when chosen; (2, K)."""
        least = np.where(self.cells.pulls > 0.0, self.cells.smallest, np.nan)
        some = np.isfinite(least).any(axis=0)
        low, high = (np.where(some, part, np.nan) for part in (_least(least), -_least(-least)))
        return np.array([low, high])

    @cached_property
    def varying_propensities(self) -> bool:
        """Whether the propensities vary; False if they are estimates.

        The propensities of n chosen arms are constant in a batch if their inverses sum to n over the smallest
        propensity.
        """
        if self.estimated:
            return False
        if not self.knows_every_propensity:
            cells, (low, high) = self.cells, self._chosen_smallest
            constant = chosen_with_one(cells.pulls, cells.moments[1, 0], cells.smallest)
            return not bool(constant.all()) or bool(np.nanmax(high - low) > _SAME)
        if np.any(self.moving_batches):
            return True
        return bool(np.any(np.ptp(self.cells.smallest, axis=0) > _SAME))

    @cached_property
    def logs_propensities(self) -> bool:
        """Whether propensities were summed that are neither estimates nor batch shares."""
        return not (self.estimated or self.shares_stand_in)

    @cached_property
    def shares_stand_in(self) -> bool:
        """Whether the shares of arms in batches replace propensities."""
        return self.sums.shares

    @cached_property
    def propensities_found(self) -> Finding | None:
        """Evidence against the propensities; None if no evidence is possible with certain or few choices."""
        # Rounds of one unit share a draw, so the tests, which assume independent draws, do not apply.
        if not self.logs_propensities or self.one_draw_a_unit:
            return None
        if (cells := self._cells_with_propensities) is not None:
            where = miscalibrated_sums(cells)
            if not where and self._constant_doubted:
                where = "within batches"
            return self._found(calibration_caution(where or ""), where is not None)
        z = self._frequencies
        return self._found(chosen_alone_caution(z, self.log.arms), bool(np.isfinite(z).any()))

    @property
    def _constant_doubted(self) -> bool:
        """Whether arms' shares change within batches, although propensities are constant there.

        If propensities are known, `aggregate` tests this only where they are constant.
        """
        p = self.sums.share_movement
        return p is not None and p < MOVED_WITHIN

    @property
    def _cells_with_propensities(self) -> Cells | None:
        """Sums with every arm's propensities: logged, or constant and therefore those of the chosen arms."""
        cells = self.cells
        if self.knows_every_propensity or not self._never_move:
            return cells if self.knows_every_propensity else None
        every = np.broadcast_to(np.nan_to_num(self._chosen_smallest[0], nan=0.0), cells.pulls.shape)
        expected = cells.rounds[:, None] * every
        return replace(cells, expected=expected, spread=expected * (1.0 - every), smallest=every)

    @property
    def _frequencies(self) -> FloatArray:
        cells = self.cells
        sums = self._inverse_powers(1), self._inverse_powers(2)
        # An arm may have left after its last round, so only batches up to that one count.
        later = np.cumsum(cells.pulls[::-1], axis=0)[::-1] > 0.0
        possible = np.asarray(cells.rounds @ (cells.possible & later), dtype=np.float64)
        least = np.nan_to_num(self._chosen_smallest[0], nan=1.0)
        return frequency_statistics(self.pulls, *sums, possible, least)

    @cached_property
    def _shares_pvalue(self) -> float:
        return shares_pvalue_of_counts(self.cells.pulls)

    @cached_property
    def _inside_pvalue(self) -> float:
        """1: sums do not retain the order of rounds within batches."""
        return 1.0

    @property
    def _reaction_test(self) -> tuple[float, bool]:
        """No evidence: sums do not retain the order of rewards either."""
        return 1.0, False

    @property
    def _short_stretches(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Numbers and sums by batch, which is the finest division of time in sums."""
        number, first, second, _ = about_means(self.cells)
        return number, first, second

    @cached_property
    def shares_found(self) -> Finding | None:
        """Evidence from `aggregate` that shares change within batches; None if this was not checked."""
        p = self.sums.share_movement
        if self.logs_propensities:
            return Finding((MOVED_INSIDE(),) if self._constant_doubted else ())
        if p is None or not self.shares_stand_in:
            return None
        if p >= MOVED_WITHIN:
            return Finding()
        told = f"= {p:.1g}" if p > _SMALLEST else f"< {_SMALLEST:g}"
        return Finding((claims.SHARES_MOVE_WITHIN_BATCHES(p=told),))

    @cached_property
    def impossible(self) -> IntArray:
        """Number of rounds, shape (K,), in which each arm could not be chosen."""
        return np.asarray(self.cells.rounds @ ~self.cells.possible, dtype=np.int64)

    @cached_property
    def smallest_propensity(self) -> FloatArray:
        """Smallest positive propensity of each arm, shape (K,)."""
        usable = np.where(self.cells.possible, self.cells.smallest, 1.0)
        return np.asarray(np.minimum(usable.min(axis=0), 1.0), dtype=np.float64)


def _least(values: FloatArray) -> FloatArray:
    """Smallest value of each column, or infinity if all are missing; values (B, K), NaN if missing."""
    return np.asarray(np.where(np.isnan(values), math.inf, values).min(axis=0), dtype=np.float64)


def _squared_skewness(powers: FloatArray) -> float:
    """Squared skewness of values, from their number and sums of their first three powers; powers (4,)."""
    count, first, squares, cubes = powers
    mean = first / count
    spread = squares / count - mean * mean
    if spread <= 1e-14 * squares / count:
        return 0.0
    third = cubes / count - 3.0 * mean * squares / count + 2.0 * mean**3
    return float(third**2 / spread**3)


PROFILES[Sums] = SumsProfile
