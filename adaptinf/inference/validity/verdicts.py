"""What one method is worth for a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adaptinf.inference.corrections.information import Correction
from adaptinf.log import Stability
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["Traits", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one method is worth for a log."""

    name: str
    label: str
    rank: float
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    assumes: str = ""
    warning: str = ""
    baseline: bool = False

    @property
    def valid(self) -> bool:
        """Whether it is not labelled "not valid"."""
        return self.label != "not valid"


@dataclass(frozen=True, slots=True)
class Traits:
    """What decides about the estimators of arm means; codes (k,)."""

    log: AdaptiveLog
    codes: IntArray
    adaptive: bool
    refusal: str
    score_refusal: str
    estimated: bool
    correction: Correction | None
    stability: Stability | None
    variation: float | None
