"""Replication: blocks of 64 runs, one stream of random numbers per block, in threads or processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from adaptinf.parameters import SEED, check
from adaptinf.privacy.noise import generator
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.run import RELEASED, SCALARS, Record, Results, World, empty_record
from adaptinf.typing import FloatArray, IntArray, RandomSource
from adaptinf.workers import n_workers, spread

BLOCK = 64
"""Number of replicates that share a stream: replicate r depends only on (rng, r)."""


@dataclass(frozen=True, slots=True)
class Program:
    """Inputs to the run loop from a design, for one environment and horizon; share (0,) or (rounds,).

    Single steps use their compiled entry point, `Functions` in Python, or None. Choices use the first
    `n_public` rows of the state, which contain only released numbers, or all rows if it is None. `replay` is
    the entry point that recomputes decisions from releases; None if releases do not determine decisions.
    """

    entry: Any
    tables: Any
    state_shape: tuple[int, int]
    n_statuses: int = 1
    n_outcomes: int = 0
    share: FloatArray = field(default_factory=lambda: np.zeros(0))
    step: Any = None
    n_public: int | None = None
    replay: Any = None

    @property
    def compiled(self) -> bool:
        """Whether the entry point is compiled, so that threads run it side by side."""
        return isinstance(self.entry, Dispatcher)

    def world(self, environment: Environment, horizon: int) -> World:
        """The environment that a run of this program is exposed to."""
        nothing = np.zeros(0, dtype=np.int64)
        return World(environment.layout(horizon), horizon, self.share, self.n_statuses - 1, nothing)


def enter(
    program: Program,
    environment: Environment,
    world: World,
    stream: np.random.Generator,
    state: FloatArray,
    results: Results,
) -> None:
    """Run a program once per row of the results, with new tables for each run if these are renewed.

    Shapes: state as in the program.
    """
    if not environment.renewed:
        program.entry(program.tables, world, stream, state, results)
        return
    for run in range(results.tallies.shape[0]):
        there = world._replace(environment=environment.renew(world.horizon, stream).tables)
        program.entry(program.tables, there, stream, state, results.of_run(run))


def written_arrays(n_arms: int, releases: int = 0) -> dict[str, Any]:
    """Arrays that kernels write, with shapes (1,), (n_arms,) and (releases, 5)."""
    return {
        "status": np.zeros(1, dtype=np.int64),
        "propensity": np.zeros(n_arms),
        "released": np.zeros((releases, 5)),
    }


class Collector(Protocol):
    """Anything that can be run: a design."""

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Entry point and tables; `recording` requests propensities and releases, without a shortcut."""


@dataclass(frozen=True, slots=True)
class Block:
    """Raw results of consecutive runs.

    Shapes: tallies (runs, statuses, features, arms, 3), outcomes (runs, outcomes), regret (runs,).
    """

    tallies: FloatArray
    outcomes: FloatArray
    regret: FloatArray


@dataclass(frozen=True, slots=True)
class Run:
    """Raw results of one recorded run: its rounds, its releases, and its final report.

    `units` (rounds,) if rounds belong to units; `known` (rounds,) if outcomes arrive late, as in `LogArrays`;
    `missing`, the meaning of missing outcomes; `amended`, the number of amended outcomes whose original
    values the design used; arms that were removed or that joined, each with the number of rounds before that;
    `noise`, the source of noise; further outcomes by name, (rounds,) each. For a session with a window: the
    number of further participants that an outcome had to arrive, the value of late outcomes, and the in-time
    sums, (arms, 2), once they are released, with their privacy.
    """

    record: Record
    released: FloatArray
    outcome: FloatArray
    units: NDArray[Any] | None = None
    known: IntArray | None = None
    missing: str | None = None
    amended: int = 0
    removed: tuple[tuple[int, int], ...] = ()
    added: tuple[tuple[int, int], ...] = ()
    switched: tuple[tuple[str, int], ...] = ()
    noise: str = "simulation"
    outcomes: Mapping[str, FloatArray] = field(default_factory=dict)
    window: int | None = None
    late: float | None = None
    in_time: FloatArray | None = None
    in_time_epsilon: float | None = None


