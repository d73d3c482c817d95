"""Square roots of importance weights, separate for each arm, which stabilise the variance of scores.

References
----------
Zhang, Janson, Murphy (2021), "Statistical inference with M-estimators on adaptively collected data".
Zhang, Janson, Murphy (2021), "Statistical inference with M-estimators on adaptively collected data". Hadad,
Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import first, propensities, said
from adaptinf.claims.regression import weighted_regression as claims
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.regression.design import Adjustment, CoefficientFit, RegressionData, check_freedom
from adaptinf.inference.regression.facts.weighted_regression_facts import WeightedFacts
from adaptinf.inference.regression.least_squares import least_squares
from adaptinf.inference.regression.regression_results import CoefficientTests
from adaptinf.inference.regression.weighted.shared_weights import fit_shared
from adaptinf.parameters import Number, OneOf, OrNone, check, refuse
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog


@dataclass(frozen=True, slots=True, eq=False)
class WeightedFit:
    """Weighted least squares; estimate (d,), covariance (d, d)."""

    estimate: FloatArray
    covariance: FloatArray
    ess: float
    perfect: bool
    decided: int


def stabilising_weights(action: IntArray, propensity: FloatArray, target: FloatArray) -> FloatArray:
    """Square roots of importance weights, shape (n,); action (n,), propensity (n,), target (K,)."""
    return np.asarray(np.sqrt(target[action] / propensity), dtype=np.float64)


def weighted_least_squares(
    design: FloatArray,
    response: FloatArray,
    weight: FloatArray,
    names: Sequence[str] = (),
    *,
    small_samples: bool = False,
) -> WeightedFit:
    """Weighted least squares with the sandwich covariance.

    Shapes: design (n, d), response (n,), weight (n,).

    The estimate is G^-1 sum W x y with G = sum W x x'. Its covariance is G^-1 M G^-1, where M = sum W^2 e^2 x
    x' and e are the residuals. If W = sqrt(target / propensity), then, given the past, W^2 transforms the
    distribution of the round's actions into that of the target. The conditional variance of a score, W x (y -
    x'beta), is therefore the same in every round, whatever the propensities, and the sum of the scores is
    asymptotically normal. This requires identically distributed contexts, constant conditional variances, and
    propensities above a floor of order 1 / T. Asymptotic normality also requires rewards with conditional
    mean x'beta for every arm and context: a projection is not sufficient, because the estimated projection
    would depend on the propensities.
    """
    root = np.sqrt(weight)
    labels = tuple(names) or tuple(map(str, range(design.shape[1])))
    solved = least_squares(root[:, None] * design, root * response, labels)
    middle = solved.middle("HC3" if small_samples else "HC0")
    return WeightedFit(
        solved.coefficient,
        solved.root @ middle @ solved.root.T,
        float(weight.sum() ** 2 / (weight @ weight)),
        solved.perfect,
        solved.decided,
    )


def fit_own(facts: WeightedFacts) -> CoefficientFit:
    """Fit least squares with separate weights for each arm."""
    data = facts.data
    if facts.gaps:
        raise InvalidForLog("weighted with sqrt weights", claims.OWN_IMPOSSIBLE(gaps=facts.gaps), ())
    target = _target(data, facts.profile.log, facts.options.settings.get("target"))
    assert data.propensity is not None
    weight = stabilising_weights(data.action, data.propensity, target)
    found = weighted_least_squares(data.x, data.y, weight, data.names, small_samples=True)
    df = float(data.nobs - data.size)
    errors = np.sqrt(np.diag(found.covariance))
    if found.perfect:
        errors[:] = 0.0
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=StudentReference(found.estimate, errors, np.full(data.size, df)),
        estimator="weighted",
        covariance=found.covariance,
        weights="sqrt(target / propensity)",
        decided=0 if found.perfect else found.decided,
        details={"ess": np.full(data.size, found.ess)},
        df_resid=df,
        joint=CoefficientTests(found.estimate, found.covariance, np.eye(data.size), df),
    )


def _target(data: RegressionData, log: AdaptiveLog, given: Any) -> FloatArray:
    """Probabilities of all arms under the stabilising policy; uniform by default."""
    codes: IntArray = np.unique(data.action)
    target = np.zeros(data.n_arms)
    if given is None:
        target[codes] = 1.0 / len(codes)
        return target
    problems = []
    used = [log.arms[code] for code in codes]
    if not isinstance(given, Mapping):
        problems.append(f"target must map arms to probabilities, got {given!r:.60}")
    else:
        problems += [f"target has no probability for arm {arm!r}" for arm in used if arm not in given]
        problems += [absent("arm", arm, log.arms, "the log has") for arm in given if arm not in log.arms]
        for arm in given:
            problems += Number(0.0, 1.0, open_low=arm in used)(f"target[{arm!r}]", given[arm])
        if not problems and abs(math.fsum(given.values()) - 1.0) > 1e-9:
            problems.append(f"the target's probabilities must sum to 1, got {math.fsum(given.values()):g}")
    refuse("weighted least squares", problems)
    for arm, probability in given.items():
        target[log.arms.index(arm)] = probability
    return target


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
            problem = "target= applies to weights='sqrt', the square roots of importance weights"
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
"""This adjustment weights rounds by logged propensities, with weights that arms share or separate ones."""
