"""Common elements of all plots: colours, markers, lines, sizes, and the axes on which they are drawn.

References
----------
Okabe, M. and Ito, K. (2008). Color universal design: how to make figures and presentations that are friendly
to colorblind people (the colours).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from adaptinf.claims.reports.pictures import UNCOVERED
from adaptinf.errors import MissingDependencyError
from adaptinf.parameters import COUNT, Number, OneOf, OrNone, check, number_array
from adaptinf.texts import literal
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMN, PAGE = 3.4, 7.0
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5D3FD3", "#B2182B")
"""Six colours from Okabe and Ito, and two that differ from them for three kinds of colour vision."""
GREY = "#6e6e6e"
"""Colours for series without their own colour, and for reference values on a light background."""
INK = -1
"""The index for elements that are not series, which are drawn in the colour of text."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "||||", "----", "++++")
LEGENDS: tuple[Any, ...] = ("above", "best", "upper left", "upper right", "lower left", "lower right", "none")
"""Position of a legend."""
BESIDE: tuple[Any, ...] = ("beside", *LEGENDS)
"""Position of the names of lines: next to their ends, or in a legend."""
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
_GROUND, _INK = "#131416", "#cfd0d0"
_THEMES: dict[str, dict[str, Any]] = {
    "light": {"figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "auto"}
    | dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"),
        "black",
    ),
    "dark": {"figure.facecolor": _GROUND, "axes.facecolor": _GROUND, "savefig.facecolor": "auto"}
    | dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"),
        _INK,
    ),
}


_width: ContextVar[float] = ContextVar("width", default=COLUMN)


@contextmanager
def theme(name: str | None = None, *, width: float | None = None) -> Iterator[None]:
    """Draw the plots in a block on a light or dark background, or with another width.

    Parameters
    ----------
    name : {"light", "dark"}, optional
        The colours of the background, and of text and axes. The colours of series are visible on both
        backgrounds. The default is the current settings of matplotlib.
    width : float, optional
        Width of new figures in inches; by default 3.4, one column of most journals. Grids of panels are
        always 7 inches wide.

    Yields
    ------
    None
        A context manager for a ``with`` block.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If an argument is out of range; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> with ai.plots.theme("dark", width=5.0):
    ...     page, ax = ai.plots.figure()
    >>> ax.get_facecolor()[:3] == page.get_facecolor()[:3], float(page.get_figwidth())
    (True, 5.0)
    """
    plots = pyplot("plots.theme")
    check("plots.theme", name=(name, OrNone(OneOf(*_THEMES))), width=(width, OrNone(Number(0.5, 100.0))))
    token = _width.set(_width.get() if width is None else float(width))
    try:
        with plots.rc_context({} if name is None else _THEMES[name]):
            yield
    finally:
        _width.reset(token)


@dataclass(frozen=True, slots=True)
class Look:
    """Style of one series: eight have their own colour, and the others are grey."""

    colour: str
    marker: str
    line: Any
    hatch: str


def look(place: int) -> Look:
    """Style of the series with an index."""
    return Look(
        COLOURS[place] if place < len(COLOURS) else GREY,
        _MARKERS[place % len(_MARKERS)],
        _LINES[place % len(_LINES)],
        _HATCHES[place % len(_HATCHES)],
    )


def pyplot(purpose: str) -> ModuleType:
    """Matplotlib's pyplot, imported on first use."""
    try:
        from matplotlib import pyplot as module
    except ImportError as error:
        raise MissingDependencyError(purpose, "matplotlib", "plots") from error
    return module


