"""Simulated trials from which treatments leave at looks: the design step by step, as in a live trial."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.designs.function_design import FunctionDesign
from adaptinf.parameters import refuse
from adaptinf.simulation.environments import Environment
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.plans.plan import Plan
    from adaptinf.sessions.session import Session


def run(plan: Plan, environment: Environment, rng: np.random.Generator) -> AdaptiveLog:
    """One trial; with a rule for dropping, up to its stop, and treatments are removed as in a live trial."""
    if not drops(plan):
        return plan.design.run(environment, plan.horizon, rng=rng)
    rewards = potential_rewards(environment, plan.horizon, rng)
    session = _session(plan, environment, rng)
    gone: set[int] = set()
    start = 0
    for look in plan.looks.tolist():
        for row in rewards[start:look]:
            decision = session.assign()
            session.record(decision.id, float(row[decision.arm]))
        start, log = look, session.log()
        found = plan.look(log)
        if found.decision != "continue":
            break
        for code in map(plan.arms.index, found.dropped):
            if code not in gone:
                session.remove_arm(code)
                gone.add(code)
    return log


def drops(plan: Plan) -> bool:
    """Whether treatments can leave by rule."""
    return bool(np.isfinite(plan.rule.drop).any())


def check_dropping(plan: Plan, environment: Environment) -> None:
    """Refuse designs that cannot continue without an arm, and environments with contexts or delays."""
    if environment.features or environment.dimension or environment.delayed:
        refuse("Plan.operating_characteristics", ["drop requires environments without contexts or delays"])
    session = _session(plan, environment, np.random.default_rng(0))
    session.assign()
    session.remove_arm(plan.positions[0])


def _session(plan: Plan, environment: Environment, rng: np.random.Generator) -> Session:
    return plan.design.session(
        environment.n_arms, plan.horizon, reward_range=environment.reward_range, rng=rng
    )


def potential_rewards(environment: Environment, horizon: int, rng: np.random.Generator) -> FloatArray:
    """Rewards of every arm, (T, K): those of trials that always assign it, with the same random numbers."""
    seed = np.random.SeedSequence(int(rng.integers(2**63)))
    arms = range(environment.n_arms)
    runs = [FunctionDesign(partial(_always, arm)).run(environment, horizon, rng=seed) for arm in arms]
    return np.column_stack([log.arrays.reward for log in runs])


def _always(arm: int, state: Any, context: Any, rng: Any) -> int:
    return arm
