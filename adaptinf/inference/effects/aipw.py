"""Augmented inverse propensity weighting by group.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.base import StudentReference
from adaptinf.inference.effects.groups import GroupEffects, group_aipw
from adaptinf.inference.effects.notes import (
    BOTH_PROPENSITIES,
    estimated_propensities,
    few_effective,
    gap_notes,
    own_weights_caution,
    tiny_cautions,
    warn_of_tiny,
    weight_notes,
)
from adaptinf.inference.effects.question import GroupQuestion, group_results
from adaptinf.inference.scores.inverse import combined_weights
from adaptinf.inference.validity.lengths import student_length, typical, weighted_errors
from adaptinf.inference.validity.methods import UNSETTLED, MethodRecord, refusal
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.comparisons import GroupResults

_NAME = "aipw"
_OWN = "the logged propensities are the design's own"
_COMMON_DRIFT = f"{_OWN}; drift common to both arms is allowed, an effect that changes is averaged"
_NO_DRIFT = f"{_OWN}; no drift: each arm's mean within a group stays the same"


def _assess(question: GroupQuestion) -> list[Verdict]:
    why = refusal(lambda: question.weightable)
    combined = why or refusal(lambda: question.combined)
    sqrt = why or ("" if question.propensities is not None else BOTH_PROPENSITIES)
    rests = _NO_DRIFT
    if question.movers:
        rests += "; propensities within a group do not depend on other contexts"
    even = "inverse propensities, with one weight for both arms that keeps the variance even"
    own = "inverse propensities, with weights of each arm's own that keep the variance even"
    every = "inverse propensities over all rounds in which both arms could be chosen"
    caution = UNSETTLED if question.profile.moves else ""
    return [
        _verdict("combined", 14.0, combined, even, _COMMON_DRIFT, ""),
        _verdict("uniform", 15.0, why, every, _COMMON_DRIFT, caution),
        _verdict("sqrt", 16.0, sqrt, own, rests, ""),
    ]


def _verdict(weights: str, rank: float, why: str, reason: str, assumes: str, warning: str) -> Verdict:
    name, call = f"{_NAME} with {weights} weights", {"estimator": _NAME, "weights": weights}
    if why:
        return Verdict(name, "not valid", rank, call, why)
    return Verdict(name, "asymptotic", rank, call, reason, assumes, warning)


def _fit(
    question: GroupQuestion, null: float, weights: str | None = None, stationary: bool = False
) -> GroupResults:
    rounds = question.weightable
    kind = weights or _default_weights(question, stationary)
    weight, lagged = _weights(question, kind)
    found = _effects(question, weight)
    tiny = tiny_cautions(question.terms, found.min_propensity, found.ess)
    warn_of_tiny("CATE.fit", tiny)
    control, treatment = found.count.T
    asked = weights is not None or question.propensities is None
    return group_results(
        question,
        _NAME,
        found.estimate,
        found.std_error,
        StudentReference(found.estimate, found.std_error, found.df),
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
            "Outcome model: the arm's mean reward over the earlier rounds of its group among these, before "
            "its first one the mean of all; the first round has no weight. Student's t with an arm's "
            "effective number of rewards minus 1 degrees of freedom, the smaller arm's.",
            *weight_notes(question.movers, kind, lagged=lagged, asked=asked),
            *estimated_propensities(question.profile),
            *gap_notes(question.terms, found.used, found.std_error),
        ),
        cautions=(
            *question.profile.propensity_cautions,
            *own_weights_caution(kind, stationary=stationary),
            *few_effective(question.terms, found.df, found.std_error),
            *tiny,
        ),
    )


def _default_weights(question: GroupQuestion, stationary: bool) -> str:
    """Each arm's own where nothing drifts, else one for both arms; uniform where neither is known in time."""
    if stationary and question.propensities is not None and not question.movers:
        return "sqrt"
    return "uniform" if refusal(lambda: question.combined) else "combined"


def _weights(question: GroupQuestion, kind: str) -> tuple[FloatArray | None, bool]:
    """Weights of both arms, shape (n, 2), None for uniform ones; and whether they lag by a batch."""
    if kind == "combined":
        weight, lagged = question.combined
        return np.column_stack([weight, weight]), lagged
    if kind == "uniform":
        return None, False
    if question.propensities is None:
        raise InvalidForLog(f"aipw with {kind} weights", BOTH_PROPENSITIES, ["aipw with uniform weights"])
    return np.sqrt(question.propensities[question.weightable.keep]), False


def _effects(question: GroupQuestion, weight: FloatArray | None) -> GroupEffects:
    """Effects by group from the rounds used, where arms are 0 for control, 1 for treatment, else -1.

    Shapes: weight (n, 2).
    """
    log, keep, both = question.profile.log, question.weightable.keep, question.propensities
    role = np.full(log.n_arms, -1)
    role[question.pair] = (0, 1)
    assert log.arrays.propensity is not None
    return group_aipw(
        question.group[keep],
        role[log.arrays.action[keep]],
        log.arrays.reward[keep],
        log.arrays.propensity[keep],
        len(question.labels),
        None if both is None else both[keep],
        weight,
    )


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
