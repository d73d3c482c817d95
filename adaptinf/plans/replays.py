"""Re-randomisation at looks: the same outcomes in the same order, with new coins for the design.

If no arm has an effect on anyone, outcomes are what they would have been whatever was assigned. Given them,
the trial that was seen and its replays are then exchangeable, so a rule that stops a given number of all of
them by rank has that error exactly, at any sample size, for any statistic, and however outcomes drift.

References
----------
Simon, Simon (2011), "Using randomization tests to preserve type I error with response adaptive and covariate
adaptive randomization". Zhang, Rosenberger (2012), "Adaptive randomization in clinical trials".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.group_sequential.score_process import ScoreProcess, score_process
from adaptinf.plans.decisions import Course, Decision, Rule, course_of
from adaptinf.simulation.environments import Tableau
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.designs.base import Design


def replayed(
    design: Design,
    reward: FloatArray,
    n_arms: int,
    horizon: int,
    compared: tuple[int, int],
    looks: IntArray,
    replays: int,
    seed: int,
) -> FloatArray:
    """Standardised scores of replays at the looks reached so far; reward (n,), returns (replays, looks).

    A replay has a stream of its own, so it is the same path at every look.
    """
    known = np.zeros(horizon)
    known[: len(reward)] = reward[:horizon]
    world = Tableau(np.repeat(known[:, None], n_arms, axis=1), reward_range=_range_of(known))
    found = np.empty((replays, len(looks)))
    for number, stream in enumerate(np.random.SeedSequence(seed).spawn(replays)):
        arrays = design.run(world, horizon=horizon, rng=np.random.default_rng(stream)).arrays
        assert arrays.propensities is not None
        process = score_process(arrays.action, arrays.reward, arrays.propensities, compared, looks)
        found[number] = statistics(process)
    return found


def _range_of(reward: FloatArray) -> tuple[float, float]:
    low, high = float(min(0.0, reward.min())), float(max(1.0, reward.max()))
    return low, high


def statistics(process: ScoreProcess) -> FloatArray:
    """Standardised scores, 0 where nothing varied; (looks,)."""
    return np.nan_to_num(process.z, nan=0.0, posinf=0.0, neginf=0.0)


def follow_by_rank(process: ScoreProcess, replays: FloatArray, rule: Rule) -> Course:
    """The course of a trial among its replays; replays (replays, looks).

    By a look a share of all paths may have stopped that is the level spent by then. Those that stop at a look
    have the largest statistics of the paths that go on; ties never stop together beyond that share.
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
    """Smallest value that no more than `may` paths reach; infinite if there is none."""
    if may <= 0:
        return np.inf
    if may >= len(descending):
        return float(descending[-1])
    above = descending[:may]
    return float(above[above > descending[may]].min(initial=np.inf))
