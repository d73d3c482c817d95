"""Re-runs of a design on logged rows: blocks of 64, each on a stream of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.randomization.statistics import (
    PathStatistic,
    TallyStatistic,
    shifted,
    tally_path,
)
from adaptinf.audit.rerun.logged_rows import LoggedRows, reordered
from adaptinf.designs.base import Design
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.replicate import BLOCK, block_stream, seed_sequence
from adaptinf.simulation.run import EnvironmentTables, Record, Results, empty_record
from adaptinf.typing import FloatArray, IntArray, RandomSource
from adaptinf.workers import n_workers, spread

_OWN_STREAMS = 0x52414E44
_RUNS, _TIES = 0, 1
_LARGE_MEAN = 1e5


def plan_root(rng: RandomSource | None) -> np.random.SeedSequence:
    """Seed of the re-runs: never a stream that `Design.run` has used with the same `rng`."""
    root = seed_sequence(rng)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, _OWN_STREAMS))


def _child(root: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, number))


@dataclass(frozen=True, slots=True)
class Draws:
    """Statistics of consecutive re-runs; values (runs,), breakers (runs,)."""

    values: FloatArray
    breakers: FloatArray


@dataclass(frozen=True)
class Plan:
    """What is re-run, and what is computed from it."""

    design: Design
    log: AdaptiveLog
    rows: LoggedRows
    by_order: bool
    statistic: TallyStatistic | PathStatistic
    root: np.random.SeedSequence
    effect: float = 0.0

    def assuming(self, effect: float) -> Plan:
        """The same plan under another effect."""
        return dataclasses.replace(self, effect=effect)

    @property
    def name(self) -> str:
        """Name of the design."""
        return type(self.design).__name__

    @property
    def baseline(self) -> FloatArray:
        """Rewards without the assumed effect, shape (rounds,)."""
        arrays = self.log.arrays
        if self.effect == 0.0:
            return arrays.reward
        return np.asarray(arrays.reward - self.effect * (arrays.action == self.treatment), np.float64)

    @property
    def treatment(self) -> int:
        """Position of the treated arm; -1 where the statistic has none."""
        return self.statistic.treatment if isinstance(self.statistic, TallyStatistic) else -1

    @property
    def control(self) -> int:
        """Position of the arm it is compared with; -1 where the statistic has none."""
        return self.statistic.control if isinstance(self.statistic, TallyStatistic) else -1

    def rewards(self) -> FloatArray:
        """What every arm would have paid in every round, shape (rounds, arms)."""
        rewards = np.repeat(self.baseline[:, None], self.log.n_arms, axis=1)
        if self.effect != 0.0:
            rewards[:, self.treatment] += self.effect
            rewards[np.arange(self.log.n_rounds), self.log.arrays.action] = self.log.arrays.reward
        return rewards

    def observed(self) -> float:
        """The statistic of the log."""
        arrays = self.log.arrays
        if isinstance(self.statistic, PathStatistic):
            context = {name: column[None] for name, column in arrays.context.items()}
            return float(self.statistic(arrays.action[None], self.baseline[None], context)[0])
        if self.by_rounds:
            tallies = tally_path(arrays.action, self.baseline - self.centre, self.log.n_arms)
            return float(self.statistic.signed(tallies[None])[0])
        tallies = tally_path(arrays.action, arrays.reward, self.log.n_arms)[None]
        return float(self.statistic.signed(self._without_effect(tallies))[0])

    def from_paths(self, action: IntArray, tallies: FloatArray) -> FloatArray:
        """The statistic of paths of shape (runs, rounds) on the rows as logged, given their tallies."""
        arrays = self.log.arrays
        if isinstance(self.statistic, PathStatistic):
            context = {name: np.broadcast_to(column, action.shape) for name, column in arrays.context.items()}
            return self.statistic(action, np.broadcast_to(arrays.reward, action.shape), context)
        if self.by_rounds:
            centred = arrays.reward - self.centre
            tallies = np.stack([tally_path(path, centred, self.log.n_arms) for path in action])
        return self.statistic.signed(tallies)

    def breaker(self) -> float:
        """The log's own number for breaking ties."""
        return float(np.random.default_rng(_child(self.root, 2)).random())

    def evidence(self, values: FloatArray) -> FloatArray:
        """Reported values turned so that larger ones speak against the hypothesis."""
        if isinstance(self.statistic, PathStatistic):
            return values
        return self.statistic.evidence(values)

    @property
    def scale(self) -> float:
        """Size of a statistic on which rounding errors are judged."""
        if isinstance(self.statistic, PathStatistic) or self.statistic.name == "pulls":
            return 0.0
        return float(self.baseline.std()) if self.statistic.name == "difference" else 1.0

    @property
    def centre(self) -> float:
        """What is taken from rewards before they are squared, where sums go by rounds."""
        return float(self.log.arrays.reward.mean())

    @property
    def by_rounds(self) -> bool:
        """Whether squares of rewards would swamp their spread in the sums of the run loop."""
        reward = self.log.arrays.reward
        return bool(abs(reward.mean()) > _LARGE_MEAN * reward.std() > 0.0)

    def _without_effect(self, tallies: FloatArray) -> FloatArray:
        return tallies if self.effect == 0.0 else shifted(tallies, self.treatment, self.effect)


