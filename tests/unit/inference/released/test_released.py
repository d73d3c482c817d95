"""Effects from private releases: estimates, p-values and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.tails import (
    log_normal_laplace_tail,
    log_normal_two_laplace_tail,
)
from adaptinf.inference.released.effects import (
    ReleasedReference,
    effect_from_mean,
    effect_from_sums,
    released_estimate,
    released_intervals,
    released_std_error,
)


def effect(center, size, epsilon_sum=0.6, epsilon_count=0.4, minimum=0.0):
    sums = np.asarray(center) * np.asarray(size) / 2
    return effect_from_sums(sums, size, epsilon_sum=epsilon_sum, epsilon_count=epsilon_count, minimum=minimum)


def many_effects(rng, size):
    """Effects over four orders of magnitude of privacy and size, a third of them carried beyond 1."""
    epsilon = 10 ** rng.uniform(-2.5, 1.5, size)
    share = rng.uniform(0.02, 0.98, size)
    count = 10 ** rng.uniform(0.0, 3.0, size) / ((1 - share) * epsilon)
    near = rng.uniform(-1, 1, size) * 10 ** rng.uniform(-3, 0, size)
    center = np.where(rng.random(size) < 0.3, rng.uniform(-3, 3, size), near)
    return effect(center, count, share * epsilon, (1 - share) * epsilon)


def test_tail_without_noise_is_normal_and_without_sampling_error_is_laplace():
    x = np.array([0.0, 0.7, 4.0, 30.0])
    np.testing.assert_allclose(log_normal_laplace_tail(x, 2.0, 0.0), stats.norm.logsf(x / 2.0), rtol=1e-13)
    np.testing.assert_allclose(log_normal_laplace_tail(x, 0.0, 2.0), np.log(0.5) - x / 2.0, rtol=1e-13)
    np.testing.assert_allclose(
        log_normal_two_laplace_tail(x, 2.0, 0.0, 0.0), stats.norm.logsf(x / 2.0), rtol=1e-13
    )
    np.testing.assert_allclose(
        log_normal_two_laplace_tail(x, 0.0, 0.0, 2.0), np.log(0.5) - x / 2.0, rtol=1e-13
    )


def test_tail_matches_simulated_sums():
    rng = np.random.default_rng(1)
    draws = 400_000
    total = 1.5 * rng.standard_normal(draws) + rng.laplace(0, 1.2, draws) + rng.laplace(0, 0.5, draws)
    for x in (0.5, 2.0, 6.0):
        p = float(np.exp(log_normal_two_laplace_tail(x, 1.5, 1.2, 0.5)))
        assert abs(np.mean(total > x) - p) < 5 * np.sqrt(p / draws)


def test_estimate_is_the_ratio_with_its_bias_removed():
    estimate = released_estimate([30.0, -8.0], [120.0, 64.0], epsilon_count=0.4, minimum=20.0)
    np.testing.assert_allclose(estimate, [0.5 * (1 - 8 / 48.0**2), -0.25 * (1 - 8 / 25.6**2)], rtol=1e-14)


def test_bias_removal_is_right_to_second_order():
    rng = np.random.default_rng(2)
    noisy = 120.0 + rng.laplace(0, 2 / 0.4, 2_000_000)
    plain = np.mean(30.0 * 2 / noisy)
    corrected = np.mean(released_estimate(np.full(noisy.shape, 30.0), noisy, epsilon_count=0.4, minimum=30.0))
    assert abs(plain - 0.5) > 0.0017
    assert abs(corrected - 0.5) < 1.5e-4


def test_counts_at_or_below_the_minimum_give_nan_everywhere():
    estimate, low, high = released_intervals(
        [3.0, 3.0, -2.0], [25.0, 25.1, -4.0], epsilon_sum=0.6, epsilon_count=0.4, minimum=25.0
    )
    for values in (estimate, low, high):
        np.testing.assert_array_equal(np.isnan(values), [True, False, True])
    reference = effect_from_sums([3.0], [25.0], epsilon_sum=0.6, epsilon_count=0.4, minimum=25.0)
    assert np.isnan(reference.log_pvalues(0.0)).all()
    assert np.isnan(released_std_error(reference)).all()


def test_budgets_that_are_not_positive_are_refused_together():
    with pytest.raises(ParameterError, match=r"(?s)epsilon_sum must be positive.*epsilon_count must be pos"):
        effect_from_sums([1.0], [10.0], epsilon_sum=0.0, epsilon_count=[-1.0], minimum=0.0)


def test_alpha_out_of_range_is_refused():
    with pytest.raises(ParameterError, match="alpha"):
        released_intervals([1.0], [10.0], epsilon_sum=1.0, epsilon_count=1.0, minimum=0.0, alpha=5.0)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-3, 1e-9])
def test_p_value_is_at_most_alpha_exactly_where_the_interval_excludes_the_null(alpha):
    rng = np.random.default_rng(3)
    effects = many_effects(rng, 4_000)
    low, high = effects.interval(float(np.log(alpha)))
    nulls = [rng.uniform(-1.1, 1.1, 4_000), np.sign(rng.uniform(-1, 1, 4_000))]
    nulls += [np.nan_to_num(end + step) for end in (low, high) for step in (-1e-9, 1e-9)]
    for null in nulls:
        accepted = effects.log_pvalues(null) > np.log(alpha)
        np.testing.assert_array_equal(accepted, (low <= null) & (null <= high))


def test_interval_is_the_hull_of_the_accepted_effects_on_a_fine_grid():
    rng = np.random.default_rng(6)
    effects = many_effects(rng, 1_500)
    grid = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 501))[:, None]
    gap = np.abs(effects.center - grid)
    spread = np.sqrt((1 - grid**2) / effects.size)
    tails = log_normal_two_laplace_tail(gap, spread, effects.scale, np.abs(grid) * effects.slope)
    p = np.log(2) + tails
    for alpha in (0.2, 0.05, 1e-3, 1e-8):
        low, high = effects.interval(float(np.log(alpha)))
        accepted = p > np.log(alpha)
        inside = (grid >= low) & (grid <= high)
        assert not np.any(accepted & ~inside)
        some = accepted.any(axis=0)
        first, last = np.argmax(accepted, axis=0), 500 - np.argmax(accepted[::-1], axis=0)
        outer_low, outer_high = grid[np.maximum(first - 1, 0), 0], grid[np.minimum(last + 1, 500), 0]
        assert np.all((low >= outer_low)[some])
        assert np.all((high <= outer_high)[some])
        assert some.mean() > 0.5


def test_effects_accepted_on_both_sides_of_a_null_accept_it_too():
    # The count noise grows with the effect, so -1 is more plausible than -0.1.
    weak = effect([0.05], [460.0], epsilon_sum=5.0, epsilon_count=0.01)
    by_itself = 2 * np.exp(log_normal_two_laplace_tail(0.15 * 230, np.sqrt(0.99 * 115), 0.2, 10.0))
    at_the_end = np.exp(weak.log_pvalues(-1.0))[0]
    assert by_itself < 0.06 < at_the_end < 0.1
    assert np.exp(weak.log_pvalues(-0.1))[0] == at_the_end
    assert weak.interval(float(np.log(0.06)))[0][0] == -1.0
    assert weak.interval(float(np.log(0.1)))[0][0] > -0.1


def test_interval_is_empty_only_where_noise_carried_the_estimate_far_beyond_one():
    low, high = effect([1.0, 1.02, 2.0], [200.0] * 3).interval(float(np.log(0.05)))
    np.testing.assert_array_equal(np.isnan(low), [False, False, True])
    np.testing.assert_array_equal(np.isnan(high), [False, False, True])
    assert high[0] == 1.0


def test_interval_may_start_inside_when_the_estimate_is_beyond_one():
    # Without much noise an effect of 1 would give no variance, so smaller effects fit better.
    beyond = effect([1.003], [400.0], epsilon_sum=40.0, epsilon_count=40.0)
    low, high = beyond.interval(float(np.log(0.05)))
    assert 0.9 < low[0] < high[0] < 1.0
    p_at_one, p_inside = np.exp(beyond.log_pvalues(1.0))[0], np.exp(beyond.log_pvalues(0.99))[0]
    assert p_at_one < 0.05 < p_inside


@pytest.mark.slow
def test_interval_shrinks_to_the_most_plausible_effect_before_it_is_empty():
    beyond = effect([1.003], [400.0], epsilon_sum=40.0, epsilon_count=40.0)
    grid = np.linspace(1 / 1.003, 1.0, 20_001)
    around = grid[np.argmax([beyond.log_pvalues(value)[0] for value in grid[::50]]) * 50]
    best = max(beyond.log_pvalues(value)[0] for value in np.linspace(around - 1e-5, around + 1e-5, 401))
    low, high = beyond.interval(best - 1e-7)
    assert 0.0 <= high[0] - low[0] < 1e-4
    assert np.isnan(beyond.interval(best + 1e-7)).all()


def test_an_accepted_end_belongs_to_the_hull_across_a_dip():
    # Far beyond 1 the p-value peaks inside, dips, and rises again up to 1, all of it at e^-100 or so.
    beyond = effect([2.1385], [54.0], epsilon_sum=5.496, epsilon_count=3.664)
    inner, dip, end = (beyond.log_pvalues(value)[0] for value in (0.48, 0.8667, 1.0))
    assert dip == end < inner < -95
    low, high = beyond.interval(end - 1.0)
    assert low[0] < 0.48
    assert high[0] == 1.0


def test_mirrored_sums_give_mirrored_intervals():
    low, high = effect([0.2, -0.2], [150.0, 150.0]).interval(float(np.log(0.05)))
    np.testing.assert_array_equal(low, -high[::-1])
    assert low[0] < 0.2 < high[0]


def test_effects_outside_the_unit_interval_are_impossible():
    p = np.exp(effect([0.9], [10.0]).log_pvalues(1.001))
    assert p[0] == 0.0


def test_p_values_far_below_the_smallest_float_are_finite_logs():
    log_p = effect([0.8], [40_000.0]).log_pvalues(0.0)[0]
    assert -30_000 < log_p < -5_000


def test_without_privacy_noise_the_interval_is_the_score_interval():
    size, center, z = 300.0, 0.3, stats.norm.isf(0.025)
    exact = effect([center], [size], epsilon_sum=1e9, epsilon_count=1e9)
    low, high = exact.interval(float(np.log(0.05)))
    middle = center / (1 + z**2 / size)
    half = np.sqrt(middle**2 - (center**2 - z**2 / size) / (1 + z**2 / size))
    np.testing.assert_allclose([low[0], high[0]], [middle - half, middle + half], atol=1e-7)


def test_std_error_adds_sampling_error_and_both_noises():
    expected = np.sqrt((1 - 0.16) / 100 + (2 / 100) ** 2 * 2 / 0.36 + (0.4 / 100) ** 2 * 8 / 0.16)
    assert released_std_error(effect([0.4], [100.0]))[0] == pytest.approx(expected, rel=1e-12)


def test_effect_from_a_released_difference_ignores_the_count_noise():
    published = effect_from_mean([0.2, np.nan, 0.1], [80.0, 80.0, 0.0], scale=0.05)
    np.testing.assert_array_equal(published.valid, [True, False, False])
    np.testing.assert_allclose(released_std_error(published)[0], np.sqrt(0.96 / 80 + 2 * 0.05**2))
    low, high = published.interval(float(np.log(0.05)))
    assert low[0] < 0.2 < high[0]
    assert np.isnan(low[1:]).all()


def test_reference_gives_stacked_limits_and_the_same_p_values():
    effects = effect([0.2, -0.4], [150.0, 90.0])
    reference = ReleasedReference(effects)
    np.testing.assert_array_equal(reference.interval(-3.0), np.stack(effects.interval(-3.0), axis=1))
    np.testing.assert_array_equal(reference.log_pvalues(0.1), effects.log_pvalues(0.1))
    assert not reference.exact


def test_arrays_of_any_shape_equal_one_effect_at_a_time():
    rng = np.random.default_rng(4)
    sums, counts = rng.normal(0, 20, (5, 3)), rng.uniform(30, 300, (5, 3))
    budget = {"epsilon_sum": np.array([0.6, 1.0, 2.0]), "epsilon_count": 0.4, "minimum": 20.0}
    together = released_intervals(sums, counts, **budget)
    for row in range(5):
        for group in range(3):
            one = released_intervals(
                sums[row, group],
                counts[row, group],
                epsilon_sum=budget["epsilon_sum"][group],
                epsilon_count=0.4,
                minimum=20.0,
            )
            np.testing.assert_array_equal([part[row, group] for part in together], one)
