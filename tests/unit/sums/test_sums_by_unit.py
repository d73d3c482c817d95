"""Sums with totals of units give the errors by unit that the rows give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from claims_said import says
from hypothesis import given, settings
from hypothesis import strategies as st

import adaptinf as ai
from adaptinf.claims.data.sums import EQUAL_WEIGHTS
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.claims.propensities import ONE_DRAW_A_UNIT
from adaptinf.claims.units import SELDOM_DRAWN
from adaptinf.errors import InvalidForLog, LogValidationError, ParameterError
from adaptinf.inference.scores.unit_sums import unit_correlation
from adaptinf.sums.sums_of_log import totals_of_rows
from adaptinf.sums.unit_totals import products

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning"),
]
NAMES = {"action": "arm", "reward": "y", "batch": "day", "unit": "user"}
ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "duckdb": lambda frame: duckdb.from_df(frame),
    "polars-lazy": lambda frame: pl.DataFrame(frame).lazy(),
    "pandas": lambda frame: frame,
    "ibis": lambda frame: ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False)),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}


def rows_of(
    seed: int, n_arms: int = 3, units: int = 60, rounds: int = 400, kind: str = "0/1", even: float = 4.0
) -> pd.DataFrame:
    """Rows whose propensities vary from row to row, of units that differ."""
    rng = np.random.default_rng(seed)
    user, day = rng.integers(0, units, rounds), np.sort(rng.integers(0, 4, rounds))
    share = 0.7 * rng.dirichlet(np.full(n_arms, even), rounds) + 0.3 / n_arms
    arm = (rng.random(rounds)[:, None] > np.cumsum(share, axis=1)[:, :-1]).sum(axis=1)
    mean = 0.3 + 0.1 * arm + rng.normal(0.0, 0.1, units)[user]
    y = {
        "0/1": (rng.random(rounds) < mean).astype(float),
        "mostly 1": (rng.random(rounds) < 0.97).astype(float),
        "normal": 7.0 + mean + rng.normal(0.0, 0.5, rounds),
        "spiked": np.where(rng.random(rounds) < 0.7, 0.0, rng.gamma(2.0, 1.0 + arm)),
    }[kind]
    frame = pd.DataFrame({"user": user, "day": day, "arm": arm, "y": y})
    return frame.assign(**{f"propensity_{k}": share[:, k] for k in range(n_arms)})


def log_of(frame: pd.DataFrame) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, **NAMES, propensities="propensity_{arm}")


def assert_same(found: ai.Sums, log: ai.AdaptiveLog) -> None:
    """Of IPW, and of AIPW with the centre as its prediction; estimates, errors, laws, notes of gaps."""
    fixed = np.full((log.n_rounds, log.n_arms), found.cells.centre)
    for estimator, outcome in (("ipw", None), ("aipw", fixed)):
        options = {"estimator": estimator, "weights": "uniform"}
        pairs = [
            (ai.ArmMeans(found).fit(**options), ai.ArmMeans(log).fit(**options, outcome=outcome)),
            (
                ai.Contrast(found, treatment=1, control=0).fit(**options),
                ai.Contrast(log, treatment=1, control=0).fit(**options, outcome=outcome),
            ),
        ]
        for sums, rows in pairs:
            for name in ("estimate", "std_error", "covariance", "pvalues"):
                np.testing.assert_allclose(getattr(sums, name), getattr(rows, name), rtol=1e-9, atol=1e-300)
            np.testing.assert_allclose(sums.conf_int(), rows.conf_int(), rtol=1e-9)
            for name in ("ess", "min_propensity"):
                np.testing.assert_allclose(sums.details[name], rows.details[name], rtol=1e-10)
            assert list(sums.cautions) == list(rows.cautions)
        # Every pair's errors together, as the rows' contributions have them.
        many = ai.Contrasts(found, control=0).fit(**options)
        due = ai.Contrasts(log, control=0).fit(**options, outcome=outcome)
        np.testing.assert_allclose(many.covariance, due.covariance, rtol=1e-9)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n_arms=st.integers(2, 4),
    units=st.sampled_from([8, 40, 120]),
    kind=st.sampled_from(["0/1", "mostly 1", "normal", "spiked"]),
    even=st.sampled_from([0.3, 4.0]),
    centre=st.sampled_from([0.0, 0.37, 7.1]),
)
def test_errors_by_unit_are_those_of_the_rows(
    seed: int, n_arms: int, units: int, kind: str, even: float, centre: float
) -> None:
    frame = rows_of(seed, n_arms, units, kind=kind, even=even)
    log = log_of(frame)
    assert_same(ai.Sums.of_log(log, centre=centre), log)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "seed"), [(name, seed) for name in ENGINES for seed in ((2,) if name == "dask" else range(4))]
)
def test_an_engine_adds_up_units_as_memory_does(engine: str, seed: int) -> None:
    frame = rows_of(seed, kind=("0/1", "normal", "spiked", "0/1")[seed])
    named = frame.assign(user=[f"person {code}" for code in frame["user"]])
    expected = ai.Sums.of_log(log_of(named), centre=0.4)
    found = ai.aggregate(ENGINES[engine](named), **NAMES, centre=0.4)
    assert found.by_unit is not None
    assert expected.by_unit is not None
    assert found.by_unit.values.keys() == expected.by_unit.values.keys()
    for name, value in expected.by_unit.values.items():
        assert found.by_unit.values[name] == pytest.approx(value, rel=1e-10, abs=1e-9), name
    assert (found.n_units, found.n_rounds) == (frame["user"].nunique(), len(frame))


def test_totals_are_the_products_of_a_literal_sum() -> None:
    frame = rows_of(3, units=20, rounds=70)
    names = [f"propensity_{k}" for k in range(3)]
    own = frame[names].to_numpy()[np.arange(len(frame)), frame["arm"]]
    code = pd.factorize(frame["user"])[0]
    found = totals_of_rows(frame["arm"].to_numpy(), frame["y"].to_numpy(), own, code, 3, 0.25)
    due = dict.fromkeys(products(3), 0.0)
    for _, rows in frame.assign(e=own).groupby("user"):
        unit = {"one": 1.0, "n": float(len(rows)), "mean": (rows["y"] - 0.25).mean()}
        for k in range(3):
            mine = rows[rows["arm"] == k]
            unit |= {f"inverse_{k}": (1.0 / mine["e"]).sum(), f"had_{k}": float(len(mine) > 0)}
            unit |= {f"weighted_{k}": ((mine["y"] - 0.25) / mine["e"]).sum()}
            unit |= {
                f"events_{k}": float((mine["y"] != 0).any()),
                f"others_{k}": float((mine["y"] == 0).any()),
            }
        unit |= {"switched": float(rows["arm"].nunique() > 1), "moved": float(np.ptp(rows["e"]) > 1e-9)}
        unit |= {"keeping": np.log(np.sort(rows["e"])[1:]).sum(), "sure": float((rows["e"] == 1.0).sum())}
        for name, factors in products(3).items():
            due[name] += float(np.prod([unit[factor] for factor in factors]))
    for name, value in due.items():
        assert found.values[name] == pytest.approx(value, rel=1e-11, abs=1e-12), name


def test_correlation_of_contrasts_is_that_of_influences() -> None:
    frame, centre = rows_of(4, units=30), 0.4
    sums = ai.Sums.of_log(log_of(frame), centre=centre)
    assert sums.by_unit is not None
    share = frame[[f"propensity_{k}" for k in range(3)]].to_numpy()
    chosen = np.eye(3)[frame["arm"]]
    score = centre + chosen * (frame["y"].to_numpy()[:, None] - centre) / share
    parts = pd.DataFrame(score - score.mean(axis=0)).groupby(frame["user"]).sum().to_numpy()
    first, second = parts[:, 1] - parts[:, 0], parts[:, 2] - parts[:, 0]
    due = (first @ second) / np.sqrt((first @ first) * (second @ second))
    found = unit_correlation(sums.cells, sums.by_unit, np.array([[1, 0], [2, 0]]), augmented=True)
    np.testing.assert_allclose(found, [[1.0, due], [due, 1.0]], rtol=1e-10)


def test_one_draw_a_unit_is_seen_as_in_rows() -> None:
    rng = np.random.default_rng(8)
    user = np.tile(np.arange(80), 6)
    arm = (rng.random(80) < 0.06).astype(int)[user]
    frame = pd.DataFrame({"user": user, "day": np.repeat(np.arange(6), 80), "arm": arm})
    frame = frame.assign(y=rng.normal(0.0, 1.0, 480), propensity_0=0.94, propensity_1=0.06)
    log = log_of(frame)
    assert_same(ai.Sums.of_log(log, centre=0.1), log)
    cautions = ai.ArmMeans(ai.Sums.of_log(log)).fit().cautions
    assert says(cautions, SELDOM_DRAWN, units=80)
    share = 0.05 + 0.02 * rng.random(480)
    moving = frame.assign(propensity_0=1.0 - share, propensity_1=share)
    with pytest.raises(InvalidForLog) as caught:
        ai.ArmMeans(ai.Sums.of_log(log_of(moving))).fit("aipw")
    assert says(caught.value.reason, ONE_DRAW_A_UNIT)


def test_what_does_not_go_with_units(tmp_path: Path) -> None:
    frame = rows_of(5)
    sums = ai.aggregate(frame, **NAMES)
    with pytest.raises(ParameterError, match="a unit may be in both"):
        _ = sums + sums
    with pytest.raises(InvalidForLog) as caught:
        ai.ArmMeans(sums).fit("aipw", weights="sqrt")
    assert says(caught.value.reason, EQUAL_WEIGHTS)
    with pytest.raises(InvalidForLog, match=NEEDS_ROWS()):
        ai.ArmMeans(sums).fit("aipw", outcome="running-mean")
    with pytest.raises(InvalidForLog, match="a unit's own earlier rewards"):
        ai.ArmMeans(sums).fit("aipw", outcome="batch-mean")
    with pytest.raises(InvalidForLog, match="the 400 rounds come from only 60 units"):
        ai.Contrast(sums, treatment=1, control=0).fit("batched")
    bare = frame[["user", "day", "arm", "y"]]
    lost = frame.assign(user=frame["user"].where(frame.index > 2).astype("Int64"))
    merged = frame.assign(user=frame["user"] + 1.8e16)
    closed = frame.assign(propensity_0=np.where(frame["day"] == 1, 0.0, 0.5), propensity_1=0.25)
    closed["propensity_2"] = 1.0 - closed["propensity_0"] - 0.25
    closed = closed[(closed["day"] != 1) | (closed["arm"] != 0)]
    kept = bare.assign(arm=frame["user"] % 2, p=np.where(frame["user"].duplicated(), 1.0, 0.5))
    cases: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
        (bare, {}, "unit= requires propensities"),
        (frame.assign(site="a"), {"by": "site"}, "unit= and by= cannot be combined: standard"),
        (frame, {"unit": "day"}, "has another role: batch"),
        (frame, {"unit": "person"}, "there is no column 'person' for unit"),
        (lost, {}, "3 rows have no unit"),
        (merged, {}, r"unit column 'user' has floats of 2\*\*53 or more, each of which represents several"),
        (closed, {}, "every arm must be possible in every row"),
        (kept, {"propensity": "p"}, "some propensities are 1: pass propensities="),
    ]
    for table, options, message in cases:
        with pytest.raises(LogValidationError, match=message):
            ai.aggregate(table, **{**NAMES, **options})
    with pytest.raises(ParameterError, match="collect=False with unit= requires arms="):
        ai.aggregate(bare.assign(p=0.5), **NAMES, propensity="p", collect=False)
    cells, units = ai.aggregate(duckdb.from_df(frame), **NAMES, collect=False)
    assert "GROUP BY" in cells.sql_query()
    assert '"user"' in units.sql_query()
    place = tmp_path / "sums.parquet"
    sums.to_parquet(place)
    again = ai.Sums.read_parquet(place)
    assert (again.n_units, repr(again)) == (60, repr(sums))
    np.testing.assert_array_equal(ai.ArmMeans(again).fit().conf_int(), ai.ArmMeans(sums).fit().conf_int())


def test_a_table_that_changes_between_the_queries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.sums import engines

    frame = rows_of(6)
    real = engines.unit_query
    monkeypatch.setattr(engines, "unit_query", lambda rows, *rest: real(rows.head(390), *rest))
    with pytest.raises(
        LogValidationError, match="400 rows when batches were summed, but 390 when units were"
    ):
        ai.aggregate(frame, **NAMES)


def test_units_that_come_once_are_rounds() -> None:
    frame = rows_of(7).assign(user=np.arange(400))
    found = ai.aggregate(frame, **NAMES, centre=0.4)
    plain = ai.aggregate(frame, **{**NAMES, "unit": None}, centre=0.4)
    assert found.n_units == 400
    np.testing.assert_array_equal(ai.ArmMeans(found).fit().conf_int(), ai.ArmMeans(plain).fit().conf_int())
