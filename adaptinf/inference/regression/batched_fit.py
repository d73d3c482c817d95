"""Batched least squares as an adjustment of `AdaptiveOLS`."""

from __future__ import annotations

import numpy as np

from adaptinf.claims import first
from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.regression.batched import BatchedTests, batched_coefficients
from adaptinf.inference.regression.design import Adjustment, CoefficientFit
from adaptinf.inference.regression.facts.batched import BatchedFacts
from adaptinf.parameters import FLAG, OneOf, check


def _fit(facts: BatchedFacts) -> CoefficientFit:
    test, drift = facts.test, facts.options.settings.get("drift", False)
    check("batched least squares", test=(test, OneOf("t", "normal")), drift=(drift, FLAG))
    if reason := first(claims.BATCHED_NEEDS, facts):
        raise InvalidForLog("batched", reason, ())
    found = facts.usable
    estimate, errors, reference = batched_coefficients(found, np.eye(facts.data.size), test)
    return CoefficientFit(
        estimate=estimate,
        std_error=errors,
        reference=reference,
        estimator="batched",
        df_resid=float(found.df.sum()),
        joint=BatchedTests(found, test, bool(drift)),
    )


BATCHED = Adjustment(
    name="batched",
    facts=BatchedFacts,
    fit=_fit,
    claims=claims.BATCHED,
    needs=claims.BATCHED_NEEDS,
    reasons=claims.BATCHED_REASONS,
    options=("test", "drift"),
)
"""A regression in each batch."""
