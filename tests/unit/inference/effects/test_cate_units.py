"""Group effects where units have several rounds: errors by unit, in the tables and the tests of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf.claims import propensities, tables, units
from adaptinf.claims.effects import by_covariates as projections
from adaptinf.claims.effects import by_group as group_effects
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.tails import log_f_tail
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.effects.comparisons import equal_dependent_effects, equal_effects
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.scores.unit_errors import unit_group_effects
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options


def frame_of(rounds: int = 8, units: int = 60, *, rate: float | None = None, kept: bool = False) -> Any:
    """Units in turn; group `site` is the unit's, `day` changes from turn to turn."""
    rng = np.random.default_rng(4)
    who = np.tile(np.arange(units), rounds)
    arm = rng.integers(0, 2, units)[who] if kept else rng.integers(0, 2, len(who))
    reward = rng.normal(size=units)[who] + rng.normal(0.5 * arm, 1.0)
    if rate is not None:
        reward = (rng.random(len(who)) < rate).astype(float)
    day = np.arange(len(who)) // units % 2
    return pd.DataFrame({"who": who, "arm": arm, "y": reward, "e": 0.5, "site": who % 2, "day": day})


def log_of(frame: pd.DataFrame, **given: Any) -> AdaptiveLog:
    columns = {"propensity": "e", "unit": "who", "context": ["site", "day"], **given}
    return AdaptiveLog(frame, action="arm", reward="y", **nested_options(columns))


def covariance(result: Results) -> Any:
    assert result.covariance is not None
    return result.covariance


@pytest.mark.parametrize("by", ["site", "day"])
def test_effects_and_errors_are_those_by_unit(by: str) -> None:
    frame = frame_of()
    result = CATE(log_of(frame), by=by).fit()
    columns = (frame[name].to_numpy() for name in (by, "arm", "y", "e"))
    found = unit_group_effects(*columns, 2, frame["who"].to_numpy())
    assert (result.estimator, result.weights, result.cautions) == ("aipw", "uniform", ())
    np.testing.assert_allclose(result.estimate, found.estimate, rtol=1e-13)
    np.testing.assert_allclose(result.covariance, found.errors.covariance, rtol=1e-13)
    assert bool(abs(covariance(result)[0, 1]) > 1e-6) == (by == "day")
    assert says(result.notes, units.ERRORS, units=60, rounds=480)
    assert not says(result.explain().texts, tables.REPEATED_UNITS)
    assert says(result.notes, units.NO_CARRY_OVER)


def test_groups_that_share_units_are_compared_with_their_covariance() -> None:
    result = CATE(log_of(frame_of()), by="day").fit()
    matrix = covariance(result)
    change = result.interactions()
    size = np.sqrt(matrix[0, 0] + matrix[1, 1] - 2.0 * matrix[0, 1])
    np.testing.assert_allclose(change.std_error, [size], rtol=1e-12)
    test = result.heterogeneity()  # for two groups the square of their t
    assert test.test == "F"
    assert test.statistic == pytest.approx(float(change.tvalues.iloc[0]) ** 2, rel=1e-10)
    assert test.pvalue == pytest.approx(float(change.pvalues.iloc[0]), rel=1e-8)


def test_hotelling_is_its_formula_and_tends_to_that_of_independent_groups() -> None:
    rng = np.random.default_rng(5)
    root, estimate = rng.normal(size=(4, 4)), rng.normal(size=4)
    matrix = root @ root.T + np.eye(4)
    contrast = np.array([[1.0, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]])  # any three differences
    d = contrast @ estimate
    distance = d @ np.linalg.inv(contrast @ matrix @ contrast.T) @ d
    statistic, log_p, rest = equal_dependent_effects(estimate, matrix, 20.0)
    assert (statistic, rest) == (pytest.approx(distance * 18.0 / 60.0, rel=1e-10), 18.0)
    assert log_p == log_f_tail(statistic, 3, 18.0)
    variance = np.array([0.5, 1.0, 2.0, 0.7])
    chi2, _, _ = equal_dependent_effects(estimate, np.diag(variance), 20.0, "chi2")
    _, mean_square, _ = equal_effects(estimate, variance, np.full(4, np.inf))
    assert chi2 == pytest.approx(3.0 * mean_square, rel=1e-10)
    with pytest.raises(InvalidForLog) as error:
        equal_dependent_effects(estimate, matrix, 2.0)
    assert says(error.value.reason, group_effects.TOO_LITTLE_FREEDOM, freedom=2.0, groups=4)


