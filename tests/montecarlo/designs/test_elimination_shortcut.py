"""Successive elimination by stretches has the law of its rounds, and seldom drops a best arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.simulation.environments import BernoulliArms, NormalArms

RUNS = 4_096
CLOSE = [0.55, 0.75, 0.3]
"""Gaps near the thresholds, so that each epoch may drop none, one or two arms."""
CASES: list[tuple[Any, Any, int]] = [
    (PrivateSuccessiveElimination(epsilon=0.5, beta=0.9), BernoulliArms(CLOSE), 9_001),
    (PrivateSuccessiveElimination(epsilon=0.02, beta=0.9), BernoulliArms([0.72, 0.6, 0.9]), 9_002),
    (SuccessiveElimination(beta=0.9, check="epochs"), BernoulliArms([0.57, 0.7, 0.3]), 9_001),
    (
        SuccessiveElimination(beta=0.9, check="epochs"),
        NormalArms([0.57, 0.7, 0.3], scale=[0.4, 0.5, 1.0]),
        5_003,
    ),
    (SuccessiveElimination(beta=0.9), BernoulliArms(CLOSE), 2_000),
    (SuccessiveElimination(beta=0.9), NormalArms(CLOSE, scale=0.5), 2_000),
]
NAMES = ["private", "private-noisy", "epochs", "epochs-normal", "every-round", "every-round-normal"]


def columns(sims: Any) -> np.ndarray:
    """Tallies, outcomes (0 where NaN) and regret of every run."""
    return np.column_stack([sims.tallies.reshape(RUNS, -1), np.nan_to_num(sims.outcomes), sims.regret])


@pytest.mark.parametrize(("design", "environment", "horizon"), CASES, ids=NAMES)
def test_stretches_and_rounds_agree_in_distribution(design: Any, environment: Any, horizon: int) -> None:
    looped = design.replicate(environment, horizon, RUNS, rng=1, by_rounds=True)
    stretched = design.replicate(environment, horizon, RUNS, rng=2, by_rounds=False)
    rounds, stretches = columns(looped), columns(stretched)
    varies = rounds.std(axis=0) > 0
    np.testing.assert_array_equal(varies, stretches.std(axis=0) > 0)
    assert varies.sum() >= 9
    p_values = [
        stats.ks_2samp(rounds[:, column], stretches[:, column], method="asymp").pvalue
        for column in np.flatnonzero(varies)
    ]
    assert min(p_values) > 1e-4 / len(p_values)
    often = [np.unique(column, return_counts=True)[1].max() < 0.98 * RUNS for column in rounds.T]
    assert sum(often) >= 5
    ranks = [stats.spearmanr(sample[:, often]).statistic for sample in (rounds, stretches)]
    assert np.abs(ranks[0] - ranks[1]).max() < 0.11


@pytest.mark.parametrize(("design", "environment", "horizon"), CASES[:4], ids=NAMES[:4])
def test_the_same_epochs_drop_the_same_arms(design: Any, environment: Any, horizon: int) -> None:
    """Courses of a run (pulls of the arms that go, rounds and last arm) as categories, by chi-square."""
    sims = [
        design.replicate(environment, horizon, RUNS, rng=3, by_rounds=True),
        design.replicate(environment, horizon, RUNS, rng=4, by_rounds=False),
    ]
    courses = np.concatenate([np.column_stack([s.pulls, np.nan_to_num(s.outcomes)]) for s in sims])
    _, kinds = np.unique(courses, axis=0, return_inverse=True)
    table = np.array(
        [
            np.bincount(kinds[:RUNS], minlength=kinds.max() + 1),
            np.bincount(kinds[RUNS:], minlength=kinds.max() + 1),
        ]
    )
    common = table.sum(axis=0) >= 20
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] >= 2
    assert table.sum(axis=0).max() < 1.99 * RUNS
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_released_means_carry_fresh_laplace_noise() -> None:
    """Standardised by their scales, the noises of arms and of two epochs are independent Laplace(1)."""
    epsilon, n_arms = 0.3, 4
    design = PrivateSuccessiveElimination(epsilon=epsilon, beta=0.9)
    draws = []
    for log in design.logs(BernoulliArms([0.5] * n_arms), 12_500, 150, rng=9):
        arms, rewards, begin = log.arrays.action, log.arrays.reward, 0
        for end, rows in log.releases.groupby("round", sort=True):
            pulls = (end - begin) // len(rows)
            np.testing.assert_allclose(rows["scale"], 1.0 / (epsilon * pulls), rtol=1e-12)
            for arm, value in zip(rows["group"], rows["value"], strict=True):
                mean = rewards[begin:end][arms[begin:end] == arm].mean()
                draws.append((value - mean) * epsilon * pulls)
            begin = end
    noise = np.array(draws)
    assert noise.size > 150 * (n_arms + 2)
    assert stats.kstest(noise, stats.laplace.cdf).pvalue > 1e-4
    for lag in (1, n_arms):
        assert abs(np.corrcoef(noise[lag:], noise[:-lag])[0, 1]) < 4.0 / np.sqrt(noise.size)


@pytest.mark.parametrize(
    ("design", "horizon"),
    [
        (SuccessiveElimination(beta=0.5), 4_000),
        (SuccessiveElimination(beta=0.5, check="epochs"), 200_000),
        (PrivateSuccessiveElimination(epsilon=0.2, beta=0.5), 200_000),
    ],
    ids=["every-round", "epochs", "private"],
)
def test_a_best_arm_is_dropped_with_probability_at_most_beta(design: Any, horizon: int) -> None:
    for environment in (BernoulliArms([0.5, 0.5, 0.3]), BernoulliArms([0.5, 0.48, 0.0])):
        best = np.flatnonzero(environment.means[0] == environment.means[0].max())
        sims = design.replicate(environment, horizon, RUNS, rng=5)
        pulls = sims.pulls
        dropped = (pulls[:, best] < pulls.max(axis=1, keepdims=True) - 1).any(axis=1)
        assert dropped.mean() <= 0.5
        assert (pulls[:, 2] < pulls[:, 0]).all()  # the far arm goes


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_an_arm_is_gone_after_the_epoch_that_sees_its_gap(epsilon: float) -> None:
    """A gap of at least 2^-e is dropped in epoch e or before, except with probability beta."""
    beta = 0.01
    design = PrivateSuccessiveElimination(epsilon=epsilon, beta=beta)
    sims = design.replicate(BernoulliArms([0.9, 0.4]), 100_000, RUNS, rng=6)
    assert (sims.released["epochs"] > 1).mean() <= beta
    sims = design.replicate(BernoulliArms([0.75, 0.5]), 100_000, RUNS, rng=7)
    assert (sims.released["epochs"] > 2).mean() <= beta
    assert (sims.released["last_arm"] == 0).all()


@pytest.mark.parametrize("gap", [0.1, 0.4])
def test_an_arm_is_gone_by_the_pass_that_sees_its_gap(gap: float) -> None:
    """Compared after every pass: at most 16 / D^2 log(4 K / beta (32 / (e D^2))^2) + 1 pulls."""
    beta, n_arms = 0.01, 3
    design = SuccessiveElimination(beta=beta)
    sims = design.replicate(BernoulliArms([0.5 - gap, 0.5, 0.5 - gap]), 60_000, 256, rng=8)
    most = 16.0 / gap**2 * np.log(4 * n_arms / beta * (32.0 / (np.e * gap**2)) ** 2) + 1.0
    assert (sims.pulls[:, [0, 2]] > most).any(axis=1).mean() <= beta
    assert sims.pulls[:, [0, 2]].max() > most / 8.0
