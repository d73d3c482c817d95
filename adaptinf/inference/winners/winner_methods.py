"""The methods that compute intervals for the winner, and the validity of each for a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Claim, first, said, sentence
from adaptinf.claims.arms import winners as claims
from adaptinf.inference.arms.arm_order import ORDER as ARMS
from adaptinf.inference.arms.choice import rare_arms
from adaptinf.inference.arms.question import Question
from adaptinf.inference.distributions.sample_shape import uncommon_outcomes
from adaptinf.inference.results import Results
from adaptinf.inference.validity.methods import MethodRecord, Verdict
from adaptinf.inference.validity.order import Order
from adaptinf.inference.validity.rare import FEWEST as FEWEST_OUTCOMES
from adaptinf.inference.validity.rare import without_interval
from adaptinf.inference.winners.contest import Contest
from adaptinf.inference.winners.winner_intervals import later_results
from adaptinf.inference.winners.winner_law import WinnerLaw

if TYPE_CHECKING:
    from adaptinf.typing import FloatArray


FEWEST = 2
"""Number of an arm's rounds below which it has no standard error."""


class ContestFacts:
    """Facts about the arms in a contest, whatever the method for their means."""

    def __init__(self, question: Question) -> None:
        self.question, self.profile = question, question.profile

    @property
    def two_ends(self) -> bool:
        """Whether rewards are missing, and the log does not state that their rounds are left out."""
        return self.profile.incomplete and self.profile.log.missing != "drop"

    @property
    def without_error(self) -> dict[str, str]:
        """The arms that have no standard error."""
        codes = self.question.codes
        few = codes[self.profile.pulls[codes] < FEWEST]
        return {"arms": ", ".join(repr(self.profile.log.arms[code]) for code in few)} if len(few) else {}


class MeansFacts(ContestFacts):
    """Facts for a row of `recommend` that is based on arm means."""

    def __init__(self, question: Question, verdict: Verdict) -> None:
        super().__init__(question)
        self._verdict = verdict

    @property
    def reason(self) -> str:
        """The reason why the means are not valid."""
        return "" if self._verdict.valid else self._verdict.reason

    @property
    def no_winner(self) -> str:
        """The reason why there is no interval although the means are valid."""
        return first(claims.NEEDS, self) if self._verdict.valid else ""

    @property
    def corrected(self) -> bool:
        """Whether only the corrected columns are valid."""
        return self._verdict.corrected

    @property
    def too_rare(self) -> bool:
        """Whether some arms have no interval because their outcomes are too rare."""
        return bool(self._verdict.unanswered)


class HeldOutFacts(ContestFacts):
    """Facts about holding out the last batch."""

    @property
    def needs_rows(self) -> str:
        """The reason why sums are not sufficient."""
        return self.profile.rows_refusal

    @property
    def no_batches(self) -> bool:
        """Whether there is no last batch to hold out."""
        batch = self.profile.log.arrays.batch
        return batch is None or bool(batch[-1] == 0)

    @property
    def not_chosen_before(self) -> bool:
        """Whether the last batch contains all rounds of an arm."""
        return bool(np.any(self.profile.pulls[self.question.codes] == self._last_pulls))

    @property
    def hardly_chosen(self) -> bool:
        """Whether an arm would have no standard error in the last batch."""
        return bool(self._last_pulls.min() < FEWEST)

    @property
    def hardly_varied(self) -> dict[str, int]:
        """Whether an arm has too few uncommon outcomes in the last batch for an interval."""
        log, profile = self.profile.log, self.profile
        reward = log.arrays.reward[self._first_of_last :]
        found = uncommon_outcomes(log.arrays.action[self._first_of_last :], reward, log.n_arms)
        few = bool(without_interval(found[self.question.codes]).any()) and not profile.incomplete
        return {"fewest": FEWEST_OUTCOMES} if few else {}

    @cached_property
    def _first_of_last(self) -> int:
        """Position of the first round of the last batch."""
        batch = self.profile.log.arrays.batch
        assert batch is not None
        return int(np.searchsorted(batch, batch[-1]))

    @cached_property
    def _last_pulls(self) -> FloatArray:
        """Number of rounds of each arm in the last batch, shape (k,)."""
        log = self.profile.log
        last = log.arrays.action[self._first_of_last :]
        return np.bincount(last, minlength=log.n_arms)[self.question.codes].astype(np.float64)


