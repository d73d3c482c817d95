"""Calibration: bias by arm, coverage, rejection rates, and p-values."""

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
from adaptinf.plots.frames import draws
from adaptinf.plots.interval_rows import Series, by_name, draw_rows, limits_problem, room, row_axes, series_of
from adaptinf.plots.style import (
    axes_problem,
    grey,
    ink,
    label_text,
    legend_of,
    look,
    one_for_each,
    prepared,
    quantity,
    shade,
    small,
)
from adaptinf.texts import absent, level_text
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BEYOND = 4.0
_MEASURES = ("coverage", "rejected")
_CELL = ("design", "environment", "horizon")


def _bias(problems: list[str], runs: Any, *, bound: Any = None, alpha: float = 0.05) -> pd.DataFrame:
    """Mean errors of sample means with Monte Carlo intervals, as drawn by `plots.bias`.

    Parameters
    ----------
    runs, bound, alpha
        As in `plots.bias`.

    Returns
    -------
    DataFrame
        One row per set of runs and arm: `runs` (its name), `row` (from the top, starting at 0), `term`,
        `bias`, `low`, `high`, `bound` (NaN without one), `assigned`, the share of the runs in which the arm
        had a reward, and `remark`.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> sims = ai.designs.UCB().replicate(environment, 100, 200, rng=0)
    >>> ai.plots.bias.frame(sims)[["term", "assigned"]].to_dict("list")
    {'term': ['arm 0', 'arm 1'], 'assigned': [1.0, 1.0]}
    """
    named, found = by_name("runs", runs, (Replications, SimulatedBias))
    problems = [*problems, *found, *alpha_problems(alpha)]
    tables = {name: _bias_table(one) for name, one in named.items()}
    rows = next(iter(tables.values()))["term"].tolist() if tables else []
    if any(table["term"].tolist() != rows for table in tables.values()):
        problems.append("runs in one picture must have the same rows")
    bounds = _bounds(bound, rows, tables, problems)
    refuse("plots.bias", problems)
    factor = abs(float(normal_quantile(math.log(0.5 * alpha))))
    parts = []
    for name, table in tables.items():
        error, spread, share = (table[column].to_numpy() for column in ("bias", "bias_se", "pulled"))
        numbers = {"bias": error, "low": error - factor * spread, "high": error + factor * spread}
        remarks = [
            claims.NEVER_PULLED() if seen == 0.0 else "one run: no interval" if np.isnan(size) else ""
            for seen, size in zip(share, spread, strict=True)
        ]
        where = {"runs": name, "row": np.arange(len(rows)), "term": rows}
        last = {"bound": np.nan if bounds is None else bounds, "assigned": share, "remark": remarks}
        parts.append(pd.DataFrame({**where, **numbers, **last}))
    return pd.concat(parts, ignore_index=True)


