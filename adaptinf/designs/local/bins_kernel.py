"""Kernels of the locally private bandit: every participant's report is noisy for every active bin and arm.

The state of a bin has blocks with one entry per arm: `STOPPED`, noisy counts and sums from each source,
estimates and radii; values that participants are to report, stored since the last check; then, used only in
recorded runs, three weighted sums, and three columns for the bin itself. The server knows everything except
the values that are yet to be reported.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba.extending import overload
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.local.cube_tree import (
    AXIS,
    BEGUN,
    BINS,
    CHILD,
    DEPTH,
    EDGES,
    LEAF,
    LEAVES,
    STOPPED,
    VISITED,
    arm_block,
    begin,
    columns,
    draw_arm,
    drop,
    find_bin,
    halve,
    is_active,
    summarise,
)
from adaptinf.privacy.noise import Fixed, laplace
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import (
    RELEASED,
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.typing import FloatArray, IntArray

FULL = 7
"""Scalar: 1 once no more bins can be halved."""

_WEIGHT, _SPENT, _TOLD = range(3)
_SUMS = 3
_SPARE = 1.1


def bin_columns(n_arms: int, dimension: int, sources: int) -> int:
    """Number of columns per bin."""
    return columns(n_arms, dimension, 5 + 2 * sources + _SUMS) + 3


def released_rows(n_arms: int, dimension: int, max_bins: int) -> int:
    """Largest number of releases in a run: corners and sums of every bin, and sums of its stages."""
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
    """First column of counts to be reported at the next check; the sums of rewards follow."""
    return int(arm_block(tables, 3 + 2 * tables.starts.shape[0]))


@kernel
def _weighted_block(tables: Any) -> int:
    """First column of the trial's weighted counts; weighted sums and squared-weight counts follow."""
    return int(arm_block(tables, 5 + 2 * tables.starts.shape[0]))


@kernel
def _own_column(tables: Any, which: int) -> int:
    """Column for the weight of the next reports, the budget spent, or the end of the last stage."""
    return int(arm_block(tables, 5 + 2 * tables.starts.shape[0] + _SUMS)) + which


@kernel
def seen_from(tables: Any, state: FloatArray, row: int, origin: int, end: float) -> float:
    """Number of participants from a source that a bin has had up to a given round."""
    return float(max(min(end, tables.ends[origin]) - max(state[row, BEGUN], tables.starts[origin]), 0.0))


@kernel
def hold(tables: Any, state: FloatArray, row: int, arm: int, reward: float) -> None:
    """Store a participant's values for an arm until noise is added to the reports."""
    block = _unsent_block(tables)
    state[row, block + arm] += 1.0
    state[row, block + tables.n_arms + arm] += reward


@kernel
def add_reports(
    tables: Any, state: FloatArray, row: int, arm: int, origin: int, count_noise: float, total_noise: float
) -> None:
    """Report each stored value plus noise as one number, which is all that the server receives."""
    # The report is added to the arm's count and sum; recorded trials also need weighted sums, because these
    # are released.
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
    """Determine the weight of a bin's reports up to the next check from the server's present knowledge."""
    # The squared weights over a bin's lifetime add up to at most 1, its budget. Of a lifetime of L
    # participants, the first t spend sqrt(t / L): more at the beginning, for arms that will be dropped. L is
    # predicted: a radius decreases like 1 / sqrt(t), and the bin is halved when its radius falls below the
    # threshold, unless the trial ends first.
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
    """Record the weighted sums of a bin's arms, once per round, before its arms change or it is halved."""
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
    """Record the corners of every bin and, for each arm, the trial's participants and noisy sums."""
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
    """Round of the last report on an arm of a bin; if there was none, at most the round in which it began."""
    stopped = state[row, arm_block(tables, STOPPED) + arm]
    if stopped != 0.0:
        return float(state[row, BEGUN] + stopped)
    if state[row, AXIS] > 0.0:
        return float(state[int(state[row, CHILD]), BEGUN])
    return float(state[SCALARS, ROUND])


_NOISED = 6
_SCALAR_COLUMNS = 8
_OUTCOMES = 5


