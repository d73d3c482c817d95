"""Methods for effects by group: differences in means, inverse weighting, and private releases.

References
----------
Welch (1947), "The generalization of 'Student's' problem when several different population variances are
involved". Agresti, Caffo (2000), "Simple and effective confidence intervals for proportions and differences
of proportions result from adding two successes and two failures". Hadad, Hirshberg, Zhan, Wager, Athey
(2021), "Confidence intervals for policy evaluation in adaptive experiments".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import first, said, sentence
from adaptinf.claims.effects import by_group as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import Reference, StudentReference
from adaptinf.inference.distributions.sample_shape import combined_skewness, uncommon_outcomes
from adaptinf.inference.distributions.skewed import skewed_difference
from adaptinf.inference.distributions.two_samples import (
    Difference,
    DifferenceReference,
    agresti_caffo,
    choose_difference,
    few_events,
    welch,
)
from adaptinf.inference.effects.effect_methods import GROUPS, EffectMethod, GroupFit
from adaptinf.inference.effects.group_facts import (
    DifferenceFacts,
    DifferenceFit,
    Rarity,
    ReleasedFacts,
    WeightedFacts,
    WeightedFit,
)
from adaptinf.inference.effects.group_question import GroupQuestion, group_terms
from adaptinf.inference.effects.group_scores import (
    ArmMoments,
    GroupEffects,
    arm_moments,
    arm_skewness,
    group_aipw,
)
from adaptinf.inference.released.effects import ReleasedReference, released_std_error
from adaptinf.inference.released.group_effects import ReleasedEffects, released_effects
from adaptinf.inference.released.pair_effects import refuse_repeated_units
from adaptinf.inference.scores.inverse import Fixed, combined_weights
from adaptinf.inference.scores.means import UnitErrors
from adaptinf.inference.scores.unit_errors import unit_group_effects
from adaptinf.inference.validity import rare
from adaptinf.inference.validity.lengths import student_length, typical, weighted_errors
from adaptinf.inference.validity.methods import Verdict, refusal
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog, PublicLog


_DIFFERENCE = "difference-in-means"
_POOLED = f"{_DIFFERENCE}, pooled"


def _assess_difference(question: GroupQuestion, *, pooled: bool = False) -> list[Verdict]:
    if pooled and question.marked is not None:
        return []
    name, call = (
        (_POOLED, {"estimator": _DIFFERENCE, "pooled": True})
        if pooled
        else (_DIFFERENCE, {"estimator": _DIFFERENCE})
    )
    facts, rank = DifferenceFacts(question, pooled=pooled), GROUPS[name]
    if why := facts.rounds_refusal:
        return [Verdict(name, "not valid", rank, call, why)]
    reason = sentence(said(claims.DIFFERENCE_REASONS, facts))
    assumed = tuple(said((*claims.DIFFERENCE_ASSUMES, *claims.SAME_EFFECT), facts))
    return [Verdict(name, "asymptotic", rank, call, reason, assumed)]


def _fit_difference(question: GroupQuestion, *, pooled: bool = False) -> GroupFit:
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
        law = _DifferenceLaw(DifferenceReference(difference), difference.std_error, rarity)
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
    """Rewards in the rounds used; group, treated and reward have shape (n,)."""

    group: IntArray
    treated: IntArray
    reward: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _DifferenceLaw:
    """The distribution of the differences, with the rarity of outcomes; std_error has shape (G,)."""

    reference: Reference
    std_error: FloatArray
    rarity: Rarity


def _few_events(arms: tuple[FloatArray, ...], difference: Difference) -> Rarity:
    """Rarity of events in groups without an adjustment; arms has the counts and successes of each arm."""
    n1, s1, n0, s0 = arms
    fewest = np.minimum(np.minimum(s1, n1 - s1), np.minimum(s0, n0 - s0))
    uncommon = np.where(difference.adjusted | ~(difference.std_error > 0.0), np.inf, fewest)
    return Rarity(uncommon, np.zeros(len(uncommon)))


def _skewed(
    question: GroupQuestion, rewards: _Rewards, moments: ArmMoments, difference: Difference
) -> _DifferenceLaw:
    """Welch's t, corrected for skewness if rewards are skewed, in groups whose outcomes are not too rare."""
    terms = question.terms
    cell = 2 * rewards.group + rewards.treated
    counts = uncommon_outcomes(cell, rewards.reward, 2 * len(terms))
    uncommon = counts.reshape(-1, 2).min(axis=1)
    hidden = rare.without_interval(uncommon)
    std_error = np.where(hidden, np.nan, difference.std_error)
    inverse = 1.0 / np.maximum(moments.count, 1.0)
    own = question.profile.squared_skewness * inverse
    skewness = own.max(axis=1)
    if not np.any(skewness > rare.SKEWED):
        reference = DifferenceReference(replace(difference, std_error=std_error))
        return _DifferenceLaw(reference, std_error, Rarity(uncommon, skewness))
    parts = np.sqrt(moments.variance / np.maximum(moments.count, 1.0))
    parts[hidden] = np.nan
    tails = rare.tail_errors(combined_skewness(own, inverse), question.profile.skewness_doubt)
    shape = arm_skewness(rewards.group, rewards.treated, rewards.reward, moments)
    unrelated = np.zeros(len(terms))
    law = skewed_difference(difference.estimate, parts, shape, difference.df, unrelated)
    return _DifferenceLaw(law, std_error, Rarity(uncommon, skewness, tails))


