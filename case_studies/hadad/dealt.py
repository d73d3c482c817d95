"""Thompson sampling that starts as the authors' simulation does: the arms are dealt out in turn.

The first rounds are logged as if drawn with probability 1/3, although nothing is drawn in them. The
package's `Thompson(initial="dealt")` logs propensities of 0 and 1 there, so the authors' trial is simulated
here, for many trials at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from case_studies.hadad.arms import DECAY, SETTINGS, estimates

__all__ = ["DEALT", "best_chances", "dealt_logs", "dealt_replications"]

DEALT = "estimated, dealt in turn"
DRAWS, PULLS = 20, 5
_BLOCK = 500


class Logs(NamedTuple):
    """Arms and rewards of shape (runs, T), propensities of shape (runs, T, arms)."""

    action: np.ndarray
    reward: np.ndarray
    propensities: np.ndarray


def best_chances(
    counts: np.ndarray,
    sums: np.ndarray,
    noise: float | np.ndarray,
    floor: float,
    draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Probability of being best under normal posteriors, by row, none below the floor; prior N(0, 1)."""
    precision = 1.0 + counts / noise
    posterior = (sums / noise) / precision + rng.standard_normal((draws, *counts.shape)) / np.sqrt(precision)
    chances = np.eye(counts.shape[1])[posterior.argmax(axis=2)].mean(axis=0)
    above = np.maximum(chances - floor, 0.0)
    room = 1.0 - counts.shape[1] * floor
    return floor + room * above / above.sum(axis=1, keepdims=True)


def dealt_logs(means: tuple[float, ...], horizon: int, runs: int, rng: np.random.Generator) -> Logs:
    """Trials in which every arm is pulled five times, in turn, before Thompson sampling begins."""
    arms, every = len(means), np.arange(runs)
    counts, sums, squares = (np.zeros((runs, arms)) for _ in range(3))
    logs = Logs(
        np.zeros((runs, horizon), dtype=np.int64),
        np.zeros((runs, horizon)),
        np.full((runs, horizon, arms), 1.0 / arms),
    )
    for t in range(horizon):
        chosen = np.full(runs, t % arms)
        if t >= PULLS * arms:
            noise = squares / counts - (sums / counts) ** 2
            chances = best_chances(counts, sums, noise, (t + 1.0) ** -DECAY / arms, DRAWS, rng)
            chosen = (rng.random(runs)[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
            logs.propensities[:, t] = chances
        reward = np.array(means)[chosen] + rng.uniform(-1.0, 1.0, runs)
        for total, value in ((counts, 1.0), (sums, reward), (squares, reward**2)):
            total[every, chosen] += value
        logs.action[:, t], logs.reward[:, t] = chosen, reward
    return logs


def one_block(name: str, horizon: int, runs: int, key: int, seed: int) -> np.ndarray:
    """Estimates and standard errors of some trials, shape (runs, estimators, places, 2)."""
    place = list(SETTINGS).index(name)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(place, key)))
    logs = dealt_logs(SETTINGS[name], horizon, runs, rng)
    return np.stack([estimates(*log) for log in zip(*logs, strict=True)])


def dealt_replications(name: str, horizon: int, runs: int, seed: int, n_jobs: int) -> np.ndarray:
    """All trials of one signal, shape (runs, estimators, places, 2)."""
    sizes = [min(_BLOCK, runs - start) for start in range(0, runs, _BLOCK)]
    blocks = (delayed(one_block)(name, horizon, size, key, seed) for key, size in enumerate(sizes))
    return np.concatenate(Parallel(n_jobs=n_jobs)(blocks))
