"""Whether arms' shares change within batches.

The test compares counts in pieces of a batch, and is for shares that replace propensities.

References
----------
Dawson (1954), "A simplified expression for the variance of the chi-square function on a contingency table"
(the exact moments given the margins, so small counts do no harm).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.sums.engine.periods import WITHIN
from adaptinf.sums.engine.queries import COUNT
from adaptinf.sums.engine.query_columns import ARM, BATCH, GROUP
from adaptinf.typing import FloatArray, IntArray

_HOURS = 24


def moving_pvalue(frame: pd.DataFrame) -> float:
    """P-value for equal shares in all pieces of a batch (and group), over batches.

    Pieces are ten minutes of an hour, hours of a day, and for a week or month its days and the hours of all
    of these, with twice the smaller p-value.
    """
    whole = frame[frame[[BATCH, ARM]].notna().all(axis=1)]
    pieces = whole[WITHIN].to_numpy(dtype=np.int64)
    kinds = [pieces] if pieces.max(initial=0) < _HOURS else [pieces // _HOURS, pieces % _HOURS]
    stratum = np.asarray(whole.groupby(_keys(whole, BATCH), dropna=False).ngroup(), dtype=np.int64)
    arm = np.asarray(pd.factorize(whole[ARM])[0], dtype=np.int64)
    count = whole[COUNT].to_numpy(dtype=np.float64)
    return min(1.0, len(kinds) * min(homogeneity_pvalue(stratum, kind, arm, count) for kind in kinds))


def together(frame: pd.DataFrame) -> pd.DataFrame:
    """Merge the rows for a batch and arm (and group) over pieces."""
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


def homogeneity_pvalue(stratum: IntArray, row: IntArray, column: IntArray, count: FloatArray) -> float:
    """P-value for Pearson's statistics, summed over tables of rows and columns, one per stratum.

    Shapes: stratum, row, column, count (n,), an entry for each cell or for parts of it.

    Given the margins, the sum has a known mean and variance, and approximately the distribution of a multiple
    of a chi-squared variable with the same mean and variance.
    """
    parts = pd.DataFrame({"stratum": stratum, "row": row, "column": column, "count": count})
    cells = parts.groupby(["stratum", "row", "column"], as_index=False)["count"].sum()
    by_row, by_column = (cells.groupby(["stratum", by])["count"] for by in ("row", "column"))
    expected = by_row.transform("sum") * by_column.transform("sum")
    size = cells.groupby("stratum")["count"].sum().to_numpy(dtype=np.float64)
    sums = (cells["count"] ** 2 / expected).groupby(cells["stratum"]).sum().to_numpy(dtype=np.float64)
    # With e = row column / n, Pearson's sum of (o - e)^2 / e equals n (sum o^2 / (row column) - 1), which
    # needs only the cells that occur.
    statistic = size * (sums - 1.0)
    (r, inverse_r), (c, inverse_c) = (_margin(by.sum(), size) for by in (by_row, by_column))
    usable = (size > 3.0) & (r > 1.0) & (c > 1.0)
    if not usable.any():
        return 1.0
    n, r, c = size[usable], r[usable], c[usable]
    mean = n * (r - 1.0) * (c - 1.0) / (n - 1.0)
    (v_r, w_r), (v_c, w_c) = (
        ((k - 1.0) * (n - k) / (n - 1.0), (inverse[usable] - k**2) / (n - 2.0))
        for k, inverse in ((r, inverse_r), (c, inverse_c))
    )
    variance = 2.0 * n / (n - 3.0) * (v_r - w_r) * (v_c - w_c) + n**2 / (n - 1.0) * w_r * w_c
    centre, spread = float(mean.sum()), float(variance.sum())
    if spread <= 0.0:
        return 1.0
    # The gamma distribution with this mean and variance has shape mean^2 / variance and rate mean / variance.
    return float(special.gammaincc(centre**2 / spread, float(statistic[usable].sum()) * centre / spread))


def _margin(sums: pd.Series[float], size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Number of a margin's entries by stratum, and the sum over them of the table's total; size (S,)."""
    stratum = sums.index.get_level_values("stratum")
    entries = np.asarray(sums.groupby(stratum).size(), dtype=np.float64)
    inverse = np.asarray((1.0 / sums).groupby(stratum).sum(), dtype=np.float64)
    return entries, size * inverse
