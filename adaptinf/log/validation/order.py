"""The order of rows: what a column of rounds or batches says of it, and putting them in it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation.columns import Column, Label, as_float, read_labels
from adaptinf.log.validation.findings import Findings
from adaptinf.log.validation.times import ISO_EXAMPLES, Dates, looks_dated, months_alone, read_dates
from adaptinf.typing import BoolArray, IntArray

SORT_HINT = "say sort=True (--sort on the command line) to put the rows in the order of this column"
_DIGITS = re.compile(r"\d+", re.ASCII)
_WHOLE = re.compile(r"\s*\d{1,300}\s*", re.ASCII)
_FEW = 3
"""Numbered labels that may go down by chance: two."""


def check_date_format(date_format: object, found: Findings) -> str | None:
    """A format of strptime, or None where none was given or it is of no use."""
    if date_format is None:
        return None
    if isinstance(date_format, str) and "%" in date_format:
        try:
            read_dates(Column(np.array(["x"], dtype=object), np.array([False]), "object"), date_format)
        except ValueError as error:
            found.add("bad-date-format", f"date_format={date_format!r} is no format of strptime: {error}")
            return None
        return date_format
    found.add(
        "bad-date-format",
        f"date_format must be a format of strptime such as '%d/%m/%Y', got {date_format!r:.60}",
    )
    return None


def date_column(
    column: Column, what: str, role: str, date_format: str | None, found: Findings
) -> Column | None:
    """A column of dates as text or objects, or whole numbers with a format, as times; None with a problem."""
    dates = _dates(column, date_format)
    if dates.problem:
        found.add(f"bad-{role}", f"{what} {dates.problem}")
        return None
    if dates.bad.any():
        _tell_bad(column, what, role, dates, date_format, found)
        return None
    if dates.told:
        span = (
            ""
            if column.missing.all()
            else f"; dates range from {_day(dates.column.values, 0)} to {_day(dates.column.values, -1)}"
        )
        found.tell("dates", claims.DATES(column=what, how=dates.told, span=span))
    return dates.column


def batch_dates(column: Column, what: str, date_format: str | None, found: Findings) -> Column | None:
    """Batches as times where they are dates, as they are where most are none; None with a problem."""
    if date_format is not None:
        return date_column(column, what, "batch", date_format, found)
    dated = looks_dated(column)
    n_dates, n_distinct = (len(set(map(str, column.values[rows]))) for rows in (dated, ~column.missing))
    if not n_dates or 2 * n_dates < n_distinct:
        if not months_alone(column):
            return column
    elif not np.array_equal(dated, ~column.missing):
        first = column.values[np.flatnonzero(dated)[0]]
        found.add_rows(
            "bad-batch",
            f"{what} holds dates such as {str(first)!r:.40}, and in these rows none: give every batch a date "
            "of one format, or labels that are no dates",
            ~dated & ~column.missing,
        )
        return None
    return date_column(column, what, "batch", None, found)


def backward_message(what: str, values: NDArray[Any], verb: str) -> str:
    """What to say of a column that goes back, values without gaps in the order of the rows, shape (n,)."""
    down = len(values) > 1 and bool(np.all(values[1:] <= values[:-1]))
    stored = f"{what} {verb}: its rows are stored newest first" if down else f"{what} {verb}"
    return (
        f"{stored}. If it says when the arms were chosen, {SORT_HINT}; otherwise sort them by the time at "
        "which the arms were chosen"
    )


def date_formats(
    columns: Mapping[str, Column], date_format: str | None, found: Findings
) -> dict[str, str | None]:
    """The format of each column: of whole numbers, such as 20240301, where no other column is text."""
    for kinds in ("O", "iu"):
        dated = [role for role, column in columns.items() if column.values.dtype.kind in kinds]
        if dated and date_format is not None:
            return dict.fromkeys(dated, date_format)
    if date_format is not None:
        found.add("bad-date-format", "date_format is given, and no column of round= or batch= holds text")
    return {}


def row_order(
    sort: object,
    columns: Mapping[str, Column],
    names: Mapping[str, object],
    formats: Mapping[str, str | None],
    found: Findings,
) -> IntArray | None:
    """Positions of the rows in the order of their rounds, else batches; None where they stand in it."""
    if not isinstance(sort, (bool, np.bool_)):
        found.add("bad-sort", f"sort must be True or False, got {sort!r:.60}")
        return None
    role = next((role for role in ("round", "batch") if role in names), None)
    if not sort or (role is not None and role not in columns):
        return None
    if role is None:
        found.add("bad-sort", "sort=True needs round= or batch=, the column that says when arms were chosen")
        return None
    keys = _sort_keys(role, columns[role], formats.get(role))
    if keys is None:
        found.add(
            "bad-sort",
            f"sort=True: {role} column {names[role]!r} holds no numbers and no dates to sort by, but labels; "
            "sort the rows yourself",
        )
        return None
    order = np.argsort(keys, kind="stable")
    moved = int((order != np.arange(len(order))).sum())
    if not moved:
        return None
    newest = " (stored newest first)" if bool(np.all(keys[1:] <= keys[:-1])) else ""
    values = {"role": role, "name": names[role], "newest": newest, "moved": moved, "rows": len(order)}
    found.tell("order", claims.SORTED(**values))
    return order


def text_numbers(labels: Sequence[Label]) -> list[int] | None:
    """Numbers that labels of text are; None where they are others."""
    if labels and all(isinstance(label, str) and _WHOLE.fullmatch(label) for label in labels):
        return [int(label) for label in labels]
    return None


def tell_numbered(what: str, labels: Sequence[Label], found: Findings) -> None:
    """Tell of labels such as week 3, week 2, week 1, whose numbers go down from batch to batch."""
    if len(labels) < _FEW or not all(isinstance(label, str) for label in labels):
        return
    numbers = [tuple(map(int, _DIGITS.findall(str(label)[:100]))) for label in labels]
    same = len({_DIGITS.sub("#", str(label)) for label in labels}) == 1
    if same and numbers[0] and all(later < earlier for earlier, later in itertools.pairwise(numbers)):
        told = claims.NUMBERS_GO_DOWN(column=what, first=labels[0], last=labels[-1])
        found.tell("caution", told)


def _dates(column: Column, date_format: str | None) -> Dates:
    if date_format is not None and column.values.dtype.kind in "iu":
        texts = np.array([str(value) for value in column.values.tolist()], dtype=object)
        column = Column(texts, column.missing, column.dtype)
    return read_dates(column, date_format)


def _sort_keys(role: str, column: Column, date_format: str | None) -> NDArray[Any] | None:
    """Numbers or times to sort by, shape (T,); None for labels. What is wrong with them is told later."""
    kind = column.values.dtype.kind
    if kind == "O" or (date_format is not None and kind in "iu"):
        read = batch_dates if role == "batch" else partial(date_column, role=role)
        dates = read(column, "", date_format=date_format, found=Findings())
        if dates is None:
            return np.arange(len(column.values))
        column, kind = dates, dates.values.dtype.kind
    if kind == "O":
        labels = read_labels(column)
        numbers = text_numbers(labels.values)
        return None if numbers is None else np.array([*numbers, 0], dtype=object)[labels.codes]
    if kind == "M":
        return column.values.view(np.int64)
    if kind not in "iuf":
        return None
    return column.values if kind in "iu" else np.nan_to_num(as_float(column.values)[0])


def _tell_bad(
    column: Column, what: str, role: str, dates: Dates, date_format: str | None, found: Findings
) -> None:
    first = ", ".join(list(dict.fromkeys(f"{value!r:.40}" for value in column.values[dates.bad][:100]))[:3])
    if date_format is not None:
        message = f"{what} must hold dates of date_format={date_format!r}, not {first}"
    else:
        message = (
            f"{what} must hold numbers, times, or dates in one format such as {ISO_EXAMPLES} or 3/31/2024 "
            f"(all with a zone, or none), not {column.dtype} such as {first}"
        )
    every: BoolArray = ~column.missing
    if np.array_equal(dates.bad, every):
        found.add(f"bad-{role}", message)
    else:
        found.add_rows(f"bad-{role}", message, dates.bad)


def _day(values: NDArray[Any], place: int) -> str:
    """The first or last day of times."""
    present = np.sort(values[~np.isnat(values)])
    return str(present[place].astype("datetime64[D]"))
