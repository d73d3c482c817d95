"""The experiment of Section 6.2: an arm's rewards regressed on its contexts under OFUL, with readings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats

from adaptinf.designs import LinUCB
from adaptinf.simulation.environments.vector_arms import LinearArms
from adaptinf.simulation.replicate import iterate_runs

ARMS = DIMENSION = 5
HORIZON = 500
RIDGE = 1.0
CONTEXTS = ("own", "shared", "intercept")
TESTS = ("z", "t", "by the variance", "z, ridge", "by the variance, ridge")
CHUNK = 64


def coefficients(rng: np.random.Generator) -> np.ndarray:
    """An arm's vector in each row: first coordinate 0, the others uniform on the unit sphere."""
    theta = rng.standard_normal((ARMS, DIMENSION))
    theta[:, 0] = 0.0
    lengths: np.ndarray = np.linalg.norm(theta, axis=1, keepdims=True)
    return np.asarray(theta / lengths)


def environment(contexts: str, rng: np.random.Generator) -> LinearArms:
    """Unit contexts: uniform on the sphere for each arm or for all, or with a constant first coordinate."""
    theta = coefficients(rng)
    if contexts != "intercept":
        return LinearArms(theta, 1.0, contexts="sphere", shared=contexts == "shared")
    moving = rng.standard_normal((HORIZON, ARMS, DIMENSION - 1))
    moving /= np.linalg.norm(moving, axis=2, keepdims=True)
    constant = np.ones((HORIZON, ARMS, 1))
    return LinearArms(theta, 1.0, contexts=np.concatenate([constant, moving], axis=2) / np.sqrt(2.0))


def statistics(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Two-sided p-values of a first coefficient of 0, by test; NaN with too few rounds.

    ``z`` divides the least-squares estimate by its standard deviation (noise of scale 1), ``t`` by its
    standard error, ``by the variance`` by its variance; the others do it to OFUL's ridge estimate.
    """
    rounds, columns = x.shape
    if rounds < columns + 2:
        return dict.fromkeys(TESTS, np.nan)
    gram = x.T @ x
    inverse, shrunk = np.linalg.inv(gram), np.linalg.inv(gram + RIDGE * np.eye(columns))
    plain, ridge = inverse @ (x.T @ y), shrunk @ (x.T @ y)
    df = rounds - columns
    noise = np.sqrt(np.sum((y - x @ plain) ** 2) / df)
    scores = {
        "z": plain[0] / np.sqrt(inverse[0, 0]),
        "by the variance": plain[0] / inverse[0, 0],
        "z, ridge": ridge[0] / np.sqrt(shrunk[0, 0]),
        "by the variance, ridge": ridge[0] / shrunk[0, 0],
    }
    pvalues = {name: float(2.0 * stats.norm.sf(abs(score))) for name, score in scores.items()}
    pvalues["t"] = float(2.0 * stats.t.sf(abs(scores["z"] / noise), df))
    return {name: pvalues[name] for name in TESTS}


def one_run(contexts: str, seed: int, run: int) -> Iterator[dict[str, object]]:
    """P-values of the most and the least pulled arm of one experiment, with coefficients of its own."""
    rng = np.random.default_rng([seed, CONTEXTS.index(contexts), run])
    env = environment(contexts, rng)
    record = next(iterate_runs(LinUCB(regularisation=RIDGE), env, HORIZON, 0, 1, rng)).record
    vectors = record.vectors.reshape(HORIZON, -1, DIMENSION)
    pulls = np.bincount(record.action, minlength=ARMS)
    for choice, arm in (("most pulled", int(pulls.argmax())), ("least pulled", int(pulls.argmin()))):
        rows = np.flatnonzero(record.action == arm)
        x = vectors[rows, min(arm, vectors.shape[1] - 1)]
        for test, pvalue in statistics(x, record.reward[rows]).items():
            yield {"contexts": contexts, "arm": choice, "test": test, "pvalue": pvalue, "pulls": len(rows)}


def _chunk(contexts: str, seed: int, start: int, stop: int) -> list[dict[str, object]]:
    return [row for run in range(start, stop) for row in one_run(contexts, seed, run)]


def pvalues(runs: int, seed: int, n_jobs: int) -> pd.DataFrame:
    """One row per run, kind of contexts, arm and test."""
    spans = [(start, min(start + CHUNK, runs)) for start in range(0, runs, CHUNK)]
    parts = Parallel(n_jobs)(
        delayed(_chunk)(contexts, seed, *span) for contexts in CONTEXTS for span in spans
    )
    return pd.DataFrame([row for part in parts for row in part])
