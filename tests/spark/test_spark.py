"""A real Spark gives the sums of the rows.

Run by path, ``pytest -n 0 tests/spark``, after ``pip install -e ".[spark]"``, where there is a Java of 17 or
later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from sum_rows import NAMES, assert_same_cells, assert_same_contrast, rows_of, stacked, timed

import adaptinf as ai
from adaptinf.errors import LogValidationError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def stored(spark: SparkSession, tmp_path: Path) -> Callable[[pd.DataFrame], Any]:
    def store(frame: pd.DataFrame) -> Any:
        for place in range(3):
            frame[place::3].to_parquet(tmp_path / f"{place}.parquet", index=False)
        return spark.read.parquet(str(tmp_path))

    return store


def test_twenty_logs_in_one_table(stored: Callable[[pd.DataFrame], Any]) -> None:
    frame, expected = stacked()
    table = stored(frame)
    assert_same_cells(ai.aggregate(table, **NAMES, centre=expected.cells.centre), expected)
    assert_same_contrast(ai.aggregate(table, **NAMES), expected)
    plan = ai.aggregate(table, **NAMES, centre=0.0, collect=False)
    assert "nonzero" in plan.columns


@pytest.mark.parametrize("options", [{"propensity": "p"}, {}], ids=["chosen", "shares"])
def test_labels_shares_and_chosen_propensities(
    stored: Callable[[pd.DataFrame], Any], options: dict[str, Any]
) -> None:
    frame = rows_of(1)
    frame["p"] = frame[[f"propensity_{k}" for k in range(3)]].to_numpy()[range(len(frame)), frame["arm"]]
    bare = frame[["batch", "arm", "y", "p"]].assign(arm=frame["arm"].map({0: "x", 1: "y z", 2: "ü"}))
    found, expected = (ai.aggregate(table, **NAMES, **options, centre=2.0) for table in (stored(bare), bare))
    assert found.arms == ("x", "y z", "ü")
    assert_same_cells(found, expected)


def test_times_are_cut_to_periods(stored: Callable[[pd.DataFrame], Any]) -> None:
    frame, starts = timed(rows_of(8, (400, 400), 2))
    table = stored(frame.assign(propensity_0=0.5, propensity_1=0.5))
    options = {**NAMES, "batch": "at", "centre": 1.0, "about": {"propensity_status": "estimated"}}
    for every in ("week", "month"):
        found = ai.aggregate(table, **options, every=every)
        assert pd.to_datetime(found.batches).tolist() == starts[every]


def test_faults_are_counted_in_the_query(stored: Callable[[pd.DataFrame], Any]) -> None:
    frame = rows_of(2)
    wrong = frame.index[frame["arm"] == 0]
    frame.loc[wrong[:3], "y"] = None
    frame.loc[wrong[3:5], "y"] = float("inf")
    frame.loc[wrong[5:6], "propensity_0"] = 0.0
    with pytest.raises(LogValidationError) as caught:
        ai.aggregate(stored(frame), **NAMES)
    told = "\n".join(map(str, caught.value.problems))
    assert "reward column 'y' has no value (NaN or None) in 3 rows" in told
    assert "reward column 'y' is infinite in 2 rows" in told
    assert "the chosen arm has a propensity of 0 in its column in 1 row" in told


def test_units_denominators_and_covariates(stored: Callable[[pd.DataFrame], Any]) -> None:
    frame, rng = rows_of(3, (90, 80)), np.random.default_rng(3)
    frame["user"] = rng.integers(0, 40, len(frame))
    frame["orders"] = rng.poisson(1.5 + frame["arm"])
    frame["before"] = 100.0 + rng.normal(size=len(frame))
    frame["y"] += frame["orders"] + frame["before"] - 100.0
    table, pair = stored(frame), {"treatment": 1, "control": 0}
    names: dict[str, Any] = {"action": "arm", "reward": "y", "batch": "batch"}
    log = ai.AdaptiveLog(frame, **names, outcomes="orders", context="before", unit="user")
    by_unit = ai.aggregate(table, **NAMES, unit="user", centre=7.31)
    fixed = np.full((log.n_rounds, log.n_arms), 7.31)
    asked: dict[str, Any] = {"estimator": "aipw", "weights": "uniform"}
    compare(ai.Contrast(by_unit, **pair).fit(**asked), ai.Contrast(log, **pair).fit(**asked, outcome=fixed))
    further = ai.aggregate(table, **NAMES, denominator="orders", covariate="before")
    rows = ai.AdaptiveLog(frame, **names, outcomes="orders", context="before")
    for how, given in (({"denominator": "orders"}, {}), ({}, {"covariate": "before"})):
        found, due = (
            ai.Contrast(data, **pair, **how).fit(estimator="aipw", outcome="batch-mean", test="t", **given)
            for data in (further, rows)
        )
        compare(found, due)


def compare(found: Any, due: Any) -> None:
    for name in ("estimate", "std_error"):
        np.testing.assert_allclose(getattr(found, name), getattr(due, name), rtol=1e-10)
