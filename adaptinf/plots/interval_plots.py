"""Estimates with their intervals: forest plots, and the intervals of a winner."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims.reports.pictures import TIED
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.winners.projected import ProjectedLaw
from adaptinf.inference.winners.winner_law import WinnerLaw
from adaptinf.inference.winners.winner_results import WinnerResults
from adaptinf.parameters import FLAG, alpha_problems, number_array, refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.interval_rows import (
    ESTIMANDS,
    MEANS,
    Series,
    by_name,
    chosen_terms,
    draw_control,
    draw_rows,
    limits_problem,
    room,
    row_axes,
    row_labels,
    scale_problems,
    series_of,
    true_values,
    uncovered,
    unit_problems,
)
from adaptinf.plots.style import (
    axes_problem,
    grey,
    ink,
    label_text,
    legend_of,
    look,
    quantity,
    say_uncovered,
)
from adaptinf.texts import absent, arm_label, level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ABSENT = re.compile(r"\b(no|nothing|never|none|not)\b")


def _forest(
    problems: list[str],
    results: Results | Mapping[str, Results],
    *,
    alpha: float = 0.05,
    corrected: bool = True,
    simultaneous: bool = False,
    truth: Any = None,
    terms: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Estimates and intervals, as drawn by `plots.forest`.

    Parameters
    ----------
    results, alpha, corrected, simultaneous, truth, terms
        As in `plots.forest`.

    Returns
    -------
    DataFrame
        One row per result, kind of interval and term. `row`: from the top, starting at 0; `result`: its name;
        `interval`: "single", "corrected" or "simultaneous"; `valid`: whether it is valid for adaptively
        collected data; `term`, `label` and, for differences from a common control, `control`; `quantity`:
        what is estimated; `estimate`, `low`, `high`, `null`, `truth`; `remark`: why there is no interval.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> result = ai.result({"a": 0.5}, {"a": 0.1}, label="my estimator")
    >>> frame = ai.plots.forest.frame(result, alpha=0.1)
    >>> frame[["interval", "label", "low", "high"]].round(3).to_dict("records")
    [{'interval': 'single', 'label': 'a', 'low': 0.336, 'high': 0.664}]
    """
    named, found = by_name("results", results, (Results,), "a result of fit()")
    problems = [*problems, *found, *alpha_problems(alpha)]
    known = list(dict.fromkeys(term for one in named.values() for term in one.terms))
    rows = known if terms is None else chosen_terms(terms, known, problems)
    true = true_values(truth, rows, known, problems)
    problems += FLAG("corrected", corrected) + scale_problems(named, rows)
    refuse("plots.forest", [*problems, *FLAG("simultaneous", simultaneous)])
    control, labels = row_labels(named, rows)
    parts = []
    for name, one in named.items():
        limits = {"single": one.conf_int(alpha)}
        if corrected and one.correction is not None:
            limits["corrected"] = one.conf_int_corrected(alpha)
        elif simultaneous:
            limits["simultaneous"] = one.conf_int_simultaneous(alpha)
        for kind, interval in limits.items():
            part = _numbers(one, rows, interval, thin=kind != "single")
            valid = one.validity != "not valid" or kind == "corrected"
            parts.append(part.assign(result=name, interval=kind, valid=valid))
    table = pd.concat(parts, ignore_index=True)
    at = table["row"].to_numpy()
    table = table.assign(
        label=np.array(labels, dtype=object)[at],
        control=pd.Series([control] * len(table), dtype=object),
        truth=np.nan if true is None else true[at],
    )
    return table[[*_FOREST]]


_FOREST = (
    *("row", "result", "interval", "valid", "term", "label", "control", "quantity"),
    *("estimate", "low", "high", "null", "truth", "remark"),
)


