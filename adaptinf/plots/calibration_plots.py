"""Whether numbers mean what they say: bias by arm, coverage, shares of rejections, and p-values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.audit.rerun.simulated_bias import SimulatedBias, conditional_bias
from adaptinf.audit.simulation.simulated_coverage import Coverage
from adaptinf.audit.simulation.study_tables import Study
from adaptinf.claims.reports import pictures as claims
from adaptinf.designs.run_results import Replications
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.parameters import Count, OneOf, alpha_problems, number_array, refuse
from adaptinf.plots.interval_rows import Series, by_name, draw_rows, limits_problem, room, row_axes
from adaptinf.plots.style import (
    GREY,
    axes_problem,
    label_text,
    legend_of,
    look,
    one_for_each,
    prepared,
    quantity,
    small,
)
from adaptinf.texts import absent
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BEYOND = 4.0
_MEASURES = ("coverage", "rejected")


def bias(
    runs: Any,
    ax: Axes | None = None,
    *,
    bound: Any = None,
    alpha: float = 0.05,
    limits: tuple[float, float] | None = None,
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Mean error of the sample mean of each arm, with Monte-Carlo intervals, beside its bound.

    Parameters
    ----------
    runs : Replications or SimulatedBias, or mapping of str to them
        What ``design.replicate`` or ``audit.simulate_bias`` returned; several by name, with the same rows.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    bound : float, array_like or mapping of row to float, optional
        Bound of the absolute bias by row, as from `bias_bound`; by default that of a SimulatedBias.
    alpha : float
        One minus the level of the Monte-Carlo intervals, between 0 and 0.5.
    limits : (float, float), optional
        Ends of the axis. By default all intervals are within, and bounds where that leaves the intervals
        readable.
    unit : str, optional
        Unit of the reward.
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
    Bias is given at least one reward of the arm; rows say in which share of the runs there was none. A bar
    runs from minus the bound to the bound; where it would leave the axes its size stands in the label of
    the row instead.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> sims = ai.designs.PrivateUCB(epsilon=0.2).replicate(environment, 500, 200, rng=0)
    >>> ax = ai.plots.bias(sims, bound=[0.07, 0.09])
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('bias of the sample mean', ['arm 0 (bound 0.07)', 'arm 1 (bound 0.09)'])
    """
    named, problems = by_name("runs", runs, (Replications, SimulatedBias))
    problems += axes_problem("plots.bias", ax, legend) + limits_problem(limits) + alpha_problems(alpha)
    tables = {name: _bias_table(one) for name, one in named.items()}
    rows = next(iter(tables.values()))["term"].tolist() if tables else []
    if any(table["term"].tolist() != rows for table in tables.values()):
        problems.append("runs that are drawn together must have the same rows")
    bounds = _bounds(bound, rows, tables, problems)
    refuse("plots.bias", problems)
    factor = normal_quantile(math.log(0.5 * alpha))
    series = [
        _bias_series(name, table, abs(factor), place) for place, (name, table) in enumerate(tables.items())
    ]
    extent = np.array([[*one.low, *one.high] for one in series])
    ends = room([extent, [0.0]], limits, margin=0.12)
    largest = np.nanmax(bounds) if bounds is not None and not np.isnan(bounds).all() else math.nan
    if limits is None and largest <= _BEYOND * np.nanmax(np.abs([*ends])):
        ends = room([extent, [-largest, largest]])
    if bounds is None:
        bounds = np.full(len(rows), np.nan)
    labels = [_with_bound(row, bound, ends[1]) for row, bound in zip(rows, bounds.tolist(), strict=True)]
    own = row_axes(ax, labels, len(series))
    own.axvline(0.0, color=GREY, linewidth=0.8, zorder=0.5)
    handles = draw_rows(own, series, ends) + _draw_bounds(own, bounds, ends)
    own.set_xlabel(quantity("bias of the sample mean", unit))
    legend_of(own, handles, legend, grow=ax is None)
    return own


