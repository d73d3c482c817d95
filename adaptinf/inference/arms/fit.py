"""What methods for arm means share: the fit of arms, its tests, its efficiency and what it lacks.

References
----------
Hahn (1998), "On the role of the propensity score in efficient semiparametric estimation of average treatment
effects".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.arms.question import Asked, Choice, Question, Refused
from adaptinf.inference.corrections.information import CHOSEN_FROM
from adaptinf.inference.distributions.base import (
    BinomialReference,
    NormalReference,
    Reference,
    StudentReference,
)
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.two_samples import DifferenceReference, agresti_caffo
from adaptinf.inference.inputs.arguments import text_problems
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import SampleMeans, sample_means, welch
from adaptinf.inference.validity.profile import TINY_PROPENSITY
from adaptinf.parameters import FLAG, refuse
from adaptinf.typing import FloatArray, IntArray, Validity

if TYPE_CHECKING:
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.scores.outcome_models import Outcome
    from adaptinf.log import AdaptiveLog

_SHORT = 200
"""Rounds up to which the exact law of a two-arm trial takes seconds."""
TESTS = ("auto", "normal", "t", "exact")
NAMED = ("before", "after")
ARM_ERRORS = ("self-normalised", "conservative")
"""Standard errors of ALEE: sigma sqrt(sum w^2) / sum w, or sigma / sum w."""


@dataclass(frozen=True, slots=True, eq=False)
class ArmFit:
    """Estimates of k arm means with everything that tests and tables need.

    Shapes: estimate, pulls, successes, ess, min_propensity, above, freedom (k,), covariance (k, k).

    `above` is the estimates less an origin common to the arms, of which differences lose no digits; `freedom`
    holds degrees of freedom where they are other than the pulls less one.
    """

    choice: Choice
    labels: tuple[str, ...]
    estimate: FloatArray
    covariance: FloatArray
    pulls: FloatArray
    successes: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    naive: bool = False
    sample: SampleMeans | None = None
    outcome: Outcome | None = None
    arm_error: str | None = None
    above: FloatArray | None = None
    freedom: FloatArray | None = None
    stationary: bool = False

    @property
    def degrees(self) -> FloatArray:
        """Degrees of freedom of t-tests, shape (k,)."""
        return self.pulls - 1.0 if self.freedom is None else self.freedom

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
        value = self.estimate if self.above is None else self.above
        return float(value[first] - value[second]), size, float(self.degrees[pair].min())


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Difference of two arms, and what its table shows."""

    choice: Choice
    estimate: float
    std_error: float
    reference: Reference
    details: Mapping[str, FloatArray]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    validity: Validity = "asymptotic"
    correction: Correction | None = None
    efficiency_note: str = ""
    scores: Mapping[str, FloatArray] | None = None
    private: bool = False


def arm_labels(question: Question) -> tuple[str, ...]:
    """Names of the arms in texts."""
    return tuple(str(question.profile.log.arms[code]) for code in question.codes)


def reward_sums(question: Question) -> FloatArray:
    """Sums of the arms' rewards, shape (k,)."""
    log = question.profile.log
    sums = np.bincount(log.arrays.action, weights=log.arrays.reward, minlength=log.n_arms)
    return np.asarray(sums[question.codes], dtype=np.float64)


def without_propensities(estimator: str, question: Question, asked: Asked | None = None) -> Choice:
    """Refuse an estimator that uses no propensities where contexts may have assigned the arms."""
    if question.profile.context_refusal:
        raise Refused(estimator, question.profile.context_refusal)
    return Choice(estimator)


