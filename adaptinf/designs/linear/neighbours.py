"""Worst-case neighbouring trials of LinPriv, in contexts in which one reward moves its counters most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from adaptinf.designs.linear.noise import NoiseLaw
from adaptinf.designs.neighbours import Neighbours
from adaptinf.designs.ratios.counters import ARMS, counter_pair
from adaptinf.typing import FloatArray


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
