"""Table 2: rewards on labelled data as ratios to ABSE's, with Wilcoxon marks and rank sums."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats

from adaptinf.designs import ABSE, LDPBandit, LDPLinear
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from adaptinf.simulation.replicate import iterate_runs
from case_studies.local_privacy.data import Task
from case_studies.local_privacy.network import LDPNetwork

PAIRS = ((1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (2.0, 4.0))
METHODS = ("LDPBandit", "LDPLinear", "network")
COLUMNS = [f"{method} {kind}" for method in METHODS for kind in ("w", "wo")]
LEVEL = 0.05


def seed_of(root: int, name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([root, zlib.crc32(name.encode())])


def build(
    method: str, epsilon: float, auxiliary: tuple[AuxiliaryLog, ...], check_every: int, seed: int
) -> Design:
    """A method of the table; `seed` is that of a network's first parameters."""
    if method == "LDPBandit":
        return LDPBandit(epsilon=epsilon, auxiliary=auxiliary, check_every=check_every)
    if method == "LDPLinear":
        return LDPLinear(epsilon=epsilon, auxiliary=auxiliary)
    return LDPNetwork(epsilon=epsilon, auxiliary=auxiliary, seed=seed)


def rewards(task: Task, design: Design, rng: np.random.SeedSequence) -> tuple[float, float]:
    """Mean reward of the first quarter of a run, and of all of it."""
    (run,) = iterate_runs(design, task.environment, task.horizon, 0, 1, rng)
    won = run.record.reward
    return float(won[: task.horizon // 4].mean()), float(won.mean())


def repetition(task: Task, number: int, root: int, check_every: int) -> list[dict[str, Any]]:
    """All methods once; those with auxiliary data share the same people, under either epsilon_m."""
    logs = task.reports(seed_of(root, f"{task.name}, people, {number}"))
    rows = []

    def add(method: str, epsilon: float, epsilon_m: float, design: Design) -> None:
        name = f"{task.name}, {method}, {epsilon:g}, {epsilon_m:g}, {number}"
        quarter, whole = rewards(task, design, seed_of(root, name))
        told = {"data": task.name, "method": method, "epsilon": epsilon, "epsilon_m": epsilon_m}
        rows.append({**told, "repetition": number, "n/4": quarter, "n": whole})

    add("ABSE", np.inf, 0.0, ABSE())
    for method in METHODS:
        for epsilon in dict.fromkeys(pair[0] for pair in PAIRS):
            add(f"{method} wo", epsilon, 0.0, build(method, epsilon, (), check_every, number))
        for epsilon, epsilon_m in PAIRS:
            told = tuple(AuxiliaryLog(part.log, epsilon=epsilon_m) for part in logs)
            add(f"{method} w", epsilon, epsilon_m, build(method, epsilon, told, check_every, number))
    return rows


def measure(tasks: list[Task], runs: int, root: int, check_every: int, n_jobs: int) -> pd.DataFrame:
    """Mean rewards of every repetition."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(repetition)(task, number, root, check_every) for task in tasks for number in range(runs)
    )
    return pd.DataFrame([row for rows in found for row in rows])


def columns(measured: pd.DataFrame, data: str, pair: tuple[float, float], size: str) -> pd.DataFrame:
    """Rewards of the six methods in one row of the table, shape (repetitions, methods)."""
    rows = measured[measured["data"] == data]
    parts = {}
    for name in COLUMNS:
        epsilon_m = pair[1] if name.endswith(" w") else 0.0
        kept = (rows["method"] == name) & (rows["epsilon"] == pair[0]) & (rows["epsilon_m"] == epsilon_m)
        parts[name] = rows[kept].set_index("repetition")[size].sort_index()
    return pd.DataFrame(parts)


def marked(rewards: pd.DataFrame) -> str:
    """The best method, if it is significantly better than every other by the signed-rank test, else ""."""
    best = str(rewards.mean().idxmax())
    for name in rewards.columns.drop(best):
        gain = (rewards[best] - rewards[name]).to_numpy()
        if not gain.any() or not stats.wilcoxon(gain, alternative="greater").pvalue < LEVEL:
            return ""
    return best


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """The table: ratios of mean rewards to ABSE's with standard errors, the best method where significant."""
    rows = []
    for size in ("n/4", "n"):
        for pair in PAIRS:
            for data in dict.fromkeys(measured["data"]):
                ours = columns(measured, data, pair, size)
                absent = measured[(measured["data"] == data) & (measured["method"] == "ABSE")][size]
                told = {"rounds": size, "epsilon": pair[0], "epsilon_m": pair[1], "data": data}
                ratios, errors = ours.mean() / absent.mean(), relative_error(ours)
                errors = ratios * np.hypot(errors, relative_error(absent))
                errors = errors.add_suffix(": standard error")
                rows.append({**told, **ratios.to_dict(), "best": marked(ours), **errors.to_dict()})
    return pd.DataFrame(rows)


def relative_error(rewards: Any) -> Any:
    """Standard error of a mean, or of each column's, over the mean."""
    return rewards.std() / np.sqrt(len(rewards)) / rewards.mean()


def rank_sums(table: pd.DataFrame) -> pd.DataFrame:
    """Sums over rows of a method's rank, the smallest one where ratios tie to three decimals, as printed."""
    parts = {}
    for size, rows in table.groupby("rounds", sort=False):
        ranks = stats.rankdata(-rows[COLUMNS].round(3).to_numpy(), method="min", axis=1)
        parts[size] = ranks.sum(axis=0).astype(int)
    return pd.DataFrame(parts, index=COLUMNS).T.rename_axis("rounds").reset_index()


def baselines(tasks: list[Task], measured: pd.DataFrame) -> pd.DataFrame:
    """What there is to be won: mean rewards of a uniform choice, of the best single arm, and of ABSE."""
    rows = []
    for task in tasks:
        won = measured[(measured["data"] == task.name) & (measured["method"] == "ABSE")]
        world = task.environment
        rows.append(
            {
                "data": task.name,
                "arms": world.n_arms,
                "rows of the trial": world.rows,
                "rows elsewhere": sum(len(frame) for frame in task.sources),
                "uniform choice": 1.0 / world.n_arms,
                "best single arm": float(world.means.max()),
                "ABSE, n/4": float(won["n/4"].mean()),
                "ABSE, n": float(won["n"].mean()),
            }
        )
    return pd.DataFrame(rows)
