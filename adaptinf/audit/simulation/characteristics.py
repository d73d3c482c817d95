"""Operating characteristics: the table of simulated trials for a protocol, in long and wide format."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.engine import Fit, LogCell, gathered, total_sums
from adaptinf.audit.simulation.measures import binomial_error, binomial_limits, share_text
from adaptinf.audit.simulation.selection import (
    QUANTILES,
    SELECTIONS,
    Select,
    Selection,
    TrialCell,
    Trials,
    best_arms,
    chooses_by_vectors,
    estimated,
    wrong_way_reason,
    wrong_way_trials,
)
from adaptinf.audit.simulation.simulated_power import (
    POWER,
    TYPE_I,
    PlanTable,
    check_terms,
    design_of_rule,
    null_problems,
    plan_problems,
    power_notes,
    power_rows,
)
from adaptinf.designs.base import Design
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import UNIT, Is, OneOf, OrNone, refuse
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.typing import FloatArray, RandomSource

_SAME = 1e-12
_LARGE = ("rounds", "successes", "total reward", "regret")
_QUANTILES = tuple(f"q{level:g}" for level in QUANTILES)
_SAID = {"rounds": "rounds", "share": "share of rounds", "selected": "P(selected)"}
_SAID |= {"wrong way": "P(wrong way)", "no selection": "P(none selected)"}
_SAID |= {"correct selection": "P(best arm selected)", "without interval": "share without interval"}


@dataclass(frozen=True, slots=True)
class Place:
    """Scenario and horizon of a row."""

    scenario: str
    horizon: int

    def row(
        self, measure: str, statistic: str, value: float, mc_error: float, trials: int, **where: Any
    ) -> dict[str, Any]:
        """A row of the long table; `where` contains arm, context, analysis, term, low, high and note."""
        return {
            "scenario": self.scenario,
            "horizon": self.horizon,
            "measure": measure,
            **{name: str(where.get(name, "")) for name in ("arm", "context", "analysis", "term")},
            "statistic": statistic,
            "value": float(value),
            "mc_error": float(mc_error),
            "low": where.get("low", math.nan),
            "high": where.get("high", math.nan),
            "trials": int(trials),
            "note": where.get("note", ""),
        }

    def rows(
        self, measure: str, values: FloatArray, *statistics: str, **where: Any
    ) -> Iterator[dict[str, Any]]:
        """Rows for a quantity with one number per trial."""
        for statistic, value, error in estimated(values, statistics):
            yield self.row(measure, statistic, value, error, values.size, **where)

    def shares(self, measure: str, values: FloatArray, **where: Any) -> dict[str, Any]:
        """The row of a probability, computed from a number between 0 and 1 for each trial."""
        [(_, value, error)] = estimated(np.asarray(values, dtype=np.float64), ("mean",))
        low, high = binomial_limits((values > 0.0).sum(), values.size, (values >= 1.0 - _SAME).sum())
        return self.row(measure, "probability", value, error, values.size, low=low, high=high, **where)

    def counted(self, measure: str, share: float, trials: int, **where: Any) -> dict[str, Any]:
        """The row of a proportion of trials."""
        low, high = (math.nan, math.nan)
        if not math.isnan(share):
            low, high = binomial_limits(round(share * trials), trials)
        error = binomial_error(share, trials)
        return self.row(measure, "probability", share, error, trials, low=low, high=high, **where)

    def missing(self, measure: str, reason: str, **where: Any) -> dict[str, Any]:
        """A row for an undefined quantity."""
        return self.row(measure, "probability", math.nan, math.nan, 0, note=reason, **where)

    def analysis_rows(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Rows of one term of an analysis, from its row of `Power.frame`."""
        where = {"analysis": row["analysis"], "term": row["term"]}
        runs, trials = row["runs"], row["runs"] + row["missing"]
        yield self.counted(row["kind"], row["rejection"], trials, **where)
        yield self.counted("coverage", row["coverage"], runs, **where)
        yield self.row("bias", "mean", row["bias"], row["bias_se"], runs, **where)
        note = f"{row['absent']:,} trials have no such result or term" if row["absent"] else ""
        yield self.counted("without interval", row["missing"] / trials, trials, note=note, **where)


