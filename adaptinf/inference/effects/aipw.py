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
from adaptinf.inference.effects.lengths import aipw_length
from adaptinf.inference.effects.notes import (
    BOTH_PROPENSITIES,
    SAME_EFFECT,
    estimated_propensities,
    gap_notes,
    warn_of_tiny,
    weight_notes,
)
from adaptinf.inference.effects.question import GroupQuestion, group_results
from adaptinf.inference.validity.methods import UNSETTLED, MethodRecord, refusal
from adaptinf.inference.validity.verdicts import Verdict

if TYPE_CHECKING:
    from adaptinf.inference.effects.comparisons import GroupResults

_NAME = "aipw"
_OWN = f"{SAME_EFFECT}; the logged propensities are the design's own"


def _assess(question: GroupQuestion) -> list[Verdict]:
    others = bool(question.other_contexts)
    why = refusal(lambda: question.weightable)
    sqrt = why or ("" if question.propensities is not None else BOTH_PROPENSITIES)
    rests = _OWN + ("; propensities within a group do not depend on other contexts" if others else "")
    even = "inverse propensities, with weights that keep the variance even"
    every = "inverse propensities over all rounds in which both arms could be chosen"
    caution = UNSETTLED if question.profile.moves else ""
    return [
        _verdict("sqrt", 16.0 if others else 14.0, sqrt, even, rests, ""),
        _verdict("uniform", 15.0, why, every, _OWN, caution),
    ]


def _verdict(weights: str, rank: float, why: str, reason: str, assumes: str, warning: str) -> Verdict:
    name, call = f"{_NAME} with {weights} weights", {"estimator": _NAME, "weights": weights}
    if why:
        return Verdict(name, "not valid", rank, call, why)
    return Verdict(name, "asymptotic", rank, call, reason, assumes, warning)


def _fit(question: GroupQuestion, null: float, weights: str | None = None) -> GroupResults:
    rounds, both = question.weightable, question.propensities
    if weights == "sqrt" and both is None:
        raise InvalidForLog("aipw with sqrt weights", BOTH_PROPENSITIES, ["aipw with uniform weights"])
    others = question.other_contexts
    weighted = weights == "sqrt" or (weights is None and both is not None and not others)
    found = _effects(question, weighted=weighted)
    warn_of_tiny("CATE.fit", question.terms, found.min_propensity, found.ess)
    control, treatment = found.count.T
    return group_results(
        question,
        _NAME,
        found.estimate,
        found.std_error,
        StudentReference(found.estimate, found.std_error, found.df),
        null=null,
        weights="sqrt" if weighted else "uniform",
        details={
            "pulls_treatment": treatment,
            "pulls_control": control,
            "ess": found.ess,
            "min_propensity": found.min_propensity,
        },
        notes=(
            *rounds.notes,
            "Outcome model: the arm's mean reward over the earlier rounds of its group among these. Student's"
            " t with the smaller arm's rewards minus 1 degrees of freedom.",
            *weight_notes(others, weighted=weighted, asked=weights is not None or both is None),
            *estimated_propensities(question.profile),
            *gap_notes(question.terms, found.count, found.std_error),
        ),
    )


def _effects(question: GroupQuestion, *, weighted: bool) -> GroupEffects:
    """Effects by group from the rounds used, where arms are 0 for control, 1 for treatment, else -1."""
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
        both[keep] if both is not None and weighted else None,
    )


AIPW: MethodRecord[GroupQuestion] = MethodRecord(_NAME, _assess, _fit, length=aipw_length)
"""Over all rounds in which both arms could be chosen."""
