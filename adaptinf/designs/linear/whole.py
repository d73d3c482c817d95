"""LinPriv in whole numbers: contexts and rewards on grids, sums of their products, and exact noise.

A coordinate of a context and a reward are whole numbers of units of 2^-20, and their product one of units of
2^-40. Products are not rounded: that would add a unit a coordinate to what a reward can change. Their sums
and the noise leave the 53 bits of a float and are kept as Python's whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adaptinf.privacy.counters.sums import counter_slots
from adaptinf.privacy.counters.trees import next_total
from adaptinf.privacy.release import GRID_UNITS, scale_above, to_grid
from adaptinf.typing import FloatArray, IntArray

PRODUCT_UNITS = GRID_UNITS**2
"""Units of a product of 1 and 1."""

LARGEST_SCALE = 2.0**15
"""Of a node, in place of units: 2^55 units, with which a draw leaves 64 bits with probability exp(-256)."""


def toward_zero(vectors: FloatArray) -> IntArray:
    """Units of 2^-20 of vectors of length at most 1, cut off towards 0; shape (..., dimension).

    To the nearest unit a vector could become longer than 1. What a caller's rounding has left above that
    length loses a further unit a coordinate, so that the squares add up to 2^40 at most.
    """
    units: IntArray = np.trunc(vectors * GRID_UNITS).astype(np.int64)
    while (longer := (units * units).sum(axis=-1, keepdims=True) > PRODUCT_UNITS).any():
        units = units - np.sign(units) * longer
    return units


def on_grid(vectors: FloatArray) -> FloatArray:
    """Vectors as a design with exact noise uses them: multiples of 2^-20, as floats without error."""
    return toward_zero(vectors) / GRID_UNITS


def product_sensitivity(dimension: int) -> int:
    """What one reward can change x y by, in L1 and units of 2^-40: at most sqrt(d) 2^40, in whole units.

    By Cauchy's inequality the coordinates of x have at most sqrt(d) 2^20 units together, a whole number; the
    reward changes by at most 2^20 units.
    """
    return math.isqrt(dimension * PRODUCT_UNITS) * GRID_UNITS


class ProductSums:
    """Running sums of x y of every arm with their noise, from which only noisy sums are given away.

    Noise is for their sensitivity; `unit` takes it for 1, as the published calibration does.

    Shapes: an arm's sums and noise (dimension,), in whole units of 2^-40.
    """

    def __init__(
        self,
        counter: str,
        epsilon: float,
        n_arms: int,
        dimension: int,
        horizon: int,
        *,
        unit: bool = False,
    ) -> None:
        self._counter, self._epsilon = counter, epsilon
        self._sensitivity = PRODUCT_UNITS if unit else product_sensitivity(dimension)
        self._levels, self._dimension = counter_slots(horizon), dimension
        zeros = np.array([0] * dimension, dtype=object)
        self._counts = [0] * n_arms
        self._sums, self._trunks = [zeros] * n_arms, [zeros] * n_arms
        self._nodes: list[list[Any]] = [[] for _ in range(n_arms)]

    def context(self, context: FloatArray) -> FloatArray:
        """A context as the design uses it everywhere, of shape (arms * dimension,)."""
        return on_grid(context.reshape(-1, self._dimension)).reshape(-1)

    def learn(
        self, context: FloatArray, arm: int, reward: float, draw: Callable[[str, float], float]
    ) -> tuple[FloatArray, FloatArray]:
        """Add a product, and give the noisy sums of the arm and the scales of their new noise, (dimension,).

        All noise is drawn first: a draw that fails changes nothing.
        """
        count = self._counts[arm] + 1
        scales: list[float] = []

        def fresh(times: int) -> Any:
            scale = scale_above(times * self._sensitivity, self._epsilon)
            scales.append(scale)
            name = f"arm {arm}, count {count}, coordinate"
            coordinates = range(1, self._dimension + 1)
            return np.array([draw(f"{name} {k}", scale) for k in coordinates], dtype=object)

        nodes = self._nodes[arm].copy()
        levels, trunk = self._levels, self._trunks[arm]
        noise, trunk = next_total(self._counter, levels, count, trunk, nodes, fresh)
        vector = toward_zero(context.reshape(-1, self._dimension)[arm]).tolist()
        units = int(to_grid(reward))
        total = self._sums[arm] + np.array([x * units for x in vector], dtype=object)
        self._counts[arm], self._sums[arm] = count, total
        self._trunks[arm], self._nodes[arm] = trunk, nodes
        shown = [each / PRODUCT_UNITS for each in (total + noise).tolist()]
        return np.array(shown), np.full(self._dimension, scales[0] / PRODUCT_UNITS)

    def memory(self) -> dict[str, Any]:
        """Everything, in lists; `remember` takes it."""
        return {
            "counts": list(self._counts),
            "sums": [each.tolist() for each in self._sums],
            "trunks": [each.tolist() for each in self._trunks],
            "nodes": [[each.tolist() for each in arm] for arm in self._nodes],
        }

    def remember(self, memory: dict[str, Any]) -> None:
        """Go on where the memory was taken."""

        def whole(numbers: list[int]) -> Any:
            return np.array(numbers, dtype=object)

        self._counts = list(memory["counts"])
        self._sums = [whole(each) for each in memory["sums"]]
        self._trunks = [whole(each) for each in memory["trunks"]]
        self._nodes = [[whole(each) for each in arm] for arm in memory["nodes"]]