def trial_rows(
    place: Place, cell: TrialCell, trials: Trials, reward: str, margin: float
) -> Iterator[dict[str, Any]]:
    """The rows that do not require an analysis."""
    env = cell.env
    rounds = trials.rounds.sum(axis=1)
    for measure, numbers in (("rounds", rounds), ("share", rounds / cell.horizon)):
        for code, arm in enumerate(env.arms):
            yield from place.rows(measure, numbers[:, code], "mean", "sd", "quantiles", arm=arm)
    yield from place.rows(reward, trials.reward, "mean", "sd")
    yield from place.rows("regret", trials.regret, "mean", "sd")
    yield from _wrong_way_rows(place, cell, trials, margin)
    yield from _selection_rows(place, cell, trials)


def _wrong_way_rows(place: Place, cell: TrialCell, trials: Trials, margin: float) -> Iterator[dict[str, Any]]:
    best = best_arms(cell.env.means)
    for code, context in enumerate(cell.env.features or ("",)):
        reason = wrong_way_reason(cell.design, cell.env, best[code])
        if reason:
            yield place.missing("wrong way", reason, context=context)
            continue
        values = wrong_way_trials(trials.rounds[:, code], best[code], margin)
        yield place.shares("wrong way", values, context=context)


def _selection_rows(place: Place, cell: TrialCell, trials: Trials) -> Iterator[dict[str, Any]]:
    env, rule = cell.env, cell.rule
    if rule.source == "none":
        yield place.missing("selected", rule.text)
        return
    by_context = trials.selected.shape[1] > 1 or rule.by_context
    means = env.means if by_context else env.arm_means()[None]
    best = best_arms(means)
    for code, context in enumerate(env.features if by_context else ("",)):
        chosen = trials.selected[:, code]
        for arm_code, arm in enumerate(env.arms):
            yield place.shares("selected", chosen[:, arm_code], arm=arm, context=context)
        nobody = 1.0 - chosen.max(axis=1, initial=0.0).astype(bool)
        yield place.shares("no selection", nobody, context=context)
        reason = "" if (~best[code]).any() else "no arm is better than another"
        if env.dimension and chooses_by_vectors(cell.design):
            reason = "the best arm depends on the context vector"
        if reason:
            yield place.missing("correct selection", reason, context=context)
        else:
            correct = chosen[:, best[code]].sum(axis=1)
            yield place.shares("correct selection", correct, context=context)


def wide_rows(frame: pd.DataFrame, digits: int, errors: bool) -> pd.DataFrame:
    """Text of a table with one column per scenario, and per horizon if there are several."""
    several = frame["horizon"].nunique() > 1
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    quantiles: dict[tuple[str, str], list[str]] = {}
    for row in frame.to_dict("records"):
        column = f"{row['scenario']}, n = {row['horizon']:,}" if several else row["scenario"]
        columns[column] = None
        if row["measure"] == "no test" or (row["measure"] == "without interval" and row["value"] == 0.0):
            continue
        places = 1 if row["measure"] in _LARGE else digits
        if row["statistic"] in _QUANTILES:
            label = f"{_label(row)}, quantiles {', '.join(f'{level:g}' for level in QUANTILES)}"
            quantiles.setdefault((label, column), []).append(
                f"{row['value']:,.{0 if places == 1 else places}f}"
            )
            cells.setdefault(label, {})[column] = "; ".join(quantiles[label, column])
            continue
        label = _label(row) + (", SD" if row["statistic"] == "sd" else "")
        # Type I error and power are placed side by side, whichever scenario comes first.
        if row["measure"] in (TYPE_I, POWER):
            for kind in (TYPE_I, POWER):
                cells.setdefault(_label({**row, "measure": kind}), {})
        cells.setdefault(label, {})[column] = _cell(row, places, errors)
    rows = [
        {"characteristic": label, **{column: found.get(column, "") for column in columns}}
        for label, found in cells.items()
        if found
    ]
    return pd.DataFrame(rows)


