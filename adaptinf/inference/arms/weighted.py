"""AIPW and IPW: inverse-weighted scores of a log's arms, and the estimates from them.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.arms.circumstances import by_unit, from_sums, rounds, scored
from adaptinf.inference.arms.circumstances.deviations import past_outcome, seen_means, seen_rounds
from adaptinf.inference.arms.circumstances.forms import joint_means_of_sums
from adaptinf.inference.arms.fit import ArmFit, arm_labels, student_test
from adaptinf.inference.arms.lengths import weighted_length
from adaptinf.inference.arms.question import Asked, Choice, Question, Refused
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.scores.joint import (
    JOINT,
    LogRounds,
    joint_means,
    joint_rows,
    movement_of,
    round_pieces,
    rounds_of,
    times_of,
    too_many,
    whole_pieces,
)
from adaptinf.inference.scores.means import ScoreMeans, arm_score_means
from adaptinf.inference.scores.moving_effects import SEEN
from adaptinf.inference.scores.outcome_models import RUNNING_MEAN, Outcome, outcome_model
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, SMALL, TINY_PROPENSITY, compared
from adaptinf.inference.validity.stationarity import STATED, own_weights_caution
from adaptinf.inference.validity.units import FEW_UNITS
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.validity.profile import LogProfile

WEIGHTS = (JOINT, "uniform", "sqrt", "two-point", "combined")
COMMON = "combined"
"""One weight a round for both arms of a contrast, or all arms of a table."""
OWN = ("two-point", "sqrt")
"""Weights that each arm has of its own."""
_RARELY_DRAWN = 1e-3
"""Propensities below it leave uniform weights far from normal at usual numbers of rounds."""
_FEW_ARMS = 3
"""Arms of which every pair is compared in any log that fits in memory."""
_SMALL = 100_000
"""Scores up to which NumPy is quick enough that loading Numba does not pay."""
_KNOWN = "propensities are known"
_UNAUGMENTED = "; without an outcome model, hence with longer intervals than aipw"
_NO_DECAY = "its weights need decay=, which the design does not state"
_UNSTATED = (
    "two-point weights need decay=, the exponent a of a propensity floor that falls like t^-a (fixed in "
    "advance, never fitted on the log); the log's design states none"
)
_EVERY = "they need every arm's propensity at every round, and the log has the chosen arm's alone"
_MIXED = (
    "propensities depend on contexts, and weights made from them count contexts unequally: the estimate "
    "would be of another mix of contexts"
)
_JOINT_BY_UNIT = "units have several rounds, and one weight for each of them ties units together"
_HADAD = (
    "small propensities: in a setting of Hadad et al. with high signal, normal 95% intervals cover about "
    "90% at 1,000 rounds and 92% at 10,000"
)


def _refusal(question: Question) -> str:
    """Why inverse propensities do not serve; empty where they do."""
    profile = question.profile
    if not profile.knows_propensities:
        return "it needs propensities, and the log has none (give propensity= or propensities= if known)"
    if profile.contradicted_draws or not np.any(profile.impossible[question.codes]):
        return profile.contradicted_draws
    return rounds.gaps_refusal(question)


def _weights_refusal(profile: LogProfile, weights: str) -> str:
    """Why weights cannot be made from propensities; empty where they can."""
    if weights == "uniform":
        return ""
    if not profile.knows_every_propensity:
        return _EVERY
    if profile.sums is not None and (refusal := from_sums.weights_refusal(profile, weights)):
        return refusal
    if weights == JOINT and profile.repeated_units:
        return _JOINT_BY_UNIT
    if weights in (COMMON, JOINT):
        return profile.no_shared_weights
    return _MIXED if profile.decides_by_context else ""


def _kinds(question: Question) -> tuple[str, ...]:
    """Kinds of weights in order: first those that survive a drift of all arms, unless there is none."""
    shared = (COMMON, "uniform") if question.contrast else (JOINT, "uniform")
    if question.stationary:
        return (*OWN, *shared) if question.contrast else (*OWN, *shared[::-1])
    return (*shared, *OWN)


def _assess(estimator: str, first: float, caveat: str, question: Question) -> list[Verdict]:
    """With each kind of weights, ranked from the first."""
    profile, refusal = question.profile, _refusal(question)
    stated = profile.usable_decay if question.decay is None else question.decay
    found = []
    for place, weights in enumerate(_kinds(question)):
        name, rank = f"{estimator} with {weights} weights", first + place
        call: dict[str, Any] = {"estimator": estimator, "weights": weights}
        if weights == "two-point" and stated is not None and profile.usable_decay != stated:
            call["decay"] = stated
        if weights in OWN:
            call |= STATED
        reason = refusal
        if not reason and weights != "uniform":
            undecided = weights == "two-point" and stated is None and profile.may_weigh_rounds
            reason = _NO_DECAY if undecided else _weights_refusal(profile, weights)
        if reason:
            found.append(Verdict(name, "not valid", rank, call, reason))
            continue
        why, warning = _reason(question, weights)
        rank += _later(question, weights)
        assumes = _assumes(question, weights)
        found.append(Verdict(name, "asymptotic", rank, call, why + caveat, assumes, warning))
    return by_unit.unit_verdicts(found, question, first) if profile.repeated_units else found


def _reason(question: Question, weights: str) -> tuple[str, str]:
    """Why scores are valid, and the warning."""
    profile = question.profile
    small = profile.adaptive and profile.smallest_propensity[question.codes].min(initial=1.0) < SMALL
    warning = _HADAD if small else ""
    if weights == COMMON:
        return f"{_KNOWN}, and one weight for both arms keeps variances even and a common drift out", warning
    if weights == JOINT:
        return f"{_KNOWN}, and arms share their weights, which keeps a common drift out", warning
    if weights == "two-point":
        return f"{_KNOWN} and their floor's decay is fixed: variances are kept even", warning
    if weights == "sqrt":
        return "every arm's propensity is known: the weights keep the variance even while they move", warning
    if not profile.moves:
        return f"{_KNOWN} and do not move with the data", ""
    unsettled = "not normal in general when propensities move with the data; right where they settle"
    if not profile.context_may_move:
        return _KNOWN, unsettled
    return f"{_KNOWN}; uniform weights, because {profile.context_names} may move them", unsettled


def _assumes(question: Question, weights: str) -> str:
    profile = question.profile
    assumes = "the logged propensities are the design's own, and " + _stays(question, weights)
    assumes += " (they are estimates, whose error is ignored)" * profile.estimated
    if profile.context_free or weights != "two-point":
        return assumes
    return f"{assumes}; propensities do not depend on contexts"


def _stays(question: Question, weights: str) -> str:
    """What has to stay the same over time."""
    if weights in OWN:
        return f"arm means stay the same: {_shared_drift(question)}"
    if question.contrast or weights == COMMON:
        by = "equally" if weights == "uniform" else "with the weights"
        what = "both arms" if question.contrast else "all arms"
        return f"what drifts moves {what} alike; an effect that changes is averaged over the rounds, {by}"
    if weights == JOINT:
        return "what drifts moves all arms alike"
    return "arm means stay the same, or means over the rounds in which an arm could be chosen are wanted"


def _shared_drift(question: Question) -> str:
    """What a drift that arms share does where each has weights of its own."""
    if question.contrast:
        return "a drift that both arms share biases the difference"
    return "a drift that arms share tells equal arms apart"


def _later(question: Question, weights: str) -> float:
    """What is added to the rank: without contexts, ALEE needs fewer assumptions and hopes."""
    profile = question.profile
    comparable = not profile.log.context and not profile.context_refusal
    # Estimated propensities are one more assumption, but shares that moved are of no use to plain means.
    plain = profile.adaptive or not profile.shares_move
    later = 11.0 if profile.estimated and comparable and plain else 0.0
    if weights in OWN and not question.stationary:
        return later + 16.0
    if weights != "uniform":
        return later if profile.context_free or weights in (COMMON, JOINT) else later + 5.0
    rare = profile.smallest_propensity[question.codes].min(initial=1.0) < _RARELY_DRAWN
    unsafe = rare or compared(question).heavy_tailed
    return later + 15.0 if profile.moves and comparable and unsafe else later


def _settle(estimator: str, question: Question, asked: Asked) -> Choice:
    """Complete and check weights and decay."""
    profile, refusal = question.profile, _refusal(question)
    if refusal:
        known = profile.knows_propensities
        raise Refused(
            estimator, refusal, last=("an analysis of the randomised rounds alone",) if known else ()
        )
    weights = asked.weights if asked.decay is None else "two-point"
    decay = profile.usable_decay
    if weights is None:
        weights = _usual(question)
        return Choice(estimator, weights, decay if weights == "two-point" else None)
    refusal = _weights_refusal(profile, weights)
    if refusal:
        raise Refused(f"{estimator} with {weights} weights", refusal, (f"{estimator} with uniform weights",))
    if weights != "two-point":
        return Choice(estimator, weights)
    stated = profile.floor_decay if asked.decay is None else asked.decay
    if stated is None:
        raise ParameterError(asked.subject, [_UNSTATED])
    return Choice(estimator, weights, float(stated))


def _usual(question: Question) -> str:
    """Weights where the estimator alone was asked for."""
    profile = question.profile
    if profile.repeated_units:
        return "uniform"
    if not question.stationary:
        shared = COMMON if question.contrast else JOINT
        return "uniform" if _weights_refusal(profile, shared) else shared
    if not profile.context_free or _weights_refusal(profile, "sqrt"):
        return "uniform"
    return "sqrt" if profile.usable_decay is None else "two-point"


def _fit_augmented(question: Question, choice: Choice, asked: Asked) -> ArmFit:
    """AIPW: with the running mean of the arm, unless another outcome model is asked for."""
    if question.profile.sums is not None:
        return _fit(question, choice, asked, from_sums.outcome_of(question, asked))
    model, log = RUNNING_MEAN, question.profile.log
    late = log.arrays.known is not None and not question.profile.repeated_units
    if log.arrays.observed is not None or late:
        model = past_outcome(question, asked)
    elif asked.outcome is not None or asked.ridge is not None:
        options = (asked.outcome, asked.ridge)
        model = outcome_model(asked.subject, log, question.codes, *options, by_batch=True)
        if question.profile.repeated_units:
            from_sums.refuse_units(asked)
    return _fit(question, choice, asked, model)


def _fit(question: Question, choice: Choice, asked: Asked, model: Outcome | None = None) -> ArmFit:
    warned: tuple[str, ...] = ()
    means = _estimates(question, choice, model)
    if means.movement < SEEN:
        warned = (_moving_caution(means.movement),)
        choice = replace(choice, weights="uniform")
        means = _estimates(question, choice, model)
    never = np.where(means.pulls > 0, 0.0, np.nan)
    once = np.where(means.freedom > 0.0, 0.0, np.nan)  # the spread of one reward is unknown
    return ArmFit(
        choice=choice,
        labels=arm_labels(question),
        estimate=means.above + means.origin + never,
        above=means.above + never,
        covariance=means.covariance + once[:, None] + once[None, :],
        pulls=means.pulls,
        successes=means.successes,
        ess=means.ess,
        freedom=means.freedom,
        min_propensity=means.min_propensity,
        outcome=model,
        stationary=asked.stationary,
        skewness=means.skewness,
        unevenness=means.unevenness,
        by_unit=means.by_unit,
        warned=warned,
    )


def _moving_caution(p: float) -> str:
    """That arms are seen to move apart, and what the means are of then."""
    return (
        f"differences between arms move over the period (slope in time, p = {p:.2g}): each mean "
        "is over the rounds in which its arm could be chosen, with uniform weights"
    )


def _estimates(question: Question, choice: Choice, model: Outcome | None) -> ScoreMeans:
    """In NumPy for short logs, compiled and streamed for long ones; from sums where there are no rows."""
    joint = choice.weights == JOINT
    if question.profile.sums is not None:
        if joint:
            return joint_means_of_sums(question, model)
        return from_sums.estimates(question, choice, model)
    if joint:
        return joint_means(joint_rounds(question, model))
    options = _options(question, choice, model)
    if model is not None and model.seen is not None:
        return seen_means(question, model, options)
    columns = _columns(question.profile)
    if question.profile.repeated_units:
        return by_unit.unit_means(question, by_unit.unit_scores(question, columns, options), columns)
    if len(columns[0]) * len(question.codes) <= _SMALL:
        return arm_score_means(*columns, question.codes, **options)
    from adaptinf.inference.scores.streams import streamed_means  # Numba is loaded when it pays

    return streamed_means(*columns, question.codes, **options)


def joint_rounds(question: Question, model: Outcome | None) -> LogRounds:
    """The rounds of a log for weights that arms share, and what tables show of the arms."""
    profile, codes, log = question.profile, question.codes, question.profile.log
    own, every = profile.propensity, profile.propensities
    fixed = None if profile.fixed_in_time else rounds.joint_propensities(question)
    assert own is not None
    assert every is not None
    smallest, batch = profile.smallest_propensity[codes], log.arrays.batch
    if model is not None and model.seen is not None:
        scored = seen_rounds(question, model, {"outcome": model.values, "start": model.start})
        used = scored.weights > 0.0
        gain = used * scored.chosen / (own * model.seen.probability)[:, None]
        fixed = every[:, codes] if fixed is None else fixed
        found = rounds_of(scored.scores, gain, fixed, used, times_of(log.n_rounds, batch))
        total = np.where(model.seen.observed, log.arrays.recorded, 0.0) @ scored.chosen
        tabled = (scored.chosen.sum(axis=0), total, smallest)
        return LogRounds(whole_pieces(found), log.n_rounds, tabled, scored.origin)
    action, reward = log.arrays.action, log.arrays.reward
    successes = np.bincount(action, reward, log.n_arms).astype(np.float64)
    outcome, start = (None, None) if model is None else (model.values, model.start)
    return round_pieces(
        *(action, reward, own, every, codes),
        tabled=(profile.pulls[codes], successes[codes], smallest),
        batch=batch,
        fixed=fixed,
        outcome=outcome,
        start=start,
    )


def _columns(profile: LogProfile) -> tuple[IntArray, FloatArray, FloatArray, FloatArray | None]:
    """Actions, rewards, and propensities of the chosen and of every arm."""
    own = np.ones(0) if profile.propensity is None else profile.propensity
    every = profile.partial_propensities if profile.propensities is None else profile.propensities
    return profile.log.arrays.action, profile.log.arrays.reward, own, every


def _options(question: Question, choice: Choice, model: Outcome | None) -> dict[str, Any]:
    weights = choice.weights or "uniform"
    lagged = weights == "sqrt" and _lags(question)
    own = rounds.lagged_sqrt_weights(question) if lagged else weights
    return {
        "weights": rounds.pair_weights(question) if weights == COMMON else own,
        "decay": choice.decay,
        "outcome": None if model is None else model.values,
        "start": 0 if model is None else model.start,
        "jointly": question.contrast or weights == COMMON,
    }


def _lags(question: Question) -> bool:
    """Whether each arm's own weight is made of the propensities of the round before."""
    return not question.profile.fixed_before_contexts[question.codes].all()


