"""How the regret of private elimination grows with T, K and 1/epsilon, in its exact shortcut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.theory import private_elimination_regret
from adaptinf.typing import FloatArray
from case_studies.private_elimination.regret import SEED

GAP = 0.3
"""Gap of all arms but the first, where gaps are equal: private terms dominate at epsilon below this."""
SMALL = 1e-3
FIXED_HORIZON = 10_000_000_000
HORIZONS = (1e8, 1e9, 1e10, 1e11, 1e12, 1e13)
ARMS = (3, 5, 9, 17, 33)
INVERSES = (100, 200, 400, 800, 1_600, 3_200)

EQUAL = "equal gaps of .3"
SPACED = "means spaced from .75 to .25"
VARIED = ("log T", "K - 1", "1/epsilon")


def means_of(instance: str, arms: int) -> list[float]:
    """Means of the arms, the best one first."""
    if instance == SPACED:
        return np.linspace(0.75, 0.25, arms).tolist()
    return [0.5 + GAP / 2] + [0.5 - GAP / 2] * (arms - 1)


def points(varied: str) -> Iterator[tuple[float, int, int, float]]:
    """The value that varies, and horizon, arms and epsilon of each point."""
    if varied == "log T":
        for horizon in HORIZONS:
            yield float(np.log(horizon)), int(horizon), 5, SMALL
    elif varied == "K - 1":
        for arms in ARMS:
            yield float(arms - 1), FIXED_HORIZON, arms, SMALL
    else:
        for inverse in INVERSES:
            yield float(inverse), FIXED_HORIZON, 5, 1.0 / inverse


def table(runs: int) -> pd.DataFrame:
    """One row per point: mean regret with its standard error, and the proved bound."""
    rows = []
    for place, instance in enumerate((EQUAL, SPACED)):
        for series, varied in enumerate(VARIED):
            for number, (value, horizon, arms, epsilon) in enumerate(points(varied)):
                means = means_of(instance, arms)
                root = np.random.SeedSequence(SEED, spawn_key=(20, place, series, number))
                design = PrivateSuccessiveElimination(epsilon=epsilon)
                regret = design.replicate(BernoulliArms(means), horizon, runs, root).regret
                rows.append(
                    {
                        "instance": instance,
                        "varied": varied,
                        "value": value,
                        "T": horizon,
                        "K": arms,
                        "epsilon": epsilon,
                        "mean regret": float(regret.mean()),
                        "standard error": float((regret - regret[0]).std(ddof=1) / np.sqrt(runs)),
                        "bound": float(private_elimination_regret(means, horizon, epsilon)),
                    }
                )
    return pd.DataFrame(rows)


def exponent(values: FloatArray, regret: FloatArray) -> float:
    """Slope of log regret on the log of the value."""
    return float(np.polyfit(np.log(values), np.log(regret), 1)[0])


def straight(values: FloatArray, regret: FloatArray) -> tuple[float, float]:
    """Slope of the least-squares line, and the largest departure from it as a share of the line."""
    slope, start = np.polyfit(values, regret, 1)
    line = start + slope * values
    return float(slope), float(np.abs(regret / line - 1.0).max())