def coverage(
    results: Study | Coverage,
    ax: Axes | None = None,
    *,
    measure: str = "coverage",
    alpha: float = 0.05,
    limits: tuple[float, float] | None = None,
    legend: str = "above",
) -> Axes:
    """Coverage, or share of rejections, of each analysis and term, with its binomial interval.

    Parameters
    ----------
    results : Study or Coverage
        What ``audit.study`` or ``audit.coverage`` returned.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    measure : {"coverage", "rejected"}
        Share of intervals that hold the truth, against the nominal level; or of those that exclude the null,
        against the nominal size. Where the null is not the truth the latter is power.
    alpha : float
        One minus the level of the binomial intervals (Wilson), between 0 and 0.5.
    limits : (float, float), optional
        Ends of the axis.
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

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> fit = lambda log: ai.ArmMeans(log).fit()
    >>> found = ai.audit.coverage(ai.designs.Uniform(), environment, fit, 100, 64, rng=0)
    >>> ax = ai.plots.coverage(found)
    >>> ax.get_xlabel(), len(ax.get_yticklabels())
    ('coverage', 2)
    """
    problems = axes_problem("plots.coverage", ax, legend) + OneOf(*_MEASURES)("measure", measure)
    problems += limits_problem(limits) + alpha_problems(alpha)
    given: Any = results
    if not isinstance(given, (Study, Coverage)):
        problems.insert(
            0, f"results must be what audit.study or audit.coverage returned, got {results!r:.60}"
        )
    elif results.frame.empty:
        problems.insert(0, "the table has no rows")
    refuse("plots.coverage", problems)
    frame = results.frame
    size = results.alpha if isinstance(results, Coverage) else float(results.settings["alpha"])
    nominal = 1.0 - size if measure == "coverage" else size
    low, high = wilson(frame[measure].to_numpy(), frame["runs"].to_numpy(), alpha)
    one = Series(
        f"measured, {100.0 * (1.0 - alpha):g}% interval",
        frame[measure].to_numpy(dtype=np.float64),
        low,
        high,
        np.ones(len(frame), dtype=bool),
        place=0,
        remarks=tuple(_missing(row, measure) for row in frame.to_dict("records")),
    )
    own = row_axes(ax, _cell_labels(frame), 1)
    handles = draw_rows(own, [one], room([one.low, one.high, [nominal]], limits))
    line: dict[str, Any] = {"color": "black", "linewidth": 0.9, "linestyle": (0, (3, 1.5)), "zorder": 0.6}
    handles.append(own.axvline(nominal, label=f"nominal {nominal:g}", **line))
    own.set_xlabel("coverage" if measure == "coverage" else "share of rejections")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _bias_table(runs: Replications | SimulatedBias) -> pd.DataFrame:
    """Columns term, bias, bias_se, pulled and bound."""
    if isinstance(runs, SimulatedBias):
        return runs.frame
    features, arms = runs.truth.shape
    terms = [f"arm {arm}" for arm in range(arms)]
    if runs.contextual:
        terms = [f"context {feature}, {term}" for feature in range(features) for term in terms]
    means = runs.means.reshape(runs.regret.size, -1)
    error, spread, share = conditional_bias(means, runs.truth.ravel())
    columns = {"term": terms, "bias": error, "bias_se": spread, "pulled": share, "bound": np.nan}
    return pd.DataFrame(columns)


def _bias_series(name: str, table: pd.DataFrame, factor: float, place: int) -> Series:
    error, spread = table["bias"].to_numpy(), table["bias_se"].to_numpy()
    remarks = tuple(
        claims.NEVER_PULLED() if share == 0.0 else "one run: no interval" if np.isnan(size) else ""
        for share, size in zip(table["pulled"], spread, strict=True)
    )
    missed = table["pulled"].min()
    label = name or "mean error, with Monte-Carlo interval"
    if missed < 1.0:
        label = claims.UNPULLED(name=label, share=1.0 - missed)
    return Series(
        label,
        error,
        error - factor * spread,
        error + factor * spread,
        np.ones(len(table), dtype=bool),
        place,
        remarks=remarks,
    )


