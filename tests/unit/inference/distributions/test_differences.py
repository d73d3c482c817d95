from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.bounded import (
    BoundedDifferenceReference,
    _chernoff,
    _entropy_limits,
    _nuisance,
    _rejects,
)


def reference(first: float, n1: float, second: float, n0: float) -> BoundedDifferenceReference:
    return BoundedDifferenceReference(*(np.array([x], dtype=float) for x in (first, n1, second, n0)))


def exact_tail(observed: float, p1: float, n1: int, p0: float, n0: int) -> float:
    """P(X1/n1 - X0/n0 >= observed), summed over both counts."""
    successes = np.arange(n0 + 1)
    least = np.ceil(n1 * (observed + successes / n0) - 1e-9)
    return float(stats.binom.pmf(successes, n0, p0) @ stats.binom.sf(least - 1, n1, p1))


@pytest.mark.parametrize("null", [-0.2, 0.0, 0.3])
@pytest.mark.parametrize(("n1", "n0"), [(5, 9), (40, 40), (200, 30)])
def test_chernoff_bound_lies_above_the_exact_tail_and_below_a_grid_of_its_exponent(null, n1, n0):
    low, high = max(0.05, -null + 0.02), min(0.95, 0.95 - null)
    observed = null + 0.25
    bound = _chernoff(observed, null, n1, n0, low, high)
    control = np.linspace(low, high, 201)
    worst = max(exact_tail(observed, p + null, n1, p, n0) for p in control)
    assert np.log(worst) <= bound
    rate = np.linspace(0.0, 8.0 * min(n1, n0), 4001)[:, None]
    exponent = (
        n1 * np.log1p((control + null) * np.expm1(rate / n1))
        + n0 * np.log1p(control * np.expm1(-rate / n0))
        - rate * observed
    )
    assert bound == pytest.approx(exponent.max(axis=1).min(), abs=2e-3)


def test_entropy_limits_solve_their_equation():
    means, counts = np.array([0.0, 0.2, 0.5, 1.0]), np.array([10.0, 25.0, 400.0, 10.0])
    pairs = zip(means.tolist(), counts.tolist(), strict=True)
    low, high = np.array([_entropy_limits(mean, count, np.log(0.01)) for mean, count in pairs]).T
    for limit, inside in ((low, means > 0), (high, means < 1)):
        p, x = limit[inside], means[inside]
        one = np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0) / p), 0.0)
        zero = np.where(x < 1, (1 - x) * np.log(np.where(x < 1, 1 - x, 1.0) / (1 - p)), 0.0)
        np.testing.assert_allclose(counts[inside] * (one + zero), -np.log(0.01), rtol=1e-9)
    assert low[0] == pytest.approx(0.0, abs=1e-12)
    assert high[3] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-12])
@pytest.mark.parametrize(
    ("p1", "p0", "n1", "n0"), [(0.5, 0.5, 30, 30), (0.1, 0.4, 25, 60), (0.9, 0.88, 12, 80)]
)
def test_rejection_probability_at_the_truth_is_at_most_alpha(p1, p0, n1, n0, alpha):
    first, second = (grid.ravel() for grid in np.meshgrid(np.arange(n1 + 1), np.arange(n0 + 1)))
    probability = stats.binom.pmf(first, n1, p1) * stats.binom.pmf(second, n0, p0)
    test = BoundedDifferenceReference(
        first / n1, np.full(first.shape, n1), second / n0, np.full(first.shape, n0)
    )
    rejected = np.array(
        [_rejects(pair, p1 - p0, np.log(alpha), _nuisance(pair, np.log(alpha))) for pair in test._pairs()]
    )
    assert probability[rejected].sum() <= alpha


@pytest.mark.slow
def test_p_value_is_at_most_alpha_exactly_when_the_interval_excludes_the_null():
    rng = np.random.default_rng(3)
    n1, n0 = rng.integers(1, 400, 60), rng.integers(1, 400, 60)
    test = BoundedDifferenceReference(rng.binomial(n1, 0.6) / n1, n1, rng.binomial(n0, 0.45) / n0, n0)
    checked = 0
    for null in (-0.1, 0.0, 0.2):
        log_p = test.log_pvalues(null)
        for log_alpha in np.log([0.3, 0.05, 1e-4, 1e-9]):
            low, high = test.interval(log_alpha).T
            clear = (np.abs(log_p - log_alpha) > 1e-6) & (
                np.minimum(abs(low - null), abs(high - null)) > 1e-9
            )
            np.testing.assert_array_equal((log_p <= log_alpha)[clear], ((null < low) | (null > high))[clear])
            checked += clear.sum()
    assert checked > 600


def test_far_out_the_p_value_is_within_a_factor_of_the_normal_one():
    log_p = reference(0.5656, 4000, 0.4754, 4000).log_pvalues(0.0)[0]
    z = 0.0902 / np.sqrt((0.5656 * 0.4344 + 0.4754 * 0.5246) / 4000)
    assert np.log(2) + stats.norm.logsf(z) < log_p < np.log(2) + stats.norm.logsf(z) + 5.0


def test_arms_may_change_places():
    there, back = reference(0.7, 30, 0.2, 50), reference(0.2, 50, 0.7, 30)
    assert there.log_pvalues(0.1)[0] == pytest.approx(back.log_pvalues(-0.1)[0], rel=1e-9)
    np.testing.assert_allclose(there.interval(-3.0), -back.interval(-3.0)[:, ::-1], atol=1e-9)


def test_an_interval_takes_milliseconds() -> None:
    """Tens of thousands of steps in plain floats; with arrays of one number they took a tenth of a second."""
    test = reference(0.4, 120, 0.55, 80)
    start = time.process_time()
    for _ in range(5):
        low, high = test.interval(np.log(0.05))[0]
    assert (time.process_time() - start) / 5 < 0.03
    assert (low, high) == pytest.approx((-0.33971194, 0.04711023), abs=1e-8)


def test_an_empty_arm_has_no_p_value_and_no_interval():
    empty = reference(0.5, 0, 0.5, 10)
    assert np.isnan(empty.log_pvalues(0.0)).all()
    assert np.isnan(empty.interval(-3.0)).all()


def test_bad_input_is_listed():
    with pytest.raises(ParameterError, match=r"2 problems(.|\n)*means must lie(.|\n)*control_counts must be"):
        reference(1.2, 10, 0.5, -1)
