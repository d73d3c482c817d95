"""Plain least squares as an estimator of `AdaptiveOLS`, naive or corrected by max-information.

References
----------
Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy" (corrected tests).
Rogers, Roth, Smith, Thakkar (2016), "Max-information, differential privacy, and post-selection hypothesis
testing".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims.stationarity import SHARES_MOVED
from adaptinf.errors import InvalidForLog
from adaptinf.inference.corrections.information import CHOSEN_FROM, ChosenFrom, Correction
from adaptinf.inference.distributions.base import StudentReference
from adaptinf.inference.distributions.tails import student_quantile
from adaptinf.inference.regression.data import Adjustment, CoefficientFit
from adaptinf.inference.regression.design import unit_codes
from adaptinf.inference.regression.notes import covariance_note, gap_notes, known_stable, validity_notes
from adaptinf.inference.regression.results import CoefficientTests
from adaptinf.inference.scores.by_unit.clusters import ClusterFreedom, bias_reduced
from adaptinf.inference.scores.least_squares import BY_CLUSTER, COVARIANCES, least_squares
from adaptinf.parameters import check

if TYPE_CHECKING:
    from adaptinf.inference.regression.data import FitOptions, RegressionData
    from adaptinf.inference.validity.profile import LogProfile

BASELINE = "adjustment='none' as a naive baseline, not valid under adaptivity"
_USUAL_ALPHA = 0.05
_PATIENCE = 2.0
_ONLY_CLASSICAL = (
    "the correction needs p-values that are right far out in their tails for every fixed sequence of "
    "actions: those by the classical covariance are, for normal errors of one variance; sandwiches' are not"
)


def _usable_correction(
    data: RegressionData, profile: LogProfile, chosen_from: ChosenFrom = "actions"
) -> Correction | None:
    """Max-information correction of a regression; None where the log licenses none.

    An arm that the design recommended may depend on every reward, also on those that changed no action: all
    rounds count then.
    """
    correction = profile.correction_chosen_from(chosen_from)
    if correction is None or data.selector != "recommended":
        return correction
    return replace(correction, n=data.n_rounds)


def _check_corrected(
    data: RegressionData, profile: LogProfile, chosen_from: ChosenFrom = "actions"
) -> Correction:
    name = "adjustment='max-information'"
    if not data.adaptive:
        reason = f"none is due: {profile.why_not_adaptive}"
        raise InvalidForLog(name, reason, ["adjustment='none', which is valid here"])
    check("AdaptiveOLS.fit", chosen_from=(chosen_from, CHOSEN_FROM))
    correction = _usable_correction(data, profile, chosen_from)
    if correction is None:
        other = [] if data.selector is not None else ["adjustment='w-decorrelation'"]
        raise InvalidForLog(name, profile.no_correction, [*other, BASELINE])
    return correction


def _affordable(data: RegressionData, profile: LogProfile) -> str:
    """Why the correction is the default: its intervals are not much longer, or nothing else is valid."""
    correction = _usable_correction(data, profile)
    if correction is None or data.nobs <= data.size or correction.vacuous(_USUAL_ALPHA):
        return ""
    df = float(data.nobs - data.size)
    levels = (correction.level(math.log(_USUAL_ALPHA)), math.log(_USUAL_ALPHA))
    wide, usual = (float(student_quantile(level - math.log(2.0), df)[0]) for level in levels)
    ratio = wide / usual
    if not math.isfinite(ratio) or (ratio > _PATIENCE and data.selector is None):
        return ""
    longer = f"its intervals are {ratio:.2g} times as long as uncorrected ones"
    return f"the log's guarantee licenses it, and {longer}"


def _fit(
    data: RegressionData, profile: LogProfile, options: FitOptions, correction: Correction | None = None
) -> CoefficientFit:
    covariance = options.covariance
    fit = least_squares(data.x, data.y, data.names)
    clusters = unit_codes(profile.log, data.rounds) if covariance in BY_CLUSTER else None
    count = None if clusters is None else int(clusters.max()) + 1
    gaps = gap_notes(fit, covariance, count)
    middle = np.full((data.size, data.size), np.nan)
    df: float | ClusterFreedom = float(fit.df_resid) if count is None else count - 1.0
    if clusters is not None and covariance == "CR2" and not gaps:
        middle, df = bias_reduced(fit.q, fit.residual, clusters, fit.root)
    elif not gaps:
        middle = fit.middle(covariance, clusters)
    matrix = fit.root @ middle @ fit.root.T
    std_error = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    freedom = np.full(data.size, df) if isinstance(df, float) else df.own
    alone = [name for name, one in zip(data.names, freedom, strict=True) if np.isnan(one)]
    if alone:
        std_error = np.where(np.isnan(freedom), np.nan, std_error)
        gaps = [f"No standard error of {', '.join(alone)}: rounds of one unit alone decide it."]
    compared = bool(np.ptp(data.action) > 0)
    naive = data.adaptive and (correction is not None or known_stable(data, profile) is None)
    return CoefficientFit(
        estimate=fit.coefficient,
        std_error=std_error,
        reference=StudentReference(fit.coefficient, std_error, freedom),
        estimator="ols",
        covariance=matrix,
        notes=(*validity_notes(data, profile, correction), covariance_note(covariance, count), *gaps),
        df_resid=float(fit.df_resid),
        df_model=data.size - int(fit.intercept),
        correction=correction,
        joint=CoefficientTests(
            fit.centred_coefficient,
            fit.centred_root @ middle @ fit.centred_root.T,
            fit.back,
            df,
            correction,
            None if count is None else count - 1,
        ),
        rsquared=fit.rsquared,
        naive=naive,
        cautions=(SHARES_MOVED(),) * (not data.adaptive and compared and profile.shares_move),
    )


def _fit_corrected(data: RegressionData, profile: LogProfile, options: FitOptions) -> CoefficientFit:
    chosen_from = options.settings.get("chosen_from", "actions")
    return _fit(data, profile, options, _check_corrected(data, profile, chosen_from))


def _preferred(data: RegressionData, profile: LogProfile) -> str:
    """By default where nothing adapted, unless propensities that moved make weights that a drift spares."""
    return "" if data.adaptive or profile.varying_propensities else profile.why_not_adaptive


NONE = Adjustment(
    "none",
    0.0,
    _fit,
    preferred=_preferred,
    covariances=COVARIANCES,
    plain=True,
)
"""Least squares as it is."""
MAX_INFORMATION = Adjustment(
    "max-information",
    1.0,
    _fit_corrected,
    _check_corrected,
    _affordable,
    options=("chosen_from",),
    why=_ONLY_CLASSICAL,
    plain=True,
    steady=True,
)
"""Least squares with corrected t and F tests."""
