"""Rows from files and from frames of any engine, read lazily, with special cases for some engines."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd

from adaptinf.errors import (
    AdaptinfError,
    FileError,
    LogValidationError,
    MissingDependencyError,
    ParameterError,
    Problem,
)
from adaptinf.files import as_path
from adaptinf.log.storage.dialects import PLAIN, Dialect
from adaptinf.log.storage.log_files import PARQUET, check_regular
from adaptinf.log.storage.table_sources import (
    STANDARD_INPUT,
    TEXT,
    check_suffix,
    kind_of,
    parts_of,
    read_table,
)
from adaptinf.log.storage.text_columns import Use
from adaptinf.log.validation.column_checks import no_number, number_column
from adaptinf.log.validation.frame_columns import EXACT, Findings, read_labels, read_series
from adaptinf.log.validation.relations import without_warnings
from adaptinf.parameters import refuse
from adaptinf.sums.engine.text_files import check_divided, instants, is_empty, names_of, reads, text_files
from adaptinf.texts import listed
from adaptinf.typing import FloatArray

Uses: TypeAlias = Callable[[Sequence[str] | None], dict[str, Use]]
"""A function that returns how columns with these names are used; None stands for columns named one by one."""
NO_ROLES: Mapping[str, str] = {}
NO_NUMBERS: Mapping[str, bool] = {}
_BY_ARROW = (nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT, nw.Implementation.IBIS)
"""Engines whose own conversions to pandas trigger warnings from pandas 3."""
_NANOSECONDS = "TIMESTAMPTZ_NS"
_DIGITS = 18
"""Number of decimal digits that 64-bit integers can always represent."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """Lazily read rows and, if they come from several files, the types of each file's columns."""

    rows: nw.LazyFrame[Any]
    files: Mapping[str, Mapping[str, str]]


def opened(
    table: Any, dialect: Dialect = PLAIN, uses: Uses = lambda names: {}, roles: Mapping[str, str] = NO_ROLES
) -> Opened:
    """The rows of a frame, a file, or several files; `uses` gives the use of each column."""
    files: Mapping[str, Mapping[str, str]] = {}
    if isinstance(table, (str, PathLike)) and str(table) != STANDARD_INPUT:
        table, files = _relation(as_path("aggregate", "table", table), dialect, uses, roles)
    elif isinstance(table, (str, PathLike, bytes)) or dialect.said:
        table = _in_memory(table, dialect, uses)
    try:
        return Opened(lazily(table), files)
    except (TypeError, AttributeError):
        kinds = "a frame that narwhals can read, or the name of Parquet or CSV files"
        raise ParameterError("aggregate", [f"table must be {kinds}, got {type(table).__name__}"]) from None


def _in_memory(source: Any, dialect: Dialect, uses: Uses) -> Any:
    """The rows of files that DuckDB does not read, loaded into memory as a frame."""
    table = read_table(source, dialect, list(uses(None)), "aggregate", "table")
    own = uses(table.columns)
    frame, _ = table.typed(own)
    times = {name: instants(frame[name]) for name, use in own.items() if use == "order"}
    return frame.assign(**{name: column for name, column in times.items() if column is not None})


def lazily(table: Any) -> nw.LazyFrame[Any]:
    """A frame from any engine, wrapped by narwhals."""
    with without_warnings():
        rows: nw.LazyFrame[Any] = nw.from_native(table).lazy()
    return rows


def _relation(
    path: Path, dialect: Dialect, uses: Uses, roles: Mapping[str, str]
) -> tuple[Any, dict[str, dict[str, str]]]:
    """Files as a DuckDB relation, or as a frame if DuckDB cannot read them, with their columns' types."""
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError("a query over files", "duckdb", "large") from None
    if os.path.isdir(path):
        files = parts_of(path, "aggregate")
    else:
        check_suffix(path, "aggregate")
        matching = duckdb.execute("SELECT file FROM glob(?) ORDER BY file", [str(path)]).fetchall()
        files = [Path(file) for (file,) in matching]
    if not files:
        raise FileNotFoundError(f"aggregate: file {path} does not exist")
    kind = kind_of(files[0])
    if kind in TEXT:
        files = [file for file in files if not is_empty(file)] if len(files) > 1 else files
        return _of_text(files, dialect, uses, roles)
    if kind not in PARQUET:
        if len(files) > 1 and not os.path.isdir(path):
            refuse("aggregate", [f"several files must end in .parquet or .csv, got {path.name!r}"])
        return _in_memory(path, dialect, uses), {}
    given = " and ".join(f"{name}=" for name in dialect.said)
    refuse("aggregate", [f"{given} applies to text files; {path} is Parquet"] if given else [])
    types = {}
    for file in files:
        try:
            part = duckdb.read_parquet(str(file))
        except duckdb.Error as error:
            raise _damaged(file, error) from None
        types[str(file)] = dict(zip(part.columns, map(str, part.types), strict=True))
    with naming_failures():
        return duckdb.read_parquet(list(map(str, files)), union_by_name=True), types


