"""Sample sizes of the private stopping rule, beside what suffices and what every rule needs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.simulation.environments import Replay
from adaptinf.theory import (
    private_stopping_limit,
    stopping_limit,
    stopping_time_bound,
    stopping_time_closed_form,
)
from case_studies.private_elimination.regret import SEED

BETA = 0.05
MEANS = (0.5, 0.2, 0.05)
ALPHAS = (0.1, 0.5)
EPSILONS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)


def two_points(mean: float) -> Replay:
    """A law on {-1, 1}, whose variance is the largest for its mean."""
    ones = round(100 * (1.0 + mean))
    frame = pd.DataFrame({"arm": 0, "y": [1.0] * ones + [-1.0] * (200 - ones)})
    return Replay(frame, action="arm", reward="y")


def table(runs: int) -> pd.DataFrame:
    """One row per mean, alpha and epsilon: sample sizes, bounds, and how often estimates were wrong or late.

    Late are runs beyond what suffices on the event of the proof; the theorem's own bound is far above it.
    """
    rows = []
    for number, (mean, alpha, epsilon) in enumerate(itertools.product(MEANS, ALPHAS, EPSILONS)):
        rule = DPNAS(epsilon=epsilon, alpha=alpha, beta=BETA, steps="exponential")
        root = np.random.SeedSequence(SEED, spawn_key=(10, number))
        sims = rule.replicate(two_points(mean), runs, rng=root, max_rounds=1 << 40)
        times = sims.stopping_time
        enough = float(stopping_time_bound(mean, alpha, BETA, epsilon))
        rows.append(
            {
                "mean": mean,
                "alpha": alpha,
                "epsilon": epsilon,
                "median": float(np.median(times)),
                "average": float(times.mean()),
                "needed privately": float(private_stopping_limit(mean, alpha, BETA, epsilon)),
                "needed on average": float(stopping_limit(mean, alpha, BETA)),
                "sufficient": enough,
                "theorem": float(stopping_time_closed_form(mean, alpha, BETA, epsilon)),
                "above private limit": int(
                    (times > private_stopping_limit(mean, alpha, BETA, epsilon)).sum()
                ),
                "wrong": int(sims.wrong(mean).sum()),
                "late": int((times > enough).sum()),
                "runs": runs,
            }
        )
    return pd.DataFrame(rows)
