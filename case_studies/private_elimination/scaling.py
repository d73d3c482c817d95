"""How the regret of private elimination grows with T, K and 1/epsilon, in its exact shortcut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adaptinf.designs.elimination import PrivateSuccessiveElimination
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.typing import FloatArray
from case_studies.private_elimination.regret import SEED

GAP = 0.3
"""Gap of every arm but the first: private terms dominate below an epsilon of about this."""
SMALL = 1e-3
HORIZONS = np.array([1e8, 1e9, 1e10, 1e11, 1e12, 1e13])
ARMS = np.array([3, 5, 9, 17, 33])
INVERSES = np.array([100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0])
FIXED_HORIZON = 10_000_000_000


def points(what: str) -> Iterator[tuple[float, int, int, float]]:
    """The value that varies, and horizon, arms and epsilon of each point."""
    if what == "log T":
        for horizon in HORIZONS:
            yield float(np.log(horizon)), int(horizon), 5, SMALL
    elif what == "K - 1":
        for arms in ARMS:
            yield float(arms - 1), FIXED_HORIZON, int(arms), SMALL
    else:
        for inverse in INVERSES:
            yield float(inverse), FIXED_HORIZON, 5, 1.0 / float(inverse)


def measured(what: str, runs: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values, mean regrets and their standard errors."""
    rows = []
    for number, (value, horizon, arms, epsilon) in enumerate(points(what)):
        env = BernoulliArms([0.5 + GAP / 2] + [0.5 - GAP / 2] * (arms - 1))
        root = np.random.SeedSequence(SEED, spawn_key=(9, len(what), number))
        regret = PrivateSuccessiveElimination(epsilon=epsilon).replicate(env, horizon, runs, root).regret
        rows.append((value, regret.mean(), regret.std(ddof=1) / np.sqrt(runs)))
    values, means, errors = np.array(rows).T
    return values, means, errors


def exponent(values: FloatArray, means: FloatArray) -> float:
    """Slope of log regret on the log of the value."""
    return float(np.polyfit(np.log(values), np.log(means), 1)[0])
