"""What is said of the best of several estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.arms.winners import TOO_RARE
from adaptinf.errors import InvalidForLog
from adaptinf.inference.results import Results
from adaptinf.inference.winners.best import compared_with_best, difference_errors
from adaptinf.inference.winners.exact import ProjectedLaw
from adaptinf.parameters import check_alpha


@dataclass(frozen=True, kw_only=True)
class WinnerInterval:
    """The best of several estimates, with an interval that allows for its having been picked.

    Attributes
    ----------
    winner : label
        Which one it is: its label, or its position.
    against : label or None
        The one that it is compared with; None where the numbers are of the winner itself.
    estimate, std_error : float
        What was estimated for it, or for the difference; too high on average, as it was picked for that.
    median_unbiased : float
        Estimate that is too high as often as too low, given which one won.
    low, high : float
        Limits of the interval.
    naive : (float, float)
        The usual interval, which takes no notice of the choice.
    method : {"hybrid", "conditional", "projection"}
        How it was made.
    alpha : float
        One minus the nominal level.
    note : str
        What to know of it; empty where there is nothing.

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
        level = f"{100.0 * (1.0 - self.alpha):g}%"
        lines = [
            f"Winner: {self.winner!r}" + ("" if self.against is None else f", against {self.against!r}"),
            f"  estimate            {self.estimate:.6g} (standard error {self.std_error:.4g})",
            f"  median-unbiased     {self.median_unbiased:.6g}",
            f"  {level + ' interval':<19} {self.low:.6g} to {self.high:.6g} ({self.method})",
            f"  without the choice  {self.naive[0]:.6g} to {self.naive[1]:.6g}",
        ]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class WinnerResults(Results):
    """The mean of the best arm, or its difference from another.

    Parameters
    ----------
    winner : label
        Which arm it is.
    against : label or None
        The arm that it is compared with.
    means : Results
        The estimates of all arms, by which it won.
    **others
        As for `Results`.
    """

    winner: Any
    against: Any = None
    means: Results

    def best_arms(self, alpha: float = 0.05) -> pd.DataFrame:
        """The arms that may be the best: a set that holds it with probability 1 - alpha.

        Parameters
        ----------
        alpha : float
            One minus the level, between 0 and 0.5.

        Returns
        -------
        DataFrame
            One row per arm. ``low`` and ``high``: simultaneous intervals of its mean less the best of the
            others'. ``p_value``: of the hypothesis that no other arm is better. ``in_set``: whether that is
            not rejected at alpha.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        InvalidForLog
            If the estimates are not valid for the log, or two arms' difference has no variance.

        Notes
        -----
        An arm is left out where another one's lead over it is above the critical value of the largest of such
        leads among equal arms: one-sided Dunnett tests with each arm as the control in turn, by the joint
        covariance, normal or, where the estimates have Student's law, t with the fewest degrees of freedom.
        No multiplicity is due beyond that, as only the test of the best arm can be wrong. With equal
        variances it is Hsu's multiple comparison with the best.

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
        if isinstance(self.reference, ProjectedLaw):
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
