"""Distribution of the final counts of a two-arm binary trial for every theta, and tests based on it.

References
----------
Baas, S., Jacko, P. and Villar, S. S. (2024). Exact statistical analysis for response-adaptive clinical
trials: a general and computationally tractable approach. arXiv:2407.01055.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.binary.count_recursion import sum_by_total
from adaptinf.audit.binary.count_states import (
    ALTERNATIVES,
    COUNTS,
    TIE,
    ExactBias,
    Statistic,
    all_states,
    bias_moments,
    binomial_law,
    certified_maximum,
    checked_thetas,
    conditional_pvalues,
    evidence,
    log_factorials,
    outcome_place,
    outcomes_given,
    pvalue_of,
    read_statistic,
    statistic_problems,
    tail_weights,
    unconditional_region,
    values_of,
)
from adaptinf.parameters import BOOLEAN, OneOf, check_alpha, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CountLaw:
    """Distribution of the final counts of a two-arm trial; the weights have shape (states,)."""

    name: str
    rule: Any
    horizon: int
    weights: FloatArray

    def __repr__(self) -> str:
        return f"<ExactLaw: {self.name}, {self.horizon:,} rounds, {self.weights.size:,} states>"

    def states(self) -> Iterator[tuple[slice, IntArray, IntArray, IntArray, IntArray]]:
        """Blocks of states: their positions in `weights`, and the counts n1, s1, n0 and s0 of each."""
        return all_states(self.horizon)

    def probability(self, n1: int, s1: int, n0: int, s0: int, theta1: float, theta0: float) -> float:
        """Probability of a given outcome.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        theta1, theta0 : float
            Probabilities of success.

        Raises
        ------
        ParameterError
            If the counts are inconsistent, or a theta is not in [0, 1].
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
            A function ``function(n1, s1, n0, s0)`` of integer arrays of equal shape that returns finite
            numbers.
        theta1, theta0 : float or array_like
            Probabilities of success, of equal shape or broadcastable to one.

        Returns
        -------
        ndarray
            Expected values, of the same shape as the thetas.

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
        """Expected number of pulls of arm 1 and of arm 0.

        Parameters
        ----------
        theta1, theta0 : float or array_like
            Probabilities of success.

        Returns
        -------
        arm1, arm0 : ndarray
            Expected numbers of pulls, of the same shape as the thetas.

        Raises
        ------
        ParameterError
            If a theta is not in [0, 1], or the shapes cannot be broadcast.

        Examples
        --------
        >>> import adaptinf as ai
        >>> one, zero = ai.audit.exact(ai.designs.Thompson(), 20).expected_pulls(0.6, 0.3)
        >>> round(float(one), 3), round(float(one + zero), 9)
        (14.033, 20.0)
        """
        one = self.expectation(lambda n1, s1, n0, s0: n1, theta1, theta0)
        return one, self.horizon - one

    def bias(self, theta1: Any, theta0: Any) -> ExactBias:
        """Bias of each sample mean and of their difference.

        Parameters
        ----------
        theta1, theta0 : float or array_like
            Probabilities of success.

        Returns
        -------
        ExactBias
            NaN if an arm is never pulled.

        Raises
        ------
        ParameterError
            If a theta is not in [0, 1], or the shapes cannot be broadcast.
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

    def by_total(self, chosen: BoolArray) -> FloatArray:
        """Probability of a set of states given the total number of successes, if both arms are equally good.

        Parameters
        ----------
        chosen : ndarray of bool, of the shape of `weights`
            The set.

        Returns
        -------
        ndarray of shape (T + 1,)
            Entry S is the probability given S successes in total, which does not depend on theta.
        """
        total = np.empty(self.horizon + 1)
        sum_by_total(
            self.weights, np.ascontiguousarray(chosen), log_factorials(self.horizon), total, self.horizon
        )
        return total

    def _sum(
        self, blocks: Iterator[tuple[slice, FloatArray]], subject: str, theta1: Any, theta0: Any
    ) -> FloatArray:
        """Expected values of f functions of the counts, computed block by block, of shape (f, *thetas)."""
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


def rejection_region(law: CountLaw, subject: str, test: Any, alpha: Any) -> BoolArray:
    """States in which a test rejects; see `ExactLaw.region`. Error messages begin with `subject`."""
    check_alpha(subject, alpha)
    if isinstance(test, str) and test == "conditional":
        return np.asarray(conditional_pvalues(law.weights, law.horizon) <= alpha)
    if isinstance(test, str) and test == "unconditional":
        return unconditional_region(law.horizon, alpha, law.by_total)
    pvalue = pvalue_of(subject, test)
    chosen = np.empty(law.weights.size, dtype=np.bool_)
    for place, *counts in law.states():
        chosen[place] = evidence(subject, pvalue, *counts) <= alpha
    return chosen


def conditional_pvalue(
    law: CountLaw, subject: str, outcome: tuple[int, int, int, int], statistic: Any, side: Any, mid_p: Any
) -> float:
    """See `ExactLaw.conditional_pvalue`; error messages start with `subject`."""
    place = outcome_place(subject, law.horizon, *outcome)
    n1, s1, n0, s0 = outcome
    problems = OneOf(*ALTERNATIVES)("alternative", side) + statistic_problems(statistic)
    problems += BOOLEAN("mid_p", mid_p)
    if law.weights[place] == 0.0:
        problems.append(f"{law.name} cannot reach n1={n1}, s1={s1}, n0={n0}, s0={s0}")
    refuse(subject, problems)
    ordering = read_statistic(subject, statistic)
    places, counts, weights = outcomes_given(law.weights, law.horizon, s1 + s0)
    found = tail_weights(evidence(subject, ordering, *counts), weights, side, mid_p)
    return float(found[np.searchsorted(places, place)])


def unconditional_pvalue(
    law: CountLaw, subject: str, outcome: tuple[int, int, int, int], statistic: Any, side: Any
) -> float:
    """See `ExactLaw.unconditional_pvalue`; error messages start with `subject`."""
    outcome_place(subject, law.horizon, *outcome)
    refuse(subject, OneOf(*ALTERNATIVES)("alternative", side) + statistic_problems(statistic))
    ordering = read_statistic(subject, statistic)
    turns = {"greater": (1.0,), "less": (-1.0,), "central": (1.0, -1.0), "two-sided": (0.0,)}[side]
    found = [_at_worst(law, subject, outcome, ordering, turn) for turn in turns]
    return min(len(turns) * min(found), 1.0)


def _at_worst(
    law: CountLaw, subject: str, outcome: tuple[int, int, int, int], ordering: Statistic, turn: float
) -> float:
    """Largest probability over theta of a statistic at least as extreme (`turn` 0: in either direction)."""

    def size(values: FloatArray) -> FloatArray:
        return np.asarray(turn * values if turn else np.abs(values))

    seen = size(evidence(subject, ordering, *(np.array([count]) for count in outcome)))[0]
    # Values that differ only by rounding error count as ties, which errs on the safe side. The difference of
    # two infinite values would be NaN.
    least = seen - TIE * max(abs(seen), TIE) if math.isfinite(seen) else seen
    chosen = np.empty(law.weights.size, dtype=np.bool_)
    for place, *counts in law.states():
        chosen[place] = size(evidence(subject, ordering, *counts)) >= least
    return min(float(certified_maximum(law.by_total(chosen))[1]), 1.0)
