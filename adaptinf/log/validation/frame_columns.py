"""Columns of frames as NumPy arrays, with values unchanged, and problems with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import LogValidationError, Problem
from adaptinf.log.report import Reading
from adaptinf.spelling import reads_as
from adaptinf.typing import BoolArray, FloatArray, IntArray

Label: TypeAlias = str | int | float | bool
_NUMERAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_FRACTIONS: set[type] = {float, np.float16, np.float32, np.float64, np.longdouble}
_WHOLE = {int, *(np.dtype(name).type for name in np.typecodes["AllInteger"])}
"""Integer types; booleans are not included."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame; values and missing have shape (T,)."""

    values: NDArray[Any]
    missing: BoolArray
    dtype: str
    inexact: BoolArray | None = None
    decimals: bool = False
    """Whether the values were decimals, with any number of places."""
    """Rows whose decimal number has more digits than a float can represent, if any."""

    def at(self, order: IntArray) -> Column:
        """The column with its rows reordered; order has shape (T,)."""
        inexact = None if self.inexact is None else self.inexact[order]
        return replace(self, values=self.values[order], missing=self.missing[order], inexact=inexact)


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of labels; codes, missing and bad have shape (T,)."""

    codes: IntArray
    values: list[Label]
    missing: BoolArray
    bad: BoolArray


def frame_kind(frame: object) -> str | None:
    """``"pandas"``, ``"polars"``, or None for objects that are not frames in memory."""
    if isinstance(frame, pd.DataFrame):
        return "pandas"
    kind = type(frame)
    if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "polars":
        return "polars"
    return None


def column_names(frame: Any) -> list[Hashable]:
    """Names of the columns in order, including duplicates."""
    return list(frame.columns)


def index_names(frame: Any) -> tuple[Hashable, ...]:
    """Names of a pandas frame's index levels that are not also columns."""
    names = frame.index.names if frame_kind(frame) == "pandas" else ()
    return tuple(name for name in names if name is not None and name not in set(column_names(frame)))


def read_column(frame: Any, position: int) -> Column:
    """Read the column at a position; the arrays may share memory with the frame."""
    if frame_kind(frame) == "pandas":
        return read_series(frame.iloc[:, position])
    return _read_polars(frame.to_series(position))


def read_series(series: pd.Series[Any]) -> Column:
    """Read a column from pandas; the arrays may share memory with it."""
    column = _read_pandas(series)
    return _unwrapped(column) if column.values.dtype.kind == "O" else column


def _unwrapped(column: Column) -> Column:
    """Decimals, integers or booleans as typed arrays; any other objects unchanged."""
    present = column.values[~column.missing]
    kinds = set(map(type, present))
    if kinds and kinds <= {Decimal}:
        return _of_decimals(column, present)
    if kinds and kinds <= {bool, np.bool_}:
        values = np.zeros(len(column.values), dtype=bool)
        values[~column.missing] = present.astype(bool)
        return Column(values, column.missing, column.dtype)
    if kinds and kinds <= _WHOLE:
        return _of_whole(column, list(map(int, present)))
    if np.longdouble in kinds and kinds <= _WHOLE | _FRACTIONS:
        long = np.full(len(column.values), np.nan, dtype=np.longdouble)
        long[~column.missing] = present
        return Column(long, column.missing, column.dtype)
    return column


def _of_decimals(column: Column, present: NDArray[Any]) -> Column:
    """Decimals as integers if they have no places, otherwise as the nearest floats."""
    if all(value.is_finite() and int(value.as_tuple().exponent) >= 0 for value in present):
        return replace(_of_whole(column, list(map(int, present))), decimals=True)
    values, inexact = np.full(len(column.values), np.nan), np.zeros(len(column.values), dtype=bool)
    numbers = [float(value) for value in present]
    values[~column.missing] = numbers
    inexact[~column.missing] = [
        value.is_finite() and Decimal(repr(number)) != value
        for value, number in zip(present, numbers, strict=True)
    ]
    missing = column.missing | np.isnan(values)
    return Column(values, missing, column.dtype, inexact if inexact.any() else None)


