"""Exact law of a two-arm binary trial by forward recursion, and exact tests of its log.

References
----------
Baas, S., Jacko, P. and Villar, S. S. (2024). Exact statistical analysis for response-adaptive clinical
trials: a general and computationally tractable approach. arXiv:2407.01055.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from adaptinf.audit.binary.batches import advance_batch
from adaptinf.audit.binary.kernel import CUSTOM, advance_round
from adaptinf.audit.binary.results import LONGEST, ExactTest, exact_result, option_problems, rule_of
from adaptinf.audit.binary.rules import (
    PROBABILITY_ARGUMENTS,
    Allocation,
    Rule,
    allocation,
    work_space,
)
from adaptinf.audit.binary.states import values_of
from adaptinf.audit.binary.tested_law import ExactLaw
from adaptinf.designs.base_design import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, check, refuse
from adaptinf.typing import FloatArray

_MOST_STEPS = 2e13
_MOST_KEPT = 2**24
"""States that are kept over all laws, 134 MB."""
_KEPT: OrderedDict[tuple[Design, int], ExactLaw] = OrderedDict()
_LOCK = threading.Lock()


def exact(design: Rule, horizon: int) -> ExactLaw:
    """Law of the final counts of a two-arm trial with rewards 0 and 1, by recursion over all states.

    Parameters
    ----------
    design : Thompson, EpsilonGreedy, UCB, Uniform, Mixture of one of these, PlayTheWinner, or callable
        The rule. A function ``probability(n1, s1, n0, s0, t)`` gives the probability of arm 1 in round t
        (from 1) after these counts, for int arrays of one shape: with ``np.where`` instead of ``if``.
    horizon : int
        Rounds T, fixed in advance; at most 1,000.

    Returns
    -------
    ExactLaw
        Size, power, bias and tests at every theta.

    Raises
    ------
    ParameterError
        If what the design does is not a function of the counts, a function cannot be called with arrays of
        them or gives no probabilities, or the horizon is out of reach.

    Notes
    -----
    Rewards are independent, with one probability of success an arm that does not move in time. **Drift
    breaks every number that follows**, even drift that both arms share; so does a design other than the one
    given, or a trial that ended when its data said so.

    Thompson with a Beta prior draws its arm from the frequencies of `draws` posterior draws. Its probability
    given the counts is then the posterior probability itself; a floor and a batch act on the frequency, and
    the mean over it is taken exactly. Ties are broken as the design breaks them: UCB and the greedy arm
    towards the first arm, arm 0.

    T rounds take T^4 / 24 steps, and memory for two layers of T^3 / 6 numbers: at T = 1,000, 2.7 GB. In
    batches of m rounds a step costs about m^2 as much.

    The law of a design is worked out once per design, parameters and horizon, and kept for the next call, up
    to 134 MB of laws. That of a function is not kept, as what it reads may change: keep the `ExactLaw` and
    call its methods.

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
        told = f"horizon must be at most {LONGEST:,}, got {horizon:,}: randomization_test has no limit"
        raise ParameterError("exact", [told])
    kept = _kept(design, int(horizon))
    if kept is not None:
        return kept
    plan = allocation(design, int(horizon))
    weights = _final_weights(plan, int(horizon))
    weights.flags.writeable = False
    return _keep(ExactLaw(plan.name, design, int(horizon), weights))


def exact_test(
    log: AdaptiveLog,
    design: Rule | None = None,
    *,
    statistic: Any = "wald",
    alternative: str = "two-sided",
    mid_p: bool = False,
) -> ExactTest:
    """Exact test of equal arms from the log of a two-arm trial with rewards 0 and 1.

    Parameters
    ----------
    log : AdaptiveLog
        Two arms, rewards 0 and 1, no contexts.
    design : Design or callable, optional
        See `exact`; by default the design that the log names, with its parameters.
    statistic : {"wald", "score", "difference"} or callable
        What orders the outcomes; see `ExactLaw.conditional_pvalue`.
    alternative : {"two-sided", "central", "greater", "less"}
        Which outcomes count.
    mid_p : bool
        Count ties by half; the size may then exceed alpha.

    Returns
    -------
    ExactTest

    Raises
    ------
    InvalidForLog
        With the reason, and what is possible instead.
    ParameterError
        If what is given is no log, or an option is out of range.

    Notes
    -----
    Assumes success rates that do not drift, a number of rounds fixed in advance, and that the log was
    gathered by the very design given.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.Thompson().run(ai.environments.BernoulliArms([0.3, 0.8]), horizon=60, rng=0)
    >>> round(ai.audit.exact_test(log).pvalue, 4)
    0.0005
    """
    refuse("exact_test", option_problems(log, statistic, alternative, mid_p))
    law = exact(rule_of(log, design), log.n_rounds)
    return exact_result(law, log, statistic, alternative, mid_p, subject="exact_test")


