"""Figure 6: how a single trial learns, overall and at one point; and what auxiliary logs leave to a trial."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog
from case_studies.local_privacy.simulations import ARMS, Source, build
from case_studies.local_privacy.table_2 import seed_of

POINT = np.array([1.0 / 3.0, 1.0 / 3.0])
EPSILON = 1.0
COLUMNS: dict[str, tuple[float, float] | None] = {
    "none": None,
    "effective": (8.0, 0.0),
    "weak": (0.5, 5.0),
}
"""Auxiliary data of each column of the figure: epsilon_1 and gamma_1."""
LOUDER = 8.0
"""Multiple of every epsilon in the picture: at those of the paper nothing is to be seen."""


def arms_at(log: AdaptiveLog, point: np.ndarray, n_arms: int, horizon: int) -> np.ndarray:
    """Which arms are left at a point in each round, shape (rounds, arms), from what the server releases."""
    told = log.releases
    assert told is not None
    table = pd.DataFrame({name: np.asarray(told[name]) for name in ("round", "name", "group", "value")})
    corners = table.pivot_table(index="group", columns="name", values="value", aggfunc="last")
    names = log.context
    low = corners[[f"low_{name}" for name in names]].to_numpy()
    high = corners[[f"high_{name}" for name in names]].to_numpy()
    holds = corners.index[((low <= point) & (point < high)).all(axis=1)]
    first = table[table["name"] == f"low_{names[0]}"].set_index("group")["round"]
    # A bin's number is larger than that of the bin it was halved from.
    chain = sorted(holds)
    ends = [*(int(first[group]) for group in chain[1:]), horizon]
    rounds = np.arange(1, horizon + 1)
    active = np.zeros((horizon, n_arms), dtype=bool)
    for group, end in zip(chain, ends, strict=True):
        current = (rounds > int(first[group])) & (rounds <= end)
        for arm in range(n_arms):
            own = table[(table["group"] == group) & (table["name"] == f"participants_{arm}")]["round"]
            if len(own):
                active[:, arm] |= current & (rounds <= int(own.iloc[0]))
    return active


def trial(
    kind: str, column: str, sizes: tuple[int, int], run: int, root: int, louder: float = 1.0
) -> AdaptiveLog:
    """One trial of a column; sizes are the trial's and the auxiliary log's."""
    about = COLUMNS[column]
    name = f"figure 6, {kind}, {column}, {sizes}, {run}, {louder:g}"
    logs = ()
    if about is not None:
        source = Source(sizes[1], about[1], logs=1)
        rng = seed_of(root, f"{name}, people")
        logs = (ARMS.auxiliary(source.size, source.gamma, epsilon=louder * about[0], rng=rng),)
    return build(kind, louder * EPSILON, logs).run(ARMS, sizes[0], rng=seed_of(root, name))


def curves(log: AdaptiveLog, horizon: int, points: int = 150) -> pd.DataFrame:
    """Average regret so far, overall and at the point, and the share of each arm at the point so far.

    At the point both are expectations over the arm that would be drawn from those that are left.
    """
    contexts = np.stack([log.arrays.context[name] for name in log.context], axis=1)
    rewards = ARMS.expected(contexts)
    lost = rewards.max(axis=1) - rewards[np.arange(horizon), log.arrays.action]
    active = arms_at(log, POINT, ARMS.n_arms, horizon)
    chance = active / active.sum(axis=1, keepdims=True)
    here = ARMS.expected(POINT[None])[0]
    so_far = np.arange(1, horizon + 1)
    table = pd.DataFrame({"round": so_far, "average regret": np.cumsum(lost) / so_far})
    table["local regret"] = np.cumsum(chance @ (here.max() - here)) / so_far
    for arm in range(ARMS.n_arms):
        table[f"arm {arm + 1}"] = np.cumsum(chance[:, arm]) / so_far
        table[f"arm {arm + 1} left"] = active[:, arm]
    kept = np.unique(np.round(np.geomspace(1, horizon, points)).astype(int)) - 1
    changed = np.flatnonzero(np.any(active[1:] != active[:-1], axis=1)) + 1
    return table.iloc[np.union1d(kept, changed)]


def showcase(kind: str, sizes: tuple[int, int], root: int) -> pd.DataFrame:
    """One trial a column, as in the figure, with louder reports."""
    parts = []
    for column in COLUMNS:
        table = curves(trial(kind, column, sizes, 0, root, LOUDER), sizes[0])
        table.insert(0, "auxiliary data", column)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def ending(kind: str, column: str, sizes: tuple[int, int], runs: range, root: int) -> list[dict[str, Any]]:
    """What is left at the point when trials end."""
    rows = []
    for run in runs:
        log = trial(kind, column, sizes, run, root)
        active = arms_at(log, POINT, ARMS.n_arms, sizes[0])
        chance = active / active.sum(axis=1, keepdims=True)
        here = ARMS.expected(POINT[None])[0]
        told: dict[str, Any] = {"design": kind, "auxiliary data": column, "run": run}
        told["local regret"] = float((chance @ (here.max() - here)).mean())
        told["dropped before the trial"] = bool(not active[0].all())
        for arm in range(ARMS.n_arms):
            told[f"arm {arm + 1} dropped"] = bool(not active[-1, arm])
        rows.append(told)
    return rows


def endings(kind: str, sizes: tuple[int, int], runs: int, root: int, n_jobs: int) -> pd.DataFrame:
    """Means over many trials of what a single one shows, with the standard error of the local regret."""
    step = 25
    parts = Parallel(n_jobs=n_jobs)(
        delayed(ending)(kind, column, sizes, range(first, min(first + step, runs)), root)
        for column in COLUMNS
        for first in range(0, runs, step)
    )
    frame = pd.DataFrame([row for rows in parts for row in rows])
    by = frame.groupby(["design", "auxiliary data"], sort=False)
    table = by.mean().drop(columns="run")
    table.insert(1, "standard error", by["local regret"].std() / np.sqrt(runs))
    table["runs"] = runs
    return table.reset_index()


def at_the_start(log: AdaptiveLog, points: int = 600) -> tuple[float, float]:
    """Share of the square where the best arm was dropped before the trial, and where two or more are left."""
    told = log.releases
    assert told is not None
    table = pd.DataFrame({name: np.asarray(told[name]) for name in ("round", "name", "group", "value")})
    wide = table.pivot_table(index="group", columns="name", values="value", aggfunc="last")
    first = table[table["name"] == f"low_{log.context[0]}"].set_index("group")["round"]
    left = wide.reindex(columns=[f"participants_{arm}" for arm in range(ARMS.n_arms)]).notna().to_numpy()
    # Bins that were halved before the trial have no participants in it.
    there = (first.loc[wide.index] == 0).to_numpy() & left.any(axis=1)
    low, high = (
        wide.loc[there, [f"{end}_{name}" for name in log.context]].to_numpy() for end in ("low", "high")
    )
    left, volume = left[there], (high - low).prod(axis=1)
    inside = low[:, :1] + (high - low)[:, :1] * (np.arange(points) + 0.5) / points
    best = ARMS.expected(inside.reshape(-1, 1)).argmax(axis=1).reshape(inside.shape)
    lost = ~np.take_along_axis(left, best, axis=1)
    return float(volume @ lost.mean(axis=1)), float(volume @ (left.sum(axis=1) > 1))


def order(size: int, horizon: int, run: int, root: int) -> list[dict[str, Any]]:
    """What two logs leave to a trial at epsilon = 1, in either order."""
    people = [ARMS.auxiliary(size, rng=seed_of(root, f"order, {number}, {run}")).log for number in (0, 1)]
    rows = []
    for epsilons in ((2.0, 8.0), (8.0, 2.0)):
        logs = tuple(AuxiliaryLog(log, epsilon=each) for log, each in zip(people, epsilons, strict=True))
        name = f"order, {size}, {epsilons}, {run}"
        log = build("corrected", EPSILON, logs).run(ARMS, horizon, rng=seed_of(root, name))
        lost, undecided = at_the_start(log)
        told = "{:g} then {:g}".format(*epsilons)
        rows.append({"epsilon_m": told, "run": run, "best arm lost": lost, "undecided": undecided})
    return rows


def orders(size: int, horizon: int, runs: int, root: int, n_jobs: int) -> pd.DataFrame:
    """Means over runs, with standard errors."""
    parts = Parallel(n_jobs=n_jobs)(delayed(order)(size, horizon, run, root) for run in range(runs))
    frame = pd.DataFrame([row for rows in parts for row in rows])
    by = frame.groupby("epsilon_m", sort=False)[["best arm lost", "undecided"]]
    errors = (by.std() / np.sqrt(runs)).add_suffix(": standard error")
    return pd.concat([by.mean(), errors], axis=1).assign(runs=runs).reset_index()
