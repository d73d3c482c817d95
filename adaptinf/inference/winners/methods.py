"""The ways to an interval for the winner, each with its validity for a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from adaptinf.inference.arms.choice import rare_arms
from adaptinf.inference.arms.order import ORDER as ARMS
from adaptinf.inference.arms.question import Question
from adaptinf.inference.results import Results
from adaptinf.inference.validity.methods import MethodRecord
from adaptinf.inference.validity.order import Order
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.inference.winners.contest import Contest
from adaptinf.inference.winners.held_out import later_results
from adaptinf.inference.winners.law import WinnerLaw
from adaptinf.sums import NEEDS_ROWS
from adaptinf.typing import FloatArray

_NORMAL = "estimates of the arms that are jointly normal"
_FEWEST = 2
"""Rounds of an arm below which it has no standard error."""
ORDER = Order(
    [
        # Shorter than the projection, and never much longer than it.
        "hybrid",
        # It may be very long.
        "conditional",
        # The longest where arms are far from each other.
        "projection",
        # It gives up what the last rounds tell of which arm is best.
        "held-out",
        # With estimators that cannot be asked of such data.
        "of no use",
    ]
)
"""Ways to an interval for the winner; within each, estimators as for arm means."""
_NAMED_BEFORE = "its correction is for means of arms that were named beforehand, not for the best of them"
_TOO_RARE = "an arm's outcomes are too rare for an estimate that counts as normal"
_TWO_ENDS = "rewards are missing, so that every mean has two ends, and no arm is known to be the best"


@dataclass(frozen=True, slots=True, eq=False)
class WinnerQuestion:
    """What is asked about the best of some arms, and the verdicts on methods for their means."""

    arms: Question
    means: Sequence[Verdict]


def refusal(question: Question) -> str:
    """Why there is no winner with an interval, whatever the method; empty where there is."""
    profile, codes = question.profile, question.codes
    if profile.incomplete and profile.log.missing != "drop":
        return _TWO_ENDS
    return without_error([profile.log.arms[code] for code in codes[profile.pulls[codes] < _FEWEST]])


def without_error(arms: Sequence[Any]) -> str:
    """Why there is no winner where some arms have no standard error; empty without any."""
    return f"there is no estimate with a standard error of {', '.join(map(repr, arms))}" if arms else ""


def _of_means(question: WinnerQuestion, verdict: Verdict) -> Verdict:
    """The verdict on an estimator of the arms for the best of them, before the way to its interval."""
    never = refusal(question.arms)
    reason = never if verdict.valid else verdict.reason
    if not reason and verdict.corrected:
        reason = _NAMED_BEFORE
    if not reason and verdict.unanswered:
        reason = _TOO_RARE
    if reason:
        runs = verdict.baseline and not never
        return Verdict(verdict.name, "not valid", verdict.rank, verdict.arguments, reason, baseline=runs)
    assumes = (*verdict.assumes, _NORMAL)
    return replace(verdict, label="asymptotic", assumes=assumes, opening="")


def _hybrid(question: WinnerQuestion) -> list[Verdict]:
    """With every estimator."""
    found = []
    for verdict in (_of_means(question, verdict) for verdict in question.means):
        arguments = {**verdict.arguments, "method": "hybrid"}
        way = "of no use" if verdict.rank == ARMS["of no use"] else "hybrid"
        verdict = replace(verdict, rank=(*ORDER[way], *verdict.rank))
        if _of_counts(question, verdict):
            found.append(_projected(verdict, arguments))
            continue
        why = "; given which arm won, within a projection at a tenth of alpha" * verdict.valid
        named = f"hybrid interval, {verdict.name}"
        found.append(replace(verdict, name=named, arguments=arguments, reason=verdict.reason + why))
    return found


def _of_counts(question: WinnerQuestion, verdict: Verdict) -> bool:
    """Whether intervals by counts take the place of normal laws, as an arm's outcomes are too rare."""
    return verdict.valid and verdict.unanswered < rare_arms(question.arms)


