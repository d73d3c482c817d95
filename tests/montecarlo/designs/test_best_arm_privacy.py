"""Measured epsilon of the releases and of the recommended arm, on neighbours that differ in one reward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit import epsilon_lower_bound
from adaptinf.audit.privacy.designs.audited_trial import Neighbours, one_reward_apart
from adaptinf.audit.privacy.designs.epoch_audits import EpochMeanScore, MomentScore
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import iterate_runs

RUNS = 6_000
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]])
HORIZON = 6


def neighbours(design: Any) -> Neighbours:
    """Three arms: the reward of round 0 is 0 or 1, and all others are 1/2."""
    first, second = one_reward_apart(np.full((HORIZON, 3), 0.5), row=0)
    score: Any = MomentScore(first, second, FEATURES)
    if not isinstance(design, DPOD):
        score = EpochMeanScore(first, second, row=0, normal=isinstance(design, DPBAIGauss))
    return Neighbours(Tableau(first), Tableau(second), HORIZON, "reward", "round 1", score)


def lower_bound(design: Any, seed: int) -> float:
    """Lower confidence bound (99.9%) of epsilon, at the design's own delta."""
    return epsilon_lower_bound(design, neighbours(design), view="releases", runs=RUNS, rng=seed).epsilon


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
    bound = lower_bound(design, 1)
    assert 0.4 < bound <= 1.0
    if isinstance(design, DPBAI):
        assert bound > 0.7
        faulty = DPBAI(epsilon=2.0, features=FEATURES, max_det=design.max_det)
        assert lower_bound(faulty, 3) > 1.0


def test_normal_noise_keeps_its_promise_and_half_of_it_does_not() -> None:
    assert 0.3 < lower_bound(DPBAIGauss(epsilon=1.0, delta=0.05, features=FEATURES), 5) <= 1.0
    assert lower_bound(DPBAIGauss(epsilon=2.5, delta=0.05, features=FEATURES), 7) > 1.0


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