class Runner:
    """A design's compiled program with the memory that its runs share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        rows, n_rounds = plan.rows, plan.log.n_rounds
        self.program = plan.design.program(rows, n_rounds, recording=False)
        self.world = self.program.world(rows, n_rounds)
        self.state = np.zeros(self.program.state_shape)
        self.empty = empty_record(0, rows.n_arms, with_propensities=False, dimension=rows.dimension)

    def block(self, first: int, size: int, plan: Plan | None = None) -> Draws:
        """Statistics of a block of runs; `plan` may assume another effect than the runner's own."""
        plan = plan or self.plan
        stream = block_stream(_child(plan.root, _RUNS), first)
        breakers = block_stream(_child(plan.root, _TIES), first).random(BLOCK)[:size]
        tables = plan.rows.paying(plan.rewards())
        if isinstance(plan.statistic, PathStatistic) or plan.by_rounds:
            values = self._from_paths(plan, tables, stream, size)
        else:
            tallies = self.tallies(plan, tables, stream, size)
            values = plan.statistic.signed(plan._without_effect(tallies))
        return Draws(values, breakers)

    def tallies(
        self, plan: Plan, tables: EnvironmentTables, stream: np.random.Generator, size: int
    ) -> FloatArray:
        """Counts, sums and sums of squares of runs, shape (runs, arms, 3)."""
        shape = (size, self.program.n_statuses, plan.rows.n_features, plan.rows.n_arms, 3)
        tallies = np.zeros(shape)
        if plan.by_order:
            for run in range(size):
                order = stream.permutation(plan.log.n_rounds)
                self._run(reordered(tables, order), stream, tallies[run : run + 1], self.empty)
        else:
            self._run(tables, stream, tallies, self.empty)
        return np.asarray(tallies.sum(axis=(1, 2)), dtype=np.float64)

    def paths(
        self, plan: Plan, tables: EnvironmentTables, stream: np.random.Generator, size: int
    ) -> tuple[IntArray, IntArray]:
        """Arms of every round, and the row of the log that it had, both of shape (runs, rounds)."""
        n_rounds = plan.log.n_rounds
        action = np.empty((size, n_rounds), dtype=np.int64)
        order = np.empty((size, n_rounds), dtype=np.int64)
        shape = (1, self.program.n_statuses, plan.rows.n_features, plan.rows.n_arms, 3)
        record = empty_record(n_rounds, plan.rows.n_arms, False, plan.rows.dimension)
        for run in range(size):
            order[run] = stream.permutation(n_rounds) if plan.by_order else np.arange(n_rounds)
            there = reordered(tables, order[run]) if plan.by_order else tables
            self._run(there, stream, np.zeros(shape), record)
            action[run] = record.action
        return action, order

    def _from_paths(
        self, plan: Plan, tables: EnvironmentTables, stream: np.random.Generator, size: int
    ) -> FloatArray:
        action, order = self.paths(plan, tables, stream, size)
        reward = plan.baseline[order]
        if isinstance(plan.statistic, PathStatistic):
            context = {name: column[order] for name, column in plan.log.arrays.context.items()}
            return plan.statistic(action, reward, context)
        tallies = [
            tally_path(a, r - plan.centre, plan.log.n_arms) for a, r in zip(action, reward, strict=True)
        ]
        return plan.statistic.signed(np.stack(tallies))

    def _run(
        self, tables: EnvironmentTables, stream: np.random.Generator, tallies: FloatArray, record: Record
    ) -> None:
        runs = tallies.shape[0]
        outcomes = np.zeros((runs, self.program.n_outcomes))
        results = Results(tallies, outcomes, np.zeros(runs), record)
        world = self.world._replace(environment=tables)
        self.program.entry(self.program.tables, world, stream, self.state, results)


def blocks(plan: Plan, replications: int, n_jobs: int = 1) -> Iterator[Draws]:
    """Statistics of runs in blocks, in their order; with several processes a few blocks ahead."""
    starts = list(range(0, replications, BLOCK))
    sizes = [min(BLOCK, replications - first) for first in starts]
    if n_jobs == 1 or len(starts) == 1:
        runner = Runner(plan)
        for first, size in zip(starts, sizes, strict=True):
            yield runner.block(first, size)
        return
    workers = n_workers(n_jobs)
    for begin in range(0, len(starts), 4 * workers):
        part = list(zip(starts[begin : begin + 4 * workers], sizes[begin:], strict=False))
        shares: list[Any] = [part[worker::workers] for worker in range(workers)]
        done = spread([(_share, (plan, share)) for share in shares if share], n_jobs)
        yield from (done[i % workers][i // workers] for i in range(len(part)))


def _share(plan: Plan, share: list[tuple[int, int]]) -> list[Draws]:
    runner = Runner(plan)
    return [runner.block(first, size) for first, size in share]
