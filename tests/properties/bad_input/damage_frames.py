"""Damage to a frame in memory: values, types of columns, names, rows, and things that are no frame."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from intact import Trial

Rng = np.random.Generator

VALUES: list[Any] = [
    None, np.nan, pd.NA, pd.NaT, np.inf, -np.inf, 2**70, -(2**70), 2**53 + 1, 2**63, 10**400, 5e-324, 1e308,
    -1e308,
    -0.5, -1, 0, 0.0, -0.0, 1, 1.0, 1.5, 2, 50.0, 1e-9, True, False, "", " ", "0.5", "1", "abc", "nan", "NA",
    "50%",
    "0,5", "1e999", b"0.5", bytearray(b"x"), Decimal("0.5"), Decimal("NaN"), Fraction(1, 2), 0.5 + 0j,
    complex("nan"),
    datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5, 9), datetime.time(9), datetime.timedelta(1),
    pd.Timestamp("2024-01-05"), pd.Timestamp("2024-01-05", tz="Asia/Tokyo"), pd.Timedelta(1, "s"),
    pd.Period("2024-01"),
    pd.Interval(0, 1), np.datetime64("2024-01-05"), np.datetime64("NaT"), np.timedelta64(1, "s"),
    np.float32(0.1),
    np.float16(0.1), np.longdouble("0.1"), np.int8(1), np.uint64(2**64 - 1), np.bool_(True), np.str_("a"),
    np.void(b"1"),
    [0.5], (0.5,), {0.5}, {"x": 1}, frozenset(), range(3), np.ones(2), np.array(0.5), np.ones((2, 2)),
    pd.Series([0.5]),
    pd.DataFrame({"x": [1]}), slice(1), object(), object, len, Ellipsis, NotImplemented, ValueError("x"),
    "a" * 100_000,
    "\x00", "\ud800", "\ufeff", "line\nbreak", "\x1b[31m", "=1+1", "ä", "\u0663", "\uff11",
]  # fmt: skip


def spoilt(trial: Trial, row: int, name: str, value: Any) -> Any:
    """A frame with one value replaced."""
    columns = dict(trial.columns)
    column = pd.Series(columns[name], dtype=object).to_numpy(copy=True)
    column[row] = None
    holder = list(column)
    holder[row] = value
    columns[name] = holder
    return frame_of(columns)


def frame_of(columns: dict[str, list[Any]]) -> pd.DataFrame:
    """A frame whose columns hold the very values."""
    made: dict[str, Any] = {}
    for name, values in columns.items():
        kinds = set(map(type, values))
        if kinds <= {float, int, type(None)} and all(abs(value or 0) <= 2**53 for value in values):
            kinds = {float}  # as pandas takes them
        if kinds <= {float} or kinds <= {int} or kinds <= {bool} or kinds <= {str}:
            try:
                made[name] = pd.Series(values)
                continue
            except (OverflowError, UnicodeEncodeError):
                pass
        made[name] = objects(values)
    return pd.DataFrame(made)


def objects(values: list[Any]) -> Any:
    """An array of objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        array[row] = value
    return pd.Series(array, dtype=object)


def used(trial: Trial) -> list[str]:
    """Columns that the log is made of."""
    given = [trial.options.get(role) for role in ("action", "reward", "propensity", "round", "batch", "unit")]
    named = trial.options.get("propensities", {})
    every = (
        [name for name in trial.columns if name.startswith("prob ")]
        if isinstance(named, str)
        else named.values()
    )
    return [*filter(None, given), *trial.options["context"], *every]


def some_column(rng: Rng, trial: Trial) -> str:
    """A column that is used."""
    names = used(trial)
    return names[rng.integers(len(names))]


def one_value(value: Any) -> Callable[[Rng, Trial], Any]:
    """One value of one column is this."""
    return lambda rng, trial: spoilt(trial, int(rng.integers(trial.size)), some_column(rng, trial), value)


def whole_column(value: Any) -> Callable[[Rng, Trial], Any]:
    """A whole column is this."""

    def make(rng: Rng, trial: Trial) -> Any:
        return frame_of({**trial.columns, some_column(rng, trial): [value] * trial.size})

    return make


DTYPES = [
    "category", "object", "string", "str", "string[pyarrow]", "Int64", "Int8", "UInt64", "Float64", "Float32",
    "boolean", "float16", "float32", "longdouble", "int8", "uint8", "int64", "uint64", "bool", "complex128",
    "S8", "U8",
    "datetime64[ns]", "timedelta64[s]", "Sparse[float]", "Sparse[int]", "int64[pyarrow]", "double[pyarrow]",
    "float[pyarrow]", "bool[pyarrow]", "decimal128(9, 3)[pyarrow]", "timestamp[ns][pyarrow]",
    "date32[pyarrow]",
    "dictionary<values=string, indices=int32, ordered=0>[pyarrow]", "list<item: double>[pyarrow]",
    "binary[pyarrow]",
    "period[M]", "interval", "datetime64[ns, UTC]",
]  # fmt: skip


