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
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import sentence, under_table
from adaptinf.claims.arms import arm_fits
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.inference.arms.data import arm_laws
from adaptinf.inference.arms.data.arms_of_sums import refuse_rows, sample_means_of
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.arms.question import Asked, Choice, Question, Refused
from adaptinf.inference.corrections.information import CHOSEN_FROM
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.inputs.arguments import text_problems
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import SampleMeans, sample_means, welch
from adaptinf.inference.validity.profile import TINY_PROPENSITY, LogProfile
from adaptinf.inference.validity.rare import CAUTIOUS, SKEWED
from adaptinf.parameters import FLAG, refuse
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray, Validity

if TYPE_CHECKING:
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.scores.means import UnitErrors
    from adaptinf.inference.scores.outcome_predictions import Outcome

TESTS = ("auto", "normal", "t", "hall", "exact")
NAMED = ("before", "after")
ARM_ERRORS = ("self-normalised", "conservative")
"""Standard errors of ALEE: sigma sqrt(sum w^2) / sum w, or sigma / sum w."""


@dataclass(frozen=True, eq=False)
class ArmFit:
    """Estimates of k arm means with everything that tests and tables need.

    Shapes: estimate, pulls, successes, ess, min_propensity, above, freedom, skewness, unevenness (k,),
    covariance (k, k).

    `above` is the estimates less an origin common to the arms, of which differences lose no digits; `freedom`
    holds degrees of freedom where they are other than the pulls less one. `movement` is the p-value of slopes
    in time of contrasts of arms that share their weights. Ratios have contributions of rounds
    in `kept`, where scores tell, notes in `told` and cautions in `warned`.
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
    values: tuple[float, float] = (0.0, 1.0)
    above: FloatArray | None = None
    freedom: FloatArray | None = None
    stationary: bool = False
    skewness: FloatArray | None = None
    unevenness: FloatArray | None = None
    movement: float = 1.0
    by_unit: UnitErrors | None = None
    kept: Mapping[str, FloatArray] | None = None
    told: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()

    @property
    def degrees(self) -> FloatArray:
        """Degrees of freedom of t-tests, shape (k,)."""
        return self.pulls - 1.0 if self.freedom is None else self.freedom

    @property
    def evenness_lost(self) -> FloatArray:
        """What the squared skewness of rewards is multiplied by in that of an estimate, shape (k,)."""
        return 1.0 / np.maximum(self.ess, 1.0) if self.unevenness is None else self.unevenness

    @cached_property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(self.covariance.diagonal()), dtype=np.float64)

    def bound(self, method: ArmMethod) -> str:
        """What its least possible variance rests on; empty where errors are by unit, of which it is none."""
        return method.bound if self.by_unit is None else ""

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
class Shown:
    """Which test a fit takes, the correction that is due, and what stands under its table."""

    kind: str
    correction: Correction | None
    notes: tuple[str, ...]
    cautions: tuple[str, ...]


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
    by_unit: bool = False


def arm_labels(question: Question) -> tuple[str, ...]:
    """Names of the arms in texts."""
    return tuple(str(question.profile.log.arms[code]) for code in question.codes)


def without_propensities(estimator: str, question: Question, asked: Asked | None = None) -> Choice:
    """Refuse an estimator that uses no propensities where contexts may have assigned the arms."""
    if question.profile.context_refusal:
        raise Refused(estimator, question.profile.context_refusal)
    return Choice(estimator)


def independent_rounds(estimator: str, question: Question, asked: Asked | None = None) -> Choice:
    """Refuse, too, an estimator that takes rounds to be independent where units come back."""
    if question.profile.unit_refusal:
        raise Refused(estimator, question.profile.unit_refusal)
    return without_propensities(estimator, question, asked)


def residual_rows(question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
    """What each round contributes to the error of each arm's estimate, shape (T, k)."""
    if question.profile.sums is not None:
        refuse_rows()
    arrays = question.profile.log.arrays
    residual = indicators(arrays.action, question.codes) * (arrays.reward[:, None] - fit.estimate)
    # The rows of an arm are scaled to its standard error, whichever of the possible ones it has.
    size = np.sqrt(np.einsum("tk,tk->k", residual, residual))
    return {"influence": residual * (fit.std_error / np.where(size > 0.0, size, np.nan))}


