"""Noise of a running sum from the noises of its nodes, in any numbers that can be added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Noise = TypeVar("Noise")
"""Floats, whole numbers, or arrays of them."""


def next_total(
    mechanism: str,
    levels: int,
    count: int,
    trunk: Noise,
    nodes: list[Noise],
    draw: Callable[[int], Noise],
) -> tuple[Noise, Noise]:
    """Noise of the sum at a count, and of the trunk, called once for each count that has a release.

    `nodes` holds the noise of the blocks that are open, by level, and is brought up to date. `draw` is told
    how many times the sensitivity over epsilon the Laplace scale of a node is.
    """
    level = count.bit_length() - 1
    inside = count if mechanism == "binary" else count - (1 << level)
    if inside == 0:
        # a power of two: the trunk gains a segment, and the block before it is over
        trunk = trunk + draw(1 if mechanism == "logarithmic" else 2)  # type: ignore[operator]
        return trunk, trunk
    fresh = draw(levels if mechanism == "binary" else 2 * level)
    earlier = inside & (inside - 1)
    if earlier:
        fresh = fresh + nodes[_trailing_zeros(earlier)]  # type: ignore[operator]
    slot = _trailing_zeros(inside)
    nodes += [fresh] * (slot + 1 - len(nodes))
    nodes[slot] = fresh
    return trunk + fresh, trunk  # type: ignore[operator]


def _trailing_zeros(value: int) -> int:
    return (value & -value).bit_length() - 1
