"""What `ArmMeans` and `Contrast` share: the fit of arms, the choice of test, and the notes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.arms.alee import ARM_ERRORS, alee_means
from adaptinf.inference.arms.choice import TESTS, Choice
from adaptinf.inference.arms.weighted import score_estimates, score_rows
from adaptinf.inference.distributions.base import (
    BinomialReference,
    NormalReference,
    Reference,
    StudentReference,
)
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.two_samples import FEW_EVENTS, DifferenceReference, agresti_caffo
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import (
    SampleMeans,
    sample_means,
    weighted_means,
    welch,
)
from adaptinf.inference.scores.outcome_models import Outcome
from adaptinf.inference.validity.profile import TINY_PROPENSITY, is_binary, profile_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "ArmFit",
    "check_test",
    "difference_reference",
    "fit_arms",
    "influence_rows",
    "mean_reference",
    "resolve_test",
    "warn_of_tiny_propensities",
]


@dataclass(frozen=True, slots=True, eq=False)
class ArmFit:
    """Estimates of k arm means with everything that tests and tables need.

    Shapes: estimate, pulls, successes, ess, min_propensity (k,), covariance (k, k).
    """

    choice: Choice
    naive: bool
    labels: tuple[str, ...]
    estimate: FloatArray
    covariance: FloatArray
    pulls: FloatArray
    successes: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    sample: SampleMeans | None = None
    outcome: Outcome | None = None
    arm_error: str | None = None

    @property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), dtype=np.float64)

    def difference(self, first: int, second: int) -> tuple[float, float, float]:
        """Difference of two arms, its standard error, and degrees of freedom for a t-test."""
        if self.sample is not None:
            return welch(self.sample, first, second)
        pair = [first, second]
        if np.any(self.pulls[pair] == 0):
            return math.nan, math.nan, math.nan
        spread = self.covariance[np.ix_(pair, pair)]
        contrast = np.array([1.0, -1.0])
        variance = float(contrast @ spread @ contrast)
        # An arm whose rewards never varied says nothing of how far its mean may be from them.
        size = math.sqrt(max(variance, 0.0)) if np.all(np.diag(spread) > 0.0) else math.nan
        freedom = float(self.pulls[pair].min() - 1.0)
        return float(self.estimate[first] - self.estimate[second]), size, freedom


def fit_arms(
    log: AdaptiveLog,
    codes: IntArray,
    choice: Choice,
    outcome: Outcome | None = None,
    arm_error: str = "conservative",
) -> ArmFit:
    """Estimate the means of some arms; codes (k,)."""
    if choice.estimator == "sample-mean":
        return _fit_samples(log, codes, choice)
    if choice.estimator == "alee":
        return _fit_equations(log, codes, choice, arm_error)
    return _fit_scores(log, codes, choice, outcome)


def _labels(log: AdaptiveLog, codes: IntArray) -> tuple[str, ...]:
    return tuple(str(log.arms[code]) for code in codes)


def _fit_samples(log: AdaptiveLog, codes: IntArray, choice: Choice) -> ArmFit:
    arrays = log.arrays
    every = sample_means(arrays.action, arrays.reward, log.n_arms)
    sample = SampleMeans(every.count[codes], every.mean[codes], every.std_error[codes])
    return ArmFit(
        choice=choice,
        naive=profile_of(log).adaptive,
        labels=_labels(log, codes),
        estimate=sample.mean,
        covariance=np.diag(sample.std_error**2),
        pulls=sample.count,
        successes=_sums(log)[codes],
        ess=sample.count,
        min_propensity=np.full(len(codes), np.nan),
        sample=sample,
    )


def _fit_equations(log: AdaptiveLog, codes: IntArray, choice: Choice, arm_error: str) -> ArmFit:
    means = alee_means(log.arrays.action, log.arrays.reward, codes)
    return ArmFit(
        choice=choice,
        naive=False,
        labels=_labels(log, codes),
        estimate=means.estimate,
        covariance=np.diag(means.std_error(arm_error) ** 2),
        pulls=means.count,
        successes=_sums(log)[codes],
        ess=means.ess,
        min_propensity=np.full(len(codes), np.nan),
        arm_error=arm_error,
    )


def _sums(log: AdaptiveLog) -> FloatArray:
    sums = np.bincount(log.arrays.action, weights=log.arrays.reward, minlength=log.n_arms)
    return np.asarray(sums, dtype=np.float64)


def _fit_scores(log: AdaptiveLog, codes: IntArray, choice: Choice, outcome: Outcome | None) -> ArmFit:
    model = None
    if choice.estimator == "aipw":
        model = Outcome.running_mean() if outcome is None else outcome
    means = score_estimates(log, codes, choice, model)
    never = np.where(means.pulls > 0, 0.0, np.nan)
    once = np.where(means.pulls > 1, 0.0, np.nan)  # the spread of one reward is unknown
    return ArmFit(
        choice=choice,
        naive=False,
        labels=_labels(log, codes),
        estimate=means.estimate + never,
        covariance=means.covariance + once[:, None] + once[None, :],
        pulls=means.pulls,
        successes=means.successes,
        ess=means.ess,
        min_propensity=means.min_propensity,
        outcome=model,
    )


def influence_rows(log: AdaptiveLog, codes: IntArray, fit: ArmFit) -> Mapping[str, FloatArray]:
    """What each round contributes to the error of each arm's estimate; codes (k,); returns (T, k)."""
    arrays, choice = log.arrays, fit.choice
    chosen = indicators(arrays.action, codes)
    if choice.estimator in ("sample-mean", "alee"):
        residual = chosen * (arrays.reward[:, None] - fit.estimate)
        # The rows of an arm are scaled to its standard error, whichever of the possible ones it has.
        size = np.sqrt(np.einsum("tk,tk->k", residual, residual))
        return {"influence": residual * (fit.std_error / np.where(size > 0.0, size, np.nan))}
    scores, weights = score_rows(log, codes, choice, fit.outcome)
    return {
        "scores": scores,
        "weights": weights,
        "influence": weighted_means(scores, weights).influence,
    }


