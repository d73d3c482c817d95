"""Trials in calendar time: participants arrive at random, and outcomes arrive late or never.

Participants count in the order of their arrival. A look takes place once all outcomes of its participants are
known; participants who arrive in the meantime are its overrun. Participants whose outcome never arrives are
replaced. Assignments depend only on outcomes that have arrived, so the score remains a martingale in this
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from adaptinf.parameters import POSITIVE, Is, Number, OrNone, problems_of
from adaptinf.plans.planning.dates import complete
from adaptinf.typing import BoolArray, FloatArray, IntArray

# A larger share without an outcome would make trials many times longer than their plan.
_MOST_LOST = 0.9


@dataclass(frozen=True, slots=True)
class Timing:
    """When participants arrive and outcomes are known; `delay` is in rounds, or a distribution of days.

    On average, `accrual` participants arrive per day, as a Poisson process; None measures time in rounds.
    """

    delay: Any
    accrual: float | None
    dropout: float

    @property
    def late(self) -> bool:
        """Whether outcomes may arrive late or never."""
        return bool(self.delay) or self.dropout > 0.0

    @property
    def stated(self) -> bool:
        """Whether any statement about time is given."""
        return self.late or self.accrual is not None


def timing_problems(delay: Any, accrual: Any, dropout: Any) -> list[str]:
    """Problems with the arguments about time."""
    problems = problems_of(accrual=(accrual, OrNone(POSITIVE)), dropout=(dropout, Number(0.0, _MOST_LOST)))
    rounds = isinstance(delay, Integral) and not isinstance(delay, bool)
    if rounds and delay < 0:
        problems.append(f"delay must be at least 0 rounds, got {delay!r:.20}")
    elif not rounds:
        what = "a number of rounds, or a distribution of days, such as scipy.stats.expon(scale=30)"
        problems += Is(lambda one: hasattr(one, "rvs"), what)("delay", delay)
        if accrual is None:
            problems.append("a delay in days requires accrual, the mean number of participants a day")
    return problems


@dataclass(frozen=True, slots=True, eq=False)
class Calendar:
    """Times of one trial; arrival and known have shape (N,), and known is infinite for lost outcomes."""

    arrival: FloatArray
    known: FloatArray
    kept: BoolArray

    def last(self, rounds: int) -> int:
        """Number of participants up to the last of the first `rounds` with an outcome."""
        return int(np.searchsorted(np.cumsum(self.kept), rounds)) + 1 if rounds else 0

    def at_look(self, rounds: int, time: float | None = None) -> tuple[float, float, float]:
        """Time of a look at this number of outcomes, the number of participants by then, and the overrun.

        The time is that at which the outcomes are known, unless the look has its own time.
        """
        last = self.last(rounds)
        if time is None:
            time = float(self.known[:last][self.kept[:last]].max())
        enrolled = float(np.count_nonzero(self.arrival <= time))
        return time, enrolled, enrolled - last

    def ends(self, days: FloatArray) -> IntArray:
        """Number of participants with an outcome before the first pending one, on each day."""
        return complete(self.known[self.kept], days)


def calendar_of(timing: Timing, horizon: int, rng: np.random.Generator) -> Calendar:
    """Draw a trial that continues until `horizon` participants have an outcome."""
    kept = np.ones(horizon, dtype=bool)
    if timing.dropout > 0.0:
        parts = [rng.random(horizon) >= timing.dropout]
        while sum(int(part.sum()) for part in parts) < horizon:
            parts.append(rng.random(horizon) >= timing.dropout)
        kept = np.concatenate(parts)
        kept = kept[: int(np.searchsorted(np.cumsum(kept), horizon)) + 1]
    size = len(kept)
    by_rounds = isinstance(timing.delay, Integral)
    more = size + (int(timing.delay) if by_rounds else 0)
    arrival = np.arange(1.0, more + 1.0)
    if timing.accrual is not None:
        arrival = np.cumsum(rng.exponential(1.0 / timing.accrual, more))
    if by_rounds:
        known = arrival[int(timing.delay) :]
    else:
        known = arrival + np.maximum(
            np.asarray(timing.delay.rvs(size, random_state=rng), dtype=np.float64), 0.0
        )
    return Calendar(arrival[:size], np.where(kept, known, np.inf), kept)
