"""The appendix of a protocol: the plan, its critical values, its operating characteristics, and ICH E20.

References
----------
ICH (2025). E20: Adaptive designs for clinical trials. Draft guideline, Step 2b, 25 June 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.measures import binomial_limits, markdown, numbered
from adaptinf.claims.logs import protocols as claims
from adaptinf.claims.reports.answers import E20_TOPICS, FOR_AUTHORS
from adaptinf.plans.plan_characteristics import PlanCharacteristics
from adaptinf.plans.planned_trial import PlannedTrial
from adaptinf.plans.planning.plan_words import characteristic_in_words
from adaptinf.typing import FloatArray
from adaptinf.version import __version__

# A difference below this is none.
_SAME = 1e-12
_ESTIMATION = {"z": claims.STAGEWISE, "rerandomization": claims.BY_RANK, "exact": claims.BY_COUNTS}
_DRIFT = {"z": claims.DRIFT_CANCELS, "rerandomization": claims.DRIFT_ALLOWED, "exact": claims.NO_DRIFT}


@dataclass(frozen=True, eq=False)
class Protocol:
    """The appendix of a protocol, filled in from a plan; `report` writes it as a page.

    Attributes
    ----------
    plan : Plan
        The plan.
    found : PlanCharacteristics
        Its operating characteristics.
    seed : int or None
        The seed of the simulation.
    facts : dict of str
        What the plan fixes in advance.
    topics : DataFrame
        The twelve topics of the draft ICH E20 guideline in a few words, in `topic` and `answer`; information
        that only the authors have is left to them.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[100, 200])
    >>> worlds = {"equal": ai.environments.BernoulliArms([0.5, 0.5])}
    >>> appendix = plan.protocol(worlds, replications=128, rng=1)
    >>> len(appendix.topics), appendix.to_markdown().splitlines()[0]
    (12, '# Appendix: adaptive design')
    """

    plan: PlannedTrial
    found: PlanCharacteristics
    seed: int | None

    @property
    def facts(self) -> dict[str, str]:
        """What the plan fixes in advance."""
        plan = self.plan
        told = {
            "Design": repr(plan.design),
            "Arms": ", ".join(map(str, plan.arms)),
            "Comparison": ", ".join(f"{one} minus {plan.control}" for one in plan.treatments),
            "Null hypothesis": f"the difference is {'' if plan.sides == 2 else 'at most '}{plan.margin:g}",
            "Level": f"{plan.alpha:g}, {'two' if plan.sides == 2 else 'one'}-sided",
            "Looks": plan.said_looks,
            "Spending": plan.spending + self._parameter,
            "Futility": self._limits(plan.rule.futility),
            "Dropping": self._limits(plan.rule.drop),
            "Distribution": plan.law,
            "Least data at a look": f"{plan.rule.least:g} effective rewards in each arm, and outcomes "
            "of both kinds",
        }
        if plan.law == "rerandomization":
            told["Replays"] = f"{plan.replays:,}, seed {plan.seed}"
        if len(plan.treatments) == 1:
            del told["Dropping"]
        if plan.law != "z":
            del told["Least data at a look"]
        if plan.inflation != 1.0:
            told["Factor of critical values"] = f"{plan.inflation:.6g}"
        return told

    @property
    def _parameter(self) -> str:
        names = {"hwang-shih-decani": f", gamma {self.plan.gamma:g}", "power": f", rho {self.plan.rho:g}"}
        return names.get(self.plan.spending, "")

    @staticmethod
    def _limits(scores: FloatArray) -> str:
        limits = scores[:-1]
        if not np.isfinite(limits).any():
            return "none"
        return f"not binding, standardised score at most {', '.join(f'{limit:g}' for limit in limits)}"

    @property
    def topics(self) -> pd.DataFrame:
        """The twelve topics and their answers."""
        answers = (
            "",
            claims.ADAPTATIONS(
                design=type(self.plan.design).__name__,
                looks=len(self.plan.looks),
                futility=self._limits(self.plan.rule.futility),
            ),
            self._level(),
            self._power(),
            self._bias(),
            self._coverage(),
            claims.REPEATED() if self.plan.joint else _ESTIMATION[self.plan.law](),
            _DRIFT[self.plan.law](),
            claims.SENSITIVITY() if self.plan.law == "z" else "",
            self._simulation(),
            "",
            claims.DEVIATIONS(),
        )
        told = [answer or FOR_AUTHORS for answer in answers]
        return pd.DataFrame({"topic": E20_TOPICS, "answer": told})

    def _rows(self, needed: str = "rejected") -> list[dict[Any, Any]]:
        """Rows of the table in which a number is known."""
        if needed not in self.found.frame:
            return []
        return self.found.frame.dropna(subset=[needed]).to_dict("records")

    def _at_null(self, *, null: bool) -> list[dict[Any, Any]]:
        """Scenarios in which the null is true, or false."""
        plan, found = self.plan, []
        names = ["difference"] if "difference" in self.found.frame else []
        names = names or [f"difference_{one}" for one in plan.treatments]
        for row in self._rows():
            gaps = [row[name] - plan.margin for name in names]
            true = all((gap if plan.sides == 1 else abs(gap)) <= _SAME for gap in gaps)
            found += [row] if true == null else []
        return found

    def _level(self) -> str:
        rows = self._at_null(null=True)
        if not rows:
            return claims.LEVEL_NOT_SIMULATED(alpha=self.plan.alpha)
        row = max(rows, key=itemgetter("rejected"))
        trials = self.found.replications - row["failed"]
        high = binomial_limits(round(row["rejected"] * trials), trials)[1]
        if row["rejected_se"] == 0.0 < row["rejected"]:
            high = row["rejected"]
        return claims.LEVEL(
            alpha=self.plan.alpha,
            share=row["rejected"],
            high=high,
            scenario=row["scenario"],
            scenarios=len(rows),
        )

    def _power(self) -> str:
        rows = self._at_null(null=False)
        if not rows:
            return ""
        row = min(rows, key=itemgetter("rejected"))
        return claims.POWER(
            share=row["rejected"], error=row["rejected_se"], scenario=row["scenario"], size=row["size_mean"]
        )

    def _bias(self) -> str:
        if self.plan.joint:
            told = [(row, one) for row in self._rows() for one in self.plan.treatments]
            row, one = max(told, key=lambda each: abs(np.nan_to_num(each[0][f"bias_{each[1]}"])))
            return claims.JOINT_BIAS(
                bias=row[f"bias_{one}"], rmse=row[f"rmse_{one}"], arm=one, scenario=row["scenario"]
            )
        rows = self._rows("bias")
        if not rows:
            return ""
        row = max(rows, key=lambda one: abs(one["bias"]))
        return claims.BIAS(
            bias=row["bias"], naive=row["naive_bias"], rmse=row["rmse"], scenario=row["scenario"]
        )

    def _coverage(self) -> str:
        rows = self._rows("coverage")
        if not rows:
            return claims.NO_INTERVAL() if self.plan.law != "z" else ""
        row = min(rows, key=itemgetter("coverage"))
        nominal = 1.0 - self.plan.alpha * 2 / self.plan.sides
        if self.plan.joint:
            return claims.JOINT_COVERAGE(nominal=nominal, share=row["coverage"], scenario=row["scenario"])
        return claims.COVERAGE(
            nominal=nominal,
            share=row["coverage"],
            naive=row["naive_coverage"],
            scenario=row["scenario"],
        )

    def _simulation(self) -> str:
        return claims.SIMULATION(
            trials=self.found.replications,
            scenarios=", ".join(self.found.frame["scenario"]),
            seed="not stated" if self.seed is None else self.seed,
            version=__version__,
        )

    @property
    def bounds(self) -> pd.DataFrame:
        """Critical values of the looks, and the level spent by then."""
        found = self.plan.bounds.rename_axis("look").reset_index()
        return found.drop(columns="bound") if self.plan.law != "z" else found

    @property
    def characteristics(self) -> pd.DataFrame:
        """Operating characteristics, with a column for each scenario."""
        arms, joint = self.plan.arms, self.plan.joint
        frame = self.found.frame.set_index("scenario")
        frame = frame.rename(columns=lambda name: characteristic_in_words(name, arms, joint=joint))
        return frame.T.rename_axis("characteristic").rename_axis(None, axis=1).reset_index()

    @property
    def looks(self) -> pd.DataFrame:
        """What happens at each look in each scenario."""
        return self.found.looks.rename(columns=lambda name: name.replace("_", " "))

    def to_markdown(self, digits: int = 4) -> str:
        """The appendix as Markdown.

        Parameters
        ----------
        digits : int
            Decimals.

        Returns
        -------
        str
        """
        facts = pd.DataFrame({"item": list(self.facts), "plan": list(self.facts.values())})
        parts = [
            "# Appendix: adaptive design",
            markdown(facts),
            "## Critical values",
            claims.BOUNDS(law=self.plan.law),
            markdown(self.bounds, digits),
            "## Operating characteristics",
            markdown(self.characteristics, digits),
            *numbered(self.found.notes),
            "## Looks",
            markdown(self.looks, digits),
            "## Topics of the ICH E20 draft",
            markdown(self.topics),
        ]
        return "\n\n".join(parts) + "\n"
