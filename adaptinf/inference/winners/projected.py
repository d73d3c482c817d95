"""The winner's part of simultaneous intervals, for outcomes too rare or too skewed for normal estimates.

References
----------
Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the binomial".
Dunn (1961), "Multiple comparisons among means" (Bonferroni's inequality).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaptinf.inference.arms import Contrast
from adaptinf.inference.distributions.references import Reference
from adaptinf.inference.distributions.skewed import SkewedReference
from adaptinf.inference.results import Results
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.rare import SKEWED, without_interval
from adaptinf.inference.winners.contest import Contest
from adaptinf.inference.winners.winner_law import WinnerLaw
from adaptinf.log import AdaptiveLog
from adaptinf.sums import Sums
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedLaw:
    """Distribution of a single term at the simultaneous level of its family, as a `Reference`.

    `median` and `scale` are the estimate and its standard error, with the names that other distributions of
    winners use.
    """

    law: Reference
    place: int
    family: int
    median: float
    scale: float

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"simultaneous {self.law.name}"

    @property
    def exact(self) -> bool:
        """Whether the p-values hold in finite samples."""
        return self.law.exact

    @property
    def statistic(self) -> str:
        """Symbol of the statistic in tables."""
        return self.law.statistic

    normal, uses_std_error = False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Log of the p-value times the size of the family, shape (1,)."""
        single = self.law.log_pvalues(null)[self.place]
        return np.minimum(0.0, np.atleast_1d(single) + math.log(self.family))

    def interval(self, log_alpha: float) -> FloatArray:
        """Interval at level 1 - exp(log_alpha), shape (1, 2)."""
        every = self.law.interval(log_alpha - math.log(self.family))
        return np.asarray(every[self.place][None, :], dtype=np.float64)


def serves(profile: LogProfile, codes: IntArray, means: Results) -> bool:
    """Whether outcomes are too rare for normal estimates, and all intervals are based on counts."""
    rare = without_interval(profile.uncommon[codes])
    if not rare.any() or means.validity == "not valid":
        return False
    return means.reference.exact or bool(np.isfinite(means.reference.interval(math.log(0.05))).all())


def skewed(profile: LogProfile, means: Results, contest: Contest) -> bool:
    """Whether the estimates of the contest's arms are too skewed for a truncated normal distribution.

    Rewards are pooled over arms, because the standard error of an arm whose own rewards are not skewed by
    chance is too small. Among several arms, such an arm is likely to be selected, so the error of the normal
    approximation is larger than for an arm specified in advance.
    """
    if not isinstance(means.reference, SkewedReference):
        return False
    asked = [contest.won] if contest.against is None else [contest.won, contest.against]
    return bool(profile.squared_skewness > SKEWED * means.details["ess"][asked].min())


def projected_law(
    log: AdaptiveLog | Sums,
    means: Results,
    contest: Contest,
    arms: tuple[Any, ...],
    normal: WinnerLaw | None = None,
) -> ProjectedLaw:
    """The distribution of the winner's mean, or of its difference from another arm's mean.

    If a normal distribution given the selection is supplied, the estimate is median-unbiased, and lies within
    all intervals.
    """
    found, place = means, contest.won
    if contest.against is not None:
        pair = Contrast(log, treatment=arms[contest.won], control=arms[contest.against])
        found, place = pair.fit(means.estimator), 0
    own, scale = float(found.estimate[place]), float(found.std_error[place])
    law = ProjectedLaw(found.reference, place, contest.family, own, scale)
    if normal is None:
        return law
    low, high = law.interval(math.log(0.5))[0]
    return replace(law, median=float(np.clip(normal.median, low, high)))
