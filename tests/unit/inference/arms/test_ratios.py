"""Ratio metrics: simpler cases, refusals, marked rounds, units with several rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import rare_outcomes
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.data import ratios
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.results import Results
from adaptinf.log.validation import nested_options
from adaptinf.typing import FloatArray

ROUNDS = 400


def frame(seed: int = 0, rounds: int = ROUNDS) -> pd.DataFrame:
    """Orders and their revenue, with propensities that move from batch to batch."""
    rng = np.random.default_rng(seed)
    batch = np.arange(rounds) * 8 // rounds
    share = rng.uniform(0.2, 0.8, size=8)[batch]
    arm = (rng.random(rounds) < share).astype(int)
    orders = rng.poisson(1.5 + arm)
    revenue = np.array(
        [rng.gamma(3.0, 1.0 + 0.3 * k, size=n).sum() for k, n in zip(arm, orders, strict=True)]
    )
    rows = pd.DataFrame(
        {"arm": np.array(["a", "b"])[arm], "revenue": revenue, "orders": orders, "batch": batch}
    )
    return rows.assign(p_a=1.0 - share, p_b=share, unit=np.arange(rounds) // 2)


def log_of(rows: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    given: dict[str, Any] = {"reward": "revenue", "propensities": "p_{arm}", "batch": "batch"}
    return ai.AdaptiveLog(rows, action="arm", **nested_options(given | options))


def same(one: Results, other: Results) -> None:
    """The same numbers, bit by bit where they come from the same scores."""
    np.testing.assert_allclose(one.estimate, other.estimate, rtol=1e-12)
    np.testing.assert_allclose(one.std_error, other.std_error, rtol=1e-10)
    np.testing.assert_allclose(one.conf_int(), other.conf_int(), rtol=1e-10)
    np.testing.assert_allclose(one.pvalues, other.pvalues, rtol=1e-8)


@pytest.mark.parametrize("estimator", ["aipw", "alee", "sample-mean"])
def test_denominators_of_one_change_nothing(estimator: str) -> None:
    log = log_of(frame())
    ones = np.ones(ROUNDS)
    same(ai.ArmMeans(log, denominator=ones).fit(estimator), ai.ArmMeans(log).fit(estimator))
    pair = {"treatment": "b", "control": "a"}
    one = ai.Contrast(log, denominator=ones, **pair).fit(estimator)
    same(one, ai.Contrast(log, **pair).fit(estimator))


def test_ipw_over_ones_weighs_rewards_by_their_shares() -> None:
    """Hajek's estimate: sum(y / e) / sum(1 / e) over the rounds of an arm."""
    rows = frame()
    result = ai.ArmMeans(log_of(rows), denominator=np.ones(ROUNDS)).fit("ipw", weights="uniform")
    own = rows[rows["arm"] == "a"]
    assert result.params["a"] == pytest.approx(
        np.average(own["revenue"], weights=1.0 / own["p_a"]), rel=1e-12
    )


def test_the_unit_of_a_denominator_scales_the_ratio() -> None:
    rows = frame()
    log = log_of(rows)
    one = ai.ArmMeans(log, denominator=rows["orders"]).fit()
    dozen = ai.ArmMeans(log, denominator=12.0 * rows["orders"]).fit()
    np.testing.assert_allclose(12.0 * dozen.estimate, one.estimate, rtol=1e-12)
    np.testing.assert_allclose(12.0 * dozen.std_error, one.std_error, rtol=1e-10)


def test_what_is_estimated_is_said() -> None:
    rows = frame()
    result = ai.ArmMeans(log_of(rows), denominator=rows["orders"]).fit()
    assert [one.kind for one in result.estimands] == ["ratio", "ratio"]
    assert says(result.notes[0], ratios.ESTIMATED, reward="revenue", below="orders")
    assert says(result.notes, arm_fits.CHOSEN, data="log")
    pair = ai.Contrast(log_of(rows), treatment="b", control="a", denominator=rows["orders"]).fit()
    assert pair.estimands[0].kind == "ratio-contrast"
    assert pair.terms == ("b - a",)


