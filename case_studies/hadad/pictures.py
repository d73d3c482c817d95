"""The study's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look
from case_studies.hadad.arms import ESTIMATORS, PLACES, READINGS
from case_studies.hadad.contextual import FITS, TERMS
from case_studies.hadad.dealt import DEALT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["contextual", "coverage", "errors", "readings"]

_TOP = 0.65
"""End of all axes of densities: bars that are higher are cut, and said to be."""


def coverage(arms: pd.DataFrame, paper: Mapping[str, Mapping[str, float]]) -> Figure:
    """Coverage of the contrast of the best and the middle arm, by signal, beside the paper's."""
    page, panels = figure(1, 3, width=7.0, height=2.2)
    rows = arms[(arms["noise"] == "estimated") & (arms["of"] == "best - middle")]
    heights = np.arange(len(ESTIMATORS))[::-1]
    for panel, (signal, part) in zip(panels, rows.groupby("signal", sort=False), strict=True):
        panel.axvline(90.0, color=GREY, linewidth=0.8)
        for place, (horizon, lengths) in enumerate(part.groupby("T", sort=False)):
            cells, style = lengths.set_index("estimator").loc[list(ESTIMATORS)], look(place)
            panel.errorbar(
                100.0 * cells["coverage"], heights + 0.15 - 0.3 * place, xerr=196.0 * cells["coverage_se"],
                color=style.colour, marker=style.marker, markersize=3.5, linewidth=1.0, linestyle="none",
                label=f"T = {horizon:,}",
            )  # fmt: skip
        shown = [(value, heights[ESTIMATORS.index(name)]) for name, value in paper.get(signal, {}).items()]
        if shown:
            values, at = np.array(shown).T
            panel.plot(
                100.0 * values,
                at + 0.15,
                "|",
                color="black",
                markersize=10,
                zorder=4,
                label="the paper, T = 1,000",
            )
        panel.set_yticks(heights, ESTIMATORS if panel is panels[0] else [""] * len(ESTIMATORS))
        panel.set_xlim(75, 101)
        panel.set_ylim(-0.5, len(ESTIMATORS) - 0.5)
        panel.set_xlabel("coverage (percent)")
        panel.set_title(signal, fontsize=8)
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=7)
    return page


def readings(arms: pd.DataFrame, paper: Mapping[str, Mapping[str, float]]) -> Figure:
    """Distance from the paper's figures by reading, one panel a contrast."""
    page, panels = figure(1, 2, width=7.0, height=3.4)
    cells = [(signal, name, value) for signal, values in paper.items() for name, value in values.items()]
    heights = np.arange(len(cells))[::-1]
    table = arms[arms["T"] == 1_000].set_index(["noise", "of", "signal", "estimator"])
    for panel, contrast in zip(panels, ("best - middle", "best - worst"), strict=True):
        panel.axvline(0.0, color=GREY, linewidth=0.8)
        panel.axvspan(-0.3, 0.3, color=GREY, alpha=0.25, linewidth=0, label="reading of the plot")
        for place, noise in enumerate((*READINGS, DEALT)):
            rows = [table.loc[(noise, contrast, signal, name)] for signal, name, _ in cells]
            gap = [row["coverage"] - value for row, (_, _, value) in zip(rows, cells, strict=True)]
            style = look(place)
            panel.errorbar(
                100.0 * np.array(gap), heights + 0.27 - 0.18 * place,
                xerr=196.0 * np.array([row["coverage_se"] for row in rows]),
                color=style.colour, marker=style.marker, markersize=3.2, linewidth=0.9, linestyle="none",
                label=f"noise variance {noise}",
            )  # fmt: skip
        panel.set_yticks(
            heights, [f"{signal}, {name}" if panel is panels[0] else "" for signal, name, _ in cells]
        )
        panel.set_xlim(-4.5, 9)
        panel.set_xticks([-4, -2, 0, 2, 4, 6, 8])
        panel.set_title(contrast, fontsize=8)
        panel.set_xlabel("coverage: ours minus the paper's (points)")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=7)
    return page


def errors(kept: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Studentised errors of the worst arm's mean, by signal and estimator, beside the normal density."""
    names = ("sample mean", "uniform", "two-point", "ALEE")
    page, panels = figure(len(kept), len(names), width=7.0, height=4.4)
    edges = np.linspace(-5.0, 5.0, 51)
    grid = np.linspace(-5.0, 5.0, 201)
    for row, (across, (signal, (found, target))) in enumerate(zip(panels, kept.items(), strict=True)):
        for place, (panel, name) in enumerate(zip(across, names, strict=True)):
            column = ESTIMATORS.index(name)
            arm = PLACES.index("worst arm")
            score = (found[:, column, arm, 0] - target[arm]) / found[:, column, arm, 1]
            panel.hist(
                np.clip(score[np.isfinite(score)], -4.99, 4.99), edges, density=True,
                color=look(place).colour, alpha=0.55, linewidth=0,
            )  # fmt: skip
            panel.plot(grid, stats.norm.pdf(grid), color="black", linewidth=0.8)
            panel.axvline(0.0, color=GREY, linewidth=0.5)
            panel.set_xticks([-4, 0, 4])
            panel.set_ylim(0.0, _TOP)
            panel.set_yticks([0.0, 0.2, 0.4, 0.6], ["0", ".2", ".4", ".6"] if place == 0 else [""] * 4)
            highest = max(one.get_height() for one in panel.patches)
            if highest > _TOP:
                panel.annotate(
                    f"highest {highest:.1f}", (1.0, 1.0), xycoords="axes fraction", fontsize=6.5, ha="right",
                    va="top", color=GREY,
                )  # fmt: skip
            if place == 0:
                panel.set_ylabel(f"{signal}: density")
            if row == 0:
                panel.set_title(name, fontsize=8)
            if row == len(kept) - 1:
                panel.set_xlabel("error / standard error")
    return page


def contextual(table: pd.DataFrame) -> Figure:
    """Coverage and bias of policy values, by signal."""
    names = ("matched rounds", *FITS)
    page, panels = figure(2, len(TERMS), width=7.0, height=4.2)
    heights = np.arange(len(names))[::-1]
    for column, term in enumerate(TERMS):
        part = table[table["of"] == term]
        for place, (signal, rows) in enumerate(part.groupby("signal", sort=False)):
            cells, style = rows.set_index("estimator").loc[list(names)], look(place)
            share = cells["bias"] / cells["sd"]
            offset = heights + 0.22 - 0.22 * place
            for panel, values, error in (
                (panels[0, column], 100.0 * cells["coverage"], 196.0 * cells["coverage_se"]),
                (panels[1, column], share, 1.96 * cells["bias_se"] / cells["sd"]),
            ):
                panel.errorbar(
                    values, offset, xerr=error, color=style.colour, marker=style.marker, markersize=3.2,
                    linewidth=0.9, linestyle="none", label=signal,
                )  # fmt: skip
        panels[0, column].axvline(90.0, color=GREY, linewidth=0.8)
        panels[1, column].axvline(0.0, color=GREY, linewidth=0.8)
        panels[0, column].set_xlim(68, 100)
        panels[1, column].set_xlim(-0.8, 0.8)
        panels[0, column].set_title(term, fontsize=8)
        panels[0, column].set_xlabel("coverage (percent)")
        panels[1, column].set_xlabel("bias / standard deviation")
        for panel in panels[:, column]:
            panel.set_yticks(heights, names if column == 0 else [""] * len(names))
            panel.set_ylim(-0.5, len(names) - 0.5)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=7)
    return page
