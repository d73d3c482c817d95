"""The law of corrected DP-ConSE, step by step: arrivals, coins, rewards, inclusion, noise and elimination."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import DPConSE
from adaptinf.simulation.environments import FiniteContext

SHARES, MEANS = np.array([0.5, 0.3, 0.2]), np.array([[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])
ENVIRONMENT = FiniteContext(SHARES, MEANS)
RUNS = 3_000


def transformed(law: Any, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Randomised probability integral transform of whole numbers: uniform where the law is right."""
    return (law.cdf(values - 1) + rng.uniform(size=values.shape) * law.pmf(values)).ravel()


def is_uniform(values: np.ndarray, tests: int = 20) -> bool:
    return stats.kstest(values, "uniform").pvalue > 1e-4 / tests


@pytest.mark.parametrize("by_rounds", [True, False])
def test_every_step_has_its_law(by_rounds: bool) -> None:
    """From the tallies of replicates: what is drawn, given what was drawn before."""
    horizon, epsilon, share, alpha = 2_001, 0.8, 0.7, 0.45
    design = DPConSE(epsilon=epsilon, alpha=alpha, contrast_share=share)
    sims = design.replicate(ENVIRONMENT, horizon, RUNS, rng=21, by_rounds=by_rounds)
    rng = np.random.default_rng(0)
    learning, estimation = sims.phase_tallies("learning"), sims.phase_tallies("estimation")
    trial = sims.phase_tallies("estimation", True)
    first, second = learning[..., 0].sum(axis=2), estimation[..., 0].sum(axis=2)
    included = trial[..., 0].sum(axis=2)
    rho, t_min = sims.released["inclusion"], sims.outcomes[:, 0]
    for j in range(3):
        assert is_uniform(transformed(stats.binom(1_000, SHARES[j]), first[:, j], rng))
        assert is_uniform(transformed(stats.binom(1_001, SHARES[j]), second[:, j], rng))
        law = stats.binom(second[:, j], rho[:, j])
        assert is_uniform(transformed(law, included[:, j], rng))
        assert is_uniform(transformed(stats.binom(included[:, j], 0.5), trial[:, j, 1, 0], rng))
        for arm in range(2):
            law = stats.binom(trial[:, j, arm, 0], MEANS[j, arm])
            assert is_uniform(transformed(law, trial[:, j, arm, 1], rng))
        rest = sims.phase_tallies("estimation", False)[:, j, :, 0]
        better = sims.released["better_arm"][:, j].astype(int)
        assert not rest[np.arange(RUNS), 1 - better].any()
    contrast = (trial[:, :, 1, 1] - trial[:, :, 1, 0] / 2) - (trial[:, :, 0, 1] - trial[:, :, 0, 0] / 2)
    noise_d = sims.released["contrast_sum"] - contrast
    noise_n = sims.released["arrivals"] - included
    assert stats.kstest(noise_d.ravel(), stats.laplace(scale=1 / (share * epsilon)).cdf).pvalue > 1e-5
    assert stats.kstest(noise_n.ravel(), stats.laplace(scale=2 / ((1 - share) * epsilon)).cdf).pvalue > 1e-5
    assert abs(np.corrcoef(noise_d.ravel(), noise_n.ravel())[0, 1]) < 4.0 / math.sqrt(noise_n.size)
    floor = 4.0 * math.log(horizon) / ((1 - share) * epsilon)
    assert t_min.min() == pytest.approx(floor)
    assert (t_min >= floor - 1e-9).all()
    # f = T_min / rho where rho < 1: its noise is that of the windows of the first half together
    free = (rho < 1.0).all(axis=1)
    smallest = np.min((t_min[:, None] / rho)[free], axis=1) ** (1 - alpha)
    np.testing.assert_allclose(t_min[free], np.maximum(floor, smallest), rtol=1e-9)


def test_totals_carry_one_laplace_a_window() -> None:
    """f - N over the first half: a sum of W Laplace variables, W = 4 windows here."""
    design = DPConSE(epsilon=2.0, alpha=0.8, first_window=64)
    sims = design.replicate(ENVIRONMENT, horizon=1_920, replications=RUNS, rng=3)
    rho = sims.released["inclusion"]
    total = sims.outcomes[:, :1] / rho
    noise = (total - sims.phase_tallies("learning")[..., 0].sum(axis=2))[rho < 1.0]
    assert noise.size > 0.99 * 3 * RUNS
    scale = 2 / 0.8
    rng = np.random.default_rng(1)
    reference = rng.laplace(scale=scale, size=(200_000, 4)).sum(axis=1)
    assert stats.ks_2samp(noise, reference).pvalue > 1e-4
    assert noise.var() == pytest.approx(4 * 2 * scale**2, rel=0.1)


@pytest.mark.parametrize("by_rounds", [True, False])
def test_a_single_window_is_a_coin_sum_plus_noise(by_rounds: bool) -> None:
    """With one window D is B - N/2, B binomial: the arm that is called better follows from its sign."""
    horizon, epsilon = 120, 1.0
    design = DPConSE(epsilon=epsilon, first_window=60)
    environment = FiniteContext([1.0], [[0.45, 0.55]])
    sims = design.replicate(environment, horizon, replications=20_000, rng=5, by_rounds=by_rounds)
    up = (0.55 + 1 - 0.45) / 2
    points = np.arange(61)
    sums = points - 30.0
    positive = np.where(sums > 0, 1 - 0.5 * np.exp(-np.abs(sums) * 0.6), 0.5 * np.exp(-np.abs(sums) * 0.6))
    exact = float(np.sum(stats.binom.pmf(points, 60, up) * positive))
    wins = int(sims.released["better_arm"].sum())
    assert abs(wins - 20_000 * exact) < 4.0 * math.sqrt(20_000 * exact * (1 - exact))


def test_the_better_arm_is_rarely_dropped() -> None:
    """Without an effect each arm is dropped with probability at most 3/4 of beta = 1/n, each way."""
    horizon, runs = 130, 60_000
    design = DPConSE(epsilon=20.0, first_window=32)
    environment = FiniteContext([1.0], [[0.5, 0.5]])
    sims = design.replicate(environment, horizon, replications=runs, rng=6)
    decided = (sims.phase_tallies("learning", False)[..., 0].sum(axis=(1, 2)) > 0).sum()
    bound = 1.5 / horizon
    assert decided <= runs * bound + 4.0 * math.sqrt(runs * bound)
    effect = FiniteContext([1.0], [[0.02, 0.98]])
    sims = design.replicate(effect, horizon, replications=2_000, rng=6)
    decided = sims.phase_tallies("learning", False)[:, 0, :, 0]
    assert not decided[:, 0].any()
    assert (decided[:, 1] > 0).mean() > 0.5


def test_count_noise_rarely_halves_the_floor() -> None:
    """T_min is at least 4 log(n) / epsilon_N, so that noise below -T_min / 2 has probability 1/(2n)."""
    horizon, runs = 50, 40_000
    sims = DPConSE(epsilon=1.0, alpha=1.0).replicate(ENVIRONMENT, horizon, replications=runs, rng=7)
    noise = sims.released["arrivals"] - sims.phase_tallies("estimation", True)[..., 0].sum(axis=2)
    low = int((noise < -sims.outcomes[:, :1] / 2).sum())
    expected = 3 * runs / (2 * horizon)
    assert abs(low - expected) < 4.0 * math.sqrt(expected)
