"""The order of rows: the order implied by a column of rounds, dates or batches, and sorting by it."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation.frame_columns import Column, Findings, Label, as_float, read_labels
from adaptinf.log.validation.times.clock_changes import clock_change, in_utc
from adaptinf.typing import BoolArray, IntArray

ISO_EXAMPLES = "2024-03-01 or 2024-03-01T09:30"
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TAIL = (
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[AP])\.?M\.?)?(?:\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d))?)?"
)
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_FORMS = {
    "year-month-day": (
        rf"(?P<year>\d{{4}})(?P<between>[-/.])(?P<month>\d{{1,2}})(?P=between)(?P<day>\d{{1,2}}){_TAIL}"
    ),
    "numbers": rf"(?P<one>\d{{1,2}})(?P<between>[-/.])(?P<two>\d{{1,2}})(?P=between)(?P<year>\d{{4}}){_TAIL}",
    "day month year": rf"{_WEEKDAY}{_DAY}(?P<between>\.?\s*|[-/]){_NAME}[-/,\s]*(?P<year>\d{{4}}){_TAIL}",
    "month day year": rf"{_WEEKDAY}{_NAME}(?P<between>\s*|[-/]){_DAY}[-/,\s]+(?P<year>\d{{4}}){_TAIL}",
    "two digits": rf"\d{{1,2}}(?P<between>/)\d{{1,2}}(?P=between)\d\d{_TAIL}",
    "two digits and a name": rf"\d{{1,2}}(?P<between>[-/\s]?){_NAME}[-/\s]?\d\d{_TAIL}",
    "year-month": r"(?P<year>\d{4})(?P<between>-)(?P<month>0[1-9]|1[0-2])",
    "month/year": r"(?P<month>0?[1-9]|1[0-2])(?P<between>/)(?P<year>\d{4})",
    "month year": rf"{_NAME}(?P<between>[-/\s]*)(?P<year>\d{{4}})",
}
"""Formats of dates; a column must use one of them, with one separator."""
_PATTERNS = {name: re.compile(form, re.ASCII | re.IGNORECASE) for name, form in _FORMS.items()}
_WHOLE_MONTHS = ("year-month", "month/year", "month year")
_TWO_DIGITS = ("two digits", "two digits and a name")


@dataclass(frozen=True, slots=True)
class Dates:
    """A column read as times.

    Attributes
    ----------
    column : Column
        Times without a zone, converted to UTC if there was one; NaT if there is no date. Shape (T,).
    bad : ndarray of bool, shape (T,)
        Entries that are not dates in the column's format.
    told : str
        How text was interpreted, empty for ISO 8601 and for objects.
    problem : str
        The reason why existing dates cannot be read; empty if they can be read.
    """

    column: Column
    bad: BoolArray
    told: str = ""
    problem: str = ""


def read_times(column: Column) -> tuple[Column, BoolArray]:
    """Read a column of ISO 8601 text, dates or datetimes as times; zoned ones become UTC.

    Returns shape bad (T,).
    """
    codes, texts = _distinct(column)
    matches = [_ISO.fullmatch(text) for text in texts]
    iso = [None if match is None else match[0] for match in matches]
    zoned = [match is not None and match["zone"] is not None for match in matches]
    values, bad = _times(iso, zoned)
    return _spread(column, codes, values, bad)


def read_dates(column: Column, date_format: str | None) -> Dates:
    """Read a column of dates in one format, a strptime format if given."""
    codes, texts = _distinct(column)
    if date_format is not None:
        values, bad = _by_format(texts, date_format)
        return Dates(*_spread(column, codes, values, bad), told=f"read with date_format={date_format!r}")
    if all(_ISO.fullmatch(text) for text in texts):
        return Dates(*read_times(column))
    form, member = _usual_form(texts, np.bincount(codes[codes >= 0], minlength=len(texts)))
    order, problem = _order(form, [text for text, kept in zip(texts, member, strict=True) if kept])
    iso = [
        _iso(text, form, order) if kept and not problem else None
        for text, kept in zip(texts, member, strict=True)
    ]
    zoned = [text is not None and (text[-1] == "Z" or "+" in text or text.count("-") > 2) for text in iso]
    values, bad = _times(iso, zoned)
    return Dates(*_spread(column, codes, values, bad), told=f"read as {order}", problem=problem)


def _usual_form(texts: Sequence[str], rows: IntArray) -> tuple[str, list[bool]]:
    """The form that most rows have, and the texts in that form; rows has shape (n,)."""
    shapes = [_shape(text) for text in texts]
    counts: dict[tuple[str, str], int] = {}
    for shape, count in zip(shapes, rows.tolist(), strict=True):
        if shape is not None:
            counts[shape] = counts.get(shape, 0) + count
    usual = max(counts, key=lambda kind: counts[kind], default=("", ""))
    return usual[0], [shape == usual for shape in shapes]


def looks_dated(column: Column) -> BoolArray:
    """Rows that contain a date, or text in the form of a complete date, shape (T,)."""
    codes, texts = _distinct(column)
    shaped = [bool(_ISO.fullmatch(text)) or _whole_date(text) for text in texts]
    return np.array([*shaped, False], dtype=bool)[codes]


def months_alone(column: Column) -> bool:
    """Whether every entry is a month with a year."""
    codes, texts = _distinct(column)
    shapes = [_shape(text) for text in texts]
    every = bool((codes[~column.missing] >= 0).all()) and bool(texts)
    return every and all(shape is not None and shape[0] in _WHOLE_MONTHS for shape in shapes)


def _distinct(column: Column) -> tuple[IntArray, list[str]]:
    """Codes of the distinct texts, shape (T,), -1 for values neither text nor date; and the texts."""
    rows = zip(column.values, column.missing, strict=True)
    known: dict[str, int] = {}
    codes = [-1 if missing else _code(value, known) for value, missing in rows]
    return np.array(codes, dtype=np.int64), list(known)


def _code(value: object, known: dict[str, int]) -> int:
    if isinstance(value, datetime.date):
        value = value.isoformat()
    return known.setdefault(value.strip(), len(known)) if isinstance(value, str) else -1


def _spread(column: Column, codes: IntArray, values: np.ndarray, bad: BoolArray) -> tuple[Column, BoolArray]:
    """Distinct values and faults by row; rows without text are faults unless they are missing."""
    spread = np.append(values, np.array(["NaT"], dtype=values.dtype))[codes]
    wrong = np.append(bad, True)[codes] & ~column.missing
    return Column(spread, column.missing, column.dtype), wrong


def _times(iso: Sequence[str | None], zoned: Sequence[bool]) -> tuple[np.ndarray, BoolArray]:
    """Times from ISO text, and entries that are invalid, or lack a zone that others have."""
    with_zone = np.array(zoned, dtype=bool)
    times = pd.to_datetime(pd.Series(list(iso), dtype="str"), format="ISO8601", errors="coerce", utc=True)
    values = times.dt.tz_localize(None).to_numpy()
    return values, np.isnat(values) | (~with_zone & with_zone.any())


def _by_format(texts: Sequence[str], date_format: str) -> tuple[np.ndarray, BoolArray]:
    # pyarrow refuses single surrogates, which occur in no date.
    whole = [text if text.encode(errors="ignore").decode() == text else None for text in texts]
    times = pd.to_datetime(pd.Series(whole, dtype="str"), format=date_format, errors="coerce", utc=True)
    values = times.dt.tz_localize(None).to_numpy()
    return values, np.isnat(values)


def _shape(text: str) -> tuple[str, str] | None:
    """Form and separator of a date; None for text that is not one."""
    for name, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(text):
            return name, " ".join(match["between"].split())
    return None


def _whole_date(text: str) -> bool:
    shape = _shape(text)
    return shape is not None and shape[0] not in _WHOLE_MONTHS


def _order(form: str, texts: Sequence[str]) -> tuple[str, str]:
    """Order of day, month and year, and why it is ambiguous; one of the two is empty."""
    if form in _TWO_DIGITS:
        return "", (
            f"contains dates such as {texts[0]!r}, whose year has two digits: specify their format with "
            f"'date_format', such as {_suggested(texts[0], '%d', '%m', form)!r}"
        )
    if form != "numbers":
        return form, ""
    pairs = [(int(one), int(two)) for one, two, *_ in (re.split(r"[-/.]", text) for text in texts)]
    first = [text for text, (one, two) in zip(texts, pairs, strict=True) if one > 12 >= two]
    second = [text for text, (one, two) in zip(texts, pairs, strict=True) if two > 12 >= one]
    if first and second:
        return "", (
            f"has the day first in {first[0]!r} and the month first in {second[0]!r}: write the dates in one "
            "format"
        )
    if first or second or all(one == two for one, two in pairs):
        return "day/month/year" if first else "month/day/year", ""
    unclear = next(text for text, (one, two) in zip(texts, pairs, strict=True) if one != two)
    month, day = (_suggested(unclear, *order, form) for order in (("%m", "%d"), ("%d", "%m")))
    return "", (
        f"contains dates such as {unclear!r}, in which day and month cannot be distinguished: set {month!r} "
        f"or {day!r} as 'date_format'"
    )


def _suggested(text: str, one: str, two: str, form: str) -> str:
    """A strptime format for a text with two numbers and a year."""
    if form == "two digits and a name":
        return "%d-%b-%y" if "-" in text else "%d%b%y"
    between = re.sub(r"\d", "", text)[0]
    year = "%y" if form == "two digits" else "%Y"
    clock = re.search(
        r"[T,\s]+\d{1,2}:\d\d(?P<seconds>:\d\d)?(?:\.\d+)?(?P<half>\s*[AP]M)?", text, re.IGNORECASE
    )
    tail = ""
    if clock is not None:
        seconds = ":%S" if clock["seconds"] else ""
        tail = f" %I:%M{seconds} %p" if clock["half"] else f" %H:%M{seconds}"
    return f"{one}{between}{two}{between}{year}{tail}"


def _iso(text: str, form: str, order: str) -> str:
    """A date in ISO 8601; impossible parts stay, so that the result is not a date."""
    match = _PATTERNS[form].fullmatch(text)
    assert match is not None
    part = match.groupdict()
    month, day = part.get("month"), part.get("day") or "1"
    if "one" in part:
        month, day = (part["two"], part["one"]) if order == "day/month/year" else (part["one"], part["two"])
    if part.get("name"):
        month = str(1 + _MONTHS.index(part["name"][:3].lower()))
    day_text = f"{part['year']}-{int(month or 0):02d}-{int(day):02d}"
    if part.get("hour") is None:
        return day_text
    hour = int(part["hour"])
    if half := part.get("half"):
        hour = hour % 12 + 12 * (half.upper() == "P") if 1 <= hour <= 12 else 99
    zone = {"UTC": "Z", "GMT": "Z"}.get((part["zone"] or "").upper(), (part["zone"] or "").upper())
    return f"{day_text}T{hour:02d}:{part['minute']}:{part['second'] or '00'}.{part['fraction'] or '0'}{zone}"


SORT_HINT = "set 'sort' to True (--sort on the command line) to sort the rows by this column"
_ZONED_TYPE = re.compile(r"datetime64\[\w+, |tz=|time_zone='")
"""How pandas, Arrow and Polars write a type for times with a zone."""
_ZONED_TEXT = re.compile(r":\d\d\S*?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)\s*$", re.ASCII | re.IGNORECASE)
_DIGITS = re.compile(r"\d+", re.ASCII)
_WHOLE = re.compile(r"\s*\d{1,300}\s*", re.ASCII)
_FEW = 3
"""Smallest number of numbered labels whose decrease is not attributed to chance."""


def check_date_format(date_format: object, found: Findings) -> str | None:
    """A strptime format, or None if it was not given or is invalid."""
    if date_format is None:
        return None
    if isinstance(date_format, str) and "%" in date_format:
        try:
            read_dates(Column(np.array(["x"], dtype=object), np.array([False]), "object"), date_format)
        except ValueError as error:
            found.add(
                "bad-date-format", f"'date_format' {date_format!r} is not a format for strptime: {error}"
            )
            return None
        return date_format
    found.add(
        "bad-date-format",
        f"date_format must be a format for strptime such as '%d/%m/%Y', got {date_format!r:.60}",
    )
    return None


def date_column(
    column: Column, what: str, role: str, date_format: str | None, found: Findings
) -> Column | None:
    """A column of dates as text or objects, or integers with a format, as times; None if this fails."""
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
    """Batches as times if they are dates, even if only most are; None if there is a problem."""
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
            f"{what} contains dates such as {str(first)!r:.40}, but not in these rows: give every batch a "
            "date in one format, or use labels that are not dates",
            ~dated & ~column.missing,
        )
        return None
    return date_column(column, what, "batch", None, found)


def has_zone(column: Column, date_format: str | None) -> bool:
    """Whether times, or texts of times, have a zone, as determined by the first; all must be alike."""
    if column.values.dtype.kind == "M":
        return bool(_ZONED_TYPE.search(column.dtype))
    if date_format is not None:
        return "%z" in date_format or "%Z" in date_format
    present = np.flatnonzero(~column.missing)
    first = column.values[present[0]] if len(present) else None
    first = first.isoformat() if isinstance(first, datetime.datetime) else first
    return isinstance(first, str) and bool(_ZONED_TEXT.search(first))


def instants(
    column: Column, what: str, role: str, date_format: str | None, zone: str, found: Findings
) -> Column | None:
    """A column of times as instants, using a zone's clock if they have no zone; None if this fails.

    Labels of batches are unchanged.
    """
    zoned, kind = has_zone(column, date_format), column.values.dtype.kind
    read: Column | None = column
    if kind == "O" or (date_format is not None and kind in "iu"):
        dates = batch_dates if role == "batch" else partial(date_column, role=role)
        read = dates(column, what, date_format=date_format, found=found)
    if read is None or (role == "batch" and read.values.dtype.kind != "M"):
        return read
    if read.values.dtype.kind != "M":
        found.add("bad-timezone", f"'timezone' applies to times, but {what} is of type {column.dtype}")
        return None
    if zoned:  # Text with zones has already been converted to UTC.
        return read if kind == "M" else Column(read.values, read.missing, "datetime64[us, UTC]")
    return Column(in_utc(read.values, zone, what, role, found), read.missing, "datetime64[us, UTC]")


def backward_message(what: str, values: NDArray[Any], zoned: bool) -> str:
    """Message on a column that decreases, for values without gaps in row order, shape (n,)."""
    if not zoned and values.dtype.kind == "M" and (told := clock_change(what, values)):
        return told
    down = len(values) > 1 and bool(np.all(values[1:] <= values[:-1]))
    stored = f"{what} decreases: its rows are stored newest first" if down else f"{what} decreases"
    return (
        f"{stored}. If the column gives the time at which the arms were chosen, {SORT_HINT}; otherwise sort "
        f"the rows by that time yourself"
    )


def date_formats(
    columns: Mapping[str, Column], date_format: str | None, found: Findings
) -> dict[str, str | None]:
    """The format for each column: for integers, such as 20240301, only if no other column is text."""
    for kinds in ("O", "iu"):
        dated = [role for role, column in columns.items() if column.values.dtype.kind in kinds]
        if dated and date_format is not None:
            return dict.fromkeys(dated, date_format)
    if date_format is not None:
        found.add("bad-date-format", "'date_format' is set, but no column of round= or batch= contains text")
    return {}


def row_order(
    sort: object,
    columns: Mapping[str, Column],
    names: Mapping[str, object],
    formats: Mapping[str, str | None],
    found: Findings,
) -> IntArray | None:
    """Row positions in the order of rounds, otherwise batches; None if already ordered."""
    if not isinstance(sort, (bool, np.bool_)):
        found.add("bad-sort", f"sort must be True or False, got {sort!r:.60}")
        return None
    role = next((role for role in ("round", "batch") if role in names), None)
    if not sort or (role is not None and role not in columns):
        return None
    if role is None:
        found.add(
            "bad-sort",
            "'sort' requires round= or batch=, the column with the times at which arms were chosen",
        )
        return None
    keys = _sort_keys(role, columns[role], formats.get(role))
    if keys is None:
        found.add(
            "bad-sort",
            f"'sort': {role} column {names[role]!r} contains labels, not numbers or dates to sort by; sort "
            "the rows yourself",
        )
        return None
    if keys.dtype.kind == "M" and not has_zone(columns[role], formats.get(role)) and clock_change("", keys):
        return None  # The check of the column reports the change of clocks.
    order = np.argsort(keys, kind="stable")
    moved = int((order != np.arange(len(order))).sum())
    if not moved:
        return None
    newest = " (stored newest first)" if bool(np.all(keys[1:] <= keys[:-1])) else ""
    values = {"role": role, "name": names[role], "newest": newest, "moved": moved, "rows": len(order)}
    found.tell("order", claims.SORTED(**values))
    return order


def tell_ties(what: str, rounds: NDArray[Any], batched: bool, found: Findings) -> None:
    """Report rows with the same value as the previous row; rounds have shape (T,)."""
    tied, rows = int(np.count_nonzero(rounds[1:] == rounds[:-1])), len(rounds)
    if not tied:
        return
    if batched or 2 * tied < rows:
        found.tell("order", claims.TIES(column=what, tied=tied, rows=rows))
    else:
        found.tell("caution", claims.COARSE(column=what, tied=tied, rows=rows))


def text_numbers(labels: Sequence[Label]) -> list[int] | None:
    """Numbers in text labels; None if they are not numbered."""
    if labels and all(isinstance(label, str) and _WHOLE.fullmatch(label) for label in labels):
        return [int(label) for label in labels]
    return None


def tell_numbered(what: str, labels: Sequence[Label], found: Findings) -> None:
    """Report labels such as week 3, week 2, week 1, whose numbers decrease from batch to batch."""
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
    """Numbers or times to sort by, shape (T,); None for labels. Any problems with them are reported later."""
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
        return column.values
    if kind not in "iuf":
        return None
    return column.values if kind in "iu" else np.nan_to_num(as_float(column.values)[0])


def _tell_bad(
    column: Column, what: str, role: str, dates: Dates, date_format: str | None, found: Findings
) -> None:
    first = ", ".join(list(dict.fromkeys(f"{value!r:.40}" for value in column.values[dates.bad][:100]))[:3])
    if date_format is not None:
        message = f"{what} must contain dates of the format {date_format!r}, not {first}"
    else:
        message = (
            f"{what} must contain numbers, times, or dates in one format such as {ISO_EXAMPLES} or "
            f"3/31/2024 (all with a time zone, or none), not {column.dtype} such as {first}"
        )
    every: BoolArray = ~column.missing
    if np.array_equal(dates.bad, every):
        found.add(f"bad-{role}", message)
    else:
        found.add_rows(f"bad-{role}", message, dates.bad)


def _day(values: NDArray[Any], place: int) -> str:
    """The first or last day among times."""
    present = np.sort(values[~np.isnat(values)])
    return str(present[place].astype("datetime64[D]"))
