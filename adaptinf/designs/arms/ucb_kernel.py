"""Decisions of upper confidence bounds, private and not: compiled kernels and their tables."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.counters.sums import fresh_scale, next_noise, noise_row
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
from adaptinf.simulation.steps import Step, single_step
from adaptinf.typing import FloatArray, IntArray

_COUNT, _SHOWN, _INVERSE, _BASE, _ROOT, _SLOPE, _SUM, _TRUNK = range(1, 9)
_PUBLIC = _SUM
"""Rows before it are what the choice reads: counts, sums as they were released, and what follows from them.
The rest, raw sums and the counters' noise, reaches them through a release alone."""
_CELL, _LOG, _WIDTH, _PULLED = range(2, 6)
_SCALAR_COLUMNS = 8


class UCBTables(NamedTuple):
    """The index of an arm: (noisy sum + q(t) + relaxation)/N + sqrt(width log(t/delta)/N).

    On a cell of `grid`, q(t) is `intercept + slope * log t`, by the law that the noise has at N.
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
def _tick(tables: UCBTables, state: FloatArray) -> None:
    """Count the round, and prepare the next one's log t and width where nothing has to wait for them."""
    now = state[SCALARS, ROUND] + 1.0
    log_next = math.log(now + 1.0)
    state[SCALARS, ROUND] = now
    state[SCALARS, _LOG] = log_next
    state[SCALARS, _WIDTH] = math.sqrt(tables.width * (log_next + tables.log_offset))


@kernel
def _choose(tables: UCBTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    best = _highest(tables, state[:_PUBLIC])
    certain_arm(tables, best)
    return best


@kernel
def _highest(tables: UCBTables, public: FloatArray) -> int:
    """The arm of the highest index, the first of those that are equal; before that, one never pulled."""
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
def _update(
    tables: UCBTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    _tick(tables, state)
    count = state[_COUNT, arm] + 1.0
    state[_COUNT, arm] = count
    if count == 1.0:
        state[SCALARS, _PULLED] += 1.0
    state[_INVERSE, arm] = 1.0 / count
    state[_ROOT, arm] = math.sqrt(1.0 / count)
    if tables.private:
        state[_SUM, arm] += min(max(reward, 0.0), 1.0)
        noise = next_noise(tables.hybrid, tables.trunk, tables.node, state, _TRUNK, arm, int(count), source)
        state[_SHOWN, arm] = state[_SUM, arm] + noise
        scale = fresh_scale(tables.hybrid, tables.trunk, tables.node, int(count))
        release(tables, state, 0, arm, state[_SHOWN, arm], scale)
    else:
        state[_SHOWN, arm] += reward
    _refresh(tables, state[:_PUBLIC], arm)


@compiled
def run_block(tables: UCBTables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    """Runs in a row."""
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def run_step(tables: UCBTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One call of a kernel."""
    return single_step(_choose, _tick, _update, no_outcome, tables, step, rng, state)


def ucb_program(tables: UCBTables) -> Program:
    """The compiled entry points, with rows for the noise of a counter where sums are private."""
    rows = _TRUNK + 1 + tables.slots if tables.private else _TRUNK
    shape = rows, max(tables.n_arms, _SCALAR_COLUMNS)
    return Program(run_block, tables, shape, step=run_step, n_public=_PUBLIC)
