"""Context vectors, one per arm: how a round's are drawn, and the rewards that they let expect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adaptinf.compilation import kernel
from adaptinf.typing import FloatArray

SPHERE, ORTHANT, IN_ORDER, RESAMPLED, CUBE, SHUFFLED = range(6)
"""How context vectors come about: uniform on the unit sphere, on the part of it without negative
coordinates, rows of given ones, in order or drawn with replacement, uniform on the unit cube, or given rows
in an order that every run shuffles."""

LINEAR, BUMPS, GIVEN = range(3)
"""How context vectors decide expected rewards: x'theta, a bump an arm along the first coordinate, or the
rewards that are given for their row."""


@kernel
def _draw_row(environment: Any, step: int, rng: np.random.Generator) -> int:
    """Position of the round's row among those that are given."""
    if environment.vector_law == IN_ORDER:
        return step
    rows: int = environment.vectors.shape[0]
    if environment.vector_law == RESAMPLED:
        return min(int(rng.random() * rows), rows - 1)
    order = environment.order
    if step == 0:
        for row in range(rows):
            order[row] = row
    left = rows - step
    other = step + min(int(rng.random() * left), left - 1)
    drawn = order[other]
    order[other] = order[step]
    order[step] = drawn
    return int(drawn)


@kernel
def draw_vectors(environment: Any, step: int, rng: np.random.Generator, context: FloatArray) -> int:
    """Write the round's context vectors arm by arm, entry ``arm * dimension + k``, and return their row.

    Where the row of given vectors holds those of the first arms only, the others have the same ones.
    """
    n_arms, dimension = environment.theta.shape
    law = environment.vector_law
    if law in (IN_ORDER, RESAMPLED, SHUFFLED):
        row: int = _draw_row(environment, step, rng)
        width = environment.vectors.shape[1]
        for entry in range(width):
            context[entry] = environment.vectors[row, entry]
        for entry in range(width, n_arms * dimension):
            context[entry] = context[entry - width]
        return row
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
    return 0


@kernel
def expected_rewards(environment: Any, row: int, context: FloatArray, expected: FloatArray) -> float:
    """Write the expected reward of every arm in this context, of a row, and return the largest."""
    n_arms, dimension = environment.theta.shape
    best = -np.inf
    for arm in range(n_arms):
        mean = 0.0
        if environment.mean_law == BUMPS:
            distance = n_arms * context[arm * dimension] - (arm + 1.0)
            mean = 2.0 / (1.0 + math.exp(2.0 * distance * distance))
        elif environment.mean_law == GIVEN:
            mean = environment.tableau[row, arm]
        else:
            for k in range(dimension):
                mean += context[arm * dimension + k] * environment.theta[arm, k]
        expected[arm] = mean
        best = max(best, mean)
    return best
