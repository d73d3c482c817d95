"""Looks at a two-arm trial with 0/1 rewards by the exact distribution of its counts.

For a design that depends only on the counts, the distribution of the counts after each round follows by
recursion, for any success rates. States in which the trial stops at a look are removed from the distribution.
If both arms have one success rate, all orders of S successes in n rounds are equally likely, so the
probability of having stopped by a look, given S, does not depend on the rate. Each look and each S has its
own critical value: the smallest at which this probability is at most the level spent by then. The error rate
is then at most the level at every rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.binary.count_rules import allocation, layers
from adaptinf.audit.binary.count_states import (
    STATISTICS,
    TIE,
    all_states,
    binomial_law,
    log_factorials,
)
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.group_sequential.score_process import ScoreProcess
from adaptinf.plans.decisions import Course, Decision, Rule, course_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

LONGEST_COUNTS = 400
"""Largest number of rounds: the last layer then has 10.8 million states, and four arrays take 350 MB."""


def count_problems(design: Any, n_arms: int, looks: FloatArray | None, margin: Any) -> list[str]:
    """Why a plan cannot use the exact law of counts."""
    problems = []
    if n_arms != 2:
        problems.append(f'law="exact" requires two arms, got {n_arms}')
    if margin != 0.0:
        problems.append(f'margin must be 0, because law="exact" tests a difference of 0, got {margin!r:.20}')
    horizon = 0 if looks is None or looks.ndim != 1 or not len(looks) else int(looks[-1])
    if horizon > LONGEST_COUNTS:
        return [*problems, f'law="exact" requires at most {LONGEST_COUNTS} rounds, got {horizon:,}']
    if problems or horizon < 1:
        return problems
    try:
        edges = allocation(design, horizon).edges
    except ParameterError as error:
        return [f'law="exact": {problem}' for problem in error.problems]
    assert looks is not None
    between = [f"{look:g}" for look in looks if look not in edges]
    if between:
        problems.append(f'law="exact" requires looks at the ends of batches, got {", ".join(between)}')
    return problems


def count_process(log: AdaptiveLog, arms: Sequence[int], looks: IntArray) -> ScoreProcess | None:
    """Pooled score statistics at looks (k,), as scores with a clock of 1; None without looks."""
    if not len(looks):
        return None
    rounds = int(looks[-1])
    action, reward = log.arrays.action[:rounds], log.arrays.reward[:rounds]
    if not np.isin(reward, (0.0, 1.0)).all():
        raise InvalidForLog("Plan", claims.NOT_BINARY(), ['law="z"', 'law="rerandomization"'])
    events = [part for arm in arms for part in (action == arm, (action == arm) & (reward == 1.0))]
    n1, s1, n0, s0 = (np.cumsum(event)[looks - 1].astype(np.float64) for event in events)
    rate = (s1 + s0) / (n1 + n0)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = 1.0 / np.sqrt(rate * (1.0 - rate) * (1.0 / n1 + 1.0 / n0))
    slope = np.where(np.isfinite(slope) & (slope > 0.0), slope, 1.0)
    z = STATISTICS["score"](n1, s1, n0, s0)
    return ScoreProcess(z, slope, np.ones(len(z)), np.minimum(n1, n0), np.full(len(z), np.inf))


@dataclass(frozen=True, slots=True, eq=False)
class CountLooks:
    """Looks of a plan; `treatment` is the position of the treatment among the two arms."""

    design: Any
    looks: IntArray
    rule: Rule
    treatment: int

    def values(self, rounds: int) -> FloatArray:
        """The statistic in each state of a layer, absolute for two-sided tests, of shape (states,)."""
        signed = self.signed(rounds)
        return np.abs(signed) if self.rule.sides == 2 else signed

    def signed(self, rounds: int) -> FloatArray:
        """Treatment minus control."""
        found = np.empty((rounds + 1) * (rounds + 2) * (rounds + 3) // 6)
        turn = 1.0 if self.treatment == 1 else -1.0
        for place, *counts in all_states(rounds):
            found[place] = turn * STATISTICS["score"](*counts)
        return found

    def at_looks(self) -> Iterator[tuple[int, FloatArray]]:
        """Each look with the weights of its states, from which the caller removes the states that stop."""
        horizon = int(self.looks[-1])
        for rounds, weights in layers(allocation(self.design, horizon), horizon):
            if rounds in self.looks:
                yield int(np.searchsorted(self.looks, rounds)), weights

    def bounds(self) -> list[FloatArray]:
        """Critical values of each look by the total number of successes, (rounds + 1,) each."""
        spent = self.rule.sides * np.cumsum(self.rule.spent)
        found: list[FloatArray] = []
        before = np.zeros(1)
        for look, weights in self.at_looks():
            rounds = int(self.looks[look])
            values, chances, totals = self._null(rounds, weights)
            before = elevated(before, rounds)
            found.append(_smallest(values, chances, totals, before, float(spent[look])))
            stops = values >= found[-1][totals]
            before = before + np.bincount(totals[stops], chances[stops], minlength=rounds + 1)
            weights[stops] = 0.0
        return found

    def pvalue(self, bounds: Sequence[FloatArray], look: int, total: int, value: float) -> float:
        """Probability of a stop at least as extreme, given the total successes at the look."""
        before = np.zeros(1)
        for place, weights in self.at_looks():
            rounds = int(self.looks[place])
            values, chances, totals = self._null(rounds, weights)
            before = elevated(before, rounds)
            if place == look:
                least = value - TIE * max(abs(value), 1.0)
                return min(1.0, float(before[total] + chances[(totals == total) & (values >= least)].sum()))
            stops = values >= bounds[place][totals]
            before = before + np.bincount(totals[stops], chances[stops], minlength=rounds + 1)
            weights[stops] = 0.0
        raise AssertionError

    def _null(self, rounds: int, weights: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Statistic, probability given the total successes, and total successes, each of shape (states,)."""
        chances, totals = np.empty(len(weights)), np.empty(len(weights), dtype=np.int64)
        table = log_factorials(rounds)
        for place, n1, s1, n0, s0 in all_states(rounds):
            total = s1 + s0
            ways = table[n1] - table[s1] - table[n1 - s1] + table[n0] - table[s0] - table[n0 - s0]
            ways -= table[rounds] - table[total] - table[rounds - total]
            chances[place] = weights[place] * np.exp(ways)
            totals[place] = total
        return self.values(rounds), chances, totals

    def _totals(self, rounds: int) -> IntArray:
        """Total successes in each state of a layer, (states,)."""
        return np.concatenate([s1 + s0 for _, _, s1, _, s0 in all_states(rounds)])

    def rates(self, bounds: Sequence[FloatArray], theta1: float, theta0: float) -> dict[str, FloatArray]:
        """Exact probabilities and means of the looks if the two arms have these success rates, (k,) each.

        `theta1` belongs to the second arm. Futility stops the trial.
        """
        names = ("reached", "reject", "above", "futility", "pulls", "reward", "gap", "square")
        found = {name: np.zeros(len(self.looks)) for name in names}
        last = len(self.looks) - 1
        for look, weights in self.at_looks():
            rounds = int(self.looks[look])
            signed, values = self.signed(rounds), self.values(rounds)
            reject = values >= bounds[look][self._totals(rounds)]
            futile = ~reject & (values <= self.rule.futility[look]) if look < last else ~reject
            stops = reject | futile
            for place, n1, s1, n0, s0 in all_states(rounds):
                chance = _chances(weights[place], int(n1[0]), int(n0[0]), theta1, theta0)
                ends = chance * stops[place]
                gap = _difference(n1, s1, n0, s0) * (1.0 if self.treatment == 1 else -1.0)
                found["reached"][look] += ends.sum()
                found["reject"][look] += (chance * reject[place]).sum()
                found["above"][look] += (chance * (reject[place] & (signed[place] > 0.0))).sum()
                found["futility"][look] += (chance * futile[place]).sum() if look < last else 0.0
                found["pulls"][look] += (ends * n1).sum()
                found["reward"][look] += (ends * (s1 + s0)).sum()
                found["gap"][look] += (ends * gap).sum()
                found["square"][look] += (ends * gap * gap).sum()
            weights[stops] = 0.0
        return found


