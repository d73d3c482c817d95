"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf import plots
from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look
from case_studies.conse_frontier.curves import CONTEXTS, GAP, VARIANCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOOR = CONTEXTS * GAP * VARIANCE
PRODUCT = f"error times regret = {FLOOR:.4g}"
DESIGNS = {
    "ConSE": "ConSE",
    "DP-ConSE, epsilon 1": "DP-ConSE, ε = 1",
    "DP-ConSE, epsilon .1": "DP-ConSE, ε = .1",
}


def budgets(errors: pd.DataFrame, cost: pd.DataFrame) -> Figure:
    """Errors under "Reg": printed, and ours in both readings."""
    page, panels = figure(1, 2, width=7.0, height=2.9)
    for ax, (number, part) in zip(panels, errors.groupby("experiment"), strict=True):
        for place, (estimator, colour) in enumerate((("MD", look(0).colour), ("DML", look(1).colour))):
            rows = part[part["estimator"] == estimator]
            printed = rows.drop_duplicates("Reg")
            ax.plot(
                printed["Reg"],
                printed["paper"],
                color=colour,
                marker="*",
                markersize=8,
                linestyle="none",
                label=f"{estimator}, printed",
            )
            for (reading, found), line in zip(
                rows.groupby("Reg is read as", sort=False), ("-", ":"), strict=True
            ):
                _spread(ax, found, colour, line, f"{estimator}, {reading}", 1.0 + 0.03 * (place - 0.5))
        ax.set(xscale="log", yscale="log", xlabel="Reg")
        ax.set_title(f"experiment {number}", fontsize=8)
        ax.set_xticks([200, 400, 800], ["200", "400", "800"])
        ax.set_xticks([], minor=True)
        ax.set_xlim(170.0, 950.0)
    law = cost.set_index("estimator").loc["MD"]
    grid = np.linspace(195.0, 900.0, 200)
    drawn = panels[0].plot(grid, law["constant"] / (grid - law["cost"]), color=GREY, linewidth=0.8)
    drawn[0].set_label(f"{law['constant']:.1f} / (Reg - {law['cost']:.0f})")
    panels[0].set_ylabel("mean squared error")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=6.5, frameon=False, loc="outside upper left", ncols=4)
    return page


def _spread(ax: Axes, rows: pd.DataFrame, colour: str, line: str, label: str, shift: float) -> None:
    """Errors with the spread of a mean over the paper's 50 runs."""
    error = rows["mean squared error"].to_numpy()
    half = 1.96 * rows["standard deviation of a mean over 50 runs"].to_numpy()
    ax.errorbar(
        shift * rows["Reg"].to_numpy(),
        error,
        yerr=[np.minimum(half, 0.9 * error), half],
        color=colour,
        linestyle=line,
        linewidth=1.0,
        marker="o",
        markersize=2.5,
        elinewidth=0.8,
        label=label,
    )


def _curve(points: pd.DataFrame, design: str, regime: str, horizon: int) -> pd.DataFrame:
    keep = (points["design"] == design) & (points["f_min"] == regime) & (points["n"] == horizon)
    part = points[keep & points["error"].notna()]
    return part[["regret", "error", "regret_se", "error_se"]].reset_index(drop=True)


def _name_end(ax: Axes, curve: pd.DataFrame, colour: str, place: int = 0) -> None:
    """Write alpha beside the first point, or the last."""
    if not curve.empty:
        ax.annotate(
            rf"$\alpha={-place}$",
            (curve["regret"].iloc[place], curve["error"].iloc[place]),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=6,
            color=colour,
        )


def _ticks(ax: Axes, at: tuple[int, ...]) -> None:
    ax.set_xticks(at, [f"{regret:,}" for regret in at])
    ax.set_xticks([], minor=True)


def by_horizon(points: pd.DataFrame) -> Figure:
    """Figure 1: ConSE's curve at three horizons."""
    page, ax = figure(height=3.0)
    names = {f"n = {n:,}": _curve(points, "ConSE", "n/10", n) for n in sorted(points["n"].unique())}
    plots.frontier(names, ax, product=round(FLOOR, 3), legend="none")
    for place, curve in enumerate(names.values()):
        _name_end(ax, curve, look(place).colour)
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def by_epsilon(points: pd.DataFrame, horizon: int = 10**6) -> Figure:
    """Figure 2: curves along epsilon."""
    page, ax = figure(height=3.0)
    names = {label: _curve(points, design, "n/10", horizon) for design, label in DESIGNS.items()}
    plots.frontier(names, ax, product=round(FLOOR, 3), legend="none")
    ax.annotate(
        r"$\alpha=0$",
        (names["ConSE"]["regret"].iloc[0], names["ConSE"]["error"].iloc[0]),
        xytext=(12, 9),
        textcoords="offset points",
        fontsize=6,
    )
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def by_regime(points: pd.DataFrame, horizon: int = 10**6) -> Figure:
    """Figure 3: curves in three regimes of the rarest context."""
    page, panels = figure(1, 3, width=7.0, height=3.1)
    titles = {
        "n/10": r"$f_{\min}=n/10$",
        "log^3 n": r"$f_{\min}=\log^3n$",
        "4 log n": r"$f_{\min}=4\log n$",
    }
    for ax, (regime, title) in zip(panels, titles.items(), strict=True):
        found = {label: _curve(points, design, regime, horizon) for design, label in DESIGNS.items()}
        names = {label: curve for label, curve in found.items() if not curve.empty}
        plots.frontier(names, ax, legend="none")
        ends = np.array([2e3, 1e5])
        ax.plot(ends, FLOOR / ends, color=GREY, linestyle=(0, (4, 2)), linewidth=1.0, label=PRODUCT)
        _name_end(ax, found["ConSE"], look(0).colour)
        _name_end(ax, found["ConSE"], look(0).colour, -1)
        ax.set_title(title, fontsize=8)
        ax.set(xlim=(1.5e3, 1.5e5), ylim=(1.0e-5, 0.3))
        _ticks(ax, (2_000, 10_000, 50_000))
        ax.set_yticks([1e-5, 1e-4, 1e-3, 1e-2, 1e-1], [rf"$10^{{-{power}}}$" for power in (5, 4, 3, 2, 1)])
        if ax is not panels[0]:
            ax.set_ylabel("")
        if len(names) < len(found):
            ax.annotate(
                "DP-ConSE: no estimate\nfor the rarest context\nin most runs",
                (0.35, 0.6),
                xycoords="axes fraction",
                fontsize=6.5,
            )
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=6.5, frameon=False, loc="outside upper left", ncols=4)
    return page


