"""CSV: a log's columns as text with its metadata in a sidecar, and the tables of other people.

The two files of a log are replaced one after the other, and yet a reader finds the old log or the new one
wherever the writer is stopped. The sidecar holds the hash of the table that it belongs to, and the new one
waits under a name of its own until the new table is there:

1. the new table is written under a temporary name:   table old, sidecar old
2. the new sidecar is written as ``<path>.json.new``: table old, sidecar old, the new one waits
3. the new table gets its name:                       table new, sidecar old, the new one waits
4. the waiting sidecar gets its name:                 table new, sidecar new

Every step is one renaming, on the disk before the next begins. The reader takes the sidecar whose hash is
that of the table: the old one up to step 2, the waiting one after step 3, the new one after step 4. A writer
that finds a waiting sidecar of the table that is there first does step 4 of the writer that was stopped, so
that its own step 2 cannot overwrite the only sidecar of that table.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_string_dtype

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.files import file_digest, publish, real, stage, told
from adaptinf.log.storage.delimited import check_rows, header_names
from adaptinf.log.storage.header import (
    check_table,
    check_version,
    encode_table,
    header_of,
    log_from,
    version_of,
)
from adaptinf.log.storage.stored import RestoredLog, StoredLog

_SHOWN = 5
_NUMERAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_CODE = re.compile(r"0\d+", re.ASCII)
_LONGEST = 400
"""Characters of a number; Python does not read whole numbers of more than 4,300."""
_FEW = 10
"""Distinct whole numbers that may be labels beside text, as 0, 1, 2 and 3+ are."""


def read_foreign(data: bytes, names: list[str], text: Collection[str] = ()) -> pd.DataFrame:
    """Columns of a CSV whose header has these names; pandas decides their types, but for those of `text`.

    Raises ValueError, with the lines, for bytes that are no UTF-8, NUL characters, quotes that do not close
    and rows of other lengths than the header.
    """
    _check_characters(data)
    check_rows(data, len(names))
    with warnings.catch_warnings():
        # pandas warns where it drops the surplus fields of a row.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame: pd.DataFrame = pd.read_csv(
            io.BytesIO(data),
            index_col=False,
            low_memory=False,
            encoding="utf-8-sig",
            dtype={name: "str" for name in text if name in names},
        )
    # pandas renames repeated columns; who reads the frame has to see them.
    frame.columns = pd.Index(names)
    return frame


def mixed_problems(path: Path, frame: pd.DataFrame, context: Iterable[str]) -> list[str]:
    """Contexts of a CSV that pandas took for text, as a few of their numbers are none or too large."""
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
        many = fractions or blank or len(numerals) > _FEW or not others
        coded = any(_CODE.fullmatch(text.strip()) for text in numerals)
        many &= not coded or not all(any(map(str.isdecimal, text)) for text in others)
        if numerals and len(others) < len(numerals) and many:
            odd = others[0] if others else max(numerals, key=len)
            problems.append(
                f"{path}: column {name!r} has text among its numbers, or numbers of more than 64 bits, such "
                f"as {odd!r:.40}, and would be read as labels: correct it, or leave out what is missing"
            )
    return problems


def as_written(
    path: Path,
    frame: pd.DataFrame,
    labels: Collection[str] = (),
    context: Collection[str] = (),
    text: Collection[str] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a CSV whose labels numbers would not keep as text, and what was kept so."""
    # Of `labels` all that is spelt otherwise than Python writes the number or truth value (01, 1.50, TRUE);
    # of `context` whole numbers with leading zeros; the columns of `text` in any case.
    if path.suffix.lower() != ".csv" or frame.columns.duplicated().any():
        return frame, []
    wanted = dict.fromkeys(labels, "label") | dict.fromkeys(context, "context")
    wanted |= dict.fromkeys(text, "text")
    typed = {name: wanted[name] for name in _not_text(frame, wanted)}
    kept, told = {}, list[str]()
    for name, column in _texts(path, frame, typed).items():
        spelt = column.dropna().str.strip().unique().tolist()
        codes = [each for each in spelt if _CODE.fullmatch(each)]
        odd = [each for each in spelt if not _plainly_written(each)]
        if any(isinstance(_value(each), str) for each in spelt):  # blanks and infinities: nobody's labels
            odd, codes = [], []
        whole = all(each.isdecimal() for each in spelt)
        chosen = {"label": codes or odd, "context": codes if whole else [], "text": spelt}[typed[name]]
        if chosen:
            kept[name] = column.str.strip()  # as blanks around numbers do not count
            if typed[name] != "text":
                told.append(claims.AS_WRITTEN(name=name, example=chosen[0]))
    return frame.assign(**kept) if kept else frame, told


def merged_problems(
    path: Path, frame: pd.DataFrame, labels: Iterable[str], batch: Iterable[str] = ()
) -> list[str]:
    """Columns of labels of a CSV in which one number is spelt in several ways, such as 1 and 1.0."""
    # Whole numbers with and without leading zeros are labels of their own, but as batches.
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
            shown = " and ".join(map(repr, several[0][:_SHOWN]))
            problems.append(
                f"{path}: column {name!r} holds {shown}, which would be one label: spell a label in one "
                "way, or read the file with pandas and dtype=str"
            )
    return problems


def _not_text(frame: pd.DataFrame, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in frame and not is_string_dtype(frame[name])]


def _texts(path: Path, frame: pd.DataFrame, names: Collection[str]) -> dict[str, pd.Series[str]]:
    """Columns of a CSV as the text that stands there, NaN where nothing does."""
    if not names:
        return {}
    places = sorted(list(frame.columns).index(name) for name in names)
    texts = pd.read_csv(path, usecols=places, dtype="str", encoding="utf-8-sig", index_col=False)
    return {str(frame.columns[place]): texts.iloc[:, at] for at, place in enumerate(places)}


