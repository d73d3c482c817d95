"""What `ArmMeans` and `Contrast` share: the fit of arms, the choice of test, and the notes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.choice import TESTS, Choice, is_adaptive, is_binary
from adaptinf.inference.estimates import (
    SampleMeans,
    WeightedMeans,
    effective_size,
    sample_means,
    weighted_means,
    welch,
)
from adaptinf.inference.maxinfo import Correction, why_not
from adaptinf.inference.scores import aipw_scores, indicators, ipw_scores, running_means
from adaptinf.inference.weights import sqrt_weights, two_point_weights, uniform_weights
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["ArmFit", "check_test", "fit_arms", "fit_notes", "resolve_test"]


@dataclass(frozen=True, slots=True, eq=False)
class ArmFit:
    """Estimates of k arm means with everything that tests and tables need.

    Attributes
    ----------
    choice : Choice
        How they were estimated.
    naive : bool
        Whether they are sample means of a log that may be adaptive.
    labels : tuple of str
        The arms.
    estimate, std_error, pulls, successes, ess, min_propensity : ndarray, shape (k,)
        By arm; `successes` is the sum of rewards.
    covariance : ndarray, shape (k, k)
        Of the estimates.
    sample : SampleMeans or None
        Of the k arms, for sample means.
    weighted : WeightedMeans or None
        For IPW and AIPW.
    rows : mapping of str to ndarray, shape (T, k), or None
        Scores and weights, for IPW and AIPW.
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
    weighted: WeightedMeans | None = None
    rows: Mapping[str, FloatArray] | None = None

    @property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), dtype=np.float64)

    def difference(self, first: int, second: int) -> tuple[float, float, float]:
        """Difference of two arms, its standard error, and degrees of freedom for a t-test."""
        if self.sample is not None:
            return welch(self.sample, first, second)
        pair = [first, second]
        if self.weighted is None or np.any(self.pulls[pair] == 0):
            return math.nan, math.nan, math.nan
        return *self.weighted.difference(first, second), float(self.pulls[pair].min() - 1.0)


def fit_arms(log: AdaptiveLog, codes: IntArray, choice: Choice) -> ArmFit:
    """Estimate the means of some arms.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    codes : ndarray of int64, shape (k,)
        The arms.
    choice : Choice
        A valid choice for these arms.

    Returns
    -------
    ArmFit
        NaN for arms that were never chosen.
    """
    return (
        _fit_samples(log, codes, choice)
        if choice.estimator == "sample-mean"
        else _fit_scores(log, codes, choice)
    )


def _fit_samples(log: AdaptiveLog, codes: IntArray, choice: Choice) -> ArmFit:
    arrays = log.arrays
    every = sample_means(arrays.action, arrays.reward, log.n_arms)
    sample = SampleMeans(every.count[codes], every.mean[codes], every.std_error[codes])
    return ArmFit(
        choice=choice,
        naive=is_adaptive(log),
        labels=tuple(str(log.arms[code]) for code in codes),
        estimate=sample.mean,
        covariance=np.diag(sample.std_error**2),
        pulls=sample.count,
        successes=arrays.reward @ indicators(arrays.action, codes),
        ess=sample.count,
        min_propensity=np.full(len(codes), np.nan),
        sample=sample,
    )


def _fit_scores(log: AdaptiveLog, codes: IntArray, choice: Choice) -> ArmFit:
    arrays = log.arrays
    propensity = np.ones(0) if arrays.propensity is None else arrays.propensity
    every = None if arrays.propensities is None else arrays.propensities[:, codes]
    chosen = indicators(arrays.action, codes)
    if choice.estimator == "ipw":
        scores = ipw_scores(chosen, arrays.reward, propensity)
    else:
        scores = aipw_scores(chosen, arrays.reward, propensity, running_means(chosen, arrays.reward))
    weights = _weights(choice, every, log.n_rounds, len(codes))
    weighted = weighted_means(scores, weights)
    pulls = chosen.sum(axis=0)
    never = np.where(pulls > 0, 0.0, np.nan)
    observed = chosen / propensity[:, None]
    return ArmFit(
        choice=choice,
        naive=False,
        labels=tuple(str(log.arms[code]) for code in codes),
        estimate=weighted.estimate + never,
        covariance=weighted.covariance + never[:, None] + never[None, :],
        pulls=pulls,
        successes=arrays.reward @ chosen,
        ess=effective_size(weights * observed),
        min_propensity=_smallest(observed) if every is None else every.min(axis=0),
        weighted=weighted,
        rows={"scores": scores, "weights": weights},
    )


def _weights(choice: Choice, propensities: FloatArray | None, n_rounds: int, n_arms: int) -> FloatArray:
    if propensities is None or choice.weights == "uniform":
        return uniform_weights(n_rounds, n_arms)
    if choice.decay is None:
        return sqrt_weights(propensities)
    return two_point_weights(propensities, choice.decay)


