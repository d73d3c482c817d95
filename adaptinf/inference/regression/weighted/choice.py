"""The adjustment by weights: which weights it takes.

References
----------
Zhang, Janson, Murphy (2021), "Statistical inference with M-estimators on adaptively collected data". Hadad,
Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from adaptinf.claims import first, propensities, said
from adaptinf.claims.regression import weighted_regression as claims
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.regression.data import Adjustment, CoefficientFit, check_freedom
from adaptinf.inference.regression.facts.weighted import WeightedFacts
from adaptinf.inference.regression.weighted.own import fit_own
from adaptinf.inference.regression.weighted.shared import fit_shared
from adaptinf.parameters import OneOf, OrNone, check

WEIGHTS = ("combined", "uniform", "sqrt")


def _fit(facts: WeightedFacts) -> CoefficientFit:
    data, options = facts.data, facts.options
    kind = options.settings.get("weights")
    check("weighted least squares", weights=(kind, OrNone(OneOf(*WEIGHTS))))
    if reason := first(claims.NEEDS, facts):
        raise InvalidForLog("weighted", reason, ())
    check_freedom("weighted", data)
    if kind is None:
        kind = "sqrt" if options.stationary else facts.usual_weights
    if kind == "sqrt":
        found = fit_own(facts)
    else:
        if "target" in options.settings:
            problem = "target= belongs to weights='sqrt', the square roots of importance weights"
            raise ParameterError("weighted least squares", [problem])
        found = fit_shared(facts, kind)
    assert data.propensity is not None
    lowest = np.full(data.size, float(data.propensity.min()))
    facts.fit = replace(found, details={**found.details, "min_propensity": lowest})
    for tiny in said((propensities.TINY,), facts):
        warnings.warn(tiny, AdaptinfWarning, stacklevel=4)
    return facts.fit


WEIGHTED = Adjustment(
    name="weighted",
    facts=WeightedFacts,
    fit=_fit,
    claims=claims.WEIGHTED,
    needs=claims.NEEDS,
    reasons=claims.REASONS,
    covariances=("sandwich",),
    options=("weights", "target"),
)
"""By one weight a round for all arms, or square roots of importance weights, for logged propensities."""
