"""Differences of means in small samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.two_samples import (
    FEW_EVENTS,
    DifferenceReference,
    agresti_caffo,
    choose_difference,
    difference_in_means,
    difference_intervals,
    few_events,
    welch,
)


def tallies(values):
    return len(values), float(np.sum(values)), float(np.sum(np.square(values)))


def test_welch_equals_scipy_and_statsmodels():
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    rng = np.random.default_rng(1)
    for n1, n0 in [(2, 2), (5, 40), (300, 7)]:
        treated, control = rng.normal(1.0, 3.0, n1), rng.uniform(0, 1, n0)
        result = difference_in_means(*tallies(treated), *tallies(control))
        test = stats.ttest_ind(treated, control, equal_var=False)
        reference = DifferenceReference(_row(result))
        assert float(result.df) == pytest.approx(test.df, rel=1e-10)
        assert float(np.exp(reference.log_pvalues(0.0)[0])) == pytest.approx(test.pvalue, rel=1e-9)
        expected = test.confidence_interval(0.9)
        limits = reference.interval(float(np.log(0.1)))[0]
        np.testing.assert_allclose(limits, [expected.low, expected.high], rtol=1e-9)
        compared = CompareMeans(DescrStatsW(treated), DescrStatsW(control))
        np.testing.assert_allclose(limits, compared.tconfint_diff(0.1, usevar="unequal"), rtol=1e-9)


def _row(difference):
    return type(difference)(
        *(np.atleast_1d(getattr(difference, name)) for name in difference.__dataclass_fields__)
    )


def test_welch_from_moments_equals_welch_from_tallies():
    treated, control = np.array([1.0, 4.0, 6.0]), np.array([2.0, 2.5, 1.0, 0.0])
    direct = welch(3, treated.mean(), treated.var(ddof=1), 4, control.mean(), control.var(ddof=1))
    summed = difference_in_means(*tallies(treated), *tallies(control))
    np.testing.assert_allclose(summed.std_error, direct.std_error, rtol=1e-13)
    np.testing.assert_allclose(summed.df, direct.df, rtol=1e-13)
    assert float(direct.estimate) == pytest.approx(11 / 3 - 5.5 / 4)


@pytest.mark.parametrize(
    ("treated", "control", "estimate"),
    [
        ([], [1.0, 2.0], np.nan),
        ([3.0], [1.0, 2.0], 1.5),
        ([0.1] * 7, [0.3] * 9, -0.2),
        ([2.0, 4.0], [], np.nan),
    ],
)
def test_what_cannot_be_computed_is_nan(treated, control, estimate):
    result = difference_in_means(*tallies(treated), *tallies(control))
    np.testing.assert_allclose(result.estimate, estimate)
    assert np.isnan(result.std_error)
    reference = DifferenceReference(_row(result))
    assert np.isnan(reference.log_pvalues(0.0)).all()
    assert np.isnan(reference.interval(-3.0)).all()


def test_one_constant_arm_leaves_the_other_ones_degrees_of_freedom():
    result = difference_in_means(*tallies([1.0, 1.0, 1.0]), *tallies([0.0, 2.0, 4.0, 6.0]))
    assert float(result.df) == pytest.approx(3.0)
    assert float(result.std_error) == pytest.approx(np.sqrt(20 / 3 / 4))


def test_agresti_caffo_follows_the_published_formula():
    result = agresti_caffo(10, 9, 10, 1)
    rate1, rate0 = 10 / 12, 2 / 12
    error = np.sqrt(rate1 * (1 - rate1) / 12 + rate0 * (1 - rate0) / 12)
    assert float(result.estimate) == pytest.approx(0.8)
    limits = DifferenceReference(_row(result)).interval(float(np.log(0.05)))[0]
    z = stats.norm.isf(0.025)
    np.testing.assert_allclose(limits, [rate1 - rate0 - z * error, rate1 - rate0 + z * error], rtol=1e-12)


def test_agresti_caffo_equals_statsmodels():
    from statsmodels.stats.proportion import confint_proportions_2indep

    for s1, n1, s0, n0 in [(0, 20, 3, 25), (7, 9, 2, 30), (0, 5, 0, 6), (11, 40, 9, 13)]:
        reference = DifferenceReference(_row(agresti_caffo(n1, s1, n0, s0)))
        expected = confint_proportions_2indep(s1, n1, s0, n0, method="agresti-caffo", compare="diff")
        np.testing.assert_allclose(reference.interval(float(np.log(0.05)))[0], expected, rtol=1e-12)


def test_agresti_caffo_stays_within_the_possible_differences():
    reference = DifferenceReference(_row(agresti_caffo(2, 2, 2, 0)))
    assert reference.interval(float(np.log(0.001)))[0, 1] == 1.0
    assert reference.log_pvalues(1.2)[0] == -np.inf
    assert reference.log_pvalues(1.0)[0] > np.log(0.001)


@pytest.mark.parametrize("empty", [0, 1])
def test_agresti_caffo_does_not_invent_an_effect_for_an_empty_arm(empty):
    counts = [(8, 3), (8, 3)]
    counts[empty] = (0, 0)
    result = agresti_caffo(*counts[0], *counts[1])
    assert np.isnan(result.estimate)
    assert np.isnan(result.std_error)


def test_few_events_looks_at_successes_and_failures_of_both_arms():
    n, enough = 100, FEW_EVENTS
    cases = [(enough, n - enough), (enough - 1, 50), (50, n - enough + 1), (50, 50)]
    few = [bool(few_events(n, s1, n, s0)) for s1, s0 in cases]
    assert few == [False, True, True, False]
    assert FEW_EVENTS == 10


def mixed():
    counts, ones = (
        (np.array([60.0, 60.0]), np.array([40.0, 40.0])),
        (np.array([30.0, 57.0]), np.array([12.0, 33.0])),
    )
    arms = (counts[0], ones[0], counts[1], ones[1])
    plain = difference_in_means(counts[0], ones[0], ones[0], counts[1], ones[1], ones[1])
    return plain, agresti_caffo(*arms), few_events(*arms)


def test_mixed_reference_takes_each_group_from_its_own_law():
    plain, adjusted, few = mixed()
    np.testing.assert_array_equal(few, [False, True])
    both = DifferenceReference(choose_difference(plain, adjusted, few))
    parts = DifferenceReference(plain), DifferenceReference(adjusted)
    for function in ("log_pvalues", "interval"):
        argument = 0.1 if function == "log_pvalues" else float(np.log(0.05))
        values = [getattr(part, function)(argument) for part in parts]
        expected = np.array([values[0][0], values[1][1]])
        np.testing.assert_allclose(getattr(both, function)(argument), expected, rtol=1e-12)
    assert [reference.name for reference in (*parts, both)] == [
        "Welch t",
        "Agresti-Caffo",
        "Welch t or Agresti-Caffo",
    ]


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-4, 1e-12])
def test_p_value_is_at_most_alpha_exactly_where_the_interval_excludes_the_null(alpha):
    reference = DifferenceReference(choose_difference(*mixed()))
    limits = reference.interval(float(np.log(alpha)))
    rng = np.random.default_rng(2)
    nulls = [*rng.uniform(-1.2, 1.2, 200), *(limits + 1e-9).ravel(), *(limits - 1e-9).ravel()]
    for null in nulls:
        accepted = (limits[:, 0] <= null) & (null <= limits[:, 1])
        np.testing.assert_array_equal(reference.log_pvalues(null) > np.log(alpha), accepted)


def test_many_replications_equal_one_at_a_time():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 30, (200, 3, 2))
    ones = rng.binomial(counts, 0.4)
    estimate, low, high = difference_intervals(counts, ones, ones, binary=True, alpha=0.1)
    for r, g in [(0, 0), (17, 2), (42, 1), (199, 0)]:
        (n0, n1), (s0, s1) = counts[r, g], ones[r, g]
        single = choose_difference(
            _row(difference_in_means(n1, s1, s1, n0, s0, s0)),
            _row(agresti_caffo(n1, s1, n0, s0)),
            np.atleast_1d(few_events(n1, s1, n0, s0)),
        )
        limits = DifferenceReference(single).interval(float(np.log(0.1)))[0]
        np.testing.assert_allclose([low[r, g], high[r, g]], limits, rtol=1e-9)
        np.testing.assert_array_equal(estimate[r, g], single.estimate[0])
    np.testing.assert_array_equal(np.isnan(estimate), (counts == 0).any(axis=-1))


def test_rewards_that_are_not_binary_use_welch_alone():
    counts, sums, squares = np.array([[[4, 5]]]), np.array([[[1.0, 2.0]]]), np.array([[[1.0, 1.5]]])
    plain = difference_in_means(5, 2.0, 1.5, 4, 1.0, 1.0)
    _, low, high = difference_intervals(counts, sums, squares, binary=False)
    half = stats.t.isf(0.025, plain.df) * plain.std_error
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [0.15 - half, 0.15 + half], rtol=1e-9)


def test_alpha_out_of_range_is_refused():
    with pytest.raises(ParameterError, match="alpha"):
        difference_intervals([[[4, 5]]], [[[1, 2]]], [[[1, 2]]], binary=True, alpha=0.95)
