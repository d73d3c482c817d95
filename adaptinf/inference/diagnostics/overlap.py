"""How small propensities are, how they fall, and how much of an arm's rewards is left after weighting.

References
----------
Kish (1965), "Survey Sampling" (effective sample size). Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments" (decay of propensities).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from adaptinf.typing import FloatArray

_FEW_BLOCKS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Decay:
    """Smallest propensities over time; first, last (B,), smallest (B, k)."""

    first: FloatArray
    last: FloatArray
    smallest: FloatArray
    exponent: float


def fitted_decay(propensities: FloatArray) -> Decay:
    """How the smallest propensity falls.

    Shapes: propensities (T, k).

    Two-point weights need an exponent that is fixed before the data: one that was fitted on the log makes
    them depend on the future, and their normal limit is lost.
    """
    rounds = len(propensities)
    edges = np.unique([0, *(2**power for power in range(3, 64) if 2**power < rounds), rounds])
    positive = np.where(propensities > 0.0, propensities, np.nan)
    smallest = np.array(
        [np.fmin.reduce(positive[start:stop], axis=0) for start, stop in itertools.pairwise(edges)]
    )
    lowest = np.fmin.reduce(smallest, axis=1)
    known = ~np.isnan(lowest)
    exponent = math.nan
    if known.sum() >= _FEW_BLOCKS:
        time = np.log(edges[1:][known])
        centred = time - time.mean()
        # Propensities that stay the same have the exponent 0, and not the rounding of a sum.
        exponent = round(-float(centred @ np.log(lowest[known]) / (centred @ centred)), 12) + 0.0
    return Decay(edges[:-1] + 1.0, edges[1:].astype(np.float64), smallest, exponent)


def low_rounds(propensities: FloatArray, limit: float) -> FloatArray:
    """Number of rounds in which each arm's propensity is below a limit, zeros included.

    Shapes: propensities (T, k); returns (k,).
    """
    return np.asarray((propensities < limit).sum(axis=0), dtype=np.float64)
