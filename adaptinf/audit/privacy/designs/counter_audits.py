"""Audits of designs with counters: likelihood ratios, noise of nodes, neighbouring pairs and trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from adaptinf.audit.privacy.designs.audited_trial import (
    FAIR,
    AuditTrial,
    Neighbours,
    NodeNoise,
    NodeUnits,
    audit_trials,
    laplace_uniforms,
    neighbouring_trials,
    one_reward_apart,
    outside_rewards,
    refuse_unit,
    reward_neighbours,
)
from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.designs.contextual.linear_bandits import LinPriv
from adaptinf.designs.contextual.linear_noise import PRODUCT_UNITS, NoiseLaw, noise_law
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.privacy.tree_sums import counter_scales
from adaptinf.simulation.environments import BernoulliArms, LinearArms, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

ARMS = 2


def laplace_log_ratio(noise: FloatArray, shift: FloatArray, scale: FloatArray) -> FloatArray:
    """Logarithm of the ratio of Laplace densities centred at `shift` and at 0, evaluated at `noise`."""
    return np.asarray((np.abs(noise) - np.abs(noise - shift)) / scale)


def normal_log_ratio(noise: FloatArray, shift: FloatArray, scale: FloatArray) -> FloatArray:
    """Logarithm of the ratio of normal densities centred at `shift` and at 0, evaluated at `noise`."""
    return np.asarray(shift * (2.0 * noise - shift) / (2.0 * scale**2))


def earlier_counts(hybrid: bool, counts: IntArray) -> IntArray:
    """Number of items that precede the node whose noise is new in the running sum at each count."""
    earlier = counts & (counts - 1)
    return np.where(earlier == 0, counts >> 1, earlier) if hybrid else earlier


@dataclass(frozen=True, slots=True, eq=False)
class CounterScore:
    """Log-likelihood ratio of actions and noisy sums for two sequences of rewards, with a counter per arm.

    Shapes: first, second (rounds, arms), vectors (rounds, arms, dimension).
    """

    # Given the actions, each counter has received known rewards, and each release reveals one noisy sum of
    # consecutive items, independently of all others. The ratio is therefore a product over nodes. The rules
    # that choose the arms are the same on both tapes, so they cancel. Scales are those that the releases
    # state.

    first: FloatArray
    second: FloatArray
    hybrid: bool
    gaussian: bool = False
    vectors: FloatArray | None = None

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Scores of the runs, an array of shape (runs,)."""
        actions = transcripts.actions
        runs, rounds = actions.shape
        n_arms = self.first.shape[1]
        vectors = np.ones((*self.first.shape, 1)) if self.vectors is None else self.vectors
        items = self.first[:, :, None] * vectors
        changes = (self.second - self.first)[:, :, None] * vectors
        released = transcripts.releases.reshape(runs, rounds, vectors.shape[2], -1)
        ratio = normal_log_ratio if self.gaussian else laplace_log_ratio
        # Row (run and arm) * (rounds + 1) + count holds the noise on the first tape and its shift to the
        # second; flat rows let one index address all runs.
        noise = np.zeros((runs * n_arms * (rounds + 1), vectors.shape[2]))
        shift = np.zeros_like(noise)
        sums = np.zeros((runs * n_arms, vectors.shape[2]))
        counts = np.zeros(runs * n_arms, dtype=np.int64)
        every = np.arange(runs) * n_arms
        total = np.zeros(runs)
        for step in range(rounds):
            arms = actions[:, step]
            cell = every + arms
            count = counts[cell] + 1
            counts[cell] = count
            sum_here = sums.take(cell, axis=0) + items[step].take(arms, axis=0)
            sums[cell] = sum_here
            here = cell * (rounds + 1) + count
            noise_here = released[:, step, :, 3] - sum_here
            shift_here = shift.take(here - 1, axis=0) + changes[step].take(arms, axis=0)
            noise[here], shift[here] = noise_here, shift_here
            before = here - count + earlier_counts(self.hybrid, count)
            moved = shift_here - shift.take(before, axis=0)
            if moved.any():
                fresh = noise_here - noise.take(before, axis=0)
                total += ratio(fresh, moved, released[:, step, :, 4]).sum(axis=1)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class CounterNoise:
    """The noise of the node that ends with each release of a counter."""

    # Each arm has a counter of its rewards, clipped to [0, 1], or of such rewards times vectors of shape
    # (rounds, arms, dimension). The noise of a node is the noise of the sum up to its end less that of the
    # sum up to its beginning. Scales are the promised ones, not those that the releases state, because the
    # audit tests the promise.

    n_arms: int
    hybrid: bool
    trunk: float
    node: float
    gaussian: bool = False
    vectors: FloatArray | None = None
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """Noise of the nodes that occur in at least half of the runs."""
        runs, rounds = seen.actions.shape
        noise, fair, steps = self._by_count(seen)
        counts = np.arange(1, rounds + 1)
        before = earlier_counts(self.hybrid, counts)
        fresh = noise[:, :, counts] - noise[:, :, before]
        scale = self._scales(counts)[:, None]
        uniforms = special.ndtr(fresh / scale) if self.gaussian else laplace_uniforms(fresh, scale)
        kept = np.isfinite(uniforms[..., 0]).sum(axis=0) * 2 >= runs
        arm, place = np.nonzero(kept)
        dimension = noise.shape[3]
        names = [
            f"the noisy sum at count {count} of arm {one}"
            + (f", coordinate {k + 1}" if dimension > 1 else "")
            for one, count in zip(arm.tolist(), (place + 1).tolist(), strict=True)
            for k in range(dimension)
        ]
        groups, group_names = self._levels(counts[place])
        coins = np.cumsum(np.nan_to_num(fair), axis=2) * self.fair
        own, when = coins[:, arm, place + 1] - coins[:, arm, before[place]], steps[:, arm, place + 1]
        units = NodeUnits(
            fresh[:, arm, place].reshape(runs, -1),
            np.repeat(scale[place, 0], dimension),
            np.repeat(when, dimension, axis=1),
            np.repeat(own, dimension, axis=1),
            float(GRID_UNITS if self.vectors is None else PRODUCT_UNITS),
        )
        return (
            NodeNoise(
                uniforms[:, arm, place].reshape(runs, -1),
                names,
                np.repeat(groups, dimension),
                group_names,
                fair[:, arm, place + 1] if self.fair else np.zeros((0, 0)),
                [
                    f"the reward at count {count} of arm {one}"
                    for one, count in zip(arm.tolist(), (place + 1).tolist(), strict=True)
                ],
                units=units,
            ),
        )

    def _by_count(self, seen: Transcripts) -> tuple[FloatArray, FloatArray, IntArray]:
        """Noise of the sums, shape (runs, arms, counts, dimension), and rewards and rounds of the counts."""
        runs, rounds = seen.actions.shape
        steps = np.arange(rounds)
        clipped = np.clip(seen.rewards, 0.0, 1.0)[:, :, None]
        vectors = np.ones((rounds, self.n_arms, 1)) if self.vectors is None else self.vectors
        items = clipped * vectors[steps, seen.actions]
        released = seen.releases[..., 3].reshape(runs, rounds, -1)
        noise = np.full((runs, self.n_arms, rounds + 1, items.shape[2]), np.nan)
        fair = np.full((runs, self.n_arms, rounds + 1), np.nan)
        rounds_of = np.zeros(fair.shape, dtype=np.int64)
        noise[:, :, 0] = 0.0
        for arm in range(self.n_arms):
            pulled = seen.actions == arm
            run, step = np.nonzero(pulled)
            count = pulled.cumsum(axis=1)[pulled]
            sums = np.cumsum(items * pulled[:, :, None], axis=1)
            noise[run, arm, count] = released[run, step] - sums[run, step]
            fair[run, arm, count], rounds_of[run, arm, count] = seen.rewards[run, step] - FAIR, step
        return noise, fair, rounds_of

    def _scales(self, counts: IntArray) -> FloatArray:
        """Required scale of the node that ends at each count."""
        level = np.frexp(counts.astype(np.float64))[1] - 1.0
        if not self.hybrid:
            return np.full(counts.shape, self.node)
        return np.where(counts & (counts - 1) == 0, self.trunk, self.node * level)

    def _levels(self, counts: IntArray) -> tuple[IntArray, list[str]]:
        """Level of the node at each count: nodes of the trunk are powers of two."""
        level = np.frexp((counts & -counts).astype(np.float64))[1] - 1
        most = int(level.max(initial=0)) + 1
        names = [f"all nodes of level {k} of the tree" for k in range(most)]
        if self.hybrid:
            level = np.where(counts & (counts - 1) == 0, most, level)
            names.append("all noisy sums at powers of two")
        return level, names