@draws(_forest)
def forest(
    results: Results | Mapping[str, Results],
    ax: Axes | None = None,
    *,
    alpha: float = 0.05,
    corrected: bool = True,
    simultaneous: bool = False,
    truth: Any = None,
    terms: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Estimates and intervals, one row per term, with several results below one another in each row.

    Parameters
    ----------
    results : Results, or mapping of str to Results
        Arm means, contrasts, effects, policy values, regressions, ...; several as a dict by name.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    alpha : float
        One minus the confidence level of the intervals, between 0 and 0.5.
    corrected : bool
        Whether to draw also the intervals with max-information correction, if a correction is needed.
    simultaneous : bool
        Whether to draw simultaneous intervals for all terms of a result as thin lines next to the single
        ones.
    truth : float, array_like, Series or mapping of term to float, optional
        True values, drawn as diamonds: by term, or in the order of the terms.
    terms : sequence of str, optional
        Terms to show, from top to bottom; by default all, in the order in which they first appear.
    limits : (float, float), optional
        Limits of the axis. Arrows indicate intervals that extend beyond them, including infinite limits.
    unit : str, optional
        Unit of the reward, for the label of the axis; lifts have no unit.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the legend.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent, such as differences and lifts on one axis; the message lists every
        problem.

    See Also
    --------
    forest.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Differences from a common control are drawn relative to it: the line at 0 has its name, and the rows show
    the other arms. A term without an interval keeps its row, with the reason given in the notes of the
    result. Intervals that are not valid under adaptive collection are labelled naive. A vertical line marks
    the null value, except for means and policy values.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.PrivateUCB(epsilon=0.02).run(environment, horizon=500, rng=1)
    >>> result = ai.ArmMeans(log).fit(estimator="sample-mean")
    >>> ax = ai.plots.forest(result, truth=[0.3, 0.6])
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('mean reward', ['arm 0', 'arm 1'])
    """
    subject = "plots.forest"
    problems = axes_problem(subject, ax, legend) + limits_problem(limits) + unit_problems(results, unit)
    table = _forest(
        problems,
        results,
        alpha=alpha,
        corrected=corrected,
        simultaneous=simultaneous,
        truth=truth,
        terms=terms,
    )
    rows = table.drop_duplicates("row").sort_values("row")
    series = _all_series(table, rows["row"].to_numpy(), alpha)
    own = row_axes(ax, rows["label"].tolist(), len(series))
    control = table["control"].iloc[0]
    means = table["quantity"].isin([ESTIMANDS[kind] for kind in MEANS]).all()
    nulls = [] if means else table["null"].unique().tolist()
    ends = room(
        [table[["estimate", "low", "high", "truth"]], nulls, [] if control is None else [0.0]], limits
    )
    for null in nulls:
        own.axvline(null, color=grey(own), linewidth=0.8, linestyle=(0, (1, 1)), zorder=0.5)
    handles = draw_rows(own, series, ends)
    if table["truth"].notna().any():
        handles.append(_draw_truth(own, rows))
    names = table["quantity"].unique()
    own.set_xlabel(quantity(names[0] if len(names) == 1 else "estimate", unit))
    if control is not None:
        draw_control(own, arm_label(control))
    say_uncovered(own, uncovered(results), own=ax is None)
    legend_of(own, handles, legend, grow=ax is None, lift=control is not None)
    return own


def _draw_truth(ax: Axes, rows: pd.DataFrame) -> Any:
    [points] = ax.plot(
        rows["truth"],
        rows["row"],
        linestyle="none",
        marker="D",
        markersize=4.5,
        markerfacecolor="none",
        markeredgecolor=ink(ax),
        markeredgewidth=0.9,
        zorder=4,
        label="true value",
    )
    return points


def _all_series(table: pd.DataFrame, rows: Any, alpha: float) -> list[Series]:
    """One series for each result and kind of interval, in drawing order."""
    names = table["result"].unique().tolist()
    level = f"{level_text(alpha)} interval"
    series = []
    for (result, interval), part in table.groupby(["result", "interval"], sort=False):
        name, kind = str(result), str(interval)
        single, thin, valid = names == [""], kind != "single", bool(part["valid"].iloc[0])
        if single:
            told = {"corrected": f"corrected {level}", "simultaneous": f"{level}, simultaneous"}
            label = told.get(kind, level if valid else f"naive {level}")
        else:
            naive = "" if valid or "naive" in name.lower() else " (naive)"
            label = f"{name}, {kind}" if thin else name + naive
        # If there is only one result, each kind of interval gets its own colour.
        place = names.index(name) + (single and thin)
        series.append(series_of(part, label, rows, place, thin=thin))
    return series


def _numbers(one: Results, rows: list[str], interval: pd.DataFrame, *, thin: bool) -> pd.DataFrame:
    """The numbers in the rows that a result has."""
    records = []
    for row, term in enumerate(rows):
        if term not in one.terms:
            continue
        at = one.terms.index(term)
        estimate = float(one.estimate[at])
        low, high = (float(interval[name].iloc[at]) for name in ("low", "high"))
        kind = ESTIMANDS.get(one.estimands[at].kind, "estimate")
        numbers = {"estimate": estimate, "low": low, "high": high, "null": float(one.null)}
        remark = _remark(one, at, estimate, low, high, thin)
        records.append({"row": row, "term": term, "quantity": kind, **numbers, "remark": remark})
    columns = ["row", "term", "quantity", "estimate", "low", "high", "null", "remark"]
    return pd.DataFrame(records, columns=columns)


def _remark(one: Results, at: int, estimate: float, low: float, high: float, thin: bool) -> str:
    """Why there is no interval, or no estimate; for a corrected interval, only if no other is missing."""
    if not (np.isnan(low) or np.isnan(high)):
        return "no estimate" if np.isnan(estimate) and not thin else ""
    if thin:
        return "" if np.isnan(estimate) else "no corrected interval"
    return f"no interval: {_reason(one, at)}"


def _reason(one: Results, at: int) -> str:
    """The note that mentions the term, or an arm in it, before a colon."""
    estimand = one.estimands[at]
    labels = (one.terms[at], estimand.arm, estimand.treatment, estimand.control)
    names = {str(label) for label in labels if label is not None}
    found = []
    for note in one.notes:
        head, _, text = note.partition(": ")
        if text and names & set(re.split("; |, ", head)):
            found.append(text.rstrip("."))
    said = [text for text in found if _ABSENT.search(text)]
    return (said or found or ["see its notes"])[0]


_ROWS = ("naive", "conditional", "projection", "hybrid")
# To show a conditional interval in full, the axis may become this many times longer; beyond that, other
# intervals would be too short to read.
_LONG = 1.6


def _winner(
    problems: list[str],
    results: WinnerResults | Mapping[str, WinnerResults],
    *,
    alpha: float = 0.05,
    truth: Any = None,
) -> pd.DataFrame:
    """Intervals for the winner, as drawn by `plots.winner`.

    Parameters
    ----------
    results, alpha, truth
        As in `plots.winner`.

    Returns
    -------
    DataFrame
        One row per result and method: `result`, `winner`, `against`, `quantity`, `interval` (naive,
        conditional, projection or hybrid), `estimate`, `low`, `high`, `truth` and `remark`.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> ai.plots.winner.frame(ai.Winner(log).fit())["interval"].tolist()
    ['naive', 'conditional', 'projection', 'hybrid']
    """
    named, found = by_name("results", results, (WinnerResults,), "a result of Winner(log).fit()")
    problems = [*problems, *found, *alpha_problems(alpha)]
    problems += [
        f"{f'results[{name!r}]' if name else 'results'} {_alone(one)}: use plots.forest"
        for name, one in named.items()
        if not isinstance(one.reference, WinnerLaw)
    ]
    true = _true_values(truth, list(named), problems)
    refuse("plots.winner", problems)
    parts = [
        _winner_numbers(one, alpha).assign(result=name, truth=true.get(name, np.nan))
        for name, one in named.items()
    ]
    names = ["result", "winner", "against", "quantity", "interval", "estimate", "low", "high"]
    return pd.concat(parts, ignore_index=True)[[*names, "truth", "remark"]]


@draws(_winner)
def winner(
    results: WinnerResults | Mapping[str, WinnerResults],
    ax: Axes | None = None,
    *,
    alpha: float = 0.05,
    truth: Any = None,
    limits: tuple[float, float] | None = None,
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Intervals for the winner, one row each: naive, conditional, projection and hybrid.

    Parameters
    ----------
    results : WinnerResults, or mapping of str to WinnerResults
        Output of ``Winner(log).fit()``, with any method; several as a dict by name.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    alpha : float
        One minus the confidence level of the intervals, between 0 and 0.5.
    truth : float, or mapping of name to float, optional
        True mean, or difference, for the winning arm, drawn as a dotted line.
    limits : (float, float), optional
        Limits of the axis; arrows indicate intervals that extend beyond them. By default all intervals are
        fully visible, except for conditional ones that are much longer than the others.
    unit : str, optional
        Unit of the reward, for the label of the axis.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the legend, if there are several results.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    winner.frame : What is drawn, as a tidy frame.

    Notes
    -----
    The naive interval ignores the selection, and is centred at the winning estimate. The other intervals are
    drawn with the median-unbiased estimate, as in the table of a fit with that method. If arms are tied, the
    choice between them was made in some other way; only the projection is then valid and drawn.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> ax = ai.plots.winner(ai.Winner(log).fit(), truth=0.35)
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('mean reward of the winner, arm 2', ['naive', 'conditional', 'projection', 'hybrid'])
    """
    problems = axes_problem("plots.winner", ax, legend) + limits_problem(limits)
    table = _winner(problems, results, alpha=alpha, truth=truth)
    parts = dict(list(table.groupby("result", sort=False)))
    rows = np.arange(len(_ROWS))
    series = [
        series_of(part.assign(row=rows), str(name), rows, place)
        for place, (name, part) in enumerate(parts.items())
    ]
    own = row_axes(ax, _ROWS, len(parts))
    nulls = [] if table["quantity"].isin([ESTIMANDS[kind] for kind in MEANS]).all() else [0.0]
    ends = _ends(series, [*table["truth"], *nulls], limits)
    for null in nulls:
        own.axvline(null, color=grey(own), linewidth=0.8, linestyle=(0, (1, 1)), zorder=0.5)
    handles = draw_rows(own, series, ends)
    for place, part in enumerate(parts.values()):
        if part["truth"].notna().any():
            colour = ink(own) if len(parts) == 1 else look(place).colour
            style: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (1, 1)), "zorder": 0.6}
            own.axvline(part["truth"].iloc[0], color=colour, **style)
    own.set_xlabel(quantity(_asked(table), unit))
    say_uncovered(own, uncovered(results), own=ax is None)
    legend_of(own, handles if len(parts) > 1 else [], legend, grow=ax is None)
    return own


