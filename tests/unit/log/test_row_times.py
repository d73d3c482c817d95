"""Times of rows: ties, periods, clocks that go back, and zones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.errors import LogValidationError
from adaptinf.log import AdaptiveLog

N = 400
UTC = pd.date_range("2024-10-27 00:30", periods=N, freq="23s", tz="UTC")
LOCAL = UTC.tz_convert("Europe/Berlin").strftime("%Y-%m-%d %H:%M:%S")
CLOCK = pd.DataFrame({"ts": LOCAL, "arm": ["A", "B"] * (N // 2), "y": np.arange(float(N))})


def read(frame: pd.DataFrame, **options: Any) -> AdaptiveLog:
    """The log of a frame; what is no role is for reading."""
    roles = {role: options.pop(role) for role in ("round", "batch", "columns") if role in options}
    return AdaptiveLog(frame, action="arm", reward="y", reading=options, **roles)


def refused(frame: pd.DataFrame, **options: Any) -> list[str]:
    """What is said of a frame that is refused."""
    with pytest.raises(LogValidationError) as caught:
        read(frame, **options)
    return [str(problem) for problem in caught.value.problems]


def told(log: AdaptiveLog) -> list[tuple[str, str]]:
    """What the log reports of its reading."""
    return [(reading.kind, reading.text) for reading in log.report.readings]


@pytest.mark.parametrize("kind", ["numbers", "times", "text"])
def test_tied_rounds_stay_in_the_order_of_the_rows_and_are_reported(kind: str) -> None:
    seconds = pd.Series([0, 5, 5, 9, 9, 9, 12, 13])
    times = pd.Timestamp("2024-03-01") + pd.to_timedelta(seconds, unit="s")
    ts = {"numbers": seconds, "times": times, "text": times.dt.strftime("%Y-%m-%dT%H:%M:%S")}[kind]
    frame = pd.DataFrame({"ts": ts, "arm": list("ABABABAB"), "y": np.arange(8.0)})
    log = read(frame, round="ts")
    assert log.arrays.reward.tolist() == list(range(8))
    tied = (
        "3 of 8 rows have the same value in round column 'ts' as the row before; the order of tied rows is "
        "assumed to be chronological"
    )
    assert told(log) == [("order", tied)]
    mixed = frame.iloc[[3, 1, 0, 7, 2, 4, 6, 5]]
    sorted_log = read(mixed, round="ts", sort=True)
    assert sorted_log.arrays.reward.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert told(sorted_log)[-1] == ("order", tied)


def test_coarse_rounds_are_a_caution_unless_there_are_batches() -> None:
    frame = pd.DataFrame({"day": [1, 1, 1, 2, 2, 2], "arm": list("ABABAB"), "y": 1.0, "week": [1] * 6})
    assert told(read(frame, round="day")) == [
        (
            "caution",
            "4 of 6 rows are tied with the previous row in round column 'day', and row order is assumed to "
            "be the order in which arms were chosen; if all arms with the same value were chosen before any "
            "of their rewards were known, set batch= to this column",
        )
    ]
    assert [kind for kind, _ in told(read(frame, round="day", batch="week"))] == ["order"]


def test_rounds_that_go_back_are_refused_with_the_rows_alone_that_do() -> None:
    frame = pd.DataFrame({"ts": [1, 2, 2, 1, 3], "arm": list("ABABA"), "y": 1.0})
    assert refused(frame, round="ts") == [
        "round column 'ts' decreases. If the column gives the time at which the arms were chosen, set "
        "'sort' to True (--sort on "
        "the command line) to sort the rows by this column; otherwise sort the rows by that time yourself "
        "[row 3]"
    ]


CHANGE = (
    "{role} column 'ts' decreases from 2024-10-27 02:59:54 to 2024-10-27 02:00:17, when the clocks of "
    "Europe/Berlin and others went back: the repeated hour is in order, and sorting would mix it up. Set "
    "'timezone' to the zone in which the times were written, such as 'Europe/Berlin' (--timezone on the "
    "command line), or write them in UTC [row 79]"
)


@pytest.mark.parametrize("options", [{}, {"sort": True}])
@pytest.mark.parametrize("role", ["round", "batch"])
@pytest.mark.parametrize("typed", [False, True])
def test_a_clock_change_is_named_before_sorting_is(options: dict[str, Any], role: str, typed: bool) -> None:
    frame = CLOCK.assign(ts=pd.to_datetime(CLOCK["ts"])) if typed else CLOCK
    assert refused(frame, **{role: "ts"}, **options) == [CHANGE.format(role=role)]


@pytest.mark.parametrize("order", ["as it is", "newest first", "by zone"])
def test_a_zone_puts_the_hour_that_came_twice_in_order(order: str) -> None:
    frame = CLOCK[::-1] if order == "newest first" else CLOCK
    log = read(frame, round="ts", timezone="Europe/Berlin", sort=order == "newest first")
    assert log.arrays.reward.tolist() == CLOCK["y"].tolist()
    assert log.dates is not None
    np.testing.assert_array_equal(log.dates, UTC.tz_localize(None).to_numpy())
    zone = "times in round column 'ts' were interpreted as local times in Europe/Berlin and converted to UTC"
    assert told(log)[0] == ("dates", zone)


def test_outcomes_are_known_by_the_same_clock() -> None:
    known = (UTC + pd.Timedelta("1min")).tz_convert("Europe/Berlin").strftime("%Y-%m-%d %H:%M:%S")
    frame = CLOCK.assign(known=known)
    log = read(frame, round="ts", timezone="Europe/Berlin", columns={"outcome_round": "known"})
    utc = read(
        frame.assign(ts=UTC, known=UTC + pd.Timedelta("1min")), round="ts", columns={"outcome_round": "known"}
    )
    np.testing.assert_array_equal(log.arrays.known, utc.arrays.known)
    assert log.arrays.known is not None
    assert log.arrays.known[:4].tolist() == [3, 4, 5, 6]


def test_what_is_no_clock_change_is_not_taken_for_one() -> None:
    other_day = CLOCK.assign(
        ts=(UTC + pd.Timedelta("1D")).tz_convert("Europe/Berlin").strftime("%Y-%m-%d %H:%M:%S")
    )
    swapped = other_day.iloc[[*range(150), *range(160, N), *range(150, 160)]]
    (problem,) = refused(swapped, round="ts")
    assert "decreases. If the column gives the time at which the arms were chosen, set 'sort' to" in problem
    assert read(swapped, round="ts", sort=True).arrays.reward.tolist() == CLOCK["y"].tolist()
    seconds_late = CLOCK.iloc[
        [*range(70), 71, 70, *range(72, 79)]
    ]  # out of order by itself, in that very hour
    (problem,) = refused(seconds_late, round="ts")
    assert "set 'sort' to True" in problem
    with_offset = CLOCK.assign(ts=UTC.tz_convert("Europe/Berlin").strftime("%Y-%m-%d %H:%M:%S%z"))
    assert read(with_offset, round="ts").n_rounds == N


def test_an_outcome_that_is_known_at_once_came_in_the_same_of_two_hours() -> None:
    chosen = [f"2024-10-27 {each}" for each in ("01:50", "02:10", "02:50", "02:05", "03:10")]
    known = [f"2024-10-27 {each}" for each in ("02:05", "02:10", "02:15", "02:05", "03:10")]
    frame = pd.DataFrame({"ts": chosen, "known": known, "arm": list("ABABA"), "y": 1.0})
    log = read(frame, round="ts", timezone="Europe/Berlin", columns={"outcome_round": "known"})
    expected = [f"2024-10-27T{each}:00.000000" for each in ("00:05", "00:10", "01:15", "01:05", "02:10")]
    assert log.column("outcome_round").astype(str).tolist() == expected
    assert log.arrays.known is not None
    assert log.arrays.known.tolist() == [1, 2, 4, 4, 5]


def test_times_that_a_zone_cannot_place_are_refused() -> None:
    mixed = CLOCK.sample(frac=1.0, random_state=0)
    (problem,) = refused(mixed, round="ts", timezone="Europe/Berlin", sort=True)
    assert problem.startswith(
        "round column 'ts' is not in time order within an hour that occurred twice in Europe/Berlin, so the "
        "two occurrences cannot be distinguished: write the times in UTC [rows "
    )
    minutes = ["01:50", "02:10", "02:50", "02:05", "02:40", "02:20", "03:10"]  # goes back twice
    twice = pd.DataFrame({"ts": [f"2024-10-27 {each}" for each in minutes], "arm": list("ABABABA"), "y": 1.0})
    (problem,) = refused(twice, round="ts", timezone="Europe/Berlin", sort=True)
    assert problem.endswith("write the times in UTC [rows 1, 2, 3, 4, 5]")
    skipped = pd.DataFrame({"ts": ["2024-03-31 01:30", "2024-03-31 02:30"], "arm": ["A", "B"], "y": 1.0})
    assert refused(skipped, round="ts", timezone="Europe/Berlin") == [
        "round column 'ts' has times that do not exist in Europe/Berlin [row 1]"
    ]
    assert refused(CLOCK.assign(n=range(N)), round="n", timezone="Europe/Berlin") == [
        "'timezone' applies to times, but round column 'n' is of type int64"
    ]
    assert refused(CLOCK, timezone="Europe/Berlin", every="day") == [
        "'every' requires batch= or round=, the column of times to divide into periods",
        "'timezone' requires round= or batch=, a column of times",
    ]
    assert refused(CLOCK.iloc[:9], round="ts", timezone="Berlin", every="days") == [
        "'every' must be one of 'hour', 'day', 'week', 'month', got 'days'; did you mean 'day'?",
        "'timezone' must be a name of the IANA database such as 'Europe/Berlin', got 'Berlin'",
    ]


@pytest.mark.parametrize(
    ("every", "starts"),
    [
        ("hour", ["2024-02-28T22", "2024-02-28T23", "2024-03-01T00", "2024-03-04T00"]),
        ("day", ["2024-02-28", "2024-03-01", "2024-03-04"]),
        ("week", ["2024-02-26", "2024-03-04"]),
        ("month", ["2024-02", "2024-03"]),
    ],
)
@pytest.mark.parametrize("role", ["batch", "round"])
def test_batches_are_the_periods_of_a_column_of_times(every: str, starts: list[str], role: str) -> None:
    times = [
        "2024-02-28 22:10",
        "2024-02-28 22:50",
        "2024-02-28 23:00",
        "2024-03-01 00:00",
        "2024-03-04 00:59",
    ]
    frame = pd.DataFrame({"ts": times, "arm": list("ABABA"), "y": 1.0})
    log = read(frame, **{role: "ts"}, every=every)
    unit = {"hour": "h", "day": "D", "week": "D", "month": "M"}[every]
    place = np.searchsorted(
        np.array(starts, dtype=f"datetime64[{unit}]"), np.array(times, dtype="datetime64[m]"), side="right"
    )
    assert log.arrays.batch is not None
    assert log.arrays.batch.tolist() == (place - 1).tolist()
    batches = f"each {every} of {role} column 'ts' (as written) is one batch ({len(starts)} batches)"
    assert ("batches", batches) in told(log)


def test_weeks_begin_on_monday() -> None:
    times = ["2024-02-26 00:00", "2024-03-03 23:59", "2024-03-04 00:00", "2024-03-10 12:00"]
    log = read(pd.DataFrame({"ts": times, "arm": list("ABAB"), "y": 1.0}), round="ts", every="week")
    assert log.arrays.batch is not None
    assert log.arrays.batch.tolist() == [0, 0, 1, 1]


def test_periods_are_by_the_clock_of_the_zone_and_instants_else_in_utc() -> None:
    zoned = CLOCK.assign(ts=UTC)
    utc, berlin = (
        read(zoned, round="ts", every="hour"),
        read(zoned, round="ts", every="hour", timezone="Europe/Berlin"),
    )
    written = read(CLOCK, round="ts", every="hour", timezone="Europe/Berlin")
    assert utc.arrays.batch is not None
    assert berlin.arrays.batch is not None
    assert np.bincount(utc.arrays.batch).tolist() == [79, 156, 157, 8]
    assert np.bincount(berlin.arrays.batch).tolist() == [235, 157, 8]
    np.testing.assert_array_equal(written.arrays.batch, berlin.arrays.batch)
    clock = "each hour of round column 'ts' (in the time zone UTC) is one batch (4 batches)"
    assert ("batches", clock) in told(utc)
    clock = "each hour of round column 'ts' (in the time zone Europe/Berlin) is one batch (3 batches)"
    assert ("batches", clock) in told(berlin)
    assert ("batches", clock) in told(written)


def test_periods_need_times() -> None:
    frame = CLOCK.assign(n=range(N), label=["x"] * N)
    assert refused(frame, batch="n", every="day") == [
        "'every' divides dates and times, but batch column 'n' is of type int64"
    ]
    (problem,) = refused(frame, batch="label", every="day")
    assert problem.startswith("batch column 'label' must contain numbers, times, or dates in one format")
