"""Delimited text files in DuckDB: a column is read as text, and typed once all its values are known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from adaptinf.errors import LogValidationError, ParameterError, Problem
from adaptinf.log.storage.delimited import check_lines, header_names, starts
from adaptinf.log.storage.dialects import GZIP, ZSTANDARD, Dialect, decoded, separator
from adaptinf.log.storage.text_columns import (
    COMMA_NUMERAL,
    DOTTED,
    INFINITE,
    NUMERAL,
    Typed,
    Use,
    decimal_mark,
    typed,
)
from adaptinf.log.validation.column_checks import no_numbers

_HEAD = 1 << 22
_MARK_OF = {".gz": GZIP, ".zst": ZSTANDARD}
"""Suffixes of files that DuckDB decompresses, and the first bytes of such files."""
_DISTINCT = 10_000
"""Largest number of distinct texts in a column that are examined one by one."""
_CELLS = 5
_ISO = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_ZONE = r":\d\d.*(?:Z|[+-]\d\d(?::?\d\d)?)$"
_ZONELESS = r"^\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d(:\d\d(\.\d+)?)?)?$"
_OTHER_TIMES = {"DATE": ":", "TIMESTAMP": _ZONE, "TIMESTAMP WITH TIME ZONE": _ZONELESS}
"""For each time type, a pattern of the texts that a cast to it would change, by dropping a clock time or a
zone, or by adding the computer's zone.
"""
_NUMERALS = {".": NUMERAL, ",": COMMA_NUMERAL}
_TYPES = {"whole": "BIGINT", "float": "DOUBLE", "flag": "BOOLEAN"}


def reads(file: Path, dialect: Dialect) -> bool:
    """Whether DuckDB can read a text file, which must be UTF-8 and compressed only as its name indicates."""
    with file.open("rb") as stream:
        mark = stream.read(len(ZSTANDARD))
    packed = next((end for end, start in _MARK_OF.items() if mark.startswith(start)), "")
    named = file.suffix.lower() if file.suffix.lower() in (*_MARK_OF, ".bz2") else ""
    if packed != named or named == ".bz2":
        return False
    own = (dialect.encoding or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    try:
        return own and _is_utf8(_head(file))
    except OSError:  # The file is truncated or damaged.
        return False


def is_empty(file: Path) -> bool:
    """Whether a text file is empty, as some of the parts written by a distributed job may be."""
    try:
        return not _head(file).strip()
    except OSError:
        return False


def _is_utf8(data: bytes) -> bool:
    """Whether bytes, which may end in the middle of a character, are UTF-8 without NUL characters."""
    try:
        data[: data.rfind(b"\n") + 1 or len(data)].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _head(file: Path) -> bytes:
    with pa.input_stream(str(file), compression="detect") as stream:
        return bytes(stream.read(_HEAD))


@dataclass(frozen=True, slots=True, eq=False)
class TextFiles:
    """Several text files as one relation of text columns, with the separator of each file."""

    files: tuple[Path, ...]
    seps: tuple[str, ...]
    relation: Any
    names: Mapping[str, tuple[str, ...]]
    """The columns of each file."""
    dialect: Dialect

    def typed(self, uses: Mapping[str, Use], roles: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
        """The relation, with the columns in use converted to their types, and the types of columns of times.

        `roles` contains a log's names for numeric columns. LogValidationError is raised for non-numeric
        entries in these columns, and ParameterError for ambiguous entries; the messages list the entries.
        """
        seen = {name: self._texts(name) for name in uses}
        numbers = {name: seen[name] for name, use in uses.items() if use in ("number", "context")}
        sep = ";" if ";" in self.seps else self.seps[0]
        mark, _, problems = decimal_mark(numbers, self.dialect.decimal, sep)
        found = {
            name: typed(use, name, seen[name], mark, self.dialect.missing_values)
            for name, use in uses.items()
        }
        problems += [problem for each in found.values() for problem in each.problems]
        if problems:
            raise ParameterError("aggregate", [f"{self._name}: {problem}" for problem in problems])
        wrong = [name for name, use in uses.items() if use == "number" and found[name].kind == "mixed"]
        cells = [each for name in wrong for each in self._bad_cells(name, roles[name], found[name], mark)]
        if cells:
            raise LogValidationError(cells, f"the table in {self._name}", header=True)
        times = {
            name: kind
            for name, use in uses.items()
            if use == "order" and found[name].kind == "text" and (kind := self._time(name)) is not None
        }
        columns = [
            f"{_value(name, found[name], mark if name in numbers else '.', times.get(name))} AS "
            f"{_quoted(name)}"
            for name in uses
        ]
        return self.relation.project(", ".join(columns)) if columns else self.relation, times

    def _time(self, name: str) -> str | None:
        """The type of the dates or times that a column contains in all files; None if it has others."""
        import duckdb

        kinds = set()
        for file, sep in zip(self.files, self.seps, strict=True):
            # DuckDB would guess which number of 1/2/2024 is the day, so such dates stay text.
            part = duckdb.read_csv(str(file), sep=sep, header=True, comment="", date_format="%Y-%m-%d")
            kinds.add(dict(zip(part.columns, map(str, part.types), strict=True)).get(name, "VARCHAR"))
        kind = kinds.pop() if len(kinds) == 1 else ""
        if other := _OTHER_TIMES.get(kind):
            # DuckDB infers the type from the first rows, so all others are checked.
            differ = f"regexp_matches(trim({_quoted(name)}), '{other}')"
            if self.relation.filter(differ).limit(1).fetchall():
                return None
        return kind if kind.startswith(("DATE", "TIMESTAMP")) else None

    @property
    def _name(self) -> str:
        return str(self.files[0]) if len(self.files) == 1 else f"{len(self.files)} files"

    def _texts(self, name: str) -> dict[str, int]:
        """The distinct texts of a column with their counts; if there are many, an example of each kind."""
        column = f"coalesce({_quoted(name)}, '')"
        distinct = self.relation.aggregate(f"{column} AS text, count(*) AS n", column).limit(_DISTINCT + 1)
        rows = distinct.fetchall()
        if len(rows) <= _DISTINCT:
            return dict(rows)
        bare = f"trim({column})"
        dotted = f"regexp_full_match({bare}, '{DOTTED}')"
        kinds = {
            "plain": f"regexp_full_match({bare}, '-?(0|[1-9][0-9]{{0,2}})')",
            "long": f"regexp_full_match({bare}, '-?[1-9][0-9]{{3,14}}')",
            "dotted": dotted,
            "point": f"regexp_full_match({bare}, '-?[0-9]*[.][0-9]+') AND NOT {dotted}",
            "comma": f"regexp_full_match({bare}, '-?[0-9]*,[0-9]{{1,2}}|-?[0-9]*,[0-9]{{4,}}')",
            "group": f"regexp_full_match({bare}, '-?[0-9]{{1,3}}(,[0-9]{{3}})+')",
        }
        other = " AND ".join(f"NOT {each}" for each in kinds.values())
        parts = ", ".join(f"min({bare}) FILTER (WHERE {each})" for each in kinds.values())
        examples = [text for text in self.relation.aggregate(parts).fetchall()[0] if text is not None]
        odd = self.relation.filter(other).aggregate(f"{bare} AS text, count(*) AS n", bare)
        return dict.fromkeys(examples, 1) | dict(odd.limit(_DISTINCT).fetchall())

    def _bad_cells(self, name: str, role: str, found: Typed, mark: str) -> list[Problem]:
        """Report non-numeric entries in a column of numbers, with the line numbers of the first few."""
        bare = f"trim(coalesce({_quoted(name)}, ''))"
        present = f"{bare} NOT IN ('', {_texts_of(found.missing)})"
        wrong = (
            f"{present} AND NOT regexp_full_match({bare}, '{_NUMERALS[mark]}') AND NOT "
            f"regexp_full_match({bare}, '{INFINITE}')"
        )
        counts = f"count(*) FILTER (WHERE {wrong}), count(*) FILTER (WHERE {present})"
        total, among = self.relation.aggregate(counts).fetchall()[0]
        if not total:
            return []
        cells, lines = list[str](), list[str]()
        for file, sep in zip(self.files, self.seps, strict=True):
            if name not in self.names[str(file)]:
                continue
            numbered = _read([file], sep).project(f"row_number() OVER () AS row, {_quoted(name)}")
            rows = numbered.filter(wrong).order("row").limit(_CELLS - len(cells)).fetchall()
            cells += [text for _, text in rows]
            where = _lines(file, sep, [row for row, _ in rows])
            lines += [f"{line} of {file.name}" if len(self.files) > 1 else str(line) for line in where]
            if len(cells) == _CELLS:
                break
        told = no_numbers(f"{role} column {name!r}", "text", role, cells, total, among)
        code = "bad-context" if role == "context" else f"non-numeric-{role}"
        return [Problem(code, told, tuple(range(len(lines))), total, tuple(lines))]


def check_divided(file: Path, dialect: Dialect) -> None:
    """Raise ValueError, with line numbers, if rows of a file have more or fewer fields than its header."""
    head = _head(file)
    sep = separator(head, dialect.sep, ())
    with pa.input_stream(str(file), compression="detect") as stream:
        check_lines(stream, len(header_names(head, sep)), sep)


def names_of(file: Path, dialect: Dialect) -> list[str]:
    """The fields in the first line of a text file."""
    head = _head(file)
    return header_names(head, separator(head, dialect.sep, ()))


def instants(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Times parsed from a column of ISO 8601 text; None if DuckDB cannot read one of the entries."""
    texts = column[column.notna()]
    if not len(texts) or not all(isinstance(text, str) for text in texts):
        return None
    zoned = texts.str.contains(_ZONE)
    if not texts.str.match(_ISO).all() or zoned.nunique() > 1:
        return None
    try:
        return pd.to_datetime(column, format="ISO8601", utc=bool(zoned.all()))
    except ValueError:
        return None


