"""Rounds of which inverse weighting can tell, and the one weight that both arms of a pair have there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.inputs.rounds import propensities_before, turns
from adaptinf.inference.scores.inverse import (
    LAGGED,
    Fixed,
    combined_stays,
    combined_weights,
    indicators,
    lagged_combined_weights,
    possible_rounds,
    sqrt_weights,
)
from adaptinf.inference.scores.joint import earlier_propensities
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.validity.profile import LogProfile

_LAST_ROUND = (
    "the propensities of the round before, as contexts may have moved its own (context_free=True says that "
    "they had no part)"
)
_MOST_TURNS = 4
"""Changes of an arm's availability that joining, leaving and coming back explain."""
LAGGED_NOTE = f"Sqrt weights, each arm's own, by {_LAST_ROUND}."
"""What a table says of them."""

# Arms that come and go


def gaps_refusal(question: Question) -> str:
    """Why rounds without an arm leave nothing to weight; empty where they do not, or there are none."""
    profile, codes = question.profile, question.codes
    log, counts = profile.log, profile.impossible[question.codes]
    if not np.any(counts):
        return ""
    possible = _possible(question)
    never = np.flatnonzero(possible.any(axis=0) & ~(possible & _drawn(question)).any(axis=0))
    if len(never) > 0:
        return (
            f"arm {log.arms[codes[never[0]]]!r} was never drawn at random, its propensity is 0 or 1 in every "
            "round: there is nothing to weight"
        )
    worst = int(np.argmax(counts))
    told = f"{int(counts[worst])} of {log.n_rounds} rounds"
    found = f"arm {log.arms[codes[worst]]!r} has propensity 0 in {told}"
    if not possible.any():
        both = "could both arms" if question.contrast else "could the arms asked for"
        return f"{found}: in no round {both} have been chosen, and there is nothing to weight"
    if profile.traits is not None and profile.traits.adapts and not possible[_dealt(question) :].all():
        return (
            f"{found}, where it could not have been chosen: {profile.design_title} takes arms away by what "
            "it learns, and rounds that rewards select are no fair sample"
        )
    return ""


def gaps_notes(question: Question, *, levels: bool = False) -> tuple[list[str], list[str]]:
    """Notes and cautions on the rounds that were left out, none without any.

    `levels` says that arms share their weights, so that each mean is for the rounds of all.
    """
    profile, log = question.profile, question.profile.log
    if not np.any(profile.impossible[question.codes]):
        return [], []
    possible = _possible(question)
    size = np.ones(len(possible)) if profile.sums is None else profile.sums.cells.rounds
    arms = [str(log.arms[code]) for code in question.codes]
    left = size @ ~possible
    same = "the difference is" if question.contrast else "each mean is"
    assumed = f"Assumes that {same} the same in the rounds that are used as in those that it is wanted for."
    if question.contrast:
        told, where = f"{int(left[0])}", f"{arms[0]} or {arms[1]}"
    else:
        named = [(arm, int(n)) for arm, n in zip(arms, left, strict=True) if n]
        told, where = ", ".join(f"{n} for {arm}" for arm, n in named), "the arm"
    if levels:
        assumed = "Arms are compared in common rounds, and taken to differ as much in others."
    notes = [
        f"Left out of {log.n_rounds} rounds: {told}, in which {where} could not be chosen (propensity 0). "
        f"{assumed}"
    ]
    cautions = _gap_cautions(question, possible, levels=levels)
    learnt = possible[_dealt(question) :]
    gone = [arm for arm, here in zip(arms, learnt.T, strict=True) if _leaves(here)]
    if question.contrast:
        gone = arms * bool(gone)
    if not gone or not profile.adaptive:
        return notes, cautions
    return notes, [
        *cautions,
        f"{' and '.join(gone)}: there are rounds after which an arm could no longer be chosen; if its "
        "rewards were the reason, the estimate is biased",
    ]


def _gap_cautions(question: Question, possible: BoolArray, *, levels: bool) -> list[str]:
    """That means of several arms are of different rounds, or arms possible by turns; possible (T, k)."""
    if question.contrast or question.stationary or possible.shape[1] < 2:
        return []
    if not levels:
        return [
            "arms could be chosen in different rounds, and each mean is over its own: a drift that arms "
            "share tells equal arms apart (Contrast compares two in common rounds)"
        ]
    turned = np.count_nonzero(np.diff(possible, axis=0), axis=0)
    if question.profile.fixed_in_time or not np.any(turned > _MOST_TURNS):
        return []
    return [
        "arms could be chosen or not by turns, as where contexts decide which are on offer: they are "
        "compared in common rounds, and taken to differ as much in others"
    ]


