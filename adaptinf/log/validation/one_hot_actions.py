"""Chosen arms given as 0/1 columns, one for each arm, named after the arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adaptinf.log.validation.frame_columns import Column, Findings, Label, label_array, plain_label
from adaptinf.texts import listed

_SHOWN = 6


def one_hot_names(role: str, given: Sequence[Any], found: Findings) -> list[Label] | None:
    """The columns listed for one role; None if there is a problem."""
    names = [name for name in map(plain_label, given) if name is not None]
    if len(names) < max(2, len(given)) or len(set(map(str, names))) < len(names):
        found.add(
            "bad-column-name",
            f"{role}= must name one column, or list at least two columns of 0 and 1, one for each arm, got "
            f"{list(given)!r:.80}",
        )
        return None
    return names


def one_hot_column(columns: Mapping[Label, Column], role: str, found: Findings) -> Column | None:
    """Names of the columns that contain the 1 in each row, shape (T,); None if there is a problem."""
    before, held = len(found.problems), []
    for name, column in columns.items():
        values = column.values
        what = f"{role} column {name!r}"
        if values.dtype.kind not in "biuf":
            found.add(f"bad-{role}", f"{what} must contain 0 and 1, or True and False, not {column.dtype}")
            continue
        found.add_rows(f"missing-{role}", f"{what} has no value", column.missing)
        other = ~column.missing & (values != 0) & (values != 1)
        found.add_rows(f"bad-{role}", f"{what} must contain 0 and 1", other)
        held.append(values == 1)
    if len(found.problems) > before:
        return None
    table = np.array(held)
    ones, every = table.sum(axis=0), f"{role} columns {listed(columns, _SHOWN)}"
    found.add_rows(f"bad-{role}", f"{every} have no 1", ones == 0)
    found.add_rows(f"bad-{role}", f"{every} contain more than one 1", ones > 1)
    if len(found.problems) > before:
        return None
    return Column(label_array(list(columns))[table.argmax(axis=0)], ones != 1, "object")
