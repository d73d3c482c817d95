"""A table is summed, or refused by the same codes, whatever holds it and in whatever zone."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adaptinf as ai
from adaptinf.errors import FileError, LogValidationError, ParameterError
from adaptinf.sums import engines

# Dask, and what ibis calls.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
ROLES = {"action": "arm", "reward": "y", "batch": "day"}
ROWS = 100


def arrow_backed(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def written(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "file": written,
    "duckdb": lambda table, folder: duckdb.from_arrow(table),
    "ibis": lambda table, folder: ibis.duckdb.connect().read_parquet(written(table, folder)),
    "pandas": lambda table, folder: table.to_pandas(),
    "arrow-backed": lambda table, folder: arrow_backed(table),
    "pyarrow": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_arrow(table),
    "dask": lambda table, folder: dd.from_pandas(arrow_backed(table), npartitions=3),
}


def rows(**changed: Any) -> pa.Table:
    """Six days of a hundred rows, with other columns in place of some."""
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(6), ROWS)
    share = np.array([0.5, 0.4, 0.3, 0.35, 0.6, 0.45])[day]
    columns = {
        "day": day,
        "arm": np.where(rng.random(len(day)) < share, "b", "a"),
        "y": rng.normal(size=len(day)),
        "propensity_a": 1.0 - share,
        "propensity_b": share,
    }
    return pa.table(columns | changed)


def with_entry(values: Any, entry: Any, row: int = 5) -> pa.Array:
    """Values with one other entry, of which NaN is a value to Arrow."""
    listed = list(values)
    listed[row] = entry
    return pa.array(listed) if entry is None else pa.array(np.array(listed), from_pandas=False)


def codes_of(call: Callable[[], Any]) -> list[str]:
    with pytest.raises(LogValidationError) as caught:
        call()
    return sorted({problem.code for problem in caught.value.problems})


# --- labels, missing and huge numbers -----------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_arms_of_both_signs_of_zero_are_one(source: str, tmp_path: Path) -> None:
    table = rows()
    ones, odd = np.array(table["arm"].to_pylist()) == "b", np.arange(6 * ROWS) % 2 == 1
    signed = rows(arm=np.where(ones, 1.0, np.where(odd, -0.0, 0.0)))
    options = ROLES | {"propensities": {0.0: "propensity_a", 1.0: "propensity_b"}}
    sums = ai.aggregate(SOURCES[source](signed, tmp_path), **options)
    assert sums.frame["n"].sum() == 6 * ROWS
    due = [np.array(table["y"].to_pylist())[chosen].mean() for chosen in (~ones, ones)]
    np.testing.assert_allclose(ai.ArmMeans(sums).fit("sample-mean").estimate, due, rtol=1e-12)


NUMBERS = np.arange(6 * ROWS) % 7
FAULTY: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "NaN rewards": ({"y": with_entry(NUMBERS * 1.0, np.nan)}, {}, ["missing-reward"]),
    "missing rewards": ({"y": with_entry(NUMBERS.tolist(), None)}, {}, ["missing-reward"]),
    "missing truth values": ({"y": with_entry((NUMBERS > 3).tolist(), None)}, {}, ["missing-reward"]),
    "infinite rewards": ({"y": with_entry(NUMBERS * 1.0, -np.inf)}, {}, ["infinite-reward"]),
    "rewards near 2**62": ({"y": NUMBERS + 2**62}, {}, ["inexact-reward"]),
    "rewards of 2**63": ({"y": NUMBERS.astype(np.uint64) + np.uint64(2**63)}, {}, ["inexact-reward"]),
    "rewards of 1e308": ({"y": np.where(NUMBERS > 3, 1e308, 1.0)}, {}, ["rounded-reward"]),
    "rewards out of range": ({"y": NUMBERS}, {"reward_range": (0, 5)}, ["reward-out-of-range"]),
    "text as rewards": ({"y": NUMBERS.astype(str)}, {}, ["non-numeric-reward"]),
    "NaN propensities": (
        {"propensity_b": with_entry(rows()["propensity_b"].to_pylist(), np.nan)},
        {},
        ["missing-propensity"],
    ),
    "NaN batches": ({"day": with_entry(np.repeat(np.arange(6.0), ROWS), np.nan)}, {}, ["missing-batch"]),
    "infinite batches": ({"day": with_entry(np.repeat(np.arange(6.0), ROWS), np.inf)}, {}, ["bad-batch"]),
    "batches 1 and 01": (
        {"day": ["1"] * 50 + ["01"] * 50 + [f"{2 + row // ROWS}" for row in range(5 * ROWS)]},
        {},
        ["ambiguous-batch"],
    ),
    "arms 'a' and 'a '": (
        {"arm": with_entry(rows()["arm"].to_pylist(), "a ")},
        {},
        ["ambiguous-arm", "arm-without-propensity"],
    ),
    "lists as arms": ({"arm": pa.array([[1]] * 6 * ROWS)}, {}, ["bad-action"]),
    "days of numbers": ({}, {"every": "day"}, ["bad-batch"]),
    "days of text": ({"day": ["2024-03-01"] * 6 * ROWS}, {"every": "day"}, ["bad-batch"]),
    "a far centre": ({}, {"centre": 1e15}, ["far-centre"]),
}


EVERYWHERE = ("NaN rewards", "missing truth values", "rewards of 2**63", "NaN batches", "days of numbers")


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTY)
def test_a_table_is_refused_by_the_same_codes_everywhere(name: str, tmp_path: Path) -> None:
    changed, options, due = FAULTY[name]
    for source, made in SOURCES.items():
        if source in ("ibis", "dask") and name not in EVERYWHERE:  # the slow ones
            continue
        table = made(rows(**changed), tmp_path)
        assert codes_of(lambda table=table: ai.aggregate(table, **ROLES, **options)) == due, source
    if "every" not in options and "centre" not in options:
        frame = rows(**changed).to_pandas()
        assert codes_of(lambda: ai.AdaptiveLog(frame, **ROLES, **options)) == due


def test_numbers_of_rows_are_those_of_the_table() -> None:
    table = rows(day=with_entry(np.repeat(np.arange(6), ROWS).tolist(), None))
    with pytest.raises(LogValidationError, match=r"batch column 'day' has no value in 1 row$"):
        ai.aggregate(table, **ROLES)


def test_decimals_are_the_floats_next_to_them(tmp_path: Path) -> None:
    cents = [round(value, 2) for value in rows()["y"].to_pylist()]
    decimal = rows(y=pa.array(cents).cast(pa.decimal128(12, 2)))
    due = ai.Sums.of_log(ai.AdaptiveLog(rows(y=cents).to_pandas(), **ROLES), centre=0.0).frame
    for source, made in SOURCES.items():
        got = ai.aggregate(made(decimal, tmp_path), **ROLES, centre=0.0).frame
        np.testing.assert_allclose(got[["n", "sum"]], due[["n", "sum"]], rtol=0, atol=1e-12, err_msg=source)
    log = ai.AdaptiveLog(decimal.to_pandas(), **ROLES)
    np.testing.assert_array_equal(log.arrays.reward, cents)


def test_a_log_reads_the_types_of_arrow() -> None:
    views = rows(arm=rows()["arm"].cast(pa.string_view()), y=pa.array((NUMBERS > 3).tolist()))
    log = ai.AdaptiveLog(arrow_backed(views), **ROLES)
    assert log.arms == ("a", "b")
    np.testing.assert_array_equal(log.arrays.reward, NUMBERS > 3)
    gap = arrow_backed(rows(y=with_entry((NUMBERS > 3).tolist(), None)))
    assert codes_of(lambda: ai.AdaptiveLog(gap, **ROLES)) == ["missing-reward"]


def test_a_centre_is_refused_where_squares_would_lose_their_digits() -> None:
    far = rows(y=1e7 + np.array(rows()["y"].to_pylist()))
    assert codes_of(lambda: ai.aggregate(far, **ROLES, centre=0.0)) == ["far-centre"]
    log = ai.AdaptiveLog(far.to_pandas(), **ROLES)
    assert codes_of(lambda: ai.Sums.of_log(log, centre=0.0)) == ["far-centre"]
    alike = ai.aggregate(rows(y=np.full(6 * ROWS, 1e7)), **ROLES, centre=0.0)
    np.testing.assert_array_equal(ai.ArmMeans(alike).fit("sample-mean").estimate, 1e7)
    near, default = (
        ai.Contrast(ai.aggregate(far, **ROLES, **given), treatment="b", control="a").fit(test="t")
        for given in ({"centre": 1e7 + 50.0}, {})
    )
    np.testing.assert_allclose(near.std_error, default.std_error, rtol=1e-9)


def test_a_run_is_checked_as_a_frame_is() -> None:
    design = ai.designs.Thompson(batch_size=50, floor=0.1)
    huge = ai.environments.NormalArms([0.0, 0.0], scale=1e300)
    assert codes_of(lambda: design.run(huge, horizon=200, rng=0)) == ["rounded-reward"]


# --- times --------------------------------------------------------------------------------------------------


def stamps(zone: str | None, start: str = "2024-03-30T18:00", unit: str = "us") -> pa.Array:
    times = np.datetime64(start, unit) + (np.arange(6 * ROWS) // 25 * 5).astype("timedelta64[h]")
    return pa.array(times.astype(np.int64), pa.timestamp(unit, zone))


def started(entry: datetime.datetime, every: str, zone: str) -> datetime.datetime:
    """When a period began, by the calendar of plain Python; instants in UTC."""
    time = entry.astimezone(ZoneInfo(zone)) if entry.tzinfo is not None else entry
    start = time.replace(minute=0, second=0, microsecond=0)
    start = start if every == "hour" else start.replace(hour=0)
    start = start - datetime.timedelta(days=start.weekday()) if every == "week" else start
    start = start.replace(day=1) if every == "month" else start
    return start if start.tzinfo is None else start.astimezone(datetime.UTC).replace(tzinfo=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "timezone", "every"),
    [
        (None, None, "week"),
        ("America/New_York", None, "day"),
        ("Asia/Kathmandu", None, "hour"),
        ("Asia/Kathmandu", None, "day"),
        ("Asia/Kathmandu", None, "week"),
        ("Asia/Kathmandu", None, "month"),
        ("UTC", "America/New_York", "day"),
        ("UTC", "Asia/Kathmandu", "month"),
        ("Asia/Kathmandu", "Asia/Kolkata", "hour"),
        ("Asia/Kathmandu", "Europe/Berlin", "week"),
    ],
)
def test_instants_are_cut_in_utc_or_a_named_zone(
    column: str | None, timezone: str | None, every: str, tmp_path: Path
) -> None:
    table = rows(day=stamps(column))
    entries = table["day"].to_pylist()
    starts = [started(entry, every, timezone or "UTC") for entry in entries]
    due = pd.Series(starts).value_counts().sort_index()
    given = {} if timezone is None else {"reading": {"timezone": timezone}}
    for source, made in SOURCES.items():
        sums = ai.aggregate(made(table, tmp_path), **ROLES, every=every, **given)
        assert pd.to_datetime(sums.batches).tolist() == due.index.tolist(), source
        np.testing.assert_array_equal(sums.cells.rounds, due.to_numpy(), err_msg=source)


def test_objects_and_text_of_files_are_instants(tmp_path: Path) -> None:
    table = rows(day=stamps("Asia/Kathmandu"))
    due = ai.aggregate(table, **ROLES, every="day").batches
    frame = table.to_pandas()
    objects = frame.assign(day=frame["day"].astype(object))
    offsets = frame.assign(day=frame["day"].map(pd.Timestamp.isoformat))
    offsets.to_csv(tmp_path / "offsets.csv", index=False)
    for each in (objects, tmp_path / "offsets.csv"):
        np.testing.assert_array_equal(ai.aggregate(each, **ROLES, every="day").batches, due)
    days = frame.assign(day=[f"0{1 + row // ROWS}/02/2024" for row in range(len(frame))])
    days.to_csv(tmp_path / "days.csv", index=False)
    assert codes_of(lambda: ai.aggregate(tmp_path / "days.csv", **ROLES, every="day")) == ["bad-batch"]
    mixed = objects.assign(day=objects["day"].where(frame.index > 0, datetime.datetime(2024, 3, 30)))
    assert codes_of(lambda: ai.aggregate(mixed, **ROLES, every="day")) == ["bad-batch"]


def test_zones_that_make_no_sense(tmp_path: Path) -> None:
    naive = rows(day=stamps(None))
    call = {**ROLES, "every": "day", "reading": {"timezone": "Europe/Berlin"}}
    for source, made in SOURCES.items():
        table = made(naive, tmp_path)
        assert codes_of(lambda table=table: ai.aggregate(table, **call)) == ["bad-timezone"], source
    for options, message in [
        ({"every": "day", "reading": {"timezone": "Mars/Olympus"}}, "a name of the IANA database"),
        ({"reading": {"timezone": "Europe/Berlin"}}, "'timezone' applies only with every="),
    ]:
        with pytest.raises(ParameterError, match=message):
            ai.aggregate(rows(day=stamps("UTC")), **ROLES, **options)


IN_A_ZONE = """
import json, sys, pandas as pd, polars as pl, duckdb, adaptinf as ai
place, found = sys.argv[1], {}
frame = pd.read_parquet(place)
frame.to_csv(place + ".csv", index=False)
for every in ("day", "month"):
    for name, table in {"file": place, "csv": place + ".csv", "duckdb": duckdb.read_parquet(place),
                        "pandas": frame, "polars": pl.read_parquet(place)}.items():
        sums = ai.aggregate(table, action="arm", reward="y", batch="day", every=every)
        found[every + " " + name] = [str(sums.batches[0])[:16], *sums.cells.rounds.astype(int).tolist()]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_zone_of_the_process_has_no_part(tmp_path: Path) -> None:
    place = written(rows(day=stamps("America/New_York", "2024-02-28T18:30")), tmp_path)
    found = []
    for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
        environment = {**os.environ, "TZ": zone}
        told = subprocess.run(
            [sys.executable, "-c", IN_A_ZONE, str(place)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(told.stdout))
    assert found[0] == found[1] == found[2]
    for every in ("day", "month"):
        assert (
            len({str(found[0][f"{every} {name}"]) for name in ("file", "csv", "duckdb", "pandas", "polars")})
            == 1
        )
    assert found[0]["day file"][:3] == ["2024-02-28T00:00", 50, 100]
    assert found[0]["month file"][:3] == ["2024-02-01T00:00", 150, 450]


# --- files and engines that fail ----------------------------------------------------------------------------


def test_later_files_that_do_not_match(tmp_path: Path) -> None:
    whole = rows()
    first, last = whole[:300], whole[300:]
    pq.write_table(last, tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    texts = last.set_column(2, "y", pa.array([str(one) for one in last["y"].to_pylist()]))

    def summed(name: str, second: pa.Table | bytes) -> Any:
        folder = tmp_path / name
        folder.mkdir()
        pq.write_table(first, folder / "1.parquet")
        if isinstance(second, bytes):
            (folder / "2.parquet").write_bytes(second)
        else:
            pq.write_table(second, folder / "2.parquet")
        return ai.aggregate(folder / "*.parquet", **ROLES)

    with pytest.raises(LogValidationError, match=r"column 'y' is missing in '2.parquet'") as caught:
        summed("without", last.drop_columns(["y"]))
    assert caught.value.problems[0].code == "missing-column"
    with pytest.raises(LogValidationError, match=r"contains numbers in '1.parquet' and text in '2.parquet'"):
        summed("text", texts)
    for name, part in (("cut", content[: len(content) // 2]), ("empty", b"")):
        with pytest.raises(FileError, match=r"2.parquet cannot be read: it is truncated, empty or damaged"):
            summed(name, part)
    numbers = pa.array(np.arange(300) % 3)
    halves = summed("mixed", last.set_column(2, "y", numbers))
    assert halves.frame["sum"].sum() == pytest.approx(sum(first["y"].to_pylist()) + 300.0, rel=1e-12)
    turned = summed("turned", last.select(whole.column_names[::-1]))
    assert turned.frame["sum"].sum() == pytest.approx(sum(whole["y"].to_pylist()), rel=1e-12)


def test_numbers_of_a_later_file_are_not_rounded_to_whole_ones(tmp_path: Path) -> None:
    whole = rows()
    pq.write_table(whole[:300].set_column(2, "y", pa.array(np.arange(300) % 3)), tmp_path / "1.parquet")
    pq.write_table(whole[300:], tmp_path / "2.parquet")
    sums = ai.aggregate(tmp_path / "*.parquet", **ROLES)
    assert sums.frame["sum"].sum() == pytest.approx(300.0 + sum(whole["y"].to_pylist()[300:]), rel=1e-12)


def test_what_an_engine_raises_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = written(rows(), tmp_path)
    relation = duckdb.read_parquet(str(place))
    place.write_bytes(b"PAR1 gone PAR1")
    with pytest.raises(
        LogValidationError, match=r"the engine that holds the table stopped \(Error: Footer"
    ) as caught:
        ai.aggregate(relation, **ROLES)
    assert caught.value.problems[0].code == "engine-stopped"

    def full(query: Any) -> Any:
        raise MemoryError("Unable to allocate 30 GiB")

    monkeypatch.setattr(engines, "collected", full)
    with pytest.raises(LogValidationError, match=r"ran out of memory \(MemoryError: Unable.*merge them"):
        ai.aggregate(rows(), **ROLES, centre=0.0)
