"""Kernels of the locally private linear bandit: one parameter vector per arm, moved by noisy gradients."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.noise import generator, laplace, uniform
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    certain_arm,
    pass_round,
    release,
    simulate_block,
    single_step,
)
from adaptinf.typing import FloatArray, IntArray

WARM_UP, GREEDY = range(2)
"""Status codes of a round."""

_PROJECTED, _BEGUN = 2, 3
_SCALAR_COLUMNS = 4
_INFORMATION, _WEIGHT, _ITERATE = range(3)


class LDPLinearTables(NamedTuple):
    """Inputs to the kernels for a locally private linear design.

    Shapes: scales, squares (sources,), starts (sources,), contexts, arms, rewards (auxiliary, dimension).
    """

    n_arms: int
    dimension: int
    n_parameters: int
    horizon: int
    logistic: bool
    intercept: bool
    warm_up: int
    radius: float
    reach: float
    scales: FloatArray
    squares: FloatArray
    starts: IntArray
    contexts: FloatArray
    arms: IntArray
    rewards: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


def report_radius(source: Any, count: int, scale: float) -> float:
    """Sum of the absolute values of `count` Laplace draws: a Gamma variable with this shape and scale."""
    return float(_radius_one_by_one(source, count, scale))


def _radius_one_by_one(source: Any, count: Any, scale: Any) -> Any:
    total = 0.0
    for _ in range(count):
        total += abs(laplace(source, scale))
    return total


def _radius_at_once(source: Any, count: Any, scale: Any) -> Any:
    return scale * source.standard_gamma(count)


@overload(report_radius, jit_options={"forceinline": True})
def _report_radius_for(source: Any, count: Any, scale: Any) -> Any:
    return _radius_one_by_one if hasattr(source, "instance_class") else _radius_at_once


@kernel
def _feature(tables: LDPLinearTables, context: FloatArray, k: int) -> float:
    """Regressor k: a coordinate of the context, rescaled to [-1, 1] if there is an intercept; or 1."""
    if not tables.intercept:
        return float(context[k])
    return 2.0 * context[k] - 1.0 if k < tables.dimension else 1.0


@kernel
def _predictor(
    tables: LDPLinearTables, state: FloatArray, context: FloatArray, arm: int, block: int
) -> float:
    """Linear predictor of an arm from the parameters that start in a column."""
    total = 0.0
    for k in range(tables.n_parameters):
        total += state[1 + arm, block + k] * _feature(tables, context, k)
    return total


@kernel
def _residual(
    tables: LDPLinearTables, state: FloatArray, context: FloatArray, arm: int, reward: float
) -> float:
    """Predicted minus observed reward, in [-1, 1]."""
    predictor = _predictor(tables, state, context, arm, _ITERATE)
    if tables.logistic:
        mean = 1.0 / (1.0 + math.exp(-predictor))
    else:
        mean = min(max(predictor, 0.0), 1.0)
    return float(mean - min(max(reward, 0.0), 1.0))


@kernel
def _step(
    tables: LDPLinearTables,
    state: FloatArray,
    context: FloatArray,
    arm: int,
    residual: float,
    origin: int,
    source: Any,
) -> None:
    """Apply a noisy gradient to an arm, with residual 0 if another was pulled: step, project and average."""
    row = 1 + arm
    parameters = tables.n_parameters
    # This is the K-norm mechanism (Hardt and Talwar): a Gamma(p + 1) radius times a uniform point of the cube
    # has a density proportional to exp(-max abs(z) / scale), which suits gradients with entries of at most 1.
    size = report_radius(source, parameters + 1, tables.scales[origin])
    information = 1.0 / tables.squares[origin]
    state[row, _INFORMATION] += information
    rate = tables.reach * information / math.sqrt(state[row, _INFORMATION])
    square = 0.0
    for k in range(parameters):
        report = residual * _feature(tables, context, k) + size * (2.0 * uniform(source) - 1.0)
        moved = state[row, _ITERATE + k] - rate * report
        state[row, _ITERATE + k] = moved
        square += moved * moved
    shrink = 1.0
    if square > tables.radius * tables.radius:
        shrink = tables.radius / math.sqrt(square)
        state[SCALARS, _PROJECTED] += 1.0
    weight = information * state[row, _INFORMATION]
    state[row, _WEIGHT] += weight
    share = weight / state[row, _WEIGHT]
    for k in range(parameters):
        value = shrink * state[row, _ITERATE + k]
        state[row, _ITERATE + k] = value
        average = state[row, _ITERATE + parameters + k]
        state[row, _ITERATE + parameters + k] = average + share * (value - average)


@kernel
def _report(
    tables: LDPLinearTables,
    state: FloatArray,
    context: FloatArray,
    arm: int,
    reward: float,
    origin: int,
    source: Any,
) -> None:
    """One participant's report on all arms."""
    residual = _residual(tables, state, context, arm, reward)
    for other in range(tables.n_arms):
        _step(tables, state, context, other, residual if other == arm else 0.0, origin, source)


