"""Duplicate decision ids in a log: copies of rows, and joins that multiplied them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.log.validation.frame_columns import Findings
from adaptinf.typing import BoolArray, IntArray

OUTCOMES = ("reward", "outcomes", "received", "outcome_round")
"""Roles of values that arise after a decision, and may differ between its rows because of a join."""


def check_decisions(
    ids: NDArray[Any], name: object, columns: Mapping[tuple[str, object], NDArray[Any]], found: Findings
) -> None:
    """Report ids that occur in several rows, by the columns that distinguish the rows.

    `columns` are those that the log uses, by their role and name; ids and columns have shape (T,).
    """
    codes, _ = pd.factorize(ids)
    first = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    again = np.flatnonzero(first[codes] != np.arange(len(codes)))
    if not len(again):
        return
    before = first[codes[again]]
    differ = {key: ~_equal(values, again, before) for key, values in columns.items()}
    own = {key: each for key, each in differ.items() if key[0] not in OUTCOMES}
    other = _any(list(own.values()), len(again))
    outcome = _any([each for key, each in differ.items() if key not in own], len(again))
    what = f"id column {name!r} contains a decision more than once"
    copies, joined = ~other & ~outcome, ~other & outcome
    _add(
        f"{what}, and the rows agree in all columns that the log reads",
        f"drop the copies, for example with pandas.DataFrame.drop_duplicates(subset={name!r})",
        ("duplicated-id", copies),
        (again, before),
        len(ids),
        found,
    )
    _add(
        f"{what}, with different outcomes ({_named(differ, joined)})",
        "a join with a table of outcomes multiplied rows; sum the outcomes of each decision, or choose one, "
        "before joining the tables",
        ("joined-id", joined),
        (again, before),
        len(ids),
        found,
    )
    _add(
        f"{what}, but the rows belong to different decisions (they differ in {_named(own, other)})",
        "id= requires a column with a distinct value for every decision; name the column that identifies "
        "participants in unit=",
        ("shared-id", other),
        (again, before),
        len(ids),
        found,
    )


def _add(
    told: str,
    advice: str,
    fault: tuple[str, BoolArray],
    pairs: tuple[IntArray, IntArray],
    size: int,
    found: Findings,
) -> None:
    """Add a problem about rows that repeat an id, with the first pair, numbered as in the frame."""
    code, member = fault
    if not member.any():
        return
    again, before = (rows[member] for rows in pairs)
    place = np.arange(size) if found.order is None else found.order
    one, two = sorted((int(place[before[0]]), int(place[again[0]])))
    mask = np.zeros(size, dtype=bool)
    mask[again] = True
    found.add_rows(code, f"{told}, such as rows {one} and {two}: {advice}", mask)


def _named(differ: Mapping[tuple[str, object], BoolArray], member: BoolArray) -> str:
    """Names of the columns in which some rows differ."""
    return ", ".join(f"{name!r}" for (_, name), each in differ.items() if (each & member).any())


def _equal(values: NDArray[Any], rows: IntArray, others: IntArray) -> BoolArray:
    """Whether the values of rows equal those of other rows; missing values count as equal."""
    one, two = values[rows], values[others]
    return np.asarray((one == two) | (pd.isna(one) & pd.isna(two)), dtype=bool)


def _any(masks: Sequence[BoolArray], size: int) -> BoolArray:
    return np.any(masks, axis=0) if masks else np.zeros(size, dtype=bool)
