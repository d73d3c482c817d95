"""Regret over horizons with bands, and the trade-off between error and regret."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from adaptinf.designs.run_results import Replications
from adaptinf.parameters import FLAG, POSITIVE, OneOf, number_array, refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.style import (
    BESIDE,
    INK,
    axes_problem,
    grey,
    label_text,
    legend_of,
    log_axis,
    look,
    marked_line,
    name_series,
    prepared,
    quantity,
    round_axis,
    shade,
    small,
)
from adaptinf.theory.tradeoff import Frontier
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BANDS = ("runs", "mean")
_Z = 1.959963984540054


class Curve(NamedTuple):
    """Regret over rounds with a band; all arrays have shape (points,), and rounds ascend."""

    rounds: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def _regret(
    problems: list[str], curves: Any, *, band: str = "runs", bounds: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Mean regret over the rounds, as drawn by `plots.regret`.

    Parameters
    ----------
    curves, band, bounds
        As in `plots.regret`.

    Returns
    -------
    DataFrame
        One row per curve and number of rounds: `name`, `kind` ("curve" or "bound"), `round`, `regret`, and
        the band from `low` to `high`, NaN for bounds.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.plots.regret.frame({"mine": {10: [1.0, 3.0], 20: [2.0, 6.0]}})["regret"].tolist()
    [2.0, 4.0]
    """
    problems = [*problems, *OneOf(*_BANDS)("band", band)]
    named = _curves(curves, band, problems)
    lines = _bound_lines(bounds, problems)
    refuse("plots.regret", problems)
    parts = [
        pd.DataFrame({"name": name, "kind": "curve", **dict(zip(_CURVE, curve, strict=True))})
        for name, curve in named.items()
    ]
    for name, (rounds, values) in lines.items():
        columns = {"round": rounds, "regret": values, "low": np.nan, "high": np.nan}
        parts.append(pd.DataFrame({"name": name, "kind": "bound", **columns}))
    return pd.concat(parts, ignore_index=True)


_CURVE = ("round", "regret", "low", "high")


@draws(_regret)
def regret(
    curves: Any,
    ax: Axes | None = None,
    *,
    band: str = "runs",
    bounds: Mapping[str, Any] | None = None,
    log_scale: bool = False,
    unit: str | None = None,
    legend: str = "beside",
) -> Axes:
    """Mean regret over the rounds, with bands, for one or several designs.

    Parameters
    ----------
    curves : curve, or mapping of str to curve
        A curve is a mapping from horizons to Replications or to the regrets of single runs; or a tuple
        (rounds, mean, low, high) of arrays of equal shape.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    band : {"runs", "mean"}
        The central 90% of the runs, or the 95% interval for their mean. The option is ignored for curves that
        have their own band.
    bounds : mapping of str to (rounds, values), optional
        Theoretical bounds, drawn as grey lines.
    log_scale : bool
        Whether both axes are logarithmic.
    unit : str, optional
        Unit of the reward.
    legend : {"beside", "above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the names: next to the ends of the lines, or in a legend.

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
    regret.frame : What is drawn, as a tidy frame.

    Notes
    -----
    A band with a flat end has not been cut off: if a design leaves its arms at a few fixed numbers of pulls,
    as those that release sums at doubling counts do, many runs have exactly the same regret.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> design = ai.designs.UCB()
    >>> curve = {T: design.replicate(environment, T, 64, rng=0) for T in (100, 200, 400)}
    >>> ax = ai.plots.regret({"UCB": curve})
    >>> ax.get_lines()[0].get_xdata().tolist()
    [100.0, 200.0, 400.0]
    """
    problems = axes_problem("plots.regret", ax, legend, BESIDE) + FLAG("log_scale", log_scale)
    table = _regret(problems, curves, band=band, bounds=bounds)
    parts: dict[Any, pd.DataFrame] = dict(list(table.groupby(["kind", "name"], sort=False)))
    if log_scale:
        low = [name for (kind, name), part in parts.items() if kind == "curve" and _not_positive(part)]
        refuse("plots.regret", [f"{label_of(name)} must be above 0 on a log scale" for name in low])
    own = prepared(ax)
    drawn = [part for (kind, _), part in parts.items() if kind == "curve"]
    lines = [_draw_curve(own, part, place, log_scale) for place, part in enumerate(drawn)]
    for place, ((kind, name), part) in enumerate(parts.items()):
        if kind == "bound":
            style = look(place - len(drawn) + 1).line
            label, colour = label_text(name), grey(own)
            lines += own.plot(
                part["round"], part["regret"], color=colour, linewidth=1.0, linestyle=style, label=label
            )
    round_axis(own, float(pd.concat(drawn)["round"].max()), log_scale)
    if log_scale:
        log_axis(own, "y")
    else:
        own.set_ylim(0.0, 1.05 * max(1e-12, float(table["high"].max())))
    own.set_ylabel(quantity("regret", unit))
    named = [(line, name, kind) for line, (kind, name) in zip(lines, parts, strict=True) if name]
    places = [INK if kind == "bound" else place for place, (_, _, kind) in enumerate(named)]
    names = [name for _, name, _ in named]
    name_series(own, [line for line, _, _ in named], names, places, legend, grow=ax is None)
    return own


