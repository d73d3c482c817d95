"""The covariance of several contrasts with one control, from rows and from sums by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.circumstances.from_sums import batch_weights
from adaptinf.inference.arms.question import Question
from adaptinf.inference.scores.batch_sums import contrast_correlation, shared_correlation
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.results import Results
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums

SHARED = ("combined", "uniform")
"""Weights that both arms of a pair have."""


def rows_correlation(pairs: Sequence[Results]) -> FloatArray | None:
    """Correlation of contrasts by what each round, or unit, adds to their errors; None where nobody kept it.

    Returns shape (P, P).
    """
    columns = []
    for pair in pairs:
        kept = pair.scores or {}
        rows = kept.get("influence_by_unit", kept.get("influence"))
        if rows is None:
            return None
        columns.append(np.nan_to_num(rows[:, 0]))
    return _standardised(np.array(columns))


def _standardised(rows: FloatArray) -> FloatArray:
    """Correlation of rows about 0; rows (P, n), returns (P, P), 0 beside a row that is 0."""
    spread = rows @ rows.T
    size = np.sqrt(np.diag(spread))
    scale = np.where(size > 0.0, size, 1.0)
    return np.asarray(spread / np.outer(scale, scale), dtype=np.float64)


def sums_correlation(
    sums: Sums, pairs: Sequence[Results], codes: IntArray, *, stationary: bool
) -> FloatArray | None:
    """Correlation of contrasts from sums by batch, None where their weights are not each pair's own.

    Shapes: codes (P, 2), the treatment first; returns (P, P).
    """
    kind, estimator = pairs[0].weights, pairs[0].estimator
    if estimator not in ("ipw", "aipw") or kind not in SHARED:
        return None
    if sums.shares:
        return shared_correlation(sums.cells, codes)
    profile = profile_of(sums)
    weights = [
        batch_weights(Question(profile, pair, contrast=True, stationary=stationary), str(kind))[:, 0]
        for pair in codes
    ]
    return contrast_correlation(sums.cells, codes, np.column_stack(weights), augmented=estimator == "aipw")


def joint_covariance(
    data: AdaptiveLog | Sums, pairs: Sequence[Results], codes: IntArray, *, stationary: bool, sums: bool
) -> FloatArray | None:
    """Covariance of the contrasts whose diagonal is their squared errors; None where it is not known.

    Shapes: codes (P, 2); returns (P, P).
    """
    if sums:
        found = sums_correlation(data, pairs, codes, stationary=stationary)  # type: ignore[arg-type]
    else:
        found = rows_correlation(pairs)
    if found is None:
        return None
    std_error = np.array([pair.std_error[0] for pair in pairs])
    covariance = found * np.outer(std_error, std_error)
    covariance[np.diag_indices(len(pairs))] = std_error**2
    return np.asarray(covariance, dtype=np.float64)
