"""Hall's intervals and MOVER: formulas written out, limits, p-values that agree with intervals, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from adaptinf.inference.distributions.references import Reference, StudentReference
from adaptinf.inference.distributions.skewed import (
    SkewedReference,
    SkewedSumReference,
    hall_quantile,
    hall_statistic,
)

LOG_ALPHAS = (np.log(0.49), np.log(0.05), np.log(1e-6), -200.0, -700.0)


def literal_interval(q: float, s: float, g: float, df: float, alpha: float) -> tuple[float, float]:
    """[Q - s x(z), Q - s x(-z)] with x(z) = (3/g) [(1 + g (z - g/6))^(1/3) - 1]."""
    z = stats.t.ppf(1.0 - alpha / 2.0, df)

    def x(value: float) -> float:
        return 3.0 / g * (float(np.cbrt(1.0 + g * (value - g / 6.0))) - 1.0)

    return q - s * x(z), q - s * x(-z)


def literal_pvalue(q: float, s: float, g: float, df: float, null: float) -> float:
    """The alpha at which the null is a limit, by root finding."""

    def outside(alpha: float) -> float:
        low, high = literal_interval(q, s, g, df, alpha)
        return low - null if null < q else null - high

    return float(optimize.brentq(outside, 1e-13, 1.0 - 1e-9, xtol=1e-15, rtol=1e-13))


def random_sum(parts: int, terms: int, rng: np.random.Generator) -> SkewedSumReference:
    """Parts of unequal size and skewness, with correlations of both signs."""
    root = rng.normal(size=(terms, parts, 3))
    root /= np.linalg.norm(root, axis=2, keepdims=True)
    return SkewedSumReference(
        rng.normal(size=terms),
        rng.lognormal(0.0, 0.7, (terms, parts)),
        rng.uniform(-0.8, 0.8, (terms, parts)),
        rng.uniform(3.0, 200.0, terms),
        root @ root.transpose(0, 2, 1),
    )


@pytest.mark.parametrize("g", [0.9, 0.2, 1e-3, -0.3, -1.0])
@pytest.mark.parametrize("df", [4.0, 60.0])
def test_hall_is_the_formula(g: float, df: float) -> None:
    reference = SkewedReference(1.3, 0.4, g, df)
    np.testing.assert_allclose(
        reference.interval(np.log(0.05))[0], literal_interval(1.3, 0.4, g, df, 0.05), rtol=1e-11
    )
    for null in (0.2, 1.0, 2.1):
        assert np.exp(reference.log_pvalues(null)[0]) == pytest.approx(
            literal_pvalue(1.3, 0.4, g, df, null), rel=1e-7
        )


def test_transformation_and_quantile_are_inverse_and_rise() -> None:
    g, z = np.meshgrid(np.linspace(-1.0, 1.0, 41), np.linspace(-12.0, 12.0, 2001), indexing="ij")
    x = hall_quantile(z, g)
    assert np.all(np.diff(x, axis=1) > 0.0)
    np.testing.assert_allclose(hall_statistic(x, g), z, atol=1e-12)
    cubic = x + g * x**2 / 3 + g**2 * x**3 / 27 + g / 6
    np.testing.assert_allclose(hall_statistic(x, g), cubic, atol=1e-10)


def test_without_skewness_hall_is_student() -> None:
    estimate, std_error, df = np.array([1.0, -2.0]), np.array([0.5, 4.0]), np.array([3.0, 40.0])
    for g in (0.0, 1e-15):
        skewed = SkewedReference(estimate, std_error, np.full(2, g), df)
        student = StudentReference(estimate, std_error, df)
        for log_alpha in LOG_ALPHAS[:2] if g else LOG_ALPHAS:
            np.testing.assert_allclose(skewed.interval(log_alpha), student.interval(log_alpha), rtol=1e-12)
        np.testing.assert_allclose(skewed.log_pvalues(0.3), student.log_pvalues(0.3), rtol=1e-12)


def test_right_skewness_moves_the_interval_up() -> None:
    low, high = SkewedReference(0.0, 1.0, 0.4, np.inf).interval(np.log(0.05))[0]
    assert low == pytest.approx(-1.5507, abs=1e-4)
    assert high == pytest.approx(3.1933, abs=1e-4)


def test_mover_is_the_formula() -> None:
    q1, s1, g1, q0, s0, g0, df, r = 1.2, 0.3, 0.5, 0.4, 0.2, -0.2, 25.0, 0.15
    l1, u1 = literal_interval(q1, s1, g1, df, 0.05)
    l0, u0 = literal_interval(q0, s0, g0, df, 0.05)
    below = np.sqrt((q1 - l1) ** 2 + (u0 - q0) ** 2 - 2 * r * (q1 - l1) * (u0 - q0))
    above = np.sqrt((u1 - q1) ** 2 + (q0 - l0) ** 2 - 2 * r * (u1 - q1) * (q0 - l0))
    # The second part is the negative of a mean: its skewness and its correlation change their sign.
    correlation = np.array([[1.0, -r], [-r, 1.0]])
    reference = SkewedSumReference([q1 - q0], [[s1, s0]], [[g1, -g0]], [df], correlation)
    np.testing.assert_allclose(
        reference.interval(np.log(0.05))[0], [q1 - q0 - below, q1 - q0 + above], rtol=1e-12
    )


def test_mover_without_skewness_is_student_of_the_sum() -> None:
    covariance = 0.3 * 0.2 * 0.5
    correlation = np.array([[1.0, -0.5], [-0.5, 1.0]])
    reference = SkewedSumReference([0.8], [[0.3, 0.2]], [[0.0, 0.0]], [12.0], correlation)
    size = np.sqrt(0.09 + 0.04 - 2 * covariance)
    student = StudentReference(np.array([0.8]), np.array([size]), np.array([12.0]))
    for log_alpha in LOG_ALPHAS:
        np.testing.assert_allclose(reference.interval(log_alpha), student.interval(log_alpha), rtol=1e-12)
    np.testing.assert_allclose(reference.log_pvalues(0.1), student.log_pvalues(0.1), rtol=1e-12)


def test_a_sum_of_one_part_is_hall() -> None:
    one = SkewedReference([0.4, 0.4], [0.2, 0.1], [0.6, -0.3], [9.0, 50.0])
    same = SkewedSumReference([0.4, 0.4], [[0.2], [0.1]], [[0.6], [-0.3]], [9.0, 50.0])
    np.testing.assert_allclose(same.interval(-5.0), one.interval(-5.0), rtol=1e-12)
    np.testing.assert_allclose(same.log_pvalues(-0.2), one.log_pvalues(-0.2), rtol=1e-10)


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_pvalues_agree_with_intervals_far_out(parts: int) -> None:
    rng = np.random.default_rng(parts)
    total = random_sum(parts, 6, rng)
    single = SkewedReference(total.estimate, total.std_error[:, 0], total.skewness[:, 0], total.df)
    references: list[Reference] = [total, single]
    for reference in references:
        assert isinstance(reference, Reference)
        for log_alpha in LOG_ALPHAS:
            for row, (low, high) in enumerate(reference.interval(log_alpha)):
                width = 1e-7 * (high - low)
                for limit, outwards in ((low, -width), (high, width)):
                    assert reference.log_pvalues(limit + outwards)[row] < log_alpha
                    assert reference.log_pvalues(limit - outwards)[row] > log_alpha


def test_limits_of_sums_move_outwards_whatever_the_correlation() -> None:
    rng = np.random.default_rng(5)
    reference = random_sum(2, 100, rng)
    levels = np.log(np.geomspace(0.499, 1e-30, 400))
    limits = np.array([reference.interval(level) for level in levels])
    assert np.all(np.diff(limits[..., 0], axis=0) < 0.0)
    assert np.all(np.diff(limits[..., 1], axis=0) > 0.0)


def test_the_interval_is_equivariant() -> None:
    base = SkewedSumReference([0.3], [[0.2, 0.1]], [[0.5, -0.2]], [20.0])
    moved = SkewedSumReference([-0.3e9], [[0.2e9, 0.1e9]], [[-0.5, 0.2]], [20.0])
    np.testing.assert_allclose(-1e9 * base.interval(-3.0)[:, ::-1], moved.interval(-3.0), rtol=1e-12)
    np.testing.assert_allclose(base.log_pvalues(0.1), moved.log_pvalues(-0.1e9), rtol=1e-9)


def test_nothing_is_made_of_missing_errors() -> None:
    single = SkewedReference([1.0, 1.0], [np.nan, 0.0], [0.1, 0.1], [5.0, 5.0])
    total = SkewedSumReference([1.0, 1.0], [[0.1, np.nan], [0.0, 1.0]], [[0.1, 0.1]] * 2, [5.0, 5.0])
    for reference in (single, total):
        assert np.isnan(reference.interval(-3.0)).all()
        assert np.isnan(reference.log_pvalues(0.0)).all()


def test_hall_mends_the_coverage_of_skewed_means() -> None:
    """Exponential rewards, n = 30, 40,000 runs: t covers too little, Hall nearly what it says."""
    rng = np.random.default_rng(20)
    runs, n = 40_000, 30
    rewards = rng.exponential(size=(runs, n))
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    spread = np.sum(centred**2, axis=1)
    g = np.sum(centred**3, axis=1) / spread**1.5
    size = np.sqrt(spread / n / (n - 1))
    df = np.full(runs, n - 1.0)
    plain = StudentReference(rewards.mean(axis=1), size, df).interval(np.log(0.05))
    hall = SkewedReference(rewards.mean(axis=1), size, g, df).interval(np.log(0.05))
    covered = [np.mean((found[:, 0] < 1.0) & (found[:, 1] > 1.0)) for found in (plain, hall)]
    beyond = [np.mean(found[:, 1] < 1.0) for found in (plain, hall)]
    # Four standard errors of a share near .95 are .0044, near .03 they are .0034.
    assert covered[0] < 0.935
    assert covered[1] > 0.945 - 0.0044
    assert beyond[0] > 0.055
    assert beyond[1] < 0.035 + 0.0036