def _of_whole(column: Column, present: list[int]) -> Column:
    """64-bit integers, or Python integers if any value does not fit."""
    fits = all(-(2**63) <= value < 2**63 for value in present)
    values = np.zeros(len(column.values), dtype=np.int64 if fits else object)
    values[~column.missing] = present
    return Column(values, column.missing, column.dtype)


def _read_pandas(series: pd.Series[Any]) -> Column:
    dtype = series.dtype
    values: NDArray[Any]
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        return Column(values, pd.isna(values), str(dtype))
    if isinstance(dtype, pd.ArrowDtype):
        return _read_arrow(series.array.__arrow_array__(), str(dtype))
    missing = np.asarray(series.isna(), dtype=bool)
    numpy_dtype = np.dtype(getattr(dtype, "numpy_dtype", object))
    if isinstance(dtype, pd.CategoricalDtype):
        values = _expand_categories(series)
    elif isinstance(dtype, pd.SparseDtype):
        values = np.asarray(series)
    elif isinstance(dtype, pd.DatetimeTZDtype):
        values = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    elif numpy_dtype.kind in "biu":
        values = series.to_numpy(dtype=numpy_dtype, na_value=0)
    elif numpy_dtype.kind == "f":
        values = series.to_numpy(dtype=numpy_dtype, na_value=np.nan)
        missing = missing | np.isnan(values)
    else:
        values = series.to_numpy(dtype=object)
    return Column(values, missing, str(dtype))


def _read_arrow(array: Any, dtype: str) -> Column:
    """Read a chunked Arrow array, which distinguishes missing values from NaN."""
    import pyarrow as pa  # pyarrow is slow to import, and it is already loaded if a column is of its types.

    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    missing = np.asarray(array.is_null().to_numpy(), dtype=bool)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind):
        # Instants are stored in UTC, whatever their zone, so that they can be compared.
        unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
        counts = array.cast(pa.int32() if unit == "D" else pa.int64()).fill_null(0).to_numpy()
        name = "timedelta64" if pa.types.is_duration(kind) else "datetime64"
        times = counts.astype(np.int64).view(f"{name}[{unit}]")
        return Column(np.where(missing, np.array("NaT", dtype=times.dtype), times), missing, dtype)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return Column(array.fill_null(pa.scalar(0).cast(kind)).to_numpy(), missing, dtype)
    if pa.types.is_floating(kind):
        values = array.to_numpy()
        return Column(values, missing | np.isnan(values), dtype)
    return _unwrapped(Column(_object_array(array.to_pylist()), missing, dtype))


def _expand_categories(series: pd.Series[Any]) -> NDArray[Any]:
    categories = series.cat.categories
    if not len(categories):
        return np.full(len(series), None, dtype=object)
    return read_series(categories.to_series()).values[series.cat.codes.to_numpy()]


def _read_polars(series: Any) -> Column:
    dtype = series.dtype
    name = str(dtype)
    missing = series.is_null().to_numpy()
    values: NDArray[Any]
    if dtype.is_integer() and "128" not in name:
        values = (series.fill_null(0) if missing.any() else series).to_numpy()
    elif dtype.is_float():
        values = series.to_numpy()
        missing = missing | np.isnan(values)
    elif name == "Boolean":
        values = (series.fill_null(False) if missing.any() else series).to_numpy()
    elif name == "Date" or name.startswith("Datetime"):
        values = series.to_numpy()
    else:
        values = _object_array(series.to_list())
        return _unwrapped(Column(values, missing, name))
    return Column(values, missing, name)


def read_labels(column: Column) -> Labels:
    """Distinct labels in a column: strings, integers, booleans and finite floats; others are bad."""
    values, missing = column.values, column.missing
    bad = np.zeros(len(values), dtype=bool)
    if values.dtype.kind in "biu":
        return _factorize(values, missing, bad)
    if values.dtype.kind == "f":
        numbers, inexact = as_float(values)
        inexact = inexact if column.inexact is None else inexact | column.inexact
        return _factorize(numbers, missing, (np.isinf(numbers) | inexact) & ~missing)
    if values.dtype.kind != "O":
        return Labels(np.full(len(values), -1), [], missing, ~missing)
    if set(map(type, values[~missing])) <= {str}:
        return _factorize(values, missing, bad)
    return _read_mixed_labels(values, missing)


