"""Many rounds at once, where nothing adapts.

Arrivals are multinomial, sums of 0/1 rewards binomial, and sums of normal rewards normal.
"""

from __future__ import annotations

import math

import numpy as np

from adaptinf.compilation import kernel
from adaptinf.simulation.run import NORMAL, EnvironmentTables
from adaptinf.typing import FloatArray


@kernel
def draw_arrivals(
    environment: EnvironmentTables, begin: int, end: int, rng: np.random.Generator, arrivals: FloatArray
) -> None:
    """Write the numbers of arrivals of each context in rounds begin to end (exclusive, from 0)."""
    n_features = environment.n_features
    for feature in range(n_features):
        arrivals[feature] = 0.0
    step = begin
    while step < end:
        period = step // environment.period
        row = period % environment.arrivals.shape[0]
        until = end
        if environment.arrivals.shape[0] > 1:
            until = min(end, (period + 1) * environment.period)
        left = until - step
        before = 0.0
        for feature in range(n_features - 1):
            share = (environment.arrivals[row, feature] - before) / max(1.0 - before, 1e-300)
            count = rng.binomial(left, min(max(share, 0.0), 1.0))
            arrivals[feature] += count
            left -= count
            before = environment.arrivals[row, feature]
        arrivals[n_features - 1] += left
        step = until


@kernel
def draw_arm(
    environment: EnvironmentTables,
    feature: int,
    arm: int,
    count: int,
    rng: np.random.Generator,
    tally: FloatArray,
) -> float:
    """Sum of `count` 0/1 or normal rewards of a context and arm, added to the (features, arms, 3) tally."""
    if count == 0:
        return 0.0
    mean = environment.location[feature, arm]
    if environment.kind == NORMAL:
        scale = environment.scale[feature, arm]
        total = count * mean + math.sqrt(count) * scale * rng.standard_normal()
        squares = total * total / count
        if count > 1:
            squares += scale * scale * rng.chisquare(count - 1.0)
    else:
        total = rng.binomial(count, mean)
        squares = total
    tally[feature, arm, 0] += count
    tally[feature, arm, 1] += total
    tally[feature, arm, 2] += squares
    return float(total)
