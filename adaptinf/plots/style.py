"""What all pictures share: colours, markers, lines, sizes, and the axes that they are drawn on.

References
----------
Okabe, M. and Ito, K. (2008). Color universal design: how to make figures and presentations that are friendly
to colorblind people (the colours).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import MissingDependencyError
from adaptinf.parameters import COUNT, Number, OneOf, OrNone, check, number_array
from adaptinf.texts import literal
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMN = 3.4
GREY = "#6e6e6e"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "||||", "----")
LEGENDS: tuple[Any, ...] = ("above", "best", "upper left", "upper right", "lower left", "lower right", "none")
_STYLE: dict[str, Any] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
}
_DPI = 150.0


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is drawn: no two of the first 35 share colour, marker and line."""

    colour: str
    marker: str
    line: Any
    hatch: str


def look(place: int) -> Look:
    """How the series in some place is drawn."""
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _MARKERS[place % len(_MARKERS)],
        _LINES[place % len(_LINES)],
        _HATCHES[place % len(_HATCHES)],
    )


def pyplot(purpose: str) -> ModuleType:
    """Matplotlib's pyplot, imported now."""
    try:
        from matplotlib import pyplot as module
    except ImportError as error:
        raise MissingDependencyError(purpose, "matplotlib", "plots") from error
    return module


def figure(
    rows: int = 1, columns: int = 1, *, width: float = COLUMN, height: float | None = None
) -> tuple[Figure, Any]:
    """A figure in the style of the pictures, with panels to draw them in.

    Parameters
    ----------
    rows, columns : int
        Panels.
    width : float
        In inches: 3.4 is one column of most journals, 7 two.
    height : float, optional
        In inches; by default 2.2 a row.

    Returns
    -------
    Figure
        With a constrained layout, so that labels and legends find room.
    Axes or ndarray of Axes
        As `matplotlib.pyplot.subplots` returns them.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        Listing every argument that is out of range.

    Examples
    --------
    >>> import adaptinf as ai
    >>> page, panels = ai.plots.figure(1, 2, width=7.0)
    >>> panels.shape, page.get_size_inches().tolist()
    ((2,), [7.0, 2.2])
    """
    check(
        "plots.figure",
        rows=(rows, COUNT),
        columns=(columns, COUNT),
        width=(width, Number(0.5, 100.0)),
        height=(height, OrNone(Number(0.5, 100.0))),
    )
    plots = pyplot("plots.figure")
    size = (float(width), 2.2 * rows if height is None else float(height))
    # The figure comes before the style: it loads matplotlib's backend, and that of notebooks then has figures
    # be shown by a setting, which the end of the style would take back.
    page: Figure = plots.figure(figsize=size, dpi=_DPI, layout="constrained")
    with plots.rc_context(_STYLE):
        return page, page.subplots(rows, columns)


def axes_problem(subject: str, ax: Any, legend: str = "none") -> list[str]:
    """Say what is wrong with the axes to draw on, or the place of the legend."""
    pyplot(subject)
    from matplotlib.axes import Axes

    problems = OneOf(*LEGENDS)("legend", legend)
    if ax is not None and not isinstance(ax, Axes):
        problems.insert(0, f"ax must be the Axes of matplotlib to draw on, or None, got {ax!r:.60}")
    return problems


def prepared(ax: Axes | None, height: float = 2.2, grid: str = "y") -> Axes:
    """The axes given, or those of a new figure of column width with a grid behind what is drawn."""
    if ax is not None:
        return ax
    own: Axes = figure(height=height)[1]
    own.set_axisbelow(True)
    own.grid(axis=grid, color="0.9", linewidth=0.5)  # type: ignore[arg-type]
    return own


def small(ax: Axes) -> float:
    """Size in points of legends and remarks: a little less than that of the axes' labels."""
    return 0.85 * float(ax.xaxis.label.get_fontsize())


def label_text(value: Any, most: int = 60) -> str:
    r"""A label whose every character is drawn as it is."""
    text = literal(str(value))
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    # matplotlib leaves labels that begin with an underscore out of legends
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def quantity(name: str, unit: str | None) -> str:
    """Label of an axis with its unit."""
    return name if unit is None else f"{name} ({label_text(unit)})"


def round_axis(ax: Axes, last: float, log: bool = False) -> None:
    """Label the horizontal axis as that of rounds."""
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    ax.set_xlabel("round")
    if log:
        log_axis(ax, "x")
        return
    plain = last < 20_000
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}") if plain else EngFormatter(sep=""))


def date_axis(ax: Axes) -> None:
    """Label the horizontal axis as that of dates, with what all ticks share said once."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ax.set_xlabel("date")
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def log_axis(ax: Axes, name: str) -> None:
    """Make an axis logarithmic, with ticks that are plain numbers where it spans less than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (ax.set_xscale if name == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if name == "x" else ax.yaxis
    low, high = sorted(axis.get_view_interval())
    axis.set_minor_formatter(NullFormatter())
    if low > 1e-4 and high < 1e5 * low and high < 1e6:
        axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.10g}"))
    if high < 100.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high > 8.0 * low else tuple(range(1, 10))))


def marked_line(ax: Axes, x: Any, y: Any, label: str, place: int, every: Any) -> Any:
    """Draw a line with a marker at every so many points, as the series in some place is drawn."""
    shown = look(place)
    [line] = ax.plot(
        x,
        y,
        color=shown.colour,
        linewidth=1.3,
        linestyle=shown.line,
        marker=shown.marker,
        markersize=3.5,
        markevery=every,
        label=label_text(label),
    )
    return line


def one_for_each(given: Any, count: int) -> FloatArray | None:
    """Numbers of rows or rounds from one number for all, or one for each; None where it is neither."""
    values = number_array(given)
    if values is not None and values.ndim == 0:
        values = np.full(count, float(values))
    return values if values is not None and values.shape == (count,) else None


def arm_label(arm: Any) -> str:
    """What an arm is called in a legend: numbers alone would say nothing."""
    return str(arm) if isinstance(arm, str) else f"arm {arm}"


def legend_of(ax: Axes, handles: Sequence[Any], where: Any, *, grow: bool = False) -> None:
    """Say what is drawn: above the axes, where it hides nothing, in as many columns as fit."""
    if where == "none" or not handles:
        return
    size = small(ax)
    common: dict[str, Any] = {"fontsize": size, "frameon": False, "handlelength": 2.4, "borderaxespad": 0.3}
    if where != "above":
        ax.legend(handles=handles, loc=where, **common)
        return
    owner: Any = ax.get_figure(root=True)
    width = 72.0 * owner.get_figwidth() * ax.get_position().width
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(int(width / (size * (0.52 * longest + 4.2))), len(handles)))
    if grow:
        owner.set_figheight(owner.get_figheight() + 1.6 * size / 72.0 * -(-len(handles) // columns))
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        columnspacing=1.0,
        **common,
    )
