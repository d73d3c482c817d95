"""Estimates with their intervals: forests, the winner's three, and measured against promised privacy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound
from adaptinf.claims.reports.pictures import TIED
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.results.base import Results
from adaptinf.inference.winners.exact import ProjectedLaw
from adaptinf.inference.winners.winner_law import WinnerLaw
from adaptinf.inference.winners.winner_results import WinnerResults
from adaptinf.parameters import FLAG, alpha_problems, number_array, refuse
from adaptinf.plots.interval_rows import (
    ESTIMANDS,
    MEANS,
    Series,
    by_name,
    chosen_terms,
    draw_rows,
    limits_problem,
    room,
    row_axes,
    term_label,
    true_values,
)
from adaptinf.plots.style import GREY, arm_label, axes_problem, label_text, legend_of, look, quantity, small
from adaptinf.texts import absent
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ABSENT = re.compile(r"\b(no|nothing|never|none|not)\b")


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
    """Estimates and intervals, one row per term; several results below one another in each row.

    Parameters
    ----------
    results : Results, or mapping of str to Results
        Arm means, contrasts, effects, policy values, regressions, ...; several by name.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    alpha : float
        One minus the level of the intervals, between 0 and 0.5.
    corrected : bool
        Whether to draw the max-information corrected intervals too, where a correction is due.
    simultaneous : bool
        Whether to draw, thin beside the single ones, intervals that hold for all terms of a result at once.
    truth : float, array_like, Series or mapping of term to float, optional
        True values, drawn as diamonds: by term, or in the order of the terms.
    terms : sequence of str, optional
        Which rows, from top to bottom; by default all, in the order in which they first come.
    limits : (float, float), optional
        Ends of the axis. Arrows stand for what lies beyond them, as for infinite limits.
    unit : str, optional
        Unit of the reward, for the label of the axis.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Where the legend goes.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        Listing everything that does not fit.

    Notes
    -----
    A term without an interval keeps its row, with the reason that the notes of the result give. Intervals
    that are not valid under adaptive collection are called naive. A vertical line marks the value that the
    tests are against, except for means and values.

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
    named, problems = by_name("results", results, (Results,), "what fit() returned")
    problems += axes_problem("plots.forest", ax, legend) + limits_problem(limits) + alpha_problems(alpha)
    known = list(dict.fromkeys(term for one in named.values() for term in one.terms))
    rows = known if terms is None else chosen_terms(terms, known, problems)
    true = true_values(truth, rows, known, problems)
    refuse("plots.forest", [*problems, *FLAG("simultaneous", simultaneous)])
    series = _all_series(named, rows, alpha, corrected, simultaneous, single=isinstance(results, Results))
    estimands = [estimand for one in named.values() for estimand in one.estimands]
    kinds = {estimand.kind for estimand in estimands}
    nulls = {} if kinds <= MEANS else {float(one.null): None for one in named.values()}
    first = [next(one for one in named.values() if row in one.terms) for row in rows]
    labels = [term_label(one, row) for one, row in zip(first, rows, strict=True)]
    own = row_axes(ax, labels, len(series))
    shown = [part for one in series for part in (one.estimate, one.low, one.high)]
    ends = room([*shown, [] if true is None else true, list(nulls)], limits)
    for null in nulls:
        own.axvline(null, color=GREY, linewidth=0.8, linestyle=(0, (1, 1)), zorder=0.5)
    handles = draw_rows(own, series, ends)
    if true is not None:
        handles += own.plot(
            true,
            np.arange(len(rows)),
            linestyle="none",
            marker="D",
            markersize=4.5,
            markerfacecolor="none",
            markeredgecolor="black",
            markeredgewidth=0.9,
            zorder=4,
            label="true value",
        )
    names = {ESTIMANDS.get(kind, "estimate") for kind in kinds}
    own.set_xlabel(quantity(names.pop() if len(names) == 1 else "estimate", unit))
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _all_series(
    named: Mapping[str, Results],
    rows: list[str],
    alpha: float,
    corrected: bool,
    simultaneous: bool,
    single: bool,
) -> list[Series]:
    series = []
    level = f"{100.0 * (1.0 - alpha):g}% interval"
    for place, (name, one) in enumerate(named.items()):
        naive = one.validity == "not valid"
        if single:
            label = f"naive {level}" if naive else level
        else:
            label = f"{name} (naive)" if naive and "naive" not in name.lower() else name
        series.append(_series(one, rows, label, one.conf_int(alpha), place, thin=False))
        if corrected and one.correction is not None:
            label = f"corrected {level}" if single else f"{name}, corrected"
            own = place + single  # a colour of its own where there is one result
            series.append(_series(one, rows, label, one.conf_int_corrected(alpha), own, thin=True))
        elif simultaneous:
            label = f"{level}, all at once" if single else f"{name}, all at once"
            limits = one.conf_int_simultaneous(alpha)
            series.append(_series(one, rows, label, limits, place + single, thin=True))
    return series


