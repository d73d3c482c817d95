"""Audits of the private designs for arms: neighbours, trials, and actions that follow from releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import AuditTrial, Replayed, audit_trials, outside_rewards
from adaptinf.audit.privacy.designs.counter_ratios import CounterNoise, sum_neighbours
from adaptinf.audit.privacy.designs.epoch_ratios import EpochMeanNoise, EpochMeanScore
from adaptinf.audit.privacy.designs.neighbours import (
    UNIT_RANGE,
    Neighbours,
    neighbouring_trials,
    one_reward_apart,
    refuse_unit,
)
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import elimination_epochs, shortest_horizon
from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.privacy.counters.sums import COUNTERS, counter_scales, noise_nodes
from adaptinf.simulation.environments import BernoulliArms, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_LONG, _SHORT = 1_100, 256
_ARMS, _SHOWN, _LONGEST = 3, 4, 100_000
_END, _VALUE = 0, 3
_AFTER = 2
"""Rounds after an epoch of two arms that tell which of them are left."""
_REACH = 2.0
"""Scales of the noise by which the difference of two means stays below the threshold."""


class UCBChoice:
    """What the choice of an index design may read, of several runs: counts, and noisy sums as released."""

    def __init__(self, tables: Any, runs: int, rounds: int) -> None:
        self.tables, self.every = tables, np.arange(runs)
        self.counts = np.ones((runs, tables.n_arms), dtype=np.int64)
        self.sums, self.pulled = (
            np.zeros((runs, tables.n_arms)),
            np.zeros((runs, tables.n_arms), dtype=np.bool_),
        )
        nodes = [noise_nodes(COUNTERS[int(tables.hybrid)], count) for count in range(1, rounds + 1)]
        levels = [level * tables.slots if tables.hybrid else 0 for _, _, level in nodes]
        self.rows = np.array([0, *(level + node[1] for level, node in zip(levels, nodes, strict=True))])

    def arms(self, step: int) -> IntArray:
        """The arm of each run in a round, counted from 0."""
        tables, now = self.tables, step + 1.0
        cell = max(int(np.searchsorted(tables.grid, now)) - 1, 0)
        inverse, log_now = 1.0 / self.counts, math.log(now)
        width = math.sqrt(tables.width * (log_now + tables.log_offset))
        row = self.rows[self.counts]
        base = (self.sums + (tables.relaxation + tables.intercept[cell, row])) * inverse
        index = base + np.sqrt(inverse) * width + tables.slope[cell, row] * inverse * log_now
        waiting = ~self.pulled
        return np.asarray(np.where(waiting.any(axis=1), waiting.argmax(axis=1), index.argmax(axis=1)))

    def learn(self, arms: IntArray, released: FloatArray) -> None:
        """A pull of an arm, and the noisy sum that it brought."""
        self.counts[self.every, arms] += self.pulled[self.every, arms]
        self.pulled[self.every, arms] = True
        self.sums[self.every, arms] = released


@dataclass(frozen=True, slots=True, eq=False)
class UCBReplay:
    """The arms with the highest index, from noisy sums, counts and the calendar alone."""

    tables: Any
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Actions of every round, given the earlier ones and their releases."""
        choice = UCBChoice(self.tables, *seen.actions.shape)
        actions = np.empty_like(seen.actions)
        for step in range(actions.shape[1]):
            actions[:, step] = choice.arms(step)
            choice.learn(seen.actions[:, step], seen.releases[:, step, _VALUE])
        overridden = seen.statuses == self.override
        return (Replayed("the arm", seen.actions, np.where(overridden, seen.actions, actions)),)


