"""Predictions of rewards by a regression on the same columns, which is refitted as rounds arrive.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed" (augmented inverse weighting).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from adaptinf.typing import FloatArray, IntArray

# With blocks that grow by a tenth, O(log n) fits suffice, and each uses at least nine tenths of the earlier
# rounds.
_GROWTH = 1.1
_PENALTY = 1.0
# A variance below this share of the mean square is the rounding error of a constant column.
_VARIES = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class RunningRegression:
    """Regressions on the rounds before each block of rounds.

    Shapes: origin (p,), slopes (B, p), level, low, high (B,), block (n,). In `block`, -1 stands for rounds
    before any reward is known.
    """

    origin: FloatArray
    level: FloatArray
    slopes: FloatArray
    low: FloatArray
    high: FloatArray
    block: IntArray

    @property
    def start(self) -> int:
        """The first round that has a prediction."""
        return int(np.argmax(self.block >= 0)) if np.any(self.block >= 0) else len(self.block)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Predictions for all rounds, shape (n,), from the given rows, shape (n, p)."""
        place = np.maximum(self.block, 0)
        found = self.level[place] + np.einsum("tj,tj->t", rows - self.origin, self.slopes[place])
        return np.where(self.block >= 0, np.clip(found, self.low[place], self.high[place]), 0.0)


def running_regression(x: FloatArray, y: FloatArray, known: IntArray | None = None) -> RunningRegression:
    """Ridge regressions of y on x, fitted to the rounds before each of O(log n) blocks.

    Shapes: x (n, p), y (n,), known (n,). `known` is the first round at which each reward is known, by default
    the next round. A block is a tenth as long as all rounds before it. Columns are divided by their standard
    deviations so far, and the penalty is 1. Columns that have not varied have slope 0, so an arm without
    rewards has the prediction of the other arms. Predictions are limited to the range of the rewards so far,
    because a slope from a few rounds whose columns hardly vary could otherwise be arbitrarily large. No
    prediction uses rewards of its own block or of later blocks.
    """
    n, p = x.shape
    known = np.arange(1, n + 1) if known is None else known
    order = np.argsort(known, kind="stable")
    starts = _starts(n)
    until = np.searchsorted(known[order], starts, side="right")
    origin = x[0] if n else np.zeros(p)
    level, slopes = np.zeros(len(starts)), np.zeros((len(starts), p))
    low, high = np.zeros(len(starts)), np.zeros(len(starts))
    mean, gram, cross, total, count = np.zeros(p), np.zeros((p, p)), np.zeros(p), 0.0, 0
    for b, stop in enumerate(until):
        new = order[count:stop]
        rows, rewards = x[new] - origin, y[new]
        mean += rows.sum(axis=0)
        gram += rows.T @ rows
        cross += rewards @ rows
        total += float(rewards.sum())
        count = int(stop)
        low[b] = min(low[b - 1] if b else np.inf, rewards.min(initial=np.inf))
        high[b] = max(high[b - 1] if b else -np.inf, rewards.max(initial=-np.inf))
        if count:
            level[b], slopes[b] = _ridge(mean / count, gram, cross, total, count)
    block = np.searchsorted(starts, np.arange(n), side="right") - 1
    block = np.where(until[block] > 0, block, -1) if n else block
    return RunningRegression(origin, level, slopes, low, high, block)


def _ridge(
    mean: FloatArray, gram: FloatArray, cross: FloatArray, total: float, count: int
) -> tuple[float, FloatArray]:
    """The intercept at the origin, and the slopes; mean, cross (p,), gram (p, p)."""
    spread = gram - count * np.outer(mean, mean)
    size = np.sqrt(np.maximum(np.diag(spread), 0.0))
    varies = np.diag(spread) > _VARIES * np.diag(gram)
    scale = np.where(varies, size, 1.0) / np.sqrt(count)
    keep = np.outer(varies, varies)
    penalised = np.where(keep, spread / np.outer(scale, scale), 0.0) + _PENALTY * np.eye(len(mean))
    moved = np.where(varies, (cross - total * mean) / scale, 0.0)
    slopes = linalg.solve(penalised, moved, assume_a="pos") / scale
    return total / count - float(mean @ slopes), slopes


def _starts(n: int) -> IntArray:
    """First rounds of the blocks, shape (B,), which grow in length by a tenth of all rounds before."""
    found = [0]
    while (after := max(found[-1] + 1, int(found[-1] * _GROWTH))) < n:
        found.append(after)
    return np.array(found, dtype=np.int64)


Rows = Callable[[int], FloatArray]
"""A function that returns the model matrix as if every round had chosen the arm with this code."""


def predictions_of_arms(fitted: RunningRegression, rows: Rows, codes: IntArray, n_rounds: int) -> FloatArray:
    """Predictions for each arm in every round, shape (n, k); codes has shape (k,)."""
    found = np.empty((n_rounds, len(codes)))
    for place, code in enumerate(codes):
        found[:, place] = fitted.predict(rows(int(code)))
    return found