def _bounds(
    bound: Any, rows: list[str], tables: Mapping[str, pd.DataFrame], problems: list[str]
) -> FloatArray | None:
    """Bounds by row; None where there are none."""
    if bound is None:
        if len(tables) != 1:
            return None
        own = next(iter(tables.values()))["bound"].to_numpy(dtype=np.float64)
        return None if np.isnan(own).all() else own
    if isinstance(bound, Mapping):
        unknown = [key for key in bound if key not in rows]
        problems += [f"bound: {absent('row', key, rows)}" for key in unknown]
        bound = [bound.get(row, math.nan) for row in rows]
    values = one_for_each(bound, len(rows))
    if values is None or (values < 0.0).any():
        problems.append(f"bound must be at least 0, one number or one for each of {len(rows)} rows")
        return None
    return values


def _draw_bounds(ax: Axes, bounds: FloatArray, ends: tuple[float, float]) -> list[Any]:
    """Bars behind the rows, and their entry of the legend."""
    from matplotlib.patches import Patch

    rows = np.flatnonzero(bounds <= ends[1])
    if rows.size == 0:
        return []
    left = np.maximum(-bounds[rows], ends[0])
    ax.barh(rows, bounds[rows] - left, left=left, height=0.7, color="0.85", zorder=0.3)
    return [Patch(facecolor="0.85", label="bound of the absolute bias")]


def _with_bound(row: str, bound: float, end: float) -> str:
    """A row's label, with the bound where that leaves the axes."""
    return f"{row} (bound {bound:.3g})" if bound > end else row