def test_an_arm_that_is_drawn_once_has_the_propensity_of_its_draw() -> None:
    frame = frame_of(kept=True)
    told = frame.assign(e=np.where(np.arange(len(frame)) < 60, 0.5, 1.0))
    same, once = CATE(log_of(frame), by="site").fit(), CATE(log_of(told), by="site").fit()
    np.testing.assert_array_equal(once.estimate, same.estimate)
    np.testing.assert_array_equal(once.std_error, same.std_error)
    assert says(once.notes, units.DRAWN_ONCE)


def test_moving_propensities_of_kept_arms_are_refused() -> None:
    frame = frame_of(kept=True)
    with pytest.raises(InvalidForLog) as error:
        CATE(log_of(frame.assign(e=0.5 + 0.0001 * np.arange(len(frame)))), by="site").fit()
    assert says(error.value.reason, propensities.ONE_DRAW_A_UNIT)


def test_few_units_and_few_events_are_cautioned_and_then_refused() -> None:
    few = CATE(log_of(frame_of(units=20)), by="day").fit()
    assert says(few.cautions[0], units.FEW, units=20)
    rare = CATE(log_of(frame_of(rate=0.06)), by="day").fit()
    assert says(rare.cautions, units.FEW_WITH_EVENTS)
    none = CATE(log_of(frame_of(rate=0.01)), by="day").fit()
    assert np.all(np.isnan(none.std_error))
    assert np.all(np.isnan(none.conf_int().to_numpy()))
    assert says(none.notes, units.NO_INTERVAL, fewest=5)


def test_weights_by_propensities_are_cautioned_where_they_move() -> None:
    frame = frame_of()
    frame["e"] = np.where(frame["arm"] == 1, 0.4, 0.6)
    frame.loc[200:, "e"] = 0.5
    result = CATE(log_of(frame, context_free=True), by="site").fit(weights="combined")
    assert says(result.cautions, units.TIED)


def test_plain_means_are_refused() -> None:
    with pytest.raises(InvalidForLog) as error:
        CATE(log_of(frame_of()), by="site").fit("difference-in-means")
    assert says(error.value.reason, units.DEPENDENT)
    assert "aipw" in error.value.alternatives


def test_rounds_that_no_unit_shares_need_no_errors_by_unit() -> None:
    frame = frame_of()
    first = np.arange(len(frame)) < 60
    result = CATE(log_of(frame), by="site", rounds=first).fit("aipw")
    alone = CATE(log_of(frame[first], unit=None), by="site").fit("aipw")
    np.testing.assert_array_equal(result.std_error, alone.std_error)


def test_projections_add_up_influence_by_unit() -> None:
    frame = frame_of().assign(z=np.random.default_rng(8).normal(size=480))
    log = log_of(frame, context=["site", "day", "z"])
    result = CATE.from_formula("~ z + day", log).fit(keep_scores=True)
    assert result.scores is not None
    assert (result.weights, result.cautions) == ("uniform", ())
    who = frame["who"].to_numpy()
    sums = np.array([result.scores["influence"][who == u].sum(axis=0) for u in range(60)])
    np.testing.assert_allclose(result.covariance, 60 / 59 * sums.T @ sums, rtol=1e-11)
    rows = result.scores["influence_by_unit"]
    np.testing.assert_allclose(rows.T @ rows, result.covariance, rtol=1e-11)
    point = result.predict({"z": [0.0], "day": [0]})  # the intercept itself
    np.testing.assert_allclose(point["std_error"], result.std_error[:1], rtol=1e-10)


def test_a_projection_on_groups_has_the_degrees_of_freedom_of_the_groups_units() -> None:
    frame = frame_of(kept=True)
    law: Any = CATE.from_formula("~ 0 + C(site)", log_of(frame, context=["site"])).fit().reference
    arms = frame.iloc[:60].groupby(["site", "arm"]).size().unstack()
    np.testing.assert_allclose(law.df, arms.min(axis=1) - 1.0, atol=0.02)  # the first round has no weight


def test_projections_refuse_what_errors_by_unit_do_not_allow_for() -> None:
    kept = log_of(frame_of(kept=True))
    for options, claim in (
        ({"covariance": "HC3"}, projections.NOT_BY_UNIT),
        ({"outcome": "running-ridge"}, units.OWN_PAST_TELLS),
    ):
        with pytest.raises(InvalidForLog) as error:
            CATE.from_formula("~ day", kept).fit(**options)  # type: ignore[arg-type]
        assert says(error.value.reason, claim)
    rare = CATE.from_formula("~ day", log_of(frame_of(rate=0.01))).fit()
    assert np.all(np.isnan(rare.conf_int().to_numpy()))
    assert says(rare.notes, units.NO_INTERVAL, fewest=5)
