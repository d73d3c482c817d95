"""Least-squares coefficients that depend on rare outcomes or skewed rewards."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adaptinf.inference.distributions.references import PartialReference
from adaptinf.inference.distributions.sample_shape import squared_skewness, uncommon_outcomes
from adaptinf.inference.regression.design import CoefficientFit, RegressionData
from adaptinf.inference.regression.joint_tests import PartialTests
from adaptinf.inference.scores.means import unevenness
from adaptinf.inference.validity.rare import rare_cautions, rare_notes, without_interval
from adaptinf.typing import BoolArray

# Rounds with small weights hardly affect a coefficient, so they cannot make an outcome common.
_LIGHT = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class RareCoefficients:
    """Coefficients without a test, and statements about them and others; hidden has shape (p,)."""

    hidden: BoolArray
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def rare_coefficients(data: RegressionData, fit: CoefficientFit) -> RareCoefficients:
    """Which coefficients depend on rare outcomes.

    A coefficient of least squares is a weighted sum of rewards. The rewards with weights of either sign, such
    as the rounds of an arm and of the arm it is compared with, must vary; weights below a twentieth of the
    largest are ignored. Distributions that hold in finite samples for all bounded rewards are not checked.
    """
    if fit.reference.exact or data.nobs <= data.size:
        return RareCoefficients(np.zeros(data.size, dtype=np.bool_))
    q, r = np.linalg.qr(data.x)
    pull = np.linalg.solve(r, q.T).T
    uncommon, skewness = np.full(data.size, np.inf), np.zeros(data.size)
    shape = squared_skewness(data.y)
    for j, own in enumerate(pull.T):
        used = np.abs(own) > _LIGHT * np.abs(own).max(initial=0.0)
        side, size = (own[used] > 0.0).astype(np.int64), np.abs(own[used])
        uncommon[j] = uncommon_outcomes(side, data.y[used], 2).min()
        squares, cubes = (
            np.bincount(side, weights=size**power, minlength=2).astype(np.float64) for power in (2, 3)
        )
        skewness[j] = shape * float(unevenness(squares, cubes).max())
    uncommon = np.where(fit.std_error > 0.0, uncommon, np.inf)
    cautions = rare_cautions(data.names, uncommon, skewness, corrected=False)
    hidden = without_interval(uncommon)
    return RareCoefficients(hidden, tuple(rare_notes(data.names, uncommon)), tuple(cautions))


def without_hidden(data: RegressionData, fit: CoefficientFit, hidden: BoolArray) -> CoefficientFit:
    """The fit without tests of some coefficients; hidden has shape (p,)."""
    if not np.any(hidden):
        return fit
    gap = np.where(hidden, np.nan, 0.0)
    covariance = None if fit.covariance is None else fit.covariance + gap[:, None] + gap[None, :]
    return replace(
        fit,
        std_error=fit.std_error + gap,
        covariance=covariance,
        reference=PartialReference(fit.reference, hidden),
        joint=None if fit.joint is None else PartialTests(fit.joint, data.names, hidden),
    )
