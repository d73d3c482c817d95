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

__all__ = [
    "EDGES",
    "LEAST_VARIANCE",
    "Bins",
    "ChiSquare",
    "calibration_bins",
    "calibration_joint",
    "chi_square",
    "count_test",
    "inverse_rows",
    "log_wealth",
]

EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Bounds of the bins of propensities, inside (0, 1)."""
LEAST_VARIANCE = 10.0
"""Neighbouring bins are joined until the variance of their count is as large: below it is far from normal."""
_PRIOR = 10.0
_SPAN = 1e-3


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A statistic and its chi-squared p-value.

    Attributes
    ----------
    statistic : float
        NaN where there is none.
    df : int
        Degrees of freedom.
    """

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

    Attributes
    ----------
    code : ndarray of int64, shape (T,)
        Bin of each round; -1 where the propensity is 0 or 1.
    low, high : ndarray, shape (J,)
        Propensities of a bin lie in (low, high].
    rounds, expected, observed, variance : ndarray, shape (J,)
        Rounds, sum of propensities, times the arm was chosen, and sum of e (1 - e).
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
    """Quadratic form of a vector in the inverse of its covariance.

    Parameters
    ----------
    vector : ndarray, shape (k,)
        What has mean 0 under the null.
    covariance : ndarray, shape (k, k)
        Its covariance; combinations of the standardised entries with less than a thousandth of the largest
        variance are left out: such small rests are far from normal.

    Returns
    -------
    ChiSquare
        Degrees of freedom: the combinations that are left.

    Examples
    --------
    >>> found = chi_square(np.array([3.0, -3.0]), np.array([[2.0, -2.0], [-2.0, 2.0]]))
    >>> round(found.statistic, 9), found.df
    (4.5, 1)
    """
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

    Parameters
    ----------
    counts : ndarray, shape (K,)
        Times each arm was chosen.
    expected : ndarray, shape (K,)
        Sum of its propensities over the rounds.
    products : ndarray, shape (K, K)
        Sum of e e' over the rounds, e the row of propensities.

    Returns
    -------
    ChiSquare
        M' V^+ M with M the difference and V = diag(expected) - products, the predictable covariance of M.

    Notes
    -----
    With the same propensities in all rounds this is Pearson's statistic, sum (count - expected)^2 / expected,
    with K - 1 degrees of freedom.

    Examples
    --------
    >>> share = np.array([0.5, 0.25, 0.25])
    >>> test = count_test(np.array([60.0, 20.0, 20.0]), 100 * share, 100 * np.outer(share, share))
    >>> round(test.statistic, 6), test.df
    (4.0, 2)
    """
    return chi_square(counts - expected, np.diag(expected) - products)


def calibration_bins(
    chosen: FloatArray, propensity: FloatArray, least: float = LEAST_VARIANCE
) -> Bins | None:
    """Choices of an arm against its propensities, by bins of the propensity.

    Parameters
    ----------
    chosen : ndarray, shape (T,)
        1 where the arm was chosen, else 0.
    propensity : ndarray, shape (T,)
        Its propensity in each round.
    least : float
        Least sum of e (1 - e) of a bin.

    Returns
    -------
    Bins or None
        From the lowest on, each bin takes in the next ones until its variance is large enough; what is left
        at the end joins the last. None where all rounds together are not enough.

    Examples
    --------
    >>> chosen, propensity = np.tile([1.0, 0.0], 50), np.tile([0.3, 0.7], 50)
    >>> bins = calibration_bins(chosen, propensity)
    >>> bins.expected.round(6).tolist(), bins.observed.tolist(), bins.z.round(2).tolist()
    ([15.0, 35.0], [50.0, 0.0], [10.8, -10.8])
    """
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
    """Test of all bins of several arms together.

    Parameters
    ----------
    propensities : ndarray, shape (T, K)
        Of every arm.
    bins : list of Bins
        Of k arms.
    codes : ndarray of int64, shape (k,)
        The arms.

    Returns
    -------
    ChiSquare
        Bins of one arm have no rounds in common, and so no covariance; those of arms a and b have minus the
        sum of e(a) e(b) over the rounds in common.
    """
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

    Parameters
    ----------
    chosen : ndarray, shape (T, k)
        Indicators of the arms.
    propensity : ndarray, shape (T,)
        Propensity of the chosen arm.

    Returns
    -------
    ndarray, shape (T, k)
        Indicator over propensity, minus 1: of mean 0 given the past where the arm could be chosen.
    """
    return np.asarray(chosen / propensity[:, None] - 1.0, dtype=np.float64)


def log_wealth(action: IntArray, propensities: FloatArray, prior: float = _PRIOR) -> FloatArray:
    """Evidence against the propensities after each round: a test martingale.

    Parameters
    ----------
    action : ndarray of int64, shape (T,)
        Arm codes.
    propensities : ndarray, shape (T, K)
        Of every arm.
    prior : float
        Choices and expected choices of each arm that count as seen at the start.

    Returns
    -------
    ndarray, shape (T,)
        Natural log of the product of q(A) / e(A), with q proportional to e (N + prior) / (E + prior) from
        the arm's choices N and the sum E of its propensities in earlier rounds.

    Notes
    -----
    Where e are the probabilities of the choices given the past, each factor has mean 1 given the past,
    whatever the design. By Ville's inequality the product ever reaches 1 / alpha with probability at most
    alpha: 1 over its maximum is a p-value at any round, and exact.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> propensities = np.full((500, 2), 0.5)
    >>> right = log_wealth(rng.integers(0, 2, 500), propensities).max()
    >>> wrong = log_wealth((rng.random(500) < 0.3).astype(np.int64), propensities).max()
    >>> bool(right < 3.0), bool(wrong > 10.0)
    (True, True)
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