def _not_positive(part: pd.DataFrame) -> bool:
    return bool((part[["round", "regret"]] <= 0.0).to_numpy().any())


def _frontier(problems: list[str], points: Any) -> pd.DataFrame:
    """Errors and regrets with Monte Carlo intervals, as drawn by `plots.frontier`.

    Parameters
    ----------
    points
        As in `plots.frontier`.

    Returns
    -------
    DataFrame
        One row per point: `name`, `alpha`, `regret`, `regret_low`, `regret_high`, `error`, `error_low` and
        `error_high`; NaN if unknown.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> table = pd.DataFrame({"alpha": [0.1, 0.3], "regret": [20.0, 40.0], "error": [0.04, 0.02]})
    >>> ai.plots.frontier.frame(table)["error"].tolist()
    [0.04, 0.02]
    """
    problems = [*problems]
    named = _tables(points, problems)
    refuse("plots.frontier", problems)
    parts = []
    for name, table in named.items():
        alpha = table["alpha"].to_list() if "alpha" in table else [math.nan] * len(table)
        columns: dict[str, Any] = {"name": name, "alpha": alpha}
        for axis in ("regret", "error"):
            middle = table[axis].to_numpy(dtype=np.float64)
            spread = table[f"{axis}_se"].to_numpy(dtype=np.float64) if f"{axis}_se" in table else np.nan
            half = _Z * spread
            columns |= {axis: middle, f"{axis}_low": middle - half, f"{axis}_high": middle + half}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


