"""Files of other people: dialects, parts, lines of objects, cells that are no numbers, missing values."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask import dataframe as dd
from pyarrow import ipc

import adaptinf as ai
from adaptinf.claims.logs import readings as claims
from adaptinf.errors import FileError, LogValidationError, ParameterError
from adaptinf.log.storage import dialects

ROLES = {"action": "arm", "reward": "y", "propensity": "p"}
FRAME = pd.DataFrame(
    {
        "arm": ["a", "b", "a", "b"],
        "y": [0.25, 1.5, -2.0, 1234.5],
        "p": [0.5, 0.25, 0.5, 0.125],
        "n": [1, 2, 3, 4],
    }
)


def readings(log: ai.AdaptiveLog, kind: str) -> list[str]:
    return [reading.text for reading in log.report.readings if reading.kind == kind]


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises((LogValidationError, ParameterError)) as caught:
        ai.read_log(source, **{**ROLES, **options})
    return str(caught.value)


def arrow_bytes(frame: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    table = pa.Table.from_pandas(frame)
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_backed(frame: pd.DataFrame) -> pd.DataFrame:
    return pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype)


FRAMES: dict[str, Any] = {
    "DuckDB": duckdb.from_df,
    "Dask": lambda frame: dd.from_pandas(arrow_backed(frame), npartitions=2),
    "lazy Polars": lambda frame: pl.from_pandas(frame).lazy(),
    "Arrow": pa.Table.from_pandas,
    "batches": lambda frame: pa.Table.from_pandas(frame).to_reader(),
    "pandas": lambda frame: frame,
    "Arrow-backed": arrow_backed,
}


def csv_of(**options: Any) -> bytes:
    return FRAME.to_csv(index=False, **options).encode()


EUROPEAN = csv_of(sep=";", decimal=",")
SEPARATED, COMMA = (
    claims.SEPARATED(sep="semicolons"),
    claims.DECIMAL_COMMA(example="0,25", name="y"),
)
FILES: dict[str, tuple[bytes, list[str]]] = {
    "plain.csv": (csv_of(), []),
    "european.csv": (EUROPEAN, [SEPARATED, COMMA]),
    "tabs.csv": (csv_of(sep="\t"), [claims.SEPARATED(sep="tabs")]),
    "bars.csv": (csv_of(sep="|"), [claims.SEPARATED(sep="vertical bars")]),
    "tabs.tsv": (csv_of(sep="\t"), []),
    "marked.csv": (b"\xef\xbb\xbf" + csv_of(), []),
    "wide.csv": (csv_of().decode().encode("utf-16"), [claims.DECODED(encoding="utf-16")]),
    "wider.csv": (csv_of().decode().encode("utf-32"), [claims.DECODED(encoding="utf-32")]),
    "zip.csv.gz": (gzip.compress(csv_of()), []),
    "zip.tsv.bz2": (bz2.compress(csv_of(sep="\t")), []),
    "zip.csv.zst": (b"", []),
    "zip.json.gz": (gzip.compress(FRAME.to_json(orient="records", lines=True).encode()), []),
    "lines.jsonl": (FRAME.to_json(orient="records", lines=True).encode(), []),
    "lines.ndjson": (FRAME.to_json(orient="records", lines=True).encode() + b"\n\n", []),
    "one.arrow": (arrow_bytes(FRAME), []),
}


@pytest.mark.parametrize("name", FILES)
def test_every_dialect_gives_the_same_log(tmp_path: Path, name: str) -> None:
    data, told = FILES[name]
    if name.endswith(".zst"):
        with pa.CompressedOutputStream(str(tmp_path / name), "zstd") as stream:
            stream.write(csv_of())
    else:
        (tmp_path / name).write_bytes(data)
    log = ai.read_log(tmp_path / name, **ROLES, context="n")
    assert log.arms == ("a", "b")
    for column, values in FRAME.items():
        assert log.column(str(column)).tolist() == values.tolist()
    assert readings(log, "dialect") == told
    streamed = ai.read_log((tmp_path / name).read_bytes(), **ROLES, context="n")
    np.testing.assert_array_equal(streamed.arrays.reward, log.arrays.reward)


def test_what_is_said_of_a_text_is_taken(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_bytes("arm~y~note\nä~1,250~1\nb~2~2\n".encode("cp1252"))
    assert "line 2 is not UTF-8 text (invalid continuation byte)" in refusal(place, propensity=None)
    assert "'cp1252', with which the line reads 'ä~1,250~1'" in refusal(place, propensity=None)
    log = ai.read_log(place, action="arm", reward="y", sep="~", decimal=",", encoding="cp1252")
    assert log.arms == ("b", "ä")
    assert log.arrays.reward.tolist() == [1.25, 2.0]
    assert readings(log, "dialect") == [claims.DECODED(encoding="cp1252")]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("sep", ";;", "sep must be one character, such as ';' or a tab, got ';;'"),
        ("sep", "a", "sep cannot be a letter, a digit or a quote, got 'a'"),
        ("decimal", "'", "decimal must be '.' or ',', got \"'\""),
        ("encoding", "utf-9", "encoding must be the name of a text encoding"),
        ("missing_values", "NA", "missing_values must be a list of strings, such as ['NA', '-'], got 'NA'"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, option: str, value: str, said: str) -> None:
    (tmp_path / "x.csv").write_bytes(csv_of())
    assert said in refusal(tmp_path / "x.csv", **{option: value})


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_named(tmp_path: Path, encoding: str) -> None:
    place = tmp_path / "x.csv"
    place.write_bytes(csv_of().decode().encode(encoding))
    told = (
        "line 1 has a NUL character, which text files must not contain: it seems to be UTF-16 without a "
        "byte order mark, so specify "
    )
    assert refusal(place).endswith(f"{told}encoding={encoding!r}")
    assert ai.read_log(place, **ROLES, encoding=encoding).arrays.reward.tolist() == FRAME["y"].tolist()


def test_one_mark_cannot_separate_fields_and_decimals(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(EUROPEAN)
    assert "sep and decimal are both ','" in refusal(tmp_path / "x.csv", sep=",", decimal=",")


def test_what_can_be_read_in_two_ways_is_refused_with_a_guess(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm;x,y;p\na;1,0;1\nb;2,1;1\n")
    assert (
        "its first line, 'arm;x,y;p', can be divided at ',' or ';': specify the separator, as in "
        "sep=';' (a guess)"
    ) in refusal(place)
    place.write_text("arm;y;p\na;1,250;1\nb;3,400;1\n")
    assert (
        "column 'y' contains '1,250', which can mean 1.250 or 1250: set decimal=',' for the first"
    ) in refusal(place)
    assert ai.read_log(place, **ROLES, decimal=",").arrays.reward.tolist() == [1.25, 3.4]
    place.write_text("arm;y;p\na;3.560;1\nb;689;1\n")
    assert (
        "column 'y' contains '3.560', which can mean 3.560 or 3560: set decimal='.' for the first"
    ) in refusal(place)
    assert ai.read_log(place, **ROLES, decimal=".").arrays.reward.tolist() == [3.56, 689.0]
    for clear in ("arm;y;p\na;3.56;1\nb;1.250;1\n", "arm;y;p\na;0.125;1\nb;1.250;1\n"):
        place.write_text(clear)
        assert ai.read_log(place, **ROLES).arrays.reward.tolist()[1] == 1.25
    place.write_text("arm;y;p\na;3.560;1\nb;1689;1\n")  # a thousand without a point
    assert ai.read_log(place, **ROLES).arrays.reward.tolist() == [3.56, 1689.0]
    place.write_text("arm,y,p\na,3.560,1\nb,689,1\n")
    assert ai.read_log(place, **ROLES).arrays.reward.tolist() == [3.56, 689.0]
    place.write_text("arm,y;z,p\na,1,1\nb,2,1\n")  # the rows tell that the semicolon belongs to a name
    assert ai.read_log(place, action="arm", reward="y;z", propensity="p").n_rounds == 2


BAD = "arm,y,p\na,0.5,1\nb,{},1\n\na,1.5,1\nb,{},1\n"


@pytest.mark.parametrize(
    ("cells", "shown", "lines"),
    [
        (("error", "2"), "'error'; correct this entry", "[line 3]"),
        (("2", '"1,25"'), "'1,25'; correct this entry", "[line 6]"),
        (("$3.10", "y"), "'$3.10', 'y'; correct these entries", "[lines 3, 6]"),
        (("1_000", "0x1F"), "'1_000', '0x1F'; correct these entries", "[lines 3, 6]"),
    ],
)
def test_a_cell_that_is_no_number_is_named(
    tmp_path: Path, cells: tuple[str, str], shown: str, lines: str
) -> None:
    place = tmp_path / "bad.csv"
    place.write_text(BAD.format(*cells))
    assert refusal(place) == (
        f"the log in {place} has 1 problem (lines are counted from 1, the header line):\n  - reward column "
        f"'y' contains numbers and {shown}, or list the text that represents a missing value in "
        f"missing_values= {lines}"
    )


def test_of_many_cells_the_first_five_are_named(tmp_path: Path) -> None:
    place = tmp_path / "bad.csv"
    cells = "".join(f"a,bad {row},1\nb,0.5,1\n" for row in range(7))
    place.write_text(f"arm,y,p\n{cells}")
    told = refusal(place)
    assert "'bad 0', 'bad 1', 'bad 2', 'bad 3', 'bad 4', ...; correct these entries" in told
    assert "[lines 2, 4, 6, 8, 10, 12, 14]" in told


def test_lines_are_counted_as_the_file_counts(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text('arm,y,p,note\na,1,1,"two\nlines"\n\nb,,1,x\na,1,7,x\n')
    told = refusal(place)
    assert "reward column 'y' has no value (NaN or None) [line 5]" in told
    assert "propensity column 'p' has values outside (0, 1] [line 6]" in told
    place.write_text('arm,y,p,note\na,1,1,x\na,1,7,"two\nlines"\na,1,8,x\n')
    assert "propensity column 'p' has values outside (0, 1] [lines 3, 5]" in refusal(place)
    lines = tmp_path / "x.jsonl"
    lines.write_text('{"arm": "a", "y": 1, "p": 1}\n\n{"arm": "b", "p": 1}\n')
    assert refusal(lines).startswith(f"the log in {lines} has 1 problem (lines are counted from 1):\n")
    assert "reward column 'y' has no value (NaN or None) [line 3]" in refusal(lines)
    lines.write_text('{"arm": "a", "y": 1, "p": 1}\n{"arm": "b", "y": 1, "y": 2}\n')
    assert "line 2 is not JSON (a name occurs twice)" in refusal(lines)


@pytest.mark.parametrize("label", ["None", "NA", "null", "N/A", "nan", "NaN"])
def test_texts_of_missing_values_are_labels_of_arms_and_regions(tmp_path: Path, label: str) -> None:
    place = tmp_path / "x.csv"
    place.write_text(f"arm,y,region,who\n{label},1,EU,u\nEmail,{label},{label},{label}\n{label},3,EU,v\n")
    options = {"action": "arm", "reward": "y", "context": "region", "unit": "who", "missing": "drop"}
    log = ai.read_log(place, **options)
    assert log.arms == ("Email", label)
    assert log.column("region").tolist() == ["EU", label, "EU"]
    assert log.arrays.observed.tolist() == [True, False, True]
    assert readings(log, "labels") == [
        claims.MISSING_TEXT(name="arm", text=label, count=2),
        claims.MISSING_TEXT(name="who", text=label, count=1),
        claims.MISSING_TEXT(name="region", text=label, count=1),
    ]
    with pytest.raises(LogValidationError) as caught:
        ai.read_log(place, **options, missing_values=[label])
    found = [(problem.code, problem.lines) for problem in caught.value.problems]
    assert found == [("missing-action", ("2", "4")), ("missing-context", ("3",)), ("missing-unit", ("3",))]


def test_missing_values_that_are_named_are_those_of_every_column(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm,y\na,1\nb,-\na,NA\n")
    assert "contains numbers and '-'; correct this entry" in refusal(place, propensity=None)
    log = ai.read_log(place, action="arm", reward="y", missing="drop", missing_values=["-", "NA"])
    assert log.arrays.observed.tolist() == [True, False, False]
    assert "contains numbers and 'NA'" in refusal(place, propensity=None, missing_values=["-"])


@pytest.mark.parametrize("make", FRAMES.values(), ids=list(FRAMES))
def test_missing_values_of_frames(make: Any) -> None:
    frame = FRAME.assign(region=["EU", "-", "NA", "EU"])
    assert ai.AdaptiveLog(make(frame), **ROLES, context="region").column("region").tolist()[1:3] == [
        "-",
        "NA",
    ]
    for read in (
        lambda: ai.AdaptiveLog(
            make(frame), **ROLES, context="region", reading={"missing_values": ["-", "x"]}
        ),
        lambda: ai.read_log(make(frame), **ROLES, context="region", missing_values=["-"]),
    ):
        with pytest.raises(LogValidationError) as caught:
            read()
        assert [(each.code, each.rows) for each in caught.value.problems] == [("missing-context", (1,))]
    with pytest.raises(LogValidationError, match="missing_values must be a list of strings, got '-'"):
        ai.AdaptiveLog(make(frame), **ROLES, reading={"missing_values": "-"})


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["EU", "-", "NA"])])
def test_missing_values_of_labels_of_polars(kind: Any) -> None:
    region = pl.Series("region", ["EU", "-", "NA", "EU"], dtype=kind)
    with pytest.raises(LogValidationError) as caught:
        ai.read_log(
            pl.from_pandas(FRAME).with_columns(region), **ROLES, context="region", missing_values=["-"]
        )
    assert [(each.code, each.rows) for each in caught.value.problems] == [("missing-context", (1,))]


def test_missing_values_of_parquet_files(tmp_path: Path) -> None:
    FRAME.assign(region=["EU", "-", "NA", "EU"]).to_parquet(tmp_path / "x.parquet")
    told = refusal(tmp_path / "x.parquet", context="region", missing_values=["-"])
    assert told.endswith(":\n  - context column 'region' has no value [row 1]")


def test_labels_that_look_like_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm,y,site\n01,1,1.5\n1,2,north\nx,3,2.5\n1,4,south\n")
    log = ai.read_log(place, action="arm", reward="y", context="site")
    assert log.arms == ("01", "1", "x")
    assert log.column("site").tolist() == ["1.5", "north", "2.5", "south"]
    place.write_text("arm,y,site\n1,1,1.5\n2,2,north\n1,3,2.5\n2,4,3.5\n")
    assert "column 'site' has text among its numbers, such as 'north', and would be read as labels" in (
        refusal(place, propensity=None, context="site")
    )


def test_rows_of_one_field_are_no_rows_of_a_quoted_text(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text('arm,y,p\n"a",1,1\nb\n\n"b",1,1\n')
    assert refusal(place).endswith(
        "1 row differs from the header in the number of fields, 3; lines (and their numbers of fields): 3 (1)"
    )


def test_whole_numbers_beside_fractions_are_not_rounded(tmp_path: Path) -> None:
    told = "reward column 'y' has numbers that float64 cannot represent exactly [line {}]"
    place = tmp_path / "x.jsonl"
    place.write_text('{"arm": "a", "y": 9007199254740993, "p": 1}\n{"arm": "b", "y": 0.5, "p": 1}\n')
    assert told.format(1) in refusal(place)
    place = tmp_path / "x.csv"
    place.write_text("arm,y,p\na,9007199254740993,1\nb,0.5,1\n")
    assert told.format(2) in refusal(place)


def test_numbers_as_labels_have_no_texts_of_missing_values_beside_them(tmp_path: Path) -> None:
    place = tmp_path / "x.csv"
    place.write_text("arm,y,x\n1,1,0.5\n2,0,NA\nNA,1,0.25\n")
    with pytest.raises(LogValidationError) as caught:
        ai.read_log(place, action="arm", reward="y", context="x")
    found = [(problem.code, problem.lines) for problem in caught.value.problems]
    assert found == [("missing-action", ("4",)), ("missing-context", ("3",))]


class TestParts:
    def write(self, folder: Path, names: tuple[str, ...] = ("part-00000.csv", "part-00001.csv")) -> None:
        for place, name in enumerate(names):
            FRAME.iloc[2 * place : 2 * place + 2].to_csv(folder / name, index=False)
        (folder / "_SUCCESS").touch()
        (folder / ".part-00000.csv.crc").write_bytes(b"crc")
        (folder / "part-00002.csv").touch()

    def test_a_folder_is_read_in_the_order_of_names(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        log = ai.read_log(tmp_path, **ROLES)
        assert log.arrays.reward.tolist() == FRAME["y"].tolist()
        assert log.report.source == f"CSV files in {tmp_path.name}"
        assert readings(log, "dialect") == [claims.PARTS(count=3)]
        (tmp_path / "part-00001.csv").write_text("arm,y,p,n\na,1,1,1\nb,oops,1,2\n")
        assert "'oops'; correct this entry" in refusal(tmp_path)
        assert "[line 3 of part-00001.csv]" in refusal(tmp_path)

    def test_parquet_parts(self, tmp_path: Path) -> None:
        for place in (0, 1):
            part = pa.Table.from_pandas(FRAME.iloc[2 * place : 2 * place + 2])
            pq.write_table(part, tmp_path / f"part-{place}.snappy.parquet")
        assert ai.read_log(tmp_path, **ROLES).arrays.reward.tolist() == FRAME["y"].tolist()
        pq.write_table(pa.table({"arm": ["a"], "y": [1]}), tmp_path / "part-2.snappy.parquet")
        assert "part-2.snappy.parquet does not have the same columns and types as part-0" in refusal(tmp_path)

    def test_parts_of_other_types_are_no_table(self, tmp_path: Path) -> None:
        FRAME.to_parquet(tmp_path / "part-0.parquet")
        FRAME.astype({"n": "float64"}).to_parquet(tmp_path / "part-1.parquet")
        assert refusal(tmp_path).endswith(
            "part-1.parquet does not have the same columns and types as part-0.parquet"
        )

    def test_rows_of_several_files_of_objects_are_counted_through(self, tmp_path: Path) -> None:
        first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
        first.write_text('{"arm": "a", "y": 1, "p": 1}\n\n{"arm": "a", "y": 2, "p": 1}\n')
        second.write_text('\n{"arm": "b", "y": 1, "p": 7}\n')
        assert refusal([first, second]) == (
            f"the log in {first} and 1 more file has 1 problem (rows are counted from 0):\n"
            "  - propensity column 'p' has values outside (0, 1] [row 2]"
        )

    @pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
    @pytest.mark.parametrize("private", [None, 0, 1])
    def test_what_one_owner_alone_may_read_stays_so(self, tmp_path: Path, private: int | None) -> None:
        files = [tmp_path / "a.csv", tmp_path / "b.csv"]
        for place, file in enumerate(files):
            file.write_bytes(csv_of())
            file.chmod(0o600 if place == private else 0o644)
        log = ai.read_log(files, **ROLES)
        assert log.owner_only is (private is not None)
        log.to_csv(tmp_path / "whole.csv")
        assert private is None or (tmp_path / "whole.csv").stat().st_mode & 0o077 == 0

    def test_folders_that_cannot_be_read(self, tmp_path: Path) -> None:
        assert "is a directory without data files" in refusal(tmp_path)
        self.write(tmp_path)
        (tmp_path / "part-00001.csv").write_text("a,0.5,1,1\nb,0.5,1,2\n")
        assert ("all parts must have the same header, in Spark with option('header', True)") in refusal(
            tmp_path
        )
        (tmp_path / "_temporary").mkdir()
        (tmp_path / "day=1").mkdir()
        (tmp_path / "x.parquet").touch()
        told = refusal(tmp_path)
        for part in ("has not finished", "contains folders (day=1)", "of different kinds (.csv, .parquet)"):
            assert part in told


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (EUROPEAN, gzip.compress(csv_of()), arrow_bytes(FRAME)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        log = ai.read_log("-", **ROLES)
        assert log.arrays.reward.tolist() == FRAME["y"].tolist()
        assert log.report.source.endswith("from standard input")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"arm,y,p\na,x,1\nb,1,1\n")))
    assert refusal("-").startswith("the log in standard input has 1 problem (lines are counted from 1")


@pytest.mark.parametrize("make", FRAMES.values(), ids=list(FRAMES))
@pytest.mark.parametrize("read", [ai.AdaptiveLog, ai.read_log])
def test_frames_of_every_library(make: Any, read: Any) -> None:
    log = read(make(FRAME), **ROLES, context="n")
    for column, values in FRAME.items():
        assert log.column(str(column)).tolist() == values.tolist()


@pytest.mark.parametrize("make", FRAMES.values(), ids=list(FRAMES))
def test_decimals_and_long_numbers_of_every_library(make: Any) -> None:
    money = [Decimal("0.10"), Decimal("12345678901.25"), Decimal("-3.00"), Decimal("7.5")]
    whole = [Decimal(2**62), Decimal(2**62 + 1), Decimal(1), Decimal(2**62)]
    frame = FRAME.assign(y=money, who=whole)
    log = ai.AdaptiveLog(make(frame), **ROLES, unit="who")
    assert log.arrays.reward.tolist() == [0.1, 12345678901.25, -3.0, 7.5]
    assert log.column("unit_id").tolist() == [2**62, 2**62 + 1, 1, 2**62]
    with pytest.raises(LogValidationError) as caught:
        ai.AdaptiveLog(make(frame), action="arm", reward="who")
    assert [(problem.code, problem.rows) for problem in caught.value.problems] == [
        ("rounded-reward", (0, 1, 3))
    ]


def test_huge_whole_numbers_of_duckdb() -> None:
    table = duckdb.sql(
        "SELECT * FROM (VALUES ('a', 1::HUGEINT), ('b', (2::HUGEINT ** 70)::HUGEINT)) t(arm, y)"
    )
    with pytest.raises(LogValidationError, match=r"float64 cannot represent exactly \[row 1\]"):
        ai.AdaptiveLog(table, action="arm", reward="y")


def test_an_index_that_is_named_as_a_column() -> None:
    told = "'arm', the column for action, is the frame's index: pass frame.reset_index()"
    with pytest.raises(LogValidationError) as caught:
        ai.AdaptiveLog(FRAME.set_index("arm"), **ROLES)
    assert [problem.message for problem in caught.value.problems] == [told]
    with pytest.raises(LogValidationError) as caught:
        ai.aggregate(FRAME.set_index("arm"), **ROLES, batch="n")
    assert [problem.message for problem in caught.value.problems] == [told]


def test_what_is_of_text_alone_is_refused_elsewhere(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "x.parquet")
    assert "sep= apply to text files; " in refusal(tmp_path / "x.parquet", sep=";")
    assert "decimal= apply to text files; this is a frame" in refusal(FRAME, decimal=",")
    os.mkfifo(tmp_path / "pipe.csv.gz")
    with pytest.raises(FileError, match="it is not a regular file"):
        ai.read_log(tmp_path / "pipe.csv.gz", **ROLES)


def test_compressed_texts_have_a_limit(tmp_path: Path) -> None:
    place = tmp_path / "x.csv.gz"
    place.write_bytes(gzip.compress(b"arm,y,p\n" + b"a,1,1\n" * 1000))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dialects, "most_decoded", lambda size: 5000)
        assert "bytes once it is decompressed; from 0 to 5,000 are allowed" in refusal(place)


def test_sums_of_a_file(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"week": [1, 1, 2, 2], "arm": ["a", "NA"] * 2, "n": [9.0, 8, 7, 6], "s": [4.5, 2, 3, 1.25]}
    )
    roles = {"batch": "week", "arm": "arm", "n": "n", "sum": "s", "sum_squares": "s"}
    table.to_csv(tmp_path / "sums.csv", index=False, sep=";", decimal=",")
    sums = ai.Sums(tmp_path / "sums.csv", **roles)
    pd.testing.assert_frame_equal(sums.frame, ai.Sums(table, **roles).frame)
    (tmp_path / "sums.csv").write_text("week,arm,n,s\n1,a,9,4\n1,b,8,x\n")
    with pytest.raises(LogValidationError) as caught:
        ai.Sums(tmp_path / "sums.csv", **roles)
    told = (
        "contains numbers and 'x'; correct this entry, or list the text that represents a missing value in "
    )
    assert str(caught.value) == (
        f"the table of sums in {tmp_path / 'sums.csv'} has 2 problems (lines are counted from 1, the header "
        f"line):\n  - sum column 's' {told}missing_values= [line 3]\n  - sum_squares column 's' "
        f"{told}missing_values= [line 3]"
    )
