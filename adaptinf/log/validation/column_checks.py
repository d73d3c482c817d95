"""Checks on one column at a time: each returns the column as an array, or None if it is unusable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation.frame_columns import (
    EXACT,
    FAULTS,
    Column,
    Findings,
    Label,
    Labels,
    alike_labels,
    as_float,
    blank_rows,
    inexact_unit,
    label_array,
    label_key,
    mixed_labels,
    out_of_range,
    outside,
    plain_label,
    read_labels,
    whole_numbers,
)
from adaptinf.log.validation.propensity_shapes import holds_entries
from adaptinf.log.validation.row_order import (
    SORT_HINT,
    backward_message,
    batch_dates,
    date_column,
    has_zone,
    tell_numbered,
    text_numbers,
)
from adaptinf.log.validation.times.clock_changes import clock_change
from adaptinf.spelling import reads_as, told_apart
from adaptinf.typing import BoolArray, FloatArray, IntArray

_SHOWN = 8


def implied_range(success: object) -> tuple[float, float] | None:
    """Smallest and largest numbers to which labels can be converted; None if fewer than two."""
    if success is None:
        return None
    if not isinstance(success, Mapping):
        return 0.0, 1.0
    numbers = [number for value in success.values() if (number := _number(value)) is not None]
    return (min(numbers), max(numbers)) if len(set(numbers)) > 1 else None


def numbered_outcomes(column: Column, name: object, success: object, found: Findings) -> Column | None:
    """A column of labels as numbers; None, with a problem, if a label has no number."""
    labels = read_labels(column)
    what = f"reward column {name!r}"
    if labels.bad.any():
        found.add_rows("bad-outcome", f"{what} must contain labels if 'success' is given", labels.bad)
        return None
    if isinstance(success, Mapping):
        numbers = _by_mapping(labels, what, success, found)
    else:
        numbers = _by_success(labels, what, success, found)
    if numbers is None:
        return None
    told = [
        f"{label!r:.40} counts as {number:g}" for label, number in zip(labels.values, numbers, strict=True)
    ]
    if told:
        shown = told if len(told) <= _SHOWN else [*told[:_SHOWN], "..."]
        found.tell("outcome", claims.COUNTED_AS(column=what, labels=", ".join(shown)))
    values = np.array([*numbers, np.nan])[labels.codes]
    return Column(values, column.missing, column.dtype)


def _by_success(labels: Labels, what: str, success: object, found: Findings) -> list[float] | None:
    """1 for success and 0 for the only other label; None if there are several others, or no success."""
    wanted = plain_label(success)
    if wanted is None:
        found.add(
            "bad-success",
            "success must be a label of the reward column, or a mapping of its labels to numbers, got "
            f"{success!r:.60}",
        )
        return None
    others = [label for label in labels.values if not _same(label, wanted)]
    example = ", ".join(f"{label!r:.40}: ..." for label in labels.values[:_SHOWN])
    advice = f"assign a number to every label with 'success', such as {{{example}}}"
    alike = [label for label in others if _read(label) == _read(wanted)]
    if len(others) == len(labels.values) and others:
        found.add(
            "no-success",
            f"{wanted!r:.40} does not occur in {what}, which contains {_counted(labels, others)}; {advice}",
        )
    elif len(others) > 1 or alike or any(not _read(label) for label in others):
        counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.values))
        usual = max((label for label in others), key=lambda label: counts[labels.values.index(label)])
        odd = [label for label in others if label in alike or not _same(label, usual) or len(others) == 1]
        member = np.array([any(_same(label, one) for one in odd) for label in labels.values] + [False])
        found.add_rows(
            "other-outcome",
            f"{what} contains {_counted(labels, others)} as well as {wanted!r:.40}, but only one label can "
            f"mean failure; correct them, or {advice}",
            member[labels.codes],
        )
    else:
        return [float(_same(label, wanted)) for label in labels.values]
    return None


def _by_mapping(
    labels: Labels, what: str, success: Mapping[object, object], found: Findings
) -> list[float] | None:
    """The number for every label; None if a label has none, or the mapping has other labels."""
    keys = [plain_label(key) for key in success]
    values = [_number(value) for value in success.values()]
    if not keys or None in keys or None in values:
        found.add("bad-success", f"success must map labels to finite numbers, got {dict(success)!r:.120}")
        return None
    known = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
    numbers = [next((value for key, value in known if _same(label, key)), None) for label in labels.values]
    strangers = [label for label, number in zip(labels.values, numbers, strict=True) if number is None]
    if strangers:
        member = np.array([number is None for number in numbers] + [False])
        found.add_rows(
            "other-outcome",
            f"{what} contains {_counted(labels, strangers)}, to which 'success' assigns no number",
            member[labels.codes],
        )
        return None
    return [number for number in numbers if number is not None]


def _same(label: Label, other: Label) -> bool:
    """Whether two labels are equal; numbers equal neither text nor booleans."""
    kinds = [isinstance(label, str), isinstance(label, bool)] == [
        isinstance(other, str),
        isinstance(other, bool),
    ]
    return kinds and label == other


def _read(label: Label) -> str:
    return str(label).strip().casefold()


def _counted(labels: Labels, chosen: list[Label]) -> str:
    """Labels with their numbers of rows and the first row of each."""
    told = []
    for label in chosen[:_SHOWN]:
        rows = np.flatnonzero(labels.codes == labels.values.index(label))
        told.append(f"{label!r:.40} ({rows.size} rows)" if rows.size > 1 else f"{label!r:.40} (1 row)")
    more = f" and {len(chosen) - _SHOWN} more" if len(chosen) > _SHOWN else ""
    return ", ".join(told) + more


def _number(value: Any) -> float | None:
    label = plain_label(value)
    if label is None or isinstance(label, str) or abs(label) > 2**53:
        return None
    return float(label)


_LABELS = "strings, whole numbers, booleans or finite numbers"
_AMBIGUOUS = (
    "has labels that look the same, such as 'a' and 'a ' or batches 01 and 1, or booleans mixed with other "
    "labels; use labels of one type, without surrounding spaces"
)


def check_reward_range(reward_range: object, as_written: bool, found: Findings) -> tuple[float, float] | None:
    """Smallest and largest possible reward, or None if none was given or it is invalid."""
    # Users may not state infinite bounds, but simulated logs have them if rewards are unbounded.
    if reward_range is None:
        return None
    pair = list(reward_range) if isinstance(reward_range, (tuple, list, np.ndarray)) else []
    fits = _is_number if as_written else _is_finite_number
    if len(pair) != 2 or not all(fits(bound) for bound in pair):
        found.add(
            "bad-reward-range", f"reward_range must be two finite numbers (low, high), got {reward_range!r}"
        )
        return None
    low, high = float(pair[0]), float(pair[1])
    if not low < high:
        found.add(
            "inverted-reward-range", f"reward_range must be (low, high) with low < high, got ({low}, {high})"
        )
        return None
    return low, high


def check_rewards(
    column: Column,
    name: object,
    reward_range: tuple[float, float] | None,
    as_written: bool,
    gaps: bool,
    found: Findings,
) -> FloatArray | None:
    """Rewards as float64, NaN for allowed gaps; booleans become 0 and 1."""
    values = read_numbers(column, f"reward column {name!r}", "reward", found, booleans=True, gaps=gaps)
    if values is None:
        return None
    if (column.values.dtype.kind in "fO" or column.decimals) and not as_written:
        check_sizes(values, f"reward column {name!r} of type {column.dtype}", found)
    if reward_range is not None:
        low, high = reward_range
        beyond = np.isfinite(values) & ((values < low) | (values > high))
        found.add_rows("reward-out-of-range", out_of_range(low, high), beyond)
    return values


def check_sizes(values: FloatArray, what: str, found: Findings) -> None:
    """Report rewards too large for floats to represent every integer, or their squares and cubes."""
    large = (np.abs(values) >= EXACT) & np.isfinite(values)
    found.add_rows("rounded-reward", f"{what} {FAULTS['rounded']}", large)


def check_propensity(column: Column, name: object, found: Findings) -> FloatArray | None:
    """Propensities of the chosen arms as float64."""
    if holds_entries(column):
        found.add(
            "non-numeric-propensity",
            f"propensity column {name!r} contains lists or objects with the propensities of all arms: name "
            f"it in propensities=",
        )
        return None
    return check_probabilities(column, f"propensity column {name!r}", "(0", found)


def check_probabilities(column: Column, what: str, lowest: str, found: Findings) -> FloatArray | None:
    """Probabilities as float64, NaN if missing."""
    values = read_numbers(column, what, "propensity", found, booleans=False)
    if values is None:
        return None
    too_low = values <= 0 if lowest == "(0" else values < 0
    found.add_rows("propensity-out-of-range", f"{what} {outside(lowest)}", too_low | (values > 1))
    return values


def check_rounds(
    column: Column, name: object, date_format: str | None, found: Findings
) -> NDArray[Any] | None:
    """Round numbers or times, including dates as text in one format; they must increase."""
    what = f"round column {name!r}"
    found.add_rows("missing-round", f"{what} has no value", column.missing)
    zoned = has_zone(column, date_format)
    if column.values.dtype.kind == "O" or (date_format is not None and column.values.dtype.kind in "iu"):
        dates = date_column(column, what, "round", date_format, found)
        if dates is None:
            return None
        column = dates
    values, missing = column.values, column.missing
    if values.dtype.kind not in "iufM":
        found.add("bad-round", f"{what} must contain numbers or times, not {column.dtype}")
        return None
    present = ~missing
    if values.dtype.kind == "f":
        values, inexact = as_float(values)
        unusable = (np.isinf(values) | inexact) & present
        found.add_rows("bad-round", f"{what} is infinite or too large for float64", unusable)
        present &= ~unusable
    rows = np.flatnonzero(present)
    backward = np.zeros_like(missing)
    backward[rows[1:]] = values[rows[1:]] < values[rows[:-1]]
    if backward.any():
        message = backward_message(what, values[rows], zoned)
        found.add_rows("unordered-round", message, backward)
    return values.copy()


def batch_labels(
    column: Column, what: str, date_format: str | None, found: Findings
) -> tuple[Labels, NDArray[Any] | None, bool] | None:
    """Labels of the rows' batches, their times if known, and whether they are times."""
    # Numbers and dates, also as text, have values of shape (L,); other labels have none. None with a problem.
    if column.values.dtype.kind == "O" or (date_format is not None and column.values.dtype.kind in "iu"):
        dates = batch_dates(column, what, date_format, found)
        if dates is None:
            found.add_rows("missing-batch", f"{what} has no value", column.missing)
            return None
        column = dates
    dated = column.values.dtype.kind == "M"
    if dated:
        times = column.values.astype(
            "datetime64[ns]" if "ns" in str(column.values.dtype) else "datetime64[us]"
        )
        column = Column(times.view(np.int64), column.missing, str(times.dtype))
    labels = read_labels(column)
    found.add_rows("missing-batch", f"{what} has no value", labels.missing | blank_rows(labels))
    found.add_rows("bad-batch", f"{what} must contain {_LABELS}, dates or times", labels.bad)
    numbers = text_numbers(labels.values)
    twice = [*pd.Series(numbers or [], dtype=object).duplicated(keep=False)] or [False] * len(labels.values)
    alike = _alike_another(labels) | np.array([*twice, False], dtype=bool)[labels.codes]
    found.add_rows("ambiguous-batch", f"{what} {_AMBIGUOUS}", alike)
    if dated:
        return labels, np.array(labels.values, dtype=np.int64).view(column.dtype), True
    ordered = numbers is not None or all(map(_is_number, labels.values))
    return labels, np.array(numbers or labels.values) if ordered else None, False


