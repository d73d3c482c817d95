"""The analytic Gaussian mechanism in sixty digits, and discrete Gaussian noise by sums of probabilities."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from adaptinf.errors import ParameterError
from adaptinf.privacy.real_mechanisms import analytic_scale, discrete_scale, gaussian_delta

EPSILONS = (1e-6, 1e-4, 0.01, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DELTAS = (1e-15, 1e-10, 1e-5, 0.01, 0.3, 0.5)


def literal_delta(epsilon: float, ratio: mp.mpf) -> mp.mpf:
    """Balle and Wang's formula at ratio = sensitivity / scale."""
    epsilon = mp.mpf(epsilon)
    return mp.ncdf(ratio / 2 - epsilon / ratio) - mp.e**epsilon * mp.ncdf(-ratio / 2 - epsilon / ratio)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_against_sixty_digits(epsilon: float) -> None:
    with mp.workdps(60):
        for delta in DELTAS:
            ratio = 1.0 / analytic_scale(epsilon, delta)
            for factor in (0.5, 0.99, 1.0, 1.5):
                exact = literal_delta(epsilon, mp.mpf(1.0) / mp.mpf(1.0 / (ratio * factor)))
                ours = gaussian_delta(epsilon, 1.0 / (ratio * factor))
                assert abs(ours / exact - 1) < 2e-11


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_scale_is_the_smallest_valid_one_to_twelve_digits(epsilon: float) -> None:
    with mp.workdps(60):
        for delta in DELTAS:
            scale = analytic_scale(epsilon, delta)
            assert literal_delta(epsilon, 1 / mp.mpf(scale)) <= mp.mpf(delta)
            assert literal_delta(epsilon, 1 / (mp.mpf(scale) * (1 - mp.mpf(10) ** -12))) > mp.mpf(delta)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_scale_is_valid_where_delta_is_close_to_one(epsilon: float) -> None:
    with mp.workdps(60):
        for delta in (0.7, 0.99, 1 - 1e-4, 1 - 1e-5, 1 - 1e-6, 1 - 1e-9):
            scale = analytic_scale(epsilon, delta)
            assert literal_delta(epsilon, 1 / mp.mpf(scale)) <= mp.mpf(delta)
            assert literal_delta(epsilon, 1 / (mp.mpf(scale) * (1 - mp.mpf(10) ** -12))) > mp.mpf(delta)


def test_scale_at_extreme_deltas_and_in_proportion_to_the_sensitivity() -> None:
    with mp.workdps(80):
        for epsilon, delta in [(1.0, 1e-300), (1e-6, 1e-100), (0.5, 0.9), (5.0, 1 - 1e-9), (1e-3, 0.999)]:
            scale = analytic_scale(epsilon, delta)
            assert abs(literal_delta(epsilon, 1 / mp.mpf(scale)) / delta - 1) < 1e-9
    assert analytic_scale(0.7, 1e-6, 12.0) == pytest.approx(12.0 * analytic_scale(0.7, 1e-6), rel=1e-15)
    assert gaussian_delta(0.7, 3.0, 12.0) == pytest.approx(gaussian_delta(0.7, 0.25), rel=1e-15)
    assert gaussian_delta(0.0, 1.0) == pytest.approx(math.erf(0.5 / math.sqrt(2.0)), rel=1e-14)
    with pytest.raises(ParameterError, match="delta must be below 1"):
        analytic_scale(1.0, 1.0)


def discrete_law(scale: float, reach: int) -> np.ndarray:
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    return np.asarray(weights / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", [0.3, 0.45, 0.6, 3.0])
@pytest.mark.parametrize("scale", [2.0, 7.5])
def test_rounded_normal_noise_is_discrete_gaussian_up_to_the_stated_factor(
    scale: float, smoothing: float
) -> None:
    """Normal noise y, then an integer with probability proportional to exp(-(k - y)^2 / (2 tau^2))."""
    reach = 60
    y = np.linspace(-12 * scale, 12 * scale, 40_001)
    k = np.arange(-200, 201)
    weights = np.exp(-0.5 * ((k[:, None] - y) / smoothing) ** 2)
    weights /= weights.sum(axis=0)
    density = np.exp(-0.5 * (y / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
    mixed = np.trapezoid(weights * density, y, axis=1)[200 - reach : 201 + reach]
    wide = math.hypot(scale, smoothing)
    likely = discrete_law(wide, reach) > 1e-9
    ratio = (mixed / discrete_law(wide, reach))[likely]
    eta = 3.0 * math.exp(-2.0 * math.pi**2 * smoothing**2)
    assert np.abs(ratio - 1.0).max() <= 2.0 * eta + 1e-11
    if smoothing < 0.4:
        assert np.abs(ratio - 1.0).max() > 1e-3  # the factor is there


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-3), (1.0, 1e-5), (3.0, 1e-6)])
def test_discrete_gaussian_noise_keeps_delta_in_one_and_two_dimensions(epsilon: float, delta: float) -> None:
    """Every shift of length 5 on the integer lattice, by summing (P - e^epsilon P')^+."""
    normal = analytic_scale(epsilon, delta, 5.0)
    reach = math.ceil(14 * discrete_scale(normal))

    def failure(shift: tuple[int, int], scale: float) -> float:
        law = discrete_law(scale, reach)
        first, second = (np.roll(law, s) for s in shift)
        if shift[1] == 0:
            return float(np.maximum(first - math.exp(epsilon) * law, 0.0).sum())
        plane = np.outer(first, second) - math.exp(epsilon) * np.outer(law, law)
        return float(np.maximum(plane, 0.0).sum())

    for shift in [(5, 0), (3, 4), (4, 3)]:
        assert failure(shift, discrete_scale(normal)) <= delta
        assert failure(shift, discrete_scale(normal / 2)) > 2 * delta  # half the noise
        # the smoothing is what is paid, and no more
        assert failure(shift, normal) == pytest.approx(delta, rel=0.2)
