"""Corrections of tests that were chosen from actions, or from releases: what fits count and say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.privacy import max_information as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections import Correction
from adaptinf.inference.corrections.information import corrected_level
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS = 400


@pytest.fixture(scope="module")
def log() -> AdaptiveLog:
    rng = np.random.default_rng(0)
    return AdaptiveLog.from_arrays(
        LogArrays(rng.integers(0, 2, ROUNDS), rng.integers(0, 2, ROUNDS).astype(float)),
        arms=("a", "b"),
        reward_range=(0.0, 1.0),
        guarantee=PrivacyGuarantee(0.1),
        feedback_rounds=100,
        released_rounds=300,
    )


FITS: dict[str, Any] = {
    "ArmMeans": lambda log, **how: ai.ArmMeans(log).fit("sample-mean", **how),
    "Contrast": lambda log, **how: ai.Contrast(log, treatment="b", control="a").fit("sample-mean", **how),
    "AdaptiveOLS": lambda log, **how: ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit(
        "max-information", **how
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_counts_what_its_test_was_chosen_from(log: AdaptiveLog, name: str) -> None:
    default, releases = FITS[name](log), FITS[name](log, chosen_from="releases")
    assert (default.correction.n, default.correction.chosen_from) == (100, "actions")
    assert (releases.correction.n, releases.correction.chosen_from) == (300, "releases")
    np.testing.assert_array_equal(default.estimate, releases.estimate)
    expected = releases.correction.apply(releases.log_pvalues)
    np.testing.assert_array_equal(releases.log_pvalues_corrected, expected)
    assert (releases.log_pvalues_corrected >= default.log_pvalues_corrected).all()
    told = [" ".join(result.explain().texts) for result in (default, releases)]
    assert [says(one, claims.COVERS_ACTIONS) for one in told] == [True, False]
    assert [says(one, claims.COVERS_RELEASES) for one in told] == [False, True]


@pytest.mark.parametrize("name", FITS)
def test_anything_else_is_refused(log: AdaptiveLog, name: str) -> None:
    with pytest.raises(ParameterError, match="chosen_from must be"):
        FITS[name](log, chosen_from="rewards")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda log: ai.ArmMeans(log).fit("alee", chosen_from="releases"), "alee has none"),
        (lambda log: ai.AdaptiveOLS(log).fit("none", chosen_from="releases"), "chosen_from does not apply"),
    ],
)
def test_fits_without_corrected_columns_do_not_pretend_to_cover_it(
    log: AdaptiveLog, call: Any, told: str
) -> None:
    with pytest.raises((InvalidForLog, ParameterError), match=told):
        call(log)


def test_a_log_that_licenses_no_correction_says_why(log: AdaptiveLog) -> None:
    other = AdaptiveLog.from_arrays(log.arrays, arms=log.arms, guarantee=PrivacyGuarantee(0.1, 1e-6))
    with pytest.raises(InvalidForLog) as caught:
        ai.ArmMeans(other).fit("sample-mean", chosen_from="releases")
    assert claims.APPROXIMATE(delta=1e-6) in caught.value.reason


def test_the_levels_of_the_evidence() -> None:
    assert corrected_level(0.05, epsilon=0.05, n=2_000) == pytest.approx(8.7e-5, rel=0.01)
    level = Correction(0.05, 520_000, PrivacyGuarantee(0.05)).level(math.log(0.05))
    assert level / math.log(10.0) == pytest.approx(math.log10(7e-307), abs=0.1)


@pytest.mark.parametrize(("epsilon", "persons"), [(0.05, 100), (0.1, 200), (0.3, 30)])
def test_a_correction_by_person_holds_where_rounds_of_a_person_are_the_same(
    epsilon: float, persons: int
) -> None:
    """Exact: both rounds of a person have one bit, and randomised response at epsilon shows it twice.

    The test counts agreements among persons who answered alike: binomial for fixed answers, and in truth with
    the probability of an answer at 2 epsilon.
    """
    correction = Correction(2.0 * epsilon, persons, PrivacyGuarantee(epsilon).group(2), unit="person")
    agreements = np.arange(persons + 1)
    p_values = stats.binom.logsf(agreements - 1, persons, 0.5)
    truth = stats.binom.pmf(agreements, persons, 1.0 / (1.0 + math.exp(-2.0 * epsilon)))
    for alpha in (0.01, 0.05, 0.2):
        rejected = correction.apply(p_values) <= math.log(alpha)
        assert truth[rejected].sum() <= alpha
        assert truth[p_values <= math.log(alpha)].sum() > alpha


def test_dp_nas_has_a_guarantee_of_its_stopping_time() -> None:
    rule = ai.designs.DPNAS(epsilon=1.0, alpha=0.2, beta=0.05)
    assert rule.time_guarantee().epsilon == pytest.approx(0.5)
    assert rule.guarantee().epsilon == pytest.approx(1.0)
