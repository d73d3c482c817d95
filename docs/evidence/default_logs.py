"""Logs as people bring them, from simulators that are plain NumPy and know nothing of the library.

All runs of a block go through the rounds together: arrays of shape (runs,) or (runs, arms). Arms differ by a
constant gap, and drift is common to the arms, so the effect is the same in every round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from default_cells import Cell
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

BATCHES, GROUPS, DAYS = 10, 2, 28
DRIFT = 0.5
"""Common drift in standard deviations: from start to end, or of a weekend."""
UNIT_SPREAD = 0.5
"""Standard deviation of the units' own means, in those of a reward."""
DRAWS = 64
"""Posterior draws whose frequencies are the propensities of Thompson sampling."""


# Outcomes


@dataclass(frozen=True)
class Outcome:
    """Law of the rewards: mean and standard deviation where nothing moves them, and what an arm adds."""

    mean: float
    spread: float
    gap: float


def outcome_law(cell: Cell) -> Outcome:
    rate = {"0/1 at 50%": 0.5, "0/1 at 10%": 0.1, "0/1 at 1%": 0.01}.get(cell.outcome, 0.05)
    size = 0.3 if cell.gap == ".3 sd" else 0.0
    if cell.binary or cell.outcome.startswith("5%"):
        spread = math.sqrt(rate * (1.0 - rate))
        return Outcome(rate, spread, size * spread)
    return Outcome(0.0, 1.0, size)


def drift_at(cell: Cell, rounds: NDArray[np.int64]) -> Array:
    """Common drift in standard deviations; rounds count from 0, shape (T,)."""
    if cell.drift == "linear":
        return DRIFT * rounds / cell.n_rounds
    if cell.drift == "weekend":
        day = rounds * DAYS // cell.n_rounds
        return DRIFT * (day % 7 >= 5)
    return np.zeros(len(rounds))


class Rewards:
    """Rewards of all runs at a round, given arm, group and unit, shapes (runs,)."""

    def __init__(self, cell: Cell, runs: int, rng: np.random.Generator) -> None:
        self.cell, self.law, self.rng = cell, outcome_law(cell), rng
        self.shift = self.law.spread * drift_at(cell, np.arange(cell.n_rounds))
        self.effect = self.law.gap * (np.arange(cell.n_arms) == 1)
        self.rates = cell.binary or cell.outcome.startswith("5%")
        lift = self.law.gap + float(self.shift.max()) + self._group_shift
        # What a rate may rise by is taken off its base, so the effect is the same in every round.
        self.room = 1.0 - lift if self.rates else 1.0
        self.own = self._units(runs)

    @property
    def _group_shift(self) -> float:
        return 0.5 * self.law.spread if self.cell.by_context else 0.0

    def _units(self, runs: int) -> Array:
        """Means of the units, shape (runs, units); one for all where each round has another."""
        if not self.cell.n_units:
            return np.full((runs, 1), self.law.mean)
        size = (runs, self.cell.n_units)
        if self.rates:
            return self.rng.beta(4.0 * self.law.mean, 4.0 * (1.0 - self.law.mean), size)
        return self.law.mean + UNIT_SPREAD * self.rng.standard_normal(size)

    def draw(self, t: int, arm: NDArray[np.int64], group: NDArray[np.int64], unit: int) -> Array:
        level = self.own[:, unit] * self.room + self.shift[t] + self.effect[arm] + self._group_shift * group
        if self.rates:
            hit = (self.rng.random(len(arm)) < level).astype(float)
            return hit * np.exp(self.rng.standard_normal(len(arm))) if not self.cell.binary else hit
        if self.cell.outcome == "t3":
            return level + self.rng.standard_t(3, len(arm)) / math.sqrt(3.0)
        return level + self.rng.standard_normal(len(arm))

    def truth(self, rounds: NDArray[np.int64] | None = None) -> Array:
        """Mean of each arm over some rounds, all by default, averaged over units and groups; shape (K,)."""
        shift = self.shift if rounds is None else self.shift[rounds]
        level = self.law.mean * self.room + shift.mean() + 0.5 * self._group_shift + self.effect
        return np.asarray(self._worth * level, dtype=np.float64)

    def logged(self, unit: NDArray[np.int64]) -> Array:
        """Mean of each arm over the units of the logged rounds, in each run; unit (T,); returns (runs, K)."""
        own = self.own[:, unit].mean(axis=1)
        level = own * self.room + self.shift.mean() + 0.5 * self._group_shift
        return np.asarray(self._worth * (level[:, None] + self.effect), dtype=np.float64)

    @property
    def _worth(self) -> float:
        """Mean of what a success is worth."""
        return 1.0 if self.cell.binary or not self.rates else math.exp(0.5)


