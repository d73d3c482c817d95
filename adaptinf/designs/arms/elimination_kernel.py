"""Decisions of successive elimination, private or not: compiled kernels, their tables and the shortcut."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.log.traits import FreshEpochs
from adaptinf.privacy.noise import Fixed, named_laplace
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    certain_arm,
    draw_arm,
    simulate_block,
    single_step,
)
from adaptinf.simulation.transcripts import Again, Outbox, Outputs, replay_block, send
from adaptinf.typing import FloatArray, IntArray

_GONE, _MEAN, _SUM = range(1, 4)
_PUBLIC = _SUM
"""If means are private, choices use only the rows before this one, which depend on sums only via releases."""
_OUTBOX = Outbox(_MEAN, 1)
_DROPPED, _COMPARED, _PASSES, _NEXT, _DECIDED, _LEARNT, _BEGUN, _FRESH = range(2, 10)
"""The last three count rounds: those with known outcomes, those of the current turn that have passed, and
those that began before the epoch, whose outcomes are not used."""
_ROWS, _SCALAR_COLUMNS = 4, 10
# Epoch e takes more than 32 * 4^e rounds, so no horizon contains this many epochs.
_MOST_EPOCHS = 64


class _Tables(NamedTuple):
    """Passes and thresholds of an epoch, by its number of arms and its position (from 0).

    Without epochs, the means of all passes so far are compared after each pass, with thresholds sqrt(2
    (log_start + 2 log r) / r).
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
def _passes_needed(tables: _Tables, public: FloatArray) -> float:
    """Passes after which the arms are compared, counted as in the state."""
    if tables.by_epochs:
        left = tables.n_arms - int(public[SCALARS, _DROPPED])
        return float(tables.lengths[left, int(public[SCALARS, _COMPARED])])
    return float(public[SCALARS, _PASSES]) + 1.0


@kernel
def _threshold(tables: _Tables, public: FloatArray) -> float:
    if tables.by_epochs:
        left = tables.n_arms - int(public[SCALARS, _DROPPED])
        return float(tables.thresholds[left, int(public[SCALARS, _COMPARED])])
    passes = public[SCALARS, _PASSES]
    return math.sqrt(2.0 * (tables.log_start + 2.0 * math.log(passes)) / passes)


@kernel
def _viable_from(tables: _Tables, public: FloatArray, arm: int) -> int:
    """The first remaining arm from `arm` onwards, or the number of arms."""
    while arm < tables.n_arms and public[_GONE, arm] > 0.0:
        arm += 1
    return arm


@kernel
def _send_means(tables: _Tables, state: FloatArray, source: Any) -> None:
    """Release the mean of each remaining arm, with noise if means are private; reset the epoch's sums."""
    passes = state[SCALARS, _PASSES]
    for arm in range(tables.n_arms):
        if state[_GONE, arm] == 0.0:
            total = state[_SUM, arm]
            if tables.epsilon > 0.0:
                epoch = int(state[SCALARS, _COMPARED]) + 1
                total += named_laplace(source, 1.0 / tables.epsilon, arm, epoch)
                send(tables, state, _OUTBOX, 0, arm, total / passes, 1.0 / (tables.epsilon * passes))
            else:
                state[_MEAN, arm] = total / passes
    if tables.by_epochs:
        state[_SUM, : tables.n_arms] = 0.0


@kernel
def _compare(tables: _Tables, public: FloatArray) -> None:
    """Drop the arms whose mean lies too far below the highest mean; the first remaining arm is next."""
    threshold = _threshold(tables, public)
    highest, lowest = -np.inf, np.inf
    for arm in range(tables.n_arms):
        if public[_GONE, arm] == 0.0:
            highest = max(highest, public[_MEAN, arm])
            lowest = min(lowest, public[_MEAN, arm])
    if highest - lowest > threshold:
        for arm in range(tables.n_arms):
            if public[_GONE, arm] == 0.0 and highest - public[_MEAN, arm] > threshold:
                public[_GONE, arm] = 1.0
                public[SCALARS, _DROPPED] += 1.0
    if tables.by_epochs:
        public[SCALARS, _PASSES] = 0.0
    public[SCALARS, _COMPARED] += 1.0
    public[SCALARS, _FRESH] = public[SCALARS, _BEGUN]
    if public[SCALARS, _DROPPED] == tables.n_arms - 1.0:
        public[SCALARS, _DECIDED] = public[SCALARS, ROUND]
    public[SCALARS, _NEXT] = _viable_from(tables, public, 0)


@kernel
def _choose(tables: _Tables, public: FloatArray, context: FloatArray, source: Any) -> int:
    arm = int(public[SCALARS, _NEXT])
    certain_arm(tables, arm)
    return arm


