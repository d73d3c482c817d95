"""Times of rounds, of a log that lasts from -1/2 to 1/2."""

from __future__ import annotations

import numpy as np

from adaptinf.typing import FloatArray, IntArray


def middles(sizes: FloatArray) -> FloatArray:
    """Times of the middles of consecutive batches; sizes, their rounds, (B,)."""
    return np.asarray((np.cumsum(sizes) - 0.5 * sizes) / sizes.sum() - 0.5)


def times_of(n_rounds: int, batch: IntArray | None) -> FloatArray:
    """Times of rounds, those of a batch the time of its middle; batch (T,), returns (T,)."""
    if batch is None:
        return np.asarray((np.arange(n_rounds) + 0.5) / n_rounds - 0.5)
    return middles(np.bincount(batch).astype(np.float64))[batch]
