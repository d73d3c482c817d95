"""DP-ConSE beside ConSE, where effects are .3: regret, unbiased releases, and error times regret over M."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import ConSE, DPConSE, Replications
from adaptinf.inference.released.effects import released_estimate
from adaptinf.simulation.environments import FiniteContext
from adaptinf.theory import difference_in_means, frontier

CONTEXTS = 10
MEANS = [[0.35, 0.65], [0.65, 0.35]] * 5
ENVIRONMENT = FiniteContext([0.1] * CONTEXTS, MEANS)
EFFECTS = ENVIRONMENT.effects()
HORIZON, ALPHA, RUNS = 200_000, 0.4, 20_000
DESIGN = DPConSE(epsilon=1.0, alpha=ALPHA)
QUANTILE = float(stats.norm.isf(0.5e-4 / CONTEXTS))


@pytest.fixture(scope="module")
def private() -> Replications:
    return DESIGN.replicate(ENVIRONMENT, HORIZON, RUNS, rng=2)


def released(sims: Replications) -> np.ndarray:
    numbers = sims.released
    return released_estimate(
        numbers["contrast_sum"], numbers["arrivals"], epsilon_count=0.4, minimum=numbers["t_min"] / 4
    )


def test_privacy_costs_less_than_half_of_the_regret(private: Replications) -> None:
    plain = ConSE(alpha=ALPHA).replicate(ENVIRONMENT, HORIZON, 2_000, rng=1)
    spread = math.hypot(
        private.regret.std() / math.sqrt(RUNS) / private.regret.mean(),
        plain.regret.std() / math.sqrt(2_000) / plain.regret.mean(),
    )
    ratio = private.regret.mean() / plain.regret.mean()
    assert ratio * (1 - 4 * spread) > 1.0
    assert ratio * (1 + 4 * spread) < 1.5


def pooled(errors: np.ndarray) -> float:
    """Mean over runs and contexts as a multiple of its standard error."""
    by_run = np.nanmean(errors, axis=1)
    return float(by_run.mean() / (by_run.std(ddof=1) / math.sqrt(RUNS)))


@pytest.mark.parametrize("estimate", [released, difference_in_means])
def test_effects_are_unbiased_within_monte_carlo_error(private: Replications, estimate) -> None:
    errors = estimate(private) - EFFECTS
    assert np.isnan(errors).sum() <= 5
    means, sizes = np.nanmean(errors, axis=0), np.nanstd(errors, axis=0) / math.sqrt(RUNS)
    assert np.abs(means / sizes).max() < QUANTILE
    assert abs(pooled(errors)) < 4.0
    # in the direction of the effect, where a bias of the ratio would add up
    assert abs(pooled(errors * np.sign(EFFECTS))) < 4.0
    assert sizes.max() < 6e-4


def test_the_check_of_bias_sees_a_ratio_without_its_correction() -> None:
    """At epsilon = .2 a trial has 610 arrivals and 2 D / N is .3% too far out; the correction mends that."""
    design = DPConSE(epsilon=0.2, alpha=0.4)
    sims = design.replicate(ENVIRONMENT, 200_000, RUNS, rng=6)
    numbers = sims.released
    plain = 2 * numbers["contrast_sum"] / numbers["arrivals"]
    mended = released_estimate(
        numbers["contrast_sum"], numbers["arrivals"], epsilon_count=0.08, minimum=numbers["t_min"] / 4
    )
    outward = np.sign(EFFECTS)
    assert pooled((np.where(np.isnan(mended), np.nan, plain) - EFFECTS) * outward) > 4.0
    assert abs(pooled((mended - EFFECTS) * outward)) < 4.0


@pytest.mark.parametrize("size", [1, 2, 30, 1_000])
def test_the_guarantee_is_the_same_for_any_number_of_contexts(size: int) -> None:
    environment = FiniteContext([1 / size] * size, [[0.35, 0.65]] * size)
    log = DPConSE(epsilon=0.7, alpha=ALPHA).run(environment, horizon=4_000, rng=5)
    assert log.guarantee.is_pure
    assert (log.guarantee.epsilon, log.guarantee.unit) == (pytest.approx(0.7), "record")
    scales = log.releases.groupby("name")["scale"].agg(["min", "max"])
    np.testing.assert_allclose(scales.loc["contrast_sum"], 1 / 0.42)
    np.testing.assert_allclose(scales.loc["arrivals"], 2 / 0.28)
    assert len(log.releases.query("name == 'arrivals'")) % size == 0


def products(design: ConSE | DPConSE, horizon: int) -> tuple[float, float]:
    point = frontier(design.replicate(ENVIRONMENT, horizon, 1_280, rng=3))
    return point.product, point.product_se


@pytest.mark.parametrize("horizon", [10**4, 10**5, 10**6])
def test_error_times_regret_is_bounded_along_alpha(horizon: int) -> None:
    for alpha in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        plain, plain_se = products(ConSE(alpha=alpha), horizon)
        assert plain + 4 * plain_se < 32.0
        private, private_se = products(DPConSE(epsilon=1.0, alpha=alpha), horizon)
        assert private + 4 * private_se < 4.0
        # the second half alone: (v0 + v1) times the gap
        assert min(plain + 4 * plain_se, private + 4 * private_se) > 0.1365


def test_error_times_regret_is_bounded_along_n() -> None:
    """At alpha = 1, the worst: from 10^6 to 10^9 rounds nothing grows where the first window does not."""
    for design in (ConSE(alpha=1.0), DPConSE(epsilon=1.0, alpha=1.0, first_window=64)):
        (early, early_se), *later = (products(design, 10**power) for power in (6, 7, 8, 9))
        for product, size in later:
            assert product < early + 4 * math.hypot(early_se, size)


def test_the_default_first_window_keeps_error_times_regret_bounded() -> None:
    """A first window of n / 64 rounds would reach 13.7 at n = 10^7, 119 at 10^8."""
    for power in (7, 8, 9):
        product, product_se = products(DPConSE(epsilon=1.0, alpha=1.0), 10**power)
        assert product + 4 * product_se < 5.0
