"""The locally private bandit with noise in the visited bin only: not private, for comparison.

Public implementations do this. Whoever sees that a bin gets no report knows that the context is not in it.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from typing import Any

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.bins_kernel import LDPTables, _check, _finish, _report, count_block
from adaptinf.designs.local.cube_tree import (
    BEGUN,
    BINS,
    LEAF,
    LEAVES,
    VISITED,
    begin,
    draw_arm,
    find_bin,
    is_active,
)
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import ROUND, SCALARS, simulate_block

# `starts` and `ends` are written over by the kernels; the sizes of the sources stay.
VisitedTables = namedtuple("VisitedTables", (*LDPTables._fields, "sizes"))


@kernel
def _take(
    tables: Any, state: np.ndarray, row: int, arm: int, reward: float, origin: int, source: Any
) -> None:
    """Report in the bin of the context alone; the last columns count who came, by source."""
    origins = tables.sizes.shape[0]
    visits = state.shape[1] - origins
    state[row, visits + origin] += 1.0
    if is_active(tables, state, row, arm):
        block = count_block(tables, origin)
        state[row, block + arm] += 1.0
        state[row, block + tables.n_arms + arm] += reward
    _report(tables, state, row, origin, 1, source)
    # The check is told that those who came to this bin are all there were.
    seen = 0
    for other in range(origins):
        tables.starts[other] = seen
        seen += int(state[row, visits + other])
        tables.ends[other] = seen
    now = state[SCALARS, ROUND]
    state[SCALARS, ROUND] = seen
    state[row, BEGUN] = 0.0
    for place in range(int(state[SCALARS, LEAVES])):
        if int(state[1 + place, LEAF]) == row:
            _check(tables, state, place, source)
            break
    state[SCALARS, ROUND] = now


@kernel
def _jump_start(tables: Any, state: np.ndarray, source: Any) -> None:
    begin(tables, state)
    participant = 0
    for origin in range(tables.sizes.shape[0] - 1):
        for _ in range(tables.sizes[origin]):
            row = find_bin(tables, state, tables.contexts[participant])
            arm = tables.arms[participant]
            _take(tables, state, row, arm, tables.rewards[participant], origin, source)
            participant += 1


@kernel
def _choose(tables: Any, state: np.ndarray, context: np.ndarray, source: Any) -> int:
    if state[SCALARS, BINS] == 0.0:
        _jump_start(tables, state, source)
    row = find_bin(tables, state, context)
    state[SCALARS, VISITED] = row
    return draw_arm(tables, state, row, source)


@kernel
def _update(
    tables: Any, state: np.ndarray, context: np.ndarray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    _take(tables, state, int(state[SCALARS, VISITED]), arm, reward, tables.sizes.shape[0] - 1, source)


@compiled
def _run_visited(tables: Any, world: Any, rng: Any, state: Any, results: Any) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisitedBinOnly(LDPBandit):
    """LDPBandit without its privacy; `check_every` is 1, and nothing is released."""

    def program(self, environment: Any, horizon: int, *, recording: bool, by_rounds: bool = True) -> Program:
        program = super().program(environment, horizon, recording=False)
        sizes = np.array([*(part.log.n_rounds for part in self.auxiliary), horizon], dtype=np.int64)
        rows, columns = program.state_shape
        return dataclasses.replace(
            program,
            entry=_run_visited,
            tables=VisitedTables(*program.tables, sizes),
            state_shape=(rows, columns + sizes.size),
        )
