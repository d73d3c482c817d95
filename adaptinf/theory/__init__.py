"""Theoretical results as functions of a trial's parameters, to be plotted next to measurements.

Every function takes numbers, or arrays that can be broadcast. ``form="published"`` is the expression exactly
as in the paper; if a paper gives only an order, its constant is taken to be 1. ``form="explicit"`` (or
``"exact"``) is a statement with all of its constants. Arguments out of range raise a single `ParameterError`
that lists them all.
"""

from __future__ import annotations

from adaptinf.theory.best_arm_bounds import Hardness, dp_bai_error, dp_bai_gauss_error, hardness
from adaptinf.theory.counter_bounds import (
    counter_norm_bound,
    hybrid_error,
    iterated_log,
    linpriv_regret,
    potential_bound,
)
from adaptinf.theory.regret_bounds import (
    ldp_regret_exponent,
    ldp_transfer_exponent,
    ldp_transfer_rate,
    private_elimination_pulls,
    private_elimination_regret,
    private_elimination_worst_case,
    private_ucb_regret,
    private_ucb_worst_case,
)
from adaptinf.theory.stopping_bounds import (
    private_stopping_limit,
    stopping_limit,
    stopping_time_bound,
    stopping_time_closed_form,
    stopping_time_lower_bound,
    stopping_time_order,
)
from adaptinf.theory.tradeoff import Frontier, difference_in_means, frontier

__all__ = [
    "Frontier",
    "Hardness",
    "counter_norm_bound",
    "difference_in_means",
    "dp_bai_error",
    "dp_bai_gauss_error",
    "frontier",
    "hardness",
    "hybrid_error",
    "iterated_log",
    "ldp_regret_exponent",
    "ldp_transfer_exponent",
    "ldp_transfer_rate",
    "linpriv_regret",
    "potential_bound",
    "private_elimination_pulls",
    "private_elimination_regret",
    "private_elimination_worst_case",
    "private_stopping_limit",
    "private_ucb_regret",
    "private_ucb_worst_case",
    "stopping_limit",
    "stopping_time_bound",
    "stopping_time_closed_form",
    "stopping_time_lower_bound",
    "stopping_time_order",
]


def __dir__() -> list[str]:
    return sorted(__all__)
