"""Sums as a frame, a row for each batch and arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from adaptinf.log.validation.frame_columns import Label
from adaptinf.sums.cells import Cells
from adaptinf.sums.groups import Key, Parts
from adaptinf.typing import FloatArray


def frame_of(parts: Parts, arms: Sequence[Label]) -> pd.DataFrame:
    """Counts, means, sums and mean propensities; columns of the groups come first."""
    tables = [_table(parts, label, arms) for label in parts.by_group]
    return pd.concat(tables, ignore_index=True)


def _table(parts: Parts, label: Key, arms: Sequence[Label]) -> pd.DataFrame:
    """The rows of one group."""
    cells, batches = parts.by_group[label]
    raw = cells.about(0.0)
    columns = {
        "n": raw.pulls,
        "sum": raw.moments[0, 1],
        "sum_squares": raw.moments[0, 2],
        "propensity": raw.expected / raw.rounds[:, None],
    }
    columns |= _further(cells)
    places = {"batch": np.repeat(batches, len(arms)), "arm": list(arms) * len(batches)}
    groups = {name: [one] * raw.pulls.size for name, one in zip(parts.names, label, strict=True)}
    return pd.DataFrame(groups | places | {name: values.ravel() for name, values in columns.items()})


def _further(cells: Cells) -> dict[str, FloatArray]:
    """Sums of further columns, of their squares and of their products with rewards, shape (B, K) each."""
    if cells.products is None:
        return {}
    raw, found = cells.products.about(np.zeros(cells.products.size)), dict[str, FloatArray]()
    for place, name in enumerate(raw.names, start=2):
        found[f"{name}_sum"] = raw.table[0, 0, 0, place]
        found[f"{name}_sum_squares"] = raw.table[0, 0, place, place]
        found[f"{name}_sum_products"] = raw.table[0, 0, 1, place]
    return found