def sum_neighbours(counter: str) -> tuple[Neighbours, ...]:
    """Pairs of trials for counters of rewards: two arms, all rewards 1/2 except in one round."""
    rounds = ((7, 0), (7, 2)) if counter == "binary" else ((16, 8), (10, 4))
    return tuple(counter_pair(horizon, row, counter == "hybrid") for horizon, row in rounds)


def counter_pair(
    horizon: int, row: int, hybrid: bool, gaussian: bool = False, vectors: FloatArray | None = None
) -> Neighbours:
    """The pair that differs in round `row`; vectors have shape (horizon, arms, dimension)."""
    first, second = one_reward_apart(np.full((horizon, ARMS), 0.5), row)
    score = CounterScore(first, second, hybrid, gaussian, vectors)
    return reward_neighbours(first, second, row, score, vectors=vectors)


# Trials with many coordinates have fewer rounds, which keeps the amount of numbers in a run about constant.
_LONG, _SHORT, _FEWEST, _NUMBERS = 1_100, 256, 130, 8_800
# All vectors share the first coordinate. The others have the rest of the length, so that no vector is longer
# than 1.
_FIRST, _REST = 0.6, 0.8
_VALUE = 3
# Designs that state no dimension are audited in two dimensions: with fewer coordinates, losses near the
# largest are more likely.
_DIMENSION = 2


