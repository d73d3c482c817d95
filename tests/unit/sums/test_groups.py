"""Sums by group: against the rows of each group, merged, saved, read; and effects within groups from them."""

from __future__ import annotations

import io
from functools import reduce
from operator import add
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
from claims_said import says, wording
from scipy import stats
from sum_rows import assert_same_cells

import adaptinf as ai
from adaptinf.claims import contexts
from adaptinf.claims.data.sums import MOVING
from adaptinf.claims.effects import by_group
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.cli.entry import main
from adaptinf.errors import InvalidForLog, LogValidationError, ParameterError

ENGINES: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "duckdb": duckdb.from_df,
    "polars-lazy": lambda frame: pl.DataFrame(frame).lazy(),
    "dask": lambda frame: dd.from_pandas(frame, npartitions=2),
    "ibis": lambda frame: ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False)),
}
NAMES = {"action": "arm", "reward": "y", "batch": "batch"}
TABLE = {"batch": "batch", "arm": "arm", "n": "n", "sum": "sum", "sum_squares": "sum_squares"}


def rows_by_group(seed: int, moving: bool = True, size: int = 400, skewed: bool = False) -> pd.DataFrame:
    """Rounds of 4 batches whose propensities depend on the batch and on two columns of groups."""
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(4), size)
    device, country = rng.choice(["phone", "desk"], 4 * size), rng.integers(1, 4, 4 * size)
    share = 0.3 + 0.2 * (device == "desk") + 0.05 * country + (0.06 * batch if moving else 0.0)
    arm = (rng.random(4 * size) < share).astype(int)
    noise = rng.lognormal(0.0, 1.2, 4 * size) if skewed else rng.normal(0.0, 1.0, 4 * size)
    reward = 5.0 + noise + 0.3 * batch + arm * (0.4 * (device == "desk") - 0.1 * country)
    columns = {"batch": batch, "arm": arm, "y": reward, "device": device, "country": country}
    return pd.DataFrame(columns | {"propensity_0": 1.0 - share, "propensity_1": share})


def log_of(frame: pd.DataFrame, context: tuple[str, ...] = ("device", "country")) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, action="arm", reward="y", batch="batch", context=list(context), arms=[0, 1])


def test_sums_of_a_group_are_those_of_its_rows_and_of_all_groups_those_of_all() -> None:
    frame = rows_by_group(1)
    sums = ai.Sums.of_log(log_of(frame), by=["device", "country"])
    assert sums.groups == [(one, two) for one in ("desk", "phone") for two in (1, 2, 3)]
    assert_same_cells(sums, ai.Sums.of_log(log_of(frame)))
    for device, country in sums.groups:
        rows = frame[(frame["device"] == device) & (frame["country"] == country)]
        assert_same_cells(sums.of_group((device, country)), ai.Sums.of_log(log_of(rows), sums.cells.centre))
        assert sums.of_group((device, country)).context == ()
    fewer = sums.by_groups("country")
    assert fewer.groups == [1, 2, 3]
    assert fewer.context == ("device", "country")
    assert_same_cells(
        fewer.of_group(2), ai.Sums.of_log(log_of(frame[frame["country"] == 2]), sums.cells.centre)
    )
    counts = frame.groupby(["batch", "country", "arm"]).size().to_numpy().reshape(4, 3, 2)
    np.testing.assert_array_equal(fewer.counts, counts)


@pytest.mark.parametrize(
    "engine", [pytest.param(one, marks=pytest.mark.slow) if one == "dask" else one for one in ENGINES]
)
def test_one_query_adds_up_groups_and_parts_merge_in_any_order(engine: str) -> None:
    frame = rows_by_group(2)
    rng, by = np.random.default_rng(2), ["device", "country"]
    piece = rng.integers(0, 3, len(frame))
    piece[frame["country"] == 3] = 1  # a group of one part alone
    parts = [
        ai.aggregate(
            ENGINES[engine](frame[piece == one].reset_index(drop=True)), **NAMES, by=["device", "country"]
        )
        for one in (2, 0, 1)
    ]
    whole = ai.aggregate(ENGINES[engine](frame), **NAMES, by=by)
    expected = ai.Sums.of_log(log_of(frame), by=by)
    for found in (whole, reduce(add, parts)):
        assert found.groups == expected.groups
        assert found.context == ("device", "country")
        for label in expected.groups:
            one, due = found.of_group(label), expected.of_group(label)
            one.cells = one.cells.about(due.cells.centre)
            assert_same_cells(one, due)


