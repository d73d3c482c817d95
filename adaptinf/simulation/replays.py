"""Decisions made again from what was released: the public side of a design, on outputs that were seen.

A private design has two sides. `learn` sees rewards and noise, and leaves what it releases in the outbox, a
row of the public state. Everything else reads public rows alone: `choose`; `advance`, which counts a round
and says how many numbers are released after it; `publish`, which moves on from the outbox; `finish`. A replay
fills the outbox from the releases of a run and calls these very kernels: no decision is written twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import inlined, kernel
from adaptinf.privacy.noise import Fixed
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import release
from adaptinf.typing import FloatArray, IntArray

_END, _NAME, _GROUP, _VALUE = range(4)


class Outbox(NamedTuple):
    """Where a release has its place: in this row of the state, in column ``group * names + name``."""

    row: int
    names: int


class Outputs(NamedTuple):
    """What consecutive runs showed, and the contexts of their rounds, which are those of every run.

    Shapes: actions, statuses (runs, rounds), releases (runs, releases, 5), contexts (rounds, entries).
    """

    actions: IntArray
    statuses: IntArray
    releases: FloatArray
    contexts: FloatArray


class Again(NamedTuple):
    """What follows from outputs: the next action and status, when numbers are released, what is reported.

    Shapes: actions, statuses (runs, rounds), ends (runs, releases), outcomes (runs, outcomes).
    """

    actions: IntArray
    statuses: IntArray
    ends: FloatArray
    outcomes: FloatArray


@kernel
def send(
    tables: Any,
    state: FloatArray,
    outbox: Outbox,
    name: int,
    group: int,
    value: float,
    scale: float,
) -> None:
    """Release a number: where its name and group have their place in the outbox, and in `released`."""
    state[outbox.row, group * outbox.names + name] = value
    release(tables, state, name, group, value, scale)


@kernel
def _deliver(outbox: Outbox, public: FloatArray, releases: FloatArray, row: int, now: int) -> int:
    """Put what was released after a round into the outbox; the row of the first later release."""
    while row < releases.shape[0] and releases[row, _END] == now:
        column = int(releases[row, _GROUP]) * outbox.names + int(releases[row, _NAME])
        if 0 <= column < public.shape[1]:
            public[outbox.row, column] = releases[row, _VALUE]
        row += 1
    return row


@inlined
def replay_block(
    choose: Callable[..., int],
    advance: Callable[..., int],
    publish: Callable[..., None],
    finish: Callable[..., None],
    tables: Any,
    outbox: Outbox,
    seen: Outputs,
    source: Fixed,
    public: FloatArray,
    again: Again,
) -> None:
    """Make the decisions of every run again, each from the outputs before it.

    Shapes: public (public rows, columns). Rounds have the arms and statuses that were seen, whatever follows.
    """
    for run in range(seen.actions.shape[0]):
        public[:] = 0.0
        tables.status[0] = 0
        row, expected = 0, 0
        for step in range(seen.actions.shape[1]):
            context, arm = seen.contexts[step], seen.actions[run, step]
            again.actions[run, step] = choose(tables, public, context, source)
            again.statuses[run, step] = tables.status[0]
            tables.status[0] = seen.statuses[run, step]
            due = advance(tables, public, context, arm)
            for _ in range(due):
                if expected < again.ends.shape[1]:
                    again.ends[run, expected] = step + 1
                expected += 1
            row = _deliver(outbox, public, seen.releases[run], row, step + 1)
            publish(tables, public, context, arm, due)
            tables.status[0] = 0
        finish(tables, public, again.outcomes[run])


def replay(program: Program, seen: Outputs, coin: float) -> Again:
    """What follows from outputs where all coins fall alike, at a number in [0, 1)."""
    runs, rounds = seen.actions.shape
    again = Again(
        np.zeros((runs, rounds), dtype=np.int64),
        np.zeros((runs, rounds), dtype=np.int64),
        np.full(seen.releases.shape[:2], np.nan),
        np.zeros((runs, program.n_outcomes)),
    )
    # what is not public cannot be read without being noticed
    state = np.full(program.state_shape, np.nan)
    program.replay(program.tables, seen, Fixed(coin), state[: program.n_public], again)
    return again
