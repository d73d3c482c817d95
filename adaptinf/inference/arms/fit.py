"""Functions shared by all methods for arm means: options, tests, contributions of rounds and efficiency.

References
----------
Hahn (1998), "On the role of the propensity score in efficient semiparametric estimation of average treatment
effects".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import sentence
from adaptinf.claims.arms import arm_fits
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.arms.data import arm_laws
from adaptinf.inference.arms.data.arms_of_sums import refuse_rows, sample_means_of
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.arms.question import ArmFit, Asked, Choice, Question, Refused
from adaptinf.inference.corrections.information import CHOSEN_FROM
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.inference.inputs.arguments import text_problems
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import SampleMeans, sample_means
from adaptinf.inference.validity.profile import TINY_PROPENSITY, LogProfile
from adaptinf.inference.validity.rare import SKEWED, with_events
from adaptinf.parameters import FLAG, refuse
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction

TESTS = ("auto", "normal", "t", "hall", "exact")
NAMED = ("before", "after")
ARM_ERRORS = ("self-normalised", "conservative")
"""Standard errors of ALEE: sigma sqrt(sum w^2) / sum w (self-normalised), or sigma / sum w."""


def arm_labels(question: Question) -> tuple[str, ...]:
    """The labels of the arms, as text."""
    return tuple(str(question.profile.log.arms[code]) for code in question.codes)


def without_propensities(estimator: str, question: Question, asked: Asked | None = None) -> Choice:
    """Refuse an estimator without propensities if contexts may have determined the arms."""
    if question.profile.context_refusal:
        raise Refused(estimator, question.profile.context_refusal)
    return Choice(estimator)


def independent_rounds(estimator: str, question: Question, asked: Asked | None = None) -> Choice:
    """Also refuse an estimator that assumes independent rounds if units have several rounds."""
    if question.profile.unit_refusal:
        raise Refused(estimator, question.profile.unit_refusal)
    return without_propensities(estimator, question, asked)


def residual_rows(question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
    """Contribution of each round to the error of each arm's estimate, shape (T, k)."""
    if question.profile.sums is not None:
        refuse_rows()
    arrays = question.profile.log.arrays
    residual = indicators(arrays.action, question.codes) * (arrays.reward[:, None] - fit.estimate)
    # Influences are rescaled to the arm's reported standard error, whichever formula that has.
    size = np.sqrt(np.einsum("tk,tk->k", residual, residual))
    return {"influence": residual * (fit.std_error / np.where(size > 0.0, size, np.nan))}


def warn_of_tiny_propensities(subject: str, fit: ArmFit) -> None:
    """Warn if an estimate divides by propensities below `TINY_PROPENSITY`."""
    tiny = fit.min_propensity < TINY_PROPENSITY
    if not tiny.any():
        return
    found = [
        arm_fits.TINY(arm=fit.labels[j], least=fit.min_propensity[j], ess=fit.ess[j], n=fit.pulls[j])
        for j in np.flatnonzero(tiny)
    ]
    told = arm_fits.TINY_WARNING(subject=subject, found=sentence(found))
    warnings.warn(told, AdaptinfWarning, stacklevel=3)


def check_options(asked: Asked, null: object, keep_scores: Any) -> None:
    """Refuse arguments of the wrong type, unknown tests or standard errors, and a null that is not finite."""
    wrong_null = null_problems(null)
    texts = {"estimator": asked.estimator, "weights": asked.weights}
    problems = text_problems(**texts, test=asked.test, arm_error=asked.arm_error, named=asked.named)
    problems += FLAG("keep_scores", keep_scores) + FLAG("stationary", asked.stationary)
    # Values that are not text may be unhashable, so membership is tested only after the other checks.
    if not problems:
        if asked.arm_error not in ARM_ERRORS:
            problems.append(unlisted("arm_error", ARM_ERRORS, asked.arm_error))
        if asked.named not in NAMED:
            problems.append(unlisted("named", NAMED, asked.named))
        if asked.named == "after" and asked.estimator != "released":
            problems.append(
                "named='after' applies only to released: adjust the p-values of other estimators with adjust="
            )
        if asked.test not in TESTS:
            problems.append(unlisted("test", TESTS, asked.test))
        problems += CHOSEN_FROM("chosen_from", asked.chosen_from) + wrong_null
    refuse(asked.subject, problems)


def null_problems(null: object) -> list[str]:
    """Problems with a null that is not a finite number."""
    if isinstance(null, bool) or not isinstance(null, Real) or not math.isfinite(float(null)):
        return [f"null must be a finite number, got {null!r}"]
    return []


def holds_always(question: Question, test: str, correction: Correction | None) -> bool:
    """True, for methods that run only if they are valid."""
    return True


