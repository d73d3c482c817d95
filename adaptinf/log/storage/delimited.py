"""Tables of delimited text: fields stay text until the purpose of each column is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adaptinf.claims.logs import readings as claims
from adaptinf.log.report import Reading
from adaptinf.log.storage.dialects import NAMES, Dialect, decoded, decompressed, separator
from adaptinf.log.storage.header import COLUMNS, HEADER_CHARACTERS, check_size
from adaptinf.log.storage.text_columns import DOTTED, Typed, Use, decimal_mark, number_of, typed
from adaptinf.log.validation.frame_columns import EXACT
from adaptinf.parameters import refuse

_SHOWN = 5
_LIKE = {"i": {"0": 1}, "f": {"0.5": 1}}
"""A representative text for columns already read, by the type of their numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Delimited:
    """Fields of one text, or of several with the same header, as text."""

    parts: tuple[tuple[str, bytes], ...]
    """Names of the texts (empty if there is only one), and the texts encoded as UTF-8."""
    sep: str
    dialect: Dialect
    fields: pd.DataFrame
    readings: list[Reading] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of the columns, including repeated ones."""
        return list(self.fields.columns)

    def typed(
        self, uses: Mapping[str, Use], keep: Collection[str] = ()
    ) -> tuple[pd.DataFrame, list[Reading]]:
        """Columns typed by use, others as text, with notes; raises ParameterError if the conversion fails.

        `keep` contains outcomes that are labels although they look like a missing value.
        """
        wanted = {name: use for name, use in uses.items() if self.names.count(name) == 1}
        columns = {
            name: plain for name, use in wanted.items() if (plain := self._plain(name, use)) is not None
        }
        codes = {name: pd.factorize(self._field(name)) for name in wanted if name not in columns}
        counts = {
            name: dict(zip(distinct, np.bincount(places, minlength=len(distinct)).tolist(), strict=True))
            for name, (places, distinct) in codes.items()
        }
        numbers = {name: counts[name] for name in counts if uses[name] in ("number", "context")}
        numbers |= {name: _LIKE[plain.dtype.kind] for name, plain in columns.items()}
        mark, readings, problems = decimal_mark(numbers, self.dialect.decimal, self.sep)
        for name, (places, distinct) in codes.items():
            found = typed(uses[name], name, counts[name], mark, self.dialect.missing_values, keep)
            where = self._where(places, distinct, found.odd) if found.odd else ""
            problems += [f"{problem}{where}" for problem in found.problems]
            readings += found.readings
            own = mark if name in numbers else "."
            columns[name] = converted(distinct, found, own)(places)
        refuse("read_log", problems)
        frame = self.fields.assign(**columns) if columns else self.fields
        return frame, [*self.readings, *readings]

    def _where(self, places: NDArray[np.int64], distinct: Any, odd: Collection[str]) -> str:
        """Lines that contain certain texts of a column; places have shape (T,), and distinct texts (L,)."""
        member = np.array([str(text).strip() in odd for text in distinct], dtype=bool)
        rows = np.flatnonzero(member[places])
        shown = ", ".join(self.lines(rows[:_SHOWN].tolist()))
        more = f", ... ({len(rows)} lines in total)" if len(rows) > _SHOWN else ""
        return f" [line{'' if len(rows) == 1 else 's'} {shown}{more}]"

    def _plain(self, name: str, use: Use) -> NDArray[Any] | None:
        """A column of numbers that Arrow can read directly; None if any text needs closer inspection."""
        if use not in ("number", "context") or self.dialect.said.keys() & {"decimal", "missing_values"}:
            return None
        texts = pa.array(self.fields[name], pa.string())
        try:
            whole: NDArray[Any] = texts.cast(pa.int64()).to_numpy()
            if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
                return None  # Arrow reads 0x1F as 31, although it is a label.
            return whole if use == "number" else None  # Codes such as 01234 are not numbers.
        except pa.ArrowInvalid:
            pass
        try:
            values: NDArray[Any] = texts.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        if self.sep == ";" and pc.any(pc.match_substring_regex(texts, DOTTED)).as_py():
            return None  # Points may separate thousands.
        return values if bool((np.abs(values) < EXACT).all()) else None

    def _field(self, name: str) -> NDArray[Any]:
        return self.fields[name].to_numpy(dtype=object)

    def lines(self, rows: Sequence[int]) -> tuple[str, ...]:
        """Line numbers of rows, counted from 1 with the header; with several texts, also the text's name."""
        wanted, found, begun = sorted(set(rows)), dict[int, str](), 0
        for name, data in self.parts:
            numbers = starts(io.BytesIO(data), self.sep)
            next(numbers, None)  # The first record is the header, which is no row.
            for number in numbers:
                if begun in wanted:
                    found[begun] = f"{number} of {name}" if name else str(number)
                begun += 1
        return tuple(found[row] for row in rows if row in found)