def check_batches(column: Column, name: object, date_format: str | None, found: Findings) -> IntArray | None:
    """Batches numbered 0, 1, 2, ... in order; each must be one contiguous stretch of rows."""
    # Numbers and dates, also as text, must increase; other labels are taken in the order of the rows.
    what = f"batch column {name!r}"
    read = batch_labels(column, what, date_format, found)
    if read is None:
        return None
    labels, values, _ = read
    zoned = has_zone(column, date_format)
    labelled = labels.codes >= 0
    rows: IntArray | slice = slice(None) if labelled.all() else np.flatnonzero(labelled)
    codes = labels.codes[rows]
    starts = np.append(np.arange(min(1, len(codes))), np.flatnonzero(codes[1:] != codes[:-1]) + 1)
    returning = pd.Series(codes[starts]).duplicated().to_numpy()
    told = "" if zoned or values is None or values.dtype.kind != "M" else clock_change(what, values[codes])
    hint = "" if values is None else f": if it gives the time, {SORT_HINT}"
    found.add_rows(
        "batch-not-contiguous",
        told
        or f"{what} returns to an earlier batch; the rows of a batch must be contiguous and in time "
        f"order{hint}",
        _mask(_rows_of(starts[returning], rows), len(labels.codes)),
    )
    if values is None:
        tell_numbered(what, labels.values, found)
    elif labels.values:
        # Codes are in order of first appearance, so a new batch has the next code after the batch before it.
        backward = np.zeros(len(values), dtype=bool)
        backward[1:] = values[1:] < values[:-1]
        first = starts[~returning]
        found.add_rows(
            "unordered-batch",
            backward_message(what, values[codes] if backward.any() else values, zoned),
            _mask(_rows_of(first[backward[codes[first]]], rows), len(labels.codes)),
        )
    return labels.codes


