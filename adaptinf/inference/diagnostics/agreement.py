"""Do estimates that should agree agree? Sample means against AIPW, and an arm's mean with itself over time.

References
----------
Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments". Cochran (1954), "The combination of
estimates from different experiments".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adaptinf.inference.diagnostics.passes import ScoreSums
from adaptinf.inference.diagnostics.propensities import ChiSquare, chi_square
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


def mean_differences(sums: ScoreSums) -> Differences:
    """Sample means minus weighted means of scores.

    Hausman's variance, that of one estimate minus that of the other, rests on a covariance of the two that is
    the variance of the sample mean. That is so where propensities were fixed in advance and rewards have one
    variance, and not under adaptive collection, where the number may even be negative.
    """
    return _settled(sums.change, sums.change_covariance, sums.mean)


def drifts(sums: ScoreSums) -> Differences:
    """Slopes of the arms' scores over the log, from its first round to its last."""
    return _settled(sums.drift, sums.drift_covariance, sums.estimate)


def common_drift(slopes: Differences) -> tuple[float, float]:
    """One slope for all arms, by the inverse variances of their own, and its standard error.

    NaN where none varies.
    """
    size = slopes.std_error
    kept = size > 0.0
    if not kept.any():
        return math.nan, math.nan
    share = 1.0 / size[kept] ** 2
    share /= share.sum()
    spread = float(share @ slopes.covariance[np.ix_(kept, kept)] @ share)
    return float(share @ slopes.difference[kept]), math.sqrt(max(spread, 0.0))


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
    return stretches(np.bincount(batch).astype(np.float64), most)[batch]


def stretches(rounds: FloatArray, most: int = 6) -> IntArray:
    """The group of each of consecutive batches, joined into a few of about the same number of rounds.

    Shapes: rounds (B,), of each batch; returns (B,).
    """
    middle = np.cumsum(rounds) - 0.5 * rounds
    group = np.minimum((middle * most / rounds.sum()).astype(np.int64), most - 1)
    return np.asarray(np.unique(group, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def homogeneity(means: FloatArray, variances: FloatArray) -> ChiSquare:
    """Test that an arm's mean is the same in all groups of rounds; means, variances (G,)."""
    if means.size < 2 or not (variances > (_CONSTANT * np.abs(means)) ** 2).all():
        return ChiSquare(np.nan, 0)
    centre = float(np.sum(means / variances) / np.sum(1.0 / variances))
    return ChiSquare(float(np.sum((means - centre) ** 2 / variances)), means.size - 1)
