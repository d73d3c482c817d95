"""The max-information correction: formulas, edges, refusals and what it says of itself."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf.claims.privacy import max_information as claims
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import (
    Correction,
    VacuousCorrectionWarning,
    correct_pvalues,
    corrected_level,
    log_correct_pvalues,
    log_corrected_level,
    max_information,
)
from adaptinf.inference.corrections.information_of_log import correction_for, why_not


@dataclass
class SomeLog:
    reward_guarantee: PrivacyGuarantee | None
    n_rounds: int = 1000
    feedback_rounds: int | None = None


def _correction(epsilon: float, n: int, bound: str = "max-information") -> Correction:
    return Correction(epsilon, n, PrivacyGuarantee(epsilon), bound)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "bits"), [(0.01, 4.793), (0.02, 12.499), (0.05, 53.093), (0.1, 179.005), (0.3, 1410.857)]
)
def test_bits_of_a_long_run_at_beta_one_hundredth(epsilon: float, bits: float) -> None:
    assert max_information(epsilon, 20_190, beta=0.01) == pytest.approx(bits, abs=6e-4)


def test_bits_by_hand() -> None:
    nats = 0.5 + 0.1 * math.sqrt(100 * math.log(200) / 2)
    assert max_information(0.1, 100, 0.01) == pytest.approx(nats / math.log(2), rel=1e-14)


def test_epsilon_n_bounds_the_information() -> None:
    assert max_information(0.5, 2, 0.01) == pytest.approx(1.0 / math.log(2), rel=1e-15)
    assert max_information(0.1, 100, 0.0) == pytest.approx(10.0 / math.log(2), rel=1e-15)
    assert max_information(0.1, 100, 1.0) == pytest.approx((0.5 + math.sqrt(math.log(2) / 2)) / math.log(2))


def test_levels_that_a_nominal_five_percent_needs() -> None:
    assert corrected_level(0.05, epsilon=0.1, n=100) == pytest.approx(4.856277e-3, rel=1e-6)
    assert corrected_level(0.05, epsilon=0.1, n=1000) == pytest.approx(1.685069e-6, rel=1e-6)
    at_one_hundredth = 0.04 / 2.0 ** max_information(0.1, 100, 0.01)
    assert at_one_hundredth == pytest.approx(4.76e-3, abs=5e-6)


@pytest.mark.parametrize(("epsilon", "n"), [(0.0, 1000), (0.0, 1)])
@pytest.mark.parametrize("bound", ["max-information", "moment"])
def test_nothing_to_correct_without_adaptivity(epsilon: float, n: int, bound: str) -> None:
    p = np.array([0.0, 1e-300, 0.03, 1.0, np.nan])
    np.testing.assert_array_equal(correct_pvalues(p, epsilon=epsilon, n=n, bound=bound), p)  # type: ignore[arg-type]
    assert corrected_level(0.05, epsilon=epsilon, n=n, bound=bound) == 0.05  # type: ignore[arg-type]


def test_zero_stays_zero_and_nan_stays_nan() -> None:
    corrected = correct_pvalues([0.0, math.nan, 1.0], epsilon=0.1, n=100)
    np.testing.assert_array_equal(corrected, [0.0, np.nan, 1.0])
    logs = log_correct_pvalues([-math.inf, math.nan, 0.0], epsilon=0.1, n=100)
    np.testing.assert_array_equal(logs, [-np.inf, np.nan, 0.0])
    np.testing.assert_array_equal(
        log_correct_pvalues([-math.inf, math.nan], epsilon=0.1, n=100, bound="moment"), [-np.inf, np.nan]
    )


def test_shape_is_kept() -> None:
    p = np.full((2, 3), 1e-4)
    assert correct_pvalues(p, epsilon=0.1, n=100).shape == (2, 3)
    assert correct_pvalues([], epsilon=0.1, n=100).shape == (0,)
    assert isinstance(correct_pvalues(1e-4, epsilon=0.1, n=100), float)
    one = correct_pvalues(1e-4, epsilon=0.1, n=100)
    series = pd.Series([1e-4, 0.5], index=["b", "a"], name="p")
    expected = pd.Series([one, 1.0], index=["b", "a"], name="p")
    pd.testing.assert_series_equal(correct_pvalues(series, epsilon=0.1, n=100), expected)
    pd.testing.assert_series_equal(np.exp(log_correct_pvalues(np.log(series), epsilon=0.1, n=100)), expected)


def test_fixed_beta_is_the_formula() -> None:
    factor = 2.0 ** max_information(0.1, 100, 0.01)
    corrected = correct_pvalues([0.0, 1e-4, 0.5], epsilon=0.1, n=100, beta=0.01)
    np.testing.assert_allclose(corrected, [0.01, 1e-4 * factor + 0.01, 1.0], rtol=1e-14)
    no_failure = correct_pvalues(1e-3, epsilon=0.1, n=10, beta=0.0)
    assert no_failure == pytest.approx(1e-3 * math.e, rel=1e-14)


@pytest.mark.parametrize("bound", ["max-information", "moment"])
def test_rounding_never_makes_a_corrected_pvalue_the_smaller_one(bound: str) -> None:
    p = np.geomspace(1e-300, 1.0, 500)
    corrected = correct_pvalues(p, epsilon=1e-17, n=1, bound=bound)  # type: ignore[arg-type]
    assert np.all(corrected >= p)
    np.testing.assert_allclose(corrected, p, rtol=1e-12)


def test_few_rounds_use_epsilon_n() -> None:
    assert corrected_level(0.05, epsilon=0.01, n=1) == pytest.approx(0.05 * math.exp(-0.01), rel=1e-14)
    assert correct_pvalues(1e-5, epsilon=0.5, n=2) == pytest.approx(1e-5 * math.e, rel=1e-14)


def test_moment_bound_in_closed_form() -> None:
    logarithm = math.log(1e6)
    expected = math.exp(-logarithm + 0.1 * math.sqrt(1000 * logarithm / 2))
    assert correct_pvalues(1e-6, epsilon=0.1, n=1000, bound="moment") == pytest.approx(expected, rel=1e-13)
    level = corrected_level(0.05, epsilon=0.1, n=1000, bound="moment")
    assert level == pytest.approx(4.0e-5, rel=0.05)
    assert correct_pvalues(level, epsilon=0.1, n=1000, bound="moment") == pytest.approx(0.05, rel=1e-12)


def test_vacuous_correction_gives_ones_and_one_warning() -> None:
    with pytest.warns(VacuousCorrectionWarning, match=r"epsilon = 0\.3 and n = 20190") as caught:
        corrected = correct_pvalues([0.0, 1e-300, 0.5, math.nan], epsilon=0.3, n=20_190)
    assert len(caught) == 1
    assert issubclass(VacuousCorrectionWarning, AdaptinfWarning)
    np.testing.assert_array_equal(corrected, [1.0, 1.0, 1.0, np.nan])
    with pytest.warns(VacuousCorrectionWarning):
        assert correct_pvalues(0.0, epsilon=0.1, n=100, beta=0.05) == 1.0


def test_useful_correction_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        correct_pvalues([1e-300, 0.5], epsilon=0.1, n=20_190)
        correct_pvalues(1e-3, epsilon=0.1, n=100, beta=0.04)


def test_logarithms_agree_with_plain_numbers() -> None:
    p = np.array([1e-280, 1e-30, 1e-4, 0.02])
    logs = log_correct_pvalues(np.log(p), epsilon=0.05, n=2000)
    np.testing.assert_allclose(np.exp(logs), correct_pvalues(p, epsilon=0.05, n=2000), rtol=1e-12)


def test_every_bad_argument_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        correct_pvalues([0.5, -0.1, 1.2], epsilon=-1.0, n=2.5, beta=1.0, bound="tight")  # type: ignore[arg-type]
    text = str(caught.value)
    for part in ("epsilon must", "n must", "beta must", "bound must", "2 of 3", "first: -0.1"):
        assert part in text


@pytest.mark.parametrize("epsilon", [math.inf, math.nan, -0.1, "0.1", True])
def test_epsilon_must_be_finite_and_not_negative(epsilon: float) -> None:
    for call in (
        lambda: max_information(epsilon, 10, 0.1),
        lambda: correct_pvalues(0.1, epsilon=epsilon, n=10),
        lambda: log_correct_pvalues(-1.0, epsilon=epsilon, n=10),
        lambda: corrected_level(0.05, epsilon=epsilon, n=10),
        lambda: log_corrected_level(-1.0, epsilon=epsilon, n=10),
    ):
        with pytest.raises(ParameterError, match="epsilon must be a finite number"):
            call()


@pytest.mark.parametrize("n", [-1, 1.5, math.nan, math.inf, None])
def test_n_must_count_rounds(n: int) -> None:
    with pytest.raises(ParameterError, match="n must be a whole number"):
        max_information(0.1, n, 0.1)


def test_a_correction_for_no_rounds_is_a_mistake() -> None:
    for call in (
        lambda: correct_pvalues(0.1, epsilon=0.1, n=0),
        lambda: corrected_level(0.05, epsilon=0.1, n=0),
    ):
        with pytest.raises(ParameterError, match="n must be a whole number of rounds, 1 or more, got 0"):
            call()
    assert max_information(0.1, 0, 0.1) == 0.0


def test_ranges_of_the_other_arguments() -> None:
    with pytest.raises(ParameterError, match="beta must be in"):
        max_information(0.1, 10, 1.1)
    with pytest.raises(ParameterError, match="'optimal' or a number"):
        correct_pvalues(0.1, epsilon=0.1, n=10, beta="best")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="the moment bound has no beta"):
        correct_pvalues(0.1, epsilon=0.1, n=10, beta=0.01, bound="moment")
    with pytest.raises(ParameterError, match=r"log_p must lie in \[-inf, 0\]"):
        log_correct_pvalues([0.1, -1.0], epsilon=0.1, n=10)
    for alpha in (1.0, 0.95, 0.5, -0.1, math.nan, True):
        with pytest.raises(ParameterError, match=r"alpha must be between 0 and 0\.5"):
            corrected_level(alpha, epsilon=0.1, n=10)
    for log_alpha in (0.0, math.nan):
        with pytest.raises(ParameterError, match="log_alpha must be below 0"):
            log_corrected_level(log_alpha, epsilon=0.1, n=10)
    assert corrected_level(0.0, epsilon=0.1, n=10) == 0.0


def test_correction_is_the_functions() -> None:
    correction = _correction(0.1, 1000)
    assert correction.bits(0.02) == max_information(0.1, 1000, 0.02)
    assert correction.level(math.log(0.05)) == log_corrected_level(math.log(0.05), epsilon=0.1, n=1000)
    logs = np.array([-30.0, -8.0])
    np.testing.assert_array_equal(correction.apply(logs), log_correct_pvalues(logs, epsilon=0.1, n=1000))
    beta = correction.beta(0.05)
    assert 2.0 ** -correction.bits(beta) * (0.05 - beta) == pytest.approx(
        math.exp(correction.level(math.log(0.05))), rel=1e-12
    )


def test_correction_with_the_moment_bound() -> None:
    correction = _correction(0.1, 1000, "moment")
    assert math.exp(correction.level(math.log(0.05))) == corrected_level(
        0.05, epsilon=0.1, n=1000, bound="moment"
    )
    assert correction.apply(-20.0) == log_correct_pvalues(-20.0, epsilon=0.1, n=1000, bound="moment")
    assert correction.beta(0.05) == 0.0
    bound = claims.MOMENTS(setting="epsilon = 0.1, n = 1000", alpha=0.05)
    assert correction.describe(0.05) == claims.REQUIRED(bound=bound, level="4.0e-05")


def test_describe_says_what_a_pvalue_needs() -> None:
    much = claims.BITS(bits=12.2, setting="epsilon = 0.02, n = 20190", beta="1.6e-02", alpha=0.05)
    assert _correction(0.02, 20_190).describe(0.05) == claims.REQUIRED(bound=much, level="7.2e-06")
    none = claims.BITS(bits=0.0, setting="epsilon = 0.01, n = 1", beta="0", alpha=0.05)
    assert _correction(0.01, 1).describe(0.05) == claims.REQUIRED(bound=none, level="4.9e-02")


def test_described_level_is_never_above_the_level() -> None:
    for n in range(10, 5000, 90):
        correction = _correction(0.1, n)
        shown = float(correction.describe(0.05).values["level"])
        assert (
            0.9 * math.exp(correction.level(math.log(0.05)))
            <= shown
            <= math.exp(correction.level(math.log(0.05)))
        )


def test_vacuous_where_no_double_is_small_enough() -> None:
    correction = _correction(0.3, 20_190)
    assert correction.vacuous(0.05)
    assert correction.level(math.log(0.05)) < -970.0
    assert says(correction.describe(0.05), claims.IMPOSSIBLE)
    assert not _correction(0.1, 20_190).vacuous(0.05)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_correction_needs_a_level_inside_the_unit_interval(alpha: float) -> None:
    correction = _correction(0.1, 1000)
    for method in (correction.beta, correction.vacuous, correction.describe):
        with pytest.raises(ParameterError, match="strictly between 0 and 1"):
            method(alpha)


def test_correction_refuses_what_the_guarantee_does_not_give() -> None:
    with pytest.raises(ParameterError, match=r"below the guarantee's 0\.5"):
        Correction(0.1, 100, PrivacyGuarantee(0.5))
    with pytest.raises(ParameterError) as caught:
        Correction(0.5, 100, PrivacyGuarantee(0.5, delta=1e-6))
    assert says(caught.value.problems, claims.APPROXIMATE, delta=1e-6)


def test_correction_for_a_log_counts_its_feedback_rounds() -> None:
    guarantee = PrivacyGuarantee(0.5)
    assert correction_for(SomeLog(guarantee)) == Correction(0.5, 1000, guarantee)
    assert correction_for(SomeLog(guarantee, feedback_rounds=300)) == Correction(0.5, 300, guarantee)
    none_adaptive = correction_for(SomeLog(guarantee, feedback_rounds=0))
    assert none_adaptive is not None
    assert none_adaptive.level(math.log(0.05)) == math.log(0.05)
    record = PrivacyGuarantee(0.5, unit="record")
    assert correction_for(SomeLog(record)) == Correction(0.5, 1000, record)
    assert why_not(SomeLog(guarantee)) == ""


@pytest.mark.parametrize(
    ("guarantee", "reason"),
    [
        (None, claims.NOT_STATED()),
        (PrivacyGuarantee(0.5, delta=1e-6), claims.APPROXIMATE(delta=1e-6)),
        (PrivacyGuarantee(math.inf), claims.INFINITE()),
        (PrivacyGuarantee(0.5, unit="record", notion="anticipating"), claims.ANTICIPATING()),
    ],
)
def test_why_a_log_has_no_correction(guarantee: PrivacyGuarantee | None, reason: str) -> None:
    log = SomeLog(guarantee)
    assert correction_for(log) is None
    assert why_not(log) == reason