def _of_text(
    files: Sequence[Path], dialect: Dialect, uses: Uses, roles: Mapping[str, str]
) -> tuple[Any, dict[str, dict[str, str]]]:
    """Text files as a DuckDB relation, whose columns have the types that a log would use."""
    import duckdb

    for file in files:
        check_regular(file, "aggregate")
    others = [file for file in files if not reads(file, dialect)]
    if others:
        if len(files) > 1:
            told = (
                "if several files are given, each must be complete and in UTF-8, uncompressed or "
                "compressed with gzip or Zstandard"
            )
            refuse("aggregate", [f"{told}: convert {others[0].name}, or read one file"])
        return _in_memory(files[0], dialect, uses), {}
    wanted = list(uses(None))
    try:
        texts = text_files(files, dialect, wanted)
    except duckdb.Error as error:
        raise _damaged_text(files, dialect, wanted, error) from None
    own = uses(list(dict.fromkeys(name for names in texts.names.values() for name in names)))
    kinds = {file: dict.fromkeys(names, "VARCHAR") for file, names in texts.names.items()}
    twice = [
        f"column {name!r} occurs several times in the header of {Path(file).name}; rename or drop one"
        for name in own
        for file, names in texts.names.items()
        if names.count(name) > 1
    ]
    refuse("aggregate", twice)
    problems = Findings()
    check_files(kinds, list(own), problems)
    problems.raise_if_any("the table")
    if not own:  # A file without any of the requested columns may not be a table at all.
        for file in files:
            _check_divided(file, dialect)
        empty = not any(texts.names.values())
        refuse("aggregate", [f"{files[0]} is not a readable CSV file: it contains no text"] if empty else [])
        return pd.DataFrame(columns=list(dict.fromkeys(texts.names[str(files[0])]))), {}
    try:
        relation, times = texts.typed(own, roles)
    except duckdb.Error as error:
        raise _damaged_text(files, dialect, wanted, error) from None
    return relation, {file: {**names, **times} for file, names in kinds.items()}


def _damaged_text(
    files: Sequence[Path], dialect: Dialect, wanted: Sequence[str], error: Exception
) -> AdaptinfError:
    """The problems in text files that the engine cannot split, such as lines with too many fields."""
    try:
        for file in files:
            _check_divided(file, dialect)
    except ParameterError as found:
        return found
    names = names_of(files[0], dialect)
    if lacking := [name for name in wanted if name not in names]:
        told = f"{files[0]} has no column {listed(lacking)}; its first line has {listed(names)}"
        return ParameterError("aggregate", [told])
    return _damaged(files[0], error)


def _check_divided(file: Path, dialect: Dialect) -> None:
    try:
        check_divided(file, dialect)
    except ValueError as found:
        raise ParameterError("aggregate", [f"{file} is not a readable CSV file: {found}"]) from None


def _damaged(file: Path, error: Exception) -> FileError:
    return FileError(str(file), "read", f"it is truncated, empty or damaged ({_first_line(error)})")


def check_files(files: Mapping[str, Mapping[str, str]], names: Sequence[str], found: Findings) -> None:
    """Report files in which a column of other files is absent or has entries of a different kind."""
    for name in names:
        kinds = {Path(file).name: _kind(types.get(name)) for file, types in files.items()}
        if len(set(kinds.values())) < 2:
            continue
        without = [file for file, kind in kinds.items() if not kind]
        if without:
            found.add(
                "missing-column",
                f"column {name!r} is missing in {listed(without)}, but not in the other files",
            )
            continue
        usual = next(iter(kinds.values()))
        other, kind = next((file, kind) for file, kind in kinds.items() if kind != usual)
        found.add(
            "mixed-types",
            f"column {name!r} contains {usual} in {next(iter(kinds))!r} and {kind} in {other!r}: write it "
            "with one type in all files",
        )


