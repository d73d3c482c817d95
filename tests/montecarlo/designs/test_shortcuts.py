"""Runs made of binomial stretches have the distribution of runs made of rounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import ConSE, DPConSE, Thompson
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import BernoulliArms, FiniteContext

MEANS = [[0.4, 0.7], [0.6, 0.3], [0.3, 0.45]]
CONSTANT = FiniteContext([0.5, 0.3, 0.2], MEANS)
SEASONAL = FiniteContext([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]], MEANS, period=777)
RUNS = 4096


def columns(sims) -> np.ndarray:
    return np.column_stack([sims.tallies.reshape(RUNS, -1), sims.outcomes, sims.regret])


@pytest.mark.parametrize("environment", [CONSTANT, SEASONAL], ids=["constant", "seasonal"])
@pytest.mark.parametrize(
    "design", [ConSE(alpha=0.2), DPConSE(epsilon=0.5, alpha=0.3)], ids=["conse", "dp-conse"]
)
def test_shortcut_and_rounds_agree_in_distribution(design, environment):
    rounds = columns(design.replicate(environment, 12_001, RUNS, rng=1, by_rounds=True))
    stretches = columns(design.replicate(environment, 12_001, RUNS, rng=2))
    varies = rounds.std(axis=0) > 0
    np.testing.assert_array_equal(varies, stretches.std(axis=0) > 0)
    np.testing.assert_array_equal(rounds[0, ~varies], stretches[0, ~varies])
    p_values = [
        stats.ks_2samp(rounds[:, column], stretches[:, column]).pvalue for column in np.flatnonzero(varies)
    ]
    assert len(p_values) > 30
    assert min(p_values) > 1e-4 / len(p_values)
    correlation = np.corrcoef(rounds[:, varies].T) - np.corrcoef(stretches[:, varies].T)
    assert np.abs(correlation).max() < 0.11


def test_every_round_of_a_stretch_is_counted():
    sims = DPConSE(epsilon=1.0, alpha=0.5).replicate(SEASONAL, 5_003, 64, rng=0)
    np.testing.assert_array_equal(sims.pulls.sum(axis=(1, 2)), 5_003)
    np.testing.assert_array_equal(sims.tallies[:, :2, ..., 0].sum(axis=(1, 2, 3)), 2_501)


def test_the_shortcut_is_refused_where_it_is_not_exact():
    uniform = FiniteContext([0.5, 0.3, 0.2], MEANS, "uniform")
    with pytest.raises(ParameterError, match="no shortcut"):
        ConSE().replicate(uniform, 1_000, 64, rng=0, by_rounds=False)
    with pytest.raises(ParameterError, match="no shortcut"):
        Thompson(floor=0.1).replicate(BernoulliArms([0.5, 0.5]), 100, 64, rng=0, by_rounds=False)
    with pytest.raises(ParameterError, match="no shortcut"):
        Thompson(batch_size=2).replicate(BernoulliArms([0.5, 0.5]), 100, 64, rng=0, by_rounds=False)


def test_uniform_rewards_run_round_by_round():
    uniform = FiniteContext([0.5, 0.3, 0.2], MEANS, "uniform")
    default = ConSE(alpha=0.2).replicate(uniform, 2_000, 64, rng=5)
    looped = ConSE(alpha=0.2).replicate(uniform, 2_000, 64, rng=5, by_rounds=True)
    np.testing.assert_array_equal(default.tallies, looped.tallies)
