"""Kernels of the locally private bandit: every participant's report is noisy in every active bin and arm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.nonparametric_tree import (
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
from adaptinf.privacy.noise import laplace
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import RELEASED, ROUND, SCALARS, Results, World, simulate_block
from adaptinf.typing import FloatArray, IntArray

__all__ = ["LDPTables", "ldp_program", "released_rows", "report_noise"]

_NOISED, _FULL = 6, 7
_SCALAR_COLUMNS = 8
_OUTCOMES = 5
_RELEASES = 3


class LDPTables(NamedTuple):
    """What the kernels need to know of a locally private design.

    Attributes
    ----------
    n_arms, dimension, horizon : int
        Arms, coordinates of a context, and participants.
    starts, ends : ndarray of int, shape (sources,)
        Rounds after which the participants of each source begin and end: auxiliary ones at negative times,
        the trial itself last, from 0 to the horizon.
    epsilons, scales : ndarray of shape (sources,)
        Privacy parameter of a source's records, and scale of the Laplace noise on each of their numbers.
    contexts : ndarray of shape (auxiliary, dimension)
        Contexts of the auxiliary participants, in their order.
    arms, rewards : ndarray of shape (auxiliary,)
        What they were given, and their rewards.
    enough : float
        Participants from whom on a source counts in a bin, where there are several sources.
    published : bool
        Whether radii are those of the paper.
    width : float
        Squared number of standard deviations in a radius, C; published: C_n.
    warm_up : float
        Participants that a bin must have had before an arm can be dropped.
    reach : float
        Radii that an arm's interval extends to each side.
    refinement : float
        A bin of depth s is halved where a radius falls below this times 2^(-s/d).
    check_every : int
        Participants from one check to the next.
    first_axis : bool
        Whether the first of the longest edges is halved, rather than any.
    status, propensity, released : ndarray
        As in every design.
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
def _count_block(tables: LDPTables, origin: int) -> int:
    """First column of the noisy counts from one source; its noisy sums are the next block."""
    return int(arm_block(tables, 1 + 2 * origin))


@kernel
def _mean_block(tables: LDPTables) -> int:
    """First column of the estimates; radii are the next block."""
    return int(arm_block(tables, 1 + 2 * tables.starts.shape[0]))


@kernel
def _seen(tables: LDPTables, state: FloatArray, row: int, origin: int, end: float) -> float:
    """Participants of a source that a bin has had up to a round."""
    return float(max(min(end, tables.ends[origin]) - max(state[row, BEGUN], tables.starts[origin]), 0.0))


@kernel
def _estimate(tables: LDPTables, state: FloatArray, row: int) -> None:
    """Write the estimate and the radius of every arm that is left in a bin."""
    means = _mean_block(tables)
    origins = tables.starts.shape[0]
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            count = total = spread = squares = larger = 0.0
            for origin in range(origins):
                seen = _seen(tables, state, row, origin, state[SCALARS, ROUND])
                block = _count_block(tables, origin)
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
    mean_block = _mean_block(tables)
    radius_block = mean_block + tables.n_arms
    highest = -math.inf
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            radius = tables.reach * state[row, radius_block + arm]
            highest = max(highest, state[row, mean_block + arm] - radius)
    seen = state[SCALARS, ROUND] - state[row, BEGUN]
    smallest = math.inf
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            radius = state[row, radius_block + arm]
            if seen >= tables.warm_up and highest > state[row, mean_block + arm] + tables.reach * radius:
                drop(tables, state, row, arm)
            else:
                smallest = min(smallest, radius)
    if smallest < tables.refinement * math.pow(2.0, -state[row, DEPTH] / tables.dimension) and not halve(
        tables, state, place, source
    ):
        state[SCALARS, _FULL] = 1.0


@kernel
def _report(
    tables: LDPTables, state: FloatArray, row: int, origin: int, participants: int, source: Any
) -> None:
    """Add the noise of so many participants to both sums of every arm that is left in a bin."""
    block = _count_block(tables, origin)
    scale = tables.scales[origin]
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            state[row, block + arm] += report_noise(source, participants, scale)
            state[row, block + tables.n_arms + arm] += report_noise(source, participants, scale)


@kernel
def _take(
    tables: LDPTables, state: FloatArray, row: int, arm: int, reward: float, origin: int, source: Any
) -> None:
    """One more participant, whose context lies in the bin of a row; then noise and checks, where due."""
    state[SCALARS, ROUND] += 1.0
    now = int(state[SCALARS, ROUND])
    if is_active(tables, state, row, arm):
        block = _count_block(tables, origin)
        state[row, block + arm] += 1.0
        state[row, block + tables.n_arms + arm] += min(max(reward, 0.0), 1.0)
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
    if state[SCALARS, ROUND] == tables.horizon and tables.released.shape[0] > 0:
        _release_all(tables, state)


@kernel
def _write(
    tables: LDPTables, state: FloatArray, when: float, name: int, group: int, value: float, scale: float
) -> None:
    at = int(state[SCALARS, RELEASED])
    tables.released[at, 0] = when
    tables.released[at, 1] = name
    tables.released[at, 2] = group
    tables.released[at, 3] = value
    tables.released[at, 4] = scale
    state[SCALARS, RELEASED] = at + 1.0


@kernel
def _release_all(tables: LDPTables, state: FloatArray) -> None:
    """Note the corners of every bin, and for each of its arms the trial's participants and noisy sums."""
    origin = tables.starts.shape[0] - 1
    scale = tables.scales[origin]
    block = _count_block(tables, origin)
    for group in range(int(state[SCALARS, BINS])):
        row = 1 + group
        for edge in range(2 * tables.dimension):
            when = max(state[row, BEGUN], 0.0)
            _write(tables, state, when, edge, group, state[row, EDGES + edge], 0.0)
        for arm in range(tables.n_arms):
            end = _last_report(tables, state, row, arm)
            participants = _seen(tables, state, row, origin, end)
            if participants > 0.0:
                name = 2 * tables.dimension + _RELEASES * arm
                _write(tables, state, end, name, group, participants, 0.0)
                _write(tables, state, end, name + 1, group, state[row, block + arm], scale)
                _write(tables, state, end, name + 2, group, state[row, block + tables.n_arms + arm], scale)


@kernel
def _last_report(tables: LDPTables, state: FloatArray, row: int, arm: int) -> float:
    """Round of the last report on an arm of a bin; where it began, or earlier, if there was none."""
    stopped = state[row, arm_block(tables, STOPPED) + arm]
    if stopped != 0.0:
        return float(state[row, BEGUN] + stopped)
    if state[row, AXIS] > 0.0:
        return float(state[int(state[row, CHILD]), BEGUN])
    return float(state[SCALARS, ROUND])


@kernel
def _finish(tables: LDPTables, state: FloatArray, outcome: FloatArray) -> None:
    summarise(state, outcome)
    outcome[4] = state[SCALARS, _FULL]


@compiled
def _run_block(
    tables: LDPTables, world: World, rng: np.random.Generator, state: FloatArray, results: Results
) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


def ldp_program(tables: LDPTables, max_bins: int) -> Program:
    """Compiled entry point and the size of the state, for at most so many active bins."""
    blocks = 3 + 2 * tables.starts.size
    width = max(columns(tables.n_arms, tables.dimension, blocks), _SCALAR_COLUMNS)
    return Program(_run_block, tables, (2 * max_bins, width), n_outcomes=_OUTCOMES)


def released_rows(n_arms: int, dimension: int, max_bins: int) -> int:
    """Most releases of a run."""
    return (2 * max_bins - 1) * (2 * dimension + _RELEASES * n_arms)
