"""Where rows come from: frames of any engine and files, lazily, and what each engine needs of its own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from adaptinf.errors import MissingDependencyError, ParameterError
from adaptinf.files import as_path

PERIODS = {"hour": "1h", "day": "1d", "week": "1d", "month": "1mo"}
"""What times are cut to; weeks are days that are moved back to their Monday."""
_BY_ARROW = (nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT, nw.Implementation.IBIS)
"""Engines whose own ways to pandas warn of pandas 3."""
_HEAD = 1_000
"""Rows whose means are the centres, where none is given."""


def opened(table: Any) -> nw.LazyFrame[Any]:
    """The rows, lazily."""
    if isinstance(table, (str, PathLike)):
        table = _files(as_path("aggregate", "table", table))
    try:
        return _lazy(table)
    except (TypeError, AttributeError):
        kinds = "a frame that narwhals reads, or the name of Parquet or CSV files"
        raise ParameterError("aggregate", [f"table must be {kinds}, got {type(table).__name__}"]) from None


def _lazy(table: Any) -> nw.LazyFrame[Any]:
    with warnings.catch_warnings():
        # Of a package that narwhals is to want for Dask, and that is not to be had yet.
        warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
        rows: nw.LazyFrame[Any] = nw.from_native(table).lazy()
    return rows


def _files(path: Path) -> Any:
    """Files as a relation of DuckDB."""
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError("a query over files", "duckdb", "large") from None
    kind = path.suffix.lower()
    if kind not in (".parquet", ".pq", ".csv"):
        raise ParameterError("aggregate", [f"files must end in .parquet, .pq or .csv, got {path.name!r}"])
    try:
        return duckdb.read_csv(str(path)) if kind == ".csv" else duckdb.read_parquet(str(path))
    except duckdb.IOException as error:
        raise FileNotFoundError(f"aggregate: {error}") from None


def collected(query: nw.LazyFrame[Any]) -> pd.DataFrame:
    """What a query returns."""
    if query.implementation in _BY_ARROW:
        return pd.DataFrame(query.collect("pyarrow").to_native().to_pandas())
    return pd.DataFrame(query.collect("pandas").to_native())


@contextmanager
def waiting(shown: bool) -> Iterator[None]:
    """A line with the time that has passed, where it is wanted: of most engines no more can be known."""
    if not shown:
        yield
        return
    from tqdm import tqdm  # loads when needed: longer than a first table

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


def usual_values(rows: nw.LazyFrame[Any], names: Sequence[str]) -> list[float]:
    """Means of columns over the first finite entries that the engine returns, 0 without any."""
    wanted = [nw.col(name).cast(nw.Float64()).alias(f"value_{place}") for place, name in enumerate(names)]
    head = collected(rows.select(*wanted).head(_HEAD))
    columns = [np.asarray(head[f"value_{place}"], dtype=np.float64) for place in range(len(names))]
    known = [column[np.isfinite(column)] for column in columns]
    return [float(column.mean()) if len(column) else 0.0 for column in known]


def in_periods(rows: nw.LazyFrame[Any], batch: str, every: str | None) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    """Rows, and their batches: the times of a column cut to periods, or the column itself."""
    if every is None:
        return rows, nw.col(batch)
    if rows.implementation is nw.Implementation.DASK:  # which narwhals cuts to hours and days alone
        cut = rows.to_native().map_partitions(partial(_cut, batch=batch, every=every))
        return _lazy(cut), nw.col(batch)
    return rows, _start(batch, every)


def _cut(part: pd.DataFrame, batch: str, every: str) -> pd.DataFrame:
    return pd.DataFrame(nw.from_native(part).with_columns(_start(batch, every)).to_native())


def _start(batch: str, every: str) -> nw.Expr:
    """When the period of a time began; weeks begin on Monday."""
    day = nw.col(batch).dt.weekday() % 7  # Sunday, 7 elsewhere, is 0 in Spark
    found = start = nw.col(batch).dt.truncate(PERIODS[every])
    for later in range(1, 7) if every == "week" else ():
        found = nw.when(day == (later + 1) % 7).then(start.dt.offset_by(f"-{later}d")).otherwise(found)
    return found.alias(batch)
