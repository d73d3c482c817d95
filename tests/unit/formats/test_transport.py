"""Transport files: every record is there, every number is its own, and damage is named."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from transport import write_transport

from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import read_adam
from adaptinf.formats.transport import read_transport


def _frame(count: int, note: int = 1) -> pd.DataFrame:
    names = [f"s{number:03d}" for number in range(count)]
    return pd.DataFrame(
        {"USUBJID": names, "AVAL": np.arange(count) / 8, "NOTE": ["x" * note] + [""] * (count - 1)}
    )


@pytest.mark.parametrize("count", [1, 2, 7, 30])
@pytest.mark.parametrize("note", [1, 8, 16, 30, 52, 68, 69, 79, 80, 200])
def test_every_record_is_read_where_cards_end_in_blanks(tmp_path: Path, count: int, note: int) -> None:
    frame = _frame(count, note)
    found = read_transport(write_transport(tmp_path / "adsl.xpt", frame))
    assert found["USUBJID"].tolist() == frame["USUBJID"].tolist()
    assert found["AVAL"].tolist() == frame["AVAL"].tolist()
    assert found["NOTE"].fillna("").tolist() == frame["NOTE"].tolist()


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate(
        [rng.normal(size=300) * 10.0 ** rng.integers(-60, 60, 300), [0.0, 1.0, -0.1, np.nan]]
    )
    found = read_transport(write_transport(tmp_path / "x.xpt", pd.DataFrame({"AVAL": values})))["AVAL"]
    assert found.dtype == np.float64
    assert np.array_equal(found.to_numpy(), values, equal_nan=True)


def test_numbers_of_fewer_bytes(tmp_path: Path) -> None:
    path = write_transport(tmp_path / "x.xpt", pd.DataFrame({"AVAL": [0.5, -2.0], "Z": ["ab", "c"]}))
    data = bytearray(path.read_bytes())
    start = 640
    data[start + 4 : start + 6] = (3).to_bytes(2, "big")
    data[start + 140 + 84 : start + 140 + 88] = (3).to_bytes(4, "big")
    body = data.index(b"HEADER RECORD*******OBS") + 80
    records = bytes(data[body : body + 20])
    short = b"".join(records[at : at + 3] + records[at + 8 : at + 10] for at in (0, 10))
    path.write_bytes(bytes(data[:body]) + short.ljust(80))
    assert read_transport(path).to_dict("list") == {"AVAL": [0.5, -2.0], "Z": ["ab", "c"]}


def test_a_file_without_records_has_its_columns(tmp_path: Path) -> None:
    found = read_transport(write_transport(tmp_path / "x.xpt", _frame(3).head(0)))
    assert list(found.columns) == ["USUBJID", "AVAL", "NOTE"]
    assert len(found) == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data[:-1], "ends in the middle of a card of 80 bytes"),
        (lambda data: data[:-80], "ends in the middle of record 24"),
        (lambda data: data + data[240:], "a second data set begins at byte"),
        (lambda data: data[:400], "a card of its headers is missing at byte 400"),
        (lambda data: b"", "the LIBRARY header is missing at byte 0"),
        (lambda data: b"HEADER RECORD*******LIBV8   " + data[28:], "of version 8; write one of version 5"),
        (lambda data: b"**COMPRESSED** **COMPRESSED**", "of PROC CPORT"),
        (lambda data: data.replace(b"s004", b"s\xff04"), "USUBJID of record 4 is not UTF-8 text"),
        (lambda data: data.replace(b"s004", b"s\x0004"), "USUBJID of record 4 has a NUL character"),
        (
            lambda data: data.replace(b"\x40\x20" + bytes(6), b"\x99" + bytes(7)),
            "AVAL of record 1 is not a number",
        ),
        (lambda data: data.replace(b"AVAL    ", b"USUBJID "), "several variables share a name"),
        (
            lambda data: data[:640] + b"\0\7" + data[642:],
            r"the description of variable 1 \('USUBJID'\) is damaged",
        ),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, change: object, told: str) -> None:
    path = write_transport(tmp_path / "adeff.xpt", _frame(30))
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(ParameterError, match=rf"read_adam: .*adeff\.xpt cannot be read: .*{told}"):
        read_adam(_frame(30), path, parameter="RESP", order="AVAL")


def test_the_log_of_files_is_named_in_its_errors(tmp_path: Path) -> None:
    subjects = pd.DataFrame({"USUBJID": ["a", "b"], "ITTFL": "Y", "TRT01P": "x", "TRT01A": "x", "N": [1, 2]})
    outcomes = pd.DataFrame({"USUBJID": ["a", "b"], "PARAMCD": "RESP", "AVAL": [1.0, math.nan]})
    first = write_transport(tmp_path / "adsl.xpt", subjects)
    second = write_transport(tmp_path / "adeff.xpt", outcomes)
    with pytest.raises(
        LogValidationError, match=r"the log of ADSL .*adsl\.xpt and the analysis data set .*adeff\.xpt has 1"
    ):
        read_adam(first, second, parameter="RESP", order="N")
