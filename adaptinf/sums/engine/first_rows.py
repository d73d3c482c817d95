"""The first rows that an engine returns, used to choose centres and to detect varying propensities."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from adaptinf.log.validation.frame_columns import EXACT
from adaptinf.sums.engine.engine_tables import collected
from adaptinf.sums.engine.query_columns import ARM, BATCH, FURTHER, REWARD, Columns, propensities_of

_HEAD = 1_000


def first_rows(read: nw.LazyFrame[Any]) -> pd.DataFrame:
    """Up to 1,000 of the rows that the queries will read."""
    return collected(read.head(_HEAD))


def usual_values(head: pd.DataFrame, columns: Columns) -> list[float]:
    """Means of the valid rewards and of the valid entries of each additional column; 0 if none are valid."""
    names = [REWARD, *(f"{FURTHER}{place}" for place in range(len(columns.further.names)))]
    values = [np.asarray(head[name], dtype=np.float64) for name in names]
    known = [column[np.abs(column) < EXACT] for column in values]
    return [float(column.mean()) if len(column) else 0.0 for column in known]


def moves(head: pd.DataFrame, columns: Columns) -> bool:
    """Whether any propensity takes several values within a batch and arm."""
    names = propensities_of(columns)
    if not names or not len(head):
        return False
    (batch, batches), (arm, _) = (pd.factorize(head[name], use_na_sentinel=False) for name in (BATCH, ARM))
    _, first, cell = np.unique(arm * len(batches) + batch, return_index=True, return_inverse=True)
    values = head[names].to_numpy(dtype=np.float64)
    return not np.array_equal(values, values[first][cell])