def chosen_alone_note(profile: LogProfile) -> str:
    """What is assumed where the chosen arms' propensities are known alone."""
    ruled_out = (
        "an arm without rounds in a batch counts as impossible there if the propensities of the others add "
        "up to 1; elsewhere "
    )
    where = ruled_out if profile.rules_out else ""
    return f"The log has the chosen arm's propensity alone: {where}that each arm could be chosen is assumed."


def _possible(question: Question) -> BoolArray:
    """Rounds that each arm's estimate uses, shape (T, k); batches of sums, (B, k)."""
    profile = question.profile
    if profile.sums is not None:
        possible = profile.sums.cells.possible[:, question.codes]
        joint = possible.all(axis=1, keepdims=True)
        return np.broadcast_to(joint, possible.shape) if question.contrast else possible
    chosen = indicators(profile.log.arrays.action, question.codes)
    known = profile.partial_propensities if profile.propensities is None else profile.propensities
    every = None if known is None else known[:, question.codes]
    own = np.ones(len(chosen)) if profile.propensity is None else profile.propensity
    return possible_rounds(chosen, own, every, jointly=question.contrast)


def _dealt(question: Question) -> int:
    """Rounds at the start of a log of rows in which the calendar alone dealt out the arms."""
    profile = question.profile
    if profile.traits is None or profile.traits.dealt == 0 or profile.propensity is None:
        return 0
    start = profile.propensity[: profile.traits.dealt * profile.log.n_arms] >= 1.0
    return len(start) if start.all() else int(np.argmin(start))


def _drawn(question: Question) -> BoolArray:
    """Rounds in which each arm was neither sure nor impossible, as far as is known; (T, k), or (B, k)."""
    profile = question.profile
    if profile.sums is not None:
        spread = profile.sums.cells.spread[:, question.codes]
        return np.asarray(np.isnan(spread) | (spread > 0.0))
    if profile.propensities is not None:
        every = profile.propensities[:, question.codes]
        return np.asarray((every > 0.0) & (every < 1.0))
    own = np.ones(1) if profile.propensity is None else profile.propensity
    return np.repeat((own < 1.0)[:, None], len(question.codes), axis=1)


def _leaves(possible: BoolArray) -> bool:
    """Whether a round in which an arm was possible comes before one in which it was not; possible (T,)."""
    known = np.flatnonzero(possible)
    return len(known) > 0 and not possible[known[0] :].all()


# One weight for both arms of a pair


def pair_weights(question: Question) -> FloatArray:
    """Combined weights, shape (T,): by each round's own propensities, or by those of the batch before."""
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
    """Propensities that fix joint weights before a round's context, shape (T, k); None for its own ones."""
    arrays, every = question.profile.log.arrays, question.profile.propensities
    assert every is not None
    fixed = fixed_by(question)
    if fixed == "round":
        return None
    place = arrays.batch
    if fixed == "round before" or place is None:
        place = np.arange(len(every))
    return earlier_propensities(every[:, question.codes], place, question.profile.log.n_arms)


def lagged_sqrt_weights(question: Question) -> FloatArray | str:
    """Square roots of the propensities before each round, shape (T, k); a name where units need no array."""
    profile, every = question.profile, question.profile.propensities
    if every is None or not profile.repeated_units:
        return LAGGED
    before = turns(_one_cell(every), profile.units)[1]
    return sqrt_weights(propensities_before(every[:, question.codes], profile.log.n_arms, before))


def _one_cell(propensities: FloatArray) -> IntArray:
    """All rounds in one; propensities (T, k), returns (T,)."""
    return np.zeros(len(propensities), dtype=np.int64)


def pair_note(question: Question) -> str:
    """What combined weights do, and what they estimate."""
    return (
        f"Combined weights, one per round for both arms, by {fixed_propensities(question)}: a drift that "
        "both arms share does no harm. Under an effect that changes the target is its mean over the rounds "
        "with these weights; uniform weights estimate the mean over the period."
    )


def fixed_propensities(question: Question) -> str:
    """Which propensities make the weight of a pair, in words."""
    fixed = fixed_by(question)
    if fixed == "round":
        return "its propensities"
    return "the propensities of the batch before" if fixed == "batch" else _LAST_ROUND


def fixed_by(question: Question) -> Fixed:
    """Whose propensities fix a pair's weight before a round's context, one that the log lacks included."""
    profile, codes = question.profile, question.codes
    if profile.fixed_in_time:
        return "round"
    if profile.sums is not None:
        return "round" if profile.fixed_before_contexts[codes].all() else "batch"
    if profile.propensities is None:
        return "round"
    batch = profile.log.arrays.batch
    if batch is None:
        return "round before"
    if profile.fixed_before_contexts[codes].all():
        return "round"
    return "round" if combined_stays(profile.propensities[:, codes], None, batch) else "batch"