def text_files(files: Sequence[Path], dialect: Dialect, wanted: Sequence[str]) -> TextFiles:
    """Text files read by DuckDB; the first lines of each file show how it must be split."""
    names, seps = {}, []
    for file in files:
        head, _ = decoded(_head(file), dialect.encoding and "utf-8")
        try:
            sep = separator(head, dialect.sep, wanted)
        except ValueError as error:
            raise ParameterError("aggregate", [f"{file}: {error}"]) from None
        seps.append(sep)
        names[str(file)] = tuple(header_names(head, sep))
    if len(set(seps)) > 1:
        listed = ", ".join(f"{file.name} {sep!r}" for file, sep in zip(files, seps, strict=True))
        raise ParameterError("aggregate", [f"the files use different separators ({listed:.200}): set sep="])
    return TextFiles(tuple(files), tuple(seps), _read(files, seps[0]), names, dialect)


def _read(files: Sequence[Path], sep: str) -> Any:
    import duckdb

    return duckdb.read_csv(
        list(map(str, files)),
        all_varchar=True,
        header=True,
        sep=sep,
        quotechar='"',
        escapechar='"',
        comment="",
        union_by_name=True,
    )


def _value(name: str, found: Typed, mark: str, time: str | None) -> str:
    """SQL that converts a text column to its proper type."""
    raw = _quoted(name)
    bare = f"trim({raw})"
    missing = f"{raw} IS NULL OR {bare} IN ('', {_texts_of(found.missing)})"
    if time is not None and found.kind in ("text", "stripped"):
        value = f"CAST({bare} AS {time})"
    elif found.kind == "text":
        value = raw
    elif found.kind in _TYPES:
        number = bare if mark == "." else f"replace({bare}, ',', '.')"
        value = f"CAST({number} AS {_TYPES[found.kind]})"
    elif found.kind == "mixed":
        value = f"CAST({bare} AS DECIMAL(38, 0))" if mark == "." else f"CAST({bare} AS DOUBLE)"
    else:
        value = bare
    return f"CASE WHEN {missing} THEN NULL ELSE {value} END"


def _texts_of(texts: frozenset[str]) -> str:
    return ", ".join("'" + text.replace("'", "''") + "'" for text in sorted(texts)) or "''"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _lines(file: Path, sep: str, rows: Sequence[int]) -> list[int]:
    """The line numbers at which the given rows begin; row 1 is the first after the header."""
    if not rows:
        return []
    with pa.input_stream(str(file), compression="detect") as stream:
        numbers = itertools.islice(starts(stream, sep), max(rows) + 1)
        begun = list(numbers)
    return [begun[row] for row in rows]
