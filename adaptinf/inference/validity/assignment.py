"""Tests of whether the data show that a context determines the arm, or that the shares of arms change.

References
----------
Landis, Heyman, Koch (1978), "Average partial association in three-way contingency tables" (the general
association statistic of Cochran, Mantel and Haenszel). Mood (1940), "The distribution theory of runs".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.typing import FloatArray, IntArray

VISIBLE = 1e-6
"""A context is assumed to have determined arms if p-value times number of columns is below this value."""
MOVED_WITHIN = 1e-4
"""The shares of arms are assumed to have changed within batches if the p-value is below this value."""
_MOST_LEVELS, _LEAST_ROUNDS = 20, 20
_BINS, _FIRST = 8, 1000
_STRATUM, _MOST_STRATA = 50, 2000
_SPAN = 1e-8
MOVED = 1e-3
"""The arms' shares of the rounds are assumed to have changed if the p-value is below this value."""
REACTS = 1e-3
"""P-value below which arms are assumed to be chosen by earlier rewards, over both tests of this."""
REACTS_BESIDE = 1e-4
"""The p-value used instead if the arms' shares change, because those may agree with the leader by chance."""
SHORT = 10
"""Number of rounds in a stretch that is so short that a level which changes by the hour is nearly
constant."""
_LED, _FEW_LED, _MOST_LED = 100, 10, 100_000
_SHIFT, _VISIBLE_SHIFT = 0.3, 4.0
_LEAST_EXPECTED = 5.0
"""Expected number of rounds of the rarest arm per stretch that a chi-squared approximation needs."""


def deciding_context(
    contexts: Mapping[str, Any], action: IntArray, n_arms: int, batch: IntArray | None
) -> str:
    """Name of the context on which the choice of arms depends most clearly; empty if no context is found.

    Shapes: action, batch (T,), contexts (T,) each. Over short stretches of rounds, the knowledge of the
    design hardly changes, so a choice that does not use contexts combines arms and contexts at random. Rare
    labels and arms are merged, so that columns with many labels do not raise a false alarm. Numbers are
    divided at their octiles.
    """
    stratum = strata(len(action), batch)
    arm, arms = _joined(action, np.bincount(action, minlength=n_arms))
    found, least = "", VISIBLE / max(1, len(contexts))
    for name, values in contexts.items():
        level, levels = context_levels(values)
        p = association_pvalue(stratum, level, levels, arm, arms)
        if p < least:
            found, least = name, p
    return found


def strata(rounds: int, batch: IntArray | None, least: int = _STRATUM) -> IntArray:
    """The stretch of each round, shape (T,): at most 2,000 stretches of about `least` rounds or more.

    A stretch never divides a batch.
    """
    size = max(least, math.ceil(rounds / _MOST_STRATA))
    if batch is None:
        return np.arange(rounds) // size
    first = batch - int(batch.min(initial=0))
    return _stretches(np.bincount(first), size)[first]