def cast(dtype: str) -> Callable[[Rng, Trial], Any]:
    """One column, or all, of another type; as it is where pandas cannot make it."""

    def make(rng: Rng, trial: Trial) -> Any:
        frame = frame_of(trial.columns)
        names = used(trial) if rng.random() < 0.3 else [some_column(rng, trial)]
        for name in names:
            try:
                frame[name] = frame[name].astype(dtype)
            except Exception:  # pandas' own, of any kind: this column stays
                continue
        return frame

    return make


def polars_frame(trial: Trial) -> pl.DataFrame:
    return pl.DataFrame({name: polars_series(name, values) for name, values in trial.columns.items()})


def polars_series(name: str, values: list[Any]) -> pl.Series:
    """A column, of floats where some are: polars takes no whole numbers beside them."""
    mixed = {int, float} <= set(map(type, values))
    return pl.Series(name, [float(v) if mixed and v is not None else v for v in values])


POLARS = [
    pl.Float32, pl.Int8, pl.UInt64, pl.Int128, pl.Boolean, pl.String, pl.Categorical, pl.Binary,
    pl.Decimal(20, 3),
    pl.Date, pl.Datetime("us"), pl.Duration, pl.Time, pl.List(pl.Float64), pl.Null,
]  # fmt: skip


def polars_cast(dtype: Any) -> Callable[[Rng, Trial], Any]:
    """A polars frame with one column of another type; as it is where polars cannot make it."""

    def make(rng: Rng, trial: Trial) -> Any:
        frame, name = polars_frame(trial), some_column(rng, trial)
        try:
            return frame.with_columns(pl.col(name).cast(dtype))
        except Exception:  # polars' own, of any kind
            return frame

    return make


def polars_null(rng: Rng, trial: Trial) -> Any:
    name, row = some_column(rng, trial), int(rng.integers(trial.size))
    values = [None if at == row else value for at, value in enumerate(trial.columns[name])]
    return polars_frame(trial).with_columns(polars_series(name, values))


def polars_nested(rng: Rng, trial: Trial) -> Any:
    name = some_column(rng, trial)
    return polars_frame(trial).with_columns(pl.struct(pl.col(name)).alias(name))


def names(change: Callable[[Rng, list[Any]], Any]) -> Callable[[Rng, Trial], Any]:
    """A frame of other names of columns."""

    def make(rng: Rng, trial: Trial) -> Any:
        frame = frame_of(trial.columns)
        listed: list[Any] = list(frame.columns)
        frame.columns = pd.Index(change(rng, listed) or listed, dtype=object, tupleize_cols=False)
        return frame

    return make


