"""Reports for a data monitoring committee: an open one without results by arm, and a closed one with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.measures import markdown
from adaptinf.claims.logs import committees as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.stated_plans import GOES_ON, looks_of, states_plan
from adaptinf.plans.planning.conditional import conditional_power, predictive_power
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

_NUMBERS = ("statistic", "bound")
_ARMS = ("leading", "rejected", "dropped")


@dataclass(frozen=True, eq=False)
class CommitteeReport:
    """The state of a trial for its data monitoring committee; `report` writes it as a page.

    Attributes
    ----------
    plan : Plan
        The plan.
    log : AdaptiveLog
        The trial so far.
    closed : bool
        Whether results by arm are shown.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
    >>> log = plan.design.run(ai.environments.NormalArms([0.0, 0.1]), horizon=100, rng=0)
    >>> plan.committee(log).looks.to_dict("records")
    [{'look': 1, 'participants': 100, 'ends the trial': 'no'}]
    >>> plan.committee(log, closed=True).by_arm["participants"].tolist()
    [45, 55]
    """

    plan: Any
    log: AdaptiveLog
    closed: bool

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"{'Closed' if self.closed else 'Open'} report for the data monitoring committee"

    @property
    def facts(self) -> dict[str, str]:
        """The plan, and the trial so far over all arms."""
        plan, outcomes = self.plan, _moments(profile_of(self.log).rewards)
        told = {
            "Comparison": ", ".join(f"{one} minus {plan.control}" for one in plan.treatments),
            "Level": f"{plan.alpha:g}, {'two' if plan.sides == 2 else 'one'}-sided, {plan.spending}",
            "Looks": plan.said_looks,
            "Largest number of participants": f"{plan.horizon:,}",
            "Participants": f"{self.log.n_rounds:,}",
            "Outcomes": f"{outcomes['outcomes']:,}",
            "Mean outcome": _said(outcomes["mean"]),
            "Standard deviation": _said(outcomes["standard deviation"]),
        }
        if self.closed and plan.law == "z":
            told["Information"] = _said(plan.information_now(self.log))
        return told

    @property
    def looks(self) -> pd.DataFrame:
        """The looks so far: when, and whether they end the trial; in a closed report, their numbers."""
        rows = []
        for one in self._taken():
            row = {"look": one["stage"], "participants": one["rounds"]}
            if self.closed:
                row |= {name: one.get(name, math.nan) for name in _NUMBERS}
                row |= {name: _listed(one.get(name)) for name in _ARMS}
                rows.append({**row, "decision": one["decision"]})
            else:
                rows.append({**row, "ends the trial": "no" if one["decision"] == GOES_ON else "yes"})
        return pd.DataFrame(rows)

    @property
    def by_arm(self) -> pd.DataFrame:
        """Participants, outcomes, means and standard deviations by arm; empty in an open report."""
        if not self.closed:
            return pd.DataFrame()
        labels = self.plan.arms if self.log.arms == tuple(range(len(self.plan.arms))) else self.log.arms
        profile, counts = profile_of(self.log), np.bincount(self.log.arrays.action, minlength=len(labels))
        rows = [
            {"arm": str(label), "participants": int(count), **_moments(profile.rewards[own])}
            for label, count, own in zip(labels, counts, profile.rows_of_arms, strict=True)
        ]
        return pd.DataFrame(rows)

    @property
    def statements(self) -> list[str]:
        """What the report shows and, in a closed one, the result or the conditional power."""
        promised = LogFacts.of(self.log).guarantee
        private = [claims.UNCOVERED()] if promised is not None and promised.epsilon > 0.0 else []
        if not self.closed:
            return [claims.OPEN(), *private]
        return [claims.CLOSED(), *private, claims.NAIVE(), self._finding()]

    def _finding(self) -> str:
        try:
            result = self.plan.analyse(self.log)
        except InvalidForLog:
            return self._power()
        return claims.RESULT(decision=result.decision, sentence=result.sentence())

    def _power(self) -> str:
        try:
            estimate, null = (conditional_power(self.plan, self.log, one) for one in (None, self.plan.margin))
            predictive = predictive_power(self.plan, self.log)
        except InvalidForLog as error:
            return claims.NO_POWER(reason=error.reason)
        return claims.POWER(estimate=estimate, null=null, predictive=predictive)

    def _taken(self) -> list[Mapping[str, Any]]:
        """The looks that the log states, or else those that the plan would have taken."""
        if states_plan(self.log):
            return looks_of(self.log)
        found: list[Mapping[str, Any]] = []
        for stage in range(1, self.plan.look(self.log).stage + 1):
            look = self.plan.look(self.log, stage)
            told = {name: getattr(look, name) for name in ("stage", "rounds", "decision", *_NUMBERS, *_ARMS)}
            found.append(told)
        return found

    def to_markdown(self, digits: int = 4) -> str:
        """The report as Markdown.

        Parameters
        ----------
        digits : int
            Decimals.

        Returns
        -------
        str
        """
        facts = pd.DataFrame({"item": list(self.facts), "trial": list(self.facts.values())})
        parts = [f"# {self.title}", *self.statements, markdown(facts), "## Looks taken so far"]
        parts.append(markdown(self.looks, digits) if len(self.looks) else "None.")
        if self.closed:
            parts += ["## Outcomes by arm", markdown(self.by_arm, digits)]
        return "\n\n".join(parts) + "\n"


def _moments(reward: FloatArray) -> dict[str, Any]:
    """Number, mean and standard deviation of outcomes of shape (n,)."""
    count = len(reward)
    mean = float(reward.mean()) if count else math.nan
    spread = float(reward.std(ddof=1)) if count > 1 else math.nan
    return {"outcomes": count, "mean": mean, "standard deviation": spread}


def _said(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.4g}"


def _listed(arms: Any) -> str:
    """Labels in words."""
    return ", ".join(map(str, arms)) if isinstance(arms, (list, tuple)) else "" if arms is None else str(arms)