def _rows(question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
    """Scores, weights, and what they contribute to the error of each estimate, shape (T, k) each."""
    if fit.choice.weights == JOINT and question.profile.sums is None:
        scores, influence = joint_rows(joint_rounds(question, fit.outcome))
        return {"scores": scores, "influence": influence}
    options = partial(_options, question, fit.choice, fit.outcome)
    return scored.rows(question, fit, partial(_columns, question.profile), options)


def _notes(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> list[str]:
    profile, choice = question.profile, fit.choice
    log = profile.log
    rests = f"propensities given the past are right, and that {_stays(question, choice.weights or 'uniform')}"
    if choice.weights == "two-point" and not log.context and log.context_free is None:
        rests += "; that the choice of arms used no contexts, as the log has none"
    notes = [f"Assumes that {rests}."]
    if np.any(profile.impossible[question.codes]):
        notes += rounds.gaps_notes(question, levels=choice.weights in (JOINT, COMMON))[0]
    if fit.by_unit is not None:
        notes += by_unit.fit_notes(question, fit)
    elif fit.outcome is not None:
        notes.append(fit.outcome.note)
    notes += [] if profile.sums is None else from_sums.notes(question)
    if profile.estimated:
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if not profile.knows_every_propensity:
        notes.append(rounds.chosen_alone_note(profile))
    return notes + _weights_notes(question, choice)


def _cautions(question: Question, fit: ArmFit) -> list[str]:
    """Why the numbers may be worth less than their label says."""
    own = fit.choice.weights in OWN and not fit.stationary
    found = [own_weights_caution(f"{fit.choice.weights}", _shared_drift(question))] if own else []
    found += _moving_difference(question, fit)
    found += question.profile.propensity_cautions
    found += [] if question.profile.sums is None else from_sums.cautions(question)
    if np.any(question.profile.impossible[question.codes]):
        found += rounds.gaps_notes(question, levels=fit.choice.weights in (JOINT, COMMON))[1]
    found += () if fit.outcome is None else fit.outcome.cautions
    if fit.by_unit is not None:
        found += by_unit.fit_cautions(question, fit)
    many = fit.pulls > 1 if fit.by_unit is None else fit.by_unit.units >= FEW_UNITS  # fewer are told of
    found += [
        f"{label}: worth {n:.1f} rewards of equal weight, below {FEW_EFFECTIVE:g}: intervals may be short"
        for label, n, counts in zip(fit.labels, fit.degrees + 1.0, many, strict=True)
        if n < FEW_EFFECTIVE and counts
    ]
    tiny = fit.min_propensity < TINY_PROPENSITY
    if np.any(tiny):
        found.append(
            f"propensities down to {np.min(fit.min_propensity[tiny]):.2g}: a few rewards carry the estimate "
            f"(effective sample size {np.min(fit.ess[tiny]):.1f}); intervals may be far too short"
        )
    return found


def _moving_difference(question: Question, fit: ArmFit) -> list[str]:
    """That a difference is seen to move, of which weights that move with propensities take another mean."""
    if not question.contrast or fit.choice.weights != COMMON or question.profile.repeated_units:
        return []
    if np.any(fit.pulls == 0.0):
        return []
    if question.profile.sums is not None:
        p = joint_means_of_sums(question, fit.outcome).movement
    else:
        p = movement_of(joint_rounds(question, fit.outcome))
    if not p < SEEN / question.family:
        return []
    return [
        f"the difference moves over the period (slope in time, p = {p:.2g}): this is its mean "
        "with the weights of the rounds; weights='uniform' estimates that over the period"
    ]


def _weights_notes(question: Question, choice: Choice) -> list[str]:
    """What the weights rest on."""
    profile = question.profile
    if choice.weights == JOINT:
        return [_joint_note(question)]
    if choice.weights == COMMON:
        return [rounds.pair_note(question)]
    if choice.weights == "uniform" and profile.context_may_move:
        return [
            f"Uniform weights, because {profile.context_names} may move the propensities: weights made from "
            "these would count contexts unequally. Not normal in general when propensities move with the "
            "data."
        ]
    if choice.weights == "uniform":
        return profile.adaptive * [
            "Uniform weights: not normal in general when propensities move with the data; others guard "
            "against that and need every arm's propensity."
        ]
    if choice.weights == "sqrt":
        return [rounds.LAGGED_NOTE] * _lags(question)
    notes = []
    if profile.log.context and not profile.context_free:
        notes.append(
            f"Valid only if the propensities do not depend on {profile.context_names}: weights made from "
            "propensities that do would count contexts unequally, which biases the means."
        )
    return [*notes, f"Two-point weights: propensity floor of decay {choice.decay:g}."]


def _joint_note(question: Question) -> str:
    """What joint weights do, and what they estimate."""
    profile, size = question.profile, len(question.codes)
    rows = profile.log.n_rounds if profile.sums is None else profile.sums.n_batches
    which = "each pair of arms"
    if size > _FEW_ARMS and too_many(size, rows):
        which = "each arm and the most-pulled one"
    by = "its propensities" if profile.fixed_in_time else rounds.fixed_propensities(question)
    return (
        f"Joint weights: differences from comparisons of {which} with one weight per round, by {by}, so that "
        "a drift that all arms share does no harm. The target is the mean over the period, for arms that "
        "move in parallel."
    )


IPW = ArmMethod(
    name="ipw",
    assess=partial(_assess, "ipw", 30.0, _UNAUGMENTED),
    settle=partial(_settle, "ipw"),
    fit=_fit,
    length=weighted_length,
    notes=_notes,
    cautions=_cautions,
    resolve_test=student_test,
    rows=_rows,
    options=("weights", "decay"),
    bound="propensities",
    takes_sums=True,
    pairs=True,
)
AIPW = ArmMethod(
    name="aipw",
    assess=partial(_assess, "aipw", 10.0, ""),
    settle=partial(_settle, "aipw"),
    fit=_fit_augmented,
    length=weighted_length,
    notes=_notes,
    cautions=_cautions,
    resolve_test=student_test,
    rows=_rows,
    options=("weights", "decay", "outcome", "ridge"),
    implied_by=("weights", "decay", "outcome", "ridge"),
    bound="propensities",
    takes_gaps=True,
    takes_sums=True,
    pairs=True,
)
