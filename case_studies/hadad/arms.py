"""Arm means and contrasts under Thompson sampling with a falling floor: the three-signal experiment."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import special

from adaptinf.designs import Thompson
from adaptinf.inference.arms.alee import alee_means
from adaptinf.inference.scores.means import sample_means
from adaptinf.inference.scores.score_stream import streamed_means
from adaptinf.simulation.environments import UniformArms
from adaptinf.simulation.replicate import iterate_runs

__all__ = [
    "ALPHA",
    "DECAY",
    "ESTIMATORS",
    "PLACES",
    "READINGS",
    "SETTINGS",
    "Belief",
    "covered",
    "estimates",
    "replications",
    "targets",
]

ALPHA = 0.1
DECAY = 0.7
SETTINGS = {"no signal": (1.0, 1.0, 1.0), "low signal": (0.9, 1.0, 1.1), "high signal": (0.5, 1.0, 1.5)}
ESTIMATORS = ("sample mean", "uniform", "sqrt", "two-point", "ALEE", "ALEE, self-normalised")
PLACES = ("worst arm", "best arm", "middle arm", "best - middle", "best - worst")
_ARMS = [0, 2, 1]
_PAIRS = {3: (2, 1), 4: (2, 0)}
_BLOCK = 64


class Belief(NamedTuple):
    """Noise scale that Thompson sampling believes in, None to estimate it, and posterior draws a round."""

    noise_scale: float | None
    draws: int


READINGS = {"1/3": Belief(math.sqrt(1.0 / 3.0), 100), "1": Belief(1.0, 100), "estimated": Belief(None, 20)}
"""By noise variance; the paper's text does not say which."""


def one_share(
    means: tuple[float, ...], belief: Belief, horizon: int, start: int, stop: int, seed: int
) -> np.ndarray:
    """Estimates and standard errors of some replications, shape (runs, estimators, places, 2)."""
    design = Thompson(
        prior="normal",
        initial_pulls=5,
        floor=(1.0 / 3.0, DECAY),
        noise_scale=belief.noise_scale,
        draws=belief.draws,
    )
    environment = UniformArms([m - 1.0 for m in means], [m + 1.0 for m in means])
    runs = iterate_runs(design, environment, horizon, start, stop, seed)
    return np.stack(
        [estimates(np.asarray(r.record.action), r.record.reward, r.record.propensities) for r in runs]
    )


def estimates(action: np.ndarray, reward: np.ndarray, propensities: np.ndarray) -> np.ndarray:
    """Estimates and standard errors of one log, shape (estimators, places, 2)."""
    action, codes = action.astype(np.int64), np.arange(3)
    own = propensities[np.arange(action.size), action]
    sample, equations = sample_means(action, reward, 3), alee_means(action, reward, codes)
    fits = {"sample mean": (sample.mean, np.diag(sample.std_error**2))}
    for weights in ("uniform", "sqrt", "two-point"):
        means = streamed_means(action, reward, own, propensities, codes, weights=weights, decay=DECAY)
        fits[weights] = (means.estimate, means.covariance)
    for name, kind in (("ALEE", "conservative"), ("ALEE, self-normalised", "self-normalised")):
        fits[name] = (equations.estimate, np.diag(equations.std_error(kind) ** 2))
    found = np.zeros((len(ESTIMATORS), len(PLACES), 2))
    for row, name in enumerate(ESTIMATORS):
        estimate, covariance = fits[name]
        found[row, :3, 0] = estimate[_ARMS]
        found[row, :3, 1] = np.sqrt(np.diag(covariance))[_ARMS]
        for place, (first, other) in _PAIRS.items():
            variance = covariance[first, first] + covariance[other, other] - 2.0 * covariance[first, other]
            found[row, place] = estimate[first] - estimate[other], math.sqrt(variance)
    return found


def replications(
    means: tuple[float, ...], belief: Belief, horizon: int, runs: int, seed: int, n_jobs: int
) -> np.ndarray:
    """All replications of one setting, shape (runs, estimators, places, 2)."""
    size = _BLOCK * math.ceil(runs / (_BLOCK * 16))
    shares = [(start, min(start + size, runs)) for start in range(0, runs, size)]
    parts = Parallel(n_jobs=n_jobs)(
        delayed(one_share)(means, belief, horizon, *share, seed) for share in shares
    )
    return np.concatenate(parts)


def targets(means: tuple[float, ...]) -> np.ndarray:
    """True values by place."""
    values = [means[arm] for arm in _ARMS] + [means[first] - means[other] for first, other in _PAIRS.values()]
    return np.array(values)


def covered(found: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Share of normal intervals that hold the target, by estimator and place; a missing one does not."""
    quantile = -special.ndtri(ALPHA / 2.0)
    return np.mean(np.abs(found[..., 0] - target) <= quantile * found[..., 1], axis=0)
