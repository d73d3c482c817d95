"""Policy values where units have several rounds: errors by unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import policies as claims
from adaptinf.claims import units
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog


def log_of(*, units: int = 50, kept: bool = False, once: bool = False, rate: float | None = None) -> Any:
    """Units in turn, arm b by a coin of .4 a round, or once a unit."""
    rng = np.random.default_rng(9)
    who = np.tile(np.arange(units), 8)
    drawn = (rng.random(len(who)) < 0.4).astype(int)
    arm = drawn[:units][who] if kept else drawn
    reward = rng.normal(size=units)[who] + rng.normal(0.4 * arm, 1.0)
    if rate is not None:
        reward = (rng.random(len(who)) < rate).astype(float)
    frame = pd.DataFrame({"who": who, "arm": np.where(arm == 1, "b", "a"), "y": reward, "p_b": 0.4})
    if once:
        frame.loc[units:, "p_b"] = arm[units:].astype(float)
    frame["p_a"] = 1.0 - frame["p_b"]
    return AdaptiveLog(frame, action="arm", reward="y", propensities={"a": "p_a", "b": "p_b"}, unit="who")


def test_always_one_arm_is_that_arms_mean() -> None:
    log = log_of()
    policy, means = ai.PolicyValue(log, ["a", "b"]).fit(), ai.ArmMeans(log).fit()
    assert policy.weights == "uniform"
    np.testing.assert_allclose(policy.estimate, means.estimate, rtol=1e-12)
    np.testing.assert_allclose(policy.covariance, means.covariance, rtol=1e-10)
    np.testing.assert_allclose(policy.conf_int(), means.conf_int(), rtol=1e-10)
    assert policy.cautions == ()
    assert says(policy.notes, units.NOTES[0], units=50, rounds=400)
    assert not says(policy.notes, claims.FREEDOM)


def test_a_contrast_of_two_arms_is_their_contrast() -> None:
    log = log_of()
    policy = ai.PolicyContrast(log, "b", baseline="a").fit()
    contrast = ai.Contrast(log, treatment="b", control="a").fit()
    np.testing.assert_allclose(policy.conf_int(), contrast.conf_int(), rtol=1e-10)
    assert not says(policy.notes, claims.FREEDOM_OF_DIFFERENCES)


def test_mixed_policies_add_up_influence_by_unit() -> None:
    """The uniform policy's score is the mean of the arms' ones, so that its error follows from theirs."""
    log = log_of()
    policy, means = ai.PolicyValue(log, "uniform").fit(), ai.ArmMeans(log).fit()
    half = np.full(2, 0.5)
    assert means.covariance is not None
    assert policy.std_error[0] == pytest.approx(np.sqrt(half @ means.covariance @ half), rel=1e-10)


def test_an_arm_that_is_drawn_once_has_the_propensity_of_its_draw() -> None:
    told, same = (
        ai.PolicyValue(log_of(kept=True, once=True), "b").fit(),
        ai.PolicyValue(log_of(kept=True), "b").fit(),
    )
    np.testing.assert_array_equal(told.estimate, same.estimate)
    np.testing.assert_array_equal(told.std_error, same.std_error)
    with pytest.raises(InvalidForLog) as caught:
        ai.PolicyValue(log_of(kept=True), "b").fit("stable-variance")
    assert says(caught.value.reason, units.NOT_DRAWN_BY_ROUND)


def test_what_units_spoil_is_refused() -> None:
    log = log_of()
    with pytest.raises(InvalidForLog) as caught:
        ai.PolicyValue(log, "b").fit(estimator="cadr")
    assert says(caught.value.reason, units.DEPENDENT, units=50, rounds=400)
    with pytest.raises(InvalidForLog) as caught:
        ai.PolicyValue(log, "b").fit("stable-variance", contextual=True)
    assert says(caught.value.reason, claims.CONTEXTUAL_BY_UNIT)
    rows = {row.verdict.name: row.verdict for row in ai.recommend(log, "policy-value", policy="b").methods}
    assert rows["cadr"].label == "not valid"
    assert next(iter(rows)) == "aipw with uniform weights"


def test_few_units_and_few_events() -> None:
    assert says(ai.PolicyValue(log_of(units=20), "b").fit().cautions[0], units.FEW, units=20)
    with pytest.warns(ai.errors.AdaptinfWarning):
        rare = ai.PolicyValue(log_of(rate=0.06), "b").fit()
    assert says(rare.cautions, units.FEW_WITH_EVENTS, enough=10)
    none = ai.PolicyContrast(log_of(rate=0.008), "b", baseline="a").fit()
    assert np.all(np.isnan(none.conf_int().to_numpy()))
    assert says(none.notes, units.NO_INTERVAL, fewest=5)
