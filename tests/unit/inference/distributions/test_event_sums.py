"""Limits of weighted sums of few events, and the tests that agree with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.distributions.event_sums import EventSumReference, EventSums, event_sums, gamma_limits

SUMS = EventSums(
    np.array([[0.03, 0.01], [0.02, 0.0], [0.0, 0.0]]),
    np.array([[4e-4, 1e-4], [2e-4, 0.0], [0.0, 0.0]]),
    np.array([[0.02, 0.01], [0.015, 0.0], [0.01, 0.0]]),
)
ESTIMATE = np.array([0.02, 0.018, 0.0])


def literal(row: int, alpha: float) -> tuple[float, float]:
    """The interval by the formulas, with scipy's distribution."""
    down, up = [], []
    for y, v, w in zip(SUMS.total[row], SUMS.variance[row], SUMS.largest[row], strict=True):
        low = stats.gamma.ppf(alpha / 2, y * y / v, scale=v / y) if y else 0.0
        high = stats.gamma.isf(alpha / 2, (y + w) ** 2 / (v + w * w), scale=(v + w * w) / (y + w)) if w else y
        down.append(y - low)
        up.append(high - y)
    return ESTIMATE[row] - np.hypot(down[0], up[1]), ESTIMATE[row] + np.hypot(up[0], down[1])


@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_equal_weights_give_the_exact_limits_of_a_poisson_mean(count: int) -> None:
    weight, tail = 0.3, 0.025
    total, variance, largest = (np.array([one]) for one in (count * weight, count * weight**2, weight))
    low, high = gamma_limits(total, variance, largest, np.array([tail]))
    exact = stats.chi2.ppf(tail, 2 * count) / 2 if count else 0.0
    assert low[0] == pytest.approx(weight * exact, rel=1e-12)
    assert high[0] == pytest.approx(weight * stats.chi2.isf(tail, 2 * count + 2) / 2, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_intervals_are_those_of_the_formulas(alpha: float) -> None:
    found = EventSumReference(ESTIMATE, SUMS).interval(np.log(alpha))
    np.testing.assert_allclose(found, [literal(row, alpha) for row in range(3)], rtol=1e-10)


def test_a_null_at_a_limit_has_the_level_as_its_p_value() -> None:
    law = EventSumReference(ESTIMATE, SUMS)
    for log_alpha in np.log([0.9, 0.05, 1e-9, 1e-100]):
        for row, ends in enumerate(law.interval(log_alpha)[:2].tolist()):
            for end in ends if log_alpha > -30 else ends[1:]:  # the lower ends differ by less than rounding
                assert law.log_pvalues(end)[row] == pytest.approx(log_alpha, rel=1e-8)
    assert law.log_pvalues(-0.003)[1] == -np.inf  # lower than without any event
    assert law.log_pvalues(0.018)[1] == 0.0
    statistics = law.statistics(0.1)
    np.testing.assert_allclose(2 * stats.norm.sf(-statistics), np.exp(law.log_pvalues(0.1)), rtol=1e-9)
    assert (statistics < 0.0).all()


def test_events_are_divided_by_the_side_to_which_they_move_an_estimate() -> None:
    share = np.array([[0.1, 0.2], [0.3, -0.1], [0.1, -0.2], [0.2, -0.4]])
    found = event_sums(share, np.array([1.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found.total[0], [0.3, 0.0])  # of four rounds, two have a reward of 1
    np.testing.assert_allclose(found.variance[0], [0.05, 0.0])
    np.testing.assert_allclose(found.largest[0], [0.3, 0.0])
    assert np.isnan(found.total[1]).all()  # one round raises the second estimate, and shows no common reward
    none = event_sums(share[:2, :1], np.array([0.0, 0.0]))
    np.testing.assert_allclose([none.total, none.largest], 0.0)
    other = event_sums(np.array([[0.1], [0.3], [0.0]]), np.array([0.0, 0.0, 2.0]))
    np.testing.assert_allclose([other.total[0], other.largest[0]], [[0.0, 0.0], [0.6, 0.0]])
    failures = event_sums(share[:, :1], np.array([0.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose([failures.total[0], failures.largest[0]], [[0.0, 0.1], [0.0, 0.3]])


def test_each_side_has_its_own_common_reward() -> None:
    share = np.array([0.1, 0.1, 0.1, -0.2, -0.2, -0.2])[:, None]
    found = event_sums(share, np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(found.total, [[0.3, 0.0]])  # a success that raises it, a failure likewise
    np.testing.assert_allclose(found.variance, [[0.05, 0.0]])
    np.testing.assert_allclose(found.largest, [[0.3, 0.0]])


def test_variances_are_not_below_squared_standard_errors() -> None:
    enlarged = SUMS.enlarged(np.sqrt([1e-3, 1e-4, 1.0]))
    np.testing.assert_allclose(enlarged.variance, [[8e-4, 2e-4], [2e-4, 0.0], [0.0, 0.0]])
