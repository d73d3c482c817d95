"""W-decorrelation as an adjustment of `AdaptiveOLS`."""

from __future__ import annotations

import numpy as np

from adaptinf.claims import first, said
from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.base import NormalReference
from adaptinf.inference.regression.design import Adjustment, CoefficientFit, check_freedom
from adaptinf.inference.regression.facts.batched import DecorrelationFacts

_NAME = "w-decorrelation"


def _fit(facts: DecorrelationFacts) -> CoefficientFit:
    data = facts.data
    check_freedom(_NAME, data)
    if reason := first(claims.DECORRELATION_NEEDS, facts):
        raise InvalidForLog(_NAME, reason, said(claims.LEFT_ADVICE, facts))
    found = facts.solved
    errors = np.sqrt(np.diag(found.covariance))
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=NormalReference(found.estimate, errors),
        estimator="w-decorrelated",
        covariance=found.covariance,
        details={"error_left": np.linalg.norm(found.remainder, axis=1)},
        df_resid=float(data.nobs - data.size),
    )


DECORRELATION = Adjustment(
    name=_NAME,
    facts=DecorrelationFacts,
    fit=_fit,
    claims=claims.DECORRELATION,
    needs=claims.DECORRELATION_NEEDS,
    reasons=claims.DECORRELATION_REASONS,
    options=("ridge",),
)
"""Takes out the bias by weights made from the columns alone."""
