"""How small propensities are, how they fall, and how much of an arm's rewards is left after weighting.

References
----------
Kish (1965), "Survey Sampling" (effective sample size). Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments" (decay of propensities).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adaptinf.typing import FloatArray, IntArray

_FEW_BLOCKS = 4
_BLOCK = 65_536


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

    def least(start: int, stop: int) -> FloatArray:
        found = np.full(propensities.shape[1], np.inf)
        for low in range(start, stop, _BLOCK):
            part = propensities[low : min(low + _BLOCK, stop)]
            found = np.minimum(found, np.min(part, axis=0, where=part > 0.0, initial=np.inf))
        return found

    return decay_of(len(propensities), least)


def fitted_chosen_decay(action: IntArray, propensity: FloatArray, n_arms: int) -> Decay:
    """The same where only the chosen arms' propensities are known; action, propensity (T,)."""

    def least(start: int, stop: int) -> FloatArray:
        found = np.full(n_arms, np.inf)
        np.minimum.at(found, action[start:stop], propensity[start:stop])
        return found

    return decay_of(len(action), least)


def decay_of(rounds: int, least: Callable[[int, int], FloatArray]) -> Decay:
    """A line through the smallest propensities of stretches that double in length."""
    edges = np.unique([0, *(2**power for power in range(3, 64) if 2**power < rounds), rounds])
    smallest = np.array([least(int(start), int(stop)) for start, stop in itertools.pairwise(edges)])
    smallest[np.isinf(smallest)] = np.nan
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
    found = np.zeros(propensities.shape[1])
    for low in range(0, len(propensities), _BLOCK):
        found += np.count_nonzero(propensities[low : low + _BLOCK] < limit, axis=0)
    return found