def unequal_contexts(rounds: int, n_arms: int, dimension: int) -> FloatArray:
    """Vectors of length at most 1, different in every round; shape (rounds, arms, dimension)."""
    # In the first half of each cycle only one arm has a vector, so every arm is pulled. In the other half all
    # arms have the same vector, so the noise decides.
    drawn = np.random.default_rng(0).normal(size=(rounds, 1, dimension))
    drawn *= np.linspace(0.2, 1.0, rounds)[:, None, None] / np.linalg.norm(drawn, axis=2, keepdims=True)
    turn = np.arange(rounds)[:, None] % (2 * n_arms)
    has = (turn == np.arange(n_arms)) | (turn >= n_arms)
    return np.asarray(drawn * has[:, :, None])


@neighbouring_trials.register
def linear_neighbours(design: LinPriv, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Pairs with two arms, at most 8 rounds and contexts (1, ..., 1) / sqrt(d); one reward is 0 or 1."""
    # Among vectors of length 1, these have the largest L1 norm, to which Laplace noise is calibrated. In the
    # first pair, the second arm has null contexts, so it is hardly ever pulled. In the second pair both arms
    # have the same contexts.
    refuse_unit(unit)
    dimension = _dimension(design)
    return vector_neighbours(lambda horizon: design._law(dimension, horizon), dimension)


def _dimension(design: LinPriv) -> int:
    return _DIMENSION if design.dimension is None else int(design.dimension)


def vector_neighbours(law_at: Callable[[int], NoiseLaw], dimension: int) -> tuple[Neighbours, ...]:
    """Pairs of trials for counters of context times reward, with contexts of maximal L1 norm."""
    steered = np.full((ARMS, dimension), 1.0 / math.sqrt(dimension))
    shared = steered.copy()
    steered[1] = 0.0
    return (
        _vector_pair(law_at, steered, binary=(3, 0), hybrid=(4, 2)),
        replace(_vector_pair(law_at, shared, binary=(7, 0), hybrid=(8, 4)), for_actions=True),
    )


def _vector_pair(
    law_at: Callable[[int], NoiseLaw], context: FloatArray, binary: tuple[int, int], hybrid: tuple[int, int]
) -> Neighbours:
    """Pair for the counter that the design uses; `binary` and `hybrid` each contain a horizon and a round."""
    horizon, row = binary if law_at(binary[0]).counter == "binary" else hybrid
    law = law_at(horizon)
    vectors = np.tile(context, (horizon, 1, 1))
    return counter_pair(horizon, row, law.counter == "hybrid", law.gaussian, vectors)


@audit_trials.register
def linear_trials(design: LinPriv) -> tuple[AuditTrial, ...]:
    """One arm for 1,100 rounds and two for 256 with unequal contexts; one arm for 256 with 0/1 rewards."""
    trials, dimension = [], _dimension(design)
    most = max(_FEWEST, _NUMBERS // dimension)
    for n_arms, rounds, fair in ((1, _LONG, False), (2, _SHORT, False), (1, _SHORT, True)):
        horizon = min(rounds, most)
        vectors = unequal_contexts(horizon, n_arms, dimension)
        env: Any = Tableau(outside_rewards(horizon, n_arms), vectors=vectors)
        paid = "rewards in and beyond [0, 1]"
        if fair:
            vectors = np.concatenate(
                [np.full((horizon, n_arms, 1), _FIRST), _REST * vectors[..., 1:]], axis=2
            )
            theta = np.zeros((n_arms, dimension))
            theta[:, 0] = 0.5 / _FIRST
            env, paid = LinearArms(theta, contexts=vectors, rewards="bernoulli"), "rewards from fair coins"
        law = _promised_law(design, dimension, horizon)
        hybrid = law.counter == "hybrid"
        noise = CounterNoise(n_arms, hybrid, law.trunk, law.node, law.gaussian, vectors, fair)
        words = f"{n_arms} arm{'s' * (n_arms > 1)} for {horizon:,} rounds, unequal contexts, {paid}"
        trials.append(AuditTrial(words, env, horizon, noise=noise))
    return tuple(trials)


def _promised_law(design: LinPriv, dimension: int, horizon: int) -> NoiseLaw:
    """The noise that the guarantee requires, derived here rather than taken from the design."""
    if design.calibration == "published":
        return NoiseLaw(False, "hybrid", *counter_scales("hybrid", design.epsilon, horizon))
    return noise_law(design.epsilon, design.delta, design.noise, design.counter, dimension, horizon)


@neighbouring_trials.register
def ucb_neighbours(design: PrivateUCB, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Pairs with two arms and at most 16 rounds; one reward is 0 or 1, and all others are 1/2."""
    # In the first pair, the reward enters as many noisy sums as possible; in the second, it comes earlier
    # (hybrid) or later (binary). The scores are exact for any sequence of arms.
    refuse_unit(unit)
    return sum_neighbours(design.counter)


@audit_trials.register
def ucb_trials(design: PrivateUCB) -> tuple[AuditTrial, ...]:
    """One and two arms for 1,100 rounds with rewards outside [0, 1], and three arms with 0/1 rewards."""
    coins = BernoulliArms([0.5, 0.5, 0.5])
    kinds = (
        ("one arm for 1,100 rounds, rewards in and beyond [0, 1]", Tableau(outside_rewards(_LONG, 1)), _LONG),
        (
            "two arms for 1,100 rounds, rewards in and beyond [0, 1]",
            Tableau(outside_rewards(_LONG, 2)),
            _LONG,
        ),
        ("three arms for 256 rounds, rewards from fair coins", coins, _SHORT),
    )
    trials = []
    for words, env, horizon in kinds:
        budget = design.guarantee(horizon, env.n_arms).epsilon
        trunk, node = counter_scales(design.counter, budget, horizon)
        noise = CounterNoise(env.n_arms, design.counter == "hybrid", trunk, node, fair=env is coins)
        trials.append(AuditTrial(words, env, horizon, noise=noise))
    return tuple(trials)
