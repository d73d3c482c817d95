"""The largest of several t statistics: simultaneous intervals of terms with Student's law."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.distributions.student_sums import max_student_tail
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.results.multiplicity import familywise_level, max_normal_tail
from adaptinf.typing import FloatArray


def equal(rho: float, size: int) -> FloatArray:
    matrix = np.full((size, size), rho)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def one_factor(rho: float, size: int, limit: float, df: float) -> float:
    """Chance that any |T| is beyond a limit, with one common factor: a double integral."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    u = 9.0 * nodes

    def inside(at: float) -> float:
        low, high = ((sign * at - math.sqrt(rho) * u) / math.sqrt(1 - rho) for sign in (-1, 1))
        each = stats.norm.cdf(high) - stats.norm.cdf(low)
        return float(9.0 * (weights * each**size * stats.norm.pdf(u)).sum())

    def integrand(s: float) -> float:
        return inside(limit * s / math.sqrt(df)) * float(stats.chi.pdf(s, df))

    return 1.0 - float(integrate.quad(integrand, *stats.chi.ppf([1e-12, 1 - 1e-12], df), limit=100)[0])


@pytest.mark.parametrize(("rho", "size", "df"), [(0.5, 3, 6.0), (0.5, 10, 12.0), (0.1, 5, 40.0)])
def test_against_the_integral_over_a_common_factor(rho: float, size: int, df: float) -> None:
    for limit in (2.0, 3.5):
        level = 2.0 * float(stats.t.sf(limit, df))
        found = max_student_tail(equal(rho, size), df)(level)
        assert found == pytest.approx(one_factor(rho, size, limit, df), abs=3e-4)


def test_against_dunnett_of_scipy() -> None:
    rng = np.random.default_rng(4)
    samples = [rng.normal(0.5 * (j == 1), 1.0, 7) for j in range(5)]
    theirs = stats.dunnett(*samples[1:], control=samples[0], random_state=1)
    tail = max_student_tail(equal(0.5, 4), 30.0)
    levels = 2.0 * stats.t.sf(np.abs(theirs.statistic), 30.0)
    np.testing.assert_allclose([tail(float(level)) for level in levels], theirs.pvalue, atol=1.5e-3)


def test_limits() -> None:
    many = max_student_tail(equal(0.5, 4), 1e9)
    assert many(0.02) == pytest.approx(max_normal_tail(0.02, equal(0.5, 4), 4), abs=5e-5)
    assert max_student_tail(equal(1.0, 4), 7.0)(0.03) == pytest.approx(0.03, rel=1e-3)
    assert max_student_tail(np.eye(1), 7.0)(0.03) == 0.03
    far = max_student_tail(equal(0.3, 3), 5.0)(1e-30)
    assert 1e-30 < far <= 3e-30
    assert [many(0.0), many(1.0)] == [0.0, 1.0]


def student_result(df: FloatArray, covariance: FloatArray) -> Results:
    size = np.sqrt(np.diag(covariance))
    estimate = np.array([0.1, 0.5, 0.9])[: len(df)]
    return Results(
        model="ArmMeans",
        estimands=tuple(Estimand("arm-mean", arm=arm) for arm in range(len(df))),
        terms=tuple("abc"[: len(df)]),
        estimate=estimate,
        std_error=size,
        covariance=covariance,
        reference=StudentReference(estimate, size, df),
        estimator="aipw",
        facts=LogFacts(n_rounds=50),
    )


def test_intervals_have_the_fewest_degrees_of_freedom_of_any_term() -> None:
    df, covariance = np.array([30.0, 6.0, 11.0]), 0.04 * equal(0.5, 3)
    result = student_result(df, covariance)
    limits, p = result.conf_int_simultaneous(), result.pvalues_simultaneous()
    tail = max_student_tail(equal(0.5, 3), 6.0)
    half = stats.t.isf(0.5 * familywise_level(tail, 0.05, 3), 6.0) * 0.2
    np.testing.assert_allclose(limits["high"] - result.params, half, rtol=1e-8)
    assert half / 0.2 == pytest.approx(3.05, abs=0.1)
    for term in "abc":
        p_term = tail(2.0 * float(stats.t.sf(result.params[term] / 0.2, 6.0)))
        assert p[term] == pytest.approx(p_term, rel=1e-8)
        assert (limits["low"][term] > 0) == (p[term] <= 0.05)
    own = student_result(df, covariance).conf_int_simultaneous(method="bonferroni")
    pd.testing.assert_frame_equal(own, result.conf_int(0.05 / 3), rtol=1e-9)


def test_terms_without_a_standard_error_do_not_count() -> None:
    covariance = np.diag([0.04, np.nan, 0.04])
    result = student_result(np.array([30.0, 2.0, 11.0]), covariance)
    limits = result.conf_int_simultaneous()
    level = familywise_level(max_student_tail(np.eye(2), 11.0), 0.05, 2)
    assert limits["high"]["a"] - 0.1 == pytest.approx(0.2 * stats.t.isf(0.5 * level, 11.0), rel=1e-8)
    assert np.isnan(limits["low"]["b"])
