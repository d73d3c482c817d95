"""One weight a round for all arms: from a log to the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims.propensities import EVERY_ONE_NEEDED
from adaptinf.claims.regression import weighted_regression as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.base import StudentReference
from adaptinf.inference.regression.data import CoefficientFit, RegressionData
from adaptinf.inference.regression.facts.weighted import WeightedFacts
from adaptinf.inference.regression.results import CoefficientTests
from adaptinf.inference.regression.weighted.equations import (
    ArmColumns,
    SharedFit,
    arm_columns,
    shared_regression,
)
from adaptinf.inference.regression.weighted.round_weights import shared_weights
from adaptinf.inference.regression.weighted.running import predictions_of_arms, running_regression
from adaptinf.inference.scores.inverse import indicators, predictions
from adaptinf.inference.scores.least_squares import least_squares
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

_LARGEST = 2 * 10**8
"""Numbers in the model matrices of all arms up to which differences of arms are projected."""


def fit_shared(facts: WeightedFacts, kind: str) -> CoefficientFit:
    """Coefficients with combined or uniform weights."""
    data, profile, codes = facts.data, facts.profile, facts.arms_used
    if kind == "combined" and profile.propensities is None:
        ways = ("weights='uniform'",)
        raise InvalidForLog("weighted with combined weights", EVERY_ONE_NEEDED(), ways)
    plain = least_squares(data.x, data.y, data.names)  # names columns that cannot be told apart
    arms = _columns_of_arms(data, codes)
    fit = _shared(data, profile, kind, arms, codes)
    errors = np.sqrt(np.einsum("tj,tj->j", fit.influence, fit.influence))
    errors = np.where(fit.freedom > 0.0, errors, np.nan)
    if plain.perfect:
        errors[:] = 0.0
    df = np.minimum(fit.freedom, float(data.nobs - data.size))
    covariance = fit.influence.T @ fit.influence
    return CoefficientFit(
        estimate=fit.estimate,
        std_error=errors,
        reference=StudentReference(fit.estimate, errors, df),
        estimator="weighted",
        covariance=covariance,
        weights=kind,
        details={"ess": fit.ess},
        df_resid=float(data.nobs - data.size),
        joint=CoefficientTests(fit.estimate, covariance, np.eye(data.size), df),
        decided=fit.decided,
        found=arms,
    )


def _columns_of_arms(data: RegressionData, codes: IntArray) -> ArmColumns | None:
    """What the formula says of arms; None where it cannot be told, and where that would be too large."""
    if data.rows_of is None or len(codes) < 2 or data.nobs * data.size * len(codes) > _LARGEST:
        return None
    return arm_columns(data.rows_of, codes, data.x, data.action)


def _shared(
    data: RegressionData, profile: LogProfile, kind: str, arms: ArmColumns | None, codes: IntArray
) -> SharedFit:
    assert profile.propensity is not None

    def weights(some: IntArray, jointly: bool = True) -> FloatArray:
        if kind == "combined":
            return shared_weights(profile, some, jointly=jointly)[data.rounds]
        every = profile.propensities
        possible = np.ones(data.nobs) if every is None else every[data.rounds][:, some] > 0.0
        return np.asarray(possible if every is None else possible.all(axis=1) | (not jointly), dtype=float)

    common = weights(codes, jointly=arms is None)
    if not common.any():
        raise InvalidForLog("weighted", claims.NEVER_TOGETHER(), ())
    known = profile.log.arrays.known
    values, start = _outcome(data, arms, codes, None if known is None else known[data.rounds])
    try:
        return shared_regression(
            data.x,
            data.y,
            data.action,
            profile.propensity[data.rounds],
            common,
            arms,
            lambda control, treatment: weights(np.array([control, treatment])),
            values,
            start,
            codes,
        )
    except ParameterError:
        if arms is None:
            raise
        raise InvalidForLog("weighted", claims.NOT_TOLD_APART(), ()) from None


def _outcome(
    data: RegressionData, arms: ArmColumns | None, codes: IntArray, known: IntArray | None
) -> tuple[FloatArray, int]:
    """Predictions of each arm from the rounds before, and the first round that has them; returns (n, k).

    Where the formula has no contexts they are those of `Contrast`, running means of the arms.
    """
    if arms is None or data.rows_of is None:
        return np.zeros((data.nobs, len(codes))), 0
    gaps = all(bool((gap.rows == gap.rows[0]).all()) for gap in arms.gaps)
    others = data.x @ arms.others
    if gaps and known is None and np.allclose(others, others[:1], rtol=1e-12, atol=0.0):
        origin = float(data.y[0])
        return origin + predictions(indicators(data.action, codes), data.y - origin), 1
    fitted = running_regression(data.x, data.y, known)
    return predictions_of_arms(fitted, data.rows_of, codes, data.nobs), fitted.start
