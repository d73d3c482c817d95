"""Bounds for missing rewards: side by side, and around the estimate for rewards missing at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.arms.weighted_arms import MIXES_ENDS
from adaptinf.claims.data import missing_rewards
from adaptinf.errors import InvalidForLog
from adaptinf.inference.results.tables import format_number


def visits(share: float, seed: int, missing: str, rounds: int = 400) -> ai.AdaptiveLog:
    """Two arms with even chances; a share of the rewards is missing."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(["a", "b"], size=rounds)
    frame = pd.DataFrame({"arm": arm, "propensity_a": 0.5, "propensity_b": 0.5})
    frame["y"] = rng.binomial(1, np.where(arm == "b", 0.5, 0.4)).astype(float)
    frame.loc[rng.random(rounds) < share, "y"] = np.nan
    return ai.AdaptiveLog(frame, action="arm", reward="y", missing=missing, reward_range=(0, 1))


def fits(share: float, seed: int, missing: str) -> list[ai.Results]:
    log = visits(share, seed, missing)
    contrast = ai.Contrast(log, treatment="b", control="a").fit("aipw", "combined")
    return [ai.ArmMeans(log).fit("aipw", "uniform"), contrast]


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_bounds_contain_the_estimate_for_rewards_missing_at_random(share: float) -> None:
    for seed in range(12):
        for bounds, dropped in zip(fits(share, seed, "bounds"), fits(share, seed, "drop"), strict=True):
            lowest, highest = bounds.details["lowest"], bounds.details["highest"]
            assert (lowest - 1e-12 <= dropped.estimate).all()
            assert (dropped.estimate <= highest + 1e-12).all()
            assert says(bounds.notes, missing_rewards.SAME_WEIGHTS)


def test_bounds_are_the_estimates_with_all_values_at_one_end() -> None:
    """The scores by hand: means of the rewards observed before, and no weight before an arm's first."""
    log = visits(0.1, 4, "bounds", rounds=60)
    action, reward = log.arrays.action, log.arrays.recorded
    found = ai.ArmMeans(log).fit("aipw", "uniform")
    for arm in (0, 1):
        for end, name in ((0.0, "lowest"), (1.0, "highest")):
            scores: list[float] = []
            for t in range(60):
                before = reward[:t][(action[:t] == arm) & np.isfinite(reward[:t])]
                if before.size:
                    value = reward[t] if np.isfinite(reward[t]) else end
                    scores.append(before.mean() + (action[t] == arm) * (value - before.mean()) / 0.5)
            assert found.details[name][arm] == pytest.approx(np.mean(scores), rel=1e-12)


def test_tables_and_sentences_show_both_bounds() -> None:
    results = {
        missing: ai.Contrast(visits(0.2, 1, missing), treatment="b", control="a").fit() for missing in ENDS
    }
    lowest, highest = (results["bounds"].details[name][0] for name in ("lowest", "highest"))
    shown = f"{format_number(lowest)} to {format_number(highest)}"
    low, high = (format_number(end) for end in results["bounds"].conf_int().iloc[0])
    for missing, result in results.items():
        assert result.estimate[0] == pytest.approx(
            {"worst": lowest, "best": highest}.get(missing, (lowest + highest) / 2)
        )
        assert result.conf_int().equals(results["bounds"].conf_int())
        heads, row = (
            line.split() for line in str(result).splitlines() if "lowest" in line or "b - a" in line
        )
        assert heads[:2] == ["lowest", "highest"]
        assert row[3:5] == [format_number(lowest), format_number(highest)]
        assert result.sentence() == (
            f"It is undecided whether b or a has the higher mean y: difference {shown} "
            f"(95% interval {low} to {high})."
        )
        lead = {"worst": "the lower bound", "best": "the upper bound"}.get(missing, "the midpoint")
        assert f"(estimate: {lead})" in str(result.explain()).replace("\n  ", " ")
    assert np.isnan(results["bounds"].std_error).all()


ENDS = ("bounds", "worst", "best")


def test_means_are_told_with_their_bounds_and_not_ranked() -> None:
    result = ai.ArmMeans(visits(0.2, 1, "bounds")).fit()
    told = []
    for place, arm in enumerate("ab"):
        numbers = [
            *(result.details[name][place] for name in ("lowest", "highest")),
            *result.conf_int().iloc[place],
        ]
        a, b, low, high = map(format_number, numbers)
        told.append(f"{arm} has mean y {a} to {b} (95% interval {low} to {high})")
    assert result.sentence() == f"For any values of the missing rewards: {'; '.join(told)}."


def test_joint_weights_have_no_ends(tmp_path: Any) -> None:
    log = visits(0.2, 1, "bounds")
    with pytest.raises(InvalidForLog) as caught:
        ai.ArmMeans(log).fit("aipw", "joint")
    assert says(caught.value.reason, MIXES_ENDS)
    assert ai.ArmMeans(log).fit("aipw").weights == "uniform"
    assert ai.recommend(log).frame.set_index("method").loc["aipw with joint weights", "label"] == "not valid"
    log.to_parquet(tmp_path / "log.parquet")
    assert ai.read_log(tmp_path / "log.parquet").missing == "bounds"


def test_a_report_has_both_bounds(tmp_path: Any) -> None:
    log = visits(0.2, 1, "bounds")
    result = ai.Contrast(log, treatment="b", control="a").fit()
    ai.report(result, tmp_path / "r.html", log=log)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    shown = " to ".join(format_number(result.details[name][0]) for name in ("lowest", "highest"))
    assert page.count(shown) >= 3  # the sentence, the picture and the table
    assert '<th scope="col">coef</th>' not in page
