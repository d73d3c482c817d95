"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RED = look(1).colour


def drawn(place: int, *, marker: bool = False) -> dict[str, Any]:
    """How a series is drawn."""
    style = look(place)
    found: dict[str, Any] = {"color": style.colour, "linestyle": style.line, "linewidth": 1.1}
    return found | ({"marker": style.marker, "markersize": 3.0} if marker else {})


def first_and_second(table: pd.DataFrame, n_arms: int = 5) -> Figure:
    """Bounds on bias and on regret a round at the epsilons of Corollaries 1 and 2, five arms."""
    page, (top, low) = figure(2, 1, height=4.6)
    rows = table[table["K"] == n_arms]
    bias = {
        "bias, Corollary 1": "Corollary 1, as printed",
        "bias, Corollary 1 with the factor K": "Corollary 1, with the factor K",
        "bias, Corollary 2": "Corollary 2",
    }
    regret = {
        "regret over T, Corollary 1": "Corollary 1, as printed",
        "regret over T, Theorem 3 at that epsilon": r"Theorem 3 at its $\varepsilon$",
        "regret over T, Corollary 2": "Corollary 2, as printed",
        "regret over T, valid at that epsilon": r"a valid bound at its $\varepsilon$",
    }
    for ax, series in ((top, bias), (low, regret)):
        for place, (name, label) in enumerate(series.items()):
            ax.plot(rows["T"], rows[name], label=label, **drawn(place))
        ax.axhline(1.0, color=GREY, linewidth=0.6)
        ax.set(xscale="log", yscale="log")
        ax.legend(fontsize=6.0, frameon=False, loc="lower left")
    top.set(ylim=(5e-4, 20.0), ylabel="bound on the bias")
    low.set(ylim=(1e-7, 1e6), ylabel="bound on regret a round", xlabel="rounds T")
    for ax in (top, low):
        ax.annotate("says nothing above", (1.1e7, 1.2), fontsize=6, color=GREY, ha="right")
    return page


def third(table: pd.DataFrame) -> Figure:
    """The p-value that a nominal .05 needs."""
    page, ax = figure(height=2.6)
    for place, (name, rows) in enumerate(table.groupby("level", sort=False)):
        style = drawn(place)
        style["color"] = RED if "invalid" in str(name) else look((0, 2, 3)[place]).colour
        ax.plot(rows["epsilon sqrt T"], rows["log10 of the level"], label=str(name), **style)
    ax.set(xscale="log", xlim=(0.05, 10.0), ylim=(-10.0, 0.0), xlabel=r"$\varepsilon\sqrt{T}$")
    ax.set_ylabel(r"$\log_{10}$ of the p-value that is needed")
    ax.legend(fontsize=6.5, frameon=False, loc="lower left")
    return page


def counterexample(table: pd.DataFrame) -> Figure:
    """True over promised rejection probability, exact, for printed and valid levels."""
    page, ax = figure(height=3.0)
    ax.axhline(1.0, color="black", linewidth=0.8)
    for place, (name, rows) in enumerate(table.groupby("level", sort=False)):
        printed = str(name).startswith("printed")
        style = drawn(place, marker=True)
        style |= {"color": RED if printed else look(0).colour, "markersize": 2.5, "linewidth": 0.8}
        label = f"{name} (invalid)" if printed else str(name)
        ax.plot(rows["promised"], rows["true over promised"], label=label, **style)
    ax.set(xscale="log", yscale="log", xlim=(0.5, 1e-12), ylim=(0.05, 20.0))
    ax.set_xlabel(r"promised level $\alpha$")
    ax.set_ylabel(r"true rejection probability over $\alpha$")
    page.legend(fontsize=6.5, frameon=False, loc="outside upper left", ncols=2)
    return page


def fourth(table: pd.DataFrame) -> Figure:
    """The level at Corollary 4's epsilon against the horizon."""
    page, ax = figure(height=2.6)
    for place, (name, rows) in enumerate(table.groupby("setting", sort=False)):
        label = r"$\varepsilon=1/\sqrt{T}$" if str(name).startswith("epsilon") else str(name)
        ax.plot(rows["T"], rows["log10 of the level"], label=label, **drawn(place))
    ax.set(xscale="log", ylim=(-80.0, 2.0), xlabel="rounds T")
    ax.set_ylabel(r"$\log_{10}$ of the p-value that is needed")
    ax.legend(fontsize=6.5, frameon=False, loc="lower left")
    return page


def cost(table: pd.DataFrame, horizon: int = 1_000) -> Figure:
    """What private UCB buys at an epsilon: power, length of intervals, regret."""
    page, (top, low) = figure(2, 1, height=4.4)
    rows = table[(table["design"] == "private UCB") & (table["T"] == horizon) & (table["rewards"] == "0/1")]
    for place, (name, label) in enumerate({"power, naive": "naive", "power, corrected": "corrected"}.items()):
        top.plot(rows["epsilon"], rows[name], label=label, **drawn(place, marker=True))
    top.set(xscale="log", ylim=(-0.03, 1.05), ylabel="power (.7 against .5)")
    series = {
        "length over ALEE's": "corrected interval over ALEE's",
        "regret over UCB's": "regret over UCB's",
    }
    for place, (name, label) in enumerate(series.items()):
        low.plot(rows["epsilon"], rows[name], label=label, **drawn(place + 2, marker=True))
    low.axhline(1.0, color=GREY, linewidth=0.6)
    low.set(xscale="log", yscale="log", ylabel="ratio", xlabel=r"$\varepsilon$ (two arms, 1,000 rounds)")
    for ax in (top, low):
        ax.legend(fontsize=6.5, frameon=False, loc="best")
    return page


def regret(table: pd.DataFrame) -> Figure:
    """Measured regret and its bounds at epsilon = 1 and .1."""
    page, panels = figure(2, 1, height=4.6)
    for ax, epsilon in zip(panels, (1.0, 0.1), strict=True):
        for place, name in enumerate(("private UCB", "private elimination")):
            rows = table[(table["design"] == name) & (table["epsilon"] == epsilon)]
            style = drawn(place, marker=True)
            ax.errorbar(
                rows["T"], rows["mean regret"], yerr=1.96 * rows["standard error"], label=name, **style
            )
            kind = "Theorem 3" if place == 0 else "proved bound"
            style |= {"linestyle": ":", "marker": "", "linewidth": 0.9}
            ax.plot(rows["T"], rows["bound"], label=f"{name}: {kind}", **style)
        plain = table[table["design"] == "UCB"]
        ax.plot(plain["T"], plain["mean regret"], label="UCB, not private", **drawn(6, marker=True))
        ax.set(xscale="log", yscale="log", ylabel=f"mean regret, $\\varepsilon$ = {epsilon:g}")
    panels[-1].set_xlabel("rounds T")
    handles, labels = panels[0].get_legend_handles_labels()
    page.legend(handles, labels, fontsize=6.5, frameon=False, loc="outside upper left")
    return page
