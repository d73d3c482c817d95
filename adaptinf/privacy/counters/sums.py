"""Continual sums: the binary and the hybrid mechanism as state of a kernel, O(1) amortised.

An item's value enters a fixed set of nodes, each with Laplace noise of its own; the noise of the running
sum at count n is the sum over the nodes that tile 1..n. Only that noise is kept: at count n the nodes are
those of ``n & (n - 1)`` and one fresh node, whose level is the number of trailing zero bits of n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.compilation import kernel
from adaptinf.errors import ParameterError
from adaptinf.privacy.counters.bits import bit_count, top_bit, trailing_zeros
from adaptinf.privacy.noise import named_laplace
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray

COUNTERS = ("binary", "hybrid")
"""Names of the counters that release at every count; a kernel knows them by position."""

CONTINUAL_SUMS = (*COUNTERS, "logarithmic")
"""Names of all counters; the logarithmic one releases at powers of two only."""


def counter_slots(horizon: int) -> int:
    """Levels of a tree over `horizon` items: floor(log2(horizon)) + 1."""
    return int(horizon).bit_length()


def counter_scales(
    counter: str, epsilon: float, horizon: int, sensitivity: float = 1.0
) -> tuple[float, float]:
    """Laplace scales of a counter that is epsilon-differentially private for items of the given sensitivity.

    Binary: an item lies in at most L = floor(log2 T) + 1 nodes, each gets sensitivity * L / epsilon.
    Hybrid: half of epsilon for the trunk (an item lies in one power-of-two segment), half for the binary
    mechanism inside a block; the block that follows 2^k holds 2^k - 1 items, so k levels suffice.
    Logarithmic: the trunk alone, with all of epsilon.

    Chan, Shi and Song (2011), Private and continual release of statistics.
    """
    if counter == "binary":
        return 0.0, sensitivity * counter_slots(horizon) / epsilon
    if counter == "hybrid":
        return 2.0 * sensitivity / epsilon, 2.0 * sensitivity / epsilon
    if counter == "logarithmic":
        return sensitivity / epsilon, 0.0
    raise ParameterError("counter", [unlisted("it", CONTINUAL_SUMS, counter)])


@kernel
def next_noise(
    hybrid: bool,
    trunk: float,
    node: float,
    state: FloatArray,
    trunk_row: int,
    column: int,
    count: int,
    source: Any,
) -> float:
    """Noise of the running sum at `count`, called once for each count in turn.

    `state` holds in `trunk_row` the noise total of the logarithmic mechanism and in the rows below it one
    slot a level; `column` is the stream (an arm).
    """
    inside = count - (1 << top_bit(count)) if hybrid else count
    fresh = named_laplace(source, fresh_scale(hybrid, trunk, node, count), column, count)
    earlier = inside & (inside - 1)
    # selections, not branches: which nodes are at hand is too irregular to be predicted
    joined = fresh + state[trunk_row + 1 + trailing_zeros(earlier if earlier > 0 else count), column]
    fresh = joined if earlier > 0 else fresh
    total = float(state[trunk_row, column]) + fresh
    row = trunk_row + 1 + trailing_zeros(inside) if inside > 0 else trunk_row
    state[row, column] = fresh if inside > 0 else total
    return total


@kernel
def fresh_scale(hybrid: bool, trunk: float, node: float, count: int) -> float:
    """Scale of the one Laplace variable that is new in the running sum at `count`."""
    if hybrid:
        level = top_bit(count)
        return trunk if count == 1 << level else node * level
    return node


@kernel
def noise_row(hybrid: bool, slots: int, count: int) -> int:
    """Row of a table with one row for each law that the noise can have: the nodes at `count`."""
    if hybrid:
        level = top_bit(count)
        return level * slots + bit_count(count - (1 << level))
    return bit_count(count)


def noise_nodes(counter: str, count: int) -> tuple[int, int, int]:
    """Which noises make up the total at a count."""
    if counter == "binary":
        return 0, int(count).bit_count(), 1
    level = int(count).bit_length() - 1
    if counter == "logarithmic":
        return level + 1, 0, level
    return level + 1, (count - (1 << level)).bit_count(), level


def noise_variance(counter: str, epsilon: float, horizon: int, counts: IntArray) -> FloatArray:
    """Exact variance of a counter's noise at each count."""
    trunk, node = counter_scales(counter, epsilon, horizon)
    flat = np.asarray(counts, dtype=np.int64).ravel()
    nodes = np.array([noise_nodes(counter, int(count)) for count in flat]).reshape(-1, 3)
    scale = node * nodes[:, 2]
    variance = 2.0 * (nodes[:, 0] * trunk**2 + nodes[:, 1] * scale**2)
    return np.asarray(variance, dtype=np.float64).reshape(np.shape(counts))
