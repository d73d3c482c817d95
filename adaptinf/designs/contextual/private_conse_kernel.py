"""Kernels of DP-ConSE in its corrected calibration: no count ever ends a phase.

If there is only one context, the number of participants is public, so the count for this context is released
without noise.

Rounds within a window only add to sums, so a replicate can also be run window by window: arrivals are
multinomial; coins, trial entries and 0/1 rewards are binomial. Both methods use the same code for decisions.
"""

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
    estimation_budget,
    write_propensity,
)
from adaptinf.privacy.noise import Fixed, named_laplace, uniform
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    EnvironmentTables,
    Results,
    Step,
    World,
    draw_arm,
    draw_arrivals,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.simulation.transcripts import Again, Outbox, Outputs, replay_block, send
from adaptinf.typing import FloatArray, IntArray

_WINDOW, _T_MIN, _LEARNT = 2, 3, 4
"""The last entry counts the rounds whose outcome is known, which determine windows and halves."""
_DECIDED, _POOLED, _TOTAL, _INCLUSION, _BETTER, _OUT, _CONTRAST, _ARRIVALS = range(1, 9)
_PUBLIC, _ROWS = _CONTRAST, 9
"""Choices use the rows before the sums and counts of the current window."""
_OUTBOX = Outbox(_OUT, 2)
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
def _choose(tables: _Tables, public: FloatArray, context: FloatArray, source: Any) -> int:
    feature = int(context[0])
    first_half = public[SCALARS, _LEARNT] < tables.horizon // 2
    if first_half:
        inclusion = 1.0 if public[_DECIDED, feature] == 0.0 else 0.0
    else:
        inclusion = public[_INCLUSION, feature]
    better = int(public[_BETTER, feature])
    write_propensity(tables.propensity, 0.5 * inclusion + (1.0 - inclusion) * better)
    draw = uniform(source) if inclusion > 0.0 else 1.0
    if draw < inclusion:
        tables.status[0] = LEARNING_RANDOMISED if first_half else ESTIMATION_RANDOMISED
        return 1 if draw < 0.5 * inclusion else 0
    tables.status[0] = LEARNING_BETTER if first_half else ESTIMATION_BETTER
    return better


@kernel
def _due(tables: _Tables, public: FloatArray) -> int:
    """Number of values released now: after a window, the arrivals and the undecided contexts' contrasts."""
    now = int(public[SCALARS, _LEARNT])
    if now == tables.horizon:
        return 2 * tables.n_features
    if now > tables.horizon // 2 or now != tables.ends[int(public[SCALARS, _WINDOW])]:
        return 0
    due = tables.n_features
    for feature in range(tables.n_features):
        if public[_DECIDED, feature] == 0.0:
            due += 1
    return due


@kernel
def _send_sum(tables: _Tables, state: FloatArray, kind: int, feature: int, window: int, source: Any) -> None:
    """Release a sum or a count with its noise or, if it is public, unchanged with scale 0."""
    row, scale = _CONTRAST, tables.contrast_scale
    if kind == _ARRIVAL_COUNT:
        row, scale = _ARRIVALS, tables.arrival_scale
    value = state[row, feature]
    if scale > 0.0:
        value += named_laplace(source, scale, 2 * feature + kind, window)
    send(tables, state, _OUTBOX, kind, feature, value, scale)
    state[row, feature] = 0.0


@kernel
def _send_sums(tables: _Tables, state: FloatArray, source: Any) -> None:
    """Release the window's sums; in the first half, only for contexts in which no arm has been dropped."""
    window = int(state[SCALARS, _WINDOW]) + 1
    last = int(state[SCALARS, _LEARNT]) == tables.horizon
    for feature in range(tables.n_features):
        _send_sum(tables, state, _ARRIVAL_COUNT, feature, window, source)
        if last or state[_DECIDED, feature] == 0.0:
            _send_sum(tables, state, _CONTRAST_SUM, feature, window, source)
        state[_CONTRAST, feature] = 0.0


@kernel
def _window_ends(tables: _Tables, public: FloatArray) -> None:
    """Drop the worse arm if the window's sums identify it."""
    for feature in range(tables.n_features):
        arrivals = public[_OUT, 2 * feature + _ARRIVAL_COUNT]
        public[_TOTAL, feature] += arrivals
        if public[_DECIDED, feature] == 0.0:
            contrast = public[_OUT, 2 * feature + _CONTRAST_SUM]
            public[_POOLED, feature] += contrast
            upper = max(arrivals + tables.arrival_scale * tables.log_two, 0.0)
            threshold = math.sqrt(0.5 * upper * tables.log_four) + tables.contrast_scale * tables.log_two
            if abs(contrast) > threshold:
                public[_DECIDED, feature] = 1.0
                public[_BETTER, feature] = 1.0 if contrast > 0.0 else 0.0
    public[SCALARS, _WINDOW] += 1.0


