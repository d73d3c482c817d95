"""Upper quantiles of norms: valid and tight, by quadrature in two dimensions and by simulation in more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from adaptinf.errors import ParameterError
from adaptinf.privacy.counter_noise import (
    gaussian_norm_bound,
    laplace_norm_bound,
    laplace_sum_log_tail,
    laplace_sum_quantile,
    log_tail_and_slope,
)

LAWS = [(0.0, 0, 1.0, 1), (0.0, 0, 2.5, 8), (2.0, 10, 18.0, 3), (2.0, 5, 0.0, 4)]


def log_union_tail(law: tuple[float, int, float, int], x: float) -> float:
    scales, terms = np.array([[law[0], law[2]]]), np.array([[law[1], law[3]]], dtype=float)
    return float(laplace_sum_log_tail(np.array([x]), scales, terms)[0])


@pytest.mark.parametrize("law", LAWS[:3])
@pytest.mark.parametrize("log_failure", [math.log(0.3), math.log(1e-6), -500.0, -900.0])
def test_one_dimension_is_the_two_sided_quantile(
    law: tuple[float, int, float, int], log_failure: float
) -> None:
    bound = laplace_norm_bound(*law, dimension=1, log_failure=log_failure)
    assert log_union_tail(law, bound) == pytest.approx(log_failure - math.log(2.0), rel=1e-9)


def exact_tail_in_the_plane(r: float) -> float:
    """P(|Z| > r) for two standard Laplace variables: one integral over the first one."""

    def inside(x: float) -> float:
        return math.exp(-x) * -math.expm1(-math.sqrt(r * r - x * x))

    return 1.0 - integrate.quad(inside, 0.0, r, epsabs=1e-15, epsrel=1e-13)[0]


@pytest.mark.parametrize("probability", [0.4, 0.05, 1e-3, 1e-7])
def test_two_dimensions_against_quadrature(probability: float) -> None:
    bound = laplace_norm_bound(0.0, 0, 1.0, 1, dimension=2, log_failure=math.log(probability))
    assert exact_tail_in_the_plane(bound) <= probability
    assert exact_tail_in_the_plane(bound * 0.995) > probability


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("dimension", "above"), [(3, 1.005), (10, 1.005), (64, 1.02), (65, 1.4), (300, 1.4)])
def test_bounds_against_simulated_norms(
    law: tuple[float, int, float, int], dimension: int, above: float
) -> None:
    """The share beyond the bound must not exceed the probability, nor the bound the quantile by much."""
    rng, runs = np.random.default_rng(dimension), 20_000 if dimension < 100 else 4_000
    trunk, trunk_terms, node, node_terms = law
    squares = np.zeros(runs)
    for _ in range(dimension):
        total = np.zeros(runs)
        for scale, terms in ((trunk, trunk_terms), (node, node_terms)):
            if terms:
                total += scale * (rng.gamma(terms, size=runs) - rng.gamma(terms, size=runs))
        squares += total**2
    norms = np.sqrt(squares)
    for probability in (0.5, 0.05):
        bound = laplace_norm_bound(*law, dimension, math.log(probability))
        assert stats.binom.sf(np.sum(norms > bound) - 1, runs, probability) > 1e-5
        # the simulated quantile, at the edge of its own error
        count = stats.binom.isf(1e-5, runs, probability)
        assert bound < above * np.sort(norms)[runs - int(count) - 1] * (1.0 + 4.0 / math.sqrt(runs))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 5, 64, 65, 500])
def test_far_out_one_coordinate_makes_the_norm(dimension: int) -> None:
    """Between the quantile of the largest coordinate and the union bound, nearer to the former far out."""
    for law in LAWS:
        previous = 0.0
        for log_failure in (-1.0, -10.0, -100.0, -500.0, -599.0, -601.0, -2000.0):
            bound = laplace_norm_bound(*law, dimension, log_failure)
            single = laplace_norm_bound(*law, 1, log_failure)
            union = math.sqrt(dimension) * laplace_norm_bound(*law, 1, log_failure - math.log(dimension))
            assert single < bound <= union * (1 + 1e-12)
            assert bound > previous
            previous = bound
            if -599.0 <= log_failure <= -500.0 and dimension <= 5:
                assert bound < 1.1 * single


def test_bounds_scale_with_the_noise_and_ignore_empty_groups() -> None:
    bound = laplace_norm_bound(2.0, 3, 5.0, 2, 4, -7.0)
    assert laplace_norm_bound(2e-6, 3, 5e-6, 2, 4, -7.0) == pytest.approx(1e-6 * bound, rel=1e-12)
    assert laplace_norm_bound(2e9, 3, 5e9, 2, 4, -7.0) == pytest.approx(1e9 * bound, rel=1e-12)
    assert laplace_norm_bound(2.0, 3, 77.0, 0, 4, -7.0) == pytest.approx(
        laplace_norm_bound(0.0, 5, 2.0, 3, 4, -7.0), rel=1e-12
    )
    assert laplace_norm_bound(1.0, 0, 0.0, 3, 4, -7.0) == 0.0


@pytest.mark.parametrize("dimension", [1, 4, 50])
def test_normal_norms(dimension: int) -> None:
    for log_failure in (math.log(0.9), -3.0, -50.0, -600.0):
        exact = 2.0 * 3.0 * math.sqrt(2.0 * special.gammainccinv(dimension / 2, math.exp(log_failure)))
        assert gaussian_norm_bound(2.0, 9, dimension, log_failure) == pytest.approx(exact, rel=1e-12)
    # beyond doubles: above the quantile, by little, and in order
    values = [gaussian_norm_bound(1.0, 1, dimension, lf) for lf in (-630.0, -641.0, -700.0, -5000.0)]
    assert values == sorted(values)
    assert values[1] < 1.06 * values[0]
    square = values[3] ** 2
    excess = 1.0 - square / dimension + math.log(square / dimension)
    assert 0.5 * dimension * excess == pytest.approx(-5000.0, rel=1e-9)


def test_the_log_tail_is_concave_with_the_slope_that_is_returned() -> None:
    x = np.linspace(0.01, 60.0, 400)
    for law in LAWS[:3]:
        scales, terms = (
            np.tile([[law[0], law[2]]], (400, 1)),
            np.tile([[law[1], law[3]]], (400, 1)).astype(float),
        )
        value, slope = log_tail_and_slope(x, scales, terms)
        assert (np.diff(slope) <= 1e-9).all()
        np.testing.assert_allclose(np.gradient(value, x)[5:-5], slope[5:-5], rtol=0.01)


@pytest.mark.parametrize(
    ("bad", "count"),
    [
        ({"trunk": -1.0, "node_terms": 1.5}, 2),
        ({"dimension": 0, "log_failure": 0.0}, 2),
        ({"log_failure": -math.inf}, 1),
        ({"log_failure": math.nan, "node": math.inf, "trunk_terms": -1}, 3),
    ],
)
def test_bad_arguments_are_all_listed(bad: dict[str, float], count: int) -> None:
    good = {"trunk": 1.0, "trunk_terms": 1, "node": 1.0, "node_terms": 1, "dimension": 2, "log_failure": -1.0}
    with pytest.raises(ParameterError) as info:
        laplace_norm_bound(**{**good, **bad})  # type: ignore[arg-type]
    assert len(info.value.problems) == count
    with pytest.raises(ParameterError, match="3 problems"):
        gaussian_norm_bound(-1.0, -1, 1, 0.5)


def test_union_quantile_is_where_it_should_be() -> None:
    quantile = laplace_sum_quantile(np.array([math.log(0.005)]), np.array([[1.0]]), np.array([[1.0]]))
    bound = laplace_norm_bound(0.0, 0, 1.0, 1, 1, math.log(0.01))
    assert bound == pytest.approx(quantile[0], rel=1e-12)
