"""Contrasts with a shared control: their covariance, and lifts over the control's mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims.arms import contrasts as claims
from adaptinf.inference.arms.choice import as_ratios, fit_method
from adaptinf.inference.arms.data.arms_of_sums import outcome_of
from adaptinf.inference.arms.question import ArmFit, Asked, Question
from adaptinf.inference.distributions.ratio import AndersonRubinReference, LogRatioReference
from adaptinf.inference.distributions.references import RecodedReference, Reference
from adaptinf.inference.scores.batch_sums import arm_factors, correlation_of
from adaptinf.inference.scores.unit_sums import unit_correlation
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.data.ratio_metrics import Denominator
    from adaptinf.inference.results import Results
    from adaptinf.sums import Sums


SHARED = ("combined", "uniform")
"""Weights shared by both arms of a pair."""


def influence_of(kept: Mapping[str, FloatArray]) -> FloatArray | None:
    """Contribution of each round, or unit, to a contrast's error, shape (n,); None if it was not stored."""
    rows = kept.get("influence_by_unit", kept.get("influence"))
    return None if rows is None else np.nan_to_num(rows[:, 0])


def pairs_correlation(kept: Sequence[Mapping[str, FloatArray]]) -> FloatArray | None:
    """Correlation of contrasts, shape (P, P), from stored sums of products of errors or from influences."""
    found = [one.get("products") for one in kept]
    if found[0] is not None and all(one is found[0] for one in found):
        return correlation_of(found[0])
    return rows_correlation([influence_of(one) for one in kept])


def rows_correlation(influences: Sequence[FloatArray | None]) -> FloatArray | None:
    """Correlation of contrasts, shape (P, P), from influences of shape (n,); None if some are unknown."""
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
    """Correlation of contrasts from sums by batch; None if weights are not specific to each pair.

    Shapes: codes (P, 2), the treatment first; multiples (P,); returns (P, P). The control's mean is
    multiplied by `multiples`, by default 1, before it is subtracted. All contrasts use the method of the
    first one, and `asked` contains the other arguments.
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
        # If arms were not available throughout, each pair is compared over its own rounds, for which these
        # sums give no covariance.
        if not sums.cells.possible.all():
            return None
        return _of_independent(Question(profile, np.arange(sums.n_arms)), codes, asked, below, factors)
    from adaptinf.inference.arms.data.arms_of_sums import arm_forms
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
    """Correlation if shares replace propensities; given the choices, the arms' means are independent."""
    method, fit = fit_method(question, asked)
    if below is not None:
        fit = as_ratios(question, method, fit, asked, below)[1]
    factors = arm_factors(codes, len(fit.estimate), multiples)
    return correlation_of((factors * fit.std_error**2) @ factors.T)


def joint_covariance(correlation: FloatArray | None, std_error: FloatArray) -> FloatArray | None:
    """Covariance from correlation and standard errors; correlation and result (P, P), std_error (P,)."""
    if correlation is None:
        return None
    covariance = correlation * np.outer(std_error, std_error)
    covariance[np.diag_indices(len(std_error))] = std_error**2
    return np.asarray(covariance, dtype=np.float64)


FEWEST_EVENTS = 20
"""Smallest number of uncommon outcomes in each arm for which a lift is given."""
FEWEST_ERRORS = 3.0
"""Smallest distance of the control's mean from 0, in standard errors, for which a lift is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Lift:
    """A lift; if it cannot be computed, it is NaN, and `reason` states why."""

    estimate: float
    std_error: float
    reference: Reference
    reason: str = ""
    ratio: float = math.nan
    control: float = math.nan
    """The control's mean."""

    def influence(self, rows: FloatArray) -> FloatArray:
        """Contribution of each round or unit to the lift's error, from those to the means, shape (n, 2)."""
        return np.nan_to_num((rows[:, 0] - self.ratio * rows[:, 1]) / self.control)


def lift_of(question: Question, fit: ArmFit, what: str = "mean") -> Lift:
    """The treatment's mean (or ratio metric) over the control's, minus 1, from a fit to both arms."""
    (top, bottom), covariance = fit.estimate, fit.covariance
    df = _freedom(fit)
    reason = _refusal(question, fit, what)
    if reason:
        return Lift(math.nan, math.nan, LogRatioReference(math.nan, math.nan, df), reason)
    # The delta method gives d(top / bottom) = (d top - ratio d bottom) / bottom.
    slope = np.array([1.0, -top / bottom]) / bottom
    std_error = math.sqrt(max(float(slope @ covariance @ slope), 0.0))
    ratio = float(top / bottom)
    # The logarithm of the ratio requires positive means; Fieller's test, which tests top - ratio bottom, does
    # not.
    if top > 0.0 and bottom > 0.0:
        law: Reference = LogRatioReference(ratio, std_error / ratio, df)
    else:
        inner = AndersonRubinReference(float(top), float(bottom), covariance, df)
        law = RecodedReference(inner, -1.0, 1.0)
    return Lift(ratio - 1.0, std_error, law, ratio=ratio, control=float(bottom))


def negative_control(lifts: Sequence[Lift], control: Any, what: str) -> tuple[str, ...]:
    """The caution that a negative control mean reverses the signs of lifts; empty if the mean is positive."""
    below = [lift.control for lift in lifts if lift.control < 0.0]
    return (claims.NEGATIVE_CONTROL(what=what, control=control, mean=below[0]),) if below else ()


def _freedom(fit: ArmFit) -> float:
    """Degrees of freedom for the log ratio; for sample means, by Welch's formula with relative variances.

    As for a difference, the smaller of the two arms' degrees of freedom is used for scores, and for errors
    clustered by unit.
    """
    if fit.sample is None or fit.by_unit is not None or not np.all(fit.estimate != 0.0):
        return float(fit.degrees.min())
    parts = np.diag(fit.covariance) / fit.estimate**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(parts.sum() ** 2 / (parts**2 / fit.degrees).sum())


def _refusal(question: Question, fit: ArmFit, what: str) -> str:
    """The reason why no lift is given; empty if a lift is given."""
    events = question.profile.uncommon[question.codes]
    error = float(fit.std_error[1])
    if not np.all(np.isfinite(fit.std_error)) or not np.all(fit.std_error > 0.0):
        return claims.NO_ERROR()
    if np.any(events < FEWEST_EVENTS):
        return claims.FEW_OUTCOMES(n=int(events.min()), fewest=FEWEST_EVENTS)
    if abs(float(fit.estimate[1])) < FEWEST_ERRORS * error:
        errors = abs(float(fit.estimate[1])) / error
        return claims.NEAR_ZERO(what=what, errors=errors, fewest=FEWEST_ERRORS)
    return ""
