"""Evidence that an effect changes over the rounds, based on the weighted scores of its estimate.

Let s be the scores, h the weights, t the time, and D = sum h s / sum h the estimate. If the effect is
constant, sum h t (s - D) has mean 0, whatever effects are common to all arms, because h is known before s.
The test detects a trend, or an effect that changes once, but not an effect that varies with the hour of the
day.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from adaptinf.inference.scores.unit_errors import totals_by_unit
from adaptinf.typing import FloatArray, IntArray

SEEN = 5e-4
"""P-value below which an effect is reported as changing; if there are several effects, it is divided among
them.

In logs of bandits without such changes, p-values are approximately uniform: of 1,000 logs from each of five
designs, 0 to 2 were below .002. At most 3 of 1,000 such logs should be reported. The probability of more is
.2% at .0005, 2% at .001 and 14% at .002, and all three detect an effect that changes from .6 to -.6 standard
deviations in 2,000 rounds equally well.
"""


def moving_effects(
    scores: FloatArray, weights: FloatArray, freedom: FloatArray, unit: IntArray | None = None
) -> FloatArray:
    """Two-sided p-values of the slopes of k effects over time; 1 if there is nothing to test.

    Shapes: scores, weights (T, k), freedom (k,), for Student's t, unit (T,); returns (k,). `unit` is given if
    rounds of a unit may depend on each other.
    """
    total = weights.sum(axis=0)
    share = weights / np.where(total > 0.0, total, 1.0)
    time = np.arange(1.0, len(weights) + 1.0) / max(len(weights), 1)
    gap = scores - np.einsum("tk,tk->k", share, scores)
    terms = share * (time[:, None] - time @ share) * gap
    rows = terms if unit is None else totals_by_unit(terms, unit)
    root = np.sqrt(np.einsum("tk,tk->k", rows, rows))
    ratio = np.divide(terms.sum(axis=0), root, out=np.zeros_like(root), where=root > 0.0)
    return np.asarray(2.0 * special.stdtr(np.maximum(freedom, 1.0), -np.abs(ratio)), dtype=np.float64)
