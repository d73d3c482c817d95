"""Tests of true arm means, and of the difference of two equal arms, from sums alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.designs import UCB, PrivateUCB, Thompson
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments import BernoulliArms
from case_studies.false_discovery.methods import EQUAL, HORIZON, THOMPSON

ALPHA = 0.05
MEANS = np.full(5, 0.5)
ROUNDS = 500
DESIGNS: dict[str, Design] = {
    "UCB, sqrt(2 log t / N)": UCB(),
    "UCB, sqrt(log t / 2N)": UCB(width=0.5),
    "UCB, sqrt(log t / 4N)": UCB(width=0.25),
    "Thompson, beta prior": Thompson(draws=1),
    "private UCB, epsilon 1": PrivateUCB(epsilon=1.0),
    "private UCB, epsilon .1": PrivateUCB(epsilon=0.1),
    "private UCB, published, epsilon .05": PrivateUCB(epsilon=0.05, calibration="published"),
}
CHOICES = ("arm 0", "least pulled")


def equal_arms(runs: int, seed: int, n_jobs: int) -> pd.DataFrame:
    """Share of runs in which an exact test of level .05 rejects an arm's true mean, by side."""
    rows = []
    for name, design in DESIGNS.items():
        sims = design.replicate(BernoulliArms(MEANS), ROUNDS, runs, rng=seed, n_jobs=n_jobs)
        every = np.arange(runs)
        for choice, arm in zip(CHOICES, (np.zeros(runs, int), sims.pulls.argmin(axis=1)), strict=True):
            pulls, sums = sims.pulls[every, arm], sims.sums[every, arm]
            low = stats.binom.cdf(sums, pulls, 0.5)
            high = stats.binom.sf(sums - 1.0, pulls, 0.5)
            share = float(np.mean(low <= ALPHA))
            rows.append(
                {
                    "design": name,
                    "arm": choice,
                    "too low, one-sided": share,
                    "standard error": float(np.sqrt(share * (1.0 - share) / runs)),
                    "too high, one-sided": float(np.mean(high <= ALPHA)),
                    "two-sided": float(np.mean(2.0 * np.minimum(low, high) <= ALPHA)),
                    "median pulls": float(np.median(pulls)),
                }
            )
    return pd.DataFrame(rows)


def thompson(runs: int, seed: int, n_jobs: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rejections of two equal arms' true means and difference by z-tests with the true noise, no floor.

    Returns the shares, and the p-values of the difference.
    """
    sims = THOMPSON.replicate(EQUAL, HORIZON, runs, rng=seed, n_jobs=n_jobs)
    counts, sums = sims.pulls, sims.sums
    usable = counts.min(axis=1) > 0
    counts, means = counts[usable], sums[usable] / counts[usable]
    difference = (means[:, 1] - means[:, 0]) / np.sqrt((1.0 / counts).sum(axis=1))
    scores = means * np.sqrt(counts)
    every, fewer = np.arange(len(counts)), counts.argmin(axis=1)
    tested = {
        "difference of the arms": difference,
        "mean of arm 0": scores[:, 0],
        "mean of the arm pulled less": scores[every, fewer],
        "mean of the arm pulled more": scores[every, 1 - fewer],
    }
    pvalues = {name: 2.0 * stats.norm.sf(np.abs(score)) for name, score in tested.items()}
    rows = [
        {
            "tested": name,
            "rejected at .05": float(np.mean(found <= ALPHA)),
            "standard error": float(np.std(found <= ALPHA) / np.sqrt(len(found))),
            "mean z": float(tested[name].mean()),
        }
        for name, found in pvalues.items()
    ]
    return pd.DataFrame(rows), pvalues["difference of the arms"]
