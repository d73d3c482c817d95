"""Weights of an optimal design, by steps towards one arm and away from one."""

from __future__ import annotations

from adaptinf.compilation import compiled, kernel
from adaptinf.typing import FloatArray, IntArray


@kernel
def balance(
    coefficients: FloatArray,
    n: int,
    rank: int,
    basis: IntArray,
    tolerance: float,
    most_steps: int,
    weights: FloatArray,
    leverage: FloatArray,
    inverse: FloatArray,
    image: FloatArray,
) -> float:
    """Write weights under which no leverage exceeds rank (1 + tolerance); how far the largest exceeds rank.

    Vectors are written in terms of those at `basis`, where the weights start, equal. Each step takes the
    best length along the line towards the arm of the highest leverage, or away from that of the lowest one
    among the arms in use, whichever is further from balance.
    """
    for i in range(n):
        weights[i] = 0.0
        leverage[i] = 0.0
        for k in range(rank):
            leverage[i] += rank * coefficients[i, k] * coefficients[i, k]
    for k in range(rank):
        weights[basis[k]] = 1.0 / rank
        for j in range(rank):
            inverse[k, j] = rank if k == j else 0.0
    excess = 0.0
    for _ in range(most_steps):
        high = low = basis[0]
        for i in range(n):
            if leverage[i] > leverage[high]:
                high = i
            if weights[i] > 0.0 and (weights[low] == 0.0 or leverage[i] < leverage[low]):
                low = i
        excess = leverage[high] / rank - 1.0
        if excess <= tolerance or rank == 1:
            break
        arm = high
        floor = 0.0
        if 1.0 - leverage[low] / rank > excess:
            arm = low
            floor = -weights[low] / (1.0 - weights[low])
        step = (leverage[arm] / rank - 1.0) / (leverage[arm] - 1.0)
        if arm == low and floor < 0.0 and (leverage[arm] <= 1.0 or step <= floor):
            step = floor
        _move(coefficients, n, rank, arm, step, weights, leverage, inverse, image)
        if floor < 0.0 and step == floor:
            weights[arm] = 0.0
    return excess


@kernel
def _move(
    coefficients: FloatArray,
    n: int,
    rank: int,
    arm: int,
    step: float,
    weights: FloatArray,
    leverage: FloatArray,
    inverse: FloatArray,
    image: FloatArray,
) -> None:
    """Move a share `step` of all weight to an arm, and update the inverse and the leverages."""
    keep = 1.0 - step
    shrink = (step / keep) / (1.0 + step / keep * leverage[arm])
    for k in range(rank):
        image[k] = 0.0
        for j in range(rank):
            image[k] += inverse[k, j] * coefficients[arm, j]
    for k in range(rank):
        for j in range(rank):
            inverse[k, j] = (inverse[k, j] - shrink * image[k] * image[j]) / keep
    for i in range(n):
        along = 0.0
        for k in range(rank):
            along += coefficients[i, k] * image[k]
        leverage[i] = (leverage[i] - shrink * along * along) / keep
        weights[i] *= keep
    weights[arm] += step


@compiled
def balance_rows(
    coefficients: FloatArray,
    basis: IntArray,
    tolerance: float,
    most_steps: int,
    weights: FloatArray,
    leverage: FloatArray,
    inverse: FloatArray,
    image: FloatArray,
) -> float:
    """`balance` on all rows and columns, from Python."""
    n, rank = coefficients.shape
    return balance(coefficients, n, rank, basis, tolerance, most_steps, weights, leverage, inverse, image)
