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
_COUNT, _SUM, _MEAN, _RADIUS = range(1, 5)
_BLOCKS = 5
_OUTCOMES = 5
_RELEASES = 3


class LDPTables(NamedTuple):
    """What the kernels need to know of a locally private design.

    Attributes
    ----------
    n_arms, dimension, horizon : int
        Arms, coordinates of a context, and participants.
    scale : float
        Of the Laplace noise that a participant adds to each number.
    epsilon : float
        Privacy parameter of a record.
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
    scale: float
    epsilon: float
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
    participants = state[SCALARS, ROUND] - state[row, BEGUN]
    spread = tables.width * participants / (tables.epsilon * tables.epsilon)
    shortfall = math.sqrt(32.0 * spread)
    count_block, sum_block = arm_block(tables, _COUNT), arm_block(tables, _SUM)
    mean_block, radius_block = arm_block(tables, _MEAN), arm_block(tables, _RADIUS)
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            count = state[row, count_block + arm]
            radius = math.inf
            if tables.published:
                if count != 0.0:
                    radius = math.sqrt(max(spread, tables.width * count)) / abs(count)
            elif count > shortfall:
                radius = math.sqrt(64.0 * spread + 0.25 * tables.width * count) / (count - shortfall)
            state[row, radius_block + arm] = radius
            state[row, mean_block + arm] = state[row, sum_block + arm] / count if count != 0.0 else 0.0


@kernel
def _check(tables: LDPTables, state: FloatArray, place: int, source: Any) -> None:
    """Drop arms whose interval lies below another's, then halve the bin where a radius is small."""
    row = int(state[1 + place, LEAF])
    _estimate(tables, state, row)
    mean_block, radius_block = arm_block(tables, _MEAN), arm_block(tables, _RADIUS)
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
def _report(tables: LDPTables, state: FloatArray, row: int, participants: int, source: Any) -> None:
    """Add the noise of so many participants to both sums of every arm that is left in a bin."""
    count_block, sum_block = arm_block(tables, _COUNT), arm_block(tables, _SUM)
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            state[row, count_block + arm] += report_noise(source, participants, tables.scale)
            state[row, sum_block + arm] += report_noise(source, participants, tables.scale)


@kernel
def _choose(tables: LDPTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    if state[SCALARS, ROUND] == 0.0:
        begin(tables, state)
    row = find_bin(tables, state, context)
    state[SCALARS, VISITED] = row
    return draw_arm(tables, state, row, source)


@kernel
def _update(
    tables: LDPTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    now = int(state[SCALARS, ROUND])
    row = int(state[SCALARS, VISITED])
    if is_active(tables, state, row, arm):
        state[row, arm_block(tables, _COUNT) + arm] += 1.0
        state[row, arm_block(tables, _SUM) + arm] += min(max(reward, 0.0), 1.0)
    if now % tables.check_every == 0 or now == tables.horizon:
        participants = now - int(state[SCALARS, _NOISED])
        state[SCALARS, _NOISED] = now
        for place in range(int(state[SCALARS, LEAVES])):
            _report(tables, state, int(state[1 + place, LEAF]), participants, source)
            _check(tables, state, place, source)
        if now == tables.horizon and tables.released.shape[0] > 0:
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
    """Note the corners of every bin, and for each of its arms the participants and both noisy sums."""
    stopped = arm_block(tables, STOPPED)
    for group in range(int(state[SCALARS, BINS])):
        row = 1 + group
        when = state[row, BEGUN]
        for edge in range(2 * tables.dimension):
            _write(tables, state, when, edge, group, state[row, EDGES + edge], 0.0)
        for arm in range(tables.n_arms):
            participants = _participants(state, row, state[row, stopped + arm])
            if participants > 0.0:
                when = state[row, BEGUN] + participants
                name = 2 * tables.dimension + _RELEASES * arm
                _write(tables, state, when, name, group, participants, 0.0)
                count = state[row, arm_block(tables, _COUNT) + arm]
                _write(tables, state, when, name + 1, group, count, tables.scale)
                total = state[row, arm_block(tables, _SUM) + arm]
                _write(tables, state, when, name + 2, group, total, tables.scale)


@kernel
def _participants(state: FloatArray, row: int, stopped: float) -> float:
    """Participants who reported on an arm of a bin; -1 where it never had the arm."""
    if stopped != 0.0:
        return stopped
    end = state[SCALARS, ROUND]
    if state[row, AXIS] > 0.0:
        end = state[int(state[row, CHILD]), BEGUN]
    return float(end - state[row, BEGUN])


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
    width = max(columns(tables.n_arms, tables.dimension, _BLOCKS), _SCALAR_COLUMNS)
    return Program(_run_block, tables, (2 * max_bins, width), n_outcomes=_OUTCOMES)


def released_rows(n_arms: int, dimension: int, max_bins: int) -> int:
    """Most releases of a run."""
    return (2 * max_bins - 1) * (2 * dimension + _RELEASES * n_arms)
