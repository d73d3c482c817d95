"""Regret of private elimination and of private UCB, over time and at the horizon."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments import BernoulliArms, Environment
from adaptinf.simulation.replicate import Collector, Program, replicate_blocks
from adaptinf.typing import FloatArray

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
HORIZON = 50_000_000
EPSILONS = (0.1, 0.25, 0.5, 1.0)
SEED = 2019

ELIMINATION = "DP-SE"
PUBLISHED = "DP-UCB, published width"
TAIL = "DP-UCB, tail bound"
EXACT = "DP-UCB, exact quantile"
TAIL_AT_END = "DP-UCB, tail bound at 1/T"
EXACT_AT_END = "DP-UCB, exact quantile at 1/T"
HYBRID = "DP-UCB, exact quantile, hybrid counter"
NAMES = (ELIMINATION, PUBLISHED, TAIL, EXACT, TAIL_AT_END, EXACT_AT_END, HYBRID)


@dataclass(frozen=True)
class Beginning:
    """The first rounds of a trial that is planned for more: nothing but the loop's end changes."""

    whole: Design
    horizon: int

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """The program of the whole trial, round by round."""
        return self.whole.program(environment, self.horizon, recording=recording, by_rounds=True)


@dataclass(frozen=True)
class WidthAtEnd:
    """Private UCB that allows for the noise in every round what it otherwise does in the last one."""

    whole: Collector
    horizon: int

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """The same program with a noise width that fails with probability 1/T instead of 1/t."""
        program = self.whole.program(environment, self.horizon, recording=recording, by_rounds=by_rounds)
        tables = program.tables
        cell = int(np.searchsorted(tables.grid, self.horizon)) - 1
        width = tables.intercept[cell] + tables.slope[cell] * np.log(self.horizon)
        every = np.repeat(width[None, :], tables.intercept.shape[0], axis=0)
        return replace(program, tables=tables._replace(intercept=every, slope=np.zeros_like(every)))


def design(name: str, epsilon: float) -> Design:
    """A design that is compared, with a guarantee of `epsilon` for the rewards.

    The published private UCB gives epsilon / K to an arm's counter where epsilon is all that is needed: it is
    asked for K epsilon, so that the comparison is one at equal privacy, and kind to it.
    """
    if name == ELIMINATION:
        return PrivateSuccessiveElimination(epsilon=epsilon)
    if name == PUBLISHED:
        return PrivateUCB(epsilon=len(MEANS) * epsilon, calibration="published", counter="binary")
    width = "tail-bound" if name in (TAIL, TAIL_AT_END) else "quantile"
    return PrivateUCB(epsilon=epsilon, counter="hybrid" if name == HYBRID else "binary", noise_width=width)


def collector(name: str, epsilon: float, horizon: int = HORIZON) -> Collector:
    """What is run: a design in a trial that is planned for `horizon` rounds."""
    whole = Beginning(design(name, epsilon), horizon)
    return WidthAtEnd(whole, horizon) if name in (TAIL_AT_END, EXACT_AT_END) else whole


def stream(name: str, epsilon: float) -> np.random.SeedSequence:
    """Randomness of a design's runs at one epsilon."""
    return np.random.SeedSequence(SEED, spawn_key=(NAMES.index(name), EPSILONS.index(epsilon)))


@dataclass(frozen=True)
class Cell:
    """Runs of one design at one epsilon, in the first `time` rounds of a trial of `HORIZON`."""

    name: str
    epsilon: float
    time: int
    runs: int


def measure(cell: Cell) -> FloatArray:
    """Regret of each run; shape (runs,)."""
    env = BernoulliArms(MEANS)
    whole = collector(cell.name, cell.epsilon)
    block = replicate_blocks(whole, env, cell.time, cell.runs, stream(cell.name, cell.epsilon))
    counts = block.tallies.sum(axis=1)
    return env.regret(counts[..., 0], counts[..., 1])


def measure_all(cells: Iterable[Cell], n_jobs: int) -> dict[Cell, FloatArray]:
    """Regret of each run of every cell; long ones are begun first."""
    ordered = sorted(cells, key=lambda cell: -cell.time * cell.runs)
    found = Parallel(n_jobs=n_jobs)(delayed(measure)(cell) for cell in ordered)
    return dict(zip(ordered, found, strict=True))


def elimination(epsilon: float, runs: int, n_jobs: int) -> tuple[FloatArray, FloatArray]:
    """Regret at the horizon, and the round after which one arm was left (else the horizon), of each run."""
    sims = design(ELIMINATION, epsilon).replicate(
        BernoulliArms(MEANS), HORIZON, runs, stream(ELIMINATION, epsilon), n_jobs
    )
    rounds = sims.released["decided_at"][:, 0]
    return sims.regret, np.where(np.isnan(rounds), float(HORIZON), rounds)
