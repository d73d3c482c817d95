"""Properties of the max-information correction over thousands of random settings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adaptinf.inference.corrections.information import (
    correct_pvalues,
    corrected_level,
    log_correct_pvalues,
    log_corrected_level,
    max_information,
)

thorough = settings(max_examples=500, deadline=None)
brief = settings(max_examples=700, deadline=None)
epsilons = st.one_of(st.just(0.0), st.floats(-9.0, 1.0).map(math.exp))
rounds = st.one_of(st.integers(0, 50), st.integers(0, 2_000_000))
some_rounds = st.one_of(st.integers(1, 50), st.integers(1, 2_000_000))
log_levels = st.floats(-700.0, -0.02)
bounds = st.sampled_from(["max-information", "moment"])


@pytest.mark.slow
@thorough
@given(epsilons, rounds, log_levels, st.floats(-1e6, 0.0), bounds)
def test_significant_exactly_when_the_level_is_reached(epsilon, n, log_alpha, log_p, bound) -> None:
    level = log_corrected_level(log_alpha, epsilon=epsilon, n=n, bound=bound)
    assume(abs(log_p - level) > 1e-9 * max(1.0, abs(level)))
    corrected = float(log_correct_pvalues(log_p, epsilon=epsilon, n=n, bound=bound))
    assert (corrected <= log_alpha) == (log_p <= level)


@pytest.mark.slow
@thorough
@given(
    epsilons, some_rounds, st.floats(1e-12, 0.49), st.sampled_from([-1.0, 1.0]), st.floats(2e-9, 1e-3), bounds
)
def test_significance_turns_at_the_level(epsilon, n, alpha, side, distance, bound) -> None:
    level = corrected_level(alpha, epsilon=epsilon, n=n, bound=bound)
    assume(level > 1e-290)
    p = min(1.0, level * (1.0 + side * distance))
    corrected = correct_pvalues(p, epsilon=epsilon, n=n, bound=bound)
    assert (corrected <= alpha) == (side < 0.0)


@pytest.mark.slow
@thorough
@given(epsilons, rounds, st.lists(st.floats(-1e5, 0.0), min_size=2, max_size=5), bounds)
def test_corrected_pvalues_are_ordered_and_never_smaller(epsilon, n, log_p, bound) -> None:
    ordered = np.sort(np.array(log_p))
    corrected = log_correct_pvalues(ordered, epsilon=epsilon, n=n, bound=bound)
    assert np.all(corrected >= ordered)
    assert np.all(corrected <= 0.0)
    assert np.all(np.diff(corrected) >= -1e-12 * np.maximum(1.0, np.abs(corrected[1:])))
    one_by_one = [float(log_correct_pvalues(value, epsilon=epsilon, n=n, bound=bound)) for value in ordered]
    np.testing.assert_allclose(corrected, one_by_one, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@brief
@given(epsilons, rounds, log_levels, st.floats(0.01, 10.0), bounds)
def test_level_grows_with_alpha_and_shrinks_with_the_information(epsilon, n, log_alpha, gap, bound) -> None:
    def level(log_alpha: float, epsilon: float, n: int) -> float:
        return log_corrected_level(log_alpha, epsilon=epsilon, n=n, bound=bound)

    here = level(log_alpha, epsilon, n)
    slack = 1e-12 * max(1.0, abs(here))
    assert here <= log_alpha
    assert level(log_alpha - gap, epsilon, n) < here + slack
    assert level(log_alpha, epsilon * (1.0 + gap), n) <= here + slack
    assert level(log_alpha, epsilon, n + 100) <= here + slack


@pytest.mark.slow
@brief
@given(epsilons, some_rounds, st.floats(1e-300, 1.0), st.floats(1e-12, 0.999))
def test_no_fixed_beta_beats_the_optimal_one_and_the_moment_bound_beats_both(epsilon, n, p, beta) -> None:
    assume(log_corrected_level(math.log(0.05), epsilon=epsilon, n=n) > -740.0)
    optimal = correct_pvalues(p, epsilon=epsilon, n=n)
    by_hand = math.exp(min(0.0, max_information(epsilon, n, beta) * math.log(2.0) + math.log(p))) + beta
    assert optimal <= min(1.0, by_hand) * (1.0 + 1e-9)
    assert correct_pvalues(p, epsilon=epsilon, n=n, bound="moment") <= optimal * (1.0 + 1e-9)


@pytest.mark.slow
@brief
@given(epsilons, rounds, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_information_shrinks_with_beta_and_stays_below_epsilon_n(epsilon, n, one, other) -> None:
    low, high = sorted((one, other))
    bits = max_information(epsilon, n, low)
    assert 0.0 <= max_information(epsilon, n, high) <= bits <= epsilon * n * math.log2(math.e) * (1.0 + 1e-15)
