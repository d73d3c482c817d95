"""Whether the rewards of neighbouring rows with the same arm are similar.

Events that were recorded twice and returning units can make them similar.

Let y be the reward of a row minus the mean of its arm's rewards shortly before, and z that of the next row
minus the mean of its arm's rewards shortly after. Then y z has mean zero if rewards depend on the past only
through the choice of arms, regardless of how these were chosen; a level that changes for all arms contributes
equally to pairs from one arm and from two arms. The mean of y z over pairs with one arm minus that over pairs
with two, divided by its standard error, is approximately standard normal. Duplicate consecutive rows, or
units that keep their arm, make the statistic large.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from adaptinf.log.validation import LogArrays
from adaptinf.typing import FloatArray, IntArray

ALARM = 2e-4
"""One-sided level. The error also includes large products, so heavy tails cause no more false alarms."""
_NEAR = 20
"""Number of rewards in an arm's local mean: few enough to follow a drift, at the cost of 5% more noise."""
_LEAST_PAIRS = 50
_WHOLE, _BLOCKS, _BLOCK = 2**18, 16, 2**14
"""Number of rows up to which all rows are examined; in longer logs, evenly spaced blocks with this many rows
in total are examined, because duplication seldom affects only one part of a file.
"""


def alike_neighbours(arrays: LogArrays) -> dict[str, float]:
    """The statistic and its p-value; empty if the statistic is not large, or either kind of pair is rare."""
    size = len(arrays.action)
    starts, rows = np.zeros(1, dtype=np.int64), size
    if size > _WHOLE:
        starts, rows = np.linspace(0, size - _BLOCK, _BLOCKS).astype(np.int64), _BLOCK
    parts = [
        _products(arrays.action[start : start + rows], arrays.recorded[start : start + rows])
        for start in starts.tolist()
    ]
    one, two = (np.concatenate(products) for products in zip(*parts, strict=True))
    if min(len(one), len(two)) < _LEAST_PAIRS:
        return {}
    error = math.sqrt(float(one @ one) / len(one) ** 2 + float(two @ two) / len(two) ** 2)
    z = float(one.mean() - two.mean()) / error if error > 0.0 else 0.0
    p = float(special.ndtr(-z))
    return {"z": z, "p": p} if p < ALARM else {}


def _products(action: IntArray, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Products of neighbouring deviations for pairs with one arm and with two; inputs have shape (T,)."""
    seen = ~np.isnan(reward)
    at = np.flatnonzero(seen)
    # NumPy sorts 16-bit integers by radix, which is much faster.
    short = np.int16 if action.max() < 2**15 else np.int64
    order = at[np.argsort(action[at].astype(short), kind="stable")]
    count = np.bincount(action[at])
    end = np.repeat(np.cumsum(count), count)
    number = np.arange(len(order))
    total = np.concatenate([[0.0], np.cumsum(reward[order])])
    before, after = np.full((2, len(action)), np.nan)
    early = number - (end - np.repeat(count, count)) >= _NEAR
    place = number[early]
    before[order[early]] = reward[order[early]] - (total[place] - total[place - _NEAR]) / _NEAR
    late = end - 1 - number >= _NEAR
    place = number[late] + 1
    after[order[late]] = reward[order[late]] - (total[place + _NEAR] - total[place]) / _NEAR
    product = before[:-1] * after[1:]
    usable = ~np.isnan(product)
    same = action[1:] == action[:-1]
    return product[usable & same], product[usable & ~same]
