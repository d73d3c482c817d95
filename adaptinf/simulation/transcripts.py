"""What an onlooker sees of many runs: their actions and their releases, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adaptinf.simulation.environment import Environment
from adaptinf.simulation.replicate import BLOCK, Collector, block_stream
from adaptinf.simulation.run import RELEASED, SCALARS, Results, empty_record
from adaptinf.typing import FloatArray, IntArray

__all__ = ["Transcripts", "sample_transcripts"]

_RELEASE_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Outputs of consecutive runs of a design.

    Attributes
    ----------
    actions : ndarray of int, shape (runs, rounds)
        Arms that were pulled.
    releases : ndarray of shape (runs, releases, 5)
        Round, code of the name, group, value and scale of the noise of each release; NaN where a run made
        fewer.
    outcomes : ndarray of shape (runs, outcomes)
        What the design reported at the end of each run.
    """

    actions: IntArray
    releases: FloatArray
    outcomes: FloatArray


def sample_transcripts(
    collector: Collector,
    environment: Environment,
    horizon: int,
    start: int,
    stop: int,
    root: np.random.SeedSequence,
    size: int = 64 * BLOCK,
) -> Iterator[Transcripts]:
    """Outputs of runs `start` to `stop`, some thousand runs at a time.

    Parameters
    ----------
    collector : Collector
        The design.
    environment : Environment
        Where contexts and rewards come from.
    horizon : int
        Rounds of a run.
    start, stop : int
        First run, a multiple of 64, and the one after the last.
    root : SeedSequence
        Run r depends on (root, r) alone, and has the numbers of run r of `replicate_blocks`.
    size : int
        Runs in one piece, a multiple of 64.

    Yields
    ------
    Transcripts
    """
    program = collector.program(environment, horizon, recording=True)
    tables, world = program.tables, program.world(environment, horizon)
    record = empty_record(horizon, environment.n_arms, program.share.shape[0] > 0, environment.dimension)
    shape = (1, program.n_statuses, environment.n_features, environment.n_arms, 3)
    tallies, regret, outcome = np.zeros(shape), np.zeros(1), np.zeros((1, program.n_outcomes))
    results = Results(tallies, outcome, regret, record)
    state = np.zeros(program.state_shape)
    stream = block_stream(root, start)
    for first in range(start, stop, size):
        runs = min(size, stop - first)
        actions = np.empty((runs, horizon), dtype=np.int64)
        releases = np.full((runs, tables.released.shape[0], _RELEASE_COLUMNS), np.nan)
        outcomes = np.empty((runs, program.n_outcomes))
        for run in range(runs):
            if (first + run) % BLOCK == 0:
                stream = block_stream(root, first + run)
            outcome[:] = 0.0
            program.entry(tables, world, stream, state, results)
            made = int(state[SCALARS, RELEASED])
            actions[run] = record.action
            releases[run, :made] = tables.released[:made]
            outcomes[run] = outcome[0]
        yield Transcripts(actions, releases, outcomes)