def _smallest(observed: FloatArray) -> FloatArray:
    """Smallest propensity of each arm where it was chosen; NaN where it never was."""
    largest = observed.max(axis=0)
    return np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), np.nan)


def check_test(subject: str, test: str, null: object) -> None:
    """Refuse an unknown test or a null that is no finite number.

    Parameters
    ----------
    subject : str
        What was called.
    test : str
        Member of `TESTS`.
    null : float
        Value to test against.

    Raises
    ------
    ParameterError
        Listing what is wrong.
    """
    problems = []
    if test not in TESTS:
        problems.append(f"test must be one of {', '.join(TESTS)}, got {test!r}")
    if isinstance(null, bool) or not isinstance(null, Real) or not math.isfinite(float(null)):
        problems.append(f"null must be a finite number, got {null!r}")
    if problems:
        raise ParameterError(subject, problems)


def resolve_test(log: AdaptiveLog, choice: Choice, test: str, *, corrected: bool) -> str:
    """Which test is used.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    choice : Choice
        How means are estimated.
    test : str
        What was asked for.
    corrected : bool
        Whether a correction is due.

    Returns
    -------
    str
        ``"normal"``, ``"t"`` or ``"exact"``.

    Raises
    ------
    InvalidForLog
        If exact tests were asked for where there are none.
    """
    means = choice.estimator == "sample-mean"
    if test == "exact" and not (means and is_binary(log.arrays.reward)):
        reason = "they are of sample means" if not means else "they need rewards that are all 0 or 1"
        raise InvalidForLog("exact binomial tests", reason, ["test='t'", "test='normal'"])
    if test != "auto":
        return test
    if not means:
        return "normal"
    return "exact" if corrected and is_binary(log.arrays.reward) else "t"


def fit_notes(log: AdaptiveLog, fit: ArmFit, test: str, correction: Correction | None) -> tuple[str, ...]:
    """Assumptions and reasons under a table.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    fit : ArmFit
        The fit.
    test : str
        What `resolve_test` said.
    correction : Correction or None
        The one that is due.

    Returns
    -------
    tuple of str
        One entry a note.
    """
    notes = _sample_notes(log, fit, test, correction) if fit.sample is not None else _score_notes(log, fit)
    return (*notes, *_gaps(fit, test))


def _sample_notes(log: AdaptiveLog, fit: ArmFit, test: str, correction: Correction | None) -> list[str]:
    notes = []
    if not fit.naive:
        notes.append("Sample means: the design does not adapt to rewards, so no correction is due.")
    elif correction is not None:
        notes.append("Sample means: not valid under adaptivity; the corrected columns account for it.")
    else:
        notes.append("Sample means: not valid under adaptivity; a naive baseline.")
    if log.context:
        notes.append(
            "The log has contexts: a sample mean is that of the rounds the arm got, which is the arm's mean "
            "only if the context had no part in the choice."
        )
    if fit.naive and log.design is None:
        notes.append("The log does not name its design, which is therefore taken to be adaptive.")
    if fit.naive and correction is None and log.guarantee is not None:
        notes.append(f"No corrected columns: {why_not(log)}.")
    if test == "exact":
        notes.append("Exact tests assume independent 0/1 rewards with one success rate an arm.")
    return notes


def _score_notes(log: AdaptiveLog, fit: ArmFit) -> list[str]:
    choice = fit.choice
    notes = [
        "Assumes propensities given the past, positive in every round, and arm means that stay the same."
    ]
    if choice.estimator == "aipw":
        notes.append("Outcome model: the arm's mean over earlier rounds.")
    if log.propensity_status == "estimated":
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if log.arrays.propensities is None:
        notes.append(
            "The log has the chosen arm's propensity alone: that each arm could be chosen is assumed."
        )
    if choice.weights == "uniform" and is_adaptive(log):
        notes.append(
            "Uniform weights: not normal in general when propensities move with the data; sqrt and two-point "
            "weights guard against that and need every arm's propensity."
        )
    if choice.weights == "two-point":
        notes.append(f"Two-point weights: propensity floor of decay {choice.decay:g}.")
    return notes


def _gaps(fit: ArmFit, test: str) -> list[str]:
    notes = [
        f"{arm}: never chosen, so nothing is estimated."
        for arm, n in zip(fit.labels, fit.pulls, strict=True)
        if n == 0
    ]
    if test == "exact":
        return notes
    for arm, n, size in zip(fit.labels, fit.pulls, fit.std_error, strict=True):
        if n == 1 and math.isnan(size):
            notes.append(f"{arm}: chosen once, so it has no standard error.")
        if size == 0.0:
            notes.append(
                f"{arm}: its rewards do not vary: no test or interval (exact ones need sample means)."
            )
    return notes
