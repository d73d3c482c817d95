"""Notes under policy values: assumptions, adjustments, warnings, and why a number is missing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from adaptinf.claims import units
from adaptinf.errors import AdaptinfWarning
from adaptinf.inference.distributions.shape import uncommon_outcomes
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.policies.contrast_weights import NEAREST
from adaptinf.inference.policies.question import UNOBSERVED, PolicyQuestion
from adaptinf.inference.policies.scores import COMMON, SHARED, PolicyFit, PolicyOptions
from adaptinf.inference.scores.means import effective_events
from adaptinf.inference.scores.moving_effects import SEEN, moving_effects
from adaptinf.inference.scores.outcome_models import Outcome
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, TINY_PROPENSITY, LogProfile
from adaptinf.inference.validity.units import FEW_UNITS

_DRIFTING = "contexts and rewards that earlier arms do not change"
_ALIKE = "contexts and potential rewards that are independent and alike over the rounds"


def policy_notes(
    question: PolicyQuestion,
    terms: Sequence[str],
    fit: PolicyFit,
    options: PolicyOptions,
) -> tuple[str, ...]:
    """Assumptions and reasons under a table."""
    notes = [
        f"Assumes {_DRIFTING if options.weights in SHARED else _ALIKE}, propensities given the past and the "
        "context, and policies that were fixed without this log: one that was chosen on this very log looks "
        "better than it is, and nothing in the log shows it."
    ]
    notes += [] if options.outcome is None else [_model_note(options.outcome, fit)]
    notes.append(
        "Student's t with the effective number of rewards behind a value minus 1 degrees of freedom; behind "
        "a difference, of those for it or those against it, the fewer."
    )
    profile = question.profile
    if profile.estimated:
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if profile.log.arrays.propensities is None:
        notes.append(
            "The log has the chosen arm's propensity alone: that the design could choose every arm that a "
            "policy takes is assumed."
        )
    notes += _weight_notes(question, fit, options)
    return (*notes, *_gaps(question, terms, fit))


def _model_note(model: Outcome, fit: PolicyFit) -> str:
    """What predicts rewards; running means leave out a unit's own rounds where errors are by unit."""
    return model.note if fit.units is None or not isinstance(model.values, str) else units.OTHERS_MEAN()


def warn_of_few_rewards(few: Sequence[str]) -> None:
    """Warn of what `few_rewards` says."""
    for message in few:
        warnings.warn(f"{message}.", AdaptinfWarning, stacklevel=4)


def few_effective(terms: Sequence[str], fit: PolicyFit) -> list[str]:
    """Cautions where the standard error of a value rests on the worth of few rewards."""
    few_units = np.zeros(len(terms), dtype=bool) if fit.units is None else fit.units < FEW_UNITS
    return [
        f"{term}: worth {df + 1.0:.1f} rewards of equal weight, below {FEW_EFFECTIVE:g}: intervals may be "
        "short"
        for term, df, variance, told in zip(terms, fit.df, np.diag(fit.covariance), few_units, strict=True)
        if df + 1.0 < FEW_EFFECTIVE and variance > 0.0 and not told
    ]


def few_rewards(profile: LogProfile, fit: PolicyFit) -> list[str]:
    """Say where very small propensities, or few events, carry the estimates."""
    messages = []
    if np.any(fit.min_propensity < TINY_PROPENSITY):
        messages.append(
            f"The smallest propensity of an arm that a policy takes is {fit.min_propensity.min():.2g}, the "
            f"smallest effective sample size {fit.ess.min():.1f}: a few rounds may carry the estimate, and "
            "its interval may be far too short"
        )
    reward, sizes = profile.rewards, fit.ess[fit.ess > 0.0]
    uncommon = float(uncommon_outcomes(np.zeros(len(reward), dtype=np.int64), reward, 1)[0])
    rate = uncommon / max(len(reward), 1)
    if 0.0 < rate < 1.0 and np.any(effective_events(sizes, rate) < FEW_EVENTS):
        messages.append(
            f"An effective sample size of {sizes.min():.1f}, where {rate:.2g} of the outcomes are other than "
            f"the commonest, is worth {effective_events(sizes.min(), rate):.1f} of these, fewer than "
            f"{FEW_EVENTS}: the heavy rounds rarely hold one, so that estimate and standard error are too "
            "small together, and the interval may be far too short"
        )
    return messages


def drift_cautions(question: PolicyQuestion, options: PolicyOptions) -> list[str]:
    """That weights of a policy's own need rewards that stay, unless that is stated."""
    common = options.weights in SHARED or (question.contrast and options.weights is None)
    if common or options.stationary or question.profile.constant_propensities:
        return []
    if question.contrast:
        return [
            f"each policy has {options.weights} weights of its own, which assume that values stay: a drift "
            "that all arms share biases the difference (weights='combined' do not mind it; stationary=True "
            "says that there is none)"
        ]
    kind = options.label if options.weights is None else options.weights
    return [
        f"{kind} weights assume that the value stays: where it drifts the estimate is not its mean over the "
        "period (weights='uniform' give that; stationary=True says that there is no drift)"
    ]


