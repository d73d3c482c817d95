"""Tests and intervals of what is known only to lie between two ends, such as means with missing rewards.

References
----------
Manski (1990), "Nonparametric bounds on treatment effects". Horowitz, Manski (2000), "Nonparametric analysis
of randomized experiments with missing covariate and outcome data".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.inference.distributions.base import Reference
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class EndsReference:
    """Two-sided tests and intervals that hold wherever between its ends the truth is.

    The interval goes from the lower limit of the lowest estimate to the upper limit of the highest one: it
    covers everything between the ends with at least its level, as each limit fails with half of what is left.
    A null between the two estimates has the p-value 1, another one that of the nearer estimate.

    Shapes: lowest, highest, and their standard errors (k,).
    """

    lowest: FloatArray
    highest: FloatArray
    lowest_error: FloatArray
    highest_error: FloatArray
    low: Reference
    high: Reference
    normal = uses_std_error = False

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"{self.low.name} at both ends"

    @property
    def exact(self) -> bool:
        """Whether the p-values hold in finite samples."""
        return self.low.exact and self.high.exact

    @property
    def statistic(self) -> str:
        """Letter of the statistic in tables."""
        return self.low.statistic

    def statistics(self, null: float) -> FloatArray:
        """Distances of the nearer end from the null in standard errors, 0 between the ends; shape (k,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            below = (self.lowest - null) / self.lowest_error
            above = (self.highest - null) / self.highest_error
        return np.where(null < self.lowest, below, np.where(null > self.highest, above, 0.0))

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        low, high = self.low.log_pvalues(null), self.high.log_pvalues(null)
        within = np.where(np.isnan(low) | np.isnan(high), np.nan, 0.0)
        return np.where(null < self.lowest, low, np.where(null > self.highest, high, within))

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.column_stack((self.low.interval(log_alpha)[:, 0], self.high.interval(log_alpha)[:, 1]))
