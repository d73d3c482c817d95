"""Arm means and contrasts where units have several rounds: errors by unit, against literal versions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import special, stats

import adaptinf as ai
from adaptinf.claims import units as claims
from adaptinf.claims.propensities import ONE_DRAW_A_UNIT
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options
from adaptinf.typing import FloatArray, IntArray


def frame_of(rounds: int = 8, units: int = 50, *, kept: bool = False, rate: float | None = None) -> Any:
    """Units in turn, arm b with .3 or .6 by the turn, or once a unit with .4."""
    rng = np.random.default_rng(6)
    who = np.tile(np.arange(units), rounds)
    share = np.full(len(who), 0.4) if kept else np.where(np.arange(len(who)) // units % 2 == 0, 0.3, 0.6)
    drawn = (rng.random(len(who)) < share).astype(int)
    arm = drawn[:units][who] if kept else drawn
    reward = rng.normal(size=units)[who] + rng.normal(0.4 * arm, 1.0)
    if rate is not None:
        reward = (rng.random(len(who)) < rate).astype(float)
    frame = pd.DataFrame({"who": [f"u{i}" for i in who], "arm": np.where(arm == 1, "b", "a"), "y": reward})
    return frame.assign(p_b=share, p_a=1.0 - share, e=np.where(arm == 1, share, 1.0 - share))


def log_of(frame: pd.DataFrame, **given: Any) -> AdaptiveLog:
    columns = {"propensities": {"a": "p_a", "b": "p_b"}, "unit": "who", **given}
    return AdaptiveLog(frame, action="arm", reward="y", **nested_options(columns))


def contrast(log: AdaptiveLog, **asked: Any) -> ai.Results:
    return ai.Contrast(log, treatment="b", control="a").fit(**asked)


def literal(frame: pd.DataFrame, arm: str) -> tuple[float, dict[str, float], float]:
    """Mean of an arm, sums of its influence by unit, and degrees of freedom, by the formulas."""
    y, who, chosen, e = (frame[name].to_numpy() for name in ("y", "who", "arm", "e"))
    score, weight = np.zeros(len(y)), np.zeros(len(y))
    for t in range(len(y)):
        others = [s for s in range(t) if who[s] != who[t]]
        if not others:
            continue
        own = [s for s in others if chosen[s] == arm]
        m = np.mean(y[own or others])
        weight[t], score[t] = 1.0, m + (chosen[t] == arm) * (y[t] - m) / e[t]
    mean = weight @ score / weight.sum()
    sums = {u: float((weight * (score - mean))[who == u].sum() / weight.sum()) for u in dict.fromkeys(who)}
    gain = (weight * (chosen == arm) / e) ** 2
    had = [weight[who == u].sum() for u in sums if np.any(gain[who == u] > 0)]
    effective = sum(h**2 for h in had) ** 2 / sum(h**4 for h in had)
    return mean, sums, min(gain.sum() ** 2 / (gain @ gain), effective) - 1.0


def test_means_and_contrasts_are_the_literal_ones() -> None:
    frame = frame_of()
    log = log_of(frame)
    means, difference = ai.ArmMeans(log).fit(), contrast(log)
    (a, sums_a, free_a), (b, sums_b, free_b) = literal(frame, "a"), literal(frame, "b")
    factor = 50 / 49
    np.testing.assert_allclose(means.estimate, [a, b], rtol=1e-12)
    variances = [factor * sum(s**2 for s in sums.values()) for sums in (sums_a, sums_b)]
    np.testing.assert_allclose(means.std_error**2, variances, rtol=1e-11)
    size = np.sqrt(factor * sum((sums_b[u] - sums_a[u]) ** 2 for u in sums_a))
    np.testing.assert_allclose(difference.std_error, [size], rtol=1e-11)
    half = size * stats.t.ppf(0.975, min(free_a, free_b))
    np.testing.assert_allclose(difference.conf_int().to_numpy()[0], [b - a - half, b - a + half], rtol=1e-10)
    assert means.weights == difference.weights == "uniform"
    assert means.cautions == difference.cautions == ()


def test_tables_say_what_errors_by_unit_assume() -> None:
    notes = contrast(log_of(frame_of())).explain().texts
    assert says(notes, claims.NOTES[0], units=50, rounds=400)
    assert says(notes, claims.INDEPENDENT)
    assert says(notes, claims.NO_CARRY_OVER)
    assert says(notes, claims.OTHERS_MEAN)
    assert "Efficiency" not in " ".join(notes)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1e6), (1e9, 0.0), (1e-9, 0.0)])
def test_scale_and_origin_of_rewards_change_nothing_else(scale: float, shift: float) -> None:
    frame = frame_of()
    frame["y"] = np.round(frame["y"] * 1024) / 1024
    plain, moved = contrast(log_of(frame)), contrast(log_of(frame.assign(y=frame["y"] * scale + shift)))
    np.testing.assert_allclose(moved.estimate / scale, plain.estimate, atol=1e-9 * plain.std_error[0])
    np.testing.assert_allclose(moved.std_error / scale, plain.std_error, rtol=1e-9)


def test_one_round_a_unit_is_as_without_units() -> None:
    frame = frame_of(rounds=1, units=200)
    named, bare = contrast(log_of(frame)), contrast(log_of(frame, unit=None))
    np.testing.assert_array_equal(named.std_error, bare.std_error)
    assert named.notes == bare.notes


def test_an_arm_drawn_once_is_recognised_by_propensities_of_1() -> None:
    frame = frame_of(kept=True)
    told = frame.copy()
    told.loc[50:, "p_b"] = (told.loc[50:, "arm"] == "b").astype(float)
    told["p_a"] = 1.0 - told["p_b"]
    same, once = contrast(log_of(frame)), contrast(log_of(told))
    np.testing.assert_array_equal(once.estimate, same.estimate)
    np.testing.assert_array_equal(once.std_error, same.std_error)
    assert says(once.notes, claims.NOTES[1])
    chosen = contrast(log_of(told, propensities=None, propensity="e"))  # its e is .4 and .6 throughout
    np.testing.assert_allclose(chosen.estimate, same.estimate, rtol=1e-12)


def test_kept_arms_with_moving_propensities_contradict_themselves() -> None:
    frame = frame_of(kept=True)
    frame["p_b"] = np.linspace(0.3, 0.6, len(frame))
    frame["p_a"] = 1.0 - frame["p_b"]
    with pytest.raises(InvalidForLog) as caught:
        contrast(log_of(frame))
    assert says(caught.value.reason, ONE_DRAW_A_UNIT)


def test_a_running_regression_must_not_know_how_the_draw_fell() -> None:
    frame = frame_of(kept=True).assign(x=np.arange(400) % 7)
    with pytest.raises(InvalidForLog) as caught:
        contrast(log_of(frame, context=["x"]), outcome="running-ridge")
    assert says(caught.value.reason, claims.OWN_PAST_TELLS)
    drawn = contrast(log_of(frame_of().assign(x=np.arange(400) % 7), context=["x"]), outcome="running-ridge")
    assert says(drawn.cautions, claims.OWN_PAST)


def test_few_units_and_few_events() -> None:
    few = contrast(log_of(frame_of(units=20)))
    assert len(few.cautions) == 1
    assert says(few.cautions[0], claims.FEW, units=20)
    rare = contrast(log_of(frame_of(rate=0.04)))
    assert says(rare.cautions, claims.FEW_WITH_EVENTS, enough=10)
    none = contrast(log_of(frame_of(rate=0.008)))
    assert np.all(np.isnan(none.conf_int().to_numpy()))
    assert says(none.notes, claims.NO_INTERVAL, fewest=5)
    spread = contrast(log_of(frame_of(rate=0.008).assign(y=lambda f: 100.0 * f["y"])))  # whatever the coding
    assert np.all(np.isnan(spread.conf_int().to_numpy()))


def test_an_arm_of_one_unit_has_no_error() -> None:
    frame = frame_of()
    frame.loc[frame["who"] != "u3", "arm"] = "a"
    frame.loc[[3, 53], "arm"] = "b"
    result = ai.ArmMeans(log_of(frame)).fit()
    assert np.isnan(result.std_error).tolist() == [False, True]
    assert says(result.notes, claims.ONE_UNIT, arm="b")


def test_weights_from_propensities_come_with_a_caution() -> None:
    log = log_of(frame_of())
    for asked in ({"weights": "combined"}, {"weights": "sqrt", "stationary": True}):
        result = contrast(log, **asked)
        assert says(result.cautions, claims.TIED)
    rows = ai.recommend(log, "contrast", treatment="b", control="a").methods
    assert rows[0].verdict.name == "aipw with uniform weights"
    assert says(rows[0].verdict.assumes, claims.NO_CARRY_OVER)


def test_the_bootstrap_draws_a_sign_a_unit() -> None:
    result = ai.ArmMeans(log_of(frame_of())).fit(keep_scores=True)
    assert result.scores is not None
    rows = result.scores["influence_by_unit"]
    assert rows.shape == (50, 2)
    np.testing.assert_allclose(rows.T @ rows, result.covariance, rtol=1e-12)
    half = np.ptp(result.conf_int_simultaneous(method="bootstrap").to_numpy(), axis=1) / 2
    assert np.all(half / result.std_error > 1.96)


def test_late_rewards_predict_from_when_they_are_known() -> None:
    frame = frame_of()
    known = np.minimum(np.arange(400) + 1, 400)
    at_once, bare = (
        contrast(log_of(frame.assign(known=known), outcome_round="known")),
        contrast(log_of(frame)),
    )
    np.testing.assert_allclose(at_once.std_error, bare.std_error, rtol=1e-12)
    late = contrast(log_of(frame.assign(known=np.minimum(known + 120, 400)), outcome_round="known"))
    assert abs(late.std_error[0] / bare.std_error[0] - 1.0) > 1e-4  # other predictions, and still by unit
    assert abs(late.std_error[0] / bare.std_error[0] - 1.0) < 0.2
    assert says(late.notes, claims.LATE_MEAN)


def test_missing_rewards_of_units_are_refused_by_the_verdict_too() -> None:
    log = log_of(frame_of().assign(y=lambda f: f["y"].where(np.arange(400) % 9 > 0)), missing="drop")
    with pytest.raises(InvalidForLog) as caught:
        contrast(log, estimator="aipw")
    assert says(caught.value.reason, claims.INCOMPLETE)
    assert not any(
        row.verdict.valid for row in ai.recommend(log, "contrast", treatment="b", control="a").methods
    )


def thompson(rng: np.random.Generator, units: int, size: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Thompson sampling on all units' rewards, floor .05, units with effects of their own; equal arms."""
    who, rounds = np.tile(np.arange(units), size), units * size
    level, effect = rng.normal(size=units), rng.normal(0.0, 0.5, (units, 2))
    coin, noise = rng.random(rounds), rng.normal(size=rounds)
    arm, e, y = np.zeros(rounds, dtype=np.int64), np.zeros(rounds), np.zeros(rounds)
    n, s = np.ones(2), np.zeros(2)
    for t in range(rounds):
        share = float(special.ndtr((s[1] / n[1] - s[0] / n[0]) / np.sqrt((1.0 / n).sum())))
        share = min(max(share, 0.05), 0.95)
        arm[t] = coin[t] < share
        e[t] = share if arm[t] else 1.0 - share
        y[t] = level[who[t]] + effect[who[t], arm[t]] + noise[t]
        n[arm[t]] += 1.0
        s[arm[t]] += y[t]
    return arm, e, y


