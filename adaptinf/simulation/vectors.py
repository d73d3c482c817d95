"""Context vectors, one an arm: how a round's are drawn, and the rewards that they let expect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adaptinf.compilation import kernel
from adaptinf.typing import FloatArray

__all__ = [
    "BUMPS",
    "CUBE",
    "IN_ORDER",
    "LINEAR",
    "ORTHANT",
    "RESAMPLED",
    "SPHERE",
    "draw_vectors",
    "expected_rewards",
]

SPHERE, ORTHANT, IN_ORDER, RESAMPLED, CUBE = range(5)
"""How context vectors come about: uniform on the unit sphere, on the part of it without negative
coordinates, rows of given ones, in order or drawn with replacement, or uniform on the unit cube."""

LINEAR, BUMPS = range(2)
"""How context vectors decide expected rewards: x'theta, or a bump an arm along the first coordinate."""


@kernel
def draw_vectors(environment: Any, step: int, rng: np.random.Generator, context: FloatArray) -> None:
    """Write the round's context vectors arm by arm: entry ``arm * dimension + k``."""
    n_arms, dimension = environment.theta.shape
    law = environment.vector_law
    if law in (IN_ORDER, RESAMPLED):
        row = step
        if law == RESAMPLED:
            rows = environment.vectors.shape[0]
            row = min(int(rng.random() * rows), rows - 1)
        for entry in range(n_arms * dimension):
            context[entry] = environment.vectors[row, entry]
        return
    for arm in range(n_arms):
        base = arm * dimension
        if arm > 0 and environment.shared:
            for k in range(dimension):
                context[base + k] = context[k]
            continue
        if law == CUBE:
            for k in range(dimension):
                context[base + k] = rng.random()
            continue
        squares = 0.0
        for k in range(dimension):
            draw = rng.standard_normal()
            context[base + k] = abs(draw) if law == ORTHANT else draw
            squares += draw * draw
        inverse = 1.0 / math.sqrt(squares)
        for k in range(dimension):
            context[base + k] *= inverse


@kernel
def expected_rewards(environment: Any, context: FloatArray, expected: FloatArray) -> float:
    """Write the expected reward of every arm in this context, and return the largest."""
    n_arms, dimension = environment.theta.shape
    best = -np.inf
    for arm in range(n_arms):
        mean = 0.0
        if environment.mean_law == BUMPS:
            distance = n_arms * context[arm * dimension] - (arm + 1.0)
            mean = 2.0 / (1.0 + math.exp(2.0 * distance * distance))
        else:
            for k in range(dimension):
                mean += context[arm * dimension + k] * environment.theta[arm, k]
        expected[arm] = mean
        best = max(best, mean)
    return best
