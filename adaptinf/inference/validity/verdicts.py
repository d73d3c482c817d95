"""What one method is worth for a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LABELS", "Verdict"]

LABELS = ("exact", "anytime", "asymptotic", "not valid")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one method is worth for a log.

    Attributes
    ----------
    name, label : str
        The method, and one of `LABELS`.
    rank : float
        Its place among the valid methods, or among the others.
    arguments : mapping
        Of the `fit` that runs it.
    reason, assumes, warning : str
        Why it is valid, or not; what it assumes; what to be careful about.
    baseline : bool
        Whether it runs although it is not valid.
    offered : bool
        Whether errors name it as an alternative.
    opening : str
        First note under the table of a fit that was taken for this reason; empty for the method's own.
    """

    name: str
    label: str
    rank: float
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    assumes: str = ""
    warning: str = ""
    baseline: bool = False
    offered: bool = True
    opening: str = ""

    @property
    def valid(self) -> bool:
        """Whether it is not labelled "not valid"."""
        return self.label != "not valid"
