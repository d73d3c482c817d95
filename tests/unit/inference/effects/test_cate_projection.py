"""Effects by a formula of covariates: formulas, weights, predictions, refusals."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims import propensities
from adaptinf.claims.effects import by_covariates as claims
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.effects.effect_weights import contrast_weights
from adaptinf.inference.effects.projections.projection import CATEProjection
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options


def user_frame(rounds=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, rounds),
            "site": np.array(["x", "y", "z"], dtype=object)[rng.integers(0, 3, rounds)],
            "body mass": rng.normal(25, 3, rounds),
            "vip": rng.random(rounds) < 0.5,
        }
    )
    frame["p_new"] = np.where(frame["vip"], 0.7, 0.4)
    frame["p_old"] = 1 - frame["p_new"]
    new = rng.random(rounds) < frame["p_new"]
    frame["arm"] = np.where(new, "new", "old")
    frame["score"] = rng.normal(0, 1, rounds) + new * 0.1 * (frame["age"] - 40)
    return frame


def user_log(frame=None, context=("age", "site", "body mass", "vip"), **columns):
    frame = user_frame() if frame is None else frame
    given = {"propensities": {"new": "p_new", "old": "p_old"}, "arms": ["old", "new"]} | columns
    return AdaptiveLog(frame, action="arm", reward="score", context=list(context), **nested_options(given))


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("~ age + site", ["Intercept", "age", "site[T.y]", "site[T.z]"]),
        ("age", ["Intercept", "age"]),
        ("~ 0 + site", ["site[x]", "site[y]", "site[z]"]),
        ("~ `body mass` + vip", ["Intercept", "body mass", "vip[T.True]"]),
        ("~ scale(age) * C(site)", None),
        ("~ bs(age, df=4)", None),
        ("~ 1", ["Intercept"]),
    ],
)
def test_formulas_are_read_as_model_matrices(formula, terms):
    result = CATE.from_formula(formula, user_log()).fit()
    if terms is not None and "vip" not in formula:
        assert list(result.terms) == terms
    assert np.isfinite(result.bse).all()
    assert {estimand.kind for estimand in result.estimands} == {"projection"}
    assert "CATE projection" in result.summary().as_text()


def test_statistics_of_transforms_come_from_the_whole_log():
    frame = user_frame()
    rounds = np.arange(400) < 150
    log = user_log(frame)
    scaled = CATE.from_formula("~ scale(age)", log, rounds=rounds).fit()
    plain = CATE.from_formula("~ age", log, rounds=rounds).fit()
    spread = frame["age"].std(ddof=1)
    assert scaled.params.iloc[1] == pytest.approx(plain.params["age"] * spread, rel=1e-9)
    middle = plain.predict({"age": [frame["age"].mean()]})["effect"].iloc[0]
    assert scaled.params["Intercept"] == pytest.approx(middle, rel=1e-9)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ weight + age", r"no covariate 'weight'; the log's contexts are age, site, body mass, vip"),
        ("~ score", r"no covariate 'score'.*rewards"),
        ("score ~ age", "has a response or several parts"),
        ("~ age | site", "has a response or several parts"),
        ("~ age +", "cannot read the formula"),
        ("~ 0", "has no columns"),
        ("~ log(age - 100)", "contains null values"),
        ("~ I(1 / (age - age))", r"not finite: I\("),
        ("", "must be text"),
        (3, "must be text"),
        ("~ nofunction(age)", "nofunction"),
        ("~ bs(weight, df=4)", "no covariate 'weight'"),
        ("~ bs(age, df=1)", "cannot evaluate the formula"),
    ],
)
def test_bad_formulas_are_refused(formula, message):
    with pytest.raises(ParameterError, match=message) as error:
        CATE.from_formula(formula, user_log())
    assert "\x1b" not in str(error.value)


def test_columns_that_cannot_be_told_apart_are_named():
    frame = user_frame()
    frame["months"] = 12 * frame["age"]
    log = user_log(frame, context=["age", "months", "site"])
    with pytest.raises(ParameterError, match=r"the columns (age|months)"):
        CATE.from_formula("~ age + months", log).fit()
    frame["fixed"] = 3.7
    with pytest.raises(ParameterError, match=r"columns (fixed|Intercept)"):
        CATE.from_formula("~ age + fixed", user_log(frame, context=["age", "fixed"])).fit()
    only = (frame["site"] != "z").to_numpy()
    with pytest.raises(ParameterError, match=r"columns site\[T\.z\]"):
        CATE.from_formula("~ site", log, rounds=only).fit()
    with pytest.raises(ParameterError, match="there are 11 rounds for 13 columns"):
        CATE.from_formula("~ poly(age, 12)", log, rounds=np.arange(400) < 12).fit()


def test_predictions_are_linear_combinations_of_the_coefficients():
    result = CATE.from_formula("~ age + site", user_log()).fit()
    frame = pd.DataFrame({"site": ["z", "x"], "age": [30.0, 55.0]}, index=["a", "b"])
    predicted = result.predict(frame, alpha=0.1)
    test = result.t_test(np.array([[1, 30, 0, 1], [1, 55, 0, 0]]))
    np.testing.assert_allclose(predicted["effect"], test.effect, rtol=1e-10)
    np.testing.assert_allclose(predicted["std_error"], test.std_error, rtol=1e-10)
    fit, rows = result.projection, np.array([[1, 30, 0, 1], [1, 55, 0, 0]])
    for row, limits in zip(rows, predicted[["low", "high"]].to_numpy(), strict=True):
        leverage = fit.leverage @ (row - fit.center)
        sizes = [float(np.sum(w) ** 2 / np.sum(w**2)) for w in (leverage[:, None] * fit.gain).T ** 2]
        half = stats.t.isf(0.05, min(sizes) - 1) * math.sqrt(row @ result.covariance @ row)
        np.testing.assert_allclose(limits, row @ result.estimate + [-half, half], rtol=1e-9)
    assert list(predicted.index) == ["a", "b"]
    other = result.predict(pl.DataFrame(frame), alpha=0.1)
    np.testing.assert_array_equal(other, predicted)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"age": [30.0]}, "site"),
        ({"age": 30.0, "site": "x"}, "a dict of columns, with one row per prediction"),
        ({"age": [30.0], "site": ["w"]}, "labels that are not in the log.*w"),
        ({"age": [np.nan], "site": ["x"]}, "age"),
    ],
)
def test_predictions_at_unknown_covariates_are_refused(frame, message):
    with pytest.raises(ParameterError, match=message):
        CATE.from_formula("~ age + site", user_log()).fit().predict(frame)


def test_linear_hypotheses_read_the_terms_as_they_stand():
    result = CATE.from_formula("~ age + site", user_log()).fit()
    test = result.wald_test("age = 0, site[T.y] = 0")
    rows = np.ix_([1, 2], [1, 2])
    gap, spread = result.estimate[1:3], result.covariance[rows]
    assert test.statistic == pytest.approx(gap @ np.linalg.solve(spread, gap), rel=1e-10)
    fewest = result.reference.df[1:3].min()
    assert test.pvalue == pytest.approx(stats.f.sf(test.statistic / 2, 2, fewest), rel=1e-9)
    assert f"F(2, {fewest:.1f}) = {test.statistic / 2:.4f}, P>F" in str(test)
    one = result.t_test("age - site[T.y] = 0.1")
    p = 2 * stats.t.sf(abs(one.tvalue[0]), fewest)
    assert one.pvalue[0] == pytest.approx(p, rel=1e-9)
    assert result.wald_test("age - site[T.y] = 0.1").pvalue == pytest.approx(p, rel=1e-9)


def test_default_weights_change_no_estimand():
    log = user_log(context=["age", "site", "vip"])
    result = CATE.from_formula("~ age", log).fit()
    assert result.weights == "uniform"
    assert says(result.notes, claims.BEST_APPROXIMATION)
    weighted = CATE.from_formula("~ age", log).fit(weights="combined")
    assert claims.WEIGHED_CONTEXTS(weights="the weights") in weighted.notes[1]
    labels = user_log(context=["site", "vip"])
    assert CATE.from_formula("~ site", labels).fit().weights == "uniform"
    full = CATE.from_formula("~ site * vip", labels).fit()
    assert full.weights == "combined"
    assert says(full.notes, claims.SATURATED)


def test_a_saturated_formula_gives_the_groups_differences_of_weighted_scores():
    frame = user_frame()
    log = user_log(frame, context=["site"], context_free=True)
    zero = np.zeros((400, 2))
    result = CATE.from_formula("~ 0 + site", log).fit(outcome=zero)
    own = np.where(frame["arm"] == "new", frame["p_new"], -frame["p_old"])
    scores, h = frame["score"] / own, np.sqrt(frame["p_new"] * frame["p_old"])
    for site in "xyz":
        mine = frame["site"] == site
        assert result.params[f"site[{site}]"] == pytest.approx(
            np.average(scores[mine], weights=h[mine]), rel=1e-10
        )


def test_outcome_models_are_those_of_the_other_estimators():
    log = user_log(context=["age", "vip"])
    plain = CATE.from_formula("~ age", log).fit()
    ridge = CATE.from_formula("~ age", log).fit(outcome="running-ridge", ridge=2.0)
    assert "penalty of 2" in " ".join(ridge.notes)
    assert ridge.params["age"] == pytest.approx(plain.params["age"], abs=4 * plain.bse["age"])
    assert ridge.params["age"] != plain.params["age"]


def test_rounds_in_which_an_arm_could_not_be_drawn_are_left_out():
    frame = user_frame()
    late = np.arange(400) >= 300
    frame.loc[late, ["p_new", "p_old"]] = [0.0, 1.0]
    frame.loc[late, "arm"] = "old"
    result = CATE.from_formula("~ age", user_log(frame)).fit(keep_scores=True)
    assert says(result.notes, effects.LEFT_OUT, n=100)
    assert claims.WEIGHED_CONTEXTS(weights="the rounds used") in result.notes[1]
    influence = result.scores["influence"]
    assert influence.shape == (400, 2)
    assert (influence[late] == 0).all()
    np.testing.assert_allclose(influence.T @ influence, result.covariance, rtol=1e-10)
    assert result.conf_int_simultaneous(method="bootstrap").shape == (2, 2)


def test_three_arms_with_the_chosen_propensity_alone_allow_uniform_weights_only():
    frame = user_frame()
    frame["arm"] = np.where(np.arange(400) % 5 == 0, "third", frame["arm"])
    frame["p"] = 0.4
    columns = {"propensities": None, "propensity": "p", "arms": ["old", "new", "third"]}
    model = CATE.from_formula("~ age", user_log(frame, **columns), treatment="new", control="old")
    assert model.fit().weights == "uniform"
    with pytest.raises(InvalidForLog) as error:
        model.fit(weights="combined")
    assert says(error.value.reason, effects.LACKS_BOTH_PROPENSITIES)
    assert error.value.alternatives == ("uniform weights",)
    with pytest.raises(ParameterError, match="specify treatment= and control="):
        CATE.from_formula("~ age", user_log(frame, **columns))


def test_projections_need_propensities():
    frame = user_frame()
    log = AdaptiveLog(frame, action="arm", reward="score", context=["age"])
    with pytest.raises(InvalidForLog) as error:
        CATE.from_formula("~ age", log).fit()
    assert says(error.value.reason, propensities.NEEDED)
    assert error.value.alternatives == (claims.GROUPS_INSTEAD(),)


def test_missing_arms_and_flat_scores_are_said():
    frame = user_frame()
    frame["arm"] = "old"
    with pytest.raises(InvalidForLog) as error:
        CATE.from_formula("~ age", user_log(frame)).fit()
    assert says(error.value.reason, claims.NEVER_CHOSEN, arms="'new'")
    frame = user_frame()
    frame.loc[frame["site"] == "z", "arm"] = "old"
    notes = CATE.from_formula("~ site", user_log(frame)).fit().notes
    assert says(notes, claims.BARE_COLUMN, name="site[T.z]")
    flat = user_frame()
    flat["score"] = 0.0
    result = CATE.from_formula("~ age", user_log(flat)).fit()
    assert result.bse.isna().all()
    assert says(result.notes, claims.NO_SPREAD)
    assert result.predict({"age": [30.0]})["low"].isna().all()


def test_everything_wrong_with_a_fit_is_said_at_once():
    model = CATEProjection("~ age", user_log())
    with pytest.raises(ParameterError) as error:
        model.fit(weights="cubic", covariance="HC9", null=np.nan, keep_scores="yes")
    for name in ("weights", "covariance", "null", "keep_scores"):
        assert name in str(error.value)
    with pytest.raises(ParameterError, match="two-point weights require decay="):
        model.fit(weights="two-point")
    with pytest.raises(ParameterError, match="decay applies to two-point weights"):
        model.fit(weights="combined", decay=0.5)


def test_small_propensities_are_noted_and_tiny_ones_warned_of():
    frame = user_frame()
    frame.loc[5, ["p_new", "p_old", "arm"]] = [0.02, 0.98, "old"]
    notes = CATE.from_formula("~ age", user_log(frame)).fit().notes
    assert says(notes, claims.LOW_PROPENSITIES, least=0.02)
    frame.loc[5, ["p_new", "p_old"]] = [1e-6, 1 - 1e-6]
    with pytest.warns(AdaptinfWarning) as warned:
        result = CATE.from_formula("~ age", user_log(frame)).fit()
    (tiny,) = [one for one in result.cautions if says(one, effects.TINY_PROPENSITIES, least=1e-6)]
    assert [str(one.message) for one in warned] == [f"CATEProjection.fit: {tiny}."]
    with pytest.warns(AdaptinfWarning) as warned:
        by_site = CATE(user_log(frame, context=["site"]), by="site").fit("aipw")
    site = f"site={frame['site'].iloc[5]}"
    (tiny,) = [one for one in by_site.cautions if says(one, effects.TINY_PROPENSITIES, term=site, least=1e-6)]
    assert [str(one.message) for one in warned] == [f"CATE.fit: {tiny}."]


@pytest.mark.parametrize("kind", ["HC2", "HC3"])
@pytest.mark.parametrize("row", [1, 17])
@pytest.mark.parametrize("scale", [1.0, 7.3])
def test_a_round_that_alone_decides_a_coefficient_leaves_no_residual(kind, row, scale):
    frame = user_frame()
    frame["alone"] = 0.0
    frame.loc[row, "alone"] = scale
    model = CATE.from_formula("~ age + alone", user_log(frame, context=("age", "alone")))
    result = model.fit(covariance=kind)
    assert np.isnan(result.std_error).all()
    assert says(result.notes, claims.ALONE_BY_HC, rounds=str(row))
    assert np.isfinite(model.fit(covariance="HC0").std_error[:2]).all()


def test_two_point_weights_take_the_decay_that_the_design_states():
    log = user_log(design=designs.Thompson(floor=(0.5, 0.3)).record())
    stated = CATE.from_formula("~ age", log).fit(weights="two-point")
    given = CATE.from_formula("~ age", user_log()).fit(weights="two-point", decay=0.3)
    np.testing.assert_array_equal(stated.params, given.params)


def test_combined_weights_even_out_the_variance_of_the_scores():
    propensities = np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.3], [1.0, 0.0]])
    h = contrast_weights(propensities, "combined")
    np.testing.assert_allclose(h[:3] ** 2 * (1 / propensities[:3]).sum(axis=1), 1.0)
    assert h[3] == 0.0
    np.testing.assert_array_equal(contrast_weights(propensities, "uniform"), [1, 1, 1, 0])
