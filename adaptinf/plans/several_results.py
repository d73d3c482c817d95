"""The result of a trial with several treatments: simultaneous intervals that hold at every look."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from scipy import optimize, special

from adaptinf.inference.distributions.tails import student_quantile
from adaptinf.inference.group_sequential.score_process import ScoreProcesses
from adaptinf.plans.decisions import normal_score
from adaptinf.plans.several import ClosedTests, SeveralCourse
from adaptinf.typing import BoolArray, FloatArray

# P-values outside these limits are reported as the limit, or as 1.
_LEAST, _MOST = 1e-12, 0.998


def look_of(course: SeveralCourse, treatments: tuple[Any, ...]) -> dict[str, Any]:
    """Numbers of a look at several treatments: those of the leading one, and which are rejected or gone."""
    j, look = course.leading, course.look
    numbers = {"statistic": math.nan, "bound": math.nan, "leading": None}
    if j is not None:
        bound = course.closed.bound(course.every, look)
        numbers = {
            "statistic": float(course.closed.scores.z[look, j]),
            "bound": bound,
            "leading": treatments[j],
        }
    dropped = course.gone <= look + 1 if course.decision != "reject" else course.gone <= look
    named = {"rejected": course.rejected, "dropped": dropped}
    chosen = {name: tuple(compress(treatments, which)) for name, which in named.items()}
    return {**numbers, "decision": course.decision, **chosen}


@dataclass(frozen=True, eq=False)
class RepeatedReference:
    """Simultaneous repeated intervals for differences, which are measured from `origin`.

    The critical values of the hypothesis about all treatments hold simultaneously at every look, for any
    differences, so the intervals are valid regardless of why the trial stopped.

    `spent` gives the one-sided level of each look, (k,), from the one-sided level of all looks. Intervals are
    those of the last look at which a treatment was tested; without a test, numbers are NaN.
    """

    processes: ScoreProcesses
    course: SeveralCourse
    spent: Callable[[float], FloatArray]
    origin: float
    name: str = field(default="simultaneous repeated intervals", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "z", False, False

    @cached_property
    def _last(self) -> FloatArray:
        """Score, slope, clock and effective number at the last test of each treatment, (J, 4)."""
        rows = [
            [one.score[look], one.slope[look], one.clock[look], one.effective[look]]
            if look >= 0
            else [math.nan] * 4
            for one, look in zip(self.processes.each, self.course.at.tolist(), strict=True)
        ]
        return np.array(rows, dtype=np.float64)

    @property
    def estimate(self) -> FloatArray:
        """Estimates that ignore the looks, (J,)."""
        return self.origin + self._last[:, 0] / self._last[:, 1]

    @property
    def std_error(self) -> FloatArray:
        """Their standard errors, (J,)."""
        return np.asarray(np.sqrt(self._last[:, 2]) / self._last[:, 1])

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, adjusted for looks and treatments, (J,)."""
        return np.array([self._log_pvalue(j, null) for j in range(len(self.course.at))])

    def interval(self, log_alpha: float) -> FloatArray:
        """Simultaneous intervals at level 1 - exp(log_alpha), (J, 2)."""
        return self.limits(self.tests(math.exp(log_alpha)))

    def limits(self, tests: ClosedTests) -> FloatArray:
        """Limits of the intervals from two-sided tests, (J, 2)."""
        found = np.full((len(self.course.at), 2), math.nan)
        for j in np.flatnonzero(self.course.at >= 0):
            tail = float(special.log_ndtr(-tests.bound(self.course.every, int(self.course.at[j]))))
            quantile = student_quantile(tail, self._last[j, 3] - 1.0)
            found[j] = self.estimate[j] + float(quantile[0]) * self.std_error[j] * np.array([-1.0, 1.0])
        return found

    def contains(self, truth: FloatArray, two_sided: ClosedTests) -> BoolArray:
        """Whether intervals from two-sided tests contain differences, (J,); true without a test."""
        found = np.ones(len(truth), dtype=bool)
        for j in np.flatnonzero(self.course.at >= 0).tolist():
            # Most scores are below any critical value, which then need not be computed.
            least = two_sided.least(int(self.course.at[j]))
            found[j] = abs(self._score(j, float(truth[j]))) <= least
        if not found.all():
            low, high = self.limits(two_sided).T
            found = (self.course.at < 0) | ((low <= truth) & (truth <= high))
        return found

    def tests(self, alpha: float) -> ClosedTests:
        """Two-sided tests at a level."""
        return ClosedTests(self.course.closed.scores, self.spent(0.5 * alpha), 2)

    def _score(self, j: int, difference: float) -> float:
        """Standardised score at the last test under a given difference, as a normal quantile."""
        score, slope, clock, effective = self._last[j].tolist()
        return normal_score((score - (difference - self.origin) * slope) / math.sqrt(clock), effective - 1.0)

    def _log_pvalue(self, j: int, null: float) -> float:
        """The level at which the interval just contains the null."""
        look = int(self.course.at[j])
        if look < 0:
            return math.nan
        size = abs(self._score(j, null))

        def excess(log_alpha: float) -> float:
            return min(self.tests(math.exp(log_alpha)).bound(self.course.every, look), 40.0) - size

        low, high = math.log(_LEAST), math.log(_MOST)
        if excess(high) >= 0.0:
            return 0.0
        return low if excess(low) <= 0.0 else float(optimize.brentq(excess, low, high, xtol=1e-9))
