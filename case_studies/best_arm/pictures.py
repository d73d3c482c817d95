"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORDER = {
    "OD-LinBAI": "OD-LinBAI (not private)",
    "DP-BAI": "DP-BAI",
    "DP-BAI-Gauss": r"DP-BAI-Gauss, $\delta=10^{-5}$",
    "DP-OD": "DP-OD",
    "DP-OD, rescaled": "DP-OD, features rescaled",
    "sequential halving": "sequential halving (not private)",
    "baseline": "baseline",
}
# DP-OD with rescaled features lies on DP-BAI: a large hollow marker keeps both in sight
HOLLOW = {"DP-OD, rescaled"}


def points(
    ax: Axes, rows: pd.DataFrame, against: str, place: int, label: str, *, hollow: bool = False
) -> None:
    """Measured success with 95% intervals, and the exact curve where there is one."""
    style = look(place)
    spread = 1.96 * np.sqrt(np.maximum(rows["success"] * (1.0 - rows["success"]), 0.0) / rows["runs"])
    known = rows["exact"].notna().all()
    if known and not hollow:
        ax.plot(rows[against], rows["exact"], color=style.colour, linewidth=0.9)
    looks: dict[str, Any] = {"linestyle": "none" if known else ":", "linewidth": 0.8, "elinewidth": 0.8}
    looks |= {"markersize": 6.0, "markerfacecolor": "none", "zorder": 1} if hollow else {"markersize": 3.0}
    ax.errorbar(
        rows[against],
        rows["success"],
        yerr=spread,
        color=style.colour,
        marker=style.marker,
        label=label,
        **looks,
    )


def figure_1(table: pd.DataFrame) -> Figure:
    """The paper's Figure 1: success by budget and by epsilon."""
    page, panels = figure(2, 1, height=5.2)
    for ax, against in zip(panels, ("T", "epsilon"), strict=True):
        part = table[table["against"] == against]
        for place, (name, label) in enumerate(ORDER.items()):
            rows = part[part["design"] == name]
            points(ax, rows, against, place, label, hollow=name in HOLLOW)
        ax.set(ylim=(-0.02, 1.02), ylabel="share that names arm 1")
    panels[0].set_xlabel(r"budget T, in rounds ($\varepsilon$ = .1)")
    panels[1].set_xlabel(r"$\varepsilon$ (T = 200)")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def figure_2(table: pd.DataFrame) -> Figure:
    """The paper's Figure 2: two arms, success by the ratio of their norms."""
    page, panels = figure(2, 2, height=3.7)
    unit = table[table["noise"] == "unit rewards"]
    for ax, (cell, rows) in zip(panels.flat, unit.groupby(["T", "epsilon"], sort=False), strict=True):
        for place, name in enumerate(("DP-BAI", "DP-OD")):
            points(ax, rows[rows["design"] == name], "y", 3 * place + (place == 0), name)
        ax.set_title(rf"T = {cell[0]}, $\varepsilon$ = {str(cell[1]).lstrip('0')}", fontsize=7.5)
        ax.set(ylim=(0.45, 1.0), xticks=[1, 10, 19, 28])
    page.supxlabel("norm of arm 2 over norm of arm 1", fontsize=8)
    page.supylabel("share that names arm 1", fontsize=8)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=7, frameon=False, loc="outside upper left", ncols=2)
    return page


