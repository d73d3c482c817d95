"""Means and differences of arms with few events: gamma limits of weighted counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims import rare_outcomes
from adaptinf.claims.laws import GAMMA
from adaptinf.inference.arms import ArmMeans, Contrast, weighted
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.scores.inverse import arm_scores
from adaptinf.inference.winners import Winner
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.sums import Sums
from adaptinf.typing import FloatArray

ROUNDS = 900


def arrays_of(events: tuple[int, int], step: float = 1.0, origin: float = 0.0) -> LogArrays:
    """Two arms whose propensities wander, with these numbers of events, spread over their rounds."""
    rng = np.random.default_rng(8)
    share = np.clip(0.5 + 0.4 * np.sin(np.arange(ROUNDS) / 40.0), 0.1, 0.9)
    action = (rng.random(ROUNDS) < share).astype(np.int64)
    both = np.column_stack([1.0 - share, share])
    reward = np.zeros(ROUNDS)
    for arm, count in enumerate(events):
        rounds = np.flatnonzero(action == arm)
        reward[rounds[np.linspace(30, len(rounds) - 30, count).astype(int)]] = 1.0
    own = both[np.arange(ROUNDS), action]
    return LogArrays(action, origin + step * reward, propensity=own, propensities=both)


def log_of(arrays: LogArrays) -> AdaptiveLog:
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)


def weights_of(arrays: LogArrays, kind: str) -> FloatArray:
    """What a unit of each round's reward adds to the means, (T, 2), round by round."""
    assert arrays.propensities is not None
    h = np.sqrt(arrays.propensities)
    if kind == "combined":
        h = np.repeat((1.0 / arrays.propensities).sum(axis=1)[:, None] ** -0.5, 2, axis=1)
    h[0] = 0.0
    chosen = np.eye(2)[arrays.action]
    return np.asarray(chosen * h / h.sum(axis=0) / arrays.propensities)


def test_a_mean_has_the_limits_of_fay_and_feuer() -> None:
    arrays = arrays_of((3, 200))
    result = ArmMeans(log_of(arrays)).fit("aipw", "sqrt")
    share = weights_of(arrays, "sqrt")[:, 0]
    events = share[(arrays.reward == 1.0) & (arrays.action == 0)]
    assert arrays.propensity is not None
    scored = arm_scores(
        arrays.action, arrays.reward, arrays.propensity, arrays.propensities, np.arange(2), weights="sqrt"
    )
    weight = scored.weights / scored.weights.sum(axis=0)
    error = np.sum((weight * (scored.scores - (weight * scored.scores).sum(axis=0))) ** 2, axis=0)[0]
    y, w = events.sum(), share.max()
    v = max(np.sum(events**2), error)
    low = stats.gamma.ppf(0.025, y**2 / v, scale=v / y)
    high = stats.gamma.isf(0.025, (y + w) ** 2 / (v + w**2), scale=(v + w**2) / (y + w))
    found = result.conf_int().to_numpy()[0]
    centre = result.estimate[0]
    np.testing.assert_allclose(found, [centre - (y - low), centre + (high - y)], rtol=1e-9)
    assert says(result.notes, rare_outcomes.COUNTED, enough=10)
    assert not says(result.notes, rare_outcomes.NO_INTERVAL)
    assert np.isnan(result.std_error[0])
    plain = ArmMeans(log_of(arrays)).fit("aipw", "sqrt", test="t")
    assert np.isnan(plain.conf_int().to_numpy()[0]).all()
    np.testing.assert_array_equal(result.conf_int().to_numpy()[1], plain.conf_int().to_numpy()[1])


def test_a_difference_combines_both_arms_limits() -> None:
    arrays = arrays_of((3, 6))
    result = Contrast(log_of(arrays), treatment="b", control="a").fit("aipw")
    assert result.weights == "combined"
    assert result.reference.name == GAMMA()
    share = weights_of(arrays, "combined")
    events = [share[(arrays.reward == 1.0) & (arrays.action == arm), arm] for arm in (0, 1)]
    y, v = (np.array([np.sum(one**power) for one in events]) for power in (1, 2))
    w = share.max(axis=0)
    known = Contrast(log_of(arrays), treatment="b", control="a").fit("aipw", keep_scores=True).scores
    assert known is not None
    v = v * max(1.0, float(np.sum(known["influence"] ** 2)) / v.sum())
    low = stats.gamma.ppf(0.05, y**2 / v, scale=v / y)
    high = stats.gamma.isf(0.05, (y + w) ** 2 / (v + w**2), scale=(v + w**2) / (y + w))
    down, up = y - low, high - y
    found = result.conf_int(0.1).to_numpy()[0] - result.estimate[0]
    np.testing.assert_allclose(found, [-np.hypot(down[1], up[0]), np.hypot(up[1], down[0])], rtol=1e-9)
    assert says(result.notes, rare_outcomes.COUNTED, enough=10)
    test = ArmMeans(log_of(arrays)).fit("aipw").t_test("b - a")
    np.testing.assert_allclose(test.conf_int(0.1)[0], result.conf_int(0.1).to_numpy()[0], rtol=1e-9)


@pytest.mark.parametrize(("step", "origin"), [(100.0, 0.0), (1.0, 1e6), (-1.0, 1.0)])
def test_any_coding_gives_the_same_counts(step: float, origin: float) -> None:
    plain = ArmMeans(log_of(arrays_of((3, 6)))).fit().conf_int().to_numpy()
    moved = ArmMeans(log_of(arrays_of((3, 6), step, origin))).fit().conf_int().to_numpy()
    np.testing.assert_allclose(np.sort(origin + step * plain), moved, rtol=1e-9, atol=1e-9)


