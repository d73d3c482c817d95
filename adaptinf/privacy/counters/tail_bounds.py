"""An upper bound on the tail of a sum of Laplace variables in closed form, as proofs of regret use it."""

from __future__ import annotations

import functools

import numpy as np

from adaptinf.privacy.counters.laplace_sums import counter_laws, octave_grid
from adaptinf.privacy.counters.sums import counter_slots
from adaptinf.typing import FloatArray

__all__ = ["counter_tail_bounds", "laplace_sum_tail_bound"]


def laplace_sum_tail_bound(log_failure: FloatArray, scales: FloatArray, terms: FloatArray) -> FloatArray:
    """An x with P(S > x) at most a failure probability, S a sum of independent centred Laplace variables.

    Parameters
    ----------
    log_failure : ndarray of shape (n,)
        Natural logarithms of the failure probabilities, at most 0.
    scales, terms : ndarray of shape (n, groups)
        Scale of each group of variables and how many there are; a group with no terms does not count.

    Returns
    -------
    ndarray of shape (n,)
        sqrt(8 L) max(sqrt(sum of b^2), sqrt(L) max b) with L = -log_failure: one-sided. For both sides
        together take the logarithm of half of the failure probability.

    Notes
    -----
    Chan, Shi and Song bound P(S > x) by exp(-x^2 / (8 v^2)) for v^2 of at least the sum of squared scales and
    0 < x < 2 sqrt(2) v^2 / max b. With x = v sqrt(8 L) the bound is the failure probability, and the range
    asks for v > sqrt(L) max b; the smallest such v is approached, and the tail is continuous.

    References
    ----------
    Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics. ACM Transactions
    on Information and System Security 14, Lemma 2.8.

    Examples
    --------
    >>> bound = laplace_sum_tail_bound(np.log([0.01]), np.array([[1.0]]), np.array([[1.0]]))
    >>> bool(bound[0] > np.log(50.0))
    True
    """
    effort = -np.asarray(log_failure, dtype=np.float64)
    present = np.where(terms > 0, scales, 0.0)
    spread = np.sqrt((terms * present**2).sum(axis=1))
    bound = np.sqrt(8.0 * effort) * np.maximum(spread, np.sqrt(effort) * present.max(axis=1))
    return np.asarray(bound, dtype=np.float64)


@functools.lru_cache(maxsize=32)
def counter_tail_bounds(counter: str, horizon: int) -> tuple[FloatArray, FloatArray]:
    """Table of bounds on a counter's noise at epsilon = 1 that fail with probability 1/t, law by law.

    Parameters
    ----------
    counter : {"binary", "hybrid"}
        The mechanism, for items of sensitivity 1; divide the bounds by epsilon.
    horizon : int
        Largest t and largest count.

    Returns
    -------
    grid : ndarray of shape (g,)
        Values of t, those of `counter_quantiles`.
    bounds : ndarray of shape (g, rows)
        Row r of `noise_row` stands in column r; laws that never occur are zero.

    Examples
    --------
    >>> grid, bounds = counter_tail_bounds("binary", 100)
    >>> bool(abs(bounds[grid == 64.0, 1][0] / 7 - np.sqrt(8.0) * np.log(64.0)) < 1e-12)
    True
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
