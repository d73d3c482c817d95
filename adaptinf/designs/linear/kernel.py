"""Kernels of the linear designs: ridge estimates, their uncertainty and their noise, one set an arm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.counters.bits import bit_count, top_bit, trailing_zeros
from adaptinf.privacy.counters.sums import fresh_scale, next_noise
from adaptinf.privacy.noise import Told, gaussian, is_source
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    World,
    certain_arm,
    no_outcome,
    release,
    simulate_block,
)
from adaptinf.simulation.steps import Step, pass_round, single_step
from adaptinf.typing import FloatArray, IntArray

NOISELESS, PROJECTED, RIDGE, PUBLISHED = range(4)
"""How an index allows for the noise of X'Y: not at all, by its bound times the length of V^-1 x, by its
bound over sqrt(lambda) times the V^-1-norm of x, or by the paper's bound over lambda alone."""

_COUNT, _LOG_DET, _RADIUS, _REACH, _THETA, _INVERSE = range(1, 7)
_SUM, _SCRATCH, _TRUNK = range(3)
"""Rows behind those of V^-1, one for each coordinate, which are the last ones that a choice reads."""


class LinearTables(NamedTuple):
    """What the kernels need to know of a linear design; bounds (slots, slots + 1)."""

    n_arms: int
    dimension: int
    regularisation: float
    width: int
    root: float
    noise_scale: float
    log_share: float
    clipped: bool
    gaussian: bool
    hybrid: bool
    trunk: float
    node: float
    slots: int
    bounds: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _refresh(tables: LinearTables, state: FloatArray, arm: int) -> None:
    """Write the multipliers of an arm's uncertainty, which change only with its pulls."""
    radius = math.sqrt(2.0 * (0.5 * state[_LOG_DET, arm] + tables.log_share)) * tables.noise_scale
    count = int(state[_COUNT, arm])
    bound = 0.0
    if count > 0 and tables.width == PUBLISHED:
        bound = tables.bounds[0, 0] * math.log(count) ** 1.5
    elif count > 0 and tables.width != NOISELESS:
        bound = tables.bounds[top_bit(count), bit_count(count)]
    state[_REACH, arm] = bound
    if tables.width == RIDGE:
        radius += bound / math.sqrt(tables.regularisation)
    state[_RADIUS, arm] = radius + tables.root


@kernel
def _begin(tables: LinearTables, state: FloatArray) -> None:
    for arm in range(tables.n_arms):
        for k in range(tables.dimension):
            state[_INVERSE + k, arm * tables.dimension + k] = 1.0 / tables.regularisation
        _refresh(tables, state, arm)


@kernel
def _common_radius(tables: LinearTables, state: FloatArray) -> float:
    """The published width of a unit of ||x||: it grows with the round and is the same for all arms."""
    now = state[SCALARS, ROUND] + 1.0
    log_term = math.log1p(now / tables.regularisation) + tables.log_share
    return math.sqrt(2.0 * tables.dimension * log_term) + tables.root


