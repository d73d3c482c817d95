"""Exact distribution of a two-arm binary trial, its size and power, and exact tests of a log.

References
----------
Baas, S., Jacko, P. and Villar, S. S. (2024). Exact statistical analysis for response-adaptive clinical
trials: a general and computationally tractable approach. arXiv:2407.01055.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.binary.count_law import (
    CountLaw,
    conditional_pvalue,
    rejection_region,
    unconditional_pvalue,
)
from adaptinf.audit.binary.count_rules import (
    Rule,
    allocation,
    final_weights,
)
from adaptinf.audit.binary.count_states import (
    binomial_law,
    certified_maximum,
    checked_thetas,
    outcome_place,
)
from adaptinf.audit.binary.effect_inversion import (
    LONGEST_INTERVAL,
    SCALES,
    interval_limits,
    interval_problems,
)
from adaptinf.audit.binary.exact_results import (
    LONGEST,
    ExactTest,
    exact_result,
)
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, check, refuse
from adaptinf.typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ExactLaw(CountLaw):
    """Distribution of the final counts (n1, s1, n0, s0) of a two-arm trial with 0/1 rewards, for every theta.

    Attributes
    ----------
    name : str
        The rule.
    rule : Design or callable
        As given.
    horizon : int
        T.
    weights : ndarray of shape ((T + 1)(T + 2)(T + 3) / 6,)
        Weight q of every state, in blocks by n1, then s1, then s0: the probability of these numbers of pulls
        given how many of each arm's rewards are successes. Read-only.

    Notes
    -----
    P(state) = q(state) Bin(s1; n1, theta1) Bin(s0; n0, theta0). The distribution is exact if rewards are
    independent with constant success probabilities theta1 and theta0, the number of rounds T was fixed in
    advance, and the arms were assigned by exactly this design. **Drift invalidates the distribution**: if
    success rates change over time, even by the same amount in both arms, none of these numbers is correct;
    use a randomisation test instead.

    Arm 1 is the second arm of a log or environment, and arm 0 the first.

    Examples
    --------
    >>> import adaptinf as ai
    >>> law = ai.audit.exact(ai.designs.EpsilonGreedy(exploration=0.2), horizon=20)
    >>> law
    <ExactLaw: EpsilonGreedy, 20 rounds, 1,771 states>
    >>> bool(law.max_size("wald")[0] > 0.05)
    True
    """

    def region(self, test: str | Callable[..., Any], alpha: float = 0.05) -> BoolArray:
        """States in which a test rejects the hypothesis of equal arms.

        Parameters
        ----------
        test : {"wald", "score", "fisher", "conditional", "unconditional"} or callable
            The unpooled Wald test or the pooled score test with normal critical values, or Fisher's exact
            test of the final table (all three ignore the design); the conditional or the unconditional exact
            Wald test; or a function ``test(n1, s1, n0, s0)`` that returns p-values for integer arrays of
            equal shape.
        alpha : float
            The test rejects if the p-value is at most alpha, which lies in (0, 0.5).

        Returns
        -------
        ndarray of bool, of the shape of `weights`

        Raises
        ------
        ParameterError
            If the test is unknown or does not return p-values, or alpha is not in (0, 0.5).
        """
        return rejection_region(self, "ExactLaw.region", test, alpha)

    def size(self, test: str | Callable[..., Any], theta: Any, alpha: float = 0.05) -> FloatArray:
        """Probability that a test rejects if both arms succeed with probability theta.

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
            If the test is unknown or does not return p-values, alpha is not in (0, 0.5), or a theta is not in
            [0, 1].

        Examples
        --------
        >>> import adaptinf as ai
        >>> law = ai.audit.exact(ai.designs.Thompson(), 50)
        >>> law.size("wald", [0.1, 0.5]).round(4), law.size("conditional", [0.1, 0.5]).round(4)
        (array([0.2263, 0.1634]), array([0.0377, 0.0301]))
        """
        (grid,) = checked_thetas("ExactLaw.size", theta)
        chosen = rejection_region(self, "ExactLaw.size", test, alpha)
        found = binomial_law(grid, self.horizon) @ self.by_total(chosen)
        return np.asarray(found.reshape(np.shape(theta)))

    def max_size(self, test: str | Callable[..., Any], alpha: float = 0.05) -> tuple[float, float]:
        """Largest size over all theta.

        Parameters
        ----------
        test, alpha
            As in `size`.

        Returns
        -------
        (float, float)
            A theta, and an upper bound on the size over all theta, at most 1e-9 above the size at the
            returned theta.

        Raises
        ------
        ParameterError
            If the test is unknown or does not return p-values, or alpha is not in (0, 0.5).
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
            If the test is unknown or does not return p-values, alpha is not in (0, 0.5), or a theta is not in
            [0, 1].
        """
        chosen = rejection_region(self, "ExactLaw.power", test, alpha)
        blocks = ((place, chosen[place].astype(np.float64)) for place, *_ in self.states())
        return np.asarray(self._sum(blocks, "ExactLaw.power", theta1, theta0)[0])

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
        """P-value of the test conditional on the total number of successes, which does not depend on theta.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        statistic : {"wald", "score", "difference"} or callable
            The statistic that orders the outcomes; a function ``statistic(n1, s1, n0, s0)`` takes integer
            arrays, and is large if arm 1 is better.
        alternative : {"two-sided", "central", "greater", "less"}
            Two-sided: the probability that the statistic is at least as large in absolute value. Central:
            twice the smaller of the one-sided p-values. Greater: the alternative that arm 1 is better.
        mid_p : bool
            Count half the probability of ties: the size may then exceed alpha, but is closer to it.

        Returns
        -------
        float

        Raises
        ------
        ParameterError
            If the counts are inconsistent or impossible under the design, the statistic or the alternative is
            unknown, or a value of the statistic is NaN.

        Notes
        -----
        If both arms are equally good, every sequence of S successes and T - S failures is equally likely,
        whatever theta is. The distribution of the outcome given S is therefore known, and P(p <= alpha) <=
        alpha at every theta. Statistics that differ only by rounding error (by a relative 1e-9) are treated
        as ties.

        Examples
        --------
        >>> import adaptinf as ai
        >>> law = ai.audit.exact(ai.designs.PlayTheWinner(), 12)
        >>> round(law.conditional_pvalue(11, 11, 1, 0, alternative="greater"), 6)
        0.019892
        """
        return conditional_pvalue(
            self, "ExactLaw.conditional_pvalue", (n1, s1, n0, s0), statistic, alternative, mid_p
        )

    def unconditional_pvalue(
        self,
        n1: int,
        s1: int,
        n0: int,
        s0: int,
        statistic: Any = "wald",
        *,
        alternative: str = "two-sided",
    ) -> float:
        """P-value of the test based on a statistic at its least favourable theta.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        statistic : {"wald", "score", "difference"} or callable
            As in `conditional_pvalue`. With minus Fisher's one-sided p-value as the statistic and the
            alternative ``"greater"``, the test is Boschloo's; with ``"score"``, it is Barnard's.
        alternative : {"two-sided", "central", "greater", "less"}
            As in `conditional_pvalue`.

        Returns
        -------
        float
            An upper bound on the maximum over theta, at most 1e-9 above it (2e-9 for ``"central"``).

        Examples
        --------
        Barnard's test for 3 successes in 10 against 9 in 10:

        >>> import adaptinf as ai
        >>> law = ai.audit.exact(lambda n1, s1, n0, s0, t: 1.0 * (n1 < 10), 20)
        >>> round(law.unconditional_pvalue(10, 3, 10, 9, "score"), 7)
        0.0079556

        Raises
        ------
        ParameterError
            If the counts are inconsistent, the statistic is unknown, or one of its values is NaN.
        """
        outcome = n1, s1, n0, s0
        return unconditional_pvalue(self, "ExactLaw.unconditional_pvalue", outcome, statistic, alternative)

    def interval(
        self,
        n1: int,
        s1: int,
        n0: int,
        s0: int,
        scale: str = "difference",
        *,
        alternative: str = "two-sided",
        alpha: float = 0.05,
    ) -> tuple[float, float]:
        """Exact confidence interval for the effect of arm 1 relative to arm 0.

        Parameters
        ----------
        n1, s1, n0, s0 : int
            Pulls and successes of arm 1 and arm 0.
        scale, alternative, alpha
            A single scale, as in `exact_interval`.

        Returns
        -------
        (float, float)

        Raises
        ------
        ParameterError
            If the counts are inconsistent or impossible under the design, an option is out of range, or the
            trial has more than 300 rounds.

        Examples
        --------
        >>> import adaptinf as ai
        >>> law = ai.audit.exact(ai.designs.Thompson(), 50)
        >>> [round(limit, 3) for limit in law.interval(42, 25, 8, 1)]
        [0.046, 0.653]
        """
        outcome = n1, s1, n0, s0
        place = outcome_place("ExactLaw.interval", self.horizon, *outcome)
        problems = interval_problems(scale, alternative, alpha)
        if self.horizon > LONGEST_INTERVAL:
            problems.append(f"the trial must have at most {LONGEST_INTERVAL} rounds, got {self.horizon:,}")
        if self.weights[place] == 0.0:
            problems.append(f"{self.name} cannot reach n1={n1}, s1={s1}, n0={n0}, s0={s0}")
        refuse("ExactLaw.interval", problems)
        return interval_limits(self, SCALES[scale], outcome, alternative, float(alpha))

    def test(
        self,
        log: AdaptiveLog,
        *,
        statistic: Any = "wald",
        alternative: str = "two-sided",
        mid_p: bool = False,
    ) -> ExactTest:
        """Test a trial's log under this distribution.

        Parameters
        ----------
        log : AdaptiveLog
            A log of T rounds.
        statistic, alternative, mid_p
            As in `conditional_pvalue`.

        Returns
        -------
        ExactTest

        Raises
        ------
        InvalidForLog
            If this distribution does not apply to the log.
        ParameterError
            If the argument is not a log, or an option is out of range.
        """
        return exact_result(self, log, statistic, alternative, mid_p)


# This limits the memory of all kept distributions together to 134 MB (8 bytes a state).
_MOST_KEPT = 2**24
_KEPT: OrderedDict[tuple[Design, int], ExactLaw] = OrderedDict()
_LOCK = threading.Lock()


def exact(design: Rule, horizon: int) -> ExactLaw:
    """Distribution of the final counts of a two-arm trial with 0/1 rewards, by recursion over all states.

    Parameters
    ----------
    design : Thompson, EpsilonGreedy, UCB, Uniform, Mixture of these, PlayTheWinner, DBCD, ERADE, or callable
        The rule. A function ``probability(n1, s1, n0, s0, t)`` returns the probability of arm 1 in round t
        (counted from 1) given these counts, for integer arrays of equal shape; use ``np.where`` instead of
        ``if``.
    horizon : int
        Number of rounds T, fixed in advance; at most 1,000.

    Returns
    -------
    ExactLaw
        The distribution, with its size, power, bias and tests for every theta.

    Raises
    ------
    ParameterError
        If the design's choices are not a function of the counts, a function cannot be called with arrays or
        does not return probabilities, or the horizon is too long.

    Notes
    -----
    Rewards are independent, with a constant probability of success for each arm. **Drift invalidates all of
    these numbers**, even if it affects both arms equally; so does a different design, or a number of rounds
    that depended on the data.

    If Thompson sampling chooses an arm by its frequency among `draws` posterior draws, its choice probability
    given the counts is still the posterior probability itself; floors and batches act on
    the frequency, whose mean is computed exactly. Ties are broken as in the design: UCB and the greedy design
    choose the first arm, arm 0.

    T rounds require T^4 / 24 steps, and memory for two layers of T^3 / 6 numbers, which is 2.7 GB at T =
    1,000. With batches of m rounds, a step takes about m^2 times as long.

    The distribution is computed once for each design, its parameters and the horizon, and cached, up to 134
    MB in total. The distribution for a function is not cached, because data that the function uses may
    change: keep the `ExactLaw` and call its methods.

    References
    ----------
    Baas, S., Jacko, P. and Villar, S. S. (2024). Exact statistical analysis for response-adaptive clinical
    trials: a general and computationally tractable approach. arXiv:2407.01055.

    Examples
    --------
    >>> import adaptinf as ai
    >>> law = ai.audit.exact(ai.designs.Thompson(), 50)
    >>> law.size("wald", [0.1, 0.5]).round(4).tolist(), law.size("conditional", [0.1, 0.5]).round(4).tolist()
    ([0.2263, 0.1634], [0.0377, 0.0301])
    >>> law.power("conditional", 0.8, 0.3).round(4).tolist()
    0.3058
    """
    check("exact", horizon=(horizon, COUNT))
    if horizon > LONGEST:
        told = f"horizon must be at most {LONGEST:,} (randomization_test has no limit), got {horizon:,}"
        raise ParameterError("exact", [told])
    kept = _kept(design, int(horizon))
    if kept is not None:
        return kept
    plan = allocation(design, int(horizon))
    weights = final_weights(plan, int(horizon))
    weights.flags.writeable = False
    return _keep(ExactLaw(plan.name, design, int(horizon), weights))


def _key(design: Any, horizon: int) -> tuple[Design, int] | None:
    """Cache key of a distribution, or None if its rule can change or is not hashable."""
    if not isinstance(design, Design):
        return None
    try:
        hash(design)
    except TypeError:
        return None
    return design, horizon


def _kept(design: Any, horizon: int) -> ExactLaw | None:
    """The cached distribution of a design, if there is one."""
    key = _key(design, horizon)
    with _LOCK:
        if key is None or key not in _KEPT:
            return None
        _KEPT.move_to_end(key)
        return _KEPT[key]


def _keep(law: ExactLaw) -> ExactLaw:
    """Cache a distribution, discarding the least recently used ones."""
    key = _key(law.rule, law.horizon)
    if key is None or law.weights.size > _MOST_KEPT:
        return law
    with _LOCK:
        _KEPT[key] = law
        while sum(one.weights.size for one in _KEPT.values()) > _MOST_KEPT:
            _KEPT.popitem(last=False)
    return law
