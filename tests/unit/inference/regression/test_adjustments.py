"""Regression adjustments: closed forms, refusals, and p-values that agree with intervals."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf import designs
from adaptinf.claims import Claim, propensities, said
from adaptinf.claims.arms.batched import NO_BATCHES
from adaptinf.claims.regression import adjusted_regression, regressions, weighted_regression
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import Reference
from adaptinf.inference.distributions.student_sums import MeanStudent
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.regression.adjustments import ADJUSTMENTS
from adaptinf.inference.regression.anytime import AnytimeReference, anytime_coefficients, anytime_wald
from adaptinf.inference.regression.batched_regression import (
    batched_coefficients,
    batched_wald,
    drifting_wald,
)
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.design import CoefficientFit, FitOptions, RegressionData
from adaptinf.inference.regression.ellipsoid import EllipsoidReference, confidence_ellipsoid
from adaptinf.inference.regression.least_squares import batch_regressions
from adaptinf.inference.regression.weighted.own_weights import stabilising_weights, weighted_least_squares
from adaptinf.inference.results.hypotheses import linear_hypothesis
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS = 120
WITHOUT_GUARANTEE = [name for name, entry in ADJUSTMENTS.items() if not entry.plain]


def made(
    *,
    adaptive: bool = True,
    propensity: bool = True,
    batched: bool = True,
    reward: np.ndarray | None = None,
    reward_range: tuple[float, float] | None = None,
    smallest: float = 0.5,
) -> tuple[RegressionData, AdaptiveLog]:
    """A log of two arms in six batches, and the regression on a constant, arm b and a covariate."""
    rng = np.random.default_rng(5)
    action, z = rng.integers(0, 2, ROUNDS), rng.normal(size=ROUNDS)
    y = 1.0 + 0.5 * action - z + rng.normal(size=ROUNDS) if reward is None else reward
    x = np.column_stack((np.ones(ROUNDS), action, z))
    batch = np.repeat(np.arange(6), ROUNDS // 6) if batched else None
    shares = np.full(ROUNDS, 0.5) if propensity else None
    if shares is not None:
        shares[3] = smallest
    arrays = LogArrays(action=action, reward=y, propensity=shares, batch=batch, context={"z": z})
    log = AdaptiveLog.from_arrays(
        arrays,
        arms=("a", "b"),
        reward_range=reward_range,
        design=None if adaptive else designs.Uniform().record(),
        propensity_status="exact" if propensity else "absent",
        feedback_rounds=None if adaptive else 0,
        adaptive=True if adaptive else None,  # whatever propensities that never move would say
    )
    data = RegressionData(
        y=y,
        x=x,
        names=("Intercept", "b", "z"),
        rounds=np.arange(ROUNDS),
        action=action,
        n_rounds=ROUNDS,
        n_arms=2,
        formula="reward ~ arm + z",
        response="reward",
        adaptive=adaptive,
        batch=batch,
        propensity=shares,
    )
    return data, log


def facts_of(name: str, data: RegressionData, log: AdaptiveLog, **settings: Any) -> Any:
    entry = ADJUSTMENTS[name]
    facts = entry.facts(data, profile_of(log), FitOptions(entry.covariances[0], 0.0, settings))
    facts.fit = entry.fit(facts)
    return facts


def fit(name: str, data: RegressionData, log: AdaptiveLog, **settings: Any) -> CoefficientFit:
    found: CoefficientFit = facts_of(name, data, log, **settings).fit
    return found


def told(name: str, facts: Any) -> list[str]:
    """Notes and cautions of a fit."""
    return said(ADJUSTMENTS[name].claims, facts)


@functools.cache
def every_fact() -> dict[str, Any]:
    data, log = made(adaptive=False)
    settings: dict[str, dict[str, Any]] = {"ellipsoid": {"noise_scale": 1.0, "bound": 3.0}}
    return {name: facts_of(name, data, log, **settings.get(name, {})) for name in WITHOUT_GUARANTEE}


def every_fit() -> dict[str, CoefficientFit]:
    return {name: facts.fit for name, facts in every_fact().items()}


def check_duality(reference: Reference) -> None:
    """At the limits of an interval the p-value is alpha; inside it is larger, outside smaller."""
    for log_alpha in (math.log(0.4), math.log(0.05), -9.0, -20.0):
        limits = reference.interval(log_alpha)
        for k, (low, high) in enumerate(limits):
            if not math.isfinite(low):
                continue
            for edge, out in ((low, -1.0), (high, 1.0)):
                assert reference.log_pvalues(edge)[k] == pytest.approx(log_alpha, rel=1e-8)
                step = 1e-6 * (high - low)
                assert reference.log_pvalues(edge + out * step)[k] < log_alpha
                assert reference.log_pvalues(edge - out * step)[k] > log_alpha


@pytest.mark.parametrize("name", WITHOUT_GUARANTEE)
def test_pvalues_are_at_most_alpha_exactly_where_intervals_exclude_the_null(name: str) -> None:
    facts = every_fact()[name]
    check_duality(facts.fit.reference)
    assert len(said(ADJUSTMENTS[name].claims, facts, "note")) > 1


@pytest.mark.parametrize("name", WITHOUT_GUARANTEE)
def test_tests_of_single_coefficients_are_those_of_the_table(name: str) -> None:
    found = every_fit()[name]
    if found.joint is None:
        assert found.covariance is not None
        np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), found.std_error)
        return
    hypothesis = linear_hypothesis("t_test", ([[0, 1, 0], [0, 0, 1]], [0.3, -0.8]), ["Intercept", "b", "z"])
    tested = found.joint.linear_test(hypothesis, ())
    np.testing.assert_allclose(tested.effect, found.estimate[1:], rtol=1e-12)
    np.testing.assert_allclose(tested.std_error, found.std_error[1:], rtol=1e-12)
    for row, (term, null) in enumerate(((1, 0.3), (2, -0.8))):
        own = found.reference.log_pvalues(null)[term]
        assert math.log(tested.pvalue[row]) == pytest.approx(own, rel=1e-9)
        single = linear_hypothesis("wald_test", (np.eye(3)[[term]], [null]), ["Intercept", "b", "z"])
        assert found.joint.wald_test(single, ()).log_pvalue == pytest.approx(own, rel=1e-7)
    np.testing.assert_allclose(tested.conf_int(), found.reference.interval(math.log(0.05))[1:], rtol=1e-9)
    check_duality(tested.reference)


# Closed forms


def test_a_single_mean_keeps_a_geometric_share_of_its_error() -> None:
    response = np.random.default_rng(0).normal(size=20)
    found = decorrelated(np.ones((20, 1)), response, 3.0)
    weights = 0.25 * 0.75 ** np.arange(20)
    mean = response.mean()
    assert found.remainder[0, 0] == pytest.approx(0.75**20, rel=1e-12)
    assert found.estimate[0] == pytest.approx(mean + weights @ (response - mean), rel=1e-12)
    assert found.covariance[0, 0] == pytest.approx(response.var(ddof=1) * weights @ weights, rel=1e-12)
    assert found.left == pytest.approx(0.75**20, rel=1e-12)


def test_decorrelation_ends_at_the_first_rewards_and_at_least_squares() -> None:
    design = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    response = np.array([1.0, 5.0, 3.0, 9.0])
    np.testing.assert_allclose(decorrelated(design, response, 1e-12).estimate, [1.0, 5.0], rtol=1e-10)
    np.testing.assert_allclose(decorrelated(design, response, 1e12).estimate, [2.0, 7.0], rtol=1e-10)


def test_batched_coefficients_of_two_arms_are_the_contrast_by_batch() -> None:
    from adaptinf.inference.arms.batched import batch_contrasts, batched_fit

    data, log = made()
    x = data.x[:, :2]
    found = fit("batched", dataclasses.replace(data, x=x, names=("Intercept", "b")), log)
    assert data.batch is not None
    own = batched_fit(batch_contrasts(data.batch, data.action, data.y, 1, 0), "t")
    assert found.estimate[1] == pytest.approx(own[0], rel=1e-12)
    assert found.std_error[1] == pytest.approx(own[1], rel=1e-12)
    assert found.reference.log_pvalues(0.2)[1] == pytest.approx(own[2].log_pvalues(0.2)[0], rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
@pytest.mark.parametrize("radius", [0.3, 1.7, 4.0])
def test_the_length_of_one_student_vector_follows_the_f_law(dimension: int, radius: float) -> None:
    from scipy import stats

    tail = MeanStudent(np.array([7.0])).norm_tail(radius, dimension)
    assert tail == pytest.approx(stats.f.sf(radius**2 / dimension, dimension, 7), abs=2e-11)


def test_the_length_of_a_sum_of_large_batches_is_chi_squared() -> None:
    from scipy import stats

    tail = MeanStudent(np.full(40, 2e6)).norm_tail(2.5, 3)
    assert tail == pytest.approx(stats.chi2.sf(6.25, 3), abs=1e-11)


def test_the_length_in_one_dimension_is_twice_the_tail_and_far_tails_are_not_too_small() -> None:
    law = MeanStudent(np.array([3.0, 5.0]))
    assert law.norm_tail(1.3, 1) == pytest.approx(2.0 * law.tail(1.3), abs=1e-13)
    far = MeanStudent(np.array([50.0]))
    tails = [far.norm_tail(r, 8) for r in (20.0, 100.0, 1e4)]
    assert all(0.0 <= tail <= 1e-10 for tail in tails)


def test_constant_propensities_make_weighted_least_squares_the_usual_robust_fit() -> None:
    from statsmodels.regression.linear_model import OLS

    data, log = made()
    found = fit("weighted", data, log, weights="sqrt")
    usual = OLS(data.y, data.x).fit(cov_type="HC3", use_t=True)
    np.testing.assert_allclose(found.estimate, usual.params, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, usual.cov_params(), rtol=1e-9)
    np.testing.assert_allclose(np.exp(found.reference.log_pvalues(0.0)), usual.pvalues, rtol=1e-8)
    plain = weighted_least_squares(data.x, data.y, np.ones(ROUNDS))
    usual = OLS(data.y, data.x).fit(cov_type="HC0")
    np.testing.assert_allclose(plain.covariance, usual.cov_params(), rtol=1e-9)
    assert found.details["ess"][0] == pytest.approx(ROUNDS, rel=1e-12)


def test_the_scale_of_weights_does_not_matter() -> None:
    data, _ = made()
    weight = np.random.default_rng(2).uniform(0.1, 2.0, ROUNDS)
    one = weighted_least_squares(data.x, data.y, weight)
    other = weighted_least_squares(data.x, data.y, 7.0 * weight)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-10)
    np.testing.assert_array_equal(
        stabilising_weights(np.array([1, 0]), np.array([0.2, 0.1]), np.array([0.1, 0.9])),
        [math.sqrt(0.9 / 0.2), 1.0],
    )


def test_the_ellipsoid_without_data_is_the_bound() -> None:
    found = confidence_ellipsoid(np.zeros((0, 2)), np.zeros(0), noise_scale=1.0, bound=2.0, ridge=4.0)
    limits = EllipsoidReference(found, np.eye(2)).interval(math.log(0.05))
    # radius / sqrt(ridge) = (sqrt(2 log 20) + 4) / 2
    half = 0.5 * math.sqrt(2.0 * math.log(20.0)) + 2.0
    np.testing.assert_allclose(limits, [[-half, half]] * 2, rtol=1e-12)


def test_the_ellipsoid_of_one_arm_is_the_closed_form() -> None:
    found = confidence_ellipsoid(np.ones((9, 1)), np.full(9, 2.0), noise_scale=0.5, bound=3.0)
    radius = 0.5 * math.sqrt(math.log(10.0) + 2.0 * math.log(20.0)) + 3.0
    assert found.estimate[0] == pytest.approx(1.8, rel=1e-12)
    assert found.radius(math.log(0.05)) == pytest.approx(radius, rel=1e-12)
    limits = EllipsoidReference(found, np.eye(1)).interval(math.log(0.05))[0]
    assert limits[1] - limits[0] == pytest.approx(2.0 * radius / math.sqrt(10.0), rel=1e-12)
    assert EllipsoidReference(found, np.eye(1)).log_pvalues(1.8)[0] == 0.0


def test_the_anytime_t_needs_more_rounds_than_columns() -> None:
    columns = {
        "a": [0, 1, 0, 1],
        "y": [0.1, 0.5, 0.3, 0.2],
        "x": [1.0, 2.0, 4.0, 3.0],
        "z": [0.3, 0.1, 0.2, 0.9],
    }
    frame = pd.DataFrame(columns | {"p0": 0.5, "p1": 0.5})
    log = AdaptiveLog(frame, action="a", reward="y", context=["x", "z"], propensities="p{arm}")
    told = "anytime: 4 rounds and 4 columns leave no residual degrees of freedom: use fewer columns"
    with pytest.raises(ParameterError, match=told):
        AdaptiveOLS.from_formula("reward ~ C(action) + x + z", log).fit("anytime")


def test_many_degrees_of_freedom_make_the_anytime_t_the_normal_mixture() -> None:
    t, ratio = 3.1, 0.02
    reference = AnytimeReference(np.array([t]), np.ones(1), np.array([1e12]), np.array([ratio]))
    mixture = 0.5 * math.log(ratio) + 0.5 * t * t * (1.0 - ratio)
    assert reference.log_factor(0.0)[0] == pytest.approx(mixture, rel=1e-9)


def test_an_anytime_interval_is_the_whole_line_where_no_value_can_be_excluded() -> None:
    reference = AnytimeReference(np.zeros(1), np.ones(1), np.array([2.0]), np.array([0.1]))
    # The factor stays below 0.1^-1 = 10.
    assert np.isinf(reference.interval(math.log(0.09))).all()
    assert np.isfinite(reference.interval(math.log(0.11))).all()
    assert reference.log_pvalues(1e9)[0] == pytest.approx(math.log(0.1), rel=1e-9)


def test_one_restriction_is_the_square_of_the_anytime_t() -> None:
    inverse, estimate = np.array([[0.2, 0.05], [0.05, 0.1]]), np.array([1.0, -2.0])
    row, value = np.array([[1.0, 3.0]]), np.array([-2.0])
    _, _, log_p, _ = anytime_wald(estimate, inverse, 30.0, 25, row, value, 0.4)
    single = anytime_coefficients(estimate, inverse, 30.0, 25, row, 0.4, value).log_pvalues(0.0)[0]
    assert log_p == pytest.approx(single, rel=1e-12)
    assert single < -0.9


def test_scaling_a_restriction_changes_nothing() -> None:
    inverse, estimate = np.array([[0.2, 0.05], [0.05, 0.1]]), np.array([1.0, -2.0])
    rows, values, twist = np.eye(2), np.array([0.5, -1.0]), np.array([[2.0, 1.0], [0.0, -3.0]])
    one = anytime_wald(estimate, inverse, 30.0, 25, rows, values)
    other = anytime_wald(estimate, inverse, 30.0, 25, twist @ rows, twist @ values)
    assert one == pytest.approx(other, rel=1e-12)


# Refusals


@pytest.mark.parametrize(
    ("name", "lacks", "reason", "ways"),
    [
        (
            "anytime",
            {},
            adjusted_regression.NEEDS_A_FIXED_DESIGN,
            ["weighted", "batched", "w-decorrelation", "ellipsoid"],
        ),
        (
            "weighted",
            {"propensity": False},
            propensities.NEEDED,
            ["batched", "w-decorrelation", "ellipsoid"],
        ),
        (
            "batched",
            {"batched": False},
            NO_BATCHES,
            ["weighted", "w-decorrelation", "ellipsoid"],
        ),
    ],
)
def test_a_refusal_names_what_works(
    name: str, lacks: dict[str, bool], reason: Claim, ways: list[str]
) -> None:
    model = AdaptiveOLS(made(**lacks)[1], ["z"])
    with pytest.raises(InvalidForLog) as caught:
        model.fit(name)
    assert says(caught.value.reason, reason)
    assert caught.value.alternatives == tuple(f"adjustment={way!r}" for way in ways)


def lame(adaptive: bool) -> tuple[RegressionData, AdaptiveLog]:
    """In batch 2 only arm a is chosen."""
    data, log = made(adaptive=adaptive)
    x = data.x.copy()
    x[40:60, 1] = 0.0
    return dataclasses.replace(data, x=x), log


def test_an_adaptive_log_with_a_batch_without_rank_is_refused() -> None:
    with pytest.raises(InvalidForLog) as caught:
        fit("batched", *lame(adaptive=True))
    unusable = adjusted_regression.UNUSABLE(missing=1, batches=6, which="2")
    assert says(caught.value.reason, adjusted_regression.UNUSABLE_BY_REWARDS, what=unusable)


def test_a_design_that_does_not_adapt_leaves_such_a_batch_out() -> None:
    data, log = lame(adaptive=False)
    facts = facts_of("batched", data, log)
    keep = np.r_[0:40, 60:ROUNDS]
    assert data.batch is not None
    whole = batch_regressions(data.batch[keep], data.x[keep], data.y[keep])
    np.testing.assert_allclose(facts.fit.estimate, batched_coefficients(whole, np.eye(3))[0], rtol=1e-12)
    assert says(told("batched", facts), adjusted_regression.LEFT_OUT)


def test_a_batch_in_which_an_arm_of_its_own_fit_has_no_round_counts_as_missing() -> None:
    data, log = made()
    assert data.batch is not None
    keep = (data.action == 1) & (data.batch != 3)
    own = dataclasses.replace(
        data,
        y=data.y[keep],
        x=data.x[keep][:, [0, 2]],
        names=("Intercept", "z"),
        rounds=np.flatnonzero(keep),
        action=data.action[keep],
        batch=data.batch[keep],
        propensity=None,
        arm="b",
    )
    with pytest.raises(InvalidForLog) as caught:
        fit("batched", own, log)
    assert adjusted_regression.UNUSABLE(missing=1, batches=6, which="3") in caught.value.reason


@pytest.mark.parametrize("name", ["w-decorrelation", "batched", "weighted", "ellipsoid"])
def test_a_selected_arm_is_refused(name: str) -> None:
    model = AdaptiveOLS(made()[1], ["z"], arm="most-pulled")
    with pytest.raises(InvalidForLog) as caught:
        model.fit(name)
    assert says(caught.value.reason, regressions.SELECTION_UNCOVERED, selector="most-pulled", name=name)


def test_the_ellipsoid_says_all_that_it_needs() -> None:
    with pytest.raises(ParameterError) as caught:
        fit("ellipsoid", *made())
    assert len(caught.value.problems) == 2
    facts = facts_of("ellipsoid", *made(reward_range=(0.0, 3.0)), bound=2.0)
    source = adjusted_regression.HALF_RANGE()
    assert says(told("ellipsoid", facts), adjusted_regression.SUB_GAUSSIAN, scale=1.5, source=source)
    with pytest.raises(ParameterError) as caught:
        fit("ellipsoid", *made(), noise_scale=-1.0, bound=math.inf, ridge=0.0)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("w-decorrelation", {"ridge": 0.0}, "ridge must be above 0"),
        ("batched", {"test": "f"}, "test must be one of 't', 'normal'"),
        ("batched", {"drift": 1}, "drift must be True, False or None"),
        ("anytime", {"precision": "1"}, "precision must be a number"),
        ("weighted", {"target": {"a": 0.5, "b": 0.5}}, "target= applies to weights='sqrt'"),
        ("weighted", {"weights": "roots"}, "weights must be one of 'combined', 'uniform', 'sqrt'"),
    ],
)
def test_settings_are_checked(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fit(name, *made(adaptive=False), **settings)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (0.5, "target must map arms to probabilities"),
        ({"a": 0.5}, "target has no probability for arm 'b'"),
        ({"a": 0.5, "b": 0.4}, "must sum to 1, got 0.9"),
        ({"a": 1.0, "b": 0.0}, "above 0 and at most 1"),
        ({"a": 0.5, "b": 0.4, "c": 0.1}, "there is no arm 'c'; the log has 'a', 'b'"),
    ],
)
def test_targets_are_checked(target: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fit("weighted", *made(adaptive=False), weights="sqrt", target=target)


def test_a_given_target_changes_the_weights() -> None:
    data, log = made()
    found = fit("weighted", data, log, weights="sqrt", target={"a": 0.9, "b": 0.1})
    weight = np.where(data.action == 0, math.sqrt(1.8), math.sqrt(0.2))
    weight[3] = math.sqrt(0.9 / 0.5) if data.action[3] == 0 else math.sqrt(0.1 / 0.5)
    np.testing.assert_allclose(
        found.estimate, weighted_least_squares(data.x, data.y, weight).estimate, rtol=1e-12
    )


def test_small_propensities_warn_with_the_effective_sample_size() -> None:
    with pytest.warns(AdaptinfWarning) as caught:
        facts = facts_of("weighted", *made(smallest=1e-6))
    size = facts.fit.details["ess"].min()
    assert [str(one.message) for one in caught] == [propensities.TINY(least=1e-6, size=size)]


def test_a_round_that_alone_decides_a_coefficient_is_named_as_the_reason() -> None:
    data, log = made(smallest=0.2)
    alone = dataclasses.replace(
        data, x=np.column_stack([data.x, np.arange(ROUNDS) == 7]), names=(*data.names, "d")
    )
    facts = facts_of("weighted", alone, log)
    assert np.isnan(facts.fit.std_error).all()
    assert says(told("weighted", facts), weighted_regression.DECIDED_ALONE, rounds=1)
    assert not says(told("weighted", facts), regressions.PERFECT)


def test_propensities_that_fall_are_cautioned() -> None:
    for smallest, cautioned in ((0.01, True), (0.2, False)):
        facts = facts_of("weighted", *made(smallest=smallest))
        found = said(ADJUSTMENTS["weighted"].claims, facts, "caution")
        assert says(found, weighted_regression.BELOW_FLOOR, floor=0.05) == cautioned
    assert weighted_regression.BELOW_FLOOR not in ADJUSTMENTS["batched"].claims


def test_an_arm_that_could_not_be_chosen_is_refused() -> None:
    data, log = made(smallest=1.0)
    with pytest.raises(InvalidForLog, match="has propensity 0 in 1 of 120 rounds") as caught:
        fit("weighted", data, log)
    assert says(caught.value.reason, weighted_regression.IMPOSSIBLE)


def test_dependent_restrictions_are_refused() -> None:
    hypothesis = linear_hypothesis("wald_test", "b = 0, 2 * b = 0", ["Intercept", "b", "z"])
    for name, found in every_fit().items():
        if name == "weighted":
            assert found.joint is not None
            assert found.joint.wald_test(hypothesis, ()).df == 1
        elif found.joint is not None:
            with pytest.raises(ParameterError, match="restrictions are linearly dependent"):
                found.joint.wald_test(hypothesis, ())
        assert name in WITHOUT_GUARANTEE


def test_rewards_that_do_not_vary_have_no_tests() -> None:
    data, log = made(adaptive=False, reward=np.full(ROUNDS, 0.1))
    hypothesis = linear_hypothesis("wald_test", "b = 0", ["Intercept", "b", "z"])
    for name in ("w-decorrelation", "batched", "weighted", "anytime"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            facts = facts_of(name, data, log)
            found = facts.fit
            assert np.isnan(found.reference.log_pvalues(0.0)).all(), name
            assert np.isnan(found.reference.interval(math.log(0.05))).all(), name
            batched = name == "batched"
            claim = adjusted_regression.CONSTANT_IN_A_BATCH if batched else regressions.PERFECT
            assert says(told(name, facts), claim), name
            if name == "weighted":
                assert found.joint is not None
                assert math.isnan(found.joint.wald_test(hypothesis, ()).statistic)
            elif found.joint is not None:
                with pytest.raises(InvalidForLog, match="all residuals are zero"):
                    found.joint.wald_test(hypothesis, ())


# What the drifting form sees


def test_the_drifting_form_sees_effects_that_cancel() -> None:
    data, _ = made()
    assert data.batch is not None
    shift = np.where(data.batch % 2 == 0, 2.0, -2.0) * data.action
    found = batch_regressions(data.batch, data.x, data.y - 0.5 * data.action + shift)
    row, value = np.array([[0.0, 1.0, 0.0]]), np.zeros(1)
    assert drifting_wald(found, row, value)[2] < math.log(1e-6)
    assert batched_wald(found, row, value)[2] > math.log(0.05)


def test_joint_tests_print_the_law_of_their_p_values() -> None:
    hypothesis = linear_hypothesis("wald_test", "b = 0, z = 0", ["Intercept", "b", "z"])
    laws = {
        "batched": adjusted_regression.STUDENT_SUM(),
        "ellipsoid": adjusted_regression.ELLIPSOID_LAW(),
        "anytime": adjusted_regression.ANYTIME_LAW(),
    }
    for name, found in every_fit().items():
        if found.joint is not None and name != "weighted":
            text = str(found.joint.wald_test(hypothesis, ("A note.",)))
            assert text.startswith("Joint test of 2 restrictions: statistic "), text
            assert laws[name] in text.splitlines()[0]
            assert text.splitlines()[1:] == ["  H0: b = 0", "  H0: z = 0", "  A note."]


def test_a_drifting_joint_test_names_the_batches() -> None:
    data, log = made()
    joint = fit("batched", data, log, drift=True).joint
    assert joint is not None
    tested = joint.wald_test(linear_hypothesis("wald_test", "b = 0, z = 0", ["Intercept", "b", "z"]), ())
    assert tested.df == 12
    assert tested.hypothesis == ("b = 0 in every batch", "z = 0 in every batch")
