"""Arms that differ otherwise where a third could not be chosen: p-values by hand, tables, sums, the level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says, within
from scipy import stats

import adaptinf as ai
from adaptinf.claims.data import availability
from adaptinf.inference.arms.data.arm_availability import differs_elsewhere
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.validation import nested_options

ALL = np.arange(3)


def frame(turn: float = 0.0, rounds: int = 1_500, seed: int = 0) -> pd.DataFrame:
    """A coin between A and B, and from the second third on C; B leads by .2, and before by `turn` more."""
    rng = np.random.default_rng(seed)
    late = np.arange(rounds) >= rounds // 3
    arm = np.where(late, rng.integers(0, 3, rounds), rng.integers(0, 2, rounds))
    lead = np.array([0.0, 0.2, 0.3])[arm] + turn * (arm == 1) * ~late
    share = np.where(late, 1.0 / 3.0, 0.5)
    return pd.DataFrame(
        {
            "arm": np.array(list("ABC"))[arm],
            "y": lead + 2.0 * np.arange(rounds) / rounds + rng.normal(size=rounds),
            "day": np.arange(rounds) * 30 // rounds,
            "p_A": share,
            "p_B": share,
            "p_C": np.where(late, share, 0.0),
        }
    )


def log_of(data: pd.DataFrame, **more: object) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(data, action="arm", reward="y", propensities="p_{arm}", **nested_options(more))  # type: ignore[arg-type]


def test_the_p_value_is_that_of_scores_in_two_parts() -> None:
    data = frame(0.2)
    y, arm = data["y"].to_numpy(), data["arm"].to_numpy()
    before = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, len(y))])
    score = (y - before) / data["p_A"].to_numpy() * ((arm == "A").astype(float) - (arm == "B"))
    h = np.concatenate([[np.nan], np.sqrt(data["p_A"].to_numpy()[:-1] / 2.0)])
    z, variance = [], []
    for part in (slice(500, None), slice(1, 500)):
        mean = np.average(score[part], weights=h[part])
        z.append(mean)
        variance.append((h[part] ** 2 @ (score[part] - mean) ** 2) / h[part].sum() ** 2)
    found = differs_elsewhere(profile_of(log_of(data)), ALL)
    assert found is not None
    assert {found.first, found.second} == {0, 1}
    far = abs(z[0] - z[1]) / np.sqrt(sum(variance))
    assert found.pvalue == pytest.approx(2.0 * stats.norm.sf(far), rel=1e-9)


@pytest.mark.parametrize("summed", [False, True])
def test_tables_say_whether_arms_differ_as_much(summed: bool) -> None:
    for turn, status in ((0.0, "checked"), (0.9, "contradicted")):
        log = log_of(frame(turn), batch="day")
        table = ai.ArmMeans(ai.Sums.of_log(log) if summed else log).fit("aipw", "joint")
        assert says(table.cautions, availability.OTHER_ELSEWHERE) == (turn > 0.0)
        (assumed,) = [
            one for note in table.notes for one in within(note) if one.claim is availability.DIFFERS_AS_MUCH
        ]
        assert assumed.status == status
    (told,) = [
        one for text in table.cautions for one in within(text) if one.claim is availability.OTHER_ELSEWHERE
    ]
    assert {told.values["one"], told.values["other"]} == {"A", "B"}


def test_sums_and_rows_agree() -> None:
    """But for what is known of rewards within a day."""
    log = log_of(frame(0.4), batch="day")
    rows, sums = (differs_elsewhere(profile_of(one), ALL) for one in (log, ai.Sums.of_log(log)))
    assert rows is not None
    assert sums is not None
    assert np.log(sums.pvalue) == pytest.approx(np.log(rows.pvalue), rel=0.15)


def test_what_cannot_be_seen_is_not_checked() -> None:
    data = frame()
    pair = ai.ArmMeans(log_of(data), ["A", "C"]).fit("aipw", "joint")
    (assumed,) = [
        one for note in pair.notes for one in within(note) if one.claim is availability.DIFFERS_AS_MUCH
    ]
    assert assumed.status == ""
    assert differs_elsewhere(profile_of(log_of(data)), ALL[:2]) is None
    rare = data.assign(arm=np.where(np.arange(1_500) < 485, "A", data["arm"]))
    assert differs_elsewhere(profile_of(log_of(rare)), ALL) is None
    assert differs_elsewhere(profile_of(log_of(data, propensity_status="estimated")), ALL) is None


def test_arms_that_differ_alike_keep_the_level() -> None:
    """Of .05 over 600 logs with a level that rises, within a probability of 1e-4."""
    found = [differs_elsewhere(profile_of(log_of(frame(rounds=450, seed=seed))), ALL) for seed in range(600)]
    seen = sum(one is not None and one.pvalue <= 0.05 for one in found)
    assert sum(one is not None for one in found) == 600
    assert seen <= stats.binom.ppf(1.0 - 1e-4, 600, 0.05)
