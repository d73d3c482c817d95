"""What a locally private run tells its server: sums of the reports, plain and weighted for intervals.

The state of a bin has blocks of one entry per arm: `STOPPED`, noisy counts and sums from each source,
estimates and radii; what participants have to report since the last check; then, used in recorded runs alone,
three weighted sums, and three columns of its own. All but what is yet to be reported is the server's.
"""

from __future__ import annotations

import math
from typing import Any

from adaptinf.compilation import kernel
from adaptinf.designs.local.tree import (
    AXIS,
    BEGUN,
    BINS,
    CHILD,
    EDGES,
    LEAF,
    LEAVES,
    STOPPED,
    arm_block,
    columns,
    is_active,
)
from adaptinf.simulation.run import RELEASED, ROUND, SCALARS
from adaptinf.typing import FloatArray

FULL = 7
"""Scalar: 1 from when there was no room to halve a bin."""

_WEIGHT, _SPENT, _TOLD = range(3)
_SUMS = 3
_SPARE = 1.1


def bin_columns(n_arms: int, dimension: int, sources: int) -> int:
    """Columns that a bin needs."""
    return columns(n_arms, dimension, 5 + 2 * sources + _SUMS) + 3


def released_rows(n_arms: int, dimension: int, max_bins: int) -> int:
    """Most releases of a run: corners and sums of every bin, and sums of its stages."""
    stages = sum(1 + _SUMS * left for left in range(1, n_arms + 1))
    return (2 * max_bins - 1) * (2 * dimension + _SUMS * n_arms + stages)


@kernel
def count_block(tables: Any, origin: int) -> int:
    """First column of the noisy counts from one source; its noisy sums are the next block."""
    return int(arm_block(tables, 1 + 2 * origin))


@kernel
def mean_block(tables: Any) -> int:
    """First column of the estimates; radii are the next block."""
    return int(arm_block(tables, 1 + 2 * tables.starts.shape[0]))


@kernel
def _unsent_block(tables: Any) -> int:
    """First column of counts to be reported at the next check; the rewards to be reported follow."""
    return int(arm_block(tables, 3 + 2 * tables.starts.shape[0]))


@kernel
def _weighted_block(tables: Any) -> int:
    """First column of the trial's weighted counts; weighted sums and squared-weight counts follow."""
    return int(arm_block(tables, 5 + 2 * tables.starts.shape[0]))


@kernel
def _own_column(tables: Any, which: int) -> int:
    """Column of the weight of the reports to come, of the budget spent, or of the last stage's end."""
    return int(arm_block(tables, 5 + 2 * tables.starts.shape[0] + _SUMS)) + which


@kernel
def seen_from(tables: Any, state: FloatArray, row: int, origin: int, end: float) -> float:
    """Participants of a source that a bin has had up to a round."""
    return float(max(min(end, tables.ends[origin]) - max(state[row, BEGUN], tables.starts[origin]), 0.0))


@kernel
def hold(tables: Any, state: FloatArray, row: int, arm: int, reward: float) -> None:
    """Keep what a participant has to report on an arm until the noise of the reports joins it."""
    block = _unsent_block(tables)
    state[row, block + arm] += 1.0
    state[row, block + tables.n_arms + arm] += reward


@kernel
def add_reports(
    tables: Any, state: FloatArray, row: int, arm: int, origin: int, count_noise: float, total_noise: float
) -> None:
    """Report what was held with its noise, as one number each: the server has no other.

    Added to the count and the sum of the arm, and to the weighted ones if the trial is recorded.
    """
    held = _unsent_block(tables) + arm
    count = state[row, held] + count_noise
    total = state[row, held + tables.n_arms] + total_noise
    state[row, held] = state[row, held + tables.n_arms] = 0.0
    block = count_block(tables, origin)
    state[row, block + arm] += count
    state[row, block + tables.n_arms + arm] += total
    if tables.released.shape[0] > 0 and origin == tables.starts.shape[0] - 1:
        weight = state[row, _own_column(tables, _WEIGHT)]
        weighted = _weighted_block(tables) + arm
        state[row, weighted] += weight * count
        state[row, weighted + tables.n_arms] += weight * total
        state[row, weighted + 2 * tables.n_arms] += weight * weight * count


