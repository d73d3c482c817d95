"""The adjustment by weights: what it needs, when it is the default, and which weights it takes.

References
----------
Zhang, Janson, Murphy (2021), "Statistical inference with M-estimators on adaptively collected data". Hadad,
Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.regression.data import (
    Adjustment,
    CoefficientFit,
    FitOptions,
    RegressionData,
    check_freedom,
)
from adaptinf.inference.regression.weighted.own import fit_own
from adaptinf.inference.regression.weighted.shared import fit_shared, usual_weights
from adaptinf.inference.regression.weighted.support import fewest_effective, gaps_told
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY
from adaptinf.parameters import OneOf, OrNone, check
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

WEIGHTS = ("combined", "uniform", "sqrt")


def _check(data: RegressionData, profile: LogProfile) -> FloatArray:
    """Propensities of the chosen arms, where they serve as weights; shape (n,)."""
    reason = ""
    if data.propensity is None:
        reason = "it needs the chosen arm's propensities, and the log has none (give propensity=)"
    elif not np.all(data.propensity > 0.0):
        reason = "a chosen arm has propensity 0"
    else:
        gaps = gaps_told(data, profile)
        adapts = profile.traits is not None and profile.traits.adapts
        if not gaps or (profile.propensities is not None and not adapts):
            return data.propensity
        reason = f"{gaps}, where it could not have been chosen: no weight makes up for them"
    raise InvalidForLog("weighted", reason, ())


def _preferred(data: RegressionData, profile: LogProfile) -> str:
    """By default where the propensities of the arms used are the design's own, and leave enough rewards.

    Without batches the chosen arm's own propensities do, too.
    """
    if data.selector is not None or passed_over(data, profile) or data.propensity is None:
        return ""
    whose = "the chosen arm's" if profile.propensities is None else "every arm's"
    least = _smallest(data, profile)
    if least >= SMALL:
        return f"{whose} propensity is known, and never small"
    return (
        f"{whose} propensity is known: the smallest, {least:.2g}, is below the floor of {SMALL:g} that it "
        f"should have, but no arm has fewer than {FEW_EFFECTIVE:g} equally weighted rewards"
    )


def passed_over(data: RegressionData, profile: LogProfile) -> str:
    """Why a log's propensities do not make it the default; empty where they do, or there are none."""
    if data.propensity is None:
        return ""
    if profile.estimated:
        return "weighted would take the log's propensities, which are estimates"
    if reason := refusal(_check, data, profile):
        return f"weighted does not serve: {reason}"
    if profile.propensities is None and data.batch is not None:
        return "weighted would know the chosen arm's propensity alone"
    least, size = _smallest(data, profile), fewest_effective(data, profile)
    if least >= SMALL or size >= FEW_EFFECTIVE:
        return ""
    return (
        f"weighted needs propensities of {SMALL:g} and more, or {FEW_EFFECTIVE:g} equally weighted rewards "
        f"of each arm: the smallest is {least:.2g}, and one arm has {size:.1f}"
    )


def _smallest(data: RegressionData, profile: LogProfile) -> float:
    """Smallest propensity of the arms used."""
    return float(profile.smallest_propensity[np.unique(data.action)].min())


def _fit(data: RegressionData, profile: LogProfile, options: FitOptions) -> CoefficientFit:
    kind = options.settings.get("weights")
    check("weighted least squares", weights=(kind, OrNone(OneOf(*WEIGHTS))))
    propensity = _check(data, profile)
    check_freedom("weighted", data)
    if kind is None:
        kind = "sqrt" if options.stationary else usual_weights(profile)
    if kind == "sqrt":
        found = fit_own(data, profile, options, propensity)
    else:
        if "target" in options.settings:
            problem = "target= belongs to weights='sqrt', the square roots of importance weights"
            raise ParameterError("weighted least squares", [problem])
        found = fit_shared(data, profile, kind)
    smallest = float(propensity.min())
    notes = list(found.notes)
    if profile.estimated:
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if smallest < TINY_PROPENSITY:
        tiny = _tiny(smallest, float(found.details["ess"].min()))
        notes.append(tiny)
        warnings.warn(tiny, AdaptinfWarning, stacklevel=4)
    lowest = np.full(data.size, smallest)
    return replace(found, notes=(*notes, *found.last), details={**found.details, "min_propensity": lowest})


def _tiny(smallest: float, ess: float) -> str:
    return (
        f"Propensities down to {smallest:.2g}: a few rewards carry the estimates (effective sample size "
        f"{ess:.1f}); normal intervals may be far too short."
    )


WEIGHTED = Adjustment(
    "weighted", 2.0, _fit, _check, _preferred, covariances=("sandwich",), options=("weights", "target")
)
"""By one weight a round for all arms, or square roots of importance weights, for logged propensities."""
