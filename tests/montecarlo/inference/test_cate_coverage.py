"""Coverage of intervals of group effects at the truth.

The second half of a private design is simulated directly (arrivals are binomial, a fair coin assigns the
arm, rewards are binary), and once more by the design itself.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.inference.distributions.two_samples import difference_intervals
from adaptinf.inference.effects.effect_weights import contrast_weights
from adaptinf.inference.effects.group_scores import group_aipw
from adaptinf.inference.released.effects import effect_from_mean, effect_from_sums, released_intervals
from adaptinf.simulation.environments import FiniteContext

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
    """Whether a coverage lies in [low, high] up to its Monte Carlo error."""
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


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_everything_covers_on_runs_of_the_design(decay):
    design = DPConSE(epsilon=1.0, alpha=decay)
    environment = FiniteContext(FEATURES, MEANS)
    sims = design.replicate(environment, horizon=HORIZON, replications=6_000, rng=7)
    released = sims.released
    estimate, low, high = released_intervals(
        released["contrast_sum"],
        released["arrivals"],
        epsilon_sum=0.6,
        epsilon_count=0.4,
        minimum=released["t_min"] / 4,
    )
    usable = ~np.isnan(estimate)
    assert usable.mean() > 0.999
    assert within(((low <= EFFECTS) & (high >= EFFECTS))[usable], 0.948, 0.953)
    for randomised in (True, None):
        tallies = sims.phase_tallies("estimation", randomised=randomised)
        _, low, high = difference_intervals(*np.moveaxis(tallies, -1, 0), binary=True)
        assert within((low <= EFFECTS) & (high >= EFFECTS), 0.945, 0.952)


def test_weighted_aipw_covers_when_propensities_follow_the_rewards():
    rng = np.random.default_rng(8)
    rounds, hits = 400, []
    for _ in range(4_000):
        group = rng.integers(0, 2, rounds)
        share = np.full(rounds, 0.5)
        early = np.arange(rounds) < rounds // 4
        treated = (rng.random(rounds) < share).astype(np.int64)
        reward = rng.normal(0.0, 1.0, rounds)
        for code in (0, 1):
            mine = early & (group == code)
            ahead = reward[mine & (treated == 1)].mean() > reward[mine & (treated == 0)].mean()
            share[~early & (group == code)] = 0.95 if ahead else 0.05
        treated[~early] = rng.random(rounds - rounds // 4) < share[~early]
        both = np.column_stack([1 - share, share])
        own = both[np.arange(rounds), treated]
        weights = np.repeat(contrast_weights(both, "combined")[:, None], 2, axis=1)
        result = group_aipw(group, treated, reward, own, 2, both, weights)
        hits.append(np.abs(result.estimate) <= stats.t.isf(0.025, result.df) * result.std_error)
    assert within(np.array(hits), 0.942, 0.962)
