"""Plans stored in trials and logs: their arguments as plain values, and the looks that a log records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any, Self

import numpy as np

from adaptinf.claims.data.missing_rewards import AT_RANDOM, STEADY
from adaptinf.claims.logs import plans as claims
from adaptinf.designs.base import Design
from adaptinf.designs.function_design import FunctionDesign
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog, DesignRecord
from adaptinf.log.stated_plans import ended, looks_of, overridden, states_plan
from adaptinf.log.traits import PLAN
from adaptinf.parameters import COUNT
from adaptinf.plans.decisions import Rule
from adaptinf.plans.looks import Look
from adaptinf.typing import FloatArray, IntArray, Validity

UNITS = {"rounds": "rounds", "date": "day", "information": "information"}
"""Name of the column for the unit of each clock."""


class StoredPlan:
    """The parts of a plan that trials and logs use."""

    given: Mapping[str, Any]
    """Its arguments."""
    looks: IntArray | FloatArray
    law: str

    @classmethod
    def of(cls, log: AdaptiveLog, design: Design | None = None) -> Self:
        """The plan of the trial that collected a log.

        Parameters
        ----------
        log : AdaptiveLog
            The log of a trial that was created with a plan, also if it was read from a file.
        design : Design, optional
            The trial's design, if it is user-defined, for simulations and re-randomisation.

        Returns
        -------
        Plan

        Raises
        ------
        ParameterError
            If the log states no plan.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> coin = ai.designs.Uniform()
        >>> plan = ai.Plan(coin, arms=["A", "B"], treatment="B", control="A", looks=[2, 4])
        >>> with ai.Trial.create(f"{tempfile.mkdtemp()}/trial.db", plan) as trial:
        ...     decision = trial.assign("participant 1", key="request 1")
        ...     outcome = trial.record(decision.id, 1.0, key="request 2")
        ...     log = trial.log()
        >>> ai.Plan.of(log)
        <Plan: B - A, looks after 2, 4 rounds, lan-demets-obrien-fleming spending>
        """
        found, arguments = stated_by(log, design)
        return cls(found, **arguments)  # type: ignore[call-arg]

    def recorded(self, look: Mapping[str, Any]) -> Look:
        """A look from its numbers, as stored by a trial.

        Parameters
        ----------
        look : mapping
            The stage, rounds and decision of a look, and the statistic and the bound if a test was made.
        """
        return Look.of(look, self._planned, self.given["clock"])

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the plan except the design, as plain values."""
        if hasattr(self.given["delay"], "rvs"):
            problem = "a distribution of delays cannot be stored in a file: use plan.changed(delay=0)"
            raise ParameterError("Plan", [problem])
        return {name: _plain(value) for name, value in self.given.items() if name != "design"}

    @property
    def validity(self) -> Validity:
        """Validity of the results: exact by rank among replays, and by the distribution of counts."""
        return "asymptotic" if self.law == "z" else "exact"

    @property
    def _planned(self) -> tuple[float, ...]:
        """Times of all looks: rounds, or days since the start."""
        return tuple(self.looks.tolist())


def stage_problems(stage: Any, reached: int, rounds: int) -> list[str]:
    """Problems with the number of a look, given how many looks a log has reached."""
    problems = COUNT("stage", stage)
    if not problems and stage > reached:
        problems = [f"look {stage} has not been reached: after {rounds:,} rounds, only {reached} looks have"]
    return problems


def _plain(value: Any) -> Any:
    """A value without NumPy's types; sequences become lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, date):
        return value.isoformat()
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def stated_by(log: Any, design: Design | None) -> tuple[Design, dict[str, Any]]:
    """Design and further arguments of the plan in a log; a user-defined design may be given."""
    if not states_plan(log):
        raise ParameterError("Plan.of", ["the log does not state a plan: its trial was created without one"])
    record = log.design
    if design is None:
        design = rebuilt(record) or _absent(record)
    return design, record.parameters[PLAN]


def _absent(record: DesignRecord) -> Design:
    """A design in place of a user-defined one, of which only the name is known; it cannot be run."""

    def choose(state: Any, context: Any, rng: np.random.Generator) -> Any:
        problem = (
            f"{record.name} is a user-defined design, which cannot be stored in a file: use Plan.of(log, "
            "design=...)"
        )
        raise ParameterError("Plan", [problem])

    return FunctionDesign(choose, traits=record.traits)


def followed(rule: Rule, log: AdaptiveLog) -> Rule:
    """The rule without futility at looks after which someone continued the trial."""
    passed = [look["stage"] - 1 for look in overridden(log) if look["decision"] == "futility"]
    if not passed:
        return rule
    futility = rule.futility.copy()
    futility[passed] = -np.inf
    return replace(rule, futility=futility)


def outcomes_of(log: AdaptiveLog) -> tuple[IntArray, FloatArray, FloatArray]:
    """Actions, rewards and propensities for scores; rounds whose reward is missing have the action -1.

    Shapes (T,), (T,), (T, K). The propensity of an arm is that of drawing it and observing the reward, with
    the observed share of the arm's earlier rewards, 1 before the first.
    """
    arrays = log.arrays
    assert arrays.propensities is not None
    if arrays.observed is None:
        return arrays.action, arrays.reward, arrays.propensities
    if log.missing != "drop" or arrays.observation is not None:
        raise InvalidForLog("Plan", claims.BOUNDED(), ["missing='drop'"])
    drawn = arrays.action[:, None] == np.arange(log.n_arms)
    seen = drawn & arrays.observed[:, None]
    before = [np.cumsum(each, axis=0) - each for each in (drawn.astype(np.float64), seen.astype(np.float64))]
    share = np.divide(before[1], before[0], out=np.ones(drawn.shape), where=before[0] > 0.0)
    action = np.where(arrays.observed, arrays.action, -1)
    return action, np.where(arrays.observed, arrays.recorded, 0.0), arrays.propensities * share


def missing_assumed(log: AdaptiveLog) -> list[str]:
    """The assumption about missing rewards, if there are any."""
    return [] if log.missing is None else [AT_RANDOM(given="the arm"), STEADY()]


def differs(log: AdaptiveLog, stage: int, decision: str) -> str:
    """How the decision from the log differs from the one that the trial recorded; empty if it does not."""
    last = ended(looks_of(log))
    if last is None or (last["stage"], last["decision"]) == (stage, decision):
        return ""
    return claims.DIFFERS(stage=last["stage"], recorded=last["decision"], decision=decision, found=stage)
