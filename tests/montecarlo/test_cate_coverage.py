"""Coverage of intervals of group effects at the truth, on the second half of a private design.

The half is simulated directly: arrivals are binomial, a fair coin assigns the arm, rewards are binary.
"""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.inference.released import effect_from_mean, effect_from_sums, released_intervals
from adaptinf.inference.small_samples import difference_intervals

FEATURES = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])
EFFECTS = MEANS[:, 1] - MEANS[:, 0]
HORIZON = 20_000
REPLICATIONS = 12_000
FALSE_ALARM = 4.5  # standard errors: below 1e-5 a comparison


def second_half(rng, epsilon, decay, means=MEANS):
    """Counts and successes by arm, shape (R, 3, 2), with the planned number of randomised rounds."""
    epsilon_count = 0.4 * epsilon
    arrivals = HORIZON / 2 * FEATURES
    floor = 4 * epsilon / epsilon_count * np.log(HORIZON) / epsilon
    planned = max(floor, arrivals.min() ** (1 - decay))
    rate = np.minimum(1.0, planned / arrivals)
    rounds = rng.binomial(HORIZON // 2, FEATURES * rate, (REPLICATIONS, 3))
    treated = rng.binomial(rounds, 0.5)
    counts = np.stack([rounds - treated, treated], axis=-1)
    return counts, rng.binomial(counts, means), planned


def release(rng, counts, successes, epsilon_sum, epsilon_count):
    """Noisy sums of (2a - 1)(r - 1/2) and noisy counts."""
    contrast = successes[..., 1] - successes[..., 0] - (counts[..., 1] - counts[..., 0]) / 2
    arrivals = counts.sum(axis=-1)
    return (
        contrast + rng.laplace(0, 1 / epsilon_sum, contrast.shape),
        arrivals + rng.laplace(0, 2 / epsilon_count, arrivals.shape),
    )


def within(hits, low, high):
    """Whether a coverage lies in [low, high] up to its Monte-Carlo error."""
    error = FALSE_ALARM * np.sqrt(0.05 * 0.95 / hits.size)
    return low - error < hits.mean() < high + error


@pytest.mark.parametrize("epsilon", [1.0, 0.3])
@pytest.mark.parametrize("decay", [0.0, 0.2, 0.5])
def test_released_interval_covers_the_truth_at_its_level(epsilon, decay):
    rng = np.random.default_rng([1, int(100 * epsilon), int(10 * decay)])
    counts, successes, planned = second_half(rng, epsilon, decay)
    budget = {"epsilon_sum": 0.6 * epsilon, "epsilon_count": 0.4 * epsilon, "minimum": planned / 4}
    sums, arrivals = release(rng, counts, successes, budget["epsilon_sum"], budget["epsilon_count"])
    estimate, low, high = released_intervals(sums, arrivals, **budget)
    usable = ~np.isnan(estimate)
    assert usable.mean() > 0.999
    assert within(((low <= EFFECTS) & (high >= EFFECTS))[usable], 0.948, 0.953)
    rejected = effect_from_sums(sums, arrivals, **budget).log_pvalues(EFFECTS) <= np.log(0.05)
    np.testing.assert_array_equal(~rejected[usable], ((low <= EFFECTS) & (high >= EFFECTS))[usable])


def test_released_estimate_is_free_of_bias_at_small_counts():
    rng = np.random.default_rng(2)
    counts, successes, planned = second_half(rng, 1.0, 0.9)
    sums, arrivals = release(rng, counts, successes, 0.6, 0.4)
    estimate, *_ = released_intervals(sums, arrivals, epsilon_sum=0.6, epsilon_count=0.4, minimum=planned / 4)
    error = np.nanstd(estimate, axis=0) / np.sqrt(REPLICATIONS)
    np.testing.assert_array_less(np.abs(np.nanmean(estimate, axis=0) - EFFECTS), FALSE_ALARM * error)


def test_conservative_for_rewards_that_are_not_binary():
    rng = np.random.default_rng(3)
    rounds = rng.binomial(2_000, 0.5, REPLICATIONS)
    low, high = effect_from_sums(
        rng.normal(0.0, np.sqrt(rounds / 12)) + rng.laplace(0, 1 / 0.6, REPLICATIONS),
        rounds + rng.laplace(0, 2 / 0.4, REPLICATIONS),
        epsilon_sum=0.6,
        epsilon_count=0.4,
        minimum=250.0,
    ).interval(float(np.log(0.05)))
    assert np.mean((low <= 0.0) & (high >= 0.0)) > 0.995


def test_interval_of_a_released_difference_covers_at_its_level():
    rng = np.random.default_rng(4)
    length, epsilon = 120, 1.0
    half = np.array([0.4, 0.6])
    means = rng.binomial(length // 2, half, (4 * REPLICATIONS, 2)) / (length // 2)
    released = means[:, 1] - means[:, 0] + rng.laplace(0, 2 / (epsilon * length), 4 * REPLICATIONS)
    effect = effect_from_mean(released, length, scale=2 / (epsilon * length))
    low, high = effect.interval(float(np.log(0.05)))
    assert within((low <= 0.2) & (high >= 0.2), 0.945, 0.955)


@pytest.mark.parametrize("epsilon", [1.0, 0.3])
@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_difference_in_means_covers_at_its_level(epsilon, decay):
    rng = np.random.default_rng([5, int(100 * epsilon), int(10 * decay)])
    counts, successes, _ = second_half(rng, epsilon, decay)
    for binary in (False, True):
        _, low, high = difference_intervals(counts, successes, successes, binary=binary)
        assert within((low <= EFFECTS) & (high >= EFFECTS), 0.945, 0.951)


def test_adjustment_repairs_the_interval_of_rare_events():
    rng = np.random.default_rng(6)
    rare = np.array([[0.02, 0.04], [0.01, 0.01], [0.97, 0.99]])
    counts, successes, _ = second_half(rng, 1.0, 0.9, means=rare)
    truth = rare[:, 1] - rare[:, 0]
    coverage = []
    for binary in (False, True):
        _, low, high = difference_intervals(counts, successes, successes, binary=binary)
        coverage.append(np.mean((low <= truth) & (truth <= high), axis=0))
    assert coverage[0].min() < 0.75
    assert coverage[1].min() > 0.94
