"""AIPW and IPW: estimates of arm means from inverse-weighted scores.

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

from adaptinf.claims import first, said, sentence
from adaptinf.claims.arms import weighted_arms as claims
from adaptinf.claims.units import INCOMPLETE
from adaptinf.errors import ParameterError
from adaptinf.inference.arms.arm_lengths import weighted_length
from adaptinf.inference.arms.arm_order import (
    BY_UNIT,
    DRIFT,
    ESTIMATED,
    RARELY_DRAWN,
    STATIONARY,
    place_of_scores,
)
from adaptinf.inference.arms.data import arms_by_unit, arms_of_rows, arms_of_sums, weight_propensities
from adaptinf.inference.arms.data.arms_of_rows import joint_rounds
from adaptinf.inference.arms.data.arms_of_sums import joint_means_of_sums
from adaptinf.inference.arms.data.data_facts import was_filled
from adaptinf.inference.arms.data.incomplete_rewards import past_outcome, seen_means
from adaptinf.inference.arms.facts.weighted_facts import COMMON, OWN, WeightedFacts, lags
from adaptinf.inference.arms.fit import arm_labels, student_test
from adaptinf.inference.arms.question import ArmFit, Asked, Choice, Question, Refused
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.distributions.event_sums import EventSums, event_sums
from adaptinf.inference.inputs.rounds import times_of
from adaptinf.inference.scores.inverse import arm_scores
from adaptinf.inference.scores.joint_levels import (
    JOINT,
    joint_means,
    joint_rows,
    joint_scores,
)
from adaptinf.inference.scores.means import FEW_SCORES, ScoreMeans, arm_score_means
from adaptinf.inference.scores.moving_effects import SEEN
from adaptinf.inference.scores.outcome_predictions import RUNNING_MEAN, Outcome, outcome_model
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.validity.profile import LogProfile

WEIGHTS = (JOINT, "uniform", "sqrt", "two-point", "combined")
_COUNTABLE = 5_000_000
"""Largest number of rounds times arms for which rare rewards are counted: all their weights are kept in
memory."""
_RARELY_DRAWN = 1e-3
"""Below this propensity, estimates with uniform weights are far from normal at usual numbers of rounds."""


def _kinds(question: Question) -> tuple[str, ...]:
    """The kinds of weights, starting with those valid under drift unless means are known to be constant."""
    shared = (COMMON, "uniform") if question.contrast else (JOINT, "uniform")
    if question.stationary:
        return (*OWN, *shared) if question.contrast else (*OWN, *shared[::-1])
    return (*shared, *OWN)


def _assess(estimator: str, question: Question) -> list[Verdict]:
    """A verdict for each kind of weights."""
    profile = question.profile
    stated = profile.usable_decay if question.decay is None else question.decay
    refused = first(claims.NEEDS, WeightedFacts(question, None))
    found = []
    for weights in _kinds(question):
        name = f"{estimator} with {weights} weights"
        call: dict[str, Any] = {"estimator": estimator, "weights": weights}
        if weights == "two-point" and stated is not None and profile.usable_decay != stated:
            call["decay"] = stated
        if weights in OWN:
            call |= STATED
        facts = WeightedFacts(question, weights, decay=stated, augmented=estimator == "aipw")
        if reason := refused or first((*claims.WEIGHTS_NEED, INCOMPLETE), facts):
            rank = place_of_scores(estimator, weights, *_units_alone(question, weights))
            found.append(Verdict(name, "not valid", rank, call, reason))
            continue
        rank = place_of_scores(estimator, weights, *_circumstances(question, weights))
        why, warning = sentence(said(claims.REASONS, facts)), sentence(said(claims.ROW_CAUTIONS, facts))
        assumed = tuple(said(claims.ASSUMES, facts))
        found.append(Verdict(name, "asymptotic", rank, call, why, assumed, warning))
    return found


def _units_alone(question: Question, weights: str) -> tuple[str, ...]:
    """If units have several rounds, the circumstance that puts uniform weights first."""
    return (BY_UNIT,) if question.profile.repeated_units and weights == "uniform" else ()


def _circumstances(question: Question, weights: str) -> tuple[str, ...]:
    """The circumstances that give a valid variant an unusual rank."""
    profile, own, uniform = question.profile, weights in OWN, weights == "uniform"
    if profile.repeated_units:
        return _units_alone(question, weights)
    # ALEE is an alternative only if contexts play no role; it then needs fewer assumptions.
    comparable = not profile.log.context and not profile.context_refusal
    # If nothing adapted but shares moved, sample means do not serve, so estimated propensities keep their
    # usual rank.
    estimated = profile.estimated and comparable and (profile.adaptive or not profile.shares_move)
    rare = profile.smallest_propensity[question.codes].min(initial=1.0) < _RARELY_DRAWN
    unsafe = uniform and profile.moves and comparable and (rare or compared(question).heavy_tailed)
    holds = {DRIFT: own and not question.stationary, RARELY_DRAWN: unsafe, ESTIMATED: estimated}
    if any(holds.values()):
        return tuple(name for name, so in holds.items() if so)
    first = (own and profile.context_free) or (uniform and not question.contrast)
    return (STATIONARY,) if question.stationary and first else ()


def _settle(estimator: str, question: Question, asked: Asked) -> Choice:
    """Complete weights and decay with defaults, and check them."""
    profile = question.profile
    if refusal := first(claims.NEEDS, WeightedFacts(question, None)):
        known = profile.knows_propensities
        raise Refused(
            estimator, refusal, last=("an analysis of only the randomised rounds",) if known else ()
        )
    weights = asked.weights if asked.decay is None else "two-point"
    decay = profile.usable_decay
    if weights is None:
        weights = _usual(question)
        return Choice(estimator, weights, decay if weights == "two-point" else None)
    if refusal := _weights_refusal(question, weights):
        raise Refused(f"{estimator} with {weights} weights", refusal, (f"{estimator} with uniform weights",))
    if weights != "two-point":
        return Choice(estimator, weights)
    stated = profile.floor_decay if asked.decay is None else asked.decay
    if stated is None:
        raise ParameterError(
            asked.subject,
            [
                "two-point weights require decay=, the exponent a of a propensity floor proportional to "
                "t^-a (fixed in advance, never fitted to the log); the log's design states none"
            ],
        )
    return Choice(estimator, weights, float(stated))


def _weights_refusal(question: Question, weights: str) -> str:
    """The reason why weights, with a known decay, cannot be computed from propensities; empty if they can."""
    return first(claims.WEIGHTS_NEED, WeightedFacts(question, weights, decay=0.0))


def _usual(question: Question) -> str:
    """The weights that are used if only the estimator was requested."""
    profile = question.profile
    if profile.repeated_units:
        return "uniform"
    if not question.stationary:
        shared = COMMON if question.contrast else JOINT
        return "uniform" if _weights_refusal(question, shared) else shared
    if not profile.context_free or _weights_refusal(question, "sqrt"):
        return "uniform"
    return "sqrt" if profile.usable_decay is None else "two-point"


def _fit_augmented(question: Question, choice: Choice, asked: Asked) -> ArmFit:
    """Fit AIPW, with the arm's running mean unless another outcome model is requested."""
    if question.profile.sums is not None:
        return _fit(question, choice, asked, arms_of_sums.outcome_of(question, asked))
    model, log = RUNNING_MEAN, question.profile.log
    late = log.arrays.known is not None and not question.profile.repeated_units
    # Missing rewards that were set to one end of their range are scored and weighted as if they were missing
    # at random.
    plain = asked.outcome is None and asked.ridge is None and not question.profile.repeated_units
    if log.arrays.observed is not None or late or (plain and was_filled(log)):
        model = past_outcome(question, asked)
    elif asked.outcome is not None or asked.ridge is not None:
        options = (asked.outcome, asked.ridge)
        model = outcome_model(asked.subject, log, question.codes, *options, by_batch=True)
        if question.profile.repeated_units:
            arms_of_sums.refuse_units(asked)
    return _fit(question, choice, asked, model)


