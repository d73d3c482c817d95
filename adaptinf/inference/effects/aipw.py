"""Augmented inverse propensity weighting by group.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.claims import first, said, sentence
from adaptinf.claims.effects import by_group as claims
from adaptinf.inference.distributions.references import Reference, StudentReference
from adaptinf.inference.distributions.sample_shape import uncommon_outcomes
from adaptinf.inference.distributions.skewed import skewed_difference
from adaptinf.inference.effects.group_facts import Rarity, WeightedFacts, WeightedFit
from adaptinf.inference.effects.groups import GroupEffects, group_aipw
from adaptinf.inference.effects.question import GroupQuestion
from adaptinf.inference.effects.record import GROUPS, EffectMethod, GroupFit
from adaptinf.inference.scores.inverse import Fixed, combined_weights
from adaptinf.inference.scores.means import UnitErrors
from adaptinf.inference.scores.unit_errors import unit_group_effects
from adaptinf.inference.validity import rare
from adaptinf.inference.validity.lengths import student_length, typical, weighted_errors
from adaptinf.inference.validity.methods import Verdict, refusal
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.typing import FloatArray, IntArray

_NAME = "aipw"
_KINDS = ("combined", "uniform", "sqrt")


def _assess(question: GroupQuestion) -> list[Verdict]:
    return [_verdict(question, weights) for weights in _KINDS]


def _verdict(question: GroupQuestion, weights: str) -> Verdict:
    facts, name = WeightedFacts(question, weights), f"{_NAME} with {weights} weights"
    rank = GROUPS[f"{weights} weights, by unit" if facts.by_unit else f"{weights} weights"]
    call: dict[str, Any] = {"estimator": _NAME, "weights": weights}
    call |= STATED if weights == "sqrt" else {}
    if why := first(claims.WEIGHTED_NEEDS, facts):
        return Verdict(name, "not valid", rank, call, why)
    reason = sentence(said(claims.WEIGHTED_REASONS, facts))
    warning = sentence(said(claims.WEIGHTED_CAUTIONS, facts))
    assumed = tuple(said(claims.WEIGHTED_ASSUMES, facts))
    return Verdict(name, "asymptotic", rank, call, reason, assumed, warning)


def _fit(question: GroupQuestion, weights: str | None = None, stationary: bool = False) -> GroupFit:
    kind = weights or _default_weights(question, stationary)
    weight, fixed = _weights(question, kind)
    found, errors = _effects(question, weight)
    control, treatment = found.count.T
    uncommon = _uncommon(question)
    std_error = np.where(rare.without_interval(uncommon), np.nan, found.std_error)
    skewness = question.profile.squared_skewness * found.unevenness.max(axis=1)
    corrected = errors is None and bool(np.any(skewness > rare.SKEWED))
    rarity = Rarity(uncommon, skewness, corrected)
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
    """Outcomes other than the commonest of either arm in each group, the fewer; shape (G,)."""
    arrays = question.profile.log.arrays
    rows = np.flatnonzero(question.weightable.keep & np.isin(arrays.action, question.pair))
    cell = 2 * question.group[rows] + (arrays.action[rows] == question.pair[1])
    counts = uncommon_outcomes(cell, arrays.reward[rows], 2 * len(question.terms))
    return np.asarray(counts.reshape(-1, 2).min(axis=1), dtype=np.float64)


def _law(found: GroupEffects, std_error: FloatArray, *, corrected: bool) -> Reference:
    """Student's t, or Hall's for either arm and MOVER for their difference; std_error (G,)."""
    if not corrected:
        return StudentReference(found.estimate, std_error, found.df)
    parts = np.where(np.isnan(std_error)[:, None], np.nan, found.arm_error)
    return skewed_difference(found.estimate, parts, found.skewness, found.df, found.correlation)


def _default_weights(question: GroupQuestion, stationary: bool) -> str:
    """Each arm's own where nothing drifts, else one for both arms; uniform where neither is known in time.

    Weights of units with several rounds are uniform, as others tie units together.
    """
    if question.by_unit is not None:
        return "uniform"
    if stationary and question.propensities is not None and not question.movers:
        return "sqrt"
    return "uniform" if refusal(lambda: question.combined) else "combined"


def _weights(question: GroupQuestion, kind: str) -> tuple[FloatArray | None, Fixed]:
    """Weights of both arms, shape (n, 2), None for uniform ones; and whose propensities fix them."""
    if kind == "combined":
        weight, fixed = question.combined
        return np.column_stack([weight, weight]), fixed
    if kind == "uniform":
        return None, "round"
    propensities, fixed = question.own
    return np.sqrt(propensities), fixed


def _effects(question: GroupQuestion, weight: FloatArray | None) -> tuple[GroupEffects, UnitErrors | None]:
    """Effects by group from the rounds used, where arms are 0 for control, 1 for treatment, else -1.

    Shapes: weight (n, 2).
    """
    profile, keep, both = question.profile, question.weightable.keep, question.propensities
    log, unit = profile.log, question.by_unit
    role = np.full(log.n_arms, -1)
    role[question.pair] = (0, 1)
    assert profile.propensity is not None
    rounds = (
        question.group[keep],
        role[log.arrays.action[keep]],
        log.arrays.reward[keep],
        profile.propensity[keep],
        len(question.labels),
    )
    if unit is None:
        return group_aipw(*rounds, None if both is None else both[keep], weight), None
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
    """Of inverse-propensity scores, by the propensities of the rounds used."""
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
    """Standard errors of differences with combined weights, whose terms all have one variance.

    Shapes: weight, group (n,); returns (size,).
    """
    total = np.bincount(group, weights=weight, minlength=size)
    count = np.bincount(group, minlength=size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0.0, std * np.sqrt(count) / total, np.inf)


AIPW: EffectMethod[GroupQuestion] = EffectMethod(_NAME, _assess, _fit, claims.WEIGHTED, length=aipw_length)
"""Over all rounds in which both arms could be chosen."""