@draws(_bias)
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
    """Mean error of each arm's sample mean, with Monte Carlo intervals, next to its bound.

    Parameters
    ----------
    runs : Replications or SimulatedBias, or mapping of str to them
        Output of ``design.replicate`` or ``audit.simulate_bias``; several as a dict by name, with the same
        rows.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    bound : float, array_like or mapping of row to float, optional
        Bound on the absolute bias by row, as from `bias_bound`; by default that of a SimulatedBias.
    alpha : float
        One minus the confidence level of the Monte Carlo intervals, between 0 and 0.5.
    limits : (float, float), optional
        Limits of the axis. By default all intervals are visible, and bounds as well if the intervals remain
        readable.
    unit : str, optional
        Unit of the reward.
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
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    bias.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Bias is conditional on at least one reward of the arm; row labels state the share of runs without any. A
    bar extends from minus the bound to the bound; if it would leave the axes, the bound is given in the label
    of the row instead.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> sims = ai.designs.PrivateUCB(epsilon=0.2).replicate(environment, 500, 200, rng=0)
    >>> ax = ai.plots.bias(sims, bound=[0.07, 0.09])
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('bias of the sample mean', ['arm 0 (bound 0.07)', 'arm 1 (bound 0.09)'])
    """
    problems = axes_problem("plots.bias", ax, legend) + limits_problem(limits)
    table = _bias(problems, runs, bound=bound, alpha=alpha)
    parts = dict(list(table.groupby("runs", sort=False)))
    series = [_bias_series(str(name), part, place) for place, (name, part) in enumerate(parts.items())]
    first = next(iter(parts.values()))
    bounds = first["bound"].to_numpy()
    extent = table[["low", "high"]].to_numpy()
    ends = room([extent, [0.0]], limits, margin=0.12)
    largest = math.nan if np.isnan(bounds).all() else float(np.nanmax(bounds))
    if limits is None and largest <= _BEYOND * np.nanmax(np.abs([*ends])):
        ends = room([extent, [-largest, largest]])
    labels = [
        _with_bound(row, size, ends[1]) for row, size in zip(first["term"], bounds.tolist(), strict=True)
    ]
    own = row_axes(ax, labels, len(series))
    own.axvline(0.0, color=grey(own), linewidth=0.8, zorder=0.5)
    handles = draw_rows(own, series, ends) + _draw_bounds(own, bounds, ends)
    own.set_xlabel(quantity("bias of the sample mean", unit))
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _coverage(
    problems: list[str], results: Study | Coverage, *, measure: str = "coverage", alpha: float = 0.05
) -> pd.DataFrame:
    """Coverage or rejection rates with binomial intervals, as drawn by `plots.coverage`.

    Parameters
    ----------
    results, measure, alpha
        As in `plots.coverage`.

    Returns
    -------
    DataFrame
        One row per analysis and term: `row` (from the top, starting at 0), `label`, the columns of the cell
        (`design`, `environment` and `horizon` of a study, `analysis`, `term`), `share`, `low`, `high`,
        `nominal`, `runs` and `remark`.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> fit = lambda log: ai.ArmMeans(log).fit()
    >>> found = ai.audit.coverage(ai.designs.Uniform(), environment, fit, 100, 64, rng=0)
    >>> ai.plots.coverage.frame(found)[["label", "nominal"]].to_dict("list")
    {'label': ['sample-mean, 0', 'sample-mean, 1'], 'nominal': [0.95, 0.95]}
    """
    problems = [*problems, *OneOf(*_MEASURES)("measure", measure), *alpha_problems(alpha)]
    given: Any = results
    if not isinstance(given, (Study, Coverage)):
        problems.insert(0, f"results must be a result of audit.study or audit.coverage, got {results!r:.60}")
    elif results.frame.empty:
        problems.insert(0, "the table has no rows")
    refuse("plots.coverage", problems)
    frame = results.frame
    size = results.alpha if isinstance(results, Coverage) else float(results.settings["alpha"])
    share, runs = frame[measure].to_numpy(dtype=np.float64), frame["runs"].to_numpy()
    low, high = wilson(share, runs, alpha)
    where = {"row": np.arange(len(frame)), "label": _cell_labels(frame)}
    cell = {name: frame[name].to_numpy() for name in (*_CELL, "analysis", "term") if name in frame}
    numbers = {
        "share": share,
        "low": low,
        "high": high,
        "nominal": 1.0 - size if measure == "coverage" else size,
    }
    remarks = [_missing(row, measure) for row in frame.to_dict("records")]
    return pd.DataFrame({**where, **cell, **numbers, "runs": runs, "remark": remarks})


