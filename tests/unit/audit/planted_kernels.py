"""Faults in compiled kernels: of simulations, or of simulations and live sessions alike."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from planting import changed, recompiled, replaced

from adaptinf.compilation import kernel
from adaptinf.designs.arms import ucb_kernel
from adaptinf.designs.contextual import ridge_kernel as linear_kernel
from adaptinf.designs.local import bins_kernel
from adaptinf.designs.local import local_linear_kernel as gradients
from adaptinf.designs.stopping import stopping_kernel as stopping
from adaptinf.privacy.noise import laplace, named_laplace, uniform
from adaptinf.privacy.tree_sums import fresh_scale, next_noise, top_bit, trailing_zeros
from adaptinf.simulation.run import ROUND, SCALARS

_FARTHEST = 2.0


@kernel
def _bounded_noise(source: Any, count: int, scale: float) -> float:
    """The sum of so many Laplace draws, each made again until it lies within 2 scales."""
    total = 0.0
    for _ in range(count):
        drawn = laplace(source, scale)
        while abs(drawn) > _FARTHEST * scale:
            drawn = laplace(source, scale)
        total += drawn
    return float(total)


@contextmanager
def bounded_reports() -> Iterator[None]:
    """Noise of reports that stays within 2 scales."""
    with recompiled(bins_kernel.__name__, report_noise=_bounded_noise):
        yield


@kernel
def _antithetic_noise(
    hybrid: bool,
    trunk: float,
    node: float,
    state: Any,
    trunk_row: int,
    column: int,
    count: int,
    source: Any,
) -> float:
    """As `next_noise`; in every second coordinate of two minus that of the first."""
    if column % 2 == 0:
        return float(next_noise(hybrid, trunk, node, state, trunk_row, column, count, source))
    inside = count - (1 << top_bit(count)) if hybrid else count
    total = state[trunk_row, column - 1]
    if inside > 0:
        total += state[trunk_row + 1 + trailing_zeros(inside), column - 1]
    return -float(total)


@contextmanager
def antithetic_coordinates() -> Iterator[None]:
    """Two coordinates whose noise adds up to 0, in simulations of a design of two coordinates."""
    with recompiled(linear_kernel.__name__, next_noise=_antithetic_noise):
        yield


@kernel
def _sparse_noise(
    hybrid: bool,
    trunk: float,
    node: float,
    state: Any,
    trunk_row: int,
    column: int,
    count: int,
    source: Any,
) -> float:
    """As `next_noise`, but a node that holds nothing has no noise; sums are kept in the lower half."""
    inside = count - (1 << top_bit(count)) if hybrid else count
    fresh = named_laplace(source, fresh_scale(hybrid, trunk, node, count), column, count)
    kept = state.shape[0] // 2
    before = inside & (inside - 1)
    earlier = before if before > 0 else count
    row = trunk_row if before == 0 else trunk_row + 1 + trailing_zeros(earlier)
    begun = state[kept + row, column]
    if before == 0 and not hybrid:
        begun = 0.0
    if state[ucb_kernel._SUM, column] - begun == 0.0:
        fresh = 0.0
    total = fresh
    if before > 0:
        total += state[row, column]
    place = trunk_row + 1 + trailing_zeros(inside) if inside > 0 else trunk_row
    shown = state[trunk_row, column] + total
    state[place, column] = total if inside > 0 else shown
    state[kept + place, column] = state[ucb_kernel._SUM, column]
    return float(shown)


def _wider(program: Any, rows: int) -> Any:
    """A program whose kernels have further rows of memory."""
    more, columns = program.state_shape
    return dataclasses.replace(program, state_shape=(more + rows, columns))


@contextmanager
def empty_nodes_bare() -> Iterator[None]:
    """Nodes without any reward have no noise."""
    with recompiled(ucb_kernel.__name__, next_noise=_sparse_noise):
        made = ucb_kernel.ucb_program

        def doubled(tables: Any) -> Any:
            program = made(tables)
            return _wider(program, program.state_shape[0])

        with replaced(made, doubled):
            yield


@kernel
def _vary(state: Any, arm: int) -> None:
    """Let an arm's width be that of its raw rewards so far, of which the last two rows keep the squares."""
    last = state.shape[0] - 1
    reward = state[ucb_kernel._SUM, arm] - state[last, arm]
    state[last, arm] = state[ucb_kernel._SUM, arm]
    state[last - 1, arm] += reward * reward
    inverse = 1.0 / state[ucb_kernel._COUNT, arm]
    mean = state[ucb_kernel._SUM, arm] * inverse
    spread = math.sqrt(max(state[last - 1, arm] * inverse - mean * mean, 0.0))
    state[ucb_kernel._ROOT, arm] = math.sqrt(inverse) * max(0.25, 2.0 * spread)


