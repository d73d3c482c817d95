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

from adaptinf.inference.diagnostics.passes import bin_products, bin_sums, wealth_path
from adaptinf.typing import BoolArray, FloatArray, IntArray

EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Bounds of the bins of propensities, inside (0, 1)."""
LEAST_VARIANCE = 10.0
"""Neighbouring bins are joined until the variance of their count is as large: below it is far from normal."""
PRIOR = 10.0
_SPAN = 1e-3
_CELLS = np.searchsorted(EDGES, np.arange(101) / 100.0)


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

    Shapes: merged (E + 1,), the bin of each piece of (0, 1) that `EDGES` cut; low, high, rounds, expected,
    observed, variance (J,).
    """

    merged: IntArray
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
    action: IntArray, propensities: FloatArray, least: float = LEAST_VARIANCE
) -> list[Bins | None]:
    """Choices of every arm against its propensities, by bins of the propensity; None where there are too few.

    Shapes: action (T,), propensities (T, K).
    """
    n_arms = propensities.shape[1]
    sums = np.zeros((n_arms, len(EDGES) + 1, 4))
    bin_sums(np.ascontiguousarray(action), np.ascontiguousarray(propensities), np.array(EDGES), _CELLS, sums)
    return [merged_bins(own, least) for own in sums]


def merged_bins(sums: FloatArray, least: float = LEAST_VARIANCE) -> Bins | None:
    """Neighbouring bins joined until each has some variance, None where all have too little.

    Shapes: sums (E + 1, 4), of each piece of (0, 1) the rounds, propensities, choices, squared propensities.
    """
    rounds, expected, observed, squares = sums.T
    spread = expected - squares
    if spread.sum() < least:
        return None
    merged = np.zeros(len(spread), dtype=np.int64)
    groups, total = 0, 0.0
    for place, size in enumerate(spread):
        merged[place] = groups
        total += size
        if total >= least:
            groups, total = groups + 1, 0.0
    merged = np.minimum(merged, groups - 1)
    bounds = np.array([0.0, *EDGES, 1.0])
    first = np.searchsorted(merged, np.arange(groups))
    parts: list[FloatArray] = [
        np.bincount(merged, weights=own, minlength=groups).astype(np.float64)
        for own in (rounds, expected, observed, spread)
    ]
    return Bins(merged, bounds[first], np.append(bounds[first[1:]], 1.0), *parts)


def calibration_joint(propensities: FloatArray, bins: list[Bins], codes: IntArray) -> ChiSquare:
    """Test of all bins of several arms together; propensities (T, K), codes (k,)."""
    starts = np.concatenate([[0], np.cumsum([part.rounds.size for part in bins])])
    merged = np.array([part.merged + start for part, start in zip(bins, starts[:-1], strict=True)])
    products = np.zeros((starts[-1], starts[-1]))
    bin_products(
        np.ascontiguousarray(propensities),
        np.ascontiguousarray(codes),
        np.array(EDGES),
        _CELLS,
        merged,
        np.zeros(len(codes), dtype=np.int64),
        products,
    )
    covariance = np.diag(np.concatenate([part.variance for part in bins])) - products - products.T
    return chi_square(np.concatenate([part.observed - part.expected for part in bins]), covariance)


def inverse_sums(
    action: IntArray, propensity: FloatArray, n_arms: int, possible: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Sums over the rounds of 1{A = a} / e - 1, where only the chosen arms' propensities are known.

    Shapes: action (T,), propensity (T,), possible (T, K), all by default; returns the sums (K,) and their
    sums of products (K, K).

    In a round the chosen arm has 1 / e - 1 and every other possible arm -1.
    """
    if possible is not None:
        terms = -possible.astype(np.float64)
        terms[np.arange(len(action)), action] += 1.0 / propensity
        return terms.sum(axis=0), terms.T @ terms
    gain = 1.0 / propensity - 1.0
    count = np.bincount(action, minlength=n_arms).astype(np.float64)
    total, squares = (
        np.bincount(action, weights=gain**power, minlength=n_arms).astype(np.float64) for power in (1, 2)
    )
    return inverse_products(float(len(action)), count, total, squares)


def inverse_products(
    rounds: float, count: FloatArray, total: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same from each arm's rounds, and its sums of 1 / e - 1 and of their squares; (K,) each."""
    products = rounds - count[:, None] - count[None, :] - total[:, None] - total[None, :]
    np.fill_diagonal(products, squares + rounds - count)
    return total - (rounds - count), products


def log_wealth(action: IntArray, propensities: FloatArray, prior: float = PRIOR) -> FloatArray:
    """Evidence against the propensities after each round: a test martingale.

    Shapes: action (T,), propensities (T, K); returns (T,).

    Where e are the probabilities of the choices given the past, each factor has mean 1 given the past,
    whatever the design. By Ville's inequality the product ever reaches 1 / alpha with probability at most
    alpha: 1 over its maximum is a p-value at any round, and exact.
    """
    path = np.zeros(len(action))
    _bet(action, propensities, prior, path)
    return path


def largest_log_wealth(action: IntArray, propensities: FloatArray, prior: float = PRIOR) -> float:
    """The maximum of `log_wealth`, at least 0; propensities (T, K), or (1, K) where they are fixed."""
    return _bet(action, propensities, prior, np.zeros(0))


def _bet(action: IntArray, propensities: FloatArray, prior: float, path: FloatArray) -> float:
    seen, due = np.full((2, propensities.shape[1]), prior)
    every = np.ascontiguousarray(propensities)
    return float(wealth_path(np.ascontiguousarray(action), every, seen, due, path))
