"""Literal rules for text: codes, dates of any one format, outcomes that are labels."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NUMBER = re.compile(r"[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*", re.ASCII)
WHOLE = re.compile(r"[ \t]*[-+]?\d+[ \t]*", re.ASCII)
ABSENT = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
"N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}  # fmt: skip


DAYS = [
    f"{a}{s}{b}{s}{c}"
    for s in "/-."
    for a, b, c in (("%m", "%d", "%Y"), ("%d", "%m", "%Y"), ("%Y", "%m", "%d"))
]
NAMED = ["%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"]
CLOCKS = ["", " %H:%M", " %H:%M:%S"]
FULL = [day + clock for day in DAYS + NAMED for clock in CLOCKS]
SHORT = ["%m/%d/%y", "%d/%m/%y", "%d-%b-%y", "%d%b%y"]
MONTHS = ["%Y-%m", "%m/%Y", "%b %Y", "%B %Y"]
CODE = re.compile(r"0\d+", re.ASCII)


class MustRefuse(Exception):
    """No right reader makes a log of this."""


class Spoilt(str):
    """A cell of a column of numbers that some text has made text."""


def demand(truth: bool, why: str) -> None:
    """Refuse where something does not hold."""
    if not truth:
        raise MustRefuse(why)


def is_missing(value: Any) -> bool:
    """Whether a value is none."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and math.isnan(value)


def plain(value: Any) -> Any:
    """A scalar of NumPy as Python's own; long doubles have none."""
    if isinstance(value, np.longdouble):
        return float(value) if float(value) == value else value
    return value.item() if isinstance(value, np.generic) else value


def strptime(text: str, date_format: str) -> datetime.datetime | None:
    """A time, or None; a year of four digits has four."""
    text = text.strip()
    if "%Y" in date_format and not re.search(r"(?<!\d)\d{4}(?!\d)|[A-Za-z]\d{4}", text):
        return None
    try:
        return datetime.datetime.strptime(text, date_format)
    except ValueError:
        return None


def iso_time(text: str) -> np.datetime64 | None:
    """A date or a time in ISO 8601, or None."""
    text = text.strip()
    if not re.match(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return None
    fraction = re.search(r"\.(\d+)", text)
    try:
        time = datetime.datetime.fromisoformat(text.replace(fraction[0], "") if fraction else text)
    except ValueError:
        return None
    if time.tzinfo is not None:
        time = time.astimezone(datetime.UTC).replace(tzinfo=None)
    digits = fraction[1] if fraction else ""
    return np.datetime64(time, "ns") + np.timedelta64(int(digits.ljust(9, "0")[:9]), "ns")


def times_of(texts: Sequence[str], date_format: str | None, months: bool = False) -> list[Any]:
    """Times of texts of one format; refused where there is none, or several that differ."""
    if date_format is not None:
        found = [strptime(text, date_format) for text in texts]
        demand(None not in found, "no date of the format")
        return [np.datetime64(time, "ns") for time in found]
    iso = [iso_time(text) for text in texts]
    if None not in iso:
        return iso
    kinds = [FULL[at : at + len(CLOCKS)] for at in range(0, len(FULL), len(CLOCKS))]
    kinds += [[one] for one in MONTHS] if months else []
    answers = []
    for kind in kinds:
        read = [next((time for one in kind if (time := strptime(text, one))), None) for text in texts]
        if None not in read:
            answers.append([np.datetime64(time, "ns") for time in read])
    demand(bool(answers), "no date")
    demand(all(answer == answers[0] for answer in answers), "the month or the day")
    return answers[0]


def is_dated(value: Any) -> bool:
    """Whether a value looks like a whole date."""
    if isinstance(value, datetime.date):
        return True
    text = isinstance(value, str)
    return text and (
        iso_time(value) is not None or any(strptime(value, one) is not None for one in FULL + SHORT)
    )


def batch_values(values: Sequence[Any], date_format: str | None) -> list[Any] | None:
    """Batches as times where they are dates; None for labels."""
    if all(isinstance(value, datetime.date) and not is_missing(value) for value in values):
        return times_of([value.isoformat() for value in values], None)
    if not any(isinstance(value, str | datetime.date) for value in values):
        return None
    demand(not any(map(is_missing, values)), "missing batch")
    texts = [value.isoformat() if isinstance(value, datetime.date) else value for value in values]
    if date_format is not None:
        demand(all(isinstance(text, str) for text in texts), "no text")
        return times_of(texts, date_format)
    dated = [is_dated(value) for value in values]
    distinct = len(set(map(str, values)))
    n_dates = len({str(value) for value, one in zip(values, dated, strict=True) if one})
    if n_dates and 2 * n_dates >= distinct:
        demand(all(dated), "dates and others")
        return times_of(texts, None)
    months = [isinstance(text, str) and any(strptime(text, one) for one in MONTHS) for text in texts]
    return times_of(texts, None, months=True) if all(months) else None


def batch_numbers(values: Sequence[Any]) -> list[int] | None:
    """Text of whole numbers alone, by which batches are in order."""
    texts = [
        value
        for value in values
        if isinstance(value, str) and re.fullmatch(r"\s*\d{1,300}\s*", value, re.ASCII)
    ]
    return [int(text) for text in texts] if len(texts) == len(values) else None


def outcomes(values: Sequence[Any], success: Any) -> list[float]:
    """Labels as numbers, as the user says."""
    values = [str(value) if isinstance(value, str) else plain(value) for value in values]
    demand(not any(map(is_missing, values)), "missing")
    kinds = (str, int, float, bool)
    demand(
        all(type(value) in kinds and (type(value) is not float or math.isfinite(value)) for value in values),
        "label",
    )
    if isinstance(success, Mapping):
        demand(all(isinstance(value, str) and value in success for value in values), "no number")
        return [float(success[value]) for value in values]
    others = {(type(value), value) for value in values if value != success}
    demand(success in values and len(others) <= 1, "other texts")
    alike = {str(value).strip().casefold() for _, value in others}
    demand(success.strip().casefold() not in alike and "" not in alike, "texts that look the same")
    return [float(value == success) for value in values]


def kept_texts(texts: Sequence[str], read: Sequence[Any], role: str) -> list[Any]:
    """A column of a CSV whose numbers would lose how they are written, as text; else as it was read."""
    if any(isinstance(value, str) for value in read):
        return list(read)
    kept = [None if text.strip() in ABSENT else text.strip() for text in texts]
    spelt = {text for text in kept if text is not None}
    if role == "text":
        return kept
    groups = itertools.groupby(sorted(spelt, key=value_of), key=value_of)
    several = [list(group) for _, group in groups]
    for group in several:
        digits = all(re.fullmatch(r"\d+", text, re.ASCII) for text in group)
        demand(
            role == "context" or len(group) == 1 or (digits and role == "label"), "one number, two spellings"
        )
    codes = any(CODE.fullmatch(text) for text in spelt)
    if role == "label":
        return kept if codes or not all(map(plainly, spelt)) else list(read)
    whole = all(re.fullmatch(r"\d+", text, re.ASCII) for text in spelt)
    return kept if role == "context" and codes and whole else list(read)


def value_of(text: str) -> float:
    """The number that a cell is; truth values are two others."""
    return {"True": math.inf, "False": -math.inf}.get(text) or float(text)


def plainly(text: str) -> bool:
    """Whether Python writes the number in this way."""
    if text in ("True", "False"):
        return True
    if WHOLE.fullmatch(text) and "+" not in text:
        return len(text) <= 300 and str(int(text)) == text
    return bool(NUMBER.fullmatch(text)) and repr(float(text)) == text
