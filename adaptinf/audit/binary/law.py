"""Law of the final counts of a two-arm binary trial: size, power, bias and tests at every theta.

References
----------
Baas, S., Jacko, P. and Villar, S. S. (2024). Exact statistical analysis for response-adaptive clinical
trials: a general and computationally tractable approach. arXiv:2407.01055.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.binary.bernstein import certified_maximum
from adaptinf.audit.binary.kernel import sum_by_total
from adaptinf.audit.binary.pvalues import (
    conditional_pvalue,
    outcome_place,
    rejection_region,
    unconditional_pvalue,
)
from adaptinf.audit.binary.states import (
    ExactBias,
    all_states,
    bias_moments,
    binomial_law,
    checked_thetas,
    log_factorials,
)
from adaptinf.audit.binary.statistics import (
    COUNTS,
    values_of,
)
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.audit.binary.results import ExactTest
    from adaptinf.log import AdaptiveLog

__all__ = ["ExactLaw"]


@dataclass(frozen=True, eq=False)
class ExactLaw:
    """Law of the final counts (n1, s1, n0, s0) of a two-arm trial with rewards 0 and 1, at every theta.

    Attributes
    ----------
    name : str
        The rule.
    rule : Design or callable
        As given.
    horizon : int
        T.
    weights : ndarray of shape ((T + 1)(T + 2)(T + 3) / 6,)
        Weight q of every state, blocks by n1, then by s1, then by s0: the probability of the counts of pulls
        given how many of each arm's rewards are successes. Read-only.

    Notes
    -----
    P(state) = q(state) Bin(s1; n1, theta1) Bin(s0; n0, theta0). This holds where rewards are independent with
    probabilities theta1 and theta0 that do not move in time, the trial has T rounds fixed in advance, and the
    arms were drawn by the very design given. **Drift breaks it**: where success rates change over time, even
    together, none of these numbers is right, and a randomisation test is the way out.

    Arm 1 is the second arm of a log or environment, arm 0 its first.
    """

    name: str
    rule: Any
    horizon: int
    weights: FloatArray

    def __repr__(self) -> str:
        return f"<ExactLaw: {self.name}, {self.horizon:,} rounds, {self.weights.size:,} states>"

    def states(self) -> Iterator[tuple[slice, IntArray, IntArray, IntArray, IntArray]]:
        """Blocks of states: where they stand in `weights`, and the counts n1, s1, n0 and s0 of each."""
        return all_states(self.horizon)

    def probability(self, n1: int, s1: int, n0: int, s0: int, theta1: float, theta0: float) -> float:
        """Probability of one outcome.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        theta1, theta0 : float
            Probabilities of success.

        Raises
        ------
        ParameterError
            If the counts do not fit, or a theta is not in [0, 1].
        """
        place = outcome_place("ExactLaw.probability", self.horizon, n1, s1, n0, s0)
        one, zero = checked_thetas("ExactLaw.probability", theta1, theta0)
        chance = binomial_law(one, n1)[:, s1] * binomial_law(zero, n0)[:, s0]
        return float(self.weights[place] * chance[0])

    def expectation(self, function: Callable[..., Any], theta1: Any, theta0: Any) -> FloatArray:
        """Expected value of a function of the final counts.

        Parameters
        ----------
        function : callable
            ``function(n1, s1, n0, s0)`` for int arrays of one shape, giving finite numbers.
        theta1, theta0 : float or array_like
            Probabilities of success, of one shape or broadcast to one.

        Returns
        -------
        ndarray
            Of the shape of the thetas.

        Raises
        ------
        ParameterError
            If a theta is not in [0, 1], or the function cannot be called with arrays of counts.
        """
        blocks = (
            (place, values_of("ExactLaw.expectation", function, COUNTS, *counts))
            for place, *counts in self.states()
        )
        return np.asarray(self._sum(blocks, "ExactLaw.expectation", theta1, theta0)[0])

    def expected_pulls(self, theta1: Any, theta0: Any) -> tuple[FloatArray, FloatArray]:
        """Expected pulls of arm 1 and of arm 0.

        Parameters
        ----------
        theta1, theta0 : float or array_like
            Probabilities of success.

        Returns
        -------
        arm1, arm0 : ndarray
            Of the shape of the thetas.

        Raises
        ------
        ParameterError
            If a theta is not in [0, 1], or the shapes do not fit.

        Examples
        --------
        >>> from adaptinf.designs import Thompson
        >>> from adaptinf.audit.binary.two_arms import exact
        >>> one, zero = exact(Thompson(), 20).expected_pulls(0.6, 0.3)
        >>> round(float(one), 3), round(float(one + zero), 9)
        (14.033, 20.0)
        """
        one = self.expectation(lambda n1, s1, n0, s0: n1, theta1, theta0)
        return one, self.horizon - one

    def bias(self, theta1: Any, theta0: Any) -> ExactBias:
        """Bias of the sample means and of their difference.

        Parameters
        ----------
        theta1, theta0 : float or array_like
            Probabilities of success.

        Returns
        -------
        ExactBias
            NaN where an arm is never pulled.

        Raises
        ------
        ParameterError
            If a theta is not in [0, 1], or the shapes do not fit.
        """
        moments = bias_moments(self.horizon)
        one, zero, both, mean1, mean0, gap = self._sum(moments, "ExactLaw.bias", theta1, theta0)
        first, second = np.broadcast_arrays(np.asarray(theta1, float), np.asarray(theta0, float))
        with np.errstate(invalid="ignore", divide="ignore"):
            return ExactBias(
                mean1 / one - first,
                mean0 / zero - second,
                gap / both - (first - second),
                np.maximum(1.0 - one, 0.0),
                np.maximum(1.0 - zero, 0.0),
            )

    def region(self, test: str | Callable[..., Any], alpha: float = 0.05) -> BoolArray:
        """States in which a test rejects equal arms.

        Parameters
        ----------
        test : {"wald", "score", "fisher", "conditional", "unconditional"} or callable
            The unpooled Wald and the pooled score test with normal cut-offs, Fisher's test of the final table
            (none of which knows of the design), the conditional and the unconditional exact Wald test; or
            ``test(n1, s1, n0, s0)``, a p-value for int arrays of one shape.
        alpha : float
            Reject where the p-value is at most alpha, in (0, 0.5).

        Returns
        -------
        ndarray of bool, of the shape of `weights`

        Raises
        ------
        ParameterError
            If the test is unknown or gives no p-values, or alpha is not in (0, 0.5).
        """
        return rejection_region(self, "ExactLaw.region", test, alpha)

    def size(self, test: str | Callable[..., Any], theta: Any, alpha: float = 0.05) -> FloatArray:
        """Probability that a test rejects where both arms succeed with probability theta.

        Parameters
        ----------
        test : str or callable
            See `region`.
        theta : float or array_like
            Common probability of success.
        alpha : float
            Level.

        Returns
        -------
        ndarray of the shape of theta

        Raises
        ------
        ParameterError
            If the test is unknown or gives no p-values, alpha is not in (0, 0.5), or a theta is not in
            [0, 1].

        Examples
        --------
        >>> from adaptinf.designs import Thompson
        >>> from adaptinf.audit.binary.two_arms import exact
        >>> law = exact(Thompson(), 50)
        >>> law.size("wald", [0.1, 0.5]).round(4), law.size("conditional", [0.1, 0.5]).round(4)
        (array([0.2263, 0.1634]), array([0.0377, 0.0301]))
        """
        (grid,) = checked_thetas("ExactLaw.size", theta)
        chosen = rejection_region(self, "ExactLaw.size", test, alpha)
        found = binomial_law(grid, self.horizon) @ self.by_total(chosen)
        return np.asarray(found.reshape(np.shape(theta)))

    def max_size(self, test: str | Callable[..., Any], alpha: float = 0.05) -> tuple[float, float]:
        """Largest size over theta.

        Parameters
        ----------
        test, alpha
            As in `size`.

        Returns
        -------
        (float, float)
            A theta, and an upper bound of all sizes that is at most 1e-9 above the size there.

        Raises
        ------
        ParameterError
            If the test is unknown or gives no p-values, or alpha is not in (0, 0.5).
        """
        return certified_maximum(self.by_total(rejection_region(self, "ExactLaw.max_size", test, alpha)))

    def power(
        self, test: str | Callable[..., Any], theta1: Any, theta0: Any, alpha: float = 0.05
    ) -> FloatArray:
        """Probability that a test rejects.

        Parameters
        ----------
        test, alpha
            As in `size`.
        theta1, theta0 : float or array_like
            Probabilities of success.

        Returns
        -------
        ndarray of the shape of the thetas

        Raises
        ------
        ParameterError
            If the test is unknown or gives no p-values, alpha is not in (0, 0.5), or a theta is not in
            [0, 1].
        """
        chosen = rejection_region(self, "ExactLaw.power", test, alpha)
        blocks = ((place, chosen[place].astype(np.float64)) for place, *_ in self.states())
        return np.asarray(self._sum(blocks, "ExactLaw.power", theta1, theta0)[0])

    def by_total(self, chosen: BoolArray) -> FloatArray:
        """Probability of a set of states given the total number of successes, for equal arms.

        Parameters
        ----------
        chosen : ndarray of bool, of the shape of `weights`
            The set.

        Returns
        -------
        ndarray of shape (T + 1,)
            Entry S: given S successes in all; it does not depend on theta.
        """
        total = np.empty(self.horizon + 1)
        sum_by_total(
            self.weights, np.ascontiguousarray(chosen), log_factorials(self.horizon), total, self.horizon
        )
        return total

    def conditional_pvalue(
        self,
        n1: int,
        s1: int,
        n0: int,
        s0: int,
        statistic: Any = "wald",
        alternative: str = "two-sided",
        mid_p: bool = False,
    ) -> float:
        """P-value of the test given the total number of successes, which needs no theta.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        statistic : {"wald", "score", "difference"} or callable
            What orders the outcomes: ``statistic(n1, s1, n0, s0)`` for int arrays, large where arm 1
                is better.
        alternative : {"two-sided", "central", "greater", "less"}
            Two-sided: the probability of a statistic as large in absolute value. Central: twice the smaller
            of the one-sided p-values. Greater: arm 1 is better.
        mid_p : bool
            Count ties by half: the size is then no longer at most alpha, but closer to it.

        Returns
        -------
        float

        Raises
        ------
        ParameterError
            If the counts do not fit or cannot come about under the design, or the statistic or the
            alternative is unknown, or a value of the statistic is NaN.

        Notes
        -----
        With equal arms every sequence of S successes and T - S failures is as likely as any other, whatever
        theta is. So the law of the outcome given S is known, and P(p <= alpha) <= alpha at every theta.
        Statistics that differ by rounding (a share of 1e-9) are ties.

        Examples
        --------
        >>> from adaptinf.audit.binary.two_arms import exact
        >>> from adaptinf.designs import PlayTheWinner
        >>> law = exact(PlayTheWinner(), 12)
        >>> round(law.conditional_pvalue(11, 11, 1, 0, alternative="greater"), 6)
        0.019892
        """
        return conditional_pvalue(
            self, "ExactLaw.conditional_pvalue", (n1, s1, n0, s0), statistic, alternative, mid_p
        )

    def unconditional_pvalue(self, n1: int, s1: int, n0: int, s0: int, statistic: Any = "wald") -> float:
        """P-value of the test by a two-sided statistic at the theta that is worst for it.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        statistic : {"wald", "score", "difference"} or callable
            As in `conditional_pvalue`.

        Returns
        -------
        float
            An upper bound of the maximum over theta, at most 1e-9 above it.

        Raises
        ------
        ParameterError
            If the counts do not fit, the statistic is unknown, or a value of it is NaN.
        """
        return unconditional_pvalue(self, "ExactLaw.unconditional_pvalue", (n1, s1, n0, s0), statistic)

    def test(
        self,
        log: AdaptiveLog,
        *,
        statistic: Any = "wald",
        alternative: str = "two-sided",
        mid_p: bool = False,
    ) -> ExactTest:
        """Test the log of a trial under this law.

        Parameters
        ----------
        log : AdaptiveLog
            Of T rounds.
        statistic, alternative, mid_p
            As in `conditional_pvalue`.

        Returns
        -------
        ExactTest

        Raises
        ------
        InvalidForLog
            Where the log is not one that this law can describe.
        ParameterError
            If what is given is no log, or an option is out of range.
        """
        from adaptinf.audit.binary.results import exact_result

        return exact_result(self, log, statistic, alternative, mid_p)

    def _sum(
        self, blocks: Iterator[tuple[slice, FloatArray]], subject: str, theta1: Any, theta0: Any
    ) -> FloatArray:
        """Expected values of functions of the counts, from values by block; shape (f, *thetas)."""
        first, second = checked_thetas(subject, theta1, theta0)
        shape = np.broadcast_shapes(np.shape(theta1), np.shape(theta0))
        one, zero = np.broadcast_arrays(first.reshape(np.shape(theta1)), second.reshape(np.shape(theta0)))
        one, zero = one.ravel(), zero.ravel()
        total: Any = 0.0
        for pulls, (place, values) in enumerate(blocks):
            others = self.horizon - pulls
            terms = (self.weights[place] * values).reshape(-1, pulls + 1, others + 1)
            left, right = binomial_law(one, pulls), binomial_law(zero, others)
            total = total + ((left @ terms) * right).sum(axis=-1)
        return np.asarray(total.reshape(-1, *shape))
