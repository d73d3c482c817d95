"""Worst-case neighbouring trials of designs with a counter an arm: an item there spends all of epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from adaptinf.designs.linear.noise import NoiseLaw
from adaptinf.designs.neighbours import Neighbours, one_reward_apart
from adaptinf.designs.ratios.counter_scores import CounterScore
from adaptinf.simulation.environments import Tableau
from adaptinf.typing import FloatArray

__all__ = ["sum_neighbours", "vector_neighbours"]

_ARMS = 2


def sum_neighbours(counter: str) -> tuple[Neighbours, ...]:
    """Pairs of trials for counters of rewards, two arms, all rewards 1/2 but those of one round."""
    rounds = ((7, 0), (7, 2)) if counter == "binary" else ((16, 8), (10, 4))
    return tuple(_pair(horizon, row, counter == "hybrid") for horizon, row in rounds)


def vector_neighbours(law_at: Callable[[int], NoiseLaw], dimension: int) -> tuple[Neighbours, ...]:
    """Pairs of trials for counters of context times reward, with contexts that are the longest in L1."""
    steered = np.full((_ARMS, dimension), 1.0 / math.sqrt(dimension))
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
    return _pair(horizon, row, law.counter == "hybrid", law.gaussian, vectors)


def _pair(
    horizon: int, row: int, hybrid: bool, gaussian: bool = False, vectors: FloatArray | None = None
) -> Neighbours:
    first, second = one_reward_apart(np.full((horizon, _ARMS), 0.5), row)
    return Neighbours(
        first=Tableau(first, vectors=vectors),
        second=Tableau(second, vectors=vectors),
        horizon=horizon,
        unit="reward",
        differs=f"the rewards of round {row + 1} are 0 and 1",
        score=CounterScore(first, second, hybrid, gaussian, vectors),
    )