def difference_length(question: GroupQuestion, verdict: Verdict) -> float:
    """Expected length for differences in means, from counts in the rounds used."""
    rounds = question.pooled if verdict.arguments.get("pooled") else question.randomised
    action, size = question.profile.log.arrays.action, len(question.labels)
    control, treated = (
        np.bincount(question.group[rounds.keep & (action == code)], minlength=size) for code in question.pair
    )
    with np.errstate(divide="ignore"):
        error = question.profile.pooled_std * np.sqrt(1.0 / control + 1.0 / treated)
    return typical(student_length(error, np.minimum(control, treated) - 1.0))


DIFFERENCE_IN_MEANS: EffectMethod[GroupQuestion] = EffectMethod(
    _DIFFERENCE, _assess_difference, _fit_difference, claims.DIFFERENCE, length=difference_length
)
"""This method uses the rounds whose arm was drawn at random."""
POOLED: EffectMethod[GroupQuestion] = EffectMethod(
    _POOLED,
    partial(_assess_difference, pooled=True),
    partial(_fit_difference, pooled=True),
    claims.DIFFERENCE,
    length=difference_length,
)
"""This method uses all rounds of the phase, if propensities are constant within each group."""


_WEIGHTED = "aipw"
_KINDS = ("combined", "uniform", "sqrt")


def _assess_weighted(question: GroupQuestion) -> list[Verdict]:
    return [_verdict(question, weights) for weights in _KINDS]


def _verdict(question: GroupQuestion, weights: str) -> Verdict:
    facts, name = WeightedFacts(question, weights), f"{_WEIGHTED} with {weights} weights"
    rank = GROUPS[f"{weights} weights, by unit" if facts.by_unit else f"{weights} weights"]
    call: dict[str, Any] = {"estimator": _WEIGHTED, "weights": weights}
    call |= STATED if weights == "sqrt" else {}
    if why := first(claims.WEIGHTED_NEEDS, facts):
        return Verdict(name, "not valid", rank, call, why)
    reason = sentence(said(claims.WEIGHTED_REASONS, facts))
    warning = sentence(said(claims.WEIGHTED_CAUTIONS, facts))
    assumed = tuple(said(claims.WEIGHTED_ASSUMES, facts))
    return Verdict(name, "asymptotic", rank, call, reason, assumed, warning)


