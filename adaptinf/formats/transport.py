"""SAS transport files of version 5 (XPORT), and other tables that readers receive as files.

Everything is stored in cards of 80 bytes: headers, one description of 140 bytes per variable, then the
records without separators, padded with spaces to the end of the last card. The file does not state the number
of records: it is inferred from the remaining bytes, excluding the padding at the end.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import LogValidationError, ParameterError, Problem
from adaptinf.formats.typed_csv import read_csv_table
from adaptinf.log.storage.log_files import check_regular
from adaptinf.log.storage.parquet import read_columns
from adaptinf.log.validation.frame_columns import Column, Labels, read_column, read_labels
from adaptinf.typing import FloatArray, IntArray


def read_table(subject: str, path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """The table in a file, by its extension; in a CSV, the columns of `text` are always text."""
    readers: dict[str, Callable[[], pd.DataFrame]] = {
        ".xpt": lambda: read_transport(path),
        ".csv": lambda: read_csv_table(path, text),
        ".parquet": lambda: pd.DataFrame(read_columns(path).to_pandas(ignore_metadata=True)),
    }
    if path.suffix.lower() not in readers:
        raise ParameterError(subject, [f"the name must end in {', '.join(readers)}, got {path}"])
    check_regular(path, subject)
    try:
        return readers[path.suffix.lower()]()
    except ParameterError as error:
        raise ParameterError(subject, [f"{path} {problem}" for problem in error.problems]) from error
    except Exception as error:
        # A damaged file can make the libraries below raise nearly any exception.
        raise ParameterError(subject, [f"{path} cannot be read: {error!s:.300}"]) from error


def column_of(frame: pd.DataFrame, name: str) -> Column:
    """The column with a name that occurs exactly once."""
    return read_column(frame, list(frame.columns).index(name))


def labels_of(frame: pd.DataFrame, name: str) -> Labels:
    """Labels in the column with a name that occurs once."""
    return read_labels(column_of(frame, name))


@contextmanager
def log_of(source: str, rows: IntArray | None = None) -> Iterator[None]:
    """Add the source to an error from the log; `rows` are the positions of the log's rows in the source."""
    try:
        yield
    except LogValidationError as error:
        problems = error.problems
        if rows is not None:
            problems = tuple(_moved(problem, rows) for problem in problems)
        raise LogValidationError(problems, source) from None


def _moved(problem: Problem, rows: IntArray) -> Problem:
    places = tuple(sorted(int(rows[row]) for row in problem.rows))
    return Problem(problem.code, problem.message, places, problem.total)


def names_problems(name: str, values: Any) -> list[str]:
    """List problems with one or several column names."""
    if isinstance(values, str):
        return []
    if isinstance(values, Collection) and all(isinstance(value, str) for value in values):
        return []
    return [f"{name} must be the name of a column or a list of names, got {values!r:.60}"]


