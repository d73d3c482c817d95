"""Trends of the arms' rewards: the statistic itself, and the tables of methods that need means to stay."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import stationarity
from adaptinf.claims.arms import alee, weighted_arms
from adaptinf.claims.regression import regressions
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.sums_profile import SumsProfile
from adaptinf.log.validation import nested_options

PROPENSITIES = {"a": "p_a", "b": "p_b"}


def frame(drift: float = 0.0, rounds: int = 600, seed: int = 1, arm_b: float = 0.0) -> pd.DataFrame:
    """Two arms whose shares of the rounds move; the level, and that of arm b, move by so many sd."""
    rng = np.random.default_rng(seed)
    clock = np.arange(rounds) / rounds
    share = 0.3 + 0.4 * clock
    treated = rng.random(rounds) < share
    reward = rng.normal(size=rounds) + drift * clock + arm_b * clock * treated
    known = {"p_a": 1.0 - share, "p_b": share, "batch": np.arange(rounds) // 60}
    return pd.DataFrame({"arm": np.where(treated, "b", "a"), "y": reward, **known})


def log_of(data: pd.DataFrame, **more: object) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(data, action="arm", reward="y", **nested_options(more))  # type: ignore[arg-type]


def by_hand(time: np.ndarray, reward: np.ndarray) -> float:
    terms = (time - time.mean()) * (reward - reward.mean())
    return float(terms.sum() / math.sqrt(terms @ terms))


def test_the_statistic_is_that_of_each_arms_own_rewards() -> None:
    data = frame(0.3)
    trends = profile_of(log_of(data)).trends
    for code, arm in enumerate("ab"):
        own = np.flatnonzero(data["arm"] == arm)
        assert trends.z[code] == pytest.approx(by_hand(own.astype(float), data["y"].to_numpy()[own]))
    few = data[(data["arm"] == "a") | (np.cumsum(data["arm"] == "b") <= 19)]
    assert np.isnan(profile_of(log_of(few)).trends.z).tolist() == [False, True]
    assert not profile_of(log_of(data.assign(y=1.0))).trends.tested.any()
    moved = profile_of(log_of(data.assign(y=1e-9 * data["y"] + 1e3))).trends
    assert moved.z == pytest.approx(trends.z, rel=1e-3)


def test_sums_find_what_rows_find() -> None:
    data = frame(0.5)
    sums = ai.aggregate(data, action="arm", reward="y", batch="batch")
    rows = profile_of(log_of(data, batch="batch")).trends.z
    assert SumsProfile(sums).trends.z == pytest.approx(rows, rel=1e-9)
    middle = (data["batch"].to_numpy() + 0.5) * 60.0
    own = data["arm"].to_numpy() == "a"
    assert rows[0] == pytest.approx(by_hand(middle[own], data["y"].to_numpy()[own]))
    one = ai.aggregate(data.assign(batch=0), action="arm", reward="y", batch="batch")
    assert not SumsProfile(one).trends.tested.any()


def test_rounds_of_a_unit_count_as_one() -> None:
    data = frame(1.0)
    again = pd.concat([data.assign(unit=np.arange(600))] * 4).sort_index(kind="stable")
    alone, copied = (profile_of(log_of(one, unit="unit")).trends.z for one in (again[::4], again))
    assert copied == pytest.approx(alone, rel=0.01)
    assert profile_of(log_of(again)).trends.z == pytest.approx(2.0 * alone, rel=0.01)
    few = again.assign(unit=again["unit"] // 60)
    assert not profile_of(log_of(few, unit="unit")).trends.tested.any()


@pytest.mark.parametrize("stationary", [False, True])
def test_alee_is_cautioned_where_rewards_drift_and_only_there(stationary: bool) -> None:
    benign, drifting = (log_of(frame(one)) for one in (0.0, 1.0))
    for model in (ai.ArmMeans, lambda log: ai.Contrast(log, treatment="b", control="a")):
        calm = model(benign).fit("alee", stationary=stationary)
        assert calm.cautions == ()
        assert says(calm.notes, stationarity.NO_TREND)
        assert "(checked for trends, not cycles)" in " ".join(calm.notes)
        found = model(drifting).fit("alee", stationary=stationary)
        z = profile_of(drifting).trends.pvalues
        for code, arm in enumerate("ab"):
            assert says(found.cautions, stationarity.ARM_DRIFTS, arm=arm, move="rise", p=z[code])
        assert not says(found.notes, stationarity.NO_TREND)
        assert says(found.notes, alee.NO_DRIFT)


def test_only_arms_of_the_table_are_named() -> None:
    data = frame(0.0, arm_b=-2.0)
    assert ai.ArmMeans(log_of(data), arms=["a"]).fit("alee").cautions == ()
    [told] = ai.ArmMeans(log_of(data)).fit("alee").cautions
    assert says(told, stationarity.ARM_DRIFTS, arm="b", move="fall")


def test_sequences_of_pulls_and_of_scores() -> None:
    data = frame(1.0, rounds=2000)
    log = log_of(data, propensities=PROPENSITIES, context_free=True)
    means = ai.ConfidenceSequence(log)
    assert says(means.fit("asymptotic", estimator="sample-mean").cautions, stationarity.ARM_DRIFTS)
    of_scores = means.fit("asymptotic", estimator="aipw")
    assert says(of_scores.cautions, stationarity.VALUE_DRIFTS, term="a", move="rise")
    contrast = ai.ConfidenceSequence(log, target="contrast", treatment="b", control="a")
    shared = contrast.fit("asymptotic", estimator="aipw")
    assert not says(shared.cautions, stationarity.VALUE_DRIFTS)
    assert says(shared.notes, stationarity.NO_TREND_OF_VALUES)
    moving = log_of(frame(0.0, 2000, arm_b=2.0), propensities=PROPENSITIES, context_free=True)
    alone = ai.ConfidenceSequence(moving, target="contrast", treatment="b", control="a")
    assert says(alone.fit("asymptotic", estimator="aipw").cautions, stationarity.VALUE_DRIFTS, move="rise")


def test_weights_of_its_own_are_cautioned_where_an_arm_drifts() -> None:
    benign, drifting = (
        log_of(frame(one), propensities=PROPENSITIES, context_free=True) for one in (0.0, 1.0)
    )
    calm, found = (ai.ArmMeans(one).fit("aipw", weights="sqrt") for one in (benign, drifting))
    assert len(calm.cautions) == 1  # a drift by the hour shows no trend
    assert says(calm.cautions, weighted_arms.OWN_WEIGHTS, weights="sqrt")
    assert says(found.cautions[:1], stationarity.ARM_DRIFTS, arm="a", move="rise")
    assert says(found.cautions[1:], weighted_arms.OWN_WEIGHTS, weights="sqrt")
    assert ai.Contrast(drifting, treatment="b", control="a").fit("aipw").cautions == ()


def test_plain_means_need_means_that_stay_where_shares_move() -> None:
    drifting = frame(1.0)
    adaptive = ai.ArmMeans(log_of(drifting)).fit("sample-mean")
    assert says(adaptive.cautions, stationarity.ARM_DRIFTS)
    even = drifting.assign(arm=np.random.default_rng(3).choice(["a", "b"], len(drifting)))
    assert ai.ArmMeans(log_of(even, adaptive=False)).fit("sample-mean").cautions == ()


def test_regressions_are_cautioned_by_what_columns_leave() -> None:
    rng = np.random.default_rng(5)
    for drift in (0.0, 1.0):
        data = frame(drift, rounds=1000).assign(x=rng.normal(size=1000))
        data["y"] += data["x"]
        log = log_of(data, context="x", context_free=True)
        found = ai.AdaptiveOLS.from_formula("y ~ C(action) + x", log).fit("w-decorrelation")
        assert says(found.cautions, regressions.COEFFICIENTS_DRIFT, arm="a", move="rise") == (drift > 0.0)
        assert says(found.notes, regressions.NO_TREND) == (drift == 0.0)
        assert not says(found.cautions, regressions.MOVES)


def test_arms_that_drift_together_are_seen_together() -> None:
    """Four arms with a quarter of the rounds each: the slope of none is clear, that of all is."""
    rng = np.random.default_rng(8)
    clock = np.arange(1_200) / 1_200.0
    data = pd.DataFrame({"arm": rng.choice(list("abcd"), 1_200), "y": rng.normal(size=1_200) + 0.5 * clock})
    trends = profile_of(log_of(data)).trends
    assert not trends.seen.any()
    time, total, squares = np.arange(1_200.0), 0.0, 0.0
    for arm in "abcd":
        own = (data["arm"] == arm).to_numpy()
        y = data["y"].to_numpy()[own]
        terms = (time[own] - time[own].mean()) * (y - y.mean())
        total, squares = total + terms.sum(), squares + terms @ terms
    z = total / math.sqrt(squares)
    assert trends.common_pvalue(range(4)) == pytest.approx(math.erfc(abs(z) / math.sqrt(2.0)), rel=1e-6)
    assert says(ai.ArmMeans(log_of(data)).fit("alee").cautions, stationarity.ARMS_DRIFT, move="rise")
    sums = ai.aggregate(data.assign(b=np.arange(1_200) // 30), action="arm", reward="y", batch="b")
    assert SumsProfile(sums).trends.common_pvalue(range(4)) == pytest.approx(
        trends.common_pvalue(range(4)), rel=0.2
    )


def test_levels_that_come_back_are_seen_by_stretches() -> None:
    rng = np.random.default_rng(6)
    day = np.arange(2_000) * 28 // 2_000
    data = pd.DataFrame({"arm": rng.choice(["a", "b"], 2_000), "y": rng.normal(size=2_000)})
    weekly = data.assign(y=data["y"] + 0.7 * (day % 7 >= 5))
    for one, seen in ((data, False), (weekly, True)):
        found = ai.ArmMeans(log_of(one)).fit("alee")
        assert says(found.cautions, stationarity.LEVEL_MOVES) == seen
        sums = ai.aggregate(one.assign(b=np.arange(2_000) // 25), action="arm", reward="y", batch="b")
        rows = profile_of(log_of(one.assign(b=np.arange(2_000) // 25), batch="b")).trends
        assert SumsProfile(sums).trends.stretches_pvalue([0, 1]) == pytest.approx(
            rows.stretches_pvalue([0, 1]), rel=1e-6
        )
    rare = weekly.assign(y=(weekly["y"] > 3.0).astype(float))
    assert math.isnan(profile_of(log_of(rare)).trends.stretches_pvalue([0, 1]))
