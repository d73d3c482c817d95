"""P-values of every method for the difference of two equal arms, under designs that adapt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats

from adaptinf.audit import randomization_test
from adaptinf.audit.rerun.simulated_counts import decorrelation_ridge
from adaptinf.designs import PrivateUCB, Thompson
from adaptinf.designs.base_design import Design
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import Contrast
from adaptinf.inference.corrections.information_of_log import correction_for
from adaptinf.inference.distributions.references import BinomialReference
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.weighted.own_weights import stabilising_weights, weighted_least_squares
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, NormalArms

HORIZON = 1_000
EQUAL = NormalArms([0.0, 0.0])
THOMPSON = Thompson(prior="normal")
DESIGNS: dict[str, Design] = {
    "Thompson": THOMPSON,
    "batched Thompson": Thompson(prior="normal", batch_size=100, floor=0.1),
}
NAIVE = ("z-test of least squares", "t-test of least squares")
METHODS = (*NAIVE, "W-decorrelated", "ALEE", "AIPW", "weighted", "batched", "randomisation")
RE_RUNS = 199
PRIVATE = PrivateUCB(epsilon=0.03)
CHUNK = 64


@dataclass(frozen=True)
class Task:
    """A design and what is computed of its logs."""

    name: str
    ridge: float | None
    seed: int

    @property
    def design(self) -> Design:
        return DESIGNS[self.name]


def least_squares_tests(log: AdaptiveLog) -> dict[str, float]:
    """The regression of rewards on the arm: z-test with the true noise, and t-test."""
    arrays = log.arrays
    groups = [arrays.reward[arrays.action == arm] for arm in (0, 1)]
    counts = np.array([len(group) for group in groups])
    if counts.min() == 0:
        return dict.fromkeys(NAIVE, np.nan)
    difference = groups[1].mean() - groups[0].mean()
    spread = math.sqrt((1.0 / counts).sum())
    df = len(arrays.reward) - 2
    noise = math.sqrt(sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / df)
    z = abs(difference) / spread
    return dict(
        zip(NAIVE, (2.0 * float(stats.norm.sf(z)), 2.0 * float(stats.t.sf(z / noise, df))), strict=True)
    )


def normal_pvalue(estimate: np.ndarray, covariance: np.ndarray, df: float = math.inf) -> float:
    """Two-sided p-value of a second coefficient equal to the first."""
    row = np.array([-1.0, 1.0])
    return 2.0 * float(stats.t.sf(abs(row @ estimate) / math.sqrt(row @ covariance @ row), df))


def contrast(log: AdaptiveLog, estimator: str) -> float:
    """P-value of an estimator of the library; NaN where it refuses the log."""
    try:
        fitted = Contrast(log, treatment=1, control=0).fit(estimator=estimator)
    except InvalidForLog:
        return math.nan
    return float(fitted.pvalues.iloc[0])


def tests(log: AdaptiveLog, ridge: float | None, run: int) -> dict[str, float]:
    """P-values by method; a method that does not apply to the design is left out."""
    found = least_squares_tests(log)
    arrays = log.arrays
    x = np.eye(2)[arrays.action]
    if np.bincount(arrays.action, minlength=2).min() < 2:
        return found
    if ridge is not None:
        fitted = decorrelated(x, arrays.reward, ridge)
        found["W-decorrelated"] = normal_pvalue(fitted.estimate, fitted.covariance)
    found["ALEE"] = contrast(log, "alee")
    found["AIPW"] = contrast(log, "aipw")
    assert arrays.propensity is not None
    weight = stabilising_weights(arrays.action, arrays.propensity, np.array([0.5, 0.5]))
    weighted = weighted_least_squares(x, arrays.reward, weight, small_samples=True)
    found["weighted"] = normal_pvalue(weighted.estimate, weighted.covariance, len(x) - 2.0)
    if arrays.batch is not None:
        found["batched"] = contrast(log, "batched")
    found["randomisation"] = randomization_test(log, replications=RE_RUNS, rng=run).pvalue
    return found


def _chunk(task: Task, start: int, stop: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for run, log in enumerate(task.design.logs(EQUAL, HORIZON, stop, task.seed, start=start), start):
        rows += [
            {"design": task.name, "method": method, "pvalue": pvalue}
            for method, pvalue in tests(log, task.ridge, run).items()
        ]
    return rows


def simulated_ridge(design: Design, seed: int) -> float | None:
    """The ridge of W-decorrelation by simulation; None where the smallest eigenvalue is 0 too often."""
    try:
        return decorrelation_ridge(
            design, EQUAL, HORIZON, 500, matrix=lambda log: np.eye(2)[log.arrays.action], rng=seed
        ).ridge
    except ParameterError:
        return None


def pvalues(runs: int, seed: int, n_jobs: int) -> pd.DataFrame:
    """One row per run, design and method."""
    tasks = [Task(name, simulated_ridge(design, seed + 1), seed) for name, design in DESIGNS.items()]
    spans = [(start, min(start + CHUNK, runs)) for start in range(0, runs, CHUNK)]
    parts = Parallel(n_jobs)(delayed(_chunk)(task, *span) for task in tasks for span in spans)
    return pd.DataFrame([row for part in parts for row in part])


def private_pvalues(runs: int, seed: int, n_jobs: int) -> pd.DataFrame:
    """Exact tests of the least pulled arm's mean under private UCB, as they are and corrected."""
    env = BernoulliArms([0.5, 0.5])
    sims = PRIVATE.replicate(env, HORIZON, runs, rng=seed, n_jobs=n_jobs)
    least = sims.pulls.argmin(axis=1)
    every = np.arange(runs)
    naive = BinomialReference(sims.sums[every, least], sims.pulls[every, least]).log_pvalues(0.5)
    correction = correction_for(PRIVATE.run(env, HORIZON, rng=seed))
    assert correction is not None
    parts = {"exact test": naive, "exact test, corrected": correction.apply(naive)}
    frames = (
        pd.DataFrame({"design": "private UCB", "method": name, "pvalue": np.exp(log_p)})
        for name, log_p in parts.items()
    )
    return pd.concat(frames, ignore_index=True)