def table_1(by_delta: pd.DataFrame, by_epsilon: pd.DataFrame) -> Figure:
    """Which design is better on two arms, exactly, and which one Table 1 ticks."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    page, panels = figure(1, 2, width=7.0, height=3.4)
    for ax, grid, across in zip(panels, (by_delta, by_epsilon), ("delta", "epsilon"), strict=True):
        _map(ax, grid, across)
        ax.set_xlabel("budget T, in rounds")
    panels[0].set(ylabel=r"$\delta$ ($\varepsilon$ = .05)")
    panels[1].set(ylabel=r"$\varepsilon$ ($\delta=10^{-5}$)")
    handles = [
        Patch(facecolor=look(5).colour, alpha=0.35, label="DP-BAI has the smaller error"),
        Patch(facecolor=look(4).colour, alpha=0.45, label="DP-BAI-Gauss has the smaller error"),
        Line2D([], [], color=look(1).colour, label="where they are equal, analytic noise"),
        Line2D([], [], color="black", linestyle="--", label="Table 1: left DP-BAI, right DP-BAI-Gauss"),
        Line2D([], [], color="black", linestyle=":", label="Table 1: border of its rows 2 and 1"),
        Line2D([], [], color=GREY, linewidth=0.7, label="error of DP-BAI"),
    ]
    page.legend(handles=handles, fontsize=7, frameon=False, loc="outside upper left", ncols=2)
    return page


def _map(ax: Axes, grid: pd.DataFrame, across: str) -> None:
    def field(column: str) -> Any:
        return grid.pivot(index=across, columns="T", values=column).sort_index()

    laplace, normal = field("log error, DP-BAI"), field("log error, DP-BAI-Gauss")
    x, y = laplace.columns.to_numpy(), laplace.index.to_numpy()
    ax.contourf(
        x, y, normal - laplace, levels=[-1e9, 0.0, 1e9], colors=[look(4).colour, look(5).colour], alpha=0.4
    )
    ax.contour(
        x, y, field("log error, analytic") - laplace, levels=[0.0], colors=look(1).colour, linewidths=1.1
    )
    for column, line in (("over all", "--"), ("over BAI", ":")):
        border = np.log(field(column))
        ax.contour(x, y, border, levels=[0.0], colors="black", linestyles=line, linewidths=1.1)
    levels = np.log([1e-12, 1e-3, 0.1])
    ax.set(xscale="log", yscale="log")
    lines = ax.contour(x, y, laplace, levels=levels, colors=GREY, linewidths=0.6, linestyles="-")
    said = dict(zip(levels, (r"$10^{-12}$", ".001", ".1"), strict=True))
    low, high = (np.log(end) for end in (y[0], y[-1]))
    height = float(np.exp(low + (0.5 if across == "delta" else 0.8) * (high - low)))
    at = [(float(np.exp(np.interp(-level, -_row(laplace, height), np.log(x)))), height) for level in levels]
    ax.clabel(lines, fmt=said, fontsize=6.5, manual=at)


def _row(field: pd.DataFrame, height: float) -> np.ndarray:
    """The row of a field that is nearest to a height on a log scale."""
    place = int(np.argmin(np.abs(np.log(field.index.to_numpy()) - np.log(height))))
    return field.iloc[place].to_numpy(dtype=np.float64)


def cells(table: pd.DataFrame, least: int = 10) -> Figure:
    """Simulated cells of Table 1: error with normal noise over that with Laplace noise."""
    page, ax = figure(height=3.3)
    errors = table[["error, DP-BAI", "error, DP-BAI-Gauss"]]
    shown = table[(errors.min(axis=1) * table["runs"] >= least)]
    for place, (name, rows) in enumerate(shown.groupby("instance", sort=False)):
        style = look(place)
        one, two = rows["error, DP-BAI"], rows["error, DP-BAI-Gauss"]
        ratio = two / one
        spread = np.exp(1.96 * np.sqrt((1.0 / one - 1.0 + 1.0 / two - 1.0) / rows["runs"]))
        ax.errorbar(
            rows["statistic"],
            ratio,
            yerr=[ratio - ratio / spread, ratio * spread - ratio],
            color=style.colour,
            marker=style.marker,
            linestyle="none",
            markersize=3.2,
            elinewidth=0.8,
            label=str(name),
        )
    ax.axhline(1.0, color=GREY, linewidth=0.8)
    ax.axvline(1.0, color="black", linewidth=0.9, linestyle="--")
    ax.set(xscale="log", yscale="log", xlabel="Table 1's square over T / (H log d)")
    ax.set_ylabel("error of DP-BAI-Gauss\nover error of DP-BAI")
    for x, text in ((0.25, "DP-BAI ticked"), (0.75, "DP-BAI-Gauss ticked")):
        ax.text(x, 1.0, text, transform=ax.transAxes, fontsize=6.5, color=GREY, ha="center", va="bottom")
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page
