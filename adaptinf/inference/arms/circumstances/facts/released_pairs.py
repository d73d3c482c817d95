"""What claims ask of the difference of two arms from private releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question


class ReleasedPairFacts:
    """A pair of a log's arms."""

    def __init__(self, question: Question) -> None:
        self.question, self.profile = question, question.profile

    @property
    def contexts_found(self) -> None:
        """None: a table from releases tells nothing that rows show."""

    @property
    def means_stay(self) -> bool:
        return True

    @property
    def drift_found(self) -> None:
        """A table of releases tells nothing of the rewards behind them."""

    @property
    def several_pairs(self) -> bool:
        return self.profile.log.n_arms > 2
