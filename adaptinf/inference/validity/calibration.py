"""Where the propensities of a log come from, and whether arms were chosen with these propensities.

Let e be the probabilities of the arms given the past and the context. Sums of 1{A = a} - e(a) over rounds
that are selected by the past and the context are martingales for every design, and their predictable variance
is the sum of e (1 - e). Sums are computed for rounds selected by the propensity itself, by time and by
contexts, and for all rounds together. Time is divided twice: into eighths of the log, which show drift, and
into stretches of about 50 rounds, which show cycles. The sums are also computed with weights 1 / e(a), where
the variance is the sum of 1 / e - 1. If only the propensities p of the chosen arms are known, the sum of
1{A = k} / p - 1 over the rounds in which arm k was possible is also a martingale. Its variance is estimated
without bias by the sum of 1{A = k} (1 - p) / p^2. If an arm was added late, but is treated as possible
before, its sum is far below 0. Both tests are fast enough for every fit.

References
----------
Brown (1971), "Martingale central limit theorems".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from adaptinf.claims import Finding
from adaptinf.claims import propensities as claims
from adaptinf.inference.inputs.rounds import moves
from adaptinf.inference.validity.assignment import context_levels, runs_pvalue
from adaptinf.inference.validity.passes.choices import (
    PIECES,
    STRETCHES,
    Choices,
    choices_of,
    chosen_of,
    counts_by,
)
from adaptinf.inference.validity.unit_facts import UnitFacts
from adaptinf.log.validation.arm_columns import full_batches, propensities_as_far_as_known
from adaptinf.texts import several
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums.cells import Cells

ALARM = 1e-3
"""Probability that correct propensities are doubted, over all tests of choices together.

If one table is computed from the rows of a log and another from its sums, these tests are run twice.
"""
_OVERALL = 0.8
"""Share of `ALARM` for unweighted sums over all rounds; the other tests divide the rest equally.

At level a, a normal sum that deviates by m standard deviations is detected with probability F(m - c(a)),
where c(a) is the quantile of its absolute value. If rows of one arm are lost depending on their outcome, the
plain sum of the arm changes by hardly more standard deviations than its mean is biased by. For example, if a
fifth of the failures of an arm with half of 4,000 rounds is lost, the sum changes by 3.2 standard deviations,
and a contrast by 3.5 standard errors. If the whole level of .001 is used for the plain sums, c is 3.29. With
.8 of the level, c is 3.35, and the probability of detection decreases by at most .03. With equal parts for
five tests, c is 3.72, and the probability decreases by up to .17. If propensities belong to another arm or
round, are averages, or are invented, sums by size, time or context change by many standard deviations before
estimates have a similar bias. For these sums, c is 4.11 with the remaining level, instead of 3.72.
"""
DOUBTED = 1e-3
"""The propensities of chosen arms alone are doubted if p-value times number of arms is below this value."""
_LEAST_VARIANCE = 25.0
"""Adjacent groups of rounds are merged until the count of choices has this variance."""
_FEWEST = 100
"""With fewer rounds, no count can have the variance above, because a round adds at most 1/4."""
_LARGEST_STEP = 0.2
"""Largest contribution of a round, in standard deviations, for a sum of inverse propensities to be normal."""
_LEAST_ROUNDS, _SHOWN = 20, 5
_STRETCH, _MOST_STRETCHES = 50, 2000
_WITHIN_BATCHES = "within batches"
_IN_ORDER = "by order of rounds"
_SAME = 1e-9
"""Propensities that differ by less are treated as equal, because writing and reading a frame rounds them."""
_CONTEXTS = 10
_BLOCK, _MOST = 4096, 2_000_000


def miscalibration(log: AdaptiveLog, draws: IntArray | None = None) -> str | None:
    """How the choices deviate from the propensities; empty if no deviation is found.

    Shapes: draws (n,), the rounds whose arm was drawn, which by default are all rounds. The result is None if
    no deviation could be detected, because some propensities are unknown, or too few are strictly between 0
    and 1. For a long log, equally spaced blocks of rounds are examined, with 2,000,000 propensities in total.
    """
    rows = some_rounds(log.n_rounds if draws is None else len(draws), log.n_arms)
    rows = rows if draws is None else draws[rows]
    arrays, action = log.arrays, log.arrays.action[rows]
    every = _every_propensity(log, rows)
    if every is None or len(every) < _FEWEST:
        return None
    found = choices_of(action, every)
    if not np.any(found.stretches.total().variance >= _LEAST_VARIANCE):
        return None
    names = list(arrays.context)[:_CONTEXTS]
    each = _level_of_each(_tests(log))
    plain, weighted = _overall_pvalues(found)
    if plain < _OVERALL * ALARM or weighted < each:
        return "overall"
    if excess_pvalue(*found.pieces) < each:
        return "by size of propensity"
    size = max(_STRETCH, math.ceil(len(action) / _MOST_STRETCHES))
    stretch = np.arange(len(action)) // size
    by_stretch = counts_by(action, every, stretch, int(stretch[-1]) + 1)
    if excess_pvalue(*found.stretches) < each or excess_pvalue(*by_stretch) < each:
        return "over time"
    for name in names:
        level, levels = context_levels(np.asarray(arrays.context[name])[rows])
        if excess_pvalue(*counts_by(action, every, level, levels)) < each:
            return f"by {name}"
    return ""


def _every_propensity(log: AdaptiveLog, rows: slice | IntArray) -> FloatArray | None:
    """Every arm's propensities in some rounds, as far as those of the chosen arms imply them; (n, K)."""
    arrays = log.arrays
    assert arrays.propensity is not None
    if arrays.propensities is not None:
        return arrays.propensities[rows]
    action, own = arrays.action[rows], arrays.propensity[rows]
    if log.n_arms == 2:
        return np.where(action[:, None] == np.arange(2), own[:, None], 1.0 - own[:, None])
    if not bool(constant_over_time(log)):
        return None
    each = np.zeros(log.n_arms)
    each[arrays.action] = arrays.propensity
    return np.broadcast_to(each, (len(action), log.n_arms))