def _series(
    one: Results, rows: list[str], label: str, interval: pd.DataFrame, place: int, *, thin: bool
) -> Series:
    places = [one.terms.index(row) if row in one.terms else -1 for row in rows]
    present = np.array([at >= 0 for at in places])
    estimate, low, high = (
        np.where(present, np.asarray(values, dtype=np.float64)[places], np.nan)
        for values in (one.estimate, interval["low"], interval["high"])
    )
    remarks = tuple(
        _remark(one, at, estimate[row], low[row], high[row], thin) if at >= 0 else ""
        for row, at in enumerate(places)
    )
    return Series(label, estimate, low, high, present, place, thin, remarks)


def _remark(one: Results, at: int, estimate: float, low: float, high: float, thin: bool) -> str:
    """Why there is no interval, or no estimate; a corrected interval says so where it alone is missing."""
    if not (np.isnan(low) or np.isnan(high)):
        return "no estimate" if np.isnan(estimate) and not thin else ""
    if thin:
        return "" if np.isnan(estimate) else "no corrected interval"
    return f"no interval: {_reason(one, at)}"


def _reason(one: Results, at: int) -> str:
    """The note that names the term or an arm of it before a colon."""
    estimand = one.estimands[at]
    labels = (one.terms[at], estimand.arm, estimand.treatment, estimand.control)
    names = {str(label) for label in labels if label is not None}
    found = []
    for note in one.notes:
        head, _, text = note.partition(": ")
        if text and names & set(re.split("; |, ", head)):
            found.append(text.rstrip("."))
    said = [text for text in found if _ABSENT.search(text)]
    return (said or found or ["its notes say why"])[0]


_ROWS = ("naive", "conditional", "projection", "hybrid")
# The axis is at most so many times as long to show a conditional interval whole.
_LONG = 1.6


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
    """Intervals of the winner, one row each: naive, conditional, projection and hybrid.

    Parameters
    ----------
    results : WinnerResults, or mapping of str to WinnerResults
        What ``Winner(log).fit()`` returned, by whichever method; several by name.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    alpha : float
        One minus the level of the intervals, between 0 and 0.5.
    truth : float, or mapping of name to float, optional
        True mean, or difference, of the arm that won, drawn as a dotted line.
    limits : (float, float), optional
        Ends of the axis; arrows stand for what lies beyond. By default all intervals are shown whole, but for
        conditional ones that are far longer than the others.
    unit : str, optional
        Unit of the reward, for the label of the axis.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Where the legend goes, of several results.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        Listing everything that does not fit.

    Notes
    -----
    The naive interval takes no notice of the choice, and is about the estimate that won. The others are drawn
    with the median-unbiased estimate, as they stand in the table of a fit by that method. Between tied arms
    something else chose: the projection alone is then valid, and is drawn.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> ax = ai.plots.winner(ai.Winner(log).fit(), truth=0.35)
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('mean reward of the winner, arm 2', ['naive', 'conditional', 'projection', 'hybrid'])
    """
    named, problems = by_name("results", results, (WinnerResults,), "what Winner(log).fit() returned")
    problems += axes_problem("plots.winner", ax, legend) + limits_problem(limits) + alpha_problems(alpha)
    problems += [
        f"{f'results[{name!r}]' if name else 'results'} {_alone(one)}: plots.forest draws it"
        for name, one in named.items()
        if not isinstance(one.reference, WinnerLaw)
    ]
    true = _true_values(truth, list(named), problems)
    refuse("plots.winner", problems)
    series = [_winner_series(one, name, alpha, place) for place, (name, one) in enumerate(named.items())]
    own = row_axes(ax, _ROWS, len(named))
    nulls = [] if {one.estimands[0].kind for one in named.values()} <= MEANS else [0.0]
    ends = _ends(series, [*true.values(), *nulls], limits)
    for null in nulls:
        own.axvline(null, color=GREY, linewidth=0.8, linestyle=(0, (1, 1)), zorder=0.5)
    handles = draw_rows(own, series, ends)
    for name, value in true.items():
        colour = "black" if len(named) == 1 else look(list(named).index(name)).colour
        own.axvline(value, color=colour, linewidth=1.1, linestyle=(0, (1, 1)), zorder=0.6)
    own.set_xlabel(quantity(_asked(named), unit))
    legend_of(own, handles if len(named) > 1 else [], legend, grow=ax is None)
    return own


