"""Kernels of adaptively binned successive elimination: exact sums, cubes that fall into 2^d cubes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.local.cube_tree import (
    DEPTH,
    LEAF,
    LEAVES,
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
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import (
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

_COUNT, _SUM = 1, 2
_BLOCKS = 3
_SCALAR_COLUMNS = 8
_OUTCOMES = 4


class ABSETables(NamedTuple):
    """What the kernels need to know."""

    n_arms: int
    dimension: int
    horizon: int
    resolution: float
    levels: int
    first_axis: bool
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _radius(tables: ABSETables, state: FloatArray, row: int, arm: int) -> float:
    """U(N, n b^d) = 2 sqrt(2 max(log(n b^d / N), 1) / N) for an arm pulled N times in a cube of side b."""
    pulls = state[row, arm_block(tables, _COUNT) + arm]
    if pulls == 0.0:
        return math.inf
    expected = tables.horizon * math.pow(2.0, -state[row, DEPTH])
    return 2.0 * math.sqrt(2.0 * max(math.log(expected / pulls), 1.0) / pulls)


@kernel
def _widest(tables: ABSETables, state: FloatArray, row: int) -> float:
    """Drop arms whose interval lies below another's; the largest radius of those left, infinite for one."""
    count, total = arm_block(tables, _COUNT), arm_block(tables, _SUM)
    highest = -math.inf
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm) and state[row, count + arm] > 0.0:
            mean = state[row, total + arm] / state[row, count + arm]
            highest = max(highest, mean - _radius(tables, state, row, arm))
    left, widest = 0, 0.0
    for arm in range(tables.n_arms):
        if is_active(tables, state, row, arm):
            radius = _radius(tables, state, row, arm)
            pulls = max(state[row, count + arm], 1.0)
            if state[row, total + arm] / pulls + radius < highest:
                drop(tables, state, row, arm)
            else:
                left += 1
                widest = max(widest, radius)
    return widest if left > 1 else math.inf


@kernel
def _split(tables: ABSETables, state: FloatArray, row: int, source: Any) -> None:
    """Replace a cube by its 2^d subcubes."""
    deep = state[row, DEPTH] + tables.dimension
    place = 0
    while int(state[1 + place, LEAF]) != row:
        place += 1
    old = int(state[SCALARS, LEAVES])
    halve(tables, state, place, source)
    for _ in range(tables.dimension - 1):
        halve(tables, state, place, source)
        for upper in range(old, int(state[SCALARS, LEAVES])):
            if state[int(state[1 + upper, LEAF]), DEPTH] < deep:
                halve(tables, state, upper, source)


@kernel
def _choose(tables: ABSETables, state: FloatArray, context: FloatArray, source: Any) -> int:
    if state[SCALARS, ROUND] == 0.0:
        begin(tables, state)
    row = find_bin(tables, state, context)
    state[SCALARS, VISITED] = row
    return draw_arm(tables, state, row, source)


@kernel
def _update(
    tables: ABSETables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    row = int(state[SCALARS, VISITED])
    if not is_active(tables, state, row, arm):
        return
    state[row, arm_block(tables, _COUNT) + arm] += 1.0
    state[row, arm_block(tables, _SUM) + arm] += reward
    widest = _widest(tables, state, row)
    side = math.pow(2.0, -state[row, DEPTH] / tables.dimension)
    if state[row, DEPTH] < tables.levels * tables.dimension and widest <= tables.resolution * side:
        _split(tables, state, row, source)


@kernel
def _finish(tables: ABSETables, state: FloatArray, outcome: FloatArray) -> None:
    summarise(state, outcome)


@compiled
def _run_block(tables: ABSETables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: ABSETables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


def abse_program(tables: ABSETables) -> Program:
    """Compiled entry point and the size of the state: room for all cubes down to the smallest."""
    rows = 2 ** (1 + tables.levels * tables.dimension)
    width = max(columns(tables.n_arms, tables.dimension, _BLOCKS), _SCALAR_COLUMNS)
    return Program(_run_block, tables, (rows, width), n_outcomes=_OUTCOMES, step=_run_step)
