"""An upper bound on the tail of a sum of Laplace variables in closed form, as proofs of regret use it."""

from __future__ import annotations

import functools

import numpy as np

from adaptinf.privacy.counters.laplace_sums import counter_laws, octave_grid
from adaptinf.privacy.counters.sums import counter_slots
from adaptinf.typing import FloatArray


def laplace_sum_tail_bound(log_failure: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """An x with P(S > x) at most a failure probability, S a sum of independent centred Laplace variables.

    Shapes: log_failure (n,), scales, terms (n, groups); returns (n,).

    Chan, Shi and Song bound P(S > x) by exp(-x^2 / (8 v^2)) for v^2 of at least the sum of squared scales and
    0 < x < 2 sqrt(2) v^2 / max b. With x = v sqrt(8 L) the bound is the failure probability, and the range
    asks for v > sqrt(L) max b; the smallest such v is approached, and the tail is continuous.

    Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics. ACM Transactions
    on Information and System Security 14, Lemma 2.8.
    """
    effort = -np.asarray(log_failure, dtype=np.float64)
    present = np.where(terms > 0, scales, 0.0)
    spread = np.sqrt((terms * present**2).sum(axis=1))
    bound = np.sqrt(8.0 * effort) * np.maximum(spread, np.sqrt(effort) * present.max(axis=1))
    return np.asarray(bound, dtype=np.float64)


@functools.lru_cache(maxsize=32)
def counter_tail_bounds(counter: str, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Table of bounds on a counter's noise at epsilon = 1 that fail with probability 1/t, law by law.

    Returns shape grid (g,), bounds (g, rows).
    """
    slots = counter_slots(horizon)
    grid = octave_grid(slots)
    rows, scales, terms = counter_laws(counter, slots)
    table = np.zeros((grid.size, slots * slots + slots if counter == "hybrid" else slots + 1))
    for i, t in enumerate(grid):
        table[i, rows.astype(np.int64)] = laplace_sum_tail_bound(
            np.full(rows.size, -np.log(t)), scales, terms
        )
    return grid, table
