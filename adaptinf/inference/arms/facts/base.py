"""What claims on any method for arm means ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.claims import Finding
from adaptinf.claims.facts import Fitted
from adaptinf.inference.arms.data import arms_of_sums
from adaptinf.inference.validity.stationarity import ConstantMeans

if TYPE_CHECKING:
    from adaptinf.inference.arms.fit import ArmFit
    from adaptinf.inference.arms.question import Question


class ArmFacts(Fitted["ArmFit"], ConstantMeans):
    """What is known of a question; without a fit, of a row of `recommend`."""

    def __init__(self, question: Question, fit: ArmFit | None = None) -> None:
        self.question, self.profile = question, question.profile
        self._fit = fit
        self.codes, self.stationary = question.codes, question.stationary

    @property
    def always(self) -> bool:
        return True

    @property
    def contexts_found(self) -> Finding | None:
        return self.profile.contexts_found

    @property
    def sums_notes(self) -> list[str]:
        return [] if self.profile.sums is None else arms_of_sums.notes(self.question)

    @property
    def sums_cautions(self) -> list[str]:
        return [] if self.profile.sums is None else arms_of_sums.cautions(self.question)
