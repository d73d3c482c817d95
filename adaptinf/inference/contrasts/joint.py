"""The covariance of several contrasts with one control, from rows and from sums by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.choice import as_ratios, fit_method
from adaptinf.inference.arms.circumstances.from_sums import outcome_of
from adaptinf.inference.arms.question import Asked, Question
from adaptinf.inference.scores.batch_sums import arm_factors, correlation_of
from adaptinf.inference.scores.unit_sums import unit_correlation
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.circumstances.ratios import Denominator
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
    sums: Sums,
    first: Results,
    codes: IntArray,
    asked: Asked,
    below: Denominator | None,
    multiples: FloatArray | None = None,
) -> FloatArray | None:
    """Correlation of contrasts from sums by batch, None where their weights are not each pair's own.

    Shapes: codes (P, 2), the treatment first; multiples (P,), of the control's mean that are subtracted, 1 by
    default; returns (P, P). All contrasts are by the methods of the first, and `asked` says what else was
    asked of them.
    """
    kind, profile = first.weights, profile_of(sums)
    if first.estimator not in ("ipw", "aipw") or kind not in SHARED:
        return None
    factors = np.ones(len(codes)) if multiples is None else multiples
    if sums.by_unit is not None and profile.repeated_units:
        own = (sums.cells, sums.by_unit, codes)
        return unit_correlation(*own, augmented=first.estimator == "aipw", multiples=factors)
    asked = replace(asked, estimator=first.estimator, weights=kind)
    if sums.shares:
        return _of_independent(Question(profile, np.arange(sums.n_arms)), codes, asked, below, factors)
    from adaptinf.inference.arms.circumstances.from_sums import arm_forms  # loads when it is needed
    from adaptinf.inference.scores.score_forms import contrast_of, covariance_of, stacked_forms

    found = []
    for pair, factor in zip(codes, factors, strict=True):
        question = Question(profile, pair, contrast=True, stationary=asked.stationary)
        outcome = outcome_of(question, asked) if first.estimator == "aipw" else None
        products, forms = arm_forms(question, kind, outcome, None if below is None else below.name)
        found.append(contrast_of(forms, float(factor)))
    return correlation_of(covariance_of(products, stacked_forms(found)))


def _of_independent(
    question: Question,
    codes: IntArray,
    asked: Asked,
    below: Denominator | None,
    multiples: FloatArray,
) -> FloatArray:
    """Correlation where shares stand in for propensities: given the arms their means are independent."""
    method, fit = fit_method(question, asked)
    if below is not None:
        fit = as_ratios(question, method, fit, asked, below)[1]
    factors = arm_factors(codes, len(fit.estimate), multiples)
    return correlation_of((factors * fit.std_error**2) @ factors.T)


def joint_covariance(correlation: FloatArray | None, std_error: FloatArray) -> FloatArray | None:
    """Covariance whose diagonal is the squared errors; correlation (P, P), std_error (P,), returns (P, P)."""
    if correlation is None:
        return None
    covariance = correlation * np.outer(std_error, std_error)
    covariance[np.diag_indices(len(std_error))] = std_error**2
    return np.asarray(covariance, dtype=np.float64)