def _alone(one: WinnerResults) -> str:
    """Why a result has one interval alone."""
    if isinstance(one.reference, ProjectedLaw):
        return "is of counts too small for normal laws, and has the projection alone"
    return "is of held-out rounds, whose usual interval needs no allowance"


def _winner_series(one: WinnerResults, name: str, alpha: float, place: int) -> Series:
    """The intervals of one result in the order of the rows."""
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
    every = np.ones(len(_ROWS), dtype=np.bool_)
    return Series(name, estimate, limits[:, 0], limits[:, 1], every, place, remarks=tuple(remarks))


def _ends(series: list[Series], others: list[float], limits: Any) -> tuple[float, float]:
    """Ends that show all intervals, but a conditional one only where they are not far apart for its sake."""
    firm = np.array([row != "conditional" for row in _ROWS])
    near, every = (
        room([others, *(part[rows] for one in series for part in (one.estimate, one.low, one.high))], limits)
        for rows in (firm, np.ones(len(_ROWS), dtype=np.bool_))
    )
    long = any(np.isinf([*one.low, *one.high]).any() for one in series)
    return near if long or every[1] - every[0] > _LONG * (near[1] - near[0]) else every


def _asked(named: Mapping[str, WinnerResults]) -> str:
    """What the axis shows: of a single result with the arm that won."""
    kinds = {ESTIMANDS.get(one.estimands[0].kind, "estimate") for one in named.values()}
    label = kinds.pop() if len(kinds) == 1 else "estimate"
    if len(named) > 1:
        return label
    [one] = named.values()
    arm = label_text(arm_label(one.winner))
    if one.against is None:
        return f"{label} of the winner, {arm}"
    return f"{label}, {arm} less {label_text(arm_label(one.against))}"


def _true_values(truth: Any, names: list[str], problems: list[str]) -> dict[str, float]:
    """True values by the name of their result."""
    if truth is None or not names:
        return {}
    given = truth if isinstance(truth, Mapping) else dict.fromkeys(names, truth)
    problems += [f"truth: {absent('result', name, names)}" for name in given if name not in names]
    values = {name: number_array(value) for name, value in given.items()}
    if any(value is None or value.shape != () or not np.isfinite(value) for value in values.values()):
        problems.append(f"truth must be a finite number, or a dict of them by name, got {truth!r:.60}")
        return {}
    return {name: float(value) for name, value in values.items() if value is not None}