def check_phases(column: Column, name: object, found: Findings) -> tuple[IntArray, tuple[str, ...]] | None:
    """Codes of the phases, and their names in order of first appearance."""
    what = f"phase column {name!r}"
    labels = read_labels(column)
    found.add_rows("missing-phase", f"{what} has no value", labels.missing)
    found.add_rows("bad-phase", f"{what} must contain strings", labels.bad | _not_text(labels))
    return labels.codes, tuple(str(label) for label in labels.values)


def check_randomised(column: Column, name: object, found: Findings) -> BoolArray | None:
    """Rounds whose arm was drawn with fixed probabilities."""
    what = f"randomised column {name!r}"
    found.add_rows("missing-randomised", f"{what} has no value", column.missing)
    if column.values.dtype.kind == "b":
        return column.values.copy()
    if column.values.dtype.kind != "O":
        found.add("non-boolean-randomised", f"{what} must be boolean (True or False), not {column.dtype}")
        return None
    boolean = np.array([isinstance(value, (bool, np.bool_)) for value in column.values], dtype=bool)
    found.add_rows("non-boolean-randomised", f"{what} must contain True or False", ~boolean & ~column.missing)
    return np.where(boolean, column.values, False).astype(bool)


def check_units(column: Column, name: object, found: Findings) -> NDArray[Any] | None:
    """Participant in each round."""
    return _check_names("unit", column, name, found)


