"""Figures 7 to 9: regret by sizes, privacy parameters, auxiliary data, and their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from adaptinf.designs import LDPBandit
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.environments.vector_arms import SmoothArms
from case_studies.local_privacy.table_2 import seed_of
from case_studies.local_privacy.visited import VisitedBinOnly

ARMS = SmoothArms(3, 2)
CHECK_EVERY = 100
EPSILONS = (1.0, 2.0, 4.0, 8.0, 1024.0)
KINDS = ("corrected", "first edge", "visited bin only")
RUNS_OF_A_TASK = 5


def build(kind: str, epsilon: float, auxiliary: tuple[AuxiliaryLog, ...] = ()) -> LDPBandit:
    """A design of the study by its name."""
    if kind == "visited bin only":
        return VisitedBinOnly(epsilon=epsilon, auxiliary=auxiliary)
    if kind == "published":
        return LDPBandit(epsilon=epsilon, auxiliary=auxiliary, calibration="published")
    axis = "first" if kind == "first edge" else "random"
    return LDPBandit(epsilon=epsilon, auxiliary=auxiliary, check_every=CHECK_EVERY, axis=axis)


@dataclass(frozen=True)
class Source:
    """Auxiliary people: so many in each of the logs, with these gamma and kappa."""

    size: int
    gamma: float = 0.0
    kappa: float = 1.0
    logs: int = 2


@dataclass(frozen=True)
class Trial:
    """A trial after the auxiliary logs, which report under these epsilons in turn."""

    figure: str
    epsilon: float
    epsilons: tuple[float, ...]
    horizon: int
    kind: str = "corrected"

    @property
    def told(self) -> dict[str, Any]:
        reports = " then ".join(f"{each:g}" for each in dict.fromkeys(self.epsilons))
        return {
            "figure": self.figure,
            "design": self.kind,
            "epsilon": self.epsilon,
            "epsilon_m": reports,
            "n_P": self.horizon,
        }


def without_source(trial: Trial, runs: int, root: int) -> list[dict[str, Any]]:
    """Regret of trials without auxiliary data."""
    design = build(trial.kind, trial.epsilon)
    name = f"{trial.kind}, {trial.epsilon:g}, {trial.horizon}"
    found = design.replicate(ARMS, trial.horizon, runs, rng=seed_of(root, name)).regret
    empty = {"n_Q": 0, "gamma": 0.0, "kappa": 1.0}
    return [{**trial.told, **empty, "run": run, "regret": regret} for run, regret in enumerate(found)]


def after_source(source: Source, trials: list[Trial], run: int, root: int) -> list[dict[str, Any]]:
    """Regret of trials that have the same auxiliary people, who report anew in each of them."""
    of = f"{source.size}, {source.gamma:g}, {source.kappa:g}"
    people = [
        ARMS.auxiliary(
            source.size, source.gamma, source.kappa, rng=seed_of(root, f"{of}, log {number}, {run}")
        ).log
        for number in range(source.logs)
    ]
    about = {"n_Q": source.size, "gamma": source.gamma, "kappa": source.kappa, "run": run}
    rows = []
    for trial in trials:
        logs = tuple(AuxiliaryLog(log, epsilon=e) for log, e in zip(people, trial.epsilons, strict=True))
        name = f"{of}, {trial.kind}, {trial.epsilon:g}, {trial.epsilons}, {trial.horizon}, {run}"
        design = build(trial.kind, trial.epsilon, logs)
        regret = design.replicate(ARMS, trial.horizon, 1, rng=seed_of(root, name)).regret[0]
        rows.append({**trial.told, **about, "regret": regret})
    return rows


def several(source: Source, trials: list[Trial], runs: range, root: int) -> list[dict[str, Any]]:
    return [row for run in runs for row in after_source(source, trials, run, root)]


@dataclass(frozen=True)
class Sizes:
    """What is run: all of the paper's cells, or a few for a check.

    `plain` runs a cell without auxiliary data, `jumped` with them; `epsilons` and `gammas` are those of the
    auxiliary data of Figure 8, `orders` the sizes of Figure 9(c), `after` the size in 9(a) and 9(b).
    """

    plain: int
    jumped: int
    rounds: tuple[int, ...]
    auxiliary: tuple[int, ...]
    epsilons: tuple[float, ...]
    gammas: tuple[float, ...]
    orders: tuple[int, ...]
    kappas: tuple[float, ...]
    more_gammas: tuple[float, ...]
    after: int = 20_000


FULL = Sizes(
    plain=100,
    jumped=60,
    rounds=(10_000, 20_000, 40_000, 60_000, 80_000, 120_000, 160_000),
    auxiliary=(10_000, 20_000, 50_000, 100_000),
    epsilons=EPSILONS,
    gammas=(0.0, 0.2, 2.0),
    orders=(10_000, 20_000, 50_000, 100_000),
    kappas=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    more_gammas=tuple(float(step) for step in np.round(np.arange(11) / 5, 1)),
)
QUICK = Sizes(
    plain=20,
    jumped=16,
    rounds=(10_000, 20_000, 80_000),
    auxiliary=(10_000, 20_000, 50_000, 100_000),
    epsilons=(8.0,),
    gammas=(0.0,),
    orders=(50_000,),
    kappas=(0.0, 1.0),
    more_gammas=(0.0, 2.0),
)


def figure_7a(sizes: Sizes) -> list[Trial]:
    """Trials without auxiliary data."""
    return [Trial("7a", e, (), n, kind) for kind in KINDS for n in sizes.rounds for e in EPSILONS]


def plans(sizes: Sizes) -> list[tuple[Source, list[Trial]]]:
    """Trials with auxiliary data, by the people that they share; the longest first."""
    found = []
    both = ("corrected", "visited bin only")
    for size in sorted(sizes.auxiliary, reverse=True):
        for gamma in sizes.gammas:
            trials = [Trial("8", e, (em, em), 80_000) for e in (1.0, 2.0) for em in sizes.epsilons]
            if gamma == 0.0:
                trials.append(Trial("8", 1.0, (8.0, 8.0), 80_000, "visited bin only"))
            if gamma == 0.0 and size in sizes.orders:
                trials += [
                    Trial("9c", e, order, n, kind)
                    for kind in both
                    for n in (10_000, 80_000)
                    for e in (1.0, 2.0)
                    for order in ((2.0, 8.0), (8.0, 2.0))
                ]
            found.append((Source(size, gamma), trials))
    rounds = [Trial("7b", e, (8.0,), n, kind) for kind in both for n in sizes.rounds for e in EPSILONS]
    found.append((Source(5_000, logs=1), rounds))
    for gamma in sizes.more_gammas:
        trials = [Trial("9b", 2.0, (em, em), 40_000) for em in (2.0, 8.0)]
        found.append((Source(sizes.after, gamma), trials))
    for kappa in sizes.kappas:
        trials = [Trial("9a", 2.0, (em, em), 40_000) for em in (1.0, 8.0)]
        found.append((Source(sizes.after, 0.2, kappa), trials))
    return found


def measure(sizes: Sizes, root: int, n_jobs: int) -> pd.DataFrame:
    """Regret of every run of every cell."""
    work = []
    for source, trials in plans(sizes):
        for first in range(0, sizes.jumped, RUNS_OF_A_TASK):
            part = range(first, min(first + RUNS_OF_A_TASK, sizes.jumped))
            work.append(delayed(several)(source, trials, part, root))
    work += [delayed(without_source)(trial, sizes.plain, root) for trial in figure_7a(sizes)]
    found = Parallel(n_jobs=n_jobs, batch_size=1)(work)
    return pd.DataFrame([row for rows in found for row in rows])


CELL = ["figure", "design", "epsilon", "epsilon_m", "n_P", "n_Q", "gamma", "kappa"]


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """Mean regret of every cell with its standard error."""
    by = measured.groupby(CELL, sort=False)["regret"]
    table = by.mean().rename("mean regret").to_frame()
    table["standard error"] = by.std() / np.sqrt(by.count())
    table["runs"] = by.count()
    return table.reset_index()


def cells(table: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Rows of a table with these values."""
    keep = np.ones(len(table), dtype=bool)
    for name, value in where.items():
        keep &= (table[name] == value).to_numpy()
    return table[keep]
