"""Mixtures: inverse weighting is unbiased, and designs in epochs leave overridden rounds out."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.designs import UCB, Design, Mixture, PrivateUCB
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.simulation.environments import BernoulliArms

MEANS = np.array([0.8, 0.5, 0.3])
ARMS = BernoulliArms(MEANS)


@pytest.mark.parametrize("design", [UCB(width=0.5), PrivateUCB(epsilon=2.0)])
def test_inverse_propensity_weighting_is_unbiased(design: Design) -> None:
    runs, horizon = 1_280, 150
    weighted = np.empty((runs, 3))
    for run, log in enumerate(Mixture(design, exploration=0.3).logs(ARMS, horizon, runs, rng=1)):
        arrays = log.arrays
        assert arrays.propensity is not None
        score = arrays.reward / arrays.propensity
        weighted[run] = np.bincount(arrays.action, weights=score, minlength=3) / horizon
    error = weighted.std(axis=0, ddof=1) / np.sqrt(runs)
    assert (np.abs(weighted.mean(axis=0) - MEANS) < 4.2 * error).all()


@pytest.mark.parametrize("design", [PrivateSuccessiveElimination(epsilon=1.0), SuccessiveElimination()])
def test_elimination_waits_for_rounds_of_its_own(design: Design) -> None:
    """The last decision takes as many own rounds as without overrides, where their number is fixed."""
    sure = BernoulliArms([1.0, 0.0])
    alone = design.replicate(sure, horizon=40_000, replications=1, rng=2, by_rounds=True)
    at = alone.released["decided_at"][0, 0]
    mixed = Mixture(design, exploration=0.5).replicate(sure, horizon=40_000, replications=320, rng=3)
    waits = mixed.released["decided_at"][:, 0]
    # the number of rounds that hold `at` rounds of one's own is negative binomial
    mean, variance = at / 0.5, at * 0.5 / 0.25
    assert abs(waits.mean() - mean) < 4.2 * np.sqrt(variance / waits.size)
    assert waits.std(ddof=1) == pytest.approx(np.sqrt(variance), rel=0.2)


def test_overridden_rewards_enter_no_mean_of_an_epoch() -> None:
    """The last rows of an epoch decide nothing when overridden: sums stay within the pulls of the epoch."""
    design = Mixture(PrivateSuccessiveElimination(epsilon=50.0), exploration=0.8)
    log = design.run(BernoulliArms([1.0, 0.0]), horizon=60_000, rng=4)
    first = log.releases.iloc[:2]
    np.testing.assert_allclose(first["value"], [1.0, 0.0], atol=0.001)
