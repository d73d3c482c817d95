"""Shares that move within batches, where they stand in for propensities, are seen and said."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.claims.arms.batched import MOVED_INSIDE
from adaptinf.claims.propensities import NOT_FOLLOWED, SHARES_MOVE_WITHIN_BATCHES
from adaptinf.inference.validity.assignment import MOVED_WITHIN
from adaptinf.inference.validity.profile import profile_of
from adaptinf.sums.homogeneity import homogeneity_pvalue, within_pvalue
from tests.claims_said import says

ROLES = {"action": "arm", "reward": "y", "batch": "time"}


def rows(seed: int, swing: float, days: int = 10, per_day: int = 480) -> pd.DataFrame:
    """Two arms that are alike; shares and rewards follow the hour, from day to day the shares differ too."""
    rng = np.random.default_rng(seed)
    time = pd.date_range("2024-01-01", periods=days * per_day, freq=f"{1440 // per_day}min")
    wave = np.sin(2.0 * np.pi * time.hour.to_numpy() / 24.0)
    share = np.repeat(rng.uniform(0.4, 0.6, days), per_day) + swing * wave
    arm = (rng.random(len(time)) < share).astype(int)
    return pd.DataFrame({"time": time, "arm": arm, "y": wave + rng.normal(size=len(time))})


def test_moments_given_the_margins_are_those_of_all_permutations() -> None:
    row, column = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 1])
    found = []
    for order in set(itertools.permutations(column)):
        table = np.zeros((3, 2))
        np.add.at(table, (row, np.array(order)), 1.0)
        expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / 6.0
        found.append(float(((table - expected) ** 2 / expected).sum()))
    table = np.zeros((3, 2))
    np.add.at(table, (row, column), 1.0)
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / 6.0
    statistic = float(((table - expected) ** 2 / expected).sum())
    mean, variance = np.mean(found), np.var(found)
    due = stats.gamma.sf(statistic, mean**2 / variance, scale=variance / mean)
    got = homogeneity_pvalue(np.zeros(6, dtype=np.int64), row, column, np.ones(6))
    assert got == pytest.approx(due, rel=1e-12)


def test_large_tables_have_pearsons_pvalue() -> None:
    counts = np.random.default_rng(1).multinomial(200_000, [0.1, 0.2, 0.3, 0.1, 0.1, 0.2]).reshape(3, 2)
    row, column = (place.ravel().astype(np.int64) for place in np.indices(counts.shape))
    got = homogeneity_pvalue(np.zeros(6, dtype=np.int64), row, column, counts.ravel().astype(float))
    assert got == pytest.approx(stats.chi2_contingency(counts).pvalue, abs=2e-4)


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_shares_that_follow_the_hour_are_a_caution(every: str) -> None:
    sums = ai.aggregate(rows(0, 0.35, days=35), **ROLES, every=every)
    assert sums.share_movement is not None
    assert sums.share_movement < 1e-20
    contrast = ai.Contrast(sums, treatment=1, control=0)
    for fit in (
        contrast.fit(),
        contrast.fit("sample-mean"),
        contrast.fit("batched"),
        ai.ArmMeans(sums).fit(),
        ai.ConfidenceSequence(sums).fit("asymptotic"),
    ):
        assert sum(says(caution, SHARES_MOVE_WITHIN_BATCHES) for caution in fit.cautions) == 1
    (check,) = ai.diagnose(sums).check("shares within batches")
    assert check.verdict == "evidence against"


@pytest.mark.slow
def test_shorter_batches_are_the_way_out() -> None:
    fits = []
    for seed in range(20):
        frame = rows(seed, 0.35, 4, 1440)
        daily, hourly = (
            ai.Contrast(ai.aggregate(frame, **ROLES, every=every), treatment=1, control=0).fit()
            for every in ("day", "hour")
        )
        fits.append([bool(fit.conf_int().to_numpy()[0, 0] <= 0.0) for fit in (daily, hourly)])
        assert says(daily.cautions, SHARES_MOVE_WITHIN_BATCHES)
        assert not says(hourly.cautions, SHARES_MOVE_WITHIN_BATCHES)
    assert np.mean(fits, axis=0)[0] == 0.0
    assert np.mean(fits, axis=0)[1] >= 0.75


@pytest.mark.slow
@pytest.mark.parametrize(("every", "per_day", "days"), [("day", 480, 5), ("day", 48, 20), ("week", 96, 28)])
def test_false_alarms_are_rare(every: str, per_day: int, days: int) -> None:
    found = []
    for seed in range(100):
        frame = rows(seed, 0.0, days, per_day)
        if every == "week":  # shares that move from day to day move within weeks
            rng = np.random.default_rng(seed)
            frame["arm"] = (rng.random(len(frame)) < 0.3).astype(int)
        found.append(ai.aggregate(frame, **ROLES, every=every).share_movement)
    assert np.mean(np.array(found) < MOVED_WITHIN) <= 0.01
    # Of 100 p-values 22 or more are below .1 in a case of 10,000, if these are p-values.
    assert np.count_nonzero(np.array(found) < 0.1) <= 22


def test_it_is_looked_for_only_where_propensities_do_not_change(tmp_path: Path) -> None:
    frame = rows(1, 0.3)
    moving = np.random.default_rng(0).uniform(0.4, 0.6, len(frame))
    known = frame.assign(propensity_0=1.0 - moving, propensity_1=moving)
    told: dict[str, Any] = {"about": {"propensity_status": "estimated"}}
    assert ai.aggregate(known, **ROLES, every="day").share_movement is None
    fixed = ai.aggregate(frame.assign(propensity_0=0.5, propensity_1=0.5), **ROLES, every="day", **told)
    assert fixed.share_movement is not None
    assert profile_of(fixed).shares_found is None
    tables = (frame, pl.DataFrame(frame).lazy(), duckdb.from_df(frame))
    found = [ai.aggregate(table, **ROLES, every="day", centre=0.0) for table in tables]
    for sums in found[1:]:
        assert sums.share_movement == pytest.approx(found[0].share_movement, rel=1e-9)
        pd.testing.assert_frame_equal(sums.frame, found[0].frame, rtol=1e-12)
    place = tmp_path / "sums.parquet"
    found[0].to_parquet(place)
    assert ai.Sums.read_parquet(place).share_movement == found[0].share_movement
    halves = [
        ai.aggregate(frame[half], **ROLES, every="day")
        for half in (frame.index % 2 == 0, frame.index % 2 == 1)
    ]
    seen = [half.share_movement or 0.0 for half in halves]
    assert (halves[0] + halves[1]).share_movement == pytest.approx(2.0 * min(seen))


def test_pieces_are_added_up_to_their_batches() -> None:
    frame = rows(2, 0.3).assign(device=np.tile(["phone", "desk"], 2400))
    whole = ai.aggregate(frame, **ROLES, every="day", by="device", centre=0.0).frame
    days = frame.assign(time=frame["time"].dt.normalize())
    due = days.groupby(["device", "time", "arm"])["y"].agg(["size", "sum"]).reset_index()
    np.testing.assert_array_equal(whole["n"], due["size"])
    np.testing.assert_allclose(whole["sum"], due["sum"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_days_as_numbers_are_tested_by_the_order_of_rows(kind: Any) -> None:
    frame = rows(4, 0.35)
    days = frame.assign(time=frame["time"].dt.day_of_year)
    sums = ai.aggregate(kind(days), **ROLES)
    due = within_pvalue(days["arm"].to_numpy(), 2, days["time"].to_numpy())
    assert sums.share_movement == pytest.approx(due, rel=1e-9)
    assert due < 1e-20
    assert says(ai.Contrast(sums, treatment=1, control=0).fit().cautions, SHARES_MOVE_WITHIN_BATCHES)
    stated = days.assign(p=days["arm"].map(days["arm"].value_counts(normalize=True)))
    contrast = ai.Contrast(ai.aggregate(kind(stated), **ROLES, propensity="p"), treatment=1, control=0)
    assert says(contrast.fit().cautions, NOT_FOLLOWED)
    assert says(contrast.fit("batched").cautions, MOVED_INSIDE)


def test_rows_in_another_order_are_not_taken_for_shares_that_move() -> None:
    days = rows(4, 0.0).assign(time=lambda frame: frame["time"].dt.day_of_year)
    assert (ai.aggregate(days, **ROLES).share_movement or 0.0) > MOVED_WITHIN
    for by in (["time", "arm"], ["arm", "time"], ["time", "y"]):
        uneven = days.assign(y=days["y"] + days["arm"])
        found = ai.aggregate(uneven.sort_values(by), **ROLES).share_movement
        assert found is None
    assert ai.aggregate(duckdb.from_df(days), **ROLES).share_movement is None
