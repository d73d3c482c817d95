"""Simulated trials from which treatments leave at looks: the design step by step, as in a live trial."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adaptinf.inference.group_sequential.score_process import ScoreProcesses, score_processes
from adaptinf.parameters import refuse
from adaptinf.plans.planning.strata import inflated
from adaptinf.plans.planning.timing import Calendar, calendar_for, ends_of, opened, trial_of
from adaptinf.plans.several import Following, SeveralCourse, left
from adaptinf.sessions.enrolment import enrol, first_rounds
from adaptinf.simulation.environments import Environment
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.plans.plan import Plan


class Followed(NamedTuple):
    """A simulated trial, at least up to its stop; action, reward (T,) of participants with outcomes."""

    action: IntArray
    reward: FloatArray
    processes: ScoreProcesses
    course: SeveralCourse
    calendar: Calendar | None


def run(plan: Plan, environment: Environment, rng: np.random.Generator, fast: bool = False) -> Followed:
    """One trial of several treatments; if treatments can leave by rule, only up to its stop."""
    if drops(plan):
        return _run_from_look_to_look(plan, environment, rng, fast)
    log, calendar = trial_of(plan, environment, rng, fast)
    ends = ends_of(plan, calendar)
    processes = plan.processes(log, ends)
    assert processes is not None
    course = plan.follow_several(processes, log, ends)
    return Followed(log.arrays.action, log.arrays.reward, processes, course, calendar)


def _run_from_look_to_look(
    plan: Plan, environment: Environment, rng: np.random.Generator, fast: bool
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


def drops(plan: Plan) -> bool:
    """Whether treatments can leave by rule."""
    return bool(np.isfinite(plan.rule.drop).any())


def check_dropping(plan: Plan, environment: Environment) -> None:
    """Refuse designs that cannot continue without an arm, and environments with contexts or delays."""
    if environment.features or environment.dimension or environment.delayed:
        refuse("Plan.operating_characteristics", ["drop requires environments without contexts or delays"])
    rng = np.random.default_rng(0)
    session, _ = opened(plan, environment, calendar_for(plan, rng), rng)
    session.assign()
    session.remove_arm(plan.positions[0])
