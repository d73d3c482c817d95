"""How a log came to have its number of rounds: fixed beforehand, chosen by the data, or by a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaptinf.claims.logs import stopping as claims
from adaptinf.log.traits import LEFT_OUT, PLANNED, STOP_REASON

FIXED = "fixed"
STOPPINGS = (FIXED, "data-chosen", "planned")
_LONGEST = 200
"""Characters of a reason that are shown."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """What a log says of how its number of rounds was decided."""

    said: str | None
    rounds: int
    """Rounds that there were, those that are not in the log any more included."""
    planned: int | None = None
    """Rounds that were declared, where there are fewer."""
    reason: str = ""
    """Why somebody stopped it, in their words."""
    complete: bool = True
    """Whether no reward is missing, as confidence sequences need it."""

    @classmethod
    def of(cls, log: Any, *, covered: bool = False) -> Stopping:
        """That of a log, sums or a public part; `covered`: only what a privacy guarantee covers."""
        parameters = {} if log.design is None else log.design.parameters
        left_out = 0 if covered else int(parameters.get(LEFT_OUT, 0)) + log.omitted
        reason = "" if covered else str(parameters.get(STOP_REASON, ""))
        complete = covered or getattr(log, "missing", None) is None
        return cls(log.stopping, log.n_rounds + left_out, parameters.get(PLANNED), reason, complete)

    @property
    def counted(self) -> str:
        """The number of rounds, of how many where that is known."""
        of = "" if self.planned is None else f" of {self.planned:,}"
        return f"{self.rounds:,}{of} rounds"

    @property
    def shown_reason(self) -> str:
        """The reason, or the beginning of a long one."""
        return self.reason if len(self.reason) <= _LONGEST else f"{self.reason[: _LONGEST - 3]}..."

    @property
    def told(self) -> str:
        """In a few words, for a list of what a log says of itself."""
        if self.said is None:
            return claims.UNSTATED()
        if self.said == FIXED:
            return self.said
        early = "" if self.planned is None else f", after {self.counted}"
        reason = f" ({self.shown_reason!r})" if self.reason else ""
        return f"{self.said}{early}{reason}"
