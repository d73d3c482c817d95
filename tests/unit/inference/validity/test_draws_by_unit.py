"""What a log says of units with several rounds: which draw an arm came from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog


def _profile(frame: pd.DataFrame, **columns: object) -> LogProfile:
    given: dict[str, object] = {"action": "arm", "reward": "y", "propensity": "e", "unit": "who", **columns}
    return profile_of(AdaptiveLog(frame, **given))  # type: ignore[arg-type]


def _kept(rounds: int = 5, units: int = 12, share: float = 0.3) -> pd.DataFrame:
    """Units in turn, each with one arm throughout."""
    rng = np.random.default_rng(1)
    who = np.tile(np.arange(units), rounds)
    arm = (rng.random(units) < share).astype(int)[who]
    e = np.where(arm == 1, share, 1.0 - share)
    return pd.DataFrame({"who": who + 100, "arm": arm, "y": rng.normal(size=len(who)), "e": e})


def test_a_log_with_one_round_a_unit_repeats_nobody() -> None:
    frame = _kept(rounds=1)
    profile = _profile(frame)
    assert (profile.repeated_units, profile.drawn_once, profile.unit_refusal) == (False, False, "")
    assert profile.propensity is profile.log.arrays.propensity


def test_propensity_1_after_the_first_round_says_that_the_arm_is_drawn_once() -> None:
    frame = _kept()
    first = frame["e"].to_numpy(copy=True)
    frame.loc[12:, "e"] = 1.0
    profile = _profile(frame)
    assert profile.drawn_once
    assert profile.propensity is not None
    assert profile.propensity.tolist() == first.tolist()
    assert profile.impossible.tolist() == [0, 0]
    assert "60 rounds" in profile.unit_refusal
    assert "12 units" in profile.unit_refusal


def test_every_arms_propensity_is_that_of_the_draw_too() -> None:
    frame = _kept()
    frame["e_0"], frame["e_1"] = 0.7, 0.3
    later = frame.index >= 12
    frame.loc[later, "e_1"] = frame.loc[later, "arm"].astype(float)
    frame.loc[later, "e_0"] = 1.0 - frame.loc[later, "e_1"]
    profile = _profile(frame, propensity=None, propensities={0: "e_0", 1: "e_1"})
    assert profile.drawn_once
    assert profile.propensities is not None
    np.testing.assert_array_equal(profile.propensities, np.tile([0.7, 0.3], (60, 1)))
    assert profile.constant_propensities
    assert profile.smallest_propensity.tolist() == [0.7, 0.3]


def test_the_first_propensity_in_all_rounds_serves_as_it_stands() -> None:
    profile = _profile(_kept())
    assert (profile.one_arm_a_unit, profile.drawn_once, profile.contradicted_draws) == (True, False, "")
    assert profile.propensity is profile.log.arrays.propensity


def test_propensity_1_in_some_later_rounds_alone_is_no_single_draw() -> None:
    frame = _kept()
    frame.loc[12:40, "e"] = 1.0
    assert not _profile(frame).drawn_once


def test_propensity_1_throughout_is_no_draw_at_all() -> None:
    frame = _kept()
    frame["e"] = 1.0
    profile = _profile(frame)
    assert not profile.drawn_once
    assert profile.contradicted_draws == ""


def test_moving_propensities_of_arms_that_are_kept_contradict_themselves() -> None:
    frame = _kept(rounds=8)
    frame["e"] = np.clip(frame["e"] + 0.001 * np.arange(len(frame)), 0.0, 0.9)
    reason = _profile(frame).contradicted_draws
    chance = np.log10(frame.loc[12:, "e"]).sum()
    assert f"probability 1e{chance:.0f}" in reason


@pytest.mark.parametrize("change", [0, 30])
def test_a_unit_that_changes_its_arm_is_drawn_anew(change: int) -> None:
    frame = _kept()
    frame.loc[change, "arm"] = 1 - frame.loc[change, "arm"]
    profile = _profile(frame)
    assert not profile.one_arm_a_unit
    assert profile.contradicted_draws == ""
