"""Impressions of an Open Bandit folder, checked and typed in batches."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats.dsjson import Faults
from adaptinf.formats.obd import ITEMS, campaign_file, header_problems
from adaptinf.formats.streaming.lines import lines_of
from adaptinf.formats.streaming.times import Clock
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray

SUBJECT = "convert"
_BATCH = 20_000
_NUMBERS = ("position", "click", "propensity_score")
_MESSAGES = {
    "other-fields": "a row has another number of fields than the header",
    "bad-time": "timestamp must be a time in ISO 8601, with a zone in all rows or in none",
    "unknown-item": f"the item is not listed in {ITEMS}, which must list all that could be shown",
    "bad-position": "position must be a whole number",
    "bad-click": "click must be 0 or 1",
    "propensity-out-of-range": "propensity_score must be in (0, 1]",
    "missing-context": "a context is missing",
    "bad-affinity": "an affinity must be a number",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A campaign's file, its header, the columns that are kept, and the items by how they are written."""

    path: Path
    header: list[str]
    schema: pa.Schema
    items: dict[str, Any]


def layout_of(folder: Path, affinities: bool) -> Layout:
    """What the files' headers and the list of items say."""
    path = campaign_file(folder, SUBJECT)
    header, listed_header = (next(_rows(each), []) for each in (path, folder / ITEMS))
    problems = header_problems(path, header) + header_problems(folder / ITEMS, listed_header)
    refuse(SUBJECT, [f"{folder}: {problem}" for problem in problems])
    place = listed_header.index("item_id")
    listed = [row[place].strip() for row in islice(_rows(folder / ITEMS), 1, None) if len(row) > place]
    if not listed or "" in listed or len(set(listed)) < len(listed):
        raise ParameterError(SUBJECT, [f"{folder / ITEMS}: item_id must name every item once"])
    whole = all(text.isdecimal() and str(int(text)) == text for text in listed)
    fields = {"timestamp": pa.timestamp("us"), "item_id": pa.int64() if whole else pa.string()}
    fields |= {"position": pa.int64(), "click": pa.int64(), "propensity_score": pa.float64()}
    fields |= {name: pa.string() for name in header if name.startswith("user_feature_")}
    if affinities:
        fields |= {name: pa.float64() for name in header if name.startswith("user-item_affinity_")}
    items = {text: int(text) if whole else text for text in listed}
    return Layout(path, header, pa.schema(list(fields.items())), items)


def tables(layout: Layout) -> Iterator[pa.Table]:
    """Batches of impressions; an error at the end with everything that is wrong, with lines."""
    faults, clock, width = Faults(_MESSAGES), Clock(), len(layout.header)
    rows = enumerate(islice(_numbered(layout.path), 1, None))
    while batch := list(islice(rows, _BATCH)):
        sound = []
        for row, (number, fields) in batch:
            if len(fields) == width:
                sound.append((row, number, fields))
            else:
                faults.add(row, "other-fields", f"line {number}: {len(fields)}, not {width}")
        table = _table(layout, sound, faults, clock) if sound else None
        if table is not None and not faults.problems():
            yield table
    if problems := faults.problems():
        raise LogValidationError(problems, str(layout.path))


def _table(layout: Layout, rows: list[tuple[int, int, list[str]]], faults: Faults, clock: Clock) -> pa.Table:
    """Columns of some rows; faults gain what is wrong with them."""
    fields = zip(*(fields for _, _, fields in rows), strict=True)
    texts = dict(zip(layout.header, fields, strict=True))

    def refuse_where(bad: BoolArray, code: str, name: str) -> None:
        for place in np.flatnonzero(bad):
            row, number, _ = rows[place]
            faults.add(row, code, f"line {number}: {name} is {texts[name][place]!r:.60}")

    columns: dict[str, Any] = {name: _numbers(texts[name]) for name in _NUMBERS}
    position, click, share = columns.values()
    refuse_where(~(np.isfinite(position) & (position % 1.0 == 0.0)), "bad-position", "position")
    refuse_where((click != 0.0) & (click != 1.0), "bad-click", "click")
    refuse_where(~((share > 0.0) & (share <= 1.0)), "propensity-out-of-range", "propensity_score")
    columns["timestamp"], bad = clock.read(texts["timestamp"])
    refuse_where(bad, "bad-time", "timestamp")
    items = [layout.items.get(text.strip()) for text in texts["item_id"]]
    columns["item_id"] = items
    refuse_where(np.array([item is None for item in items]), "unknown-item", "item_id")
    for each in layout.schema:
        if each.name.startswith("user_feature_"):
            columns[each.name] = texts[each.name]
            refuse_where(
                np.array([not text.strip() for text in texts[each.name]]), "missing-context", each.name
            )
        elif each.name not in columns:
            columns[each.name] = values = _numbers(texts[each.name])
            refuse_where(~np.isfinite(values), "bad-affinity", each.name)
    # Where there are faults no table is kept, and casts may fail.
    kept = [] if faults.problems() else layout.schema
    return pa.table({each.name: pa.array(columns[each.name]).cast(each.type) for each in kept})


def _numbers(texts: Sequence[str]) -> Any:
    """Numbers of some texts, NaN where one is none."""
    return pd.to_numeric(pd.Series(texts, dtype="str"), errors="coerce").to_numpy(dtype=np.float64)


def _rows(path: Path) -> Iterator[list[str]]:
    return (fields for _, fields in _numbered(path))


def _numbered(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV that are not blank, with the numbers of their last lines."""
    reader = csv.reader(lines_of(path, SUBJECT), strict=True)
    try:
        for fields in reader:
            if fields and not (len(fields) == 1 and not fields[0].strip()):
                yield reader.line_num, fields
    except csv.Error as error:
        problem = f"{path}: line {reader.line_num}: {error}; its quotes do not match"
        raise ParameterError(SUBJECT, [problem]) from None
