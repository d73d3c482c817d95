"""A plan before its trial: a design, scenarios, horizons; what can be wrong, and how tables look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.engine import cell_problems, horizon_problems
from adaptinf.audit.simulation.tables import hypertext, markdown
from adaptinf.designs.base_design import Design
from adaptinf.designs.function_design import FunctionDesign
from adaptinf.files import as_path, atomic_write
from adaptinf.parameters import COUNT, FINITE, JOBS, SEED, Is, alpha_problems, problems_of
from adaptinf.simulation.environments import Environment
from adaptinf.texts import frame_text, literal, spreadsheet_cell, visible_lines, with_texts


@dataclass(frozen=True, eq=False)
class PlanTable:
    """A table of simulated characteristics of a plan."""

    frame: pd.DataFrame
    alpha: float
    design: str
    replications: int
    notes: tuple[str, ...] = ()

    def to_csv(self, path: str | Path) -> None:
        """Write `frame` to a CSV file; texts that a spreadsheet would compute begin with an apostrophe.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.

        Raises
        ------
        FileError
            If it cannot be written; a file that is there stays as it is.
        """
        place = as_path(f"{type(self).__name__}.to_csv", "path", path)
        shown = with_texts(self.frame, spreadsheet_cell)
        atomic_write(place, lambda file: shown.to_csv(file, index=False))

    @property
    def _head(self) -> str:
        trials = f"{self.replications:,} simulated trials a scenario and horizon"
        return visible_lines([self.design, f"{trials}, alpha {self.alpha:g}"])

    def _as_text(self, rows: pd.DataFrame, digits: int = 4) -> str:
        text = frame_text(rows, na_rep="", float_format=lambda value: f"{value:.{digits}f}")
        return "\n".join([self._head, text, *self._numbered])

    def _as_markdown(self, rows: pd.DataFrame, digits: int) -> str:
        return "\n\n".join([markdown(rows, digits), *self._numbered])

    @property
    def _shown(self) -> pd.DataFrame:
        """What is printed of `frame`."""
        return self.frame

    def _repr_html_(self) -> str:
        return hypertext(self._shown, self._head.replace("\n", "; "), self.notes)

    @property
    def _numbered(self) -> list[str]:
        return [f"[{number}] {literal(note)}" for number, note in enumerate(self.notes, 1)]


def scenario_list(env: Any) -> Any:
    """Environments by name; a single one is named after its class."""
    return {type(env).__name__: env} if isinstance(env, Environment) else env


def named_scenarios(env: Any) -> tuple[dict[str, Environment], list[str]]:
    """Environments by name, and what is wrong with them."""
    given = scenario_list(env)
    if not isinstance(given, Mapping) or not given:
        return {}, [
            "env must be an environment, such as BernoulliArms([0.3, 0.5]), or a dict of environments by "
            f"scenario, got {env!r:.60}"
        ]
    problems = []
    for name, value in given.items():
        if not isinstance(name, str) or not name.strip():
            problems.append(f"env must have scenario names that are not empty strings, got {name!r:.60}")
        if not isinstance(value, Environment):
            problems.append(f"env[{name!r}] must be an environment, got {value!r:.60}")
    return dict(given), problems


def design_of_rule(design: Any) -> Any:
    """A design, or the one that a rule for two arms makes, which is given as `audit.exact` takes it."""
    rule = callable(design) and not isinstance(design, (Design, type))
    return FunctionDesign.of_counts(design) if rule else design


def _truth_problems(scenarios: Mapping[str, Environment]) -> list[str]:
    """Say which environments do not know their own means."""
    return [
        f"env {name!r} was not told its true means, by which arms are better or worse: give means= there"
        for name, scenario in scenarios.items()
        if np.isnan(scenario.means).any()
    ]


def plan_problems(
    design: Any,
    env: Any,
    horizon: Any,
    replications: Any,
    rng: Any,
    alpha: Any,
    n_jobs: Any,
) -> tuple[dict[str, Environment], tuple[int, ...], list[str]]:
    """Scenarios and horizons of a plan, and all that is found wrong with it."""
    scenarios, problems = named_scenarios(env)
    many = isinstance(horizon, Sequence) and not isinstance(horizon, (str, bytes))
    horizons = tuple(horizon) if many else (horizon,)
    problems += list(horizon_problems(list(horizons))) if many else COUNT("horizon", horizon)
    problems += problems_of(
        design=(design, Is(Design, "a design, such as Uniform()")),
        replications=(replications, COUNT),
        rng=(rng, SEED),
        n_jobs=(n_jobs, JOBS),
    )
    problems += alpha_problems(alpha)
    if not problems:
        given = {"designs": {type(design).__name__: design}, "environments": scenarios}
        problems += list(cell_problems({**given, "horizons": horizons, "replications": replications}))
        problems += _truth_problems(scenarios)
    return scenarios, horizons, problems


def null_problems(null: Any) -> list[str]:
    """Say what is wrong with what is to be tested."""
    if null is None:
        return []
    if not isinstance(null, Mapping):
        return FINITE("null", null)
    if not null:
        return ["null must have at least one term, or be left out"]
    return [problem for term, value in null.items() for problem in FINITE(f"null[{term!r}]", value)]
