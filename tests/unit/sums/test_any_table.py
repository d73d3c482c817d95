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
    assert "reward column 'y' holds numbers, and '1\\n2', '$2'; correct these entries" in problem.message


def test_cells_that_are_no_numbers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "x.csv"
    rows = [f"{arm},{row}.5,1,0.5" for row in range(30) for arm in "ab"]
    rows[40], rows[55] = "a,oops,1,0.5", 'b,"1,25",1,-'
    place.write_text("arm,y,day,p\n" + "\n".join(rows) + "\n")
    told = (
        f"the table in {place} has 2 problems (lines are counted from 1, the header's):\n"
        "  - reward column 'y' holds numbers, and 'oops', '1,25'; correct these entries, or name what stands "
        "for a missing value in missing_values= [lines 42, 57]\n"
        "  - propensity column 'p' holds numbers, and '-'; correct this entry, or name what stands for a "
        "missing value in missing_values= [line 57]"
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


def test_what_is_said_is_taken_and_what_is_ambiguous_refused(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm;y;day\na;1,250;1\nb;3,400;1\n")
    plain = {"propensity": None}
    assert "which can be 1.250 or 1250: say decimal=','" in str(refusal(place, **plain))
    sums = ai.aggregate(place, action="arm", reward="y", batch="day", reading={"decimal": ","}, centre=0.0)
    assert sums.frame["sum"].tolist() == [1.25, 3.4]
    how = {"sep": ";", "encoding": "cp1252"}
    place.write_bytes("arm;y;day\nä;1;1\nb;3;1\n".encode("cp1252"))
    assert "line 2 is no UTF-8 text" in str(refusal(place, **plain))
    assert ai.aggregate(place, action="arm", reward="y", batch="day", reading=how).arms == (
        "b",
        "ä",
    )
    place.write_text("arm,y,day\n#a,1,1\nb,2,1\n#a,3,1\n")  # no comment, but an arm
    assert ai.aggregate(place, action="arm", reward="y", batch="day").n_rounds == 3


def test_rows_of_other_lengths_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm,y,day,p\na,1,1,1\nb,2,1\n")
    with pytest.raises(ParameterError) as caught:
        ai.aggregate(place, **ROLES)
    assert caught.value.problems == (
        f"{place} is not a readable CSV file: 1 rows have other numbers of fields than the 4 of the header; "
        "lines (and fields): 3 (3)",
    )
