"""The choice of a method that a log supports: names, defaults, and refusals that state valid alternatives.

The choice uses actions, propensities and contexts. Of the rewards, it uses only whether all are 0 or 1,
because intervals would be invalid if the method were chosen by its estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import rare_outcomes, sentence, under_table
from adaptinf.claims.arms import arm_fits
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.alee import ALEE
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.arms.batched import BATCHED
from adaptinf.inference.arms.data import arm_laws
from adaptinf.inference.arms.data.arms_of_releases import RELEASED
from adaptinf.inference.arms.data.data_facts import at_one_end
from adaptinf.inference.arms.facts.weighted_facts import COMMON
from adaptinf.inference.arms.fit import fit_efficiency, is_skewed
from adaptinf.inference.arms.question import ArmFit, Asked, Choice, Difference, Question, Refused, Shown
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.arms.sample_mean import SAMPLE_MEAN
from adaptinf.inference.arms.weighted import AIPW, IPW, WEIGHTS
from adaptinf.inference.distributions.event_sums import EventSumReference
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.inputs.arguments import labels
from adaptinf.inference.scores.joint_levels import JOINT
from adaptinf.inference.validity.methods import Verdict, verdicts
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.inference.validity.rare import CAUTIOUS, FEWEST
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.texts import absent, listed, several, unlisted
from adaptinf.typing import BoolArray, FloatArray, IntArray, Validity

if TYPE_CHECKING:
    from adaptinf.inference.arms.data.ratio_metrics import Denominator
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.results.fit_results import Results


METHODS = (
    SAMPLE_MEAN,
    IPW,
    AIPW,
    ALEE,
    BATCHED,
    RELEASED,
)


_NAMED = {method.name: method for method in METHODS}
CONTRAST_ESTIMATORS = tuple(_NAMED)
ESTIMATORS = tuple(method.name for method in METHODS if not method.contrast_only)


def arm_codes(subject: str, log: AdaptiveLog, arms: Sequence[Any] | None) -> IntArray:
    """The codes of the given arms, or of all arms by default; shape (k,)."""
    if arms is None:
        return np.arange(log.n_arms)
    named, problems = labels("arms", arms)
    refuse(subject, problems)
    problems = [absent("arm", arm, log.arms, "the log has") for arm in named if arm not in log.arms]
    if len(set(named)) < len(named):
        problems.append(f"an arm is named more than once: {', '.join(map(repr, named))}")
    if not named:
        problems.append(f"name at least one arm; the log has {listed(log.arms)}")
    refuse(subject, problems)
    return np.array([log.arms.index(arm) for arm in named], dtype=np.int64)


def arm_method(name: str) -> ArmMethod:
    """The method with this name."""
    return _NAMED[name]


def arm_verdicts(question: Question) -> list[Verdict]:
    """Verdicts on every method for arm means or a contrast, valid methods first; computed only once."""
    return question.profile.worked_out((METHODS, *question.asked), lambda: _worked_out(question))


def _worked_out(question: Question) -> list[Verdict]:
    """The verdicts of `arm_verdicts`, without the cache."""
    methods = [one for one in METHODS if question.contrast or not one.contrast_only]
    if reason := question.profile.rows_refusal:
        return _from_some(methods, [one for one in methods if one.takes_sums], question, reason)
    log = question.profile.log
    if not question.profile.incomplete:
        return _rated(verdicts(methods, question), question)
    # The model is fitted with missing rewards at the lowest and at the highest value, so verdicts are those
    # on a completed log.
    if log.missing != "drop" and log.reward_range is not None:
        filled = replace(question, profile=profile_of(at_one_end(log, log.reward_range[0])))
        return _rated(verdicts(methods, filled), filled)
    return _from_some(methods, [one for one in methods if one.takes_gaps], question, arm_fits.INCOMPLETE())


def _from_some(
    methods: Sequence[ArmMethod], able: Sequence[ArmMethod], question: Question, reason: str
) -> list[Verdict]:
    """Verdicts on the methods that are able to use the log, followed by refusals of all others."""
    others = [one.name for one in methods if one not in able]
    refused = [Verdict(name, "not valid", ORDER["of no use"], {"estimator": name}, reason) for name in others]
    return [*_rated(verdicts(able, question), question), *refused]


_SHOWN = 8


def rare_arms(question: Question) -> int:
    """Number of arms with too few uncommon outcomes for the usual interval."""
    profile, codes = question.profile, question.codes
    return int(np.count_nonzero((profile.uncommon[codes] < FEWEST) & (profile.pulls[codes] > 0.0)))


def rare_labels(question: Question) -> str:
    """The arms with too few uncommon outcomes for the usual interval, and the numbers of these outcomes."""
    profile, uncommon = question.profile, question.profile.uncommon
    rare = [code for code in question.codes.tolist() if uncommon[code] < FEWEST and profile.pulls[code] > 0]
    return several([f"{profile.log.arms[code]} ({uncommon[code]:g})" for code in rare], _SHOWN)


def _rated(found: list[Verdict], question: Question) -> list[Verdict]:
    """The verdicts in order; valid methods that give intervals for more arms come first."""
    rare = rare_arms(question)
    if rare == 0:
        return found
    methods = [_NAMED[one.arguments["estimator"]] for one in found]
    answers = [one.valid and own.of_counts(question, one) for one, own in zip(found, methods, strict=True)]
    # Weighted counts are approximate, so a method whose intervals are exact comes before them.
    exact = any(answer and own.events is None for answer, own in zip(answers, methods, strict=True))
    told = rare_outcomes.UNANSWERED(arms=rare_labels(question), fewest=FEWEST)
    rated = []
    for one, own, answer in zip(found, methods, answers, strict=True):
        if not answer:
            one = replace(one, unanswered=rare, warning=sentence([told, one.warning]))
        elif exact and own.events is not None:
            one = replace(one, unanswered=rare)
        rated.append(one)
    return sorted(rated, key=lambda verdict: verdict.order)


def valid_alternatives(
    log: AdaptiveLog, codes: IntArray | None = None, most: int = 3, *, contrast: bool = False
) -> list[str]:
    """Names of the methods that an error suggests: the valid methods in order, and the baselines.

    The codes of the arms have shape (k,); by default, all arms are considered.
    """
    profile = profile_of(log)
    question = Question(profile, np.arange(log.n_arms) if codes is None else codes, contrast)
    named = [one.name for one in arm_verdicts(question) if one.valid and one.offered][:most]
    if profile.context_refusal:
        return [*named, profile.in_place_of_means]
    if not named:
        named += _by_unit(profile)
    spoilt = arm_fits.WITH_UNITS() if profile.repeated_units else "under adaptivity"
    dependent = (profile.adaptive or profile.repeated_units) and not profile.incomplete
    baselines = [one.name for one in METHODS if one.baseline and one.name not in named and dependent]
    return [*named, *(arm_fits.BASELINE(name=name, where=spoilt) for name in baselines)]


def refusal(question: Question, refused: Refused) -> InvalidForLog:
    """The error for a method that is not valid, which states valid alternatives."""
    valid = valid_alternatives(question.profile.log, question.codes, contrast=question.contrast)
    ways = dict.fromkeys([*refused.first, *valid, *refused.last])
    return InvalidForLog(refused.method, refused.reason, list(ways))


def _by_unit(profile: LogProfile) -> tuple[str, ...]:
    """Alternatives that allow for units with several rounds, for use if no method is valid."""
    if not profile.repeated_units:
        return ()
    regression = () if profile.adaptive else (arm_fits.CLUSTERED(),)
    return (arm_fits.AIPW_BY_UNIT(), *regression)


def default_estimator(log: AdaptiveLog, arms: Sequence[Any] | None = None) -> Choice:
    """Default estimator of `ArmMeans`; that of `Contrast` may differ, for example ``"batched"``."""
    codes = arm_codes("default_estimator", log, arms)
    return _settled(Question(profile_of(log), codes), Asked("default_estimator"))


def choose(
    subject: str,
    log: AdaptiveLog,
    codes: IntArray,
    estimator: str | None,
    weights: str | None,
    decay: float | None,
    *,
    stationary: bool = False,
) -> Choice:
    """Complete the user's request with defaults, and check it; codes has shape (k,)."""
    question = Question(profile_of(log), codes, stationary=stationary)
    return _settled(question, Asked(subject, estimator, weights, decay, stationary=stationary))


