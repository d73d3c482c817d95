"""Logs for the evidence on comparisons, from simulators that are plain NumPy and know nothing of the library.

All runs of a block go through the rounds together: arrays of shape (runs,) or (runs, arms). Ten days, each of
ten hours of equal length; a weekend is two days of each seven, of which there are four. What moves is the
level of all arms alike, but for an effect that turns, which is arm A's. Every round has a context of two
equally likely values that raises the level, and, where a design adapts by context, arm A's mean in one and
lowers it in the other. Sizes are in units: one standard deviation of normal rewards, half of one, .25, of
rewards of 0 and 1, so probabilities stay within 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from comparison_cells import Cell
from default_logs import Array, Memory, arm_name
from numpy.typing import NDArray
from scipy.special import ndtr

DAYS, HOURS, WEEKDAYS = 10, 10, 28
GAP, BY_CONTEXT, CONTEXT_LEVEL = 0.3, 0.3, 0.5
"""Arm A's lead; what context adds to or takes from it; the level's difference between contexts."""
TURN, TURN_SHORT, SHORT = 0.3, 0.6, 1_000
"""What the effect turns from to its negative; more where there are few rounds, so it is as visible."""
TILT = math.log(0.85 / 0.15)
"""Log odds of the last arm against the first at the height of the day: two even arms have .85 and .15."""
JOINS = 0.3
"""When the last arm joins, as a share of the rounds."""
TEMPERATURE = 0.5
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
Ints = NDArray[np.int64]


def unit_of(cell: Cell) -> float:
    """What sizes are multiples of."""
    return 0.25 if cell.binary else 1.0


def base_of(cell: Cell) -> float:
    """Mean where nothing moves."""
    return 0.5 if cell.binary else 0.0


def spread_of(cell: Cell) -> float:
    """Standard deviation of a reward, as designs take it to be."""
    return 0.5 if cell.binary else 1.0


# What moves


def hours(cell: Cell) -> Ints:
    """Hour of each round, counted from the start of the log; shape (T,)."""
    return np.arange(cell.n_rounds) * (DAYS * HOURS) // cell.n_rounds


def wave(cell: Cell) -> Array:
    """A day's wave in each round, from -1 to 1 with mean 0, constant within an hour; shape (T,)."""
    return np.asarray(np.sin(2.0 * math.pi * (hours(cell) % HOURS + 0.5) / HOURS))


