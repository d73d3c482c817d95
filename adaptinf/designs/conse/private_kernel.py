"""Kernels of DP-ConSE in its corrected calibration: no count ever stops a phase.

Where all participants have one context their number is public, and its count is released as it is.

Rounds within a window only add to sums, so a replicate can also be run window by window: arrivals are
multinomial, coins, trial entries and 0/1 rewards binomial. Both ways share every decision.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.conse.epochs import (
    CONSE_STATUSES,
    ESTIMATION_BETTER,
    ESTIMATION_RANDOMISED,
    LEARNING_BETTER,
    LEARNING_RANDOMISED,
    estimation_budget,
    write_propensity,
)
from adaptinf.privacy.noise import named_laplace, uniform
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import ROUND, SCALARS, EnvironmentTables, Results, World, release, simulate_block
from adaptinf.simulation.steps import Step, pass_round, single_step
from adaptinf.simulation.stretches import draw_arm, draw_arrivals
from adaptinf.typing import FloatArray, IntArray

_WINDOW, _T_MIN, _LEARNT = 2, 3, 4
"""The last counts the rounds whose outcome is in: the calendar of windows and halves."""
_DECIDED, _POOLED, _TOTAL, _INCLUSION, _BETTER, _LAST_CONTRAST, _LAST_ARRIVALS, _CONTRAST, _ARRIVALS = range(
    1, 10
)
_PUBLIC, _ROWS = _CONTRAST, 10
"""Choices read the rows before the sums and counts of the window that is running."""
_SCALAR_COLUMNS = 8
_CONTRAST_SUM, _ARRIVAL_COUNT = 0, 1


class _Tables(NamedTuple):
    """Windows of the first half, noise scales, and the logarithms in the elimination threshold."""

    horizon: int
    n_features: int
    alpha: float
    least: float
    ends: IntArray
    contrast_scale: float
    arrival_scale: float
    log_four: float
    log_two: float
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    feature = int(context[0])
    first_half = state[SCALARS, _LEARNT] < tables.horizon // 2
    if first_half:
        inclusion = 1.0 if state[_DECIDED, feature] == 0.0 else 0.0
    else:
        inclusion = state[_INCLUSION, feature]
    better = int(state[_BETTER, feature])
    write_propensity(tables.propensity, 0.5 * inclusion + (1.0 - inclusion) * better)
    draw = uniform(source) if inclusion > 0.0 else 1.0
    if draw < inclusion:
        tables.status[0] = LEARNING_RANDOMISED if first_half else ESTIMATION_RANDOMISED
        return 1 if draw < 0.5 * inclusion else 0
    tables.status[0] = LEARNING_BETTER if first_half else ESTIMATION_BETTER
    return better


@kernel
def _noisy(source: Any, value: float, scale: float, kind: int, feature: int, window: int) -> float:
    """The value with its noise; as it is where it is public and the scale 0."""
    return value + named_laplace(source, scale, 2 * feature + kind, window) if scale > 0.0 else value


@kernel
def _window_ends(tables: _Tables, state: FloatArray, source: Any) -> None:
    """Release the window's sums, drop the worse arm where they tell, and forget them."""
    window = int(state[SCALARS, _WINDOW]) + 1
    for feature in range(tables.n_features):
        arrivals = _noisy(
            source, state[_ARRIVALS, feature], tables.arrival_scale, _ARRIVAL_COUNT, feature, window
        )
        release(tables, state, _ARRIVAL_COUNT, feature, arrivals, tables.arrival_scale)
        state[_TOTAL, feature] += arrivals
        if state[_DECIDED, feature] == 0.0:
            contrast = _noisy(
                source, state[_CONTRAST, feature], tables.contrast_scale, _CONTRAST_SUM, feature, window
            )
            release(tables, state, _CONTRAST_SUM, feature, contrast, tables.contrast_scale)
            state[_POOLED, feature] += contrast
            upper = max(arrivals + tables.arrival_scale * tables.log_two, 0.0)
            threshold = math.sqrt(0.5 * upper * tables.log_four) + tables.contrast_scale * tables.log_two
            if abs(contrast) > threshold:
                state[_DECIDED, feature] = 1.0
                state[_BETTER, feature] = 1.0 if contrast > 0.0 else 0.0
        state[_CONTRAST, feature] = 0.0
        state[_ARRIVALS, feature] = 0.0
    state[SCALARS, _WINDOW] += 1.0


