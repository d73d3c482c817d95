"""What claims ask of sums by batch and arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.sums import Sums

_FEW_IN_A_BATCH = 10
"""Rounds of an arm in a batch below which its share is a poor propensity."""


def read_of(sums: Sums) -> dict[str, Any]:
    """How much was read, and by what it was added up."""
    by = " and ".join(["arm", *sums.group_names])
    return {"rounds": sums.n_rounds, "batches": sums.n_batches, "by": by}


class SumsWeightsFacts:
    """Weights that sums may not have."""

    def __init__(self, profile: LogProfile, weights: str) -> None:
        self.profile, self.weights = profile, weights

    @property
    def totals_by_unit(self) -> bool:
        return self.profile.repeated_units

    @property
    def weights_by_round(self) -> bool:
        return self.weights == "two-point"

    @property
    def moves_within_batches(self) -> bool:
        moving = np.any(self.profile.moving_batches) or not self.profile.fixed_before_contexts.all()
        return self.weights == "sqrt" and bool(moving)


class SumsFacts:
    """Estimates of arms from sums."""

    def __init__(self, question: Question, sums: Sums) -> None:
        self.question, self.profile, self.sums = question, question.profile, sums

    @property
    def read(self) -> dict[str, Any]:
        return read_of(self.sums)

    @property
    def skewness_unknown(self) -> bool:
        return not self.profile.knows_skewness

    @property
    def few_in_a_batch(self) -> dict[str, int]:
        if not self.sums.shares:
            return {}
        least = int(self.sums.cells.pulls[:, self.question.codes].min())
        return {"n": least, "enough": _FEW_IN_A_BATCH} if least < _FEW_IN_A_BATCH else {}
