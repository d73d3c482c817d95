"""Least squares weighted by propensities: with one weight a round for all arms, or with one for each arm.

One weight for all arms keeps what moves them alike out of their differences. Square roots of importance
weights, each arm's own, keep the variance of scores even, and need rewards that do not drift.

References
----------
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

from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.distributions.base import StudentReference
from adaptinf.inference.regression.data import (
    LINEAR,
    Adjustment,
    CoefficientFit,
    FitOptions,
    RegressionData,
    check_freedom,
    perfect_notes,
)
from adaptinf.inference.regression.results import CoefficientTests
from adaptinf.inference.regression.round_weights import fixed_by, shared_weights
from adaptinf.inference.regression.running import predictions_of_arms, running_regression
from adaptinf.inference.regression.shared import ArmColumns, SharedFit, arm_columns, shared_regression
from adaptinf.inference.scores.inverse import indicators, predictions
from adaptinf.inference.scores.least_squares import least_squares
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY
from adaptinf.inference.validity.stationarity import own_weights_caution
from adaptinf.parameters import Number, OneOf, OrNone, check, refuse
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog

WEIGHTS = ("combined", "uniform", "sqrt")
_LARGEST = 2 * 10**8
"""Numbers in the model matrices of all arms up to which differences of arms are projected."""
_FIXED = {
    "round": "its propensities",
    "batch": "the propensities of the batch before",
    "round before": "the propensities of the round before, as contexts may have moved its own",
}


@dataclass(frozen=True, slots=True, eq=False)
class WeightedFit:
    """Weighted least squares; estimate (d,), covariance (d, d)."""

    estimate: FloatArray
    covariance: FloatArray
    ess: float
    perfect: bool
    decided: int


def stabilising_weights(action: IntArray, propensity: FloatArray, target: FloatArray) -> FloatArray:
    """Square roots of importance weights; action (n,), propensity (n,), target (K,); returns (n,)."""
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

    With G = sum W x x' and residuals e the estimate is G^-1 sum W x y, and its covariance G^-1 M G^-1 with
    M = sum W^2 e^2 x x'. If W = sqrt(target / propensity), then given the past W^2 turns the law of the
    round's actions into the target's, so that the conditional variance of a score W x (y - x'beta) is the
    same in every round whatever the propensities have become: their sum is normal in the limit.
    That needs contexts of one law, rewards whose conditional mean is x'beta for every arm and context (a
    projection will not do: which one is estimated would move with the propensities), the same conditional
    variances throughout, and propensities above a floor of the order 1 / T.
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


def _check(data: RegressionData, profile: LogProfile) -> FloatArray:
    """Propensities of the chosen arms, where they serve as weights; shape (n,)."""
    reason = ""
    if data.propensity is None:
        reason = "it needs the chosen arm's propensities, and the log has none (give propensity=)"
    elif not np.all(data.propensity > 0.0):
        reason = "a chosen arm has propensity 0"
    else:
        gaps = _gaps(data, profile)
        adapts = profile.traits is not None and profile.traits.adapts
        if not gaps or (profile.propensities is not None and not adapts):
            return data.propensity
        reason = f"{gaps}, where it could not have been chosen: no weight makes up for them"
    raise InvalidForLog("weighted", reason, ())


def _gaps(data: RegressionData, profile: LogProfile) -> str:
    """Which arm of the fit was impossible in most rounds, and in how many; empty where none was."""
    codes = np.unique(data.action)
    counts = profile.impossible[codes]
    if not counts.any():
        return ""
    worst = int(np.argmax(counts))
    rounds = f"{int(counts[worst])} of {data.n_rounds} rounds"
    return f"arm {profile.log.arms[codes[worst]]!r} has propensity 0 in {rounds}"


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
    least, size = _smallest(data, profile), _fewest_effective(data, profile)
    if least >= SMALL or size >= FEW_EFFECTIVE:
        return ""
    return (
        f"weighted needs propensities of {SMALL:g} and more, or {FEW_EFFECTIVE:g} equally weighted rewards "
        f"of each arm: the smallest is {least:.2g}, and one arm has {size:.1f}"
    )


def _smallest(data: RegressionData, profile: LogProfile) -> float:
    """Smallest propensity of the arms used."""
    return float(profile.smallest_propensity[np.unique(data.action)].min())


def _fewest_effective(data: RegressionData, profile: LogProfile) -> float:
    """Equally weighted rewards that the arm with the fewest has, by propensities and actions alone."""
    codes = np.unique(data.action)
    weight = np.ones(data.nobs)
    if profile.propensities is not None:
        weight = shared_weights(profile, codes, jointly=False)[data.rounds]
    assert profile.propensity is not None
    gain = np.square(weight / profile.propensity[data.rounds])
    return float(effective_size(indicators(data.action, codes) * gain[:, None]).min())


def _fit(data: RegressionData, profile: LogProfile, options: FitOptions) -> CoefficientFit:
    kind = options.settings.get("weights")
    check("weighted least squares", weights=(kind, OrNone(OneOf(*WEIGHTS))))
    propensity = _check(data, profile)
    check_freedom("weighted", data)
    if kind is None:
        known = profile.propensities is not None
        kind = "sqrt" if options.stationary else "combined" if known else "uniform"
    if kind == "sqrt":
        found = _fit_own(data, profile, options, propensity)
    else:
        if "target" in options.settings:
            problem = "target= belongs to weights='sqrt', the square roots of importance weights"
            raise ParameterError("weighted least squares", [problem])
        found = _fit_shared(data, profile, kind)
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


# One weight a round for all arms


def _fit_shared(data: RegressionData, profile: LogProfile, kind: str) -> CoefficientFit:
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
    if (size := _fewest_effective(data, profile)) < FEW_EFFECTIVE:
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
        last=tuple(_gap_notes(fit.decided, errors)),
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
    if gaps := _gaps(data, profile):
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


def _gap_notes(decided: int, errors: FloatArray) -> list[str]:
    """Why there are no standard errors; errors (p,)."""
    if decided and not np.all(errors == 0.0):
        why = f"{decided} rounds have leverage 1 (each decides a coefficient alone)"
        return [f"No standard errors: {why}."]
    if np.isnan(errors).any():
        return ["No standard errors where fewer than two rewards of an arm have a weight."]
    return perfect_notes(errors)


# One weight for each arm


def _fit_own(
    data: RegressionData, profile: LogProfile, options: FitOptions, propensity: FloatArray
) -> CoefficientFit:
    if gaps := _gaps(data, profile):
        reason = f"{gaps}, where it could not have been chosen: no weight of its own makes up for them"
        raise InvalidForLog("weighted with sqrt weights", reason, ())
    target, stated = _target(data, profile.log, options.settings.get("target"))
    weight = stabilising_weights(data.action, propensity, target)
    found = weighted_least_squares(data.x, data.y, weight, data.names, small_samples=True)
    df = float(data.nobs - data.size)
    errors = np.sqrt(np.diag(found.covariance))
    if found.perfect:
        errors[:] = 0.0
    notes = [
        f"Weights sqrt(target / propensity), target {stated}: assumes {LINEAR} (not a projection), contexts "
        "of one law, and propensities given the past.",
        "Sandwich covariance: the variance of the noise may depend on arm and context, not on the round. For "
        "small samples residuals are divided by 1 - leverage, and the law is t with rounds minus columns "
        "degrees of freedom.",
    ]
    drifts = not options.stationary and not profile.constant_propensities and len(np.unique(data.action)) > 1
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=StudentReference(found.estimate, errors, np.full(data.size, df)),
        estimator="weighted",
        covariance=found.covariance,
        weights="sqrt(target / propensity)",
        notes=tuple(notes),
        last=tuple(_gap_notes(0 if found.perfect else found.decided, errors)),
        cautions=(own_weights_caution("sqrt importance"),) if drifts else (),
        details={"ess": np.full(data.size, found.ess)},
        df_resid=df,
        joint=CoefficientTests(found.estimate, found.covariance, np.eye(data.size), df),
    )


def _tiny(smallest: float, ess: float) -> str:
    return (
        f"Propensities down to {smallest:.2g}: a few rewards carry the estimates (effective sample size "
        f"{ess:.1f}); normal intervals may be far too short."
    )


def _target(data: RegressionData, log: AdaptiveLog, given: Any) -> tuple[FloatArray, str]:
    """Probabilities of all arms of the log under the stabilising policy, and what notes call them."""
    codes: IntArray = np.unique(data.action)
    target = np.zeros(data.n_arms)
    if given is None:
        target[codes] = 1.0 / len(codes)
        return target, "uniform over the arms of the fit"
    problems = []
    used = [log.arms[code] for code in codes]
    if not isinstance(given, Mapping):
        problems.append(f"target must map arms to probabilities, got {given!r:.60}")
    else:
        problems += [f"target has no arm {arm!r} of the fit" for arm in used if arm not in given]
        problems += [absent("arm", arm, log.arms, "the log has") for arm in given if arm not in log.arms]
        for arm in given:
            problems += Number(0.0, 1.0, open_low=arm in used)(f"target[{arm!r}]", given[arm])
        if not problems and abs(math.fsum(given.values()) - 1.0) > 1e-9:
            problems.append(f"the target's probabilities must add up to 1, got {math.fsum(given.values()):g}")
    refuse("weighted least squares", problems)
    for arm, probability in given.items():
        target[log.arms.index(arm)] = probability
    return target, "as given, fixed before the data"


WEIGHTED = Adjustment(
    "weighted", 2.0, _fit, _check, _preferred, covariances=("sandwich",), options=("weights", "target")
)
"""By one weight a round for all arms, or square roots of importance weights, for logged propensities."""