def constant_over_time(log: AdaptiveLog) -> bool:
    """Whether each chosen arm always has one propensity, and these sum to 1."""
    action, own = log.arrays.action, log.arrays.propensity
    return own is not None and bool(full_batches(np.zeros_like(action), action, own, log.n_arms).all())


def _tests(log: AdaptiveLog) -> int:
    """Tests by inverse propensities, size, time (two), each context, and order of rounds."""
    return 5 + min(len(log.arrays.context), _CONTEXTS)


def _level_of_each(tests: int) -> float:
    """Level of each test other than the test of unweighted sums over all rounds."""
    return (1.0 - _OVERALL) * ALARM / tests


def some_rounds(rounds: int, n_arms: int) -> slice | IntArray:
    """Rounds to check: all rounds of a short log, and equally spaced blocks of a long one."""
    most = max(_BLOCK, _MOST // n_arms)
    if rounds <= most:
        return slice(None)
    starts = np.linspace(0, rounds - _BLOCK, most // _BLOCK).astype(np.int64)
    rows = (starts[:, None] + np.arange(_BLOCK)[None, :]).ravel()
    # Blocks are in order but may overlap, and each round must count once.
    return rows[np.diff(np.maximum.accumulate(rows), prepend=-1) > 0]


def _overall_pvalues(found: Choices) -> tuple[float, float]:
    """P-values of unweighted and of inverse-weighted sums over all rounds.

    Each is the smallest p-value over arms, times the number of arms. With two arms, the plain sums of both
    are equivalent.
    """
    observed, expected, variance = found.stretches.total()
    some = variance >= _LEAST_VARIANCE
    plain = np.where(some, (observed - expected) / np.sqrt(np.maximum(variance, 1.0)), 0.0)
    spread = found.inverse - found.possible
    usable = some & (found.largest <= _LARGEST_STEP * np.sqrt(spread))
    weighted = (found.chosen - found.possible) / np.sqrt(np.maximum(spread, 1.0))
    weighted = np.where(usable, weighted, 0.0)
    least = 2.0 * special.ndtr(-np.abs([plain, weighted]).max(axis=1))
    return float(least[0]) * (1 if len(variance) == 2 else len(variance)), float(least[1]) * len(variance)


def miscalibrated_sums(cells: Cells) -> str | None:
    """How choices deviate from propensities in sums, by mean propensity, by time, and from batch to batch."""
    if not np.any(cells.spread.sum(axis=0) >= _LEAST_VARIANCE):
        return None
    rounds, each = cells.rounds[:, None], _level_of_each(3)
    total = np.zeros_like(cells.pulls, dtype=np.int64)
    if _pvalue_of_groups(cells, total, 1) < _OVERALL * ALARM:
        return "overall"
    pieces = np.minimum((cells.expected / rounds * PIECES).astype(np.int64), PIECES - 1)
    if _pvalue_of_groups(cells, pieces, PIECES) < each:
        return "by size of propensity"
    time = (np.cumsum(rounds) - cells.rounds) * STRETCHES // cells.rounds.sum()
    batches = np.arange(len(rounds))[:, None] * min(len(rounds), _MOST_STRETCHES) // len(rounds)
    for place in (time.astype(np.int64)[:, None], batches):
        group = np.broadcast_to(place, pieces.shape)
        if _pvalue_of_groups(cells, group, int(place[-1, 0]) + 1) < each:
            return "over time"
    return ""


def _pvalue_of_groups(cells: Cells, group: IntArray, groups: int) -> float:
    """Smallest p-value over arms, times the number of arms, by groups of batches; group (B, K)."""
    n_arms = group.shape[1]
    place = (group * n_arms + np.arange(n_arms)).ravel()
    observed, expected, variance = (
        np.bincount(place, weights=part.ravel(), minlength=groups * n_arms).astype(np.float64)
        for part in (cells.pulls, cells.expected, cells.spread)
    )
    shape = groups, n_arms
    return excess_pvalue(observed.reshape(shape), expected.reshape(shape), variance.reshape(shape))


def excess_pvalue(observed: FloatArray, expected: FloatArray, variance: FloatArray) -> float:
    """Smallest p-value over arms, times the number of arms, for counts by group; shapes (groups, K).

    Neighbouring groups are merged until each has enough variance, and the remainder is merged with the last
    group. With two arms, only the first is examined, because an excess of one arm is a deficit of the other.
    """
    if observed.shape[1] == 2:
        observed, expected, variance = observed[:, :1], expected[:, :1], variance[:, :1]
    found = [
        _squares(gaps, spreads)
        for gaps, spreads in zip((observed - expected).T.tolist(), variance.T.tolist(), strict=True)
    ]
    squares, df = np.array(found).reshape(-1, 2).T
    pvalues = np.where(df > 0.0, special.chdtrc(np.maximum(df, 1.0), squares), 1.0)
    return float(pvalues.min(initial=1.0) * len(df))


def _squares(gaps: list[float], spreads: list[float]) -> tuple[float, int]:
    """Sum of squared standardised gaps for one arm, and the number of merged groups."""
    total, groups = 0.0, 0
    last = gap = last_spread = spread = 0.0
    for own_gap, own_spread in zip(gaps, spreads, strict=True):
        gap, spread = gap + own_gap, spread + own_spread
        if spread >= _LEAST_VARIANCE:
            total += last**2 / last_spread if last_spread > 0.0 else 0.0
            last, last_spread, gap, spread, groups = gap, spread, 0.0, 0.0, groups + 1
    gap, spread = last + gap, last_spread + spread
    return total + (gap**2 / spread if spread > 0.0 else 0.0), groups


def calibration_caution(found: str) -> tuple[str, ...]:
    """The caution for estimates that divide by these propensities; empty if no deviation is found."""
    if not found:
        return ()
    return (claims.NOT_FOLLOWED(where=found, alarm=ALARM),)


def chosen_alone_caution(z: FloatArray, arms: Sequence[Any]) -> tuple[str, ...]:
    """The caution that choices deviate from the chosen arms' own propensities; empty if they do not.

    Shapes: z (K,), the result of `frequency_statistics`.
    """
    usable = np.isfinite(z)
    p = 2.0 * special.ndtr(-np.abs(np.where(usable, z, 0.0))) * max(1, int(usable.sum()))
    found = [f"{arms[code]} (z = {z[code]:.1f})" for code in np.flatnonzero(usable & (p < DOUBTED)).tolist()]
    if not found:
        return ()
    return (claims.CHOSEN_NOT_FOLLOWED(arms=several(found, _SHOWN)),)


def frequency_statistics(
    pulls: FloatArray, inverse: FloatArray, squares: FloatArray, possible: FloatArray, least: FloatArray
) -> FloatArray:
    """Standardised sums of 1{A = k} / p - 1; NaN for arms with fewer than 20 rounds or always certain.

    All arguments and the result have shape (K,). The arguments are, for each arm, the number of rounds in
    which the arm was chosen, the sums of 1 / p and 1 / p^2 over these rounds, the number of rounds in which
    the arm could have been chosen up to its last choice, and the smallest p. If an arm was chosen too rarely,
    its rounds show too little of the variance. The variance is therefore scaled to the expected number of
    rounds, and is at least the variance of the missing rounds at the smallest propensity.
    """
    variance = squares - inverse
    usable = (pulls >= _LEAST_ROUNDS) & (variance > _SAME * squares)
    gap = inverse - possible
    scale = np.maximum(possible / np.where(usable, inverse, 1.0), 1.0)
    spread = np.maximum(variance * scale, -gap / np.where(usable, least, 1.0))
    return np.where(usable, gap / np.sqrt(np.where(usable, spread, 1.0)), np.nan)


class PropensityFacts(UnitFacts):
    """The facts about the propensities of a log, each of which is computed when it is first used."""

    @cached_property
    def propensity(self) -> FloatArray | None:
        """Propensities of the chosen arms when the arms were drawn, shape (T,); None if the log has none."""
        known = self.log.arrays.propensity
        return known[self._first_rounds] if known is not None and self.drawn_once else known

    @cached_property
    def propensities(self) -> FloatArray | None:
        """Propensities of all arms when the arms were drawn, shape (T, K); None if the log has none."""
        known = self.log.arrays.propensities
        return known[self._first_rounds] if known is not None and self.drawn_once else known

    @cached_property
    def partial_propensities(self) -> FloatArray | None:
        """Propensities (T, K) that chosen arms' own propensities imply; None if no arm is excluded.

        The value is the logged propensity for the chosen arm, and 1 for other arms that may have been
        possible. If the probabilities of a batch's chosen arms sum to 1, it is 0 for arms without rounds in
        the batch.
        """
        arrays, n_arms = self.log.arrays, self.log.n_arms
        if self.estimated or self.propensity is None or arrays.batch is None or self.knows_every_propensity:
            return None
        return propensities_as_far_as_known(arrays.batch, arrays.action, self.propensity, n_arms)

    @cached_property
    def pulls(self) -> FloatArray:
        """Number of rounds in which each arm was chosen, shape (K,)."""
        return self.log._rounds_by_arm().astype(np.float64)

    @cached_property
    def inverse_squares(self) -> FloatArray:
        """Sums of 1/e^2, shape (K,), over the rounds that chose an arm, where e is its propensity."""
        return self._inverse_powers(2)

    @cached_property
    def inverse_cubes(self) -> FloatArray:
        """Sums of 1/e^3, shape (K,), over the rounds that chose an arm, where e is its propensity."""
        return self._inverse_powers(3)

    def _inverse_powers(self, power: int) -> FloatArray:
        own = self.log.arrays.propensity
        assert own is not None
        weights = 1.0 / own
        for _ in range(power - 1):  # A product is many times faster than a power.
            weights /= own
        return np.bincount(self.log.arrays.action, weights, self.log.n_arms).astype(np.float64)

    @cached_property
    def knows_every_propensity(self) -> bool:
        """Whether the propensities of all arms, and not only of the chosen arm, are known in every round."""
        return self.log.arrays.propensities is not None

    @cached_property
    def estimated(self) -> bool:
        """Whether the propensities are estimates."""
        return self.log.propensity_status == "estimated"

    @cached_property
    def constant_propensities(self) -> bool:
        """Whether the propensity of every arm is known to be constant; estimates do not count as known.

        The propensities of chosen arms alone show this if they never change for any arm and sum to 1 over
        arms. If the log states that assignment reacted to outcomes, the result is False.
        """
        return self._never_move and not self.log.adaptive

    @cached_property
    def _never_move(self) -> bool:
        """Whether propensities are not estimates and are constant over all rounds for every arm."""
        if self.estimated or self.varying_propensities or self.propensity is None:
            return False
        return self.knows_every_propensity or constant_over_time(self.log)

    @cached_property
    def varying_propensities(self) -> bool:
        """Whether the log has propensities that are not estimates and change for some arm."""
        if self.estimated or self.propensity is None:
            return False
        if self.propensities is not None:
            away = (
                max(column.max() - column[0], column[0] - column.min())
                for column in self.propensities.T
                if column.size
            )
            return any(bool(gap > _SAME) for gap in away)
        chosen = [self.propensity[self.log.arrays.action == code] for code in range(self.log.n_arms)]
        return any(values.size > 0 and bool(np.ptp(values) > _SAME) for values in chosen)

    @cached_property
    def logs_propensities(self) -> bool:
        """Whether the log has propensities that are not estimates, at least for chosen arms."""
        return self.log.arrays.propensity is not None and not self.estimated

    @cached_property
    def propensities_found(self) -> Finding | None:
        """Evidence against the propensities of the log; None if choices are certain or too few."""
        if not self.logs_propensities:
            return None
        draws = np.unique(self._first_rounds) if self.one_draw_a_unit else None
        where = miscalibration(self.log, draws)
        if where == "" and draws is None and self._order_pvalue < _level_of_each(_tests(self.log)):
            where = _IN_ORDER if self.log.arrays.batch is None or self._never_move else _WITHIN_BATCHES
        told, asked = calibration_caution(where or ""), where is not None
        if where is None and not self.knows_every_propensity and self.log.n_arms > 2 and draws is None:
            z = self._frequencies
            told, asked = chosen_alone_caution(z, self.log.arms), bool(np.isfinite(z).any())
        return self._found(told, asked)

    def _found(self, told: tuple[str, ...], asked: bool) -> Finding | None:
        """Evidence against the propensities, including statements of the log that contradict them."""
        if self.log.adaptive and self._never_move:
            told = (*told, claims.CONTRADICTED())
        return Finding(told) if told or asked else None

    @property
    def _order_pvalue(self) -> float:
        """P-value for the number of runs at constant propensities, or at those of each batch; otherwise 1.

        If propensities were computed from counts of arms, for example as shares of the day, the counts always
        match them, so only the order of rounds can show that propensities are wrong.
        """
        arrays, n_arms = self.log.arrays, self.log.n_arms
        rows = some_rounds(self.log.n_rounds, n_arms)
        every, action = _every_propensity(self.log, rows), arrays.action[rows]
        if every is None:
            return 1.0
        batch = None if arrays.batch is None or self._never_move else arrays.batch[rows]
        return 1.0 if len(moves(every, batch, _SAME)) else runs_pvalue(action, n_arms, batch)

    @property
    def _frequencies(self) -> FloatArray:
        """The result of `frequency_statistics` for the log, shape (K,)."""
        arrays = self.log.arrays
        assert arrays.propensity is not None
        return frequency_statistics(
            self.pulls,
            *chosen_of(arrays.action, arrays.propensity, self.partial_propensities, self.log.n_arms),
        )

    @property
    def rules_out(self) -> bool:
        """Whether the chosen arms' propensities alone show that an arm was impossible in some batch."""
        return self.partial_propensities is not None

    @cached_property
    def impossible(self) -> IntArray:
        """Number of rounds, shape (K,), in which each arm could not be chosen, as far as the log shows."""
        n_arms = self.log.n_arms
        if self.propensities is not None:
            return _rounds_without(self.propensities)
        if self.propensity is None:
            return np.zeros(n_arms, dtype=np.int64)
        if self.partial_propensities is not None:
            return _rounds_without(self.partial_propensities)
        sure = np.bincount(self.log.arrays.action[self.propensity >= 1.0], minlength=n_arms)
        return np.asarray(sure.sum() - sure, dtype=np.int64)

    @cached_property
    def smallest_propensity(self) -> FloatArray:
        """Smallest known positive propensity of each arm, shape (K,), possibly only when it was chosen."""
        n_arms, every = self.log.n_arms, self.propensities
        if every is not None and not self.impossible.any():
            return np.asarray(every.min(axis=0, initial=1.0), dtype=np.float64)
        if every is not None:
            return np.array([column[column > 0.0].min(initial=1.0) for column in every.T])
        least = 1.0 if self.propensity is None else float(self.propensity.min(initial=1.0))
        return np.full(n_arms, least)


def _rounds_without(propensities: FloatArray) -> IntArray:
    """Numbers of rounds, shape (K,), in which each arm has propensity 0.

    No other array as large as `propensities` is created.
    """
    if propensities.size == 0 or propensities.min() > 0.0:
        return np.zeros(propensities.shape[1], dtype=np.int64)
    return np.array([np.count_nonzero(column <= 0.0) for column in propensities.T], dtype=np.int64)
