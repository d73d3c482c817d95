"""What claims on the winner ask of a log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import first
from adaptinf.claims import winners as claims
from adaptinf.sums import NEEDS_ROWS

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.validity.verdicts import Verdict
    from adaptinf.typing import FloatArray

FEWEST = 2
"""Rounds of an arm below which it has no standard error."""


class ContestFacts:
    """Of arms in a contest, whatever the method for their means."""

    def __init__(self, question: Question) -> None:
        self.question, self.profile = question, question.profile

    @property
    def two_ends(self) -> bool:
        """Rewards are missing, and nobody says to leave their rounds out."""
        return self.profile.incomplete and self.profile.log.missing != "drop"

    @property
    def without_error(self) -> dict[str, str]:
        """Arms that have no standard error."""
        codes = self.question.codes
        few = codes[self.profile.pulls[codes] < FEWEST]
        return {"arms": ", ".join(repr(self.profile.log.arms[code]) for code in few)} if len(few) else {}


class MeansFacts(ContestFacts):
    """Of a row of `recommend` for means of arms."""

    def __init__(self, question: Question, verdict: Verdict) -> None:
        super().__init__(question)
        self._verdict = verdict

    @property
    def reason(self) -> str:
        """Why the means are not valid."""
        return "" if self._verdict.valid else self._verdict.reason

    @property
    def no_winner(self) -> str:
        """Why there is none, of means that are valid."""
        return first(claims.NEEDS, self) if self._verdict.valid else ""

    @property
    def corrected(self) -> bool:
        """Whether the corrected columns are what is valid."""
        return self._verdict.corrected

    @property
    def too_rare(self) -> bool:
        """Whether arms have no interval."""
        return bool(self._verdict.unanswered)


class HeldOutFacts(ContestFacts):
    """Of the last batch, if it is held out."""

    @property
    def needs_rows(self) -> str:
        """Why sums will not do."""
        return NEEDS_ROWS if self.profile.sums is not None else ""

    @property
    def no_batches(self) -> bool:
        """Whether there is no last batch to hold out."""
        batch = self.profile.log.arrays.batch
        return batch is None or bool(batch[-1] == 0)

    @property
    def not_chosen_before(self) -> bool:
        """Whether the last batch has all rounds of an arm."""
        return bool(np.any(self.profile.pulls[self.question.codes] == self._last_pulls))

    @property
    def hardly_chosen(self) -> bool:
        """Whether an arm would have no standard error there."""
        return bool(self._last_pulls.min() < FEWEST)

    @cached_property
    def _last_pulls(self) -> FloatArray:
        """Number of rounds of the last batch that chose each arm, shape (k,)."""
        log, batch = self.profile.log, self.profile.log.arrays.batch
        assert batch is not None
        last = log.arrays.action[int(np.searchsorted(batch, batch[-1])) :]
        return np.bincount(last, minlength=log.n_arms)[self.question.codes].astype(np.float64)