def _fit_weighted(question: GroupQuestion, weights: str | None = None, stationary: bool = False) -> GroupFit:
    kind = weights or _default_weights(question, stationary)
    weight, fixed = _weights(question, kind)
    found, errors = _effects(question, weight)
    control, treatment = found.count.T
    uncommon = _uncommon(question)
    std_error = np.where(rare.without_interval(uncommon), np.nan, found.std_error)
    own = question.profile.squared_skewness * found.unevenness
    skewness = own.max(axis=1)
    corrected = errors is None and bool(np.any(skewness > rare.SKEWED))
    combined = combined_skewness(own, found.arm_error**2)
    tails = rare.tail_errors(combined, question.profile.skewness_doubt) if corrected else None
    rarity = Rarity(uncommon, skewness, tails)
    asked = weights is not None or question.propensities is None
    fit = WeightedFit(found, errors, fixed, std_error, rarity, asked, stationary)
    return GroupFit(
        estimate=found.estimate,
        std_error=std_error,
        reference=_law(found, std_error, corrected=corrected),
        weights=kind,
        details={
            "pulls_treatment": treatment,
            "pulls_control": control,
            "ess": found.ess,
            "min_propensity": found.min_propensity,
        },
        facts=WeightedFacts(question, kind, fit),
        covariance=None if errors is None else errors.covariance,
    )


def _uncommon(question: GroupQuestion) -> FloatArray:
    """Number of uncommon outcomes in each group, in the arm that has fewer of them; shape (G,)."""
    arrays = question.profile.log.arrays
    rows = np.flatnonzero(question.weightable.keep & np.isin(arrays.action, question.pair))
    cell = 2 * question.group[rows] + (arrays.action[rows] == question.pair[1])
    counts = uncommon_outcomes(cell, arrays.reward[rows], 2 * len(question.terms))
    return np.asarray(counts.reshape(-1, 2).min(axis=1), dtype=np.float64)


def _law(found: GroupEffects, std_error: FloatArray, *, corrected: bool) -> Reference:
    """Student's t, or Hall's method for each arm with MOVER for the difference; std_error (G,)."""
    if not corrected:
        return StudentReference(found.estimate, std_error, found.df)
    parts = np.where(np.isnan(std_error)[:, None], np.nan, found.arm_error)
    return skewed_difference(found.estimate, parts, found.skewness, found.df, found.correlation)


def _default_weights(question: GroupQuestion, stationary: bool) -> str:
    """Separate weights for each arm if there is no drift, or else shared ones; uniform if none are known.

    If units have several rounds, weights are uniform, because other weights would create dependence between
    units.
    """
    if question.by_unit is not None:
        return "uniform"
    if stationary and question.propensities is not None and not question.movers:
        return "sqrt"
    return "uniform" if refusal(lambda: question.combined) else "combined"


def _weights(question: GroupQuestion, kind: str) -> tuple[FloatArray | None, Fixed]:
    """Weights (n, 2), or (n, 1) if shared, or None if uniform, and the source of their propensities."""
    if kind == "combined":
        weight, fixed = question.combined
        return weight[:, None], fixed
    if kind == "uniform":
        return None, "round"
    propensities, fixed = question.own
    return np.sqrt(propensities), fixed


def _effects(question: GroupQuestion, weight: FloatArray | None) -> tuple[GroupEffects, UnitErrors | None]:
    """Effects by group in the rounds used, with errors by unit if units have several rounds.

    Shapes: weight (n, 2), or (n, 1) if both arms share it.
    """
    profile, keep, both = question.profile, question.weightable.keep, question.propensities
    log, unit = profile.log, question.by_unit
    role = np.full(log.n_arms, -1)
    role[question.pair] = (0, 1)
    assert profile.propensity is not None
    used = slice(None) if keep.all() else keep  # without copies of what is used as it is
    rounds = (
        question.group[used],
        role[log.arrays.action[used]],
        log.arrays.reward[used],
        profile.propensity[used],
        len(question.labels),
    )
    if unit is None:
        return group_aipw(*rounds, None if both is None else both[used], weight), None
    found = unit_group_effects(*rounds, unit, weight)
    errors = found.errors
    size = np.sqrt(np.diag(errors.covariance))
    std_error = np.where(size > 0.0, size, np.nan)
    parts = found.estimate, std_error, errors.freedom, found.count, found.used, found.ess
    each = np.repeat(errors.units[:, None], 2, axis=1)
    unknown = np.full(each.shape, np.nan)
    uneven = 1.0 / np.maximum(each, 1.0)
    return GroupEffects(*parts, found.min_propensity, unknown, unknown, uneven, unknown[:, 0]), errors


