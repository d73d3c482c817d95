"""Decisions of upper confidence bounds, private or not: compiled kernels and their tables."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.noise import Fixed
from adaptinf.privacy.tree_sums import fresh_scale, next_noise, noise_row
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    certain_arm,
    no_outcome,
    release,
    simulate_block,
    single_step,
)
from adaptinf.simulation.transcripts import Again, Outbox, Outputs, replay_block
from adaptinf.typing import FloatArray, IntArray

_COUNT, _SHOWN, _INVERSE, _BASE, _ROOT, _SLOPE, _SUM, _TRUNK = range(1, 9)
_PUBLIC = _SUM
"""The choice uses the rows before this one: counts, sums as released, and quantities derived from these. The
other rows (raw sums and the counters' noise) affect these rows only through the outbox.
"""
_OUTBOX = Outbox(_SHOWN, 1)
_CELL, _LOG, _WIDTH, _PULLED = range(2, 6)
_SCALAR_COLUMNS = 8


class UCBTables(NamedTuple):
    """The index of an arm: (noisy sum + q(t) + relaxation)/N + sqrt(width log(t/delta)/N).

    In a cell of `grid`, q(t) is `intercept + slope * log t`, from the distribution of the noise at N.
    """

    n_arms: int
    width: float
    log_offset: float
    relaxation: float
    private: bool
    hybrid: bool
    slots: int
    trunk: float
    node: float
    grid: FloatArray
    intercept: FloatArray
    slope: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _refresh(tables: UCBTables, public: FloatArray, arm: int) -> None:
    """Write an arm's index as base + root * sqrt(width log(t/delta)) + slope * log t."""
    inverse = public[_INVERSE, arm]
    base = public[_SHOWN, arm]
    if tables.private:
        cell = int(public[SCALARS, _CELL])
        row = noise_row(tables.hybrid, tables.slots, int(public[_COUNT, arm]))
        base += tables.relaxation + tables.intercept[cell, row]
        public[_SLOPE, arm] = tables.slope[cell, row] * inverse
    public[_BASE, arm] = base * inverse


@kernel
def _tick(tables: UCBTables, public: FloatArray) -> None:
    """Count the round, and prepare log t and the width for the next one if nothing is pending."""
    now = public[SCALARS, ROUND] + 1.0
    log_next = math.log(now + 1.0)
    public[SCALARS, ROUND] = now
    public[SCALARS, _LOG] = log_next
    public[SCALARS, _WIDTH] = math.sqrt(tables.width * (log_next + tables.log_offset))


@kernel
def _choose(tables: UCBTables, public: FloatArray, context: FloatArray, source: Any) -> int:
    best = _highest(tables, public[:_PUBLIC])
    certain_arm(tables, best)
    return best


@kernel
def _highest(tables: UCBTables, public: FloatArray) -> int:
    """The arm with the highest index, the first in case of ties; arms that were never pulled come first."""
    now = public[SCALARS, ROUND] + 1.0
    best = 0
    if public[SCALARS, _PULLED] < tables.n_arms:
        while public[_COUNT, best] > 0.0:
            best += 1
        return best
    cell = int(public[SCALARS, _CELL])
    if now > tables.grid[cell + 1]:
        while now > tables.grid[cell + 1]:
            cell += 1
        public[SCALARS, _CELL] = cell
        for arm in range(tables.n_arms):
            _refresh(tables, public, arm)
    log_now = public[SCALARS, _LOG]
    width = public[SCALARS, _WIDTH]
    highest = -np.inf
    for arm in range(tables.n_arms):
        index = public[_BASE, arm] + public[_ROOT, arm] * width + public[_SLOPE, arm] * log_now
        if index > highest:
            highest = index
            best = arm
    return best


@kernel
def _pull(tables: UCBTables, public: FloatArray, arm: int) -> float:
    """Count a round and a pull of its arm; return the arm's number of pulls."""
    _tick(tables, public)
    count = public[_COUNT, arm] + 1.0
    public[_COUNT, arm] = count
    if count == 1.0:
        public[SCALARS, _PULLED] += 1.0
    public[_INVERSE, arm] = 1.0 / count
    public[_ROOT, arm] = math.sqrt(1.0 / count)
    return float(count)


@kernel
def _advance(tables: UCBTables, public: FloatArray, context: FloatArray, arm: int) -> int:
    """Count a pull of an arm, after which its sum is released."""
    _pull(tables, public, arm)
    return 1


@kernel
def _learn(tables: UCBTables, state: FloatArray, arm: int, count: int, reward: float, source: Any) -> None:
    """Add a reward to the arm's sum, and release the sum, with the counter's noise if sums are private."""
    if tables.private:
        state[_SUM, arm] += min(max(reward, 0.0), 1.0)
        noise = next_noise(tables.hybrid, tables.trunk, tables.node, state, _TRUNK, arm, count, source)
        scale = fresh_scale(tables.hybrid, tables.trunk, tables.node, count)
        state[_SHOWN, arm] = state[_SUM, arm] + noise
        release(tables, state, 0, arm, state[_SHOWN, arm], scale)
    else:
        state[_SHOWN, arm] += reward


@kernel
def _publish(tables: UCBTables, public: FloatArray, context: FloatArray, arm: int, due: int) -> None:
    """Use the released sum in the arm's index."""
    _refresh(tables, public, arm)


@kernel
def _update(
    tables: UCBTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    count = _pull(tables, state, arm)
    _learn(tables, state, arm, int(count), reward, source)
    _publish(tables, state[:_PUBLIC], context, arm, 1)


@compiled
def run_block(tables: UCBTables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    """Runs in a row."""
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def run_step(tables: UCBTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One call of a kernel."""
    return single_step(_choose, _tick, _update, no_outcome, tables, step, rng, state)


@compiled
def run_replay(tables: UCBTables, seen: Outputs, source: Fixed, public: FloatArray, again: Again) -> None:
    """Decisions recomputed from outputs."""
    replay_block(_choose, _advance, _publish, no_outcome, tables, _OUTBOX, seen, source, public, again)


def ucb_program(tables: UCBTables) -> Program:
    """The compiled entry points, with rows for the noise of a counter if sums are private."""
    rows = _TRUNK + 1 + tables.slots if tables.private else _TRUNK
    shape = rows, max(tables.n_arms, _SCALAR_COLUMNS)
    again = run_replay if tables.private else None
    return Program(run_block, tables, shape, step=run_step, n_public=_PUBLIC, replay=again)