class LDPTables(NamedTuple):
    """Inputs to the kernels for a locally private design.

    Shapes: starts, ends (sources,), epsilons, scales (sources,), contexts (auxiliary, dimension), arms,
    rewards (auxiliary,).
    """

    n_arms: int
    dimension: int
    horizon: int
    starts: IntArray
    ends: IntArray
    epsilons: FloatArray
    scales: FloatArray
    contexts: FloatArray
    arms: IntArray
    rewards: FloatArray
    enough: float
    published: bool
    width: float
    warm_up: float
    reach: float
    refinement: float
    check_every: int
    first_axis: bool
    status: IntArray
    propensity: FloatArray
    released: FloatArray


def report_noise(source: Any, count: int, scale: float) -> float:
    """Sum of `count` Laplace draws of the given scale."""
    return float(_sum_one_by_one(source, count, scale))


def _sum_one_by_one(source: Any, count: Any, scale: Any) -> Any:
    total = 0.0
    for _ in range(count):
        total += laplace(source, scale)
    return total


def _sum_at_once(source: Any, count: Any, scale: Any) -> Any:
    if count == 1:
        return laplace(source, scale)
    # A Laplace variable is a difference of two exponential variables, and sums of these are Gamma variables,
    # so two draws replace `count`.
    return scale * (source.standard_gamma(count) - source.standard_gamma(count))


@overload(report_noise, jit_options={"forceinline": True})
def _report_noise_for(source: Any, count: Any, scale: Any) -> Any:
    return _sum_one_by_one if hasattr(source, "instance_class") else _sum_at_once


@kernel
def _estimate(tables: LDPTables, state: FloatArray, row: int) -> None:
    """Write the estimate and the radius for every remaining arm in a bin."""
    means = mean_block(tables)
    origins = tables.starts.shape[0]
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            count = total = spread = squares = larger = 0.0
            for origin in range(origins):
                seen = seen_from(tables, state, row, origin, state[SCALARS, ROUND])
                block = count_block(tables, origin)
                own = state[row, block + arm]
                precision = tables.epsilons[origin] * tables.epsilons[origin]
                weight = 1.0
                if origins > 1:
                    if seen == 0.0 or seen < tables.enough:
                        continue
                    weight = min(abs(precision * own / seen), 1.0)
                count += weight * own
                total += weight * state[row, block + tables.n_arms + arm]
                spread += weight * weight * seen / precision
                squares += weight * weight * own
                larger += weight * weight * max(seen / precision, own)
            radius = math.inf
            shortfall = math.sqrt(32.0 * tables.width * spread)
            if tables.published:
                if count != 0.0:
                    radius = math.sqrt(tables.width * larger) / abs(count)
            elif count > shortfall:
                variance = tables.width * (64.0 * spread + 0.25 * max(squares, 0.0))
                radius = math.sqrt(variance) / (count - shortfall)
            state[row, means + tables.n_arms + arm] = radius
            state[row, means + arm] = total / count if count != 0.0 else 0.0


@kernel
def _check(tables: LDPTables, state: FloatArray, place: int, source: Any) -> None:
    """Drop arms whose interval lies below another arm's, then halve the bin if a radius is small."""
    row = int(state[1 + place, LEAF])
    _estimate(tables, state, row)
    means = mean_block(tables)
    radii = means + tables.n_arms
    highest = -math.inf
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            radius = tables.reach * state[row, radii + arm]
            highest = max(highest, state[row, means + arm] - radius)
    seen = state[SCALARS, ROUND] - state[row, BEGUN]
    smallest = math.inf
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            radius = state[row, radii + arm]
            if seen >= tables.warm_up and highest > state[row, means + arm] + tables.reach * radius:
                release_stage(tables, state, row)
                drop(tables, state, row, arm)
            else:
                smallest = min(smallest, radius)
    first, bins = row, 1
    if smallest < _threshold(tables, state, row):
        if halve(tables, state, place, source):
            release_stage(tables, state, row)
            first, bins = int(state[row, CHILD]), 2
            smallest = math.inf
        else:
            state[SCALARS, FULL] = 1.0
    for planned in range(first, first + bins):
        _plan(tables, state, planned, smallest)


@kernel
def _plan(tables: LDPTables, state: FloatArray, row: int, radius: float) -> None:
    if state[SCALARS, ROUND] > 0.0:
        plan(tables, state, row, radius, _threshold(tables, state, row))


