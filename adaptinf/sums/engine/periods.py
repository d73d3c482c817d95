"""Times truncated to periods, in UTC or a named zone; times without a zone are truncated as written.

In every engine, instants are first converted to the clock of one zone, so the zones of the process, the
connection and the column do not matter. Frames of pandas (and of Dask, part by part) and tables of Arrow are
truncated by NumPy; other engines truncate in their own query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.log.validation.frame_columns import Findings, read_series
from adaptinf.log.validation.times.time_periods import UTC, clock_of, cut_to_periods, zone_problem
from adaptinf.parameters import refuse
from adaptinf.sums.engine.engine_tables import lazily

_TRUNCATED = {"hour": "1h", "day": "1d", "week": "1d", "month": "1mo"}
"""Narwhals' names for periods; for a week, a time is truncated to its day and moved back to Monday."""
WITHIN = "__within"
"""Column with the pieces of a period, used to check whether arms' shares change within the period."""
_TIMES = (nw.Datetime, nw.Date)
_TO_CLOCK: dict[str, tuple[str, bool, str]] = {
    "duckdb": ("timezone", False, ""),
    "postgres": ("timezone", False, ""),
    "bigquery": ("datetime", True, ""),
    "snowflake": ("convert_timezone", False, "to_timestamp_ntz"),
    "databricks": ("convert_timezone", False, ""),
    "pyspark": ("convert_timezone", False, ""),
}
"""For each engine of ibis: the function that converts an instant to a zone's clock time, whether the instant
is its first argument, and the function that removes a zone that the result still has.
"""


def check_zone(timezone: object, every: str | None) -> None:
    """Refuse a name that is not an IANA time zone, or a zone given without periods."""
    if timezone is None:
        return
    problems = []
    if problem := zone_problem(timezone):
        problems.append(problem)
    elif every is None:
        problems.append(
            "'timezone' applies only with every=, which divides times into hours, days, weeks or months"
        )
    refuse("aggregate", problems)


def check_times(
    rows: nw.LazyFrame[Any], name: str, every: str | None, zone: str | None, found: Findings
) -> None:
    """Report a column whose type cannot be truncated; pandas columns are checked later, when truncated."""
    if every is None or rows.implementation in (nw.Implementation.PANDAS, nw.Implementation.DASK):
        return
    kind = rows.collect_schema()[name]
    if not isinstance(kind, _TIMES):
        found.add("bad-batch", not_times(name, str(kind)))
    elif zone is not None and getattr(kind, "time_zone", None) is None:
        found.add("bad-timezone", not_instants(name, zone))


def not_times(name: str, kind: str) -> str:
    """Message that a column cannot be truncated to periods."""
    return (
        f"every= divides dates and times, but column {name!r} is of type {kind}: omit every= if the column "
        "contains batches, or convert it to times (pandas.to_datetime, CAST AS TIMESTAMP)"
    )


def not_instants(name: str, zone: str) -> str:
    """Message that times without a zone are not instants."""
    return (
        f"'timezone' {zone!r} applies to instants, but the times of column {name!r} have no zone or offset "
        "and are divided as written: omit 'timezone', or convert them to times with a zone"
    )


def in_periods(
    rows: nw.LazyFrame[Any], batch: str, every: str | None, zone: str | None
) -> tuple[nw.LazyFrame[Any], nw.Expr, nw.Expr | None]:
    """The rows, their batches (periods, or the column as it is), and the pieces of the batches."""
    if every is None:
        return rows, nw.col(batch), None
    kind = rows.implementation
    if kind in (nw.Implementation.PANDAS, nw.Implementation.PYARROW, nw.Implementation.DASK):
        return lazily(_replaced(rows.to_native(), batch, every, zone)), nw.col(batch), nw.col(WITHIN)
    if getattr(rows.collect_schema()[batch], "time_zone", None) is not None:
        rows = lazily(_CLOCKS.get(kind, _clock_of_narwhals)(rows, batch, zone or UTC))
    time = nw.col(batch)
    if isinstance(rows.collect_schema()[batch], nw.Date):
        time = time.cast(nw.Datetime("us"))
    return rows, _start(time, every).alias(batch), _within(time, every).alias(WITHIN)


def instants_of(starts: NDArray[Any], zone: str | None) -> NDArray[Any]:
    """Convert the starts of periods from the clock of a zone to UTC; shape (B,).

    A start that occurs twice because clocks go back is taken at its first occurrence; a start that clocks
    skip becomes the end of the gap.
    """
    if zone is None or zone == UTC:
        return starts
    clock = pd.DatetimeIndex(starts)
    local = clock.tz_localize(zone, ambiguous=np.ones(len(clock), dtype=bool), nonexistent="shift_forward")
    return np.asarray(local.tz_convert(UTC).tz_localize(None))


def _replaced(native: Any, batch: str, every: str, zone: str | None) -> Any:
    """A pandas or Dask frame, or an Arrow table, with its times truncated and a column of pieces added."""
    if isinstance(native, pd.DataFrame):
        return native.assign(**_cut(native[batch], batch, every, zone))
    if hasattr(native, "map_partitions"):
        how = batch, every, zone
        return native.map_partitions(_replaced, *how, meta=_replaced(native._meta, *how))
    cut = _cut(native.column(batch).to_pandas(types_mapper=pd.ArrowDtype), batch, every, zone)
    place = native.column_names.index(batch)
    return native.set_column(place, batch, [cut[batch]]).append_column(WITHIN, [cut[WITHIN]])