def warn_of_tiny_propensities(subject: str, fit: ArmFit) -> None:
    """Warn where an estimate divides by propensities below `TINY_PROPENSITY`."""
    tiny = np.flatnonzero(fit.min_propensity < TINY_PROPENSITY)
    if len(tiny) == 0:
        return
    found = "; ".join(
        f"{fit.labels[j]}: smallest propensity {fit.min_propensity[j]:.2g}, effective sample size "
        f"{fit.ess[j]:.1f} of {fit.pulls[j]:.0f} rewards"
        for j in tiny
    )
    consequence = "a few rewards carry the estimate, and its normal interval may be far too short"
    warnings.warn(f"{subject}: {found}; {consequence}.", AdaptinfWarning, stacklevel=4)


def check_test(subject: str, test: str, null: object, arm_error: object = "conservative") -> None:
    """Refuse an unknown test or kind of standard error, or a null that is no finite number."""
    problems = []
    if arm_error not in ARM_ERRORS:
        problems.append(f"arm_error must be one of {', '.join(ARM_ERRORS)}, got {arm_error!r}")
    if test not in TESTS:
        problems.append(f"test must be one of {', '.join(TESTS)}, got {test!r}")
    if isinstance(null, bool) or not isinstance(null, Real) or not math.isfinite(float(null)):
        problems.append(f"null must be a finite number, got {null!r}")
    if problems:
        raise ParameterError(subject, problems)


def resolve_test(log: AdaptiveLog, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """Which test is used."""
    means = fit.sample is not None
    if test == "exact" and not (means and is_binary(log.arrays.reward)):
        reason = "they are of sample means" if not means else "they need rewards that are all 0 or 1"
        raise InvalidForLog("exact binomial tests", reason, ["test='t'", "test='normal'"])
    if test != "auto":
        return test
    if not means:
        return "normal"
    if not (corrected or not fit.naive) or not is_binary(log.arrays.reward):
        return "t"
    if corrected:
        return "exact"
    events = np.minimum(fit.successes, fit.pulls - fit.successes)
    return "few" if np.any((events < FEW_EVENTS) & (fit.pulls > 0)) else "t"


def mean_reference(fit: ArmFit, kind: str) -> Reference:
    """Distribution of the means."""
    if kind in ("exact", "few"):
        return BinomialReference(fit.successes, fit.pulls)
    if kind == "t":
        return StudentReference(fit.estimate, fit.std_error, fit.pulls - 1.0)
    return NormalReference(fit.estimate, fit.std_error)


def difference_reference(fit: ArmFit, kind: str, difference: float, std_error: float, df: float) -> Reference:
    """Distribution of the first arm's mean minus the second's."""
    if kind == "exact":
        means = fit.successes / np.maximum(fit.pulls, 1.0)
        return BoundedDifferenceReference(means[:1], fit.pulls[:1], means[1:], fit.pulls[1:])
    if kind == "few":
        counts = (fit.pulls[:1], fit.successes[:1], fit.pulls[1:], fit.successes[1:])
        return DifferenceReference(agresti_caffo(*counts))
    estimate, size = np.array([difference]), np.array([std_error])
    return (
        StudentReference(estimate, size, np.array([df])) if kind == "t" else NormalReference(estimate, size)
    )