def warn_of_tiny_propensities(subject: str, fit: ArmFit) -> None:
    """Warn where an estimate divides by propensities below `TINY_PROPENSITY`."""
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
    """Refuse what is of the wrong kind, an unknown test or kind of standard error, or no finite null."""
    texts = {"estimator": asked.estimator, "weights": asked.weights}
    problems = text_problems(**texts, test=asked.test, arm_error=asked.arm_error, named=asked.named)
    problems += FLAG("keep_scores", keep_scores) + FLAG("stationary", asked.stationary)
    refuse(asked.subject, problems)
    if asked.arm_error not in ARM_ERRORS:
        problems.append(unlisted("arm_error", ARM_ERRORS, asked.arm_error))
    if asked.named not in NAMED:
        problems.append(unlisted("named", NAMED, asked.named))
    if asked.named == "after" and asked.estimator != "released":
        problems.append("named='after' belongs to released: adjust p-values of other estimators by adjust=")
    if asked.test not in TESTS:
        problems.append(unlisted("test", TESTS, asked.test))
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
    if test == "hall":
        raise InvalidForLog("Hall's interval", "it is of means of scores and sample means", ["test='t'"])
    if test == "exact":
        raise InvalidForLog("exact binomial tests", "they are of sample means", ["test='t'", "test='normal'"])
    return "normal" if test == "auto" else test


def student_test(question: Question, fit: ArmFit, test: str, *, corrected: bool) -> str:
    """Test of an estimator that is compared with t, or Hall's law where its rewards are skewed."""
    if test == "auto":
        return "hall" if is_skewed(question, fit) else "t"
    return test if test == "hall" else normal_test(question, fit, test, corrected=corrected)


def is_skewed(question: Question, fit: ArmFit) -> bool:
    """Whether the pooled skewness of rewards, by independent rounds, calls for corrected intervals."""
    rewards = question.profile.of_arms(question.codes) if question.contrast else question.profile
    skewed = (rewards.squared_skewness * fit.evenness_lost > SKEWED).any()
    return bool(skewed) and not question.profile.repeated_units


def _remarkable(question: Question, fit: ArmFit) -> bool:
    """Whether outcomes are rare, or rewards skewed, so that something is to be said of them."""
    uncommon = question.profile.uncommon[question.codes]
    if (uncommon < CAUTIOUS).any() or is_skewed(question, fit):
        return True
    worth = uncommon * np.maximum(fit.ess / np.maximum(fit.pulls, 1.0), 1e-9)
    return bool((worth < FEW_EVENTS).any())


