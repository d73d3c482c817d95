"""What an onlooker sees of many runs: their actions and their releases, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from adaptinf.simulation.environment import Environment
from adaptinf.simulation.replicate import BLOCK, Collector, block_stream, enter
from adaptinf.simulation.run import Results, empty_record
from adaptinf.typing import FloatArray, IntArray

_ROUNDS = 1 << 22
"""Rounds that are held at once."""


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Outputs of consecutive runs of a design.

    Shapes: actions (runs, rounds), releases (runs, releases, 5), outcomes (runs, outcomes), statuses (runs,
    rounds), rewards (runs, rounds), or (0, 0) where they were not asked for: no output shows them.
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
    """Outputs of runs `start` to `stop`, some thousand runs at a time."""
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
    """Transcripts of several pieces as one."""
    parts = list(pieces)
    names = ("actions", "releases", "outcomes", "statuses", "rewards")
    return Transcripts(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