def test_a_table_with_groups_is_read_saved_and_shown(tmp_path: Path) -> None:
    frame = rows_by_group(3)
    made = ai.Sums.of_log(log_of(frame), by=["device", "country"])
    table = made.frame
    assert list(table.columns[:4]) == ["device", "country", "batch", "arm"]
    assert len(table) == 6 * 4 * 2
    read = ai.Sums(table, **TABLE, propensity="propensity", group=["device", "country"])
    np.testing.assert_allclose(read.frame["sum"], table["sum"], rtol=1e-12)
    assert "groups: device, country (('desk', 1), ('desk', 2)" in repr(read)
    path = tmp_path / "sums.parquet"
    made.to_parquet(path)
    again = ai.Sums.read_parquet(path)
    assert again.groups == made.groups
    np.testing.assert_array_equal(again.cells.moments, made.cells.moments)
    pd.testing.assert_frame_equal(again.frame, made.frame)


@pytest.mark.parametrize("weights", ["combined", "uniform", "sqrt"])
def test_an_effect_is_the_contrast_of_the_group_s_own_rows(weights: str) -> None:
    """Propensities are constant within a batch of a group, and two columns make the groups."""
    frame = rows_by_group(4)
    sums = ai.Sums.of_log(log_of(frame), by=["device", "country"])
    how: dict[str, Any] = {"weights": weights, "stationary": weights == "sqrt"}
    result = ai.CATE(sums, by=["device", "country"]).fit("aipw", **how)
    assert result.terms[0] == "device=desk, country=1"
    assert result.weights == weights
    for place, (device, country) in enumerate(sums.groups):
        rows = frame[(frame["device"] == device) & (frame["country"] == country)]
        log = ai.AdaptiveLog(rows, action="arm", reward="y", batch="batch", arms=[0, 1])
        own = ai.Contrast(log, treatment=1, control=0).fit("aipw", outcome="batch-mean", **how)
        np.testing.assert_allclose(result.estimate[place], own.estimate[0], rtol=1e-10)
        np.testing.assert_allclose(result.std_error[place], own.std_error[0], rtol=1e-10)
        np.testing.assert_allclose(result.conf_int().iloc[place], own.conf_int().iloc[0], rtol=1e-8)
    np.testing.assert_allclose(result.covariance, np.diag(result.std_error**2))


def test_weights_of_a_group_whose_propensities_move_within_a_batch_are_those_of_the_batch_before() -> None:
    """By country alone the device, which the group does not tell, moves propensities within a batch."""
    frame = rows_by_group(5)
    sums = ai.Sums.of_log(log_of(frame), by="country")
    result = ai.CATE(sums, by="country").fit("aipw", weights="combined")
    for place, country in enumerate((1, 2, 3)):
        rows = frame[frame["country"] == country]
        own = ai.Contrast(log_of(rows, ("device",)), treatment=1, control=0).fit(
            "aipw", "combined", outcome="batch-mean"
        )
        np.testing.assert_allclose(result.estimate[place], own.estimate[0], rtol=1e-10)
        np.testing.assert_allclose(result.std_error[place], own.std_error[0], rtol=1e-10)
    with pytest.raises(InvalidForLog) as caught:
        ai.CATE(sums, by="country").fit("aipw", weights="sqrt")
    assert says(caught.value.reason, MOVING)


def test_constant_propensities_give_the_means_that_rows_give() -> None:
    frame = rows_by_group(6, moving=False)
    log = log_of(frame)
    rows, found = (
        ai.CATE(data, by=["device", "country"]).fit()
        for data in (log, ai.Sums.of_log(log, by=["device", "country"]))
    )
    assert rows.estimator == found.estimator == "difference-in-means"
    np.testing.assert_allclose(found.estimate, rows.estimate, rtol=1e-10)
    np.testing.assert_allclose(found.std_error, rows.std_error, rtol=1e-10)
    np.testing.assert_allclose(found.conf_int(), rows.conf_int(), rtol=1e-6)
    np.testing.assert_allclose(found.heterogeneity().pvalue, rows.heterogeneity().pvalue, rtol=1e-6)
    moving = ai.Sums.of_log(log_of(rows_by_group(6)), by="device")
    with pytest.raises(InvalidForLog) as error:
        ai.CATE(moving, by="device").fit("difference-in-means")
    assert says(error.value.reason, by_group.MOVING_PROPENSITIES)


