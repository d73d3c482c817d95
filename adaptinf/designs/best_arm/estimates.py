"""What a phase of a best-arm design makes of its rewards: an estimate of every arm that is left."""

from __future__ import annotations

import math
from typing import Any

from adaptinf.compilation import kernel
from adaptinf.privacy.noise import gaussian, named_laplace
from adaptinf.simulation.run import release
from adaptinf.typing import FloatArray

ACTIVE, SUM = 1, 2
"""Rows of the state: the arms that are left, by slot; the sums of a phase's rewards, by place in its plan."""
EVERY_ARM, MAX_DET, G_OPTIMAL = range(3)
"""Which arms a phase pulls: all, a MAX-DET collection, or those of a G-optimal design."""
NO_NOISE, LAPLACE_NOISE, GAUSSIAN_NOISE, RELEASED = range(4)
"""Law of the noise; or what is released is known, and the source has it in place of the noise."""


@kernel
def estimate(tables: Any, state: FloatArray, phase: int, n: int, rank: int, pulled: int, source: Any) -> None:
    """Write the estimates of the n arms that are left, by slot."""
    if tables.method == G_OPTIMAL:
        _least_squares(tables, state, phase, n, rank, pulled, source)
        return
    for place in range(pulled):
        slot = tables.pulled[place]
        tables.estimates[slot] = _noisy_mean(tables, state, phase, place, source)
    if tables.method == MAX_DET and pulled < n:
        for k in range(rank):
            tables.image[k] = tables.estimates[tables.basis[k]]
        for slot in range(n):
            value = 0.0
            for k in range(rank):
                if phase == 0:
                    value += tables.first_coefficients[slot, k] * tables.image[k]
                else:
                    value += tables.coefficients[slot, k] * tables.image[k]
            tables.estimates[slot] = value


@kernel
def _noisy_mean(tables: Any, state: FloatArray, phase: int, place: int, source: Any) -> float:
    """Mean of a pulled arm's rewards in this phase, released where there is noise, which is the sum's."""
    arm, total, count = int(state[ACTIVE, tables.pulled[place]]), state[SUM, place], tables.counts[place]
    if tables.law == NO_NOISE:
        return float(total / count)
    drawn = _noise(tables, tables.noise, source, arm, phase)
    mean = drawn if tables.law == RELEASED else (total + drawn) / count
    release(tables, state, 0, arm, mean, tables.noise / count)
    return float(mean)


@kernel
def _noise(tables: Any, scale: float, source: Any, stream: int, phase: int) -> float:
    if tables.law == GAUSSIAN_NOISE:
        return gaussian(source, scale)
    return named_laplace(source, scale, stream, phase + 1)


@kernel
def _least_squares(
    tables: Any, state: FloatArray, phase: int, n: int, rank: int, pulled: int, source: Any
) -> None:
    """Predictions of all arms from the pulled ones; the moments get the noise, where there is any."""
    rows = tables.features if phase == 0 else tables.coordinates
    for k in range(rank):
        tables.moment[k] = 0.0
        for j in range(rank):
            tables.matrix[k, j] = 0.0
    for place in range(pulled):
        arm = int(state[ACTIVE, tables.pulled[place]])
        for k in range(rank):
            tables.moment[k] += state[SUM, place] * rows[arm, k]
            for j in range(rank):
                tables.matrix[k, j] += tables.counts[place] * rows[arm, k] * rows[arm, j]
    if tables.law != NO_NOISE:
        scale = tables.noise * _largest_sum(state, rows, n, rank)
        for k in range(rank):
            drawn = _noise(tables, scale, source, k, phase)
            tables.moment[k] = drawn if tables.law == RELEASED else tables.moment[k] + drawn
            release(tables, state, k, 0, tables.moment[k], scale)
    solve_positive(tables.matrix, tables.moment, rank)
    for slot in range(n):
        value = 0.0
        for k in range(rank):
            value += rows[int(state[ACTIVE, slot]), k] * tables.moment[k]
        tables.estimates[slot] = value


@kernel
def _largest_sum(state: FloatArray, rows: FloatArray, n: int, rank: int) -> float:
    """Largest sum of absolute coordinates of an arm that is left: how far one reward moves the moments."""
    largest = 0.0
    for slot in range(n):
        total = 0.0
        for k in range(rank):
            total += abs(rows[int(state[ACTIVE, slot]), k])
        largest = max(largest, total)
    return largest


@kernel
def solve_positive(matrix: FloatArray, vector: FloatArray, size: int) -> None:
    """Replace a vector by the solution of a positive definite system, and the matrix by its factor."""
    for k in range(size):
        for j in range(k):
            matrix[k, k] -= matrix[k, j] * matrix[k, j]
        matrix[k, k] = math.sqrt(matrix[k, k])
        for i in range(k + 1, size):
            for j in range(k):
                matrix[i, k] -= matrix[i, j] * matrix[k, j]
            matrix[i, k] /= matrix[k, k]
    for k in range(size):
        for j in range(k):
            vector[k] -= matrix[k, j] * vector[j]
        vector[k] /= matrix[k, k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            vector[k] -= matrix[j, k] * vector[j]
        vector[k] /= matrix[k, k]