def _projected(verdict: Verdict, arguments: dict[str, Any]) -> Verdict:
    """The verdict on the projection of intervals by counts, which needs no normal estimates."""
    return replace(
        verdict,
        name=f"projection of intervals by counts, {verdict.name}",
        arguments=arguments,
        reason=f"{verdict.reason}; outcomes too rare for normal laws, whatever rule names the winner",
        assumes=tuple(one for one in verdict.assumes if one != _NORMAL),
    )


def _behind(question: WinnerQuestion, name: str, way: str, arguments: dict[str, Any]) -> Verdict:
    """Another way with the first estimator, less the length, which is not known beforehand."""
    every = [_of_means(question, verdict) for verdict in question.means]
    first = min(every, key=lambda verdict: verdict.order)
    return replace(
        first,
        name=f"{name}, {first.name}",
        rank=(*ORDER[way], *first.rank),
        arguments={**first.arguments, **arguments},
        length=float("nan"),
    )


def _conditional(question: WinnerQuestion) -> list[Verdict]:
    found = _behind(question, "conditional interval", "conditional", {"method": "conditional"})
    if _of_counts(question, found):
        return [replace(found, label="not valid", reason=_TOO_RARE, assumes=(), warning="")]
    why, warning = "; it has its level given which arm won", "very long where another arm is close"
    return [replace(found, reason=found.reason + why, warning=warning)] if found.valid else [found]


def _projection(question: WinnerQuestion) -> list[Verdict]:
    found = _behind(question, "projection", "projection", {"method": "projection"})
    if _of_counts(question, found):  # as the first one
        return []
    why = "; simultaneous for all arms, whatever rule names the winner"
    return [replace(found, reason=found.reason + why)] if found.valid else [found]


def _held_out(question: WinnerQuestion) -> list[Verdict]:
    found = _behind(question, "held-out last batch", "held-out", {"held_out": 1})
    if not found.valid:
        return [found]
    if reason := _held_out_refusal(question.arms):
        return [replace(found, label="not valid", reason=reason, assumes=(), warning="")]
    why = "; the last batch has no part in naming the winner, and alone estimates it"
    warning = "no interval if the winner was hardly chosen in the last batch" * _some_are_rare(question.arms)
    return [replace(found, reason=found.reason + why, warning=warning)]


def _held_out_refusal(question: Question) -> str:
    """Why the last batch cannot be held out; empty where it can."""
    profile = question.profile
    batch = profile.log.arrays.batch if profile.sums is None else None
    if profile.sums is not None:
        return NEEDS_ROWS
    if batch is None or batch[-1] == 0:
        return "the log has no batches to count, or one alone"
    if np.any(profile.pulls[question.codes] == _last_pulls(question)):
        return "an arm was not chosen before the last batch"
    return ""


def _last_pulls(question: Question) -> FloatArray:
    """Number of rounds of the last batch that chose each arm, shape (k,)."""
    log, batch = question.profile.log, question.profile.log.arrays.batch
    assert batch is not None
    last = log.arrays.action[int(np.searchsorted(batch, batch[-1])) :]
    return np.bincount(last, minlength=log.n_arms)[question.codes].astype(np.float64)


def _some_are_rare(question: Question) -> bool:
    return bool(_last_pulls(question).min() < _FEWEST)


def _law(method: str, means: Results, contest: Contest) -> WinnerLaw:
    assert means.covariance is not None
    return WinnerLaw.of(means.estimate, means.covariance, method, contest)


def _same_length(question: WinnerQuestion, verdict: Verdict) -> float:
    """In proportion to that of the arms' own intervals."""
    return verdict.length


HYBRID: MethodRecord[WinnerQuestion] = MethodRecord(
    "hybrid", _hybrid, partial(_law, "hybrid"), length=_same_length
)
CONDITIONAL: MethodRecord[WinnerQuestion] = MethodRecord(
    "conditional", _conditional, partial(_law, "conditional")
)
PROJECTION: MethodRecord[WinnerQuestion] = MethodRecord(
    "projection", _projection, partial(_law, "projection")
)
HELD_OUT: MethodRecord[WinnerQuestion] = MethodRecord("held-out", _held_out, later_results)
METHODS = (HYBRID, CONDITIONAL, PROJECTION, HELD_OUT)