@kernel
def _choose(tables: LinearTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    if state[SCALARS, ROUND] == 0.0:
        _begin(tables, state)
    dimension = tables.dimension
    published = tables.width == PUBLISHED
    common = _common_radius(tables, state) if published else 0.0
    best = 0
    highest = -np.inf
    for arm in range(tables.n_arms):
        base = arm * dimension
        mean = 0.0
        quadratic = 0.0
        square = 0.0
        for k in range(dimension):
            product = 0.0
            for other in range(dimension):
                product += state[_INVERSE + k, base + other] * context[base + other]
            mean += state[_THETA, base + k] * context[base + k]
            quadratic += product * context[base + k]
            square += product * product
        length = math.sqrt(max(quadratic, 0.0))
        if published:
            index = mean + length * common + state[_REACH, arm] / tables.regularisation
        else:
            index = mean + length * state[_RADIUS, arm]
            if tables.width == PROJECTED:
                index += math.sqrt(square) * state[_REACH, arm]
        if index > highest:
            highest = index
            best = arm
    certain_arm(tables, best)
    return best


@kernel
def _behind(tables: LinearTables) -> int:
    """The first row that no choice reads."""
    return _INVERSE + tables.dimension


@kernel
def _next_normal_noise(
    tables: LinearTables, state: FloatArray, trunk_row: int, column: int, count: int, source: Any
) -> float:
    """Noise of a binary tree with normal nodes at `count`, called once for each count in turn."""
    earlier = count & (count - 1)
    total = gaussian(source, tables.node)
    if earlier > 0:
        total += state[trunk_row + 1 + trailing_zeros(earlier), column]
    state[trunk_row + 1 + trailing_zeros(count), column] = total
    return total


def _noisy_sum(tables: LinearTables, state: FloatArray, arm: int, k: int, count: int, source: Any) -> float:
    """Release X'Y of an arm in a coordinate, with noise that is drawn here or as it was made elsewhere."""
    if isinstance(source, Told):
        return float(_told_sum(tables, state, arm, k, count, source))
    return float(_drawn_sum(tables, state, arm, k, count, source))


def _drawn_sum(tables: Any, state: Any, arm: Any, k: Any, count: Any, source: Any) -> Any:
    trunk_row = _behind(tables) + _TRUNK
    column = arm * tables.dimension + k
    if tables.gaussian:
        noise = _next_normal_noise(tables, state, trunk_row, column, count, source)
    else:
        noise = next_noise(tables.hybrid, tables.trunk, tables.node, state, trunk_row, column, count, source)
    shown = state[_behind(tables) + _SUM, column] + noise
    release(tables, state, k, arm, shown, fresh_scale(tables.hybrid, tables.trunk, tables.node, count))
    return shown


def _told_sum(tables: Any, state: Any, arm: Any, k: Any, count: Any, source: Any) -> Any:
    place = source.place[0]
    source.place[0] = place + 1
    release(tables, state, k, arm, source.values[place], source.scales[place])
    return source.values[place]


@overload(_noisy_sum, jit_options={"forceinline": True})
def _noisy_sum_for(tables: Any, state: Any, arm: Any, k: Any, count: Any, source: Any) -> Any:
    return _told_sum if is_source(source, Told) else _drawn_sum


@kernel
def _learn(tables: LinearTables, state: FloatArray, context: FloatArray, arm: int) -> None:
    """Take the arm's context into V^-1 (Sherman and Morrison) and the log determinant."""
    dimension = tables.dimension
    base = arm * dimension
    scratch = _behind(tables) + _SCRATCH
    quadratic = 0.0
    for k in range(dimension):
        product = 0.0
        for other in range(dimension):
            product += state[_INVERSE + k, base + other] * context[base + other]
        state[scratch, k] = product
        quadratic += product * context[base + k]
    factor = 1.0 / (1.0 + quadratic)
    for k in range(dimension):
        for other in range(dimension):
            change = factor * (state[scratch, k] * state[scratch, other])
            state[_INVERSE + k, base + other] -= change
    state[_LOG_DET, arm] += math.log1p(quadratic)


@kernel
def _update(
    tables: LinearTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    dimension = tables.dimension
    base = arm * dimension
    sums, scratch = _behind(tables) + _SUM, _behind(tables) + _SCRATCH
    state[SCALARS, ROUND] += 1.0
    count = state[_COUNT, arm] + 1.0
    state[_COUNT, arm] = count
    _learn(tables, state, context, arm)
    value = min(max(reward, 0.0), 1.0) if tables.clipped else reward
    for k in range(dimension):
        state[sums, base + k] += context[base + k] * value
        state[scratch, k] = state[sums, base + k]
        if tables.node > 0.0:
            state[scratch, k] = _noisy_sum(tables, state, arm, k, int(count), source)
    for k in range(dimension):
        estimate = 0.0
        for other in range(dimension):
            estimate += state[_INVERSE + k, base + other] * state[scratch, other]
        state[_THETA, base + k] = estimate
    _refresh(tables, state, arm)


@compiled
def _run_block(
    tables: LinearTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def _run_step(tables: LinearTables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)


def linear_program(tables: LinearTables) -> Program:
    """Compiled entry point and the size of the state for a linear design."""
    public = _INVERSE + tables.dimension
    private = tables.node > 0.0
    shape = public + _TRUNK + (1 + tables.slots if private else 0), max(2, tables.n_arms * tables.dimension)
    return Program(_run_block, tables, shape, step=_run_step, n_public=public if private else None)
