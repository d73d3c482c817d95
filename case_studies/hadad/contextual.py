"""The same experiment with contexts: Thompson sampling by cell, in batches, and values of policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from adaptinf import AdaptiveLog, PolicyContrast, PolicySnapshots, PolicyValue
from adaptinf.log import LogArrays
from case_studies.hadad.arms import DECAY, SETTINGS
from case_studies.hadad.dealt import best_chances

__all__ = ["FITS", "TERMS", "contextual_replications", "contextual_targets", "trial"]

BATCH, BATCHES, DRAWS = 100, 10, 1_000
NOISE = 1.0 / 3.0
FITS: dict[str, dict[str, Any]] = {
    "uniform": {"weights": "uniform"},
    "stable-variance": {"weights": "stable-variance", "contextual": False},
    "stable-variance, contextual": {"weights": "stable-variance", "contextual": True},
    "min-variance": {"weights": "min-variance", "contextual": False},
    "min-variance, contextual": {"weights": "min-variance", "contextual": True},
    "CADR": {"estimator": "cadr"},
}
TERMS = ("worst policy", "best policy", "best - middle")


def by_side(rows: np.ndarray) -> Callable[[pd.DataFrame], np.ndarray]:
    """Policy that depends on the sign of the context alone."""
    return lambda frame: rows[(frame["x"].to_numpy() > 0.0).astype(int)]


def trial(means: tuple[float, ...], rng: np.random.Generator) -> tuple[AdaptiveLog, PolicySnapshots]:
    """One trial, and its policy in each batch: on the left of 0 the arms change places."""
    horizon = BATCH * BATCHES
    cells = np.array([means[::-1], means])
    x = rng.uniform(-1.0, 1.0, horizon)
    side = (x > 0.0).astype(int)
    action, reward = np.zeros(horizon, dtype=np.int64), np.zeros(horizon)
    propensities = np.full((horizon, 3), 1.0 / 3.0)
    counts, sums, policies = np.zeros((2, 3)), np.zeros((2, 3)), []
    for start in range(0, horizon, BATCH):
        now = slice(start, start + BATCH)
        rows = np.full((2, 3), 1.0 / 3.0)
        if start:
            rows = best_chances(counts, sums, NOISE, (start + 1.0) ** -DECAY / 3.0, DRAWS, rng)
        policies.append(by_side(rows))
        propensities[now] = rows[side[now]]
        passed = rng.random(BATCH)[:, None] > np.cumsum(propensities[now], axis=1)[:, :-1]
        action[now] = chosen = passed.sum(axis=1)
        reward[now] = cells[side[now], chosen] + rng.uniform(-1.0, 1.0, BATCH)
        np.add.at(counts, (side[now], chosen), 1.0)
        np.add.at(sums, (side[now], chosen), reward[now])
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=propensities[np.arange(horizon), action],
        propensities=propensities,
        context={"x": x},
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("left", "middle", "right"))
    return log, PolicySnapshots(range(0, horizon, BATCH), policies)


WORST = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
BEST = WORST[::-1].copy()
MIDDLE = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


def matched(log: AdaptiveLog, rows: np.ndarray) -> tuple[float, float]:
    """Mean reward, and its variance, of the rounds in which the policy's arm was drawn: the naive value."""
    side = (log.arrays.context["x"] > 0.0).astype(int)
    reward = log.arrays.reward[rows[side, log.arrays.action] > 0.0]
    return float(reward.mean()), float(reward.var(ddof=1) / reward.size)


def one_trial(means: tuple[float, ...], key: tuple[int, int], seed: int) -> np.ndarray:
    """Estimates and standard errors of one trial, shape (1 + fits, terms, 2); the first row is naive."""
    log, snapshots = trial(means, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key)))
    found = np.zeros((1 + len(FITS), len(TERMS), 2))
    worst, best, middle = (matched(log, rows) for rows in (WORST, BEST, MIDDLE))
    plain = np.array([worst, best, (best[0] - middle[0], best[1] + middle[1])])
    found[0] = np.column_stack([plain[:, 0], np.sqrt(plain[:, 1])])
    values = PolicyValue(log, [by_side(WORST), by_side(BEST)], names=["worst", "best"])
    contrast = PolicyContrast(log, by_side(BEST), baseline="middle")
    for row, (name, options) in enumerate(FITS.items(), start=1):
        own = options if name == "uniform" else {**options, "snapshots": snapshots}
        for terms, result in ((slice(0, 2), values.fit(**own)), (slice(2, 3), contrast.fit(**own))):
            found[row, terms] = np.column_stack([result.estimate, result.std_error])
    return found


def contextual_replications(name: str, runs: int, seed: int, n_jobs: int) -> np.ndarray:
    """All replications of one signal, shape (runs, 1 + fits, terms, 2)."""
    place = list(SETTINGS).index(name)
    tasks = (delayed(one_trial)(SETTINGS[name], (place, run), seed) for run in range(runs))
    return np.stack(Parallel(n_jobs=n_jobs, batch_size=16)(tasks))


def contextual_targets(means: tuple[float, ...]) -> np.ndarray:
    """True values by term: the same on both sides of 0."""
    return np.array([means[0], means[2], means[2] - means[1]])