_CARD = 80
_HEADER = "HEADER RECORD*******{:<8}HEADER RECORD!!!!!!!"
_MEMBER = _HEADER.format("MEMBER").encode()
# A transport file starts with these cards in this order; empty strings stand for cards whose text varies.
_HEADS = ("LIBRARY", "", "", "MEMBER", "DSCRPTR", "", "", "NAMESTR")
_OTHERS = {
    b"**COMPRESSED**": "of PROC CPORT; write one with the XPORT engine or PROC COPY",
    b"HEADER RECORD*******LIBV8": "of version 8; write one of version 5",
}
_VARIABLE = struct.Struct(">hhhh8s68xl")
_SIZES = (136, 140)
_MISSING = frozenset(b"._ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FRACTION = np.uint64(2**56 - 1)


@dataclass(frozen=True)
class _Variable:
    name: str
    text: bool
    start: int
    length: int


def read_transport(path: Path) -> pd.DataFrame:
    """Read the only data set of a transport file; missing numbers are NaN, and blank text is None.

    Raises ValueError if the file is damaged.
    """
    # A record that consists only of blanks cannot be distinguished from the blanks that fill the last card.
    # If it could be such padding it is treated as padding, so a subject without a name is omitted.
    data = path.read_bytes()
    variables, start = _variables(data)
    length = sum(variable.length for variable in variables)
    body = data[start:]
    if at := body.find(_MEMBER) + 1:
        raise ValueError(f"a second data set begins at byte {start + at - 1}: write one data set per file")
    count = _record_count(body, length)
    records = np.frombuffer(body, dtype=np.uint8, count=count * length).reshape(count, length)
    columns = {
        variable.name: (_texts if variable.text else _numbers)(
            np.ascontiguousarray(records[:, variable.start : variable.start + variable.length]), variable.name
        )
        for variable in variables
    }
    return pd.DataFrame(columns)


def _record_count(body: bytes, length: int) -> int:
    """Number of records: all bytes except the padding of the last card."""
    if len(body) % _CARD:
        raise ValueError(
            f"it ends in the middle of a card of {_CARD} bytes: the file was truncated or changed"
        )
    content = len(body.rstrip(b" "))
    # The last record may itself end in blanks, but the padding is shorter than a card, which bounds the
    # number of records from below.
    count = max(-(-content // length), -(-(len(body) - _CARD + 1) // length), 0)
    if count * length > len(body):
        raise ValueError(
            f"it ends in the middle of record {len(body) // length}: the file was truncated or changed"
        )
    return count


def _variables(data: bytes) -> tuple[list[_Variable], int]:
    """Descriptions of the variables, and the position at which the records begin."""
    for mark, what in _OTHERS.items():
        if data.startswith(mark):
            raise ValueError(f"it is a transport file {what}")
    for number, head in enumerate(_HEADS):
        _check_card(data, number * _CARD, head)
    size, count = data[3 * _CARD + 74 : 3 * _CARD + 78], data[7 * _CARD + 54 : 7 * _CARD + 58]
    if not (size.isdigit() and int(size) in _SIZES and count.isdigit() and int(count)):
        raise ValueError("its headers do not state the number of variables")
    width, first = int(size), len(_HEADS) * _CARD
    end = first + -(-int(count) * width // _CARD) * _CARD
    _check_card(data, end, "OBS")
    variables: list[_Variable] = []
    position = 0
    for number in range(int(count)):
        variable = _variable(data, first + number * width, position, number)
        variables.append(variable)
        position += variable.length
    names = [variable.name for variable in variables]
    if len(set(names)) < len(names):
        raise ValueError(f"several variables share a name: {', '.join(names)}")
    return variables, end + _CARD


def _check_card(data: bytes, at: int, head: str) -> None:
    expected = _HEADER.format(head).encode() if head else b""
    if len(data) < at + _CARD or not data.startswith(expected, at):
        what = f"the {head} header" if head else "a card of its headers"
        raise ValueError(f"it is not a SAS transport file of version 5: {what} is missing at byte {at}")


def _variable(data: bytes, at: int, position: int, number: int) -> _Variable:
    kind, _, length, _, name, start = _VARIABLE.unpack_from(data, at)
    label = name.decode("ascii", "replace").rstrip()
    fits = length > 0 if kind == 2 else kind == 1 and 2 <= length <= 8
    if not fits or start != position or not label.isprintable() or not label.isascii() or not label:
        raise ValueError(f"the description of variable {number + 1} ({label!r}) is damaged")
    return _Variable(label, kind == 2, position, length)


def _numbers(raw: NDArray[np.uint8], name: str) -> FloatArray:
    """IBM floating point: a sign, an exponent of base 16 and up to 56 bits of fraction."""
    padded = np.zeros((len(raw), 8), dtype=np.uint8)
    padded[:, : raw.shape[1]] = raw
    bits = padded.view(">u8")[:, 0].astype(np.uint64)
    fraction, head = bits & _FRACTION, padded[:, 0]
    special = (fraction == 0) & (head != 0)
    missing = special & np.isin(head, list(_MISSING))
    if wrong := np.flatnonzero(special & ~missing).tolist():
        raise ValueError(f"{name} of record {wrong[0]} is not a number of this format: the file was changed")
    exponent = 4 * ((head & 127).astype(np.int64) - 64) - 56
    values = np.ldexp(fraction.astype(np.float64), exponent) * np.where(head & 128, -1.0, 1.0)
    return np.where(missing, np.nan, values)


def _texts(raw: NDArray[np.uint8], name: str) -> NDArray[Any]:
    """Text without trailing spaces."""
    if wrong := np.flatnonzero((raw == 0).any(axis=1)).tolist():
        raise ValueError(f"{name} of record {wrong[0]} has a NUL character: the file was changed")
    texts = np.empty(len(raw), dtype=object)
    for record, value in enumerate(raw.view(f"S{raw.shape[1]}")[:, 0].tolist()):
        try:
            texts[record] = value.decode("utf-8").rstrip(" ") or None
        except UnicodeDecodeError:
            raise ValueError(
                f"{name} of record {record} is not UTF-8 text: write the file in UTF-8"
            ) from None
    return texts


_ENDS = re.compile("\r\n|\n|\r")


def lines_of(path: Path, subject: str) -> Iterator[str]:
    """Lines with their ends; only newlines end a line, because JSON text may contain other separators."""
    check_regular(path, subject)
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                problem = f"{path} cannot be read as UTF-8 text: line {number}, {error.reason}"
                raise ParameterError(subject, [problem]) from error
            yield line


def numbered_lines(path: Path, subject: str) -> Iterator[tuple[int, str]]:
    """Non-blank lines and their numbers; a carriage return alone also ends a line."""
    number = 0
    for whole in lines_of(path, subject):
        for line in _ENDS.split(whole.removesuffix("\n").removesuffix("\r")):
            number += 1
            if line and not line.isspace():
                yield number, line