def _key(design: Any, horizon: int) -> tuple[Design, int] | None:
    """Under what a law is kept; None where its rule can change, or has no hash."""
    if not isinstance(design, Design):
        return None
    try:
        hash(design)
    except TypeError:
        return None
    return design, horizon


def _kept(design: Any, horizon: int) -> ExactLaw | None:
    """The law of a design that was worked out before."""
    key = _key(design, horizon)
    with _LOCK:
        if key is None or key not in _KEPT:
            return None
        _KEPT.move_to_end(key)
        return _KEPT[key]


def _keep(law: ExactLaw) -> ExactLaw:
    """Keep a law, and let go of those that were not asked for in the longest time."""
    key = _key(law.rule, law.horizon)
    if key is None or law.weights.size > _MOST_KEPT:
        return law
    with _LOCK:
        _KEPT[key] = law
        while sum(one.weights.size for one in _KEPT.values()) > _MOST_KEPT:
            _KEPT.popitem(last=False)
    return law


def _final_weights(plan: Allocation, horizon: int) -> FloatArray:
    """Weights of the last layer."""
    edges = plan.edges
    longest = max(after - before for before, after in itertools.pairwise(edges))
    _refuse_cost(plan, horizon, longest)
    states = _states(horizon)
    old, new = np.zeros(states), np.zeros(states)
    block = (horizon // 2 + 1) * (horizon - horizon // 2 + 1)
    work = work_space(horizon)
    laws = np.empty((block if longest > 1 else 0, longest + 1))
    by_count = np.empty((plan.tables.draws + 1, longest + 1))
    old[0] = 1.0
    for step, after in itertools.pairwise(edges):
        tables = plan.tables
        if tables.kind == CUSTOM:
            tables = tables._replace(custom=_layer(plan, step))
        if after == step + 1:
            advance_round(tables, step, old, new, work)
        else:
            advance_batch(tables, step, after - step, old, new, work, laws, by_count)
        old, new = new, old
    return old


def _states(horizon: int) -> int:
    return (horizon + 1) * (horizon + 2) * (horizon + 3) // 6


def _refuse_cost(plan: Allocation, horizon: int, longest: int) -> None:
    """Refuse batches that would take hours."""
    steps = sum(
        _states(before) * float(after - before) ** 3 for before, after in itertools.pairwise(plan.edges)
    )
    if longest > 1 and steps > _MOST_STEPS:
        problem = f"batches of {longest} rounds at a horizon of {horizon} take too long"
        raise ParameterError("exact", [f"{problem}: randomization_test has no such limit"])


def _layer(plan: Allocation, step: int) -> FloatArray:
    """A user's probabilities over the states after `step` rounds, block by block."""
    assert plan.function is not None
    found = np.empty(_states(step))
    start = 0
    for n1 in range(step + 1):
        n0 = step - n1
        size = (n1 + 1) * (n0 + 1)
        s1, s0 = np.divmod(np.arange(size), n0 + 1)
        counts = np.full(size, n1), s1, np.full(size, n0), s0
        array = values_of("exact", plan.function, PROBABILITY_ARGUMENTS, *counts, step + 1)
        if array.shape not in ((), (size,)) or not np.all((array >= 0.0) & (array <= 1.0)):
            problem = f"{plan.name} must give probabilities in [0, 1], one for each of {size} states"
            raise ParameterError("exact", [f"{problem}; at t = {step + 1} and n1 = {n1} it did not"])
        found[start : start + size] = array
        start += size
    return found
