"""Looks at a trial, with their tests and decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaptinf.plans.planning.dates import said_day


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a trial at its latest look.

    Attributes
    ----------
    stage : int
        Number of the look, from 1; 0 before the first.
    rounds : int
        Rounds up to it.
    statistic, bound : float
        The standardised score, and the critical value that its absolute value must reach to reject; NaN if no
        test was made at the look.
    decision : {"continue", "reject", "futility", "no rejection", "too few data"}
        What follows.
    leading : label
        The treatment to which the statistic and the bound refer; of several, the one with the largest score.
    rejected, dropped : tuple of labels
        Of several treatments, those whose null is rejected, and those that have been dropped, now or earlier.
    planned : tuple of numbers
        Times of the plan's looks: numbers of rounds, days since the start, or levels of information.
    clock : {"rounds", "date", "information"}
        The unit in which looks are counted.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=("A", "B"), treatment="B", control="A", looks=[200, 400])
    >>> log = plan.design.run(ai.environments.BernoulliArms([0.2, 0.5]), horizon=400, rng=0)
    >>> plan.look(log).decision
    'reject'
    """

    stage: int
    rounds: int
    statistic: float
    bound: float
    decision: str
    leading: Any = None
    rejected: tuple[Any, ...] = ()
    dropped: tuple[Any, ...] = ()
    planned: tuple[float, ...] = ()
    clock: str = "rounds"

    @classmethod
    def of(cls, stored: Mapping[str, Any], planned: tuple[float, ...], clock: str) -> Look:
        """A look from its numbers, as stored by a trial, and the times of all looks."""
        numbers: dict[str, Any] = {name: float(stored.get(name, math.nan)) for name in ("statistic", "bound")}
        known = {name: stored[name] for name in ("stage", "rounds", "decision", "leading") if name in stored}
        arms: dict[str, Any] = {name: tuple(stored.get(name, ())) for name in ("rejected", "dropped")}
        return cls(**known, **numbers, **arms, planned=planned, clock=clock)

    @property
    def next(self) -> float | None:
        """Rounds, days or information after which the next look is due; None after the last."""
        return self.planned[self.stage] if self.stage < len(self.planned) else None

    def _due(self, after: float) -> str:
        if self.clock == "information":
            return f"at information {after:,g}"
        return f"on day {said_day(after)}" if self.clock == "date" else f"after {after:,} participants"

    @property
    def taken(self) -> str:
        """When the look took place, in words."""
        if self.clock != "date":
            return f"after {self.rounds:,} participants"
        return f"on day {said_day(self.planned[self.stage - 1])}, {self.rounds:,} participants"

    def __str__(self) -> str:
        of = f" of {len(self.planned)}" if self.planned else ""
        if self.stage == 0:
            return f"No look yet: the first{of} is {self._due(self.next)}" if self.next else "No look"
        tested = not math.isnan(self.statistic)
        numbers = (
            f"{self.statistic:.3f}, rejects from {self.bound:.3f}" if tested else "too few data for a test"
        )
        several = bool(self.rejected or self.dropped)
        rows = {"statistic": f"{numbers} ({self.leading})" if several and tested else numbers}
        rows["decision"] = self.decision
        for name in ("rejected", "dropped"):
            if getattr(self, name):
                rows[name] = ", ".join(map(str, getattr(self, name)))
        if self.decision == "continue" and self.next:
            rows["next look"] = self._due(self.next)
        first = f"Look {self.stage}{of}, {self.taken}"
        return "\n".join([first, *(f"  {name:<9}  {text}" for name, text in rows.items())])
