"""Tests and confidence sets for a ratio of two effects, valid however weak the denominator is.

References
----------
Anderson, Rubin (1949), "Estimation of the parameters of a single equation in a complete system of stochastic
equations". Fieller (1954), "Some problems in interval estimation".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from adaptinf.inference.distributions.tails import LOG_2, log_student_pvalue, student_quantile
from adaptinf.typing import FloatArray


def confidence_set(
    effect: float, received: float, covariance: FloatArray, quantile: float
) -> tuple[tuple[float, float], ...]:
    """Ratios b for which effect - b received is within `quantile` standard errors of 0, as intervals.

    The covariance of the two effects has shape (2, 2). The set is one interval if the denominator is far
    enough from 0; otherwise, it consists of two rays or is the whole line. It is empty if a number is
    unknown.
    """
    v_effect, v_both, v_received = covariance[0, 0], covariance[0, 1], covariance[1, 1]
    square = quantile**2
    # Fieller's set contains every ratio r with a r^2 - 2 b r + c <= 0.
    a = received**2 - square * v_received
    b = effect * received - square * v_both
    c = effect**2 - square * v_effect
    if not np.isfinite([a, b, c]).all():
        return ()
    root = b * b - a * c
    if a > 0.0:
        # The estimated ratio satisfies the inequality, so a negative discriminant is rounding error.
        half = math.sqrt(max(root, 0.0)) / a
        return ((b / a - half, b / a + half),)
    if a == 0.0:
        # If a = b = 0, Cauchy's inequality gives c <= 0, so every ratio satisfies the inequality.
        if b == 0.0:
            return ((-math.inf, math.inf),)
        edge = c / (2.0 * b)
        return ((edge, math.inf),) if b > 0.0 else ((-math.inf, edge),)
    if root <= 0.0:
        return ((-math.inf, math.inf),)
    half = math.sqrt(root) / -a
    return ((-math.inf, b / a - half), (b / a + half, math.inf))


@dataclass(frozen=True, slots=True, eq=False)
class AndersonRubinReference:
    """Tests for a ratio of two effects using the t distribution of effect - ratio * received.

    The distribution is asymptotic for the two effects, but not for their ratio, so the denominator may be 0.
    """

    effect: float
    received: float
    covariance: FloatArray
    df: float
    name: str = field(default="Anderson-Rubin t", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "t", False, False

    def statistics(self, null: float) -> FloatArray:
        """Distance of effect - null * received from 0, in standard errors; shape (1,)."""
        weights = np.array([1.0, -null])
        variance = float(weights @ self.covariance @ weights)
        size = math.sqrt(variance) if variance > 0.0 else math.nan
        return np.array([(self.effect - null * self.received) / size])

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (1,)."""
        return log_student_pvalue(self.statistics(null), np.array([self.df]))

    def confidence_set(self, log_alpha: float) -> tuple[tuple[float, float], ...]:
        """The ratios that are not rejected at level exp(log_alpha), as intervals in order."""
        quantile = float(np.ravel(student_quantile(log_alpha - LOG_2, np.array([self.df])))[0])
        return confidence_set(self.effect, self.received, self.covariance, quantile)

    def interval(self, log_alpha: float) -> FloatArray:
        """The smallest interval that contains the confidence set, shape (1, 2); it may be unbounded."""
        found = self.confidence_set(log_alpha)
        return np.array([[found[0][0], found[-1][1]]]) if found else np.full((1, 2), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class LogRatioReference:
    """Tests and intervals for a ratio of positive means, minus 1, by the t distribution of the log ratio.

    `error` is the standard error of the logarithm, by the delta method.
    """

    ratio: float
    error: float
    df: float
    name: str = field(default="t of the log ratio", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "t", False, False

    def statistics(self, null: float) -> FloatArray:
        """Distance of the log ratio from its null value, in standard errors; shape (1,)."""
        if null <= -1.0:
            return np.array([math.inf])
        return np.array([(math.log(self.ratio) - math.log1p(null)) / self.error])

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (1,)."""
        return log_student_pvalue(self.statistics(null), np.array([self.df]))

    def interval(self, log_alpha: float) -> FloatArray:
        """Interval at level 1 - exp(log_alpha), shape (1, 2)."""
        half = float(np.ravel(student_quantile(log_alpha - LOG_2, np.array([self.df])))[0]) * self.error
        return np.array([[self.ratio * math.exp(-half) - 1.0, self.ratio * math.exp(half) - 1.0]])
