"""Decisions from releases, written a second time in plain NumPy: slow, and independent of the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import Replayed
from adaptinf.audit.privacy.designs.conse_audits import released_at
from adaptinf.audit.privacy.designs.local_audits import first_bin_sums
from adaptinf.designs.contextual.conse import ESTIMATION_BETTER, LEARNING_BETTER
from adaptinf.designs.contextual.ridge_kernel import PROJECTED, PUBLISHED, RIDGE, LinearTables
from adaptinf.privacy.tree_sums import COUNTERS, noise_nodes
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_END, _VALUE = 0, 3
_CONTRAST, _ARRIVALS = 0, 1


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


@dataclass(frozen=True, slots=True, eq=False)
class SumsReplay:
    """Whose worse arm is dropped, T_min, and who enters the trial with which probability; contexts (rounds,).

    All of it from released numbers alone. Coins decide the rest: actions are held against the public state
    where this leaves no choice.
    """

    tables: Any
    contexts: IntArray
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """The public state at the end, and the rounds in which it leaves no choice."""
        tables, n_features = self.tables, self.tables.n_features
        runs, horizon = seen.actions.shape
        begin, half = 0, horizon // 2
        drawn = np.empty((runs, horizon), dtype=np.bool_)
        arm = np.zeros((runs, n_features))
        decided = np.zeros((runs, n_features), dtype=np.bool_)
        pooled, total = np.zeros((runs, n_features)), np.zeros((runs, n_features))
        forced = np.zeros((runs, horizon), dtype=np.int64)
        for end in tables.ends:
            contexts = self.contexts[begin:end]
            drawn[:, begin:end], forced[:, begin:end] = ~decided[:, contexts], arm[:, contexts]
            arrivals, contrast = (
                released_at(seen, int(end), code, n_features) for code in (_ARRIVALS, _CONTRAST)
            )
            total += arrivals
            pooled += np.where(decided, 0.0, contrast)
            upper = np.maximum(arrivals + tables.arrival_scale * tables.log_two, 0.0)
            threshold = np.sqrt(0.5 * upper * tables.log_four) + tables.contrast_scale * tables.log_two
            dropped = ~decided & (np.abs(contrast) > threshold)
            arm = np.where(dropped, contrast > 0.0, arm)
            decided |= dropped
            begin = int(end)
        arm = np.where(decided, arm, pooled > 0.0)
        total = np.maximum(1.0, total)
        powers = [math.pow(one, 1.0 - tables.alpha) for one in total.min(axis=1).tolist()]
        budget = np.maximum(tables.least, np.array(powers))
        inclusion = np.minimum(1.0, budget[:, None] / total)
        drawn[:, half:] = inclusion[:, self.contexts[half:]] >= 1.0
        forced[:, half:] = arm[:, self.contexts[half:]]
        kept = np.isin(seen.statuses, (LEARNING_BETTER, ESTIMATION_BETTER))
        overridden = seen.statuses == self.override
        learning = overridden | (np.arange(horizon) >= half)
        ends = 1 + 2 * n_features
        return (
            Replayed("T_min", seen.outcomes[:, :1], budget[:, None], "half-time, number"),
            Replayed("the share of the trial", seen.outcomes[:, ends:][:, :n_features], inclusion, "context"),
            Replayed("the better arm", seen.outcomes[:, ends + n_features :], arm, "context"),
            Replayed("whether a coin chose", ~kept | learning, drawn | learning),
            Replayed("the arm", seen.actions, np.where(kept & ~overridden, forced, seen.actions)),
        )


class LinearChoice:
    """What LinPriv's choice may read, of several runs: counts, contexts, and noisy sums as released."""

    def __init__(self, tables: LinearTables, runs: int) -> None:
        arms, d = tables.n_arms, tables.dimension
        self.tables, self.every = tables, np.arange(runs)
        self.inverse = np.tile(np.eye(d) / tables.regularisation, (runs, arms, 1, 1))
        self.theta, self.log_det = np.zeros((runs, arms, d)), np.zeros((runs, arms))
        self.counts = np.zeros((runs, arms), dtype=np.int64)

    def arms(self, step: int, context: FloatArray) -> IntArray:
        """The arm of each run in a round, counted from 0; context (arms, d)."""
        tables = self.tables
        images = _products(self.inverse, np.broadcast_to(context, self.theta.shape))
        mean, quadratic = _dot(self.theta, context), _dot(images, context)
        length = np.sqrt(np.maximum(quadratic, 0.0))
        reach = self._reach()
        if tables.width == PUBLISHED:
            log_term = math.log1p((step + 1.0) / tables.regularisation) + tables.log_share
            common = math.sqrt(2.0 * tables.dimension * log_term) + tables.root
            index = mean + length * common + reach / tables.regularisation
            return np.asarray(index.argmax(axis=1))
        radius = np.sqrt(2.0 * (0.5 * self.log_det + tables.log_share)) * tables.noise_scale
        if tables.width == RIDGE:
            radius = radius + reach / math.sqrt(tables.regularisation)
        index = mean + length * (radius + tables.root)
        if tables.width == PROJECTED:
            index = index + np.sqrt(_dot(images, images)) * reach
        return np.asarray(index.argmax(axis=1))

    def learn(self, arms: IntArray, context: FloatArray, released: FloatArray) -> None:
        """A pull of an arm, and the noisy sums that it brought, shape (runs, d)."""
        own = context[arms]
        image = _products(self.inverse[self.every, arms], own)
        quadratic = _dot(image, own)
        factor = 1.0 / (1.0 + quadratic)
        self.inverse[self.every, arms] -= factor[:, None, None] * (image[:, :, None] * image[:, None, :])
        self.log_det[self.every, arms] += [math.log1p(one) for one in quadratic.tolist()]
        self.counts[self.every, arms] += 1
        self.theta[self.every, arms] = _products(self.inverse[self.every, arms], released)

    def _reach(self) -> FloatArray:
        """What the noise's norm stays below at each count."""
        bounds, most = self.tables.bounds, int(self.counts.max()) + 1
        if self.tables.width == PUBLISHED:
            table = [0.0] + [bounds[0, 0] * math.log(count) ** 1.5 for count in range(1, most)]
        else:
            table = [0.0] + [bounds[count.bit_length() - 1, count.bit_count()] for count in range(1, most)]
        return np.array(table)[self.counts]