def figure(
    rows: int = 1, columns: int = 1, *, width: float | None = None, height: float | None = None
) -> tuple[Figure, Any]:
    """A figure in the style of the plots, with panels.

    Parameters
    ----------
    rows, columns : int
        Panels.
    width : float, optional
        Width in inches: 3.4, the default outside of `plots.theme`, is one column of most journals, and 7 is
        two.
    height : float, optional
        Height in inches; by default 2.2 per row.

    Returns
    -------
    Figure
        The figure has a constrained layout, so labels and legends find room.
    Axes or ndarray of Axes
        The axes, in the form that `matplotlib.pyplot.subplots` returns.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If an argument is out of range; the message lists every problem.

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
        width=(width, OrNone(Number(0.5, 100.0))),
        height=(height, OrNone(Number(0.5, 100.0))),
    )
    plots = pyplot("plots.figure")
    size = (column() if width is None else float(width), 2.2 * rows if height is None else float(height))
    # The figure is created before the style is applied. Creating it loads matplotlib's backend; that of
    # notebooks changes a setting so that figures are displayed, and the end of the style would reset this.
    page: Figure = plots.figure(figsize=size, dpi=_DPI, layout="constrained")
    with plots.rc_context(_STYLE):
        return page, page.subplots(rows, columns)


def column() -> float:
    """The width of a plot's figure, in inches."""
    return _width.get()


def axes_problem(subject: str, ax: Any, legend: str = "none", places: Sequence[Any] = LEGENDS) -> list[str]:
    """List problems with the given axes, or with the position of the legend."""
    pyplot(subject)
    from matplotlib.axes import Axes

    problems = OneOf(*places)("legend", legend)
    if ax is not None and not isinstance(ax, Axes):
        problems.insert(0, f"ax must be Axes of matplotlib on which to draw, or None, got {ax!r:.60}")
    return problems


def prepared(ax: Axes | None, height: float = 2.2, grid: str = "y") -> Axes:
    """The given axes, or those of a new figure of column width with a grid in the background."""
    if ax is not None:
        return ax
    own: Axes = figure(height=height)[1]
    lined(own, grid)
    return own


def lined(ax: Axes, grid: str = "y") -> None:
    """Draw a faint grid behind all other elements."""
    ax.set_axisbelow(True)
    ax.grid(axis=grid, color=shade(ax, 0.1), linewidth=0.5)  # type: ignore[arg-type]


def panel_grid(count: int, columns: int, height: float) -> list[Axes]:
    """Panels of one new figure with shared axes, labelled only at the left and at the bottom."""
    across = min(columns, count)
    rows = -(-count // across)
    page, made = figure(rows, across, width=None if across == 1 else PAGE, height=0.45 + height * rows)
    panels: list[Axes] = list(np.ravel(np.asarray(made, dtype=object)))
    for extra in panels[count:]:
        extra.remove()
    panels = panels[:count]
    for place, own in enumerate(panels):
        lined(own)
        if place:
            own.sharex(panels[0])
            own.sharey(panels[0])
        own.tick_params(labelleft=place % across == 0, labelbottom=place + across >= count)
    engine: Any = page.get_layout_engine()
    engine.set(hspace=0.04, wspace=0.03)
    return panels


def outer(panels: Sequence[Axes]) -> None:
    """Label the vertical axes of panels once, at the left, and the horizontal ones at the bottom."""
    if len(panels) == 1:
        return
    page: Any = panels[0].get_figure(root=True)
    size = float(panels[0].yaxis.label.get_fontsize())
    wide = int(72.0 * page.get_figheight() / (0.62 * size))
    page.supylabel("\n".join(textwrap.wrap(panels[0].get_ylabel(), wide)), fontsize=size)
    for own in panels:
        own.set_ylabel("")
        spec = own.get_subplotspec()
        below = spec is not None and any(
            other.get_subplotspec().rowspan.start == spec.rowspan.start + 1  # type: ignore[union-attr]
            and other.get_subplotspec().colspan.start == spec.colspan.start  # type: ignore[union-attr]
            for other in panels
        )
        if below:
            own.set_xlabel("")


def ink(ax: Axes) -> str:
    """The colour of axis text, used for all elements that are not series."""
    from matplotlib.colors import to_hex

    return to_hex(ax.xaxis.label.get_color())


def ground(ax: Axes) -> str:
    """The background colour of axes."""
    from matplotlib.colors import to_hex, to_rgba

    own = to_rgba(ax.get_facecolor())
    owner: Any = ax.get_figure(root=True)
    return to_hex(own if own[3] else owner.get_facecolor())


def shade(ax: Axes, depth: float, colour: str | None = None) -> str:
    """A colour between the background (0), or another colour, and that of axis text (1)."""
    from matplotlib.colors import to_hex, to_rgb

    below, above = np.array(to_rgb(colour or ground(ax))), np.array(to_rgb(ink(ax)))
    red, green, blue = (1.0 - depth) * below + depth * above
    return to_hex((red, green, blue))


def grey(ax: Axes) -> str:
    """The grey for remarks and reference lines."""
    return shade(ax, 0.6)


def small(ax: Axes) -> float:
    """Font size of legends and remarks, in points: slightly smaller than axis labels."""
    return 0.85 * float(ax.xaxis.label.get_fontsize())


def label_text(value: Any, most: int = 60) -> str:
    r"""A label in which every character is drawn literally."""
    text = literal(str(value))
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    # matplotlib omits labels that begin with an underscore from legends.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def short_names(names: Sequence[Any], most: int = 24) -> list[str]:
    """Names that fit next to lines: long names are shortened in the middle, and remain distinct."""
    texts = [str(name) for name in names]
    tail = most // 3
    cut = [
        text if len(text) <= most else f"{text[: most - tail - 1]}…{text[len(text) - tail :]}"
        for text in texts
    ]
    twice = {text for text in cut if cut.count(text) > 1}
    return [
        f"{place + 1}: {text[: most - 6]}…" if short in twice else short
        for place, (text, short) in enumerate(zip(texts, cut, strict=True))
    ]


def titled(panels: Sequence[Axes], names: Sequence[str]) -> None:
    """Write the name of each panel above it, in at most three lines."""
    for own, name in zip(panels, short_names(names, 66), strict=True):
        own.set_title("\n".join(textwrap.wrap(label_text(name, 99), 24)), fontsize=small(own), loc="left")


def quantity(name: str, unit: str | None) -> str:
    """Label of an axis with its unit."""
    return name if unit is None else f"{name} ({label_text(unit)})"


def round_axis(ax: Axes, last: float, log: bool = False) -> None:
    """Label the horizontal axis for rounds."""
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    ax.set_xlabel("round")
    if log:
        log_axis(ax, "x")
        return
    plain = last < 20_000
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}") if plain else EngFormatter(sep=""))


