"""Trials in calendar time: participants arrive at random, and outcomes arrive late or never.

Participants count in the order of their arrival. A look takes place once all outcomes of its participants are
known; those who arrive in the meantime are its overrun. Participants whose outcome never arrives are
replaced. Assignments depend only on outcomes that have arrived, so the score remains a martingale in this
order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.log import AdaptiveLog
from adaptinf.parameters import POSITIVE, Is, Number, OrNone, problems_of, refuse
from adaptinf.plans.planning.dates import complete
from adaptinf.sessions.enrolment import Arrivals, enrol
from adaptinf.simulation.functions import draw_potential, empty_potential
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.plans.plan import Plan
    from adaptinf.sessions.session import Session
    from adaptinf.simulation.environments import Environment

# A larger share without an outcome would make trials many times longer than their plan.
_MOST_LOST = 0.9
MANY = 256
"""Number of late trials from which it pays to compile the steps of a design."""


@dataclass(frozen=True, slots=True)
class Timing:
    """When participants arrive and outcomes are known; `delay` in rounds, or a distribution of days.

    `accrual` participants arrive a day on average, as a Poisson process; None measures time in rounds.
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
        """Whether anything about time is stated."""
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


def late_problems(plan: Plan) -> list[str]:
    """Why a plan cannot be simulated in calendar time, or with late or lost outcomes."""
    timing, design = plan.timing, plan.design
    name = type(design).__name__
    problems: list[str] = []
    if plan.start is not None and timing.accrual is None:
        problems.append(
            "a simulation with looks by date requires accrual, the mean number of participants a day"
        )
    if not timing.late:
        return problems
    if plan.law != "z":
        problems.append(f'delay and dropout require law="z", got {plan.law!r}')
    if design.pending == "last":
        problems.append(f"{name} needs each outcome before the next choice: delay and dropout must be 0")
    if design.pending == "window" and (timing.dropout or not isinstance(timing.delay, Integral)):
        problems.append(f"{name} uses outcomes after a fixed number of rounds: delay must be such a number")
    return problems


@dataclass(frozen=True, slots=True, eq=False)
class Calendar:
    """Times of one trial; arrival, known (N,), the latter infinite for lost outcomes."""

    arrival: FloatArray
    known: FloatArray
    kept: BoolArray

    def last(self, rounds: int) -> int:
        """Participants up to the last one of a number who have an outcome."""
        return int(np.searchsorted(np.cumsum(self.kept), rounds)) + 1 if rounds else 0

    def at_look(self, rounds: int, time: float | None = None) -> tuple[float, float, float]:
        """Time of a look at this number of outcomes, participants by then, and the overrun.

        The time is that at which they are known, unless the look has its own.
        """
        last = self.last(rounds)
        if time is None:
            time = float(self.known[:last][self.kept[:last]].max())
        enrolled = float(np.count_nonzero(self.arrival <= time))
        return time, enrolled, enrolled - last

    def ends(self, days: FloatArray) -> IntArray:
        """Participants with an outcome before the first pending one, at each day."""
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


def calendar_for(plan: Plan, rng: np.random.Generator) -> Calendar:
    """Draw a trial of a plan; its time begins with the first participant unless the plan states a date."""
    made = calendar_of(plan.timing, plan.horizon, rng)
    if plan.start is None or plan.start.moment is not None:
        return made
    return Calendar(made.arrival - made.arrival[0], made.known - made.arrival[0], made.kept)


def ends_of(plan: Plan, calendar: Calendar | None) -> IntArray:
    """Rounds up to each look of a simulated trial."""
    if plan.start is None:
        return plan.looks
    assert calendar is not None
    ends = calendar.ends(plan.looks)
    full = np.flatnonzero(ends >= plan.horizon)
    return ends[: int(full[0]) + 1] if len(full) else ends


def trial_of(
    plan: Plan, environment: Environment, rng: np.random.Generator, fast: bool = False
) -> tuple[AdaptiveLog, Calendar | None]:
    """The log of one simulated trial, without participants who have no outcome, and its calendar.

    `fast` compiles the steps of late trials, which takes seconds for each design.
    """
    timing = plan.timing
    if not timing.stated:
        return plan.design.run(environment, horizon=plan.horizon, rng=rng), None
    calendar = calendar_for(plan, rng)
    if not timing.late:
        return plan.design.run(environment, horizon=plan.horizon, rng=rng), calendar
    session, people = opened(plan, environment, calendar, rng)
    enrol(session, people, len(calendar.arrival), math.inf, fast)
    log = session.log(missing=None if calendar.kept.all() else "drop")
    return (log if calendar.kept.all() else _without_lost(log, calendar.kept, environment.n_arms)), calendar


def opened(
    plan: Plan, environment: Environment, calendar: Calendar, rng: np.random.Generator
) -> tuple[Session, Arrivals]:
    """A session before the first participant, and all participants who will arrive."""
    rounds, n_arms = len(calendar.arrival), environment.n_arms
    refuse("Plan", late_environment_problems(environment, rounds))
    potential = empty_potential(rounds, n_arms, 0)
    draw_potential(environment.renew(rounds, rng).tables, rng, potential)
    window = int(plan.timing.delay) if plan.design.pending == "window" else None
    session = plan.design.session(
        list(range(n_arms)),
        rounds,
        features=list(environment.features) or None,
        reward_range=environment.reward_range,
        window=window,
        rng=rng,
    )
    order = np.argsort(calendar.known, kind="stable")[: int(calendar.kept.sum())]
    return session, Arrivals(calendar.arrival, calendar.known, potential.feature, potential.reward, order)


def _without_lost(log: AdaptiveLog, kept: BoolArray, n_arms: int) -> AdaptiveLog:
    """The rows with an outcome, as a separate log."""
    frame = log.frame[kept].reset_index(drop=True)
    propensities = log.arrays.propensities
    columns: dict[str, Any] = {"action": "action", "reward": "reward"}
    if log.context is not None:
        columns["context"] = log.context
    if propensities is not None:
        names = [f"p_{arm}" for arm in range(n_arms)]
        frame[names] = propensities[kept]
        columns["propensities"] = "p_{arm}"
    return AdaptiveLog(frame, arms=list(range(n_arms)), **columns)


def late_environment_problems(environment: Environment, rounds: int) -> list[str]:
    """The reasons if outcomes of an environment cannot arrive late."""
    if environment.dimension or environment.delayed:
        told = "context vectors" if environment.dimension else "its own delays"
        return [f"{type(environment).__name__} has {told}, so delay and dropout must be 0"]
    return environment.horizon_problems(rounds)


def calendar_numbers(
    plan: Plan, calendar: Calendar | None, look: int, size: int
) -> tuple[float, float, float]:
    """Numbers of `Calendar.at_look` for the end of a trial; NaN if nothing about time is stated."""
    if calendar is None:
        return math.nan, math.nan, math.nan
    return calendar.at_look(size, None if plan.start is None else float(plan.looks[look]))


def mean_of(reward: FloatArray) -> float:
    """The mean reward; 0 without any."""
    return float(reward.mean()) if len(reward) else 0.0
