"""The adjustments of `AdaptiveOLS` for adaptive collection: what each needs of a log, and what it says."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.distributions.base import NormalReference, StudentReference
from adaptinf.inference.regression.anytime import anytime_coefficients
from adaptinf.inference.regression.batched import BatchRegressions, batch_regressions, batched_coefficients
from adaptinf.inference.regression.data import Adjustment, CoefficientFit, FitOptions, RegressionData
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.ellipsoid import EllipsoidReference, confidence_ellipsoid
from adaptinf.inference.regression.joint import AnytimeTests, BatchedTests, EllipsoidTests
from adaptinf.inference.regression.results import CoefficientTests
from adaptinf.inference.regression.weighted import stabilising_weights, weighted_least_squares
from adaptinf.inference.scores.least_squares import least_squares
from adaptinf.inference.validity.profile import SMALL, TINY_PROPENSITY, profile_of
from adaptinf.parameters import choice_problem, flag_problem, number_problem
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["LARGEST_LEFT", "WITHOUT_GUARANTEE", "left_reason", "left_ways", "ways_to_regress"]

LARGEST_LEFT = 0.2
"""Share of the error of least squares that W-decorrelation may leave out of its standard errors."""
_DRIFT = "one conditional mean throughout, linear in the columns"
_PERFECT = "The rewards do not vary about the fit: there are no tests or intervals."


def ways_to_regress(data: RegressionData, log: AdaptiveLog, *without: str) -> list[str]:
    """Adjustments that the log supports, for errors."""
    if data.selector is not None and data.adaptive:
        return ["an arm that was named before the data, or all arms with arm dummies"]
    ways = []
    if data.propensity is not None and not _weighting_refusal(data, log):
        ways.append("weighted")
    if data.batch is not None and _regressions(data, log)[1].all():
        ways.append("batched")
    ways.append("w-decorrelation")
    if not data.adaptive:
        ways.append("anytime")
    ways.append("ellipsoid")
    return [f"adjustment={way!r}" for way in ways if way not in without]


def _refuse_selection(name: str, data: RegressionData, log: AdaptiveLog) -> None:
    """Refuse arms that were selected by an action history that rewards have moved."""
    if data.selector is not None and data.adaptive:
        reason = (
            f"the arm was selected as {data.selector!r} from the action history, which depends on rewards: "
            "the adjustment holds for an arm that was named beforehand"
        )
        raise InvalidForLog(name, reason, ways_to_regress(data, log))


def left_reason(left: float) -> str:
    """Why W-decorrelation cannot be used where it leaves too much of the error of least squares."""
    return (
        f"it would leave up to {left:.0%} of the error of least squares in the estimates, bias included, "
        "which its standard errors do not count: columns of very different size do that, and large ridges"
    )


def left_ways(ridge: float | None) -> list[str]:
    """What mends that."""
    ways = ["covariates on one scale, such as scale(age) in the formula"]
    return ways if ridge is None else [*ways, "a smaller ridge="]


def _decorrelated(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    _refuse_selection("w-decorrelation", data, log)
    _freedom("w-decorrelation", data)
    ridge = options.settings.get("ridge")
    found = decorrelated(data.x, data.y, ridge)
    if found.left > LARGEST_LEFT:
        raise InvalidForLog("w-decorrelation", left_reason(found.left), left_ways(ridge))
    errors = np.sqrt(np.diag(found.covariance))
    source = (
        "its default, from the whole design matrix and so not, strictly, known before the first round"
        if ridge is None
        else "taken to be fixed before the data"
    )
    notes = [
        f"W-decorrelation: assumes {_DRIFT}, and noise of one variance; needs no propensities.",
        f"Ridge {found.ridge:.4g}: {source}.",
        f"Up to {found.left:.1%} of the error of least squares is left in the estimate, bias included; the "
        "standard errors do not count that.",
    ]
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=NormalReference(found.estimate, errors),
        estimator="w-decorrelated",
        covariance=found.covariance,
        notes=(*notes, *_silent(errors)),
        details={"error_left": np.linalg.norm(found.remainder, axis=1)},
        df_resid=float(data.nobs - data.size),
    )


def _regressions(data: RegressionData, log: AdaptiveLog) -> tuple[BatchRegressions, BoolArray]:
    """Regressions by batch, and which of the log's batches are usable."""
    assert data.batch is not None
    found = batch_regressions(data.batch, data.x, data.y)
    every = log.arrays.batch
    usable = np.zeros(int(data.batch.max() if every is None else every.max()) + 1, dtype=np.bool_)
    usable[np.unique(data.batch)[found.usable]] = True
    return found, usable


