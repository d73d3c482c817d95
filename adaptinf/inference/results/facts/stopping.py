"""What claims on how a log came to have its number of rounds ask."""

from __future__ import annotations

from adaptinf.log.stopping import Stopping


class StoppingFacts:
    """What claims on a table for a fixed number of rounds ask; `instead`: what holds where it was not."""

    def __init__(self, stopping: Stopping, instead: str) -> None:
        self.stopping = stopping
        self._values = {"rounds": stopping.counted, "instead": instead}

    @property
    def is_unstated(self) -> bool:
        """The log does not say what chose the number of rounds."""
        return self.stopping.said is None

    @property
    def stopped_by_hand(self) -> dict[str, str]:
        """Somebody ended the trial early, and said why."""
        by_hand = self.stopping.said == "data-chosen" and self.stopping.reason
        return {**self._values, "reason": self.stopping.shown_reason} if by_hand else {}

    @property
    def chosen_by_data(self) -> dict[str, str]:
        """The data chose it, as the log states."""
        by_data = self.stopping.said == "data-chosen" and not self.stopping.reason
        return self._values if by_data else {}

    @property
    def chosen_by_plan(self) -> dict[str, str]:
        """A planned rule chose it."""
        return self._values if self.stopping.said == "planned" else {}