def privacy(bounds: Any, ax: Axes | None = None, *, log_scale: bool = False, legend: str = "above") -> Axes:
    """Measured lower bounds of epsilon against what was promised.

    Parameters
    ----------
    bounds : EpsilonLowerBound, iterable of them, or mapping of str to them
        What ``audit.epsilon_lower_bound`` returned; a row each, by name or by target.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    log_scale : bool
        Whether the axis is logarithmic. A bound of 0 is then an arrow at its left end.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Where the legend goes.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        Listing everything that does not fit.

    Notes
    -----
    A dot is the bound: with its confidence the true epsilon lies there or to the right. A bar is the promise.
    A dot to the right of its bar refutes the promise, and is drawn as a square in another colour. The line
    between them is what the audit leaves open.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.audit.EpsilonLowerBound(
    ...     epsilon=0.8,
    ...     confidence=0.95,
    ...     delta=0.0,
    ...     runs=2000,
    ...     tested=1000,
    ...     hits=(300, 120),
    ...     event="output above 1",
    ...     target="Laplace",
    ...     promised=ai.PrivacyGuarantee(epsilon=1.0),
    ... )
    >>> ax = ai.plots.privacy({"laplace": found})
    >>> ax.get_xlabel()
    'epsilon (nats)'
    """
    named, problems = _bounds_named(bounds)
    refuse(
        "plots.privacy", problems + axes_problem("plots.privacy", ax, legend) + FLAG("log_scale", log_scale)
    )
    found = list(named.values())
    measured = np.array([one.epsilon for one in found])
    promised = np.array([math.nan if one.promised is None else one.promised.epsilon for one in found])
    refuted = np.array([one.refuted for one in found])
    own = row_axes(ax, list(named), 1)
    ends = _epsilon_ends(measured, promised, log_scale)
    if log_scale:
        own.set_xscale("log")
    own.set_xlim(*ends)
    shown = np.maximum(measured, ends[0])
    rows = np.arange(len(found), dtype=np.float64)
    between = ~np.isnan(promised)
    own.hlines(
        rows[between], shown[between], np.minimum(promised, ends[1])[between], colors=GREY, linewidths=0.9
    )
    handles = []
    confidences = {one.confidence for one in found}
    level = f", {100.0 * confidences.pop():g}% confidence" if len(confidences) == 1 else ""
    groups = ((~refuted, 0, f"measured: at least{level}"), (refuted, 1, "measured: promise refuted"))
    for chosen, place, label in groups:
        if chosen.any():
            handles += _dots(own, shown[chosen], rows[chosen], place, label)
    low = measured < ends[0]
    own.plot(shown[low], rows[low], linestyle="none", marker="<", color=look(0).colour, clip_on=False)
    finite = between & np.isfinite(promised)
    handles += own.plot(
        promised[finite],
        rows[finite],
        linestyle="none",
        marker="|",
        markersize=11.0,
        markeredgewidth=1.8,
        color="black",
        label="promised",
    )
    _tell_no_promise(own, promised, rows, ends)
    own.set_xlabel("epsilon (nats)")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _bounds_named(bounds: Any) -> tuple[dict[str, EpsilonLowerBound], list[str]]:
    if isinstance(bounds, Iterable) and not isinstance(bounds, (Mapping, str, bytes)):
        listed = list(bounds)
        targets = [getattr(one, "target", "") for one in listed]
        keys = [
            target if targets.count(target) == 1 else f"{place}: {target}"
            for place, target in enumerate(targets, 1)
        ]
        bounds = dict(zip(keys, listed, strict=True))
    elif isinstance(bounds, EpsilonLowerBound):
        bounds = {bounds.target: bounds}
    return by_name("bounds", bounds, (EpsilonLowerBound,))


def _epsilon_ends(measured: FloatArray, promised: FloatArray, log_scale: bool) -> tuple[float, float]:
    known = np.concatenate([measured, promised])
    known = known[np.isfinite(known)]
    largest = float(known.max(initial=0.0)) or 1.0
    if not log_scale:
        return 0.0, 1.1 * largest
    positive = known[known > 0.0]
    return float(positive.min(initial=largest)) / 2.0, 1.5 * largest


def _dots(ax: Axes, x: FloatArray, y: FloatArray, place: int, label: str) -> list[Any]:
    shown = look(place)
    return ax.plot(
        x, y, linestyle="none", marker=shown.marker, markersize=5.0, color=shown.colour, label=label, zorder=3
    )


def _tell_no_promise(ax: Axes, promised: FloatArray, rows: FloatArray, ends: tuple[float, float]) -> None:
    for row, value in zip(rows, promised, strict=True):
        if not math.isfinite(value):
            text = "nothing promised" if math.isnan(value) else "promised: infinite"
            ax.text(
                ends[1], row, label_text(text), ha="right", va="bottom", fontsize=0.95 * small(ax), color=GREY
            )
