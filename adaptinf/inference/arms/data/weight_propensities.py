"""The propensities on which the weights of rounds are based: the rounds' own, or those of earlier rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from adaptinf.claims.propensities import AVAILABILITY_ALONE, BATCH_BEFORE, ROUND_BEFORE, SAME_ROUND
from adaptinf.inference.inputs.rounds import propensities_before, turns
from adaptinf.inference.scores.inverse import (
    LAGGED,
    Fixed,
    combined_stays,
    combined_weights,
    earlier_propensities,
    lagged_combined_weights,
    sqrt_weights,
)
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question


_MOST_TURNS = 4
"""Largest number of changes in an arm's availability that are explained by joining, leaving and returning."""


def changes_often(possible: BoolArray) -> bool:
    """Whether any arm comes and goes more often than a schedule would explain; possible has shape (T, k)."""
    turns_of_arms = np.count_nonzero(np.diff(possible, axis=0), axis=0)
    return bool(np.any(turns_of_arms > _MOST_TURNS))


def pair_weights(question: Question) -> FloatArray:
    """Combined weights, shape (T,), from the round's own propensities or those of the previous batch."""
    arrays, every = question.profile.log.arrays, question.profile.propensities
    assert every is not None
    fixed = fixed_by(question)
    pair = every if every.shape[1] == len(question.codes) else every[:, question.codes]
    if fixed == "round":
        return combined_weights(pair)
    if fixed == "round before" or arrays.batch is None:
        repeated = question.profile.repeated_units
        turn = turns(_one_cell(pair), question.profile.units)[0] if repeated else np.arange(len(pair))
        return lagged_combined_weights(pair, turn)
    return lagged_combined_weights(pair, arrays.batch)


def joint_propensities(question: Question) -> FloatArray | None:
    """Propensities for joint weights, known before the context, shape (T, k); None for the round's own."""
    arrays, every = question.profile.log.arrays, question.profile.propensities
    assert every is not None
    fixed = fixed_by(question)
    if fixed == "round":
        return None
    if fixed == "availability":
        return np.ones((len(every), len(question.codes)))
    place = arrays.batch
    if fixed == "round before" or place is None:
        place = np.arange(len(every))
    return earlier_propensities(every[:, question.codes], place, question.profile.log.n_arms)


def lagged_sqrt_weights(question: Question) -> FloatArray | str:
    """Square roots of earlier propensities, shape (T, k), or only the weights' name if that is enough."""
    profile, every = question.profile, question.profile.propensities
    if every is None or not profile.repeated_units:
        return LAGGED
    before = turns(_one_cell(every), profile.units)[1]
    return sqrt_weights(propensities_before(every[:, question.codes], profile.log.n_arms, before))


def _one_cell(propensities: FloatArray) -> IntArray:
    """The code of a single group that contains all rounds; takes propensities (T, k), returns (T,)."""
    return np.zeros(len(propensities), dtype=np.int64)


def fixed_propensities(question: Question) -> str:
    """A phrase that states which propensities determine the weights of a pair of arms."""
    fixed = fixed_by(question)
    if fixed == "round":
        return SAME_ROUND()
    if fixed == "availability":
        return AVAILABILITY_ALONE()
    return BATCH_BEFORE() if fixed == "batch" else ROUND_BEFORE()


def fixed_by(question: Question) -> Fixed | Literal["availability"]:
    """Which propensities determine the weight of a pair before any context, logged or not, is known.

    If contexts may affect propensities, weights computed from the round's own propensities would change the
    mix of contexts. If an arm's availability seldom changes, it is assumed to follow the calendar; the
    weights of a table are then uniform over the rounds in which both arms of a pair were available.
    """
    profile, codes = question.profile, question.codes
    if profile.fixed_in_time:
        return "round"
    if profile.sums is not None:
        return "round" if profile.fixed_before_contexts[codes].all() else "batch"
    if profile.propensities is None:
        return "round"
    goes = not question.contrast and bool(profile.no_shared_weights) and profile.impossible[codes].any()
    if goes and not changes_often(profile.propensities[:, codes] > 0.0):
        return "availability"
    batch = profile.log.arrays.batch
    if batch is None:
        return "round before"
    if profile.fixed_before_contexts[codes].all():
        return "round"
    return "round" if combined_stays(profile.propensities[:, codes], None, batch) else "batch"
