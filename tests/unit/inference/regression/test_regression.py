"""`AdaptiveOLS`: formulas, selected arms, corrected t and F tests, defaults, and what is refused."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording

from adaptinf import designs
from adaptinf.claims import Claim, first, rare_outcomes, units
from adaptinf.claims.regression import adjusted_regression, plain_regression, regressions
from adaptinf.designs import LinUCB, Uniform
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import correct_pvalues, corrected_level
from adaptinf.inference.regression import least_squares as fits
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.regression.adjustments import ADJUSTMENTS, default_adjustment
from adaptinf.inference.regression.facts.batched_facts import DecorrelationFacts
from adaptinf.inference.regression.least_squares import least_squares
from adaptinf.inference.regression.regression_results import FTest
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits, LogArrays
from adaptinf.simulation.environments import BernoulliArms, LinearArms

ONLY_CLASSICAL = plain_regression.ONLY_CLASSICAL.sentence
MILD = PrivacyGuarantee(epsilon=0.02, unit="reward")
STRONG = PrivacyGuarantee(epsilon=3.0, unit="reward")
THOMPSON = DesignRecord("Thompson", {})
UNIFORM = designs.Uniform().record()


def make_log(n: int = 300, seed: int = 5, propensities: Any = None, **metadata: Any) -> AdaptiveLog:
    """Arms a (rarest), b and c (most frequent), contexts x1, x2 and site, normal rewards."""
    rng = np.random.default_rng(seed)
    action = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    action[-1] = 1
    context = {
        "x1": rng.normal(size=n),
        "x2": rng.uniform(2.0, 3.0, n),
        "site": rng.choice(["north", "south"], n),
    }
    reward = rng.normal(0.4 * action + context["x1"], 1.0)
    metadata = {"design": THOMPSON, "context_free": True, **metadata}
    own = None if propensities is None else propensities[np.arange(n), action]
    arrays = LogArrays(action, reward, propensity=own, propensities=propensities, context=context)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), **metadata)


# The model matrix


def test_a_list_of_covariates_is_the_formula_with_an_intercept() -> None:
    log = make_log(design=UNIFORM)
    plain = AdaptiveOLS(log, covariates=["x2", "x1"]).fit()
    formula = AdaptiveOLS.from_formula("reward ~ x2 + x1", log).fit()
    assert plain.terms == formula.terms == ("Intercept", "x2", "x1")
    np.testing.assert_array_equal(plain.estimate, formula.estimate)
    assert plain.formula == formula.formula


def test_labels_among_the_covariates_become_dummies() -> None:
    log = make_log(design=UNIFORM)
    assert AdaptiveOLS(log).fit().terms == ("Intercept", "x1", "x2", "site[T.south]")


def test_arms_are_labels_in_the_order_of_the_log() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"arm": rng.choice([1, 2, 10], 60), "y": rng.normal(size=60), "x": rng.normal(size=60)}
    )
    log = AdaptiveLog(
        frame, action="arm", reward="y", context=["x"], arms=[10, 2, 1, 7], about={"design": UNIFORM}
    )
    result = AdaptiveOLS.from_formula("y ~ C(arm) * x", log).fit()
    assert result.terms == (
        "Intercept", "C(arm)[T.2]", "C(arm)[T.1]", "x", "C(arm)[T.2]:x", "C(arm)[T.1]:x",
    )  # fmt: skip
    assert says(result.notes, regressions.NEVER_CHOSEN, arms="7")
    # Numbers of arms are no doses, also without C().
    assert AdaptiveOLS.from_formula("y ~ arm", log).fit().terms == ("Intercept", "arm[T.2]", "arm[T.1]")
    by_canonical_name = AdaptiveOLS.from_formula("reward ~ C(action) * x", log).fit()
    np.testing.assert_array_equal(by_canonical_name.estimate, result.estimate)
    means = frame.groupby("arm")["y"].mean()
    own = AdaptiveOLS.from_formula("y ~ 0 + C(arm)", log).fit()
    np.testing.assert_allclose(own.estimate, means[[10, 2, 1]], rtol=1e-12)


@pytest.mark.parametrize(
    ("selector", "arm"),
    [("most-pulled", "c"), ("least-pulled", "a"), ("last-pulled", "b"), ("recommended", "b")],
)
def test_selectors(selector: str, arm: str) -> None:
    log = make_log(design=UNIFORM, recommended="b")
    selected = AdaptiveOLS.from_formula("reward ~ x1", log, arm=selector).fit("none")
    named = AdaptiveOLS.from_formula("reward ~ x1", log, arm=arm).fit()
    np.testing.assert_array_equal(selected.estimate, named.estimate)
    assert selected.arm == arm
    assert selected.nobs == int(np.sum(log.arrays.action == log.arms.index(arm)))
    assert says(selected.notes, regressions.ROUNDS_OF_ARM, arm=arm, how=f", selected as {selector!r}")
    assert selected.estimands[1].term == "x1"
    # A recommendation reads the rewards, also where actions do not.
    assert selected.naive is (selector == "recommended")


def test_a_recommended_arm_needs_a_correction_in_a_fixed_design_too() -> None:
    model = AdaptiveOLS(make_log(design=UNIFORM, recommended="b"), covariates=["x1"], arm="recommended")
    with pytest.raises(InvalidForLog) as caught:
        model.fit()
    assert says(caught.value.reason, regressions.SELECTED, selector="recommended")


def test_contexts_that_may_have_moved_the_choice_belong_into_the_regression() -> None:
    log = make_log(context_free=None)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS(log, covariates=["x1"]).fit()
    assert says(caught.value.reason, regressions.OMITTED, contexts="x2, site")
    assert says(caught.value.alternatives, regressions.STATE_CONTEXTS)
    asked = AdaptiveOLS(log, covariates=["x1"]).fit("w-decorrelation")
    assert says(asked.cautions, regressions.OMITTED, contexts="x2, site")
    complete = AdaptiveOLS.from_formula("reward ~ x1 + scale(x2) + site", log).fit("none")
    assert not says(complete.cautions, regressions.OMITTED)
    unseen = make_log(context_free=False)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ x1 + scale(x2) + site", unseen).fit()
    assert says(caught.value.reason, regressions.OMITTED, contexts=regressions.UNNAMED_CONTEXTS())
    linear = LinUCB(noise_scale=0.5).run(LinearArms([[0.6, 0.2], [0.1, 0.7]], noise=0.5), 200, rng=0)
    own = AdaptiveOLS.from_formula("reward ~ 0 + x1_0 + x2_0", linear, arm=0).fit("none")
    assert not says(own.cautions, regressions.OMITTED)


def test_small_widths_are_not_known_to_be_stable() -> None:
    log = make_log(design=designs.UCB(width=0.001).record())
    assert AdaptiveOLS(log, covariates=["x1"]).fit("none").naive
    assert AdaptiveOLS(make_log(design=DesignRecord("UCB", {})), covariates=["x1"]).fit("none").naive


def test_the_scale_of_a_covariate_does_not_matter_to_weights() -> None:
    rows = np.tile([0.3, 0.3, 0.4], (300, 1))
    log = make_log(propensities=rows)
    plain = AdaptiveOLS.from_formula("reward ~ x1", log).fit("weighted")
    large = AdaptiveOLS.from_formula("reward ~ I(x1 * 2e14)", log).fit("weighted")
    assert large.std_error[1] == pytest.approx(plain.std_error[1] / 2e14, rel=1e-9)
    np.testing.assert_allclose(large.pvalues, plain.pvalues, rtol=1e-7)


def test_selectors_take_the_first_arm_of_several_and_never_one_without_pulls() -> None:
    arrays = LogArrays(np.array([1, 2, 1, 2, 1, 2]), np.arange(6.0) ** 2, context={})
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), design=UNIFORM)
    assert AdaptiveOLS(log, arm="most-pulled").data.arm == "b"
    assert AdaptiveOLS(log, arm="least-pulled").data.arm == "b"
    labelled = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "most-pulled"), design=UNIFORM)
    assert AdaptiveOLS(labelled, arm="most-pulled").data.selector is None


def test_an_intercept_alone() -> None:
    log = make_log(design=UNIFORM)
    for model in (
        AdaptiveOLS(log, covariates=[], arm="a"),
        AdaptiveOLS.from_formula("reward ~ 1", log, arm="a"),
    ):
        rows = log.arrays.reward[log.arrays.action == 0]
        result = model.fit(covariance="classical")
        assert result.params["Intercept"] == pytest.approx(rows.mean(), rel=1e-12)
        assert result.bse["Intercept"] == pytest.approx(rows.std(ddof=1) / math.sqrt(len(rows)), rel=1e-12)
        assert result.rsquared == pytest.approx(0.0, abs=1e-12)


# Naive and corrected


def test_the_naive_table_says_that_it_is_naive() -> None:
    result = AdaptiveOLS(make_log(), covariates=["x1"]).fit("none")
    assert result.naive
    assert says(result.notes, plain_regression.NAIVE_BASELINE)
    assert result.correction is None
    assert says(result.t_test("x1 = 0").notes[0], regressions.TEST_NAIVE)
    with pytest.raises(InvalidForLog, match="the estimator does not need a correction"):
        _ = result.pvalues_corrected
    test = result.wald_test("x1 = 0")
    assert isinstance(test, FTest)
    with pytest.raises(InvalidForLog) as caught:
        _ = test.pvalue_corrected
    assert says(caught.value.reason, regressions.NO_CORRECTION)


@pytest.mark.parametrize(
    ("metadata", "naive"),
    [
        ({"design": UNIFORM}, False),
        ({"feedback_rounds": 0}, False),
        ({"design": designs.UCB(width=2.0).record()}, False),
        ({"design": THOMPSON}, True),
        ({"design": None}, True),
    ],
)
def test_when_least_squares_is_valid_as_it_is(metadata: dict[str, Any], naive: bool) -> None:
    result = AdaptiveOLS(make_log(**metadata), covariates=["x1"]).fit("none")
    assert result.naive == naive
    assert says(result.notes, plain_regression.NAIVE_BASELINE) == naive
    assert (result.validity == "not valid") == naive


def test_a_stable_design_does_not_cover_an_arm_that_was_selected() -> None:
    log = make_log(design=designs.UCB(width=2.0).record())
    assert not AdaptiveOLS(log, covariates=["x1"], arm="b").fit("none").naive
    assert AdaptiveOLS(log, covariates=["x1"], arm="last-pulled").fit("none").naive


def test_corrected_numbers_are_the_correction_of_the_exact_ones() -> None:
    log = make_log(reward_guarantee=MILD, feedback_rounds=299)
    result = AdaptiveOLS.from_formula("reward ~ x1 + x2", log, arm="most-pulled").fit("max-information")
    assert result.correction is not None
    assert result.correction.n == 299
    expected = correct_pvalues(result.pvalues.to_numpy(), epsilon=0.02, n=299)
    np.testing.assert_allclose(result.pvalues_corrected, expected, rtol=1e-12)
    gamma = corrected_level(0.05, epsilon=0.02, n=299)
    np.testing.assert_allclose(result.conf_int_corrected(0.05), result.conf_int(gamma), rtol=1e-10)
    assert {"p_value_corrected", "conf_low_corrected"} <= set(result.to_frame().columns)

    test = result.wald_test("x1 = 0.9, x2 = 0")
    assert isinstance(test, FTest)
    assert test.pvalue_corrected == pytest.approx(
        correct_pvalues(test.pvalue, epsilon=0.02, n=299), rel=1e-12
    )
    assert (test.df, test.df_denom) == (2, result.nobs - 3)
    assert "corrected" in str(test)
    single = result.t_test("x1 = 0")
    np.testing.assert_allclose(single.pvalue_corrected, result.pvalues_corrected.iloc[1:2], rtol=1e-9)
    np.testing.assert_allclose(single.conf_int_corrected(), result.conf_int_corrected().iloc[1:2], rtol=1e-9)
    assert "p_value_corrected" in single.to_frame().columns
    # F of one restriction is t squared.
    assert result.wald_test("x1 = 0").log_pvalue == pytest.approx(float(result.log_pvalues["x1"]), rel=1e-10)


def test_corrected_tests_far_out_in_the_tail() -> None:
    log = make_log(20_000, reward_guarantee=PrivacyGuarantee(epsilon=0.1, unit="reward"))
    result = AdaptiveOLS.from_formula("reward ~ x1", log, arm="c").fit("max-information")
    assert result.pvalues["x1"] == 0.0
    test = result.wald_test("x1 = 0")
    assert isinstance(test, FTest)
    assert test.log_pvalue == pytest.approx(float(result.log_pvalues["x1"]), rel=1e-10)
    assert -2000 > test.log_pvalue_corrected > test.log_pvalue


def test_a_recommended_arm_may_depend_on_every_reward() -> None:
    log = make_log(reward_guarantee=MILD, feedback_rounds=100, recommended="b")
    counts = {
        arm: AdaptiveOLS(log, covariates=["x1"], arm=arm).fit("max-information").correction
        for arm in ("b", "recommended")
    }
    assert {arm: found.n for arm, found in counts.items() if found is not None} == {
        "b": 100,
        "recommended": 300,
    }


def test_notes_on_rewards_that_cannot_be_normal() -> None:
    log = make_log(reward_guarantee=MILD, reward_range=(0.0, 1.0))
    notes = AdaptiveOLS(log).fit("max-information").notes
    assert says(notes, plain_regression.BOUNDED, low=0.0, high=1.0)
    arrays = log.arrays
    binary = LogArrays(arrays.action, (arrays.reward > 0).astype(float), context=arrays.context)
    log = AdaptiveLog.from_arrays(binary, arms=log.arms, design=THOMPSON, reward_guarantee=MILD)
    assert says(AdaptiveOLS(log).fit("max-information").notes, plain_regression.BINARY)


# Defaults


@pytest.mark.parametrize(
    ("metadata", "arm", "expected"),
    [
        ({"design": UNIFORM}, None, "none"),
        ({"design": UNIFORM}, "most-pulled", "none"),
        ({"design": THOMPSON}, None, "w-decorrelation"),
        ({"design": THOMPSON}, "b", "w-decorrelation"),
        ({"reward_guarantee": MILD}, None, "max-information"),
        ({"reward_guarantee": MILD}, "most-pulled", "max-information"),
        ({"reward_guarantee": PrivacyGuarantee(0.5, unit="reward")}, None, "w-decorrelation"),
        ({"reward_guarantee": PrivacyGuarantee(0.5, unit="reward")}, "most-pulled", "max-information"),
        ({"design": designs.UCB(width=2.0).record()}, None, "w-decorrelation"),
    ],
)
def test_the_default_is_valid_for_the_log(metadata: dict[str, Any], arm: str | None, expected: str) -> None:
    model = AdaptiveOLS(make_log(**metadata), covariates=["x1"], arm=arm)
    result = model.fit()
    assert result.adjustment == expected
    adjustment, reason = default_adjustment(model.data, profile_of(model.log))
    assert adjustment.name == expected
    assert says(result.notes, regressions.CHOSEN, name=expected, reason=reason)
    assert not result.naive or result.correction is not None


@pytest.mark.parametrize(
    ("lowest", "status", "expected"),
    [(0.2, "exact", "weighted"), (0.2, "estimated", "w-decorrelation"), (0.04, "exact", "w-decorrelation")],
)
def test_the_default_with_propensities(lowest: float, status: str, expected: str) -> None:
    rows = np.tile([0.3, 0.3, 0.4], (300, 1))
    rows[7] = [lowest, 0.3, 0.7 - lowest]
    log = make_log(propensities=rows, propensity_status=status)
    model = AdaptiveOLS(log, covariates=["x1"])
    assert model.fit().adjustment == expected
    # Propensities of arms whose rounds are not used do not count.
    other = AdaptiveOLS(log, covariates=["x1"], arm="b")
    chosen, _ = default_adjustment(other.data, profile_of(log))
    assert chosen.name == ("weighted" if status == "exact" else expected)


def test_units_with_several_rounds_have_no_default_in_an_adaptive_log() -> None:
    frame = make_log().frame
    frame["person"] = np.arange(len(frame)) // 3
    names = {"action": "action", "reward": "reward", "unit": "person", "context": ["x1"]}
    free = {"context_free": True}
    model = AdaptiveOLS(AdaptiveLog(frame, **names, about=free), covariates=["x1"])
    with pytest.raises(InvalidForLog) as caught:
        model.fit()
    assert says(caught.value.reason, regressions.DEPENDENT_UNITS)
    assert says(caught.value.alternatives, regressions.INDEPENDENT_ANYHOW, way="adjustment='w-decorrelation'")
    fixed = AdaptiveOLS(
        AdaptiveLog(frame, **names, about=free | {"feedback_rounds": 0}), covariates=["x1"]
    ).fit()
    assert (fixed.adjustment, fixed.covariance_type) == ("none", "CR2")
    assert says(fixed.notes, regressions.CLUSTERED)
    assert not says(fixed.cautions, units.NOT_BY_UNIT)
    frame["person"] = np.arange(len(frame))
    alone_log = AdaptiveLog(frame, **names, about=free | {"feedback_rounds": 0})
    alone = AdaptiveOLS(alone_log, covariates=["x1"]).fit()
    assert alone.covariance_type == "HC2"
    assert AdaptiveOLS(alone_log, covariates=["x1"]).fit(stationary=True).covariance_type == "classical"


def test_no_default_where_decorrelation_would_leave_the_bias_in() -> None:
    model = AdaptiveOLS.from_formula("reward ~ C(action) + I(40 * x2)", make_log())
    for asked in (None, "w-decorrelation"):
        with pytest.raises(InvalidForLog) as caught:
            model.fit(asked)
        facts = DecorrelationFacts(model.data, profile_of(model.log))
        left = first(adjusted_regression.DECORRELATION_NEEDS, facts)
        assert says(left, adjusted_regression.TOO_MUCH_LEFT, cause=adjusted_regression.UNEVEN())
        told = left if asked else regressions.DECORRELATION_LEFT(reason=left)
        assert caught.value.reason == told
        assert says(caught.value.alternatives, adjusted_regression.ONE_SCALE)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ C(action)", make_log()).fit("w-decorrelation", ridge=1e6)
    assert says(caught.value.reason, adjusted_regression.TOO_MUCH_LEFT, cause=adjusted_regression.SHORT())
    assert says(caught.value.alternatives, adjusted_regression.SMALLER_RIDGE)
    scaled = AdaptiveOLS.from_formula("reward ~ C(action) + scale(x2)", make_log())
    assert scaled.fit().adjustment == "w-decorrelation"


@pytest.mark.parametrize("guarantee", [None, STRONG])
def test_no_default_for_a_selected_arm_without_a_correction(guarantee: PrivacyGuarantee | None) -> None:
    model = AdaptiveOLS(make_log(20_000, reward_guarantee=guarantee), covariates=["x1"], arm="most-pulled")
    with pytest.raises(InvalidForLog) as caught:
        model.fit()
    assert says(caught.value.reason, regressions.SELECTED, selector="most-pulled")
    assert model.fit("none").naive


@pytest.mark.parametrize("name", sorted(set(ADJUSTMENTS) - {"none", "max-information"}))
def test_other_adjustments_do_not_cover_a_selected_arm(name: str) -> None:
    model = AdaptiveOLS(make_log(reward_guarantee=MILD), covariates=["x1"], arm="least-pulled")
    with pytest.raises(InvalidForLog) as caught:
        model.fit(name)
    assert says(caught.value.reason, regressions.SELECTION_UNCOVERED, selector="least-pulled", name=name)


# Refusals


def test_a_log_without_contexts_is_told_as_such() -> None:
    log = Uniform().run(BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
    with pytest.raises(ParameterError, match="'x': the log has no contexts, and 'action' is the arm"):
        AdaptiveOLS.from_formula("reward ~ x", log)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ x1", "must have one response"),
        ("x1", "must have one response"),
        (
            "log(reward) ~ x1",
            r"the response must be the log's reward, 'reward', untransformed; got 'log\(reward\)'",
        ),
        ("x1 ~ x2", "the response must be the log's reward"),
        ("reward + x1 ~ x2", "the response must be the log's reward"),
        ("reward ~ reward", "both sides"),
        ("reward ~ x1 + np.log(reward)", "both sides"),
        ("reward ~ x9 + x1", "there is no covariate 'x9': the log's contexts are x1, x2, site"),
        ("reward ~ t", "there is no covariate 't'.*only contexts and the arm can be covariates"),
        ("reward ~ center(x9)", "x9"),
        ("reward ~ 0", "no columns"),
        ("reward ~ x1 +", "cannot read the formula"),
        ("", "formula must be text"),
        (None, "formula must be text"),
        (3, "formula must be text"),
        ("reward ~ log(x1)", "null values"),
        ("reward ~ x1 | x2", "one right-hand side"),
    ],
)
def test_formulas_that_make_no_sense(formula: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        AdaptiveOLS.from_formula(formula, make_log())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariates": ["x9"]}, "there is no covariate 'x9'"),
        ({"covariates": "x1"}, "covariates must be a list of labels"),
        ({"covariates": ["x1", "x1"]}, "more than once"),
        (
            {"arm": "z"},
            "there is no arm 'z'; the log has 'a', 'b', 'c', and the valid selectors are 'most-pulled'",
        ),
        ({"arm": ["a"]}, "arm must be given by labels"),
        ({"arm": "z", "covariates": ["x9"]}, "(?s)no arm 'z'.*no covariate 'x9'"),
    ],
)
def test_models_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        AdaptiveOLS(make_log(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"adjustment": "naive"}, "adjustment must be one of 'none', 'max-information'"),
        ({"adjustment": ["none"]}, "adjustment must be a string"),
        ({"covariance": "HC4"}, "covariance must be one of 'classical', 'HC0'"),
        ({"null": math.nan}, "null must be a finite number"),
        ({"level": 0.95}, "conf_int\\(alpha=0.05\\)"),
        ({"cov_type": "HC1"}, "covariance= here"),
        ({"adjustment": "none", "ridges": 1.0}, "there is no option 'ridges'; .*; did you mean 'ridge'"),
        ({"adjustment": "none", "ridge": 1.0}, "ridge does not apply to adjustment='none'"),
        ({"adjustment": "max-information", "covariance": "HC1"}, f"classical: {ONLY_CLASSICAL}"),
        ({"adjustment": "max-information", "covariance": "cluster"}, f"classical: {ONLY_CLASSICAL}"),
    ],
)
def test_fits_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        AdaptiveOLS(make_log(reward_guarantee=MILD), covariates=["x1"]).fit(**arguments)


def test_what_is_no_log() -> None:
    with pytest.raises(ParameterError, match="log must be an AdaptiveLog"):
        AdaptiveOLS([1, 2, 3])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"design": UNIFORM, "reward_guarantee": MILD}, wording(plain_regression.NOTHING_TO_CORRECT)),
        ({}, "no reward-level privacy guarantee"),
        ({"reward_guarantee": PrivacyGuarantee(0.1, delta=1e-6, unit="reward")}, "delta"),
    ],
)
def test_corrections_that_a_log_does_not_license(metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidForLog, match=message):
        AdaptiveOLS(make_log(**metadata)).fit("max-information")


def test_logs_without_what_is_asked_for() -> None:
    log = make_log()
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS(log, arm="recommended")
    assert says(caught.value.reason, regressions.NO_ARM_NAMED)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS(log).fit("none", "cluster")
    assert says(caught.value.reason, regressions.NO_UNITS)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS(log, covariates=["x1"]).fit(covariance="HC1")
    missing = {"name": "w-decorrelation", "covariance": "HC1"}
    assert says(caught.value.reason, regressions.NO_SUCH_COVARIANCE, **missing)
    never = AdaptiveLog.from_arrays(log.arrays, arms=("a", "b", "c", "d"), design=THOMPSON)
    with pytest.raises(InvalidForLog, match="never chosen"):
        AdaptiveOLS(never, arm="d")


def test_one_arm_has_no_dummies() -> None:
    with pytest.raises(ParameterError, match="only arm 'b' was chosen in the rounds used"):
        AdaptiveOLS.from_formula("reward ~ C(action) + x1", make_log(), arm="b")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("reward ~ x1 + I(2 * x1 + 1) + x2", r"column 'I\(2 \* x1 \+ 1\)' cannot be distinguished from 'x1'"),
        (
            "reward ~ x1 + x2 + I(x1 - x2)",
            "cannot be distinguished from '.*', '.*': it is a linear combination of those",
        ),
        ("reward ~ x1 + I(0 * x1 + 4)", "'I\\(0 \\* x1 \\+ 4\\)' does not vary"),
        ("reward ~ x1 + I(0 * x1)", "'I\\(0 \\* x1\\)' does not vary"),
    ],
)
@pytest.mark.parametrize("adjustment", ["none", "max-information"])
def test_columns_that_cannot_be_told_apart_are_named(formula: str, message: str, adjustment: str) -> None:
    model = AdaptiveOLS.from_formula(formula, make_log(reward_guarantee=MILD))
    with pytest.raises(ParameterError, match=message):
        model.fit(adjustment)


def small_log(n: int, reward: Any) -> AdaptiveLog:
    rng = np.random.default_rng(2)
    arrays = LogArrays(
        np.zeros(n, dtype=np.int64), np.asarray(reward, dtype=float), context={"x": rng.normal(size=n)}
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=UNIFORM)


@pytest.mark.parametrize(
    ("reward", "note", "values"),
    [
        ([0.3, 0.8], plain_regression.NO_RESIDUAL, {"n": 2, "p": 2}),
        ([0.7] * 30, plain_regression.EQUAL_REWARDS, {}),
    ],
)
def test_numbers_that_cannot_be_computed(reward: list[float], note: Claim, values: dict[str, int]) -> None:
    result = AdaptiveOLS(small_log(len(reward), reward)).fit("none")
    assert np.all(np.isfinite(result.estimate))
    assert np.all(np.isnan(result.bse))
    assert np.all(np.isnan(result.pvalues))
    assert says(result.notes, note, **values)
    with pytest.raises(InvalidForLog) as caught:
        result.wald_test("x = 0")
    assert says(caught.value.reason, regressions.NO_JOINT_TEST)
    str(result)


def test_fewer_rounds_than_columns() -> None:
    with pytest.raises(
        ParameterError, match=("1 rounds cannot identify the coefficients of 2 columns: Intercept, x")
    ):
        AdaptiveOLS(small_log(1, [0.3])).fit("none")


def test_a_perfect_fit_has_no_errors() -> None:
    log = small_log(30, np.zeros(30))
    arrays = log.arrays
    line = LogArrays(arrays.action, 3.0 + 0.1 * arrays.context["x"], context=arrays.context)
    result = AdaptiveOLS(AdaptiveLog.from_arrays(line, arms=log.arms, design=UNIFORM)).fit()
    np.testing.assert_allclose(result.estimate, [3.0, 0.1], rtol=1e-12)
    assert np.all(np.isnan(result.bse))
    assert says(result.notes, plain_regression.EXACT_FIT)


def test_leverage_one() -> None:
    arrays = LogArrays(np.zeros(20, dtype=np.int64), np.arange(20.0) ** 2, context={"x": np.eye(20)[3]})
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=UNIFORM)
    result = AdaptiveOLS(log).fit("none", "HC3")
    assert np.all(np.isnan(result.bse))
    assert says(result.notes, plain_regression.DECIDED_ALONE, rounds=1, kind="HC3")
    assert np.all(AdaptiveOLS(log).fit("none", "HC1").bse > 0)


def unit_log(units: int) -> AdaptiveLog:
    rng = np.random.default_rng(8)
    n = 120
    frame = pd.DataFrame(
        {
            "arm": rng.choice(["a", "b"], n),
            "y": rng.normal(size=n),
            "x": rng.normal(size=n),
            "z": rng.normal(size=n),
            "who": [f"u{i % units}" for i in range(n)],
        }
    )
    return AdaptiveLog(
        frame, action="arm", reward="y", context=["x", "z"], unit="who", about={"design": UNIFORM}
    )


def test_few_units_can_test_few_restrictions() -> None:
    result = AdaptiveOLS(unit_log(3)).fit("none", "cluster")
    assert result.wald_test("x = 0, z = 0").df == 2
    with pytest.raises(InvalidForLog) as caught:
        result.wald_test("x = 0, z = 0, Intercept = 0")
    assert says(caught.value.reason, regressions.NO_JOINT_TEST)
    one = AdaptiveOLS(unit_log(1)).fit("none", "cluster")
    assert says(one.notes, plain_regression.ONE_UNIT)
    assert np.all(np.isnan(one.bse))


def test_errors_that_ignore_units_are_cautioned() -> None:
    assert len(AdaptiveOLS(unit_log(40)).fit().cautions) == 0  # by unit, and many of them
    few, exact = AdaptiveOLS(unit_log(8)).fit().cautions
    assert says(few, units.FEW, units=8)
    assert says(exact, units.EXACT_TEST)
    (plain,) = AdaptiveOLS(unit_log(40)).fit("none", "HC1").cautions
    assert says(plain, units.NOT_BY_UNIT)
    assert AdaptiveOLS(unit_log(120)).fit("none", "HC1").cautions == ()
    log = unit_log(40)
    adaptive = AdaptiveLog(log.frame, action="action", reward="reward", context=["x", "z"], unit="unit_id")
    ignored, sandwich = AdaptiveOLS(adaptive).fit("w-decorrelation", stationary=True).cautions
    assert says(ignored, units.NOT_BY_UNIT)
    assert says(sandwich, regressions.NO_SANDWICH)


def test_alpha_is_checked_and_results_can_be_stored() -> None:
    result = AdaptiveOLS(make_log(reward_guarantee=MILD)).fit()
    for call in (
        result.conf_int,
        result.conf_int_corrected,
        result.summary,
        result.t_test("x1 = 0").conf_int,
    ):
        with pytest.raises(ParameterError, match=r"alpha must be between 0 and 0\.5"):
            call(0.95)
    copy = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(copy.estimate, result.estimate)
    assert copy.wald_test("x1 = 0").log_pvalue == result.wald_test("x1 = 0").log_pvalue


def test_an_interval_excludes_the_null_exactly_when_the_p_value_is_small() -> None:
    model = AdaptiveOLS(make_log(reward_guarantee=MILD), covariates=["x1"], arm="most-pulled")
    result = model.fit("max-information")
    for limit in result.conf_int_corrected(0.03).loc["x1"]:
        at = model.fit("max-information", null=float(limit))
        assert at.pvalues_corrected["x1"] == pytest.approx(0.03, rel=1e-8)


class TestRareOutcomes:
    """Coefficients that rest on few outcomes have no test; skewed rewards are cautioned."""

    @staticmethod
    def log(reward: np.ndarray, action: np.ndarray) -> AdaptiveLog:
        record = DesignRecord("coin", {}, traits=DesignTraits(adapts=False, uses_context="no"))
        return AdaptiveLog.from_arrays(LogArrays(action, reward), arms=("a", "b", "c"), design=record)

    @pytest.mark.parametrize(("origin", "step"), [(0.0, 1.0), (0.0, 100.0), (1e6, 1.0), (1.0, -2.0)])
    def test_an_arm_without_events_has_no_test(self, origin: float, step: float) -> None:
        rng = np.random.default_rng(0)
        action = rng.integers(0, 3, 600)
        events = np.where(action == 2, 0.0, (rng.random(600) < 0.3).astype(float))
        result = AdaptiveOLS.from_formula(
            "reward ~ C(action)", self.log(origin + step * events, action)
        ).fit()
        assert np.isnan(result.bse.to_numpy()).tolist() == [False, False, True]
        assert np.isnan(result.pvalues.to_numpy()).tolist() == [False, False, True]
        assert np.isnan(result.conf_int().to_numpy()[2]).all()
        assert np.isfinite(result.params).all()
        assert says(result.notes, rare_outcomes.NO_INTERVAL, terms="C(action)[T.c] (0)")
        assert result.cautions == ()

    @pytest.mark.parametrize("covariance", ["classical", "HC1"])
    def test_combinations_that_involve_it_have_none_either(self, covariance: str) -> None:
        rng = np.random.default_rng(0)
        action = rng.integers(0, 3, 600)
        events = np.where(action == 2, 0.0, (rng.random(600) < 0.3).astype(float))
        model = AdaptiveOLS.from_formula("reward ~ C(action)", self.log(events, action))
        result = model.fit(covariance=covariance)
        first, second = "`C(action)[T.b]`", "`C(action)[T.c]`"
        tests = result.t_test([f"{first} - {second} = 0", f"{first} = 0", f"{second} = 0.1"])
        assert np.isnan(tests.pvalue).tolist() == [True, False, True]
        assert np.isnan(tests.std_error).tolist() == [True, False, True]
        assert np.isnan(tests.conf_int()).any(axis=1).tolist() == [True, False, True]
        assert tests.pvalue[1] == pytest.approx(result.pvalues.iloc[1], rel=1e-9)
        with pytest.raises(InvalidForLog) as caught:
            result.wald_test([f"{first} = 0", f"{second} = 0"])
        assert says(caught.value.reason, regressions.TOO_FEW_TO_TEST, terms="C(action)[T.c]")
        alone = result.wald_test(f"{first} = 0").pvalue
        assert alone == pytest.approx(result.pvalues.iloc[1], rel=1e-9)

    def test_few_events_and_skewed_rewards_are_cautioned(self) -> None:
        rng = np.random.default_rng(1)
        action = rng.integers(0, 3, 600)
        events = (rng.random(600) < 0.06).astype(float)
        counts = [int(events[action == arm].sum()) for arm in range(3)]
        assert all(5 <= count < 20 for count in counts)
        result = AdaptiveOLS.from_formula("reward ~ 0 + C(action)", self.log(events, action)).fit()
        assert says(result.cautions[:1], rare_outcomes.FEW_OUTCOMES)
        assert f"C(action)[a] ({counts[0]})" in result.cautions[0]
        heavy = self.log(rng.lognormal(0.0, 1.5, 600), action)
        skewed = AdaptiveOLS.from_formula("reward ~ C(action)", heavy).fit()
        assert says(skewed.cautions, rare_outcomes.SKEWED_UNCORRECTED)
        normal = AdaptiveOLS.from_formula("reward ~ C(action)", self.log(rng.normal(size=600), action)).fit()
        assert normal.cautions == ()


# Robust covariances


def fixed_log(n: int, seed: int = 1, **columns: Any) -> AdaptiveLog:
    """A log that does not adapt, with a context x and columns of one's own."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"arm": rng.choice(["a", "b"], n), "x": rng.normal(size=n), **columns})
    frame["y"] = frame["x"] + rng.normal(size=n)
    contexts = ["x", *(name for name in columns if name != "unit")]
    unit = "unit" if "unit" in columns else None
    return AdaptiveLog(
        frame, action="arm", reward="y", context=contexts, unit=unit, about={"design": UNIFORM}
    )


