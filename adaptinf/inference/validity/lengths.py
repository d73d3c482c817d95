"""Expected lengths of intervals for a log, from counts, propensities and the pooled mean and variance.

The rewards of single arms are not used, because choosing a method by an estimate would invalidate its
intervals. All lengths are for 95% intervals.

References
----------
Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the binomial".
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from adaptinf.typing import FloatArray, IntArray

LOG_ALPHA = math.log(0.05)
_MOST_ARMS = 64


def student_length(std_error: FloatArray, freedom: FloatArray | float) -> FloatArray:
    """Lengths of t intervals (k,), which are infinite without degrees of freedom; std_error, freedom (k,)."""
    known = np.asarray(freedom, dtype=np.float64) > 0.0
    quantile = special.stdtrit(np.where(known, freedom, 1.0), 1.0 - math.exp(LOG_ALPHA) / 2.0)
    return np.asarray(np.where(known, 2.0 * quantile * std_error, np.inf), dtype=np.float64)


def binomial_length(count: FloatArray, rate: float, log_alpha: float = LOG_ALPHA) -> FloatArray:
    """Lengths of exact binomial intervals at the expected number of successes; count (k,); returns (k,)."""
    tail = math.exp(log_alpha) / 2.0
    hits = count * rate
    low = special.betaincinv(np.maximum(hits, 1e-300), count - hits + 1.0, tail)
    high = special.betaincinv(hits + 1.0, np.maximum(count - hits, 1e-300), 1.0 - tail)
    return np.asarray(np.where(count > 0.0, high - low, np.inf), dtype=np.float64)


def typical(lengths: FloatArray, *, difference: bool = False) -> float:
    """One length for several arms: the mean of finite lengths, or that of a difference; lengths (k,)."""
    if difference:
        return float(np.sqrt(np.sum(lengths**2)))
    known = lengths[np.isfinite(lengths)]
    return float(known.mean()) if known.size else math.inf


def some_arms(counts: FloatArray, codes: IntArray, most: int = _MOST_ARMS) -> IntArray:
    """A selection of arms, evenly spaced in the order of their counts; counts (K,), codes (k,)."""
    if len(codes) <= most:
        return codes
    order = codes[np.argsort(counts[codes], kind="stable")]
    return order[np.linspace(0, len(codes) - 1, most).round().astype(np.int64)]


def weighted_errors(
    position: IntArray, propensity: FloatArray, weight: FloatArray, size: int, mean: float, std: float
) -> tuple[FloatArray, FloatArray]:
    """Standard errors of weighted means of inverse-propensity scores, and their degrees of freedom.

    Shapes: position, propensity, weight (n,), of the rounds that chose one of `size` arms; returns (size,).
    The sum over all rounds of any function g(e) is estimated by the sum of g(e)/e over the rounds that chose
    the arm, so the propensities of arms that were not chosen are not needed. `mean` is the part of the
    rewards' mean that remains in the scores, which is 0 for augmented scores. The degrees of freedom are (sum
    w)^2 / sum w^2 - 1 over the rounds that chose the arm, with w = weight^2 / propensity^2.
    """
    ratio = weight / propensity
    total, squares, centre, fourth = (
        np.bincount(position, weights=part, minlength=size).astype(np.float64)
        for part in (ratio, ratio**2, weight * ratio, ratio**4)
    )
    return errors_of_sums((total, squares, centre, fourth), mean, std)


def errors_of_sums(
    sums: tuple[FloatArray, FloatArray, FloatArray, FloatArray], mean: float, std: float
) -> tuple[FloatArray, FloatArray]:
    """Errors and degrees of freedom, shape (k,), from sums over rounds that chose an arm.

    With weights h and propensities e, the sums are those of h/e, h^2/e^2, h^2/e and h^4/e^4.
    """
    total, squares, centre, fourth = sums
    freedom = squares**2 / np.where(fourth > 0.0, fourth, np.inf) - 1.0
    variance = (std**2 + mean**2) * squares - mean**2 * centre
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(variance, 0.0)) / total
    return np.where(total > 0.0, error, np.inf), freedom


def combined_error(weight: FloatArray, std: float) -> float:
    """Standard error of a difference with combined weights, whose terms have variance std^2; weight (T,)."""
    return error_of_even_terms(float(weight.sum()), float(np.count_nonzero(weight)), std)


def error_of_even_terms(total: float, count: float, std: float) -> float:
    """Standard error of a sum of terms with variance std^2, divided by the sum of their weights."""
    return std * math.sqrt(count) / total if total > 0.0 else math.inf
