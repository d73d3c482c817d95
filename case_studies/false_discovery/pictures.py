"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adaptinf import plots
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
    "weighted": "weighted",
    "batched": "batched",
    "randomisation": "randomisation",
}


def histogram(ax: Axes, values: np.ndarray, title: str) -> None:
    """P-values with the band of a bin of uniform ones, and the share of at most .05 above them."""
    share = np.mean(values <= 0.05)
    plots.pvalues(values, ax=ax, legend="none")
    ax.set_title(f"{title}\n{share:.1%} at most .05", fontsize=7)
    ax.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])


def part(table: pd.DataFrame, **where: str) -> np.ndarray:
    """P-values of one kind."""
    keep = np.ones(len(table), dtype=bool)
    for name, value in where.items():
        keep &= (table[name] == value).to_numpy()
    return table.loc[keep, "pvalue"].to_numpy()


def side_by_side(panels: dict[str, np.ndarray]) -> Figure:
    """Two histograms on one scale."""
    page, axes = plots.figure(1, 2, height=2.1)
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        histogram(ax, values, title)
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0.0, top)
        for told in ax.texts:  # of bars that are cut
            told.set_y(0.98 * top)
    axes[1].set_ylabel("")
    return page


def figure_6(table: pd.DataFrame) -> Figure:
    """The paper's Figure 6 under both readings of the z-score."""
    readings = {"estimate over its sd": "z", "estimate over its variance": "by the variance"}
    return side_by_side(
        {label: part(table, contexts="own", arm="most pulled", test=test) for label, test in readings.items()}
    )


def failures(table: pd.DataFrame, difference: np.ndarray) -> Figure:
    """Naive tests that do fail."""
    linear = part(table, contexts="intercept", arm="least pulled", test="z")
    return side_by_side({"Thompson, two equal arms": difference, "OFUL with an intercept": linear})


def private(table: pd.DataFrame) -> Figure:
    """Exact tests of the least pulled arm under private UCB, as they are and corrected."""
    kinds = {"exact test": "exact test", "corrected": "exact test, corrected"}
    return side_by_side(
        {label: part(table, design="private UCB", method=method) for label, method in kinds.items()}
    )


def arm_means(table: pd.DataFrame) -> Figure:
    """Share of runs in which an arm's true mean is found too low, by design and choice of the arm."""
    page, ax = plots.figure(height=2.4)
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


def methods(table: pd.DataFrame) -> Figure:
    """A histogram for each method and design, a row a design; empty where a method does not apply."""
    page, panels = plots.figure(len(COLUMNS), len(METHODS), width=7.0, height=2.9)
    for across, design in zip(panels, COLUMNS, strict=True):
        for ax, (method, label) in zip(across, METHODS.items(), strict=True):
            values = part(table, design=design, method=method)
            ax.set_ylim(0.0, 0.15)
            if len(values):
                histogram(ax, values, "")
                ax.set_title(f"{label}\n{np.mean(values <= 0.05):.1%}", fontsize=7)
            else:
                ax.text(
                    0.5, 0.5, "needs\nbatches", ha="center", transform=ax.transAxes, fontsize=7, color=GREY
                )
                ax.set_title(f"{label}\n", fontsize=7)
                ax.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
            ax.set(ylim=(0.0, 0.15), yticks=[0.0, 0.05, 0.1, 0.15], xlabel="", ylabel="")
            ax.tick_params(labelleft=ax is across[0], labelbottom=across is panels[-1])
        across[0].set_ylabel(design)
    page.supxlabel("p-value; above each panel the share of at most .05", fontsize=8)
    return page
