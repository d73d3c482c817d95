"""A partition of the unit cube, refined by halving a longest edge, and the kernels of ABSE on it.

Row 0 of the state contains the scalars, row 1 + i the bin number i; bin 0 is the cube. A bin that is halved
keeps its row, and its halves are given the next two numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.noise import uniform
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

BINS, LEAVES, VISITED, DROPPED = range(2, 6)
"""Scalars: number of bins, active bins, row of the bin with the round's context, arms dropped."""

AXIS, CHILD, DEPTH, BEGUN, LEAF, LEFT = range(6)
"""Columns of a bin: 1 + the coordinate along which it was halved (0 while it is active), row of its lower
half, number of halvings, round after which it began, row of the active bin at this position of their list,
and number of remaining arms."""

EDGES = 6
"""First of the columns with the corners of a bin: d lower ends, then d upper ends."""
STOPPED = 0
"""First block of columns with one entry per arm: number of participants after which the arm was dropped, or
0."""


@kernel
def edge_column(tables: Any, high: int, axis: int) -> int:
    """Column of a bin's low (0) or high (1) end along an axis."""
    return EDGES + high * int(tables.dimension) + axis


@kernel
def arm_block(tables: Any, block: int) -> int:
    """First column of a block with one entry per arm."""
    return EDGES + 2 * int(tables.dimension) + block * int(tables.n_arms)


def columns(n_arms: int, dimension: int, blocks: int) -> int:
    """Number of columns that a bin needs, given this number of blocks with one entry per arm."""
    return EDGES + 2 * dimension + blocks * n_arms


@kernel
def is_active(tables: Any, state: FloatArray, row: int, arm: int) -> bool:
    """Whether an arm remains in a bin."""
    return bool(state[row, arm_block(tables, STOPPED) + arm] == 0.0)


@kernel
def begin(tables: Any, state: FloatArray) -> None:
    """Make the cube the only bin, with all arms."""
    state[SCALARS, BINS] = 1.0
    state[SCALARS, LEAVES] = 1.0
    state[1, LEAF] = 1.0
    state[1, LEFT] = tables.n_arms
    for axis in range(tables.dimension):
        state[1, edge_column(tables, 1, axis)] = 1.0


@kernel
def find_bin(tables: Any, state: FloatArray, context: FloatArray) -> int:
    """Row of the active bin that contains the context; a midpoint belongs to the upper half."""
    row = 1
    while state[row, AXIS] > 0.0:
        axis = int(state[row, AXIS]) - 1
        child = int(state[row, CHILD])
        row = child + 1 if context[axis] >= state[child + 1, edge_column(tables, 0, axis)] else child
    return row


@kernel
def draw_arm(tables: Any, state: FloatArray, row: int, source: Any) -> int:
    """Draw one of a bin's remaining arms uniformly; write the propensities."""
    left = int(state[row, LEFT])
    skip = min(int(uniform(source) * left), left - 1) if left > 1 else 0
    chosen = 0
    for arm in range(tables.n_arms):
        active = is_active(tables, state, row, arm)
        if tables.propensity.shape[0] > 0:
            tables.propensity[arm] = 1.0 / left if active else 0.0
        if active:
            if skip == 0:
                chosen = arm
            skip -= 1
    return chosen


@kernel
def drop(tables: Any, state: FloatArray, row: int, arm: int) -> None:
    """Remove an arm from a bin, recording the number of participants so far."""
    state[row, arm_block(tables, STOPPED) + arm] = state[SCALARS, ROUND] - state[row, BEGUN]
    state[row, LEFT] -= 1.0
    state[SCALARS, DROPPED] += 1.0


@kernel
def _longest_edge(tables: Any, state: FloatArray, row: int, source: Any) -> int:
    """A longest edge, the first or a random one; lengths are powers of 2, so comparisons are exact."""
    longest = 0.0
    ties = 0
    for axis in range(tables.dimension):
        length = state[row, edge_column(tables, 1, axis)] - state[row, edge_column(tables, 0, axis)]
        if length > longest:
            longest = length
            ties = 0
        if length == longest:
            ties += 1
    skip = 0
    if ties > 1 and not tables.first_axis:
        skip = min(int(uniform(source) * ties), ties - 1)
    chosen = 0
    for axis in range(tables.dimension):
        length = state[row, edge_column(tables, 1, axis)] - state[row, edge_column(tables, 0, axis)]
        if length == longest:
            if skip == 0:
                chosen = axis
            skip -= 1
    return chosen


@kernel
def halve(tables: Any, state: FloatArray, place: int, source: Any) -> bool:
    """Halve the active bin at a position of the list; returns False if there is no room for more bins."""
    # The halves start without data, with the arms that remain. The lower half takes the bin's position and
    # the upper one the end of the list, so no other bin moves.
    bins = int(state[SCALARS, BINS])
    if bins + 3 > state.shape[0]:
        return False
    row = int(state[1 + place, LEAF])
    axis = _longest_edge(tables, state, row, source)
    middle = 0.5 * (state[row, edge_column(tables, 0, axis)] + state[row, edge_column(tables, 1, axis)])
    child = 1 + bins
    stopped = arm_block(tables, STOPPED)
    for half in range(2):
        new = child + half
        state[new, DEPTH] = state[row, DEPTH] + 1.0
        state[new, BEGUN] = state[SCALARS, ROUND]
        state[new, LEFT] = state[row, LEFT]
        for edge in range(2 * tables.dimension):
            state[new, EDGES + edge] = state[row, EDGES + edge]
        state[new, edge_column(tables, 1 - half, axis)] = middle
        for arm in range(tables.n_arms):
            # Arms that the halves never had are marked as stopped before the first participant.
            state[new, stopped + arm] = 0.0 if is_active(tables, state, row, arm) else -1.0
    state[row, AXIS] = axis + 1.0
    state[row, CHILD] = child
    state[SCALARS, BINS] = bins + 2.0
    leaves = int(state[SCALARS, LEAVES])
    state[1 + place, LEAF] = child
    state[1 + leaves, LEAF] = child + 1.0
    state[SCALARS, LEAVES] = leaves + 1.0
    return True


@kernel
def summarise(state: FloatArray, outcome: FloatArray) -> None:
    """Write the number of active bins, their greatest depth, arms dropped, and the decided volume."""
    deepest = 0.0
    decided = 0.0
    for place in range(int(state[SCALARS, LEAVES])):
        row = int(state[1 + place, LEAF])
        deepest = max(deepest, state[row, DEPTH])
        if state[row, LEFT] == 1.0:
            decided += math.pow(2.0, -state[row, DEPTH])
    outcome[0] = state[SCALARS, LEAVES]
    outcome[1] = deepest
    outcome[2] = state[SCALARS, DROPPED]
    outcome[3] = decided


_COUNT, _SUM = 1, 2
_BLOCKS = 3
_SCALAR_COLUMNS = 8
_OUTCOMES = 4


class ABSETables(NamedTuple):
    """Inputs to the kernels."""

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
    """Drop arms whose interval lies below another arm's; return the largest radius, inf for one arm."""
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
    """Replace a cube with its 2^d subcubes."""
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