@kernel
def _half_time(tables: _Tables, state: FloatArray) -> None:
    """Fix the probability of entering the trial, from released numbers only."""
    for feature in range(tables.n_features):
        state[_TOTAL, feature] = max(1.0, state[_TOTAL, feature])
        if state[_DECIDED, feature] == 0.0:
            state[_BETTER, feature] = 1.0 if state[_POOLED, feature] > 0.0 else 0.0
    budget = estimation_budget(tables.least, state[_TOTAL], tables.n_features, tables.alpha)
    state[SCALARS, _T_MIN] = budget
    for feature in range(tables.n_features):
        state[_INCLUSION, feature] = min(1.0, budget / state[_TOTAL, feature])


@kernel
def _trial_ends(tables: _Tables, state: FloatArray, source: Any) -> None:
    window = int(state[SCALARS, _WINDOW]) + 1
    for feature in range(tables.n_features):
        arrivals = _noisy(
            source, state[_ARRIVALS, feature], tables.arrival_scale, _ARRIVAL_COUNT, feature, window
        )
        contrast = _noisy(
            source, state[_CONTRAST, feature], tables.contrast_scale, _CONTRAST_SUM, feature, window
        )
        release(tables, state, _ARRIVAL_COUNT, feature, arrivals, tables.arrival_scale)
        release(tables, state, _CONTRAST_SUM, feature, contrast, tables.contrast_scale)
        state[_LAST_ARRIVALS, feature] = arrivals
        state[_LAST_CONTRAST, feature] = contrast


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    state[SCALARS, _LEARNT] += 1.0
    now = int(state[SCALARS, _LEARNT])
    feature = int(context[0])
    status = tables.status[0]
    half = tables.horizon // 2
    if status == (LEARNING_RANDOMISED if now <= half else ESTIMATION_RANDOMISED):
        clipped = min(max(reward, 0.0), 1.0)
        state[_CONTRAST, feature] += (2.0 * arm - 1.0) * (clipped - 0.5)
    if now <= half:
        state[_ARRIVALS, feature] += 1.0
        if now == tables.ends[int(state[SCALARS, _WINDOW])]:
            _window_ends(tables, state, source)
            if now == half:
                _half_time(tables, state)
    elif status == ESTIMATION_RANDOMISED:
        state[_ARRIVALS, feature] += 1.0
    if now == tables.horizon:
        _trial_ends(tables, state, source)


@kernel
def _finish(tables: _Tables, state: FloatArray, outcome: FloatArray) -> None:
    outcome[0] = state[SCALARS, _T_MIN]
    n_features = tables.n_features
    for feature in range(n_features):
        outcome[1 + feature] = state[_LAST_CONTRAST, feature]
        outcome[1 + n_features + feature] = state[_LAST_ARRIVALS, feature]
        outcome[1 + 2 * n_features + feature] = state[_INCLUSION, feature]
        outcome[1 + 3 * n_features + feature] = state[_BETTER, feature]


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


