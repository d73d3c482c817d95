"""Sequences of scores where an arm joins late, and the scores that contrasts use by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.data.availability import DIFFERENT_ROUNDS, LEFT_OUT
from adaptinf.errors import InvalidForLog

JOINED = 200
ARMS = ["A", "B", "C"]


def frame_of(seed: int, *, rise: float = 0.0, horizon: int = 600, joined: int = JOINED) -> pd.DataFrame:
    """Three equal arms whose success rate rises from .2; C joins late, all arms having equal shares."""
    rng, time = np.random.default_rng(seed), np.arange(horizon)
    shares = np.where(time[:, None] < joined, [0.5, 0.5, 0.0], 1 / 3)
    arm = (rng.random(horizon)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    reward = (rng.random(horizon) < 0.2 + rise * time / horizon).astype(float)
    columns = {f"p_{name}": share for name, share in zip(ARMS, shares.T, strict=True)}
    return pd.DataFrame(
        {"arm": np.array(ARMS)[arm], "y": reward, "batch": time // 50, "ones": 1.0, **columns}
    )


def log_of(frame: pd.DataFrame, *, known: bool = True, **others: Any) -> ai.AdaptiveLog:
    given = {"propensities": "p_{arm}"} if known else {}
    return ai.AdaptiveLog(
        frame, action="arm", reward="y", batch="batch", reward_range=(0, 1), arms=ARMS, **given, **others
    )


def limits(log: Any, *args: Any, method: str | None = None, estimator: str | None = None, **kw: Any) -> Any:
    return ai.ConfidenceSequence(log, *args, **kw).fit(method, estimator=estimator)


@pytest.mark.parametrize("estimator", ["ipw", "aipw"])
@pytest.mark.parametrize("method", ["betting", "asymptotic"])
def test_scores_are_those_of_the_log_after_the_arm_joined(method: str, estimator: str) -> None:
    frame = frame_of(1)
    whole, part = log_of(frame), log_of(frame[JOINED:].reset_index(drop=True))
    options = {"method": method, "estimator": estimator}
    for asked in ({"treatment": "C", "control": "A"}, {}):
        target = "contrast" if asked else "arm-means"
        one, other = limits(whole, target, **asked, **options), limits(part, target, **asked, **options)
        np.testing.assert_array_equal(one.params, other.params)
        np.testing.assert_array_equal(one.conf_int(), other.conf_int())
        np.testing.assert_array_equal(one.pvalues, other.pvalues)
        later = one.table(rounds=[JOINED + 150])[["estimate", "low", "high"]]
        np.testing.assert_array_equal(later, other.table(rounds=[150])[["estimate", "low", "high"]])
        before = one.table(rounds=[JOINED])
        assert before["estimate"].isna().all()
        assert (before["high"] - before["low"] == (2.0 if asked else 1.0)).all()


def test_sums_leave_out_the_batches_before_an_arm_joined() -> None:
    frame = frame_of(2)
    whole, part = log_of(frame), log_of(frame[JOINED:].reset_index(drop=True))
    one, other, rows = (
        limits(log, "contrast", treatment="C", control="A", method="asymptotic")
        for log in (ai.Sums.of_log(whole), ai.Sums.of_log(part), whole)
    )
    assert one.estimator == other.estimator == rows.estimator == "aipw"
    np.testing.assert_allclose(one.conf_int(), other.conf_int(), atol=1e-12)
    np.testing.assert_allclose(one.params, other.params, atol=1e-12)
    assert one.details["ess"] == pytest.approx(rows.details["ess"], rel=1e-12)
    assert one.details["min_propensity"][0] == pytest.approx(1 / 3)


def test_pairs_that_were_always_possible_use_all_rounds() -> None:
    log = log_of(frame_of(3))
    both = limits(log, "contrast", treatment=["B", "C"], control="A", method="asymptotic")
    alone = limits(log, "contrast", treatment="B", control="A", method="asymptotic")
    np.testing.assert_array_equal(both.conf_int().loc["B - A"], alone.conf_int().loc["B - A"])
    assert LEFT_OUT(arm="C", left="200", rounds=600) in both.notes
    assert not says(alone.notes, LEFT_OUT)


def test_which_scores_a_contrast_uses_by_default() -> None:
    frame = frame_of(4, joined=0)
    wrong = frame.assign(p_A=0.8, p_B=0.1, p_C=0.1)
    ask = {"treatment": "B", "control": "A"}
    fits = {
        "constant": limits(log_of(frame), "contrast", **ask),
        "no propensities": limits(log_of(frame, known=False), "contrast", **ask),
        "wrong propensities": limits(log_of(wrong), "contrast", **ask),
        "counts": limits(log_of(frame), "contrast", method="beta-binomial", **ask),
        "stationary": ai.ConfidenceSequence(log_of(frame), "contrast", **ask).fit(stationary=True),
        "scale": ai.ConfidenceSequence(log_of(frame), "contrast", **ask).fit("normal-mixture", sigma=0.5),
        "means": limits(log_of(frame)),
    }
    moving = frame_of(4, joined=0)
    shift = np.random.default_rng(0).uniform(-0.1, 0.1, len(moving))
    moving = moving.assign(p_A=moving["p_A"] + shift, p_B=moving["p_B"] - shift)
    fits["moving"] = limits(log_of(moving), "contrast", **ask)
    fits["moving, context-free"] = limits(log_of(moving, about={"context_free": True}), "contrast", **ask)
    assert {name: fit.estimator for name, fit in fits.items()} == {
        "constant": "aipw",
        "no propensities": "sample-mean",
        "wrong propensities": "sample-mean",
        "counts": "sample-mean",
        "stationary": "sample-mean",
        "scale": "sample-mean",
        "means": "sample-mean",
        "moving": "ipw",
        "moving, context-free": "aipw",
    }


def test_an_arm_without_a_round_has_no_scores_by_default() -> None:
    frame = frame_of(5, joined=0)
    frame.loc[frame["arm"] == "C", "arm"] = "A"
    fit = limits(log_of(frame), "contrast", treatment="C", control="A")
    assert fit.estimator == "sample-mean"
    assert np.isnan(fit.params.iloc[0])


def test_sample_means_of_different_rounds_are_cautioned() -> None:
    log = log_of(frame_of(6))
    ask = {"treatment": "C", "control": "A"}
    assert says(limits(log).cautions, DIFFERENT_ROUNDS)
    assert says(limits(log, "contrast", estimator="sample-mean", **ask).cautions, DIFFERENT_ROUNDS)
    assert not says(limits(log, arms=["A", "B"]).cautions, DIFFERENT_ROUNDS)
    assert not says(limits(log, "contrast", **ask).cautions, DIFFERENT_ROUNDS)
    assert not says(ai.ConfidenceSequence(log).fit(stationary=True).cautions, DIFFERENT_ROUNDS)


def test_a_floor_need_hold_only_where_both_arms_were_possible() -> None:
    sequence = ai.ConfidenceSequence(log_of(frame_of(7)), "contrast", treatment="C", control="A")
    assert sequence.fit("normal-mixture", estimator="ipw", floor=0.3).estimator == "ipw"


def test_arms_that_were_never_together_are_refused() -> None:
    frame = frame_of(8)
    late = np.arange(len(frame)) >= JOINED
    frame.loc[late, ["p_A", "p_B", "p_C"]] = [0.0, 0.5, 0.5]
    frame.loc[late & (frame["arm"] == "A"), "arm"] = "B"
    with pytest.raises(InvalidForLog, match="the two arms were never all available in the same round"):
        limits(log_of(frame), "contrast", treatment="C", control="A", estimator="ipw")
    assert limits(log_of(frame), "contrast", treatment="C", control="A").estimator == "sample-mean"


def test_drift_does_not_tell_equal_arms_apart() -> None:
    """A rate that rises from .2 to .7: 100 logs, two contrasts each; sample means of C less A miss."""
    missed = {"default": np.zeros(2), "sample-mean": np.zeros(2)}
    for seed in range(100):
        log = log_of(frame_of(1000 + seed, rise=0.5, horizon=2000, joined=800))
        sequence = ai.ConfidenceSequence(log, "contrast", control="A")
        for name in missed:
            fit = sequence.fit(estimator=None if name == "default" else name)
            interval = fit.conf_int().to_numpy()
            missed[name] += (interval[:, 0] > 0.0) | (interval[:, 1] < 0.0)
    assert max(missed["default"]) <= stats.binom.isf(1e-4, 100, 0.05)
    assert missed["sample-mean"][1] >= 90
