"""Probability that a trial under way will reject, given its scores so far.

Information and slope of later looks are projected in proportion to their rounds or days, and critical values
follow from the remaining level. Futility is ignored, as in the levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from adaptinf.claims.logs import plans as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.group_sequential.boundaries import critical_value
from adaptinf.inference.group_sequential.crossing import Walk

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.plans.decisions import Course
    from adaptinf.plans.planned_trial import PlannedTrial

_NODE, _WEIGHT = np.polynomial.hermite_e.hermegauss(41)


def conditional_power(plan: PlannedTrial, log: AdaptiveLog, difference: float | None) -> float:
    """Probability of rejection if the true difference has this value, by default the estimate."""
    course = _under_way(plan, log, "Plan.conditional_power")
    score, slope = _state(course)
    effect = score / slope if difference is None else difference - plan.margin
    return _chance(plan, course, effect)


def predictive_power(plan: PlannedTrial, log: AdaptiveLog) -> float:
    """Conditional power averaged over the differences, normal about the estimate."""
    course = _under_way(plan, log, "Plan.predictive_power")
    score, slope = _state(course)
    effects = score / slope + course.std_error * _NODE
    chances = [_chance(plan, course, float(effect)) for effect in effects]
    return float(np.array(chances) @ _WEIGHT / _WEIGHT.sum())


def _under_way(plan: PlannedTrial, log: AdaptiveLog, subject: str) -> Course:
    """The course of a trial that continues after a look at which a test was made."""
    if plan.law != "z" or plan.joint:
        raise InvalidForLog(subject, claims.NORMAL_ONLY(law=plan.law), [])
    course = cast("Course | None", plan.course(log))
    if course is None or not course.tests or course.decision != "continue":
        told = (
            "continue, but no look has made a test so far"
            if course is None or not course.tests
            else course.decision
        )
        raise InvalidForLog(subject, claims.NOT_UNDER_WAY(decision=told), ["Plan.look"])
    return course


def _state(course: Course) -> tuple[float, float]:
    """Score and slope at the last test."""
    return float(course.z[-1] * math.sqrt(course.information[-1])), float(course.slope[-1])


def _later(plan: PlannedTrial, course: Course) -> Iterator[tuple[float, float]]:
    """Information and critical value of each later look."""
    walk, sides = Walk(), plan.sides
    for size, bound in zip(course.information.tolist(), course.bound.tolist(), strict=True):
        root = math.sqrt(size)
        walk.proceed(size, -bound * root if sides == 2 else -math.inf, bound * root)
    last = course.tests[-1]
    now, carried = float(course.information[-1]), float(plan.rule.spent[last + 1 : course.look + 1].sum())
    for look in range(course.look + 1, len(plan.looks)):
        carried += float(plan.rule.spent[look])
        size = now * float(plan.looks[look] / plan.looks[last])
        bound, root = critical_value(walk.above, size, carried), math.sqrt(size)
        yield size, bound
        carried = 0.0
        walk.proceed(size, -bound * root if sides == 2 else -math.inf, bound * root)


def _chance(plan: PlannedTrial, course: Course, effect: float) -> float:
    """Probability of crossing a critical value at a later look."""
    score, slope = _state(course)
    before = float(course.information[-1])
    walk, total = Walk(effect * slope / before), 0.0
    for size, bound in _later(plan, course):
        reach, step = bound * math.sqrt(size), size - before
        low = -reach - score if plan.sides == 2 else -math.inf
        total += walk.above(step, reach - score)
        total += walk.below(step, low) if plan.sides == 2 else 0.0
        walk.proceed(step, low, reach - score)
    return min(total, 1.0)