ORDER = Order(
    [
        # Hybrid intervals are usually shorter than projection intervals, and never much longer.
        "hybrid",
        # Conditional intervals may be very long.
        "conditional",
        # Projection intervals are the longest if arms are far apart.
        "projection",
        # Holding out the last batch loses its information on which arm is best.
        "held-out",
        # The estimator cannot be applied to such data.
        "of no use",
    ]
)
"""Methods for the winner's interval, in order; within each, estimators are ordered as for arm means."""
_OF_COUNTS = "projection of count-based intervals"


@dataclass(frozen=True, slots=True, eq=False)
class WinnerQuestion:
    """The question about the best of several arms, and the verdicts on methods for their means."""

    arms: Question
    means: Sequence[Verdict]


def refusal(question: Question) -> str:
    """The reason why no method gives an interval for the winner; empty if there is one."""
    return first(claims.NEEDS, ContestFacts(question))


def _of_means(question: WinnerQuestion, verdict: Verdict) -> Verdict:
    """The verdict on an estimator as the basis of the winner's interval, whatever the kind of interval."""
    if reason := first(claims.MEANS_NEED, MeansFacts(question.arms, verdict)):
        runs = verdict.baseline and not refusal(question.arms)
        return Verdict(verdict.name, "not valid", verdict.rank, verdict.arguments, reason, baseline=runs)
    assumes = (*verdict.assumes, claims.NORMAL())
    return replace(verdict, label="asymptotic", assumes=assumes, opening="")


def _with(verdict: Verdict, way: Claim) -> str:
    """The reason why a kind of interval is valid, after the reason why the means are valid."""
    return sentence([verdict.reason, way()])


def _hybrid(question: WinnerQuestion) -> list[Verdict]:
    """Verdicts on the hybrid interval with each estimator."""
    found = []
    for verdict in (_of_means(question, verdict) for verdict in question.means):
        arguments = {**verdict.arguments, "method": "hybrid"}
        way = "of no use" if verdict.rank == ARMS["of no use"] else "hybrid"
        verdict = replace(verdict, rank=(*ORDER[way], *verdict.rank))
        if _of_counts(question, verdict):
            found.append(_projected(verdict, arguments))
            continue
        why = _with(verdict, claims.WITHIN_PROJECTION) if verdict.valid else verdict.reason
        named = f"hybrid interval, {verdict.name}"
        found.append(replace(verdict, name=named, arguments=arguments, reason=why))
    return found


def _of_counts(question: WinnerQuestion, verdict: Verdict) -> bool:
    """Whether intervals from counts replace normal intervals because an arm's outcomes are too rare."""
    return verdict.valid and verdict.unanswered < rare_arms(question.arms)


def _projected(verdict: Verdict, arguments: dict[str, Any]) -> Verdict:
    """The verdict on the projection of intervals from counts, for which estimates need not be normal."""
    return replace(
        verdict,
        name=f"{_OF_COUNTS}, {verdict.name}",
        arguments=arguments,
        reason=_with(verdict, claims.OF_COUNTS),
        assumes=tuple(one for one in verdict.assumes if one != claims.NORMAL()),
    )


def _behind(question: WinnerQuestion, name: str, way: str, arguments: dict[str, Any]) -> Verdict:
    """The verdict on another kind of interval, with the first estimator; its length is not known."""
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
        return [replace(found, label="not valid", reason=claims.TOO_RARE(), assumes=(), warning="")]
    if not found.valid:
        return [found]
    return [replace(found, reason=_with(found, claims.GIVEN_WINNER), warning=claims.VERY_LONG())]


def _projection(question: WinnerQuestion) -> list[Verdict]:
    found = _behind(question, "projection", "projection", {"method": "projection"})
    # With rare outcomes, the first method is already a projection, which this row would repeat.
    if _of_counts(question, found):
        return []
    return [replace(found, reason=_with(found, claims.SIMULTANEOUS))] if found.valid else [found]


def _held_out(question: WinnerQuestion) -> list[Verdict]:
    found = _behind(question, "held-out last batch", "held-out", {"held_out": 1})
    if not found.valid:
        return [found]
    facts = HeldOutFacts(question.arms)
    if reason := first(claims.HELD_OUT_NEEDS, facts):
        return [replace(found, label="not valid", reason=reason, assumes=(), warning="")]
    warning = sentence(said((claims.HARDLY_CHOSEN, claims.HARDLY_VARIED), facts))
    return [replace(found, reason=_with(found, claims.HAS_NO_PART), warning=warning)]


def _law(method: str, means: Results, contest: Contest) -> WinnerLaw:
    assert means.covariance is not None
    return WinnerLaw.of(means.estimate, means.covariance, method, contest)


def _same_length(question: WinnerQuestion, verdict: Verdict) -> float:
    """Expected length, in proportion to the length of the arms' own intervals."""
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