def date_axis(ax: Axes) -> None:
    """Label the horizontal axis for dates, with the part common to all ticks stated once."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ax.set_xlabel("date")
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def log_axis(ax: Axes, name: str) -> None:
    """Make an axis logarithmic, with ticks as plain numbers if it spans less than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (ax.set_xscale if name == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if name == "x" else ax.yaxis
    low, high = sorted(axis.get_view_interval())
    axis.set_minor_formatter(NullFormatter())
    if low > 1e-4 and high < 1e5 * low and high < 1e6:
        axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.10g}"))
    if high < 100.0 * low:
        steps = (1.0, 2.0, 5.0) if high > 8.0 * low else (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
        axis.set_major_locator(LogLocator(subs=steps))


def marked_line(ax: Axes, x: Any, y: Any, label: str, place: int, every: Any) -> Any:
    """Draw a line in the style of the series with an index: its colour, and markers at regular points."""
    shown = look(place)
    if place >= len(COLOURS):
        [line] = ax.plot(x, y, color=shown.colour, linewidth=0.7, zorder=1.5, label=label_text(label))
        return line
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


def say_uncovered(ax: Axes, guarantees: Iterable[Any], *, own: bool) -> None:
    """Write below a plot of private trials that it shows information not covered by their guarantees."""
    if not any(one is not None and math.isfinite(one.epsilon) for one in guarantees):
        return
    if own:
        page: Any = ax.get_figure(root=True)
        page.supxlabel(UNCOVERED(), fontsize=small(ax), fontstyle="italic", color=grey(ax))
    else:
        ax.set_xlabel(f"{ax.get_xlabel()}\n{UNCOVERED()}")


def name_lines(ax: Axes, names: Sequence[str], ends: Sequence[float], places: Sequence[int]) -> None:
    """Write names in colour next to the right ends of lines, at the heights of their last values.

    Names that would overlap are moved apart, keeping their order, and each is connected by a thin line. The
    vertical limits of the axes must already be set.
    """
    known = [(float(end), name, place) for end, name, place in zip(ends, names, places, strict=True)]
    shown = sorted(one for one in known if math.isfinite(one[0]))
    if not shown:
        return
    size = small(ax)
    owner: Any = ax.get_figure(root=True)
    tall = 72.0 * owner.get_figheight() * ax.get_position().height
    to_share, left = ax.transData + ax.transAxes.inverted(), ax.get_xlim()[0]
    with np.errstate(divide="ignore"):
        heights = np.array([to_share.transform((left, end))[1] for end, _, _ in shown])
    heights = np.clip(heights, 0.0, 1.0)  # A line may end beyond the axis, as 0 does on a logarithmic scale.
    moved = apart(heights, 1.2 * size / tall)
    for height, free, (_, name, place) in zip(heights, moved, shown, strict=True):
        colour = ink(ax) if place == INK else look(place).colour
        grey_text = place >= len(COLOURS)
        ax.annotate(
            label_text(name, 200),
            (1.0, height),
            xycoords="axes fraction",
            xytext=(1.04, free),
            textcoords="axes fraction",
            va="center",
            fontsize=size,
            # Small text needs more contrast than lines.
            color=grey(ax) if grey_text else shade(ax, 0.35, colour),
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "relpos": (0.0, 0.5),
                "shrinkA": 0.5,
                "shrinkB": 0.0,
            },
        )