@draws(_coverage)
def coverage(
    results: Study | Coverage,
    ax: Axes | None = None,
    *,
    measure: str = "coverage",
    alpha: float = 0.05,
    limits: tuple[float, float] | None = None,
    legend: str = "above",
) -> Axes:
    """Coverage, or rejection rate, of each analysis and term, with its binomial interval.

    Parameters
    ----------
    results : Study or Coverage
        Output of ``audit.study`` or ``audit.coverage``.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    measure : {"coverage", "rejected"}
        Share of intervals that contain the truth, compared with the nominal level; or share of intervals that
        exclude the null, compared with the nominal size. If the null differs from the truth, the latter is
        the power.
    alpha : float
        One minus the confidence level of the binomial intervals (Wilson), between 0 and 0.5.
    limits : (float, float), optional
        Limits of the axis.
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
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    coverage.frame : What is drawn, as a tidy frame.

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
    problems = axes_problem("plots.coverage", ax, legend) + limits_problem(limits)
    table = _coverage(problems, results, measure=measure, alpha=alpha)
    nominal = float(table["nominal"].iloc[0])
    label = f"measured, {level_text(alpha)} interval"
    one = series_of(table.rename(columns={"share": "estimate"}), label, table["row"].to_numpy(), 0)
    own = row_axes(ax, table["label"].tolist(), 1)
    handles = draw_rows(own, [one], room([one.low, one.high, [nominal]], limits))
    line: dict[str, Any] = {"color": ink(own), "linewidth": 0.9, "linestyle": (0, (3, 1.5)), "zorder": 0.6}
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


def _bias_series(name: str, part: pd.DataFrame, place: int) -> Series:
    missed = part["assigned"].min()
    label = name or "mean error, with Monte Carlo interval"
    if missed < 1.0:
        label = claims.UNPULLED(name=label, share=1.0 - missed)
    numbers = part.rename(columns={"bias": "estimate"})
    return series_of(numbers, label, part["row"].to_numpy(), place)


def _bounds(
    bound: Any, rows: list[str], tables: Mapping[str, pd.DataFrame], problems: list[str]
) -> FloatArray | None:
    """Bounds by row; None if there are none."""
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
    """Draw bars behind the rows, and return their legend entry."""
    from matplotlib.patches import Patch

    rows = np.flatnonzero(bounds <= ends[1])
    if rows.size == 0:
        return []
    left = np.maximum(-bounds[rows], ends[0])
    colour = shade(ax, 0.15)
    ax.barh(rows, bounds[rows] - left, left=left, height=0.7, color=colour, zorder=0.3)
    return [Patch(facecolor=colour, label="bound of the absolute bias")]


def _with_bound(row: str, bound: float, end: float) -> str:
    """The label of a row, with the bound if it lies outside the axes."""
    return f"{row} (bound {bound:.3g})" if bound > end else row


def wilson(share: FloatArray, runs: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for a binomial share; NaN if there are no runs."""
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
    """Labels with analysis and term, and other properties that differ between rows."""
    columns = [name for name in _CELL if name in frame]
    columns = [name for name in columns if frame[name].nunique() > 1] + ["analysis", "term"]
    return [", ".join(str(value) for value in row if value != "") for row in frame[columns].to_numpy()]


_TALL = 3.0


def _pvalues(problems: list[str], values: Any, *, bins: int = 20, alpha: float = 0.05) -> pd.DataFrame:
    """Shares of p-values by bin, as drawn by `plots.pvalues`.

    Parameters
    ----------
    values, bins, alpha
        As in `plots.pvalues`.

    Returns
    -------
    DataFrame
        One row per method and bin: `name`, the bin's ends `start` and `end`, and the `share` of the p-values;
        for the uniform distribution `uniform`, `band_low` and `band_high`; for the whole method `rejected`,
        the share of p-values that are at most alpha, its standard error `rejected_se`, `n` and `missing`.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> ai.plots.pvalues.frame(np.linspace(0.0, 0.5, 101), bins=2)["share"].round(2).tolist()
    [0.99, 0.01]
    """
    named, found = _named(values)
    problems = [*problems, *found, *Count(2)("bins", bins)]
    refuse("plots.pvalues", [*problems, *alpha_problems(alpha)])
    edges = np.linspace(0.0, 1.0, int(bins) + 1)
    fewest = min(int((~np.isnan(sample)).sum()) for sample in named.values())
    low, high = stats.binom.interval(0.95, fewest, 1.0 / bins)
    uniform = {"uniform": 1.0 / bins, "band_low": low / fewest, "band_high": high / fewest}
    parts = []
    for name, sample in named.items():
        known = sample[~np.isnan(sample)]
        share = float((known <= alpha).mean())
        columns = {"name": name, "start": edges[:-1], "end": edges[1:]}
        told = {"rejected": share, "rejected_se": np.sqrt(share * (1.0 - share) / known.size)}
        counts = {"n": known.size, "missing": sample.size - known.size}
        shares = np.histogram(known, edges)[0] / known.size
        parts.append(pd.DataFrame({**columns, "share": shares, **uniform, **told, **counts}))
    return pd.concat(parts, ignore_index=True)


