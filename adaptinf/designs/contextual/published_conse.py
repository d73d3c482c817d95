"""DP-ConSE as printed in its paper, kept to reproduce its tables: it has no finite epsilon."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.contextual.conse import (
    CONSE_STATUSES,
    ESTIMATION_BETTER,
    ESTIMATION_RANDOMISED,
    LEARNING_BETTER,
    LEARNING_RANDOMISED,
    epoch_sequences,
    estimation_budget,
    write_propensity,
)
from adaptinf.designs.run_results import ReleaseName
from adaptinf.privacy.integer_mechanisms import truncated_laplace
from adaptinf.privacy.noise import laplace, uniform
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    pass_round,
    release,
    simulate_block,
    single_step,
)
from adaptinf.typing import FloatArray, IntArray

PUBLISHED_RELEASES = (
    ReleaseName("mean_0", "laplace"),
    ReleaseName("mean_1", "laplace"),
    ReleaseName("estimate", "laplace"),
    ReleaseName("length", "truncated discrete laplace"),
)

REASONS = (
    "a context's batch closes only when that context arrives, so its closing time and its releases reveal "
    "the context whatever the length",
    "whether an estimate is released depends on the raw number of arrivals",
    "all lengths in the trial share one T_min",
    "the noise of a mean is calibrated to the batch length, but each arm has only about half of the batch's "
    "pulls",
)
"""Why the published calibration has no finite epsilon."""

_T_MIN = 2
_ARRIVALS, _EPOCH, _IN_EPOCH, _LENGTH, _KEPT, _SECOND, _TRIAL, _ESTIMATE = range(1, 9)
_COUNT, _SUM = 9, 11
_ROWS = 13
_SCALAR_COLUMNS = 8
_ESTIMATE_CODE, _LENGTH_CODE = 2, 3


class _Tables(NamedTuple):
    """Lengths R_e, thresholds 2 h_e + 2 c_e and noise scales by epoch (entry 0 is unused)."""

    horizon: int
    n_features: int
    alpha: float
    epsilon: float
    lengths: FloatArray
    thresholds: FloatArray
    scales: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    feature = int(context[0])
    first_half = state[SCALARS, ROUND] < tables.horizon // 2
    if first_half:
        randomised = state[_KEPT, feature] == 0.0
    else:
        randomised = state[_SECOND, feature] < state[_TRIAL, feature]
    if randomised:
        tables.status[0] = LEARNING_RANDOMISED if first_half else ESTIMATION_RANDOMISED
        write_propensity(tables.propensity, 0.5)
        return 1 if uniform(source) < 0.5 else 0
    tables.status[0] = LEARNING_BETTER if first_half else ESTIMATION_BETTER
    arm = max(int(state[_KEPT, feature]) - 1, 0)
    write_propensity(tables.propensity, float(arm))
    return arm


@kernel
def _mean(state: FloatArray, arm: int, feature: int) -> float:
    count = state[_COUNT + arm, feature]
    return state[_SUM + arm, feature] / count if count > 0.0 else math.nan


@kernel
def _forget(state: FloatArray, feature: int) -> None:
    for arm in range(2):
        state[_COUNT + arm, feature] = 0.0
        state[_SUM + arm, feature] = 0.0


@kernel
def _epoch_ends(tables: _Tables, state: FloatArray, feature: int, source: Any) -> None:
    epoch = int(state[_EPOCH, feature])
    scale = tables.scales[epoch]
    control = _mean(state, 0, feature) + laplace(source, scale)
    treated = _mean(state, 1, feature) + laplace(source, scale)
    release(tables, state, 0, feature, control, scale)
    release(tables, state, 1, feature, treated, scale)
    if abs(treated - control) > tables.thresholds[epoch]:
        state[_KEPT, feature] = 2.0 if treated > control else 1.0
    state[_EPOCH, feature] = 0.0 if state[_KEPT, feature] > 0.0 else epoch + 1.0
    state[_IN_EPOCH, feature] = 0.0
    if state[_KEPT, feature] == 0.0:
        state[_LENGTH, feature] = truncated_laplace(
            2.0 * tables.lengths[epoch + 1], 0.5 * tables.epsilon, source
        )
    _forget(state, feature)


@kernel
def _half_time(tables: _Tables, state: FloatArray, source: Any) -> None:
    state[SCALARS, _T_MIN] = estimation_budget(
        math.log(tables.horizon), state[_ARRIVALS], tables.n_features, tables.alpha
    )
    for feature in range(tables.n_features):
        _forget(state, feature)
        length = truncated_laplace(state[SCALARS, _T_MIN], 0.5 * tables.epsilon, source)
        state[_TRIAL, feature] = length
        state[_ESTIMATE, feature] = math.nan
        release(tables, state, _LENGTH_CODE, feature, length, 2.0 / tables.epsilon)


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    feature = int(context[0])
    status = tables.status[0]
    half = tables.horizon // 2
    if status in (LEARNING_RANDOMISED, ESTIMATION_RANDOMISED):
        state[_COUNT + arm, feature] += 1.0
        state[_SUM + arm, feature] += min(max(reward, 0.0), 1.0)
    if state[SCALARS, ROUND] <= half:
        state[_ARRIVALS, feature] += 1.0
        if status == LEARNING_RANDOMISED:
            if state[_EPOCH, feature] == 0.0:
                state[_EPOCH, feature] = 1.0
                state[_LENGTH, feature] = truncated_laplace(
                    2.0 * tables.lengths[1], 0.5 * tables.epsilon, source
                )
            state[_IN_EPOCH, feature] += 1.0
            if state[_IN_EPOCH, feature] >= state[_LENGTH, feature]:
                _epoch_ends(tables, state, feature, source)
        if state[SCALARS, ROUND] == half:
            _half_time(tables, state, source)
    else:
        state[_SECOND, feature] += 1.0
        if state[_SECOND, feature] == state[_TRIAL, feature]:
            scale = 2.0 / (tables.epsilon * state[_TRIAL, feature])
            estimate = _mean(state, 1, feature) - _mean(state, 0, feature) + laplace(source, scale)
            state[_ESTIMATE, feature] = estimate
            release(tables, state, _ESTIMATE_CODE, feature, estimate, scale)


@kernel
def _finish(tables: _Tables, state: FloatArray, outcome: FloatArray) -> None:
    outcome[0] = state[SCALARS, _T_MIN]
    for feature in range(tables.n_features):
        outcome[1 + feature] = state[_ESTIMATE, feature]
        outcome[1 + tables.n_features + feature] = state[_TRIAL, feature]
        outcome[1 + 2 * tables.n_features + feature] = max(state[_KEPT, feature] - 1.0, 0.0)


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


def published_program(
    horizon: int, n_features: int, alpha: float, epsilon: float, recording: bool
) -> Program:
    """Tables and entry point for the pseudo-code, with c_e = 2 log(8 n e^2) / (R_e epsilon)."""
    lengths, widths = epoch_sequences(horizon, epsilon)
    epoch = np.arange(1, lengths.size)
    slack = 2.0 * np.log(8.0 * horizon * epoch**2) / (lengths[1:] * epsilon)
    capacity = n_features * (2 * lengths.size + 2) if recording else 0
    tables = _Tables(
        horizon=horizon,
        n_features=n_features,
        alpha=float(alpha),
        epsilon=float(epsilon),
        lengths=lengths,
        thresholds=2.0 * widths + 2.0 * np.concatenate([[0.0], slack]),
        scales=2.0 / (epsilon * lengths),
        **written_arrays(2 if recording else 0, capacity),
    )
    return Program(
        _run_block,
        tables,
        (_ROWS, max(n_features, _SCALAR_COLUMNS)),
        n_statuses=len(CONSE_STATUSES),
        step=_run_step,
        n_outcomes=1 + 3 * n_features,
    )
