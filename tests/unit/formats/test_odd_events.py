"""Odd JSON, CSV and footers: one clear error with the file and the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import read_dsjson, read_open_bandit
from adaptinf.log import read_log

EVENT: dict[str, Any] = {
    "_label_cost": -0.5,
    "a": [2, 1],
    "p": [0.75, 0.25],
    "c": {"age": 30, "os": "x\u2028\u0085y", "_multi": [{"id": "n"}, {"id": "s"}]},
}
GOOD = json.dumps(EVENT, ensure_ascii=False)


def _write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_only_newlines_end_a_line_and_a_mark_may_stand_in_front(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}\r\n\r\n{GOOD}\n".encode())
    log = read_dsjson(path, action_id="id")
    assert log.column("action").tolist() == ["s", "s"]
    assert log.column("os").tolist() == ["x\u2028\u0085y"] * 2


def test_whole_numbers_that_fractions_would_round_are_refused_by_the_features_name(tmp_path: Path) -> None:
    large = GOOD.replace("30", str(2**53 + 1))
    path = _write(tmp_path / "log.dsjson", GOOD.replace("30", "30.5"), large)
    with pytest.raises(ParameterError, match="the shared feature age has fractions and whole numbers beyond"):
        read_dsjson(path, action_id="id")
    whole = read_dsjson(_write(tmp_path / "whole.dsjson", GOOD, large), action_id="id")
    assert whole.column("age").tolist() == [30, 2**53 + 1]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (GOOD.replace("30", "[" * 3000 + "]" * 3000), "line 3: it is nested more than 100 levels deep"),
        (GOOD.replace("30", '{"a":' * 200_000 + "1" + "}" * 200_000), "nested more than 100 levels deep"),
        (GOOD.replace("30", "NaN"), "line 3: NaN is not JSON"),
        (GOOD.replace("30", "-Infinity"), "line 3: -Infinity is not JSON"),
        (GOOD[:-1] + ', "p": [0.25, 0.75]}', "line 3: the key 'p' occurs twice"),
        (GOOD.replace('"n"', '"\\ud800"'), "line 3: 'utf-8' codec can't encode"),
        (GOOD[:40], "line 3: "),
    ],
)
def test_what_is_no_strict_json_is_told_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    path = _write(tmp_path / "log.dsjson", GOOD, "", line)
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(path, action_id="id")
    assert [(p.code, p.rows) for p in caught.value.problems] == [("no-object", (1,))]
    assert str(caught.value).startswith(f"{path} has 1 problem")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"_label_cost": 10**350}, "no-label"),
        ({"_label_cost": 10**399}, "no-label"),
        ({"p": [10**350, 0.25]}, "bad-probabilities"),
        ({"p": [[0.75], 0.25]}, "bad-probabilities"),
        ({"_label_probability": 10**350}, "other-action"),
        ({"_label_probability": [0.75]}, "other-action"),
        ({"pdrop": [0.5]}, "bad-pdrop"),
        ({"pdrop": 1.0}, "bad-pdrop"),
        ({"a": [10**350, 1]}, "bad-ranking"),
        ({"a": [1, 0]}, "zero-based"),
        ({"_skipLearn": 1}, "bad-skip"),
        ({"c": {"_multi": [{"x.id": 1, "x": {"id": 2}}, {}]}}, "ambiguous-feature"),
    ],
)
def test_odd_values_are_named(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    path = _write(tmp_path / "log.dsjson", GOOD, json.dumps(EVENT | change))
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(path, action_id="id")
    assert [(p.code, p.rows) for p in caught.value.problems] == [(code, (1,))]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"a": [1, 0]}, "must count from 1: add 1 to each (line 3: a is [1, 0])"),
        ({"a": None, "_a": [2, 1]}, "counted from 1 (line 3: a is null)"),
        ({"p": [0.5, 0.25]}, "summing to 1 (line 3: p is [0.5, 0.25])"),
        ({"_label_cost": "free"}, 'a finite _label_cost (line 3: _label_cost is "free")'),
        ({"_label_Action": 1}, "is not the first entry of p (line 3: _label_Action is 1)"),
        ({"c": {"_multi": "x"}}, 'the list of its actions (line 3: c._multi is "x")'),
        ({"_skipLearn": None}, "_skipLearn must be true or false (line 3: _skipLearn is null)"),
    ],
)
def test_the_line_the_field_and_its_content_are_named(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    path = _write(tmp_path / "log.dsjson", GOOD, "", json.dumps(EVENT | change))
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(path, action_id="id")
    assert told in str(caught.value)


def test_a_ranking_of_another_name_is_told(tmp_path: Path) -> None:
    event = {("_a" if name == "a" else name): value for name, value in EVENT.items()}
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(tmp_path / "log.dsjson", GOOD, json.dumps(event)), action_id="id")
    assert "(line 2: a is missing, but _a is present, with the value [2, 1])" in str(caught.value)


def test_events_that_say_skip_learn_are_dropped_and_counted(tmp_path: Path) -> None:
    skipped = [json.dumps(EVENT | {"_skipLearn": True, "p": "none", "_label_cost": -9.0})] * 2
    kept = json.dumps(EVENT | {"_skipLearn": False, "_label_cost": -0.25})
    path = _write(tmp_path / "log.dsjson", skipped[0], GOOD, skipped[1], kept)
    log = read_dsjson(path, action_id="id")
    assert log.arrays.reward.tolist() == [0.5, 0.25]
    assert f"dropped: {claims.SKIPPED(skipped=2, events=4)}" in str(log.report)
    assert log.report.source == "dsjson file log.dsjson"
    assert log.report.pulls == {"n": 0, "s": 2}
    other = json.dumps(EVENT | {"c": {"age": 3, "_multi": [{"id": "n"}, {"id": "z"}]}})
    with pytest.raises(LogValidationError) as caught:
        read_dsjson(_write(path, skipped[0], GOOD, skipped[1], other), action_id="id")
    assert [(p.code, p.rows) for p in caught.value.problems] == [("other-actions", (3,))]
    with pytest.raises(ParameterError, match="contains only events with _skipLearn"):
        read_dsjson(_write(path, *skipped))


def test_bytes_that_are_no_text_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    path.write_bytes(f"{GOOD}\n{GOOD}".encode() + b"\xff")
    with pytest.raises(
        ParameterError, match=r"log\.dsjson cannot be read as UTF-8 text: line 2, invalid start byte"
    ):
        read_dsjson(path)
    with pytest.raises(ParameterError, match="is a directory"):
        read_dsjson(tmp_path)


def test_features_of_some_events_take_no_memory(tmp_path: Path) -> None:
    lines = [
        json.dumps(EVENT | {"c": EVENT["c"] | {f"f{row}_{k}": 1 for k in range(60)}}) for row in range(300)
    ]
    assert read_dsjson(_write(tmp_path / "x", *lines), action_id="id").context == ("age", "os")


def _campaign(folder: Path, men: str, items: str = "item_id\n0\n1\n") -> Path:
    place = folder / "random" / "men"
    place.mkdir(parents=True)
    (place / "men.csv").write_text("timestamp,item_id,position,click,propensity_score,user_feature_0\n" + men)
    (place / "item_context.csv").write_text(items)
    return place


ROW = "2019-11-24 00:00:17+00:00,1,2,0,0.5,x\n"


@pytest.mark.parametrize(
    ("men", "items", "told"),
    [
        (
            ROW + ROW.replace(",1,2", ",7,2"),
            "item_id\n0\n1\n",
            "men.csv shows 7, which item_context.csv does not",
        ),
        (ROW, "item_id\n1\n1\n", "item_context.csv: item_id must name every item exactly once"),
        (ROW, "item_id\n1\nabc\n", "men.csv shows 1, which item_context.csv does not list"),
        (
            ROW.replace("2,0", "2,0.5"),
            "item_id\n1\n",
            "click must be 0 or 1; rows with other values: 1, the first being row 0",
        ),
        (
            ROW.replace("2019-11-24 00:00:17+00:00", "1574553617"),
            "item_id\n1\n",
            ("1 timestamps are not times"),
        ),
        (
            ROW + ROW.replace("+00:00", ""),
            "item_id\n1\n",
            "1 timestamps are not times in ISO 8601, the first in row 1",
        ),
        (
            ROW + ROW[:-3] + "\n",
            "item_id\n1\n",
            r"1 row differs from the header in the number of fields, 6; lines .*: 3 \(5\)",
        ),
        (ROW.replace(",1,2", ",01,2"), "item_id\n1\n", r"men\.csv shows '01', which"),
        (ROW, "item_id\n1,2\n", r"item_context.csv cannot be read: 1 row differs .*: 2 \(2\)"),
        (ROW, "item_id\n1\0\n", "item_context.csv cannot be read: line 2 has a NUL character"),
        (ROW, "", r"item_context.csv has no column item_id|No columns to parse"),
        (ROW.replace("x", '"x'), "item_id\n1\n", "men.csv cannot be read: line 2: unexpected end of data"),
    ],
)
def test_damage_of_a_campaign_is_named(tmp_path: Path, men: str, items: str, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        read_open_bandit(_campaign(tmp_path, men, items))


def test_rows_of_a_campaign_are_counted_as_in_its_file(tmp_path: Path) -> None:
    later = ROW.replace("00:00:17", "00:00:18").replace("0.5", "1.5")
    with pytest.raises(LogValidationError, match=r"men\.csv has 1 problem .*\n.*\[row 0\]"):
        read_open_bandit(_campaign(tmp_path, later + ROW))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "arm,y,age\na,1,1.5\nb,0\n",
            r"1 row differs from the header in the number of fields, 3; .*: 3 \(2\)",
        ),
        (
            'arm,y,age\n"a"x,1,1.5\nb,0,2.5\n',
            r"line 2: ',' expected after '\"'; its quotation marks do not match",
        ),
        ("arm,y,age\na,1,1.5\nb,0,\0\n", "line 3 has a NUL character"),
        ("arm,y,age\na,1,1.5\nb,0,.\nc,1,2.5\n", r"column 'age' has text among its numbers, .*such as '\.'"),
        ("arm,y,age\na,1,3\nb,0, \nc,1,2\n", r"context column 'age' has no value \[line 3\]"),
        (f"arm,y,age\na,1,3\nb,0,{'9' * 5000}\n", r"context column 'age' is infinite \[line 3\]"),
        (
            "arm,y,age\na,1,1.5\nb,0,2.5\na ,0,2.5\n",
            r"the labels 'a', 'a ' \(U\+0020\) cannot be distinguished",
        ),
        (
            "arm,y,age\na,1,1.5\n ,0,2.5\n",
            r"action column 'arm' has a label that consists only of spaces \[line 3\]",
        ),
    ],
)
def test_rows_of_a_foreign_csv_that_do_not_fit(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises((ParameterError, LogValidationError), match=told) as caught:
        read_log(path, action="arm", reward="y", context="age")
    assert "data.csv" in str(caught.value)


def test_texts_of_parquet_that_are_no_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame = {"arm": ["a", "b"], "y": [0.5, 1.0], "town": ["Bern", "Genf"]}
    pq.write_table(pa.table(frame), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"Genf", b"G\xffnf"))
    with pytest.raises(ParameterError, match=r"not a readable Parquet file: .*Invalid UTF8"):
        read_log(path, action="arm", reward="y", context="town")


def test_a_chunk_that_ends_pyarrow_is_refused(tmp_path: Path) -> None:
    # Where its schema is damaged, pyarrow ends the process that asks for the description of a chunk.
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"arm": ["a", "b"], "y": [0.5, 1.0]}), path)
    data = path.read_bytes()
    optional, required = (bytes([0x25, repetition, 0x18, 3]) + b"arm" for repetition in (2, 0))
    assert optional in data
    path.write_bytes(data.replace(optional, required))
    with pytest.raises(ParameterError, match="histogram size mismatch"):
        read_log(path, action="arm", reward="y")


@pytest.mark.parametrize(
    ("first", "second"), [("01.0", "1"), ("1.0", "1"), ("1e3", "1000"), ("True", "true"), ("0.50", "0.5")]
)
@pytest.mark.parametrize("role", ["action", "unit", "batch"])
def test_labels_that_pandas_reads_as_one_are_refused(
    tmp_path: Path, role: str, first: str, second: str
) -> None:
    path = tmp_path / "trial.csv"
    columns = {"action": ("a", "b"), "unit": ("u", "v"), "batch": ("s", "t"), role: (first, second)}
    rows = zip(*columns.values(), (1, 0), strict=True)
    path.write_text("action,unit,batch,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    with pytest.raises(ParameterError) as caught:
        read_log(path, action="action", reward="y", unit="unit", batch="batch")
    assert (
        f"trial.csv: column '{role}' contains {first!r} and {second!r}, which would become one label"
        in str(caught.value)
    )


@pytest.mark.parametrize(
    ("cells", "arms"),
    [
        (["02", " 02", "01"], ("01", "02")),
        (["01", "1", "01"], ("01", "1")),
        (["007", "7", "10"], ("007", "10", "7")),
        (["1", "10", "2"], (1, 2, 10)),
        ([" 2", "2", "10"], (2, 10)),
        (["1.50", "2.25", "2.25"], ("1.50", "2.25")),
        (["1.5", "2", "1.5"], (1.5, 2.0)),
        (["TRUE", "FALSE", "TRUE"], ("FALSE", "TRUE")),
        (["True", "False", "True"], (False, True)),
        (["1e3", "12", "12"], ("12", "1e3")),
    ],
)
def test_labels_stay_as_they_are_written(tmp_path: Path, cells: list[str], arms: tuple[Any, ...]) -> None:
    path = tmp_path / "trial.csv"
    path.write_text("y,arm\n" + "".join(f"{row % 2},{cell}\n" for row, cell in enumerate(cells)))
    log = read_log(path, action="arm", reward="y")
    assert [(type(arm), arm) for arm in log.arms] == [(type(arm), arm) for arm in arms]
    told = [reading.text for reading in log.report.readings if reading.kind == "labels"]
    assert len(told) == isinstance(arms[0], str)


def test_codes_of_places_and_units_keep_their_zeros(tmp_path: Path) -> None:
    path = tmp_path / "trial.csv"
    path.write_text("y,arm,zip,who,hour,age\n1,a,01234,007,7,50\n0,b,12345,7,12,052.5\n1,a,90210,10,9,61\n")
    log = read_log(path, action="arm", reward="y", context=["zip", "hour", "age"], unit="who")
    assert log.column("zip").tolist() == ["01234", "12345", "90210"]
    assert log.units is not None
    assert log.units.tolist() == ["007", "7", "10"]
    assert log.column("hour").tolist() == [7, 12, 9]
    assert log.column("age").tolist() == [50.0, 52.5, 61.0]
    assert claims.AS_WRITTEN(name="zip", example="01234") in str(log.report)


def test_batches_that_numbers_would_make_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trial.csv"
    path.write_text("y,arm,wave\n1,a,01\n0,b,1\n1,a,2\n")
    with pytest.raises(
        ParameterError, match=("column 'wave' contains '01' and '1', which would become one label")
    ):
        read_log(path, action="arm", reward="y", batch="wave")
    path.write_text("y,arm,wave\n1,a,01\n0,b,02\n1,a,10\n")
    batch = read_log(path, action="arm", reward="y", batch="wave").arrays.batch
    assert batch is not None
    assert batch.tolist() == [0, 1, 2]


def test_labels_longer_than_the_numbers_python_reads_are_text(tmp_path: Path) -> None:
    path, long = tmp_path / "trial.csv", "9" * 5000
    path.write_text(f"y,arm,dose\n1,1,0.5\n0,{long},{long}\n1,2,1.5\n")
    assert read_log(path, action="arm", reward="y").arms == ("1", "2", long)
    assert read_log(path, action="dose", reward="y").arms == ("0.5", "1.5", long)
