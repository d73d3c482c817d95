"""Tails and quantiles of sums of Laplace variables against closed forms and convolutions in many digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from adaptinf.privacy.counter_noise import (
    counter_quantiles,
    laplace_sum_log_tail,
    laplace_sum_quantile,
    noise_quantile,
)
from adaptinf.privacy.tree_sums import counter_scales, counter_slots, noise_nodes, noise_row


def weight(m: int, j: int) -> float:
    """Weight of |x|^(m-1-j) e^-|x| in the density of a sum of m standard Laplace variables."""
    return math.comb(m - 1, j) * math.factorial(m - 1 + j) / math.factorial(m - 1) ** 2 / 2.0 ** (m + j)


def density(x: np.ndarray, m: int, b: float) -> np.ndarray:
    y = np.abs(x) / b
    return np.exp(-y) / b * sum(weight(m, j) * y ** (m - 1 - j) for j in range(m))


def tail(x: np.ndarray, m: int, b: float) -> np.ndarray:
    """P(sum of m Laplace(b) > x), one scale: incomplete gamma functions."""
    y = np.abs(x) / b
    upper = sum(weight(m, j) * special.gammaincc(m - j, y) * math.factorial(m - j - 1) for j in range(m))
    return np.where(x < 0, 1.0 - upper, upper)


def deep_tail(x: float, m: int, b: float) -> mpmath.mpf:
    """The same, far out, in forty digits."""
    with mpmath.workdps(40):
        return mpmath.log(sum(weight(m, j) * mpmath.gammainc(m - j, mpmath.mpf(x) / b) for j in range(m)))


def two_scale_tail(x: float, a: tuple[int, float], b: tuple[int, float]) -> float:
    """P(A + B > x) by integrating over A, piece by piece between the kinks at 0 and at x."""
    reach = (45 + 5 * a[0]) * a[1]
    edges = np.unique([0.0, x, *np.linspace(-reach, x + reach, 65)])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.diff(edges)[:, None] / 2.0
    points = edges[:-1, None] + half * (nodes + 1.0)
    return float(np.sum(half * weights * density(points, *a) * tail(x - points, *b)))


def log_tail(x: float, *groups: tuple[int, float]) -> float:
    scales = np.array([[b for _, b in groups]])
    terms = np.array([[float(m) for m, _ in groups]])
    return float(laplace_sum_log_tail(np.array([x]), scales, terms)[0])


def test_the_literal_density_is_one() -> None:
    for m in (1, 2, 5, 9):
        assert tail(np.zeros(1), m, 2.0)[0] == pytest.approx(0.5, abs=1e-14)
        second, _ = integrate.quad(lambda s, m=m: 2.0 * density(s, m, 3.0) * s**2, 0.0, 300.0, limit=200)
        assert second == pytest.approx(2 * m * 3.0**2, rel=1e-8)


@pytest.mark.parametrize("m", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("scale", [0.05, 1.0, 300.0])
def test_one_scale(m: int, scale: float) -> None:
    for spread in (0.0, 0.01, 0.3, 1.0, 4.0, 15.0, 60.0):
        x = spread * scale * math.sqrt(2 * m)
        exact = deep_tail(x, m, scale)
        close = 1e-7 if m <= 2 and spread < 0.1 else 2e-11
        assert log_tail(x, (m, scale)) == pytest.approx(float(exact), abs=close, rel=2e-11)


@pytest.mark.parametrize(
    "groups",
    [
        ((4, 2.0), (2, 6.0)),
        ((2, 2.0), (1, 2.0)),
        ((10, 2.0), (1, 18.0)),
        ((3, 2.0), (2, 4.0)),
        ((7, 2.0), (6, 12.0)),
        ((25, 2.0), (1, 48.0)),
        ((25, 2.0), (12, 48.0)),
    ],
)
def test_two_scales(groups: tuple[tuple[int, float], tuple[int, float]]) -> None:
    """The last ones are hybrid counters beyond 2^24 items: far poles of a high order beside a near one."""
    for x in (0.0, 1.5, 70.0, 400.0):
        exact = math.log(two_scale_tail(x, groups[0], groups[1]))
        assert log_tail(x, *groups) == pytest.approx(exact, abs=1e-10, rel=1e-10)


def test_groups_without_terms_do_not_count() -> None:
    assert log_tail(5.0, (2, 3.0), (0, 100.0)) == pytest.approx(log_tail(5.0, (2, 3.0)), abs=1e-12)


@pytest.mark.parametrize("probability", [0.5, 0.4, 0.1, 1e-3, 1e-9, 1e-100])
def test_quantile_inverts_the_tail(probability: float) -> None:
    scales = np.array([[1.0, 1.0], [2.0, 6.0], [2.0, 18.0], [0.1, 0.1]])
    terms = np.array([[1.0, 0.0], [4.0, 2.0], [10.0, 7.0], [3.0, 0.0]])
    log_p = np.full(4, math.log(probability))
    x = laplace_sum_quantile(log_p, scales, terms)
    assert x[0] == pytest.approx(-math.log(2 * probability), abs=1e-11, rel=1e-11)
    if probability == 0.5:
        assert x.tolist() == [0.0] * 4
    else:
        np.testing.assert_allclose(laplace_sum_log_tail(x, scales, terms), log_p, rtol=1e-10)


def law_of(counter: str, count: int, slots: int) -> tuple[np.ndarray, np.ndarray]:
    trunk, node = counter_scales(counter, 1.0, 2**slots - 1)
    trunk_terms, node_terms, level = noise_nodes(counter, count)
    return np.array([[trunk, node * level]]), np.array([[float(trunk_terms), float(node_terms)]])


@pytest.mark.slow
@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("horizon", [1, 2, 3, 20, 1000])
def test_table_of_quantiles(counter: str, horizon: int) -> None:
    grid, table = counter_quantiles(counter, horizon)
    slots = counter_slots(horizon)
    assert grid[0] == 2.0
    assert grid[-1] >= horizon
    np.testing.assert_allclose(grid[4:] / grid[:-4], 2.0, rtol=1e-14)
    first_of: dict[int, int] = {}
    for count in range(1, horizon + 1):
        first_of.setdefault(noise_row(counter == "hybrid", slots, count), count)
    for row, count in list(first_of.items())[::3]:
        scales, terms = law_of(counter, count, slots)
        scales, terms = np.repeat(scales, grid.size, axis=0), np.repeat(terms, grid.size, axis=0)
        exact = laplace_sum_quantile(-np.log(grid), scales, terms)
        assert exact[0] == 0.0
        np.testing.assert_allclose(table[:, row], exact, rtol=1e-4, atol=1e-5)


def test_deep_hybrid_laws_at_the_median_and_in_order() -> None:
    """Many small trunk terms beside one wide node: all medians are 0 and quantiles grow with t."""
    grid, table = counter_quantiles("hybrid", 10_000_000)
    assert np.abs(table[grid == 2.0]).max() < 1e-5
    assert (np.diff(table, axis=0) >= 0.0).all()


@pytest.mark.parametrize(("counter", "row", "m", "scale"), [("binary", 1, 1, 10.0), ("binary", 3, 3, 10.0)])
def test_table_at_known_quantiles(counter: str, row: int, m: int, scale: float) -> None:
    grid, table = counter_quantiles(counter, 1000)
    for position in (4, 17, len(grid) - 1):
        assert float(tail(table[position, row], m, scale)) == pytest.approx(1 / grid[position], rel=1e-3)


@pytest.mark.parametrize("counter", ["binary", "hybrid", "logarithmic"])
@pytest.mark.parametrize("count", [1, 2, 7, 12, 63, 64])
def test_noise_quantiles_at_a_count_invert_the_convolved_law(counter: str, count: int) -> None:
    epsilon, p = 0.7, np.array([1e-8, 0.02, 0.4, 0.5, 0.9, 1 - 1e-6])
    trunk, node = counter_scales(counter, epsilon, 64)
    trunk_terms, node_terms, level = noise_nodes(counter, count)
    quantiles = noise_quantile(counter, epsilon, 64, count, p)
    for x, probability in zip(quantiles, p, strict=True):
        if trunk_terms and node_terms:
            upper = two_scale_tail(abs(float(x)), (trunk_terms, trunk), (node_terms, node * level))
        else:
            terms, scale = (trunk_terms, trunk) if trunk_terms else (node_terms, node)
            upper = float(tail(np.abs(x), terms, scale))
        below = upper if x < 0 else 1.0 - upper
        assert below == pytest.approx(probability, rel=1e-6, abs=1e-12)
    assert noise_quantile(counter, epsilon, 64, count, 0.5) == 0.0
