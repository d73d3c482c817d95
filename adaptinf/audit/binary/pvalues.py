"""Tests of single outcomes, and the sets of outcomes that a test rejects, under the law of a trial."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.binary.bernstein import certified_maximum
from adaptinf.audit.binary.states import (
    block_starts,
    conditional_pvalues,
    outcomes_given,
    pvalue_of,
    unconditional_region,
)
from adaptinf.audit.binary.statistics import (
    ALTERNATIVES,
    TIE,
    evidence,
    read_statistic,
    statistic_problems,
    tail_weights,
)
from adaptinf.errors import ParameterError
from adaptinf.parameters import check_alpha, choice_problem, count_problem
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.audit.binary.law import ExactLaw

__all__ = ["conditional_pvalue", "outcome_place", "rejection_region", "unconditional_pvalue"]


def outcome_place(subject: str, horizon: int, n1: Any, s1: Any, n0: Any, s0: Any) -> int:
    """Where an outcome stands among the states; errors are headed by `subject`."""
    problems = []
    for name, value in {"n1": n1, "s1": s1, "n0": n0, "s0": s0}.items():
        problems += count_problem(name, value, low=0)
    if not problems and n1 + n0 != horizon:
        problems.append(f"n1 + n0 must be the {horizon} rounds of the trial, got {n1} + {n0}")
    if not problems and (s1 > n1 or s0 > n0):
        problems.append(f"an arm cannot have more successes than pulls, got {s1} of {n1} and {s0} of {n0}")
    if problems:
        raise ParameterError(subject, problems)
    return int(block_starts(horizon)[n1] + s1 * (n0 + 1) + s0)


def rejection_region(law: ExactLaw, subject: str, test: Any, alpha: Any) -> BoolArray:
    """States in which a test rejects; see `ExactLaw.region`. Errors are headed by `subject`."""
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
    law: ExactLaw, subject: str, outcome: tuple[int, int, int, int], statistic: Any, side: Any, mid_p: Any
) -> float:
    """See `ExactLaw.conditional_pvalue`; errors are headed by `subject`."""
    place = outcome_place(subject, law.horizon, *outcome)
    n1, s1, n0, s0 = outcome
    problems = choice_problem("alternative", side, ALTERNATIVES) + statistic_problems(statistic)
    if not isinstance(mid_p, bool):
        problems.append(f"mid_p must be True or False, got {mid_p!r:.60}")
    if law.weights[place] == 0.0:
        problems.append(f"{law.name} cannot come to n1={n1}, s1={s1}, n0={n0}, s0={s0}")
    if problems:
        raise ParameterError(subject, problems)
    ordering = read_statistic(subject, statistic)
    places, counts, weights = outcomes_given(law.weights, law.horizon, s1 + s0)
    found = tail_weights(evidence(subject, ordering, *counts), weights, side, mid_p)
    return float(found[np.searchsorted(places, place)])


def unconditional_pvalue(
    law: ExactLaw, subject: str, outcome: tuple[int, int, int, int], statistic: Any
) -> float:
    """See `ExactLaw.unconditional_pvalue`; errors are headed by `subject`."""
    outcome_place(subject, law.horizon, *outcome)
    ordering = read_statistic(subject, statistic)
    seen = np.abs(evidence(subject, ordering, *(np.array([count]) for count in outcome)))[0]
    least = seen - TIE * max(seen, TIE) if math.isfinite(seen) else seen
    chosen = np.empty(law.weights.size, dtype=np.bool_)
    for place, *counts in law.states():
        chosen[place] = np.abs(evidence(subject, ordering, *counts)) >= least
    return float(certified_maximum(law.by_total(chosen))[1])
