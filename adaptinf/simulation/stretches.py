"""Many rounds at once, where nothing adapts: arrivals are multinomial and sums of 0/1 rewards binomial."""

from __future__ import annotations

import numpy as np

from adaptinf.compilation import kernel
from adaptinf.simulation.run import EnvironmentTables
from adaptinf.typing import FloatArray

__all__ = ["draw_arm", "draw_arrivals"]


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
    """Sum of `count` rewards of 0 or 1 of one arm in one context, added to the (features, arms, 3) tally."""
    total = float(rng.binomial(count, environment.location[feature, arm]))
    tally[feature, arm, 0] += count
    tally[feature, arm, 1] += total
    tally[feature, arm, 2] += total
    return total
