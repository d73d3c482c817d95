"""Studies across a page: one panel per design, one colour per analysis."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.study_tables import Study
from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.parameters import Number, OneOf, OrNone, alpha_problems, problems_of, refuse
from adaptinf.plots.calibration_plots import wilson
from adaptinf.plots.frames import draws
from adaptinf.plots.interval_rows import Series, draw_series, limits_problem, room, series_handle
from adaptinf.plots.style import (
    COLUMN,
    PAGE,
    axes_problem,
    figure,
    grey,
    ground,
    ink,
    label_text,
    lined,
    shade,
)
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_FACTORS = ("design", "environment", "horizon", "analysis", "term")
_MEASURES = {
    "coverage": "coverage",
    "rejected": "share of rejections",
    "bias": "bias",
    "rmse": "root mean squared error",
    "sd": "standard deviation of the estimates",
    "width": "mean width of the intervals",
    "std_error_ratio": "mean standard error over standard deviation",
    "regret": "regret",
}
_GAPS = ("missing", "invalid", "failed", "absent")
_LINE, _TEXT_LINE, _GAP = 0.115, 0.125, 0.07


@dataclass(frozen=True)
class _Layout:
    """Layout: names of panels, colours and rows; centre and half-height of rows in inches."""

    panels: list[Any]
    colours: list[Any]
    rows: list[tuple[Any, ...]]
    present: list[list[Any]]
    centre: FloatArray
    half: FloatArray
    labels: list[str]
    columns: int
    width: float

    @property
    def height(self) -> float:
        """Height of a panel, in inches."""
        return float(self.centre[-1] + self.half[-1])


def _study(
    problems: list[str],
    results: Study,
    measure: str = "coverage",
    *,
    where: Mapping[str, Any] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """A measure for the cells of a study with its intervals, as drawn by `plots.study`.

    Parameters
    ----------
    results, measure, where, alpha
        As in `plots.study`.

    Returns
    -------
    DataFrame
        One row per cell, analysis and term: `design`, `environment`, `horizon`, `analysis`, `term`, `value`,
        `low`, `high` (NaN for measures whose simulation error is not known), `reference` (the nominal level,
        or the value if there were no error; NaN without one), `runs`, and `partial`: whether some trials have
        no number.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> tables = ai.audit.study(
    ...     designs={"uniform": ai.designs.Uniform()},
    ...     environments={"signal": ai.environments.BernoulliArms([0.3, 0.6])},
    ...     analyses={"means": lambda log: ai.ArmMeans(log).fit()},
    ...     horizons=[50],
    ...     replications=64,
    ...     rng=0,
    ...     progress=False,
    ... )
    >>> ai.plots.study.frame(tables, "bias")[["analysis", "term", "reference"]].to_dict("list")
    {'analysis': ['means', 'means'], 'term': ['0', '1'], 'reference': [0.0, 0.0]}
    """
    problems = [*problems, *alpha_problems(alpha), *OneOf(*_MEASURES)("measure", measure)]
    given: Any = results
    if not isinstance(given, Study):
        problems.append(f"results must be a result of audit.study, got {results!r:.60}")
    refuse("plots.study", problems)
    frame = _drawn(_in_its_rows(results.cell(**dict(where or {}))), measure, alpha)
    if frame.empty:
        raise ParameterError("plots.study", [f"no row has a value of {measure}"])
    size = float(results.settings["alpha"])
    reference = {"coverage": 1.0 - size, "rejected": size, "bias": 0.0, "std_error_ratio": 1.0}.get(measure)
    told = frame.assign(reference=np.nan if reference is None else reference)
    return told[[*_FACTORS, "value", "low", "high", "reference", "runs", "partial"]]


@draws(_study)
def study(
    results: Study,
    measure: str = "coverage",
    *,
    panels: str | None = None,
    colour: str | None = None,
    where: Mapping[str, Any] | None = None,
    alpha: float = 0.05,
    limits: tuple[float, float] | None = None,
    width: float | None = None,
) -> Figure:
    """A measure for all cells of a study, with intervals for simulation error.

    Parameters
    ----------
    results : Study
        Output of ``audit.study``.
    measure : str
        Column of the table: coverage, rejected, bias, rmse, sd, width, std_error_ratio or regret.
    panels, colour : {"design", "environment", "horizon", "analysis", "term"}, optional
        The factors that define panels, and colours with markers; by default designs and analyses, and for the
        regret, which does not depend on the analysis, environments and designs. Other properties that differ
        are part of the row labels.
    where : mapping of str to value, optional
        Values that select rows of the table, such as ``{"term": "1 - 0"}``.
    alpha : float
        One minus the confidence level of the Monte Carlo intervals, between 0 and 0.5: Wilson's for
        proportions, normal ones for bias and regret. Other measures have no intervals.
    limits : (float, float), optional
        Limits of the axes, which all panels share.
    width : float, optional
        Width in inches; by default one column (3.4) for a single panel, otherwise a page (7).

    Returns
    -------
    Figure
        A figure as high as its rows require.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    study.frame : What is drawn, as a tidy frame.

    Notes
    -----
    A hollow marker on a dashed line is a proportion of only some of the trials: the others have no interval,
    or failed; the table gives their number and the reason.

    Examples
    --------
    >>> import adaptinf as ai
    >>> tables = ai.audit.study(
    ...     designs={"uniform": ai.designs.Uniform(), "UCB": ai.designs.UCB()},
    ...     environments={"signal": ai.environments.BernoulliArms([0.3, 0.6])},
    ...     analyses={"means": lambda log: ai.ArmMeans(log).fit()},
    ...     horizons=[50],
    ...     replications=64,
    ...     rng=0,
    ...     progress=False,
    ... )
    >>> page = ai.plots.study(tables)
    >>> [panel.get_title() for panel in page.axes]
    ['uniform', 'UCB']
    """
    panels = panels or ("environment" if measure == "regret" else "design")
    colour = colour or ("design" if measure == "regret" else "analysis")
    problems = axes_problem("plots.study", None) + limits_problem(limits)
    problems += problems_of(
        panels=(panels, OneOf(*_FACTORS)),
        colour=(colour, OneOf(*_FACTORS)),
        width=(width, OrNone(Number(1.0, 100.0))),
    )
    if panels == colour:
        problems.append(f"panels and colour must differ, got {panels!r} for both")
    frame = _study(problems, results, measure, where=where, alpha=alpha)
    reference = float(frame["reference"].iloc[0])
    layout = _layout(frame, panels, colour, width)
    ends = room([frame[["low", "high", "reference"]]], limits)
    page, axes = _panels(layout, ends)
    handles = _draw(axes, layout, frame, panels, colour, ends)
    if not math.isnan(reference):
        line: dict[str, Any] = {"color": ink(axes[0]), "linewidth": 0.9, "linestyle": (0, (3, 1.5))}
        said = {"coverage": "nominal ", "rejected": "nominal "}.get(measure, "")
        lines = [ax.axvline(reference, zorder=0.6, label=f"{said}{reference:g}", **line) for ax in axes]
        handles.append(lines[0])
    page.supxlabel(_MEASURES[measure], fontsize=8.0)
    _legend(page, handles)
    return page


def _in_its_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows in which an analysis without results, which has no terms of its own, appears under all terms."""
    known = [term for term in frame["term"].unique() if term != ""]
    terms = pd.Series([[term] if term != "" or not known else known for term in frame["term"]], frame.index)
    spread: pd.DataFrame = frame.assign(term=terms).explode("term", ignore_index=True)
    return spread


