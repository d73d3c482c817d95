"""Simulated trials of a plan: outcomes may arrive late or never, and treatments may be dropped at looks."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from adaptinf.inference.group_sequential.score_process import ScoreProcesses, score_processes
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import refuse
from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.plans.planning.strata import inflated
from adaptinf.plans.planning.timing import Calendar, calendar_of
from adaptinf.plans.several import Following, SeveralCourse, left
from adaptinf.sessions.enrolment import Arrivals, enrol, first_rounds
from adaptinf.sessions.session import Session
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.functions import draw_potential, empty_potential
from adaptinf.typing import BoolArray, FloatArray, IntArray

MANY = 256
"""Number of trials with delays above which compiling the steps of a design saves time."""


def late_problems(plan: PlannedTrial) -> list[str]:
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


def late_environment_problems(environment: Environment, rounds: int) -> list[str]:
    """The reasons why outcomes of an environment cannot arrive late."""
    if environment.dimension or environment.delayed:
        told = "context vectors" if environment.dimension else "its own delays"
        return [f"{type(environment).__name__} has {told}, so delay and dropout must be 0"]
    return environment.horizon_problems(rounds)


def calendar_for(plan: PlannedTrial, rng: np.random.Generator) -> Calendar:
    """Draw a trial of a plan; time begins with the first participant, unless the plan states a date."""
    made = calendar_of(plan.timing, plan.horizon, rng)
    if plan.start is None or plan.start.moment is not None:
        return made
    return Calendar(made.arrival - made.arrival[0], made.known - made.arrival[0], made.kept)


def ends_of(plan: PlannedTrial, calendar: Calendar | None, log: AdaptiveLog | None = None) -> IntArray:
    """Rounds up to each look of a simulated trial; those of looks by information depend on its log."""
    if plan.clock == "rounds":
        return plan.looks
    if plan.clock == "information":
        assert log is not None
        return plan.information_ends(log)
    assert calendar is not None
    ends = calendar.ends(plan.looks)
    full = np.flatnonzero(ends >= plan.horizon)
    return ends[: int(full[0]) + 1] if len(full) else ends


def trial_of(
    plan: PlannedTrial, environment: Environment, rng: np.random.Generator, fast: bool = False
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
    plan: PlannedTrial, environment: Environment, calendar: Calendar, rng: np.random.Generator
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


class Followed(NamedTuple):
    """A simulated trial, at least up to its stop; action and reward (T,) of participants with outcomes."""

    action: IntArray
    reward: FloatArray
    processes: ScoreProcesses
    course: SeveralCourse
    calendar: Calendar | None


def run(
    plan: PlannedTrial, environment: Environment, rng: np.random.Generator, fast: bool = False
) -> Followed:
    """One trial of several treatments; if treatments can leave by rule, only up to its stop."""
    if drops(plan):
        return _run_from_look_to_look(plan, environment, rng, fast)
    log, calendar = trial_of(plan, environment, rng, fast)
    ends = ends_of(plan, calendar, log)
    processes = plan.processes(log, ends)
    assert processes is not None
    course = plan.follow_several(processes, log, ends)
    return Followed(log.arrays.action, log.arrays.reward, processes, course, calendar)


def _run_from_look_to_look(
    plan: PlannedTrial, environment: Environment, rng: np.random.Generator, fast: bool
) -> Followed:
    """One trial from which treatments are removed as in a live one, when all outcomes of a look are known."""
    calendar = calendar_for(plan, rng)
    ends, by_date = ends_of(plan, calendar), plan.start is not None
    session, people = opened(plan, environment, calendar, rng)
    codes, gone = plan.positions, set[int]()
    following = Following(len(codes) - 1, plan.rule_by(ends))
    for look, rounds in enumerate(ends.tolist()):
        time, enrolled, _ = calendar.at_look(rounds, float(plan.looks[look]) if by_date else None)
        enrol(session, people, int(enrolled), time, fast)
        last, upto = calendar.last(rounds), ends[: look + 1]
        action, reward, propensities = first_rounds(session, calendar.kept[:last])
        processes = score_processes(action, reward, propensities, codes[:-1], codes[-1], upto, plan.margin)
        processes = inflated(processes, plan.inflation)
        following.proceed(processes, left(propensities, codes, upto))
        if following.decision != "continue":
            break
        for code in [codes[j] for j in np.flatnonzero(following.gone <= look + 1).tolist()]:
            if code not in gone:
                session.remove_arm(code)
                gone.add(code)
    shown = calendar if plan.timing.stated else None
    return Followed(action, reward, processes, replace(following.course(), ends=ends), shown)


def drops(plan: PlannedTrial) -> bool:
    """Whether treatments can leave by rule."""
    return bool(np.isfinite(plan.rule.drop).any())


def check_dropping(plan: PlannedTrial, environment: Environment) -> None:
    """Refuse designs that cannot continue without an arm, and environments with contexts or delays."""
    if environment.features or environment.dimension or environment.delayed:
        refuse("Plan.operating_characteristics", ["drop requires environments without contexts or delays"])
    rng = np.random.default_rng(0)
    session, _ = opened(plan, environment, calendar_for(plan, rng), rng)
    session.assign()
    session.remove_arm(plan.positions[0])


def calendar_numbers(
    plan: PlannedTrial, calendar: Calendar | None, look: int, size: int
) -> tuple[float, float, float]:
    """Numbers of `Calendar.at_look` for the end of a trial; NaN if nothing about time is stated."""
    if calendar is None:
        return math.nan, math.nan, math.nan
    return calendar.at_look(size, None if plan.start is None else float(plan.looks[look]))


def mean_of(reward: FloatArray) -> float:
    """The mean reward; 0 if there are no rewards."""
    return float(reward.mean()) if len(reward) else 0.0
