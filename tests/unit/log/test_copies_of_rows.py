"""Rows that stand in a log twice: found wherever the copies are, and not where rows are equal by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs.rows import COPIES
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.log.repeated_rows import copied_rows
from adaptinf.typing import FloatArray, IntArray

Rows = tuple[IntArray, FloatArray]


def rows_of(kind: str, size: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    reward = {"0/1": rng.binomial(1, 0.3, size), "tenths": rng.normal(size=size).round(1)}
    return rng.integers(0, 2, size), reward.get(kind, rng.normal(size=size)).astype(float)


def log_of(rows: Rows, order: IntArray, batch: IntArray | None = None) -> AdaptiveLog:
    action, reward = (values[order] for values in rows)
    named = None if batch is None else batch[order]
    arrays = LogArrays(action=action, reward=reward, propensity=np.full(len(order), 0.5), batch=named)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


@pytest.mark.parametrize("kind", ["0/1", "tenths", "any"])
def test_copies_are_found_and_told_under_every_table(kind: str) -> None:
    size, every = 2_000, np.arange(2_000)
    rows, batch = rows_of(kind, size, seed=1), every // 50
    block = np.arange(50, 50 + (20 if kind == "any" else 200))
    twice = np.concatenate([np.tile(np.flatnonzero(batch == one), 2) for one in range(40)])
    found = {
        "whole": copied_rows(log_of(rows, np.tile(every, 2)).arrays, None),
        "in place": copied_rows(log_of(rows, np.repeat(every, 2)).arrays, None),
        "block": copied_rows(log_of(rows, np.concatenate([every, block])).arrays, None),
        "within batches": copied_rows(log_of(rows, twice, batch).arrays, None),
    }
    first = {"start": 0, "last": size - 1, "again": size}
    assert found["whole"] == {"n": size, "rows": 2 * size, **first}
    assert found["in place"]["n"] == size
    assert found["block"]["n"] >= len(block)
    assert found["within batches"]["n"] >= 100
    log = log_of(rows, np.tile(every, 2))
    for table in (ai.ArmMeans(log).fit(), ai.Contrast(log, treatment="b", control="a").fit()):
        assert says(table.cautions, COPIES, n=size)
    assert not says(ai.ArmMeans(log_of(rows, every)).fit().cautions, COPIES)


@pytest.mark.parametrize("kind", ["0/1", "tenths", "any"])
def test_equal_rows_by_chance_are_no_copies(kind: str) -> None:
    assert not any(copied_rows(log_of(rows_of(kind, 2_000, seed), np.arange(2_000)).arrays, None)
                   for seed in range(50))  # fmt: skip


def test_rewards_that_hardly_vary_are_no_copies() -> None:
    late = np.arange(2_000) > 300
    for seed in range(10):
        rng = np.random.default_rng(seed)
        action = (rng.random(2_000) < np.where(late, 0.98, 0.5)).astype(np.int64)
        reward = (rng.random(2_000) < np.where(late, 0.01, 0.4)).astype(float)
        assert copied_rows(log_of((action, reward), np.arange(2_000)).arrays, None) == {}


def test_units_that_differ_make_rows_differ() -> None:
    rows, every = rows_of("any", 500, seed=3), np.arange(500)
    arrays = log_of(rows, np.tile(every, 2)).arrays
    assert copied_rows(arrays, np.tile(every, 2))["n"] == 500
    assert copied_rows(arrays, np.arange(1_000)) == {}


def test_missing_rewards_are_read_as_such() -> None:
    action, reward = rows_of("any", 500, seed=4)
    data = pd.DataFrame({"arm": np.array(["a", "b"])[action], "y": reward, "p": 0.5})
    data.loc[::7, "y"] = np.nan
    options = {"action": "arm", "reward": "y", "propensity": "p", "missing": "drop"}
    for frame, copies in ((data, 0), (pd.concat([data, data]), 500)):
        log = ai.AdaptiveLog(frame, **options)
        table = ai.ArmMeans(log).fit()
        assert table.facts.spread == np.ptp(reward[~data["y"].isna()])
        assert bool(says(table.cautions, COPIES, n=500)) == bool(copies)