def test_arms_without_an_event_have_an_upper_limit() -> None:
    arrays = arrays_of((0, 8))
    result = ArmMeans(log_of(arrays)).fit("aipw", "uniform")
    low, high = result.conf_int().to_numpy()[0]
    assert arrays.propensities is not None
    most = 1.0 / (ROUNDS - 1) / np.min(arrays.propensities[1:, 0], where=arrays.action[1:] == 0, initial=1.0)
    assert high - result.estimate[0] == pytest.approx(-np.log(0.025) * most, rel=1e-9)
    assert low == pytest.approx(result.estimate[0], abs=1e-12)
    assert np.isfinite(Contrast(log_of(arrays), treatment="b", control="a").fit().conf_int().to_numpy()).all()
    winner = Winner(log_of(arrays)).fit()
    assert np.isfinite(winner.conf_int().to_numpy()).all()


@pytest.mark.parametrize("value", [0.0, 1.0, 7.0])
def test_a_log_without_an_event_has_limits_if_the_other_value_is_known(value: float) -> None:
    arrays = arrays_of((0, 0), origin=value)
    low, high = ArmMeans(log_of(arrays)).fit("aipw", "uniform").conf_int().to_numpy()[0]
    assert arrays.propensities is not None
    most = 1.0 / (ROUNDS - 1) / np.min(arrays.propensities[1:, 0], where=arrays.action[1:] == 0, initial=1.0)
    reach = -np.log(0.025) * most
    expected = {0.0: (0.0, reach), 1.0: (1.0 - reach, 1.0), 7.0: (np.nan, np.nan)}[value]
    np.testing.assert_allclose([low, high], expected, rtol=1e-9, atol=1e-12)


def test_frequent_outcomes_are_not_counted() -> None:
    """Nine successes of twenty are few, but no rare events; the caution remains."""
    arrays = arrays_of((200, 200))
    result = ArmMeans(log_of(arrays)).fit()
    assert GAMMA() not in result.reference.name


def batched(events: tuple[int, int], step: float = 1.0, origin: float = 0.0) -> AdaptiveLog:
    """The same rows in batches, in which propensities are constant."""
    arrays = arrays_of(events, step, origin)
    batch = np.arange(ROUNDS) // 90
    share = np.array([0.5, 0.3, 0.6, 0.2, 0.7, 0.4, 0.5, 0.8, 0.3, 0.6])[batch]
    both = np.column_stack([1.0 - share, share])
    own = both[np.arange(ROUNDS), arrays.action]
    changed = replace(arrays, propensity=own, propensities=both, batch=batch)
    return AdaptiveLog.from_arrays(changed, arms=("a", "b"), context_free=True)


@pytest.mark.parametrize("events", [(3, 6), (0, 8), (7, 12), (3, 200)])
@pytest.mark.parametrize("coding", [(1.0, 0.0), (-1.0, 1.0)])
def test_sums_have_the_limits_of_rows(events: tuple[int, int], coding: tuple[float, float]) -> None:
    log = batched(events, *coding)
    sums = Sums.of_log(log)
    for weights in ("joint", "uniform", "sqrt"):
        fits = [ArmMeans(one).fit("ipw", weights, stationary=weights == "sqrt") for one in (log, sums)]
        rows, same = (fit.conf_int().to_numpy() for fit in fits)
        np.testing.assert_allclose(same, rows, rtol=1e-9, atol=1e-12, equal_nan=True)
        assert says(fits[1].notes, rare_outcomes.COUNTED, enough=10) == says(
            fits[0].notes, rare_outcomes.COUNTED, enough=10
        )
    for weights in ("combined", "uniform"):
        pair = [Contrast(one, treatment="b", control="a").fit("ipw", weights) for one in (log, sums)]
        np.testing.assert_allclose(pair[1].conf_int(), pair[0].conf_int(), rtol=1e-9, equal_nan=True)
        assert pair[1].reference.name == pair[0].reference.name
    by_default = recommend(sums).methods[0].verdict
    assert by_default.unanswered == 0
    assert np.isfinite(ArmMeans(sums).fit().conf_int().to_numpy()).all()


def test_sums_of_other_rewards_are_not_counted() -> None:
    """Amounts of single rewards are not known from sums."""
    arrays = arrays_of((3, 6))
    rewards = arrays.reward * np.linspace(1.0, 2.0, ROUNDS)
    log = batched((3, 6))
    other = replace(log.arrays, reward=rewards)
    sums = Sums.of_log(AdaptiveLog.from_arrays(other, arms=("a", "b"), context_free=True))
    result = ArmMeans(sums).fit("ipw")
    assert GAMMA() not in result.reference.name
    assert np.isnan(result.conf_int().to_numpy()[0]).all()


def test_very_long_logs_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "_COUNTABLE", 2 * ROUNDS - 1)
    log = log_of(arrays_of((3, 6)))
    result = ArmMeans(log).fit("aipw")
    assert says(result.notes, rare_outcomes.NO_INTERVAL, terms="a (3)")
    (row,) = [one for one in recommend(log).methods if one.verdict.name == "aipw with joint weights"]
    assert row.verdict.unanswered == 1


def test_scores_answer_where_they_count() -> None:
    first = recommend(log_of(arrays_of((3, 6)))).methods[0].verdict
    assert first.name == "aipw with joint weights"
    assert first.unanswered == 0
    assert not says((first.warning,), rare_outcomes.UNANSWERED)
