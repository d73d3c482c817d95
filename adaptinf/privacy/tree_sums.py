"""Continual sums in trees: scales, and the noise in a running sum from that of its nodes.

Counts of bits are single machine instructions, for compiled code only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import extending, types

from adaptinf.compilation import kernel
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import named_laplace
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray


def _trailing_zeros(typingctx: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), build


def _bit_count(typingctx: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), build


def _top_bit(typingctx: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), 63), zeros)

    return types.int64(types.int64), build


_intrinsic: Any = extending.intrinsic

trailing_zeros: Callable[[Any], int] = _intrinsic(_trailing_zeros)
"""Trailing zero bits of a positive int64."""

bit_count: Callable[[Any], int] = _intrinsic(_bit_count)
"""Set bits of an int64."""

top_bit: Callable[[Any], int] = _intrinsic(_top_bit)
"""Position of the highest set bit of a positive int64."""


COUNTERS = ("binary", "hybrid")
"""Names of the counters with a release at every count; kernels identify them by position."""

CONTINUAL_SUMS = (*COUNTERS, "logarithmic")
"""Names of all counters; the logarithmic one releases at powers of two only."""


def counter_slots(horizon: int) -> int:
    """Levels in a tree over `horizon` items: floor(log2(horizon)) + 1."""
    return int(horizon).bit_length()


def counter_scales(
    counter: str, epsilon: float, horizon: int, sensitivity: float = 1.0
) -> tuple[float, float]:
    """Laplace scales for an epsilon-differentially private counter of items with the given sensitivity.

    Binary: an item is in at most L = floor(log2 T) + 1 nodes, each with noise of scale sensitivity * L /
    epsilon. Hybrid: half of epsilon for the trunk (an item is in one power-of-two segment), half for the
    binary mechanism inside a block; the block that follows 2^k contains 2^k - 1 items, so k levels are
    sufficient. Logarithmic: all of epsilon is spent on the trunk.

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
    """Noise in the running sum at `count`; must be called once for each count, in order."""
    # Row `trunk_row` of `state` contains the total noise of the logarithmic mechanism, and the rows below
    # contain one slot for each level, because a count has at most one open node in each; `column` is the
    # stream (an arm).
    inside = count - (1 << top_bit(count)) if hybrid else count
    fresh = named_laplace(source, fresh_scale(hybrid, trunk, node, count), column, count)
    earlier = inside & (inside - 1)
    # Conditional values are used instead of branches, because which nodes are open is too irregular for
    # branch prediction.
    joined = fresh + state[trunk_row + 1 + trailing_zeros(earlier if earlier > 0 else count), column]
    fresh = joined if earlier > 0 else fresh
    total = float(state[trunk_row, column]) + fresh
    row = trunk_row + 1 + trailing_zeros(inside) if inside > 0 else trunk_row
    state[row, column] = fresh if inside > 0 else total
    return total


@kernel
def fresh_scale(hybrid: bool, trunk: float, node: float, count: int) -> float:
    """Scale of the only Laplace variable that is new in the running sum at `count`."""
    if hybrid:
        level = top_bit(count)
        return trunk if count == 1 << level else node * level
    return node


@kernel
def noise_row(hybrid: bool, slots: int, count: int) -> int:
    """Row, for the nodes at `count`, in a table with one row per possible noise distribution."""
    if hybrid:
        level = top_bit(count)
        return level * slots + bit_count(count - (1 << level))
    return bit_count(count)


def noise_nodes(counter: str, count: int) -> tuple[int, int, int]:
    """Numbers of trunk and node noise terms in the total after a given count, and the level of the nodes."""
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


Noise = TypeVar("Noise")
"""Floats, integers, or arrays of them."""


def next_total(
    mechanism: str,
    levels: int,
    count: int,
    trunk: Noise,
    nodes: list[Noise],
    draw: Callable[[int], Noise],
) -> tuple[Noise, Noise]:
    """Noise in the sum at a count, and in the trunk, called once for each count with a release."""
    # `nodes` contains the noise of the open blocks by level, and is updated in place. `draw` receives the
    # Laplace scale of a node as a multiple of sensitivity over epsilon.
    level = count.bit_length() - 1
    inside = count if mechanism == "binary" else count - (1 << level)
    if inside == 0:
        # At a power of two, the trunk gains a segment, and the previous block is complete.
        trunk = trunk + draw(1 if mechanism == "logarithmic" else 2)  # type: ignore[operator]
        return trunk, trunk
    fresh = draw(levels if mechanism == "binary" else 2 * level)
    earlier = inside & (inside - 1)
    if earlier:
        fresh = fresh + nodes[_zeros_behind(earlier)]  # type: ignore[operator]
    slot = _zeros_behind(inside)
    nodes += [fresh] * (slot + 1 - len(nodes))
    nodes[slot] = fresh
    return trunk + fresh, trunk  # type: ignore[operator]


def _zeros_behind(value: int) -> int:
    return (value & -value).bit_length() - 1