@draws(_pvalues)
def pvalues(
    values: Any, ax: Axes | None = None, *, bins: int = 20, alpha: float = 0.05, legend: str = "above"
) -> Axes:
    """Shares of p-values in bins of equal width, compared with the uniform distribution.

    Parameters
    ----------
    values : array_like, or mapping of str to array_like
        P-values from many trials, in any shape; several methods as a dict by name. NaN if a trial has no
        p-value.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    bins : int
        Number of bins of [0, 1], at least 2.
    alpha : float
        The legend gives the share of p-values that are at most alpha, and its standard error.
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
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    pvalues.frame : What is drawn, as a tidy frame.

    Notes
    -----
    The grey band contains the count in one bin of uniform p-values with probability 0.95 (binomial), for the
    smallest sample if sizes differ. Shares refer to the available p-values; the legend gives the number of
    trials without one. The last bar is cut off and labelled with its share if it would dwarf the others,
    because corrected p-values accumulate at 1. A p-value on the boundary between two bins belongs to the
    upper one, and 1 to the last.

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
    table = _pvalues(axes_problem("plots.pvalues", ax, legend), values, bins=bins, alpha=alpha)
    own = prepared(ax)
    parts = {str(name): part for name, part in table.groupby("name", sort=False)}
    handles: list[Any] = [
        _draw_shares(own, name, part, place, alpha, alone=len(parts) == 1)
        for place, (name, part) in enumerate(parts.items())
    ]
    law = table.iloc[0]
    text = f"uniform, 95% band of a bin (n = {int(table['n'].min()):,})"
    own.axhspan(
        law["band_low"], law["band_high"], color=shade(own, 0.4), alpha=0.35, linewidth=0.0, zorder=0.4
    )
    handles.append(own.axhline(law["uniform"], color=grey(own), linewidth=1.0, label=text, zorder=0.6))
    own.set_xlim(0.0, 1.0)
    _set_top(own, [part["share"].to_numpy() for part in parts.values()], parts)
    own.set_xlabel("p-value")
    own.set_ylabel("share of p-values")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _draw_shares(ax: Axes, name: str, part: pd.DataFrame, place: int, alpha: float, *, alone: bool) -> Any:
    """Draw the outline of one histogram, filled if it is the only one; return its legend entry."""
    from matplotlib.lines import Line2D

    shares, edges = part["share"].to_numpy(), np.append(part["start"], part["end"].iloc[-1])
    shown = look(place)
    line: dict[str, Any] = {"color": shown.colour, "linewidth": 1.3, "linestyle": shown.line}
    marks: dict[str, Any] = {} if alone else {"marker": shown.marker, "markersize": 3.5}
    if alone:
        ax.stairs(shares, edges, color=shown.colour, fill=True, alpha=0.25, linewidth=0.0)
    ax.stairs(shares, edges, **line)
    if not alone:
        ax.plot(0.5 * (edges[1:] + edges[:-1]), shares, linestyle="none", color=shown.colour, **marks)
    return Line2D([], [], label=label_text(_label(name, part.iloc[0], alpha), 90), **line, **marks)


def _set_top(ax: Axes, shares: list[FloatArray], names: Iterable[str]) -> None:
    """Show all bars, except that a bar of corrected p-values at 1 is cut and labelled with its share."""
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
    ax.text(edge, 1.36 * others, text, ha="right", va="top", fontsize=0.95 * small(ax), color=grey(ax))


def _label(name: str, told: pd.Series, alpha: float) -> str:
    head = f"{name}: " if name else ""
    label = f"{head}{told['rejected']:.1%} ± {told['rejected_se']:.1%} at most {alpha:g}"
    return label if not told["missing"] else f"{label} ({told['missing']:,} have none)"


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
