"""How valid one method is for a log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adaptinf.inference.validity.order import Rank


@dataclass(frozen=True, slots=True)
class Verdict:
    """How valid one method is for a log."""

    name: str
    label: str
    rank: Rank
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    assumes: tuple[str, ...] = ()
    warning: str = ""
    baseline: bool = False
    """Whether it runs although it is not valid."""
    offered: bool = True
    """Whether errors name it as an alternative."""
    corrected: bool = False
    """Whether the corrected columns are what is valid."""
    length: float = math.nan
    """Expected length of its 95% intervals, where it is known; it looks at no arm's own rewards."""
    unanswered: int = 0
    """Arms that it gives no interval, as their outcomes are too rare for it."""
    opening: str = ""
    """What a fit that was taken for this reason says in the place of its own opening; empty for that."""

    @property
    def order(self) -> tuple[bool, int, Rank]:
        """Its place among others: valid ones first, then those that give most arms an interval, by rank."""
        return not self.valid, self.unanswered if self.valid else 0, self.rank

    @property
    def valid(self) -> bool:
        """Whether it is not labelled "not valid"."""
        return self.label != "not valid"
