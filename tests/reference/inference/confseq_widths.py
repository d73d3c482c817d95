"""Widths of confseq's sequences on simulated rewards: writes confseq_widths.csv beside this file.

    python tests/reference/inference/confseq_widths.py

It needs confseq (0.0.11 of PyPI; its extension needs the headers of Boost) and NumPy, in an environment of
their own, and nothing of this package. Rewards of run r at rate p are the columns of `rewards`.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

RATES = (0.5, 0.1, 0.02)
TIMES = (100, 1_000, 10_000)
RUNS, SEED, ALPHA, TUNED = 10, 20261125, 0.05, 1_000
GRID = np.unique(np.concatenate([np.geomspace(10, TIMES[-1], 150).round(), TIMES])).astype(int)
"""Times whose intervals are intersected."""


def rewards(rate: float) -> np.ndarray:
    """Rewards of all runs, shape (RUNS, the last of TIMES)."""
    place = RATES.index(rate)
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(place,)))
    return (rng.random((RUNS, TIMES[-1])) < rate).astype(np.float64)


def main() -> None:
    from confseq.boundaries import bernoulli_confidence_interval, gamma_exponential_mixture_bound

    lines = []
    for rate in RATES:
        for run, reward in enumerate(rewards(rate)):
            count = np.arange(1.0, len(reward) + 1.0)
            wins, low, high = np.cumsum(reward), 0.0, 1.0
            limits = {}
            for t in GRID.tolist():
                ends = bernoulli_confidence_interval(float(wins[t - 1]), t, ALPHA, TUNED, ALPHA)
                low, high = max(low, ends[0]), min(high, ends[1])
                limits[t] = high - low
            mean = wins / count
            before = np.concatenate([[0.5], mean[:-1]])
            variance = np.cumsum((reward - before) ** 2)
            at = GRID - 1
            bound = gamma_exponential_mixture_bound(variance[at], ALPHA / 2, TUNED / 4, 1.0, ALPHA / 2)
            lower = np.maximum.accumulate(np.maximum(mean[at] - bound / GRID, 0.0))
            upper = np.minimum.accumulate(np.minimum(mean[at] + bound / GRID, 1.0))
            for t in TIMES:
                place = int(np.searchsorted(GRID, t))
                lines.append([rate, run, t, f"{limits[t]:.6f}", f"{upper[place] - lower[place]:.6f}"])
    with Path(__file__).with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["rate", "run", "rounds", "beta_binomial", "gamma_exponential"])
        writer.writerows(lines)


if __name__ == "__main__":
    main()
