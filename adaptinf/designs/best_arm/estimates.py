"""What a phase of a best-arm design sends out of its rewards, and the estimates that it makes of that."""

from __future__ import annotations

import math
from typing import Any

from adaptinf.compilation import kernel
from adaptinf.privacy.noise import gaussian, named_laplace
from adaptinf.simulation.replays import Outbox, send
from adaptinf.typing import FloatArray

ACTIVE, OUT, SUM = 1, 2, 3
"""Rows of the state: the arms that are left, by slot; the outbox, of means by arm or of moments; the sums of
a phase's rewards, by place in its plan."""
EVERY_ARM, MAX_DET, G_OPTIMAL = range(3)
"""Which arms a phase pulls: all, a MAX-DET collection, or those of a G-optimal design."""
NO_NOISE, LAPLACE_NOISE, GAUSSIAN_NOISE = range(3)
"""Law of the noise."""


@kernel
def outbox_of(tables: Any) -> Outbox:
    """One mean an arm, or as many moments as there are coordinates."""
    return Outbox(OUT, tables.features.shape[1] if tables.method == G_OPTIMAL else 1)


@kernel
def send_phase(
    tables: Any, state: FloatArray, phase: int, n: int, rank: int, pulled: int, source: Any
) -> None:
    """Send out what the phase's rewards came to, with noise where it is private."""
    if tables.method == G_OPTIMAL:
        rows = tables.features if phase == 0 else tables.coordinates
        scale = tables.noise * _largest_sum(state, rows, n, rank)
        for k in range(rank):
            moment = 0.0
            for place in range(pulled):
                moment += state[SUM, place] * rows[int(state[ACTIVE, tables.pulled[place]]), k]
            _send(tables, state, k, 0, moment, 1.0, scale, k, phase, source)
    else:
        for place in range(pulled):
            arm, count = int(state[ACTIVE, tables.pulled[place]]), float(tables.counts[place])
            _send(tables, state, 0, arm, state[SUM, place], count, tables.noise, arm, phase, source)


@kernel
def _send(
    tables: Any,
    state: FloatArray,
    name: int,
    group: int,
    total: float,
    count: float,
    scale: float,
    stream: int,
    phase: int,
    source: Any,
) -> None:
    """Send out a sum with its noise, over a count."""
    outbox = outbox_of(tables)
    if tables.law == NO_NOISE:
        state[OUT, group * outbox.names + name] = total / count
    else:
        shown = (total + _noise(tables, scale, source, stream, phase)) / count
        send(tables, state, outbox, name, group, shown, scale / count)


@kernel
def _noise(tables: Any, scale: float, source: Any, stream: int, phase: int) -> float:
    if tables.law == GAUSSIAN_NOISE:
        return gaussian(source, scale)
    return named_laplace(source, scale, stream, phase + 1)


@kernel
def estimate(tables: Any, public: FloatArray, phase: int, n: int, rank: int, pulled: int) -> None:
    """Write the estimates of the n arms that are left, by slot, from what was sent out."""
    if tables.method == G_OPTIMAL:
        _least_squares(tables, public, phase, n, rank, pulled)
        return
    for place in range(pulled):
        slot = tables.pulled[place]
        tables.estimates[slot] = public[OUT, int(public[ACTIVE, slot])]
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
def _least_squares(tables: Any, public: FloatArray, phase: int, n: int, rank: int, pulled: int) -> None:
    """Predictions of all arms from the moments of the pulled ones."""
    rows = tables.features if phase == 0 else tables.coordinates
    for k in range(rank):
        tables.moment[k] = public[OUT, k]
        for j in range(rank):
            tables.matrix[k, j] = 0.0
    for place in range(pulled):
        arm = int(public[ACTIVE, tables.pulled[place]])
        for k in range(rank):
            for j in range(rank):
                tables.matrix[k, j] += tables.counts[place] * rows[arm, k] * rows[arm, j]
    solve_positive(tables.matrix, tables.moment, rank)
    for slot in range(n):
        value = 0.0
        for k in range(rank):
            value += rows[int(public[ACTIVE, slot]), k] * tables.moment[k]
        tables.estimates[slot] = value


@kernel
def _largest_sum(public: FloatArray, rows: FloatArray, n: int, rank: int) -> float:
    """Largest sum of absolute coordinates of an arm that is left: how far one reward moves the moments."""
    largest = 0.0
    for slot in range(n):
        total = 0.0
        for k in range(rank):
            total += abs(rows[int(public[ACTIVE, slot]), k])
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
