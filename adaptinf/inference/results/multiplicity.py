"""P-values adjusted for the number of terms, after any correction for adaptive collection.

References
----------
Holm (1979), "A simple sequentially rejective multiple test procedure". Benjamini, Hochberg (1995),
"Controlling the false discovery rate: a practical and powerful approach to multiple testing".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.claims import laws, tables
from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray

ADJUSTMENTS = {"holm": "Holm", "bh": "BH"}
"""Names in tables."""
AT_ONCE = "max-t"
"""Asks a table for what holds for all terms at once."""


def check_adjustment(subject: str, method: object, *also: str) -> None:
    """Refuse an unknown adjustment."""
    if not isinstance(method, str) or method not in (*ADJUSTMENTS, *also):
        more = "".join(f", or {name!r}" for name in also)
        problem = f"the adjustment must be 'holm' or 'bh' (Benjamini and Hochberg){more}, got {method!r:.60}"
        raise ParameterError(subject, [problem])


@np.errstate(under="ignore")
def probabilities(logs: Any) -> FloatArray:
    """Probabilities of some logs, 0 where they underflow; (k,) to (k,)."""
    return np.asarray(np.exp(np.asarray(logs, dtype=np.float64)), dtype=np.float64)


def adjusted_logs(log_pvalues: FloatArray, method: str) -> FloatArray:
    """Natural logs of adjusted p-values from those of single ones, right where p-values underflow.

    Shapes: log_pvalues (k,); returns (k,).

    With the n p-values in ascending order, p(1) to p(n): Holm's are the running maxima of (n - i + 1) p(i),
    those of Benjamini and Hochberg the minima of n p(j) / j over j from i on; both at most 1.
    """
    # statsmodels' multipletests has no logs (p below 1e-323 comes back as 0), and counts NaN among the tests
    adjusted = np.full(len(log_pvalues), np.nan)
    known = np.flatnonzero(~np.isnan(log_pvalues))
    order = known[np.argsort(log_pvalues[known], kind="stable")]
    rank, size = np.arange(1, len(order) + 1), len(order)
    if method == "holm":
        found = np.maximum.accumulate(log_pvalues[order] + np.log(size + 1 - rank))
    else:
        found = np.minimum.accumulate((log_pvalues[order] + np.log(size / rank))[::-1])[::-1]
    adjusted[order] = np.minimum(found, 0.0)
    return adjusted


def adjustment_note(method: str, count: int, *, corrected: bool) -> str:
    """What the adjusted column of a summary means, of so many p-values."""
    start = "the corrected p-values" if corrected else "the p-values"
    if method == "holm":
        return tables.HOLM(pvalues=start, count=count)
    return tables.BH(pvalues=start, count=count)


def at_once_note(count: int, known: bool) -> str:
    """What the columns of a summary mean that hold for all of so many terms at once."""
    return tables.AT_ONCE(count=count, method=laws.LARGEST_T() if known else "Bonferroni's method")
