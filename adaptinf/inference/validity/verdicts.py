"""What one method is worth for a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.validity.stable_designs import Stability
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["LABELS", "Traits", "Verdict"]

LABELS = ("exact", "anytime", "asymptotic", "not valid")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one method is worth for a log.

    Attributes
    ----------
    name : str
        The method.
    label : {"exact", "anytime", "asymptotic", "not valid"}
        Exact: at any number of rounds, that fixed in advance. Anytime: at any number of rounds, at all of
        them together. Asymptotic: as the rounds grow.
    rank : float
        Lower ones come first.
    arguments : mapping
        Of the call.
    reason : str
        Why.
    assumes : str
        What it rests on; empty where it is not valid.
    warning : str
        Where it is known to fall short; may be empty.
    baseline : bool
        Whether it runs, although it is not valid.
    """

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
    """What decides about the estimators of arm means.

    Attributes
    ----------
    log : AdaptiveLog
        The log.
    codes : ndarray of int64, shape (k,)
        The arms of interest.
    adaptive : bool
        Whether rewards may have changed later actions.
    refusal : str
        Why the arms' rounds cannot be compared; empty where they can.
    score_refusal : str
        Why inverse propensities do not serve; empty where they do.
    estimated : bool
        Whether the propensities are estimates.
    correction : Correction or None
        What the guarantee licenses.
    stability : Stability or None
        What is known of the design.
    variation : float or None
        Coefficient of variation of re-simulated arm counts.
    """

    log: AdaptiveLog
    codes: IntArray
    adaptive: bool
    refusal: str
    score_refusal: str
    estimated: bool
    correction: Correction | None
    stability: Stability | None
    variation: float | None
