"""Numbers and labels from the columns of a user's frame, with all problems."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set, Sized
from typing import Any

import numpy as np

from adaptinf.log.validation.column_roles import is_hashable
from adaptinf.log.validation.frame_columns import (
    Column,
    Label,
    alike_labels,
    column_names,
    frame_kind,
    label_key,
    plain_label,
    read_column,
    read_labels,
)
from adaptinf.parameters import number_array
from adaptinf.spelling import told_apart
from adaptinf.typing import FloatArray, IntArray

_SHOWN = 5
_BAD = "values that cannot be labels (strings, whole numbers, booleans, finite floats)"


def arm_problems(labels: Iterable[Label]) -> list[str]:
    """Arms with labels that columns of logs, releases and files could not distinguish."""
    return [
        "arms that look the same or are equal cannot be distinguished in releases and files: "
        f"{told_apart(alike)}; use arm labels of one type"
        for alike in alike_labels(labels)
    ]


def context_names(context: Any, problems: list[str]) -> list[Any]:
    """Names of the context columns, in the user's order, from a name or any collection of names."""
    if context is None or isinstance(context, str):
        return [] if context is None else [context]
    try:
        if isinstance(context, (bytes, Mapping, Set)):
            raise TypeError
        listed = list(context)
    except TypeError:
        problems.append(f"context must be a column or a list of columns, got {context!r:.60}")
        return []
    names = [name.item() if isinstance(name, np.generic) else name for name in listed]
    problems += [
        f"context must list columns by name, got {name!r:.60}" for name in names if not is_hashable(name)
    ]
    return [name for name in names if is_hashable(name)]


def column_problems(frame: Any, names: Sequence[Hashable]) -> list[str]:
    """Why columns cannot be found in a pandas or Polars frame."""
    if frame_kind(frame) is None:
        return [f"frame must be a pandas or polars DataFrame, got {type(frame).__name__}"]
    columns = column_names(frame)
    problems = [] if len(frame) else ["the frame has no rows"]
    problems += [f"the frame has no column {name!r}" for name in names if columns.count(name) == 0]
    problems += [
        f"the frame has {columns.count(name)} columns {name!r}" for name in names if columns.count(name) > 1
    ]
    return problems


def numeric_columns(frame: Any, names: Sequence[Hashable], problems: list[str]) -> FloatArray:
    """Columns of numbers or booleans as an array with shape (rows, columns), NaN if missing."""
    # `column_problems` has checked that the columns exist; columns that are not numeric are added to the
    # problems here.
    columns = column_names(frame)
    values, textual, nested = [], [], []
    for name in names:
        column = read_column(frame, columns.index(name))
        if _is_nested(column):
            nested.append(name)
        elif (found := _numbers(column)) is None:
            textual.append(name)
        else:
            values.append(found)
    if textual:
        problems.append(
            f"contexts must be numbers, but these columns are not: {', '.join(map(repr, textual))}; convert "
            f"them to numbers first, for example with pandas.get_dummies(frame, columns={textual!r}, "
            "dtype=float)"
        )
    if nested:
        problems.append(
            "contexts must be one number per row, but these columns contain lists: "
            f"{', '.join(map(repr, nested))}; make a column of each coordinate"
        )
    return np.stack(values, axis=1) if values else np.zeros((len(frame), 0))


def measurement_problems(values: FloatArray, titles: Sequence[str]) -> list[str]:
    """Positions of missing or infinite values, column by column."""
    return [
        f"{title} has {rows.size} {told} values, in {listed_rows(rows)}"
        for title, column in zip(titles, values.T, strict=True)
        for told, wrong in (("missing", np.isnan(column)), ("infinite", np.isinf(column)))
        if (rows := np.flatnonzero(wrong)).size
    ]


def listed_rows(rows: IntArray) -> str:
    """The first of some row positions, counted from 0."""
    shown = ", ".join(str(row) for row in rows[:_SHOWN])
    return f"row{'s' if rows.size > 1 else ''} {shown}{', ...' if rows.size > _SHOWN else ''}"


def _is_nested(column: Column) -> bool:
    """Whether some row contains a list or an array."""
    return column.values.dtype.kind == "O" and any(
        isinstance(value, Sized) and not isinstance(value, (str, bytes))
        for value in column.values[~column.missing]
    )


def _numbers(column: Column) -> FloatArray | None:
    """Numbers in a column, NaN if missing; None if it contains other values."""
    if column.dtype == "category":
        return None
    if column.values.dtype.kind in "biuf":
        numbers = column.values.astype(np.float64)
        numbers[column.missing] = np.nan
        return numbers
    if column.values.dtype.kind != "O" or column.missing.all():
        return None
    return number_array(
        [np.nan if gone else value for value, gone in zip(column.values, column.missing, strict=True)]
    )


def label_codes(
    frame: Any, name: Hashable, arms: Sequence[Any] | None, problems: list[str]
) -> tuple[IntArray, tuple[Label, ...]]:
    """Positions of a column's labels among the arms, and the arms; invalid labels are added to `problems`."""
    # Without `arms`, the labels that occur are used, sorted if possible and otherwise in order of appearance.
    # Floats that hardly repeat are probably measurements and not labels.
    known = len(problems)
    found = read_labels(read_column(frame, column_names(frame).index(name)))
    for rows, told in ((np.flatnonzero(found.missing), "missing values"), (np.flatnonzero(found.bad), _BAD)):
        if rows.size:
            problems.append(f"column {name!r} has {rows.size} {told}, in {listed_rows(rows)}")
    labels = _sorted(found.values) if arms is None else _given(arms, problems)
    problems += arm_problems(labels)
    if arms is None and len(labels) > max(2, found.codes.size / 2) and all(map(_is_float, labels)):
        problems.append(
            f"column {name!r} has {len(labels)} classes in {found.codes.size} rows; labels must occur more "
            f"than once: group the values into classes, or list them in arms="
        )
    if len(problems) > known:
        return found.codes, labels
    position = {label_key(label): code for code, label in enumerate(labels)}
    unknown = [label for label in found.values if label_key(label) not in position]
    if unknown:
        shown = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
        problems.append(f"column {name!r} has labels that are not in arms=: {shown}; 1, 1.0 and True differ")
        return found.codes, labels
    return np.array([position[label_key(label)] for label in found.values])[found.codes], labels


def _is_float(label: Label) -> bool:
    return isinstance(label, float)


def _sorted(labels: list[Label]) -> tuple[Label, ...]:
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(labels)


def _given(arms: Any, problems: list[str]) -> tuple[Label, ...]:
    """Labels given by the user."""
    if isinstance(arms, (str, bytes)) or not hasattr(arms, "__iter__"):
        problems.append(f"arms must be a list of labels, got {arms!r:.60}")
        return ()
    given = list(arms)
    labels = [label for label in map(plain_label, given) if label is not None]
    if len(labels) < len(given) or not given:
        problems.append(f"arms must be strings, whole numbers, booleans or finite floats, got {given!r:.60}")
    keys = [label_key(label) for label in labels]
    if len(set(keys)) < len(keys):
        twice = sorted({repr(label) for label in labels if keys.count(label_key(label)) > 1})
        problems.append(f"arms= names {', '.join(twice)} more than once")
    return tuple(labels)