def kept_arm(rng: np.random.Generator, units: int, size: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """A fair coin once a unit."""
    who = np.tile(np.arange(units), size)
    arm = rng.integers(0, 2, units)[who]
    return arm, np.full(len(who), 0.5), rng.normal(size=units)[who] + rng.normal(size=len(who))


def coins(rng: np.random.Generator, units: int, size: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """A fair coin a round."""
    who = np.tile(np.arange(units), size)
    arm = rng.integers(0, 2, len(who))
    return arm, np.full(len(who), 0.5), rng.normal(size=units)[who] + rng.normal(size=len(who))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "units", "size", "runs", "level"),
    [(coins, 100, 10, 60, 0.95), (kept_arm, 40, 10, 80, 0.94), (thompson, 40, 25, 60, 0.94)],
)
def test_coverage(draw: Any, units: int, size: int, runs: int, level: float) -> None:
    """Both arms' population means are 0; false alarms below 1e-4 where intervals cover as they should."""
    rng = np.random.default_rng(7)
    who = np.tile(np.arange(units), size)
    hits = np.zeros(2)
    for _ in range(runs):
        arm, e, y = draw(rng, units, size)
        frame = pd.DataFrame({"arm": np.where(arm == 1, "b", "a"), "y": y, "e": e, "who": who})
        log = AdaptiveLog(frame, action="arm", reward="y", propensity="e", unit="who")
        for k, result in enumerate((ai.ArmMeans(log, ["a"]).fit(), contrast(log))):
            low, high = result.conf_int().to_numpy()[0]
            hits[k] += low <= 0.0 <= high
    assert np.all(stats.binom.cdf(hits, runs, level) > 1e-4)
