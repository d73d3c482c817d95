"""What claims ask of batched least squares: of a log, and of a fit."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from adaptinf.claims import Finding
from adaptinf.claims.arms.batched import DIFFERENCE_MOVES
from adaptinf.inference.arms.facts.base import ArmFacts
from adaptinf.inference.arms.fit import arm_labels
from adaptinf.inference.distributions.tails import log_student_tail
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.rare import rare_cautions, rare_notes

if TYPE_CHECKING:
    from adaptinf.inference.arms.batched import BatchContrasts
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.distributions.student_sums import BatchedReference
    from adaptinf.typing import FloatArray


MOVES = 5e-4
"""P-value, of each of two tests, below which differences are taken to move."""
_LEAST_PULLS, _LEAST_BATCHES = 10, 3


def moving_pvalue(found: BatchContrasts) -> float:
    """P-value, doubled for the smaller of two, of one difference in all batches; NaN of few rounds.

    With precisions c_b the sum of (c_b (D_b - D))^2 is chi-squared, D their mean with weights c_b^2, and the
    slope of D_b in the batches' time is normal with the variance of its weights. Student's c_b (D_b - D) are
    made normal first. Batches in which an arm has few rounds tell too little.
    """
    kept = found.only(np.minimum(found.treated, found.control) >= _LEAST_PULLS)
    precision, df = kept.precision, kept.df
    if len(df) < _LEAST_BATCHES or not np.isfinite(precision).all():
        return math.nan
    size = precision.max()  # squares of the precisions themselves may overflow
    weight = (precision / size) ** 2 / (df / (df - 2.0))
    gap = kept.difference - float(weight @ kept.difference) / float(weight.sum())
    z = special.ndtri_exp(log_student_tail(precision * gap, df))
    time = np.arange(len(df)) - float(weight @ np.arange(len(df))) / float(weight.sum())
    slope = float((weight * time) @ (size * gap)) / math.sqrt(float((weight * time) @ time))
    varied, sloped = special.chdtrc(len(df) - 1.0, float(z @ z)), 2.0 * special.ndtr(-abs(slope))
    return min(1.0, 2.0 * float(min(varied, sloped)))


class BatchedRow(ArmFacts):
    """Of a row of `recommend`, with the differences of its batches."""

    def __init__(self, question: Question, found: BatchContrasts) -> None:
        super().__init__(question)
        self._found = found

    @cached_property
    def difference_found(self) -> Finding | None:
        """Whether differences visibly move between batches; None where there are too few rounds to tell."""
        p = moving_pvalue(self._found)
        if math.isnan(p):
            return None
        return Finding((DIFFERENCE_MOVES(p=p),) if p < 2.0 * MOVES else ())


class BatchedFacts(BatchedRow):
    """Of a fit, with pulls (2,) and what is said of batches that were left out."""

    def __init__(
        self,
        question: Question,
        found: BatchContrasts,
        lacking: str,
        pulls: FloatArray,
        estimate: float,
        std_error: float,
        reference: BatchedReference,
    ) -> None:
        super().__init__(question, found)
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