@compiled
def _run_windows(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    environment, tallies = world.environment, results.tallies
    for run in range(tallies.shape[0]):
        state[:] = 0.0
        begin = 0
        for window in range(tables.ends.shape[0]):
            end = tables.ends[window]
            draw_arrivals(environment, begin, end, rng, state[_ARRIVALS])
            for feature in range(tables.n_features):
                arrivals = int(state[_ARRIVALS, feature])
                if state[_DECIDED, feature] == 0.0:
                    _randomise(environment, feature, arrivals, rng, state, tallies[run, LEARNING_RANDOMISED])
                else:
                    better = int(state[_BETTER, feature])
                    draw_arm(environment, feature, better, arrivals, rng, tallies[run, LEARNING_BETTER])
            _window_ends(tables, state, rng)
            begin = end
        _half_time(tables, state)
        draw_arrivals(environment, begin, world.horizon, rng, state[_ARRIVALS])
        for feature in range(tables.n_features):
            arrivals = int(state[_ARRIVALS, feature])
            included = rng.binomial(arrivals, state[_INCLUSION, feature])
            _randomise(environment, feature, included, rng, state, tallies[run, ESTIMATION_RANDOMISED])
            better = int(state[_BETTER, feature])
            draw_arm(environment, feature, better, arrivals - included, rng, tallies[run, ESTIMATION_BETTER])
            state[_ARRIVALS, feature] = included
        _trial_ends(tables, state, rng)
        _finish(tables, state, results.outcomes[run])


@kernel
def _randomise(
    environment: EnvironmentTables,
    feature: int,
    arrivals: int,
    rng: Generator,
    state: FloatArray,
    tally: FloatArray,
) -> None:
    """Assign arrivals by fair coins and add their rewards to the contrast sum."""
    treated = rng.binomial(arrivals, 0.5)
    control = arrivals - treated
    gain = draw_arm(environment, feature, 1, treated, rng, tally) - 0.5 * treated
    loss = draw_arm(environment, feature, 0, control, rng, tally) - 0.5 * control
    state[_CONTRAST, feature] += gain - loss


def window_ends(horizon: int, first_window: int | None = None, n_features: int = 1) -> IntArray:
    """Last rounds of the first half's windows of doubling length.

    A remainder of less than half of the window that it would begin joins the window before it.

    A first window of n / 64 rounds is all randomised, at a regret linear in n. The upper bound keeps the
    regret of order M log n; it takes effect from n of about 200,000 for one context and 3 million for ten.
    """
    half = horizon // 2
    length = _first_window(horizon, n_features) if first_window is None else int(first_window)
    ends = [0]
    while ends[-1] + length <= half:
        ends.append(ends[-1] + length)
        length *= 2
    remainder = half - ends[-1]
    if remainder > 0 and (2 * remainder >= length or len(ends) == 1):
        ends.append(half)
    ends[-1] = half
    return np.array(ends[1:], dtype=np.int64)


def _first_window(horizon: int, n_features: int) -> int:
    return max(64, min(math.ceil(horizon / 64), math.ceil(256.0 * n_features * math.log(horizon))))


def corrected_program(
    horizon: int,
    n_features: int,
    alpha: float,
    contrast_budget: float,
    arrival_budget: float,
    ends: IntArray,
    recording: bool,
    by_rounds: bool,
) -> Program:
    """Tables and entry point: windows end at `ends`, sums and arrivals are released at their budgets.

    Without a budget arrivals are released as they are. The better arm is dropped with probability at most
    3/4 of beta = 1 / horizon.
    """
    log_two = math.log(2.0 * n_features * ends.size * horizon)
    capacity = 2 * n_features * (ends.size + 1) if recording else 0
    tables = _Tables(
        horizon=horizon,
        n_features=n_features,
        alpha=float(alpha),
        least=4.0 * math.log(horizon) / (arrival_budget or contrast_budget),
        ends=ends,
        contrast_scale=1.0 / contrast_budget,
        arrival_scale=2.0 / arrival_budget if arrival_budget else 0.0,
        log_four=math.log(2.0) + log_two,
        log_two=log_two,
        **written_arrays(2 if recording else 0, capacity),
    )
    return Program(
        _run_block if by_rounds else _run_windows,
        tables,
        (_ROWS, max(n_features, _SCALAR_COLUMNS)),
        n_statuses=len(CONSE_STATUSES),
        step=_run_step,
        n_outcomes=1 + 4 * n_features,
        n_public=_PUBLIC,
    )
