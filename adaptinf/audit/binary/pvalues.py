"""Tests of single outcomes, and the sets of outcomes that a test rejects, under the law of a trial."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adaptinf.audit.binary.bernstein import certified_maximum
from adaptinf.audit.binary.law import CountLaw
from adaptinf.audit.binary.states import (
    ALTERNATIVES,
    TIE,
    Statistic,
    conditional_pvalues,
    evidence,
    outcome_place,
    outcomes_given,
    pvalue_of,
    read_statistic,
    statistic_problems,
    tail_weights,
    unconditional_region,
)
from adaptinf.parameters import BOOLEAN, OneOf, check_alpha, refuse
from adaptinf.typing import BoolArray, FloatArray


def rejection_region(law: CountLaw, subject: str, test: Any, alpha: Any) -> BoolArray:
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
    law: CountLaw, subject: str, outcome: tuple[int, int, int, int], statistic: Any, side: Any, mid_p: Any
) -> float:
    """See `ExactLaw.conditional_pvalue`; errors are headed by `subject`."""
    place = outcome_place(subject, law.horizon, *outcome)
    n1, s1, n0, s0 = outcome
    problems = OneOf(*ALTERNATIVES)("alternative", side) + statistic_problems(statistic)
    problems += BOOLEAN("mid_p", mid_p)
    if law.weights[place] == 0.0:
        problems.append(f"{law.name} cannot come to n1={n1}, s1={s1}, n0={n0}, s0={s0}")
    refuse(subject, problems)
    ordering = read_statistic(subject, statistic)
    places, counts, weights = outcomes_given(law.weights, law.horizon, s1 + s0)
    found = tail_weights(evidence(subject, ordering, *counts), weights, side, mid_p)
    return float(found[np.searchsorted(places, place)])


def unconditional_pvalue(
    law: CountLaw, subject: str, outcome: tuple[int, int, int, int], statistic: Any, side: Any
) -> float:
    """See `ExactLaw.unconditional_pvalue`; errors are headed by `subject`."""
    outcome_place(subject, law.horizon, *outcome)
    refuse(subject, OneOf(*ALTERNATIVES)("alternative", side) + statistic_problems(statistic))
    ordering = read_statistic(subject, statistic)
    turns = {"greater": (1.0,), "less": (-1.0,), "central": (1.0, -1.0), "two-sided": (0.0,)}[side]
    found = [_at_worst(law, subject, outcome, ordering, turn) for turn in turns]
    return min(len(turns) * min(found), 1.0)


def _at_worst(
    law: CountLaw, subject: str, outcome: tuple[int, int, int, int], ordering: Statistic, turn: float
) -> float:
    """Largest probability of a statistic as large, times 1 or -1, or in absolute value where `turn` is 0."""

    def size(values: FloatArray) -> FloatArray:
        return np.asarray(turn * values if turn else np.abs(values))

    seen = size(evidence(subject, ordering, *(np.array([count]) for count in outcome)))[0]
    least = seen - TIE * max(abs(seen), TIE) if math.isfinite(seen) else seen
    chosen = np.empty(law.weights.size, dtype=np.bool_)
    for place, *counts in law.states():
        chosen[place] = size(evidence(subject, ordering, *counts)) >= least
    return min(float(certified_maximum(law.by_total(chosen))[1]), 1.0)
