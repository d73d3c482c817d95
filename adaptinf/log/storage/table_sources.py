"""Tables from other programs: files, folders of parts, bytes, standard input, and frames of any library."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError, ParameterError, Problem
from adaptinf.files import as_path, owners_alone
from adaptinf.log.report import Reading
from adaptinf.log.storage.delimited import Delimited, delimited, plain_text
from adaptinf.log.storage.dialects import Dialect, decompressed
from adaptinf.log.storage.header import COLUMNS, check_size
from adaptinf.log.storage.log_files import PARQUET, check_regular, naming
from adaptinf.log.storage.parquet import read_columns
from adaptinf.log.storage.text_columns import Use
from adaptinf.log.validation.frame_columns import EXACT, column_names
from adaptinf.log.validation.relations import arrow_frame, in_memory, table_name, without_texts
from adaptinf.parameters import refuse

STANDARD_INPUT = "-"
_COMPRESSIONS = (".gz", ".zst", ".bz2")
TEXT = {".csv": ",", ".tsv": "\t"}
"""Suffixes of text files, and the separator that each implies."""
_LINES = (".jsonl", ".ndjson", ".json")
_ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*PARQUET, *TEXT, *_LINES, *_ARROW)
_KINDS = (
    dict.fromkeys(PARQUET, "Parquet")
    | {".csv": "CSV", ".tsv": "TSV"}
    | dict.fromkeys(_LINES, "JSON lines")
    | dict.fromkeys(_ARROW, "Arrow")
)


@dataclass(frozen=True, slots=True, eq=False)
class TableSource:
    """Rows from other programs, whose columns receive their types once their uses are known."""

    source: str
    """The source as named in the report of a log."""
    name: str
    """The source as named in an error."""
    content: Any
    """A pandas or Polars frame, or fields of text."""
    path: Path | None = None
    numbers: Sequence[int] = ()
    """Line numbers of the rows if these are known and the content is a frame."""
    readings: list[Reading] = field(default_factory=list)

    @property
    def of_file(self) -> bool:
        """Whether the table comes from a file or a stream, which errors name."""
        return self.path is not None or isinstance(self.content, Delimited) or len(self.numbers) > 0

    @property
    def columns(self) -> list[Any]:
        """Names of the columns."""
        return self.content.names if isinstance(self.content, Delimited) else column_names(self.content)

    def typed(self, uses: Mapping[str, Use], keep: Collection[str] = ()) -> tuple[Any, list[Reading]]:
        """The frame with columns typed by their uses, and notes on the reading."""
        if not isinstance(self.content, Delimited):
            return self.content, list(self.readings)
        try:
            frame, told = self.content.typed(uses, keep)
        except ParameterError as error:
            raise ParameterError(
                error.subject, [f"{self.name}: {problem}" for problem in error.problems]
            ) from None
        return frame, [*self.readings, *told]

    def located(self, error: LogValidationError, what: str = "the log") -> LogValidationError:
        """An error about rows, with the table's name and the lines of a text."""
        problems, header = list(map(self._located, error.problems)), isinstance(self.content, Delimited)
        return LogValidationError(problems, f"{what} in {self.name}", header)

    def _located(self, problem: Problem) -> Problem:
        lines: tuple[str, ...] = ()
        if isinstance(self.content, Delimited):
            lines = self.content.lines(problem.rows)
        elif len(self.numbers):
            lines = tuple(str(self.numbers[row]) for row in problem.rows)
        return Problem(problem.code, problem.message, problem.rows, problem.total, lines)


def read_table(
    source: Any,
    dialect: Dialect,
    wanted: Collection[str] = (),
    subject: str = "read_log",
    argument: str = "path",
) -> TableSource:
    """The table that a user names or passes: a file, several, a folder, ``"-"``, bytes, or a frame.

    `wanted` contains the names of required columns, by which separators are distinguished.
    """
    if isinstance(source, (str, PathLike)):
        if str(source) == STANDARD_INPUT:
            return _of_stream(sys.stdin.buffer.read(), "standard input", dialect, wanted, subject)
        return _of_path(as_path(subject, argument, source), dialect, wanted, subject)
    if isinstance(source, (list, tuple)) and source and all(isinstance(x, (str, PathLike)) for x in source):
        return _of_list([as_path(subject, argument, each) for each in source], dialect, wanted, subject)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _of_stream(bytes(source), "bytes", dialect, wanted, subject)
    if callable(read := getattr(source, "read", None)) and not hasattr(source, "columns"):
        data = read()
        data = data.encode() if isinstance(data, str) else data
        return _of_stream(data, "a stream", dialect, wanted, subject)
    frame = in_memory(source)
    if frame is None:
        kinds = (
            "the name of a file or folder, '-', bytes, or a frame of pandas, polars, Arrow, DuckDB or Dask"
        )
        raise ParameterError(subject, [f"{argument} must be {kinds}, got {type(source).__name__}"])
    refuse(subject, _only_of_text(dialect, "a frame"))
    return TableSource(table_name(source), table_name(source), _known(frame, dialect))


