"""The study's figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def winner(models: pd.DataFrame, intervals: pd.DataFrame) -> Figure:
    """The ten highest win rates, and below them the 95% intervals for the first."""
    own = intervals[intervals["level"] == 0.95]
    page, panel = figure(1, 1, width=6.0, height=3.0)
    labels = [*models["LLM"], *own["method"]]
    for place, row in enumerate(models.itertuples()):
        reach = [row.win_rate - row.sigma, row.win_rate + row.sigma]
        panel.plot(reach, [-place, -place], color=GREY, linewidth=0.8)
        panel.plot(row.win_rate, -place, marker="o", color=GREY, markersize=3)
    for place, row in enumerate(own.itertuples(), start=len(models)):
        colour = look(int(row.method != "usual")).colour
        panel.plot([row.low, row.high], [-place, -place], color=colour, linewidth=2.0)
    panel.axhline(0.5 - len(models), color=GREY, linewidth=0.4)
    panel.set_yticks([-place for place in range(len(labels))], labels)
    panel.set_xlabel("win rate; grey: one standard error")
    return page