def check_ids(column: Column, name: object, found: Findings) -> NDArray[Any] | None:
    """Identifier of each decision in other tables."""
    return _check_names("id", column, name, found)


def _check_names(role: str, column: Column, name: object, found: Findings) -> NDArray[Any] | None:
    """Labels that distinguish units, or decisions."""
    what = f"{role} column {name!r}"
    labels = read_labels(column)
    found.add_rows(f"missing-{role}", f"{what} has no value", labels.missing | blank_rows(labels))
    found.add_rows(f"bad-{role}", f"{what} must contain {_LABELS}", labels.bad)
    alike = _alike_another(labels)
    found.add_rows(f"ambiguous-{role}", f"{what} {_AMBIGUOUS}{_example(labels, alike)}", alike)
    limit = whole_numbers(column)
    large = [isinstance(label, float) and abs(label) >= limit for label in labels.values]
    inexact = np.array([*large, False], dtype=bool)[labels.codes] & ~labels.missing
    found.add_rows(f"inexact-{role}", f"{what} {inexact_unit(limit)}", inexact)
    return _expand(labels)


def check_context(column: Column, name: str, found: Findings) -> NDArray[Any] | None:
    """Context as booleans, int64, float64, or strings as objects."""
    what = f"context column {name!r}"
    kind = column.values.dtype.kind
    numbers = map(_is_number, column.values[~column.missing]) if kind == "O" else ()
    if kind == "f" or (kind == "O" and len(column.values) > 0 and all(numbers) and not column.missing.all()):
        return read_numbers(column, what, "context", found, booleans=False)
    found.add_rows("missing-context", f"{what} has no value", column.missing)
    if kind == "b":
        return column.values.copy()
    if kind in "iu":
        too_large = (column.values > np.iinfo(np.int64).max) & ~column.missing
        found.add_rows("inexact-context", f"{what} has whole numbers of more than 64 bits", too_large)
        return column.values.astype(np.int64)
    if kind != "O":
        found.add("bad-context", f"{what} must contain numbers, booleans or strings, not {column.dtype}")
        return None
    labels = read_labels(column)
    kinds = {type(label) for label in labels.values}
    if kinds == {bool} and not labels.bad.any():
        return _expand(labels)
    found.add_rows(
        "bad-context",
        f"{what} of type {column.dtype} must contain only strings; make it numeric or label it with strings",
        labels.bad | _not_text(labels),
    )
    return _expand(labels)


