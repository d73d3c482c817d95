"""Exact probabilities of being best, and Thompson sampling from one draw an arm."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.audit import exact
from adaptinf.designs import Thompson
from adaptinf.designs.arms.normal_kernel import best_of_normals, normal_table
from adaptinf.simulation.environments import BernoulliArms, NormalArms


def probabilities(mean: Any, spread: Any) -> np.ndarray:
    """What the kernel writes."""
    size = len(mean)
    best, inverse, hazard = np.zeros((3, size))
    mean, spread = np.asarray(mean, dtype=float), np.asarray(spread, dtype=float)
    best_of_normals(normal_table(), mean, spread, size, best, inverse, hazard)
    return best


def literal(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The integral of each density times the others' distribution functions, piece by piece."""
    marks = np.unique(np.add.outer(np.array([-9.0, -5, -3, -1, 0, 1, 3, 5, 9]), np.zeros(mean.size)))
    ends = np.unique((mean[:, None] + spread[:, None] * marks).ravel())
    node, weight = np.polynomial.legendre.leggauss(30)
    found = np.zeros(mean.size)
    for low, high in itertools.pairwise(ends):
        x = (low + high) / 2 + (high - low) / 2 * node
        below = stats.norm.cdf(x, mean[:, None], spread[:, None])
        for arm in range(mean.size):
            others = np.prod(np.delete(below, arm, axis=0), axis=0)
            value = weight * stats.norm.pdf(x, mean[arm], spread[arm]) * others
            found[arm] += (high - low) / 2 * value.sum()
    return found


@pytest.mark.parametrize("n_arms", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("spreads", ["equal", "counts", "far apart"])
def test_against_the_integral(n_arms: int, spreads: str) -> None:
    rng = np.random.default_rng(n_arms)
    for scale in (0.0, 0.3, 1.0, 3.0):
        spread = {
            "equal": np.ones(n_arms),
            "counts": 1.0 / np.sqrt(1.0 + rng.integers(0, 1_000, n_arms)),
            "far apart": np.exp(rng.uniform(-8.0, 0.0, n_arms)),
        }[spreads]
        mean = scale * rng.normal(size=n_arms)
        found, expected = probabilities(mean, spread), literal(mean, spread)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-12)
        kept = expected > 1e-10
        np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-4)
        assert found.sum() == pytest.approx(1.0, abs=1e-14)
        assert found.min() > 0.0 or np.abs(mean).max() > 30 * spread.min()


def test_against_scipy_and_symmetry() -> None:
    mean, spread = np.array([0.2, -0.1, 0.3, 0.0]), np.array([0.1, 0.5, 0.02, 1.0])

    def density(x: float, arm: int) -> float:
        others = np.delete(np.arange(4), arm)
        return float(
            stats.norm.pdf(x, mean[arm], spread[arm]) * stats.norm.cdf(x, mean[others], spread[others]).prod()
        )

    found = probabilities(mean, spread)
    for arm in range(4):
        value, _ = integrate.quad(
            density, -1.0, 9.0, args=(arm,), points=[0.2, 0.26, 0.3, 0.34, 0.5, 1.0], epsabs=1e-13, limit=500
        )
        assert found[arm] == pytest.approx(value, abs=1e-11)
    np.testing.assert_allclose(probabilities(np.zeros(7), np.full(7, 3.0)), 1.0 / 7.0, rtol=1e-12)
    np.testing.assert_allclose(probabilities(1e6 + mean, spread), found, atol=1e-8)
    np.testing.assert_allclose(probabilities(1e-6 * mean, 1e-6 * spread), found, rtol=1e-9)


def test_an_arm_far_behind_keeps_the_probability_of_beating_the_leader() -> None:
    found = probabilities([0.0, 1.0, 0.9, 0.5], [0.02, 0.03, 0.03, 0.1])
    assert found[0] == pytest.approx(stats.norm.sf(1.0 / np.hypot(0.02, 0.03)), rel=1e-9)
    assert found[1:].sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.slow