def kind_of(path: Path) -> str:
    """The suffix for the format of a file, in lower case, without a suffix for compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_suffix(path: Path, subject: str) -> None:
    """Refuse a name that does not identify the content of the file."""
    if kind_of(path) not in SUFFIXES:
        told = f"{' or '.join(SUFFIXES)}, compressed or not ({', '.join(_COMPRESSIONS)})"
        refuse(subject, [f"the name must end in {told}, got {path.name!r}"])


def parts_of(folder: Path, subject: str) -> list[Path]:
    """Files in a folder that a job wrote, ordered by name."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    inside = [entry.name for entry in entries if entry.is_dir()]
    files = [entry for entry in entries if not entry.is_dir()]
    problems = []
    if (folder / "_temporary").exists():
        problems.append(f"{folder} contains _temporary: the job that writes it has not finished")
    if inside:
        problems.append(f"{folder} contains folders ({', '.join(inside[:3])}): give one of them, or a file")
    if not files and not inside:
        problems.append(f"{folder} is a directory without data files; give one file")
    kinds = sorted({kind_of(entry) or "none" for entry in files})
    if len(kinds) > 1:
        problems.append(f"{folder} contains files of different kinds ({', '.join(kinds)}): give one file")
    elif files and kinds[0] not in SUFFIXES:
        problems.append(f"{folder} is a directory of files that end in {kinds[0]}; give one file")
    refuse(subject, problems)
    return files


def _of_path(path: Path, dialect: Dialect, wanted: Collection[str], subject: str) -> TableSource:
    whole = not os.path.isdir(path)
    files = [path] if whole else parts_of(path, subject)
    names = [""] if whole else [file.name for file in files]
    where = f"file {path.name}" if whole else f"files in {path.name}"
    return _of_files(files, names, where, str(path), path, dialect, wanted, subject)


def _of_list(files: list[Path], dialect: Dialect, wanted: Collection[str], subject: str) -> TableSource:
    """Several files as one table, in the order given."""
    kinds = sorted({kind_of(file) or "none" for file in files})
    if len(kinds) > 1:
        problem = f"the files are of different kinds ({', '.join(kinds)}): give files of the same kind"
        raise ParameterError(subject, [problem])
    where = f"files {files[0].name} to {files[-1].name}"
    # Files written later copy the permissions of this one, so a file that only its owner may read is
    # preferred.
    kept = next((file for file in files if owners_alone(file)), files[0])
    more = len(files) - 1
    told = f"{files[0]} and {more} more file{'s' if more > 1 else ''}" if more else str(files[0])
    return _of_files(files, list(map(str, files)), where, told, kept, dialect, wanted, subject)


def _of_files(
    files: Sequence[Path],
    names: Sequence[str],
    where: str,
    told: str,
    path: Path,
    dialect: Dialect,
    wanted: Collection[str],
    subject: str,
) -> TableSource:
    """Files of one kind as one table; lines are preceded by file names."""
    for file in files:
        check_suffix(file, subject)
        check_regular(file, subject)
    kind = kind_of(files[0])
    label = _KINDS[kind]
    source = f"{label} {where}"
    in_order = claims.PARTS if path.is_dir() else claims.FILES
    several = [Reading("dialect", in_order(count=len(files)))] if len(files) > 1 else []
    with naming(path, label, subject):
        if kind in PARQUET:
            return parquet_source(_parquet(files), where, told, path, dialect, subject, several)
        named = [(name, file.read_bytes()) for name, file in zip(names, files, strict=True)]
        return _of_bytes(kind, named, source, told, dialect, wanted, subject, path, several)


def parquet_source(
    frame: pd.DataFrame,
    where: str,
    name: str,
    path: Path | None,
    dialect: Dialect,
    subject: str,
    readings: Sequence[Reading] = (),
) -> TableSource:
    """The frame in a Parquet file as a table, unless it must be read like text."""
    refuse(subject, _only_of_text(dialect, "a Parquet file", name))
    return TableSource(f"Parquet {where}", name, _known(frame, dialect), path, readings=list(readings))