def _cut(times: pd.Series[Any], batch: str, every: str, zone: str | None) -> dict[str, NDArray[Any]]:
    """The start of each time's period, and the piece of the period; each has shape (T,)."""
    start, within = cut_to_periods(_clock(times, batch, zone), every)
    return {batch: start, WITHIN: within}


def _clock(times: pd.Series[Any], name: str, zone: str | None) -> NDArray[Any]:
    """Instants converted to the clock time of a zone, shape (T,); times without a zone are unchanged."""
    found, dtype = Findings(), times.dtype
    zoned = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None) is not None
    if pd.api.types.infer_dtype(times, skipna=True) in ("date", "datetime") and dtype.kind == "O":
        aware = {getattr(time, "tzinfo", None) is not None for time in times[times.notna()]}
        if len(aware) > 1:
            found.add("bad-batch", f"column {name!r} mixes times with an offset and times without")
        zoned, times = True in aware, pd.to_datetime(times, utc=True)
    clock = read_series(times).values  # Times with a zone are read in UTC.
    if clock.dtype.kind != "M" and len(clock):
        found.add("bad-batch", not_times(name, str(dtype)))
    elif zone is not None and not zoned and not found.problems:
        found.add("bad-timezone", not_instants(name, zone))
    found.raise_if_any("the table")
    return clock_of(clock, zone)


def _start(time: nw.Expr, every: str) -> nw.Expr:
    """Start of the period of a clock time; weeks begin on Monday."""
    found = start = time.dt.truncate(_TRUNCATED[every])
    day = time.dt.weekday() % 7  # Sunday is 0 in Spark and 7 in other engines.
    for later in range(1, 7) if every == "week" else ():
        found = nw.when(day == (later + 1) % 7).then(start.dt.offset_by(f"-{later}d")).otherwise(found)
    return found


def _within(time: nw.Expr, every: str) -> nw.Expr:
    """Pieces: ten-minute intervals of an hour, hours of a day, or days and hours of a week or a month."""
    if every == "hour":
        return time.dt.minute() // 10
    hour = time.dt.hour()
    days = {"week": time.dt.weekday, "month": time.dt.day}
    # Polars stores days in 8 bits, so hours of a month would overflow.
    return hour if every == "day" else days[every]().cast(nw.Int64()) * 24 + hour


def _clock_of_narwhals(rows: nw.LazyFrame[Any], batch: str, zone: str) -> Any:
    """Clock time for a Polars frame, whose time zones narwhals supports."""
    clock = nw.col(batch).dt.convert_time_zone(zone).dt.replace_time_zone(None)
    return rows.with_columns(clock).to_native()


def _clock_of_duckdb(rows: nw.LazyFrame[Any], batch: str, zone: str) -> Any:
    """Clock time for a relation, whose instants would otherwise be truncated in the connection's zone."""
    import duckdb

    call = duckdb.FunctionExpression(
        "timezone", duckdb.ConstantExpression(zone), duckdb.ColumnExpression(batch)
    )
    others = duckdb.StarExpression(exclude=[batch])
    return rows.to_native().select(others, call.alias(batch))


def _clock_of_ibis(rows: nw.LazyFrame[Any], batch: str, zone: str) -> Any:
    """Clock time for an ibis table, computed by a function that is specific to the engine."""
    import ibis

    table = rows.to_native()
    engine = table.get_backend().name
    if engine not in _TO_CLOCK:
        refuse(
            "aggregate",
            [f"times with a zone cannot be divided into periods in {engine}: use local times without a zone"],
        )
    name, instant_first, dropping = _TO_CLOCK[engine]
    time, told = table[batch], ibis.literal(zone)
    clock = _called(name, time, told) if instant_first else _called(name, told, time)
    return table.mutate(**{batch: _called(dropping, clock) if dropping else clock})


def _called(name: str, *arguments: Any) -> Any:
    """A function, evaluated by ibis's engine, that returns a time without a zone."""
    import ibis

    def one(first: Any) -> Any:
        """A function with one argument."""

    def two(first: Any, second: Any) -> Any:
        """A function with two arguments."""

    signature = tuple(each.type() for each in arguments), ibis.dtype("timestamp")
    call = ibis.udf.scalar.builtin(one if len(arguments) == 1 else two, name=name, signature=signature)
    return call(*arguments)


def _clock_of_spark(rows: nw.LazyFrame[Any], batch: str, zone: str) -> Any:
    """Clock time for a Spark frame, whose instants would otherwise be truncated in the session's zone."""
    from pyspark.sql import functions

    clock = functions.convert_timezone(None, functions.lit(zone), functions.col(batch))
    return rows.to_native().withColumn(batch, clock)


_CLOCKS: dict[nw.Implementation, Callable[[nw.LazyFrame[Any], str, str], Any]] = {
    nw.Implementation.DUCKDB: _clock_of_duckdb,
    nw.Implementation.IBIS: _clock_of_ibis,
    nw.Implementation.PYSPARK: _clock_of_spark,
    nw.Implementation.PYSPARK_CONNECT: _clock_of_spark,
}
