"""What claims ask of batched least squares: of a log, and of a fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.facts.base import ArmFacts
from adaptinf.inference.arms.fit import arm_labels
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.rare import rare_cautions, rare_notes

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.distributions.student_sums import BatchedReference
    from adaptinf.typing import FloatArray


class BatchedFacts(ArmFacts):
    """Of a fit, with pulls (2,) and what is said of batches that were left out."""

    def __init__(
        self,
        question: Question,
        lacking: str,
        pulls: FloatArray,
        estimate: float,
        std_error: float,
        reference: BatchedReference,
    ) -> None:
        super().__init__(question)
        self._lacking, self._pulls, self._reference = lacking, pulls, reference
        self._estimate, self._std_error = estimate, std_error

    @property
    def left_out(self) -> dict[str, str]:
        if not self._lacking:
            return {}
        return {"lacking": self._lacking, "why": self.profile.why_not_adaptive}

    @property
    def is_exact(self) -> bool:
        return self._reference.df is not None

    @property
    def _uncommon(self) -> FloatArray:
        found: FloatArray = self.profile.uncommon[self.question.codes]
        return found

    @property
    def rare_notes(self) -> list[str]:
        return rare_notes(arm_labels(self.question), self._uncommon) if self._std_error > 0.0 else []

    @property
    def rare_cautions(self) -> tuple[str, ...]:
        skewness = compared(self.question).squared_skewness / np.maximum(self._pulls, 1.0)
        return rare_cautions(arm_labels(self.question), self._uncommon, skewness, corrected=False)

    @property
    def unvarying(self) -> bool:
        return math.isnan(self._estimate)
