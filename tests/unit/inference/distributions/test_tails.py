"""Tails in logs against forty digits, and quantiles against the tails."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.distributions.tails import (
    binomial_limits,
    log_binomial_tails,
    log_normal_tail,
    log_student_tail,
    normal_quantile,
    student_quantile,
)


def exact_student(t: float, df: float) -> float:
    with mpmath.workdps(40):
        x = mpmath.mpf(df) / (mpmath.mpf(df) + mpmath.mpf(t) ** 2)
        return float(mpmath.log(mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, x, regularized=True) / 2))


def exact_binomial(successes: int, trials: int, rate: float) -> tuple[float, float]:
    with mpmath.workdps(40):
        theta = mpmath.mpf(rate)
        mass = [
            mpmath.binomial(trials, k) * theta**k * (1 - theta) ** (trials - k) for k in range(trials + 1)
        ]
        at_most, at_least = mpmath.fsum(mass[: successes + 1]), mpmath.fsum(mass[successes:])
        return float(mpmath.log(at_most)), float(mpmath.log(at_least))


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0, 3.7, 10.0, 333.0, 1e4])
@pytest.mark.parametrize("t", [0.0, 1e-12, 1e-3, 0.5, 1.0, 2.0, 20.0, 40.0, 60.0, 1e4])
def test_student_tail(t: float, df: float) -> None:
    assert float(log_student_tail(t, df)) == pytest.approx(exact_student(t, df), rel=1e-13, abs=1e-11)
    assert float(log_student_tail(-t, df)) == float(log_student_tail(t, df))


@pytest.mark.parametrize("df", [1.0, 2.0, 10.0, 998.3, 1e6, 1e9])
@pytest.mark.parametrize("tail", [0.2999, 0.25, 0.025, 1e-4, 1e-10, 1e-90])
def test_student_quantile_keeps_its_digits(tail: float, df: float) -> None:
    log_tail = float(np.log(tail))
    t = float(student_quantile(log_tail, df)[0])
    with mpmath.workdps(250):
        half, square = mpmath.mpf(df) / 2, mpmath.mpf(t) ** 2
        exact = (1 - mpmath.betainc(0.5, half, 0, square / (df + square), regularized=True)) / 2
        density = mpmath.power(1 + square / df, -half - 0.5) / (mpmath.sqrt(df) * mpmath.beta(half, 0.5))
        error = (mpmath.log(exact) - mpmath.mpf(log_tail)) * exact / (density * t)
    assert abs(float(error)) < 1e-13
    assert float(log_student_tail(t, df)) == pytest.approx(log_tail, rel=2e-13)


@pytest.mark.parametrize("edge", [np.log(0.3), -230.0])
def test_student_quantile_is_continuous_where_its_methods_meet(edge: float) -> None:
    df = np.array([1.0, 2.5, 40.0, 1e4])
    below, above = student_quantile(edge * (1 + 1e-13), df), student_quantile(edge * (1 - 1e-13), df)
    np.testing.assert_allclose(below, above, rtol=1e-10)


def test_student_tail_where_the_square_overflows() -> None:
    # The Cauchy tail is 1 / (pi t) far out.
    assert float(log_student_tail(1e200, 1.0)) == pytest.approx(-np.log(np.pi) - 200 * np.log(10), rel=1e-14)


def test_student_tail_without_degrees_of_freedom() -> None:
    values = log_student_tail(2.0, [0.0, -1.0, np.nan, np.inf])
    assert np.isnan(values[:3]).all()
    assert values[3] == pytest.approx(stats.norm.logsf(2.0), rel=1e-14)


def test_normal_tail_and_quantile() -> None:
    assert float(log_normal_tail(-40.0)) == pytest.approx(-804.6084420137538, rel=1e-14)
    for log_tail in (-0.8, -3.0, -700.0, -1e5):
        assert float(log_normal_tail(normal_quantile(log_tail))) == pytest.approx(log_tail, rel=1e-12)


@pytest.mark.parametrize("log_tail", [-0.7, -1.0, -3.0, -100.0, -645.0, -700.0, -5000.0])
def test_student_quantile_inverts_the_tail(log_tail: float) -> None:
    df = np.array([10.0, 33.3, 1e3, 1e5])
    quantile = student_quantile(log_tail, df)
    assert np.isfinite(quantile).all()
    np.testing.assert_allclose(log_student_tail(quantile, df), log_tail, rtol=1e-11)


def test_student_quantile_at_its_ends() -> None:
    quantile = student_quantile(-5000.0, [1.0, np.nan, 0.0])
    assert np.isposinf(quantile[0])
    assert np.isnan(quantile[1:]).all()
    assert student_quantile(np.log(0.025), [np.inf])[0] == pytest.approx(1.959963984540054, rel=1e-14)
    assert student_quantile(np.log(0.5), [3.0])[0] == pytest.approx(0.0, abs=1e-12)
    assert np.isposinf(student_quantile(-np.inf, [3.0])[0])


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 10), (10, 10), (150, 300), (1, 2000)])
@pytest.mark.parametrize("rate", [1e-9, 0.001, 0.3, 0.5, 0.9, 0.9999])
def test_binomial_tails(successes: int, trials: int, rate: float) -> None:
    exact = exact_binomial(successes, trials, rate)
    computed = [float(x) for x in log_binomial_tails(successes, trials, rate)]
    assert computed == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_binomial_tails_at_impossible_rates() -> None:
    at_most, at_least = log_binomial_tails([0, 3, 10], 10, 0.0)
    assert at_most.tolist() == [0.0, 0.0, 0.0]
    assert at_least.tolist() == [0.0, -np.inf, -np.inf]
    at_most, at_least = log_binomial_tails([0, 3, 10], 10, 1.0)
    assert at_most.tolist() == [-np.inf, -np.inf, 0.0]
    assert at_least.tolist() == [0.0, 0.0, 0.0]
    for outside in (-0.1, 1.1):
        assert [float(x) for x in log_binomial_tails(3, 10, outside)] == [-np.inf, -np.inf]
    assert np.isnan(log_binomial_tails(0, 0, 0.5)).all()


@pytest.mark.parametrize("log_tail", [-1.0, -3.7, -50.0, -700.0])
@pytest.mark.parametrize(
    ("successes", "trials"), [(1, 5), (3, 10), (20, 1000), (333, 1000), (10_000, 20_000)]
)
def test_binomial_limits_invert_the_tails(successes: int, trials: int, log_tail: float) -> None:
    lower, _ = binomial_limits(successes, trials, log_tail)
    assert float(log_binomial_tails(successes, trials, lower)[1][0]) == pytest.approx(log_tail, rel=1e-12)
    # The failures' lower limit is one minus the upper limit, and keeps its digits.
    _, upper = binomial_limits(trials - successes, trials, log_tail)
    assert upper[0] == pytest.approx(1.0 - lower[0], rel=1e-12)


def test_binomial_limits_at_all_or_nothing() -> None:
    lower, upper = binomial_limits([0, 10, 0], [10, 10, 0], np.log(0.025))
    assert lower[0] == 0.0
    assert upper[1] == 1.0
    assert upper[0] == pytest.approx(1.0 - 0.025**0.1, rel=1e-13)
    assert lower[1] == pytest.approx(0.025**0.1, rel=1e-13)
    assert np.isnan([lower[2], upper[2]]).all()


def test_binomial_limits_never_round_to_an_excluded_end() -> None:
    lower, upper = binomial_limits([1, 4], [5, 5], -3000.0)
    assert (lower > 0.0).all()
    assert (upper < 1.0).all()