def fit_arms(log: AdaptiveLog, codes: IntArray, choice: Choice) -> ArmFit:
    """Estimate the means of the given arms by the chosen method; codes has shape (k,)."""
    asked = Asked("fit_arms", choice.estimator, choice.weights, choice.decay)
    with np.errstate(under="ignore"):
        fit: ArmFit = _NAMED[choice.estimator].fit(Question(profile_of(log), codes), choice, asked)
    return fit


def fit_method(question: Question, asked: Asked) -> tuple[ArmMethod, Any]:
    """The requested or default method, and its fit: an `ArmFit` or a `Difference`."""
    choice = _settled(question, asked)
    method = _NAMED[choice.estimator]
    try:
        with np.errstate(under="ignore"):
            return method, method.fit(question, choice, asked)
    except Refused as refused:
        raise refusal(question, refused) from None


def denominator_of(subject: str, log: AdaptiveLog, given: Any, keep: BoolArray | None) -> Denominator | None:
    """The denominator of a ratio metric in the rounds that are kept, or None; keep has shape (T,)."""
    if given is None:
        return None
    from adaptinf.inference.arms.data.ratio_metrics import read_denominator

    return read_denominator(subject, log, given, keep)


def name_of(below: Denominator | None) -> str | None:
    """The name of a ratio metric's denominator; None if there is no denominator."""
    return None if below is None else below.name


