"""Audits of LinPriv: neighbours, trials, and actions that follow from contexts and noisy sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import AuditTrial, audit_trials, outside_rewards
from adaptinf.audit.privacy.designs.counter_ratios import ARMS, CounterNoise, counter_pair
from adaptinf.audit.privacy.designs.neighbours import Neighbours, neighbouring_trials, refuse_unit
from adaptinf.designs.contextual.linear_bandits import LinPriv
from adaptinf.designs.contextual.linear_noise import NoiseLaw, noise_law
from adaptinf.privacy.tree_sums import counter_scales
from adaptinf.simulation.environments import LinearArms, Tableau
from adaptinf.typing import FloatArray

_LONG, _SHORT, _FEWEST, _NUMBERS = 1_100, 256, 130, 8_800
"""Rounds; where there are many coordinates, fewer, so that a run has so many numbers."""
_FIRST, _REST = 0.6, 0.8
"""A first coordinate that is the same for all, and the others' share: together of length at most 1."""
_VALUE = 3
_DIMENSION = 2
"""Coordinates of trials of a design that names none: the fewer, the likelier is a loss near the largest."""


def unequal_contexts(rounds: int, n_arms: int, dimension: int) -> FloatArray:
    """Vectors of length at most 1, another one for every round; shape (rounds, arms, dimension).

    In turn one arm alone has a vector, so that all are pulled; then all have the same, and the noise decides.
    """
    drawn = np.random.default_rng(0).normal(size=(rounds, 1, dimension))
    drawn *= np.linspace(0.2, 1.0, rounds)[:, None, None] / np.linalg.norm(drawn, axis=2, keepdims=True)
    turn = np.arange(rounds)[:, None] % (2 * n_arms)
    has = (turn == np.arange(n_arms)) | (turn >= n_arms)
    return np.asarray(drawn * has[:, :, None])


@neighbouring_trials.register
def linear_neighbours(design: LinPriv, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Two arms, at most 8 rounds and contexts (1, ..., 1) / sqrt(d), one round's rewards being 0 and 1.

    Such contexts are the longest in L1. In the first pair the second arm has null contexts, so that it is
    hardly ever pulled; in the second pair both arms have the same.
    """
    refuse_unit(unit)
    dimension = _dimension(design)
    return vector_neighbours(lambda horizon: design._law(dimension, horizon), dimension)


def _dimension(design: LinPriv) -> int:
    return _DIMENSION if design.dimension is None else int(design.dimension)


def vector_neighbours(law_at: Callable[[int], NoiseLaw], dimension: int) -> tuple[Neighbours, ...]:
    """Pairs of trials for counters of context times reward, with contexts that are the longest in L1."""
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
    """Horizon and round for the counter that the noise sits in at that horizon."""
    horizon, row = binary if law_at(binary[0]).counter == "binary" else hybrid
    law = law_at(horizon)
    vectors = np.tile(context, (horizon, 1, 1))
    return counter_pair(horizon, row, law.counter == "hybrid", law.gaussian, vectors)


@audit_trials.register
def linear_trials(design: LinPriv) -> tuple[AuditTrial, ...]:
    """One arm for 1,100 rounds and two for 256, contexts unequal; one arm for 256 with 0/1 rewards."""
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
            env, paid = LinearArms(theta, contexts=vectors, rewards="bernoulli"), "rewards by fair coins"
        law = _promised_law(design, dimension, horizon)
        hybrid = law.counter == "hybrid"
        noise = CounterNoise(n_arms, hybrid, law.trunk, law.node, law.gaussian, vectors, fair)
        words = f"{n_arms} arm{'s' * (n_arms > 1)} for {horizon:,} rounds, unequal contexts, {paid}"
        trials.append(AuditTrial(words, env, horizon, noise=noise))
    return tuple(trials)


def _promised_law(design: LinPriv, dimension: int, horizon: int) -> NoiseLaw:
    """What the guarantee needs, worked out here: not what the design says that it draws."""
    if design.calibration == "published":
        return NoiseLaw(False, "hybrid", *counter_scales("hybrid", design.epsilon, horizon))
    return noise_law(design.epsilon, design.delta, design.noise, design.counter, dimension, horizon)
