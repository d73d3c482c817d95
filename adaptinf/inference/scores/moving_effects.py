"""Whether an effect is seen to move over the rounds, from the weighted scores of its estimate.

With scores s, weights h and estimate D = sum h s / sum h, and g any function of the rounds that is known
before them, sum h g (s - D) has mean 0 where the effect stays, whatever all arms share: h and g are known
before the scores. Two such functions are asked: time itself, and 1 / h, with which the sum is by how much the
mean with these weights differs from the plain mean.

References
----------
Hausman (1978), "Specification tests in econometrics" (two estimates of one thing that differ).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from adaptinf.inference.scores.units import totals_by_unit
from adaptinf.typing import FloatArray, IntArray

SEEN = 0.01
"""From this p-value on an effect is seen to move."""
_EVEN = 1e-9
"""Weights that differ by less, relatively, make the plain mean."""


def moving_effects(
    scores: FloatArray, weights: FloatArray, freedom: FloatArray, unit: IntArray | None = None
) -> FloatArray:
    """P-values of the two tests together (Bonferroni), 1 where there is nothing to test.

    Shapes: scores, weights (T, k), freedom (k,), unit (T,), whose sums vary where rounds of one depend on
    each other; returns (k,).
    """
    total = weights.sum(axis=0)
    share = weights / np.where(total > 0.0, total, 1.0)
    gap = scores - np.einsum("tk,tk->k", share, scores)
    used = weights > 0.0
    inverse = np.divide(1.0, weights, out=np.zeros_like(weights), where=used)
    time = np.where(used, np.arange(len(weights))[:, None] / len(weights), 0.0)
    smallest = np.full(weights.shape[1], 1.0)
    for known in (time, inverse):
        above = known - np.einsum("tk,tk->k", share, known)
        above[np.abs(above) <= _EVEN * np.abs(known).max(axis=0, initial=0.0)] = 0.0
        terms = share * above * gap
        size = terms if unit is None else totals_by_unit(terms, unit)
        root = np.sqrt(np.einsum("tk,tk->k", size, size))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(terms.sum(axis=0)) / root
        tail = 2.0 * special.stdtr(np.maximum(freedom, 1.0), -np.where(root > 0.0, ratio, 0.0))
        smallest = np.fmin(smallest, tail)
    return np.minimum(2.0 * smallest, 1.0)