def as_ratios(
    question: Question, method: ArmMethod, fit: ArmFit, asked: Asked, below: Denominator
) -> tuple[Question, ArmFit]:
    """The fit converted to ratios of mean rewards to mean denominators, and the question that it answers."""
    from adaptinf.inference.arms.data.ratio_metrics import ratio_fit

    with np.errstate(under="ignore"):
        return ratio_fit(question, method, fit, asked, below)


def by_deviation(model: Any, profile: LogProfile, arguments: Mapping[str, Any]) -> Results | None:
    """Results with covariates, with bounds for missing rewards, or for received arms; otherwise None.

    `arguments` contains the arguments of `fit`.
    """
    if arguments["covariate"] is not None:
        from adaptinf.inference.arms.data.covariate_adjustment import adjusted

        return adjusted(model, arguments)
    bounds = profile.incomplete and model.log.missing != "drop"
    received = arguments.get("estimand", "assigned") != "assigned"
    if received and profile.rows_refusal:
        raise InvalidForLog("estimand='received'", profile.rows_refusal, ["an AdaptiveLog of the rows"])
    if not bounds and not received:
        return None
    from adaptinf.inference.arms.data.incomplete_rewards import at_both_ends
    from adaptinf.inference.arms.data.noncompliance import received_effect

    return received_effect(model, arguments) if received else at_both_ends(model, arguments)


def _settled(question: Question, asked: Asked) -> Choice:
    """Complete the request with defaults, and check it."""
    given = [name for name in ("weights", "decay", "outcome", "ridge") if getattr(asked, name) is not None]
    estimator = asked.estimator
    if estimator is None:
        ways = (*given, asked.test)
        estimator = next((one.name for way in ways for one in METHODS if way in one.implied_by), None)
    if problems := _problems(question, asked, estimator, given):
        raise ParameterError(asked.subject, problems)
    try:
        if estimator is None:
            return _default(question, asked)
        if question.profile.incomplete and not _NAMED[estimator].takes_gaps:
            raise Refused(estimator, arm_fits.INCOMPLETE())
        if question.profile.rows_refusal and not _NAMED[estimator].takes_sums:
            raise Refused(estimator, question.profile.rows_refusal)
        return _NAMED[estimator].settle(question, asked)
    except Refused as refused:
        raise refusal(question, refused) from None


def _default(question: Question, asked: Asked) -> Choice:
    """The options of the first verdict, which must be valid."""
    first = arm_verdicts(question)[0]
    if first.label == "not valid":
        profile = question.profile
        units = "" if profile.incomplete else profile.unit_refusal
        reason = profile.context_refusal or profile.contradicted_draws or units or first.reason
        raise Refused("an estimator of arm means", reason)
    choice = _NAMED[first.arguments["estimator"]].settle(question, replace(asked, **first.arguments))
    reason = f"{first.reason}. Caution: {first.warning}" if first.warning else first.reason
    return replace(choice, reason=reason)