def _alone(one: WinnerResults) -> str:
    """Why a result has only one interval."""
    if isinstance(one.reference, ProjectedLaw):
        return (
            "has outcomes that are too rare or too skewed for normal approximations, so only the projection "
            "exists"
        )
    return "is based on held-out rounds, whose usual interval needs no correction"


def _winner_numbers(one: WinnerResults, alpha: float) -> pd.DataFrame:
    """The intervals of one result, in the order of the rows."""
    law = one.reference
    assert isinstance(law, WinnerLaw)
    estimate, limits = np.full(len(_ROWS), np.nan), np.full((len(_ROWS), 2), np.nan)
    estimate[0] = law.own * law.scale
    limits[0] = (
        estimate[0] + np.array([-1.0, 1.0]) * abs(float(normal_quantile(math.log(0.5 * alpha)))) * law.scale
    )
    remarks = [""] * len(_ROWS)
    for row, method in enumerate(_ROWS[1:], start=1):
        if law.tied and method != "projection":
            remarks[row] = TIED()
            continue
        own = replace(law, method=method)
        estimate[row], limits[row] = own.median, own.interval(math.log(alpha))[0]
    kind = ESTIMANDS.get(one.estimands[0].kind, "estimate")
    columns = {"interval": _ROWS, "estimate": estimate, "low": limits[:, 0], "high": limits[:, 1]}
    arms = {name: pd.Series([arm] * len(_ROWS), dtype=object) for name, arm in _compared(one).items()}
    return pd.DataFrame({**arms, "quantity": kind, **columns, "remark": remarks})