def name_series(
    ax: Axes, lines: Sequence[Any], names: Sequence[str], places: Sequence[int], where: Any, *, grow: bool
) -> None:
    """Name lines next to their ends, or in a legend, in which those without a colour share an entry."""
    if where == "beside":
        ax.margins(x=0.0)
        ends = [_last_known(line.get_ydata()) for line in lines]
        name_lines(ax, short_names(names), ends, places)
        return
    handles = [line for line, place in zip(lines, places, strict=True) if place < len(COLOURS)]
    others = [line for line, place in zip(lines, places, strict=True) if place >= len(COLOURS)]
    if others:
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], color=GREY, linewidth=1.3, label=f"{len(others)} others"))
    legend_of(ax, handles, where, grow=grow)


def _last_known(values: Any) -> float:
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    return float(known[-1]) if known.size else math.nan


def apart(heights: FloatArray, gap: float) -> FloatArray:
    """Ascending heights (n,) in [0, 1], moved as little as possible to be at least a gap apart."""
    steps = gap * np.arange(heights.size)
    free = isotonic_regression(heights - steps).x
    room = max(0.0, 1.0 - (steps[-1] if heights.size else 0.0))
    return np.asarray(np.clip(free, 0.0, room) + steps)


def most_coloured(weights: Sequence[float]) -> list[int]:
    """Indices of series in the order of styles: at most eight, those of largest weight, are coloured."""
    count = len(weights)
    if count <= len(COLOURS):
        return list(range(count))
    first = set(np.argsort(-np.asarray(weights), kind="stable")[: len(COLOURS)].tolist())
    coloured = iter(range(len(COLOURS)))
    others = iter(range(len(COLOURS), count))
    return [next(coloured) if place in first else next(others) for place in range(count)]


def height_of_names(count: int) -> float:
    """Height of a figure with this many names next to its lines, in inches."""
    return max(2.2, 0.6 + 0.135 * count)


def one_for_each(given: Any, count: int) -> FloatArray | None:
    """One number per row or round, from one number for all or one for each; None if invalid."""
    values = number_array(given)
    if values is not None and values.ndim == 0:
        values = np.full(count, float(values))
    return values if values is not None and values.shape == (count,) else None


def legend_of(
    ax: Axes, handles: Sequence[Any], where: Any, *, grow: bool = False, lift: bool = False
) -> None:
    """Draw the legend above the axes, and above any names there, in as many columns as fit."""
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
    from matplotlib.transforms import ScaledTranslation

    raised = ScaledTranslation(0.0, (1.5 * size if lift else 0.0) / 72.0, owner.dpi_scale_trans)
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=ax.transAxes + raised,
        ncols=columns,
        columnspacing=1.0,
        **common,
    )