def seed_sequence(rng: RandomSource | None) -> np.random.SeedSequence:
    """The seed sequence for `rng`: a Generator supplies one draw, and None uses the system's randomness."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**32, size=4, dtype=np.uint32).tolist())
    check("rng", rng=(rng, SEED))
    return np.random.SeedSequence(rng)


def child(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """The seed of one piece of a simulation."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def replicate_blocks(
    collector: Collector,
    environment: Environment,
    horizon: int,
    replications: int,
    rng: RandomSource | None,
    n_jobs: int = 1,
    start: int = 0,
    by_rounds: bool = True,
) -> Block:
    """Run a design many times and store the tallies."""
    root = seed_sequence(rng)
    starts = range(start, replications, BLOCK)
    if n_jobs == 1 or len(starts) == 1:
        return _run_blocks(collector, environment, horizon, replications, root, list(starts), by_rounds)
    program = collector.program(environment, horizon, recording=False, by_rounds=by_rounds)
    workers = min(len(starts), 4 * n_workers(n_jobs))
    shares = [part.tolist() for part in np.array_split(np.asarray(starts), workers)]
    parts = spread(
        [
            (_run_blocks, (collector, environment, horizon, replications, root, share, by_rounds))
            for share in shares
        ],
        n_jobs,
        threads=program.compiled and not environment.renewed,
    )
    return Block(
        tallies=np.concatenate([part.tallies for part in parts]),
        outcomes=np.concatenate([part.outcomes for part in parts]),
        regret=np.concatenate([part.regret for part in parts]),
    )


def iterate_runs(
    collector: Collector,
    environment: Environment,
    horizon: int,
    start: int,
    stop: int,
    rng: RandomSource | None,
) -> Iterator[Run]:
    """Recorded runs `start` (a multiple of the block size) to `stop`, one at a time."""
    # Each run has its own arrays, so runs may be kept. The numbers equal those of `replicate_blocks`.
    root = seed_sequence(rng)
    program = collector.program(environment, horizon, recording=True)
    tables, world = program.tables, program.world(environment, horizon)
    with_propensities = tables.propensity.shape[0] > 0 or program.share.shape[0] > 0
    state = np.zeros(program.state_shape)
    tallies, regret = _tallies(program, environment, 1), np.zeros(1)
    stream = block_stream(root, start)
    for run in range(start, stop):
        if run % BLOCK == 0:
            stream = block_stream(root, run)
        record = empty_record(horizon, environment.n_arms, with_propensities, environment.dimension)
        outcomes = np.zeros((1, program.n_outcomes))
        tallies[:] = 0.0
        there, drawn = world, None
        if environment.renewed:
            drawn = environment.renew(horizon, stream)
            there = world._replace(environment=drawn.tables)
        program.entry(tables, there, stream, state, Results(tallies, outcomes, regret, record))
        yield Run(
            record,
            tables.released[: int(state[SCALARS, RELEASED])].copy(),
            outcomes[0],
            None if drawn is None else drawn.units,
            _known(there.environment.delay, record.action),
            outcomes={} if drawn is None else _seen(drawn.outcomes, record.action),
        )


def _seen(outcomes: Mapping[str, FloatArray], action: IntArray) -> dict[str, FloatArray]:
    """Additional outcomes for the chosen arms; outcomes (rounds, arms) each, action (rounds,)."""
    steps = np.arange(len(action))
    return {name: values[steps, action] for name, values in outcomes.items()}


def _known(delay: IntArray, action: IntArray) -> IntArray | None:
    """Number of rounds that had begun when each outcome became known.

    Shapes: delay (rounds, arms) or (0, 0), action (rounds,).
    """
    if not delay.shape[0]:
        return None
    steps = np.arange(len(action))
    return np.asarray(np.minimum(steps + 1 + delay[steps, action], len(action)), dtype=np.int64)


def _run_blocks(
    collector: Collector,
    environment: Environment,
    horizon: int,
    replications: int,
    root: np.random.SeedSequence,
    starts: list[int],
    by_rounds: bool,
) -> Block:
    program = collector.program(environment, horizon, recording=False, by_rounds=by_rounds)
    world = program.world(environment, horizon)
    record = empty_record(0, environment.n_arms, with_propensities=False, dimension=environment.dimension)
    sizes = [min(BLOCK, replications - first) for first in starts]
    tallies = _tallies(program, environment, sum(sizes))
    outcomes = np.zeros((sum(sizes), program.n_outcomes))
    regret = np.zeros(sum(sizes))
    state = np.zeros(program.state_shape)
    done = 0
    for first, size in zip(starts, sizes, strict=True):
        part = slice(done, done + size)
        results = Results(tallies[part], outcomes[part], regret[part], record)
        enter(program, environment, world, block_stream(root, first), state, results)
        done += size
    return Block(tallies, outcomes, regret)


def _tallies(program: Program, environment: Environment, runs: int) -> FloatArray:
    return np.zeros((runs, program.n_statuses, environment.n_features, environment.n_arms, 3))


def block_stream(root: np.random.SeedSequence, run: int) -> np.random.Generator:
    """The stream of random numbers for the block that contains a run."""
    return generator(child(root, run // BLOCK))
