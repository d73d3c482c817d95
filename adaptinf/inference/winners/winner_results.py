"""Results about the best of several estimates.

References
----------
Hsu (1984), "Constrained simultaneous confidence intervals for multiple comparisons with the best". Edwards,
Hsu (1983), "Multiple comparisons with the best treatment" (unequal variances). Dunnett (1955), "A multiple
comparison procedure for comparing several treatments with a control".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import special
from scipy.optimize import brentq

from adaptinf.claims.arms.winners import TOO_RARE
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.student_sums import even_directions, radial_tail, root_of
from adaptinf.inference.results import Results
from adaptinf.inference.winners.projected import ProjectedLaw
from adaptinf.parameters import check_alpha
from adaptinf.texts import level_text
from adaptinf.typing import BoolArray, FloatArray

_GROUP = 32
"""Number of directions with nearly the same largest lead that are merged; a power of 2."""


def compared_with_best(
    x: FloatArray, sigma: FloatArray, alpha: float, df: float = math.inf
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """For each mean: interval for its lead over the best other, p-value for being best, and possible best.

    Shapes: x (k,), sigma (k, k); returns (k, 2), (k,) and (k,).
    """
    size = x.size
    errors = difference_errors(sigma)
    tails = lead_tails(sigma, errors, df)
    leads = (x[None, :] - x[:, None]) / errors  # Entry (i, j) is the lead of arm j over arm i.
    np.fill_diagonal(leads, -math.inf)
    ahead = leads.max(axis=1)
    p = np.array([tail(lead) for tail, lead in zip(tails, ahead, strict=True)])
    limits = np.array([critical_lead(tail, alpha, size, df) for tail in tails])
    kept = ahead < limits
    highs, lows = np.empty(size), np.empty(size)
    for arm in range(size):
        others = np.arange(size) != arm
        gap = x[arm] - x[others]
        highs[arm] = max(0.0, float(np.min(gap + limits[arm] * errors[arm, others])))
        rivals = others & kept
        own = x[arm] - x[rivals] - limits[rivals] * errors[arm, rivals]
        lows[arm] = min(0.0, float(np.min(own, initial=0.0)))
    return np.column_stack((lows, highs)), p, kept


def difference_errors(sigma: FloatArray) -> FloatArray:
    """Standard errors of all differences, with 1 on the diagonal; sigma (k, k), returns (k, k)."""
    variances = np.diagonal(sigma)
    squares = variances[:, None] + variances[None, :] - 2.0 * sigma
    np.fill_diagonal(squares, 1.0)
    return np.sqrt(np.maximum(squares, 0.0))


def lead_tails(sigma: FloatArray, errors: FloatArray, df: float) -> list[Callable[[float], float]]:
    """For each arm, the probability under equal means that another arm's lead exceeds a limit.

    Leads are in standard errors; the probability is 1 for limits that are not positive. Shapes: sigma and
    errors (k, k).
    """
    size = len(sigma)
    if size == 2:  # With one rival there is a single t statistic, so nothing has to be averaged.
        return [lambda limit: _single(limit, df)] * 2
    factor = root_of(sigma)
    largest: list[list[FloatArray]] = [[] for _ in range(size)]
    for directions in even_directions(factor.shape[1], size):
        ends = factor @ directions.T  # One row per arm: maxima over a short first axis are fast.
        for arm in range(size):
            # An arm's lead over itself is 0, so the maximum is not negative and its square keeps the order.
            leads = (ends - ends[arm]) / errors[arm][:, None]
            largest[arm].append(np.square(leads.max(axis=0)))
    groups = [np.sort(np.concatenate(parts)).reshape(-1, _GROUP) for parts in largest]
    squares = [near.mean(axis=1) for near in groups]

    def tail_of(arm: int) -> Callable[[float], float]:
        def tail(limit: float) -> float:
            if limit <= 0.0:
                return 1.0
            single = _single(limit, df)
            found = radial_tail(limit, squares[arm], factor.shape[1], df)
            return min(max(found, single), (size - 1) * single)

        return tail

    return [tail_of(arm) for arm in range(size)]


def critical_lead(tail: Callable[[float], float], alpha: float, size: int, df: float) -> float:
    """The limit that the largest lead of another arm exceeds with probability alpha."""
    share = alpha / max(1, size - 1)
    most = -float(special.ndtri(share) if math.isinf(df) else special.stdtrit(df, share))
    return float(brentq(lambda limit: tail(limit) - alpha, 1e-9, most * (1.0 + 1e-9), xtol=1e-10))


def _single(limit: float, df: float) -> float:
    """Probability that a single lead exceeds a limit; 1 if the limit is not positive."""
    if limit <= 0.0:
        return 1.0
    return float(special.ndtr(-limit) if math.isinf(df) else special.stdtr(df, -limit))


@dataclass(frozen=True, kw_only=True)
class WinnerInterval:
    """The best of several estimates, with an interval that accounts for the selection.

    Attributes
    ----------
    winner : label
        The label of the winner, or its position.
    against : label or None
        The arm with which the winner is compared; None if the results are for the winner's own mean.
    estimate, std_error : float
        The estimate of the winner's mean, or of the difference, which is too high on average because of the
        selection.
    median_unbiased : float
        Estimate that is median-unbiased given which arm won.
    low, high : float
        Limits of the interval.
    naive : (float, float)
        The usual interval, which ignores the selection.
    method : {"hybrid", "conditional", "projection"}
        The method by which the interval was computed.
    alpha : float
        One minus the nominal confidence level.
    note : str
        Information needed to interpret the interval; may be empty.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.winner_interval([2.0, 1.9], [[1.0, 0.0], [0.0, 1.0]])
    >>> found.winner, round(found.low, 2), round(found.high, 2)
    (0, -1.02, 3.12)
    """

    winner: Any
    estimate: float
    std_error: float
    median_unbiased: float
    low: float
    high: float
    naive: tuple[float, float]
    method: str
    alpha: float
    note: str = ""
    against: Any = None

    def __str__(self) -> str:
        level = level_text(self.alpha)
        lines = [
            f"Winner: {self.winner!r}" + ("" if self.against is None else f", against {self.against!r}"),
            f"  estimate            {self.estimate:.6g} (standard error {self.std_error:.4g})",
            f"  median-unbiased     {self.median_unbiased:.6g}",
            f"  {level + ' interval':<19} {self.low:.6g} to {self.high:.6g} ({self.method})",
            f"  without selection   {self.naive[0]:.6g} to {self.naive[1]:.6g}",
        ]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class WinnerResults(Results):
    """Results for the mean of the best arm, or for its difference from another arm's mean.

    Parameters
    ----------
    winner : label
        The arm with the highest estimate.
    against : label or None
        The arm with which the winner is compared.
    means : Results
        The estimates of all arms, among which the winner was selected.
    **others
        As in `Results`.
    """

    winner: Any
    against: Any = None
    means: Results
    _picture: ClassVar[str] = "winner"

    @property
    def _chosen_from(self) -> Results:
        return self.means

    def best_arms(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return the arms that may be the best: a set that contains the best with probability 1 - alpha.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5.

        Returns
        -------
        DataFrame
            One row per arm. ``low`` and ``high`` are limits of a simultaneous interval for the arm's mean
            minus the best of the other means. ``p_value`` tests the hypothesis that no other arm is better.
            ``in_set`` states whether this hypothesis is not rejected at alpha.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        InvalidForLog
            If the estimates are not valid for the log, or if the difference between two arms has no variance.

        Notes
        -----
        An arm is excluded if another arm's lead over it exceeds the critical value for the largest such lead
        among equal arms. These are one-sided Dunnett tests with each arm as the control in turn, based on the
        joint covariance. The tests use the normal distribution or, if the estimates have Student's
        distribution, t with the smallest degrees of freedom. No further multiplicity correction is needed,
        because only the test of the best arm can be wrong. With equal variances, this is Hsu's multiple
        comparison with the best.

        References
        ----------
        Hsu (1984), "Constrained simultaneous confidence intervals for multiple comparisons with the best".
        Edwards, Hsu (1983), "Multiple comparisons with the best treatment".

        Examples
        --------
        >>> import adaptinf as ai
        >>> arms = ai.environments.BernoulliArms([0.2, 0.32, 0.35])
        >>> log = ai.designs.EpsilonGreedy(exploration=0.5).run(arms, horizon=3_000, rng=0)
        >>> found = ai.Winner(log).fit().best_arms()
        >>> found.index[found["in_set"]].tolist()
        [1, 2]
        """
        check_alpha("best_arms", alpha)
        means = self.means
        if means.validity == "not valid":
            raise InvalidForLog("best_arms", f"{means.estimator} is not valid for the log", ['fit("aipw")'])
        if isinstance(self.reference, ProjectedLaw) and self.reference.exact:
            raise InvalidForLog(
                "best_arms",
                TOO_RARE(),
                ["the exact intervals for the arm means", "arms=[...] with only the other arms"],
            )
        sigma = np.asarray(means.covariance)
        if not (difference_errors(sigma) > 1e-7 * math.sqrt(float(np.diagonal(sigma).max()))).all():
            raise InvalidForLog(
                "best_arms",
                "the difference between two arms has zero estimated variance",
                ["Winner(arms=[...]) without one of these arms"],
            )
        freedom = means._freedom
        df = math.inf if freedom is None else float(freedom.min())
        limits, p, kept = compared_with_best(means.estimate, sigma, alpha, df)
        columns = {"estimate": means.estimate, "low": limits[:, 0], "high": limits[:, 1]}
        labels = pd.Index([estimand.arm for estimand in means.estimands], name="arm")
        return pd.DataFrame({**columns, "p_value": p, "in_set": kept}, index=labels)