def _value(text: str) -> object:
    """The number or truth value that pandas reads; the text itself where it is none."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true", bool
    return float(text) if _NUMERAL.fullmatch(text) else text


def _plainly_written(text: str) -> bool:
    """Whether Python writes a number or truth value in this way."""
    if text in ("True", "False"):
        return True
    if not _NUMERAL.fullmatch(text) or len(text) > _LONGEST:
        return False
    return text == (str(int(text)) if text.lstrip("-").isdecimal() else repr(float(text)))


def _check_characters(data: bytes) -> None:
    if (at := data.find(b"\0")) >= 0:
        number = data.count(b"\n", 0, at) + 1
        raise ValueError(f"line {number} has a NUL character, which no text has")
    for number, line in enumerate(io.BytesIO(data), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is no UTF-8 text ({error.reason}): save it as UTF-8") from None


def write_csv(path: Path, log: StoredLog, owner_only: bool = False) -> None:
    """Write a log as CSV, and its metadata beside it as ``<path>.json``."""
    releases = encode_table(log.releases)
    header = header_of(log, releases)
    text = pd.DataFrame({name: _as_text(values) for name, values in log.columns.items()})
    with told(path, "written"):
        place = real(path)
        given = _sidecar(path)
        sidecar = real(given if given.exists() else _sidecar(place))
        waiting = _waiting(sidecar)
        _finish(place, sidecar, waiting)
        table = stage(
            place,
            lambda file: text.to_csv(
                file, index=False, na_rep="nan", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
            ),
            owner_only=owner_only,
        )
        try:
            whole = header | {"sha256": file_digest(table), "releases": releases}
            # Of a table that others may not read, the metadata may not be read either.
            like = sidecar if sidecar.exists() else table
            publish(stage(waiting, lambda file: file.write(_json(whole)), like, owner_only), waiting)
            publish(table, place)
        finally:
            table.unlink(missing_ok=True)
        publish(waiting, sidecar)


def read_csv(path: Path, named: bool) -> RestoredLog | None:
    """A log that adaptinf wrote; None for any other file."""
    # Where the columns are `named`, a log of a version without a digest counts as such.
    if not any(sidecar.exists() for sidecar in sidecars(path)):
        return None
    data = path.read_bytes()
    stored = _metadata(path, hashlib.sha256(data).hexdigest(), named)
    if stored is None:
        return None
    names = header_names(data)
    check_version(stored)
    frame = pd.read_csv(io.BytesIO(data), index_col=False, dtype=str, na_filter=False)
    dtypes = check_table(stored, len(frame), names)
    columns = {name: _from_text(frame.iloc[:, i], dtypes[name]) for i, name in enumerate(names)}
    said = {name: value for name, value in stored.items() if name not in ("sha256", "releases")}
    return log_from(said, stored["releases"], columns)


def read_csv_table(path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """Table of other people; the columns of `text` are text whatever they hold."""
    data = path.read_bytes()
    return read_foreign(data, header_names(data), text)


def sidecars(path: Path) -> list[Path]:
    """Names under which the metadata of a CSV may stand: beside its name, and where links lead."""
    beside = [_sidecar(path), _sidecar(real(path))]
    places = [place for sidecar in beside for place in (sidecar, real(sidecar))]
    return list(dict.fromkeys([*places, *map(_waiting, places)]))


def _sidecar(table: Path) -> Path:
    return table.with_name(f"{table.name}.json")


def _waiting(sidecar: Path) -> Path:
    return sidecar.with_name(f"{sidecar.name}.new")


def _finish(place: Path, sidecar: Path, waiting: Path) -> None:
    """Do what a writer left undone that was stopped before its waiting sidecar got its name."""
    if waiting.exists() and _is_of(_content(waiting), file_digest(place)):
        publish(waiting, sidecar)


def _metadata(path: Path, digest: str, named: bool) -> Any:
    """What the sidecar of a table says; None where the table counts as one of other people."""
    found = {sidecar: _content(sidecar) for sidecar in sidecars(path) if sidecar.exists()}
    own = [stored for stored in found.values() if _is_of(stored, digest)]
    # A writer that was stopped may have left the waiting sidecar of a table that never came.
    others = [(sidecar, stored) for sidecar, stored in found.items() if sidecar.suffix != ".new"]
    if own or not others:
        stored = own[0] if own else None
        return None if named and version_of(stored) == 1 else stored
    sidecar, stored = others[0]
    if named and version_of(stored) in (None, 1):
        return None
    check_version(stored)
    raise ParameterError(
        "file",
        [
            f"was changed after its sidecar {sidecar.name} was written; restore it, or "
            "delete the sidecar and name the columns yourself (action=, reward=, ...)"
        ],
    )


def _content(sidecar: Path) -> Any:
    """What a sidecar says; None where it is no JSON."""
    try:
        return json.loads(sidecar.read_bytes())
    except (ValueError, RecursionError):
        return None


def _is_of(stored: Any, digest: str | None) -> bool:
    """Whether a sidecar's content belongs to the table with this hash."""
    return digest is not None and isinstance(stored, dict) and stored.get("sha256") == digest


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Column that pandas writes without losing a digit."""
    if values.dtype.kind == "M":
        return np.datetime_as_string(values).astype(object)
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    return values


def _from_text(series: pd.Series[Any], dtype: str) -> NDArray[Any]:
    values = series.to_numpy(dtype=object)
    if np.dtype(dtype).kind == "b":
        if not set(values.tolist()) <= {"True", "False"}:
            raise ValueError(f"column {series.name!r} must hold True and False")
        return np.asarray(values == "True", dtype=bool)
    return values.astype(dtype)


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, indent=1).encode()