@pytest.mark.parametrize(
    ("n", "stationary", "kind"), [(249, False, "HC3"), (250, False, "HC2"), (249, True, "classical")]
)
def test_the_default_covariance_is_robust(n: int, stationary: bool, kind: str) -> None:
    model = AdaptiveOLS.from_formula("y ~ C(arm) + x", fixed_log(n))
    result = model.fit(stationary=stationary)
    assert (result.adjustment, result.covariance_type) == ("none", kind)
    np.testing.assert_array_equal(result.bse, model.fit("none", kind).bse)
    assert result.reference.statistic == "t"
    joint = result.wald_test("`C(arm)[T.b]` = 0, x = 1")
    assert isinstance(joint, FTest)
    assert joint.df_denom == n - 3


def test_where_one_round_decides_a_coefficient_the_default_is_classical() -> None:
    log = fixed_log(60, once=(np.arange(60) == 7).astype(float))
    result = AdaptiveOLS.from_formula("y ~ C(arm) + once", log).fit()
    assert result.covariance_type == "classical"
    assert np.all(result.bse > 0.0)
    assert says(result.notes, regressions.CLASSICAL)


def test_a_coefficient_that_one_unit_decides_has_no_error_by_unit() -> None:
    unit = np.repeat(np.arange(12), 10)
    log = fixed_log(120, unit=unit, own=(unit == 3).astype(float))
    result = AdaptiveOLS.from_formula("y ~ x + own", log).fit()
    assert result.covariance_type == "CR2"
    assert np.isnan(result.bse["own"])
    assert np.all(result.bse[["Intercept", "x"]] > 0.0)
    assert says(result.notes, plain_regression.DECIDED_BY_A_UNIT, terms="own")
    # With an indicator of every unit the slope has one: no unit decides it.
    every = AdaptiveOLS.from_formula("y ~ x + C(who)", fixed_log(120, unit=unit, who=unit.astype(str))).fit()
    assert every.bse["x"] > 0.0
    assert every.bse.drop("x").isna().all()


