"""Whether arms were chosen by earlier rewards, in logs that state that they were not."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs.statements import REACTED
from adaptinf.inference.validity.assignment import association_pvalue, leader_test
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray, IntArray

FREE = "Assignment did not depend on rewards (checked)"


def greedy(
    seed: int, rounds: int, size: int, law: str = "normal", floor: float = 0.1
) -> tuple[IntArray, FloatArray]:
    """Epsilon-greedy choice between two equal arms, updated after `size` rounds."""
    rng = np.random.default_rng(seed)
    action, reward = np.zeros(rounds, dtype=np.int64), np.zeros(rounds)
    share = 0.5
    for start in range(0, rounds, size):
        rows = slice(start, start + size)
        own = len(action[rows])
        action[rows] = rng.random(own) < share
        reward[rows] = rng.normal(size=own) if law == "normal" else rng.random(own) < 0.3
        done = action[: start + own], reward[: start + own]
        means = [done[1][done[0] == code].mean() if np.any(done[0] == code) else math.inf for code in (0, 1)]
        share = 0.5 if means[0] == means[1] else 1.0 - floor if means[1] > means[0] else floor
    return action, reward


def log_of(action: IntArray, reward: FloatArray, size: int = 0) -> ai.AdaptiveLog:
    frame = pd.DataFrame({"a": action, "y": reward})
    if not size:
        return ai.AdaptiveLog(frame, action="a", reward="y", adaptive=False)
    frame["b"] = np.arange(len(action)) // size
    return ai.AdaptiveLog(frame, action="a", reward="y", adaptive=False, batch="b")


@pytest.mark.parametrize("size", [0, 30])
@pytest.mark.parametrize("local", [True, False])
def test_the_leader_by_hand(size: int, local: bool) -> None:
    rng = np.random.default_rng(2)
    action, reward = rng.integers(0, 3, 400), rng.normal(size=400)
    chosen, leader = [], []
    for time in range(400):
        start = time // size * size if size else time
        own = [reward[:start][action[:start] == code] for code in range(3)]
        if min(map(len, own)) >= 10:
            chosen.append(action[time])
            leader.append(int(np.argmax([part.mean() for part in own])))
    kept, led = np.array(chosen), np.array(leader)
    places = np.arange(len(kept))
    turns = [places // 100, (places + 50) // 100] if local else [0 * places]
    due = len(turns) * min(association_pvalue(turn, led, 3, kept, 3) for turn in turns)
    batch = np.arange(400) // size if size else None
    found, told = leader_test(action, reward, 3, batch, local=local)
    assert found == pytest.approx(min(1.0, due), rel=1e-9)
    share, drawn = (np.bincount(part, minlength=3) / len(kept) for part in (led, kept))
    shift = 0.3 * np.sqrt(len(kept) * share * (1.0 - share) / (drawn * (1.0 - drawn)))
    assert told == (shift.max() >= 4.0)
    assert leader_test(action[:60], reward[:60], 3, None, local=local) == (1.0, False)


@pytest.mark.parametrize(
    ("law", "rounds", "size", "batched", "least"),
    [
        ("normal", 400, 20, False, 0.3),
        ("normal", 1_000, 20, True, 0.6),
        ("binary", 300, 1, False, 0.4),
        ("binary", 1_000, 30, True, 0.6),
    ],
)
def test_greedy_choice_is_told_or_left_open(
    law: str, rounds: int, size: int, batched: bool, least: float
) -> None:
    told = checked = 0
    for seed in range(60):
        found = ai.ArmMeans(log_of(*greedy(seed, rounds, size, law), size if batched else 0)).fit()
        told += says(found.cautions, REACTED)
        checked += FREE in dict(found.summary().lines)["Assumes"]
    assert told >= least * 60
    assert checked <= 2


def test_a_coin_is_checked_where_the_leader_changes() -> None:
    told = checked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = ai.ArmMeans(log_of(rng.integers(0, 2, 1_000), rng.normal(size=1_000))).fit()
        told += says(found.cautions, REACTED)
        checked += FREE in dict(found.summary().lines)["Assumes"]
    assert told <= 1
    assert checked >= 30
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, 1_000)
    ahead = log_of(action, 2.0 * action + rng.normal(size=1_000))  # one arm always leads, which shows nothing
    assert profile_of(ahead).reaction_found is None
    assert FREE not in dict(ai.ArmMeans(ahead).fit().summary().lines)["Assumes"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["coin", "drift", "season", "ramp", "step", "hours", "days"])
def test_shares_that_do_not_react_are_rarely_doubted(kind: str) -> None:
    time = np.arange(1_000)
    busy = (time // 20 % 24 >= 9) & (time // 20 % 24 < 18)
    told = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        share = {
            "ramp": 0.3 + 0.4 * time / 1_000,
            "step": np.where(time < 500, 0.3, 0.7),
            "hours": np.where(busy, 0.7, 0.4),
            "days": np.repeat(rng.uniform(0.3, 0.7, 10), 100),
        }.get(kind, np.full(1_000, 0.5))
        level = {"drift": time / 1_000, "season": 1.0 * busy}.get(kind, np.zeros(1_000))
        action, reward = (rng.random(1_000) < share).astype(np.int64), level + rng.normal(size=1_000)
        for size in (0, 100):
            found = profile_of(log_of(action, reward, size)).reaction_found
            told += found is not None and found.contradicted
    assert told <= 0.03 * 400
