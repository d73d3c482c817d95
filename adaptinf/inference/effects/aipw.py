"""Augmented inverse propensity weighting by group.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import propensities, rare_outcomes, stationarity, units
from adaptinf.inference.distributions.base import Reference, StudentReference
from adaptinf.inference.distributions.shape import uncommon_outcomes
from adaptinf.inference.distributions.skewed import skewed_difference
from adaptinf.inference.effects.groups import GroupEffects, group_aipw
from adaptinf.inference.effects.notes import (
    BOTH_PROPENSITIES,
    estimated_propensities,
    few_effective,
    gap_notes,
    tiny_cautions,
    warn_of_tiny,
    weight_notes,
)
from adaptinf.inference.effects.question import GroupQuestion, group_results
from adaptinf.inference.scores.by_unit.units import FEWEST_EVENTS, UnitErrors, unit_group_effects
from adaptinf.inference.scores.inverse import Fixed, combined_weights
from adaptinf.inference.validity import rare
from adaptinf.inference.validity.lengths import student_length, typical, weighted_errors
from adaptinf.inference.validity.methods import MethodRecord, refusal
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.inference.validity.units import (
    FEW_UNITS,
    event_gaps,
    unit_cautions,
    unit_notes,
)
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.comparisons import GroupResults

_NAME = "aipw"
_MODEL = (
    "Outcome model: the arm's mean reward over the earlier rounds of its group among these, before its first "
    "one the mean of all; the first round has no weight. Student's t with an arm's effective number of "
    "rewards minus 1 degrees of freedom, the smaller arm's.",
)
_OWN = "the logged propensities are the design's own"
_COMMON_DRIFT = f"{_OWN}; drift common to both arms is allowed, an effect that changes is averaged"
_NO_DRIFT = f"{_OWN}; no drift: each arm's mean within a group stays the same"


def _assess(question: GroupQuestion) -> list[Verdict]:
    why = refusal(lambda: question.weightable)
    combined = why or refusal(lambda: question.combined)
    sqrt = why or ("" if question.propensities is not None else BOTH_PROPENSITIES)
    even = "inverse propensities, with one weight for both arms that keeps the variance even"
    own = "inverse propensities, with weights of each arm's own that keep the variance even"
    every = "inverse propensities over all rounds in which both arms could be chosen"
    caution = propensities.UNSETTLED() if question.profile.moves else ""
    if not why and question.by_unit is not None:
        return _assess_by_unit(combined, sqrt, every, caution)
    return [
        _verdict("combined", 14.0, combined, even, _COMMON_DRIFT, ""),
        _verdict("uniform", 15.0, why, every, _COMMON_DRIFT, caution),
        _verdict("sqrt", 16.0, sqrt, own, _NO_DRIFT, ""),
    ]


def _assess_by_unit(combined: str, sqrt: str, every: str, caution: str) -> list[Verdict]:
    """Uniform weights first, which do not tie units together."""
    independent = f"{units.INDEPENDENT()}, and {units.NO_CARRY_OVER()}"
    reason, assumes = f"{every}; {units.BY_UNIT()}", f"{_OWN}; {independent}"
    return [
        _verdict("uniform", 14.0, "", reason, assumes, caution),
        _verdict("combined", 15.0, combined, reason, assumes, units.TIED()),
        _verdict("sqrt", 16.0, sqrt, reason, f"{assumes}; no drift", units.TIED()),
    ]


def _verdict(weights: str, rank: float, why: str, reason: str, assumes: str, warning: str) -> Verdict:
    name = f"{_NAME} with {weights} weights"
    call: dict[str, Any] = {"estimator": _NAME, "weights": weights}
    call |= STATED if weights == "sqrt" else {}
    if why:
        return Verdict(name, "not valid", rank, call, why)
    return Verdict(name, "asymptotic", rank, call, reason, (assumes,), warning)


def _fit(
    question: GroupQuestion, null: float, weights: str | None = None, stationary: bool = False
) -> GroupResults:
    rounds = question.weightable
    kind = weights or _default_weights(question, stationary)
    weight, fixed = _weights(question, kind)
    found, errors = _effects(question, weight)
    tiny = tiny_cautions(question.terms, found.min_propensity, found.ess)
    warn_of_tiny("CATE.fit", tiny)
    control, treatment = found.count.T
    asked = weights is not None or question.propensities is None
    uncommon = _uncommon(question)
    std_error = np.where(rare.without_interval(uncommon), np.nan, found.std_error)
    skewness = question.profile.squared_skewness * found.unevenness.max(axis=1)
    corrected = errors is None and bool(np.any(skewness > rare.SKEWED))
    law = _law(found, std_error, corrected=corrected)
    return group_results(
        question,
        _NAME,
        found.estimate,
        std_error,
        law,
        null=null,
        weights=kind,
        details={
            "pulls_treatment": treatment,
            "pulls_control": control,
            "ess": found.ess,
            "min_propensity": found.min_propensity,
        },
        notes=(
            *rounds.notes,
            *(_MODEL if errors is None else _unit_notes(question, errors)),
            *weight_notes(question.movers, kind, fixed=fixed, asked=asked),
            *estimated_propensities(question.profile),
            *([rare_outcomes.CORRECTED()] if corrected else []),
            *gap_notes(question.terms, found.used, _told(found.std_error, errors)),
            *rare.rare_notes(question.terms, uncommon),
        ),
        cautions=(
            *question.profile.propensity_cautions,
            *([stationarity.OWN_WEIGHTS(weights=kind)] if kind == "sqrt" and not stationary else []),
            *_unit_cautions(question, errors, kind),
            *few_effective(question.terms, found.df, _uncautioned(std_error, errors)),
            *rare.rare_cautions(question.terms, uncommon, skewness),
            *tiny,
        ),
        covariance=None if errors is None else errors.covariance,
    )


def _unit_notes(question: GroupQuestion, errors: UnitErrors) -> list[str]:
    assert question.by_unit is not None
    n_units = len(np.unique(question.by_unit))
    return [
        "Outcome model: the arm's mean reward over the earlier rounds of other units in its group, before "
        "there are any the mean of all of other units' rewards; rounds before these have no weight.",
        *unit_notes(question.profile, n_units, len(question.by_unit)),
        *event_gaps(question.terms, errors.events, FEWEST_EVENTS),
    ]


def _unit_cautions(question: GroupQuestion, errors: UnitErrors | None, kind: str) -> list[str]:
    if errors is None or question.by_unit is None:
        return []
    n_units, uniform = len(np.unique(question.by_unit)), kind == "uniform"
    counts = errors.units, errors.events
    return unit_cautions(question.profile, n_units, question.terms, *counts, uniform=uniform)


def _uncautioned(std_error: FloatArray, errors: UnitErrors | None) -> FloatArray:
    """Standard errors, NaN where the units themselves are few, which is said."""
    return std_error if errors is None else np.where(errors.units < FEW_UNITS, np.nan, std_error)


def _told(std_error: FloatArray, errors: UnitErrors | None) -> FloatArray:
    """Standard errors, with something in the place of those whose absence is explained by few events."""
    return std_error if errors is None else np.where(errors.events < FEWEST_EVENTS, 1.0, std_error)


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


AIPW: MethodRecord[GroupQuestion] = MethodRecord(_NAME, _assess, _fit, length=aipw_length)
"""Over all rounds in which both arms could be chosen."""
