"""One weight a round for all arms: from a log to the fit, and what its table says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.base import StudentReference
from adaptinf.inference.regression.data import CoefficientFit, RegressionData
from adaptinf.inference.regression.results import CoefficientTests
from adaptinf.inference.regression.weighted.equations import (
    ArmColumns,
    SharedFit,
    arm_columns,
    shared_regression,
)
from adaptinf.inference.regression.weighted.round_weights import fixed_by, shared_weights
from adaptinf.inference.regression.weighted.running import predictions_of_arms, running_regression
from adaptinf.inference.regression.weighted.support import error_notes, fewest_effective, gaps_told
from adaptinf.inference.scores.inverse import indicators, predictions
from adaptinf.inference.scores.least_squares import least_squares
from adaptinf.inference.validity.profile import FEW_EFFECTIVE
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

_LARGEST = 2 * 10**8
"""Numbers in the model matrices of all arms up to which differences of arms are projected."""
_FIXED = {
    "round": "its propensities",
    "batch": "the propensities of the batch before",
    "round before": "the propensities of the round before, as contexts may have moved its own",
}


def usual_weights(profile: LogProfile) -> str:
    """Combined where they even out variances, as in `Contrast`; else uniform.

    They do not where contexts may move propensities from round to round, without batches that would fix a
    weight before a context is seen.
    """
    follows = profile.decides_by_context or not profile.context_free
    if profile.propensities is None or (
        follows and not profile.constant_propensities and not profile.batched
    ):
        return "uniform"
    return "combined"


def fit_shared(data: RegressionData, profile: LogProfile, kind: str) -> CoefficientFit:
    """Coefficients with combined or uniform weights."""
    codes = np.unique(data.action)
    if kind == "combined" and profile.propensities is None:
        reason = "they need every arm's propensity at every round, and the log has the chosen arm's alone"
        raise InvalidForLog("weighted with combined weights", reason, ("weights='uniform'",))
    plain = least_squares(data.x, data.y, data.names)  # names columns that cannot be told apart
    arms = _columns_of_arms(data, codes)
    fit = _shared(data, profile, kind, arms, codes)
    errors = np.sqrt(np.einsum("tj,tj->j", fit.influence, fit.influence))
    errors = np.where(fit.freedom > 0.0, errors, np.nan)
    if plain.perfect:
        errors[:] = 0.0
    df = np.minimum(fit.freedom, float(data.nobs - data.size))
    covariance = fit.influence.T @ fit.influence
    cautions: tuple[str, ...] = ()
    if (size := fewest_effective(data, profile)) < FEW_EFFECTIVE:
        cautions = (
            f"an arm has {size:.1f} equally weighted rewards, below {FEW_EFFECTIVE:g}: t is doubtful",
        )
    return CoefficientFit(
        estimate=fit.estimate,
        std_error=errors,
        reference=StudentReference(fit.estimate, errors, df),
        estimator="weighted",
        covariance=covariance,
        weights=kind,
        notes=tuple(_shared_notes(data, profile, kind, arms, codes)),
        last=tuple(error_notes(fit.decided, errors)),
        cautions=(*cautions, *_gap_cautions(data, profile)),
        details={"ess": fit.ess},
        df_resid=float(data.nobs - data.size),
        joint=CoefficientTests(fit.estimate, covariance, np.eye(data.size), df),
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
        reason = "in no round could all of its arms have been chosen"
        raise InvalidForLog("weighted", reason, ())
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
        reason = "the rounds in which two arms could both have been chosen do not tell all coefficients apart"
        raise InvalidForLog("weighted", reason, ()) from None


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


def _shared_notes(
    data: RegressionData, profile: LogProfile, kind: str, arms: ArmColumns | None, codes: IntArray
) -> list[str]:
    """What is estimated, and what that assumes."""
    by = ""
    if kind == "combined":
        by = f", by {_FIXED[fixed_by(profile, codes)]}"
    several = len(codes) > 1
    shared = "one a round for all arms" if several else "one a round"
    notes = [
        f"Weights {kind}: {shared}{by}. Assumes propensities given the past, contexts of one law, and "
        "columns in which the mean reward is linear."
    ]
    if several:
        notes.append(
            "A drift that all arms share does no harm to what the formula says of arms; other coefficients, "
            "and effects that change, are means over the rounds with these weights."
        )
    if arms is not None and arms.gaps:
        notes.append(
            "Coefficients that involve the arm: projections of differences of AIPW scores from arm "
            f"{profile.log.arms[arms.reference]!r}, pair by pair, with predictions from earlier rounds by "
            "the formula; the others: least squares of what is left, the weight over the propensity."
        )
    elif several:
        notes.append("All coefficients: least squares, the weight over the chosen arm's propensity.")
    notes.append(
        "Errors from what each round adds to a coefficient: the variance of the noise may depend on arm, "
        "context and round. t with the degrees of freedom of the weights (Satterthwaite)."
    )
    if gaps := gaps_told(data, profile):
        told = "each arm is compared in the rounds in which it and the reference could be chosen"
        if arms is None:
            told = "rounds in which one of the arms could not be chosen are left out"
        notes.append(f"Impossible arms ({gaps}): {told}.")
    return notes


def _gap_cautions(data: RegressionData, profile: LogProfile) -> list[str]:
    """That an arm's rewards may have been why it was taken away."""
    every, codes = profile.propensities, np.unique(data.action)
    if every is None or not profile.adaptive or not profile.impossible[codes].any():
        return []
    gone = []
    for code in codes:
        possible = every[:, code] > 0.0
        if possible.any() and not possible[int(np.argmax(possible)) :].all():
            gone.append(str(profile.log.arms[code]))
    if not gone:
        return []
    return [
        f"{', '.join(gone)}: there are rounds after which an arm could no longer be chosen; if its rewards "
        "were the reason, the estimates are biased"
    ]