@neighbouring_trials.register
def ucb_neighbours(design: PrivateUCB, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Two arms and at most 16 rounds, one round's rewards being 0 and 1 and all others 1/2.

    First where the reward enters as many noisy sums as it can; then earlier (hybrid) or later (binary) in the
    trial. The scores are exact for any sequence of arms.
    """
    refuse_unit(unit)
    return sum_neighbours(design.counter)


@audit_trials.register
def ucb_trials(design: PrivateUCB) -> tuple[AuditTrial, ...]:
    """One arm and two arms for 1,100 rounds with rewards beyond [0, 1], three arms with 0/1 rewards."""
    coins = BernoulliArms([0.5, 0.5, 0.5])
    kinds = (
        ("one arm for 1,100 rounds, rewards in and beyond [0, 1]", Tableau(outside_rewards(_LONG, 1)), _LONG),
        (
            "two arms for 1,100 rounds, rewards in and beyond [0, 1]",
            Tableau(outside_rewards(_LONG, 2)),
            _LONG,
        ),
        ("three arms for 256 rounds, rewards by fair coins", coins, _SHORT),
    )
    trials = []
    for words, env, horizon in kinds:
        budget = design.guarantee(horizon, env.n_arms).epsilon
        trunk, node = counter_scales(design.counter, budget, horizon)
        noise = CounterNoise(env.n_arms, design.counter == "hybrid", trunk, node, fair=env is coins)
        tables = design.program(env, horizon, recording=True).tables
        replay = UCBReplay(tables) if env.n_arms > 1 else None
        trials.append(AuditTrial(words, env, horizon, replay, noise))
    return tuple(trials)


@dataclass(frozen=True, slots=True, eq=False)
class EliminationReplay:
    """The arms that are left and the epochs' ends, from the noisy means of earlier epochs alone.

    Shapes: lengths, thresholds (arms + 1, epochs).
    """

    n_arms: int
    lengths: FloatArray
    thresholds: FloatArray
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Actions of every round, and the rounds of the releases."""
        actions, ends = seen.actions.copy(), np.full(seen.releases.shape[:2], np.nan)
        for run in range(actions.shape[0]):
            rounds = np.flatnonzero(seen.statuses[run] != self.override)
            proposals, stops = self._schedule(seen.releases[run], rounds.size)
            actions[run, rounds] = proposals
            ends[run, : len(stops)] = [rounds[stop - 1] + 1 for stop in stops]
        return (
            Replayed("the round of a release", seen.releases[:, :, _END], ends, "release"),
            Replayed("the arm", seen.actions, actions),
        )

    def _schedule(self, releases: FloatArray, rounds: int) -> tuple[IntArray, list[int]]:
        """Proposals of so many rounds that count, and after how many of them there are releases."""
        left, parts, done, epoch = list(range(self.n_arms)), [], 0, 0
        stops: list[int] = []
        while len(left) > 1 and done < rounds:
            passes = int(self.lengths[len(left), epoch])
            parts.append(np.tile(left, passes))
            done += passes * len(left)
            if done > rounds:
                break
            means = releases[len(stops) :][: len(left), _VALUE]
            stops += [done] * len(left)
            if means.size < len(left) or np.isnan(means).any():
                break
            threshold = self.thresholds[len(left), epoch]
            left = [arm for arm, mean in zip(left, means, strict=True) if not means.max() - mean > threshold]
            epoch += 1
        parts.append(np.full(max(rounds - done, 0), left[0]))
        return np.concatenate(parts)[:rounds].astype(np.int64), stops


@neighbouring_trials.register
def elimination_neighbours(
    design: PrivateSuccessiveElimination, unit: str | None = None
) -> tuple[Neighbours, ...]:
    """Two arms, one epoch and two rounds more, with the reward of the first round 0 and 1.

    One pair. The score of its releases is exact, a single Laplace variable that moves by epsilon of its
    scales whatever the length of the epoch; the first arm's mean lies so far below the second's that naming
    the arms that are left tells nearly as much.
    """
    refuse_unit(unit)
    horizon, passes, threshold = _shortest_trial(design)
    rewards = np.zeros((horizon, 2))
    rewards[:, 1] = max(0.0, threshold - _REACH / (design.epsilon * passes))
    first, second = one_reward_apart(rewards, row=0)
    return (
        Neighbours(
            Tableau(first, reward_range=UNIT_RANGE),
            Tableau(second, reward_range=UNIT_RANGE),
            horizon,
            "reward",
            "the rewards of round 1 are 0 and 1",
            EpochMeanScore(first, second, row=0),
            hidden=tuple(range(2 * passes)),
        ),
    )


def _shortest_trial(design: PrivateSuccessiveElimination) -> tuple[int, int, float]:
    """Rounds of a trial of two arms that is barely longer than an epoch; its passes and threshold."""
    horizon = shortest_horizon(2, design.beta, design.epsilon) + _AFTER
    while True:
        lengths, thresholds = _epochs(design, 2, horizon)
        passes = int(lengths[2, 0])
        if 2 * passes + _AFTER <= horizon:
            return horizon, passes, float(thresholds[2, 0])
        horizon = 2 * passes + _AFTER


@audit_trials.register
def elimination_trials(design: PrivateSuccessiveElimination) -> tuple[AuditTrial, ...]:
    """Three arms and two epochs; in the first one, two arms lie about the threshold below the best."""
    trials = []
    for fair in (False, True):
        words, env, horizon = _fair_epoch(design) if fair else _near_threshold(design)
        lengths, thresholds = _epochs(design, env.n_arms, horizon)
        replay = EliminationReplay(env.n_arms, lengths, thresholds)
        noise = EpochMeanNoise(1.0 / float(design.epsilon), fair=fair)
        opening = int(env.n_arms * lengths[env.n_arms, 0]) + _SHOWN
        trials.append(AuditTrial(words, env, horizon, replay, noise, live_rounds=opening * fair))
    return tuple(trials)


def _epochs(design: PrivateSuccessiveElimination, n_arms: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    beta = 1.0 / horizon if design.beta is None else float(design.beta)
    return elimination_epochs(n_arms, horizon, beta, float(design.epsilon))


def _near_threshold(design: PrivateSuccessiveElimination) -> tuple[str, Tableau, int]:
    """Rewards beyond [0, 1], whose means once they are clipped lie a threshold apart."""
    horizon = shortest_horizon(_ARMS, design.beta, design.epsilon)
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    # the second epoch of as many arms is the longest that can follow; beta may shrink with the horizon
    horizon = int(_ARMS * (lengths[_ARMS, 0] + 8.0 * lengths[_ARMS, 0]))
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    one, two = (int(_ARMS * lengths[_ARMS, :epochs].sum()) + _SHOWN for epochs in (1, 2))
    horizon = min(horizon, two if two <= _LONGEST else one)
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    low = max(0.0, 1.0 - float(thresholds[_ARMS, 0]))
    rewards = np.tile([3.0, low, -2.0 if low == 0.0 else low], (horizon, 1))
    return f"three arms for {horizon:,} rounds, one with rewards of 3", Tableau(rewards), horizon


def _fair_epoch(design: PrivateSuccessiveElimination) -> tuple[str, BernoulliArms, int]:
    # twice the first epoch: a mixture that skips rounds ends it too
    horizon = 2 * shortest_horizon(2, design.beta, design.epsilon) + _SHOWN
    return f"two arms for {horizon:,} rounds, rewards by fair coins", BernoulliArms([0.5, 0.5]), horizon