def _cell(row: Mapping[Any, Any], places: int, errors: bool) -> str:
    if math.isnan(row["value"]):
        return "n/a"
    if errors and row["statistic"] == "probability":
        return share_text(row["value"], row["mc_error"], row["trials"], places, places + 1)
    text = f"{row['value']:,.{places}f}"
    if not errors:
        return text
    error = row["mc_error"]
    return f"{text} (n/a)" if math.isnan(error) else f"{text} ({error:,.{places + 1}f})"


def _label(row: Mapping[Any, Any]) -> str:
    label = _SAID.get(row["measure"], row["measure"])
    parts = [
        f"arm {row['arm']}" if row["arm"] != "" else "",
        f"context {row['context']}" if row["context"] != "" else "",
    ]
    parts += [row["term"], row["analysis"]]
    named = [part for part in parts if part]
    return f"{label}: {', '.join(named)}" if named else label


@dataclass(frozen=True, eq=False)
class OperatingCharacteristics(PlanTable):
    """Operating characteristics of a design, and of its analysis, in each scenario.

    Attributes
    ----------
    frame : DataFrame
        One number per row: scenario, horizon, measure, arm, context, analysis, term, statistic, value, its
        Monte Carlo standard error `mc_error`, for probabilities their exact 95% limits `low` and `high`
        (Clopper-Pearson, for simulation error), the number of `trials`, and a `note` that explains missing
        values. Arm, context, analysis and term are empty if not applicable. Measures:

        "rounds", "share"
            Allocation: the number of rounds of an arm, and its share of all rounds; over all contexts.
            Statistics "mean", "sd", and the quantiles "q0.025", "q0.1", "q0.5", "q0.9", "q0.975".
        "successes" or "total reward"
            Sum of the rewards of a trial, called "successes" if all rewards in all scenarios are 0 or 1:
            "mean", "sd".
        "regret"
            Sum over rounds of the best mean in the context minus the mean of the chosen arm: "mean" (the
            expected regret), "sd".
        "wrong way"
            Probability that an inferior arm receives more rounds than the best one by over a tenth (or the
            share given by `wrong_way`) of the rounds.
        "selected", "no selection", "correct selection"
            Probability that an arm is selected, that none is, and that a best one is.
        "type-I error", "power", "no test"; "coverage"; "bias"; "without interval"
            For each term of the analysis: probability of rejection among all trials, coverage and mean error
            among the trials with an interval, and the share of trials without one, because the result has no
            interval, or because there is no such result or term.
    alpha, design, replications, notes
        As in every table of a plan.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> plan = ai.audit.operating_characteristics(ai.designs.UCB(), arms, horizon=100, replications=64, rng=0)
    >>> plan.frame["measure"].unique().tolist()[:5]
    ['rounds', 'share', 'successes', 'regret', 'wrong way']
    """

    def table(self, digits: int = 3, *, errors: bool = True) -> pd.DataFrame:
        """The table for a protocol: one row per characteristic, one column per scenario.

        Parameters
        ----------
        digits : int
            Number of decimals of probabilities, shares and biases; rounds, rewards and regret have one.
        errors : bool
            Whether to show Monte Carlo standard errors in brackets. If an estimated probability is 0 or 1,
            its one-sided exact 95% limit is shown instead, such as "0.000 (< 0.0059)" for none of 512.

        Returns
        -------
        DataFrame
            Text table with the column "characteristic" and one column per scenario; if there are several
            horizons, each has its own columns.
        """
        return wide_rows(self.frame, digits, errors)

    def to_markdown(self, digits: int = 3, *, errors: bool = True) -> str:
        """`table` as Markdown, with the notes below.

        Parameters
        ----------
        digits, errors
            As in `table`.

        Returns
        -------
        str
        """
        return self._as_markdown(self.table(digits, errors=errors), digits)

    @property
    def _shown(self) -> pd.DataFrame:
        return self.table()

    def __str__(self) -> str:
        rows = self._shown
        return self._as_text(rows, aligns="l" + "w" * (rows.shape[1] - 1))


