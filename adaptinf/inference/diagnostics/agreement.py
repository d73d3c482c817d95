"""Do estimates that should agree agree? Sample means against AIPW, and early rounds against late ones.

References
----------
Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments". Cochran (1954), "The combination of
estimates from different experiments".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.inference.diagnostics.propensities import ChiSquare, chi_square
from adaptinf.inference.scores.means import weighted_means
from adaptinf.typing import FloatArray, IntArray

_CONSTANT = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Differences of two estimates of the same arms, which have mean 0 under the null.

    Shapes: difference (k,), covariance (k, k).
    """

    difference: FloatArray
    covariance: FloatArray

    @property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), dtype=np.float64)

    @property
    def z(self) -> FloatArray:
        """Standardised differences, shape (k,); NaN where the standard error is 0."""
        size = self.std_error
        return np.asarray(self.difference / np.where(size > 0.0, size, np.nan), dtype=np.float64)

    @property
    def joint(self) -> ChiSquare:
        """Test of all differences together."""
        return chi_square(self.difference, self.covariance)


def mean_differences(
    chosen: FloatArray, reward: FloatArray, scores: FloatArray, weights: FloatArray
) -> Differences:
    """Sample means minus weighted means of scores.

    Shapes: chosen (T, k), reward (T,), scores, weights (T, k).

    Hausman's variance, that of one estimate minus that of the other, rests on a covariance of the two that is
    the variance of the sample mean. That is so where propensities were fixed in advance and rewards have one
    variance, and not under adaptive collection, where the number may even be negative.
    """
    count = chosen.sum(axis=0)
    mean = (reward @ chosen) / count
    rows = chosen * (reward[:, None] - mean) / count
    weighted = weighted_means(scores, weights)
    change = rows - weighted.influence
    return _settled(mean - weighted.estimate, change.T @ change, mean)


def drift_differences(scores: FloatArray, weights: FloatArray, split: int) -> Differences:
    """Weighted means of scores in late rounds minus those in early rounds; scores, weights (T, k)."""
    early = weighted_means(scores[:split], weights[:split])
    late = weighted_means(scores[split:], weights[split:])
    return _settled(late.estimate - early.estimate, early.covariance + late.covariance, early.estimate)


def _settled(difference: FloatArray, covariance: FloatArray, scale: FloatArray) -> Differences:
    """Differences whose variance is rounding have none."""
    size = np.sqrt(np.diag(covariance))
    constant = size <= _CONSTANT * np.maximum(np.abs(scale), np.finfo(np.float64).tiny)
    covariance = covariance.copy()
    covariance[constant, :] = covariance[:, constant] = 0.0
    return Differences(difference, covariance)


def batch_groups(batch: IntArray, most: int = 6) -> IntArray:
    """Consecutive batches joined into a few groups of about the same number of rounds.

    Shapes: batch (T,); returns (T,).
    """
    rounds = np.bincount(batch)
    middle = np.cumsum(rounds) - 0.5 * rounds
    group = np.minimum((middle * most / batch.size).astype(np.int64), most - 1)
    return np.asarray(np.unique(group, return_inverse=True)[1].reshape(-1)[batch], dtype=np.int64)


def homogeneity(scores: FloatArray, weights: FloatArray, group: IntArray) -> ChiSquare:
    """Test that the weighted mean of scores is the same in all groups of rounds.

    Shapes: scores, weights (T,), group (T,).
    """
    estimate, variance = [], []
    for code in range(int(group.max()) + 1):
        here = group == code
        part = weighted_means(scores[here, None], weights[here, None])
        estimate.append(float(part.estimate[0]))
        variance.append(float(part.covariance[0, 0]))
    means, spread = np.array(estimate), np.array(variance)
    if means.size < 2 or not (spread > (_CONSTANT * np.abs(means)) ** 2).all():
        return ChiSquare(np.nan, 0)
    centre = float(np.sum(means / spread) / np.sum(1.0 / spread))
    return ChiSquare(float(np.sum((means - centre) ** 2 / spread)), means.size - 1)
