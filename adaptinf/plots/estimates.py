"""Forest plots: estimates with their intervals, naive and corrected, of one or several results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.inference.results.base import Results
from adaptinf.parameters import FLAG, alpha_problems, refuse
from adaptinf.plots.drawing.rows import Series, draw_rows, limits_problem, room, row_axes
from adaptinf.plots.drawing.style import GREY, axes_problem, legend_of, quantity
from adaptinf.plots.drawing.terms import ESTIMANDS, MEANS, by_name, chosen_terms, term_label, true_values

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
