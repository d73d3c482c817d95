"""Type I error and power of a planned analysis under a design, over scenarios and horizons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.engine import (
    Fit,
    LogCell,
    cell_problems,
    gathered,
    horizon_problems,
    total_sums,
)
from adaptinf.audit.simulation.measures import (
    BlockSums,
    binomial_error,
    binomial_limits,
    check_columns,
    hypertext,
    latex,
    markdown,
    numbered,
    plain,
    rejections,
    table_rows,
)
from adaptinf.designs.base import Design
from adaptinf.designs.function_design import FunctionDesign
from adaptinf.errors import ParameterError
from adaptinf.files import as_path, atomic_write
from adaptinf.parameters import COUNT, FINITE, JOBS, SEED, Is, alpha_problems, problems_of, refuse
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.texts import absent, spreadsheet_cell, visible_lines, with_texts
from adaptinf.typing import RandomSource


@dataclass(frozen=True, eq=False)
class PlanTable:
    """A table of simulated characteristics of a plan."""

    frame: pd.DataFrame
    alpha: float
    design: str
    replications: int
    notes: tuple[str, ...] = ()

    def to_csv(self, path: str | Path) -> None:
        """Write `frame` to a CSV file; text that a spreadsheet would evaluate is prefixed with an apostrophe.

        Parameters
        ----------
        path : str or Path
            Path of the file; an existing one is replaced.

        Raises
        ------
        FileError
            If the file cannot be written; an existing file is left unchanged.
        """
        place = as_path(f"{type(self).__name__}.to_csv", "path", path)
        shown = with_texts(self.frame, spreadsheet_cell)
        atomic_write(place, lambda file: shown.to_csv(file, index=False))

    def to_latex(self, digits: int = 4) -> str:
        """The printed table as a LaTeX tabular (it needs the booktabs package), with notes below.

        Parameters
        ----------
        digits : int
            Decimals.

        Returns
        -------
        str
        """
        return latex(self._shown, self._head.replace("\n", "; "), self.notes, digits)

    @property
    def _head(self) -> str:
        trials = f"{self.replications:,} simulated trials per scenario and horizon"
        return visible_lines([self.design, f"{trials}, alpha {self.alpha:g}"])

    def _as_text(self, rows: pd.DataFrame, digits: int = 4, aligns: str | None = None) -> str:
        return plain(rows, self._head.split("\n"), self.notes, digits, aligns=aligns)

    def _as_markdown(self, rows: pd.DataFrame, digits: int) -> str:
        return "\n\n".join([markdown(rows, digits), *numbered(self.notes)])

    @property
    def _shown(self) -> pd.DataFrame:
        """The part of `frame` that is printed."""
        return self.frame

    def _repr_html_(self) -> str:
        return hypertext(self._shown, self._head.replace("\n", "; "), self.notes)


def scenario_list(env: Any) -> Any:
    """Environments by name; a single environment is named after its class."""
    return {type(env).__name__: env} if isinstance(env, Environment) else env


def named_scenarios(env: Any) -> tuple[dict[str, Environment], list[str]]:
    """Environments by name, and problems with them."""
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
    """A design, or the one defined by a rule for two arms in the form required by `audit.exact`."""
    rule = callable(design) and not isinstance(design, (Design, type))
    return FunctionDesign.of_counts(design) if rule else design


def _truth_problems(scenarios: Mapping[str, Environment]) -> list[str]:
    """List environments that do not know their own means."""
    return [
        f"env {name!r} has no true means, which determine the better and worse arms: pass means= to it"
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
    """Scenarios and horizons of a plan, and all problems with it."""
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
    """List problems with the hypotheses to be tested."""
    if null is None:
        return []
    if not isinstance(null, Mapping):
        return FINITE("null", null)
    if not null:
        return ["null must contain at least one term, or be omitted"]
    return [problem for term, value in null.items() for problem in FINITE(f"null[{term!r}]", value)]


TYPE_I, POWER, NO_TEST = "type-I error", "power", "no test"
_SAME = 1e-12
_SHOWN = (
    "scenario",
    "horizon",
    "analysis",
    "term",
    "truth",
    "null",
    "kind",
    "rejection",
    "rejection_se",
    "missing",
    "coverage",
    "bias",
    "width",
)
_KEPT = ("coverage", "coverage_se", "bias", "bias_se", "sd", "width")


@dataclass(frozen=True, eq=False)
class Power(PlanTable):
    """Rejection rates of an analysis over simulated trials.

    Attributes
    ----------
    frame : DataFrame
        One row per scenario, horizon, analysis and term. `truth` and `null`: the true value and the tested
        one; `kind`: "type-I error" if they are equal (up to 1e-12), "power" if they differ, "no test" if
        nothing is tested. `rejection`: share of all simulated trials whose interval excludes the null, with
        its binomial standard error `rejection_se` and the exact 95% limits (Clopper-Pearson) `rejection_low`
        and `rejection_high` for simulation error; a trial without an interval counts as a failure to reject.
        `runs` and `missing`: trials with and without an interval; `absent`: the number of the latter in which
        the analysis returned no such result or term, for example because a log lacks a context. The following
        are computed over the trials with an interval: `coverage` and `bias`, with their standard errors, `sd`
        of the estimates, and mean `width`. Standard errors are NaN for a single trial; for a share of 0 or 1
        they are 0, and only the limits are informative.
    alpha, design, replications, notes
        As in every table of a plan.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = {"equal": ai.environments.BernoulliArms([0.4, 0.4])}
    >>> fit = lambda log: ai.Contrast(log, treatment=1, control=0).fit()
    >>> plan = ai.audit.power(ai.designs.Uniform(), env, fit, horizon=100, replications=64, rng=0)
    >>> plan.frame[["scenario", "kind"]].to_dict("list")
    {'scenario': ['equal'], 'kind': ['type-I error']}
    """

    def to_markdown(self, columns: Sequence[str] = _SHOWN, digits: int = 4) -> str:
        """The table as Markdown.

        Parameters
        ----------
        columns : sequence of str
            Columns of `frame`, in order.
        digits : int
            Decimals.

        Returns
        -------
        str

        Raises
        ------
        ParameterError
            If a column does not exist.
        """
        check_columns(self.frame, columns)
        return self._as_markdown(self.frame[list(columns)], digits)

    @property
    def _shown(self) -> pd.DataFrame:
        return self.frame[list(_SHOWN)]

    def __str__(self) -> str:
        return self._as_text(self._shown)


def power(
    design: Design | Callable[..., Any],
    env: Environment | Mapping[str, Environment],
    fit: Fit,
    horizon: int | Sequence[int],
    replications: int,
    rng: RandomSource | None = None,
    *,
    null: float | Mapping[str, float] | None = None,
    alpha: float = 0.05,
    n_jobs: int = 1,
) -> Power:
    """Probability that an analysis rejects: its type I error if the null is true, otherwise its power.

    Parameters
    ----------
    design : Design or callable
        The design that collects the data; or a rule for two arms in the form required by `exact`,
        ``probability(n1, s1, n0, s0, t)``.
    env : Environment, or dict of Environment by scenario
        Environments with known truth: for instance equal arms, the expected difference, and the smallest
        difference that matters.
    fit : callable
        A function of an AdaptiveLog that returns a result, or a dict of results by name.
    horizon : int or sequence of int
        Number of rounds of a trial, or several such numbers.
    replications : int
        Number of trials for each scenario and horizon.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r of a scenario and horizon depends only on (rng, r), and equals trial r
        of `coverage` with the same `rng`.
    null : float, or dict of float by term, optional
        The null values. By default the null value of the result, that is, the argument ``null`` of its
        ``fit`` (0 if omitted, which is rarely sensible for means of 0/1 rewards). If a dict is given, terms
        that it does not contain are not tested.
    alpha : float
        Level of the tests, between 0 and 0.5; one minus the confidence level of the intervals.
    n_jobs : int
        Number of worker processes; it does not affect the results.

    Returns
    -------
    Power
        A result with a max-information correction has a second row for the corrected test.

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem, before anything is drawn); or if the true
        value of an estimand is unknown, or `null` names a term that no result has.
    AnalysisError
        If the analysis fails in a trial.

    Notes
    -----
    P-values and intervals of a result agree: a test at level `alpha` rejects exactly when the interval
    excludes the null. The tests are two-sided, so power counts rejections in either direction. Trials for
    different scenarios and horizons use the same random streams, so their simulation errors are not
    independent.

    References
    ----------
    Morris, T. P., White, I. R. and Crowther, M. J. (2019). Using simulation studies to evaluate statistical
    methods.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.audit.power(
    ...     ai.designs.Uniform(),
    ...     {name: ai.environments.BernoulliArms([0.3, p]) for name, p in [("equal", 0.3), ("better", 0.6)]},
    ...     lambda log: ai.Contrast(log, treatment=1, control=0).fit(),
    ...     horizon=100,
    ...     replications=256,
    ...     rng=0,
    ... )
    >>> plan.frame[["scenario", "kind", "rejection"]].round(2).to_dict("list")
    {'scenario': ['equal', 'better'], 'kind': ['type-I error', 'power'], 'rejection': [0.06, 0.87]}
    """
    made: Design = design_of_rule(design)
    scenarios, horizons, problems = plan_problems(made, env, horizon, replications, rng, alpha, n_jobs)
    problems += Is(callable, "a function of a log that returns a result")("fit", fit)
    refuse("power", problems + null_problems(null))
    root = seed_sequence(rng)
    places = [(name, int(size)) for name in scenarios for size in horizons]
    cells = [
        LogCell((repr(made), name), made, scenarios[name], size, {"": fit}, alpha, root, null=null)
        for name, size in places
    ]
    if isinstance(null, Mapping):
        check_terms("power", null, cells)
    rows = [
        row
        for (name, size), chunks in zip(places, gathered(cells, replications, n_jobs), strict=True)
        for row in power_rows({"scenario": name, "horizon": size}, total_sums(chunks), replications)
    ]
    return Power(pd.DataFrame(rows), float(alpha), repr(made), int(replications), power_notes(rows))


def kind_of_test(truth: float, null: float | None) -> str:
    """Meaning of a rejection: an error if the null is true, power otherwise."""
    if null is None or math.isnan(null):
        return NO_TEST
    return TYPE_I if math.isclose(truth, null, rel_tol=_SAME, abs_tol=_SAME) else POWER


def power_rows(place: Mapping[str, Any], sums: BlockSums, replications: int) -> Iterator[dict[str, Any]]:
    """Rows of `Power.frame` for one scenario and horizon."""
    for row, rejected in zip(table_rows(sums), rejections(sums), strict=True):
        share = low = high = math.nan
        if rejected is not None:
            share = rejected / replications
            low, high = binomial_limits(rejected, replications)
        yield {
            **place,
            **{name: row[name] for name in ("analysis", "term", "truth", "null")},
            "kind": kind_of_test(row["truth"], row["null"]),
            "rejection": share,
            "rejection_se": binomial_error(share, replications),
            "rejection_low": low,
            "rejection_high": high,
            "runs": row["runs"],
            "missing": replications - row["runs"],
            "absent": replications - row["runs"] - row["missing"],
            **{name: row[name] for name in _KEPT},
        }


def check_terms(subject: str, null: Mapping[str, float], cells: Sequence[LogCell]) -> None:
    """Refuse a null for a term that appears in no result of the first trials or their first blocks."""
    for stop in (1, BLOCK):
        sums = [cell.chunk(0, stop, keep=False).blocks[0] for cell in cells]
        terms = list(dict.fromkeys(key.term for block in sums for key in block.parts))
        unknown = [name for name in null if name not in terms]
        if not unknown:
            return
    raise ParameterError("power", [f"null: {absent('term', name, terms)}" for name in unknown])


def power_notes(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Information needed to interpret rows of `Power.frame`."""
    notes = []
    if any(row["missing"] for row in rows):
        notes.append(
            "Trials without an interval count as not rejecting; coverage, bias and width refer to the others."
        )
    absent = max((row["absent"] for row in rows), default=0)
    if absent:
        notes.append(
            f"In up to {absent:,} trials, the analysis returned no such result or term; these count as "
            f"trials without an interval."
        )
    if any(row["kind"] == NO_TEST for row in rows):
        notes.append("There is no test, because null= contains no value for the term.")
    return tuple(notes)
