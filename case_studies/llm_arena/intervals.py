"""Intervals for the best of independent estimates: ours, and literal versions of those in the literature."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm

from adaptinf import winner_interval
from adaptinf.typing import FloatArray

WAYS = ("hybrid", "conditional", "projection")
GRID = 10_000


def ours(rates: FloatArray, errors: FloatArray, alpha: float) -> pd.DataFrame:
    """The usual interval of the winner, and those that allow for the choice."""
    rows = []
    for way in WAYS:
        found = winner_interval(rates, np.diag(errors**2), alpha=alpha, method=way)
        if not rows:
            rows.append({"method": "usual", "low": found.naive[0], "high": found.naive[1]})
        rows.append({"method": way, "low": found.low, "high": found.high})
    low, high = locally_simultaneous(rates, errors, alpha)
    rows.append({"method": "locally simultaneous", "low": low, "high": high})
    return pd.DataFrame(rows)


def locally_simultaneous(rates: FloatArray, errors: FloatArray, alpha: float) -> tuple[float, float]:
    """Bonferroni over those that may be best (Zrnic and Fithian 2024); a tenth of alpha is for the choice."""
    first, share = int(np.argmax(rates)), alpha / 10
    near = 4 * norm.isf(share / (2 * len(rates))) * errors
    plausible = int(np.sum(rates >= rates[first] - near))
    half = norm.isf((alpha - share) / (2 * plausible)) * errors[first]
    return float(rates[first] - half), float(rates[first] + half)


def hybrid_on_a_grid(rates: FloatArray, errors: FloatArray, alpha: float) -> tuple[float, float]:
    """The hybrid interval by its definition (Andrews, Kitagawa and McCloskey 2024), step by step on a grid.

    Of independent estimates, the winner's is normal above the second highest, and within a projection of
    level 1 - alpha / 10; its end is where this distribution gives the estimate a tail of half the level left.
    """
    first, share = int(np.argmax(rates)), alpha / 10
    own, size = rates[first], errors[first]
    second = np.delete(rates, first).max()
    half = norm.isf((1 - (1 - share) ** (1 / len(rates))) / 2) * size
    means = np.linspace(own - half, own + half, GRID)[1:-1]
    low, high = np.maximum(second, means - half), means + half
    below = norm.cdf((own - means) / size) - norm.cdf((low - means) / size)
    tail = below / (norm.cdf((high - means) / size) - norm.cdf((low - means) / size))
    left = (alpha - share) / (1 - share) / 2
    inside = means[(tail >= left) & (tail <= 1 - left)]
    return float(inside.min()), float(inside.max())


def coverage(rates: FloatArray, errors: FloatArray, alpha: float, runs: int, seed: int) -> pd.DataFrame:
    """Shares of winners whose mean is covered if the table's rates were the truth, by how often each wins."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(rates, errors, size=(runs, len(rates)))
    won = drawn.argmax(axis=1)
    truth, z = rates[won], norm.isf(alpha / 2)
    low, high = np.empty(runs), np.empty(runs)
    for run, estimates in enumerate(drawn):
        found = winner_interval(estimates, np.diag(errors**2), alpha=alpha)
        low[run], high[run] = found.low, found.high
    usual = np.abs(drawn[np.arange(runs), won] - truth) <= z * errors[won]
    return pd.DataFrame(
        {
            "method": ["usual", "hybrid"],
            "coverage": [usual.mean(), ((low <= truth) & (truth <= high)).mean()],
            "bias": [(drawn[np.arange(runs), won] - truth).mean(), np.nan],
            "runs": runs,
        }
    )