def operating_characteristics(
    design: Design | Callable[..., Any],
    env: Environment | Mapping[str, Environment],
    horizon: int | Sequence[int],
    replications: int,
    rng: RandomSource | None = None,
    *,
    fit: Fit | None = None,
    selection: str | Select | None = None,
    wrong_way: float = 0.1,
    null: float | Mapping[str, float] | None = None,
    alpha: float = 0.05,
    n_jobs: int = 1,
) -> OperatingCharacteristics:
    """Allocation, rewards, selection and, with an analysis, error rates of a design in each scenario.

    Parameters
    ----------
    design : Design or callable
        The design that collects the data; or a rule for two arms in the form required by `exact`,
        ``probability(n1, s1, n0, s0, t)``.
    env : Environment, or dict of Environment by scenario
        Environments with known truth: for instance no difference, and the differences considered possible.
    horizon : int or sequence of int
        Number of rounds (participants) of a trial, or several such numbers.
    replications : int
        Number of trials for each scenario and horizon.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r of a scenario and horizon depends only on (rng, r). With an analysis,
        trial r is also that of `power` and `coverage`; without one, this holds only if the design has no
        shortcut for replication.
    fit : callable, optional
        The analysis: a function of an AdaptiveLog that returns a result, or a dict of results by name.
        Without an analysis, no logs are created, and there are no error rates.
    selection : {"design", "analysis", "sample mean"} or callable, optional
        The arm that a trial selects: the arm recommended by the design (best-arm designs; the last arm of an
        elimination; the better arm in each context of ConSE and DPConSE); the one with the highest estimate
        in the first result of `fit` that ranks all arms, in the earliest of the first 64 trials that has one;
        or the one with the highest sample mean. By default, the first of these that is available. Arms tied
        for the highest estimate share the trial equally, and arms without an estimate are not selected; for
        contrasts within contexts, neither arm is selected if the contrast is unknown, or if the log lacks the
        context. A function receives a log and the result of `fit`, and returns the label of an arm, or None.
    wrong_way : float
        Margin that defines "the wrong way", as a share of the rounds, in [0, 1].
    null : float, or dict of float by term, optional
        The null value, as in `power`.
    alpha : float
        Level of the tests, between 0 and 0.5; one minus the confidence level of the intervals.
    n_jobs : int
        Number of worker processes; it does not affect the results.

    Returns
    -------
    OperatingCharacteristics

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem, before anything is drawn); or if
        `selection` does not name an arm.
    AnalysisError
        If the analysis, or the function that selects, fails in a trial.

    Notes
    -----
    Two arms go the wrong way if the inferior one receives over 0.1 n more of the n rounds than the superior
    one, N_inferior - N_superior > 0.1 n (Thall, Fox and Wathen, 2015: more than 20 of 200). A trial with more
    arms goes the wrong way if some inferior arm receives over 0.1 n rounds more than the best one (if there
    are several best arms, the one of these with the most rounds). The wrong way is undefined if all arms are
    equal.

    With finitely many contexts, allocation refers to an arm's rounds over all contexts, whereas the wrong way
    is defined by context: n and the arms' rounds are those in the context, and the best arm is the best one
    there. The wrong way is undefined for designs that choose arms from context vectors, because the best arm
    changes from round to round; regret measures the distance from the best allocation. Selection by sample
    means is also made within each context; for designs that choose by vectors, no arm is selected. A correct
    selection is the selection of a best arm, and is undefined if all arms are equal.

    Monte Carlo standard errors: for a mean or probability, the standard deviation over the trials divided by
    the square root of their number; for a standard deviation, by the delta method; for a quantile, half the
    distance between the quantiles one binomial standard error to either side of its level. Standard errors
    are NaN for a single trial. The standard error of a probability is 0 if all trials agree, which is
    uninformative: use the limits `low` and `high`, which are valid for any number of trials. If tied arms
    share trials, those trials count as 0 for the lower limit and as 1 for the upper limit.

    References
    ----------
    Thall, P., Fox, P. and Wathen, J. (2015). Statistical controversies in clinical research: scientific and
    ethical problems with adaptive randomization in comparative clinical trials.

    Morris, T. P., White, I. R. and Crowther, M. J. (2019). Using simulation studies to evaluate statistical
    methods.

    Examples
    --------
    >>> import adaptinf as ai
    >>> plan = ai.audit.operating_characteristics(
    ...     ai.designs.Thompson(), ai.environments.BernoulliArms([0.25, 0.35]), 200, 256, rng=0
    ... )
    >>> row = plan.frame[plan.frame["measure"] == "wrong way"].iloc[0]
    >>> round(float(row["value"]), 3), round(float(row["mc_error"]), 3)
    (0.102, 0.019)
    """
    made: Design = design_of_rule(design)
    scenarios, horizons, problems = plan_problems(made, env, horizon, replications, rng, alpha, n_jobs)
    refuse("operating_characteristics", problems + _own_problems(fit, selection, wrong_way, null))
    root = seed_sequence(rng)
    cells: list[TrialCell] = []
    for name, scenario in scenarios.items():
        for size in horizons:
            analysis = None
            if fit is not None:
                names = (repr(made), name)
                analysis = LogCell(names, made, scenario, int(size), {"": fit}, alpha, root, null=null)
            rule = Selection.of(selection, made, scenario, _first_fits(analysis, int(replications)))
            select = selection if callable(selection) else None
            cells.append(TrialCell(made, scenario, int(size), root, rule, analysis, select))
    if isinstance(null, Mapping):
        check_terms("operating_characteristics", null, [cell.analysis for cell in cells if cell.analysis])
    found = [Trials.joined(cast(list[Trials], parts)) for parts in gathered(cells, replications, n_jobs)]
    places = [Place(name, int(size)) for name in scenarios for size in horizons]
    reward = "successes" if all(trials.binary for trials in found) else "total reward"
    rows: list[dict[str, Any]] = []
    absent: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for place, cell, trials in zip(places, cells, found, strict=True):
        rows += trial_rows(place, cell, trials, reward, float(wrong_way))
        if cell.analysis is not None:
            tests = list(power_rows({}, total_sums([trials]), replications))
            for row in tests:
                rows += place.analysis_rows(row)
            absent += [row for row in tests if row["absent"]]
        notes[cell.rule.text] = None
    return OperatingCharacteristics(
        pd.DataFrame(rows),
        float(alpha),
        repr(made),
        int(replications),
        (_margin_note(float(wrong_way)), *notes, *power_notes(absent), *_limit_notes(rows)),
    )


