"""Ordinary least squares as an adjustment of `AdaptiveOLS`, naive or corrected by max-information.

References
----------
Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy" (corrected tests).
Rogers, Roth, Smith, Thakkar (2016), "Max-information, differential privacy, and post-selection hypothesis
testing".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import first
from adaptinf.claims.regression import plain_regression as claims
from adaptinf.claims.regression import regressions
from adaptinf.errors import InvalidForLog
from adaptinf.inference.corrections.information import CHOSEN_FROM
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.regression.design import Adjustment, CoefficientFit
from adaptinf.inference.regression.facts.plain_facts import CorrectedFacts, PlainFacts
from adaptinf.inference.regression.least_squares import COVARIANCES, ClusterFreedom, bias_reduced
from adaptinf.inference.regression.regression_results import CoefficientTests
from adaptinf.parameters import check

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction


def _fit(facts: PlainFacts, correction: Correction | None = None) -> CoefficientFit:
    data, covariance, fit = facts.data, facts.options.covariance, facts.squares
    clusters, count, gap = facts.clusters, facts.n_clusters, facts.no_errors
    middle = np.full((data.size, data.size), np.nan)
    df: float | ClusterFreedom = float(fit.df_resid) if count is None else count - 1.0
    if clusters is not None and covariance == "CR2" and not gap:
        middle, df = bias_reduced(fit.q, fit.residual, clusters, fit.root)
    elif not gap:
        middle = fit.middle(covariance, clusters)
    matrix = fit.root @ middle @ fit.root.T
    std_error = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    freedom = np.full(data.size, df) if isinstance(df, float) else df.own
    alone = tuple(name for name, one in zip(data.names, freedom, strict=True) if np.isnan(one))
    if alone:
        std_error = np.where(np.isnan(freedom), np.nan, std_error)
    return CoefficientFit(
        estimate=fit.coefficient,
        std_error=std_error,
        reference=StudentReference(fit.coefficient, std_error, freedom),
        estimator="ols",
        covariance=matrix,
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
        naive=data.adaptive and (correction is not None or facts.known_stable is None),
        found=alone,
    )


def _fit_corrected(facts: CorrectedFacts) -> CoefficientFit:
    if facts.data.adaptive:
        chosen_from = facts.options.settings.get("chosen_from", "actions")
        check("AdaptiveOLS.fit", chosen_from=(chosen_from, CHOSEN_FROM))
    if reason := first(claims.CORRECTED_NEEDS, facts):
        ways = [] if facts.data.selector is not None else ["adjustment='w-decorrelation'"]
        ways = [*ways, regressions.BASELINE()] if facts.data.adaptive else [claims.PLAIN_IS_VALID()]
        raise InvalidForLog("adjustment='max-information'", reason, ways)
    return _fit(facts, facts.correction)


NONE = Adjustment(
    name="none",
    facts=PlainFacts,
    fit=_fit,
    claims=claims.NONE,
    reasons=claims.NONE_REASONS,
    covariances=COVARIANCES,
    plain=True,
)
"""Unadjusted least squares."""
MAX_INFORMATION = Adjustment(
    name="max-information",
    facts=CorrectedFacts,
    fit=_fit_corrected,
    claims=claims.MAX_INFORMATION,
    needs=claims.CORRECTED_NEEDS,
    reasons=claims.CORRECTED_REASONS,
    options=("chosen_from",),
    why=claims.ONLY_CLASSICAL(),
    plain=True,
)
"""Least squares with corrected t and F tests."""