def check_outcome(column: Column, name: str, found: Findings) -> FloatArray | None:
    """An additional outcome as float64; booleans become 0 and 1."""
    return read_numbers(column, f"outcome column {name!r}", "outcome", found, booleans=True)


def read_numbers(
    column: Column, what: str, role: str, found: Findings, *, booleans: bool, gaps: bool = False
) -> FloatArray | None:
    """Finite numbers as float64; missing, infinite, inexact or non-numeric values become problems."""
    if not gaps:
        found.add_rows(f"missing-{role}", f"{what} {FAULTS['missing']}", column.missing)
    if column.values.dtype.kind == "O":
        numbers = _numbers_of_objects(column, what, role, found, booleans)
        if numbers is None:
            return None
        column = numbers
    kind = column.values.dtype.kind
    if kind not in "iuf" and not (booleans and kind == "b"):
        found.add(f"non-numeric-{role}", f"{what} must be numeric, not {column.dtype}")
        return None
    values, inexact = as_float(column.values)
    # Shorter decimals are rounded to the nearest float, as decimals in text are.
    inexact = inexact if column.inexact is None else inexact | (column.inexact & (np.abs(values) >= EXACT))
    values[column.missing] = np.nan
    if role != "propensity":
        found.add_rows(f"infinite-{role}", f"{what} {FAULTS['infinite']}", np.isinf(values))
    # Large decimals are refused as rewards even if a float holds them exactly, so none is reported here.
    if not (column.decimals and role == "reward"):
        found.add_rows(f"inexact-{role}", f"{what} {FAULTS['inexact']}", inexact & np.isfinite(values))
    return values


_CELLS = 5
"""Number of non-numeric entries of a column that are shown."""


def _numbers_of_objects(
    column: Column, what: str, role: str, found: Findings, booleans: bool
) -> Column | None:
    """Objects as floats, and which of them lose digits; None, with a problem, if some are not numbers."""
    wrong = no_number(column, booleans)
    if wrong.any() or column.missing.all():
        _tell_no_numbers(column, wrong, what, role, found)
        return None
    return number_column(column)


def no_number(column: Column, booleans: bool) -> BoolArray:
    """Rows in a column of objects that contain something other than a number."""
    known = [
        _is_number(value) or isinstance(value, Decimal) or (booleans and isinstance(value, (bool, np.bool_)))
        for value in column.values
    ]
    return ~np.array(known, dtype=bool) & ~column.missing


def number_column(column: Column) -> Column:
    """Objects that are all numbers, as floats, and the rows where the value changes."""
    values, inexact = np.full(len(column.values), np.nan), np.zeros(len(column.values), dtype=bool)
    for row in np.flatnonzero(~column.missing):
        values[row], inexact[row] = _nearest_float(column.values[row])
    return Column(values, column.missing | np.isnan(values), column.dtype, inexact)


def _nearest_float(value: Any) -> tuple[float, bool]:
    """A number as a float, and whether its digits change."""
    try:
        number = float(value)
    except OverflowError:
        return np.inf, True
    if isinstance(value, Decimal):
        return number, bool(np.isfinite(number)) and abs(value) > EXACT and Decimal(number) != value
    return number, isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT


