"""Plain least squares as an estimator of `AdaptiveOLS`, naive or corrected by max-information.

References
----------
Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy" (corrected tests).
Rogers, Roth, Smith, Thakkar (2016), "Max-information, differential privacy, and post-selection hypothesis
testing".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.base import NormalReference, Reference, StudentReference
from adaptinf.inference.regression.data import Adjustment, CoefficientFit
from adaptinf.inference.regression.design import unit_codes
from adaptinf.inference.regression.notes import covariance_note, gap_notes, known_stable, validity_notes
from adaptinf.inference.regression.results import CoefficientTests
from adaptinf.inference.scores.least_squares import COVARIANCES, least_squares
from adaptinf.inference.validity.profile import profile_of

if TYPE_CHECKING:
    from adaptinf.inference.regression.data import FitOptions, RegressionData
    from adaptinf.log import AdaptiveLog

__all__ = ["MAX_INFORMATION", "NONE", "usable_correction"]

_ONLY_CLASSICAL = (
    "the correction needs p-values that are right far out in their tails for every fixed sequence of "
    "actions: those by the classical covariance are, for normal errors of one variance; sandwiches' are not"
)


def usable_correction(data: RegressionData, log: AdaptiveLog) -> Correction | None:
    """Max-information correction of a regression; None where the log licenses none.

    Parameters
    ----------
    data : RegressionData
        The regression.
    log : AdaptiveLog
        The log.

    Notes
    -----
    An arm that the design recommended may depend on every reward, also on those that changed no action: all
    rounds count then.
    """
    correction = profile_of(log).correction
    if correction is None or data.selector != "recommended":
        return correction
    return Correction(correction.epsilon, log.n_rounds, correction.guarantee, correction.bound)


def _none(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    return _fit(data, log, options.covariance, None)


def _max_information(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    name = "adjustment='max-information'"
    if not data.adaptive:
        reason = "none is due: the design does not adapt to rewards"
        raise InvalidForLog(name, reason, ["adjustment='none', which is valid here"])
    correction = usable_correction(data, log)
    if correction is None:
        naive = "adjustment='none' as a naive baseline, not valid under adaptivity"
        other = [] if data.selector is not None else ["adjustment='w-decorrelation'"]
        raise InvalidForLog(name, profile_of(log).no_correction, [*other, naive])
    return _fit(data, log, options.covariance, correction)


def _fit(
    data: RegressionData, log: AdaptiveLog, covariance: str, correction: Correction | None
) -> CoefficientFit:
    fit = least_squares(data.x, data.y, data.names)
    clusters = unit_codes(log, data.rounds) if covariance == "cluster" else None
    count = None if clusters is None else int(clusters.max()) + 1
    gaps = gap_notes(fit, covariance, count)
    middle = np.full((data.size, data.size), np.nan) if gaps else fit.middle(covariance, clusters)
    matrix = fit.root @ middle @ fit.root.T
    std_error = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    df = float(fit.df_resid) if covariance == "classical" else None if count is None else count - 1.0
    reference: Reference = NormalReference(fit.coefficient, std_error)
    if df is not None:
        reference = StudentReference(fit.coefficient, std_error, np.full(data.size, df))
    naive = data.adaptive and (correction is not None or known_stable(data, log) is None)
    return CoefficientFit(
        estimate=fit.coefficient,
        std_error=std_error,
        reference=reference,
        estimator="ols",
        covariance=matrix,
        notes=(*validity_notes(data, log, correction), covariance_note(covariance, count), *gaps),
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
    )


NONE = Adjustment(_none, COVARIANCES)
"""Least squares as it is."""
MAX_INFORMATION = Adjustment(_max_information, ("classical",), why=_ONLY_CLASSICAL)
"""Least squares with corrected t and F tests."""