@dataclass(frozen=True, slots=True, eq=False)
class LinearReplay:
    """The arms with the highest index, from contexts and noisy sums alone; vectors (rounds, arms, d)."""

    tables: LinearTables
    vectors: FloatArray
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Actions of every round, given the earlier ones and their releases."""
        runs, rounds = seen.actions.shape
        choice = LinearChoice(self.tables, runs)
        released = seen.releases[..., _VALUE].reshape(runs, rounds, -1)
        actions = np.empty_like(seen.actions)
        for step in range(rounds):
            actions[:, step] = choice.arms(step, self.vectors[step])
            choice.learn(seen.actions[:, step], self.vectors[step], released[:, step])
        overridden = seen.statuses == self.override
        return (Replayed("the arm", seen.actions, np.where(overridden, seen.actions, actions)),)


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    """Sum over the last axis in the order of a loop, as the kernel adds."""
    total = np.zeros(np.broadcast_shapes(left.shape, right.shape)[:-1])
    for k in range(left.shape[-1]):
        total = total + left[..., k] * right[..., k]
    return total


def _products(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Matrices times vectors; shapes (..., d, d) and (..., d)."""
    return np.stack([_dot(matrix[..., k, :], vector) for k in range(matrix.shape[-1])], axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class LiteralBins:
    """Which arms are dropped, and whether the bin is halved, from the noisy counts and sums alone."""

    tables: Any

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Active bins and dropped arms after the one check, at the end."""
        tables, participants = self.tables, float(seen.actions.shape[1])
        state = np.empty((seen.actions.shape[0], 2))
        for run, sums in enumerate(first_bin_sums(seen).tolist()):
            state[run] = self._checked(sums, participants)
        threshold = tables.refinement
        return (
            Replayed("the number of bins", seen.outcomes[:, :1], 1.0 + (state[:, 1:] < threshold), "check"),
            Replayed("the number of arms dropped", seen.outcomes[:, 2:3], state[:, :1], "check"),
        )

    def _checked(self, sums: list[list[float]], seen: float) -> tuple[float, float]:
        """Arms dropped, and the smallest radius of those that are left."""
        tables = self.tables
        spread = seen / (tables.epsilons[-1] * tables.epsilons[-1])
        shortfall = math.sqrt(32.0 * tables.width * spread)
        means, radii = [], []
        for count, total in sums:
            radius = math.inf
            if tables.published:
                if count != 0.0:
                    radius = math.sqrt(tables.width * max(spread, count)) / abs(count)
            elif count > shortfall:
                variance = tables.width * (64.0 * spread + 0.25 * max(count, 0.0))
                radius = math.sqrt(variance) / (count - shortfall)
            means.append(total / count if count != 0.0 else 0.0)
            radii.append(radius)
        highest = max(mean - tables.reach * radius for mean, radius in zip(means, radii, strict=True))
        late = seen >= tables.warm_up
        left = [
            radius
            for mean, radius in zip(means, radii, strict=True)
            if not (late and highest > mean + tables.reach * radius)
        ]
        return float(len(sums) - len(left)), min(left, default=math.inf)
