"""What the chosen arms' propensities alone tell of the other arms, where they stay within batches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from adaptinf.typing import BoolArray, FloatArray, IntArray

SUM_TOLERANCE = 1e-6
"""By how much the propensities of a batch may miss 1, as those of a log's row."""
_SAME = 1e-9
"""Propensities closer than this are the same: rounding of a frame that was written and read."""


def full_batches(batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int) -> BoolArray:
    """Batches in which each chosen arm has one propensity, and these add up to 1: no other arm was possible.

    Shapes: batch, from 0, action, propensity of the chosen arm (T,); returns (B,).
    """
    size = int(batch.max(initial=-1)) + 1
    cell, served = pd.factorize(batch * n_arms + action)
    one = np.empty(len(served))
    one[cell] = propensity
    moved = np.zeros(size, dtype=bool)
    moved[batch[np.abs(propensity - one[cell]) > _SAME]] = True
    total = np.bincount(np.asarray(served) // n_arms, weights=one, minlength=size)
    return np.asarray(~moved & (np.abs(total - 1.0) <= SUM_TOLERANCE))
