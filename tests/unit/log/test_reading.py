"""How frames and files are read: dates, order, outcomes that are labels, patterns of columns, the report."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import adaptinf as ai
from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError
from adaptinf.log import AdaptiveLog, read_log
from adaptinf.log.report import Reading, decode_readings
from adaptinf.log.validation import nested_options

FORMATS = {
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%d.%m.%Y": "day/month/year",
    "%m-%d-%Y": "month/day/year",
    "%Y/%m/%d": "year-month-day",
    "%d-%b-%Y": "day month year",
    "%d%b%Y": "day month year",
    "%d %B %Y": "day month year",
    "%B %d, %Y": "month day year",
    "%a, %d %b %Y": "day month year",
    "%m/%d/%Y %H:%M": "month/day/year",
    "%d/%m/%Y %I:%M:%S %p": "day/month/year",
    "%Y/%m/%d %H:%M:%S": "year-month-day",
}


def frame_of(**columns: Any) -> pd.DataFrame:
    size = len(next(iter(columns.values())))
    arms = np.resize(["a", "b"], size)
    return pd.DataFrame({"arm": arms, "y": np.arange(size, dtype=float), **columns})


def read(frame: pd.DataFrame, **options: Any) -> AdaptiveLog:
    return AdaptiveLog(frame, **nested_options({"action": "arm", "reward": "y", **options}))


def problems(frame: pd.DataFrame, **options: Any) -> list[tuple[str, tuple[int, ...]]]:
    with pytest.raises(LogValidationError) as caught:
        read(frame, **options)
    return [(problem.code, problem.rows) for problem in caught.value.problems]


def told(frame: pd.DataFrame, **options: Any) -> str:
    with pytest.raises(LogValidationError) as caught:
        read(frame, **options)
    return str(caught.value)


def readings(log: AdaptiveLog, kind: str) -> list[str]:
    return [reading.text for reading in log.report.readings if reading.kind == kind]


class TestDates:
    @pytest.mark.parametrize("date_format", FORMATS)
    @pytest.mark.parametrize("said", [False, True])
    def test_every_format_is_read_as_the_calendar_says(self, date_format: str, said: bool) -> None:
        rng = np.random.default_rng(7)
        days = np.sort(rng.choice(4000, size=60, replace=False))
        start = datetime.datetime(2015, 3, 1)
        minute = datetime.timedelta(minutes=1)
        times = [start + datetime.timedelta(days=int(day)) + int(day) * minute for day in days]
        if "%M" not in date_format:
            times = [time.replace(hour=0, minute=0) for time in times]
        if "%S" not in date_format:
            times = [time.replace(second=0) for time in times]
        frame = frame_of(when=[time.strftime(date_format) for time in times])
        log = read(frame, round="when", date_format=date_format if said else None)
        np.testing.assert_array_equal(log.column("t"), np.array(times, dtype="datetime64[us]"))
        how = f"read with date_format={date_format!r}" if said else f"read as {FORMATS[date_format]}"
        span = f"{times[0]:%Y-%m-%d} to {times[-1]:%Y-%m-%d}"
        assert readings(log, "dates") == [f"round column 'when' was {how}; dates range from {span}"]

    def test_padding_may_differ_and_zones_become_utc(self) -> None:
        frame = frame_of(when=["6/3/2019 11:30 pm -05:00", "06/28/2019 1:00 AM +02:00"])
        found = read(frame, round="when").column("t")
        assert found.astype("datetime64[m]").astype(str).tolist() == ["2019-06-04T04:30", "2019-06-27T23:00"]

    @pytest.mark.parametrize(
        ("when", "message"),
        [
            (
                ["03/04/2020", "05/06/2020"],
                (
                    "contains dates such as '03/04/2020', in which day and month cannot be distinguished: "
                    "set '%m/%d/%Y' or '%d/%m/%Y' as 'date_format'"
                ),
            ),
            (
                ["3.4.2020 9:05", "5.6.2020 9:06"],
                "cannot be distinguished: set '%m.%d.%Y %H:%M' or '%d.%m.%Y %H:%M' as 'date_format'",
            ),
            (
                ["13/04/2020", "05/14/2020"],
                "has the day first in '13/04/2020' and the month first in '05/14/2020'",
            ),
            (
                ["03/04/20", "03/14/20"],
                "whose year has two digits: specify their format with 'date_format', such as ",
            ),
            (["03-MAR-20", "04-MAR-20"], "such as '%d-%b-%y'"),
        ],
    )
    @pytest.mark.parametrize("role", ["round", "batch"])
    def test_what_cannot_be_told_says_what_to_say(self, when: list[str], message: str, role: str) -> None:
        assert f"{role} column 'when' " in told(frame_of(when=when), **{role: "when"})
        assert message in told(frame_of(when=when), **{role: "when"})
        assert message in told(frame_of(when=when), sort=True, **{role: "when"})

    def test_what_is_the_same_in_both_orders_is_not_ambiguous(self) -> None:
        log = read(frame_of(when=["01/01/2020", "02/02/2020"]), round="when")
        assert log.column("t").astype("datetime64[D]").astype(str).tolist() == ["2020-01-01", "2020-02-02"]

    def test_the_month_decides_the_order_of_rows(self) -> None:
        frame = frame_of(when=["02/04/2020", "01/05/2020"])
        assert problems(frame, round="when", date_format="%m/%d/%Y") == [("unordered-round", (1,))]
        assert read(frame, round="when", date_format="%d/%m/%Y").n_rounds == 2

    def test_text_of_other_formats_is_named_with_its_rows(self) -> None:
        frame = frame_of(when=["6/28/2019", "2019-06-29", "6/30/2019", "31/31/2019", "July", None])
        assert problems(frame, round="when") == [("missing-round", (5,)), ("bad-round", (1, 3, 4))]
        assert problems(frame, batch="when")[0] == ("bad-batch", (4,))
        assert problems(frame_of(when=["6/28/2019", "2/30/2019"]), round="when") == [("bad-round", (1,))]
        assert problems(frame_of(when=["6/28/2019", "x"]), round="when", date_format="%m/%d/%Y") == [
            ("bad-round", (1,))
        ]

    def test_formats_that_are_none_or_are_not_needed(self) -> None:
        frame = frame_of(when=["03/04/2020", "05/06/2020"], n=[1, 2], x=[0.5, 1.5])
        for wrong in ("dmy", 3, "%Q"):
            assert "date_format" in told(frame, round="n", date_format=wrong)
        assert ("bad-date-format", ()) in problems(frame, round="x", date_format="%d/%m/%Y")
        both = read(frame, round="n", batch="when", date_format="%d/%m/%Y")
        assert both.column("t").tolist() == [1, 2]
        compact = read(frame_of(n=[20200304, 20200401]), round="n", date_format="%Y%m%d").column("t")
        assert compact.astype("datetime64[D]").astype(str).tolist() == ["2020-03-04", "2020-04-01"]


class TestBatches:
    @pytest.mark.parametrize(
        "days",
        [
            ["6/30/2019", "6/30/2019", "6/9/2019"],
            ["2019-06-30", "2019-06-30", "2019-06-09"],
            ["30 June 2019", "30 June 2019", "9 June 2019"],
            ["2019-07", "2019-07", "2019-06"],
            pd.to_datetime(["2019-06-30", "2019-06-30", "2019-06-09"]),
            [10, 10, 9],
            [1.5, 1.5, 0.5],
            ["10", "10", "9"],
            ["010", "010", "009"],
        ],
    )
    def test_what_is_stored_newest_first_is_refused_and_put_in_order_on_request(self, days: Any) -> None:
        frame = frame_of(day=days)
        message = told(frame, batch="day")
        assert "batch column 'day' decreases: its rows are stored newest first" in message
        assert "set 'sort' to True (--sort on the command line)" in message
        log = read(frame, batch="day", sort=True)
        assert log.arrays.batch is not None
        assert log.arrays.batch.tolist() == [0, 1, 1]
        assert log.arrays.reward.tolist() == [2.0, 0.0, 1.0]
        assert log.arrays.action.tolist() == [0, 0, 1]
        newest = " (stored newest first)"
        values = {"role": "batch", "name": "day", "newest": newest, "moved": 3, "rows": 3}
        assert readings(log, "order") == [claims.SORTED(**values)]
        assert frame["y"].tolist() == [0.0, 1.0, 2.0]

    def test_labels_that_are_no_dates_stay_labels(self) -> None:
        for labels in (["start", "week", "2024-03-01"], ["b", "b", "a"], ["1.2.10", "1.2.9", "1.3"]):
            assert read(frame_of(day=labels), batch="day").arrays.batch is not None
        log = read(frame_of(day=["wave 3", "wave 2", "wave 1"]), batch="day")
        values = {"column": "batch column 'day'", "first": "wave 3", "last": "wave 1"}
        assert readings(log, "caution") == [claims.NUMBERS_GO_DOWN(**values)]
        assert not readings(read(frame_of(day=["wave 1", "wave 2", "wave 9"]), batch="day"), "caution")

    def test_some_dates_among_labels_are_told(self) -> None:
        days = ["2019-06-01", "2019-06-02", "later", "2019-06-03"]
        assert problems(frame_of(day=days), batch="day") == [("bad-batch", (2,))]
        assert problems(frame_of(day=["01", "1", "2"]), batch="day") == [("ambiguous-batch", (0, 1))]


class TestOrder:
    def test_rounds_that_are_numbers_or_dates(self) -> None:
        for when in ([9, 5, 7], [9.5, 5.0, 7.0], ["6/9/2019", "6/5/2019", "6/17/2018"]):
            frame = frame_of(when=when, who=["u", "v", "w"], x=[1.5, 2.5, 3.5], p=[0.2, 0.3, 0.4])
            assert problems(frame, round="when")[0][0] == "unordered-round"
            log = read(frame, round="when", unit="who", context="x", propensity="p", sort=True)
            order = np.argsort(
                pd.to_datetime(when).to_numpy() if isinstance(when[0], str) else np.array(when)
            )
            assert log.arrays.reward.tolist() == order.tolist()
            assert log.units is not None
            assert log.units.tolist() == [["u", "v", "w"][row] for row in order]
            assert log.column("x").tolist() == [[1.5, 2.5, 3.5][row] for row in order]
            assert log.column("propensity").tolist() == [[0.2, 0.3, 0.4][row] for row in order]
            assert bool((log.column("t")[1:] > log.column("t")[:-1]).all())

    def test_problems_name_the_rows_of_the_frame(self) -> None:
        frame = frame_of(when=[3, 2, 1, 2])
        frame["y"] = [np.nan, 0.0, 1.0, np.inf]
        found = problems(frame, round="when", sort=True)
        assert found == [("missing-reward", (0,)), ("infinite-reward", (3,))]

    def test_the_round_comes_before_the_batch(self) -> None:
        frame = frame_of(when=[3, 2, 1], day=["x", "y", "y"])
        log = read(frame, round="when", batch="day", sort=True)
        assert log.arrays.batch is not None
        assert log.arrays.batch.tolist() == [0, 0, 1]

    def test_rows_in_order_and_uses_that_make_no_sense(self) -> None:
        frame = frame_of(when=[1, 2], day=["x", "y"])
        assert read(frame, round="when", sort=True).report.readings == ()
        assert problems(frame, sort=True) == [("bad-sort", ())]
        assert problems(frame, batch="day", sort=True) == [("bad-sort", ())]
        assert problems(frame, round="when", sort="when") == [("bad-sort", ())]

    def test_polars_frames_are_put_in_order_too(self) -> None:
        frame = pl.DataFrame({"arm": ["a", "b"], "y": [0.5, 1.5], "when": ["6/30/2019", "6/3/2019"]})
        log = AdaptiveLog(frame, action="arm", reward="y", round="when", reading={"sort": True})
        assert log.arrays.reward.tolist() == [1.5, 0.5]


class TestOutcomes:
    @pytest.mark.parametrize(
        ("labels", "success", "rewards", "bounds"),
        [
            (["Y", "N", "Y"], "Y", [1, 0, 1], (0.0, 1.0)),
            (["Y", "Y"], "Y", [1, 1], (0.0, 1.0)),
            ([2, 1, 1], 2, [1, 0, 0], (0.0, 1.0)),
            ([True, False], False, [0, 1], (0.0, 1.0)),
            (["cured", "same", "worse"], {"cured": 1, "same": 0.25, "worse": -1}, [1, 0.25, -1], (-1.0, 1.0)),
            (["Y", "n", "N"], {"Y": True, "N": 0, "n": 0, "never": 0}, [1, 0, 0], (0.0, 1.0)),
        ],
    )
    def test_labels_become_numbers(
        self, labels: list[Any], success: Any, rewards: list[float], bounds: tuple[float, float]
    ) -> None:
        log = read(frame_of(answer=labels), reward="answer", success=success)
        assert log.arrays.reward.tolist() == rewards
        assert log.reward_range == bounds
        assert len(readings(log, "outcome")) == 1
        assert read(
            frame_of(answer=labels), reward="answer", success=success, reward_range=(-2, 2)
        ).reward_range == (
            -2.0,
            2.0,
        )

    @pytest.mark.parametrize(
        ("labels", "success", "found", "message"),
        [
            (["Y", "N", "-", "N"], "Y", ("other-outcome", (2,)), "'N' (2 rows), '-' (1 row) as well as 'Y'"),
            (["Y", "y"], "Y", ("other-outcome", (1,)), "contains 'y' (1 row) as well as 'Y'"),
            (["Y", " "], "Y", ("other-outcome", (1,)), "contains ' ' (1 row) as well as 'Y'"),
            (["y", "N"], "Y", ("no-success", ()), "which contains 'y' (1 row), 'N' (1 row)"),
            (["N", "N"], "Y", ("no-success", ()), "every label with 'success', such as {'N': ...}"),
            (["Y", "N", "?"], {"Y": 1, "N": 0}, ("other-outcome", (2,)), "'?' (1 row), to which 'success'"),
            (["1", "0"], 1, ("no-success", ()), "1 does not occur in reward column 'answer'"),
            (["Y", None], "Y", ("missing-reward", (1,)), "has no value"),
            (["Y", "N"], ["Y"], ("bad-success", ()), "success must be a label"),
            (["Y", "N"], {}, ("bad-success", ()), "success must map labels"),
            (["Y", "N"], {"Y": "1", "N": "0"}, ("bad-success", ()), "to finite numbers"),
            (["Y", "N"], {"Y": np.inf, "N": 0}, ("bad-success", ()), "to finite numbers"),
        ],
    )  # fmt: skip
    def test_anything_else_is_one_error_that_lists_it(
        self, labels: list[Any], success: Any, found: tuple[str, tuple[int, ...]], message: str
    ) -> None:
        frame = frame_of(answer=labels)
        assert problems(frame, reward="answer", success=success) == [found]
        assert message in told(frame, reward="answer", success=success)

    def test_text_without_success_says_what_to_say(self) -> None:
        assert "set 'success' to the label that counts as 1, such as 'Y'" in told(
            frame_of(answer=["Y", "N"]), reward="answer"
        )

    def test_a_csv_keeps_the_texts_of_outcomes(self, tmp_path: Path) -> None:
        path = tmp_path / "x.csv"
        path.write_text("arm,y\na,1\nb,2\na,2\n")
        assert read_log(path, action="arm", reward="y", success="2").arrays.reward.tolist() == [0.0, 1.0, 1.0]
        assert read_log(path, action="arm", reward="y", success=2).arrays.reward.tolist() == [0.0, 1.0, 1.0]
        named = read_log(path, action="arm", reward="y", success={"1": 5, "2": 7})
        assert named.arrays.reward.tolist() == [5.0, 7.0, 7.0]


class TestPatterns:
    FRAME = pd.DataFrame({"arm": list("abab"), "y": [1.0, 0.0, 1.0, 0.0], "pr a now": 0.25, "pr b now": 0.75})

    def test_columns_of_any_naming(self) -> None:
        log = read(self.FRAME, propensities="pr {arm} now")
        assert log.arrays.propensities is not None
        assert log.arrays.propensities[0].tolist() == [0.25, 0.75]
        assert log.columns["pr b now"] == "propensity_b"
        numbers = pd.DataFrame({"arm": [1, 2], "y": 1.0, "p1": 0.5, "p2": 0.5, "p_own": 0.5})
        assert read(numbers, propensities="p{arm}", propensity="p_own").arms == (1, 2)

    def test_an_arm_that_was_never_chosen_has_to_be_named(self) -> None:
        frame = self.FRAME.assign(**{"pr c now": 0.0})
        assert read(frame, propensities="pr {arm} now", arms=["a", "b", "c"]).n_arms == 3
        assert "finds no arm for 'pr c now'" in told(frame, propensities="pr {arm} now")

    def test_one_error_lists_arms_and_columns(self) -> None:
        frame = self.FRAME.rename(columns={"pr b now": "pr c now"})
        assert problems(frame, propensities="pr {arm} now") == [("unmatched-propensity-columns", ())]
        assert (
            "finds no column for 'b' (pr b now) and no arm for 'pr c now' (an arm that was never chosen "
            "must be named in arms=, and other columns must be dropped); the arms are 'a', 'b'"
        ) in told(frame, propensities="pr {arm} now")
        assert "finds no column for 'a' (pr a), 'b' (pr b)" in told(frame, propensities="pr ")
        assert "must be a pattern with one {arm}" in told(frame, propensities="{arm}{arm}")
        assert "propensities='' is not a column, and no column name begins with it" in told(
            frame, propensities=""
        )


class TestReport:
    def make(self, tmp_path: Path) -> AdaptiveLog:
        path = tmp_path / "visits.csv"
        rows = ["1,6/30/2019,02,Y,{},x", "2,6/30/2019,01,N,{},x", "3,6/9/2019,02,N,{},x"]
        zips = ["01234", "12345", "90210", "10001"] * 5
        lines = [row.format(code) for code in zips for row in rows]
        path.write_text("n,day,version,answer,zip,note\n" + "\n".join(lines) + "\n")
        options = {"action": "version", "reward": "answer", "success": "Y", "context": "zip"}
        return read_log(path, batch="day", sort=True, **options)

    def test_it_says_what_was_read(self, tmp_path: Path) -> None:
        values = {"role": "batch", "name": "day", "newest": "", "moved": 60, "rows": 60}
        assert str(self.make(tmp_path).report).split("\n") == [
            "Read from CSV file visits.csv: 60 rounds",
            "  rounds by arm: '01' 20, '02' 40",
            "  outcome: column 'answer', 60 numbers from 0 to 1",
            f"  order: {claims.SORTED(**values)}",
            "  outcome: labels in reward column 'answer' were converted to numbers: "
            "'N' counts as 0, 'Y' counts as 1",
            "  dates: batch column 'day' was read as month/day/year; "
            "dates range from 2019-06-09 to 2019-06-30",
            f"  labels: {claims.AS_WRITTEN(name='version', example='02')}",
            f"  labels: {claims.AS_WRITTEN(name='zip', example='01234')}",
            f"  left out: {claims.UNUSED(names='n, note')}",
        ]

    def test_notes_of_tables_tell_what_changed(self, tmp_path: Path) -> None:
        notes = ai.ArmMeans(self.make(tmp_path)).fit().explain().texts
        opening = claims.READ(readings="").rstrip(".")
        mine = [note for note in notes if note.startswith(opening)]
        assert len(mine) == 1
        values = {"role": "batch", "name": "day", "newest": "", "moved": 60, "rows": 60}
        assert mine[0].startswith(claims.READ(readings=claims.SORTED(**values)).rstrip("."))
        assert claims.AS_WRITTEN(name="version", example="02") in mine[0]
        assert claims.UNUSED(names="n, note") not in mine[0]
        plain = AdaptiveLog(frame_of(x=[1, 2, 3, 4]), action="arm", reward="y")
        assert not any(opening in note for note in ai.ArmMeans(plain).fit().explain().texts)

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_own_files_keep_it(self, tmp_path: Path, suffix: str) -> None:
        log = self.make(tmp_path)
        getattr(log, f"to_{suffix}")(tmp_path / f"own.{suffix}")
        again = read_log(tmp_path / f"own.{suffix}")
        assert again.report == log.report
        assert again.equals(log)

    def test_simulated_logs_have_one(self) -> None:
        log = ai.designs.EpsilonGreedy().run(ai.environments.BernoulliArms([0.5, 0.4]), horizon=50, rng=1)
        assert log.report.source == "arrays"
        assert sum(log.report.pulls.values()) == 50
        assert log.report.readings == ()

    @pytest.mark.parametrize(
        "stored",
        [None, [], {"source": "x"}, {"source": 1, "readings": []}, {"source": "x", "readings": [["dates"]]},
         {"source": "x", "readings": [["gossip", "x"]]}, {"source": "x", "readings": [["dates", 1]]}],
    )  # fmt: skip
    def test_reports_of_files_are_checked(self, stored: Any) -> None:
        with pytest.raises(ValueError, match=r"report|reading"):
            decode_readings(stored)
        good = {"source": "x", "readings": [["dates", "d"]]}
        assert decode_readings(good) == ("x", (Reading("dates", "d"),))
