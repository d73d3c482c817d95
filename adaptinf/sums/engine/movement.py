"""Whether arms' shares change within batches.

The test compares counts in pieces of a batch: by the clock if batches are periods, and otherwise, in engines
that keep the order of rows, in stretches of rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from adaptinf.sums.engine.engine_tables import collected
from adaptinf.sums.engine.periods import WITHIN
from adaptinf.sums.engine.queries import COUNT
from adaptinf.sums.engine.query_columns import ARM, BATCH, GROUP, REWARD
from adaptinf.sums.homogeneity import homogeneity_pvalue, within_pvalue
from adaptinf.typing import IntArray

_HOURS = 24
_IN_ORDER = (nw.Implementation.PANDAS, nw.Implementation.POLARS, nw.Implementation.PYARROW)
"""Engines whose rows have an order."""
_MOST_ROWS = 200_000
_DOUBTED = 0.01
"""P-value above which it need not be checked whether rows are sorted otherwise than by time."""


def moving_pvalue(frame: pd.DataFrame) -> float:
    """P-value for the hypothesis that arms' shares are equal in all pieces of each batch (and group).

    The pieces of an hour last ten minutes, and those of a day one hour. A week or a month is divided both
    into days and into hours, and the result is twice the smaller p-value.
    """
    whole = frame[frame[[BATCH, ARM]].notna().all(axis=1)]
    pieces = whole[WITHIN].to_numpy(dtype=np.int64)
    kinds = [pieces] if pieces.max(initial=0) < _HOURS else [pieces // _HOURS, pieces % _HOURS]
    stratum = np.asarray(whole.groupby(_keys(whole, BATCH), dropna=False).ngroup(), dtype=np.int64)
    arm = np.asarray(pd.factorize(whole[ARM])[0], dtype=np.int64)
    count = whole[COUNT].to_numpy(dtype=np.float64)
    return min(1.0, len(kinds) * min(homogeneity_pvalue(stratum, kind, arm, count) for kind in kinds))


def order_pvalue(rows: nw.LazyFrame[Any], keys: Sequence[str]) -> float | None:
    """P-value for constant shares within batches (and groups), from rows in the order of their rounds.

    The first 200,000 rows are used. None if the engine keeps no order, or if rows of batches are sorted by
    arm or by reward.
    """
    frame = _first(rows, keys) if rows.implementation in _IN_ORDER else pd.DataFrame()
    if frame.empty:
        return None
    groups = frame.groupby([BATCH, *keys], dropna=False, observed=True).ngroup()
    stratum: IntArray = np.asarray(groups, dtype=np.int64)
    order = np.argsort(stratum, kind="stable")
    arm, labels = pd.factorize(frame[ARM])
    stratum, arm = np.asarray(stratum[order]), np.asarray(arm[order], dtype=np.int64)
    p = within_pvalue(arm, len(labels), stratum)
    by_arm = p < _DOUBTED and _sorted_by(arm, stratum, len(labels))
    return None if by_arm or (p < _DOUBTED and _ascending(frame[REWARD], order, stratum)) else p


def _first(rows: nw.LazyFrame[Any], keys: Sequence[str]) -> pd.DataFrame:
    """Batches, arms, rewards and groups of the first rows that are complete."""
    frame = collected(rows.select(BATCH, ARM, REWARD, *keys).head(_MOST_ROWS))
    return frame[frame[[BATCH, ARM]].notna().all(axis=1)]


def _sorted_by(arm: IntArray, stratum: IntArray, n_arms: int) -> bool:
    """Whether arms of batches are in blocks, with at most twice as many runs as arms."""
    changes = np.count_nonzero((stratum[1:] != stratum[:-1]) | (arm[1:] != arm[:-1]))
    return bool(changes + 1 <= 2 * len(np.unique(stratum * n_arms + arm)))


def _ascending(reward: pd.Series[float], order: IntArray, stratum: IntArray) -> bool:
    """Whether rewards only rise, or only fall, within batches."""
    steps = np.diff(reward.to_numpy(dtype=np.float64)[order])[stratum[1:] == stratum[:-1]]
    return bool(np.all(steps >= 0.0) or np.all(steps <= 0.0))


def together(frame: pd.DataFrame) -> pd.DataFrame:
    """Merge the rows for the pieces of each batch and arm (and group)."""
    keys = _keys(frame, BATCH, ARM)
    ways = {
        str(name): "min"
        if str(name).startswith("least")
        else "max"
        if str(name).startswith("most")
        else "sum"
        for name in frame.columns
        if name not in (*keys, WITHIN)
    }
    return frame.groupby(keys, dropna=False, sort=False, observed=True).agg(ways).reset_index()


def _keys(frame: pd.DataFrame, *first: str) -> list[str]:
    return [*first, *(str(name) for name in frame.columns if str(name).startswith(GROUP))]
