"""Re-randomisation at looks: the same outcomes in the same order, with new coins for the design.

If no arm has an effect on anyone, outcomes are the same under any assignment. Given the outcomes, the
observed trial and its replays are then exchangeable, so a rule that stops a given number of them by rank has
exactly that error, at any sample size, for any statistic, and under any drift of outcomes.

References
----------
Simon, Simon (2011), "Using randomization tests to preserve type I error with response adaptive and covariate
adaptive randomization". Zhang, Rosenberger (2012), "Adaptive randomization in clinical trials".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.group_sequential.score_process import ScoreProcess, ScoreProcesses, score_processes
from adaptinf.plans.decisions import Course, Decision, Rule, course_of
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import iterate_runs
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.designs.base import Design


def replayed(
    design: Design,
    reward: FloatArray,
    n_arms: int,
    horizon: int,
    compared: tuple[int, ...],
    looks: IntArray,
    replays: int,
    seed: int,
    sides: int,
) -> FloatArray:
    """Standardised scores of replays at the looks reached so far; reward (n,), returns (replays, looks).

    `compared` are the positions of the treatments and, last, the control. Each replay has its own stream of
    random numbers, so its path is the same at every look.
    """
    outcomes = np.zeros(horizon)
    outcomes[: len(reward)] = reward[:horizon]
    world = Tableau(np.repeat(outcomes[:, None], n_arms, axis=1), reward_range=_range_of(outcomes))
    found = np.empty((replays, len(looks)))
    tried = design.run(world, horizon=horizon, rng=0)  # refuses what it cannot run, once for all replays
    assert tried.arrays.propensities is not None
    for number, stream in enumerate(np.random.SeedSequence(seed).spawn(replays)):
        record = next(iterate_runs(design, world, horizon, 0, 1, np.random.default_rng(stream))).record
        known = record.action, record.reward, record.propensities
        found[number] = statistics(
            leading(score_processes(*known, compared[:-1], compared[-1], looks), sides)
        )
    return found


def _range_of(reward: FloatArray) -> tuple[float, float]:
    low, high = float(min(0.0, reward.min())), float(max(1.0, reward.max()))
    return low, high


def leads(processes: ScoreProcesses, sides: int) -> IntArray:
    """The treatment with the largest standardised score at each look, (k,)."""
    z = np.array([statistics(one) for one in processes.each])
    return np.asarray((np.abs(z) if sides == 2 else z).argmax(axis=0), dtype=np.int64)


def leading(processes: ScoreProcesses, sides: int) -> ScoreProcess:
    """At each look, the process of the treatment with the largest standardised score."""
    if len(processes.each) == 1:
        return processes.each[0]
    first = leads(processes, sides)
    return ScoreProcess(*(np.choose(first, column) for column in zip(*processes.each, strict=True)))


def statistics(process: ScoreProcess) -> FloatArray:
    """Standardised scores, 0 if rewards did not vary, of shape (looks,)."""
    return np.nan_to_num(process.z, nan=0.0, posinf=0.0, neginf=0.0)


def follow_by_rank(process: ScoreProcess, replays: FloatArray, rule: Rule) -> Course:
    """The course of a trial among its replays, whose scores have shape (replays, looks).

    Up to each look, the share of all paths that have stopped is at most the level spent by then. The paths
    that stop at a look are those with the largest statistics among the remaining ones; tied paths stop
    together, and only if the share allows all of them.
    """
    own = statistics(process)
    if rule.sides == 2:
        own, replays = np.abs(own), np.abs(replays)
    paths, last = len(replays) + 1, len(rule.spent) - 1
    going, stopped, spent = np.ones(len(replays), dtype=bool), 0, 0.0
    decision: Decision = "continue"
    bounds: list[float] = []
    pvalue, look = np.nan, -1
    for look in range(len(own)):
        spent += rule.sides * float(rule.spent[look])
        may = int(np.floor(spent * paths * (1.0 + 1e-12))) - stopped
        others = np.sort(replays[going, look])[::-1]
        ahead = int(np.count_nonzero(others >= own[look])) + 1
        pvalue = (stopped + ahead) / paths
        bounds.append(_threshold(np.sort(np.append(others, own[look]))[::-1], may))
        if ahead <= may:
            decision = "reject"
        elif look < last and own[look] <= rule.futility[look]:
            decision = "futility"
        if decision != "continue" or look == last:
            break
        leave = going & (replays[:, look] >= bounds[-1])
        stopped += int(np.count_nonzero(leave))
        going &= ~leave
    if decision == "continue" and look == last:
        decision = "no rejection"
    return course_of(process, decision, look, np.array(bounds), statistics(process), rule.sides, pvalue)


def _threshold(descending: FloatArray, may: int) -> float:
    """Smallest value reached by at most `may` paths; infinite if there is none."""
    if may <= 0:
        return np.inf
    if may >= len(descending):
        return float(descending[-1])
    above = descending[:may]
    return float(above[above > descending[may]].min(initial=np.inf))
