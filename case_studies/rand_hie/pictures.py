"""The study's figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["coverage", "groups", "price"]

_SHOWN = {
    ("ConSE", "difference"): "ConSE, not private",
    ("DP-ConSE, 0.3", "released"): r"DP-ConSE, $\epsilon$ = .3",
    ("DP-ConSE, 1", "released"): r"DP-ConSE, $\epsilon$ = 1",
    ("DP-ConSE, 1", "AIPW"): "the same, raw log, AIPW",
    ("DP-ConSE, 3", "released"): r"DP-ConSE, $\epsilon$ = 3",
    ("DP-ConSE, 1, alpha = 0", "released"): r"DP-ConSE, $\epsilon$ = 1, $\alpha$ = 0",
}


def groups(table: pd.DataFrame, truth: pd.DataFrame) -> Figure:
    """Mean estimate and mean interval of the effect on any visit, by health."""
    page, panels = figure(1, 3, width=7.0, height=2.6)
    rows = table[table["outcome"] == "any visit"].set_index(["design", "analysis", "term"])
    full = truth[truth["outcome"] == "any visit"].set_index("group")
    heights = np.arange(len(_SHOWN))[::-1]
    for panel, group in zip(panels, ("excellent", "good", "fair-or-poor"), strict=True):
        effect, error = full.loc[group, "effect"], full.loc[group, "std_error"]
        panel.axvspan(
            effect - 1.96 * error, effect + 1.96 * error, color="0.9", linewidth=0, label="its 95% interval"
        )
        panel.axvline(effect, color=GREY, linewidth=0.8, label="effect in the full data")
        panel.axvline(0.0, color="0.4", linewidth=0.6, linestyle=(0, (1.2, 1.2)), label="no effect")
        panel.annotate(
            "power", (1.0, 1.0), (0, -4), xycoords="axes fraction", textcoords="offset points", ha="right",
            va="top", fontsize=6.5, color="0.25",
        )  # fmt: skip
        for height, (design, analysis) in zip(heights, _SHOWN, strict=True):
            row = rows.loc[(design, analysis, group)]
            style = look({"difference": 2, "released": 0, "AIPW": 1}[analysis])
            middle, half = row["truth"] + row["bias"], row["width"] / 2.0
            panel.plot([middle - half, middle + half], [height] * 2, color=style.colour, linewidth=1.3)
            panel.plot(middle, height, style.marker, color=style.colour, markersize=4)
            panel.annotate(
                f"{100.0 * row['rejected']:.0f}%", (1.0, height), (0, -2), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", fontsize=6.5, color="0.25",
            )  # fmt: skip
        panel.set_yticks(heights, list(_SHOWN.values()) if group == "excellent" else [""] * len(_SHOWN))
        panel.set_xlim(-0.1, 0.42)
        panel.set_ylim(-0.6, len(_SHOWN) + 0.2)
        panel.set_xlabel("effect on any visit (probability)")
        panel.set_title(f"{group}, {full.loc[group, 'person-years']:,} person-years", fontsize=8)
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=3, frameon=False, fontsize=7)
    return page


def price(regret: pd.DataFrame, corrected: pd.DataFrame, contrasts: pd.DataFrame) -> Figure:
    """What epsilon costs: regret on the left, width of one contrast's interval on the right."""
    page, (left, right) = figure(1, 2, width=7.0, height=2.5)
    for place, name in enumerate(("private UCB", "private elimination", "DP-ConSE")):
        rows, style = regret[regret["design"] == name], look(place)
        share = 100.0 * rows["of a coin's"]
        error = 1.96 * share * rows["std_error"] / rows["regret"]
        left.errorbar(
            rows["epsilon"], share, error, color=style.colour, marker=style.marker, linestyle=style.line,
            linewidth=1.2, markersize=3.5, capsize=1.5, label=name,
        )  # fmt: skip
    for name, colour in {"UCB": look(0).colour, "ConSE": look(2).colour}.items():
        level = 100.0 * regret.loc[regret["design"] == name, "of a coin's"].iloc[0]
        left.axhline(level, color=colour, linewidth=0.7, linestyle=(0, (1.2, 1.2)))
        left.annotate(
            f"{name}, not private", (0.0105, level), (0, 2), textcoords="offset points", fontsize=6.5
        )
    left.set_xscale("log")
    left.set_ylim(0, 112)
    left.set_xlabel(r"$\epsilon$")
    left.set_ylabel("regret (percent of a fair coin's)")
    left.legend(frameon=False, fontsize=6.5, loc="upper right")
    for place, (name, label) in enumerate(
        {"exact": "exact, naive", "exact, corrected": "exact, corrected"}.items()
    ):
        rows, style = corrected[corrected["analysis"] == name], look(place)
        right.plot(
            rows["epsilon"], 100.0 * rows["width"] / 2.0, color=style.colour, marker=style.marker,
            linestyle=style.line, linewidth=1.2, markersize=3.5, label=label,
        )  # fmt: skip
    chosen = contrasts[
        (contrasts["outcome"] == "any visit") & contrasts["design"].str.startswith("private UCB")
    ]
    for place, (name, label) in enumerate({"ALEE": "ALEE", "betting": "betting sequence"}.items(), start=2):
        rows, style = chosen[chosen["analysis"] == name], look(place)
        epsilon = rows["design"].str.split(", ").str[-1].astype(float)
        right.plot(
            epsilon, 100.0 * rows["width"] / 2.0, color=style.colour, marker=style.marker,
            linestyle=style.line, linewidth=1.2, markersize=3.5, label=label,
        )  # fmt: skip
    effect = 100.0 * float(chosen["truth"].iloc[0])
    right.axhline(effect, color=GREY, linewidth=0.8)
    right.annotate("the effect", (1.0, effect), (-2, 2), xycoords=("axes fraction", "data"),
                   textcoords="offset points", ha="right", fontsize=6.5)  # fmt: skip
    right.set_xscale("log")
    right.set_ylim(0, 21)
    right.set_xlabel(r"$\epsilon$ of private UCB")
    right.set_ylabel("half-width (percentage points)")
    right.legend(frameon=False, fontsize=6.5, loc="upper left")
    return page