def _of_stream(
    data: bytes, name: str, dialect: Dialect, wanted: Collection[str], subject: str
) -> TableSource:
    with naming(name, "table", subject):
        plain = decompressed(data)
        start = plain.lstrip()[:1]
        if plain.startswith(b"PAR1"):
            frame = pq.read_table(pa.BufferReader(plain)).to_pandas(ignore_metadata=True)
            return parquet_source(frame, f"from {name}", name, None, dialect, subject)
        kind = ".arrow" if plain.startswith(b"ARROW1") else ".jsonl" if start == b"{" else ".csv"
        source = f"{_KINDS[kind]} from {name}"
        return _of_bytes(kind, [("", plain)], source, name, dialect, wanted, subject)


def _of_bytes(
    kind: str,
    parts: Sequence[tuple[str, bytes]],
    source: str,
    name: str,
    dialect: Dialect,
    wanted: Collection[str],
    subject: str,
    path: Path | None = None,
    readings: Sequence[Reading] = (),
) -> TableSource:
    if kind in TEXT:
        content = delimited(parts, dialect, wanted, TEXT[kind])
        return TableSource(source, name, content, path, readings=list(readings))
    refuse(subject, _only_of_text(dialect, f"{_KINDS[kind]}", name))
    if kind in _LINES:
        frame, numbers, told = _json_lines(parts, dialect)
        return TableSource(source, name, frame, path, numbers, [*readings, *told])
    tables = [ipc.open_file(pa.BufferReader(decompressed(data))).read_all() for _, data in parts]
    frame = _known(arrow_frame(pa.concat_tables(tables)), dialect)
    return TableSource(source, name, frame, path, readings=list(readings))


def _known(frame: Any, dialect: Dialect) -> Any:
    """A frame without the texts that a user declares as missing values."""
    return frame if dialect.missing_values is None else without_texts(frame, dialect.missing_values)


def _parquet(files: Sequence[Path]) -> pd.DataFrame:
    tables = [read_columns(file) for file in files]
    for file, table in zip(files[1:], tables[1:], strict=True):
        if not table.schema.equals(tables[0].schema, check_metadata=False):
            raise ValueError(f"{file.name} does not have the same columns and types as {files[0].name}")
    whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    return pd.DataFrame(whole.to_pandas(ignore_metadata=True))


def _json_lines(
    parts: Sequence[tuple[str, bytes]], dialect: Dialect
) -> tuple[pd.DataFrame, list[int], list[Reading]]:
    """Objects of lines as a frame, their lines, and notes; a missing field is a missing value."""
    columns: dict[str, list[Any]] = {}
    numbers, readings = list[int](), list[Reading]()
    for name, data in parts:
        text, told = plain_text(name, data, dialect.encoding)
        readings += told
        for number, line in enumerate(io.BytesIO(text), 1):
            if not line.strip():
                continue
            record = _object(line, f"{name}: line {number}" if name else f"line {number}")
            for key, value in record.items():
                if key not in columns:
                    check_size("columns", len(columns) + 1, COLUMNS)
                    columns[key] = [None] * len(numbers)
                columns[key].append(value)
            numbers.append(number)
            if len(record) < len(columns):
                for key in columns.keys() - record.keys():
                    columns[key].append(None)
    missing = frozenset(dialect.missing_values or ())
    frame = pd.DataFrame({key: _series(values, missing) for key, values in columns.items()})
    return frame, numbers if len(parts) == 1 else [], readings


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not JSON ({error!s:.100})") from None
    if not isinstance(record, dict):
        raise ValueError(f"{where} is not a JSON object with the names of columns")
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name occurs twice")
    return record


def _no_constant(text: str) -> Any:
    return float(text.replace("Infinity", "inf"))


def _series(values: Sequence[Any], missing: frozenset[str]) -> pd.Series[Any]:
    """Values unchanged: numbers have one type, as in JSON; values of mixed types are objects."""
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = None if isinstance(value, str) and value in missing else value
    present = [value for value in column if value is not None]
    gone = np.array([value is None for value in column], dtype=bool)
    kinds = set(map(type, present))
    exact = all(abs(value) <= EXACT for value in present) if kinds == {int, float} else kinds == {float}
    if exact:
        return pd.Series([np.nan if value is None else float(value) for value in column])
    if kinds == {bool}:
        return pd.Series(pd.arrays.BooleanArray(np.where(gone, False, column).astype(bool), gone))
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in present):
        return pd.Series(pd.arrays.IntegerArray(np.where(gone, 0, column).astype(np.int64), gone))
    return pd.Series(column, dtype=object)


def _only_of_text(dialect: Dialect, what: str, name: str = "") -> list[str]:
    """Options that apply only to text files, given for another source."""
    of_lines = what == "JSON lines"
    allowed = ("missing_values", "encoding") if of_lines else ("missing_values",)
    given = [option for option in dialect.said if option not in allowed]
    where = f"{name} is" if name else "this is"
    return (
        [f"{' and '.join(f'{each}=' for each in given)} apply to text files; {where} {what}"] if given else []
    )