def levels(cell: Cell, runs: int, rng: np.random.Generator) -> Array:
    """Level that all arms share, in units; shape (runs, T)."""
    n_rounds, size = cell.n_rounds, cell.moved_by
    time = np.arange(n_rounds) / n_rounds
    if cell.move == "AR(.5)":
        noise = rng.standard_normal((runs, n_rounds)) * math.sqrt(0.75)
        noise[:, 0] /= math.sqrt(0.75)
        for t in range(1, n_rounds):
            noise[:, t] += 0.5 * noise[:, t - 1]
        return np.asarray(size * (np.clip(noise, -1.1, 1.1) if cell.binary else noise))
    path = {
        "linear": time - 0.5,
        "an arm joins": time - 0.5,
        "hourly": wave(cell),
        "step": (time >= 0.5) - 0.5,
        "weekend": (np.arange(n_rounds) * WEEKDAYS // n_rounds % 7 >= 5).astype(float),
    }.get(cell.move, np.zeros(n_rounds))
    return np.broadcast_to(size * path, (runs, n_rounds))


def lead(cell: Cell) -> Array:
    """What arm A's mean is above the others', in units, by round, over both contexts; shape (T,)."""
    found = np.full(cell.n_rounds, 0.0 if cell.gap == "0" else GAP)
    if cell.move == "the effect turns":
        turn = TURN_SHORT if cell.n_rounds <= SHORT else TURN
        found += np.where(np.arange(cell.n_rounds) < cell.n_rounds / 2.0, turn, -turn)
    return found


def there(cell: Cell) -> NDArray[np.bool_]:
    """Whether each arm can be chosen, shape (T, K)."""
    found = np.ones((cell.n_rounds, cell.n_arms), dtype=bool)
    if cell.move == "an arm joins":
        found[: int(JOINS * cell.n_rounds), -1] = False
    return found


# Designs


def best_shares(center: Array, size: Array) -> Array:
    """Probability that each arm is best under normal posteriors; center, size, result (runs, arms)."""
    arms = center.shape[1]
    if arms == 2:
        second = ndtr((center[:, 1] - center[:, 0]) / np.hypot(size[:, 0], size[:, 1]))
        return np.column_stack([1.0 - second, second])
    drawn = center[:, :, None] + size[:, :, None] * NODES  # (runs, arms, nodes)
    shares = np.empty_like(center)
    for k in range(arms):
        others = [j for j in range(arms) if j != k]
        below = ndtr((drawn[:, k, None, :] - center[:, others, None]) / size[:, others, None])
        shares[:, k] = below.prod(axis=1) @ NODE_WEIGHTS
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def top_two(shares: Array) -> Array:
    """Shares of top-two sampling at one half: the best of a draw, or of one whose best is another."""
    rest = np.maximum(1.0 - shares, 1e-9)
    again = (shares / rest).sum(axis=1, keepdims=True) - shares / rest
    found = 0.5 * shares * (1.0 + again)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def softened(logits: Array) -> Array:
    """Shares in proportion to exp(logits), shape (runs, arms)."""
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


class Design:
    """What a design knows, and its shares in the next round."""

    def __init__(self, cell: Cell, runs: int) -> None:
        groups = 2 if cell.by_context else 1
        self.cell = cell
        self.memory = Memory(runs, groups, cell.n_arms)
        self.gained = np.zeros((runs, cell.n_arms))
        """Rewards of EXP3, between 0 and 1, over their shares."""
        self.wave = wave(cell)

    def shares(self, t: int, group: Ints, arms: Ints) -> Array:
        """Shares of the arms that are there, shape (runs, arms); hours may move them to half of the floor."""
        cell = self.cell
        found, floor = self._free(group, arms), 0.0
        if cell.adapts:
            floor = cell.floor * (cell.n_arms / len(arms) if cell.design == "EXP3" else 1.0)
            found = floor + (1.0 - floor * len(arms)) * found
        if cell.by_hour:
            found = found * np.exp(TILT * self.wave[t] * (arms / (cell.n_arms - 1.0) - 0.5))
            found /= found.sum(axis=1, keepdims=True)
            found = 0.5 * floor + (1.0 - 0.5 * floor * len(arms)) * found
        return found

    def _free(self, group: Ints, arms: Ints) -> Array:
        """Shares before hours and floor."""
        cell, name = self.cell, self.cell.design
        count, mean, _ = (part[:, arms] for part in self.memory.of(group))
        base, spread = base_of(cell), spread_of(cell)
        center, size = base + (mean - base) * count / (count + 1.0), spread / np.sqrt(count + 1.0)
        if not cell.adapts:
            return np.full(center.shape, 1.0 / len(arms))
        if name == "EXP3":
            return softened(cell.floor * self.gained[:, arms])
        if name == "softmax":
            return softened(center / (TEMPERATURE * spread))
        if name == "epsilon-greedy":
            best = center >= center.max(axis=1, keepdims=True)
            return np.asarray(best / best.sum(axis=1, keepdims=True))
        shares = best_shares(center, size)
        return top_two(shares) if name == "top-two Thompson" else shares

    def learn(self, group: Ints, arm: Ints, reward: Array, chance: Array) -> None:
        """Take in a round; chance is the share of the arm that was chosen, shape (runs,)."""
        self.memory.add(group if self.cell.by_context else np.zeros_like(group), arm, reward)
        gain = reward if self.cell.binary else np.clip(0.5 + reward / 6.0, 0.0, 1.0)
        self.gained[np.arange(len(arm)), arm] += gain / chance


# Runs


@dataclass(frozen=True, eq=False)
class Runs:
    """Rounds of all runs: arm, reward, context of -.5 or .5 (runs, T), shares (runs, T, K)."""

    cell: Cell
    arm: Ints
    reward: Array
    context: Array
    share: Array
    truth: Array
    """Mean of each arm over the period, with rounds in which it could not be chosen; shape (runs, K)."""

    def frames(self) -> Iterator[pd.DataFrame]:
        """The file of each run, with all that there may be: x is the context, days and hours are numbered."""
        labels = np.array([arm_name(k) for k in range(self.cell.n_arms)])
        hour = hours(self.cell)
        for arm, reward, context, share in zip(self.arm, self.reward, self.context, self.share, strict=True):
            told = {f"p_{label}": share[:, k] for k, label in enumerate(labels)}
            yield pd.DataFrame(
                {
                    "arm": labels[arm],
                    "reward": reward,
                    **told,
                    "x": context,
                    "day": hour // HOURS,
                    "hour": hour,
                }
            )


def effects_by_context(cell: Cell) -> tuple[float, float]:
    """What arm A's lead is more by, where the context is -.5 and where it is .5, in rewards."""
    size = unit_of(cell) * BY_CONTEXT if cell.by_context else 0.0
    return -size, size


def simulate(cell: Cell, runs: int, rng: np.random.Generator) -> Runs:
    """All rounds of some runs of a cell."""
    n_rounds, n_arms, unit = cell.n_rounds, cell.n_arms, unit_of(cell)
    path, leads, can = levels(cell, runs, rng), lead(cell), there(cell)
    group = rng.integers(0, 2, (runs, n_rounds))
    choice = rng.random((runs, n_rounds))
    noise = rng.random((runs, n_rounds)) if cell.binary else rng.standard_normal((runs, n_rounds))
    level = base_of(cell) + unit * (path + CONTEXT_LEVEL * (group - 0.5))
    ahead = unit * leads + np.array(effects_by_context(cell))[group]
    arms, rewards = np.zeros((runs, n_rounds), dtype=np.int64), np.zeros((runs, n_rounds))
    shares = np.zeros((runs, n_rounds, n_arms))
    design, every = Design(cell, runs), np.arange(runs)
    nothing, day, hour = np.zeros(runs, dtype=np.int64), hours(cell) // HOURS, hours(cell)
    learnt = 0
    for t in range(n_rounds):
        same_arms = t > 0 and np.array_equal(can[t], can[t - 1])
        new_day = t == 0 or day[t] != day[t - 1]
        if cell.batched and new_day:
            for s in range(learnt, t):
                design.learn(group[:, s], arms[:, s], rewards[:, s], shares[every, s, arms[:, s]])
            learnt = t
        settled = same_arms and not (new_day or hour[t] != hour[t - 1])
        if settled and (cell.batched or not cell.adapts):
            shares[:, t] = shares[:, t - 1]
        else:
            known = group[:, t] if cell.by_context else nothing
            shares[:, t, can[t]] = design.shares(t, known, np.flatnonzero(can[t]))
        arm = (choice[:, t, None] > np.cumsum(shares[:, t], axis=1)).sum(axis=1)
        arm = np.minimum(arm, int(np.flatnonzero(can[t])[-1]))
        mean = level[:, t] + ahead[:, t] * (arm == 0)
        arms[:, t] = arm
        rewards[:, t] = noise[:, t] < mean if cell.binary else mean + noise[:, t]
        if not cell.batched and cell.adapts:
            design.learn(group[:, t], arm, rewards[:, t], shares[every, t, arm])
    shared = base_of(cell) + unit * path.mean(axis=1)
    truth = shared[:, None] + unit * leads.mean() * (np.arange(n_arms) == 0)
    return Runs(cell, arms, rewards, group - 0.5, shares, np.asarray(truth))
