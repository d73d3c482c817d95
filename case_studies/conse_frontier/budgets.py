"""Tables 2 and 3: errors of mean difference and double machine learning under "Reg", and running times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.designs import ConSE
from adaptinf.designs.contextual.conse import epoch_sequences
from adaptinf.simulation.environments import FiniteContext
from adaptinf.typing import FloatArray, IntArray
from case_studies.conse_frontier import estimators

LENGTH, REPLICATIONS = 20_000, 50
BLOCK = 500
READINGS = {"randomised arrivals": 1, "pulls of each arm": 2}
ESTIMATORS = {
    "MD": "mean difference",
    "DML": "doubly robust ridge, contrast of the fit",
    "AIPW": "cross-fitted AIPW",
    "PLR": "cross-fitted partialling out",
}


@dataclass(frozen=True)
class Experiment:
    """One of the paper's two experiments: means of the arms, their features, and the printed errors."""

    number: int
    means: tuple[float, float]
    features: tuple[tuple[float, float], tuple[float, float]]
    printed: dict[int, tuple[float, float]]

    @property
    def effect(self) -> float:
        """Arm 1's mean minus arm 0's."""
        return self.means[1] - self.means[0]


EXPERIMENTS = (
    Experiment(
        1, (1.0, 1.0), ((1.0, 0.0), (0.0, 1.0)), {200: (0.31, 0.53), 400: (0.03, 0.07), 800: (0.008, 0.02)}
    ),
    Experiment(2, (3.0, 1.0), ((1.0, 0.001), (1.0, 0.0)), {400: (0.03, 4.1), 800: (0.008, 4.0)}),
)


def trials(
    experiment: Experiment, rounds: int, runs: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Actions by fair coins and normal rewards with variance 1, shape (runs, rounds) each."""
    action = rng.integers(0, 2, (runs, rounds))
    means = np.asarray(experiment.means)
    return action, means[action] + rng.standard_normal((runs, rounds))


def estimates(
    experiment: Experiment, rounds: int, runs: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Every estimator's effect in the same trials, shape (runs,) each."""
    features = np.asarray(experiment.features)
    parts: dict[str, list[FloatArray]] = {name: [] for name in ESTIMATORS}
    for start in range(0, runs, BLOCK):
        action, reward = trials(experiment, rounds, min(BLOCK, runs - start), rng)
        parts["MD"].append(estimators.mean_difference(action, reward))
        parts["DML"].append(estimators.dr_ridge(action, reward, features))
        parts["AIPW"].append(estimators.aipw(action, reward, features))
        parts["PLR"].append(estimators.partialling_out(action, reward))
    return {name: np.concatenate(values) for name, values in parts.items()}


def rows_of(experiment: Experiment, runs: int, root: np.random.SeedSequence) -> Iterator[dict[str, Any]]:
    """Errors of one experiment at its budgets, in both readings."""
    for reading, factor in READINGS.items():
        for budget, printed in experiment.printed.items():
            rng = np.random.default_rng(root.spawn(1)[0])
            found = estimates(experiment, factor * budget, runs, rng)
            for name, values in found.items():
                errors = values - experiment.effect
                squares = np.square(errors)
                paper = {"MD": printed[0], "DML": printed[1]}.get(name, np.nan)
                yield {
                    "experiment": experiment.number,
                    "Reg is read as": reading,
                    "Reg": budget,
                    "randomised arrivals": factor * budget,
                    "estimator": name,
                    "mean squared error": squares.mean(),
                    "standard error": squares.std(ddof=1) / np.sqrt(runs),
                    "standard deviation of a mean over 50 runs": squares.std(ddof=1) / np.sqrt(REPLICATIONS),
                    "mean absolute error": np.abs(errors).mean(),
                    "paper": paper,
                    "paper over ours": paper / squares.mean(),
                }


def errors_table(runs: int, root: np.random.SeedSequence) -> pd.DataFrame:
    """Tables 2 and 3 in both readings of "Reg"."""
    streams = root.spawn(len(EXPERIMENTS))
    rows = [
        row
        for experiment, stream in zip(EXPERIMENTS, streams, strict=True)
        for row in rows_of(experiment, runs, stream)
    ]
    return pd.DataFrame(rows)


def fixed_cost() -> pd.DataFrame:
    """The cost c and the constant k with which k / (Reg - c) is Table 2's first two errors, and its third."""
    rows = []
    for column, name in enumerate(("MD", "DML")):
        first, second, third = (EXPERIMENTS[0].printed[budget][column] for budget in (200, 400, 800))
        cost = (200.0 * first - 400.0 * second) / (first - second)
        constant = first * (200.0 - cost)
        rows.append(
            {
                "estimator": name,
                "cost": cost,
                "constant": constant,
                "third error by this law": constant / (800.0 - cost),
                "third error printed": third,
            }
        )
    return pd.DataFrame(rows)


def first_epoch_regret() -> float:
    """What ConSE's first epoch alone costs in experiment 2: half of its arrivals get the worse arm."""
    first = math.ceil(epoch_sequences(LENGTH)[0][1])
    return float(0.5 * abs(EXPERIMENTS[1].effect) * first)


def running_times(root: np.random.SeedSequence, repeats: int) -> pd.DataFrame:
    """Milliseconds for 50 replications of a trial of 800 arrivals, and of a whole run of ConSE."""
    experiment = EXPERIMENTS[0]
    features = np.asarray(experiment.features)
    action, reward = trials(experiment, 800, REPLICATIONS, np.random.default_rng(root))
    one = FiniteContext([1.0], [[0.35, 0.65]])

    def each(estimate: Callable[..., Any], *given: Any) -> None:
        for row in range(REPLICATIONS):
            estimate(action[row : row + 1], reward[row : row + 1], *given)

    tasks: dict[str, Callable[[], Any]] = {
        "MD": lambda: each(estimators.mean_difference),
        "DML, 5 folds": lambda: each(estimators.dr_ridge, features),
        "DML, refitted after every round": lambda: [
            estimators.refitted_dr_ridge(a, r, features) for a, r in zip(action, reward, strict=True)
        ],
        "ConSE, 20,000 arrivals one by one, and MD": lambda: ConSE(alpha=0.2).replicate(
            one, LENGTH, REPLICATIONS, rng=root, by_rounds=True
        ),
    }
    spent = {name: fastest(task, repeats) for name, task in tasks.items()}
    base = spent["MD"]
    return pd.DataFrame(
        [
            {"50 replications of": name, "milliseconds": 1e3 * seconds, "over MD": seconds / base}
            for name, seconds in spent.items()
        ]
    )


def fastest(task: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of several calls, after one that is not counted."""
    task()
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        spent.append(time.perf_counter() - start)
    return min(spent)
