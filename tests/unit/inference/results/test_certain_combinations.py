"""Restrictions that hold whatever the data are: their variance is rounding, and is not taken for more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.inference.results.hypotheses import linear_hypothesis, linear_test, wald_statistic

TERMS = ["a", "b", "mix"]


@pytest.mark.parametrize("seed", range(40))
def test_a_mixture_of_two_estimates_is_their_mixture(seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.1, 0.9)
    influence = rng.normal(size=(50, 2)) * 0.1
    influence = np.column_stack([influence, influence @ [share, 1.0 - share]])
    covariance = influence.T @ influence
    estimate = rng.normal(size=2)
    estimate = np.append(estimate, estimate @ [share, 1.0 - share])
    certain = [-share, share - 1.0, 1.0]

    alone = linear_hypothesis("test", [certain], TERMS)
    statistic, df, _ = wald_statistic(estimate, covariance, alone)
    assert (math.isnan(statistic), df) == (True, 0)
    assert math.isnan(linear_test(estimate, covariance, alone).std_error[0])

    both = wald_statistic(estimate, covariance, linear_hypothesis("test", [certain, [1, -1, 0]], TERMS))
    gap = estimate[0] - estimate[1]
    expected = gap**2 / (covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    assert both[1] == 1
    assert both[0] == pytest.approx(expected, rel=1e-7)


def test_a_violated_certainty_has_an_infinite_statistic() -> None:
    covariance = np.array([[1.0, 1.0], [1.0, 1.0]])
    hypothesis = linear_hypothesis("test", [[1, -1], [1, 0]], ["a", "b"])
    statistic, df, log_pvalue = wald_statistic(np.array([1.0, 2.0]), covariance, hypothesis)
    assert (statistic, df, log_pvalue) == (math.inf, 1, -math.inf)


def test_nearly_equal_estimates_still_have_a_test() -> None:
    covariance = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    hypothesis = linear_hypothesis("test", [[1, -1]], ["a", "b"])
    statistic, df, _ = wald_statistic(np.array([1.0, 1.0 + 1e-4]), covariance, hypothesis)
    assert df == 1
    assert statistic == pytest.approx(1e-8 / 2e-9, rel=1e-5)