# Designs


class Memory:
    """Counts and sums by group and arm, shape (runs, groups, arms)."""

    def __init__(self, runs: int, groups: int, arms: int) -> None:
        self.count = np.zeros((runs, groups, arms))
        self.total = np.zeros((runs, groups, arms))
        self.square = np.zeros((runs, groups, arms))

    def add(self, group: NDArray[np.int64], arm: NDArray[np.int64], reward: Array) -> None:
        at = np.arange(len(arm)), group, arm
        self.count[at] += 1.0
        self.total[at] += reward
        self.square[at] += reward**2

    def of(self, group: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Counts, means and mean squares in a group; means are 0 before the first reward."""
        rows = np.arange(len(group))
        count = self.count[rows, group]
        safe = np.maximum(count, 1.0)
        return count, self.total[rows, group] / safe, self.square[rows, group] / safe


def propensities(
    cell: Cell,
    t: int,
    memory: Memory,
    group: NDArray[np.int64],
    there: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Array:
    """Probability of each arm in the next round, shape (runs, arms); there (arms,)."""
    count, mean, square = memory.of(group)
    law = outcome_law(cell)
    name = cell.design.removesuffix(", contexts not in the file").removeprefix("contextual ")
    n_there = int(there.sum())
    even = np.broadcast_to(there / n_there, count.shape)
    if name.endswith("epsilon-greedy"):
        epsilon = min(1.0, (t + 1.0) ** (-1.0 / 3.0)) if name.startswith("decaying") else 0.2
        score = np.where(there & (count > 0), mean, np.where(there, np.inf, -np.inf))
        best = _tied(score, rng)
        return epsilon * even + (1.0 - epsilon) * best
    if name.startswith(("Thompson", "batched")):
        floor = {"Thompson, floor .01": 0.01, "Thompson, floor t^-.7": 0.5 * (t + 1.0) ** -0.7}.get(
            name, 0.05
        )
        floor = min(floor * (2.0 / n_there if name.startswith("batched") else 1.0), 1.0 / n_there)
        free = _posterior_shares(law, count, mean, there, rng)
        return floor * there + (1.0 - floor * n_there) * free
    if name == "UCB":
        width = law.spread * np.sqrt(2.0 * math.log(cell.n_rounds) / np.maximum(count, 1.0))
        return _tied(np.where(there, np.where(count > 0, mean + width, np.inf), -np.inf), rng)
    if name == "urn":
        # A success puts in a ball of its arm, a failure one that the other arms share.
        success = memory.square[np.arange(len(group)), group] if cell.binary else _wins(law, count, mean)
        failure = count - success
        other = (failure.sum(axis=1, keepdims=True) - failure) / max(cell.n_arms - 1, 1)
        balls = np.where(there, 1.0 + success + other, 0.0)
        return np.asarray(balls / balls.sum(axis=1, keepdims=True))
    size = mean if law.mean > 0.0 else square
    root = np.where(
        there, np.sqrt(np.where(count > 2, np.maximum(size, 1e-3), max(law.mean, law.spread**2))), 0.0
    )
    return 0.2 * even + 0.8 * root / root.sum(axis=1, keepdims=True)


def _tied(score: Array, rng: np.random.Generator) -> Array:
    """All on the largest score, ties by a coin; shape (runs, arms)."""
    noise = rng.random(score.shape)
    noise[score < score.max(axis=1, keepdims=True)] = -1.0
    return (np.arange(score.shape[1]) == noise.argmax(axis=1)[:, None]).astype(float)


def _posterior_shares(
    law: Outcome, count: Array, mean: Array, there: NDArray[np.bool_], rng: np.random.Generator
) -> Array:
    """Probability that each arm is best under normal posteriors: closed for two arms, else drawn."""
    center = law.mean + (mean - law.mean) * count / (count + 1.0)
    size = law.spread / np.sqrt(count + 1.0)
    arms = np.flatnonzero(there)
    shares = np.zeros(count.shape)
    if len(arms) == 2:
        gap = center[:, arms[1]] - center[:, arms[0]]
        shares[:, arms[1]] = ndtr(gap / np.hypot(size[:, arms[0]], size[:, arms[1]]))
        shares[:, arms[0]] = 1.0 - shares[:, arms[1]]
        return shares
    drawn = center[:, None, arms] + size[:, None, arms] * rng.standard_normal((len(count), DRAWS, len(arms)))
    best = drawn.argmax(axis=2)
    for place, arm in enumerate(arms):
        shares[:, arm] = (best == place).mean(axis=1)
    return shares


def _wins(law: Outcome, count: Array, mean: Array) -> Array:
    """Share of an arm's rewards that count as won, by its mean."""
    return count * ndtr((mean - law.mean) / law.spread)


# Runs


@dataclass(frozen=True, eq=False)
class Runs:
    """Rounds of all runs; arm, reward, group (runs, T), propensity (runs, T, K), unit, batch (T,)."""

    cell: Cell
    arm: NDArray[np.int64]
    reward: Array
    group: NDArray[np.int64]
    propensity: Array
    unit: NDArray[np.int64]
    batch: NDArray[np.int64]
    truth: Array
    """Mean of each arm over all rounds, shape (K,)."""
    truth_where_possible: Array
    """Mean of each arm over the rounds in which it could be chosen, shape (K,)."""
    logged_truth: Array
    """Mean of each arm over all rounds, with the units that the log has, shape (runs, K)."""

    def frames(self) -> Iterator[pd.DataFrame]:
        """The file of each run."""
        cell = self.cell
        names = [f"p_{arm_name(k)}" for k in range(cell.n_arms)]
        labels = np.array([arm_name(k) for k in range(cell.n_arms)])
        for run in range(len(self.arm)):
            columns: dict[str, object] = {"arm": labels[self.arm[run]], "reward": self.reward[run]}
            if cell.told == "every propensity":
                columns |= dict(zip(names, self.propensity[run].T, strict=True))
            elif cell.told != "none":
                columns["p"] = self.propensity[run, np.arange(cell.n_rounds), self.arm[run]]
            if cell.n_units:
                columns["person"] = self.unit
            if cell.contexts_told:
                columns["group"] = np.array(["young", "old"])[self.group[run]]
            if cell.design.startswith("batched"):
                columns["batch"] = self.batch
            yield pd.DataFrame(columns)


def arm_name(k: int) -> str:
    return "ABCDEFGHIJ"[k]


def available(cell: Cell) -> NDArray[np.bool_]:
    """Whether each arm can be had in each round, shape (T, K): the last one joins or leaves after a third."""
    there = np.ones((cell.n_rounds, cell.n_arms), dtype=bool)
    if cell.arms == "one joins":
        there[: cell.n_rounds // 3, -1] = False
    elif cell.arms == "one leaves":
        there[2 * cell.n_rounds // 3 :, -1] = False
    return there


def simulate(cell: Cell, runs: int, rng: np.random.Generator) -> Runs:
    """All rounds of some runs of a cell."""
    n_rounds, n_arms = cell.n_rounds, cell.n_arms
    rewards, there = Rewards(cell, runs, rng), available(cell)
    memory = Memory(runs, GROUPS if cell.by_context else 1, n_arms)
    arms = np.zeros((runs, n_rounds), dtype=np.int64)
    got, chances = np.zeros((runs, n_rounds)), np.zeros((runs, n_rounds, n_arms))
    groups = (
        rng.integers(0, GROUPS, (runs, n_rounds))
        if cell.by_context
        else np.zeros((runs, n_rounds), dtype=np.int64)
    )
    unit = np.arange(n_rounds) % cell.n_units if cell.n_units else np.zeros(n_rounds, dtype=np.int64)
    batch = np.arange(n_rounds) * BATCHES // n_rounds
    kept = np.full((runs, max(cell.n_units, 1)), -1)
    drawn = np.zeros((runs, max(cell.n_units, 1), n_arms))
    current = np.zeros((runs, n_arms))
    learnt = 0
    for t in range(n_rounds):
        fresh = not cell.design.startswith("batched") or t == 0 or batch[t] != batch[t - 1]
        if fresh and cell.design.startswith("batched"):
            for s in range(learnt, t):
                memory.add(groups[:, s], arms[:, s], got[:, s])
            learnt = t
        if fresh or not np.array_equal(there[t], there[t - 1]):
            current = propensities(cell, t, memory, groups[:, t], there[t], rng)
        chance = current
        arm = (rng.random(runs)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
        arm = np.minimum(arm, n_arms - 1)
        if cell.one_arm_each:
            first = kept[:, unit[t]] < 0
            kept[:, unit[t]] = np.where(first, arm, kept[:, unit[t]])
            drawn[:, unit[t]] = np.where(first[:, None], chance, drawn[:, unit[t]])
            arm, chance = kept[:, unit[t]], drawn[:, unit[t]]
        arms[:, t], chances[:, t] = arm, chance
        got[:, t] = rewards.draw(t, arm, groups[:, t], int(unit[t]))
        if not cell.design.startswith("batched"):
            memory.add(groups[:, t], arm, got[:, t])
    where = np.array([rewards.truth(np.flatnonzero(there[:, k]))[k] for k in range(n_arms)])
    logged = rewards.logged(unit)
    return Runs(cell, arms, got, groups, chances, unit, batch, rewards.truth(), where, logged)