def _factorize(values: NDArray[Any], missing: BoolArray, bad: BoolArray) -> Labels:
    usable = ~(missing | bad)
    if usable.all():
        codes, distinct = pd.factorize(values)
        return Labels(codes, np.asarray(distinct).tolist(), missing, bad)
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[usable], distinct = pd.factorize(values[usable])
    return Labels(codes, np.asarray(distinct).tolist(), missing, bad)


def _read_mixed_labels(values: NDArray[Any], missing: BoolArray) -> Labels:
    codes = np.full(len(values), -1, dtype=np.int64)
    bad = np.zeros(len(values), dtype=bool)
    known: dict[tuple[type, Label], int] = {}
    for row in np.flatnonzero(~missing):
        label = plain_label(values[row])
        if label is None:
            bad[row] = True
        else:
            codes[row] = known.setdefault(label_key(label), len(known))
    return Labels(codes, [label for _, label in known], missing, bad)


def as_float(values: NDArray[Any]) -> tuple[FloatArray, BoolArray]:
    """Numbers or booleans as a new float64 array, and the rows whose value cannot be represented exactly."""
    # Whole numbers beyond 2**53 count as inexact, although some are not, because their floats also represent
    # neighbouring numbers.
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        return numbers, (values > 2**53) | (values < -(2**53))
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return numbers, (numbers != values) & ~np.isnan(numbers)
    return numbers, np.zeros(len(numbers), dtype=bool)


def whole_numbers(column: Column) -> int:
    """The size up to which a column's floats represent every integer: 2**24 for 32 bits."""
    kinds = {column.values.dtype}
    if column.values.dtype.kind == "O":
        kinds = {np.dtype(kind) for kind in set(map(type, column.values)) if issubclass(kind, np.floating)}
    digits = [np.finfo(kind).nmant + 1 for kind in kinds if kind.kind == "f"]
    return int(2 ** min([53, *digits]))


def plain_label(value: object) -> Label | None:
    """Plain Python label for a value, or None if the value cannot be a label."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    # timedelta64 is a subclass of NumPy's integers, but it is not a label.
    if isinstance(value, np.timedelta64):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and np.isfinite(value) and float(value) == value:
        return float(value)
    return None


def label_key(label: Label) -> tuple[type, Label]:
    """Key that distinguishes 1, 1.0 and True."""
    return type(label), label


def blank_rows(labels: Labels) -> BoolArray:
    """Rows whose label is blank text."""
    blank = [isinstance(label, str) and not label.strip() for label in labels.values]
    return np.array([*blank, False], dtype=bool)[labels.codes]


def alike_labels(labels: Iterable[Label]) -> list[list[Label]]:
    """Groups of labels that look alike ("1" and 1, "a" and "a ") or are equal (1 and 1.0)."""
    texts: dict[str, list[Label]] = {}
    equals: dict[Label, list[Label]] = {}
    for _, label in dict.fromkeys(map(label_key, labels)):
        texts.setdefault(reads_as(str(label)), []).append(label)
        equals.setdefault(label, []).append(label)
    return [alike for alike in [*texts.values(), *equals.values()] if len(alike) > 1]


def mixed_labels(labels: Iterable[Label]) -> list[list[Label]]:
    """Booleans next to other labels, or numbers next to text that reads as a number: one group, or none."""
    distinct = [label for _, label in dict.fromkeys(map(label_key, labels))]
    flags = [label for label in distinct if isinstance(label, bool)]
    if flags:
        return [distinct] if len(flags) < len(distinct) else []
    numbers = [label for label in distinct if not isinstance(label, str)]
    numerals = [label for label in distinct if isinstance(label, str) and _NUMERAL.fullmatch(label)]
    return [[*numbers, *numerals]] if numbers and numerals else []


def label_array(labels: Sequence[Label]) -> NDArray[Any]:
    """Labels as an array that preserves the type of each: native for numbers of one type, or objects."""
    kinds = {type(label) for label in labels}
    if kinds == {bool} or kinds == {float}:
        return np.array(labels)
    if kinds == {int} and min(labels) >= -(2**63) and max(labels) < 2**63:  # type: ignore[operator]
        return np.array(labels, dtype=np.int64)
    return _object_array(labels)


def _object_array(items: Iterable[object]) -> NDArray[Any]:
    listed = list(items)
    array = np.empty(len(listed), dtype=object)
    for position, item in enumerate(listed):
        array[position] = item
    return array


_ROWS_KEPT = 100


class Findings:
    """Problems in the order found, and the actions taken on the frame.

    If `order` is given, rows were sorted by it, and problems name the rows as numbered in the frame.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.readings: list[Reading] = []
        self.order: IntArray | None = None
        self.index: tuple[Hashable, ...] = ()
        """Names of the frame's index levels, which are not columns."""
        self.located: Callable[[LogValidationError], LogValidationError] | None = None
        """Function that adds the name of a file and its lines to an error."""

    def tell(self, kind: str, text: str) -> None:
        """Add an action to the log's report."""
        self.readings.append(Reading(kind, text))

    def add(self, code: str, message: str) -> None:
        """Add a problem that does not concern single rows."""
        self.problems.append(Problem(code, message))

    def add_rows(self, code: str, message: str, offending: BoolArray) -> None:
        """Add a problem for the rows in which `offending` (shape (T,)) is true, if there are any."""
        if offending.any():
            rows = np.flatnonzero(offending)
            rows = rows if self.order is None else np.sort(self.order[rows])
            kept = tuple(rows[:_ROWS_KEPT].tolist())
            self.problems.append(Problem(code, message, kept, int(rows.size)))

    def counted(self, counts: FloatArray) -> Findings:
        """Findings for a table whose rows represent counts, which messages report; counts have shape (R,)."""
        return _Counted(self, counts)

    def raise_if_any(self, source: str = "the log") -> None:
        """Raise one `LogValidationError` that contains all problems that were added."""
        if self.problems:
            error = LogValidationError(self.problems, source)
            raise error if self.located is None else self.located(error)