@contextmanager
def raw_widths() -> Iterator[None]:
    """The width of an arm's index follows the variance of its raw rewards."""
    word = "send" if hasattr(ucb_kernel, "send") else "release"
    right = getattr(ucb_kernel, word)
    if word == "send":

        @kernel
        def told(
            tables: Any, state: Any, box: Any, name: int, group: int, value: float, scale: float
        ) -> None:
            right(tables, state, box, name, group, value, scale)
            _vary(state, group)
    else:

        @kernel
        def told(tables: Any, state: Any, name: int, group: int, value: float, scale: float) -> None:
            right(tables, state, name, group, value, scale)
            _vary(state, group)

    with recompiled(ucb_kernel.__name__, **{word: told}):
        made = ucb_kernel.ucb_program
        with replaced(made, lambda tables: _wider(made(tables), 2)):
            yield


@kernel
def _skipping_take(rule: Any, state: Any, value: float, source: Any) -> None:
    """As `_take`, but nothing is asked after a sample of 0."""
    total = state[stopping.TOTAL] + min(max(value, -rule.bound), rule.bound)
    due = stopping._advance(state[: stopping.PUBLIC], 1.0)
    stopping._learn(rule, state, total, due and value != 0.0, source)
    stopping._publish(rule, state[: stopping.PUBLIC], due)


@contextmanager
def zeros_not_asked() -> Iterator[None]:
    """A stopping rule does not look after a sample of 0."""
    with recompiled(stopping.__name__, _take=_skipping_take):
        yield


@kernel
def _carried_step(
    tables: Any, state: Any, context: Any, arm: int, residual: float, origin: int, source: Any
) -> None:
    """As `_step`; every second participant of the trial has the noise of the one before, moved by a place."""
    row = kept = 1 + arm
    parameters = tables.n_parameters
    place = gradients._ITERATE + 2 * parameters  # columns of the noise of the participant before
    again = origin == tables.scales.shape[0] - 1 and int(state[SCALARS, ROUND]) % 2 == 1
    if state[SCALARS, ROUND] < tables.warm_up:
        kept = 1
    if not again:
        size = gradients.report_radius(source, parameters + 1, tables.scales[origin])
        for k in range(parameters):
            state[kept, place + k] = size * (2.0 * uniform(source) - 1.0)
    information = 1.0 / tables.squares[origin]
    state[row, gradients._INFORMATION] += information
    rate = tables.reach * information / math.sqrt(state[row, gradients._INFORMATION])
    square = 0.0
    for k in range(parameters):
        noise = state[kept, place + ((k + 1) % parameters if again else k)]
        report = residual * gradients._feature(tables, context, k) + noise
        moved = state[row, gradients._ITERATE + k] - rate * report
        state[row, gradients._ITERATE + k] = moved
        square += moved * moved
    shrink = 1.0
    if square > tables.radius * tables.radius:
        shrink = tables.radius / math.sqrt(square)
        state[SCALARS, gradients._PROJECTED] += 1.0
    weight = information * state[row, gradients._INFORMATION]
    state[row, gradients._WEIGHT] += weight
    share = weight / state[row, gradients._WEIGHT]
    for k in range(parameters):
        value = shrink * state[row, gradients._ITERATE + k]
        state[row, gradients._ITERATE + k] = value
        average = state[row, gradients._ITERATE + parameters + k]
        state[row, gradients._ITERATE + parameters + k] = average + share * (value - average)


@contextmanager
def carried_noise() -> Iterator[None]:
    """Two successive participants have one noise vector."""
    with recompiled(gradients.__name__, _step=_carried_step) as fresh:
        made = fresh.ldp_linear_program

        def wider(tables: Any) -> Any:
            program = made(tables)
            rows, columns = program.state_shape
            return dataclasses.replace(program, state_shape=(rows, columns + tables.n_parameters))

        with replaced(made, wider), changed(fresh, ldp_linear_program=wider):
            yield