def _stretches(rounds: IntArray | FloatArray, size: int) -> IntArray:
    """For each batch, the number of its stretch, which has about `size` rounds or more; rounds (B,)."""
    ends = np.cumsum(rounds)
    return np.asarray(np.unique((ends - 1) // size, return_inverse=True)[1], dtype=np.int64)


def shares_pvalue(action: IntArray, n_arms: int, batch: IntArray | None) -> float:
    """P-value for equal arm probabilities in all stretches of rounds, or of whole batches if they are given.

    Shapes: action, batch (T,). Rare arms are merged.
    """
    arm, arms = _joined(action, np.bincount(action, minlength=n_arms))
    least = _least_rounds(np.bincount(arm, minlength=arms))
    stratum = strata(len(action), batch, least)
    table = np.bincount(stratum * arms + arm, minlength=(int(stratum.max(initial=0)) + 1) * arms)
    return _homogeneity(table.reshape(-1, arms).astype(np.float64))


def shares_pvalue_of_counts(pulls: FloatArray) -> float:
    """P-value for equal arm probabilities in B batches, from the arms' numbers of rounds; pulls (B, K)."""
    place, arms = _joined(np.arange(pulls.shape[1]), pulls.sum(axis=0).astype(np.int64))
    counts = np.zeros((len(pulls), arms))
    np.add.at(counts.T, place, pulls.T)
    stretch = _stretches(pulls.sum(axis=1), _least_rounds(counts.sum(axis=0)))
    table = np.zeros((int(stretch.max(initial=0)) + 1, arms))
    np.add.at(table, stretch, counts)
    return _homogeneity(table)


def runs_pvalue(action: IntArray, n_arms: int, batch: IntArray | None) -> float:
    """P-value for too few runs of the same arm within batches (or, without batches, over all rounds).

    Shapes: action, batch (T,), where batches are numbered from 0. If arms are drawn with the same
    probabilities in all rounds, all orders have equal probability, given the number of rounds of each arm.
    For N rounds, n_k of which are of arm k, the mean number of runs is (N (N + 1) - S2) / N, and the variance
    is (S2 (S2 + N (N + 1)) - 2 N S3 - N^3) / (N^2 (N - 1)), where S_j is the sum of n_k^j. Shares that
    change, for example by the hour, cause fewer runs. Arms that alternate, or come in balanced blocks, cause
    more runs.
    """
    place = np.zeros_like(action) if batch is None else batch - int(batch.min(initial=0))
    cells, whole = place * n_arms + action, (int(place.max(initial=0)) + 1) * n_arms
    if whole <= len(action):
        every = np.bincount(cells, minlength=whole)
        owner = np.flatnonzero(every) // n_arms
    else:  # of small batches a table of all arms would be larger than the log
        found, every = np.unique(cells, return_counts=True)
        owner = found // n_arms
    counts = every[every > 0].astype(np.float64)
    n, squares, cubes = (np.bincount(owner, weights=counts**power) for power in (1, 2, 3))
    several = n > 1.0
    n, squares, cubes = n[several], squares[several], cubes[several]
    same = place[1:] == place[:-1]
    runs = float(np.count_nonzero(same & (action[1:] != action[:-1])) + len(n))
    mean = float(((n * (n + 1.0) - squares) / n).sum())
    spread = (squares * (squares + n * (n + 1.0)) - 2.0 * n * cubes - n**3) / (n**2 * (n - 1.0))
    variance = float(np.maximum(spread, 0.0).sum())
    return float(special.ndtr((runs - mean) / math.sqrt(variance))) if variance > 0.0 else 1.0


def reaction_pvalue(action: IntArray, reward: FloatArray) -> float:
    """P-value for equal mean rewards in the last two rounds of a run of one arm; NaN if runs are few.

    Shapes: action, reward (T,). If arms are chosen regardless of rewards, these two rounds have the same
    mean, apart from drift between successive rounds. A design that abandons an arm after a low reward has
    lower rewards in the last round. The differences of different runs have no rewards in common.
    """
    last = np.flatnonzero(np.diff(action))
    last = last[np.diff(last, prepend=-1) > 1]
    gap = reward[last - 1] - reward[last]
    gap = gap / max(float(np.abs(gap).max(initial=0.0)), np.finfo(np.float64).tiny)
    if np.count_nonzero(gap) < _LEAST_ROUNDS:
        return math.nan
    return float(special.ndtr(-gap.sum() / math.sqrt(float(gap @ gap))))


def leader_test(
    action: IntArray, reward: FloatArray, n_arms: int, batch: IntArray | None, *, local: bool
) -> tuple[float, bool]:
    """P-value for arms chosen regardless of which arm has had the highest mean reward; 1 if too short.

    Shapes: action, reward, batch (T,). With batches, means are those before the batch.

    The leader is known before each round, so it is tested like a context: over all rounds if arms' shares
    are constant, and otherwise (`local`) within stretches of 100 rounds, because shares that change at times
    fixed in advance may agree with changes of the leader over longer ones. Stretches are divided at two
    places, so that a change between two of them is within another. The first 100,000 rounds are used.

    It is also returned whether the test would probably detect an arm whose share is .3 higher while it leads:
    with share p of the n rounds and q of the leads, this shifts a standard normal statistic by .3 (n q (1 -
    q) / (p (1 - p)))^(1/2), which must be at least 4.
    """
    rows = slice(min(len(action), _MOST_LED))
    if len(action) < _LED:
        return 1.0, False
    leader, first = _leaders(action[rows], reward[rows], n_arms)
    if batch is not None:
        start = np.searchsorted(batch[rows], batch[rows])
        leader, first = leader[start], int(np.searchsorted(start, first))
    chosen, leader = action[rows][first:], leader[first:]
    if len(chosen) < _LED:
        return 1.0, False
    arm, arms = _joined(chosen, np.bincount(chosen, minlength=n_arms))
    level, levels = _joined(leader, np.bincount(leader, minlength=n_arms))
    turns = [np.zeros(len(arm), dtype=np.int64)]
    if local:
        turns = [(np.arange(len(arm)) + shift) // _LED for shift in (0, _LED // 2)]
    p = min(association_pvalue(one, level, levels, arm, arms) for one in turns)
    led, drawn = (np.bincount(part, minlength=n_arms) / len(part) for part in (leader, chosen))
    spread = np.where(drawn > 0.0, led * (1.0 - led), 0.0) / np.maximum(drawn * (1.0 - drawn), 1.0 / len(arm))
    return min(1.0, len(turns) * p), _SHIFT * math.sqrt(len(arm) * float(spread.max())) >= _VISIBLE_SHIFT


def _leaders(action: IntArray, reward: FloatArray, n_arms: int) -> tuple[IntArray, int]:
    """Arm with the highest mean of earlier rewards (T,), and the first round before which all have ten."""
    best, leader, first = np.full(len(action) - 1, -np.inf), np.zeros(len(action), dtype=np.int64), 0
    for code in np.flatnonzero(np.bincount(action, minlength=n_arms)).tolist():
        own = (action[:-1] == code).astype(np.float64)
        count, mean = np.cumsum(own), np.cumsum(own * reward[:-1])
        first = max(first, int(np.searchsorted(count, _FEW_LED)) + 1)
        mean /= np.maximum(count, 1.0)
        leader[1:][mean > best] = code
        np.maximum(best, mean, out=best)
    return leader, first


def pooling_pvalue(number: FloatArray, first: FloatArray, second: FloatArray) -> float:
    """P-value for equal differences between arms in all rounds together and within stretches of rounds.

    Shapes: number, first, second (S, K): for each arm and stretch, the number of rewards, the sum of their
    deviations from the arm's mean, and the sum of the squared deviations. The p-value is NaN if no pair of
    arms can be compared. Let a be 1 for the first and 0 for the second of two arms, n_s their number of
    rounds in stretch s, p_s the share of the first arm among these rounds, and p its overall share. The
    difference in all rounds has weights (a - p) / (n p (1 - p)), and the difference within stretches has
    weights (a - p_s) / sum_s n_s p_s (1 - p_s). If the level does not change, the two differences have the
    same expectation. Otherwise, their gap is the effect of changes in shares and level on the plain means.
    """
    total = number.sum(axis=0)
    largest = int(total.argmax())
    found = [
        _pooling_z(number[:, pair], first[:, pair], second[:, pair])
        for pair in ([code, largest] for code in range(len(total)))
        if pair[0] != largest and total[pair[0]] >= _LEAST_ROUNDS
    ]
    sizes = np.abs([z for z in found if math.isfinite(z)])
    return min(1.0, 2.0 * len(sizes) * float(special.ndtr(-sizes.max()))) if len(sizes) else math.nan


def _pooling_z(number: FloatArray, first: FloatArray, second: FloatArray) -> float:
    """The z statistic of `pooling_pvalue` for two arms; all arrays have shape (S, 2)."""
    rounds = number.sum(axis=1)
    share = number[:, 0] / np.maximum(rounds, 1.0)
    overall = number[:, 0].sum() / rounds.sum()
    within, together = float(rounds @ (share * (1.0 - share))), rounds.sum() * overall * (1.0 - overall)
    if not within > 0.0:
        return math.nan
    chosen = np.array([1.0, 0.0])
    weights = (chosen - overall) / together - (chosen - share[:, None]) / within
    spread = float((weights**2 * second).sum())
    return float((weights * first).sum()) / math.sqrt(spread) if spread > 0.0 else math.nan


def _least_rounds(totals: IntArray | FloatArray) -> int:
    """Length of a stretch in which even the rarest arm is expected to occur often enough; totals (K,)."""
    drawn = totals[totals > 0]
    rarest = float(drawn.min() / drawn.sum()) if len(drawn) else 1.0
    return max(_STRATUM, math.ceil(_LEAST_EXPECTED / rarest))


def _homogeneity(table: FloatArray) -> float:
    """Pearson's chi-squared p-value for equal shares in all rows; table (S, K)."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    df = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)
    if df < 1:
        return 1.0
    expected = rows[:, None] * columns / rows.sum()
    gap = np.where(expected > 0.0, (table - expected) ** 2 / np.where(expected > 0.0, expected, 1.0), 0.0)
    return float(special.chdtrc(df, gap.sum()))


def context_levels(values: Any) -> tuple[IntArray, int]:
    """Codes (T,) and number of levels of a context: labels, or eight intervals of the numbers' range.

    Rare labels are merged.
    """
    column = np.asarray(values)
    numbers = column.dtype.kind in "fiu"
    # Where the first rounds have more numbers than are levels, the others need not be told apart.
    if not numbers or len(np.unique(column[:_FIRST])) <= _MOST_LEVELS + 1:
        codes, labels = pd.factorize(column)
        if not numbers or len(labels) <= _MOST_LEVELS:
            return _joined(codes.astype(np.int64), np.bincount(codes, minlength=len(labels)))
    cuts = np.unique(np.quantile(column, np.arange(1, _BINS) / _BINS))
    return np.searchsorted(cuts, column, side="right").astype(np.int64), len(cuts) + 1


def _joined(codes: IntArray, counts: IntArray) -> tuple[IntArray, int]:
    """Codes after rare codes, and all but the 19 most frequent, are merged; codes (T,), counts (L,)."""
    order = np.argsort(-counts, kind="stable")
    kept = [int(code) for code in order[: _MOST_LEVELS - 1] if counts[code] >= _LEAST_ROUNDS]
    place = np.full(len(counts), len(kept))
    place[kept] = np.arange(len(kept))
    return place[codes], len(kept) + 1


def association_pvalue(stratum: IntArray, level: IntArray, levels: int, arm: IntArray, arms: int) -> float:
    """P-value for a general association of levels and arms within strata of rounds.

    Shapes: stratum, level, arm (T,).

    """
    size = int(stratum.max(initial=-1)) + 1
    cell = (stratum * levels + level) * arms + arm
    table = np.bincount(cell, minlength=size * levels * arms).reshape(size, levels, arms)
    return association_of_counts(table.astype(np.float64))


def association_of_counts(table: FloatArray) -> float:
    """P-value for a general association of L levels and K arms within S strata; table (S, L, K).

    Consider a stratum of n rounds with a_i rounds of level i and c_j rounds of arm j. Given these margins, a
    count has mean a_i c_j / n, and two counts have covariance (n a_i [i = k] - a_i a_k) (n c_j [j = l] - c_j
    c_l) / (n^2 (n - 1)).
    """
    levels, arms = table.shape[1:]
    n = table.sum(axis=(1, 2))
    table, n = table[n > 1.0], n[n > 1.0]
    a, c = table.sum(axis=2), table.sum(axis=1)
    gap = (table - a[:, :, None] * c[:, None, :] / n[:, None, None]).sum(axis=0)
    spread_a = _centred(a, n) / (n**2 * (n - 1.0))[:, None, None]
    spread_c = _centred(c, n)
    joint = spread_a.reshape(len(n), -1).T @ spread_c.reshape(len(n), -1)
    covariance = joint.reshape(levels, levels, arms, arms).transpose(0, 2, 1, 3)
    return _pvalue(gap.ravel(), covariance.reshape(levels * arms, levels * arms))


def _centred(margin: FloatArray, n: FloatArray) -> FloatArray:
    """The matrices n diag(margin) - margin margin' by stratum; margin (S, L), n (S,); returns (S, L, L)."""
    found = -margin[:, :, None] * margin[:, None, :]
    places = np.arange(margin.shape[1])
    found[:, places, places] += n[:, None] * margin
    return found


def _pvalue(vector: FloatArray, covariance: FloatArray) -> float:
    """Chi-squared p-value of a vector in the directions in which it varies; 1 if it does not vary."""
    size = np.sqrt(np.diag(covariance))
    kept = size > 0.0
    if not kept.any():
        return 1.0
    scaled = vector[kept] / size[kept]
    values, directions = np.linalg.eigh(covariance[np.ix_(kept, kept)] / np.outer(size[kept], size[kept]))
    # Given the margins, the deviations in each row and column add up to 0, so some directions do not vary.
    usable = values > _SPAN * values.max()
    statistic = float(((directions.T @ scaled)[usable] ** 2 / values[usable]).sum())
    return float(special.chdtrc(float(usable.sum()), statistic))
