"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf import plots
from adaptinf.plots.style import GREY, look
from case_studies.private_elimination import regret, scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = {
    regret.ELIMINATION: "DP-SE",
    regret.PUBLISHED: "DP-UCB, published width",
    regret.EXACT: "DP-UCB, exact quantile",
    regret.HYBRID: "the same, hybrid counter",
}
RATIOS = {
    regret.PUBLISHED: "published width",
    regret.TAIL: "tail bound at 1/t",
    regret.TAIL_AT_END: "tail bound at 1/T",
    regret.EXACT: "exact quantile at 1/t",
    regret.EXACT_AT_END: "exact quantile at 1/T",
    regret.HYBRID: "exact quantile, hybrid counter",
}
HOLLOW = {regret.TAIL_AT_END, regret.EXACT_AT_END}
"""What lies on the one before: large hollow markers keep both in sight."""
AXES = {"log T": r"$\log T$", "K - 1": r"suboptimal arms $K-1$", "1/epsilon": r"$1/\varepsilon$"}


def figure_1(table: pd.DataFrame) -> Figure:
    """Regret over time at every epsilon, with 95% intervals of the mean."""
    page, panels = plots.figure(2, 2, width=7.0, height=5.2)
    for ax, epsilon in zip(panels.flat, regret.EPSILONS, strict=True):
        drawn = {}
        for name, label in DRAWN.items():
            rows = table[(table["design"] == name) & (table["epsilon"] == epsilon)]
            mean, error = rows["mean regret"], 1.96 * rows["standard error"].fillna(0.0)
            low = np.maximum(mean - error, 1.0)
            drawn[label] = tuple(part.to_numpy() for part in (rows["rounds"], mean, low, mean + error))
        plots.regret(drawn, ax, log_scale=True, unit="reward", legend="none")
        ax.set_title(rf"$\varepsilon$ = {epsilon:g}", fontsize=8)
        ax.set_ylim(60.0, 2e6)
    for ax in panels[:, 1]:
        ax.set_ylabel("")
    for ax in panels[0]:
        ax.set_xlabel("")
    lines = panels[0, 0].get_lines()[: len(DRAWN)]
    page.legend(lines, DRAWN.values(), loc="outside upper center", ncols=4, fontsize=7, frameon=False)
    return page


def ratios(table: pd.DataFrame) -> Figure:
    """Regret of private UCB over that of private elimination, by its width."""
    page, ax = plots.figure(width=4.6, height=3.4)
    for height, told in ((1.0, "equal"), (5.0, "claimed: above 5")):
        ax.axhline(height, color=GREY, linewidth=0.7)
        ax.annotate(told, (0.32, 1.04 * height), fontsize=6.5, color=GREY, va="bottom")
    for place, (name, label) in enumerate(RATIOS.items()):
        rows, style = table[table["design"] == name], look(place)
        ax.errorbar(
            rows["epsilon"],
            rows["ratio to DP-SE"],
            1.96 * rows["its standard error"],
            color=style.colour,
            marker=style.marker,
            linestyle="none" if name in HOLLOW else style.line,
            markersize=7.0 if name in HOLLOW else 3.5,
            markerfacecolor="none" if name in HOLLOW else style.colour,
            linewidth=1.0,
            label=label,
        )
    ax.set(xscale="log", yscale="log", xlabel=r"$\varepsilon$", ylabel="regret of DP-UCB over that of DP-SE")
    ax.set_xticks(regret.EPSILONS, [f"{epsilon:g}" for epsilon in regret.EPSILONS])
    ax.set_yticks([0.3, 1, 3, 10, 30, 100], ["0.3", "1", "3", "10", "30", "100"])
    ax.minorticks_off()
    page.legend(loc="outside upper left", ncols=2, fontsize=6.5, frameon=False)
    return page


def growth(table: pd.DataFrame) -> Figure:
    """Regret of private elimination against log T, K - 1 and 1/epsilon, with the proved bound."""
    page, panels = plots.figure(1, 3, width=7.0, height=2.7)
    handles: list[Any] = []
    for ax, varied in zip(panels, scaling.VARIED, strict=True):
        for place, instance in enumerate((scaling.EQUAL, scaling.SPACED)):
            rows = table[(table["varied"] == varied) & (table["instance"] == instance)]
            style = look(place)
            shown = ax.errorbar(
                rows["value"],
                rows["mean regret"],
                1.96 * rows["standard error"],
                color=style.colour,
                marker=style.marker,
                linestyle="none",
                markersize=4.0,
                label=instance,
            )
            (line,) = ax.plot(rows["value"], rows["bound"], color=style.colour, linestyle=style.line)
            line.set_label(f"bound, {instance}")
            handles += [shown, line]
        ax.set_xlabel(AXES[varied])
        if varied == "log T":
            ax.set_ylim(bottom=0.0)
            ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        else:
            ax.set(xscale="log", yscale="log")
            ax.set_xticks(rows["value"], [f"{value:g}" for value in rows["value"]], fontsize=6)
            ax.xaxis.minorticks_off()
    panels[0].set_ylabel("regret (reward)")
    page.legend(handles=handles[:4], loc="outside upper center", ncols=2, fontsize=7, frameon=False)
    return page


def stopping(table: pd.DataFrame) -> Figure:
    """Samples of the stopping rule between what every rule needs and what suffices."""
    page, panels = plots.figure(2, 3, width=7.0, height=4.6)
    alphas, means = sorted(table["alpha"].unique()), sorted(table["mean"].unique())
    style = look(0)
    for (row, alpha), (column, mean) in (
        (one, other) for one in enumerate(alphas) for other in enumerate(means)
    ):
        ax = panels[row, column]
        rows = table[(table["alpha"] == alpha) & (table["mean"] == mean)]
        needed = rows["needed privately"], rows["needed on average"]
        ax.plot(rows["epsilon"], rows["theorem"], color=GREY, linestyle="-", label="Theorem 3.3, corrected")
        ax.plot(rows["epsilon"], rows["sufficient"], color=look(1).colour, linestyle="--", label="sufficient")
        ax.plot(rows["epsilon"], rows["median"], color=style.colour, marker=style.marker, markersize=4.0,
                linestyle="none", label="median of the runs")  # fmt: skip
        ax.plot(
            rows["epsilon"], needed[1], color=look(2).colour, linestyle="-.", label="every rule, on average"
        )
        ax.plot(rows["epsilon"], needed[0], color=look(3).colour, linestyle=":", label="every private rule")
        ax.set(xscale="log", yscale="log", ylim=(2.0, 5e9))
        ax.set_title(rf"$\mu$ = {mean:g}, $\alpha$ = {alpha:g}", fontsize=8)
    for ax in panels[1]:
        ax.set_xlabel(r"$\varepsilon$")
    for ax in panels[:, 0]:
        ax.set_ylabel("samples")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=7, frameon=False)
    return page