def _chances(weights: FloatArray, n1: int, n0: int, theta1: float, theta0: float) -> FloatArray:
    """Probabilities of a block of states."""
    left, right = binomial_law(np.array([theta1]), n1)[0], binomial_law(np.array([theta0]), n0)[0]
    return np.asarray(weights * np.outer(left, right).ravel())


def _difference(n1: IntArray, s1: IntArray, n0: IntArray, s0: IntArray) -> FloatArray:
    return np.asarray(STATISTICS["difference"](n1, s1, n0, s0))


def elevated(coefficients: FloatArray, degree: int) -> FloatArray:
    """Bernstein coefficients of a polynomial at a higher degree: from shape (n + 1,) to (degree + 1,)."""
    n = len(coefficients) - 1
    table = log_factorials(degree)
    found = np.zeros(degree + 1)
    place = np.arange(degree - n + 1)
    more = table[degree - n] - table[place] - table[degree - n - place]
    for s in range(n + 1):
        total = s + place
        ways = table[n] - table[s] - table[n - s] + more
        ways -= table[degree] - table[total] - table[degree - total]
        found[total] += coefficients[s] * np.exp(ways)
    return found


def _smallest(
    values: FloatArray, chances: FloatArray, totals: IntArray, before: FloatArray, level: float
) -> FloatArray:
    """Smallest critical value, by total successes, at which the error so far is at most a level.

    Shapes: values, chances, totals (states,), before and the result (rounds + 1,).
    """
    order = np.lexsort((-values, totals))
    ranked, group = values[order], totals[order]
    sums = np.cumsum(chances[order])
    starts = np.searchsorted(group, np.arange(len(before)))
    own = sums - np.append(0.0, sums)[starts][group]
    # Tied states stop together or not at all.
    last = np.ones(len(ranked), dtype=bool)
    tied = ranked[:-1] - ranked[1:] <= TIE * np.maximum(np.abs(ranked[:-1]), 1.0)
    last[:-1] = ~tied | (group[:-1] != group[1:])
    may = last & (before[group] + own <= level)
    found = np.full(len(before), np.inf)
    # The last entry of a group that may stop has the smallest value.
    found[group[may]] = ranked[may] - 0.5 * TIE * np.maximum(np.abs(ranked[may]), 1.0)
    return found


def follow_counts(process: ScoreProcess, log: AdaptiveLog, plan: CountLooks, bounds: Any) -> Course:
    """The course of a trial by its critical values."""
    rule = plan.rule
    decision: Decision = "continue"
    own = np.abs(process.z) if rule.sides == 2 else process.z
    reached = plan.looks[: len(own)]
    totals = np.cumsum(log.arrays.reward[: int(reached[-1])])[reached - 1].astype(np.int64)
    told = np.array([bounds[place][total] for place, total in enumerate(totals)])
    look, last = -1, len(plan.looks) - 1
    for look in range(len(own)):
        if own[look] >= told[look]:
            decision = "reject"
        elif look < last and own[look] <= rule.futility[look]:
            decision = "futility"
        if decision != "continue":
            break
    if decision == "continue" and look == last:
        decision = "no rejection"
    return course_of(process, decision, look, told, process.z, rule.sides, math.nan)
