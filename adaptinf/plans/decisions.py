"""Decisions of a plan at its looks, based only on the scores so far.

Alpha is spent by calendar: each look may spend a share that was fixed in advance. Critical values use the
observed information, so they are valid regardless of how the information grows. If there are too few data at
a look, no test is made, and its alpha is carried over to the next look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy import special

from adaptinf.inference.distributions.tails import log_student_tail
from adaptinf.inference.group_sequential.boundaries import critical_value
from adaptinf.inference.group_sequential.crossing import Walk
from adaptinf.inference.group_sequential.score_process import ScoreProcess
from adaptinf.inference.group_sequential.stagewise import Stopped
from adaptinf.typing import FloatArray, IntArray

Decision = Literal["continue", "reject", "futility", "no rejection", "too few data"]
"""The decision at a look; the last two end a trial at its horizon."""


def no_ends() -> IntArray:
    """Empty array for the rounds of a course's looks, until they are known."""
    return np.zeros(0, dtype=np.int64)


_GROWS = 1.0001
"""Smallest ratio of the clocks of two tests: below it, a test adds nothing, and its law is costly."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """The rule for stopping; spent, futility and drop have shape (k,), with one entry per look.

    The entries are the level of each look; the value at or below which abs(z), or z, stops the trial for
    futility; and the value of z at or below which one of several treatments is dropped. `least` is the
    smallest effective number of rewards, and of the rarer outcome, of either arm at a test.
    """

    spent: FloatArray
    futility: FloatArray
    sides: int
    least: float
    drop: FloatArray

    def ending(self, look: int) -> Rule:
        """The rule if a look, counted from 0, is the last: it may spend the remaining alpha."""
        if look >= len(self.spent) - 1:
            return self
        spent = np.append(self.spent[:look], self.spent[look:].sum())
        futility, drop = (np.append(one[:look], -np.inf) for one in (self.futility, self.drop))
        return replace(self, spent=spent, futility=futility, drop=drop)


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """A trial up to its latest look, counted from 0; tests (m,) are the looks at which a test was made.

    `ends` (k,) are the rounds up to each look.

    Information, slope, bound and z have shape (m,); z contains the standardised scores, as quantiles of the
    normal distribution unless they are compared by rank. `pvalue` is the p-value of a comparison by rank.
    """

    decision: Decision
    look: int
    tests: tuple[int, ...]
    information: FloatArray
    slope: FloatArray
    bound: FloatArray
    z: FloatArray
    sides: int
    pvalue: float = math.nan
    ends: IntArray = field(default_factory=no_ends)

    @property
    def rounds(self) -> int:
        """Rounds up to the look."""
        return int(self.ends[self.look])

    @property
    def std_error(self) -> float:
        """Standard error of the estimate that ignores the looks."""
        return float(math.sqrt(self.information[-1]) / self.slope[-1])

    def stopped(self) -> Stopped:
        """The trial as needed for stage-wise ordering, without futility, which is not binding."""
        lower = -self.bound if self.sides == 2 else np.full(len(self.bound), -np.inf)
        score = float(self.z[-1] * math.sqrt(self.information[-1]))
        return Stopped(self.information, self.slope, lower, self.bound, score)


def course_of(
    process: ScoreProcess,
    decision: Decision,
    look: int,
    bound: FloatArray,
    z: FloatArray,
    sides: int,
    pvalue: float,
) -> Course:
    """The course of a trial with a test at every look; bound and z have at least m entries."""
    upto = look + 1
    parts = process.clock[:upto], process.slope[:upto], bound[:upto], z[:upto]
    return Course(decision, look, tuple(range(upto)), *parts, sides, pvalue)


def normal_score(z: float, df: float) -> float:
    """The normal quantile with the tail of a t statistic."""
    return math.copysign(-float(special.ndtri_exp(log_student_tail(abs(z), df))), z)


def with_all(course: Course, process: ScoreProcess, rounds: int) -> Course:
    """A course whose last test uses all rounds; `process` contains the scores after all rounds."""
    information, slope, z = course.information.copy(), course.slope.copy(), course.z.copy()
    information[-1], slope[-1] = process.clock[-1], process.slope[-1]
    z[-1] = normal_score(float(process.z[-1]), float(process.effective[-1]) - 1.0)
    ends = course.ends.copy()
    ends[course.tests[-1]] = rounds
    return replace(course, information=information, slope=slope, z=z, ends=ends)


def follow(process: ScoreProcess, rule: Rule) -> Course:
    """The course of a trial over the looks reached so far, up to the one at which it stops."""
    walk, carried = Walk(), 0.0
    decision: Decision = "continue"
    tests: list[int] = []
    seen: list[tuple[float, float, float, float]] = []
    z, look, last = process.z, -1, len(rule.spent) - 1
    for look in range(len(process.score)):
        carried += float(rule.spent[look])
        size = float(process.clock[look])
        enough = min(process.effective[look], process.events[look]) >= rule.least
        if not enough or not size > _GROWS * walk.information:
            continue
        score = normal_score(float(z[look]), float(process.effective[look]) - 1.0)
        bound = critical_value(walk.above, size, carried)
        tests.append(look)
        seen.append((size, float(process.slope[look]), bound, score))
        decision = _decision(score, bound, float(rule.futility[look]), rule.sides)
        if decision != "continue" or look == last:
            break
        carried, root = 0.0, math.sqrt(size)
        walk.proceed(size, -bound * root if rule.sides == 2 else -math.inf, bound * root)
    if decision == "continue" and look == last:
        decision = "no rejection" if tests and tests[-1] == last else "too few data"
    size_of, slope, bounds, scores = np.array(seen, dtype=np.float64).reshape(-1, 4).T
    return Course(decision, look, tuple(tests), size_of, slope, bounds, scores, rule.sides)


def _decision(z: float, bound: float, futility: float, sides: int) -> Decision:
    size = abs(z) if sides == 2 else z
    if size >= bound:
        return "reject"
    return "futility" if size <= futility else "continue"