def aipw_length(question: GroupQuestion, verdict: Verdict) -> float:
    """Expected length for inverse-propensity scores, from propensities in the rounds used."""
    log, size = question.profile.log, len(question.labels)
    kind, std = verdict.arguments["weights"], question.profile.pooled_std
    assert log.arrays.propensity is not None
    role = np.full(log.n_arms, -1)
    role[question.pair] = (0, 1)
    rows = np.flatnonzero(question.weightable.keep & (role[log.arrays.action] >= 0))
    own = log.arrays.propensity[rows]
    weight = np.sqrt(own) if kind == "sqrt" else np.ones(len(rows))
    keep, one = question.weightable.keep, None
    if kind == "combined":
        assert question.propensities is not None
        one = combined_weights(question.propensities)
        weight = one[rows]
    position = 2 * question.group[rows] + role[log.arrays.action[rows]]
    error, freedom = weighted_errors(position, own, weight, 2 * size, 0.0, std)
    spread = np.sqrt((error.reshape(size, 2) ** 2).sum(axis=1))
    if one is not None:
        spread = _combined_errors(one[keep], question.group[keep], size, std)
    return typical(student_length(spread, freedom.reshape(size, 2).min(axis=1)))


def _combined_errors(weight: FloatArray, group: IntArray, size: int, std: float) -> FloatArray:
    """Standard errors of differences with combined weights, for which all terms have equal variance.

    Shapes: weight, group (n,); returns (size,).
    """
    total = np.bincount(group, weights=weight, minlength=size)
    count = np.bincount(group, minlength=size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0.0, std * np.sqrt(count) / total, np.inf)


AIPW: EffectMethod[GroupQuestion] = EffectMethod(
    _WEIGHTED, _assess_weighted, _fit_weighted, claims.WEIGHTED, length=aipw_length
)
"""This method uses all rounds in which both arms could be chosen."""


_RELEASED = "released"


def _assess_released(question: GroupQuestion) -> list[Verdict]:
    if question.marked is not None:
        return []
    call, rank = {"estimator": _RELEASED}, GROUPS[_RELEASED]
    why = refusal(matching_effects, question)
    if why:
        return [Verdict(_RELEASED, "not valid", rank, call, why)]
    facts = ReleasedFacts(question)
    reason = sentence(said(claims.RELEASED_REASONS, facts))
    return [Verdict(_RELEASED, "asymptotic", rank, call, reason, tuple(said(claims.SAME_EFFECT, facts)))]


def matching_effects(question: GroupQuestion) -> ReleasedEffects:
    """Effects from the releases; refused if these are not for the requested groups."""
    log: AdaptiveLog | PublicLog = question.profile.log
    refuse_repeated_units(_RELEASED, log, last_stretch=True)
    effects = released_effects(log)
    observed = {label[0] for label in question.labels}
    if len(question.by) > 1 or not observed <= set(effects.groups):
        shown, by = ", ".join(map(repr, effects.groups[:10])), ", ".join(question.by)
        raise InvalidForLog(_RELEASED, claims.OTHER_LABELS(groups=shown, by=by), ())
    return effects


def _fit_released(question: GroupQuestion) -> GroupFit:
    if question.marked is not None:
        raise ParameterError("CATE.fit", ["rounds= does not apply to releases: omit it"])
    effects = matching_effects(question)
    if question.pair[1] == 0:
        effect = replace(effects.effect, center=-effects.effect.center)
        effects = replace(effects, effect=effect, estimate=-effects.estimate)
    terms = group_terms(question.by, [(label,) for label in effects.groups])
    reference = ReleasedReference(effects.effect)
    return GroupFit(
        estimate=effects.estimate,
        std_error=released_std_error(effects.effect),
        reference=reference,
        details=effects.details,
        facts=ReleasedFacts(question, effects, reference, terms),
        terms=terms,
        groups=effects.groups,
        private=True,
    )


RELEASED: EffectMethod[GroupQuestion] = EffectMethod(
    _RELEASED, _assess_released, _fit_released, claims.RELEASED
)
"""This method uses only the log's private releases."""