def _compared(one: WinnerResults) -> dict[str, Any]:
    """The winning arm, and the arm with which it is compared."""
    return {"winner": one.winner, "against": one.against}


def _ends(series: list[Series], others: list[float], limits: Any) -> tuple[float, float]:
    """Axis limits that show all intervals, except overlong conditional ones."""
    firm = np.array([row != "conditional" for row in _ROWS])
    near, every = (
        room([others, *(part[rows] for one in series for part in (one.estimate, one.low, one.high))], limits)
        for rows in (firm, np.ones(len(_ROWS), dtype=np.bool_))
    )
    long = any(np.isinf([*one.low, *one.high]).any() for one in series)
    return near if long or every[1] - every[0] > _LONG * (near[1] - near[0]) else every


def _asked(table: pd.DataFrame) -> str:
    """Axis label, which names the winning arm if there is a single result."""
    kinds = table["quantity"].unique()
    label = str(kinds[0]) if len(kinds) == 1 else "estimate"
    if table["result"].nunique() > 1:
        return label
    winner, against = table[["winner", "against"]].iloc[0]
    arm = label_text(arm_label(winner))
    if against is None:
        return f"{label} of the winner, {arm}"
    return f"{label}, {arm} less {label_text(arm_label(against))}"


def _true_values(truth: Any, names: list[str], problems: list[str]) -> dict[str, float]:
    """True values keyed by the name of their result."""
    if truth is None or not names:
        return {}
    given = truth if isinstance(truth, Mapping) else dict.fromkeys(names, truth)
    problems += [f"truth: {absent('result', name, names)}" for name in given if name not in names]
    values = {name: number_array(value) for name, value in given.items()}
    if any(value is None or value.shape != () or not np.isfinite(value) for value in values.values()):
        problems.append(
            f"truth must be a finite number, or a dict that maps names to finite numbers, got {truth!r:.60}"
        )
        return {}
    return {name: float(value) for name, value in values.items() if value is not None}
