"""Differences of two arms of a table: those of `Contrast`, with its weights, its law and its guards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.inference.arms.contrast import Contrast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adaptinf.inference.arms.circumstances.ratios import Denominator
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums


@dataclass(frozen=True, slots=True, eq=False)
class PairContrasts:
    """Contrasts of a table's arms on the rounds in which both could be chosen, fitted when asked for."""

    log: AdaptiveLog | Sums
    arms: tuple[Any, ...]
    denominator: Denominator | None
    how: Mapping[str, Any]
    """Arguments of `Contrast.fit`."""

    def __call__(self, first: int, second: int) -> Results:
        """The contrast of two arms, by their places in the table."""
        pair = Contrast(self.log, treatment=self.arms[first], control=self.arms[second])
        pair.denominator = self.denominator
        return pair.fit(**self.how)
