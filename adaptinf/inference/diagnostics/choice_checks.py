"""Martingale tests of whether arms were chosen with the logged propensities.

References
----------
Brown (1971), "Martingale central limit theorems". Pearson (1900), "On the criterion that a given system of
deviations is such that it can be reasonably supposed to have arisen from random sampling". Lindon, Malek
(2022), "Anytime-valid inference for multinomial count data". Ville (1939), "Étude critique de la notion de
collectif".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.claims import diagnosis as claims
from adaptinf.claims import propensities
from adaptinf.inference.diagnostics.accumulators import bin_products, bin_sums, wealth_path
from adaptinf.inference.diagnostics.diagnosis_results import Check
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.sums import Sums
from adaptinf.typing import BoolArray, FloatArray, IntArray

EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Boundaries of the bins of propensities, inside (0, 1)."""
LEAST_VARIANCE = 10.0
"""Adjacent bins are merged until their count has this variance; otherwise, it would be far from normal."""
# The prior counts as this many rounds: with a smaller one, the first bets would be on noise, and with a
# larger one the test would learn slowly.
PRIOR = 10.0
# Counts that add up to a constant are linearly dependent; eigenvalues below this share of the largest one
# show it.
_SPAN = 1e-3
_ROWS = 1 << 16
"""Number of rounds that are examined at a time."""
# The first two decimals of a propensity give the bin at which the search for its bin starts, which makes it
# fast.
_CELLS = np.searchsorted(EDGES, np.arange(101) / 100.0)


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A chi-squared statistic with its degrees of freedom and its p-value."""

    statistic: float
    df: int

    @property
    def log_pvalue(self) -> float:
        """Natural logarithm of the p-value; NaN if there are no degrees of freedom."""
        if self.df == 0 or math.isnan(self.statistic):
            return math.nan
        with np.errstate(divide="ignore"):
            return float(np.log(special.chdtrc(self.df, self.statistic)))


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Choices of an arm compared with its propensities, by bins of the propensity.

    Shapes: merged (E + 1,); low, high, rounds, expected, observed, variance (J,). `merged` is the bin of each
    piece into which `EDGES` divide (0, 1).
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
        """Standardised differences between observed and expected choices, shape (J,)."""
        return np.asarray((self.observed - self.expected) / np.sqrt(self.variance), dtype=np.float64)


def chi_square(vector: FloatArray, covariance: FloatArray) -> ChiSquare:
    """Quadratic form of a vector with the inverse of its covariance; vector (k,), covariance (k, k)."""
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
    """Test of arm counts against the propensities (sample ratio mismatch).

    Shapes: counts (K,), expected (K,), products (K, K). If propensities are the same in all rounds, the
    statistic is Pearson's, sum (count - expected)^2 / expected, with K - 1 degrees of freedom.
    """
    return chi_square(counts - expected, np.diag(expected) - products)


def calibration_bins(
    action: IntArray, propensities: FloatArray, least: float = LEAST_VARIANCE
) -> list[Bins | None]:
    """Choices of each arm compared with its propensities, by bins; None for arms with too few choices.

    Shapes: action (T,), propensities (T, K).
    """
    n_arms = propensities.shape[1]
    sums = np.zeros((n_arms, len(EDGES) + 1, 4))
    bin_sums(np.ascontiguousarray(action), np.ascontiguousarray(propensities), np.array(EDGES), _CELLS, sums)
    return [merged_bins(own, least) for own in sums]


def merged_bins(sums: FloatArray, least: float = LEAST_VARIANCE) -> Bins | None:
    """Merge adjacent bins until each has enough variance; None if all of them together have too little.

    `sums` has shape (E + 1, 4). For each piece of (0, 1), it contains the number of rounds, and the sums of
    propensities, choices and squared propensities.
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
    """Joint test for all bins of several arms; propensities (T, K), codes (k,)."""
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
    """Sums over rounds of 1{A = a} / e - 1, for use if only the chosen arms' propensities are known.

    Shapes: action (T,), propensity (T,), possible (T, K), by default all arms; returns the sums (K,), and the
    sums of products of their terms (K, K). In each round, the term is 1 / e - 1 for the chosen arm and -1 for
    every other possible arm.
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
    """The same from each arm's count and its sums of 1 / e - 1 and of the squares; all shapes (K,)."""
    products = rounds - count[:, None] - count[None, :] - total[:, None] - total[None, :]
    np.fill_diagonal(products, squares + rounds - count)
    return total - (rounds - count), products