@kernel
def _threshold(tables: LDPTables, state: FloatArray, row: int) -> float:
    """The radius below which a bin is halved."""
    return float(tables.refinement * math.pow(2.0, -state[row, DEPTH] / tables.dimension))


@kernel
def _report(
    tables: LDPTables, state: FloatArray, row: int, origin: int, participants: int, source: Any
) -> None:
    """Report for this number of participants on both sums of every remaining arm in a bin."""
    scale = tables.scales[origin]
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            count = report_noise(source, participants, scale)
            add_reports(tables, state, row, arm, origin, count, report_noise(source, participants, scale))


@kernel
def _take(
    tables: LDPTables, state: FloatArray, row: int, arm: int, reward: float, origin: int, source: Any
) -> None:
    """Process a participant whose context lies in the bin of a row; then add noise and check, if due."""
    state[SCALARS, ROUND] += 1.0
    now = int(state[SCALARS, ROUND])
    if is_active(tables, state, row, arm):
        hold(tables, state, row, arm, min(max(reward, 0.0), 1.0))
    if (now - tables.starts[origin]) % tables.check_every == 0 or now == tables.ends[origin]:
        participants = now - int(state[SCALARS, _NOISED])
        state[SCALARS, _NOISED] = now
        for place in range(int(state[SCALARS, LEAVES])):
            _report(tables, state, int(state[1 + place, LEAF]), origin, participants, source)
            _check(tables, state, place, source)


@kernel
def _jump_start(tables: LDPTables, state: FloatArray, source: Any) -> None:
    """Start with one bin at a negative round, and learn from the auxiliary participants up to round 0."""
    begin(tables, state)
    state[SCALARS, ROUND] = state[SCALARS, _NOISED] = state[1, BEGUN] = tables.starts[0]
    participant = 0
    for origin in range(tables.starts.shape[0] - 1):
        for _ in range(tables.starts[origin], tables.ends[origin]):
            row = find_bin(tables, state, tables.contexts[participant])
            arm = tables.arms[participant]
            _take(tables, state, row, arm, tables.rewards[participant], origin, source)
            participant += 1
    for place in range(int(state[SCALARS, LEAVES])):
        plan(tables, state, int(state[1 + place, LEAF]), math.inf, 0.0)


@kernel
def _choose(tables: LDPTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    if state[SCALARS, BINS] == 0.0:
        _jump_start(tables, state, source)
    row = find_bin(tables, state, context)
    state[SCALARS, VISITED] = row
    return draw_arm(tables, state, row, source)


@kernel
def _update(
    tables: LDPTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    _take(tables, state, int(state[SCALARS, VISITED]), arm, reward, tables.starts.shape[0] - 1, source)
    if state[SCALARS, ROUND] == tables.horizon:
        release_all(tables, state)


@kernel
def _finish(tables: LDPTables, state: FloatArray, outcome: FloatArray) -> None:
    summarise(state, outcome)
    outcome[4] = state[SCALARS, FULL]


@compiled
def _run_block(tables: LDPTables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: LDPTables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


@compiled
def check_sums(
    tables: LDPTables, sums: FloatArray, source: Fixed, state: FloatArray, outcomes: FloatArray
) -> None:
    """Result of one check on the noisy counts and sums of all participants, who shared a single bin.

    Shapes: sums (runs, arms, 2), outcomes (runs, OUTCOMES); the function writes the outcomes.
    """
    for run in range(sums.shape[0]):
        state[:] = 0.0
        begin(tables, state)
        state[SCALARS, ROUND] = tables.horizon
        for arm in range(tables.n_arms):
            add_reports(tables, state, 1, arm, 0, sums[run, arm, 0], sums[run, arm, 1])
        _check(tables, state, 0, source)
        _finish(tables, state, outcomes[run])


def ldp_program(tables: LDPTables, max_bins: int) -> Program:
    """Compiled entry point and the size of the state, for a maximum number of active bins."""
    width = max(bin_columns(tables.n_arms, tables.dimension, tables.starts.size), _SCALAR_COLUMNS)
    return Program(_run_block, tables, (2 * max_bins, width), n_outcomes=_OUTCOMES, step=_run_step)
