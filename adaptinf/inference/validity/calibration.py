"""Are logged propensities those with which arms were chosen? A check that is quick enough for every fit.

Where e are the probabilities of the arms given the past and the context, the sums of 1{A = a} - e(a) over any
rounds that are picked by the past and the context are martingales with predictable variance the sum of
e (1 - e), whatever the design. Rounds are picked by the propensity itself, by time and by contexts.

References
----------
Brown (1971), "Martingale central limit theorems".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from adaptinf.inference.validity.assignment import context_levels
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums.cells import Cells

ALARM = 1e-4
"""P-value, times the number of arms and of ways to pick rounds, below which propensities are doubted."""
_LEAST_VARIANCE = 25.0
_PIECES, _STRETCHES, _CONTEXTS = 20, 8, 10
_BLOCK, _MOST = 4096, 2_000_000


def miscalibration(log: AdaptiveLog, draws: IntArray | None = None) -> str:
    """In what arms were not chosen as often as their propensities say; empty where nothing shows.

    Shapes: draws (n,), the rounds whose arm was drawn, all by default.

    Of a long log, blocks of rounds at equal distances are looked at, 2,000,000 propensities in all.
    """
    rows = _rows(log.n_rounds if draws is None else len(draws), log.n_arms)
    rows = rows if draws is None else draws[rows]
    arrays = log.arrays
    assert arrays.propensity is not None
    action = arrays.action[rows]
    if arrays.propensities is not None:
        every = arrays.propensities[rows]
    elif log.n_arms == 2:
        own = arrays.propensity[rows]
        every = np.where(action[:, None] == np.arange(2), own[:, None], 1.0 - own[:, None])
    else:
        return ""
    names = list(arrays.context)[:_CONTEXTS]
    ways = 2 + len(names)
    time = np.arange(len(action)) * _STRETCHES // max(1, len(action))
    pieces = np.minimum((every * _PIECES).astype(np.int64), _PIECES - 1)
    if _smallest_pvalue(action, every, pieces, _PIECES) * ways < ALARM:
        return "at some levels of them"
    if _smallest_pvalue(action, every, time[:, None], _STRETCHES) * ways < ALARM:
        return "over time"
    for name in names:
        level, levels = context_levels(np.asarray(arrays.context[name])[rows])
        if _smallest_pvalue(action, every, level[:, None], levels) * ways < ALARM:
            return f"at some values of {name}"
    return ""


def _rows(rounds: int, n_arms: int) -> slice | IntArray:
    """Rounds to look at: all of a short log, else blocks at equal distances."""
    most = max(_BLOCK, _MOST // n_arms)
    if rounds <= most:
        return slice(None)
    starts = np.linspace(0, rounds - _BLOCK, most // _BLOCK).astype(np.int64)
    rows = (starts[:, None] + np.arange(_BLOCK)[None, :]).ravel()
    # Blocks may overlap; they come in order.
    return rows[np.diff(np.maximum.accumulate(rows), prepend=-1) > 0]


def miscalibrated_sums(cells: Cells) -> str:
    """The same of sums by batch and arm, whose batches are picked by their mean propensities and by time."""
    rounds, ways = cells.rounds[:, None], 2
    pieces = np.minimum((cells.expected / rounds * _PIECES).astype(np.int64), _PIECES - 1)
    if _pvalue_of_groups(cells, pieces, _PIECES) * ways < ALARM:
        return "at some levels of them"
    time = (np.cumsum(rounds) - cells.rounds) * _STRETCHES // cells.rounds.sum()
    stretches = np.broadcast_to(time.astype(np.int64)[:, None], pieces.shape)
    return "over time" if _pvalue_of_groups(cells, stretches, _STRETCHES) * ways < ALARM else ""


def _pvalue_of_groups(cells: Cells, group: IntArray, groups: int) -> float:
    """Smallest p-value of the arms, times their number, by groups of batches; group (B, K)."""
    n_arms = group.shape[1]
    place = (group * n_arms + np.arange(n_arms)).ravel()
    observed, expected, variance = (
        np.bincount(place, weights=part.ravel(), minlength=groups * n_arms).astype(np.float64)
        for part in (cells.pulls, cells.expected, cells.spread)
    )
    shape = groups, n_arms
    return excess_pvalue(observed.reshape(shape), expected.reshape(shape), variance.reshape(shape))


def _smallest_pvalue(action: IntArray, every: FloatArray, group: IntArray, groups: int) -> float:
    """Smallest p-value of the arms, times their number, of choices against propensities by groups of rounds.

    Shapes: action (T,), every (T, K), group (T, K), or (T, 1) for all arms.
    """
    n_arms = every.shape[1]
    cell = (group * n_arms + np.arange(n_arms)).ravel()
    size = groups * n_arms
    shape = (groups, n_arms)
    expected = np.bincount(cell, weights=every.ravel(), minlength=size).reshape(shape)
    variance = np.bincount(cell, weights=(every * (1.0 - every)).ravel(), minlength=size).reshape(shape)
    own = np.broadcast_to(group, every.shape)[np.arange(len(action)), action]
    observed = np.bincount(own * n_arms + action, minlength=size).reshape(shape)
    found = (np.asarray(part, dtype=np.float64) for part in (observed, expected, variance))
    return excess_pvalue(*found)


def excess_pvalue(observed: FloatArray, expected: FloatArray, variance: FloatArray) -> float:
    """Smallest p-value of the arms, times their number, of counts by group; shapes (groups, K)."""
    usable = variance >= _LEAST_VARIANCE
    squares = np.where(usable, (observed - expected) ** 2 / np.where(usable, variance, 1.0), 0.0)
    df = usable.sum(axis=0)
    found = np.where(df > 0, special.chdtrc(np.maximum(df, 1), squares.sum(axis=0)), 1.0)
    return float(found.min(initial=1.0) * observed.shape[1])


def calibration_caution(found: str) -> tuple[str, ...]:
    """The caution under a table that divides by such propensities; none where nothing shows."""
    if not found:
        return ()
    return (
        f"arms were not chosen as often as the logged propensities say, {found} (p < {ALARM:g}): what "
        "divides by them is not to be trusted (look for propensities logged after the choice, averages in "
        "their place, or rounds that were lost; diagnose shows where)",
    )