def test_a_column_of_the_log_and_marked_rounds() -> None:
    """A name stands for its column, and only the rounds that are used count."""
    rows = frame()
    log = log_of(rows, context=["orders"], context_free=True)
    half = np.arange(ROUNDS) < ROUNDS // 2
    one = ai.ArmMeans(log, denominator="orders", rounds=half).fit("sample-mean")
    own = rows[half].groupby("arm")[["revenue", "orders"]].mean()
    np.testing.assert_allclose(one.estimate, own["revenue"] / own["orders"], rtol=1e-12)
    same(one, ai.ArmMeans(log, denominator=rows["orders"], rounds=half).fit("sample-mean"))


def test_units_with_several_rounds() -> None:
    """Errors by unit: sums of what a unit's rounds add, with IPW, whose scores are simple."""
    rows = frame()
    log = log_of(rows, unit="unit")
    found = ai.ArmMeans(log, denominator=rows["orders"]).fit("ipw", weights="uniform", keep_scores=True)
    for place, arm in enumerate("ab"):
        inverse = (rows["arm"] == arm) / rows[f"p_{arm}"]
        level = (inverse * rows["orders"]).mean()
        ratio = (inverse * rows["revenue"]).mean() / level
        gaps = inverse * (rows["revenue"] - ratio * rows["orders"]) / (level * ROUNDS)
        units = gaps.groupby(rows["unit"]).sum()
        error = math.sqrt((units**2).sum() * len(units) / (len(units) - 1.0))
        assert found.estimate[place] == pytest.approx(ratio, rel=1e-12)
        assert found.std_error[place] == pytest.approx(error, rel=1e-10)
    assert found.scores is not None
    squares = (found.scores["influence_by_unit"] ** 2).sum(axis=0)
    np.testing.assert_allclose(squares, found.std_error**2, rtol=1e-10)


@pytest.mark.parametrize("estimator", ["aipw", "ipw", "alee", "sample-mean"])
def test_kept_contributions_make_up_the_errors(estimator: str) -> None:
    rows = frame(1)
    result = ai.ArmMeans(log_of(rows), denominator=rows["orders"]).fit(estimator, keep_scores=True)
    assert result.scores is not None
    squares = (result.scores["influence"] ** 2).sum(axis=0)
    np.testing.assert_allclose(squares, result.std_error**2, rtol=1e-10)


def test_rewards_in_proportion_have_no_error() -> None:
    rows = frame()
    rows["revenue"] = 0.3 * rows["orders"]
    result = ai.ArmMeans(log_of(rows), denominator=rows["orders"]).fit("sample-mean")
    np.testing.assert_allclose(result.estimate, 0.3, rtol=1e-12)
    assert says(result.cautions, rare_outcomes.UNVARYING)


def test_no_ratio_to_a_mean_near_zero() -> None:
    """Fewer than 20 rounds with a denominator, or 3 standard errors; the other arm keeps its ratio."""
    rows = frame()
    own = np.flatnonzero(rows["arm"] == "a")
    few = rows["orders"].to_numpy(dtype=float).copy()
    few[own] = 0.0
    few[own[:19]] = 1.0
    result = ai.ArmMeans(log_of(rows), denominator=few).fit("sample-mean")
    assert math.isnan(result.estimate[0])
    assert math.isnan(result.std_error[0])
    assert result.estimate[1] > 0.0
    assert says(result.cautions, ratios.FEW_ROUNDS, arm="a", n=19, fewest=20)
    few[own[:20]] = 1.0
    assert np.isfinite(ai.ArmMeans(log_of(rows), denominator=few).fit("sample-mean").estimate).all()
    heavy = few.copy()
    heavy[own[0]] = 1e6
    result = ai.ArmMeans(log_of(rows), denominator=heavy).fit("sample-mean")
    assert math.isnan(result.estimate[0])
    assert says(result.cautions, ratios.NEAR_ZERO, arm="a", fewest=3)
    (errors,) = [one.values["errors"] for one in result.cautions if says(one, ratios.NEAR_ZERO)]
    assert errors == pytest.approx(1.0, abs=0.05)
    assert math.isnan(
        ai.Contrast(log_of(rows), treatment="b", control="a", denominator=heavy)
        .fit("sample-mean")
        .estimate[0]
    )