def _margin_note(margin: float) -> str:
    return (
        f"Wrong way: in n rounds, an inferior arm is assigned over {margin:.3g} n times more than the best "
        "arm."
    )


def _limit_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if any(row["statistic"] == "probability" and row["value"] in (0.0, 1.0) for row in rows):
        return ["A share of 0 or 1 has no standard error: its one-sided 95% limit follows the sign < or >."]
    return []


def _own_problems(fit: Any, selection: Any, wrong_way: Any, null: Any) -> list[str]:
    problems = UNIT("wrong_way", wrong_way) + null_problems(null)
    problems += OrNone(Is(callable, "a function of a log that returns a result, or None"))("fit", fit)
    if fit is None and null is not None:
        problems.append("null applies to an analysis: pass fit=, or omit null")
    if selection is None:
        return problems
    if not callable(selection):
        problems += OneOf(*SELECTIONS)("selection, if it is not a function,", selection)
    if fit is None and (callable(selection) or selection == "analysis"):
        problems.append("selection by an analysis, or by a function of a log, requires fit=")
    return problems


def _first_fits(analysis: LogCell | None, replications: int) -> Iterator[Any]:
    """Results of the analysis for the first trial or, if that is unsuitable, for the first block."""
    if analysis is None:
        return
    fit = analysis.analyses[""]
    for stop in dict.fromkeys((1, min(BLOCK, replications))):
        fits: list[Any] = []

        def noted(log: AdaptiveLog, fits: list[Any] = fits) -> Any:
            fits.append(fit(log))
            return fits[-1]

        dataclasses.replace(analysis, analyses={"": noted}).chunk(0, stop, keep=False)
        yield from fits
