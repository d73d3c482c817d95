"""Differences in means by group: over randomised rounds, or pooled over all of constant propensity.

References
----------
Welch (1947), "The generalization of 'Student's' problem when several different population variances are
involved". Agresti, Caffo (2000), "Simple and effective confidence intervals for proportions and differences
of proportions result from adding two successes and two failures".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.distributions.two_samples import (
    DifferenceReference,
    agresti_caffo,
    choose_difference,
    few_events,
    welch,
)
from adaptinf.inference.effects.groups import arm_moments
from adaptinf.inference.effects.notes import SAME_EFFECT, adjustment_notes, gap_notes
from adaptinf.inference.effects.question import GroupQuestion, group_results
from adaptinf.inference.validity.lengths import student_length, typical
from adaptinf.inference.validity.methods import MethodRecord, refusal
from adaptinf.inference.validity.verdicts import Verdict

if TYPE_CHECKING:
    from adaptinf.inference.effects.comparisons import GroupResults
    from adaptinf.inference.effects.rounds import Rounds

_NAME = "difference-in-means"


def _assess(question: GroupQuestion) -> list[Verdict]:
    call = {"estimator": _NAME}
    why = refusal(lambda: question.randomised)
    if why:
        return [Verdict(_NAME, "not valid", 10.0, call, why)]
    reason = "arms were drawn with fixed probabilities in these rounds: plain means are unbiased"
    return [Verdict(_NAME, "asymptotic", 10.0, call, reason, SAME_EFFECT)]


def _assess_pooled(question: GroupQuestion) -> list[Verdict]:
    if question.marked is not None:
        return []
    name, call = f"{_NAME}, pooled", {"estimator": _NAME, "pooled": True}
    why = refusal(lambda: question.pooled)
    if why:
        return [Verdict(name, "not valid", 12.0, call, why)]
    reason = "propensities are constant within each group: every round of the phase counts"
    return [Verdict(name, "asymptotic", 12.0, call, reason, SAME_EFFECT)]


def _fit(question: GroupQuestion, rounds: Rounds, null: float) -> GroupResults:
    arrays, terms = question.profile.log.arrays, question.terms
    rows = np.flatnonzero(rounds.keep & np.isin(arrays.action, question.pair))
    treated = (arrays.action[rows] == question.pair[1]).astype(np.int64)
    moments = arm_moments(question.group[rows], treated, arrays.reward[rows], len(terms))
    (n0, n1), (m0, m1), (v0, v1) = (part.T for part in (moments.count, moments.mean, moments.variance))
    difference = welch(n1, m1, v1, n0, m0, v0)
    if question.profile.binary:
        arms = (n1, np.rint(n1 * m1), n0, np.rint(n0 * m0))
        difference = choose_difference(difference, agresti_caffo(*arms), few_events(*arms))
    return group_results(
        question,
        _NAME,
        difference.estimate,
        difference.std_error,
        DifferenceReference(difference),
        null=null,
        details={"pulls_treatment": n1, "pulls_control": n0, "ess": np.minimum(n1, n0)},
        notes=(
            *rounds.notes,
            *adjustment_notes(terms, difference),
            *gap_notes(terms, moments.count, difference.std_error),
        ),
    )


def difference_length(question: GroupQuestion, verdict: Verdict) -> float:
    """Of differences in means, by the counts of the rounds used."""
    rounds = question.pooled if verdict.arguments.get("pooled") else question.randomised
    action, size = question.profile.log.arrays.action, len(question.labels)
    control, treated = (
        np.bincount(question.group[rounds.keep & (action == code)], minlength=size) for code in question.pair
    )
    with np.errstate(divide="ignore"):
        error = question.profile.pooled_std * np.sqrt(1.0 / control + 1.0 / treated)
    return typical(student_length(error, np.minimum(control, treated) - 1.0))


DIFFERENCE_IN_MEANS: MethodRecord[GroupQuestion] = MethodRecord(
    _NAME, _assess, lambda question, null: _fit(question, question.randomised, null), length=difference_length
)
"""Over the rounds whose arm was drawn at random."""
POOLED: MethodRecord[GroupQuestion] = MethodRecord(
    f"{_NAME}, pooled",
    _assess_pooled,
    lambda question, null: _fit(question, question.pooled, null),
    length=difference_length,
)
"""Over every round of the phase, where propensities are constant within each group."""
