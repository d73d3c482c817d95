"""Assumptions, adjustments and reasons under the tables of arm means and contrasts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.fit import ArmFit
from adaptinf.inference.arms.rules import context_names
from adaptinf.inference.arms.sample_mean import SHORT_RUNS
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.two_samples import FEW_EVENTS, effective_events
from adaptinf.inference.validity.profile import FEW_REWARDS, TINY_PROPENSITY, is_binary, profile_of
from adaptinf.typing import Validity

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["fit_notes"]


def fit_notes(
    log: AdaptiveLog, fit: ArmFit, test: str, correction: Correction | None, *, exact: bool
) -> tuple[Validity, tuple[str, ...]]:
    """What the uncorrected numbers are worth, and the assumptions and reasons under a table."""
    validity: Validity = "exact" if exact else "asymptotic"
    if fit.sample is not None:
        valid, why = _sample_validity(log, fit, test, correction)
        validity = validity if valid else "not valid"
        notes = [why, *_sample_notes(log, fit, test, correction)]
    elif fit.arm_error is not None:
        notes = _equation_notes(log, fit)
    else:
        notes = _score_notes(log, fit)
    if fit.choice.reason:
        notes.append(f"Chosen as the first of recommend(log): {fit.choice.reason}.")
    return validity, (*notes, *_gaps(fit, test))


def _equation_notes(log: AdaptiveLog, fit: ArmFit) -> list[str]:
    notes = [
        "ALEE: assumes that an arm's mean and variance stay the same whenever it is chosen; needs no "
        "propensities. Its weights were fixed before the data, by pull count and the horizon."
    ]
    if fit.arm_error == "conservative":
        notes.append("Standard errors sigma / sum w: conservative, as the sum of squared weights is below 1.")
    else:
        notes.append(
            "Standard errors sigma sqrt(sum w^2) / sum w: shorter than the conservative ones; at moderate "
            "horizons their intervals cover less than they promise."
        )
    if log.context:
        notes.append("The log has contexts: the estimate is of the arm's mean only if they had no part.")
    elif log.arrays.propensity is not None and profile_of(log).varying_propensities:
        notes.append(
            "The log's propensities move and are not used: right only if earlier rewards moved them, not "
            "contexts that the log does not have."
        )
    return notes


def _sample_validity(
    log: AdaptiveLog, fit: ArmFit, test: str, correction: Correction | None
) -> tuple[bool, str]:
    if not fit.naive:
        return True, "Sample means: the design does not adapt to rewards, so no correction is due."
    if correction is not None:
        return False, "Sample means: not valid under adaptivity; the corrected columns account for it."
    known = profile_of(log).stability
    if known is not None and known.stable and test != "exact":
        title = profile_of(log).design_title
        settled = f"valid in long runs of {title}, whose arm counts settle ({known.source})"
        return True, f"Sample means: {settled}, given {known.condition}; {SHORT_RUNS}."
    return False, "Sample means: not valid under adaptivity; a naive baseline."


def _sample_notes(log: AdaptiveLog, fit: ArmFit, test: str, correction: Correction | None) -> list[str]:
    notes = []
    if log.context:
        notes.append(
            "The log has contexts: a sample mean is that of the rounds the arm got, which is the arm's mean "
            "only if the context had no part in the choice."
        )
    if fit.naive and log.design is None:
        notes.append("The log does not name its design, which is therefore taken to be adaptive.")
    if fit.naive and correction is None and log.guarantee is not None:
        notes.append(f"No corrected columns: {profile_of(log).no_correction}.")
    if test == "few":
        notes.append(
            f"An arm has fewer than {FEW_EVENTS} successes or failures: exact binomial tests of means, and "
            "the Agresti-Caffo adjustment of differences."
        )
    if test == "exact":
        notes.append("Exact tests assume independent 0/1 rewards with one success rate an arm.")
    return notes


def _score_notes(log: AdaptiveLog, fit: ArmFit) -> list[str]:
    choice = fit.choice
    rests = "propensities given the past, positive in every round, and arm means that stay the same"
    if choice.weights != "uniform" and not log.context and log.context_free is None:
        rests += "; that the choice of arms used no contexts, as the log has none"
    notes = [f"Assumes {rests}."]
    if fit.outcome is not None:
        notes.append(fit.outcome.note)
    if log.propensity_status == "estimated":
        notes.append(
            "Propensities were estimated: that they are right is an assumption, their error is ignored."
        )
    if log.arrays.propensities is None:
        notes.append(
            "The log has the chosen arm's propensity alone: that each arm could be chosen is assumed."
        )
    if choice.weights == "uniform" and profile_of(log).context_may_move:
        notes.append(
            f"Uniform weights, because {context_names(log)} may move the propensities: weights made from "
            "these would count contexts unequally. Not normal in general when propensities move with the "
            "data."
        )
    elif choice.weights == "uniform" and profile_of(log).adaptive:
        notes.append(
            "Uniform weights: not normal in general when propensities move with the data; sqrt and two-point "
            "weights guard against that and need every arm's propensity."
        )
    if choice.weights != "uniform" and log.context and not profile_of(log).context_free:
        notes.append(
            f"Valid only if the propensities do not depend on {context_names(log)}: weights made from "
            "propensities that do would count contexts unequally, which biases the means."
        )
    if choice.weights == "two-point":
        notes.append(f"Two-point weights: propensity floor of decay {choice.decay:g}.")
    if is_binary(log.arrays.reward):
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


def _gaps(fit: ArmFit, test: str) -> list[str]:
    notes = [
        f"{arm}: never chosen, so nothing is estimated."
        for arm, n in zip(fit.labels, fit.pulls, strict=True)
        if n == 0
    ]
    if test in ("exact", "few"):
        return notes
    for arm, n, size in zip(fit.labels, fit.pulls, fit.std_error, strict=True):
        if n == 1 and math.isnan(size):
            notes.append(f"{arm}: chosen once, so it has no standard error.")
        if size == 0.0:
            notes.append(
                f"{arm}: its rewards do not vary: no test or interval, of differences from it neither (exact "
                "ones need sample means)."
            )
    return notes