def _problems(question: Question, asked: Asked, estimator: str | None, given: list[str]) -> list[str]:
    """Problems in the request: unknown names, and options that belong to another method."""
    method = None if estimator is None else _NAMED.get(estimator)
    if method is not None and method.contrast_only and question.contrast:
        return []  # This method checks its own options.
    modelled = [one.name for one in METHODS if "outcome" in one.options]
    if estimator is not None and estimator not in modelled and {"outcome", "ridge"} & set(given):
        return [f"outcome and ridge apply to {' or '.join(modelled)}, not to {estimator}"]
    problems = []
    if method is not None and method.contrast_only:
        problems.append(f"estimator {estimator!r} is for contrasts: use Contrast(log, treatment=, control=)")
    elif method is None and estimator is not None:
        problems.append(unlisted("estimator", ESTIMATORS, estimator))
    if asked.weights is not None and asked.weights not in WEIGHTS:
        problems.append(unlisted("weights", WEIGHTS, asked.weights))
    if asked.weights == JOINT and question.contrast:
        problems.append(f"{JOINT} weights apply to the means of several arms: for a pair, use {COMMON!r}")
    if method is not None and method.no_weights and {"weights", "decay"} & set(given):
        weighted = " or ".join(one.name for one in METHODS if "weights" in one.options)
        problems.append(
            f"weights do not apply to {method.no_weights}: omit weights and decay, or choose {weighted}"
        )
    if asked.decay is not None:
        if asked.weights in (JOINT, "uniform", "sqrt", COMMON):
            problems.append(f"decay applies to two-point weights, not to {asked.weights}")
        problems += decay_problems(asked.decay)
    return problems


def decay_problems(decay: Any) -> list[str]:
    """Problems with the decay of a propensity floor."""
    if isinstance(decay, bool) or not isinstance(decay, Real) or not 0.0 <= float(decay) < 1.0:
        return [
            f"decay must be in [0, 1), got {decay!r:.60}: it is the exponent of the propensity floor, fixed "
            f"before data collection and not fitted to the log"
        ]
    return []


def _remarkable(question: Question, fit: ArmFit) -> bool:
    """Whether outcomes are so rare, or rewards so skewed, that the result must say so."""
    uncommon = question.profile.uncommon[question.codes]
    if (uncommon < CAUTIOUS).any() or is_skewed(question, fit):
        return True
    worth = uncommon * np.maximum(fit.ess / np.maximum(fit.pulls, 1.0), 1e-9)
    return bool((worth < FEW_EVENTS).any())


def tested(question: Question, method: ArmMethod, fit: ArmFit, asked: Asked) -> tuple[ArmFit, Shown]:
    """The fit on which tests are based, and the selected test, with the notes and cautions of the result."""
    correction = question.profile.correction_chosen_from(asked.chosen_from) if fit.naive else None
    if asked.chosen_from != "actions" and correction is None:
        reason = question.profile.no_correction if fit.naive else f"{fit.choice.estimator} has none"
        raise InvalidForLog(
            f"chosen_from={asked.chosen_from!r}",
            f"it applies only to corrected columns, and {reason}",
            ["estimator='sample-mean', for a log with a pure reward-level guarantee"],
        )
    kind = method.resolve_test(question, fit, asked.test, corrected=correction is not None)
    told, warned = under_table(method.claims, method.facts(question, fit, kind, correction))
    notes = [*fit.told, *told]
    remarkable = kind not in ("exact", "few") and (kind == "hall" or _remarkable(question, fit))
    if remarkable and asked.test == "auto" and method.events is not None:
        fit = arm_laws.with_counts(question, fit, method.events)
    unvarying = arm_laws.unvarying(question, fit, kind) if (fit.std_error == 0.0).any() else []
    cautions = [*fit.warned, *warned, *unvarying]
    if remarkable:
        notes += arm_laws.shape_notes(question, fit, kind)
        cautions += arm_laws.shape_cautions(question, fit, kind)
        fit = arm_laws.without_rare(question, fit)
    return fit, Shown(kind, correction, tuple(notes), tuple(cautions))


def bound_of(method: ArmMethod, fit: ArmFit) -> str:
    """The basis of the smallest possible variance; empty if errors are clustered by unit."""
    return method.bound if fit.by_unit is None else ""


def validity(
    question: Question, method: ArmMethod, kind: str, correction: Correction | None, reference: Reference
) -> Validity:
    """The validity of the p-values and intervals before any correction."""
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
    efficiency, lost = fit_efficiency(question, bound_of(method, fit), np.array([std_error]))
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
    """Distribution of a difference; found contains the difference, its standard error and its df."""
    if fit.counted is not None:
        return EventSumReference(found[:1], fit.counted.sums)
    if kind in ("t", "normal"):
        return StudentReference(*found[:, None]) if kind == "t" else NormalReference(*found[:2, None])
    return arm_laws.difference_reference(question, fit, kind, found[0], found[2])
