"""Regret of private elimination and of private UCB, over time and at the horizon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.designs.elimination import PrivateSuccessiveElimination
from adaptinf.designs.ucb import PrivateUCB
from adaptinf.simulation.environments import BernoulliArms, Environment
from adaptinf.simulation.replicate import Program, replicate_blocks
from adaptinf.typing import FloatArray

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
HORIZON = 50_000_000
EPSILONS = (0.1, 0.25, 0.5, 1.0)
TIMES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
SEED = 2019

ELIMINATION = "DP-SE"
PUBLISHED = "DP-UCB, published width"
BINARY = "DP-UCB, exact width, binary counter"
HYBRID = "DP-UCB, exact width, hybrid counter"


def design(name: str, epsilon: float) -> Design:
    """The designs that are compared, each with a guarantee of `epsilon` for the rewards.

    The published private UCB gives epsilon / K to an arm's counter where epsilon is all that is needed: it is
    asked for K epsilon, so that the comparison is one at equal privacy, and kind to it.
    """
    if name == ELIMINATION:
        return PrivateSuccessiveElimination(epsilon=epsilon)
    if name == PUBLISHED:
        return PrivateUCB(epsilon=len(MEANS) * epsilon, calibration="published")
    return PrivateUCB(epsilon=epsilon, counter="binary" if name == BINARY else "hybrid")


@dataclass(frozen=True)
class Beginning:
    """The first rounds of a trial that is planned for more: nothing but the loop's end changes."""

    whole: Design
    horizon: int

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """The program of the whole trial."""
        return self.whole.program(environment, self.horizon, recording=recording, by_rounds=True)


def stream(name: str, epsilon: float) -> np.random.SeedSequence:
    """Randomness of a design's runs at one epsilon."""
    names = (ELIMINATION, PUBLISHED, BINARY, HYBRID)
    return np.random.SeedSequence(SEED, spawn_key=(names.index(name), EPSILONS.index(epsilon)))


def regret_at(name: str, epsilon: float, time: int, runs: int, n_jobs: int) -> FloatArray:
    """Regret of each run in the first `time` rounds of a trial of `HORIZON`; shape (runs,)."""
    env = BernoulliArms(MEANS)
    beginning = Beginning(design(name, epsilon), HORIZON)
    block = replicate_blocks(beginning, env, time, runs, stream(name, epsilon), n_jobs)
    cells = block.tallies.sum(axis=1)
    return env.regret(cells[..., 0], cells[..., 1])


def regret_at_end(name: str, epsilon: float, runs: int, n_jobs: int) -> FloatArray:
    """Regret of each run at the horizon; shape (runs,)."""
    sims = design(name, epsilon).replicate(BernoulliArms(MEANS), HORIZON, runs, stream(name, epsilon), n_jobs)
    return sims.regret


def decided_at(epsilon: float, runs: int, n_jobs: int) -> FloatArray:
    """Round after which one arm was left; the horizon where there never was."""
    sims = design(ELIMINATION, epsilon).replicate(
        BernoulliArms(MEANS), HORIZON, runs, stream(ELIMINATION, epsilon), n_jobs
    )
    rounds = sims.released["decided_at"][:, 0]
    return np.where(np.isnan(rounds), float(HORIZON), rounds)
