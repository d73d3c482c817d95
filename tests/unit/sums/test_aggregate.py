"""One query in an engine gives the sums of the rows, and nothing that is wrong is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sum_rows import NAMES, assert_same_cells, assert_same_contrast, rows_of, sums_of_rows, timed

import adaptinf as ai
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.sums import engines
from adaptinf.sums.engine import engine_tables

ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "duckdb": lambda frame: duckdb.from_df(frame),
    "polars-lazy": lambda frame: pl.DataFrame(frame).lazy(),
    "polars": pl.DataFrame,
    "pandas": lambda frame: frame,
}


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(8, 40), min_size=1, max_size=4),
    n_arms=st.integers(2, 4),
    far=st.sampled_from([0.0, 1e4]),
)
def test_an_engine_gives_the_sums_of_the_rows(
    engine: str, seed: int, sizes: list[int], n_arms: int, far: float
) -> None:
    frame = rows_of(seed, tuple(sizes), n_arms, far)
    arms = list(range(n_arms))
    expected = sums_of_rows(frame, arms)
    shuffled = frame.sample(frac=1, random_state=seed)
    found = ai.aggregate(ENGINES[engine](shuffled), **NAMES, centre=expected.cells.centre, arms=arms)
    assert_same_cells(found, expected)
    assert_same_contrast(ai.aggregate(ENGINES[engine](shuffled), **NAMES, arms=arms), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_chosen_propensities_shares_and_names(engine: str) -> None:
    frame = rows_of(1)
    frame["p"] = frame[[f"propensity_{k}" for k in range(3)]].to_numpy()[np.arange(len(frame)), frame["arm"]]
    bare = frame[["batch", "arm", "y", "p"]]
    chosen = ai.aggregate(ENGINES[engine](bare), **NAMES, propensity="p")
    log = ai.AdaptiveLog(bare, action="arm", reward="y", batch="batch", propensity="p")
    due = ai.ArmMeans(ai.Sums.of_log(log)).fit("aipw")
    got = ai.ArmMeans(chosen).fit("aipw")
    np.testing.assert_allclose(got.estimate, due.estimate, rtol=1e-12)
    np.testing.assert_allclose(got.covariance, due.covariance, rtol=1e-10)
    np.testing.assert_allclose(got.details["min_propensity"], due.details["min_propensity"])
    shares = ai.aggregate(ENGINES[engine](bare), **NAMES)
    assert (shares.shares, shares.propensity_status) == (True, "estimated")
    named = frame.rename(columns={f"propensity_{k}": f"e{k}" for k in range(3)}).drop(columns="p")
    by_pattern = ai.aggregate(ENGINES[engine](named), **NAMES, propensities="e{arm}", centre=0.0)
    by_name = ai.aggregate(
        ENGINES[engine](named), **NAMES, propensities={0: "e0", 1: "e1", 2: "e2"}, centre=0.0
    )
    np.testing.assert_allclose(by_pattern.cells.expected, by_name.cells.expected, rtol=1e-12)
    both = ai.aggregate(ENGINES[engine](frame), **NAMES, propensity="p", centre=0.0)
    np.testing.assert_allclose(both.cells.moments[:4], by_name.cells.moments[:4], rtol=1e-12)


FAULTS: dict[str, tuple[str, Any]] = {
    "missing-reward": ("y", None),
    "infinite-reward": ("y", np.inf),
    "propensities-sum": ("propensity_2", 0.001),
    "propensity-out-of-range": ("propensity_2", -0.1),
    "missing-propensity": ("propensity_2", None),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", FAULTS)
def test_rows_that_must_not_count_are_counted_in_the_query(engine: str, code: str) -> None:
    frame = rows_of(2)
    column, value = FAULTS[code]
    wrong = frame.index[frame["arm"] == 0][:3]
    frame.loc[wrong, column] = value
    if code == "propensity-out-of-range":
        frame.loc[wrong, "propensity_1"] = 1.1 - frame.loc[wrong, "propensity_0"]
    with pytest.raises(LogValidationError, match="in 3 rows, such as in batch 0") as caught:
        ai.aggregate(ENGINES[engine](frame), **NAMES)
    assert [problem.code for problem in caught.value.problems] == [code]


def test_other_faults() -> None:
    frame = rows_of(3)
    texts = frame.assign(y="1")
    calls: list[tuple[Any, dict[str, Any], str]] = [
        (texts, {}, "'y' must contain numbers"),
        (frame, {"reward": "z"}, "there is no column 'z'"),
        (frame.assign(batch="week 1"), {}, "not text such as 'week 1'"),
        (frame[:0], {}, "has no rows"),
        (frame, {"arms": [0, 1]}, "not among arms|no propensity column|arms"),
        (
            frame.assign(propensity_0=frame["propensity_1"], propensity_1=frame["propensity_0"], p=0.5),
            {"propensity": "p"},
            "differs from the arm's own",
        ),
        (frame, {"guarantee": {"epsilon": -1}}, "epsilon"),
    ]
    for table, options, message in calls:
        with pytest.raises(LogValidationError, match=message):
            ai.aggregate(table, **{**NAMES, **options})
    for table, options, message in [
        (3, {}, "a frame that narwhals can read"),
        (frame, {"every": "year"}, "every must be one of 'hour', 'day', 'week', 'month'"),
        ("log.txt", {}, "must end in .parquet or .pq or .csv or .tsv"),
    ]:
        with pytest.raises(ParameterError, match=message):
            ai.aggregate(table, **{**NAMES, **options})
    lost = pd.concat([rows_of(5, (4000, 4000))] * 3).reset_index(drop=True)
    lost = lost.drop(index=lost.index[lost["arm"] == 1][::2])
    with pytest.raises(LogValidationError, match="practically impossible under their propensities"):
        ai.aggregate(lost, **NAMES)


def test_files_times_and_plans(tmp_path: Path) -> None:
    frame = rows_of(4, (50, 50, 50, 50))
    frame["at"] = pd.Timestamp("2024-03-04T09:00") + pd.to_timedelta(frame["batch"] * 12, unit="h")
    frame[:90].to_parquet(tmp_path / "log_1.parquet")
    frame[90:].to_parquet(tmp_path / "log_2.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    options = {"action": "arm", "reward": "y", "batch": "at", "every": "day", "centre": 1.0}
    found = [
        ai.aggregate(place, **options)
        for place in (tmp_path / "log_*.parquet", str(tmp_path / "log.csv"), frame)
    ]
    assert [sums.n_batches for sums in found] == [2, 2, 2]
    np.testing.assert_array_equal(found[0].cells.rounds, [100, 100])
    for sums in found[1:]:
        np.testing.assert_allclose(sums.cells.moments[:4], found[0].cells.moments[:4], rtol=1e-10)
    with pytest.raises(FileNotFoundError):
        ai.aggregate(tmp_path / "none_*.parquet", **options)
    plan = ai.aggregate(duckdb.from_df(frame), **options, collect=False)
    assert "GROUP BY" in plan.sql_query()
    lazy = ai.aggregate(pl.DataFrame(frame).lazy(), **options, collect=False)
    assert "AGGREGATE" in lazy.explain()
    assert isinstance(nw.from_native(lazy), nw.LazyFrame)


@pytest.mark.parametrize("engine", ENGINES)
def test_times_are_cut_to_periods(engine: str) -> None:
    frame, starts = timed(rows_of(8, (400, 400), 2))
    for every, due in starts.items():
        options = {
            **NAMES,
            "batch": "at",
            "every": every,
            "centre": 1.0,
            "about": {"propensity_status": "estimated"},
        }
        found = ai.aggregate(
            ENGINES[engine](
                frame.drop(columns=["propensity_0", "propensity_1"]).assign(
                    propensity_0=0.5, propensity_1=0.5
                )
            ),
            **options,
        )
        assert pd.to_datetime(found.batches).tolist() == due


def test_a_line_shows_that_a_query_is_running(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, collect = rows_of(4), engine_tables.collected
    monkeypatch.setattr(engines, "collected", lambda query: (time.sleep(1.2), collect(query))[1])
    shown = ai.aggregate(frame, **NAMES, centre=0.0, progress=True)
    told = capsys.readouterr().err
    assert "aggregate: 00:00" in told
    assert "aggregate: 00:01" in told
    assert_same_cells(shown, ai.aggregate(frame, **NAMES, centre=0.0))
    assert capsys.readouterr().err == ""


def test_digits_of_rewards_that_are_far_from_zero() -> None:
    near = rows_of(6, (200, 300))
    far = near.assign(y=near["y"] + 1e7)
    results = [
        ai.Contrast(ai.aggregate(duckdb.from_df(each), **NAMES), treatment=1, control=0).fit(test="t")
        for each in (near, far)
    ]
    np.testing.assert_allclose(results[1].estimate, results[0].estimate, rtol=1e-8)
    np.testing.assert_allclose(results[1].std_error, results[0].std_error, rtol=1e-8)
