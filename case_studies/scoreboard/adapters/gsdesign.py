"""gsdesign: Pocock's boundary for 20 looks by its integration; the repeated interval at the last."""

import functools

import numpy as np
from gsdesign import h1, hupdate

LOOKS = 20


def staying(bound):
    """Chance under no effect that |z| never exceeds a bound at 20 equally spaced looks."""
    grid = h1(theta=0.0, info=1.0, a=-bound, b=bound)
    for look in range(2, LOOKS + 1):
        grid = hupdate(18, 0.0, look, -bound, bound, 0.0, look - 1, grid)
    return float(np.sum(grid[2]))


@functools.cache
def boundary(alpha=0.05):
    low, high = 1.96, 4.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if staying(middle) > 1 - alpha else (middle, high)
    return high


def interval(log, target):
    first, second = log.of(0), log.of(1)
    if min(len(first), len(second)) < 2:
        return None
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    centre = second.mean() - first.mean()
    return centre - boundary() * error, centre + boundary() * error