def effect_cautions(
    question: PolicyQuestion, terms: Sequence[str], fit: PolicyFit, options: PolicyOptions
) -> list[str]:
    """That a difference is seen to move, so that combined weights and the period answer two questions."""
    if options.weights != COMMON:
        return []
    profile = question.profile
    unit = profile.units if fit.units is not None else None
    found = moving_effects(fit.rows["scores"], fit.rows["weights"], fit.df, unit)
    return [
        f"{term}: seen to move over the rounds (p = {p:.2g}): this is its mean with combined weights, "
        "weights='uniform' estimate its mean over the period"
        for term, p in zip(terms, found, strict=True)
        if p < SEEN / len(terms)
    ]


def _weight_notes(question: PolicyQuestion, fit: PolicyFit, options: PolicyOptions) -> list[str]:
    profile, notes = question.profile, list[str]()
    if options.weights == "uniform":
        notes.append(_uniform_note(question, options))
    if options.weights == COMMON:
        notes.append(
            f"Combined weights, one per round for both policies, by {_forecast_by(question, options)}: a "
            "drift that all arms share does no harm. Where the difference changes, the target is its mean "
            "over the rounds with these weights; uniform weights estimate the mean over the period."
        )
    if (options.contextual or options.weights == "min-variance") and profile.adaptive:
        notes.append(
            f"{'Contextual' if options.contextual else 'Min-variance'} weights: normal if the design's "
            "propensities settle; non-contextual stable-variance weights do not need that."
        )
    if options.logging is not None and options.logging.evaluate is not None:
        notes.append(
            f"Weights from {len(options.logging.starts)} snapshots of the design's policy, which agree with "
            "the logged propensities."
        )
    elif options.logging is not None and options.logging.lagged:
        notes.append(
            "Weights by the propensities of the round before, as contexts that the log lacks may have moved "
            "its own (snapshots='context-free' says that there were none)."
        )
    elif options.logging is not None and options.weights != COMMON:
        reason = "" if profile.log.context else " (the log has no contexts)"
        notes.append(f"Propensities are taken not to depend on contexts{reason}.")
    if options.estimator == "cadr":
        used = np.count_nonzero(fit.rows["weights"], axis=0)
        notes.append(
            f"CADR: the first {options.burn_in} rounds, and those before which no score varied, have no "
            f"weight; {int(used.min())} of {profile.log.n_rounds} rounds have one."
        )
    elif _first_without(options) and not fit.rows["weights"][0].all():
        notes.append("The first round has no weight, as there are no earlier contexts to average over.")
    return notes


def _uniform_note(question: PolicyQuestion, options: PolicyOptions) -> str:
    """What uniform weights estimate, and what guards against propensities that move."""
    note = "Uniform weights: what drifts is averaged over the period."
    if not question.profile.adaptive:
        return note
    note += " Not normal in general when propensities move with the data"
    if question.profile.repeated_units:
        return f"{note}."
    if question.contrast:
        return f"{note}; combined weights guard against that, and need every arm's propensity."
    unknown = options.defaulted and not question.settled_logging
    snapshots = ", and need the design's policies at all contexts (snapshots=)" if unknown else ""
    return f"{note}; stable-variance weights guard against that where rewards do not drift{snapshots}."


def _forecast_by(question: PolicyQuestion, options: PolicyOptions) -> str:
    """Whose propensities decide the weights, in words."""
    if options.logging is not None:
        known = "its own propensities, which were fixed before contexts"
        return known if options.logging.rows is not None else "the design's policies at earlier contexts"
    if question.profile.log.arrays.batch is not None:
        return f"the propensities of the batch before, or of {NEAREST} rounds where it is smaller"
    return (
        f"the propensities of the last {NEAREST} rounds, as contexts may have moved its own "
        "(context_free=True says that they had no part)"
    )


def _first_without(options: PolicyOptions) -> bool:
    """Whether it is for want of contexts alone that the first round may have no weight."""
    known = options.outcome is None or options.outcome.start == 0
    return known and options.logging is not None and not options.contextual


def _gaps(question: PolicyQuestion, terms: Sequence[str], fit: PolicyFit) -> list[str]:
    notes, log = [], question.profile.log
    gone, bare = question.unobserved(), question.unobserved(2)
    never = np.bincount(log.arrays.action, minlength=log.n_arms) == 0
    for policy, share in zip(question.policies, gone, strict=True):
        if share > 0.0:
            arms = ", ".join(str(arm) for arm, gone in zip(log.arms, never, strict=True) if gone)
            end = (
                "no estimate."
                if share >= UNOBSERVED
                else "the estimate leaves out what they would have earned."
            )
            notes.append(
                f"{policy.name}: {share:.2%} of its probability is on arms that were never chosen ({arms}), "
                f"of which nothing is known: {end}"
            )
    for policy, share, none in zip(question.policies, bare, gone, strict=True):
        if share >= UNOBSERVED > none:
            notes.append(
                f"{policy.name}: {share:.2%} of its probability is on arms with one reward at most, whose "
                "spread is unknown: no standard error."
            )
    for term, estimate, variance in zip(terms, fit.estimate, np.diag(fit.covariance), strict=True):
        if variance == 0.0:
            notes.append(f"{term}: its scores do not vary: no test or interval.")
        elif not np.isfinite(estimate) and fit.ess.max() == 0.0:
            notes.append(f"{term}: no round has a weight, so nothing is estimated.")
    return notes
