"""Decisions of successive elimination, private and not: compiled kernels, their tables and the shortcut."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.log.traits import FreshEpochs
from adaptinf.privacy.noise import named_laplace
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import ROUND, SCALARS, Results, World, certain_arm, release, simulate_block
from adaptinf.simulation.steps import Step, single_step
from adaptinf.simulation.stretches import draw_arm
from adaptinf.typing import FloatArray, IntArray

_GONE, _MEAN, _SUM = range(1, 4)
_PUBLIC = _SUM
"""Rows before it are what choices read, where means are private: the sums reach them through these alone."""
_DROPPED, _COMPARED, _PASSES, _NEXT, _DECIDED, _LEARNT, _BEGUN, _FRESH = range(2, 10)
"""The last three count rounds: those whose outcome is in, those that the turn has passed, and those that had
begun when the epoch began, whose outcomes are in none."""
_ROWS, _SCALAR_COLUMNS = 4, 10
_MOST_EPOCHS = 64


class _Tables(NamedTuple):
    """Passes and thresholds of an epoch, by the number of arms in it and its position (from 0).

    Without epochs the means of all passes so far are compared after each, with thresholds
    sqrt(2 (log_start + 2 log r) / r).
    """

    n_arms: int
    by_epochs: bool
    log_start: float
    epsilon: float
    lengths: FloatArray
    thresholds: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _passes_needed(tables: _Tables, state: FloatArray) -> float:
    """Passes after which the arms are compared, counted as the state counts them."""
    if tables.by_epochs:
        left = tables.n_arms - int(state[SCALARS, _DROPPED])
        return float(tables.lengths[left, int(state[SCALARS, _COMPARED])])
    return float(state[SCALARS, _PASSES]) + 1.0


@kernel
def _threshold(tables: _Tables, state: FloatArray) -> float:
    if tables.by_epochs:
        left = tables.n_arms - int(state[SCALARS, _DROPPED])
        return float(tables.thresholds[left, int(state[SCALARS, _COMPARED])])
    passes = state[SCALARS, _PASSES]
    return math.sqrt(2.0 * (tables.log_start + 2.0 * math.log(passes)) / passes)


@kernel
def _viable_from(tables: _Tables, state: FloatArray, arm: int) -> int:
    """The first arm from `arm` on that is still there, or the number of arms."""
    while arm < tables.n_arms and state[_GONE, arm] > 0.0:
        arm += 1
    return arm


@kernel
def _compare(tables: _Tables, state: FloatArray, source: Any) -> None:
    """Drop the arms whose mean lies too far below the highest; an epoch's sums are forgotten."""
    passes = state[SCALARS, _PASSES]
    threshold = _threshold(tables, state)
    highest = -np.inf
    for arm in range(tables.n_arms):
        if state[_GONE, arm] == 0.0:
            total = state[_SUM, arm]
            if tables.epsilon > 0.0:
                epoch = int(state[SCALARS, _COMPARED]) + 1
                total += named_laplace(source, 1.0 / tables.epsilon, arm, epoch)
                release(tables, state, 0, arm, total / passes, 1.0 / (tables.epsilon * passes))
            mean = total / passes
            state[_MEAN, arm] = mean
            highest = max(highest, mean)
    for arm in range(tables.n_arms):
        if state[_GONE, arm] == 0.0 and highest - state[_MEAN, arm] > threshold:
            state[_GONE, arm] = 1.0
            state[SCALARS, _DROPPED] += 1.0
    if tables.by_epochs:
        state[_SUM, : tables.n_arms] = 0.0
        state[SCALARS, _PASSES] = 0.0
    state[SCALARS, _COMPARED] += 1.0
    state[SCALARS, _FRESH] = state[SCALARS, _BEGUN]
    if state[SCALARS, _DROPPED] == tables.n_arms - 1.0:
        state[SCALARS, _DECIDED] = state[SCALARS, ROUND]


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    arm = int(state[SCALARS, _NEXT])
    certain_arm(tables, arm)
    return arm


@kernel
def _turn(tables: _Tables, state: FloatArray, arm: int) -> None:
    """After a round of an arm it is the turn of the next one, unless the round was overridden."""
    state[SCALARS, _BEGUN] += 1.0
    if tables.status[0] == 0:
        following = _viable_from(tables, state, arm + 1)
        if following == tables.n_arms:
            following = _viable_from(tables, state, 0)
        state[SCALARS, _NEXT] = following


