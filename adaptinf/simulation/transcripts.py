"""The observable part of runs, their actions and releases, and decisions recomputed from it.

A private design has two sides. `learn` receives rewards and noise, and writes its releases to the outbox, a
row of the public state. All other kernels use only public rows: `choose`; `advance`, which counts a round and
determines how many numbers are released after it; `publish`, which continues from the outbox; and `finish`. A
replay fills the outbox from the releases of a run and calls the same kernels, so no decision is implemented
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import inlined, kernel
from adaptinf.privacy.noise import Fixed
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.replicate import BLOCK, Collector, Program, block_stream, enter
from adaptinf.simulation.run import Results, empty_record, release
from adaptinf.typing import FloatArray, IntArray

_ROUNDS = 1 << 22
"""Number of rounds in memory at once."""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Outputs of consecutive runs of a design.

    Shapes: actions (runs, rounds), releases (runs, releases, 5), outcomes (runs, outcomes), statuses (runs,
    rounds), rewards (runs, rounds), or (0, 0) if they were not requested: no output shows them.
    """

    actions: IntArray
    releases: FloatArray
    outcomes: FloatArray
    statuses: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    rewards: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


def sample_transcripts(
    collector: Collector,
    environment: Environment,
    horizon: int,
    start: int,
    stop: int,
    root: np.random.SeedSequence,
    size: int | None = None,
    with_rewards: bool = False,
) -> Iterator[Transcripts]:
    """Outputs of runs `start` to `stop`, several thousand runs at a time."""
    program = collector.program(environment, horizon, recording=True)
    tables, world = program.tables, program.world(environment, horizon)
    blank = empty_record(horizon, environment.n_arms, program.share.shape[0] > 0, environment.dimension)
    shape = (BLOCK, program.n_statuses, environment.n_features, environment.n_arms, 3)
    tallies, regret, state = np.zeros(shape), np.zeros(BLOCK), np.zeros(program.state_shape)
    size = BLOCK * max(1, min(64, _ROUNDS // (horizon * BLOCK))) if size is None else size
    for first in range(start, stop, size):
        runs = min(size, stop - first)
        piece = Transcripts(
            actions=np.empty((runs, horizon), dtype=np.int64),
            releases=np.full((runs, *tables.released.shape), np.nan),
            outcomes=np.zeros((runs, program.n_outcomes)),
            statuses=np.empty((runs, horizon), dtype=np.int64),
            rewards=np.empty((runs, horizon) if with_rewards else (0, 0)),
        )
        for done in range(0, runs, BLOCK):
            part = slice(done, min(done + BLOCK, runs))
            block = part.stop - part.start
            record = blank._replace(
                actions=piece.actions[part],
                statuses=piece.statuses[part],
                rewards=piece.rewards[part],
                releases=piece.releases[part],
            )
            results = Results(tallies[:block], piece.outcomes[part], regret[:block], record)
            enter(program, environment, world, block_stream(root, first + done), state, results)
        yield piece


def join_transcripts(pieces: Iterable[Transcripts]) -> Transcripts:
    """Transcripts from several pieces merged into one."""
    parts = list(pieces)
    names = ("actions", "releases", "outcomes", "statuses", "rewards")
    return Transcripts(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


_END, _NAME, _GROUP, _VALUE = range(4)


class Outbox(NamedTuple):
    """Location of a release: a row of the state, and the column ``group * names + name`` in this row."""

    row: int
    names: int


class Outputs(NamedTuple):
    """Outputs of consecutive runs, and the contexts of their rounds, which all runs share.

    Shapes: actions, statuses (runs, rounds), releases (runs, releases, 5), contexts (rounds, entries).
    """

    actions: IntArray
    statuses: IntArray
    releases: FloatArray
    contexts: FloatArray


class Again(NamedTuple):
    """Consequences of outputs: the next action and status, when numbers are released, and the final report.

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
    """Release a number: write it to the position of its name and group in the outbox, and to `released`."""
    state[outbox.row, group * outbox.names + name] = value
    release(tables, state, name, group, value, scale)


@kernel
def _deliver(outbox: Outbox, public: FloatArray, releases: FloatArray, row: int, now: int) -> int:
    """Put the numbers released after a round into the outbox; returns the row of the first later release."""
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
    """Recompute the decisions of every run, each from the outputs before it.

    Shapes: public (public rows, columns). Rounds have the observed arms and statuses, regardless of later
    rounds.
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
    """Consequences of outputs if all coins have the same value, a number in [0, 1)."""
    runs, rounds = seen.actions.shape
    again = Again(
        np.zeros((runs, rounds), dtype=np.int64),
        np.zeros((runs, rounds), dtype=np.int64),
        np.full(seen.releases.shape[:2], np.nan),
        np.zeros((runs, program.n_outcomes)),
    )
    # NaN in everything that is not public makes any use of it visible in the results.
    state = np.full(program.state_shape, np.nan)
    program.replay(program.tables, seen, Fixed(coin), state[: program.n_public], again)
    return again