def test_against_ten_million_draws() -> None:
    draws, rng = 10_000_000, np.random.default_rng(3)
    mean, spread = np.array([0.1, 0.25, 0.3, -0.4, 0.0]), np.array([0.3, 0.1, 0.04, 0.6, 0.2])
    wins = np.zeros(5)
    for _ in range(10):
        block = mean + spread * rng.standard_normal((draws // 10, 5))
        wins += np.bincount(block.argmax(axis=1), minlength=5)
    p = probabilities(mean, spread)
    assert (np.abs(wins / draws - p) < 4.5 * np.sqrt(p * (1 - p) / draws)).all()


@pytest.mark.parametrize("noise", [0.7, None])
def test_propensities_of_five_normal_arms(noise: float | None) -> None:
    design = Thompson(prior="normal", prior_parameters=(0.1, 2.0), noise_scale=noise, batch_size=2)
    log = design.run(NormalArms([0.0, 0.1, 0.2, 0.3, 0.4], scale=0.7), horizon=60, rng=4)
    p = log.arrays.propensities
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    for t in range(0, 60, 2):
        center, width = np.zeros(5), np.zeros(5)
        for arm in range(5):
            values = log.arrays.reward[:t][log.arrays.action[:t] == arm]
            square = noise**2 if noise is not None else np.var(values) if values.size > 1 else 2.0
            precision = 1 / 2.0 + values.size / square
            center[arm], width[arm] = (0.1 / 2.0 + values.sum() / square) / precision, precision**-0.5
        np.testing.assert_allclose(p[t], literal(center, width), rtol=0, atol=1e-11)
        np.testing.assert_array_equal(p[t + 1], p[t])


def test_two_normal_arms_with_draws_have_frequencies() -> None:
    log = Thompson(prior="normal", draws=20).run(NormalArms([0.0, 0.2]), horizon=50, rng=0)
    p = log.arrays.propensities * 20
    np.testing.assert_allclose(p, np.round(p), atol=1e-12)


def test_one_draw_an_arm_gives_the_exact_law_of_the_pulls() -> None:
    horizon, runs = 30, 20_000
    theta = np.array([0.35, 0.6])
    law = exact(Thompson(), horizon)
    chance = np.array(
        [law.expectation(lambda n1, s1, n0, s0, m=m: n1 == m, theta[1], theta[0]) for m in range(horizon + 1)]
    ).ravel()
    sims = Thompson().replicate(BernoulliArms(theta), horizon, runs, rng=1)
    observed = np.bincount(sims.pulls[:, 1].astype(int), minlength=horizon + 1)
    kept = chance > 5.0 / runs
    expected = runs * chance[kept]
    assert stats.chi2.sf(np.sum((observed[kept] - expected) ** 2 / expected), kept.sum() - 1) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "env"),
    [
        (Thompson(), BernoulliArms([0.3, 0.5, 0.6])),
        (Thompson(prior="normal", noise_scale=0.8, initial_pulls=2), NormalArms([0.0, 0.2, 0.4, 0.4])),
        (Thompson(prior="normal", noise_scale=None), NormalArms([0.0, 0.2])),
    ],
    ids=repr,
)
def test_one_draw_an_arm_and_rounds_agree_in_distribution(design: Thompson, env: Any) -> None:
    short = design.replicate(env, 60, 6_400, rng=1)
    rounds = design.replicate(env, 60, 6_400, rng=2, by_rounds=True)
    for arm in range(env.n_arms):
        for kept in ("pulls", "sums"):
            one, other = getattr(short, kept)[:, arm], getattr(rounds, kept)[:, arm]
            assert stats.ks_2samp(one, other).pvalue > 1e-5
            error = np.sqrt((one.var() + other.var()) / 6_400)
            assert abs(one.mean() - other.mean()) < 4.5 * error
    assert not np.array_equal(short.tallies, rounds.tallies)


def test_where_one_draw_an_arm_is_taken() -> None:
    env = BernoulliArms([0.3, 0.5])
    for design in (Thompson(), Thompson(floor=0.0), Thompson(draws=3), Thompson(prior="normal")):
        assert design._has_shortcut(env)
    for design in (Thompson(floor=0.1), Thompson(floor=(0.1, 0.5)), Thompson(batch_size=2)):
        assert not design._has_shortcut(env)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_the_exact_law_knows_frequencies_of_normal_posteriors(batch_size: int) -> None:
    """With a floor the law of few draws is not that of the posterior itself."""
    options: dict[str, Any] = {"prior": "normal", "floor": 0.3, "noise_scale": 0.5, "batch_size": batch_size}
    env, horizon, runs = BernoulliArms([0.2, 0.9]), 16, 40_000
    expected = {}
    for draws in (3, None):
        design = Thompson(**options, draws=draws)
        expected[draws] = float(exact(design, horizon).expected_pulls(0.9, 0.2)[0])
        pulls = design.replicate(env, horizon, runs, rng=3).pulls[:, 1]
        assert abs(pulls.mean() - expected[draws]) < 4.5 * pulls.std() / np.sqrt(runs)
    assert abs(expected[3] - expected[None]) > 0.1
