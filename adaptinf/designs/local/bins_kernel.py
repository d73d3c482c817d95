"""Kernels of the locally private bandit: every participant's report is noisy in every active bin and arm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba.extending import overload
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.local.bins_summary import (
    FULL,
    add_reports,
    bin_columns,
    count_block,
    hold,
    mean_block,
    plan,
    release_all,
    release_stage,
    seen_from,
)
from adaptinf.designs.local.tree import (
    BEGUN,
    BINS,
    CHILD,
    DEPTH,
    LEAF,
    LEAVES,
    VISITED,
    begin,
    draw_arm,
    drop,
    find_bin,
    halve,
    is_active,
    summarise,
)
from adaptinf.privacy.noise import Fixed, laplace
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import ROUND, SCALARS, Results, World, simulate_block
from adaptinf.simulation.steps import Step, pass_round, single_step
from adaptinf.typing import FloatArray, IntArray

_NOISED = 6
_SCALAR_COLUMNS = 8
_OUTCOMES = 5


class LDPTables(NamedTuple):
    """What the kernels need to know of a locally private design.

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
    return scale * (source.standard_gamma(count) - source.standard_gamma(count))


@overload(report_noise, jit_options={"forceinline": True})
def _report_noise_for(source: Any, count: Any, scale: Any) -> Any:
    return _sum_one_by_one if hasattr(source, "instance_class") else _sum_at_once


@kernel
def _estimate(tables: LDPTables, state: FloatArray, row: int) -> None:
    """Write the estimate and the radius of every arm that is left in a bin."""
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
    """Drop arms whose interval lies below another's, then halve the bin where a radius is small."""
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
    """A bin is halved when a radius in it falls below this."""
    return float(tables.refinement * math.pow(2.0, -state[row, DEPTH] / tables.dimension))


@kernel
def _report(
    tables: LDPTables, state: FloatArray, row: int, origin: int, participants: int, source: Any
) -> None:
    """Reports of so many participants on both sums of every arm that is left in a bin."""
    scale = tables.scales[origin]
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            count = report_noise(source, participants, scale)
            add_reports(tables, state, row, arm, origin, count, report_noise(source, participants, scale))


@kernel
def _take(
    tables: LDPTables, state: FloatArray, row: int, arm: int, reward: float, origin: int, source: Any
) -> None:
    """One more participant, whose context lies in the bin of a row; then noise and checks, where due."""
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
    """Begin with one bin at a negative round, and learn from the auxiliary participants up to round 0."""
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
    """What one check makes of the noisy counts and sums of all participants, who have had a single bin.

    Shapes: sums (runs, arms, 2), outcomes (runs, OUTCOMES), which it writes.
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
    """Compiled entry point and the size of the state, for at most so many active bins."""
    width = max(bin_columns(tables.n_arms, tables.dimension, tables.starts.size), _SCALAR_COLUMNS)
    return Program(_run_block, tables, (2 * max_bins, width), n_outcomes=_OUTCOMES, step=_run_step)