class _Counted(Findings):
    """Findings for a table whose rows each represent several rows, collected with other problems."""

    def __init__(self, findings: Findings, counts: FloatArray) -> None:
        super().__init__()
        self.problems, self.readings, self._counts = findings.problems, findings.readings, counts

    def add_rows(self, code: str, message: str, offending: BoolArray) -> None:
        """Add a problem with the number of rows affected."""
        if offending.any():
            total = int(self._counts[offending].sum())
            self.add(code, f"{message} in {total:,} {'row' if total == 1 else 'rows'}")


EXACT = 2**53
"""Size from which float64 no longer represents every integer."""
SUM_TOLERANCE = 1e-6
"""Largest difference from 1 that is allowed for the sum of a row of propensities."""
MATCH_TOLERANCE = 1e-6
"""Relative difference up to which the chosen arm's propensity may differ from the arm's own column."""
FAULTS = {
    "missing": "has no value (NaN or None)",
    "infinite": "is infinite",
    "inexact": "has numbers that float64 cannot represent exactly",
    "rounded": (
        "has numbers of 2**53 or more in absolute value: if a column also has fractions, whole numbers of "
        "that size "
        "are rounded before the log reads them; measure rewards in a larger unit"
    ),
    "propensities-sum": f"do not sum to 1 (tolerance {SUM_TOLERANCE:g})",
    "chosen-propensity-zero": "the chosen arm has a propensity of 0 in its column",
    "propensity-mismatch": (
        f"the propensity of the chosen arm differs from the arm's own column (relative tolerance "
        f"{MATCH_TOLERANCE:g})"
    ),
}
"""Statements about a column, keyed by fault; a code is the fault and the role, as in missing-reward."""


def inexact_unit(limit: int) -> str:
    """Statements about units given as floats above a limit, which is a power of 2."""
    size = f"2**{limit.bit_length() - 1}"
    return f"has floats of {size} or more, each of which represents several whole numbers: read it as text"


def outside(lowest: str) -> str:
    """Statements about propensities outside an interval, whose lower end is ``"(0"`` or ``"[0"``."""
    return f"has values outside {lowest}, 1]"


def out_of_range(low: float, high: float) -> str:
    """Statements about rewards outside their range."""
    return f"rewards outside reward_range [{low:g}, {high:g}]; correct them or widen the range"
