"""Propensities without their own columns: constants, and lists or JSON objects with every arm's."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.claims.logs import readings as claims
from adaptinf.log.validation.frame_columns import Column, Findings, Label
from adaptinf.texts import several
from adaptinf.typing import FloatArray

_LONGEST, _SHOWN = 100_000, 8
"""Largest number of characters parsed in a cell, and of arms named in a message."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """A column that is not in the frame, but a constant or built from entries of other columns."""

    text: str
    """Its name in messages."""

    def __repr__(self) -> str:
        return self.text


def is_constant(value: object) -> bool:
    """Whether a user gave a number instead of a column."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def constant_column(value: Any, what: str, lowest: str, rows: int, found: Findings) -> Column:
    """A column with one constant propensity, in an interval whose lower end is ``"(0"`` or ``"[0"``."""
    number = float(value)
    if not 0.0 <= number <= 1.0 or (lowest == "(0" and number == 0.0):
        must = f"must be a number in {lowest}, 1] or name a column"
        found.add("bad-propensities", f"{what} {must}, got {value!r:.60}")
        number = np.nan
    return Column(np.full(rows, number), np.zeros(rows, dtype=bool), "float64")


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The entries of a column of lists or objects, by position or the arm's text; table has shape (T, n)."""

    table: FloatArray
    texts: tuple[str, ...] | None
    """Texts for the arms in objects; None for lists, whose entries follow the order of the arms."""


def holds_entries(column: Column) -> bool:
    """Whether the first value of a column is a list, an object, or text that represents one."""
    present = np.flatnonzero(~column.missing)
    return len(present) > 0 and _parsed(column.values[present[0]]) is not None


def read_entries(column: Column, name: Hashable, n_arms: int | None, found: Findings) -> Entries | None:
    """Every arm's propensities from a column of lists or objects; None if there is a problem.

    Lists must have `n_arms` entries, if known. Objects may omit an arm, whose propensity is then 0.
    """
    what = f"propensity column {name!r}"
    found.add_rows("missing-propensity", f"{what} has no value", column.missing)
    if column.missing.any():
        return None
    known: dict[str, Any] = {}
    parsed = [_parsed(value, known) for value in column.values]
    objects = np.array([isinstance(one, dict) for one in parsed], dtype=bool)
    lists = np.array([isinstance(one, list) for one in parsed], dtype=bool)
    bad = ~(lists | objects)
    if bad.any():
        first = column.values[np.flatnonzero(bad)[0]]
        found.add_rows(
            "bad-propensities",
            f"{what} must contain a list of numbers, or an object with a number for each arm, in every row, "
            f"not {first!r:.60}",
            bad,
        )
        return None
    if lists.any() and objects.any():
        found.add_rows(
            "bad-propensities", f"{what} contains objects in some rows and lists in others", objects
        )
        return None
    return _of_objects(parsed, what, found) if objects.any() else _of_lists(parsed, what, n_arms, found)


def _of_lists(parsed: Sequence[Any], what: str, n_arms: int | None, found: Findings) -> Entries | None:
    lengths = np.array([len(one) for one in parsed], dtype=np.int64)
    if n_arms is None:
        example = f"arms=[{', '.join(f'arm {place + 1}' for place in range(int(lengths[0])))}]"
        found.add(
            "bad-propensities",
            f"{what} contains lists, whose entries have no names: give the arms in the order of the lists, "
            f"{example:.80}",
        )
        return None
    wrong = lengths != n_arms
    if wrong.any():
        length = int(lengths[np.flatnonzero(wrong)[0]])
        found.add_rows(
            "bad-propensities",
            f"{what} must contain lists of {n_arms} entries, as arms= does, not of {length}",
            wrong,
        )
        return None
    return Entries(np.array(parsed, dtype=np.float64).reshape(len(parsed), n_arms), None)


def _of_objects(parsed: Sequence[Any], what: str, found: Findings) -> Entries:
    texts = tuple(dict.fromkeys(text for one in parsed for text in one))
    place = {text: position for position, text in enumerate(texts)}
    table, given = np.zeros((len(parsed), len(texts))), np.zeros((len(parsed), len(texts)), dtype=bool)
    for row, one in enumerate(parsed):
        for text, number in one.items():
            table[row, place[text]], given[row, place[text]] = number, True
    lacking = {text: int((~given[:, place[text]]).sum()) for text in texts}
    told = [
        f"{text!r:.40} ({count:,} row{'s' if count > 1 else ''})" for text, count in lacking.items() if count
    ]
    if told:
        found.tell("propensities", claims.NO_ENTRY(column=what, arms=several(told, _SHOWN)))
    return Entries(table, texts)


def _parsed(value: Any, known: dict[str, Any] | None = None) -> Any:
    """A list of numbers, or numbers keyed by arm; None for other values."""
    if isinstance(value, str):
        if known is None:
            return _plain(_of_text(value))
        if value not in known:
            known[value] = _plain(_of_text(value))
        return known[value]
    return _plain(value)


def _of_text(text: str) -> Any:
    """The value of text in JSON, or in Python syntax, as pandas writes lists and objects to CSV."""
    if len(text) > _LONGEST or not text.strip().startswith(("[", "{")):
        return None
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    """An object in which each name occurs only once."""
    return None if len(dict(pairs)) < len(pairs) else dict(pairs)


def _plain(value: Any) -> Any:
    """Lists and objects with numeric entries, as Python objects; None for other or missing values."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, tuple) for one in value):
        pairs = value  # Arrow returns maps as lists of pairs.
        value = dict(pairs) if all(len(one) == 2 for one in pairs) else None
        value = value if value is not None and len(value) == len(pairs) else None
    if isinstance(value, Mapping):
        # All of Arrow's objects have the fields of all rows, so a field that a row lacks is null.
        entries = {str(arm): number for arm, number in value.items() if number is not None}
        once = len(entries) == sum(number is not None for number in value.values())
        fine = once and len(entries) > 0 and all(map(_is_finite, entries.values()))
        return {arm: float(number) for arm, number in entries.items()} if fine else None
    if isinstance(value, (list, tuple)) and value and all(map(_is_finite, value)):
        return [float(number) for number in value]
    return None


def _is_finite(number: object) -> bool:
    return is_constant(number) and math.isfinite(float(number))  # type: ignore[arg-type]


def entry_columns(
    entries: Entries, places: Mapping[Label, int], name: Hashable
) -> dict[Supplied, tuple[Label, Column]]:
    """A column for each arm whose entry has a position, keyed by its name."""
    none = np.zeros(len(entries.table), dtype=bool)
    return {
        Supplied(f"{name!r} (entry of arm {arm!r})"): (
            arm,
            Column(entries.table[:, place], none, "float64"),
        )
        for arm, place in places.items()
    }
