"""P-values adjusted for the number of terms, after any correction for adaptive collection.

References
----------
Holm (1979), "A simple sequentially rejective multiple test procedure". Benjamini, Hochberg (1995),
"Controlling the false discovery rate: a practical and powerful approach to multiple testing".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.results import Results

__all__ = ["ADJUSTMENTS", "adjusted_pvalues", "adjustment_note", "check_adjustment", "log_adjusted"]

ADJUSTMENTS = {"holm": ("Holm", "holm"), "bh": ("BH", "fdr_bh")}
"""Name in tables, and in statsmodels."""


def check_adjustment(subject: str, method: object) -> None:
    """Refuse an unknown adjustment.

    Parameters
    ----------
    subject : str
        What was called.
    method : str
        Member of `ADJUSTMENTS`.

    Raises
    ------
    ParameterError
        If it is not.
    """
    if not isinstance(method, str) or method not in ADJUSTMENTS:
        problem = f"the adjustment must be 'holm' or 'bh' (Benjamini and Hochberg), got {method!r:.60}"
        raise ParameterError(subject, [problem])


def adjusted_pvalues(pvalues: FloatArray, method: str) -> FloatArray:
    """P-values adjusted for their number.

    Parameters
    ----------
    pvalues : ndarray, shape (k,)
        NaN where there is none: these terms do not count.
    method : {"holm", "bh"}
        Holm holds whatever the dependence. Benjamini and Hochberg bound the false discovery rate for
        independent or positively dependent p-values.

    Returns
    -------
    ndarray, shape (k,)

    Examples
    --------
    >>> adjusted_pvalues(np.array([0.01, np.nan, 0.03]), "holm")
    array([0.02,  nan, 0.03])
    """
    from statsmodels.stats.multitest import multipletests

    known = np.isfinite(pvalues)
    adjusted = np.full(len(pvalues), np.nan)
    if np.any(known):
        adjusted[known] = multipletests(pvalues[known], method=ADJUSTMENTS[method][1])[1]
    return adjusted


def log_adjusted(results: Results, method: str, corrected: bool = True) -> FloatArray:
    """Natural logs of the adjusted p-values of a result, shape (k,); -inf where they underflow.

    Parameters
    ----------
    results : Results
        Any result.
    method : {"holm", "bh"}
        The adjustment.
    corrected : bool
        Whether to start from corrected p-values, where a correction is due.
    """
    due = corrected and results.correction is not None
    series = results.pvalues_corrected if due else results.pvalues
    pvalues = np.asarray(series.to_numpy(), dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(adjusted_pvalues(pvalues, method)), dtype=np.float64)


def adjustment_note(results: Results, method: str) -> str:
    """What the adjusted column of a summary means."""
    start = "the corrected p-values" if results.correction is not None else "the p-values"
    count = int(np.isfinite(results.pvalues.to_numpy()).sum())
    if method == "holm":
        return f"Holm: {start} of {count} terms, adjusted for their number whatever their dependence."
    return (
        f"BH: {start} of {count} terms, adjusted after Benjamini and Hochberg: bounds the share of false "
        "discoveries if the p-values are independent or positively dependent."
    )
