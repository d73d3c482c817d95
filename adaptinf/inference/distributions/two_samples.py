"""Differences between the means of two arms, with intervals that keep their level in small samples.

Intervals use Welch's t if rewards vary in both arms. For binary rewards with few successes or few failures in
an arm, they use the Agresti-Caffo adjustment, because the plain interval would be too short, and would have
length 0 for 0 out of n.

References
----------
Welch (1947), "The generalization of 'Student's' problem when several different population variances
are involved". Agresti, Caffo (2000), "Simple and effective confidence intervals for proportions and
differences of proportions result from adding two successes and two failures".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.inference.distributions.tails import LOG_2, log_student_pvalue, student_quantile
from adaptinf.parameters import check_alpha
from adaptinf.typing import BoolArray, FloatArray

FEW_EVENTS = 10
"""The Agresti-Caffo adjustment is used if an arm has fewer successes or fewer failures than this."""

# If all rewards are equal, their sum of squares about the mean is rounding error below this share of the raw
# one.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in means and its error distribution; adjusted differences are always possible values."""

    estimate: FloatArray
    center: FloatArray
    std_error: FloatArray
    df: FloatArray
    adjusted: BoolArray
    largest: float = 1.0


def welch(
    counts1: ArrayLike,
    means1: ArrayLike,
    variances1: ArrayLike,
    counts0: ArrayLike,
    means0: ArrayLike,
    variances0: ArrayLike,
) -> Difference:
    """Difference between two means with Welch's standard error and degrees of freedom."""
    n1, m1, v1, n0, m0, v0 = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (counts1, means1, variances1, counts0, means0, variances0))
    )
    estimate = np.where((n1 >= 1) & (n0 >= 1), m1 - m0, np.nan)
    enough = (n1 >= 2) & (n0 >= 2)
    part1 = np.where(enough, v1, 0.0) / np.maximum(n1, 2.0)
    part0 = np.where(enough, v0, 0.0) / np.maximum(n0, 2.0)
    usable = enough & (part1 + part0 > 0.0)
    total = np.where(usable, part1 + part0, 1.0)
    share1, share0 = part1 / total, part0 / total
    freedom = 1.0 / np.where(
        usable, share1**2 / np.maximum(n1 - 1.0, 1.0) + share0**2 / np.maximum(n0 - 1.0, 1.0), 1.0
    )
    return Difference(
        estimate=estimate,
        center=estimate,
        std_error=np.where(usable, np.sqrt(total), np.nan),
        df=np.where(usable, freedom, np.nan),
        adjusted=np.zeros(estimate.shape, dtype=bool),
    )


def difference_in_means(
    counts1: ArrayLike,
    sums1: ArrayLike,
    squares1: ArrayLike,
    counts0: ArrayLike,
    sums0: ArrayLike,
    squares0: ArrayLike,
) -> Difference:
    """Welch's difference computed from tallies.

    Given the counts, the difference is unbiased if the rounds were assigned with a constant probability. If
    rewards are far from 0, sums of squares lose precision, so subtract a constant from the rewards of both
    arms first. A variance below the rounding error of its tallies is treated as 0.
    """
    return welch(
        counts1,
        *_mean_and_variance(counts1, sums1, squares1),
        counts0,
        *_mean_and_variance(counts0, sums0, squares0),
    )


def _mean_and_variance(
    counts: ArrayLike, sums: ArrayLike, squares: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    n, total, square = (np.asarray(x, dtype=float) for x in (counts, sums, squares))
    mean = total / np.maximum(n, 1.0)
    centred = square - total * mean
    centred = np.where(centred > _ROUNDING * square, centred, 0.0)
    return mean, centred / np.maximum(n - 1.0, 1.0)


def agresti_caffo(
    counts1: ArrayLike,
    successes1: ArrayLike,
    counts0: ArrayLike,
    successes0: ArrayLike,
    step: float = 1.0,
) -> Difference:
    """Difference between two success rates after adding a success and a failure to each arm.

    For rewards with two other values, `step` is the larger minus the smaller.
    """
    n1, s1, n0, s0 = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (counts1, successes1, counts0, successes0))
    )
    # statsmodels' confint_proportions_2indep gives only limits, which may exceed 1, and its test has no log
    # p-value.
    some = (n1 >= 1) & (n0 >= 1)
    raw = s1 / np.maximum(n1, 1.0) - s0 / np.maximum(n0, 1.0)
    rate1, rate0 = (s1 + 1.0) / (n1 + 2.0), (s0 + 1.0) / (n0 + 2.0)
    variance = rate1 * (1.0 - rate1) / (n1 + 2.0) + rate0 * (1.0 - rate0) / (n0 + 2.0)
    return Difference(
        estimate=np.where(some, step * raw, np.nan),
        center=np.where(some, step * (rate1 - rate0), np.nan),
        std_error=np.where(some, step * np.sqrt(variance), np.nan),
        df=np.full(some.shape, np.inf),
        adjusted=some,
        largest=step,
    )


