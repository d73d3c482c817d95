"""Tests of equal shares in all pieces of batches, by Pearson's statistic with its exact moments.

References
----------
Dawson (1954), "A simplified expression for the variance of the chi-square function on a contingency table"
(the exact moments given the margins, so small counts do no harm).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from adaptinf.typing import FloatArray, IntArray

_LEAST, _MOST = 50, 2000
"""Rounds of a stretch, and number of stretches, at least and at most."""


def within_pvalue(action: IntArray, n_arms: int, batch: IntArray) -> float:
    """P-value for equal arm probabilities in all stretches of a batch, over batches; action, batch (T,).

    Batches have equal stretches of 50 rounds or more, at most 2,000 in all; those with one stretch count
    nothing. Unlike the number of runs, counts by stretch show shares that change slowly.
    """
    place = batch - int(batch.min(initial=0))
    rounds = np.bincount(place)
    starts = np.cumsum(rounds) - rounds
    pieces = np.maximum(rounds // max(_LEAST, math.ceil(len(action) / _MOST)), 1)
    stretch = (np.arange(len(action)) - starts[place]) * pieces[place] // rounds[place]
    first = np.cumsum(pieces) - pieces
    counts = np.bincount((first[place] + stretch) * n_arms + action, minlength=int(pieces.sum()) * n_arms)
    found = np.flatnonzero(counts)
    line, arm = np.divmod(found, n_arms)
    owner = np.repeat(np.arange(len(pieces)), pieces)[line]
    several = pieces[owner] > 1
    number = counts[found].astype(np.float64)
    return homogeneity_pvalue(owner[several], line[several], arm[several], number[several])


def homogeneity_pvalue(stratum: IntArray, row: IntArray, column: IntArray, count: FloatArray) -> float:
    """P-value for Pearson's statistics, summed over tables of rows and columns, one per stratum.

    Shapes: stratum, row, column, count (n,), an entry for each cell or for parts of it; codes from 0.

    Given the margins, the sum has a known mean and variance, and approximately the distribution of a multiple
    of a chi-squared variable with the same mean and variance.
    """
    table, where = np.unique(stratum, return_inverse=True)
    line, of_line, in_row = _sums(where, row, count)
    bar, of_bar, in_column = _sums(where, column, count)
    cell, of_cell, counts = _sums(where, row * (int(column.max(initial=0)) + 1) + column, count)
    first = np.zeros(len(counts), dtype=np.int64)
    first[cell] = np.arange(len(count))
    n = np.bincount(where, count, len(table))
    # With e = row column / n, Pearson's sum of (o - e)^2 / e equals n (sum o^2 / (row column) - 1), which
    # needs only the cells that occur.
    terms = counts**2 / (in_row[line[first]] * in_column[bar[first]])
    statistic = n * (np.bincount(of_cell, terms, len(table)) - 1.0)
    r, inverse_r = (np.bincount(of_line, part, len(table)) for part in (None, 1.0 / in_row))
    c, inverse_c = (np.bincount(of_bar, part, len(table)) for part in (None, 1.0 / in_column))
    usable = (n > 3.0) & (r > 1) & (c > 1)
    if not usable.any():
        return 1.0
    n, statistic = n[usable], statistic[usable]
    mean = n * (r[usable] - 1.0) * (c[usable] - 1.0) / (n - 1.0)
    (v_r, w_r), (v_c, w_c) = (
        ((k - 1.0) * (n - k) / (n - 1.0), (n * inverse - k**2) / (n - 2.0))
        for k, inverse in ((r[usable], inverse_r[usable]), (c[usable], inverse_c[usable]))
    )
    variance = 2.0 * n / (n - 3.0) * (v_r - w_r) * (v_c - w_c) + n**2 / (n - 1.0) * w_r * w_c
    centre, spread = float(mean.sum()), float(variance.sum())
    if spread <= 0.0:
        return 1.0
    # The gamma distribution with this mean and variance has shape mean^2 / variance and rate mean / variance.
    return float(special.gammaincc(centre**2 / spread, float(statistic.sum()) * centre / spread))


def _sums(stratum: IntArray, code: IntArray, count: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Groups of entries with the same stratum and code: that of each entry, their strata, and their sums."""
    size = int(code.max(initial=0)) + 1
    keys, group = np.unique(stratum * size + code, return_inverse=True)
    return group, keys // size, np.bincount(group, count, len(keys)).astype(np.float64)
