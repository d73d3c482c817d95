"""The result of a trial that stopped: tests and intervals by stage-wise ordering."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adaptinf.inference.group_sequential.stagewise import Stopped
from adaptinf.inference.results.fit_results import Results
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class StagewiseReference:
    """Stage-wise ordering for one difference, which is measured from `origin`."""

    stopped: Stopped
    origin: float
    name: str = field(default="stage-wise ordering", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "z", False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithm of the two-sided p-value, shape (1,)."""
        above = self.stopped.tail(null - self.origin)
        with np.errstate(divide="ignore"):
            return np.minimum(0.0, np.log(2.0 * np.array([min(above, 1.0 - above)])))

    def interval(self, log_alpha: float) -> FloatArray:
        """Interval at level 1 - exp(log_alpha), shape (1, 2)."""
        return self.origin + np.array([self.stopped.interval(math.exp(log_alpha))])


COUNTS = "the exact distribution of counts"
"""Name of the reference distribution for constant success rates."""


@dataclass(frozen=True, slots=True, eq=False)
class RankReference:
    """An exact p-value for the difference `origin`, without an interval."""

    pvalue: float
    origin: float
    name: str = "re-randomisation"
    exact: bool = field(default=True, init=False)
    statistic, normal, uses_std_error = "z", False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithm of the p-value, shape (1,); NaN at other differences."""
        return np.array([math.log(self.pvalue) if null == self.origin else math.nan])

    def interval(self, log_alpha: float) -> FloatArray:
        """None: NaN, shape (1, 2)."""
        return np.full((1, 2), np.nan)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class StoppedResults(Results):
    """The differences that a plan estimates once it has stopped.

    Attributes
    ----------
    decision : str
        "reject", "futility" or "no rejection".
    rounds : int
        Rounds up to the look at which the trial stopped.
    rejected : tuple of labels
        Of several treatments, those whose null is rejected.

    Notes
    -----
    The estimate for one treatment is median-unbiased. P-values and intervals take all looks so far into
    account, so a test of one treatment at the plan's level rejects exactly when the plan did.
    """

    decision: str = ""
    rounds: int = 0
    rejected: tuple[Any, ...] = ()

    @property
    def at_any_length(self) -> bool:
        """Always true: the looks are accounted for."""
        return True

    def _law_said(self, alpha: float) -> list[str]:
        return []  # The notes of a plan already state how statistics are compared.