def _kind(type_name: str | None) -> str:
    """The kind of content that a column of this type has, which must be the same in all files."""
    if type_name is None:
        return ""
    numeric = type_name.startswith(("DECIMAL", "DOUBLE", "FLOAT", "HUGEINT", "UHUGEINT"))
    if numeric or type_name.endswith("INT") or type_name in ("INTEGER", "UINTEGER"):
        return "numbers"
    return "text" if type_name == "VARCHAR" or type_name.startswith("ENUM") else type_name.lower()


def readied(
    rows: nw.LazyFrame[Any], names: Sequence[str], numbers: Mapping[str, bool] = NO_NUMBERS
) -> nw.LazyFrame[Any]:
    """Rows whose named columns have the types that a log would use; other columns are unchanged.

    The keys of `numbers` are the columns of numbers, and the values state whether booleans are allowed in
    them.
    """
    native, kind = rows.to_native(), rows.implementation
    if kind is nw.Implementation.PANDAS:
        return lazily(_plain(native[list(names)], numbers))
    if kind is nw.Implementation.DASK:
        meta = _plain(native._meta[list(names)], numbers)
        return lazily(native[list(names)].map_partitions(_plain, numbers, meta=meta))
    if kind is nw.Implementation.PYARROW:
        return lazily(_plain_arrow(native.select(list(names))))
    if kind in (nw.Implementation.DUCKDB, nw.Implementation.IBIS):
        rows = _with_instants(rows, names)
    return _with_whole(rows, names)


def _with_whole(rows: nw.LazyFrame[Any], names: Sequence[str]) -> nw.LazyFrame[Any]:
    """Rows in which decimals without a fractional part are converted to 64-bit integers, if they fit."""
    schema = rows.collect_schema()
    decimals = {name: kind for name in names if isinstance(kind := schema[name], nw.Decimal)}
    whole = [name for name, kind in decimals.items() if kind.scale == 0 and kind.precision <= _DIGITS]
    return rows.with_columns(nw.col(*whole).cast(nw.Int64())) if whole else rows


def _with_instants(rows: nw.LazyFrame[Any], names: Sequence[str]) -> nw.LazyFrame[Any]:
    """Rows from DuckDB, also through ibis, with nanosecond times cast to a type that narwhals supports."""
    native, schema = rows.to_native(), rows.collect_schema()
    unknown = [name for name in names if isinstance(schema[name], nw.Unknown)]
    if rows.implementation is nw.Implementation.IBIS:
        own = native.schema()
        fine = [name for name in unknown if _NANOSECONDS in str(own[name])]
        return lazily(native.mutate(**{name: native[name].cast("timestamp('UTC', 6)") for name in fine}))
    types = dict(zip(native.columns, map(str, native.types), strict=True))
    fine = [name for name in unknown if types[name] == _NANOSECONDS]
    if not fine:
        return rows
    import duckdb

    cast = [duckdb.ColumnExpression(name).cast("TIMESTAMPTZ").alias(name) for name in fine]
    return lazily(native.select(duckdb.StarExpression(exclude=fine), *cast))


def no_labels(rows: nw.LazyFrame[Any], name: str, times: bool = False) -> bool:
    """Whether a pandas column contains objects that are neither labels nor, if `times` is true, dates."""
    if rows.implementation is not nw.Implementation.PANDAS:
        return False
    column = rows.to_native()[name]
    if column.dtype != object:
        return False
    read = read_series(column)
    bad = read_labels(read).bad
    if times:
        bad = bad & ~np.array([isinstance(value, datetime.date) for value in read.values], dtype=bool)
    return bool(bad.any())


def mixed_truths(rows: nw.LazyFrame[Any], name: str) -> bool:
    """Whether a pandas column mixes booleans with other values, so that pandas would group True with 1."""
    if rows.implementation is not nw.Implementation.PANDAS:
        return False
    column = rows.to_native()[name]
    if column.dtype != object:
        return False
    kinds = set(map(type, column.dropna()))
    return bool(kinds & {bool, np.bool_}) and not kinds <= {bool, np.bool_}


def _plain(frame: pd.DataFrame, numbers: Mapping[str, bool] = NO_NUMBERS) -> pd.DataFrame:
    """A pandas frame in which Arrow types, categories and numbers stored as objects have been converted."""
    columns = {name: _plain_series(frame[name], numbers.get(str(name))) for name in frame}
    return pd.DataFrame(columns, index=frame.index)