def coverage(table: pd.DataFrame, horizon: int = 100_000) -> Figure:
    """Coverage of nominal 95% intervals along alpha."""
    page, ax = figure(height=3.0)
    ax.axhline(0.95, color=GREY, linewidth=0.7)
    part = table[table["n"] == horizon]
    labels = {"adaptinf": "adaptinf", "paper, T_min": r"variance as printed, $T_{\min}$"}
    labels["paper, f_min(n)^(1-alpha)"] = r"as printed, $f_{\min}(n)^{1-\alpha}$"
    shift = -0.012
    for (design, interval), rows in part.groupby(["design", "interval"], sort=False):
        style = look(0 if design == "ConSE" else 1)
        ours, other = interval == "adaptinf", str(interval).startswith("paper, f")
        name = DESIGNS[str(design)]
        ax.errorbar(
            rows["alpha"] + shift,
            rows["coverage"],
            yerr=1.96 * rows["standard error"],
            color=style.colour,
            marker="o" if ours else ("^" if other else "s"),
            linestyle="-" if ours else (":" if other else "--"),
            markersize=3.5,
            linewidth=1.0,
            elinewidth=0.8,
            label=f"{name}: {labels[str(interval)]}",
        )
        shift += 0.006
    ax.set(xlabel=r"$\alpha$", ylabel="coverage of 95% intervals", ylim=(0.6, 1.0))
    page.legend(fontsize=6.0, frameon=False, loc="outside upper left", ncols=1)
    return page


def calibrations(table: pd.DataFrame) -> Figure:
    """Error against regret, DP-ConSE as published and corrected, a panel an epsilon."""
    from matplotlib.ticker import LogFormatterSciNotation

    page, panels = figure(1, 2, width=7.0, height=2.8)
    for ax, (epsilon, part) in zip(panels, table.groupby("epsilon"), strict=True):
        names: dict[str, Any] = {}
        for calibration, rows in part.groupby("calibration", sort=False):
            columns = {"regret": "regret", "mean squared error": "error", "regret se": "regret_se"}
            columns["error se"] = "error_se"
            names[str(calibration)] = rows[list(columns)].rename(columns=columns)
        plots.frontier(names, ax, legend="none")
        for place, (name, rows) in enumerate(part.groupby("calibration", sort=False)):
            right = name == "published"
            near = [rows["regret"].round(-2), np.log10(rows["mean squared error"]).round(1)]
            for (point, _), same in rows.groupby(near, sort=False):
                known = ", ".join(f"{alpha:g}" for alpha in sorted(same["alpha"]))
                beside = right or (point < 4_000 and known == "0.4")  # of two points close by
                ax.annotate(
                    rf"$\alpha={known}$",
                    (same["regret"].iloc[0], same["mean squared error"].iloc[0]),
                    xytext=(6 if beside else -6, -2),
                    ha="left" if beside else "right",
                    textcoords="offset points",
                    fontsize=6.5,
                    color=look(place).colour,
                )
        ax.set_yticks([10.0**power for power in range(-4, 2)])
        ax.yaxis.set_major_formatter(LogFormatterSciNotation())
        ax.set(xlim=(2.0e3, 2.3e4), ylim=(7e-5, 30.0))
        ax.set_title(rf"$\varepsilon={epsilon:g}$", fontsize=8)
        _ticks(ax, (3_000, 5_000, 10_000, 20_000))
    panels[1].set_ylabel("")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=7, frameon=False, loc="outside upper left", ncols=2)
    return page


def seasons(table: pd.DataFrame) -> Figure:
    """Runs without an estimate where a context falls in the second half, a panel a design."""
    page, panels = figure(1, 2, width=7.0, height=2.6)
    part = table[table["seasons"] == "the first falls"]
    columns = {
        "ConSE": "ConSE: no estimate by the pseudo-code",
        "DP-ConSE, ε = 1": "DP-ConSE: no estimate",
    }
    for ax, (name, column) in zip(panels, columns.items(), strict=True):
        for place, alpha in enumerate((0.0, 0.2, 0.4)):
            rows, style = part[part["alpha"] == alpha], look(place)
            ax.plot(
                rows["second over first half"],
                rows[column],
                color=style.colour,
                marker=style.marker,
                linestyle=style.line,
                markersize=4.0,
                linewidth=1.1,
                label=rf"$\alpha={alpha:g}$",
            )
        ax.set(xlabel="second half's arrivals over the first half's", xlim=(0.05, 1.05), ylim=(-0.03, 1.05))
        ax.set_title(name, fontsize=8)
    panels[0].set_ylabel("share of runs without an estimate")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=7, frameon=False, loc="outside upper left", ncols=3)
    return page