def _drawn(frame: pd.DataFrame, measure: str, alpha: float) -> pd.DataFrame:
    """Rows with the measure, or without trials; with columns value, low, high and partial."""
    value = frame[measure].to_numpy(dtype=np.float64)
    factor = abs(float(normal_quantile(math.log(0.5 * alpha))))
    if measure in ("coverage", "rejected"):
        low, high = wilson(value, frame["runs"].to_numpy(), alpha)
    else:
        error = frame[f"{measure}_se"].to_numpy() if f"{measure}_se" in frame else np.full(len(value), np.nan)
        spread = factor * error
        low, high = value - spread, value + spread
    partial = (frame[list(_GAPS)] > 0).any(axis=1) & (measure != "regret")
    frame = frame.assign(value=value, low=low, high=high, partial=partial)
    if measure == "regret":
        frame = frame.drop_duplicates(["design", "environment", "horizon"]).assign(analysis="", term="")
    return frame[frame["value"].notna() | (frame["runs"] == 0)].reset_index(drop=True)


def _layout(frame: pd.DataFrame, panels: str, colour: str, width: float | None) -> _Layout:
    others = [name for name in _FACTORS if name not in (panels, colour)]
    varying = [name for name in others if frame[name].nunique() > 1]
    keys = list(frame[varying].itertuples(index=False, name=None))
    rows = list(dict.fromkeys(keys))
    names, colours = (frame[name].drop_duplicates().tolist() for name in (panels, colour))
    shown = dict.fromkeys(zip(keys, frame[colour], strict=True))
    present = [[name for name in colours if (row, name) in shown] for row in rows]
    columns = min(len(names), 4)
    page = width or (COLUMN if len(names) == 1 else PAGE)
    wide = 16 if columns > 2 or page < 5.0 else 30
    texts = [", ".join(str(part) for part in row if part != "") for row in rows]
    labels = ["\n".join(textwrap.wrap(label_text(text, 3 * wide), wide)) for text in texts]
    heights = [
        max(_LINE * len(some), _TEXT_LINE * (label.count("\n") + 1)) + _GAP
        for some, label in zip(present, labels, strict=True)
    ]
    edges = np.concatenate([[0.0], np.cumsum(heights)])
    centre, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return _Layout(names, colours, rows, present, centre, half, labels, columns, page)


