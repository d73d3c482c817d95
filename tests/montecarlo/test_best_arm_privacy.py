"""Measured epsilon of the releases and of the recommended arm, on neighbours that differ in one reward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.best_arm import DPBAI, DPBAIGauss
from adaptinf.designs.best_arm_optimal import DPOD
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import iterate_runs

RUNS = 6_000
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]])
HORIZON = 6


def scores(design: Any, first: float, seed: int) -> np.ndarray:
    """First released number of each run, where the reward of round 0 is `first` and all others are 1/2."""
    table = np.full((HORIZON, 3), 0.5)
    table[0] = first
    return np.array(
        [run.released[0, 3] for run in iterate_runs(design, Tableau(table), HORIZON, 0, RUNS, seed)]
    )


def lower_bound(scores_0: np.ndarray, scores_1: np.ndarray, delta: float = 0.0) -> float:
    """Lower confidence bound (99.9%) of epsilon: event chosen on one half, bounded on the other."""
    half = RUNS // 2
    cuts = np.quantile(np.r_[scores_0[:half], scores_1[:half]], np.linspace(0.1, 0.7, 25))

    def shares(scores: np.ndarray) -> np.ndarray:
        return (np.round(scores, 9)[:, None] > cuts).mean(axis=0)

    ratios = (shares(scores_1[:half]) - delta) / shares(scores_0[:half])
    cut = cuts[int(np.argmax(ratios))]
    hits = [int((np.round(part[half:], 9) > cut).sum()) for part in (scores_1, scores_0)]
    low = stats.binomtest(hits[0], half).proportion_ci(0.998).low
    high = stats.binomtest(hits[1], half).proportion_ci(0.998).high
    return float(np.log(max(low - delta, 1e-12) / high))


@pytest.mark.parametrize(
    "design",
    [
        DPBAI(epsilon=1.0, features=FEATURES),
        DPBAI(epsilon=1.0, features=FEATURES, max_det=False),
        DPOD(epsilon=1.0, features=FEATURES),
    ],
    ids=repr,
)
def test_measured_epsilon_is_below_the_promise_and_near_it(design: Any) -> None:
    """The noise of twice the epsilon is caught."""
    bound = lower_bound(scores(design, 0.0, 1), scores(design, 1.0, 2))
    assert 0.4 < bound <= 1.0
    if isinstance(design, DPBAI):
        assert bound > 0.6
        faulty = DPBAI(epsilon=2.0, features=FEATURES, max_det=design.max_det)
        assert lower_bound(scores(faulty, 0.0, 3), scores(faulty, 1.0, 4)) > 1.0


def test_normal_noise_keeps_its_promise_and_half_of_it_does_not() -> None:
    design = DPBAIGauss(epsilon=1.0, delta=0.05, features=FEATURES)
    assert lower_bound(scores(design, 0.0, 5), scores(design, 1.0, 6), delta=0.05) <= 1.0
    faulty = DPBAIGauss(epsilon=2.5, delta=0.05, features=FEATURES)
    assert lower_bound(scores(faulty, 0.0, 7), scores(faulty, 1.0, 8), delta=0.05) > 1.0


def test_released_noise_has_the_scale_that_it_says() -> None:
    for design, law in (
        (DPBAI(epsilon=0.7, features=FEATURES), stats.laplace),
        (DPBAIGauss(epsilon=0.7, delta=0.01, features=FEATURES), stats.norm),
        (DPOD(epsilon=0.7, features=FEATURES), stats.laplace),
    ):
        table = np.full((HORIZON, 3), 0.0)
        runs = iterate_runs(design, Tableau(table), HORIZON, 0, 2_000, 9)
        standard = np.concatenate([run.released[:, 3] / run.released[:, 4] for run in runs])
        assert stats.kstest(standard, law.cdf).pvalue > 1e-4


def test_the_named_arm_alone_leaks_no_more() -> None:
    """One reward of the better arm is all that there is: naming follows the sign of a noisy difference."""
    design = DPBAI(epsilon=1.0, features=np.eye(2))
    counts = []
    for first, seed in ((0.0, 10), (1.0, 11)):
        table = np.full((3, 2), 0.5)
        table[0] = first
        named = design.replicate(Tableau(table), 3, 100_000, rng=seed).recommended
        counts.append(int((named == 0).sum()))
    low = stats.binomtest(counts[1], 100_000).proportion_ci(0.998).low
    high = stats.binomtest(counts[0], 100_000).proportion_ci(0.998).high
    assert 0.2 < np.log(low / high) <= 1.0