def residual_rows(question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
    """What each round contributes to the error of each arm's estimate, shape (T, k)."""
    arrays = question.profile.log.arrays
    residual = indicators(arrays.action, question.codes) * (arrays.reward[:, None] - fit.estimate)
    # The rows of an arm are scaled to its standard error, whichever of the possible ones it has.
    size = np.sqrt(np.einsum("tk,tk->k", residual, residual))
    return {"influence": residual * (fit.std_error / np.where(size > 0.0, size, np.nan))}


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
    warnings.warn(f"{subject}: {found}; {consequence}.", AdaptinfWarning, stacklevel=3)


def check_options(asked: Asked, null: object, keep_scores: Any) -> None:
    """Refuse what is of the wrong kind, an unknown test or kind of standard error, or no finite null."""
    texts = {"estimator": asked.estimator, "weights": asked.weights}
    problems = text_problems(**texts, test=asked.test, arm_error=asked.arm_error, named=asked.named)
    problems += FLAG("keep_scores", keep_scores) + FLAG("stationary", asked.stationary)
    refuse(asked.subject, problems)
    if asked.arm_error not in ARM_ERRORS:
        problems.append(f"arm_error must be one of {', '.join(ARM_ERRORS)}, got {asked.arm_error!r}")
    if asked.named not in NAMED:
        problems.append(f"named must be one of {', '.join(NAMED)}, got {asked.named!r}")
    if asked.named == "after" and asked.estimator != "released":
        problems.append("named='after' belongs to released: adjust p-values of other estimators by adjust=")
    if asked.test not in TESTS:
        problems.append(f"test must be one of {', '.join(TESTS)}, got {asked.test!r}")
    problems += CHOSEN_FROM("chosen_from", asked.chosen_from)
    check_null(asked.subject, null, problems)


def check_null(subject: str, null: object, problems: list[str]) -> None:
    """Refuse a null that is no finite number, and what else is wrong."""
    if isinstance(null, bool) or not isinstance(null, Real) or not math.isfinite(float(null)):
        problems.append(f"null must be a finite number, got {null!r}")
    refuse(subject, problems)


def holds_always(question: Question, test: str, correction: Correction | None) -> bool:
    """Of a method that does not run where it is not valid."""
    return True


def normal_test(question: Question, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """Test of an estimator whose law is normal unless t is asked for."""
    if test == "exact":
        raise InvalidForLog("exact binomial tests", "they are of sample means", ["test='t'", "test='normal'"])
    return "normal" if test == "auto" else test


def student_test(question: Question, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """Test of an estimator that is compared with t, unless the normal law is asked for."""
    return "t" if test == "auto" else normal_test(question, fit, test, corrected=corrected)


def no_cautions(question: Question, fit: ArmFit) -> list[str]:
    """Of a method whose label says it all."""
    return []


def no_notes(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> list[str]:
    """Of a method whose fit carries its own notes."""
    return []


def mean_reference(fit: ArmFit, kind: str) -> Reference:
    """Distribution of the means."""
    if kind in ("exact", "few"):
        return BinomialReference(fit.successes, fit.pulls)
    if kind == "t":
        return StudentReference(fit.estimate, fit.std_error, fit.degrees)
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


def gaps(fit: ArmFit, test: str) -> list[str]:
    """Notes on arms without an estimate, a standard error or a test."""
    notes = [
        f"{arm}: never chosen, so nothing is estimated."
        for arm, n in zip(fit.labels, fit.pulls, strict=True)
        if n == 0
    ]
    if test in ("exact", "few"):
        return notes
    for arm, n, mean, size in zip(fit.labels, fit.pulls, fit.estimate, fit.std_error, strict=True):
        if n > 0 and math.isnan(mean):
            notes.append(f"{arm}: no round has a weight (the first one has none), so nothing is estimated.")
            continue
        if n == 1 and math.isnan(size):
            notes.append(f"{arm}: chosen once, so it has no standard error.")
        elif n > 1 and math.isnan(size):
            notes.append(f"{arm}: only one of its rewards has a weight, so it has no standard error.")
        if size == 0.0:
            notes.append(
                f"{arm}: its rewards do not vary: no test or interval, of differences from it neither (exact "
                "ones need sample means)."
            )
    return notes


def exact_test_note(question: Question) -> list[str]:
    """The exact test of a short two-arm trial with rewards 0 and 1, with its call; none for other logs."""
    profile, log = question.profile, question.profile.log
    short = log.n_arms == 2 and log.n_rounds <= _SHORT and not log.context
    if not (short and profile.binary and profile.adaptive):
        return []
    known = log.design is not None and log.design.traits is not None
    call = "exact_test(log)" if known else "exact_test(log, design), with the design that gathered the log,"
    return [f"Two arms, rewards 0 and 1: audit.{call} tests exactly whether the arms are equal."]


def arm_bounds(log: AdaptiveLog, codes: IntArray, *, shares: bool = False) -> FloatArray:
    """Least variances of estimates of arm means, without use of contexts.

    Shapes: codes (k,); returns (k,).

    Of T rounds whose arms are drawn with probabilities e(x), the efficient influence function of the mean of
    one arm is 1{W = w} / e(x) (Y - mu(x)) + mu(x) - mu, so that no regular estimate has a variance below
    E[sigma(x)^2 / e(x) + (mu(x) - mu)^2] / T. Without contexts that is sigma^2 / (e T). Two arms are never
    chosen in one round, and so the bound of a contrast is the sum of its arms' bounds; with contexts it is
    E[sigma1(x)^2 / e1(x) + sigma0(x)^2 / e0(x) + (tau(x) - tau)^2] / T. A good model of contexts can go below
    the bound without them.
    """
    arrays = log.arrays
    found = sample_means(arrays.action, arrays.reward, log.n_arms)
    counts = found.count[codes]
    spread = found.std_error[codes] ** 2 * counts
    rounds = counts
    if arrays.propensities is not None and not shares:
        rounds = np.einsum("tk->k", arrays.propensities)[codes]  # three times as quick as sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(spread / rounds, dtype=np.float64)


def over_bound(variance: FloatArray, bound: FloatArray) -> FloatArray:
    """Variances over their bounds; NaN where there is none."""
    ratio = np.full(np.shape(variance), np.nan)
    np.divide(variance, bound, out=ratio, where=np.isfinite(bound) & (bound > 0.0))
    return ratio


@np.errstate(under="ignore")
def fit_efficiency(
    question: Question, bound: str, std_error: FloatArray
) -> tuple[Mapping[str, FloatArray], str]:
    """The ratio for a table of diagnostics and its note; none where errors ignore adaptivity.

    Shapes: std_error (k,) or (1,).
    """
    if not bound:
        return {}, ""
    bounds = arm_bounds(question.profile.log, question.codes, shares=bound == "shares")
    whole = bounds if len(std_error) == len(bounds) else bounds.sum(keepdims=True)
    ratios = over_bound(std_error**2, whole)
    return {"efficiency": ratios}, _efficiency_note(ratios, bound)


def _efficiency_note(ratios: FloatArray, bound: str) -> str:
    """One sentence for a footer; empty where no ratio is known; ratios (k,)."""
    known = ratios[np.isfinite(ratios)]
    if len(known) == 0:
        return ""
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    many = f"variances are {low} to {high}" if low != high else f"the variance is {low}"
    where = "the arms' shares of the rounds" if bound == "shares" else "the average propensities"
    return f"Efficiency: {many} times the least possible at {where}, without use of contexts."


def tested(
    question: Question, method: ArmMethod, fit: ArmFit, asked: Asked
) -> tuple[str, Correction | None, tuple[str, ...]]:
    """The kind of test, the correction that is due, and what is to be said under the table."""
    correction = question.profile.correction_chosen_from(asked.chosen_from) if fit.naive else None
    if asked.chosen_from != "actions" and correction is None:
        reason = question.profile.no_correction if fit.naive else f"{fit.choice.estimator} has none"
        raise InvalidForLog(
            f"chosen_from={asked.chosen_from!r}",
            f"it belongs to corrected columns, and {reason}",
            ["estimator='sample-mean', for a log with a pure reward-level guarantee"],
        )
    kind = method.resolve_test(question, fit, asked.test, corrected=correction is not None)
    notes = method.notes(question, fit, kind, correction)
    if fit.choice.reason:
        notes.append(f"Chosen as the first of recommend(log): {fit.choice.reason}.")
    return kind, correction, (*notes, *gaps(fit, kind), *exact_test_note(question))


def validity(
    question: Question, method: ArmMethod, kind: str, correction: Correction | None, reference: Reference
) -> Validity:
    """What the uncorrected numbers are worth."""
    if not method.holds(question, kind, correction):
        return "not valid"
    return "exact" if reference.exact else "asymptotic"


def difference(
    question: Question, method: ArmMethod, fit: ArmFit, asked: Asked, keep_scores: bool
) -> Difference:
    """The first arm's mean minus the second's."""
    kind, correction, notes = tested(question, method, fit, asked)
    difference, std_error, df = fit.difference(0, 1)
    rows = method.rows(question, fit) if keep_scores else None
    if rows is not None:
        rows = {**rows, "influence": rows["influence"][:, :1] - rows["influence"][:, 1:]}
    reference = difference_reference(fit, kind, difference, std_error, df)
    efficiency, lost = fit_efficiency(question, method.bound, np.array([std_error]))
    details = {
        "pulls_treatment": fit.pulls[:1],
        "pulls_control": fit.pulls[1:],
        "ess": fit.ess.min(keepdims=True),
        "min_propensity": fit.min_propensity.min(keepdims=True),
        **efficiency,
    }
    return Difference(
        choice=fit.choice,
        estimate=difference,
        std_error=std_error,
        reference=reference,
        details=details,
        notes=notes,
        cautions=tuple(method.cautions(question, fit)),
        validity=validity(question, method, kind, correction, reference),
        correction=correction,
        efficiency_note=lost,
        scores=rows,
    )
