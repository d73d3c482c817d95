"""AIPW and IPW: inverse-weighted scores of a log's arms, and the estimates from them.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.arms.fit import ArmFit, arm_labels
from adaptinf.inference.arms.lengths import weighted_length
from adaptinf.inference.arms.question import Asked, Choice, Question, Refused
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.scores.inverse import arm_scores
from adaptinf.inference.scores.means import ScoreMeans, arm_score_means, effective_events, weighted_means
from adaptinf.inference.scores.outcome_models import RUNNING_MEAN, Outcome, outcome_model
from adaptinf.inference.validity.profile import FEW_REWARDS, SMALL, TINY_PROPENSITY
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog

WEIGHTS = ("uniform", "sqrt", "two-point")
_SMALL = 100_000
"""Scores up to which NumPy is quick enough that loading Numba does not pay."""
_KNOWN = "propensities are known"
_UNAUGMENTED = "; without an outcome model, hence with longer intervals than aipw"
_NO_DECAY = "its weights need decay=, which the design does not state"
_EVERY = "they need every arm's propensity at every round, and the log has the chosen arm's alone"
_MIXED = (
    "propensities depend on contexts, and weights made from them count contexts unequally: the estimate "
    "would be of another mix of contexts"
)
_HADAD = (
    "small propensities: in a setting of Hadad et al. with high signal, nominal 95% intervals cover about "
    "90% at 1,000 rounds and 92% at 10,000"
)


def _refusal(question: Question) -> str:
    """Why inverse propensities do not serve; empty where they do."""
    log, codes = question.profile.log, question.codes
    if log.arrays.propensity is None:
        return "it needs propensities, and the log has none (give propensity= or propensities= if known)"
    counts = question.profile.impossible[codes]
    if not np.any(counts):
        return ""
    worst = int(np.argmax(counts))
    return (
        f"arm {log.arms[codes[worst]]!r} has propensity 0 in {int(counts[worst])} of {log.n_rounds} rounds, "
        "where it could not have been chosen: there is nothing to weight"
    )


def _weights_refusal(profile: LogProfile) -> str:
    """Why weights cannot be made from propensities; empty where they can."""
    if not profile.knows_every_propensity:
        return _EVERY
    return _MIXED if profile.decides_by_context else ""


def _assess(estimator: str, first: float, caveat: str, question: Question) -> list[Verdict]:
    """With each kind of weights, ranked from the first."""
    profile, refusal = question.profile, _refusal(question)
    stated = profile.usable_decay if question.decay is None else question.decay
    found = []
    for place, weights in enumerate(("two-point", "sqrt", "uniform")):
        name, rank = f"{estimator} with {weights} weights", first + place
        call: dict[str, Any] = {"estimator": estimator, "weights": weights}
        if weights == "two-point" and stated is not None and profile.usable_decay != stated:
            call["decay"] = stated
        reason = refusal
        if not reason and weights != "uniform":
            undecided = profile.knows_every_propensity and weights == "two-point" and stated is None
            reason = _NO_DECAY if undecided else _weights_refusal(profile)
        if reason:
            found.append(Verdict(name, "not valid", rank, call, reason))
            continue
        why, warning = _reason(question, weights)
        rank += _later(profile, weights)
        assumes = _assumes(profile, weights)
        found.append(Verdict(name, "asymptotic", rank, call, why + caveat, assumes, warning))
    return found


def _reason(question: Question, weights: str) -> tuple[str, str]:
    """Why scores are valid, and the warning."""
    profile = question.profile
    small = profile.adaptive and profile.smallest_propensity[question.codes].min(initial=1.0) < SMALL
    warning = _HADAD if small else ""
    if weights == "two-point":
        return f"{_KNOWN} and their floor's decay is fixed: variances are kept even", warning
    if weights == "sqrt":
        reason = "every arm's propensity is known: the weights keep the variance even while they move"
        return reason, warning
    if not profile.moves:
        return f"{_KNOWN} and do not move with the data", ""
    unsettled = "not normal in general when propensities move with the data; right where they settle"
    if not profile.context_may_move:
        return _KNOWN, unsettled
    return f"{_KNOWN}; uniform weights, because {profile.context_names} may move them", unsettled


def _assumes(profile: LogProfile, weights: str) -> str:
    assumes = "the logged propensities are the design's own, and arm means stay the same"
    assumes += " (they are estimates, whose error is ignored)" * profile.estimated
    return (
        assumes
        if profile.context_free or weights == "uniform"
        else (f"{assumes}; propensities do not depend on contexts")
    )


def _later(profile: LogProfile, weights: str) -> float:
    """What is added to the rank: without contexts, ALEE needs fewer assumptions and hopes."""
    comparable = not profile.log.context and not profile.context_refusal
    # Estimated propensities are one more assumption.
    later = 11.0 if profile.estimated and comparable else 0.0
    if weights != "uniform":
        return later if profile.context_free else later + 5.0
    return later + 15.0 if profile.moves and comparable else later


def _settle(estimator: str, question: Question, asked: Asked) -> Choice:
    """Complete and check weights and decay."""
    profile, refusal = question.profile, _refusal(question)
    if refusal:
        known = profile.log.arrays.propensity is not None
        raise Refused(
            estimator, refusal, last=("an analysis of the randomised rounds alone",) if known else ()
        )
    weights = asked.weights if asked.decay is None else "two-point"
    decay = profile.usable_decay
    if weights is None:
        weights = "sqrt" if decay is None else "two-point"
        if not profile.knows_every_propensity or not profile.context_free:
            weights = "uniform"
        return Choice(estimator, weights, decay if weights == "two-point" else None)
    if weights == "uniform":
        return Choice(estimator, weights)
    refusal = _weights_refusal(profile)
    if refusal:
        first = (f"{estimator} with uniform weights",)
        raise Refused(f"{estimator} with {weights} weights", refusal, first=first)
    if weights == "sqrt":
        return Choice(estimator, weights)
    stated = profile.floor_decay if asked.decay is None else asked.decay
    if stated is None:
        problem = (
            "two-point weights need decay=, the exponent a of a propensity floor that falls like t^-a (fixed "
            "in advance, never fitted on the log); the log's design states none"
        )
        raise ParameterError(asked.subject, [problem])
    return Choice(estimator, weights, float(stated))


def _fit_augmented(question: Question, choice: Choice, asked: Asked) -> ArmFit:
    """AIPW: with the running mean of the arm, unless another outcome model is asked for."""
    model = RUNNING_MEAN
    if asked.outcome is not None or asked.ridge is not None:
        log, codes = question.profile.log, question.codes
        model = outcome_model(asked.subject, log, codes, asked.outcome, asked.ridge)
    return _fit(question, choice, asked, model)


def _fit(question: Question, choice: Choice, asked: Asked, model: Outcome | None = None) -> ArmFit:
    means = _estimates(question.profile.log, question.codes, choice, model)
    never = np.where(means.pulls > 0, 0.0, np.nan)
    once = np.where(means.pulls > 1, 0.0, np.nan)  # the spread of one reward is unknown
    return ArmFit(
        choice=choice,
        labels=arm_labels(question),
        estimate=means.estimate + never,
        covariance=means.covariance + once[:, None] + once[None, :],
        pulls=means.pulls,
        successes=means.successes,
        ess=means.ess,
        min_propensity=means.min_propensity,
        outcome=model,
    )


def _estimates(log: AdaptiveLog, codes: IntArray, choice: Choice, model: Outcome | None) -> ScoreMeans:
    """In NumPy for short logs, compiled and streamed for long ones; codes (k,)."""
    if log.n_rounds * len(codes) <= _SMALL:
        return arm_score_means(*_columns(log), codes, **_options(choice, model))
    from adaptinf.inference.scores.streams import streamed_means  # Numba is loaded when it pays

    return streamed_means(*_columns(log), codes, **_options(choice, model))


def score_rows(
    log: AdaptiveLog, codes: IntArray, choice: Choice, model: Outcome | None
) -> tuple[FloatArray, FloatArray]:
    """Scores and weights of inverse weighting, shape (T, k) each."""
    _, scores, weights = arm_scores(*_columns(log), codes, **_options(choice, model))
    return scores, weights


def _columns(log: AdaptiveLog) -> tuple[IntArray, FloatArray, FloatArray, FloatArray | None]:
    """Actions, rewards, and propensities of the chosen and of every arm."""
    arrays = log.arrays
    own = np.ones(0) if arrays.propensity is None else arrays.propensity
    return arrays.action, arrays.reward, own, arrays.propensities


def _options(choice: Choice, model: Outcome | None) -> dict[str, Any]:
    return {
        "weights": choice.weights or "uniform",
        "decay": choice.decay,
        "outcome": None if model is None else model.values,
    }


def _rows(question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
    """Scores, weights, and what they contribute to the error of each estimate, shape (T, k) each."""
    scores, weights = score_rows(question.profile.log, question.codes, fit.choice, fit.outcome)
    influence = weighted_means(scores, weights).influence
    return {"scores": scores, "weights": weights, "influence": influence}


def _notes(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> list[str]:
    profile, choice = question.profile, fit.choice
    log = profile.log
    rests = "propensities given the past, positive in every round, and arm means that stay the same"
    if choice.weights != "uniform" and not log.context and log.context_free is None:
        rests += "; that the choice of arms used no contexts, as the log has none"
    notes = [f"Assumes {rests}."]
    if fit.outcome is not None:
        notes.append(fit.outcome.note)
    if profile.estimated:
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if not profile.knows_every_propensity:
        notes.append(
            "The log has the chosen arm's propensity alone: that each arm could be chosen is assumed."
        )
    notes += _weights_notes(profile, choice)
    if profile.binary:
        notes += _few_events(fit)
    few = (fit.pulls > 1) & (fit.ess < FEW_REWARDS)
    if np.any(few):
        arms = ", ".join(label for label, flag in zip(fit.labels, few, strict=True) if flag)
        notes.append(
            f"{arms}: effective sample size below {FEW_REWARDS:g}: normal intervals may be far too short."
        )
    tiny = fit.min_propensity < TINY_PROPENSITY
    if np.any(tiny):
        notes.append(
            f"Propensities down to {np.min(fit.min_propensity[tiny]):.2g}: a few rewards carry the estimate "
            f"(effective sample size {np.min(fit.ess[tiny]):.1f}); normal intervals may be far too short."
        )
    return notes


def _weights_notes(profile: LogProfile, choice: Choice) -> list[str]:
    """What the weights rest on."""
    if choice.weights == "uniform" and profile.context_may_move:
        return [
            f"Uniform weights, because {profile.context_names} may move the propensities: weights made from "
            "these would count contexts unequally. Not normal in general when propensities move with the "
            "data."
        ]
    if choice.weights == "uniform":
        return profile.adaptive * [
            "Uniform weights: not normal in general when propensities move with the data; sqrt and two-point "
            "weights guard against that and need every arm's propensity."
        ]
    notes = []
    if profile.log.context and not profile.context_free:
        notes.append(
            f"Valid only if the propensities do not depend on {profile.context_names}: weights made from "
            "propensities that do would count contexts unequally, which biases the means."
        )
    if choice.weights == "two-point":
        notes.append(f"Two-point weights: propensity floor of decay {choice.decay:g}.")
    return notes


def _few_events(fit: ArmFit) -> list[str]:
    chosen = fit.pulls > 0
    rate = fit.successes / np.where(chosen, fit.pulls, 1.0)
    events = effective_events(fit.ess, rate)
    arms = [
        f"{label} ({number:.1f})"
        for label, number, flag in zip(fit.labels, events, chosen & (events < FEW_EVENTS), strict=True)
        if flag
    ]
    if not arms:
        return []
    return [
        f"{', '.join(arms)}: the effective sample size is worth fewer than {FEW_EVENTS} successes or "
        "failures: normal intervals may be far too short."
    ]


IPW = ArmMethod(
    name="ipw",
    assess=partial(_assess, "ipw", 30.0, _UNAUGMENTED),
    settle=partial(_settle, "ipw"),
    fit=_fit,
    length=weighted_length,
    notes=_notes,
    rows=_rows,
    options=("weights", "decay"),
    bound="propensities",
)
AIPW = ArmMethod(
    name="aipw",
    assess=partial(_assess, "aipw", 10.0, ""),
    settle=partial(_settle, "aipw"),
    fit=_fit_augmented,
    length=weighted_length,
    notes=_notes,
    rows=_rows,
    options=("weights", "decay", "outcome", "ridge"),
    implied_by=("weights", "decay", "outcome", "ridge"),
    bound="propensities",
)
