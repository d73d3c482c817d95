"""Neighbouring rows of one arm that depend on each other are seen; levels that move for all arms are not."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.logs.rows import ALIKE, COPIES
from adaptinf.log import AdaptiveLog, LogArrays, dependence
from adaptinf.log.dependence import alike_neighbours
from adaptinf.typing import FloatArray, IntArray


def arrays_of(action: IntArray, reward: FloatArray) -> LogArrays:
    return LogArrays(action=action, reward=reward.astype(float), propensity=np.full(len(action), 0.5))


def literal(action: list[int], reward: list[float]) -> float:
    """The statistic, row by row; rows without a reward have NaN."""
    one, two = [], []
    for t in range(len(action) - 1):
        past = [reward[s] for s in range(t) if action[s] == action[t] and not math.isnan(reward[s])][-20:]
        rest = range(t + 2, len(action))
        future = [reward[s] for s in rest if action[s] == action[t + 1] and not math.isnan(reward[s])][:20]
        product = (reward[t] - np.mean(past or [0])) * (reward[t + 1] - np.mean(future or [0]))
        if len(past) == len(future) == 20 and not math.isnan(product):
            (one if action[t] == action[t + 1] else two).append(product)
    error = math.sqrt(sum(x * x for x in one) / len(one) ** 2 + sum(x * x for x in two) / len(two) ** 2)
    return float((np.mean(one) - np.mean(two)) / error)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_statistic_is_the_literal_one(missing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    action, reward = rng.integers(0, 3, 600), rng.normal(size=600)
    reward[rng.random(600) < missing] = np.nan
    monkeypatch.setattr(dependence, "ALARM", 2.0)
    found = alike_neighbours(arrays_of(action, reward))
    assert found["z"] == pytest.approx(literal(action.tolist(), reward.tolist()), rel=1e-12)
    assert found["p"] == pytest.approx(stats.norm.sf(found["z"]), rel=1e-12)


def test_events_recorded_twice_in_a_row_are_told_under_a_table() -> None:
    """Of 0/1 rewards too, whose stretches recur by chance."""
    rng = np.random.default_rng(1)
    action, reward = rng.integers(0, 2, 1_000), rng.binomial(1, 0.5, 1_000)
    twice = np.repeat(np.arange(1_000), 1 + (rng.random(1_000) < 0.8))
    log = AdaptiveLog.from_arrays(arrays_of(action[twice], reward[twice]), arms=("a", "b"))
    cautions = ai.Contrast(log, treatment="b", control="a").fit().cautions
    assert says(cautions, ALIKE)
    assert not says(cautions, COPIES)
    once = AdaptiveLog.from_arrays(arrays_of(action, reward), arms=("a", "b"))
    assert not says(ai.Contrast(once, treatment="b", control="a").fit().cautions, ALIKE)


def test_units_that_return_with_their_arm_are_told_unless_they_are_named() -> None:
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(200), 5)
    action = np.repeat(rng.integers(0, 2, 200), 5)
    reward = np.repeat(rng.normal(size=200), 5) + rng.normal(size=1_000)
    plain = AdaptiveLog.from_arrays(arrays_of(action, reward), arms=("a", "b"))
    assert says(ai.Contrast(plain, treatment="b", control="a").fit("sample-mean").cautions, ALIKE)
    frame = pd.DataFrame({"arm": np.array(["a", "b"])[action], "y": reward, "unit": unit, "p": 0.5})
    named = ai.AdaptiveLog(frame, action="arm", reward="y", unit="unit", propensity="p")
    assert not says(ai.Contrast(named, treatment="b", control="a").fit("aipw").cautions, ALIKE)


def test_a_level_that_moves_for_all_arms_is_no_dependence() -> None:
    """An autoregressive level, heavy tails, and arms that follow rewards: 900 logs, p below 2e-4 in none."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        action, noise = rng.integers(0, 2, 800), rng.normal(size=(2, 800))
        level = np.zeros(800)
        for t in range(1, 800):
            level[t] = 0.7 * level[t - 1] + noise[0, t]
        assert not alike_neighbours(arrays_of(action, level + noise[1]))
        assert not alike_neighbours(arrays_of(action, np.exp(1.5 * noise[0])))
        won = rng.binomial(1, 0.5, 800)  # an arm is played on after a success
        follows = np.cumsum(np.concatenate([[0], 1 - won[:-1]])) % 2
        assert not alike_neighbours(arrays_of(follows, won.astype(float)))


def test_long_logs_are_looked_at_in_blocks() -> None:
    rng = np.random.default_rng(5)
    action, reward = rng.integers(0, 2, 400_000), rng.normal(size=400_000)
    assert alike_neighbours(arrays_of(action, reward)) == {}
    assert alike_neighbours(arrays_of(np.repeat(action, 2), np.repeat(reward, 2)))["z"] > 50.0
