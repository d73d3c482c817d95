"""References: known values, and p-values that agree with intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.references import (
    BinomialReference,
    NormalReference,
    Reference,
    StudentReference,
)

LOG_ALPHAS = (np.log(0.3), np.log(0.05), np.log(1e-6), -200.0, -700.0, -3000.0)


def excluded(reference: Reference, null: float, log_alpha: float) -> np.ndarray:
    low, high = reference.interval(log_alpha).T
    return (null < low) | (null > high)


def assert_dual_at_the_edges(reference: Reference, log_alpha: float, gap: float = 1e-7) -> None:
    """Just inside each limit the p-value is above alpha, just outside it is below."""
    for row, (low, high) in enumerate(reference.interval(log_alpha)):
        width = gap * (high - low)
        for limit, outwards in ((low, -1.0), (high, 1.0)):
            assert reference.log_pvalues(limit + outwards * width)[row] < log_alpha
            assert reference.log_pvalues(limit - outwards * width)[row] > log_alpha


def test_normal_values() -> None:
    reference = NormalReference(np.array([1.0, -2.0]), np.array([0.5, 4.0]))
    np.testing.assert_allclose(np.exp(reference.log_pvalues(0.0)), 2 * stats.norm.sf([2.0, 0.5]), rtol=1e-14)
    np.testing.assert_allclose(
        reference.interval(np.log(0.1)),
        np.transpose(stats.norm.interval(0.9, [1.0, -2.0], [0.5, 4.0])),
        rtol=1e-14,
    )
    assert reference.log_pvalues(1.0)[0] == 0.0
    assert not reference.exact


def test_student_values() -> None:
    df = np.array([3.0, 40.0])
    reference = StudentReference(np.array([1.0, -2.0]), np.array([0.5, 4.0]), df)
    np.testing.assert_allclose(np.exp(reference.log_pvalues(0.0)), 2 * stats.t.sf([2.0, 0.5], df), rtol=1e-13)
    np.testing.assert_allclose(
        reference.interval(np.log(0.1)),
        np.transpose(stats.t.interval(0.9, df, [1.0, -2.0], [0.5, 4.0])),
        rtol=1e-12,
    )


@pytest.mark.parametrize("successes", [0, 1, 7, 19, 20])
def test_binomial_values(successes: int) -> None:
    reference = BinomialReference(np.array([successes]), np.array([20]))
    exact = stats.binomtest(successes, 20).proportion_ci(0.99, "exact")
    np.testing.assert_allclose(reference.interval(np.log(0.01))[0], [exact.low, exact.high], rtol=1e-10)
    tails = stats.binom.cdf(successes, 20, 0.3), stats.binom.sf(successes - 1, 20, 0.3)
    assert np.exp(reference.log_pvalues(0.3)[0]) == pytest.approx(min(1.0, 2 * min(tails)), rel=1e-12)
    assert reference.exact


def test_binomial_at_impossible_rates() -> None:
    reference = BinomialReference(np.array([0, 3, 20]), np.array([20, 20, 20]))
    assert reference.log_pvalues(0.0).tolist() == [0.0, -np.inf, -np.inf]
    assert reference.log_pvalues(1.0).tolist() == [-np.inf, -np.inf, 0.0]
    for log_alpha in LOG_ALPHAS:
        assert excluded(reference, 0.0, log_alpha).tolist() == [False, True, True]
        assert excluded(reference, 1.0, log_alpha).tolist() == [True, True, False]
        assert excluded(reference, -0.5, log_alpha).all()
        assert excluded(reference, 1.5, log_alpha).all()


@pytest.mark.slow
@pytest.mark.parametrize("log_alpha", LOG_ALPHAS)
def test_symmetric_references_are_dual_at_their_edges(log_alpha: float) -> None:
    rng = np.random.default_rng(5)
    estimate, std_error = rng.normal(size=50), rng.exponential(size=50)
    assert_dual_at_the_edges(NormalReference(estimate, std_error), log_alpha)
    df = np.exp(rng.uniform(np.log(10.0), np.log(1e5), size=50))
    assert_dual_at_the_edges(StudentReference(estimate, std_error, df), log_alpha)


@pytest.mark.slow
@pytest.mark.parametrize("log_alpha", LOG_ALPHAS[:4])
def test_binomial_references_are_dual_at_their_edges(log_alpha: float) -> None:
    rng = np.random.default_rng(6)
    trials = rng.integers(500, 5000, size=(2, 10))
    successes = rng.binomial(trials, rng.uniform(0.2, 0.8, size=(2, 10)))
    assert_dual_at_the_edges(BinomialReference(successes[0], trials[0]), log_alpha)
    means = successes / trials
    difference = BoundedDifferenceReference(means[0], trials[0], means[1], trials[1])
    assert_dual_at_the_edges(difference, log_alpha)


@pytest.mark.parametrize("size", [0.0, np.nan, np.inf, -1.0])
def test_no_usable_standard_error_gives_nan(size: float) -> None:
    for reference in (
        NormalReference(np.array([1.0]), np.array([size])),
        StudentReference(np.array([1.0]), np.array([size]), np.array([5.0])),
    ):
        assert np.isnan(reference.log_pvalues(0.0)).all()
        assert np.isnan(reference.interval(np.log(0.05))).all()


def test_no_trials_give_nan() -> None:
    reference = BinomialReference(np.array([0, 1]), np.array([0, 4]))
    assert np.isnan(reference.log_pvalues(0.5)).tolist() == [True, False]
    assert np.isnan(reference.interval(np.log(0.05))).tolist() == [[True, True], [False, False]]
    difference = BoundedDifferenceReference(*(np.array([x]) for x in (0.25, 4, 0.0, 0)))
    assert np.isnan(difference.log_pvalues(0.0)).all()
    assert np.isnan(difference.log_pvalues(2.0)).all()
    assert np.isnan(difference.interval(np.log(0.05))).all()


@pytest.mark.parametrize(("successes", "trials"), [(5, 4), (-1, 4), (1.5, 4), (1, 4.5), (np.nan, 4)])
def test_counts_are_checked(successes: float, trials: float) -> None:
    with pytest.raises(ParameterError, match="counts with 0 <= successes <= trials"):
        BinomialReference(np.array([successes]), np.array([trials]))


def test_references_keep_their_own_numbers() -> None:
    estimate = np.array([1.0])
    reference = NormalReference(estimate, np.array([1.0]))
    estimate[0] = 100.0
    assert reference.estimate[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        reference.estimate[0] = 2.0
    assert isinstance(reference, Reference)