def coverage(contrasts: pd.DataFrame, by_health: pd.DataFrame) -> Figure:
    """Coverage of nominal 95% intervals by design and analysis, on both outcomes."""
    kinds = ("naive", "ALEE", "betting", "AIPW", "difference", "released")
    health = by_health.groupby(["design", "outcome", "analysis"], sort=False, as_index=False).agg(
        coverage=("coverage", "mean"), runs=("runs", "sum")
    )
    table = pd.concat([contrasts[["design", "outcome", "analysis", "coverage", "runs"]], health])
    designs = list(dict.fromkeys(table["design"]))
    page, panels = figure(1, 2, width=7.0, height=5.4)
    for panel, (outcome, part) in zip(panels, table.groupby("outcome", sort=False), strict=True):
        panel.axvline(95.0, color=GREY, linewidth=0.8)
        for height, design in enumerate(designs[::-1]):
            if height % 2:
                panel.axhspan(height - 0.5, height + 0.5, color="0.95", linewidth=0, zorder=0.1)
            rows = part[(part["design"] == design) & part["coverage"].notna()].set_index("analysis")
            shown = [kind for kind in kinds if kind in rows.index]
            for offset, kind in zip(np.linspace(0.3, -0.3, len(shown)), shown, strict=True):
                share, style = rows.loc[kind, "coverage"], look(kinds.index(kind))
                error = 196.0 * math.sqrt(max(share * (1.0 - share), 0.25 / rows.loc[kind, "runs"])
                                          / rows.loc[kind, "runs"])  # fmt: skip
                panel.errorbar(
                    100.0 * share, height + offset, xerr=error, color=style.colour, marker=style.marker,
                    markersize=3.2, linewidth=0.9, linestyle="none",
                    label=kind if height == len(designs) - 1 or kind in kinds[4:] else None,
                )  # fmt: skip
        panel.set_yticks(range(len(designs)), designs[::-1] if panel is panels[0] else [""] * len(designs))
        panel.set_xlabel("coverage (percent)")
        panel.set_title(outcome, fontsize=8)
        panel.set_xlim(91, 100.8)
        panel.set_ylim(-0.5, len(designs) - 0.5)
    handles = dict(zip(*panels[0].get_legend_handles_labels()[::-1], strict=True))
    page.legend(
        [handles[kind] for kind in kinds if kind in handles], [kind for kind in kinds if kind in handles],
        loc="outside upper center", ncols=6, frameon=False, fontsize=7,
    )  # fmt: skip
    return page