@draws(_frontier)
def frontier(
    points: Any,
    ax: Axes | None = None,
    *,
    product: float | None = None,
    error: str = "mean squared error",
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Error against regret on log scales, with one line per design and one point per value of alpha.

    Parameters
    ----------
    points : mapping of alpha to Frontier, or DataFrame, or mapping of str to either
        Output of `theory.frontier` for each alpha; or columns regret and error and, if known, regret_se,
        error_se and alpha.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    product : float, optional
        If given, the line on which error times regret equals this number is drawn.
    error : str
        Description of the error, for the label.
    unit : str, optional
        Unit of the reward; the error is in squared units.
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
    frontier.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Bars are 95% Monte Carlo intervals; on a log scale, those that reach 0 end at the edge of the axes.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> table = pd.DataFrame({"alpha": [0.1, 0.3], "regret": [20.0, 40.0], "error": [0.04, 0.02]})
    >>> ax = ai.plots.frontier(table, product=0.8)
    >>> ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()
    ('regret', 'log', 'log')
    """
    problems = axes_problem("plots.frontier", ax, legend)
    if product is not None:
        problems += POSITIVE("product", product)
    table = _frontier(problems, points)
    own = prepared(ax, grid="both")
    handles: list[Any] = [
        _draw_points(own, part, str(name), place)
        for place, (name, part) in enumerate(table.groupby("name", sort=False))
    ]
    if product is not None:
        ends = table["regret"].agg(["min", "max"]).to_numpy()
        line: dict[str, Any] = {"color": grey(own), "linewidth": 1.0, "linestyle": (0, (4, 2))}
        handles += own.plot(ends, product / ends, label=f"error times regret = {product:g}", **line)
    log_axis(own, "x")
    log_axis(own, "y")
    own.set_xlabel(quantity("regret", unit))
    own.set_ylabel(quantity(label_text(error), None if unit is None else f"{unit}²"))
    legend_of(own, [handle for handle in handles if handle.get_label() != ""], legend, grow=ax is None)
    return own


def label_of(name: str) -> str:
    """The name of a curve for messages."""
    return f"the curve {name!r}" if name else "the curve"


def _curves(curves: Any, band: str, problems: list[str]) -> dict[str, Curve]:
    named = curves if isinstance(curves, Mapping) and _is_named(curves) else {"": curves}
    found = {}
    for name, given in named.items():
        curve = _curve(given, band, label_of(str(name)), problems)
        if curve is not None:
            found[str(name)] = curve
    if not named:
        problems.append("curves must contain at least one curve")
    return found


def _is_named(curves: Mapping[Any, Any]) -> bool:
    """Whether the keys are names rather than horizons."""
    return all(isinstance(key, str) for key in curves)


def _curve(given: Any, band: str, what: str, problems: list[str]) -> Curve | None:
    if isinstance(given, Mapping):
        return _from_runs(given, band, what, problems)
    parts = [number_array(part) for part in given] if isinstance(given, (tuple, list)) else []
    shapes = {part.shape for part in parts if part is not None}
    if len(parts) != 4 or None in [None if part is None else 1 for part in parts] or len(shapes) != 1:
        problems.append(
            f"{what} must be a mapping from horizons to Replications or regrets, or a tuple (rounds, mean, "
            f"low, high) of arrays of the same shape, got {given!r:.60}"
        )
        return None
    rounds, mean, low, high = (np.atleast_1d(part) for part in parts if part is not None)
    if rounds.ndim != 1 or rounds.size == 0 or not (np.diff(rounds) > 0).all():
        problems.append(f"{what} must have increasing rounds")
        return None
    if not (np.isfinite(mean) & (low <= mean) & (mean <= high)).all():
        problems.append(f"{what} must have finite means that lie between low and high")
        return None
    return Curve(rounds, mean, low, high)


def _from_runs(given: Mapping[Any, Any], band: str, what: str, problems: list[str]) -> Curve | None:
    rows = []
    for horizon in sorted(given, key=lambda key: float(key) if _is_count(key) else math.inf):
        runs = given[horizon]
        values = runs.regret if isinstance(runs, Replications) else number_array(runs)
        if not _is_count(horizon):
            problems.append(f"{what} must have horizons of at least 1, got {horizon!r:.60}")
        elif values is None or values.ndim != 1 or values.size < 2 or not np.isfinite(values).all():
            problems.append(
                f"{what} at horizon {horizon} must be Replications, or the regrets of at least two runs"
            )
        else:
            rows.append((float(horizon), *_summary(values, band)))
    if not given:
        problems.append(f"{what} has no horizons")
    return Curve(*np.array(rows).T) if rows and len(rows) == len(given) else None


def _is_count(value: Any) -> bool:
    return not isinstance(value, (bool, str)) and isinstance(value, Real) and float(value) >= 1.0


def _summary(values: FloatArray, band: str) -> tuple[float, float, float]:
    mean = float(values.mean())
    if band == "runs":
        low, high = np.quantile(values, [0.05, 0.95])
        # The mean of a skewed distribution may lie outside the central 90%.
        return mean, min(float(low), mean), max(float(high), mean)
    half = _Z * float(values.std(ddof=1)) / math.sqrt(values.size)
    return mean, mean - half, mean + half


def _bound_lines(bounds: Any, problems: list[str]) -> dict[str, tuple[FloatArray, FloatArray]]:
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        problems.append(
            f"bounds must be a dict that maps names to tuples (rounds, values), got {bounds!r:.60}"
        )
        return {}
    lines = {}
    for name, given in bounds.items():
        parts = [number_array(part) for part in given] if isinstance(given, (tuple, list)) else []
        if (
            len(parts) == 2
            and parts[0] is not None
            and parts[1] is not None
            and parts[0].shape == parts[1].shape
        ):
            lines[str(name)] = (parts[0], parts[1])
        else:
            problems.append(f"bounds[{name!r}] must be a tuple (rounds, values) of arrays of the same shape")
    return lines


def _draw_curve(ax: Axes, part: pd.DataFrame, place: int, log_scale: bool) -> Any:
    rounds, mean, low, high = (part[name].to_numpy() for name in _CURVE)
    floor = np.maximum(low, mean * 1e-3) if log_scale else low
    ax.fill_between(rounds, floor, high, color=look(place).colour, alpha=0.2, linewidth=0.0)
    return marked_line(ax, rounds, mean, part["name"].iloc[0], place, max(1, rounds.size // 10))


def _tables(points: Any, problems: list[str]) -> dict[str, pd.DataFrame]:
    alone = isinstance(points, pd.DataFrame) or (
        isinstance(points, Mapping) and any(isinstance(value, Frontier) for value in points.values())
    )
    named = {"": points} if alone else points
    if not isinstance(named, Mapping) or not named:
        problems.append(
            "points must be a mapping from values of alpha to Frontier, a DataFrame, or a dict that maps "
            f"names to these, got {points!r:.60}"
        )
        return {}
    tables = {}
    for name, given in named.items():
        table = _table(given)
        what = f"points[{name!r}]" if name else "points"
        if table is None or not {"regret", "error"} <= set(table.columns):
            problems.append(
                f"{what} must map values of alpha to Frontier, or have the columns regret and error"
            )
        elif table.empty or not (table[["regret", "error"]].to_numpy(dtype=np.float64) > 0.0).all():
            problems.append(f"{what} must have regrets and errors above 0, because the axes are logarithmic")
        else:
            tables[str(name)] = table
    return tables


def _table(given: Any) -> pd.DataFrame | None:
    if isinstance(given, pd.DataFrame):
        return given
    if not isinstance(given, Mapping) or not all(isinstance(one, Frontier) for one in given.values()):
        return None
    names = ("regret", "error", "regret_se", "error_se")
    rows = [{"alpha": alpha} | {name: getattr(one, name) for name in names} for alpha, one in given.items()]
    return pd.DataFrame(rows)


def _draw_points(ax: Axes, table: pd.DataFrame, name: str, place: int) -> Any:
    shown = look(place)
    x, y = table["regret"].to_numpy(), table["error"].to_numpy()
    bars: dict[str, Any] = {}
    for axis, middle, column in (("xerr", x, "regret"), ("yerr", y, "error")):
        half = table[f"{column}_high"].to_numpy() - middle
        if not np.isnan(half).all():
            bars[axis] = np.stack([np.minimum(half, 0.999 * middle), half])
    drawn = ax.errorbar(
        x,
        y,
        **bars,
        color=shown.colour,
        linewidth=1.1,
        linestyle=shown.line,
        marker=shown.marker,
        markersize=4.0,
        elinewidth=0.9,
        label=label_text(name),
    )
    for alpha, at in zip(table["alpha"], zip(x, y, strict=True), strict=True):
        if isinstance(alpha, Real) and math.isnan(alpha):
            continue
        ax.annotate(
            rf"$\alpha$ = {alpha:g}" if isinstance(alpha, Real) else label_text(alpha),
            at,
            xytext=(3.0, 3.0),
            textcoords="offset points",
            fontsize=0.9 * small(ax),
            color=shade(ax, 0.35, shown.colour),
        )
    return drawn
