"""What must hold before a design is re-run: that it gathered the log, and that it has coins to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adaptinf.audit.randomization.runs import Plan, Runner, plan_root
from adaptinf.audit.randomization.statistics import (
    ALTERNATIVES,
    STATISTICS,
    PathStatistic,
    TallyStatistic,
)
from adaptinf.audit.rerun.logged_rows import logged_rows
from adaptinf.audit.rerun.path_propensities import contradiction, fixed_propensities, record_problems
from adaptinf.audit.rerun.rebuild import design_of
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, SEED, Callee, OneOf, OrNone, refuse
from adaptinf.simulation.replicate import BLOCK, block_stream
from adaptinf.texts import unlisted
from adaptinf.typing import RandomSource

_LEAVE_OUT = "leave design= out to re-run the one that the log names"
_FEW, _TRIAL_STREAM = 8, 3


def make_plan(
    log: Any,
    design: Design | None,
    statistic: str | Callable[..., Any] | None,
    resample: str | None,
    rng: RandomSource | None,
    *,
    treatment: Any = None,
    control: Any = None,
    alternative: str = "two-sided",
    vectorised: bool = False,
    context: str | Sequence[str] | None = None,
    features: Sequence[Any] | None = None,
    subject: str = "randomization_test",
    problems: Sequence[str] = (),
) -> Plan:
    """Everything that a test needs, after all checks; raises one error with all that is wrong."""
    listed = list(problems) + SEED("rng", rng)
    if not isinstance(log, AdaptiveLog):
        raise ParameterError(subject, [*listed, f"log must be an AdaptiveLog, got {log!r:.60}"])
    if log.n_arms < 2:
        listed.append("the log has one arm: there is nothing to compare")
    given = design_of(log if design is None else design, listed)
    if given is not None:
        listed += [f"{text}: {_LEAVE_OUT}" for text in record_problems(log, given)]
    listed += OrNone(OneOf("assignment", "order"))("resample", resample)
    chosen = _statistic(log, statistic, treatment, control, alternative, vectorised, listed)
    rows = None if given is None else logged_rows(log, given, context, features, listed)
    if rows is not None and given is not None:
        if log.n_rounds < given.needs.min_horizon:
            listed.append(
                f"{type(given).__name__} needs {given.needs.min_horizon} rounds, got {log.n_rounds}"
            )
        listed += given._environment_problems(rows, log.n_rounds)
    if listed or given is None or chosen is None or rows is None:
        raise ParameterError(subject, listed)
    by_order = (given.traits.replays_by if resample is None else resample) == "order"
    plan = Plan(given, log, rows, by_order, chosen, plan_root(rng))
    listed += _coin_problems(plan)
    if not listed:
        listed += contradiction(log, fixed_propensities(given, log, rows), f"{given!r:.80}")
    refuse(subject, listed)
    return plan


def _statistic(
    log: AdaptiveLog,
    statistic: Any,
    treatment: Any,
    control: Any,
    alternative: Any,
    vectorised: Any,
    problems: list[str],
) -> TallyStatistic | PathStatistic | None:
    known = len(problems)
    problems += OneOf(*ALTERNATIVES)("alternative", alternative) + BOOLEAN("vectorised", vectorised)
    positions = _positions(log, treatment, control, problems)
    if callable(statistic):
        if treatment is not None or control is not None or alternative != "two-sided":
            problems.append(
                "treatment, control and alternative must be left out with a statistic of your own: its large "
                "values speak against the hypothesis"
            )
        problems += Callee("action", "reward", "context")("statistic", statistic)
        return PathStatistic(statistic, vectorised) if len(problems) == known else None
    if statistic is not None:
        problems += OneOf(*STATISTICS)("statistic, where it is not a function,", statistic)
    named = treatment is not None or control is not None
    name = statistic or ("studentised" if log.n_arms == 2 or named else "largest-studentised")
    if name in ("largest-studentised", "f"):
        if alternative != "two-sided":
            problems.append(f"alternative must be two-sided with {name!r}, which has no direction")
        if named:
            problems.append(f"treatment and control must be left out with {name!r}, which compares all arms")
    elif positions is None and len(problems) == known:
        problems.append(f"with {log.n_arms} arms, name treatment= and control=: {list(log.arms)!r:.80}")
    if len(problems) > known:
        return None
    first, second = positions or (1, 0)
    return TallyStatistic(name, first, second, alternative)


def _positions(log: AdaptiveLog, treatment: Any, control: Any, problems: list[str]) -> tuple[int, int] | None:
    """Positions of the two arms; with two arms, the second is the treated one by default."""
    if treatment is None and control is None:
        return (1, 0) if log.n_arms == 2 else None
    found = []
    for name, label in (("treatment", treatment), ("control", control)):
        if label is None and log.n_arms == 2:
            found.append(-1)
        elif label in log.arms:
            found.append(log.arms.index(label))
        else:
            problems.append(unlisted(name, log.arms, label))
            return None
    if -1 in found:
        found[found.index(-1)] = 1 - max(found)
    if found[0] == found[1]:
        problems.append("treatment and control must be two different arms")
        return None
    return found[0], found[1]


def _coin_problems(plan: Plan) -> list[str]:
    """A design that gives one path on the logged rows has no coins, and the path must be the log's."""
    name = type(plan.design).__name__
    trial = Plan(plan.design, plan.log, plan.rows, False, plan.statistic, plan.root)
    runner = Runner(trial)
    root = np.random.SeedSequence(plan.root.entropy, spawn_key=(*plan.root.spawn_key, _TRIAL_STREAM))
    stream = block_stream(root, 0)
    tables = plan.rows.paying(plan.rewards())
    first, _ = runner.paths(trial, tables, stream, _FEW)
    if (first != first[0]).any():
        return []
    rest, _ = runner.paths(trial, tables, stream, BLOCK - _FEW)
    if (rest != first[0]).any():
        return []
    differs = np.flatnonzero(first[0] != plan.log.arrays.action)
    if differs.size:
        return [
            f"the log is not one of {plan.design!r:.80}: on the logged rewards it takes other actions from "
            f"row {differs[0]} on (rows are counted from 0). Re-run the design that gathered the log"
        ]
    if plan.by_order:
        return []
    return [
        f"{name} has no coins of its own here: re-run by assignment, it takes the logged path every time, "
        'and p would be 1. Use resample="order", where the rows are exchangeable, or gather data with '
        f"Mixture({name}(...))"
    ]
