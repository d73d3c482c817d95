"""What rows say of what is stated of choices: that none reacted, or that arms were drawn so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import contexts, propensities, stationarity
from adaptinf.claims.arms import sample_means
from adaptinf.claims.logs import statements
from adaptinf.inference.validity.assignment import pooling_pvalue, reaction_pvalue
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.validation import nested_options
from adaptinf.reports.collection_facts import log_cautions

ROLES: dict[str, Any] = {"action": "arm", "reward": "y"}


def ucb(rounds: int = 1_000, seed: int = 0) -> pd.DataFrame:
    """Two equal arms by upper confidence bounds."""
    rng = np.random.default_rng(seed)
    count, total, rows = np.ones(2), rng.normal(size=2), []
    for _ in range(rounds):
        arm = int(np.argmax(total / count + np.sqrt(2.0 * math.log(rounds) / count)))
        reward = rng.normal()
        count[arm] += 1.0
        total[arm] += reward
        rows.append(("ab"[arm], reward))
    return pd.DataFrame(rows, columns=["arm", "y"])


def ramp(drift: float, seed: int, rounds: int = 2_000, wave: bool = False) -> pd.DataFrame:
    """Equal arms without adaptation, whose share rises, or goes up and down; the level moves with it."""
    rng = np.random.default_rng(seed)
    clock = np.arange(rounds) / rounds - 0.5
    move = np.sin(np.arange(rounds) * 2.0 * math.pi / 100.0) / 2.0 if wave else clock
    arm = np.where(rng.random(rounds) < 0.5 + 0.6 * move, "b", "a")
    return pd.DataFrame(
        {"arm": arm, "y": rng.normal(size=rounds) + drift * move, "day": np.arange(rounds) // 200}
    )


def contrast(log: Any, **options: Any) -> Any:
    return ai.Contrast(log, treatment="b", control="a").fit(**options)


def test_a_reaction_by_hand() -> None:
    action = np.tile([0, 0, 1, 1, 1, 0, 1], 30)
    reward = np.random.default_rng(1).normal(size=210)
    gaps, last = [], np.flatnonzero(np.diff(action))
    for place in last:
        if place and action[place - 1] == action[place]:
            gaps.append(reward[place - 1] - reward[place])
    z = sum(gaps) / math.sqrt(sum(gap * gap for gap in gaps))
    assert reaction_pvalue(action, reward) == pytest.approx(0.5 * math.erfc(z / math.sqrt(2.0)))
    assert math.isnan(reaction_pvalue(np.tile([0, 1], 50), np.arange(100.0)))


def test_a_bandit_that_is_stated_to_be_none_is_told() -> None:
    log = ai.AdaptiveLog(ucb(), **ROLES, adaptive=False)
    for found in (
        contrast(log),
        ai.ArmMeans(log).fit(),
        ai.AdaptiveOLS.from_formula("y ~ C(action)", log).fit(adjustment="none"),
    ):
        assert says(found.cautions, statements.REACTED)
    assert says(contrast(log).notes, sample_means.STATED)
    assert says(log_cautions(log), statements.REACTED)
    open_log = ai.AdaptiveLog(ucb(), **ROLES)
    assert not says(ai.ArmMeans(open_log).fit("sample-mean").cautions, statements.REACTED)


def test_a_plain_test_is_not_taken_for_a_bandit() -> None:
    """By a coin, by balanced blocks, ramped up or by the hour, and with levels that move."""
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        blocks = ramp(1.0, seed).assign(
            arm=np.array(["a", "b"])[rng.permuted(np.tile([0, 0, 1, 1], (500, 1)), axis=1).ravel()]
        )
        for frame in (ramp(0.0, seed), ramp(1.0, seed), ramp(1.0, seed, wave=True), blocks):
            log = ai.AdaptiveLog(frame, **ROLES, adaptive=False)
            found = profile_of(log).reaction_found
            alarms += found is not None and found.contradicted
    assert alarms <= 4


def test_shares_that_move_are_a_note_where_rewards_do_not_drift() -> None:
    notes = cautions = 0
    for seed in range(40):
        calm, *moved = (
            contrast(ai.AdaptiveLog(frame, **ROLES, adaptive=False))
            for frame in (ramp(0.0, seed), ramp(1.0, seed), ramp(1.0, seed, wave=True))
        )
        notes += says(calm.notes, stationarity.ONLY_SHARES_MOVED) and not calm.cautions
        cautions += all(says(one.cautions, stationarity.BOTH_MOVED) for one in moved)
        assert not any(says(one.notes, stationarity.ONLY_SHARES_MOVED) for one in moved)
    assert notes >= 38
    assert cautions == 40


def test_sums_tell_them_apart_too() -> None:
    for drift in (0.0, 1.0):
        sums = ai.aggregate(ramp(drift, 3), **ROLES, batch="day", adaptive=False)
        found = contrast(sums, estimator="sample-mean")
        assert says(found.cautions, stationarity.BOTH_MOVED) == (drift > 0.0)
        assert says(found.notes, stationarity.ONLY_SHARES_MOVED) == (drift == 0.0)
        regression = ai.AdaptiveOLS.from_formula(
            "y ~ C(action)", ai.AdaptiveLog(ramp(drift, 3), **ROLES, adaptive=False)
        ).fit(adjustment="none")
        assert says(regression.cautions, stationarity.BOTH_MOVED) == (drift > 0.0)
        assert says(regression.notes, stationarity.ONLY_SHARES_MOVED) == (drift == 0.0)


def test_pooling_by_hand() -> None:
    """Differences of arms in all rounds, less those within stretches, by least squares."""
    frame = ramp(1.0, 5, rounds=400)
    arm, reward = (frame["arm"] == "b").to_numpy().astype(float), frame["y"].to_numpy()
    stretch = np.arange(400) // 50
    within = arm - (np.bincount(stretch, arm) / 50.0)[stretch]
    weight = (arm - arm.mean()) / (400 * arm.var()) - within / (within @ within)
    away = reward - np.where(arm == 1, reward[arm == 1].mean(), reward[arm == 0].mean())
    z = weight @ reward / math.sqrt((weight**2) @ (away**2))
    tables = [np.zeros((8, 2)) for _ in range(3)]
    for table, value in zip(tables, (np.ones(400), away, away**2), strict=True):
        np.add.at(table, (stretch, arm.astype(int)), value)
    assert pooling_pvalue(*tables) == pytest.approx(math.erfc(abs(z) / math.sqrt(2.0)))


def test_propensities_of_1_are_no_draws() -> None:
    rng = np.random.default_rng(2)
    hidden = rng.integers(0, 2, 1_000)
    frame = pd.DataFrame(
        {"arm": np.array(["a", "b"])[hidden], "y": rng.normal(size=1_000) + hidden, "p": 1.0}
    )
    log = ai.AdaptiveLog(frame, **ROLES, propensity="p", reward_range=(-9.0, 9.0))
    sequence = ai.ConfidenceSequence(log).fit("asymptotic", estimator="sample-mean")
    for found in (ai.ArmMeans(log).fit(), contrast(log), sequence, ai.Winner(log).fit()):
        assert says(found.cautions, contexts.NEVER_RANDOM)
    assert says(log_cautions(log), contexts.NEVER_RANDOM)
    design = ai.designs.UCB()
    for known in ({"context_free": True}, {"design": design}):
        calm = ai.AdaptiveLog(frame, propensity="p", **nested_options({**ROLES, **known}))
        assert not says(ai.ArmMeans(calm).fit("alee").cautions, contexts.NEVER_RANDOM)
    one = ai.AdaptiveLog(frame.assign(arm="a"), **ROLES, propensity="p")
    assert not says(ai.ArmMeans(one).fit("alee").cautions, contexts.NEVER_RANDOM)
    by_turns = ai.aggregate(
        frame.assign(arm=np.array(["a", "b"])[np.arange(1_000) // 100 % 2], b=np.arange(1_000) // 100),
        **ROLES,
        propensity="p",
        batch="b",
    )
    assert profile_of(by_turns).never_random


def test_shares_of_the_day_are_not_the_shares_of_its_hours() -> None:
    frame = ramp(0.0, 4, wave=True)
    share = (frame["arm"] == "b").groupby(frame["day"]).transform("mean")
    for batch in ("day", None):
        told = frame.assign(p_a=1.0 - share, p_b=share) if batch else frame.assign(p_a=0.5, p_b=0.5)
        log = ai.AdaptiveLog(told, **ROLES, propensities="p_{arm}", batch=batch)
        assert says(ai.ArmMeans(log).fit().cautions, propensities.NOT_FOLLOWED)
        even = told.sample(frac=1.0, random_state=1).sort_values("day", kind="stable", ignore_index=True)
        calm = ai.AdaptiveLog(even, **ROLES, propensities="p_{arm}", batch=batch)
        assert not says(ai.ArmMeans(calm).fit().cautions, propensities.NOT_FOLLOWED)
