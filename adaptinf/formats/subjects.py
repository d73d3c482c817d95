"""Subjects of a trial: who they are, who is in the population, and in which order they were assigned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from warnings import warn

import numpy as np
import pandas as pd

from adaptinf.errors import AdaptinfWarning
from adaptinf.formats.tables import column_of, labels_of
from adaptinf.log.validation.columns import (
    Column,
    as_float,
    blank_rows,
    label_key,
)
from adaptinf.log.validation.findings import Findings
from adaptinf.log.validation.times import ISO_EXAMPLES, read_times
from adaptinf.typing import BoolArray

SUBJECT = "USUBJID"
_SHOWN = 5
_FLAGS = ("Y", "N", "")


def name_problems(adsl: str, subjects: pd.DataFrame, analysis: str, outcomes: pd.DataFrame) -> list[str]:
    """Names of subjects that are none, that differ by blanks alone, or that ADSL does not have."""
    known, problems = _names(adsl, subjects)
    found, more = _names(analysis, outcomes)
    problems += more
    strangers = [label for label in found if label_key(label) not in set(map(label_key, known))]
    if strangers:
        problems.append(f"{adsl} lacks subjects that {analysis} has: {examples(strangers)}")
    spelled: dict[str, Any] = {}
    for label in [*known, *found]:
        other = spelled.setdefault(str(label).strip(), label)
        if label_key(other) != label_key(label) and label not in strangers:
            problems.append(f"{adsl}: the subjects {other!r} and {label!r} differ by blanks or type alone")
    return problems


def _names(what: str, frame: pd.DataFrame) -> tuple[list[Any], list[str]]:
    labels = labels_of(frame, SUBJECT)
    wrong = labels.missing | labels.bad | blank_rows(labels)
    problems = [f"{what}: {SUBJECT} of row {np.flatnonzero(wrong)[0]} names nobody"] if wrong.any() else []
    return labels.values, problems


def flag_problems(adsl: str, subjects: pd.DataFrame, population: str) -> list[str]:
    """Flags that are neither Y nor N nor missing: nobody can say who is meant."""
    odd = [flag for flag in subjects[population].tolist() if not _is_flag(flag)]
    listed = ", ".join(dict.fromkeys(f"{flag!r:.40}" for flag in odd[:_SHOWN]))
    return [f"{adsl}: the flag {population} must be Y, N or empty, and is {listed}"] if odd else []


def _is_flag(flag: Any) -> bool:
    missing = flag is None or flag is pd.NA or (isinstance(flag, float) and np.isnan(flag))
    return missing or (isinstance(flag, str) and flag in _FLAGS)


def chosen_records(records: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.DataFrame:
    """Records whose columns have the very values that are wanted."""
    keep = np.ones(len(records), dtype=np.bool_)
    for column, value in wanted.items():
        keep &= np.array([_is(entry, value) for entry in records[column].tolist()], dtype=np.bool_)
    return records[keep]


def _is(entry: Any, value: Any) -> bool:
    if isinstance(entry, bool) != isinstance(value, bool):
        return False
    try:
        return bool(entry == value)
    except (TypeError, ValueError):  # such as arrays, and values that are missing
        return False


def order_values(adsl: str, subjects: pd.DataFrame, keys: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Columns by which subjects are sorted, dates in text as times, and what has no order that is meant."""
    values, problems = {}, []
    for key in keys:
        column, bad = _ordered(column_of(subjects, key))
        values[key] = pd.Series(column.values, index=subjects.index).mask(column.missing)
        if bad.any():
            first = subjects[key].iloc[np.flatnonzero(bad)[0]]
            problems.append(
                f"{adsl}: {key}, by which subjects are put in order, must hold numbers, times or ISO dates "
                f"such as {ISO_EXAMPLES}, and has {first!r:.40}; in text, 10 comes before 9"
            )
    return pd.DataFrame(values, index=subjects.index), problems


def _ordered(column: Column) -> tuple[Column, BoolArray]:
    """A column as numbers or times, and the rows where it is neither."""
    kind = column.values.dtype.kind
    if kind == "O":
        rows = list(zip(column.values, column.missing, strict=True))
        if all(missing or isinstance(value, int | float | np.number) for value, missing in rows):
            bad = np.array([not missing and _no_number(value) for value, missing in rows], dtype=np.bool_)
            values = np.array(
                [
                    math.nan if odd else float(value)
                    for odd, value in zip(bad | column.missing, column.values, strict=True)
                ]
            )
            return Column(values, column.missing, column.dtype), bad
        return read_times(column)
    if kind in "iuf":
        values, inexact = as_float(column.values)
        return column, (inexact | np.isinf(values)) & ~column.missing
    return column, np.full(len(column.values), kind != "M") & ~column.missing


def _no_number(value: Any) -> bool:
    """Whether a number has no place among floats: truth values, spans of time, what a float rounds."""
    odd = isinstance(value, bool | np.bool_ | np.timedelta64 | complex | np.complexfloating)
    size = float(value) if isinstance(value, np.floating) else value  # half floats have no 2**53
    return odd or abs(size) > 2**53 or float(value) != value


def check_subjects(
    source: str, subjects: pd.DataFrame, outcomes: pd.DataFrame, order: pd.DataFrame, treatment: str
) -> None:
    """Raise one error with every subject that has no treatment, no outcome, or no place of its own."""
    findings = Findings()
    names, keys = subjects[SUBJECT], ", ".join(map(str, order))
    repeated = names.duplicated(keep=False).to_numpy()
    findings.add_rows("repeated-subject", "ADSL has a subject more than once", repeated)
    labels = labels_of(subjects, treatment)
    untreated = labels.missing | labels.bad | blank_rows(labels)
    findings.add_rows("no-treatment", f"no {treatment} for {examples(names[untreated])}", untreated)
    counts = outcomes[SUBJECT].value_counts()
    records = counts.reindex(names.drop_duplicates()).fillna(0).reindex(names).to_numpy()
    findings.add_rows("no-outcome", f"no record for {examples(names[records == 0])}", records == 0)
    findings.add_rows(
        "several-outcomes",
        f"several records for {examples(names[records > 1])}: say which with records=",
        records > 1,
    )
    unordered = order.isna().any(axis=1).to_numpy()
    findings.add_rows("no-order", f"no value of {keys}", unordered)
    tied = order.duplicated(keep=False).to_numpy() & ~unordered
    findings.add_rows(
        "tied-order",
        f"subjects share their place in the order ({keys}): add a column that tells them apart",
        tied,
    )
    findings.raise_if_any(source)


def tell_deviations(subjects: pd.DataFrame, planned: str, actual: str) -> None:
    """Warn of subjects who got another treatment than planned."""
    columns = [labels_of(subjects, name) for name in (planned, actual)]
    one, two = ([*map(label_key, labels.values), None] for labels in columns)
    pairs = zip(columns[0].codes, columns[1].codes, strict=True)
    other = np.array([one[first] != two[second] for first, second in pairs], dtype=np.bool_)
    if other.any():
        warn(
            f"{int(other.sum())} of {len(subjects)} subjects got another treatment than planned "
            f"({examples(subjects[SUBJECT][other])}): {actual} differs from {planned}",
            AdaptinfWarning,
            stacklevel=3,
        )


def examples(names: Any) -> str:
    """The first of some names."""
    listed = list(names)
    shown = ", ".join(map(str, listed[:_SHOWN]))
    return f"{shown}, ..." if len(listed) > _SHOWN else shown