def fit_facts(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> ArmFacts:
    """What claims ask of a method that has no facts of its own."""
    return ArmFacts(question, fit, test)


def mean_reference(question: Question, fit: ArmFit, kind: str) -> Reference:
    """Distribution of the means."""
    if kind in ("t", "normal"):
        found = (fit.estimate, fit.std_error)
        return StudentReference(*found, fit.degrees) if kind == "t" else NormalReference(*found)
    return arm_laws.mean_reference(question, fit, kind)


def arm_samples(profile: LogProfile) -> SampleMeans:
    """Plain means of all arms."""
    if profile.sums is not None:
        return sample_means_of(profile.sums.cells)
    arrays = profile.log.arrays
    return sample_means(arrays.action, arrays.reward, profile.log.n_arms, profile.pulls)


def arm_bounds(profile: LogProfile, codes: IntArray, *, shares: bool = False) -> FloatArray:
    """Least variances of estimates of arm means, without use of contexts.

    Shapes: codes (k,); returns (k,).

    Of T rounds whose arms are drawn with probabilities e(x), the efficient influence function of the mean of
    one arm is 1{W = w} / e(x) (Y - mu(x)) + mu(x) - mu, so that no regular estimate has a variance below
    E[sigma(x)^2 / e(x) + (mu(x) - mu)^2] / T. Without contexts that is sigma^2 / (e T). Two arms are never
    chosen in one round, and so the bound of a contrast is the sum of its arms' bounds; with contexts it is
    E[sigma1(x)^2 / e1(x) + sigma0(x)^2 / e0(x) + (tau(x) - tau)^2] / T. A good model of contexts can go below
    the bound without them.
    """
    found = arm_samples(profile)
    counts = found.count[codes]
    spread = found.std_error[codes] ** 2 * counts
    expected = None if shares else profile.expected_pulls
    rounds = counts if expected is None else expected[codes]
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
    if not bound or question.profile.incomplete:
        return {}, ""
    bounds = arm_bounds(question.profile, question.codes, shares=bound == "shares")
    whole = bounds if len(std_error) == len(bounds) else bounds.sum(keepdims=True)
    ratios = over_bound(std_error**2, whole)
    return {"efficiency": ratios}, _efficiency_note(ratios, bound)


def _efficiency_note(ratios: FloatArray, bound: str) -> str:
    """One sentence for a footer; empty where no ratio is known; ratios (k,)."""
    known = ratios[np.isfinite(ratios)]
    if len(known) == 0:
        return ""
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    many = f"variances range from {low} to {high}" if low != high else f"the variance is {low}"
    where = arm_fits.AT_SHARES() if bound == "shares" else "the average propensities"
    return arm_fits.EFFICIENCY(variances=many, where=where)


def tested(question: Question, method: ArmMethod, fit: ArmFit, asked: Asked) -> tuple[ArmFit, Shown]:
    """The fit that tests rest on, and the kind of test with what is to be said of it."""
    correction = question.profile.correction_chosen_from(asked.chosen_from) if fit.naive else None
    if asked.chosen_from != "actions" and correction is None:
        reason = question.profile.no_correction if fit.naive else f"{fit.choice.estimator} has none"
        raise InvalidForLog(
            f"chosen_from={asked.chosen_from!r}",
            f"it belongs to corrected columns, and {reason}",
            ["estimator='sample-mean', for a log with a pure reward-level guarantee"],
        )
    kind = method.resolve_test(question, fit, asked.test, corrected=correction is not None)
    told, warned = under_table(method.claims, method.facts(question, fit, kind, correction))
    notes = [*fit.told, *told]
    unvarying = arm_laws.unvarying(question, fit, kind) if (fit.std_error == 0.0).any() else []
    cautions = [*fit.warned, *warned, *unvarying]
    if kind not in ("exact", "few") and (kind == "hall" or _remarkable(question, fit)):
        notes += arm_laws.shape_notes(question, fit, kind)
        cautions += arm_laws.shape_cautions(question, fit, kind)
        fit = arm_laws.without_rare(question, fit)
    return fit, Shown(kind, correction, tuple(notes), tuple(cautions))


def validity(
    question: Question, method: ArmMethod, kind: str, correction: Correction | None, reference: Reference
) -> Validity:
    """How valid the uncorrected numbers are."""
    if not method.holds(question, kind, correction):
        return "not valid"
    return "exact" if reference.exact else "asymptotic"


def difference(
    question: Question, method: ArmMethod, fit: ArmFit, asked: Asked, keep_scores: bool
) -> Difference:
    """The first arm's mean minus the second's."""
    fit, shown = tested(question, method, fit, asked)
    kind, correction = shown.kind, shown.correction
    difference, std_error, df = fit.difference(0, 1)
    rows = method.contributions(question, fit) if keep_scores else None
    if rows is not None:
        own = {name: part for name, part in rows.items() if name.startswith("influence")}
        rows = {**rows, **{name: part[:, :1] - part[:, 1:] for name, part in own.items()}}
    reference = difference_reference(question, fit, kind, np.array([difference, std_error, df]))
    efficiency, lost = fit_efficiency(question, fit.bound(method), np.array([std_error]))
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
        notes=shown.notes,
        cautions=shown.cautions,
        validity=validity(question, method, kind, correction, reference),
        correction=correction,
        efficiency_note=lost,
        scores=rows,
        by_unit=fit.by_unit is not None,
    )


def difference_reference(question: Question, fit: ArmFit, kind: str, found: FloatArray) -> Reference:
    """Distribution of a difference; found (3,), the difference, its standard error and degrees of freedom."""
    if kind in ("t", "normal"):
        return StudentReference(*found[:, None]) if kind == "t" else NormalReference(*found[:2, None])
    return arm_laws.difference_reference(question, fit, kind, found[0], found[2])
