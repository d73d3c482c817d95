"""Kernels of the linear designs: ridge estimates, their uncertainty and their noise, for each arm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.noise import Fixed, Told, gaussian, is_source
from adaptinf.privacy.tree_sums import bit_count, fresh_scale, next_noise, top_bit, trailing_zeros
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    certain_arm,
    no_outcome,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.simulation.transcripts import Again, Outbox, Outputs, replay_block, send
from adaptinf.typing import FloatArray, IntArray

NOISELESS, PROJECTED, RIDGE, PUBLISHED = range(4)
"""How an index allows for the noise of X'Y: not at all, by its bound times the norm of V^-1 x, by its bound
divided by sqrt(lambda) times the V^-1-norm of x, or by the paper's bound divided by lambda."""

_COUNT, _LOG_DET, _RADIUS, _REACH, _THETA, _OUT, _SCRATCH, _INVERSE = range(1, 9)
_SUM, _TRUNK = range(2)
"""Rows after those of V^-1, one for each coordinate; they are the last rows that a choice uses."""


class LinearTables(NamedTuple):
    """Inputs to the kernels for a linear design; bounds has shape (slots, slots + 1)."""

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
def _refresh(tables: LinearTables, public: FloatArray, arm: int) -> None:
    """Write the multipliers of an arm's uncertainty, which change only when it is pulled."""
    radius = math.sqrt(2.0 * (0.5 * public[_LOG_DET, arm] + tables.log_share)) * tables.noise_scale
    count = int(public[_COUNT, arm])
    bound = 0.0
    if count > 0 and tables.width == PUBLISHED:
        bound = tables.bounds[0, 0] * math.log(count) ** 1.5
    elif count > 0 and tables.width != NOISELESS:
        bound = tables.bounds[top_bit(count), bit_count(count)]
    public[_REACH, arm] = bound
    if tables.width == RIDGE:
        radius += bound / math.sqrt(tables.regularisation)
    public[_RADIUS, arm] = radius + tables.root


@kernel
def _begin(tables: LinearTables, public: FloatArray) -> None:
    for arm in range(tables.n_arms):
        for k in range(tables.dimension):
            public[_INVERSE + k, arm * tables.dimension + k] = 1.0 / tables.regularisation
        _refresh(tables, public, arm)


@kernel
def _common_radius(tables: LinearTables, public: FloatArray) -> float:
    """The published width per unit of sqrt(x'V^-1 x); it grows with the round and is equal for all arms."""
    now = public[SCALARS, ROUND] + 1.0
    log_term = math.log1p(now / tables.regularisation) + tables.log_share
    return math.sqrt(2.0 * tables.dimension * log_term) + tables.root


@kernel
def _choose(tables: LinearTables, public: FloatArray, context: FloatArray, source: Any) -> int:
    if public[SCALARS, ROUND] == 0.0:
        _begin(tables, public)
    dimension = tables.dimension
    published = tables.width == PUBLISHED
    common = _common_radius(tables, public) if published else 0.0
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
                product += public[_INVERSE + k, base + other] * context[base + other]
            mean += public[_THETA, base + k] * context[base + k]
            quadratic += product * context[base + k]
            square += product * product
        length = math.sqrt(max(quadratic, 0.0))
        if published:
            index = mean + length * common + public[_REACH, arm] / tables.regularisation
        else:
            index = mean + length * public[_RADIUS, arm]
            if tables.width == PROJECTED:
                index += math.sqrt(square) * public[_REACH, arm]
        if index > highest:
            highest = index
            best = arm
    certain_arm(tables, best)
    return best


@kernel
def _behind(tables: LinearTables) -> int:
    """The first row that no choice uses."""
    return _INVERSE + tables.dimension


@kernel
def _next_normal_noise(
    tables: LinearTables, state: FloatArray, trunk_row: int, column: int, count: int, source: Any
) -> float:
    """Noise of a binary tree with normal nodes at `count`; call once for each count, in order."""
    # The noise at `count` is the noise at the count without its lowest one-bit, which is stored, plus that of
    # one new node.
    earlier = count & (count - 1)
    total = gaussian(source, tables.node)
    if earlier > 0:
        total += state[trunk_row + 1 + trailing_zeros(earlier), column]
    state[trunk_row + 1 + trailing_zeros(count), column] = total
    return total


def _send_sum(tables: LinearTables, state: FloatArray, arm: int, k: int, count: int, source: Any) -> None:
    """Release X'Y for an arm and a coordinate, with noise drawn here or supplied."""
    if isinstance(source, Told):
        _told_sum(tables, state, arm, k, count, source)
    else:
        _drawn_sum(tables, state, arm, k, count, source)


