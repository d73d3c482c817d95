"""The first rows that an engine returns: centres, and whether propensities seem to move within batches."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from adaptinf.log.validation.frame_columns import EXACT
from adaptinf.sums.engine.engine_tables import collected
from adaptinf.sums.engine.query_columns import (
    ARM,
    BATCH,
    FURTHER,
    PROPENSITY,
    REWARD,
    SHARE,
    Columns,
    selected,
)

_HEAD = 1_000


def first_rows(rows: nw.LazyFrame[Any], batch: nw.Expr, columns: Columns) -> pd.DataFrame:
    """Up to 1,000 rows, with batches, arms and numbers by the names that queries use."""
    return collected(selected(rows.head(_HEAD), batch, None, columns)[0])


def usual_values(head: pd.DataFrame, columns: Columns) -> list[float]:
    """Means of the valid rewards, and of each additional column's valid entries; 0 if there are none."""
    names = [REWARD, *(f"{FURTHER}{place}" for place in range(len(columns.further.names)))]
    values = [np.asarray(head[name], dtype=np.float64) for name in names]
    known = [column[np.abs(column) < EXACT] for column in values]
    return [float(column.mean()) if len(column) else 0.0 for column in known]


def moves(head: pd.DataFrame, columns: Columns) -> bool:
    """Whether a propensity has several values within a batch and arm."""
    names = [f"{SHARE}{place}" for place in range(len(columns.every))]
    names += [PROPENSITY] if columns.propensity is not None else []
    if not names:
        return False
    return bool((head.groupby([BATCH, ARM], dropna=False, observed=True)[names].nunique() > 1).any(axis=None))