@kernel
def _wait(tables: _Tables, state: FloatArray) -> None:
    """A round has begun, and its outcome may come later; said twice, after a failed draw, it counts once."""
    state[SCALARS, ROUND] += 1.0
    if state[SCALARS, _BEGUN] < state[SCALARS, ROUND]:
        _turn(tables, state, int(state[SCALARS, _NEXT]))


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    state[SCALARS, _LEARNT] += 1.0
    if state[SCALARS, _BEGUN] < state[SCALARS, _LEARNT]:
        _turn(tables, state, arm)
    stale = state[SCALARS, _LEARNT] <= state[SCALARS, _FRESH]
    if tables.status[0] > 0 or stale or state[SCALARS, _DROPPED] == tables.n_arms - 1.0:
        return
    state[_SUM, arm] += min(max(reward, 0.0), 1.0) if tables.epsilon > 0.0 else reward
    if _viable_from(tables, state, arm + 1) == tables.n_arms:
        needed = _passes_needed(tables, state)
        state[SCALARS, _PASSES] += 1.0
        if state[SCALARS, _PASSES] >= needed:
            _compare(tables, state, source)
            state[SCALARS, _NEXT] = _viable_from(tables, state, 0)


@kernel
def _finish(tables: _Tables, state: FloatArray, outcome: FloatArray) -> None:
    decided = state[SCALARS, _DECIDED] > 0.0
    outcome[0] = state[SCALARS, _COMPARED]
    outcome[1] = state[SCALARS, _DECIDED] if decided else math.nan
    outcome[2] = state[SCALARS, _NEXT] if decided else math.nan


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, _wait, _update, _finish, tables, step, rng, state)


@compiled
def _run_stretches(
    tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    for run in range(results.tallies.shape[0]):
        state[:] = 0.0
        tally = results.tallies[run, 0]
        left = world.horizon
        while left > 0:
            viable = tables.n_arms - int(state[SCALARS, _DROPPED])
            if viable == 1:
                draw_arm(world.environment, 0, int(state[SCALARS, _NEXT]), left, rng, tally)
                left = 0
            else:
                needed = int(_passes_needed(tables, state) - state[SCALARS, _PASSES])
                passes = min(needed, left // viable)
                extra = left - passes * viable if passes < needed else 0
                left -= passes * viable + extra
                for arm in range(tables.n_arms):
                    if state[_GONE, arm] == 0.0:
                        pulls = passes + (1 if extra > 0 else 0)
                        extra = max(extra - 1, 0)
                        state[_SUM, arm] += draw_arm(world.environment, 0, arm, pulls, rng, tally)
                state[SCALARS, _PASSES] += passes
                state[SCALARS, ROUND] = world.horizon - left
                if passes == needed:
                    _compare(tables, state, rng)
                    state[SCALARS, _NEXT] = _viable_from(tables, state, 0)
        _finish(tables, state, results.outcomes[run])


def elimination_epochs(
    n_arms: int, horizon: int, beta: float, epsilon: float = math.inf
) -> tuple[FloatArray, FloatArray]:
    """Passes through the arms in an epoch, and the gap of means that eliminates an arm.

    Returns shape lengths, thresholds (arms + 1, epochs).
    """
    arms = np.arange(n_arms + 1, dtype=np.float64)[:, None]
    arms[0] = np.nan
    epoch = np.arange(1, _MOST_EPOCHS, dtype=np.float64)
    epochs = FreshEpochs(epsilon, beta)
    wide, noise = epochs.logarithms(arms, epoch, horizon)
    real = epochs.length(arms, epoch, horizon)
    thresholds = 2.0 * np.sqrt(wide / (2.0 * real)) + 2.0 * noise / real
    lengths = np.ceil(real)
    begin = np.concatenate([[0.0], np.cumsum(2.0 * lengths[min(2, n_arms)])])[: epoch.size]
    keep = begin <= horizon
    return np.ascontiguousarray(lengths[:, keep]), np.ascontiguousarray(thresholds[:, keep])


def shortest_horizon(n_arms: int, beta: float | None, epsilon: float) -> int:
    """The fewest rounds that hold one whole epoch; beta is 1 / horizon where it is None."""
    horizon = 0
    needed = n_arms
    while needed > horizon:
        horizon = needed
        lengths, _ = elimination_epochs(n_arms, horizon, 1.0 / horizon if beta is None else beta, epsilon)
        needed = n_arms * int(lengths[n_arms, 0])
    return horizon


def elimination_program(
    n_arms: int,
    horizon: int,
    *,
    beta: float,
    epsilon: float = math.inf,
    by_epochs: bool = True,
    recording: bool = False,
    by_rounds: bool = True,
) -> Program:
    """Entry point and tables; an infinite epsilon means no noise, no clipping and no releases."""
    private = math.isfinite(epsilon)
    if by_epochs:
        lengths, thresholds = elimination_epochs(n_arms, horizon, beta, epsilon)
    else:
        lengths = thresholds = np.zeros((1, 1))
    tables = _Tables(
        n_arms=n_arms,
        by_epochs=by_epochs,
        log_start=math.log(4.0 * n_arms / beta),
        epsilon=float(epsilon) if private else 0.0,
        lengths=lengths,
        thresholds=thresholds,
        **written_arrays(
            n_arms if recording else 0, n_arms * lengths.shape[1] if recording and private else 0
        ),
    )
    return Program(
        _run_block if by_rounds else _run_stretches,
        tables,
        (_ROWS, max(n_arms, _SCALAR_COLUMNS)),
        step=_run_step,
        n_outcomes=3,
        n_public=_PUBLIC if private else None,
    )