def _batched(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    _refuse_selection("batched", data, log)
    test, drift = options.settings.get("test", "t"), options.settings.get("drift", False)
    problems = [*choice_problem("test", test, ("t", "normal")), *flag_problem("drift", drift)]
    if problems:
        raise ParameterError("batched least squares", problems)
    if data.batch is None:
        reason = "it needs batches, and the log has none (give batch=)"
        raise InvalidForLog("batched", reason, ways_to_regress(data, log, "batched"))
    found, usable = _regressions(data, log)
    left_out = _check_batches(data, log, usable)
    found = found.only(found.usable)
    estimate, errors, reference = batched_coefficients(found, np.eye(data.size), test)
    notes = [
        f"Batched least squares over {len(found.df)} batches: assumes coefficients that stay the same, and "
        "within each batch noise of one variance that adapts to nothing.",
        *left_out,
        "The law of the statistics is exact for normal noise."
        if test == "t"
        else "Normal approximation: it needs large batches, or many of moderate size.",
    ]
    if drift:
        notes.append("wald_test: restrictions in every batch, whatever the coefficients' drift.")
    if np.any(found.scale == 0.0):
        notes.append("In a batch the rewards do not vary about the fit: there is no estimate.")
    return CoefficientFit(
        estimate=estimate,
        std_error=errors,
        reference=reference,
        estimator="batched",
        notes=tuple(notes),
        df_resid=float(found.df.sum()),
        joint=BatchedTests(found, test, bool(drift)),
    )


def _check_batches(data: RegressionData, log: AdaptiveLog, usable: BoolArray) -> list[str]:
    """Refuse adaptive logs with batches that have no regression; say which ones others leave out.

    Which batches lack rank is settled before their own rewards, but not before earlier batches' ones: a sum
    over a number of terms that depends on the terms has another law.
    """
    missing = np.flatnonzero(~usable)
    if len(missing) == 0:
        return []
    shown = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
    what = (
        f"in {len(missing)} of {len(usable)} batches ({shown}, counted from 0) the columns are not "
        "independent, or leave no residual"
    )
    ways = ways_to_regress(data, log, "batched")
    if not usable.any():
        raise InvalidForLog("batched", what, ways)
    if data.adaptive:
        reason = (
            f"{what}; which ones can depend on earlier batches' rewards, so that leaving them out would bend "
            "the law of the statistic"
        )
        raise InvalidForLog("batched", reason, ways)
    return [f"Left out, as the design does not adapt to rewards: {what}."]


def _weighted(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    _refuse_selection("weighted", data, log)
    reason = _weighting_refusal(data, log)
    if reason or data.propensity is None:
        raise InvalidForLog("weighted", reason, ways_to_regress(data, log, "weighted"))
    target, stated = _target(data, log, options.settings.get("target"))
    _freedom("weighted", data)
    weight = stabilising_weights(data.action, data.propensity, target)
    found = weighted_least_squares(data.x, data.y, weight, data.names, small_samples=True)
    df = float(data.nobs - data.size)
    errors = np.sqrt(np.diag(found.covariance))
    if found.perfect:
        errors[:] = 0.0
    smallest = float(data.propensity.min())
    notes = [
        f"Weights sqrt(target / propensity), target {stated}: assumes {_DRIFT} (not a projection), contexts "
        "of one law, and propensities given the past.",
        "Sandwich covariance: the variance of the noise may depend on arm and context, not on the round. For "
        "small samples residuals are divided by 1 - leverage, and the law is t with rounds minus columns "
        "degrees of freedom.",
    ]
    if log.propensity_status == "estimated":
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if smallest < TINY_PROPENSITY:
        text = (
            f"Propensities down to {smallest:.2g}: a few rewards carry the estimates (effective sample size "
            f"{found.ess:.1f}); normal intervals may be far too short."
        )
        notes.append(text)
        warnings.warn(text, AdaptinfWarning, stacklevel=4)
    elif smallest < SMALL and data.adaptive:
        notes.append(
            f"Propensities down to {smallest:.2g}: not normal in general when they fall with the data. "
            "Simulated on Thompson sampling whose floor falls to 0.004, nominal 95% intervals cover 94% at "
            "1,000 rounds."
        )
    if found.decided and not found.perfect:
        notes.append(
            f"No standard errors: {found.decided} rounds have leverage 1 (each decides a coefficient alone)."
        )
    else:
        notes += _silent(errors)
    return CoefficientFit(
        estimate=found.estimate,
        std_error=errors,
        reference=StudentReference(found.estimate, errors, np.full(data.size, df)),
        estimator="weighted",
        covariance=found.covariance,
        weights="sqrt(target / propensity)",
        notes=tuple(notes),
        details={
            "ess": np.full(data.size, found.ess),
            "min_propensity": np.full(data.size, smallest),
        },
        df_resid=df,
        joint=CoefficientTests(found.estimate, found.covariance, np.eye(data.size), df),
    )


def _weighting_refusal(data: RegressionData, log: AdaptiveLog) -> str:
    """Why propensities do not serve as weights; empty where they do."""
    if data.propensity is None:
        return "it needs the chosen arm's propensities, and the log has none (give propensity=)"
    if not np.all(data.propensity > 0.0):
        return "a chosen arm has propensity 0"
    codes = np.unique(data.action)
    counts = profile_of(log).impossible[codes]
    if not counts.any():
        return ""
    worst = int(np.argmax(counts))
    return (
        f"arm {log.arms[codes[worst]]!r} has propensity 0 in {int(counts[worst])} of {log.n_rounds} rounds, "
        "where it could not have been chosen: no weight makes up for them"
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
        problems += [f"there is no arm {arm!r} in the log" for arm in given if arm not in log.arms]
        for arm in given:
            problems += number_problem(f"target[{arm!r}]", given[arm], 0.0, 1.0, open_low=arm in used)
        if not problems and abs(math.fsum(given.values()) - 1.0) > 1e-9:
            problems.append(f"the target's probabilities must add up to 1, got {math.fsum(given.values()):g}")
    if problems:
        raise ParameterError("weighted least squares", problems)
    for arm, probability in given.items():
        target[log.arms.index(arm)] = probability
    return target, "as given, fixed before the data"


def _ellipsoid(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    _refuse_selection("ellipsoid", data, log)
    settings = dict(options.settings)
    scale, bound = settings.get("noise_scale"), settings.get("bound")
    source = "as given"
    if scale is None and log.reward_range is not None and math.isfinite(np.ptp(log.reward_range)):
        scale, source = 0.5 * float(np.ptp(log.reward_range)), "half the range of the rewards"
    problems = []
    if scale is None:
        problems.append(
            "give noise_scale=, the sub-Gaussian scale of the noise: the log has no finite reward_range"
        )
    if bound is None:
        problems.append("give bound=, the largest Euclidean norm that the coefficients can have")
    if problems or scale is None or bound is None:
        raise ParameterError("the confidence ellipsoid", problems)
    found = confidence_ellipsoid(data.x, data.y, scale, bound, settings.get("ridge", 1.0))
    reference = EllipsoidReference(found, np.eye(data.size))
    notes = (
        f"Self-normalised ellipsoid: holds at all rounds at once and for all combinations of coefficients at "
        f"once, whatever the design did; assumes {_DRIFT}.",
        f"Sub-Gaussian noise of scale {found.noise_scale:g} ({source}), coefficients of norm at most "
        f"{found.bound:g}, ridge {found.ridge:g}.",
        "Standard errors are descriptions: the noise scale times a half-width of the ellipsoid of radius 1.",
        *_beyond_bound(data, found.bound),
    )
    return CoefficientFit(
        estimate=found.estimate,
        std_error=reference.std_error,
        reference=reference,
        estimator="ridge",
        notes=notes,
        joint=EllipsoidTests(found),
    )


def _beyond_bound(data: RegressionData, bound: float) -> tuple[str, ...]:
    """A doubt about the bound, which is in the units of the coefficients."""
    if data.nobs <= data.size:
        return ()
    size = float(np.linalg.norm(least_squares(data.x, data.y, data.names).coefficient))
    if size <= bound:
        return ()
    return (
        f"Least squares has coefficients of norm {size:.3g}, beyond the bound: if the bound is wrong, so are "
        "the intervals. Covariates on one scale, such as scale(age) in the formula, make a bound easier to "
        "know.",
    )


def _anytime(data: RegressionData, log: AdaptiveLog, options: FitOptions) -> CoefficientFit:
    if data.adaptive:
        reason = (
            "its Bayes factors need a design that was fixed in advance, and here rewards may have changed "
            "later actions"
        )
        raise InvalidForLog("anytime", reason, ways_to_regress(data, log, "anytime"))
    _freedom("anytime", data)
    precision = options.settings.get("precision", 1.0)
    fit = least_squares(data.x, data.y, data.names)
    inverse = fit.root @ fit.root.T
    law = (fit.coefficient, inverse, 0.0 if fit.perfect else fit.rss, fit.df_resid)
    reference = anytime_coefficients(*law, np.eye(data.size), precision)
    errors = np.sqrt(np.diag(inverse) * law[2] / fit.df_resid)
    notes = (
        "Anytime-valid t and F tests: hold at all rounds at once, for a design that does not depend on "
        "rewards and normal noise of one variance.",
        f"Mixture of precision {precision:g}, fixed before the data: powerful for coefficients of about "
        f"{1.0 / math.sqrt(precision):.3g} times the standard deviation of the noise.",
    )
    return CoefficientFit(
        estimate=fit.coefficient,
        std_error=errors,
        reference=reference,
        estimator="ols",
        notes=(*notes, *_silent(errors)),
        df_resid=float(fit.df_resid),
        joint=AnytimeTests(*law, float(precision)),
        rsquared=fit.rsquared,
    )


def _silent(errors: FloatArray) -> list[str]:
    return [] if np.all(errors > 0.0) else [_PERFECT]


def _freedom(name: str, data: RegressionData) -> None:
    if data.nobs <= data.size:
        problem = f"{data.nobs} rounds and {data.size} columns leave no residual: use fewer columns"
        raise ParameterError(name, [problem])


WITHOUT_GUARANTEE: Mapping[str, Adjustment] = MappingProxyType(
    {
        "w-decorrelation": Adjustment(_decorrelated, options=("ridge",)),
        "batched": Adjustment(_batched, options=("test", "drift")),
        "weighted": Adjustment(_weighted, ("sandwich",), ("target",)),
        "ellipsoid": Adjustment(_ellipsoid, options=("noise_scale", "bound", "ridge")),
        "anytime": Adjustment(_anytime, options=("precision",)),
    }
)
"""Adjustments by name that need no privacy guarantee."""