def _panels(layout: _Layout, ends: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Panels with bands behind every other row, in a figure of sufficient height."""
    from matplotlib.ticker import MaxNLocator

    lines = -(-len(layout.panels) // layout.columns)
    room_of_panel = (layout.width - 1.2) / layout.columns
    signs = max(8, int(72.0 * room_of_panel / 4.3))
    titles = ["\n".join(textwrap.wrap(label_text(name), signs)) for name in layout.panels]
    head = 0.15 * max(title.count("\n") + 1 for title in titles)
    height = lines * (layout.height + head + 0.3) + 0.55
    page, made = figure(lines, layout.columns, width=layout.width, height=height)
    every: list[Axes] = list(np.ravel(np.asarray(made, dtype=object)))
    for ax in every[len(layout.panels) :]:
        ax.remove()
    for place, (ax, title) in enumerate(zip(every, titles, strict=False)):
        ax.set_xlim(*ends)
        ax.set_ylim(layout.height, 0.0)
        ax.tick_params(axis="y", length=0.0)
        ax.set_yticks(
            layout.centre, layout.labels if place % layout.columns == 0 else [""] * len(layout.rows)
        )
        ax.xaxis.set_major_locator(MaxNLocator(max(2, min(5, int(room_of_panel / 0.45)))))
        lined(ax, "x")
        for row in range(1, len(layout.rows), 2):
            middle, half = layout.centre[row], layout.half[row]
            ax.axhspan(middle - half, middle + half, color=shade(ax, 0.04), linewidth=0.0, zorder=0.1)
        if len(layout.panels) > 1:
            ax.set_title(title, fontsize=8.0)
    return page, every[: len(layout.panels)]


def _draw(
    axes: Sequence[Axes],
    layout: _Layout,
    frame: pd.DataFrame,
    panels: str,
    colour: str,
    ends: tuple[float, float],
) -> list[Any]:
    """Draw every panel; return the contents of the legend."""
    others = [name for name in _FACTORS if name not in (panels, colour) and frame[name].nunique() > 1]
    codes = {row: place for place, row in enumerate(layout.rows)}
    handles = []
    for place, name in enumerate(layout.colours):
        for ax, panel in zip(axes, layout.panels, strict=True):
            part = frame[(frame[panels] == panel) & (frame[colour] == name)]
            rows = [codes[key] for key in part[others].itertuples(index=False, name=None)]
            steps = [_LINE * (_order(layout.present[row], name)) for row in rows]
            y = layout.centre[rows] + np.array(steps, dtype=np.float64)
            for one in _series(part, str(name), place):
                draw_series(ax, one, y, ends)
        if len(layout.colours) > 1:
            handles.append(series_handle(_series(frame, str(name), place)[0], ground(axes[0])))
    if frame["partial"].any():
        none = np.zeros(0)
        partial = Series("of some trials only", none, none, none, none > 0.0, 0, thin=True)
        handles.append(series_handle(partial, ground(axes[0]), colour=grey(axes[0])))
    return handles


def _order(names: Sequence[Any], name: Any) -> float:
    """Offset of a colour below the middle of its row."""
    return names.index(name) - 0.5 * (len(names) - 1)


def _series(part: pd.DataFrame, label: str, place: int) -> tuple[Series, Series]:
    """Rows based on all trials, and those based on only some."""
    value, low, high = (part[column].to_numpy(dtype=np.float64) for column in ("value", "low", "high"))
    partial = part["partial"].to_numpy(dtype=bool)
    remarks = tuple("no trial" if np.isnan(number) else "" for number in value)
    return (
        Series(label, value, low, high, ~partial, place, remarks=remarks),
        Series(label, value, low, high, partial, place, thin=True, remarks=remarks),
    )


def _legend(page: Figure, handles: Sequence[Any]) -> None:
    """Draw the legend above all panels, in as many columns as fit."""
    if not handles:
        return
    size = 7.0
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(int(72.0 * page.get_figwidth() / (size * (0.52 * longest + 4.2))), len(handles)))
    page.set_figheight(page.get_figheight() + 1.7 * size / 72.0 * -(-len(handles) // columns))
    page.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=columns,
        fontsize=size,
        frameon=False,
        handlelength=2.4,
        columnspacing=1.0,
    )
