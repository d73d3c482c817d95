"""Worst-case neighbouring trials of designs with a counter an arm: an item there spends all of epsilon."""

from __future__ import annotations

import numpy as np

from adaptinf.designs.neighbours import UNIT_RANGE, Neighbours, one_reward_apart
from adaptinf.designs.ratios.counter_scores import CounterScore
from adaptinf.simulation.environments import Tableau
from adaptinf.typing import FloatArray

ARMS = 2


def sum_neighbours(counter: str) -> tuple[Neighbours, ...]:
    """Pairs of trials for counters of rewards, two arms, all rewards 1/2 but those of one round."""
    rounds = ((7, 0), (7, 2)) if counter == "binary" else ((16, 8), (10, 4))
    return tuple(counter_pair(horizon, row, counter == "hybrid") for horizon, row in rounds)


def counter_pair(
    horizon: int, row: int, hybrid: bool, gaussian: bool = False, vectors: FloatArray | None = None
) -> Neighbours:
    """The pair whose round `row` differs; vectors (horizon, arms, dimension)."""
    first, second = one_reward_apart(np.full((horizon, ARMS), 0.5), row)
    return Neighbours(
        first=Tableau(first, vectors=vectors, reward_range=UNIT_RANGE),
        second=Tableau(second, vectors=vectors, reward_range=UNIT_RANGE),
        horizon=horizon,
        unit="reward",
        differs=f"the rewards of round {row + 1} are 0 and 1",
        score=CounterScore(first, second, hybrid, gaussian, vectors),
    )