def _fit(question: Question, choice: Choice, asked: Asked, model: Outcome | None = None) -> ArmFit:
    warned: tuple[str, ...] = ()
    means = _estimates(question, choice, model)
    if choice.weights == JOINT and means.movement < SEEN:
        warned = (claims.ARMS_MOVE(p=means.movement),)
        choice = replace(choice, weights="uniform")
        means = _estimates(question, choice, model)
    never = np.where(means.pulls > 0, 0.0, np.nan)
    once = np.where(means.freedom > 0.0, 0.0, np.nan)  # A single reward gives no information about variation.
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
        movement=means.movement,
        by_unit=means.by_unit,
        products=means.products,
        warned=warned,
    )


def _estimates(question: Question, choice: Choice, model: Outcome | None) -> ScoreMeans:
    """Estimates, computed by NumPy for short logs, by compiled streams for long logs, or from sums."""
    joint = choice.weights == JOINT
    if question.profile.sums is not None:
        if joint:
            return joint_means_of_sums(question, model)
        return arms_of_sums.estimates(question, choice, model)
    if joint:
        return joint_means(joint_rounds(question, model))
    if question.table is not None:
        of_table = question.table.means(question.profile, question.codes, choice.weights, model)
        if of_table is not None:
            return of_table
    options = _options(question, choice, model)
    if model is not None and model.seen is not None:
        return seen_means(question, model, options)
    columns = _columns(question.profile)
    if question.profile.repeated_units:
        return arms_by_unit.unit_means(
            question, arms_by_unit.unit_scores(question, columns, options), columns
        )
    rounds, batch = len(columns[0]), question.profile.log.arrays.batch
    if rounds * len(question.codes) <= FEW_SCORES:
        paired = question.contrast and choice.weights == COMMON
        time = times_of(rounds, batch) if paired else None
        return arm_score_means(*columns, question.codes, time=time, **options)
    # Loading Numba takes a while, which pays off only for long logs.
    from adaptinf.inference.scores.score_stream import streamed_means

    return streamed_means(*columns, question.codes, batch=batch, **options)


