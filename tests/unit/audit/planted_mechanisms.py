"""Faults in compiled mechanisms: what is summed up before the noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from planting import recompiled, replaced

from adaptinf.compilation import kernel
from adaptinf.designs.arms import elimination_kernel as elimination
from adaptinf.designs.best_arm import best_arm_kernel as best_arm
from adaptinf.designs.best_arm.best_arm_kernel import ACTIVE, NO_NOISE, SUM, outbox_of
from adaptinf.privacy.noise import named_laplace
from adaptinf.simulation.run import SCALARS
from adaptinf.simulation.transcripts import send


@kernel
def _learn_on(tables: Any, state: Any, place: int, reward: float, due: int, source: Any) -> None:
    """As `_learn`, but the last two rows keep all rewards of an arm and their number for later phases."""
    if due < 0:
        return
    state[SUM, place] += reward if tables.law == NO_NOISE else min(max(reward, 0.0), 1.0)
    if due > 0:
        totals, numbers = state.shape[0] - 2, state.shape[0] - 1
        outbox, phase = outbox_of(tables), int(state[SCALARS, best_arm._PHASE])
        for slot in range(int(state[SCALARS, best_arm._PULLED])):
            arm = int(state[ACTIVE, tables.pulled[slot]])
            state[totals, arm] += state[SUM, slot]
            state[numbers, arm] += float(tables.counts[slot])
            count = state[numbers, arm]
            noisy = state[totals, arm] + named_laplace(source, tables.noise, arm, phase + 1)
            send(tables, state, outbox, 0, arm, noisy / count, tables.noise / count)
        state[SUM, :] = 0.0


@contextmanager
def sums_go_on() -> Iterator[None]:
    """The mean of an arm that stays is that of all its rewards so far."""
    with recompiled(best_arm.__name__, _learn=_learn_on):
        made = best_arm.best_arm_program

        def wider(tables: Any) -> Any:
            program = made(tables)
            rows, columns = program.state_shape
            return dataclasses.replace(program, state_shape=(rows + 2, columns))

        with replaced(made, wider):
            yield


@kernel
def _send_even(tables: Any, state: Any, source: Any) -> None:
    """As `_send_means`, of sums that are rounded up to even whole numbers."""
    passes = state[SCALARS, elimination._PASSES]
    for arm in range(tables.n_arms):
        if state[elimination._GONE, arm] == 0.0:
            total = state[elimination._SUM, arm]
            if tables.epsilon > 0.0:
                epoch = int(state[SCALARS, elimination._COMPARED]) + 1
                total = 2.0 * math.ceil(total / 2.0)
                total += named_laplace(source, 1.0 / tables.epsilon, arm, epoch)
                scale = 1.0 / (tables.epsilon * passes)
                send(tables, state, elimination._OUTBOX, 0, arm, total / passes, scale)
            else:
                state[elimination._MEAN, arm] = total / passes
    if tables.by_epochs:
        state[elimination._SUM, : tables.n_arms] = 0.0


@contextmanager
def sums_in_pairs() -> Iterator[None]:
    """In simulations an epoch's sums are rounded up to even numbers before the noise; live ones are right."""
    right = elimination._run_step
    with recompiled(elimination.__name__, _send_means=_send_even):
        made = elimination.elimination_program

        def simulated(*sizes: Any, **settings: Any) -> Any:
            return dataclasses.replace(made(*sizes, **settings), step=right)

        with replaced(made, simulated):
            yield
