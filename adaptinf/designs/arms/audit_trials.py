"""Trials of the private designs for arms, and how their actions follow from their releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.designs.audit_trials import AuditTrial, Replayed
from adaptinf.designs.ratios.counter_noise import CounterNoise
from adaptinf.designs.ratios.epoch_noise import EpochMeanNoise
from adaptinf.privacy.counters.sums import COUNTERS, counter_scales, noise_nodes
from adaptinf.simulation.environments import BernoulliArms, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_LONG, _SHORT = 1_100, 256
_OUTSIDE = np.array([-3.0, 0.0, 0.25, 0.5, 1.0, 4.0])
"""Rewards of which some are clipped: their mean is 1/2 once they are."""

_END, _GROUP, _VALUE = 0, 2, 3


def outside_rewards(rounds: int, n_arms: int) -> FloatArray:
    """Rewards in and beyond [0, 1], in another order for every arm; shape (rounds, arms)."""
    steps = np.arange(rounds)[:, None] + 2 * np.arange(n_arms)
    return np.asarray(_OUTSIDE[steps % _OUTSIDE.size])


@dataclass(frozen=True, slots=True, eq=False)
class UCBReplay:
    """The arms with the highest index, from noisy sums, counts and the calendar alone."""

    tables: Any
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Actions of every round, given the earlier ones and their releases."""
        tables = self.tables
        runs, rounds = seen.actions.shape
        every = np.arange(runs)
        counts, sums = np.ones((runs, tables.n_arms), dtype=np.int64), np.zeros((runs, tables.n_arms))
        pulled = np.zeros((runs, tables.n_arms), dtype=np.bool_)
        rows = self._rows(rounds)
        actions = np.empty_like(seen.actions)
        for step in range(rounds):
            now = step + 1.0
            cell = max(int(np.searchsorted(tables.grid, now)) - 1, 0)
            inverse, log_now = 1.0 / counts, math.log(now)
            width = math.sqrt(tables.width * (log_now + tables.log_offset))
            row = rows[counts]
            base = (sums + tables.relaxation + tables.intercept[cell, row]) * inverse
            index = base + np.sqrt(inverse) * width + tables.slope[cell, row] * inverse * log_now
            waiting = ~pulled.all(axis=1)
            actions[:, step] = np.where(waiting, (~pulled).argmax(axis=1), index.argmax(axis=1))
            arm = seen.actions[:, step]
            counts[every, arm] += pulled[every, arm]
            pulled[every, arm] = True
            sums[every, arm] = seen.releases[:, step, _VALUE]
        overridden = seen.statuses == self.override
        return (Replayed("the arm", seen.actions, np.where(overridden, seen.actions, actions)),)

    def _rows(self, rounds: int) -> IntArray:
        """Row of the noise's law at each count, 0 included."""
        nodes = [noise_nodes(COUNTERS[int(self.tables.hybrid)], count) for count in range(1, rounds + 1)]
        levels = [level * self.tables.slots if self.tables.hybrid else 0 for _, _, level in nodes]
        return np.array([0, *(level + node[1] for level, node in zip(levels, nodes, strict=True))])


def ucb_trials(design: Any) -> tuple[AuditTrial, ...]:
    """One arm and two arms for 1,100 rounds with rewards beyond [0, 1], three arms with 0/1 rewards."""
    coins = BernoulliArms([0.5, 0.5, 0.5])
    kinds = (
        ("one arm for 1,100 rounds, rewards in and beyond [0, 1]", Tableau(outside_rewards(_LONG, 1)), _LONG),
        ("two arms for 1,100 rounds, rewards in and beyond [0, 1]", Tableau(outside_rewards(_LONG, 2)), _LONG),
        ("three arms for 256 rounds, rewards by fair coins", coins, _SHORT),
    )
    trials = []
    for words, env, horizon in kinds:
        budget = design.guarantee(horizon, env.n_arms).epsilon
        trunk, node = counter_scales(design.counter, budget, horizon)
        noise = CounterNoise(env.n_arms, design.counter == "hybrid", trunk, node, fair=env is coins)
        replay = UCBReplay(design.program(env, horizon, recording=True).tables)
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
        left, parts, stops, done, epoch = list(range(self.n_arms)), [], [], 0, 0
        while len(left) > 1 and done < rounds:
            passes = int(self.lengths[len(left), epoch])
            parts.append(np.tile(left, passes))
            done += passes * len(left)
            if done > rounds:
                break
            means = releases[len(stops) : len(stops) + len(left), _VALUE]
            stops += [done] * len(left)
            if means.size < len(left) or np.isnan(means).any():
                break
            threshold = self.thresholds[len(left), epoch]
            left = [arm for arm, mean in zip(left, means, strict=True) if not mean < means.max() - threshold]
            epoch += 1
        parts.append(np.full(max(rounds - done, 0), left[0]))
        return np.concatenate(parts)[:rounds].astype(np.int64), stops
