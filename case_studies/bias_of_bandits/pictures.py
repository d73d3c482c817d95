"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES_1 = {
    "UCB, sqrt(2 log t / N)": r"UCB, $\sqrt{2\log t/N}$",
    "UCB, sqrt(log t / 2N)": r"UCB, $\sqrt{\log t/2N}$",
    "UCB, sqrt(log t / 4N)": r"UCB, $\sqrt{\log t/4N}$",
    "published, epsilon .05": r"private UCB, $\varepsilon=.05$ (published)",
}
SERIES_2 = SERIES_1 | {"published, epsilon 400": r"private UCB, $\varepsilon=400$ (published)"}
del SERIES_2["published, epsilon .05"]
SERIES_3 = SERIES_2 | {"published, no noise, gamma off": r"the published index without noise and $\gamma$"}


def arms(table: pd.DataFrame, series: dict[str, str]) -> Figure:
    """Bias of every arm's mean with its 95% interval, a series a design."""
    page, ax = figure(height=3.0)
    ax.axhline(0.0, color=GREY, linewidth=0.6)
    means = table["mean"].to_numpy()
    shift = 0.0045 if len(means) > 10 else 0.002
    for place, (name, label) in enumerate(series.items()):
        style = look(place)
        ax.errorbar(
            means + shift * (place - 1.5),
            table[name],
            yerr=1.96 * table[f"{name}: standard error"],
            color=style.colour,
            marker=style.marker,
            linestyle="none",
            markersize=3.0,
            elinewidth=0.8,
            label=label,
        )
    ax.set_xlabel("true mean reward of the arm")
    ax.set_ylabel("bias of its sample mean")
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def by_epsilon(table: pd.DataFrame, first: pd.DataFrame) -> Figure:
    """Mean absolute bias against epsilon for three private indices, and the theorem's bounds."""
    page, ax = figure(width=4.6, height=3.2)
    labels = {
        "published": "published",
        "published, gamma off": r"published, $\gamma$ off",
        "corrected": "corrected",
    }
    for place, (name, label) in enumerate(labels.items()):
        rows, style = table[table["index"] == name], look(place)
        size = rows["mean absolute bias"]
        drawn = {"color": style.colour, "marker": style.marker, "markersize": 3.5, "linewidth": 1.0}
        ax.plot(rows["epsilon"], size, linestyle=style.line, label=label, **drawn)
        lost = size < 2.0 * rows["if there were none"]
        ax.plot(rows["epsilon"][lost], size[lost], linestyle="none", markerfacecolor="white", **drawn)
    fine = np.geomspace(0.02, 400.0, 400)
    distance = np.minimum(1.0 - 0.05 * np.arange(20), 0.05 * np.arange(20)).mean()
    for share, line, label in ((20.0, ":", "bound, published"), (1.0, "-.", "bound, corrected")):
        bound = np.expm1(np.minimum(fine / share, 50.0)) * distance
        inside = bound < 0.5
        ax.plot(fine[inside], bound[inside], color="black", linestyle=line, linewidth=1.0, label=label)
    ax.plot([], [], "o", color=GREY, markerfacecolor="white", markersize=3.5, label="within simulation error")
    for name, label in list(SERIES_1.items())[:3]:
        value = first.loc[first["design"] == name, "mean absolute bias"].item()
        ax.axhline(value, color=GREY, linewidth=0.6)
        beside = (1.01, value), ax.get_yaxis_transform()
        ax.annotate(label, beside[0], xycoords=beside[1], fontsize=6.5, va="center", color=GREY)
    ax.set(xscale="log", yscale="log", xlim=(0.02, 3_000.0), ylim=(2e-4, 0.5))
    ax.set_xlabel(r"$\varepsilon$ given to the design")
    ax.set_ylabel("mean absolute bias over 20 arms")
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def regret(table: pd.DataFrame) -> Figure:
    """Cumulative regret over time with two standard errors."""
    page, ax = figure(height=3.2)
    for place, (name, rows) in enumerate(table.groupby("design", sort=False)):
        style = look(place)
        mean, band = rows["regret"], 2.0 * rows["standard error"]
        ax.plot(
            rows["round"],
            mean,
            color=style.colour,
            linestyle=style.line,
            linewidth=1.2,
            label=SERIES_3[str(name)],
        )
        ax.fill_between(rows["round"], mean - band, mean + band, color=style.colour, alpha=0.2, linewidth=0)
    ax.set(xlabel="round", ylabel="mean regret so far (rewards)", ylim=(0, None))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left")
    return page