@kernel
def _turn(tables: _Tables, public: FloatArray, arm: int) -> None:
    """Pass the turn to the next arm after a round, unless the round was overridden."""
    public[SCALARS, _BEGUN] += 1.0
    if tables.status[0] == 0:
        following = _viable_from(tables, public, arm + 1)
        if following == tables.n_arms:
            following = _viable_from(tables, public, 0)
        public[SCALARS, _NEXT] = following


@kernel
def _wait(tables: _Tables, state: FloatArray) -> None:
    """Record that a round has begun whose outcome may arrive later; a repeated call has no effect."""
    state[SCALARS, ROUND] += 1.0
    if state[SCALARS, _BEGUN] < state[SCALARS, ROUND]:
        _turn(tables, state, int(state[SCALARS, _NEXT]))


@kernel
def _advance(tables: _Tables, public: FloatArray, context: FloatArray, arm: int) -> int:
    """Count an outcome; return the number of means due after an epoch, or -1 if the outcome is unused."""
    public[SCALARS, ROUND] += 1.0
    public[SCALARS, _LEARNT] += 1.0
    if public[SCALARS, _BEGUN] < public[SCALARS, _LEARNT]:
        _turn(tables, public, arm)
    stale = public[SCALARS, _LEARNT] <= public[SCALARS, _FRESH]
    decided = public[SCALARS, _DROPPED] == tables.n_arms - 1.0
    if tables.status[0] > 0 or stale or decided:
        return -1
    if _viable_from(tables, public, arm + 1) < tables.n_arms:
        return 0
    needed = _passes_needed(tables, public)
    public[SCALARS, _PASSES] += 1.0
    return tables.n_arms - int(public[SCALARS, _DROPPED]) if public[SCALARS, _PASSES] >= needed else 0


@kernel
def _learn(tables: _Tables, state: FloatArray, arm: int, reward: float, due: int, source: Any) -> None:
    """Add a reward to its arm's sum, if it is used; after an epoch, release the means."""
    if due >= 0:
        state[_SUM, arm] += min(max(reward, 0.0), 1.0) if tables.epsilon > 0.0 else reward
    if due > 0:
        _send_means(tables, state, source)


@kernel
def _publish(tables: _Tables, public: FloatArray, context: FloatArray, arm: int, due: int) -> None:
    if due > 0:
        _compare(tables, public)


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    due = _advance(tables, state[:_PUBLIC], context, arm)
    _learn(tables, state, arm, reward, due, source)
    _publish(tables, state[:_PUBLIC], context, arm, due)


@kernel
def _finish(tables: _Tables, public: FloatArray, outcome: FloatArray) -> None:
    decided = public[SCALARS, _DECIDED] > 0.0
    outcome[0] = public[SCALARS, _COMPARED]
    outcome[1] = public[SCALARS, _DECIDED] if decided else math.nan
    outcome[2] = public[SCALARS, _NEXT] if decided else math.nan


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, _wait, _update, _finish, tables, step, rng, state)


@compiled
def _run_replay(tables: _Tables, seen: Outputs, source: Fixed, public: FloatArray, again: Again) -> None:
    replay_block(_choose, _advance, _publish, _finish, tables, _OUTBOX, seen, source, public, again)


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
                passes = needed if needed * viable <= left else left // viable
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
                    _send_means(tables, state, rng)
                    _compare(tables, state[:_PUBLIC])
        _finish(tables, state, results.outcomes[run])


def elimination_epochs(
    n_arms: int, horizon: int, beta: float, epsilon: float = math.inf
) -> tuple[FloatArray, FloatArray]:
    """Passes through the arms in an epoch, and the difference in means that eliminates an arm.

    Shapes of the result: lengths, thresholds (arms + 1, epochs).
    """
    arms = np.arange(n_arms + 1, dtype=np.float64)[:, None]
    arms[0] = np.nan
    epoch = np.arange(1, _MOST_EPOCHS, dtype=np.float64)
    epochs = FreshEpochs(epsilon, beta)
    wide, noise = epochs.logarithms(arms, epoch, horizon)
    real = epochs.length(arms, epoch, horizon)
    thresholds = 2.0 * np.sqrt(wide / (2.0 * real)) + 2.0 * noise / real
    lengths = np.ceil(real)
    # Passes with two arms are the shortest possible, so no run reaches an epoch that would begin beyond the
    # horizon even with two arms.
    begin = np.concatenate([[0.0], np.cumsum(2.0 * lengths[min(2, n_arms)])])[: epoch.size]
    keep = begin <= horizon
    return np.ascontiguousarray(lengths[:, keep]), np.ascontiguousarray(thresholds[:, keep])


def shortest_horizon(n_arms: int, beta: float | None, epsilon: float) -> int:
    """Smallest number of rounds that contains a complete epoch; `beta` None stands for 1 / horizon."""
    horizon = 0
    needed = n_arms
    # With beta = 1 / horizon, a longer horizon needs a longer first epoch, so the horizon is increased until
    # its first epoch fits.
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
        replay=_run_replay if private else None,
    )
