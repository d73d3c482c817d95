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

COLUMNS = ("Thompson", "batched Thompson")
METHODS = {
    "t-test of least squares": "naive t-test",
    "W-decorrelated": "W-decorrelated",
    "ALEE": "ALEE",
    "AIPW": "AIPW, stabilised",
    "weighted": "weighted regression",
    "batched": "batched",
    "randomisation": "randomisation test",
}
NAIVE, VALID = look(1).colour, look(0).colour


def bars(ax: Axes, shares: Any, title: str, colour: str) -> None:
    """A histogram with the level .05 and what a valid p-value would give, heights as densities."""
    heights = np.asarray(shares, dtype=float) * len(shares)
    edges = np.linspace(0.0, 1.0, len(heights) + 1)
    ax.bar(
        edges[:-1],
        heights,
        width=np.diff(edges),
        align="edge",
        color=colour,
        edgecolor="white",
        linewidth=0.4,
    )
    ax.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
    ax.set_title(title, fontsize=7)
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])


def part(table: pd.DataFrame, **where: str) -> np.ndarray:
    """Shares of one histogram."""
    keep = np.ones(len(table), dtype=bool)
    for name, value in where.items():
        keep &= (table[name] == value).to_numpy()
    return table.loc[keep, "share of runs"].to_numpy()


def first(shares: np.ndarray) -> str:
    """Share of p-values of at most .05, in words."""
    return f"{shares[0]:.0%} below .05"


def figure_6(table: pd.DataFrame) -> Figure:
    """The paper's Figure 6 under both readings of the z-score."""
    page, panels = figure(1, 2, height=2.0)
    readings = {"z": "estimate / sd", "by the variance": "estimate / variance"}
    for ax, (test, label) in zip(panels, readings.items(), strict=True):
        shares = part(table, contexts="own", arm="most pulled", test=test)
        bars(ax, shares, f"z = {label}:\n{first(shares)}", VALID if test == "z" else NAIVE)
        ax.set_xlabel("p-value")
    panels[0].set_ylabel("density")
    return page


def failures(table: pd.DataFrame, difference: np.ndarray) -> Figure:
    """Histograms of naive tests that do fail."""
    page, panels = figure(1, 2, height=2.0)
    thompson = np.histogram(difference, np.linspace(0.0, 1.0, 21))[0] / len(difference)
    bars(panels[0], thompson, f"Thompson, two arms:\n{first(thompson)}", NAIVE)
    linear = part(table, contexts="intercept", arm="least pulled", test="z")
    bars(panels[1], linear, f"OFUL with an intercept:\n{first(linear)}", NAIVE)
    for ax in panels:
        ax.set_xlabel("p-value")
    panels[0].set_ylabel("density")
    return page


def arm_means(table: pd.DataFrame) -> Figure:
    """Share of runs in which an arm's true mean is found too low, by design and choice of the arm."""
    page, ax = figure(height=2.4)
    ax.axvline(0.05, color=GREY, linewidth=0.8, linestyle="--")
    names = list(dict.fromkeys(table["design"]))
    for place, (choice, rows) in enumerate(table.groupby("arm", sort=False)):
        style = look(place)
        ax.errorbar(
            rows["too low, one-sided"],
            np.arange(len(names)),
            xerr=1.96 * rows["standard error"],
            color=style.colour,
            marker=style.marker,
            linestyle="none",
            markersize=3.5,
            elinewidth=0.8,
            label={"arm 0": "an arm fixed beforehand", "least pulled": "the arm pulled least"}[str(choice)],
        )
    labels = [name.replace("sqrt(2 log t / N)", r"$\sqrt{2\log t/N}$") for name in names]
    labels = [name.replace("sqrt(log t / 2N)", r"$\sqrt{\log t/2N}$") for name in labels]
    labels = [name.replace("sqrt(log t / 4N)", r"$\sqrt{\log t/4N}$") for name in labels]
    labels = [
        name.replace("epsilon ", r"$\varepsilon$ = ").replace("published, ", "publ., ") for name in labels
    ]
    ax.set_yticks(np.arange(len(names)), labels)
    ax.invert_yaxis()
    ax.set(xlabel="share of runs that find it too low", xlim=(0, None))
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def private(table: pd.DataFrame) -> Figure:
    """Exact tests of the least pulled arm under private UCB, as they are and corrected."""
    page, panels = figure(1, 2, height=2.0)
    for ax, (method, label) in zip(
        panels, {"exact test": "exact test", "exact test, corrected": "corrected"}.items(), strict=True
    ):
        shares = part(table, design="private UCB", method=method)
        bars(ax, shares, f"{label}:\n{shares[0]:.1%} below .05", VALID)
        ax.set_xlabel("p-value")
    panels[0].set_ylabel("density")
    return page


def methods(table: pd.DataFrame, shares: pd.DataFrame) -> Figure:
    """A histogram for each method and design; empty where a method does not apply."""
    page, panels = figure(len(METHODS), len(COLUMNS), height=1.0 * len(METHODS) + 0.4)
    rejected = shares.set_index(["design", "method"])["rejected at .05"]
    for row, (method, label) in zip(panels, METHODS.items(), strict=True):
        for ax, design in zip(row, COLUMNS, strict=True):
            ax.tick_params(labelbottom=method == "randomisation")
            if (design, method) not in rejected.index:
                ax.set_axis_off()
                ax.text(
                    0.5, 0.5, f"{label}:\nneeds batches", ha="center", va="center", fontsize=7, color=GREY
                )
                continue
            title = f"{label}: {rejected[design, method]:.3f}"
            colour = NAIVE if method.startswith("t-test") else VALID
            bars(ax, part(table, design=design, method=method), title, colour)
            ax.set_ylim(0.0, 3.0)
    for ax, design in zip(panels[0], COLUMNS, strict=True):
        ax.set_title(f"{design}\n{ax.get_title()}", fontsize=7)
    for ax in panels[-1]:
        ax.set_xlabel("p-value")
    page.supylabel("density", fontsize=8)
    return page
