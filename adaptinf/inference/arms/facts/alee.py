"""What claims ask of ALEE: of a log, and of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.claims.arms import alee as claims
from adaptinf.inference.arms.facts.base import ArmFacts

if TYPE_CHECKING:
    from adaptinf.inference.arms.fit import ArmFit
    from adaptinf.inference.arms.question import Question


class AleeFacts(ArmFacts):
    """Of ALEE with one kind of standard errors."""

    def __init__(self, question: Question, arm_error: str | None, fit: ArmFit | None = None) -> None:
        super().__init__(question, fit)
        self.conservative = arm_error == "conservative"

    @property
    def self_normalised(self) -> bool:
        return not self.conservative

    @property
    def propensities_unused(self) -> bool:
        return bool(not self.profile.has_contexts and self.profile.varying_propensities)

    @property
    def may_not_adapt(self) -> dict[str, str]:
        classical = claims.WELCH() if self.question.contrast else claims.STUDENT()
        return {"classical": classical} if self.profile.may_not_adapt else {}