def wilson(share: FloatArray, runs: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval of a binomial share; NaN where there are no runs."""
    square = float(normal_quantile(math.log(0.5 * alpha))) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(runs > 0, runs, np.nan).astype(np.float64)
        middle = (share + 0.5 * square / size) / (1.0 + square / size)
        half = np.sqrt(square * (share * (1.0 - share) / size + 0.25 * square / size**2))
        half = half / (1.0 + square / size)
    return middle - half, middle + half


def _missing(row: Mapping[Any, Any], measure: str) -> str:
    if row["runs"] == 0:
        return row["note"] or claims.NO_INTERVALS()
    if math.isnan(row[measure]):
        return "nothing is tested"
    return claims.SOME_WITHOUT(share=row["missing_share"]) if row["missing"] > 0 else ""


def _cell_labels(frame: pd.DataFrame) -> list[str]:
    """Analysis and term, and whatever of the cell differs between rows."""
    columns = [name for name in ("design", "environment", "horizon") if name in frame]
    columns = [name for name in columns if frame[name].nunique() > 1] + ["analysis", "term"]
    return [", ".join(str(value) for value in row if value != "") for row in frame[columns].to_numpy()]


_TALL = 3.0


def pvalues(
    values: Any, ax: Axes | None = None, *, bins: int = 20, alpha: float = 0.05, legend: str = "above"
) -> Axes:
    """Shares of p-values in bins of one width, beside the uniform law.

    Parameters
    ----------
    values : array_like, or mapping of str to array_like
        P-values of many trials, of any shape; several methods by name. NaN where a trial has none.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    bins : int
        Bins of [0, 1], at least 2.
    alpha : float
        The legend tells the share of p-values of at most alpha, and its standard error.
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
    The grey band holds the count of one bin of uniform p-values with probability 0.95 (binomial); that of
    the smallest sample where they differ in size. Shares are of the p-values that there are; the legend
    says how many trials have none. The last bar is cut, and its share written, where it would dwarf the
    others: corrected p-values pile up at 1. A p-value on the edge of two bins is in the upper one, and 1 in
    the last.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> honest, too_small = np.linspace(0.005, 0.995, 100), np.linspace(0.0, 0.5, 100)
    >>> ax = ai.plots.pvalues({"honest": honest, "too small": too_small})
    >>> for text in ax.get_legend().get_texts()[:2]:
    ...     print(text.get_text())
    honest: 5.0% ± 2.2% at most 0.05
    too small: 10.0% ± 3.0% at most 0.05
    """
    named, problems = _named(values)
    problems += axes_problem("plots.pvalues", ax, legend) + Count(2)("bins", bins)
    refuse("plots.pvalues", problems + alpha_problems(alpha))
    from matplotlib.lines import Line2D

    own = prepared(ax)
    edges = np.linspace(0.0, 1.0, int(bins) + 1)
    handles: list[Any] = []
    tops = []
    for place, (name, sample) in enumerate(named.items()):
        known = sample[~np.isnan(sample)]
        shares = np.histogram(known, edges)[0] / known.size
        tops.append(shares)
        shown = look(place)
        filled: dict[str, Any] = {"fill": True, "alpha": 0.25, "linewidth": 0.0}
        if len(named) == 1:
            own.stairs(shares, edges, color=shown.colour, **filled)
        own.stairs(shares, edges, color=shown.colour, linewidth=1.3, linestyle=shown.line)
        several = len(named) > 1
        marks: dict[str, Any] = {"marker": shown.marker, "markersize": 3.5} if several else {}
        if several:
            middle = 0.5 * (edges[1:] + edges[:-1])
            own.plot(middle, shares, linestyle="none", color=shown.colour, **marks)
        label = label_text(_label(name, sample, known, alpha), 90)
        line: dict[str, Any] = {"color": shown.colour, "linewidth": 1.3, "linestyle": shown.line}
        handles.append(Line2D([], [], label=label, **line, **marks))
    fewest = min(int((~np.isnan(sample)).sum()) for sample in named.values())
    low, high = stats.binom.interval(0.95, fewest, 1.0 / bins)
    text = f"uniform, 95% band of a bin (n = {fewest:,})"
    own.axhspan(low / fewest, high / fewest, color="0.6", alpha=0.35, linewidth=0.0, zorder=0.4)
    handles.append(own.axhline(1.0 / bins, color=GREY, linewidth=1.0, label=text, zorder=0.6))
    own.set_xlim(0.0, 1.0)
    _set_top(own, tops, named)
    own.set_xlabel("p-value")
    own.set_ylabel("share of p-values")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _set_top(ax: Axes, shares: list[FloatArray], names: Iterable[str]) -> None:
    """Show all bars; but corrected p-values pile up at 1, and that bar is cut and its share written."""
    others = max(float(each[:-1].max()) for each in shares)
    last = max(float(each[-1]) for each in shares)
    if others == 0.0 or last <= _TALL * others:
        ax.set_ylim(0.0, 1.08 * max(others, last))
        return
    ax.set_ylim(0.0, 1.4 * others)
    cut = [
        f"{name}: {each[-1]:.1%}" if name else f"{each[-1]:.1%}"
        for name, each in zip(names, shares, strict=True)
        if each[-1] > 1.4 * others
    ]
    text = "\n".join(["last bin", *map(label_text, cut)])
    edge = 1.0 - 1.3 / shares[0].size
    ax.text(edge, 1.36 * others, text, ha="right", va="top", fontsize=0.95 * small(ax), color=GREY)


def _label(name: str, sample: FloatArray, known: FloatArray, alpha: float) -> str:
    share = float((known <= alpha).mean())
    error = np.sqrt(share * (1.0 - share) / known.size)
    head = f"{name}: " if name else ""
    label = f"{head}{share:.1%} ± {error:.1%} at most {alpha:g}"
    return label if known.size == sample.size else f"{label} ({sample.size - known.size:,} have none)"


def _named(values: Any) -> tuple[dict[str, FloatArray], list[str]]:
    if isinstance(values, Mapping) and not values:
        return {}, ["there are no p-values"]
    given = values.items() if isinstance(values, Mapping) else [("", values)]
    named, problems = {}, []
    for name, sample in given:
        what = f"values[{name!r}]" if name else "values"
        numbers = number_array(sample)
        if numbers is None:
            problems.append(f"{what} must be p-values, got {sample!r:.60}")
            continue
        flat = numbers.ravel()
        known = flat[~np.isnan(flat)]
        if known.size == 0:
            problems.append(f"{what} has no p-value" + (", all are NaN" if flat.size else ""))
        elif known.min() < 0.0 or known.max() > 1.0:
            worst = known.min() if known.min() < 0.0 else known.max()
            problems.append(f"{what} must lie in [0, 1], got {worst:g}")
        named[str(name)] = flat
    return named, problems