def log_wealth(action: IntArray, propensities: FloatArray, prior: float = PRIOR) -> FloatArray:
    """Log of a test martingale, the evidence against the propensities after each round.

    Shapes: action (T,), propensities (T, K); returns (T,). If the propensities are the probabilities of the
    choices given the past, each factor has mean 1 given the past, for any design. By Ville's inequality, the
    probability that the product ever reaches 1 / alpha is at most alpha, so 1 over its maximum is an exact
    p-value at any round.
    """
    path = np.zeros(len(action))
    _bet(action, propensities, prior, path)
    return path


def largest_log_wealth(action: IntArray, propensities: FloatArray, prior: float = PRIOR) -> float:
    """The maximum of `log_wealth`, at least 0; propensities (T, K), or (1, K) if they are fixed."""
    return _bet(action, propensities, prior, np.zeros(0))


def _bet(action: IntArray, propensities: FloatArray, prior: float, path: FloatArray) -> float:
    seen, due = np.full((2, propensities.shape[1]), prior)
    every = np.ascontiguousarray(propensities)
    return float(wealth_path(np.ascontiguousarray(action), every, seen, due, path))


_LEAST_SPREAD = 5.0
"""If an arm's count has a smaller variance, the statistic is not approximately chi-squared."""
CALIBRATION, RATIO, ANYTIME = "propensity calibration", "sample ratio", "sample ratio, anytime"


def choice_checks(
    log: AdaptiveLog, every: FloatArray | None, shares: FloatArray | None, tables: dict[str, pd.DataFrame]
) -> list[Check]:
    """Checks of a log's choices; every (T, K) contains propensities, shares (K,) a declared allocation."""
    return [*_calibration(log, every, tables), *_sample_ratio(log, every, shares)]


def every_propensity(log: AdaptiveLog) -> FloatArray | None:
    """Propensities of all arms; if there are two arms, they follow from that of the chosen arm."""
    arrays = log.arrays
    if arrays.propensities is not None or arrays.propensity is None:
        return arrays.propensities
    if log.n_arms > 2:
        return None
    if log.n_arms == 1:
        return arrays.propensity[:, None]
    first = np.where(arrays.action == 0, arrays.propensity, 1.0 - arrays.propensity)
    return np.stack([first, 1.0 - first], axis=1)


def no_calibration(log: AdaptiveLog, every: FloatArray | None) -> str:
    """The reason why choices cannot be checked against propensities; empty if they can."""
    known = log.arrays.propensity if every is None else every
    if known is None:
        return propensities.NONE()
    if log.propensity_status == "estimated":
        return claims.CIRCULAR()
    parts = (known[start : start + _ROWS] for start in range(0, len(known), _ROWS))
    return "" if any(((part > 0.0) & (part < 1.0)).any() for part in parts) else claims.CERTAIN()


