"""The covariance of several contrasts with one control, from rows and from sums by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.circumstances.from_sums import batch_weights
from adaptinf.inference.arms.question import Question
from adaptinf.inference.scores.batch_sums import contrast_correlation, correlation_of, shared_correlation
from adaptinf.inference.scores.unit_sums import unit_correlation
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.results import Results
    from adaptinf.sums import Sums

SHARED = ("combined", "uniform")
"""Weights that both arms of a pair have."""


def influence_of(pair: Results) -> FloatArray | None:
    """What each round, or unit, adds to the error of a contrast, shape (n,); None where nobody kept it."""
    kept = pair.scores or {}
    rows = kept.get("influence_by_unit", kept.get("influence"))
    return None if rows is None else np.nan_to_num(rows[:, 0])


def rows_correlation(influences: Sequence[FloatArray | None]) -> FloatArray | None:
    """Correlation of contrasts by their influences, (n,) each; None where one is unknown; returns (P, P)."""
    known = [one for one in influences if one is not None]
    if len(known) < len(influences):
        return None
    rows = np.array(known)
    return correlation_of(rows @ rows.T)


def sums_correlation(
    sums: Sums, pairs: Sequence[Results], codes: IntArray, *, stationary: bool
) -> FloatArray | None:
    """Correlation of contrasts from sums by batch, None where their weights are not each pair's own.

    Shapes: codes (P, 2), the treatment first; returns (P, P).
    """
    kind, estimator = pairs[0].weights, pairs[0].estimator
    if estimator not in ("ipw", "aipw") or kind not in SHARED:
        return None
    if sums.by_unit is not None and profile_of(sums).repeated_units:
        return unit_correlation(sums.cells, sums.by_unit, codes, augmented=estimator == "aipw")
    if sums.shares:
        return shared_correlation(sums.cells, codes)
    profile = profile_of(sums)
    weights = [
        batch_weights(Question(profile, pair, contrast=True, stationary=stationary), str(kind))[:, 0]
        for pair in codes
    ]
    return contrast_correlation(sums.cells, codes, np.column_stack(weights), augmented=estimator == "aipw")


def joint_covariance(correlation: FloatArray | None, pairs: Sequence[Results]) -> FloatArray | None:
    """Covariance of the contrasts whose diagonal is their squared errors; correlation, returns (P, P)."""
    if correlation is None:
        return None
    std_error = np.array([pair.std_error[0] for pair in pairs])
    covariance = correlation * np.outer(std_error, std_error)
    covariance[np.diag_indices(len(pairs))] = std_error**2
    return np.asarray(covariance, dtype=np.float64)
