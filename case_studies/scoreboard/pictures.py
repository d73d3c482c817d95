"""The picture: every tool's coverage, a dot a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adaptinf import plots
from adaptinf.plots.style import GREY, look
from case_studies.scoreboard.compare import LEVEL, by_tool

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def scoreboard(rows: pd.DataFrame) -> Figure:
    """A line a tool, best first; a dot a cell, hollow where intervals miss too often."""
    table = by_tool(rows)
    table = table[table["answered in"] > 0]
    table["share"] = table["covers in"] / table["answered in"]
    table = table.sort_values(["share", "answered in"], ascending=False)
    page, ax = plots.figure(width=7.0, height=0.26 * len(table) + 1.0)
    ax.axvline(100 * LEVEL, color=GREY, linewidth=0.8, linestyle="--")
    jitter = np.random.default_rng(1)
    good, bad = look(0).colour, look(1).colour
    for line, tool in enumerate(table["tool"]):
        dots = rows[(rows["tool"] == tool) & (rows["answered"] > 0)]
        for valid, colour in ((True, good), (False, bad)):
            part = dots[dots["valid"] == valid]
            heights = line + jitter.uniform(-0.28, 0.28, len(part))
            face = colour if valid else "none"
            ax.scatter(
                100 * part["coverage"], heights, s=9, facecolors=face, edgecolors=colour, linewidths=0.7
            )
    told = [f"{row['covers in']} of {row['answered in']}" for _, row in table.iterrows()]
    ax.set_yticks(range(len(table)), table["tool"])
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(table)), told)
    right.tick_params(length=0, labelsize=7)
    right.set_ylabel("cells in which the intervals cover", fontsize=7)
    ax.tick_params(axis="y", labelsize=7)
    ax.invert_yaxis()
    ax.set(xlabel="coverage of the tool's 95% intervals, %; a dot is a kind of log", xlim=(-2, 102))
    return page