def _drawn_sum(tables: Any, state: Any, arm: Any, k: Any, count: Any, source: Any) -> None:
    trunk_row = _behind(tables) + _TRUNK
    column = arm * tables.dimension + k
    if tables.gaussian:
        noise = _next_normal_noise(tables, state, trunk_row, column, count, source)
    else:
        noise = next_noise(tables.hybrid, tables.trunk, tables.node, state, trunk_row, column, count, source)
    scale = fresh_scale(tables.hybrid, tables.trunk, tables.node, count)
    shown = state[_behind(tables) + _SUM, column] + noise
    send(tables, state, Outbox(_OUT, tables.dimension), k, arm, shown, scale)


def _told_sum(tables: Any, state: Any, arm: Any, k: Any, count: Any, source: Any) -> None:
    place = source.place[0]
    source.place[0] = place + 1
    outbox = Outbox(_OUT, tables.dimension)
    send(tables, state, outbox, k, arm, source.values[place], source.scales[place])


@overload(_send_sum, jit_options={"forceinline": True})
def _send_sum_for(tables: Any, state: Any, arm: Any, k: Any, count: Any, source: Any) -> Any:
    return _told_sum if is_source(source, Told) else _drawn_sum


@kernel
def _advance(tables: LinearTables, public: FloatArray, context: FloatArray, arm: int) -> int:
    """Count a pull, and add the arm's context to V^-1 (Sherman and Morrison) and the log determinant."""
    dimension = tables.dimension
    base = arm * dimension
    public[SCALARS, ROUND] += 1.0
    public[_COUNT, arm] += 1.0
    quadratic = 0.0
    for k in range(dimension):
        product = 0.0
        for other in range(dimension):
            product += public[_INVERSE + k, base + other] * context[base + other]
        public[_SCRATCH, k] = product
        quadratic += product * context[base + k]
    factor = 1.0 / (1.0 + quadratic)
    for k in range(dimension):
        for other in range(dimension):
            # With these brackets the products are equal in both orders, so V^-1 stays exactly symmetric.
            change = factor * (public[_SCRATCH, k] * public[_SCRATCH, other])
            public[_INVERSE + k, base + other] -= change
    # By the matrix determinant lemma, det(V + x x') = det(V) (1 + x'V^-1 x), so no determinant has to be
    # computed.
    public[_LOG_DET, arm] += math.log1p(quadratic)
    return dimension


@kernel
def _learn(
    tables: LinearTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    """Add context times reward to the arm's sums, and release the sums."""
    base = arm * tables.dimension
    sums = _behind(tables) + _SUM
    count = int(state[_COUNT, arm])
    value = min(max(reward, 0.0), 1.0) if tables.clipped else reward
    for k in range(tables.dimension):
        state[sums, base + k] += context[base + k] * value
        if tables.node > 0.0:
            _send_sum(tables, state, arm, k, count, source)
        else:
            state[_OUT, base + k] = state[sums, base + k]


@kernel
def _publish(tables: LinearTables, public: FloatArray, context: FloatArray, arm: int, due: int) -> None:
    """Write the arm's estimate from the released sums, and its uncertainty."""
    dimension = tables.dimension
    base = arm * dimension
    for k in range(dimension):
        estimate = 0.0
        for other in range(dimension):
            estimate += public[_INVERSE + k, base + other] * public[_OUT, base + other]
        public[_THETA, base + k] = estimate
    _refresh(tables, public, arm)


@kernel
def _update(
    tables: LinearTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    public = state[: _behind(tables)]
    due = _advance(tables, public, context, arm)
    _learn(tables, state, context, arm, reward, source)
    _publish(tables, public, context, arm, due)


@compiled
def _run_block(
    tables: LinearTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def _run_step(tables: LinearTables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)


@compiled
def _run_replay(tables: LinearTables, seen: Outputs, source: Fixed, public: FloatArray, again: Again) -> None:
    outbox = Outbox(_OUT, tables.dimension)
    replay_block(_choose, _advance, _publish, no_outcome, tables, outbox, seen, source, public, again)


def linear_program(tables: LinearTables) -> Program:
    """Compiled entry point and the size of the state for a linear design."""
    public = _INVERSE + tables.dimension
    private = tables.node > 0.0
    shape = public + _TRUNK + (1 + tables.slots if private else 0), max(2, tables.n_arms * tables.dimension)
    return Program(
        _run_block,
        tables,
        shape,
        step=_run_step,
        n_public=public if private else None,
        replay=_run_replay if private else None,
    )
