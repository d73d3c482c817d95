"""Coverage of bin means where most bins are made of noise: over every pair that the server ever began."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.inference.released.bin_tests import BudgetTest, coins, read_reports
from adaptinf.inference.released.released_bin_means import BinMeans
from adaptinf.simulation.environments.vector_arms import SmoothArms

ARMS = SmoothArms(3, 2)


@pytest.mark.parametrize(("method", "exact"), [("budget", True), ("anytime", False)])
def test_under_the_published_calibration_every_pair_has_an_interval_and_they_cover(
    method: str, exact: bool
) -> None:
    """A binomial tolerance for all pairs together, and half a percent for what the normal limit leaves."""
    design = LDPBandit(epsilon=8.0, calibration="published", check_every=20)
    hits = pairs = whole = 0
    for log in design.logs(ARMS, 10_000, 16, rng=11):
        begun = ai.designs.bin_sums(log)
        low, high = BinMeans(log).fit(method=method).conf_int().to_numpy().T
        assert low.size == len(begun)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        boxes = begun[["low_x1", "low_x2"]].to_numpy(), begun[["high_x1", "high_x2"]].to_numpy()
        truth = ARMS.averages(*boxes)[np.arange(low.size), begun["arm"].to_numpy(dtype=int)]
        hits += int(((low <= truth) & (truth <= high)).sum())
        whole += int((high - low > 0.99).sum())
        pairs += low.size
    assert pairs > 2_000
    assert whole > 0.5 * pairs
    fewest = stats.binom.ppf(1e-5, pairs, 0.95) - 0.005 * pairs
    most = stats.binom.ppf(1.0 - 1e-5, pairs, 0.95) + 0.005 * pairs if exact else pairs
    assert fewest <= hits <= most


def test_coins_made_of_digits_are_as_good_as_fresh_ones() -> None:
    """Mean 0, variance 1, and no correlation with the sums that they are added to."""
    design = LDPBandit(epsilon=8.0, calibration="published", check_every=20)
    drawn, sums = [], []
    for log in design.logs(ARMS, 4_000, 30, rng=12):
        known = read_reports(log)
        coin = coins(known, 0)
        drawn.append(coin)
        sums.append(BudgetTest(known, np.zeros(coin.size)).statistic(np.full((coin.size, 1), 0.5))[:, 0])
    coin, part = np.concatenate(drawn), np.concatenate(sums)
    error = 4.5 / np.sqrt(coin.size)
    assert coin.size > 2_000
    assert abs(coin.mean()) < error
    assert abs(coin.var() - 1.0) < error * np.sqrt(2.0)
    assert abs(np.corrcoef(coin, part)[0, 1]) < error
    assert np.unique(coin).size == coin.size
