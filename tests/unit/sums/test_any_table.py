"""Sums of files of other people: they are read as a log of the same file is."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.sums.engine import text_files

ROLES = {"action": "arm", "reward": "y", "batch": "day", "propensity": "p"}
ROWS = pd.DataFrame(
    {
        "day": ["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-02"] * 3,
        "arm": ["a", "NA", "NA", "a"] * 3,
        "y": [0.25, 1.5, -2.0, 7.75, 3.5, 1.25] * 2,
        "p": [0.5, 0.5, 0.25, 0.75] * 3,
        "region": ["NA", "EU"] * 6,
    }
).sort_values("day", ignore_index=True)


def text(**options: Any) -> bytes:
    return ROWS.to_csv(index=False, **options).encode()


FILES = {
    "plain.csv": text(),
    "european.csv": text(sep=";", decimal=","),
    "tabs.tsv": text(sep="\t"),
    "zip.csv.gz": gzip.compress(text()),
    "zip.csv.bz2": bz2.compress(text(sep="|")),
    "wide.csv": text().decode().encode("utf-16"),
    "lines.jsonl": ROWS.to_json(orient="records", lines=True).encode(),
}


def refusal(source: Any, **options: Any) -> LogValidationError | ParameterError:
    with pytest.raises((LogValidationError, ParameterError)) as caught:
        ai.aggregate(source, **{**ROLES, **options})
    return caught.value


@pytest.mark.parametrize("name", FILES)
def test_sums_are_those_of_the_log(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    log = ai.read_log(tmp_path / name, **ROLES, context="region")
    sums = ai.aggregate(tmp_path / name, **ROLES, by="region", every="day", centre=0.0)
    due = ai.Sums.of_log(log, centre=0.0, by="region")
    assert sums.arms == log.arms == ("NA", "a")
    assert sums.group_names == ("region",)
    assert sums.frame["region"].unique().tolist() == ["EU", "NA"]
    np.testing.assert_allclose(sums.frame["sum"], due.frame["sum"], rtol=1e-12)
    np.testing.assert_allclose(sums.frame["n"], due.frame["n"])
    assert sums.batches.astype("datetime64[D]").astype(str).tolist() == ["2024-01-01", "2024-01-02"]


def test_standard_input_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    due = ai.aggregate(ROWS.assign(day=pd.to_datetime(ROWS["day"])), **ROLES, centre=0.0).frame
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FILES["zip.csv.gz"])))
    for source in ("-", FILES["european.csv"]):
        pd.testing.assert_frame_equal(ai.aggregate(source, **ROLES, every="day", centre=0.0).frame, due)


@pytest.mark.parametrize(
    ("labels", "arms"),
    [
        (["1", "2"], (1, 2)),
        (["01", "1"], ("01", "1")),
        (["1.5", "2.5"], (1.5, 2.5)),
        (["True", "False"], (False, True)),
        (["TRUE", "FALSE"], ("FALSE", "TRUE")),
        (["1", "2+"], ("1", "2+")),
        (["9007199254740993", "9007199254740992"], (9007199254740992, 9007199254740993)),
        (
            ["9007199254740993", "9007199254740992", "92233720368547758070"],  # more than 64 bits
            ("9007199254740992", "9007199254740993", "92233720368547758070"),
        ),
    ],
)
def test_labels_are_those_of_the_log(tmp_path: Path, labels: list[str], arms: tuple[Any, ...]) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm,y,day\n" + "".join(f"{label},1,1\n{label},0,1\n" for label in labels))
    assert ai.read_log(place, action="arm", reward="y", batch="day").arms == arms
    assert ai.aggregate(place, action="arm", reward="y", batch="day").arms == arms


def test_a_folder_of_parts(tmp_path: Path) -> None:
    for place in range(3):
        ROWS.iloc[4 * place : 4 * place + 4].to_csv(tmp_path / f"part-{place}.csv", index=False)
    (tmp_path / "part-3.csv").touch()
    (tmp_path / "_SUCCESS").touch()
    for source in (tmp_path, tmp_path / "part-*.csv"):
        assert ai.aggregate(source, **ROLES).n_rounds == len(ROWS)
    (tmp_path / "part-2.csv").write_text(
        'day,arm,y,p,region\n2024-01-02,a,"1\n2",1,x\n\n2024-01-02,a,$2,1,x\n'
    )
    error = refusal(tmp_path)
    assert isinstance(error, LogValidationError)
    (problem,) = error.problems
    assert (problem.code, problem.total) == ("non-numeric-reward", 2)
    assert problem.lines == ("2 of part-2.csv", "5 of part-2.csv")
    assert "reward column 'y' contains numbers and '1\\n2', '$2'; correct these entries" in problem.message


def test_cells_that_are_no_numbers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "x.csv"
    rows = [f"{arm},{row}.5,1,0.5" for row in range(30) for arm in "ab"]
    rows[40], rows[55] = "a,oops,1,0.5", 'b,"1,25",1,-'
    place.write_text("arm,y,day,p\n" + "\n".join(rows) + "\n")
    told = (
        f"the table in {place} has 2 problems (lines are counted from 1, the header line):\n  - reward "
        "column 'y' contains numbers and 'oops', '1,25'; correct these entries, or list the text that "
        "represents a missing value in missing_values= [lines 42, 57]\n  - propensity column 'p' contains "
        "numbers and '-'; correct this entry, or list the text that represents a missing value in "
        "missing_values= [line 57]"
    )
    assert str(refusal(place)) == told
    monkeypatch.setattr(text_files, "_DISTINCT", 5)  # as of a column with more texts than are looked at
    assert str(refusal(place)) == told
    codes = {
        problem.code for problem in refusal(place, reading={"missing_values": ["oops", "1,25", "-"]}).problems
    }
    assert codes == {"missing-reward", "missing-propensity"}


def test_many_texts_are_read_by_the_kinds_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_DISTINCT", 3)
    place = tmp_path / "x.csv"
    rows = [f"{arm};{row},25;{row};u{row}" for row in range(9) for arm in ("1", "2")]
    place.write_text("arm;y;day;who\n" + "\n".join(rows) + "\n")
    sums = ai.aggregate(place, action="arm", reward="y", batch="day", centre=0.0)
    assert sums.arms == (1, 2)
    assert sums.frame["sum"].tolist() == [row + 0.25 for row in range(9) for _ in range(2)]
    assert sums.batches.tolist() == list(range(9))


@pytest.mark.parametrize(("clear", "fine"), [("0.5", True), ("1.25", True), ("1689", True), ("689", False)])
def test_points_between_thousands_are_found_among_many_texts(
    clear: str, fine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_DISTINCT", 3)
    place = tmp_path / "x.csv"
    rows = [f"{arm};{row}.560;{row}" for row in range(1, 9) for arm in ("a", "b")]
    place.write_text("\n".join(["arm;y;day", *rows, f"a;{clear};1"]) + "\n")
    if fine:
        assert ai.aggregate(place, action="arm", reward="y", batch="day").n_rounds == 17
    else:
        assert "which can mean 1.560 or 1560: set decimal='.'" in str(refusal(place, propensity=None))


def test_what_is_said_is_taken_and_what_is_ambiguous_refused(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm;y;day\na;1,250;1\nb;3,400;1\n")
    plain = {"propensity": None}
    assert "which can mean 1.250 or 1250: set decimal=','" in str(refusal(place, **plain))
    sums = ai.aggregate(place, action="arm", reward="y", batch="day", reading={"decimal": ","}, centre=0.0)
    assert sums.frame["sum"].tolist() == [1.25, 3.4]
    place.write_text("arm;y;day\na;3.560;1\nb;689;1\n")
    assert "which can mean 3.560 or 3560: set decimal='.'" in str(refusal(place, **plain))
    sums = ai.aggregate(place, action="arm", reward="y", batch="day", reading={"decimal": "."}, centre=0.0)
    assert sums.frame["sum"].tolist() == [3.56, 689.0]
    how = {"sep": ";", "encoding": "cp1252"}
    place.write_bytes("arm;y;day\nä;1;1\nb;3;1\n".encode("cp1252"))
    assert "line 2 is not UTF-8 text" in str(refusal(place, **plain))
    assert ai.aggregate(place, action="arm", reward="y", batch="day", reading=how).arms == (
        "b",
        "ä",
    )
    place.write_text("arm,y,day\n#a,1,1\nb,2,1\n#a,3,1\n")  # no comment, but an arm
    assert ai.aggregate(place, action="arm", reward="y", batch="day").n_rounds == 3


def test_no_cell_begins_a_comment(tmp_path: Path) -> None:
    # Left to itself DuckDB takes a row that begins with # for a comment, and cuts another that ends with one.
    place = tmp_path / "x.csv"
    place.write_text("arm,y,day,region\n#a,1,1,EU\nb,2,1,EU#\n#a,3,1,US\n")
    sums = ai.aggregate(place, action="arm", reward="y", batch="day", by="region", centre=0.0)
    assert sums.arms == ("#a", "b")
    assert sums.frame["region"].tolist() == ["EU", "EU", "EU#", "EU#", "US", "US"]
    assert sums.frame["n"].tolist() == [1, 0, 0, 1, 1, 0]
    assert sums.frame["sum"].tolist() == [1, 0, 0, 2, 3, 0]
    place.write_text("arm,y,day\n#a,1,2024-01-01\nb,2,2024-01-01\n#a,3,2024-01-02\nb,4,# later\n")
    assert str(refusal(place, propensity=None)) == (
        "the table of sums has 1 problem (rows are counted from 0):\n  - batch column 'day' contains dates "
        "such as '2024-01-01', but not in these rows: give every batch a date in one format, or use labels "
        "that are not dates in 1 row"
    )


def test_of_many_texts_one_of_each_kind_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_DISTINCT", 6)
    place = tmp_path / "x.csv"
    numbers = [f"{row}{end}" for row in range(1, 9) for end in ("", ".25", ",5", ",2500", ",250")]
    place.write_text("\n".join(["arm;y;day", *(f"a;{each};1" for each in [*numbers, "oops", "1e3", "oops"])]))
    texts = text_files.text_files([place], text_files.Dialect(), [])
    assert texts._texts("y") == {"1": 1, "1.25": 1, "1,2500": 1, "1,250": 1, "oops": 2, "1e3": 1}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.bz2"])
def test_times_without_a_zone_do_not_get_that_of_this_computer(tmp_path: Path, name: str) -> None:
    text = b"arm,y,day\na,1,2024-01-01 10:00:00Z\nb,2,2024-01-01 23:30:00\n"
    (tmp_path / name).write_bytes(bz2.compress(text) if name.endswith("bz2") else text)
    assert str(refusal(tmp_path / name, propensity=None)).endswith(
        "  - batch column 'day' must contain numbers, times, or dates in one format such as 2024-03-01 or "
        "2024-03-01T09:30 or 3/31/2024 (all with a time zone, or none), not str such as '2024-01-01 "
        "23:30:00' in 1 row"
    )
    assert "every= divides dates and times, but column 'day' is of type" in str(
        refusal(tmp_path / name, propensity=None, every="day")
    )


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ("2024-01-01 10:00:00", "2024-01-01 23:30:00-05:00"),
        ("2024-01-01 10:00:00", "2024-01-01T23:30:00Z"),
        ("2024-01-01 10:00:00Z", "2024-01-01 23:30"),
        ("2024-01-01 10:00:00Z", "2024-01-01"),
        ("2024-01-01", "2024-01-01 23:30:00"),
    ],
)
def test_a_late_row_with_another_kind_of_time_is_refused(tmp_path: Path, usual: str, odd: str) -> None:
    rows = [f"{arm},1,{usual}\n" for arm in "ab"] * 15_000  # DuckDB tells types by 20,480 rows
    place = tmp_path / "x.csv"
    place.write_text("".join(["arm,y,day\n", *rows, f"a,1,{odd}\n", *rows[:4000]]))
    (problem,) = refusal(place, propensity=None, every="day").problems
    assert problem.message.startswith("every= divides dates and times, but column 'day' is of type String")


def test_whole_numbers_beside_fractions_are_not_rounded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("arm,y,day\na,9007199254740993,1\nb,0.5,1\n")
    assert str(refusal(tmp_path / "x.csv", propensity=None)) == (
        "the table of sums has 1 problem (rows are counted from 0):\n  - reward column 'y' of type "
        "Decimal(precision=38, scale=0) has numbers of 2**53 or more in absolute value: if a column also has "
        "fractions, whole numbers of that size are rounded before the log reads them; measure rewards in a "
        "larger unit in 1 row, such as in batch 1 of arm a"
    )


def test_dates_that_can_be_read_in_two_ways_stay_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("arm,y,day\na,1,1/2/2024\nb,2,1/2/2024\na,2,3/2/2024\nb,2,3/2/2024\n")
    assert str(refusal(tmp_path / "x.csv", propensity=None)) == (
        "the table of sums has 1 problem (rows are counted from 0):\n  - batch column 'day' contains dates "
        "such as '1/2/2024', in which day and month cannot be distinguished: set '%m/%d/%Y' or '%d/%m/%Y' "
        "as 'date_format'"
    )


def test_files_are_put_together_by_the_names_of_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("arm,y,day\na,1,1\nb,3,2\n")
    (tmp_path / "b.csv").write_text("day,arm,y\n1,b,5\n2,a,7\n")
    sums = ai.aggregate(tmp_path / "*.csv", action="arm", reward="y", batch="day", centre=0.0)
    assert sums.batches.tolist() == [1, 2]
    assert sums.frame["arm"].tolist() == ["a", "b", "a", "b"]
    assert sums.frame["sum"].tolist() == [1, 5, 7, 3]
    (tmp_path / "b.csv").write_text("arm;y;day\nb;5;1\n")
    assert str(refusal(tmp_path / "*.csv", propensity=None)) == (
        "aggregate: the files use different separators (a.csv ',', b.csv ';'): set sep="
    )


def test_rows_of_other_lengths_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm,y,day,p\na,1,1,1\nb,2,1\n")
    with pytest.raises(ParameterError) as caught:
        ai.aggregate(place, **ROLES)
    assert caught.value.problems == (
        f"{place} is not a readable CSV file: 1 row differs from the header in the number of fields, 4; "
        f"lines "
        "(and their numbers of fields): 3 (3)",
    )
