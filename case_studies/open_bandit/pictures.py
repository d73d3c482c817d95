"""The study's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

__all__ = ["items", "propensities", "values", "weights"]

PUBLISHED = {"all": 0.35, "men": 0.51, "women": 0.48}
"""Click rates of uniform choice in the whole week's log, percent (Saito and others 2021, Table 1)."""


def values(table: pd.DataFrame) -> Figure:
    """Value of uniform choice by estimator, one panel a campaign."""
    labels = {
        "uniform log (truth)": "uniform log",
        "click rate as it came": "Thompson log, unweighted",
        "IPW": "IPW",
        "AIPW": "AIPW",
        "AIPW, ridge on contexts": "AIPW, ridge",
        "self-normalised IPW": "self-normalised IPW",
    }
    page, panels = figure(1, 3, width=7.0, height=2.1)
    for place, (panel, (name, rows)) in enumerate(
        zip(panels, table.groupby("campaign", sort=False), strict=True)
    ):
        rows = rows.set_index("estimator").loc[list(labels)]
        heights = np.arange(len(rows))[::-1]
        panel.axvspan(*(100.0 * rows.iloc[0][["conf_low", "conf_high"]]), color="0.9", linewidth=0)
        panel.axvline(PUBLISHED[name], color=GREY, linewidth=0.8, linestyle=(0, (1.2, 1.2)))
        for height, (label, row) in zip(heights, rows.iterrows(), strict=True):
            colour = GREY if label == "uniform log (truth)" else look(1 if row["warnings"] else 0).colour
            marker = look(1 if row["warnings"] else 0).marker
            panel.plot(100.0 * row[["conf_low", "conf_high"]], [height, height], color=colour, linewidth=1.2)
            face = "white" if row["warnings"] else colour
            panel.plot(
                100.0 * row["estimate"],
                height,
                marker=marker,
                color=colour,
                markerfacecolor=face,
                markersize=4,
            )
            if label == "IPW":
                reach = 196.0 * row["std_error at the uniform rate"] * np.array([-1.0, 1.0])
                panel.plot(
                    100.0 * row["estimate"] + reach, [height, height], color=colour, linewidth=0.8,
                    linestyle=(0, (1.2, 1.2)),
                )  # fmt: skip
            if row["warnings"]:
                panel.annotate(
                    "warns", (1.0, height), (-2, 3), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="right", fontsize=6, color=colour,
                )  # fmt: skip
        panel.set_yticks(heights, list(labels.values()) if place == 0 else [""] * len(rows))
        panel.set_xlabel("clicks per 100 impressions")
        panel.set_title(name, fontsize=8)
        panel.set_xlim(-0.5, 1.75)
        panel.set_ylim(-0.6, len(rows) - 0.3)
    return page


def weights(found: Mapping[str, np.ndarray]) -> Figure:
    """Share of the whole weight that the heaviest rounds carry."""
    page, panel = figure(height=2.8)
    for place, (name, weight) in enumerate(found.items()):
        ordered = np.sort(weight)[::-1]
        size = ordered.sum() ** 2 / np.sum(ordered**2)
        style = look(place)
        panel.step(
            np.arange(1, ordered.size + 1), 100.0 * np.cumsum(ordered) / ordered.sum(), where="post",
            color=style.colour, linestyle=style.line, linewidth=1.3,
            label=f"{name}: effective sample size {size:,.0f}",
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_ylim(0, 102)
    panel.set_xlabel("heaviest rounds, number")
    panel.set_ylabel("share of all weight (percent)")
    page.legend(frameon=False, fontsize=6.5, loc="outside upper left")
    return page


def propensities(frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Propensity of each campaign's most shown item, at the first position, over the week."""
    page, panels = figure(3, 1, width=3.4, height=3.6)
    for place, (panel, (name, frame)) in enumerate(zip(panels, frames.items(), strict=True)):
        item = frame["item_id"].value_counts().index[0]
        rows = frame[(frame["item_id"] == item) & (frame["position"] == 1)]
        days = (rows["timestamp"] - frame["timestamp"].iloc[0].floor("D")).dt.total_seconds() / 86_400.0
        panel.plot(days, rows["propensity_score"], ".", markersize=1.6, color=look(place).colour)
        panel.axhline(1.0 / frame["item_id"].nunique(), color=GREY, linewidth=0.8, linestyle=(0, (5, 1.5)))
        panel.set_yscale("log")
        panel.set_ylim(8e-4, 1.3)
        panel.set_xlim(0, 7)
        panel.set_title(f"{name}: item {item}", loc="left", pad=2, fontsize=8)
        panel.tick_params(labelbottom=place == len(panels) - 1)
    panels[1].set_ylabel("propensity at the first position")
    panels[-1].set_xlabel("days since 24 November 2019, 0:00 UTC")
    return page


def items(table: pd.DataFrame) -> Figure:
    """Click rates of the most shown items, one panel a campaign."""
    kinds = {"AIPW": "AIPW", "ALEE": "ALEE", "betting": "betting sequence", "uniform": "uniform log"}
    page, panels = figure(1, 3, width=7.0, height=2.7)
    for panel, (name, rows) in zip(panels, table.groupby("campaign", sort=False), strict=True):
        for place, kind in enumerate(kinds):
            style = look(place)
            colour = GREY if kind == "uniform" else style.colour
            height = np.arange(len(rows))[::-1] + 0.27 - 0.18 * place
            low, high = 100.0 * rows[f"{kind} low"], 100.0 * rows[f"{kind} high"]
            panel.hlines(height, low, high, color=colour, linewidth=1.1)
            panel.plot(
                100.0 * rows[kind], height, style.marker, color=colour, markersize=3.2, label=kinds[kind]
            )
        panel.axvline(0.0, color="0.8", linewidth=0.6, zorder=0)
        panel.set_yticks(np.arange(len(rows))[::-1], [f"{item}" for item in rows["item"]])
        panel.set_xlabel("clicks per 100 impressions")
        panel.set_title(name, fontsize=8)
    panels[0].set_ylabel("item, most shown first")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=7)
    return page
