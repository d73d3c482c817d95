"""Whether arms' shares change within batches.

The test compares counts in pieces of a batch, and is for shares that replace propensities.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from adaptinf.sums.engine.periods import WITHIN
from adaptinf.sums.engine.queries import COUNT
from adaptinf.sums.engine.query_columns import ARM, BATCH, GROUP
from adaptinf.sums.homogeneity import homogeneity_pvalue

_HOURS = 24


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