@kernel
def _half_time(tables: _Tables, public: FloatArray) -> None:
    """Fix the probability of entering the trial, from released numbers only."""
    for feature in range(tables.n_features):
        public[_TOTAL, feature] = max(1.0, public[_TOTAL, feature])
        if public[_DECIDED, feature] == 0.0:
            public[_BETTER, feature] = 1.0 if public[_POOLED, feature] > 0.0 else 0.0
    budget = estimation_budget(tables.least, public[_TOTAL], tables.n_features, tables.alpha)
    public[SCALARS, _T_MIN] = budget
    for feature in range(tables.n_features):
        public[_INCLUSION, feature] = min(1.0, budget / public[_TOTAL, feature])


@kernel
def _advance(tables: _Tables, public: FloatArray, context: FloatArray, arm: int) -> int:
    """Count a known outcome; return how many numbers are released after it, according to the schedule."""
    public[SCALARS, ROUND] += 1.0
    public[SCALARS, _LEARNT] += 1.0
    return _due(tables, public)


@kernel
def _learn(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, due: int, source: Any
) -> None:
    """Add a randomised round to the context's contrast and count; release both if they are due."""
    now = int(state[SCALARS, _LEARNT])
    feature = int(context[0])
    first_half = now <= tables.horizon // 2
    randomised = tables.status[0] == (LEARNING_RANDOMISED if first_half else ESTIMATION_RANDOMISED)
    if randomised:
        clipped = min(max(reward, 0.0), 1.0)
        state[_CONTRAST, feature] += (2.0 * arm - 1.0) * (clipped - 0.5)
    if first_half or randomised:
        state[_ARRIVALS, feature] += 1.0
    if due > 0:
        _send_sums(tables, state, source)


@kernel
def _publish(tables: _Tables, public: FloatArray, context: FloatArray, arm: int, due: int) -> None:
    now = int(public[SCALARS, _LEARNT])
    if due > 0 and now <= tables.horizon // 2:
        _window_ends(tables, public)
        if now == tables.horizon // 2:
            _half_time(tables, public)


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    due = _advance(tables, state[:_PUBLIC], context, arm)
    _learn(tables, state, context, arm, reward, due, source)
    _publish(tables, state[:_PUBLIC], context, arm, due)


@kernel
def _finish(tables: _Tables, public: FloatArray, outcome: FloatArray) -> None:
    """Report T_min and each context's last contrast and count, its share of the trial and its better arm."""
    ended = public[SCALARS, _LEARNT] == tables.horizon
    outcome[0] = public[SCALARS, _T_MIN]
    n_features = tables.n_features
    for feature in range(n_features):
        for kind in range(2):
            shown = public[_OUT, 2 * feature + kind] if ended else 0.0
            outcome[1 + kind * n_features + feature] = shown
        outcome[1 + 2 * n_features + feature] = public[_INCLUSION, feature]
        outcome[1 + 3 * n_features + feature] = public[_BETTER, feature]


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


@compiled
def _run_replay(tables: _Tables, seen: Outputs, source: Fixed, public: FloatArray, again: Again) -> None:
    replay_block(_choose, _advance, _publish, _finish, tables, _OUTBOX, seen, source, public, again)


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
            state[SCALARS, ROUND] = state[SCALARS, _LEARNT] = end
            _send_sums(tables, state, rng)
            _window_ends(tables, state[:_PUBLIC])
            begin = end
        _half_time(tables, state[:_PUBLIC])
        draw_arrivals(environment, begin, world.horizon, rng, state[_ARRIVALS])
        for feature in range(tables.n_features):
            arrivals = int(state[_ARRIVALS, feature])
            included = rng.binomial(arrivals, state[_INCLUSION, feature])
            _randomise(environment, feature, included, rng, state, tallies[run, ESTIMATION_RANDOMISED])
            better = int(state[_BETTER, feature])
            draw_arm(environment, feature, better, arrivals - included, rng, tallies[run, ESTIMATION_BETTER])
            state[_ARRIVALS, feature] = included
        state[SCALARS, ROUND] = state[SCALARS, _LEARNT] = tables.horizon
        _send_sums(tables, state, rng)
        _finish(tables, state[:_PUBLIC], results.outcomes[run])


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
    """Last rounds of the first half's windows, whose lengths double."""
    # A remainder shorter than half of the next window is joined to the previous window.
    # A first window of n / 64 rounds is all randomised, so its regret is linear in n. The upper bound keeps
    # the regret of order M log n; it takes effect from n of about 200,000 for one context and 3 million for
    # ten.
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
    """Tables and entry point: windows end at `ends`, and sums and arrivals have their own budgets."""
    # Without a budget for them, arrivals are released exactly. The constants drop the better arm with
    # probability at most 3/4 of beta = 1 / horizon.
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
        (_ROWS, max(2 * n_features, _SCALAR_COLUMNS)),
        n_statuses=len(CONSE_STATUSES),
        step=_run_step,
        n_outcomes=1 + 4 * n_features,
        n_public=_PUBLIC,
        replay=_run_replay,
    )
