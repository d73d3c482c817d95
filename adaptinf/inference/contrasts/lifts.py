"""Relative effects of arms over a control: the ratio of two means less 1.

By the delta method the error of the ratio R of an arm's mean to the control's, m, is that of (a - R c) / m,
with a and c the errors of the two means; that of log R is the same over R, and Fieller's statistic is of the
same a - R c at the ratio that is tested. What a round adds to all of them is thus known up to factors, and
gives the correlations of several lifts, by the logarithm or by Fieller's method, at the estimated ratios.

References
----------
Fieller (1954), "Some problems in interval estimation". Welch (1947), "The generalization of 'Student's'
problem when several different population variances are involved".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.claims.arms import contrasts as claims
from adaptinf.inference.arms.fit import ArmFit
from adaptinf.inference.arms.question import Question
from adaptinf.inference.distributions.ratio import AndersonRubinReference, LogRatioReference
from adaptinf.inference.distributions.references import RecodedReference, Reference
from adaptinf.typing import FloatArray

FEWEST_EVENTS = 20
"""Outcomes other than the commonest in either arm below which there is no lift."""
FEWEST_ERRORS = 3.0
"""Standard errors by which the control's mean must differ from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Lift:
    """One lift; NaN, with the reason, where there is none."""

    estimate: float
    std_error: float
    reference: Reference
    reason: str = ""
    ratio: float = math.nan
    control: float = math.nan
    """The control's mean."""

    def influence(self, rows: FloatArray) -> FloatArray:
        """What each round, or unit, adds to its error; rows (n, 2), of the means of arm and control."""
        return np.nan_to_num((rows[:, 0] - self.ratio * rows[:, 1]) / self.control)


def lift_of(question: Question, fit: ArmFit, what: str = "mean") -> Lift:
    """The treatment's mean, or ratio metric, over the control's, less 1, from the fit of the pair."""
    (top, bottom), covariance = fit.estimate, fit.covariance
    df = _freedom(fit)
    reason = _refusal(question, fit, what)
    if reason:
        return Lift(math.nan, math.nan, LogRatioReference(math.nan, math.nan, df), reason)
    slope = np.array([1.0, -top / bottom]) / bottom
    std_error = math.sqrt(max(float(slope @ covariance @ slope), 0.0))
    ratio = float(top / bottom)
    if top > 0.0 and bottom > 0.0:
        law: Reference = LogRatioReference(ratio, std_error / ratio, df)
    else:
        inner = AndersonRubinReference(float(top), float(bottom), covariance, df)
        law = RecodedReference(inner, -1.0, 1.0)
    return Lift(ratio - 1.0, std_error, law, ratio=ratio, control=float(bottom))


def negative_control(lifts: Sequence[Lift], control: Any, what: str) -> tuple[str, ...]:
    """The caution that a negative control reverses signs; none where it is positive."""
    below = [lift.control for lift in lifts if lift.control < 0.0]
    return (claims.NEGATIVE_CONTROL(what=what, control=control, mean=below[0]),) if below else ()


def _freedom(fit: ArmFit) -> float:
    """Degrees of freedom of the log ratio: of sample means Welch's, by the arms' relative variances.

    As in a difference, scores have those of the arm with fewer, and so have errors by unit.
    """
    if fit.sample is None or fit.by_unit is not None or not np.all(fit.estimate != 0.0):
        return float(fit.degrees.min())
    parts = np.diag(fit.covariance) / fit.estimate**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(parts.sum() ** 2 / (parts**2 / fit.degrees).sum())


def _refusal(question: Question, fit: ArmFit, what: str) -> str:
    """Why there is no lift; empty where there is."""
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
