"""Differences in means by group: over randomised rounds, or pooled over all of constant propensity.

References
----------
Welch (1947), "The generalization of 'Student's' problem when several different population variances are
involved". Agresti, Caffo (2000), "Simple and effective confidence intervals for proportions and differences
of proportions result from adding two successes and two failures".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from adaptinf.claims import said, sentence
from adaptinf.claims.effects import by_group as claims
from adaptinf.inference.distributions.references import Reference
from adaptinf.inference.distributions.sample_shape import uncommon_outcomes
from adaptinf.inference.distributions.skewed import skewed_difference
from adaptinf.inference.distributions.two_samples import (
    Difference,
    DifferenceReference,
    agresti_caffo,
    choose_difference,
    few_events,
    welch,
)
from adaptinf.inference.effects.group_facts import DifferenceFacts, DifferenceFit, Rarity
from adaptinf.inference.effects.groups import ArmMoments, arm_moments, arm_skewness
from adaptinf.inference.effects.question import GroupQuestion
from adaptinf.inference.effects.record import GROUPS, EffectMethod, GroupFit
from adaptinf.inference.validity import rare
from adaptinf.inference.validity.lengths import student_length, typical
from adaptinf.inference.validity.methods import Verdict
from adaptinf.typing import FloatArray, IntArray

_NAME = "difference-in-means"
_POOLED = f"{_NAME}, pooled"


def _assess(question: GroupQuestion, *, pooled: bool = False) -> list[Verdict]:
    if pooled and question.marked is not None:
        return []
    name, call = (_POOLED, {"estimator": _NAME, "pooled": True}) if pooled else (_NAME, {"estimator": _NAME})
    facts, rank = DifferenceFacts(question, pooled=pooled), GROUPS[name]
    if why := facts.rounds_refusal:
        return [Verdict(name, "not valid", rank, call, why)]
    reason = sentence(said(claims.DIFFERENCE_REASONS, facts))
    return [Verdict(name, "asymptotic", rank, call, reason, tuple(said(claims.SAME_EFFECT, facts)))]


def _fit(question: GroupQuestion, *, pooled: bool = False) -> GroupFit:
    arrays, terms = question.profile.log.arrays, question.terms
    rounds = question.pooled if pooled else question.randomised
    rows = np.flatnonzero(rounds.keep & np.isin(arrays.action, question.pair))
    treated = (arrays.action[rows] == question.pair[1]).astype(np.int64)
    rewards = _Rewards(question.group[rows], treated, arrays.reward[rows])
    moments = arm_moments(rewards.group, treated, rewards.reward, len(terms))
    (n0, n1), (m0, m1), (v0, v1) = (part.T for part in (moments.count, moments.mean, moments.variance))
    difference = welch(n1, m1, v1, n0, m0, v0)
    if question.profile.two_values is None:
        law = _skewed(question, rewards, moments, difference)
    else:
        low, high = question.profile.two_values
        step = high - low
        arms = (n1, np.rint(n1 * ((m1 - low) / step)), n0, np.rint(n0 * ((m0 - low) / step)))
        difference = choose_difference(difference, agresti_caffo(*arms, step), few_events(*arms))
        rarity = _few_events(arms, difference)
        law = _Law(DifferenceReference(difference), difference.std_error, rarity)
    found = DifferenceFit(rounds, difference, moments.count, law.rarity)
    return GroupFit(
        estimate=difference.estimate,
        std_error=law.std_error,
        reference=law.reference,
        details={"pulls_treatment": n1, "pulls_control": n0, "ess": np.minimum(n1, n0)},
        facts=DifferenceFacts(question, pooled=pooled, fit=found),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Rewards:
    """Rewards of the rounds used; group, treated, reward (n,)."""

    group: IntArray
    treated: IntArray
    reward: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """The law of the differences, and how rare outcomes are; std_error (G,)."""

    reference: Reference
    std_error: FloatArray
    rarity: Rarity


def _few_events(arms: tuple[FloatArray, ...], difference: Difference) -> Rarity:
    """Of groups that are not adjusted for few events; arms (G,), counts and successes in turn."""
    n1, s1, n0, s0 = arms
    fewest = np.minimum(np.minimum(s1, n1 - s1), np.minimum(s0, n0 - s0))
    uncommon = np.where(difference.adjusted | ~(difference.std_error > 0.0), np.inf, fewest)
    return Rarity(uncommon, np.zeros(len(uncommon)))


def _skewed(question: GroupQuestion, rewards: _Rewards, moments: ArmMoments, difference: Difference) -> _Law:
    """Welch's t, corrected where rewards are skewed, for groups whose outcomes are not too rare."""
    terms = question.terms
    cell = 2 * rewards.group + rewards.treated
    counts = uncommon_outcomes(cell, rewards.reward, 2 * len(terms))
    uncommon = counts.reshape(-1, 2).min(axis=1)
    hidden = rare.without_interval(uncommon)
    std_error = np.where(hidden, np.nan, difference.std_error)
    skewness = question.profile.squared_skewness / np.maximum(moments.count.min(axis=1), 1.0)
    if not np.any(skewness > rare.SKEWED):
        reference = DifferenceReference(replace(difference, std_error=std_error))
        return _Law(reference, std_error, Rarity(uncommon, skewness))
    parts = np.sqrt(moments.variance / np.maximum(moments.count, 1.0))
    parts[hidden] = np.nan
    shape = arm_skewness(rewards.group, rewards.treated, rewards.reward, moments)
    unrelated = np.zeros(len(terms))
    law = skewed_difference(difference.estimate, parts, shape, difference.df, unrelated)
    return _Law(law, std_error, Rarity(uncommon, skewness, corrected=True))


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


DIFFERENCE_IN_MEANS: EffectMethod[GroupQuestion] = EffectMethod(
    _NAME, _assess, _fit, claims.DIFFERENCE, length=difference_length
)
"""Over the rounds whose arm was drawn at random."""
POOLED: EffectMethod[GroupQuestion] = EffectMethod(
    _POOLED,
    partial(_assess, pooled=True),
    partial(_fit, pooled=True),
    claims.DIFFERENCE,
    length=difference_length,
)
"""Over every round of the phase, where propensities are constant within each group."""