@kernel
def plan(tables: Any, state: FloatArray, row: int, radius: float, threshold: float) -> None:
    """Fix the weight of a bin's reports up to the next check, from what the server knows now.

    The squared weights of a bin's life add up to at most 1, its budget. Of a life of L participants the
    first t spend sqrt(t / L): more at its beginning, for arms that will be dropped. L is predicted: a
    radius falls like 1 / sqrt(t), and the bin is halved when it gets below the threshold, or the trial ends.
    """
    now = state[SCALARS, ROUND]
    rest = tables.horizon - now
    if tables.released.shape[0] == 0 or now < 0.0 or rest == 0.0:
        return
    gap = min(float(tables.check_every), rest)
    seen = now - max(state[row, BEGUN], 0.0)
    life = seen + rest
    if state[row, BEGUN] >= 0.0 and state[SCALARS, FULL] == 0.0 and threshold > 0.0:
        ratio = radius / threshold
        life = min(life, max(seen * ratio * ratio if seen > 0.0 else math.inf, _SPARE * (seen + gap)))
    spent = _own_column(tables, _SPENT)
    share = (math.sqrt(seen + gap) - math.sqrt(seen)) / (math.sqrt(life) - math.sqrt(seen))
    spend = (1.0 - state[row, spent]) * share
    state[row, _own_column(tables, _WEIGHT)] = math.sqrt(spend / gap)
    state[row, spent] += spend


@kernel
def _write(
    tables: Any, state: FloatArray, when: float, name: int, group: int, value: float, scale: float
) -> None:
    at = int(state[SCALARS, RELEASED])
    tables.released[at, 0] = when
    tables.released[at, 1] = name
    tables.released[at, 2] = group
    tables.released[at, 3] = value
    tables.released[at, 4] = scale
    state[SCALARS, RELEASED] = at + 1.0


@kernel
def release_stage(tables: Any, state: FloatArray, row: int) -> None:
    """Note the weighted sums of a bin's arms, before its arms change or it is halved; once a round."""
    now = state[SCALARS, ROUND]
    told = _own_column(tables, _TOLD)
    begun = max(state[row, BEGUN], 0.0)
    if tables.released.shape[0] == 0 or now <= begun or state[row, told] == now:
        return
    state[row, told] = now
    scale = tables.scales[tables.starts.shape[0] - 1]
    block = _weighted_block(tables)
    first = 2 * tables.dimension + _SUMS * tables.n_arms
    spent = state[row, _own_column(tables, _SPENT)]
    _write(tables, state, now, first + _SUMS * tables.n_arms, row - 1, spent, 0.0)
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            for part in range(_SUMS):
                value = state[row, block + part * tables.n_arms + arm]
                _write(tables, state, now, first + _SUMS * arm + part, row - 1, value, scale)


@kernel
def release_all(tables: Any, state: FloatArray) -> None:
    """Note the corners of every bin, and for each of its arms the trial's participants and noisy sums."""
    if tables.released.shape[0] == 0:
        return
    for place in range(int(state[SCALARS, LEAVES])):
        release_stage(tables, state, int(state[1 + place, LEAF]))
    origin = tables.starts.shape[0] - 1
    scale = tables.scales[origin]
    block = count_block(tables, origin)
    for group in range(int(state[SCALARS, BINS])):
        row = 1 + group
        for edge in range(2 * tables.dimension):
            when = max(state[row, BEGUN], 0.0)
            _write(tables, state, when, edge, group, state[row, EDGES + edge], 0.0)
        for arm in range(tables.n_arms):
            end = _last_report(tables, state, row, arm)
            participants = seen_from(tables, state, row, origin, end)
            if participants > 0.0:
                name = 2 * tables.dimension + _SUMS * arm
                _write(tables, state, end, name, group, participants, 0.0)
                _write(tables, state, end, name + 1, group, state[row, block + arm], scale)
                _write(tables, state, end, name + 2, group, state[row, block + tables.n_arms + arm], scale)


@kernel
def _last_report(tables: Any, state: FloatArray, row: int, arm: int) -> float:
    """Round of the last report on an arm of a bin; where it began, or earlier, if there was none."""
    stopped = state[row, arm_block(tables, STOPPED) + arm]
    if stopped != 0.0:
        return float(state[row, BEGUN] + stopped)
    if state[row, AXIS] > 0.0:
        return float(state[int(state[row, CHILD]), BEGUN])
    return float(state[SCALARS, ROUND])