def put(rng: Rng, listed: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    at = int(rng.integers(len(listed)))
    return [change(name) if place == at else name for place, name in enumerate(listed)]


ODD_NAMES: list[Any] = [
    None,
    np.nan,
    3,
    ("arm", 1),
    b"arm",
    "",
    pd.Timestamp("2024-01-01"),
    "t",
    "propensity_a",
    "arm",
]


def index(make_index: Callable[[Rng, int], Any]) -> Callable[[Rng, Trial], Any]:
    """A frame with an index, which does not count."""
    return lambda rng, trial: frame_of(trial.columns).set_axis(make_index(rng, trial.size), axis=0)


def rows(order: Callable[[Rng, int], list[int]]) -> Callable[[Rng, Trial], Any]:
    """Some rows, in some order."""
    return lambda rng, trial: frame_of(trial.rows(order(rng, trial.size)).columns)


def scaled(factor: float) -> Callable[[Rng, Trial], Any]:
    """Numbers of one column times a factor."""

    def make(rng: Rng, trial: Trial) -> Any:
        listed = [name for name in used(trial) if type(trial.columns[name][0]) is float]
        name = listed[rng.integers(len(listed))]
        return frame_of({**trial.columns, name: [value * factor for value in trial.columns[name]]})

    return make


def labelled(change: Callable[[str], Any]) -> Callable[[Rng, Trial], Any]:
    """One label of an arm changed, as text."""

    def make(rng: Rng, trial: Trial) -> Any:
        row = int(rng.integers(trial.size))
        return spoilt(trial, row, "arm", change(str(trial.columns["arm"][row])))

    return make


def lost(rng: Rng, trial: Trial) -> Any:
    return frame_of(trial.columns).drop(columns=some_column(rng, trial))


def one_arm(rng: Rng, trial: Trial) -> Any:
    return rows(
        lambda _, size: [row for row in range(size) if trial.columns["arm"][row] == trial.columns["arm"][0]]
    )(rng, trial)


FRAMES: dict[str, Callable[[Rng, Trial], Any]] = {
    **{f"a value is {type(value).__name__!s} {value!r:.24}": one_value(value) for value in VALUES},
    **{f"a column of {type(value).__name__!s} {value!r:.24}": whole_column(value) for value in VALUES[::2]},
    **{f"a column as {dtype:.30}": cast(dtype) for dtype in DTYPES},
    **{f"a polars column as {dtype!s}": polars_cast(dtype) for dtype in POLARS},
    "a null in polars": polars_null,
    "a struct in polars": polars_nested,
    "polars, lazy": lambda rng, trial: polars_frame(trial).lazy(),
    "polars, no rows": lambda rng, trial: polars_frame(trial).head(0),
    "polars, one row": lambda rng, trial: polars_frame(trial).head(1),
    "polars, rows backwards": lambda rng, trial: polars_frame(trial).reverse(),
    **{
        f"a column called {name!r}": names(lambda rng, n, name=name: put(rng, n, lambda _: name))
        for name in ODD_NAMES
    },
    "a column in capitals": names(lambda rng, n: put(rng, n, str.upper)),
    "a column with a blank": names(lambda rng, n: put(rng, n, lambda name: name + " ")),
    "columns in two levels": lambda rng, trial: pd.concat({"x": frame_of(trial.columns)}, axis=1),
    "all columns of one name": names(lambda rng, n: ["arm"] * len(n)),
    "a column lost": lost,
    "a column twice": lambda rng, trial: pd.concat(
        [frame_of(trial.columns), frame_of(trial.columns)[[some_column(rng, trial)]]], axis=1
    ),
    "no columns": lambda rng, trial: frame_of(trial.columns)[[]],
    "no rows": rows(lambda rng, size: []),
    "one row": rows(lambda rng, size: [int(rng.integers(size))]),
    "one arm": one_arm,
    "a row lost": rows(lambda rng, size: sorted(rng.permutation(size)[1:].tolist())),
    "a row twice": rows(lambda rng, size: sorted([*range(size), int(rng.integers(size))])),
    "rows swapped": rows(lambda rng, size: rng.permutation(size).tolist()),
    "rows backwards": rows(lambda rng, size: list(range(size))[::-1]),
    "all rows twice": rows(lambda rng, size: [*range(size), *range(size)]),
    "in percent": scaled(100.0),
    "halved": scaled(0.5),
    "negative": scaled(-1.0),
    "off by a little": scaled(1.0 + 3e-6),
    "a label with a blank behind": labelled(lambda text: text + " "),
    "a label with a tab before": labelled(lambda text: "\t" + text),
    "a label in capitals": labelled(str.upper),
    "a label as text": labelled(str),
    "no frame: list": lambda rng, trial: [trial.columns],
    "no frame: dict": lambda rng, trial: trial.columns,
    "no frame: text": lambda rng, trial: "frame.csv",
    "no frame: nothing": lambda rng, trial: None,
    "no frame: series": lambda rng, trial: pd.Series(trial.columns["y"]),
    "no frame: array": lambda rng, trial: np.ones((3, 3)),
    "no frame: records": lambda rng, trial: frame_of(trial.columns).to_records(),
    "no frame: polars series": lambda rng, trial: pl.Series(trial.columns["y"]),
    "no frame: group": lambda rng, trial: frame_of(trial.columns).groupby("town"),
    "no frame: the class": lambda rng, trial: pd.DataFrame,
}

HARMLESS: dict[str, Callable[[Rng, Trial], Any]] = {
    "as it is": lambda rng, trial: frame_of(trial.columns),
    "polars": lambda rng, trial: polars_frame(trial),
    "an index of zeros": index(lambda rng, size: np.zeros(size)),
    "an index of text": index(lambda rng, size: [f"r{row}" for row in rng.permutation(size)]),
    "an index of two levels": index(lambda rng, size: pd.MultiIndex.from_arrays([["q"] * size, range(size)])),
    "an index of nothing": index(lambda rng, size: [np.nan] * size),
    "types of pyarrow": lambda rng, trial: frame_of(trial.columns).convert_dtypes(dtype_backend="pyarrow"),
    "types with missing values": lambda rng, trial: frame_of(trial.columns).convert_dtypes(),
    "more columns": lambda rng, trial: frame_of(trial.columns).assign(more=1, other="x"),
    "read-only": lambda rng, trial: frame_of(trial.columns).copy(deep=False),
}


def content_columns(frame: Any) -> dict[Any, list[Any]] | None:
    """Columns as lists, without the library; None for what is no frame, or has a column twice."""
    if isinstance(frame, pl.DataFrame):
        return {name: frame[name].to_list() for name in frame.columns}
    if not isinstance(frame, pd.DataFrame):
        return None
    made: dict[Any, list[Any]] = {}
    for place, name in enumerate(frame.columns):
        if name in made:
            return None
        made[name] = list(frame.iloc[:, place].tolist())
    return made
