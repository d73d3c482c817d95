"""Sums of many rewards drawn at once against sums of single draws."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms
from adaptinf.simulation.run import draw_arm

DRAWS = 20_000


@numba.njit
def draws(
    environment: Any, feature: int, arm: int, count: int, rng: np.random.Generator, tallies: np.ndarray
) -> np.ndarray:
    totals = np.zeros(tallies.shape[0])
    for i in range(tallies.shape[0]):
        totals[i] = draw_arm(environment, feature, arm, count, rng, tallies[i])
    return totals


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1_000])
def test_normal_stretches(count: int) -> None:
    """The sum is normal; the squares around its mean are an independent chi-square with one degree less."""
    environment = NormalArms([0.5, -2.0], scale=[1.0, 0.3])
    tallies = np.zeros((DRAWS, 1, 2, 3))
    totals = draws(environment.tables(1), 0, 1, count, np.random.default_rng(count), tallies)
    assert (tallies[:, 0, 0] == 0.0).all()
    np.testing.assert_array_equal(tallies[:, 0, 1, 0], count)
    np.testing.assert_array_equal(tallies[:, 0, 1, 1], totals)
    law = stats.norm(-2.0 * count, 0.3 * np.sqrt(count))
    assert stats.kstest(totals, law.cdf).pvalue > 1e-4
    within = (tallies[:, 0, 1, 2] - totals**2 / count) / 0.3**2
    if count == 1:
        assert np.abs(within).max() < 1e-10
    else:
        assert stats.kstest(within, stats.chi2(count - 1).cdf).pvalue > 1e-4
        assert abs(np.corrcoef(within, totals)[0, 1]) < 4.0 / np.sqrt(DRAWS)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_binary_stretches(count: int) -> None:
    environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.25]])
    tallies = np.zeros((DRAWS, 2, 2, 3))
    totals = draws(environment.tables(1), 1, 1, count, np.random.default_rng(count), tallies)
    observed = np.bincount(totals.astype(int), minlength=count + 1)
    expected = DRAWS * stats.binom.pmf(np.arange(count + 1), count, 0.25)
    common = expected > 10.0
    assert stats.chisquare(observed[common], expected[common], sum_check=False).pvalue > 1e-4
    np.testing.assert_array_equal(tallies[:, 1, 1, 1], totals)
    np.testing.assert_array_equal(tallies[:, 1, 1, 2], totals)
    assert tallies.sum() == count * DRAWS + 2.0 * totals.sum()


def test_an_empty_stretch_draws_nothing() -> None:
    for environment in (NormalArms([3.0]), BernoulliArms([0.5])):
        rng = np.random.default_rng(0)
        tallies = np.zeros((5, 1, 1, 3))
        assert (draws(environment.tables(1), 0, 0, 0, rng, tallies) == 0.0).all()
        assert (tallies == 0.0).all()
        assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.2, 0.5, 0.5 + 1e-9, 0.7, 1.0])
def test_one_binary_reward_is_the_draw_of_numpy(mean: float) -> None:
    """The same rewards as from NumPy's binomial numbers, and the stream is left at the same place."""
    ours, numpys = np.random.default_rng(0), np.random.default_rng(0)
    totals = draws(BernoulliArms([mean]).tables(1), 0, 0, 1, ours, np.zeros((1_000, 1, 1, 3)))
    np.testing.assert_array_equal(totals, numpys.binomial(1, mean, 1_000))
    assert ours.random() == numpys.random()
