"""Decisions of a plan about a log: scores at looks, critical values, and the course of the trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims.logs import plans as claims
from adaptinf.claims.propensities import EVERY_ONE_NEEDED
from adaptinf.designs.base import Design
from adaptinf.errors import InvalidForLog
from adaptinf.inference.group_sequential.boundaries import Boundary, bounds_of_spent, classical_bounds
from adaptinf.inference.group_sequential.score_process import ScoreProcess, ScoreProcesses
from adaptinf.inference.group_sequential.spending import SHAPES, SPENDING
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.log import AdaptiveLog
from adaptinf.log.stated_plans import looks_of, states_plan
from adaptinf.parameters import refuse
from adaptinf.plans.decisions import Course, Rule, follow
from adaptinf.plans.planning.count_looks import CountLooks, count_process, follow_counts
from adaptinf.plans.planning.dates import Start, said_day
from adaptinf.plans.planning.information_looks import informed, rounds_reached
from adaptinf.plans.planning.strata import inflated, stratified_processes
from adaptinf.plans.planning.timing import Timing
from adaptinf.plans.replays import follow_by_rank, leading, leads, replayed
from adaptinf.plans.several import SeveralCourse, follow_several, left
from adaptinf.plans.stored_plans import UNITS, StoredPlan, differs, followed, stage_problems
from adaptinf.typing import FloatArray, IntArray


class PlannedTrial(StoredPlan):
    """A plan as its simulations and tables use it; `Plan` sets the attributes."""

    design: Design
    arms: tuple[Any, ...]
    treatments: tuple[Any, ...]
    control: Any
    treatment: Any
    """The treatment, or the tuple of several."""
    looks: NDArray[Any]
    """Rounds, or days since the start."""
    start: Start | None
    horizon: int
    spending: str
    gamma: float
    rho: float
    sides: int
    alpha: float
    margin: float
    inflation: float
    strata: str | None
    timing: Timing
    replays: int
    seed: int
    rule: Rule

    def changed(self, **changes: Any) -> Self:
        """A plan with other arguments.

        Parameters
        ----------
        **changes
            Arguments of the class and their new values; the other arguments remain unchanged.

        Returns
        -------
        Plan

        Raises
        ------
        ParameterError
            If the arguments are invalid together.

        Examples
        --------
        >>> import adaptinf as ai
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
        >>> plan.changed(looks=[150, 300]).horizon
        300
        """
        made: Any = type(self)
        return cast("Self", made(**{**self.given, **changes}))

    @property
    def clock(self) -> str:
        """The unit in which looks are counted."""
        return str(self.given["clock"])

    @property
    def said_looks(self) -> str:
        """When the looks are, in words."""
        if self.clock == "rounds":
            return f"after {', '.join(f'{look:,}' for look in self.looks)} rounds"
        if self.clock == "information":
            return f"at information {', '.join(f'{look:,g}' for look in self.looks)}"
        return f"on days {', '.join(map(said_day, self.looks))}"

    @property
    def fractions(self) -> FloatArray:
        """Shares of the plan's length by which alpha is spent, of shape (k,)."""
        found = np.asarray(self.looks / self.looks[-1], dtype=np.float64)
        found[: len(self.given["earlier"])] = self.given["earlier"]
        return np.maximum.accumulate(found)

    def spent(self, level: float) -> FloatArray:
        """One-sided level that each look may spend, of shape (k,), out of a given one-sided level.

        Parameters
        ----------
        level : float
            One-sided level of all looks together, between 0 and 0.5.
        """
        fractions = self.fractions
        if self.spending in SPENDING:
            parameter = self.gamma if self.spending == "hwang-shih-decani" else self.rho
            return np.diff(SPENDING[self.spending](fractions, level, parameter), prepend=0.0)
        upper = classical_bounds(fractions, level, self.sides, SHAPES[self.spending])
        lower = -upper if self.sides == 2 else np.full(len(upper), -np.inf)
        return Boundary(fractions, lower, upper, self.sides).crossing(0.0)[1]

    @property
    def bounds(self) -> pd.DataFrame:
        """Critical values if information grows in proportion to the looks' clock, by look.

        Columns rounds, day or information; fraction, spent (the level spent so far on all sides) and bound.
        """
        spent = np.cumsum(self.rule.spent) * self.sides
        columns = {
            UNITS[self.clock]: self.looks,
            "fraction": self.fractions,
            "spent": spent,
            "bound": bounds_of_spent(self.looks / self.looks[-1], self.rule.spent, self.sides),
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(self.looks) + 1))

    def course(
        self, log: AdaptiveLog, stage: int | None = None, as_of: Any = None
    ) -> Course | SeveralCourse | None:
        """The trial's course over the looks that it has reached, up to a stage; None before the first."""
        require_log("Plan", log, incomplete=self.law == "z")
        ends = self._reached(log, stage, as_of)
        if self.joint:
            processes = self.processes(log, ends)
            return None if processes is None else self.follow_several(processes, log, ends)
        process = self.process(log, ends)
        return None if process is None else self.follow(process, log, ends)

    def _ended(self, log: AdaptiveLog, as_of: Any = None) -> Course | SeveralCourse:
        """The course of a trial that has stopped."""
        course = self.course(log, None, as_of)
        if course is None or course.decision == "continue":
            at = -1 if course is None else course.look
            reason = claims.GOES_ON(rounds=log.n_rounds, after=int(self.looks[at + 1]))
            if self.clock == "date":
                reason = claims.GOES_ON_BY_DATE(day=said_day(self.looks[at + 1]))
            elif self.clock == "information":
                now = self.information_now(log)
                reason = claims.GOES_ON_BY_INFORMATION(level=self.looks[at + 1], now=now)
            told = differs(log, at + 1, "continue") or reason
            raise InvalidForLog("Plan.analyse", told, ["plan.look(log)", "ConfidenceSequence"])
        if self.law == "z" and not len(course.tests):
            raise InvalidForLog("Plan.analyse", claims.UNTESTED(least=self.rule.least), ["Contrast"])
        return course

    @cached_property
    def count_looks(self) -> CountLooks:
        """The looks by the exact distribution of the counts."""
        return CountLooks(self.design, self.looks, self.rule, self.positions[0])

    @cached_property
    def count_bounds(self) -> list[FloatArray]:
        """Critical values of the looks by total number of successes, (rounds + 1,) each."""
        return self.count_looks.bounds()

    @property
    def joint(self) -> bool:
        """Whether several treatments are compared by their joint law."""
        return self.law == "z" and len(self.treatments) > 1

    def rule_by(self, ends: IntArray) -> Rule:
        """The rule, given the rounds up to each look; a look that completes the horizon is the last."""
        full = np.flatnonzero(ends >= self.horizon)
        return self.rule.ending(int(full[0])) if len(full) else self.rule

    def spent_by(self, ends: IntArray) -> Callable[[float], FloatArray]:
        """The level that each look may spend, given the rounds up to each look."""
        last = len(self.rule_by(ends).spent) - 1

        def spent(level: float) -> FloatArray:
            found = self.spent(level)
            return np.append(found[:last], found[last:].sum())

        return spent

    def follow(self, process: ScoreProcess, log: AdaptiveLog, ends: IntArray) -> Course:
        """The trial's course from its scores; only replays look at the log."""
        rule = followed(self.rule_by(ends), log)
        if self.law == "z":
            found = follow(process, rule)
        elif self.law == "exact":
            found = follow_counts(process, log, replace(self.count_looks, rule=rule), self.count_bounds)
        else:
            world = log.arrays.reward[: int(ends[-1])], len(self.arms), self.horizon
            replays = replayed(self.design, *world, self.positions, ends, self.replays, self.seed, self.sides)
            found = follow_by_rank(process, replays, rule)
        return replace(found, ends=ends)

    def follow_several(self, processes: ScoreProcesses, log: AdaptiveLog, ends: IntArray) -> SeveralCourse:
        """The course of a trial of several treatments, some of which may have been dropped."""
        assert log.arrays.propensities is not None
        gone = left(log.arrays.propensities, self.codes(log), ends)
        return replace(follow_several(processes, gone, followed(self.rule_by(ends), log)), ends=ends)

    def lead(self, processes: ScoreProcesses) -> ScoreProcess:
        """The scores of the treatment that leads at each look."""
        return processes.each[0] if len(self.treatments) == 1 else leading(processes, self.sides)

    def _leading(self, log: AdaptiveLog, course: Course) -> Any:
        """The treatment with the largest score at the last look."""
        if len(self.treatments) == 1:
            return self.treatment
        processes = self.processes(log, course.ends)
        assert processes is not None
        return self.treatments[leads(processes, self.sides)[course.look]]

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the treatments, and last the control, among the design's arms."""
        return tuple(map(self.arms.index, (*self.treatments, self.control)))

    def process(self, log: AdaptiveLog, ends: IntArray | None = None) -> ScoreProcess | None:
        """Scores of the leading treatment at the looks that a log has reached; None before the first."""
        if self.law == "exact":
            return count_process(log, self.codes(log), self._reached(log) if ends is None else ends)
        processes = self.processes(log, ends)
        return None if processes is None else self.lead(processes)

    def processes(self, log: AdaptiveLog, ends: IntArray | None = None) -> ScoreProcesses | None:
        """Scores of every treatment at looks, by default those that a log has reached; None if none exist."""
        looks = self._reached(log) if ends is None else ends
        return inflated(self.plain_processes(log, looks), self.inflation) if len(looks) else None

    def plain_processes(self, log: AdaptiveLog, ends: IntArray) -> ScoreProcesses:
        """Scores of every treatment after the rounds `ends` (k,), without the factor of `calibrate`."""
        if log.arrays.propensities is None:
            raise InvalidForLog("Plan", EVERY_ONE_NEEDED(), [])
        return stratified_processes(log, self.strata, self.codes(log), ends, self.margin)

    def _reached(self, log: AdaptiveLog, stage: int | None = None, as_of: Any = None) -> IntArray:
        """Rounds of the looks that a log has reached, up to a stage."""
        if self.start is not None:
            ends = self.start.reached(log, self.looks, self.horizon, as_of)
        else:
            refuse("Plan", [] if as_of is None else ['as_of requires clock="date"'])
            by_rounds = self.clock == "rounds"
            ends = self.looks[self.looks <= log.n_rounds] if by_rounds else self.information_ends(log)
        if stage is None:
            return ends
        refuse("Plan.look", stage_problems(stage, len(ends), log.n_rounds))
        return ends[:stage]

    def information_now(self, log: AdaptiveLog) -> float:
        """Information after all rounds of a log, or after the horizon."""
        return float(self._information(log, np.array([min(log.n_rounds, self.horizon)]))[0])

    def _information(self, log: AdaptiveLog, ends: IntArray) -> FloatArray:
        """Information after the rounds `ends` of a log, of shape (k,)."""
        found = self.plain_processes(log, ends)
        assert log.arrays.propensities is not None
        possible = log.arrays.propensities[(ends - 1)[:, None], list(self.codes(log)[:-1])]
        return informed(found, possible, self.rule.least)

    def information_ends(self, log: AdaptiveLog) -> IntArray:
        """Rounds up to each look by information that a log has reached."""
        stated = [look["rounds"] for look in looks_of(log)] if states_plan(log) else []
        known = self._information(log, np.arange(1, min(log.n_rounds, self.horizon) + 1))
        return rounds_reached(known, self.looks, stated, log.n_rounds, self.horizon)

    def codes(self, log: AdaptiveLog) -> tuple[int, ...]:
        """Positions of the treatments and the control among the log's arms."""
        if log.arms == tuple(range(len(self.arms))) and log.arms != self.arms:
            return self.positions
        if set(log.arms) != set(self.arms):
            refuse("Plan", [f"the log has the arms {log.arms}, but the plan {self.arms}"])
        return tuple(map(log.arms.index, (*self.treatments, self.control)))

    def refusal(self, log: AdaptiveLog) -> str:
        """The reason why `analyse` refuses a log; empty if it accepts the log.

        Parameters
        ----------
        log : AdaptiveLog
            As in `look`.
        """
        try:
            self._ended(log)
        except InvalidForLog as error:
            return error.reason
        return ""
