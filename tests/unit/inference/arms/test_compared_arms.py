"""A contrast reads the rewards of its own two arms: rounds of others change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import rare_outcomes
from adaptinf.claims.arms.batched import UNVARYING
from adaptinf.typing import FloatArray


def two(seed: int = 0, rounds: int = 80, *, binary: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, rounds)
    reward = rng.binomial(1, 0.1, rounds).astype(float) if binary else rng.normal(size=rounds)
    frame = pd.DataFrame({"arm": arm, "y": reward, "week": np.arange(rounds) // 20})
    return frame.assign(p_0=0.5, p_1=0.5, p_2=0.0)


def with_third(frame: pd.DataFrame, rewards: FloatArray | None = None) -> pd.DataFrame:
    """30 rounds of a third arm, of skewed rewards, in weeks of their own."""
    own = np.random.default_rng(5).lognormal(0.0, 2.0, 30) if rewards is None else rewards
    third = pd.DataFrame({"arm": 2, "y": own, "week": 90, "p_0": 0.0, "p_1": 0.0, "p_2": 1.0})
    return pd.concat([frame, third], ignore_index=True)


def fit(frame: pd.DataFrame, estimator: str, **options: Any) -> ai.Results:
    log = ai.AdaptiveLog(frame, action="arm", reward="y", batch="week", arms=[0, 1, 2], **options)
    return ai.Contrast(log, treatment=1, control=0).fit(estimator)


def same(one: ai.Results, other: ai.Results) -> None:
    assert one.reference.name == other.reference.name
    np.testing.assert_allclose(other.conf_int().to_numpy(), one.conf_int().to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(other.estimate, one.estimate, rtol=1e-12)


@pytest.mark.parametrize("estimator", ["sample-mean", "aipw", "ipw", "batched"])
def test_a_skewed_third_arm_changes_nothing(estimator: str) -> None:
    options = {"propensities": "p_{arm}"} if estimator in ("aipw", "ipw") else {"adaptive": False}
    one, other = fit(two(), estimator, **options), fit(with_third(two()), estimator, **options)
    assert one.reference.name.startswith("t") or estimator == "batched"
    same(one, other)
    assert [told for told in other.cautions if "skew" in told] == []


def test_skewness_of_the_compared_arms_counts() -> None:
    frame = two().assign(y=np.random.default_rng(6).lognormal(0.0, 1.0, 80))
    calm = with_third(frame, np.random.default_rng(7).normal(size=30))
    one, other = (fit(rows, "sample-mean", adaptive=False) for rows in (frame, calm))
    assert "skewness" in one.reference.name
    same(one, other)


def test_counts_of_a_third_arm_leave_two_values_what_they_are() -> None:
    frame = two(1, binary=True)
    one, other = (fit(rows, "sample-mean", adaptive=False) for rows in (frame, with_third(frame)))
    assert "Agresti-Caffo" in " ".join(one.notes)
    same(one, other)
    constant = frame.assign(y=0.0)
    hundred = with_third(constant, np.repeat([0.0, 100.0], 15))
    low, high = fit(hundred, "sample-mean", adaptive=False).conf_int().to_numpy()[0]
    assert high > 5.0  # the other value of two arms of zeros is that of the third
    assert low < -5.0


def test_heavy_tails_elsewhere_choose_no_method() -> None:
    rng = np.random.default_rng(8)
    share = np.where(np.arange(400) < 200, 0.3, 0.6)
    arm = (rng.random(400) < share).astype(int)
    frame = pd.DataFrame({"arm": arm, "y": rng.normal(size=400), "p": np.where(arm == 1, share, 1.0 - share)})
    tails = pd.DataFrame({"arm": 2, "y": rng.standard_cauchy(200) * 100.0, "p": 1.0})
    for rows in (frame, pd.concat([frame, tails], ignore_index=True)):
        log = ai.AdaptiveLog(rows, action="arm", reward="y", propensity="p")
        assert ai.Contrast(log, treatment=1, control=0).fit().estimator == "aipw"


def test_sums() -> None:
    frame, options = two(), {"propensities": "p_{arm}"}
    found = []
    for rows in (frame, with_third(frame)):
        sums = ai.aggregate(
            rows, action="arm", reward="y", batch="week", centre=0.0, arms=[0, 1, 2], **options
        )
        found.append(ai.Contrast(sums, treatment=1, control=0).fit("aipw"))
    same(*found)


@pytest.mark.parametrize("value", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        ("sample-mean", {"adaptive": False}),
        ("aipw", {"propensities": "p_{arm}"}),
        ("alee", {}),
        ("batched", {}),
    ],
)
def test_equal_rewards_have_a_reason_among_the_cautions(
    value: float, estimator: str, options: dict[str, Any]
) -> None:
    result = fit(two().assign(y=value), estimator, **options)
    assert np.isnan(result.std_error[0])
    wanted = (rare_outcomes.UNVARYING, rare_outcomes.UNVARYING_COUNTS, UNVARYING)
    counted = says(result.notes, rare_outcomes.COUNTED)
    assert counted == (estimator == "aipw" and value < 2.0)
    assert counted or any(says(result.cautions, claim) for claim in wanted)
    if counted or (estimator == "sample-mean" and value < 2.0):  # by counts there is an interval all the same
        assert np.isfinite(result.conf_int().to_numpy()).all()