def _calibration(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    reason = no_calibration(log, every)
    if reason:
        return [Check(CALIBRATION, "all arms", claims=(reason,))]
    if every is None:
        own, known = log.arrays.propensity, profile_of(log).partial_propensities
        if own is None:
            return []
        possible = None if known is None else known > 0.0
        return inverse_checks(log, *inverse_sums(log.arrays.action, own, log.n_arms, possible))
    bins = calibration_bins(log.arrays.action, every)
    return bin_checks(log, bins, lambda found, codes: calibration_joint(every, found, codes), tables)


def bin_checks(
    log: AdaptiveLog | Sums,
    bins: list[Bins | None],
    joint: Callable[[list[Bins], IntArray], ChiSquare | str],
    tables: dict[str, pd.DataFrame],
) -> list[Check]:
    """One row for each arm, based on its bins, and one for all arms, based on the result of `joint`."""
    checks, found, codes = [], [], []
    for code, own in enumerate(bins):
        arm = str(log.arms[code])
        if own is None:
            checks.append(Check(CALIBRATION, arm, claims=(few_choices(),)))
            continue
        found.append(own)
        codes.append(code)
        test = chi_square(own.observed - own.expected, np.diag(own.variance))
        measure = f"chi2({test.df}), bins"
        row = Check(CALIBRATION, arm, measure, test.statistic, test.log_pvalue, "", _not_trusted())
        checks.append(row)
    if found:
        tables["calibration"] = _bin_table(log, found, codes)
    if len(found) > 1:
        together = joint(found, np.array(codes))
        if isinstance(together, str):
            return [*checks, Check(CALIBRATION, "all arms", claims=(together,))]
        figures = f"chi2({together.df}), bins", together.statistic, together.log_pvalue
        checks.append(Check(CALIBRATION, "all arms", *figures, "", _not_trusted()))
    return checks


def few_choices() -> str:
    """The statement that random choices are too few for a test of counts."""
    return claims.FEW_CHOICES(least=LEAST_VARIANCE)


def _not_trusted() -> tuple[str, ...]:
    """What a contradiction between choices and propensities means, and where to look for its cause."""
    return claims.NOT_TRUSTED(), claims.HOW_LOGGED()


def _bin_table(log: AdaptiveLog | Sums, found: list[Bins], codes: list[int]) -> pd.DataFrame:
    arms = [log.arms[code] for code, bins in zip(codes, found, strict=True) for _ in bins.rounds]
    names = ("low", "high", "rounds", "expected", "observed", "z")
    columns = {name: np.concatenate([getattr(bins, name) for bins in found]) for name in names}
    return pd.DataFrame({"arm": arms, **columns})


def inverse_checks(log: AdaptiveLog | Sums, total: FloatArray, covariance: FloatArray) -> list[Check]:
    """Rows on sums of inverse propensities, if the propensities of unchosen arms are unknown.

    Shapes: total (K,), covariance (K, K).
    """
    found = (*_not_trusted(), claims.EVERY_ARM_POSSIBLE())
    checks = []
    for code, arm in enumerate(log.arms):
        test = chi_square(total[[code]], covariance[[code]][:, [code]])
        z = float(total[code]) / math.sqrt(float(covariance[code, code])) if test.df else math.nan
        checks.append(Check(CALIBRATION, str(arm), "z, inverse", z, test.log_pvalue, "", found))
    test = chi_square(total, covariance)
    measure = f"chi2({test.df}), inverse"
    return [*checks, Check(CALIBRATION, "all arms", measure, test.statistic, test.log_pvalue, "", found)]


def _sample_ratio(log: AdaptiveLog, every: FloatArray | None, shares: FloatArray | None) -> list[Check]:
    whole = every if shares is None else shares[None, :]
    reason = "" if shares is not None else no_calibration(log, every)
    if not reason and whole is None:
        reason = claims.NEEDS_EVERY()
    if not reason and log.n_arms == 1:
        reason = claims.ONE_ARM()
    if reason or whole is None:
        return no_ratio(reason)
    counts = np.bincount(log.arrays.action, minlength=log.n_arms).astype(np.float64)
    wealth = largest_log_wealth(log.arrays.action, whole)
    return ratio_checks(counts, *_products(whole, log.n_rounds), wealth, declared=shares is not None)


def no_ratio(reason: str) -> list[Check]:
    """Rows that state why counts cannot be checked."""
    return [Check(name, "all arms", claims=(reason,)) for name in (RATIO, ANYTIME)]


def ratio_checks(
    counts: FloatArray, total: FloatArray, products: FloatArray, wealth: float, *, declared: bool
) -> list[Check]:
    """Rows that compare the arms' counts with sums of propensities.

    Shapes: counts, total (K,), products (K, K).
    """
    expected = "the declared allocation" if declared else "the propensities"
    found: list[str] = [claims.COUNTS_OFF(expected=expected), claims.LOST_ROUNDS()]
    anytime = Check(ANYTIME, "all arms", "log wealth", wealth, -wealth, "", tuple(found))
    test = count_test(counts, total, products)
    if not test.df:
        return [Check(RATIO, "all arms", claims=(few_choices(),)), anytime]
    if np.min((total - np.diag(products))[counts < counts.sum()], initial=np.inf) < _LEAST_SPREAD:
        found.append(claims.SEE_ANYTIME())
    figures = f"chi2({test.df})", test.statistic, test.log_pvalue
    return [Check(RATIO, "all arms", *figures, "", tuple(found)), anytime]


def _products(whole: FloatArray, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Sums of propensities and of their products over rounds; whole (T, K), or (1, K) if constant."""
    times = float(rounds) if len(whole) == 1 else 1.0
    return np.einsum("tk->k", whole) * times, (whole.T @ whole) * times