def delimited(
    parts: Sequence[tuple[str, bytes]], dialect: Dialect, wanted: Collection[str] = (), usual: str = ","
) -> Delimited:
    """The table in the texts; raises ValueError, with the lines, if they do not contain a table."""
    # The table must have the columns in `wanted`; `usual` is the separator that the file's suffix suggests.
    found, readings, heads, frames, sep = [], list[Reading](), [], [], dialect.sep
    for name, data in parts:
        text, told = plain_text(name, data, dialect.encoding)
        if not text.strip() and len(parts) > 1:  # Spark writes empty part files.
            continue
        sep = separator(text, sep, wanted)
        names = header_names(text, sep)
        heads.append((name, names))
        readings += [each for each in told if each not in readings]
        found.append((name, text))
    for name, names in heads[1:]:
        if names != heads[0][1]:
            raise ValueError(
                f"{name} begins with {', '.join(names)!r:.80}, but {heads[0][0]} begins with "
                f"{', '.join(heads[0][1])!r:.80}: all parts must have the same header, in Spark with "
                f"option('header', True)"
            )
    if not found:
        raise ValueError("it contains no text")
    assert sep is not None
    for name, text in found:
        try:
            frames.append(read_fields(text, heads[0][1], sep))
        except ValueError as error:
            raise ValueError(f"{name}: {error}" if name else str(error)) from None
    if dialect.sep is None and sep != usual:
        readings.insert(0, Reading("dialect", claims.SEPARATED(sep=NAMES[sep])))
    fields = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    return Delimited(tuple(found), sep, dialect, fields, readings)


def plain_text(name: str, data: bytes, encoding: str | None) -> tuple[bytes, list[Reading]]:
    """A text as UTF-8, and notes on the conversion; errors quote the part that cannot be read."""
    try:
        return decoded(decompressed(data), encoding)
    except (ValueError, OSError) as error:
        raise ValueError(f"{name}: {error}" if name else str(error)) from None


def converted(distinct: Any, found: Typed, mark: str) -> Callable[[NDArray[np.int64]], Any]:
    """A function that constructs a column from the codes of its texts; distinct has shape (L,)."""
    bare = [str(text).strip() for text in distinct]
    empty = [not text for text in (distinct if found.kind == "text" else bare)]  # Blanks are not labels.
    missing = np.array([gone or text in found.missing for gone, text in zip(empty, bare, strict=True)])
    if found.kind in ("whole", "float", "flag"):
        return _native(bare, missing, found.kind, mark)
    values = np.empty(len(bare), dtype=object)
    for place, text in enumerate(bare):
        own = number_of(text, mark) if found.kind == "mixed" else None
        whole = text if found.kind != "text" else str(distinct[place])
        values[place] = None if missing[place] else whole if own is None else own

    def placed(codes: NDArray[np.int64]) -> Any:
        return values[codes]

    return placed


