"""What a model of arms asks its methods, and what they settle on or refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import ChosenFrom
    from adaptinf.inference.validity.profile import LogProfile


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a model of arms asks about a log, and what a user knows beyond it; codes (k,).

    `stationary` says that no mean drifts, so that arms may have weights of their own; `family` is the number
    of contrasts in the table.
    """

    profile: LogProfile
    codes: IntArray
    contrast: bool = False
    decay: float | None = None
    variation: float | None = None
    stationary: bool = False
    family: int = 1

    @property
    def asked(self) -> tuple[Any, ...]:
        """What verdicts on the log depend on."""
        return self.contrast, self.decay, self.variation, self.stationary, self.codes.tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Arguments of `fit`; what is None is for the method to choose."""

    subject: str
    estimator: str | None = None
    weights: str | None = None
    decay: float | None = None
    test: str = "auto"
    outcome: Any = None
    ridge: float | None = None
    arm_error: str = "conservative"
    named: str = "before"
    chosen_from: ChosenFrom = "actions"
    stationary: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A valid way to estimate arm means from a log."""

    estimator: str
    weights: str | None = None
    decay: float | None = None
    reason: str = field(default="", compare=False, repr=False)


class Refused(Exception):
    """A method does not serve; the model adds what does between what comes first and last."""

    def __init__(
        self, method: str, reason: str, first: tuple[str, ...] = (), last: tuple[str, ...] = ()
    ) -> None:
        super().__init__(method, reason)
        self.method, self.reason, self.first, self.last = method, reason, first, last