def test_tests_by_unit_are_hotellings_and_need_units() -> None:
    result = AdaptiveOLS.from_formula("y ~ C(arm) + x", fixed_log(90, unit=np.repeat(np.arange(9), 10))).fit()
    single = result.wald_test("x = 0.8")
    assert isinstance(single, FTest)
    assert single.pvalue == pytest.approx(result.t_test("x = 0.8").pvalue[0], rel=1e-9)
    joint = result.wald_test("x = 0.8, `C(arm)[T.b]` = 0")
    assert isinstance(joint, FTest)
    fewest = min(result.reference.df[1:])  # type: ignore[attr-defined]
    assert joint.df_denom == pytest.approx(fewest - 1.0, rel=1e-12)
    gap = result.params.to_numpy()[[1, 2]] - [0.0, 0.8]
    assert result.covariance is not None
    form = gap @ np.linalg.solve(result.covariance[1:, 1:], gap)
    assert joint.statistic == pytest.approx(form * (fewest - 1.0) / (2.0 * fewest), rel=1e-9)
    few = AdaptiveOLS.from_formula("y ~ C(arm) + x", fixed_log(30, unit=np.repeat(np.arange(3), 10))).fit()
    with pytest.raises(InvalidForLog) as caught:
        few.wald_test("x = 0, `C(arm)[T.b]` = 0, Intercept = 0")
    assert says(caught.value.reason, regressions.NO_JOINT_TEST)


def test_many_units_are_worked_on_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    unit = rng.integers(0, 70, 400)
    unit = np.unique(unit, return_inverse=True)[1]
    x = np.column_stack([np.ones(400), rng.normal(size=(400, 2))])
    fit = least_squares(x, rng.normal(size=400), ("a", "b", "c"))
    whole = fits.bias_reduced(fit.q, fit.residual, unit, fit.root)
    monkeypatch.setattr(fits, "_AT_ONCE", 9 * 11)
    monkeypatch.setattr(fits, "_KEPT", 0)
    pieces = fits.bias_reduced(fit.q, fit.residual, unit, fit.root)
    np.testing.assert_allclose(pieces[0], whole[0], rtol=1e-10)
    np.testing.assert_allclose(pieces[1].own, whole[1].own, rtol=1e-10)
    row = np.array([0.0, 1.0, -2.0])
    assert pieces[1].of(row) == min(pieces[1].own[1:])
    assert whole[1].of(row) > 20.0
