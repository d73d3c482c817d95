"""Noise tails and released intervals against forty-digit arithmetic."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from adaptinf.inference.distributions.tails import (
    log_normal_laplace_tail,
    log_normal_two_laplace_tail,
)
from adaptinf.inference.released.effects import effect_from_mean, effect_from_sums


@pytest.fixture(autouse=True)
def forty_digits():
    with mp.workdps(40):
        yield


def normal_tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def two_laplace_density(y, a, b):
    if a == b:
        return (1 + y / a) * mp.exp(-y / a) / (4 * a)
    return (a * mp.exp(-y / a) - b * mp.exp(-y / b)) / (2 * (a * a - b * b))


def convolved_tail(x, sigma, a, b):
    """P(sigma Z + Laplace(a) + Laplace(b) > x) by quadrature over the two Laplace parts together."""
    x, sigma, a, b = (mp.mpf(float(v)) for v in (x, sigma, a, b))

    def integrand(y):
        return two_laplace_density(y, a, b) * (normal_tail((x - y) / sigma) + normal_tail((x + y) / sigma))

    widest = max(a, b)
    knots = {mp.mpf(0), a, b, x, 3 * widest, x + 12 * sigma + 100 * widest}
    knots |= {max(x + shift * sigma, mp.mpf(0)) for shift in (-12, -6, -3, -1, 1, 3, 6, 12)}
    return mp.quad(integrand, sorted(knots))


def closed_tail(x, sigma, b):
    """The one-Laplace tail with enough digits for its terms to cancel."""
    with mp.workdps(1500):
        x, sigma, b = (mp.mpf(float(v)) for v in (x, sigma, b))
        z, k = x / sigma, sigma / b
        rising = mp.exp(k * k / 2 - x / b) * normal_tail(k - z)
        falling = mp.exp(k * k / 2 + x / b) * normal_tail(z + k)
        return +(normal_tail(z) + (rising - falling) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("second", [1e-3, 5 / 3, 1.66665, 1.6666, 8.0])
def test_tail_with_two_laplace_parts_equals_the_convolution(sigma, second):
    points = np.array([0.4, 3.0, 20.0])
    expected = [float(convolved_tail(x, sigma, 5 / 3, second)) for x in points]
    computed = np.exp(log_normal_two_laplace_tail(points, sigma, 5 / 3, second))
    np.testing.assert_allclose(computed, expected, rtol=3e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1e-3, 0.2, 1.0, 7.0, 200.0])
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 20.0])
def test_one_laplace_tail_keeps_its_relative_precision(sigma, scale):
    points = np.array([0.0, 0.1, 1.0, 5.0, 20.0, 150.0, 600.0])
    expected = [float(mp.log(closed_tail(x, sigma, scale))) for x in points]
    computed = log_normal_laplace_tail(points, sigma, scale)
    np.testing.assert_allclose(computed, expected, rtol=1e-13, atol=1e-11)


@pytest.mark.slow
def test_two_laplace_tail_is_right_in_logs_where_it_underflows():
    grid = [(x, s, a, b) for x in (300.0, 900.0) for s in (0.1, 3.0) for a in (0.8, 1.0) for b in (0.2, 0.79)]
    for x, sigma, a, b in grid:
        with mp.workdps(1500):
            combined = (a * a * closed_tail(x, sigma, a) - b * b * closed_tail(x, sigma, b)) / (a * a - b * b)
            expected = float(mp.log(combined))
        assert float(log_normal_two_laplace_tail(x, sigma, a, b)) == pytest.approx(expected, abs=1e-9)
        assert expected < -280.0


def literal_p(value, total, count, epsilon_sum, epsilon_count):
    """The test of one candidate effect, straight from the law of the released sum."""
    gap = abs(total - value * count / 2)
    sigma = mp.sqrt(count * (1 - value**2) / 4)
    return 2 * convolved_tail(gap, sigma, 1 / epsilon_sum, abs(value) / epsilon_count)


@pytest.mark.parametrize("total", [11.0, -30.0])
@pytest.mark.parametrize("value", [-0.9, 2 / 3, 0.8])
def test_p_values_of_released_sums_equal_the_literal_test(total, value):
    effect = effect_from_sums([total], [120.0], epsilon_sum=0.6, epsilon_count=0.4, minimum=0.0)
    expected = float(literal_p(value, total, 120.0, 0.6, 0.4))
    assert float(np.exp(effect.log_pvalues(value))[0]) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("total", "alpha"), [(11.0, 0.05), (-30.0, 0.05), (11.0, 1e-4)])
def test_interval_ends_where_the_literal_p_value_is_alpha(total, alpha):
    effect = effect_from_sums([total], [120.0], epsilon_sum=0.6, epsilon_count=0.4, minimum=0.0)
    for end in effect.interval(float(np.log(alpha))):
        assert abs(end[0]) < 1.0
        assert float(literal_p(end[0], total, 120.0, 0.6, 0.4)) == pytest.approx(alpha, rel=1e-6)


def test_interval_of_a_released_difference_ends_where_its_p_value_is_alpha():
    low, high = effect_from_mean([0.3], [80.0], scale=2 / 80.0).interval(float(np.log(0.1)))
    for end in (low[0], high[0]):
        with mp.workdps(60):
            tail = closed_tail(abs(0.3 - end), np.sqrt((1 - end**2) / 80.0), 2 / 80.0)
        assert float(2 * tail) == pytest.approx(0.1, rel=1e-9)