def _plain_series(series: pd.Series[Any], truths: bool | None) -> Any:
    """`_plain` for one column; `truths` states whether booleans are allowed, None in non-numeric columns."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biufMm" and dtype != np.float16:
        return series
    column = read_series(series)
    values, missing = column.values, column.missing
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("decimal"):
        # The type decides, not the values, because partitions of a table, and empty ones that represent them,
        # must be treated alike.
        arrow = dtype.pyarrow_dtype
        if arrow.scale or arrow.precision > _DIGITS:
            return _floats(series)
        return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing)
    if values.dtype.kind == "b":
        return pd.arrays.BooleanArray(values.astype(bool), missing)
    if values.dtype.kind in "iu":
        numbers = values.astype(np.float64)
        if column.decimals and truths is not None and (np.abs(numbers) >= EXACT).any():
            # As for engines, large decimals are refused because of their size.
            return np.where(missing, np.nan, numbers)
        return pd.arrays.IntegerArray(values.copy(), missing)
    objects = values.dtype.kind == "O" and truths is not None and not missing.all()
    if objects and not no_number(column, bool(truths)).any():
        exact = number_column(column)
        return series if exact.inexact is not None and exact.inexact.any() else exact.values
    if values.dtype.kind == "f":
        return np.where(missing, np.nan, values.astype(np.float64))
    if values.dtype.kind == "O" and str(dtype).partition("[")[0] in (
        "category",
        "dictionary<values",
        "string_view",
    ):
        held = values.copy()
        held[missing] = None  # A missing category is stored as another one, so it is removed here.
        return held
    return series  # Times with zones, text and objects need no conversion.


def _floats(decimals: pd.Series[Any]) -> FloatArray:
    """Decimals converted to the nearest floats, with NaN for missing values."""
    found = [np.nan if value is None or value is pd.NA else float(value) for value in decimals]
    return np.array(found, dtype=np.float64)


def _plain_arrow(table: Any) -> Any:
    """An Arrow table without dictionary columns, and without types on which Arrow can hardly compute."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_decimal(kind) and kind.scale == 0 and kind.precision <= _DIGITS:
            kind = pa.int64()
        elif pa.types.is_decimal(kind) or pa.types.is_float16(kind):
            kind = pa.float64()
        elif pa.types.is_string_view(kind):
            kind = pa.string()
        if kind != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


@contextmanager
def naming_failures() -> Iterator[None]:
    """Convert the exceptions of any engine into a single type of error, with advice."""
    try:
        yield
    except AdaptinfError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {_first_line(error)}"
        if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
            code, told = (
                "out-of-memory",
                f"the engine ran out of memory ({said}): allow it more, aggregate parts of the table and "
                "merge them (a + b), or use longer batches or fewer groups",
            )
        else:
            code, told = (
                "engine-stopped",
                f"the engine that holds the table stopped ({said}): check that its files are complete, that "
                f"each column has one type, and that the query of collect=False runs there",
            )
        raise LogValidationError([Problem(code, told)], "the table") from error


def _first_line(error: Exception) -> str:
    return f"{next(iter(str(error).splitlines()), ''):.200}"


def collected(query: nw.LazyFrame[Any]) -> pd.DataFrame:
    """The result of a query."""
    if query.implementation in _BY_ARROW:
        return pd.DataFrame(query.collect("pyarrow").to_native().to_pandas())
    return pd.DataFrame(query.collect("pandas").to_native())


@contextmanager
def waiting(shown: bool) -> Iterator[None]:
    """Display the elapsed time if requested, because most engines do not report progress."""
    if not shown:
        yield
        return
    from tqdm import tqdm  # tqdm takes longer to load than a small table takes to aggregate.

    done = threading.Event()
    with tqdm(bar_format="aggregate: {elapsed}") as line:
        thread = threading.Thread(target=_refresh, args=(line, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            line.refresh()


def _refresh(line: Any, done: threading.Event) -> None:
    while not done.wait(1.0):
        line.refresh()


def as_number(name: str, schema: Mapping[str, nw.dtypes.DType]) -> nw.Expr:
    """A column as floats; integers that floats cannot represent become missing."""
    column, kind = nw.col(name), schema[name]
    if is_long(kind):
        exact = column <= nw.lit(EXACT, dtype=kind)
        if not isinstance(kind, (nw.UInt64, nw.UInt128)):
            exact = exact & (column >= -EXACT)
        column = nw.when(exact).then(column)  # Arrow refuses to cast other integers to floats.
    return column.cast(nw.Float64())


def is_long(kind: nw.dtypes.DType) -> bool:
    """Whether a type includes integers that floats cannot represent."""
    return isinstance(kind, (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128))
