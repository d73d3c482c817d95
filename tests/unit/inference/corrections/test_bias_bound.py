"""The worst-case bias of arm means, against exact biases of small private designs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.arm_bias import bias_bound, trivial_bias_bound


def test_formula_takes_the_nearer_end_of_the_unit_interval() -> None:
    bound = bias_bound(PrivacyGuarantee(0.1), 500, [0.5, 0.9, 0.2])
    np.testing.assert_allclose(bound, math.expm1(0.1) * np.array([0.5, 0.1, 0.2]), rtol=1e-14)


def test_delta_costs_once_a_round() -> None:
    bound = bias_bound(PrivacyGuarantee(0.1, delta=1e-4), 500, [0.3])
    assert bound[0] == pytest.approx((math.expm1(0.1) + 0.05) * 0.3, rel=1e-14)


def test_record_level_guarantee_serves_and_anticipating_does_not() -> None:
    expected = bias_bound(PrivacyGuarantee(0.1), 10, [0.3])
    np.testing.assert_array_equal(bias_bound(PrivacyGuarantee(0.1, unit="record"), 10, [0.3]), expected)
    with pytest.raises(ParameterError, match="anticipating"):
        bias_bound(PrivacyGuarantee(0.1, unit="record", notion="anticipating"), 10, [0.3])


def test_infinite_and_huge_epsilon_bound_nothing() -> None:
    for epsilon in (math.inf, 1000.0):
        bound = bias_bound(PrivacyGuarantee(epsilon), 10, [0.0, 0.3, 1.0])
        np.testing.assert_array_equal(bound, [0.0, math.inf, 0.0])


def test_no_privacy_loss_means_no_bias() -> None:
    np.testing.assert_array_equal(bias_bound(PrivacyGuarantee(0.0), 10, [0.3, 0.8]), [0.0, 0.0])


def test_trivial_bound_is_what_the_range_gives() -> None:
    np.testing.assert_array_equal(trivial_bias_bound([0.0, 0.25, 0.5, 1.0]), [0.0, 0.75, 0.5, 0.0])
    vacuous = bias_bound(PrivacyGuarantee(1.0), 10, [0.5, 0.9]) >= trivial_bias_bound([0.5, 0.9])
    assert vacuous.tolist() == [True, False]


def test_scalar_mean_is_one_arm() -> None:
    assert bias_bound(PrivacyGuarantee(0.1), 10, 0.5).shape == (1,)


def test_every_bad_argument_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        bias_bound(PrivacyGuarantee(0.1, notion="anticipating"), 0, [0.2, 1.5])
    assert len(caught.value.problems) == 3
    assert "got 1.5 for arm 1" in str(caught.value)
    with pytest.raises(ParameterError, match="got nan for arm 0"):
        bias_bound(PrivacyGuarantee(0.1), 10, [math.nan])
    with pytest.raises(ParameterError, match="one value per arm"):
        bias_bound(PrivacyGuarantee(0.1), 10, [[0.1]])
    with pytest.raises(ParameterError, match=r"got -0\.1 for arm 0"):
        trivial_bias_bound([-0.1])
    for horizon in (1.5, True, "10"):
        with pytest.raises(ParameterError, match="horizon must be a whole number"):
            bias_bound(PrivacyGuarantee(0.1), horizon, [0.1])  # type: ignore[arg-type]


def _exact_bias(epsilon: float, mean: float, rounds: int) -> float:
    """Bias of an arm that is left for good at its first randomised response of 1.

    Every reward is a Bernoulli(mean) bit that the design sees through randomised response, so that the
    actions are epsilon-differentially private in the rewards.
    """
    truthful = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    expected = 0.0
    for rewards in itertools.product((0, 1), repeat=rounds):
        going_on = math.prod(mean if reward else 1.0 - mean for reward in rewards)
        for pulls, reward in enumerate(rewards, start=1):
            response = truthful if reward else 1.0 - truthful
            left_here = 1.0 if pulls == rounds else response
            expected += going_on * left_here * sum(rewards[:pulls]) / pulls
            going_on *= 1.0 - response
    return expected - mean


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8])
def test_exact_bias_of_a_stopping_design_is_within_the_bound(mean: float) -> None:
    for epsilon in (0.01, 0.3, 1.0, 3.0):
        bias = _exact_bias(epsilon, mean, rounds=8)
        bound = bias_bound(PrivacyGuarantee(epsilon), 8, [mean])[0]
        assert 0.0 < bias <= bound


def test_the_bound_is_not_loose_by_an_order_of_magnitude() -> None:
    ratio = _exact_bias(0.01, 0.1, rounds=8) / bias_bound(PrivacyGuarantee(0.01), 8, [0.1])[0]
    assert ratio > 0.25
