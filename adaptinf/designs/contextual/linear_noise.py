"""The noise of LinPriv's counters: distribution, size, bounds on its norm, and integer-valued sums.

A coordinate of a context and a reward are whole numbers of units of 2^-20, and their product is a whole
number of units of 2^-40. Products are not rounded, because that would add a unit per coordinate to the
sensitivity. The sums of products and the noise exceed the 53 bits of a float and are stored as Python
integers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adaptinf.privacy.counter_noise import gaussian_norm_bound, laplace_norm_bound
from adaptinf.privacy.real_mechanisms import analytic_scale
from adaptinf.privacy.release import GRID_UNITS, scale_above, to_grid
from adaptinf.privacy.tree_sums import counter_scales, counter_slots, next_total, noise_nodes
from adaptinf.typing import FloatArray, IntArray


class NoiseLaw(NamedTuple):
    """Noise in one coordinate of a counter for X'Y."""

    gaussian: bool
    counter: str
    trunk: float
    node: float

    def largest_scale(self, horizon: int) -> float:
        """Largest scale of a node, if there are as many items as rounds."""
        levels = counter_slots(horizon) - 1 if self.counter == "hybrid" else 1
        return max(self.trunk, levels * self.node)

    def largest_variance(self, horizon: int) -> float:
        """Variance at the least favourable count, with the horizon rounded up to 2^k - 1."""
        trunk_terms, node_terms, level = noise_nodes(self.counter, (1 << counter_slots(horizon)) - 1)
        nodes = node_terms * (level * self.node) ** 2
        return nodes if self.gaussian else 2.0 * (trunk_terms * self.trunk**2 + nodes)


def noise_law(
    epsilon: float, delta: float, noise: str, counter: str, dimension: int, horizon: int
) -> NoiseLaw:
    """Noise that makes the running sums of x y private, for x of Euclidean norm at most 1 and y in [0, 1]."""
    # One reward changes x y by a vector of length at most sqrt(dimension) in L1 and 1 in L2, in each node
    # that contains it, and there is at most one such node in each level.
    laplace = NoiseLaw(False, counter, *counter_scales(counter, epsilon, horizon, math.sqrt(dimension)))
    if noise == "laplace" or delta == 0.0:
        return laplace
    scale = analytic_scale(epsilon, delta, math.sqrt(counter_slots(horizon)))
    normal = NoiseLaw(True, "binary", 0.0, scale)
    if noise == "gaussian" or normal.largest_variance(horizon) < laplace.largest_variance(horizon):
        return normal
    return laplace


def noise_bounds(law: NoiseLaw, dimension: int, horizon: int, log_failure: float) -> FloatArray:
    """Bound on the norm of a counter's noise vector, valid at every count up to the horizon.

    The returned array has shape (levels, levels + 1).
    """
    # The failure probability is divided equally between the levels, and within a level between its 2^k
    # counts, so that the bound holds for all counts together.
    slots = counter_slots(horizon)
    if law.gaussian:
        bounds = np.zeros((slots, slots + 1))
        for level, ones in _laws(slots):
            log_share = _log_share(log_failure, slots, level)
            bounds[level, ones] = gaussian_norm_bound(law.node, ones, dimension, log_share)
        return bounds
    unit = counter_scales(law.counter, 1.0, horizon)[1]
    return _unit_bounds(law.counter, slots, dimension, log_failure) * (law.node / unit)


@functools.lru_cache(maxsize=64)
def _unit_bounds(counter: str, slots: int, dimension: int, log_failure: float) -> FloatArray:
    """Bounds on Laplace noise for items of sensitivity 1 at epsilon = 1."""
    trunk, node = counter_scales(counter, 1.0, (1 << slots) - 1)
    bounds = np.zeros((slots, slots + 1))
    for level, ones in _laws(slots):
        # The bound depends only on the level and the number of one-bits, so any count with these serves.
        count = (1 << level) + (1 << (ones - 1)) - 1
        trunk_terms, node_terms, factor = noise_nodes(counter, count)
        bounds[level, ones] = laplace_norm_bound(
            trunk, trunk_terms, node * factor, node_terms, dimension, _log_share(log_failure, slots, level)
        )
    return bounds


def _laws(slots: int) -> list[tuple[int, int]]:
    """Combinations of a leading bit and a number of ones that are possible for counts below 2^slots."""
    return [(level, ones) for level in range(slots) for ones in range(1, level + 2)]


def _log_share(log_failure: float, slots: int, level: int) -> float:
    return log_failure - math.log(slots) - level * math.log(2.0)


PRODUCT_UNITS = GRID_UNITS**2
"""Number of units in a product of 1 and 1."""

LARGEST_SCALE = 2.0**15
"""Largest allowed scale of a node, 2^55 units, at which a draw exceeds 64 bits with probability exp(-256)."""


def toward_zero(vectors: FloatArray) -> IntArray:
    """Vectors of norm at most 1 in units of 2^-20, truncated towards 0; shape (..., dimension)."""
    # Rounding to the nearest unit could make a vector longer than 1, on which the guarantee depends. If
    # rounding error in the input makes it longer, each coordinate loses another unit, until the squares add
    # up to at most 2^40.
    units: IntArray = np.trunc(vectors * GRID_UNITS).astype(np.int64)
    while (longer := (units * units).sum(axis=-1, keepdims=True) > PRODUCT_UNITS).any():
        units = units - np.sign(units) * longer
    return units


def on_grid(vectors: FloatArray) -> FloatArray:
    """Vectors as used by a design with exact noise: multiples of 2^-20, represented exactly as floats."""
    return toward_zero(vectors) / GRID_UNITS


def product_sensitivity(dimension: int) -> int:
    """Largest L1 change in x y due to one reward, in units of 2^-40: at most sqrt(d) 2^40, rounded."""
    # By Cauchy's inequality, the absolute coordinates of x add up to at most sqrt(d) 2^20 units, rounded down
    # because they are whole numbers; the reward changes by at most 2^20 units.
    return math.isqrt(dimension * PRODUCT_UNITS) * GRID_UNITS


class ProductSums:
    """Running sums of x y for every arm with their noise; only noisy sums are revealed.

    The noise is calibrated to the sensitivity of the sums; `unit` assumes a sensitivity of 1, as in the
    published calibration.

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
        """A context in the form used by the design, with shape (arms * dimension,)."""
        return on_grid(context.reshape(-1, self._dimension)).reshape(-1)

    def learn(
        self, context: FloatArray, arm: int, reward: float, draw: Callable[[str, float], float]
    ) -> tuple[FloatArray, FloatArray]:
        """Add a product; return the arm's noisy sums and the scales of their new noise, (dimension,).

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
        """The complete state as lists; `remember` restores it."""
        return {
            "counts": list(self._counts),
            "sums": [each.tolist() for each in self._sums],
            "trunks": [each.tolist() for each in self._trunks],
            "nodes": [[each.tolist() for each in arm] for arm in self._nodes],
        }

    def remember(self, memory: dict[str, Any]) -> None:
        """Continue from a saved state."""

        def whole(numbers: list[int]) -> Any:
            return np.array(numbers, dtype=object)

        self._counts = list(memory["counts"])
        self._sums = [whole(each) for each in memory["sums"]]
        self._trunks = [whole(each) for each in memory["trunks"]]
        self._nodes = [[whole(each) for each in arm] for arm in memory["nodes"]]