def few_events(
    counts1: ArrayLike, successes1: ArrayLike, counts0: ArrayLike, successes0: ArrayLike
) -> BoolArray:
    """Whether an arm has fewer than `FEW_EVENTS` successes or failures, shape (...,)."""
    events = [
        np.minimum(np.asarray(s, dtype=float), np.asarray(n, dtype=float) - np.asarray(s, dtype=float))
        for n, s in ((counts1, successes1), (counts0, successes0))
    ]
    return np.asarray(np.minimum(*events) < FEW_EVENTS)


def choose_difference(plain: Difference, adjusted: Difference, use_adjusted: BoolArray) -> Difference:
    """Choose between two differences, entry by entry."""
    return Difference(
        estimate=np.where(use_adjusted, adjusted.estimate, plain.estimate),
        center=np.where(use_adjusted, adjusted.center, plain.center),
        std_error=np.where(use_adjusted, adjusted.std_error, plain.std_error),
        df=np.where(use_adjusted, adjusted.df, plain.df),
        adjusted=np.where(use_adjusted, adjusted.adjusted, plain.adjusted),
        largest=adjusted.largest,
    )


def difference_intervals(
    counts: ArrayLike, sums: ArrayLike, squares: ArrayLike, *, binary: bool, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates and intervals for many replications at once."""
    check_alpha("difference_intervals", alpha)
    n, s, q = (np.asarray(x, dtype=float) for x in (counts, sums, squares))
    result = difference_in_means(n[..., 1], s[..., 1], q[..., 1], n[..., 0], s[..., 0], q[..., 0])
    if binary:
        arms = (n[..., 1], s[..., 1], n[..., 0], s[..., 0])
        result = choose_difference(result, agresti_caffo(*arms), few_events(*arms))
    freedom = np.where(np.isfinite(result.df), result.df, 1.0)
    quantile = np.where(
        np.isposinf(result.df), -special.ndtri(0.5 * alpha), -special.stdtrit(freedom, 0.5 * alpha)
    )
    return result.estimate, *_limits(result, quantile)


def _limits(difference: Difference, quantile: FloatArray) -> tuple[FloatArray, FloatArray]:
    half = quantile * difference.std_error
    bound = np.where(difference.adjusted, difference.largest, np.inf)
    low, high = difference.center - half, difference.center + half
    return np.clip(low, -bound, bound), np.clip(high, -bound, bound)


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceReference:
    """Tests and intervals for differences, each by Welch's t or the Agresti-Caffo adjustment.

    The p-value of the adjusted difference is normal, centred at the adjusted estimate. It is therefore at
    most alpha if and only if the interval excludes the null.
    """

    difference: Difference
    exact: bool = False
    normal, uses_std_error = False, True

    @property
    def name(self) -> str:
        """Name of the distribution, or of both if the terms use both."""
        adjusted = self.difference.adjusted
        if np.all(adjusted):
            return "Agresti-Caffo"
        return "Welch t or Agresti-Caffo" if np.any(adjusted) else "Welch t"

    @property
    def statistic(self) -> str:
        """Symbol of the statistic in tables; z if all terms are adjusted."""
        return "z" if np.all(self.difference.adjusted) else "t"

    def statistics(self, null: float) -> FloatArray:
        """Distances from the null in standard errors; the adjusted difference is used where it applies."""
        return np.asarray((self.difference.center - null) / self.difference.std_error, dtype=np.float64)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        difference = self.difference
        values = log_student_pvalue(self.statistics(null), difference.df)
        impossible = difference.adjusted & (abs(null) > difference.largest)
        values[np.isnan(difference.std_error)] = np.nan
        return np.where(impossible, -np.inf, values)

    def interval(self, log_alpha: float) -> FloatArray:
        """Limits at level ``1 - exp(log_alpha)``, shape (k, 2)."""
        quantile = student_quantile(log_alpha - LOG_2, self.difference.df)
        return np.stack(_limits(self.difference, quantile), axis=-1)
