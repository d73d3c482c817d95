"""Rates of the locally private bandit against hand computations, limits and a recomputation by bin edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.errors import ParameterError
from adaptinf.theory.regret_bounds import ldp_regret_exponent, ldp_transfer_exponent, ldp_transfer_rate


def test_exponents_by_hand() -> None:
    assert ldp_regret_exponent(2, 1.0) == pytest.approx(2 / 3)
    assert ldp_regret_exponent(2, 1.0, private=False) == pytest.approx(1 / 2)
    np.testing.assert_allclose(ldp_regret_exponent([1, 3], 0.5), [1 - 1.5 / 4, 1 - 1.5 / 8])
    np.testing.assert_allclose(ldp_regret_exponent([1, 3], 0.5, private=False), [1 - 1.5 / 3, 1 - 1.5 / 5])
    assert ldp_transfer_exponent(2, 1.0) == pytest.approx(-1 / 3)
    np.testing.assert_allclose(ldp_transfer_exponent(2, 1.0, [0.5, 1, 2]), [-2 / 7, -2 / 8, -2 / 10])
    np.testing.assert_allclose(
        ldp_transfer_exponent(2, 1.0, [0, 0.5, 2], private=False), [-2 / 4, -2 / 4.5, -2 / 6]
    )


def test_rate_by_hand() -> None:
    """d = 1, margin 1, K = 2: S^(-1/2), private term n epsilon^2 / (4 log n)."""
    assert ldp_transfer_rate(10_000, 0.5, 2, 1, 1.0) == pytest.approx(
        10_000 / math.sqrt(10_000 * 0.25 / (4 * math.log(10_000)))
    )
    # without privacy (n / (2 log n))^(4/3)
    assert ldp_transfer_rate(10_000, math.inf, 2, 1, 1.0) == pytest.approx(
        10_000 * (10_000 / (2 * math.log(10_000))) ** (-2 / 3)
    )
    # a source: (kappa^2 n epsilon^2 / (4 log N))^(4/5) for gamma = 1/2, N its own size
    trial = 10_000 * 0.25 / (4 * math.log(40_000))
    source = (0.64 * 40_000 * 0.09 / (4 * math.log(40_000))) ** 0.8
    assert ldp_transfer_rate(10_000, 0.5, 2, 1, 1.0, [(40_000, 0.3, 0.5, 0.8)]) == pytest.approx(
        10_000 / math.sqrt(trial + source)
    )
    # its rewards limit: (kappa n / (2 log N))^(4 / 3.5)
    plain = (0.8 * 40_000 / (2 * math.log(40_000))) ** (4 / 3.5)
    assert ldp_transfer_rate(10_000, 0.5, 2, 1, 1.0, [(40_000, 1e5, 0.5, 0.8)]) == pytest.approx(
        10_000 / math.sqrt(trial + plain)
    )


def test_limits() -> None:
    """Without participants, without exploration, without privacy."""
    alone = ldp_transfer_rate(50_000, 1.0, 3, 2, 1.5)
    assert ldp_transfer_rate(50_000, 1.0, 3, 2, 1.5, [(0, 8.0, 0.0, 1.0)]) == alone
    assert ldp_transfer_rate(50_000, 1.0, 3, 2, 1.5, [(50_000, 8.0, 1.0, 0.0)]) == alone
    for epsilon in (1e4, 1e9):
        assert ldp_transfer_rate(50_000, epsilon, 3, 2, 1.5) == ldp_transfer_rate(50_000, math.inf, 3, 2, 1.5)
    many = ldp_transfer_rate(50_000, 1.0, 3, 2, 1.5, [(30_000, math.inf, 0.7, 0.9)])
    assert ldp_transfer_rate(50_000, 1.0, 3, 2, 1.5, [(30_000, 1e9, 0.7, 0.9)]) == many < alone
    # a source like the trial is as many more participants, but for the logarithm
    twice = ldp_transfer_rate(50_000, 1.0, 3, 2, 1.5, [(50_000, 1.0, 0.0, 1.0)])
    assert twice == pytest.approx(alone * 2 ** (-2.5 / 6))


@pytest.mark.parametrize(("gamma", "epsilon"), [(0.0, 1.0), (0.8, 1.0), (0.0, math.inf), (0.8, math.inf)])
def test_slopes_of_the_rate_tend_to_the_exponents(gamma: float, epsilon: float) -> None:
    """But for what log n adds to a slope, which is known."""
    private, sizes = math.isfinite(epsilon), np.array([10**17, 10**18])
    rate = ldp_transfer_rate(sizes, epsilon, 3, 2, 1.0)
    step = math.log(math.log(1e18) / math.log(1e17))
    power = 2 / 6 if private else 2 / 4
    slope = float(np.diff(np.log(rate))[0]) / math.log(10)
    assert slope == pytest.approx(
        float(ldp_regret_exponent(2, 1.0, private=private)) + power * step / math.log(10), abs=1e-12
    )
    rate = ldp_transfer_rate(2, 1e-6, 3, 2, 1.0, [(sizes, epsilon, gamma, 0.5)])
    power = float(ldp_transfer_exponent(2, 1.0, gamma, private=private))
    slope = float(np.diff(np.log(rate))[0]) / math.log(10)
    assert slope == pytest.approx(power * (1 - step / math.log(10)), abs=1e-9)


def finest_edge(
    n: float, epsilon: float, gamma: float, kappa: float, n_arms: int, d: int, log: float
) -> float:
    """Edge h at which a radius sqrt(max(n / epsilon^2, U) log) / U, U = kappa n h^(d + gamma) / K, is h."""
    low, high = 1e-9, 1e9
    for _ in range(200):
        h = math.sqrt(low * high)
        count = kappa * n * h ** (d + gamma) / n_arms
        wide = math.sqrt(max(n / epsilon**2, count) * log) / count > h
        low, high = (h, high) if wide else (low, h)
    return low


@pytest.mark.parametrize("epsilon", [0.7, 30.0, 1e4])
@pytest.mark.parametrize("gamma", [0.0, 0.6])
def test_rate_is_that_of_the_edges_at_which_radii_equal_widths(epsilon: float, gamma: float) -> None:
    n_arms, d, margin, n, size = 4, 2, 1.3, 20_000, 90_000
    log = math.log(size)
    edges = [finest_edge(n, 2.0, 0.0, 1.0, n_arms, d, log)]
    edges.append(finest_edge(size, epsilon, gamma, 0.5, n_arms, d, log))
    total = sum(edge ** -(2.0 + 2.0 * d) for edge in edges)
    expected = n * total ** (-(1 + margin) / (2 + 2 * d))
    found = ldp_transfer_rate(n, 2.0, n_arms, d, margin, [(size, epsilon, gamma, 0.5)])
    assert found == pytest.approx(expected, rel=1e-9)


def test_arrays_broadcast() -> None:
    sizes = np.array([[1_000], [2_000]])
    table = ldp_transfer_rate(sizes, [1.0, 2.0, math.inf], 3, 2, 1.0, [(5_000, [1.0, 2.0, 3.0], 0.1, 0.5)])
    assert table.shape == (2, 3)
    assert table[1, 2] == ldp_transfer_rate(2_000, math.inf, 3, 2, 1.0, [(5_000, 3.0, 0.1, 0.5)])


def test_bad_arguments_are_told_together() -> None:
    with pytest.raises(ParameterError) as refused:
        ldp_transfer_rate(1, -1.0, 0, 2, 1.0, [(10, 0.0, -1.0, 1.5), (1, 2)])  # type: ignore[list-item]
    told = str(refused.value)
    for part in (
        "n_arms must",
        "horizon must be a whole number of at least 2",
        "epsilon must",
        "epsilon of auxiliary source 1 must",
        "gamma of auxiliary source 1 must",
        "kappa of auxiliary source 1 must",
        "auxiliary source 2 must be a tuple",
    ):
        assert part in told
    for function in (ldp_regret_exponent, ldp_transfer_exponent):
        with pytest.raises(ParameterError, match="margin must be at most the dimension"):
            function(2, 2.5)
        with pytest.raises(ParameterError, match="margin must be above 0"):
            function(2, 0.0)
    with pytest.raises(ParameterError, match="gamma"):
        ldp_transfer_exponent(2, 1.0, -0.1)
    with pytest.raises(ParameterError, match="broadcast"):
        ldp_transfer_rate([10, 20], [1.0, 2.0, 3.0], 3, 2, 1.0)