def _tell_no_numbers(column: Column, wrong: BoolArray, what: str, role: str, found: Findings) -> None:
    """Report the non-numeric entries of a column of numbers, quoting the first; wrong has shape (T,)."""
    code = f"non-numeric-{role}"
    count, present = int(wrong.sum()), int((~column.missing).sum())
    if not count:
        found.add(code, f"{what} of type {column.dtype} contains no values")
        return
    as_text = np.zeros(len(wrong), dtype=bool)
    for row in np.flatnonzero(wrong):
        as_text[row] = isinstance(column.values[row], str) and _is_numeral(column.values[row])
    if (wrong == as_text).all():
        shown = _shown(column.values[as_text][:_CELLS].tolist(), count)
        message = (
            f"{what} of type {column.dtype} contains numbers as text, such as {shown}; see pandas.to_numeric"
        )
        found.add_rows(code, message, wrong)
        return
    # If the whole column is text, only entries that are no number in any spelling are at fault.
    other = wrong & ~as_text if count == present else wrong
    entries, count = column.values[other][:_CELLS].tolist(), int(other.sum())
    found.add_rows(code, no_numbers(what, column.dtype, role, entries, count, present), other)


def no_numbers(what: str, dtype: str, role: str, entries: Sequence[Any], count: int, present: int) -> str:
    """Descriptions of the kinds of non-numeric entries that are present, given the first ones."""
    shown = _shown(entries, count)
    if count == present:
        success = (
            ", or set 'success' to the label that counts as 1, such as 'Y' (--success Y on the command line)"
        )
        return f"{what} of type {dtype} must be numeric, but contains {shown}{success * (role == 'reward')}"
    return (
        f"{what} contains numbers and {shown}; correct {'this entry' if count == 1 else 'these entries'}, "
        "or list the text that represents a missing value in missing_values="
    )


def _shown(entries: Sequence[Any], count: int) -> str:
    return ", ".join(f"{entry!r:.40}" for entry in entries) + (", ..." if count > len(entries) else "")


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _expand(labels: Labels) -> NDArray[Any] | None:
    """Labels row by row, or None if a row has none."""
    return None if (labels.codes < 0).any() else label_array(labels.values)[labels.codes]


def _not_text(labels: Labels) -> BoolArray:
    """Rows whose label is not a string; rows without a label are ignored."""
    wrong = np.array([not isinstance(label, str) for label in labels.values] + [False], dtype=bool)
    return wrong[labels.codes]


def _alike_another(labels: Labels) -> BoolArray:
    """Rows whose label looks like another, equals another, or belongs to a mixture of types."""
    texts = [reads_as(label) for label in labels.values if isinstance(label, str)]
    if len(texts) == len(labels.values):
        # pyarrow refuses single surrogates, which are not valid text, so objects are used.
        same = pd.Series(texts, dtype=object).duplicated(keep=False)
        return np.array([*same, False], dtype=bool)[labels.codes]
    groups = alike_labels(labels.values) or mixed_labels(labels.values)
    keys = {label_key(label) for alike in groups for label in alike}
    member = np.array([label_key(label) in keys for label in labels.values] + [False], dtype=bool)
    return member[labels.codes]


def _example(labels: Labels, alike: BoolArray) -> str:
    """The first labels that look alike, and their difference; empty if none do; alike has shape (T,)."""
    if not alike.any():
        return ""
    found = list(dict.fromkeys(labels.codes[alike].tolist()))
    groups = alike_labels(labels.values[code] for code in found)
    return f": {told_apart(groups[0])}" if groups else ""


def _rows_of(places: IntArray, rows: IntArray | slice) -> IntArray:
    """Rows at given places among some rows, or among all rows."""
    return places if isinstance(rows, slice) else rows[places]


def _mask(rows: IntArray, length: int) -> BoolArray:
    mask = np.zeros(length, dtype=bool)
    mask[rows] = True
    return mask


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, (bool, np.timedelta64)
    )


def _is_finite_number(value: object) -> bool:
    return _is_number(value) and abs(float(value)) < float("inf")  # type: ignore[arg-type]
