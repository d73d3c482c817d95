"""Looks by information: the inverse of the squared standard error of the difference so far.

A look takes place after the first participant with whom the information reaches its level. This is a stopping
time, so the score there is a value of the same martingale as at any look.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.inference.group_sequential.boundaries import Boundary
from adaptinf.inference.group_sequential.score_process import ScoreProcesses
from adaptinf.log.stated_plans import looks_of, states_plan
from adaptinf.parameters import OPEN_SHARE, Is, number_array, problems_of, refuse
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.plans.planned_trial import PlannedTrial


def information_problems(looks: Any, horizon: Any, law: Any, drop: Any) -> list[str]:
    """Problems with looks by information."""
    levels, problems = number_array(looks), []
    listed = levels is not None and levels.ndim == 1 and len(levels) > 0
    if not listed or levels is None or not np.all(np.isfinite(levels)) or levels[0] <= 0.0:
        problems.append(f"looks by information must be positive numbers, got {looks!r:.60}")
    elif np.any(np.diff(levels) <= 0.0):
        problems.append(f"looks by information must be in ascending order, got {looks!r:.60}")
    if horizon is None:
        problems.append("looks by information require horizon, the largest number of participants")
    if law != "z":
        problems.append(f'looks by information require law="z", got {law!r}')
    if drop is not None:
        problems.append("looks by information cannot drop treatments")
    return problems


def informed(found: ScoreProcesses, possible: FloatArray, least: float) -> FloatArray:
    """Information after each round, (T,): the smallest over the treatments that could be drawn in it.

    It counts only once both arms have the least number of effective rewards and outcomes; `found` has a look
    after every round, and possible (T, J) are propensities.
    """
    levels = np.full((len(possible), len(found.each)), np.inf)
    for place, one in enumerate(found.each):
        enough = (np.minimum(one.effective, one.events) >= least) & (one.clock > 0.0)
        level = np.divide(one.slope**2, one.clock, out=np.zeros(len(enough)), where=enough)
        levels[:, place] = np.where(possible[:, place] > 0.0, level, np.inf)
    least_of = levels.min(axis=1)
    return np.where(np.isfinite(least_of), least_of, 0.0)


def information_after(plan: PlannedTrial, log: AdaptiveLog) -> FloatArray:
    """Information after each round of a log up to the horizon, (T,)."""
    rounds = min(log.n_rounds, plan.horizon)
    found = plan.plain_processes(log, np.arange(1, rounds + 1))
    assert log.arrays.propensities is not None
    codes = list(plan.codes(log)[:-1])
    return informed(found, log.arrays.propensities[:rounds, codes], plan.rule.least)


def rounds_reached(plan: PlannedTrial, log: AdaptiveLog) -> IntArray:
    """Rounds up to each look that a log has reached.

    Looks that the log of a trial states stay where they were, even if outcomes were amended later. The
    horizon is a look, and then the last one, if no later look has been reached.
    """
    stated = looks_of(log) if states_plan(log) else []
    ends = [look["rounds"] for look in stated if look["rounds"] <= log.n_rounds]
    information = information_after(plan, log)
    for level in plan.looks[len(ends) :].tolist():
        begun = ends[-1] if ends else 0
        later = np.flatnonzero(information[begun:] >= level)
        if not len(later):
            break
        ends.append(begun + int(later[0]) + 1)
    if len(ends) < len(plan.looks) and log.n_rounds >= plan.horizon > (ends[-1] if ends else 0):
        ends.append(plan.horizon)
    return np.array(ends, dtype=np.int64)


def required_information(plan: PlannedTrial, difference: Any, power: Any) -> float:
    """Information of the last look at which a plan has a given power, by the normal law of its looks."""
    problems = problems_of(power=(power, OPEN_SHARE))
    told = f"a number other than the margin {plan.margin:g}"
    apart = Is(lambda one: isinstance(one, (int, float)) and math.isfinite(one) and one != plan.margin, told)
    problems += apart("difference", difference)
    if plan.law != "z" or plan.joint:
        problems.append('required_information is for plans with one treatment and law="z"')
    refuse("Plan.required_information", problems)
    upper = plan.bounds["bound"].to_numpy()
    lower = -upper if plan.sides == 2 else plan.rule.futility
    boundary = Boundary(plan.looks / plan.looks[-1], lower, upper, plan.sides)
    drift = boundary.drift_of_power(float(power)) * plan.inflation
    return float((drift / (difference - plan.margin)) ** 2)