def normal_test(question: Question, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """The test for an approximately normal estimator: normal, or t on request."""
    if test == "hall":
        raise InvalidForLog("Hall's interval", "it applies to means of scores and sample means", ["test='t'"])
    if test == "exact":
        raise InvalidForLog(
            "exact binomial tests", "they apply to sample means", ["test='t'", "test='normal'"]
        )
    return "normal" if test == "auto" else test


def student_test(question: Question, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """The test for a studentised estimator: t, or with Hall's correction if its rewards are skewed."""
    if test == "auto":
        return "hall" if is_skewed(question, fit) else "t"
    return test if test == "hall" else normal_test(question, fit, test, corrected=corrected)


def is_skewed(question: Question, fit: ArmFit) -> bool:
    """Whether rewards, in independent rounds, are so skewed that intervals must be corrected."""
    rewards = question.profile.of_arms(question.codes) if question.contrast else question.profile
    skewed = (rewards.squared_skewness * fit.evenness_lost > SKEWED).any()
    return bool(skewed) and not question.profile.repeated_units


def fit_facts(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> ArmFacts:
    """Facts about a fit, for methods without facts of their own."""
    return ArmFacts(question, fit, test)


def mean_reference(question: Question, fit: ArmFit, kind: str) -> Reference:
    """Distribution of the means; for arms with few events, the distribution of sums of events."""
    if fit.counted is not None:
        law = mean_reference(question, replace(fit, counted=None), kind)
        return with_events(law, fit.estimate, fit.counted.sums, fit.counted.few, fit.std_error)
    if kind in ("t", "normal"):
        found = (fit.estimate, fit.std_error)
        return StudentReference(*found, fit.degrees) if kind == "t" else NormalReference(*found)
    return arm_laws.mean_reference(question, fit, kind)


def arm_samples(profile: LogProfile) -> SampleMeans:
    """Unweighted means of all arms."""

    def work() -> SampleMeans:
        if profile.sums is not None:
            return sample_means_of(profile.sums.cells)
        arrays = profile.log.arrays
        return sample_means(arrays.action, arrays.reward, profile.log.n_arms, profile.pulls)

    return profile.once(arm_samples, work)


def arm_bounds(profile: LogProfile, codes: IntArray, *, shares: bool = False) -> FloatArray:
    """Smallest possible variances of estimates of arm means that do not use contexts.

    Shapes: codes (k,); returns (k,).

    For T rounds whose arms are drawn with probabilities e(x), the efficient influence function for the mean
    of one arm is 1{W = w} / e(x) (Y - mu(x)) + mu(x) - mu. No regular estimate therefore has a variance below
    E[sigma(x)^2 / e(x) + (mu(x) - mu)^2] / T, which is sigma^2 / (e T) without contexts. Two arms are never
    chosen in the same round, so the bound for a contrast is the sum of its arms' bounds; with contexts, it is
    E[sigma1(x)^2 / e1(x) + sigma0(x)^2 / e0(x) + (tau(x) - tau)^2] / T. With a good model of the contexts, an
    estimate can have a variance below the bound without contexts.
    """
    found = arm_samples(profile)
    counts = found.count[codes]
    spread = found.std_error[codes] ** 2 * counts
    expected = None if shares else profile.expected_pulls
    rounds = counts if expected is None else expected[codes]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(spread / rounds, dtype=np.float64)


def over_bound(variance: FloatArray, bound: FloatArray) -> FloatArray:
    """Variances relative to their bounds; NaN if there is no bound."""
    ratio = np.full(np.shape(variance), np.nan)
    np.divide(variance, bound, out=ratio, where=np.isfinite(bound) & (bound > 0.0))
    return ratio


@np.errstate(under="ignore")
def fit_efficiency(
    question: Question, bound: str, std_error: FloatArray
) -> tuple[Mapping[str, FloatArray], str]:
    """Variances relative to their bounds, and a note; neither if standard errors ignore adaptivity.

    Shapes: std_error (k,) or (1,).
    """
    if not bound or question.profile.incomplete:
        return {}, ""
    bounds = arm_bounds(question.profile, question.codes, shares=bound == "shares")
    whole = bounds if len(std_error) == len(bounds) else bounds.sum(keepdims=True)
    ratios = over_bound(std_error**2, whole)
    return {"efficiency": ratios}, _efficiency_note(ratios, bound)


def _efficiency_note(ratios: FloatArray, bound: str) -> str:
    """A sentence for the footer of a table; empty if no ratio is known; ratios has shape (k,)."""
    known = ratios[np.isfinite(ratios)]
    if len(known) == 0:
        return ""
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    many = f"variances range from {low} to {high}" if low != high else f"the variance is {low}"
    where = arm_fits.AT_SHARES() if bound == "shares" else "the average propensities"
    return arm_fits.EFFICIENCY(variances=many, where=where)