@kernel
def _jump_start(tables: LDPLinearTables, state: FloatArray, source: Any) -> None:
    """Learn from the auxiliary participants, one source after another."""
    state[SCALARS, _BEGUN] = 1.0
    for origin in range(tables.starts.shape[0] - 1):
        for participant in range(tables.starts[origin], tables.starts[origin + 1]):
            context = tables.contexts[participant]
            arm = tables.arms[participant]
            _report(tables, state, context, arm, tables.rewards[participant], origin, source)


@kernel
def _choose(tables: LDPLinearTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    if state[SCALARS, _BEGUN] == 0.0:
        _jump_start(tables, state, source)
    best = 0
    now = int(state[SCALARS, ROUND])
    if now < tables.warm_up:
        tables.status[0] = WARM_UP
        best = now % tables.n_arms
    else:
        tables.status[0] = GREEDY
        highest = -math.inf
        for arm in range(tables.n_arms):
            index = _predictor(tables, state, context, arm, _ITERATE + tables.n_parameters)
            if index > highest:
                highest = index
                best = arm
    certain_arm(tables, best)
    return best


@kernel
def _update(
    tables: LDPLinearTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    trial = tables.scales.shape[0] - 1
    if state[SCALARS, ROUND] < tables.warm_up:
        residual = _residual(tables, state, context, arm, reward)
        _step(tables, state, context, arm, residual, trial, source)
    else:
        _report(tables, state, context, arm, reward, trial, source)
    state[SCALARS, ROUND] += 1.0
    if state[SCALARS, ROUND] == tables.horizon:
        _release_all(tables, state)


@kernel
def _release_all(tables: LDPLinearTables, state: FloatArray) -> None:
    """Record every arm's averaged parameters, as coefficients of the context itself."""
    block = _ITERATE + tables.n_parameters
    scale = tables.scales[tables.scales.shape[0] - 1]
    # Regressors are 2 x - 1, and v'(2 x - 1) + c = 2 v'x + (c - sum of v), so coefficients of x are 2 v and
    # the constant changes.
    for arm in range(tables.n_arms):
        slopes = 0.0
        for k in range(tables.dimension):
            value = state[1 + arm, block + k]
            slopes += value
            release(tables, state, k, arm, 2.0 * value if tables.intercept else value, scale)
        if tables.intercept:
            constant = state[1 + arm, block + tables.dimension] - slopes
            release(tables, state, tables.dimension, arm, constant, scale)


@kernel
def _finish(tables: LDPLinearTables, state: FloatArray, outcome: FloatArray) -> None:
    outcome[0] = tables.warm_up
    outcome[1] = state[SCALARS, _PROJECTED]


@compiled
def _run_block(
    tables: LDPLinearTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: LDPLinearTables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


@compiled
def _begin(tables: LDPLinearTables, rng: Generator, state: FloatArray) -> None:
    _jump_start(tables, state, rng)


def report_constants(tables: LDPLinearTables) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Parameters after the auxiliary participants, and after the first report of the trial.

    Shapes of the result: iterates, averages (arms, parameters), rates, shares (arms,).
    """
    state = np.zeros(ldp_linear_program(tables).state_shape)
    _begin(tables, generator(np.random.SeedSequence(0)), state)
    rows, parameters = state[1:], tables.n_parameters
    own = 1.0 / tables.squares[-1]
    information = rows[:, _INFORMATION] + own
    weight = own * information
    averages = rows[:, _ITERATE + parameters : _ITERATE + 2 * parameters]
    return (
        rows[:, _ITERATE : _ITERATE + parameters],
        averages,
        tables.reach * own / np.sqrt(information),
        weight / (rows[:, _WEIGHT] + weight),
    )


def ldp_linear_program(tables: LDPLinearTables) -> Program:
    """Compiled entry point and the size of the state."""
    width = max(_ITERATE + 2 * tables.n_parameters, _SCALAR_COLUMNS)
    return Program(_run_block, tables, (1 + tables.n_arms, width), n_statuses=2, n_outcomes=2, step=_run_step)