def _native(
    bare: Sequence[str], missing: NDArray[np.bool_], kind: str, mark: str
) -> Callable[[NDArray[np.int64]], Any]:
    read: dict[str, tuple[Callable[[str], Any], str, Any]] = {
        "whole": (int, "int64", 0),
        "float": (lambda text: float(text.replace(mark, ".")), "float64", np.nan),
        "flag": (lambda text: text.lower() == "true", "bool", False),
    }
    parse, dtype, none = read[kind]
    values = np.array(
        [none if gone else parse(text) for text, gone in zip(bare, missing, strict=True)], dtype=dtype
    )
    if kind == "float" or not missing.any():
        return lambda codes: values[codes]
    masked = pd.arrays.BooleanArray if kind == "flag" else pd.arrays.IntegerArray
    return lambda codes: masked(values[codes], missing[codes])


def header_names(data: bytes, sep: str = ",") -> list[str]:
    """Names of the columns, which are read before limits permit anything else."""
    with io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="") as text:
        names = next(csv.reader(_limited(text), delimiter=sep), [])
    check_size("columns", len(names), COLUMNS)
    return names


def _limited(text: io.TextIOWrapper) -> Iterator[str]:
    left = HEADER_CHARACTERS
    while line := text.readline(left + 1):
        left -= len(line)
        check_size("or more characters in the first row", HEADER_CHARACTERS - left, HEADER_CHARACTERS)
        yield line


def read_fields(data: bytes, names: list[str], sep: str) -> pd.DataFrame:
    """Fields of a text, unchanged; raises ValueError for unclosed quotes and rows of other lengths."""
    check_rows(data, len(names), sep)
    frame = field_texts(data, sep)
    # pandas renames repeated columns, but the checks need to see the repetition.
    frame.columns = pd.Index(names)
    return frame


def field_texts(data: bytes, sep: str = ",") -> pd.DataFrame:
    """Fields of a text of regular rows, unchanged."""
    frame: pd.DataFrame = pd.read_csv(
        io.BytesIO(data),
        sep=sep,
        index_col=False,
        encoding="utf-8-sig",
        dtype="str",
        na_filter=False,
        engine="python" if b"\0" in data else "c",  # in pandas 3.0, C ends a field at a NUL character
    )
    return frame


def check_rows(data: bytes, width: int, sep: str = ",") -> None:
    """Refuse rows shorter or longer than the header."""
    check_lines(io.BytesIO(data), width, sep, b'"' in data)


def check_lines(text: BinaryIO, width: int, sep: str, quoted: bool = True) -> None:
    """Refuse rows of a stream that are shorter or longer than the header."""
    with io.TextIOWrapper(text, encoding="utf-8-sig", newline="") as lines:
        wrong = _quoted(lines, width, sep) if quoted else _plain(lines, width, sep)
        found = [f"{number} ({fields})" for number, fields in wrong]
    if found:
        more = ", ..." if len(found) > _SHOWN else ""
        rows = "1 row differs" if len(found) == 1 else f"{len(found)} rows differ"
        raise ValueError(
            f"{rows} from the header in the number of fields, {width}; lines (and their numbers of fields): "
            f"{', '.join(found[:_SHOWN])}{more}"
        )


def _plain(lines: io.TextIOWrapper, width: int, sep: str) -> Iterator[tuple[int, int]]:
    """Lines and lengths of irregular rows if nothing is quoted."""
    for number, line in enumerate(lines, 1):
        fields = line.count(sep) + 1
        if fields != width and not line.isspace():
            yield number, fields


def _quoted(lines: io.TextIOWrapper, width: int, sep: str) -> Iterator[tuple[int, int]]:
    rows = csv.reader(lines, delimiter=sep, strict=True)
    try:
        for row in rows:
            if row and len(row) != width and not (len(row) == 1 and not row[0].strip()):
                yield rows.line_num, len(row)
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}; its quotation marks do not match") from None


def starts(text: BinaryIO, sep: str) -> Iterator[int]:
    """Lines at which the header and the rows begin, omitting blank ones."""
    with io.TextIOWrapper(text, encoding="utf-8-sig", newline="") as lines:
        rows, before = csv.reader(lines, delimiter=sep), 0
        for row in rows:
            if len(row) > 1 or (row and row[0].strip()):
                yield before + 1
            before = rows.line_num
