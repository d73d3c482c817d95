"""Results: every accessor agrees with the one reference."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.references import NormalReference, StudentReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts

ESTIMATE = np.array([0.4, -0.2, 0.0])
STD_ERROR = np.array([0.1, 0.2, 0.3])
TERMS = ("a", "b", "c")


def make(**changes: Any) -> Results:
    fields: dict[str, Any] = {
        "model": "ArmMeans",
        "estimands": tuple(Estimand("arm-mean", arm=arm) for arm in TERMS),
        "terms": TERMS,
        "estimate": ESTIMATE,
        "std_error": STD_ERROR,
        "reference": NormalReference(ESTIMATE, STD_ERROR),
        "estimator": "aipw",
        "facts": LogFacts(n_rounds=100),
    }
    return Results(**{**fields, **changes})


def correction() -> Correction:
    return Correction(0.1, 100, PrivacyGuarantee(epsilon=0.1))


def test_estimates_by_term() -> None:
    result = make(null=0.1)
    assert result.params.to_dict() == {"a": 0.4, "b": -0.2, "c": 0.0}
    assert result.bse.to_dict() == {"a": 0.1, "b": 0.2, "c": 0.3}
    np.testing.assert_allclose(result.tvalues, (ESTIMATE - 0.1) / STD_ERROR, rtol=1e-15)
    np.testing.assert_allclose(result.pvalues, 2 * stats.norm.sf(np.abs(result.tvalues)), rtol=1e-13)
    np.testing.assert_allclose(result.log_pvalues, np.log(result.pvalues), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-9])
def test_intervals(alpha: float) -> None:
    interval = make().conf_int(alpha)
    assert list(interval.columns) == ["low", "high"]
    assert list(interval.index) == list(TERMS)
    half = stats.norm.isf(alpha / 2) * STD_ERROR
    np.testing.assert_allclose(interval["low"], ESTIMATE - half, rtol=1e-12)
    np.testing.assert_allclose(interval["high"], ESTIMATE + half, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.95, 0.0, -0.1, float("nan"), True, "0.05"])
def test_alpha_is_checked_everywhere(alpha: Any) -> None:
    result = make(correction=correction())
    for method in ("conf_int", "conf_int_corrected", "to_frame", "summary"):
        with pytest.raises(ParameterError, match=r"alpha must be between 0 and 0\.5"):
            getattr(result, method)(alpha)


def test_covariance() -> None:
    np.testing.assert_allclose(make().cov_params(), np.diag(STD_ERROR**2), rtol=1e-15)
    full = np.diag(STD_ERROR**2) + 0.001
    frame = make(covariance=full).cov_params()
    assert list(frame.columns) == list(frame.index) == list(TERMS)
    np.testing.assert_array_equal(frame, full)


def test_corrected_numbers() -> None:
    result = make(correction=correction())
    expected = correction().apply(result.reference.log_pvalues(0.0))
    np.testing.assert_allclose(result.log_pvalues_corrected, expected, rtol=1e-15)
    np.testing.assert_allclose(result.pvalues_corrected, np.exp(expected), rtol=1e-15)
    level = float(np.exp(correction().level(np.log(0.05))))
    np.testing.assert_allclose(result.conf_int_corrected(0.05), result.conf_int(level), rtol=1e-10)
    assert (result.pvalues_corrected >= result.pvalues).all()


def test_no_correction_is_an_error_not_a_number() -> None:
    result = make()
    for name in ("pvalues_corrected", "log_pvalues_corrected"):
        with pytest.raises(InvalidForLog, match="the estimator does not need a correction"):
            getattr(result, name)
    with pytest.raises(InvalidForLog, match="the estimator does not need a correction"):
        result.conf_int_corrected()


def test_frame_columns_follow_the_correction() -> None:
    plain = make().to_frame(0.1)
    names = ["term", "estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
    assert list(plain.columns) == names
    np.testing.assert_array_equal(plain["conf_low"], make().conf_int(0.1)["low"])
    result = make(correction=correction())
    frame = result.to_frame(0.1)
    assert list(frame.columns) == [*names, "p_value_corrected", "conf_low_corrected", "conf_high_corrected"]
    np.testing.assert_array_equal(frame["p_value_corrected"], result.pvalues_corrected)
    np.testing.assert_array_equal(frame["conf_high_corrected"], result.conf_int_corrected(0.1)["high"])


def test_diagnostics() -> None:
    details = {"pulls": np.array([10.0, 20.0, 30.0]), "ess": np.array([9.0, 18.0, 27.0])}
    result = make(details=details)
    assert result.ess.to_dict() == {"a": 9.0, "b": 18.0, "c": 27.0}
    assert np.isnan(result.min_propensity)
    assert result.diagnostics().loc["b"].to_dict() == {"pulls": 20.0, "ess": 18.0}
    assert make(details={"min_propensity": np.array([0.3, np.nan, 0.2])}).min_propensity == 0.2
    assert make().ess.isna().all()


def test_missing_numbers_stay_missing() -> None:
    size = np.array([0.1, 0.0, np.nan])
    result = make(std_error=size, reference=StudentReference(ESTIMATE, size, np.array([5.0, 5.0, 5.0])))
    assert result.tvalues.isna().tolist() == [False, True, True]
    assert result.pvalues.isna().tolist() == [False, True, True]
    assert result.conf_int().isna().all(axis=1).tolist() == [False, True, True]


def test_results_are_frozen_and_keep_their_own_arrays() -> None:
    estimate = ESTIMATE.copy()
    result = make(estimate=estimate)
    estimate[0] = 9.0
    assert result.params["a"] == 0.4
    with pytest.raises(ValueError, match="read-only"):
        result.estimate[0] = 9.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.null = 1.0  # type: ignore[misc]


def test_results_survive_pickling() -> None:
    result = make(correction=correction())
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    np.testing.assert_array_equal(again.to_frame().iloc[:, 1:], result.to_frame().iloc[:, 1:])


def test_printing_is_the_summary() -> None:
    result = make()
    assert str(result) == result.summary().as_text()
    assert result._repr_html_() == result.summary().as_html()


def test_in_an_interpreter_a_result_is_one_line() -> None:
    groups = ai.environments.FiniteContext(probabilities=[0.5, 0.5], means=[[0.2, 0.8], [0.7, 0.4]])
    log = ai.designs.EpsilonGreedy(exploration=0.4).run(groups, 800, rng=0)
    assert repr(ai.ArmMeans(log).fit("aipw")) == "<ArmMeans, aipw: 2 terms; print() shows the table>"
    one = ai.Contrast(log, treatment=1, control=0).fit("aipw")
    assert repr(one) == "<Contrast, aipw: 1 term; print() shows the table>"
    others = (
        ai.CATE(log, by="feature", treatment=1, control=0).fit("aipw"),
        ai.ConfidenceSequence(log).fit(),
        ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("none"),
    )
    assert all(len(repr(result)) < 80 for result in others)
