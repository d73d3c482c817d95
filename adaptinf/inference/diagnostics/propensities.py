"""Are the logged propensities those with which arms were chosen? Martingale tests of the choices.

References
----------
Brown (1971), "Martingale central limit theorems". Pearson (1900), "On the criterion that a given system of
deviations is such that it can be reasonably supposed to have arisen from random sampling". Lindon, Malek
(2022), "Anytime-valid inference for multinomial count data". Ville (1939), "Étude critique de la notion de
collectif".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from adaptinf.typing import FloatArray, IntArray

EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Bounds of the bins of propensities, inside (0, 1)."""
LEAST_VARIANCE = 10.0
"""Neighbouring bins are joined until the variance of their count is as large: below it is far from normal."""
_PRIOR = 10.0
_SPAN = 1e-3


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A statistic and its chi-squared p-value."""

    statistic: float
    df: int

    @property
    def log_pvalue(self) -> float:
        """Natural log of the p-value; NaN without degrees of freedom."""
        if self.df == 0 or math.isnan(self.statistic):
            return math.nan
        return float(stats.chi2.logsf(self.statistic, self.df))


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Choices of one arm against its propensities, by bins of the propensity.

    Shapes: code (T,), low, high (J,), rounds, expected, observed, variance (J,).
    """

    code: IntArray
    low: FloatArray
    high: FloatArray
    rounds: FloatArray
    expected: FloatArray
    observed: FloatArray
    variance: FloatArray

    @property
    def z(self) -> FloatArray:
        """Standardised differences, shape (J,)."""
        return np.asarray((self.observed - self.expected) / np.sqrt(self.variance), dtype=np.float64)


def chi_square(vector: FloatArray, covariance: FloatArray) -> ChiSquare:
    """Quadratic form of a vector in the inverse of its covariance; vector (k,), covariance (k, k)."""
    size = np.sqrt(np.diag(covariance))
    kept = size > 0.0
    if not kept.any():
        return ChiSquare(math.nan, 0)
    scaled = vector[kept] / size[kept]
    values, directions = np.linalg.eigh(covariance[np.ix_(kept, kept)] / np.outer(size[kept], size[kept]))
    usable = values > _SPAN * values.max()
    parts = (directions.T @ scaled)[usable] ** 2 / values[usable]
    return ChiSquare(float(parts.sum()), int(usable.sum()))


def count_test(counts: FloatArray, expected: FloatArray, products: FloatArray) -> ChiSquare:
    """Test of arm counts against the propensities (sample-ratio mismatch).

    Shapes: counts (K,), expected (K,), products (K, K).

    With the same propensities in all rounds this is Pearson's statistic, sum (count - expected)^2 / expected,
    with K - 1 degrees of freedom.
    """
    return chi_square(counts - expected, np.diag(expected) - products)


def calibration_bins(
    chosen: FloatArray, propensity: FloatArray, least: float = LEAST_VARIANCE
) -> Bins | None:
    """Choices of an arm against its propensities, by bins of the propensity; chosen (T,), propensity (T,)."""
    inside = (propensity > 0.0) & (propensity < 1.0)
    fine = np.where(inside, np.searchsorted(EDGES, propensity, side="left"), -1)
    size = len(EDGES) + 1
    spread = np.bincount(fine[inside], weights=(propensity * (1.0 - propensity))[inside], minlength=size)
    if spread.sum() < least:
        return None
    merged = np.zeros(size, dtype=np.int64)
    groups, total = 0, 0.0
    for place in range(size):
        merged[place] = groups
        total += spread[place]
        if total >= least:
            groups, total = groups + 1, 0.0
    merged = np.minimum(merged, groups - 1)
    code = np.where(inside, merged[fine], -1)
    bounds = np.array([0.0, *EDGES, 1.0])
    first = np.searchsorted(merged, np.arange(groups))
    used = code[inside]

    def sums(weights: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(used, weights=weights[inside], minlength=groups), dtype=np.float64)

    return Bins(
        code=code,
        low=bounds[first],
        high=np.append(bounds[first[1:]], 1.0),
        rounds=sums(np.ones(propensity.size)),
        expected=sums(propensity),
        observed=sums(chosen),
        variance=sums(propensity * (1.0 - propensity)),
    )


def calibration_joint(propensities: FloatArray, bins: list[Bins], codes: IntArray) -> ChiSquare:
    """Test of all bins of several arms together; propensities (T, K), codes (k,)."""
    starts = np.concatenate([[0], np.cumsum([part.rounds.size for part in bins])])
    covariance = np.zeros((starts[-1], starts[-1]))
    for i, first in enumerate(bins):
        here = slice(starts[i], starts[i + 1])
        covariance[here, here] = np.diag(first.variance)
        for j in range(i):
            second = bins[j]
            both = (first.code >= 0) & (second.code >= 0)
            cell = first.code[both] * second.rounds.size + second.code[both]
            product = (propensities[:, codes[i]] * propensities[:, codes[j]])[both]
            size = first.rounds.size * second.rounds.size
            shared = -np.bincount(cell, weights=product, minlength=size).reshape(-1, second.rounds.size)
            covariance[here, starts[j] : starts[j + 1]] = shared
            covariance[starts[j] : starts[j + 1], here] = shared.T
    return chi_square(np.concatenate([part.observed - part.expected for part in bins]), covariance)


def inverse_rows(chosen: FloatArray, propensity: FloatArray) -> FloatArray:
    """Errors of the inverse propensities, where the log has those of the chosen arms alone.

    Shapes: chosen (T, k), propensity (T,); returns (T, k).
    """
    return np.asarray(chosen / propensity[:, None] - 1.0, dtype=np.float64)


def log_wealth(action: IntArray, propensities: FloatArray, prior: float = _PRIOR) -> FloatArray:
    """Evidence against the propensities after each round: a test martingale.

    Shapes: action (T,), propensities (T, K); returns (T,).

    Where e are the probabilities of the choices given the past, each factor has mean 1 given the past,
    whatever the design. By Ville's inequality the product ever reaches 1 / alpha with probability at most
    alpha: 1 over its maximum is a p-value at any round, and exact.
    """
    total = np.zeros(action.size)
    taken = np.zeros(action.size)
    for arm in range(propensities.shape[1]):
        own = propensities[:, arm]
        here = action == arm
        seen = np.concatenate([[0.0], np.cumsum(here[:-1])]) + prior
        due = np.concatenate([[0.0], np.cumsum(own[:-1])]) + prior
        ratio = seen / due
        total += own * ratio
        taken[here] = ratio[here]
    # The rows are divided by their sums, which may differ from 1 by rounding.
    return np.asarray(np.cumsum(np.log(taken * propensities.sum(axis=1) / total)), dtype=np.float64)
