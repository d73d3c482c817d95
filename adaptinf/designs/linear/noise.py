"""The noise of LinPriv's counters: which law, how large, and what its norm stays below."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from adaptinf.privacy.counters.norms import gaussian_norm_bound, laplace_norm_bound
from adaptinf.privacy.counters.sums import counter_scales, counter_slots, noise_nodes
from adaptinf.privacy.mechanisms.gaussian import analytic_scale
from adaptinf.typing import FloatArray


class NoiseLaw(NamedTuple):
    """Noise of one coordinate of a counter of X'Y."""

    gaussian: bool
    counter: str
    trunk: float
    node: float

    def largest_scale(self, horizon: int) -> float:
        """Largest scale of a node, for as many items as there are rounds."""
        levels = counter_slots(horizon) - 1 if self.counter == "hybrid" else 1
        return max(self.trunk, levels * self.node)

    def largest_variance(self, horizon: int) -> float:
        """Variance at the worst count, with the horizon rounded up to 2^k - 1."""
        trunk_terms, node_terms, level = noise_nodes(self.counter, (1 << counter_slots(horizon)) - 1)
        nodes = node_terms * (level * self.node) ** 2
        return nodes if self.gaussian else 2.0 * (trunk_terms * self.trunk**2 + nodes)


def noise_law(
    epsilon: float, delta: float, noise: str, counter: str, dimension: int, horizon: int
) -> NoiseLaw:
    """Noise that makes the running sums of x y private, ||x||_2 at most 1 and y in [0, 1].

    One reward moves x y by a vector of length at most sqrt(dimension) in L1 and 1 in L2, in each of the
    nodes that hold it: at most one a level.
    """
    laplace = NoiseLaw(False, counter, *counter_scales(counter, epsilon, horizon, math.sqrt(dimension)))
    if noise == "laplace" or delta == 0.0:
        return laplace
    scale = analytic_scale(epsilon, delta, math.sqrt(counter_slots(horizon)))
    normal = NoiseLaw(True, "binary", 0.0, scale)
    if noise == "gaussian" or normal.largest_variance(horizon) < laplace.largest_variance(horizon):
        return normal
    return laplace


def noise_bounds(law: NoiseLaw, dimension: int, horizon: int, log_failure: float) -> FloatArray:
    """What the norm of a counter's noise vector stays below at every count up to the horizon.

    Returns shape (levels, levels + 1).

    The failure probability is shared equally by the levels, and within a level by its 2^k counts.
    """
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
    """Bounds of Laplace noise for items of sensitivity 1 at epsilon = 1."""
    trunk, node = counter_scales(counter, 1.0, (1 << slots) - 1)
    bounds = np.zeros((slots, slots + 1))
    for level, ones in _laws(slots):
        # any count of that level with that many ones
        count = (1 << level) + (1 << (ones - 1)) - 1
        trunk_terms, node_terms, factor = noise_nodes(counter, count)
        bounds[level, ones] = laplace_norm_bound(
            trunk, trunk_terms, node * factor, node_terms, dimension, _log_share(log_failure, slots, level)
        )
    return bounds


def _laws(slots: int) -> list[tuple[int, int]]:
    """Pairs of a top bit and a number of ones that counts below 2^slots can have."""
    return [(level, ones) for level in range(slots) for ones in range(1, level + 2)]


def _log_share(log_failure: float, slots: int, level: int) -> float:
    return log_failure - math.log(slots) - level * math.log(2.0)