def test_skewed_rewards_have_one_law_for_all_groups() -> None:
    frame = rows_by_group(7, size=150, skewed=True)
    frame.loc[frame["device"] == "phone", "y"] = np.random.default_rng(7).normal(
        5.0, 1.0, int((frame["device"] == "phone").sum())
    )
    sums = ai.Sums.of_log(log_of(frame), by="device")
    result = ai.CATE(sums, by="device").fit("aipw", weights="uniform")
    assert result.reference.name == "t with skewness correction (Hall's transformation and MOVER)"
    for place, label in enumerate(sums.groups):
        own = ai.Contrast(sums.of_group(label), treatment=1, control=0).fit("aipw", "uniform", test="hall")
        np.testing.assert_allclose(result.conf_int().iloc[place], own.conf_int().iloc[0], rtol=1e-9)
    difference = result.interactions().conf_int().iloc[0]
    assert difference["low"] < result.estimate[1] - result.estimate[0] < difference["high"]


def test_a_group_without_one_of_the_arms_has_no_effect_and_says_so() -> None:
    frame = rows_by_group(8)
    closed = frame["country"] == 3
    frame.loc[closed, ["arm", "propensity_0", "propensity_1"]] = [0, 1.0, 0.0]
    with pytest.raises(
        ParameterError,
        match=("propensity 0 in a batch for some groups but not for others: drop the rows that"),
    ):
        ai.Sums.of_log(log_of(frame), by="country")
    frame["batch"] += 10 * closed  # in batches of its own
    frame = frame.sort_values("batch")
    sums = ai.Sums.of_log(log_of(frame), by="country")
    result = ai.CATE(sums, by="country").fit()
    assert np.isnan(result.estimate[2])
    assert np.all(np.isfinite(result.estimate[:2]))
    assert says(result.notes, by_group.GROUPS_WITHOUT_BATCH, terms="country=3")


def shares_by_group(seed: int, follows: float) -> pd.DataFrame:
    """A warehouse's table without propensities, where one group gets arm b more often or not."""
    rng = np.random.default_rng(seed)
    rows = []
    for week in range(6):
        for group, rate in (("new", 0.2), ("old", 0.4)):
            users = rng.multinomial(1000, [0.5, 0.5] if group == "new" else [0.5 - follows, 0.5 + follows])
            for arm, n in zip("ab", users, strict=True):
                buyers = rng.binomial(n, rate)
                rows.append((week, group, arm, n, buyers, buyers))
    return pd.DataFrame(rows, columns=["batch", "group", "arm", "n", "sum", "sum_squares"])


def test_shares_that_follow_a_group_are_refused_for_means_and_right_within_groups() -> None:
    sums = ai.Sums(shares_by_group(0, 0.3), **TABLE, group="group")
    with pytest.raises(InvalidForLog, match=wording(contexts.VISIBLY, context="group")) as refused:
        ai.Contrast(sums, treatment="b", control="a").fit()
    assert "CATE(sums, by='group')" in str(refused.value)
    result = ai.CATE(sums, by="group").fit()
    assert np.all(result.pvalues > 0.001)
    blind = ai.Sums(shares_by_group(0, 0.3).groupby(["batch", "arm"], as_index=False).sum(), **TABLE)
    assert ai.Contrast(blind, treatment="b", control="a").fit().pvalues.iloc[0] < 1e-6  # what is refused
    free = ai.Sums(shares_by_group(1, 0.0), **TABLE, group="group")
    assert ai.Contrast(free, treatment="b", control="a").fit().pvalues.iloc[0] > 0.001


@pytest.mark.slow
def test_effects_hold_their_level_where_groups_adapt_by_themselves() -> None:
    """Thompson sampling within each group between batches, in plain NumPy, with drift and no effect.

    False alarm: 1,200 tests at .05 have a standard error of .0063; the bound is four of them.
    """
    rng = np.random.default_rng(11)
    logs, batches, size = 600, 6, 120
    rejected = 0
    for _ in range(logs):
        rows = []
        total, count = np.zeros((2, 2)), np.zeros((2, 2))
        for batch in range(batches):
            group = rng.integers(0, 2, size)
            mean = np.where(count > 0, total / np.maximum(count, 1.0), 0.0)
            gap = (mean[:, 1] - mean[:, 0]) / np.sqrt((1.0 / np.maximum(count, 1.0)).sum(axis=1))
            chance = np.clip(stats.norm.cdf(gap), 0.1, 0.9) if batch else np.full(2, 0.5)
            arm = (rng.random(size) < chance[group]).astype(int)
            reward = rng.normal(0.4 * batch * group, 1.0, size)
            np.add.at(total, (group, arm), reward)
            np.add.at(count, (group, arm), 1.0)
            for g in (0, 1):
                for a in (0, 1):
                    y = reward[(group == g) & (arm == a)]
                    share = chance[g] if a else 1.0 - chance[g]
                    rows.append((batch, g, a, len(y), y.sum(), (y**2).sum(), (y**3).sum(), share))
        columns = ["batch", "group", "arm", "n", "sum", "sum_squares", "cubes", "share"]
        table = pd.DataFrame(rows, columns=columns)
        sums = ai.Sums(table, **TABLE, sum_cubes="cubes", nonzero="n", propensity="share", group="group")
        rejected += int((ai.CATE(sums, by="group").fit().pvalues < 0.05).sum())
    assert rejected / (2 * logs) <= 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / (2 * logs))