def _columns(profile: LogProfile) -> tuple[IntArray, FloatArray, FloatArray, FloatArray | None]:
    """Actions, rewards, and propensities of the chosen arm and of every arm."""
    own = np.ones(0) if profile.propensity is None else profile.propensity
    every = profile.partial_propensities if profile.propensities is None else profile.propensities
    return profile.log.arrays.action, profile.log.arrays.reward, own, every


def _options(question: Question, choice: Choice, model: Outcome | None) -> dict[str, Any]:
    weights = choice.weights or "uniform"
    lagged = weights == "sqrt" and lags(question)
    own = weight_propensities.lagged_sqrt_weights(question) if lagged else weights
    return {
        "weights": weight_propensities.pair_weights(question) if weights == COMMON else own,
        "decay": choice.decay,
        "outcome": None if model is None else model.values,
        "start": 0 if model is None else model.start,
        "jointly": question.contrast or weights == COMMON,
    }


def _rows(question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
    """Scores, weights, and their contributions to the error of each estimate, shape (T, k) each."""
    if fit.products is not None:
        return {"products": fit.products}
    if fit.choice.weights == JOINT and question.profile.sums is None:
        rounds = joint_rounds(question, fit.outcome)
        return {"scores": joint_scores(rounds), "influence": joint_rows(rounds, "influence")}
    options = partial(_options, question, fit.choice, fit.outcome)
    return arms_of_rows.rows(question, fit, partial(_columns, question.profile), options)


def _events(question: Question, fit: ArmFit) -> EventSums | None:
    """Sums of uncommon rewards from which means, or a difference, are computed; None if unknown."""
    if question.profile.sums is not None:
        return arms_of_sums.events(question, fit.choice, fit.outcome)
    if not _by_rounds(question) or (fit.outcome is not None and fit.outcome.seen is not None):
        return None
    share = _shares(question, fit)
    if question.contrast:
        share = share[:, :1] - share[:, 1:]
    return event_sums(share, question.profile.log.arrays.reward, question.profile.two_values)


def _shares(question: Question, fit: ArmFit) -> FloatArray:
    """Weight of the reward of each round in each estimate, shape (T, k)."""
    if fit.choice.weights == JOINT:
        return joint_rows(joint_rounds(question, fit.outcome), "coefficient")
    columns = _columns(question.profile)
    scored = arm_scores(*columns, question.codes, **_options(question, fit.choice, fit.outcome))
    total = scored.weights.sum(axis=0)
    return scored.chosen * scored.weights / np.where(total > 0.0, total, np.nan) / columns[2][:, None]


def _of_counts(question: Question, verdict: Verdict) -> bool:
    """Whether rare rewards are counted, which requires their value to be known or every arm to have some."""
    profile, codes = question.profile, question.codes
    if profile.sums is not None:
        return profile.two_values is not None and not profile.repeated_units
    used = codes[profile.pulls[codes] > 0.0]
    return _by_rounds(question) and (profile.two_values is not None or bool(profile.uncommon[used].all()))


def _by_rounds(question: Question) -> bool:
    """Whether all rewards are known by round, in a log that is short enough to count rare ones."""
    profile = question.profile
    if profile.repeated_units or profile.incomplete:
        return False
    return profile.log.n_rounds * len(question.codes) <= _COUNTABLE


def _facts(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> WeightedFacts:
    """Facts for claims about a fit."""
    return WeightedFacts(question, fit.choice.weights, decay=fit.choice.decay, fit=fit, test=test)


IPW = ArmMethod(
    name="ipw",
    assess=partial(_assess, "ipw"),
    settle=partial(_settle, "ipw"),
    fit=_fit,
    length=weighted_length,
    claims=claims.FIT,
    facts=_facts,
    resolve_test=student_test,
    rows=_rows,
    events=_events,
    of_counts=_of_counts,
    options=("weights", "decay"),
    bound="propensities",
    takes_sums=True,
    pairs=True,
)
AIPW = ArmMethod(
    name="aipw",
    assess=partial(_assess, "aipw"),
    settle=partial(_settle, "aipw"),
    fit=_fit_augmented,
    length=weighted_length,
    claims=claims.FIT,
    facts=_facts,
    resolve_test=student_test,
    rows=_rows,
    events=_events,
    of_counts=_of_counts,
    options=("weights", "decay", "outcome", "ridge"),
    implied_by=("weights", "decay", "outcome", "ridge"),
    bound="propensities",
    takes_gaps=True,
    takes_sums=True,
    pairs=True,
)
