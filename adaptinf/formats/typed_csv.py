"""CSV formats for which the user gives no column names: pandas infers types, and labels stay as written."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype

from adaptinf.claims.logs import readings as claims
from adaptinf.log.storage.delimited import check_rows, header_names
from adaptinf.log.storage.text_columns import CODE, FEW, NUMERAL, one_label, plainly_written

_NUMERAL = re.compile(rf"\s*{NUMERAL}\s*", re.ASCII)


# pandas 3.0 does not read decimals exactly unless it is told to; later versions do, and warn of the option.
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if pd.__version__.startswith("3.0.") else {}


def read_csv_table(path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """The table of a CSV; pandas infers the types of its columns, except those of `text`.

    Raises ValueError, with the lines, for bytes that are not UTF-8, NUL characters, unclosed quotes, and rows
    whose length differs from the header.
    """
    data = path.read_bytes()
    names = header_names(data)
    _check_characters(data)
    check_rows(data, len(names))
    with warnings.catch_warnings():
        # pandas only warns when it drops the surplus fields of a row, which would lose data.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame: pd.DataFrame = pd.read_csv(
            io.BytesIO(data),
            index_col=False,
            low_memory=False,
            encoding="utf-8-sig",
            **_EXACT,
            dtype={name: "str" for name in text if name in names},
        )
    # pandas renames repeated columns, but the checks need to see the repetition.
    frame.columns = pd.Index(names)
    return frame


def mixed_problems(path: Path, frame: pd.DataFrame, context: Iterable[str]) -> list[str]:
    """Contexts in a CSV that pandas read as text because some of their numbers are missing or too large."""
    problems: list[str] = []
    if path.suffix.lower() != ".csv":
        return problems
    for name in dict.fromkeys(context):
        if name not in frame or frame.columns.duplicated().any() or not is_string_dtype(frame[name]):
            continue
        texts = list(map(str, frame[name].dropna().unique()))
        others = [text for text in texts if not _NUMERAL.fullmatch(text)]
        numerals = [text for text in texts if _NUMERAL.fullmatch(text)]
        fractions = any(not text.strip().lstrip("+-").isdigit() for text in numerals)
        blank = any(not text.strip() for text in others)
        many = fractions or blank or len(numerals) > FEW or not others
        coded = any(CODE.fullmatch(text.strip()) for text in numerals)
        many &= not coded or not all(any(map(str.isdecimal, text)) for text in others)
        if numerals and len(others) < len(numerals) and many:
            odd = others[0] if others else max(numerals, key=len)
            problems.append(
                f"{path}: column {name!r} has text among its numbers, or numbers of more than 64 bits, such "
                f"as {odd!r:.40}, and would be read as labels: correct the text, or leave missing values "
                f"empty"
            )
    return problems


def as_written(
    path: Path,
    frame: pd.DataFrame,
    labels: Collection[str] = (),
    context: Collection[str] = (),
    text: Collection[str] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """Columns of a CSV whose labels would change if converted to numbers, and those kept as text."""
    # Labels are kept as text if Python would write the number or truth value differently (01, 1.50, TRUE).
    # Contexts are kept if they are whole numbers with leading zeros, which are codes, and `text` columns
    # always.
    if path.suffix.lower() != ".csv" or frame.columns.duplicated().any():
        return frame, []
    wanted = dict.fromkeys(labels, "label") | dict.fromkeys(context, "context")
    wanted |= dict.fromkeys(text, "text")
    typed = {name: wanted[name] for name in _not_text(frame, wanted)}
    kept, told = {}, list[str]()
    for name, column in _texts(path, frame, typed).items():
        spelt = column.dropna().str.strip().unique().tolist()
        codes = [each for each in spelt if CODE.fullmatch(each)]
        odd = [each for each in spelt if not _as_python_writes(each)]
        # Blanks and infinities are no labels, so such a column contains numbers.
        if any(isinstance(_value(each), str) for each in spelt):
            odd, codes = [], []
        whole = all(each.isdecimal() for each in spelt)
        chosen = {"label": codes or odd, "context": codes if whole else [], "text": spelt}[typed[name]]
        if chosen:
            kept[name] = column.str.strip()  # Blanks around numbers do not count.
            if typed[name] != "text":
                told.append(claims.AS_WRITTEN(name=name, example=chosen[0]))
    return frame.assign(**kept) if kept else frame, told


def merged_problems(
    path: Path, frame: pd.DataFrame, labels: Iterable[str], batch: Iterable[str] = ()
) -> list[str]:
    """Columns of labels in a CSV in which one number is written in several ways, such as 1 and 1.0."""
    # Whole numbers with and without leading zeros, such as 01 and 1, are different labels, except for
    # batches.
    if path.suffix.lower() != ".csv" or frame.columns.duplicated().any():
        return []
    listed = dict.fromkeys(labels, False) | dict.fromkeys(batch, True)
    problems = []
    for name, column in _texts(path, frame, _not_text(frame, listed)).items():
        spelt: dict[object, list[str]] = {}
        for text in column.dropna().str.strip().unique().tolist():
            spelt.setdefault(_value(text), []).append(text)
        several = [
            texts
            for value, texts in spelt.items()
            if len(texts) > 1
            and not isinstance(value, str)
            and (listed[name] or not all(text.isdecimal() for text in texts))
        ]
        if several:
            problems.append(f"{path}: {one_label(name, several[0])}")
    return problems


def _not_text(frame: pd.DataFrame, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in frame and not is_string_dtype(frame[name])]


def _texts(path: Path, frame: pd.DataFrame, names: Collection[str]) -> dict[str, pd.Series[str]]:
    """Columns of a CSV as the original text, NaN if empty."""
    if not names:
        return {}
    places = sorted(list(frame.columns).index(name) for name in names)
    texts = pd.read_csv(path, usecols=places, dtype="str", encoding="utf-8-sig", index_col=False)
    return {str(frame.columns[place]): texts.iloc[:, at] for at, place in enumerate(places)}


def _value(text: str) -> object:
    """The number or boolean that pandas reads; the text itself if it is neither."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true", bool
    return float(text) if _NUMERAL.fullmatch(text) else text


def _as_python_writes(text: str) -> bool:
    """Whether Python would write the number or boolean in this form."""
    return text in ("True", "False") or bool(_NUMERAL.fullmatch(text) and plainly_written(text))


def _check_characters(data: bytes) -> None:
    if (at := data.find(b"\0")) >= 0:
        number = data.count(b"\n", 0, at) + 1
        raise ValueError(f"line {number} has a NUL character, which text files must not contain")
    for number, line in enumerate(io.BytesIO(data), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8 text ({error.reason}): save it as UTF-8") from None
