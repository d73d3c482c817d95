"""Kernels that express all arms in terms of a few: reduction, exchange for a large determinant, weights."""

from __future__ import annotations

import math

from adaptinf.compilation import compiled, kernel
from adaptinf.typing import FloatArray, IntArray

_RANK_TOLERANCE = 1e-10


@kernel
def exchange(coefficients: FloatArray, n: int, rank: int, limit: float, basis: IntArray) -> int:
    """Swap rows into the basis, the largest coefficient first, until none exceeds `limit`; returns the swaps.

    Row i of `coefficients` expresses vector i in terms of the vectors `basis`. A swap at entry c multiplies
    the absolute determinant of the basis by abs(c).
    """
    swaps = 0
    while True:
        largest = limit
        row = column = -1
        for i in range(n):
            for j in range(rank):
                if abs(coefficients[i, j]) > largest:
                    largest = abs(coefficients[i, j])
                    row, column = i, j
        if row < 0:
            return swaps
        for i in range(n):
            if i != row:
                share = coefficients[i, column] / coefficients[row, column]
                for j in range(rank):
                    coefficients[i, j] -= share * coefficients[row, j]
                coefficients[i, column] = share
        for j in range(rank):
            coefficients[row, j] = 0.0
        coefficients[row, column] = 1.0
        basis[column] = row
        swaps += 1


@kernel
def orthogonal_coordinates(
    vectors: FloatArray,
    rows: FloatArray,
    n: int,
    dimension: int,
    residual: FloatArray,
    directions: FloatArray,
    reduced: FloatArray,
    basis: IntArray,
) -> int:
    """Coordinates of some rows of `vectors` in an orthonormal basis of their span, and its dimension."""
    # This is Gram-Schmidt with pivoting: each direction comes from the longest residual, and is
    # orthogonalised twice, because once can leave rounding errors. `basis` receives the positions of the
    # pivots.
    for i in range(n):
        for k in range(dimension):
            residual[i, k] = vectors[int(rows[i]), k]
    smallest = 0.0
    for step in range(min(n, dimension)):
        longest = 0.0
        pivot = -1
        for i in range(n):
            square = 0.0
            for k in range(dimension):
                square += residual[i, k] * residual[i, k]
            if square > longest:
                longest = square
                pivot = i
        if step == 0:
            smallest = longest * _RANK_TOLERANCE * _RANK_TOLERANCE
        if pivot < 0 or longest <= smallest:
            return step
        _direction(residual, pivot, directions, step, dimension)
        for i in range(n):
            along = 0.0
            for k in range(dimension):
                along += residual[i, k] * directions[step, k]
            reduced[i, step] = along
            for k in range(dimension):
                residual[i, k] -= along * directions[step, k]
        basis[step] = pivot
    return min(n, dimension)


@kernel
def _direction(residual: FloatArray, pivot: int, directions: FloatArray, step: int, dimension: int) -> None:
    """Write the unit vector of a residual, orthogonal to the earlier directions."""
    for k in range(dimension):
        directions[step, k] = residual[pivot, k]
    for earlier in range(step):
        along = 0.0
        for k in range(dimension):
            along += directions[step, k] * directions[earlier, k]
        for k in range(dimension):
            directions[step, k] -= along * directions[earlier, k]
    square = 0.0
    for k in range(dimension):
        square += directions[step, k] * directions[step, k]
    for k in range(dimension):
        directions[step, k] /= math.sqrt(square)


@kernel
def basis_coefficients(
    reduced: FloatArray, basis: IntArray, n: int, rank: int, coefficients: FloatArray
) -> None:
    """Write every vector in terms of the basis vectors, whose orthogonal coordinates are triangular."""
    for i in range(n):
        for k in range(rank - 1, -1, -1):
            value = reduced[i, k]
            for later in range(k + 1, rank):
                value -= coefficients[i, later] * reduced[basis[later], k]
            coefficients[i, k] = value / reduced[basis[k], k]


@compiled
def exchange_rows(coefficients: FloatArray, limit: float, basis: IntArray) -> int:
    """`exchange` for all rows and columns, called from Python."""
    return exchange(coefficients, coefficients.shape[0], coefficients.shape[1], limit, basis)


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
    """Write weights for which no leverage exceeds rank (1 + tolerance); return the largest excess.

    Vectors are expressed in terms of those at `basis`, on which the initial weights are equal. Each step has
    the optimal length along the line towards the arm with the highest leverage, or away from the arm in use
    with the lowest leverage, whichever of the two is further from balance.
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
    """Move a share `step` of the total weight to an arm, and update the inverse and the leverages."""
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
    """`balance` for all rows and columns, called from Python."""
    n, rank = coefficients.shape
    return balance(coefficients, n, rank, basis, tolerance, most_steps, weights, leverage, inverse, image)
