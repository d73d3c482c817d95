"""What the study of the three-signal experiment computes by itself."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf import PolicyValue
from case_studies.hadad.arms import PLACES, SETTINGS, covered, targets
from case_studies.hadad.contextual import (
    BEST,
    FITS,
    WORST,
    by_side,
    matched,
    one_trial,
    posterior_chances,
    trial,
)


def test_targets_follow_the_places() -> None:
    found = dict(zip(PLACES, targets(SETTINGS["high signal"]), strict=True))
    assert found == {
        "worst arm": 0.5,
        "best arm": 1.5,
        "middle arm": 1.0,
        "best - middle": 0.5,
        "best - worst": 1.0,
    }


def test_a_missing_interval_does_not_cover() -> None:
    found = np.array([[[[1.0, 0.1]]], [[[1.2, 0.1]]], [[[np.nan, 0.1]]], [[[1.16, 0.1]]]])
    assert covered(found, np.array([1.0])) == pytest.approx(np.array([[0.5]]))


def test_posterior_chances_are_symmetric_and_floored() -> None:
    rng = np.random.default_rng(1)
    even = posterior_chances(np.full((2, 3), 50.0), np.full((2, 3), 50.0), 0.01, rng)
    # Frequencies of 1,000 draws: four binomial standard errors.
    np.testing.assert_allclose(even, 1.0 / 3.0, atol=0.06)
    clear = posterior_chances(np.full((2, 3), 500.0), np.array([[0.0, 0.0, 500.0]] * 2), 0.01, rng)
    np.testing.assert_allclose(clear, [[0.01, 0.01, 0.98]] * 2, atol=1e-12)


def test_snapshots_are_the_policy_that_drew() -> None:
    log, snapshots = trial(SETTINGS["high signal"], np.random.default_rng(2))
    # A fit with snapshots refuses a log whose propensities are not the snapshots' own.
    result = PolicyValue(log, by_side(BEST)).fit(weights="stable-variance", snapshots=snapshots)
    assert abs(float(result.params.iloc[0]) - 1.5) < 5.0 * float(result.bse.iloc[0])
    assert log.arrays.propensities.min() >= 1_000.0**-0.7 / 3.0
    np.testing.assert_allclose(log.arrays.propensities.sum(axis=1), 1.0)


def test_matched_rounds_are_those_of_the_policy() -> None:
    log, _ = trial(SETTINGS["low signal"], np.random.default_rng(3))
    left = log.arrays.context["x"] <= 0.0
    for rows, arm_left in ((BEST, 0), (WORST, 2)):
        taken = log.arrays.action == np.where(left, arm_left, 2 - arm_left)
        reward = log.arrays.reward[taken]
        assert matched(log, rows) == pytest.approx((reward.mean(), reward.var(ddof=1) / reward.size))


def test_a_trial_depends_on_its_key_alone() -> None:
    first, second = (one_trial(SETTINGS["no signal"], (0, 4), 9) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (1 + len(FITS), 3, 2)
    assert not np.array_equal(first, one_trial(SETTINGS["no signal"], (0, 5), 9))