def test_recommend_rates_what_sums_of_groups_allow() -> None:
    sums = ai.Sums.of_log(log_of(rows_by_group(9)), by="device")
    table = ai.recommend(sums, "cate", by="device")
    assert table.best.call == (
        "CATE(sums, by='device', treatment=1, control=0).fit(estimator='aipw', weights='combined')"
    )
    refused = {one.verdict.name for one in table.methods if not one.verdict.valid}
    assert refused == {"difference-in-means", "aipw with sqrt weights", "released"}
    first = ai.CATE(sums, by="device").fit()
    np.testing.assert_array_equal(table.fit().estimate, first.estimate)


def test_the_command_line_reads_a_table_with_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sums = ai.Sums.of_log(log_of(rows_by_group(12)), by="device")
    file = tmp_path / "sums.csv"
    columns = ["device", "batch", "arm", "n", "sum", "sum_squares"]
    sums.frame.assign(arm=sums.frame["arm"].map({0: "a", 1: "b"}))[columns].to_csv(file, index=False)
    flags = [
        "--action",
        "arm",
        "--batch",
        "batch",
        "--n",
        "n",
        "--sum",
        "sum",
        "--sum-squares",
        "sum_squares",
    ]
    assert main(["analyze", str(file), *flags, "--by", "device", "--control", "a", "--format", "csv"]) == 0
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))
    read = ai.Sums(sums.frame, **TABLE, group="device")
    np.testing.assert_allclose(shown["estimate"], ai.CATE(read, by="device").fit().estimate, rtol=1e-9)


def test_what_is_wrong_is_said() -> None:
    frame = rows_by_group(10)
    log = log_of(frame)
    with pytest.raises(ParameterError, match="there is no context column 'planet'; the log has"):
        ai.Sums.of_log(log, by="planet")
    sums = ai.Sums.of_log(log, by="device")
    with pytest.raises(
        ParameterError, match=("the sums are not grouped by 'country'; they are grouped by device")
    ):
        ai.CATE(sums, by="country")
    with pytest.raises(ParameterError, match="they have no groups"):
        ai.CATE(ai.Sums.of_log(log), by="device")
    with pytest.raises(ParameterError, match="there is no group 'tv'"):
        sums.of_group("tv")
    with pytest.raises(ParameterError, match="there is no grouping column 'country'; available: 'device'"):
        sums.by_groups("country")
    with pytest.raises(InvalidForLog, match=NEEDS_ROWS()):
        ai.CATE(sums, by="device", rounds="batch")
    with pytest.raises(InvalidForLog, match="released"):
        ai.CATE(sums, by="device").fit("released")
    with pytest.raises(ParameterError, match="group_names differs"):
        sums + ai.Sums.of_log(log, by="country")
    gap = frame.assign(device=frame["device"].where(frame.index != 5))
    with pytest.raises(
        LogValidationError,
        match=r"context column 'device' has no value \(give the rows that belong to no group a label\) in 1 "
        r"row",
    ):
        ai.aggregate(gap, **NAMES, by="device")
    with pytest.raises(LogValidationError, match="has another role"):
        ai.aggregate(frame, **NAMES, by="arm")
    table = ai.Sums.of_log(log, by="device").frame
    with pytest.raises(LogValidationError, match="a batch and arm have several rows"):
        ai.Sums(pd.concat([table, table]), **TABLE, propensity="propensity", group="device")
    with pytest.raises(LogValidationError, match="batch 2 of device 'phone'"):
        ai.Sums(
            table[(table["device"] != "phone") | (table["batch"] != 2) | (table["arm"] != 1)],
            **TABLE,
            propensity="propensity",
            group="device",
        )
    lacking = table.assign(device=table["device"].where(table.index != 0))
    with pytest.raises(LogValidationError, match="group column 'device' has no value"):
        ai.Sums(lacking, **TABLE, propensity="propensity", group="device")