def test_a_mean_rather_near_zero_is_cautioned() -> None:
    rows = frame()
    few = np.zeros(ROUNDS)
    for arm in ("a", "b"):
        few[np.flatnonzero(rows["arm"] == arm)[:40]] = 1.0
    result = ai.ArmMeans(log_of(rows), denominator=few).fit("sample-mean")
    assert sum(says(text, ratios.RATHER_NEAR_ZERO, enough=10) for text in result.cautions) == 2


def test_rare_rewards_are_as_rare_as_without_a_denominator() -> None:
    """Four clicks per arm, however the views vary, are too few for an interval."""
    rows = frame()
    rows["revenue"] = 0.0
    for arm in ("a", "b"):
        rows.loc[np.flatnonzero(rows["arm"] == arm)[10:14], "revenue"] = 1.0
    result = ai.ArmMeans(log_of(rows), denominator=rows["orders"] + 1.0).fit("sample-mean")
    assert np.isfinite(result.estimate).all()
    assert np.isnan(result.std_error).all()
    assert says(result.notes, rare_outcomes.NO_INTERVAL, fewest=5)


def _with(place: int, value: float) -> FloatArray:
    found = np.ones(ROUNDS)
    found[place] = value
    return found


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (_with(7, np.nan), r"denominator is missing in 1 of 400 rounds \[row 7\]"),
        (_with(8, np.inf), r"denominator is infinite in 1 of 400 rounds \[row 8\]"),
        (_with(9, -2.0), r"denominator is negative in 1 of 400 rounds \[row 9\]"),
        (np.zeros(ROUNDS), "denominator is 0 in every round"),
        (np.ones(3), r"one entry per round, shape \(400,\), got shape \(3,\)"),
        (np.array(["x"] * ROUNDS), "denominator must contain numbers"),
        ("arm", "denominator must contain numbers"),
        ("nothing", "denominator: there is no column 'nothing'"),
        (pd.Series(np.ones(ROUNDS), index=np.arange(ROUNDS)[::-1]), "its index is not 0, ..., 399 in order"),
        (3.0, r"one entry per round, shape \(400,\), got shape \(\)"),
    ],
)
def test_bad_denominators(given: Any, told: str) -> None:
    log = log_of(frame())
    for make in (
        lambda: ai.ArmMeans(log, denominator=given),
        lambda: ai.Contrast(log, treatment="b", control="a", denominator=given),
    ):
        with pytest.raises(ParameterError, match=told):
            make()


def test_all_that_is_wrong_is_told_at_once() -> None:
    values = np.ones(ROUNDS)
    values[[3, 4, 5]] = np.nan, np.inf, -1.0
    with pytest.raises(ParameterError) as caught:
        ai.ArmMeans(log_of(frame()), denominator=values)
    assert len(caught.value.problems) == 3


def test_what_takes_no_denominator() -> None:
    rows = frame()
    log = log_of(rows)
    pair = ai.Contrast(log, treatment="b", control="a", denominator=rows["orders"])
    with pytest.raises(InvalidForLog) as caught:
        pair.fit("batched")
    assert says(caught.value.reason, ratios.DIFFERENCES_ALONE)
    with pytest.raises(ParameterError, match="predictions of rewards do not apply to denominators"):
        pair.fit(outcome=np.ones((ROUNDS, 2)))
    with pytest.raises(InvalidForLog, match="rows"):
        ai.ArmMeans(ai.Sums.of_log(log), denominator="orders")
    gaps = rows.assign(revenue=rows["revenue"].where(rows["orders"] > 0))
    with pytest.raises(InvalidForLog, match="rewards are missing"):
        ai.ArmMeans(log_of(gaps, missing="drop"), denominator="orders")
    both = ai.AdaptiveLog(
        rows.assign(got=rows["arm"]), action="got", assigned="arm", reward="revenue", propensities="p_{arm}"
    )
    effect = ai.Contrast(both, treatment="b", control="a", denominator=rows["orders"])
    with pytest.raises(InvalidForLog, match="a ratio metric has no instrumental-variable estimate"):
        effect.fit(estimand="received")
