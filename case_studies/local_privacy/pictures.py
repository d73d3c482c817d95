"""The study's pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.plots import figure
from adaptinf.plots.style import GREY, look
from case_studies.local_privacy.claims import density_constant
from case_studies.local_privacy.simulations import ARMS, EPSILONS, cells
from case_studies.local_privacy.table_2 import METHODS, PAIRS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNIFORM_RATE = 0.4372
KINDS = {
    "corrected": "noise in every bin (private)",
    "visited bin only": "noise in the visited bin (not private)",
}
LABELS = {"LDPBandit": "LDPBandit", "LDPLinear": "LDPLinear", "network": "network"}


def thousands(ax: Axes, *names: str) -> None:
    for name in names:
        axis = ax.xaxis if name == "x" else ax.yaxis
        axis.set_major_formatter(lambda value, _: f"{value / 1_000:g}k" if value else "0")


def titled(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=8)


def epsilon_label(value: float, sub: str = "") -> str:
    return rf"$\varepsilon{sub}={value:,.0f}$"


def curve(ax: Axes, table: pd.DataFrame, x: str, place: int, label: str) -> None:
    """Mean regret with its 95% interval."""
    style, rows = look(place), table.sort_values(x)
    mean, band = rows["mean regret"], 1.96 * rows["standard error"]
    drawn: dict[str, Any] = {"color": style.colour, "linestyle": style.line, "marker": style.marker}
    ax.plot(rows[x], mean, linewidth=1.1, markersize=3.0, label=label, **drawn)
    ax.fill_between(rows[x], mean - band, mean + band, color=style.colour, alpha=0.18, linewidth=0)


def legend(page: Figure, ax: Axes, columns: int) -> None:
    handles, labels = ax.get_legend_handles_labels()
    page.legend(handles, labels, fontsize=7, frameon=False, loc="outside upper center", ncols=columns)


def setting() -> Figure:
    """Figures 4 and 5: expected rewards along the first coordinate, densities of auxiliary contexts."""
    page, axes = figure(1, 4, width=7.0, height=1.9)
    first = np.linspace(0.0, 1.0, 400)
    rewards = ARMS.expected(first[:, None])
    for arm in range(3):
        style = look(arm)
        axes[0].plot(first, rewards[:, arm], color=style.colour, linestyle=style.line)
        at = (1 / 3, 2 / 3, 0.95)[arm]
        axes[0].annotate(f"$f_{arm + 1}$", (at, 1.03), color=style.colour, fontsize=7, ha="center")
    axes[0].set(xlabel="$x^1$", ylabel="expected reward", xlim=(0, 1), ylim=(0, 1.15))
    grid = (np.arange(200) + 0.5) / 200
    away = np.maximum.outer(np.abs(grid - 0.5), np.abs(grid - 0.5))
    for ax, gamma in zip(axes[1:], (0.2, 1.0, 2.0), strict=True):
        density = density_constant(gamma) * away**gamma
        image = ax.imshow(density, origin="lower", extent=(0, 1, 0, 1), cmap="cividis", vmin=0.0, vmax=2.0)
        titled(ax, rf"$\gamma={gamma:g}$")
        ax.set(xlabel="$x^1$", xticks=[0, 1], yticks=[0, 1])
    axes[1].set_ylabel("$x^2$")
    bar = page.colorbar(image, ax=axes[1:].tolist(), shrink=0.8)
    bar.set_label("density", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return page


def learning(table: pd.DataFrame) -> Figure:
    """Figure 6: three trials, a line each."""
    page, axes = figure(1, 3, width=7.0, height=2.5)
    names = {
        "none": "no auxiliary data",
        "effective": r"effective: $\varepsilon_1=64$, $\gamma_1=0$",
        "weak": r"weak: $\varepsilon_1=4$, $\gamma_1=5$",
    }
    columns = {
        "average regret": "average regret so far",
        "local regret": "the same at (1/3, 1/3)",
        "arm 1": "share of the best arm there",
    }
    for place, (name, label) in enumerate(names.items()):
        rows, style = cells(table, **{"auxiliary data": name}), look(place)
        left = rows[[f"arm {arm} left" for arm in (1, 2, 3)]].to_numpy().sum(axis=1)
        gone = rows["round"].to_numpy()[1:][np.diff(left) < 0]
        for ax, column in zip(axes, columns, strict=True):
            ax.plot(
                rows["round"],
                rows[column],
                color=style.colour,
                linestyle=style.line,
                linewidth=1.3,
                label=label,
            )
            for at in gone:
                ax.axvline(at, color=style.colour, linestyle="--", linewidth=0.7)
    for ax, text in zip(axes, columns.values(), strict=True):
        titled(ax, text)
        ax.set(xlabel="participant", xlim=(0, table["round"].max()))
        thousands(ax, "x")
    axes[0].set_ylim(0, 0.65)
    axes[1].set_ylim(-0.01, 0.65)
    axes[2].set_ylim(0, 1.03)
    legend(page, axes[0], 3)
    return page


def dropped(table: pd.DataFrame) -> Figure:
    """Which arms are gone at the point at the end of trials of the paper's size, under its radius."""
    page, ax = figure(height=2.4)
    rows = cells(table, design="published")
    for arm in (1, 2, 3):
        style, share = look(arm - 1), rows[f"arm {arm} dropped"].to_numpy()
        ax.errorbar(
            np.arange(len(rows)) + 0.15 * (arm - 2),
            share,
            yerr=1.96 * np.sqrt(share * (1.0 - share) / rows["runs"].to_numpy()),
            linestyle="none",
            color=style.colour,
            marker=style.marker,
            markersize=4.0,
            label=f"arm {arm}" + (" (the best)" if arm == 1 else ""),
        )
    ax.set_xticks(range(len(rows)), rows["auxiliary data"].tolist())
    ax.set(xlabel="auxiliary data", ylabel="share of trials that drop it", ylim=(0, 1), xlim=(-0.4, 2.4))
    legend(page, ax, 3)
    return page


def uniform(ax: Axes, rounds: np.ndarray) -> None:
    ax.plot(rounds, UNIFORM_RATE * rounds, color=GREY, linewidth=0.8, linestyle="-", label="uniform choice")


def rounds(table: pd.DataFrame) -> Figure:
    """Figure 7: regret against the number of participants."""
    page, axes = figure(2, 2, width=7.0, height=4.6)
    for row, (kind, title) in zip(axes, KINDS.items(), strict=True):
        for ax, panel in zip(row, ("7a", "7b"), strict=True):
            part = cells(table, figure=panel, design=kind)
            uniform(ax, np.array([0.0, part["n_P"].max()]))
            for place, epsilon in enumerate(EPSILONS):
                curve(ax, cells(part, epsilon=epsilon), "n_P", place, epsilon_label(epsilon))
            told = "no auxiliary data" if panel == "7a" else r"5,000 people with $\varepsilon_1=8$"
            titled(ax, f"{title}\n{told}")
            ax.set(xlabel="$n_P$ (participants)", xlim=(0, None), ylim=(0, 72_000))
            thousands(ax, "x", "y")
        row[0].set_ylabel("mean regret (rewards)")
    legend(page, axes[0, 0], 6)
    return page


def auxiliary(table: pd.DataFrame) -> Figure:
    """Figure 8: regret against the size of two auxiliary logs."""
    gammas = sorted(cells(table, figure="8")["gamma"].unique())
    page, panels = figure(2, len(gammas), width=7.0, height=4.4)
    axes = np.asarray(panels).reshape(2, len(gammas))
    for row, epsilon in zip(axes, (1.0, 2.0), strict=True):
        none = cells(table, figure="7a", design="corrected", epsilon=epsilon, n_P=80_000)
        for ax, gamma in zip(row, gammas, strict=True):
            part = cells(table, figure="8", design="corrected", epsilon=epsilon, gamma=gamma)
            for place, epsilon_m in enumerate(EPSILONS):
                own = cells(part, epsilon_m=f"{epsilon_m:g}")
                if len(own):
                    curve(ax, pd.concat([none, own]), "n_Q", place, epsilon_label(epsilon_m, "_m"))
            own = cells(table, figure="8", design="visited bin only", epsilon=epsilon, gamma=gamma)
            if len(own):
                start = cells(table, figure="7a", design="visited bin only", epsilon=epsilon, n_P=80_000)
                curve(ax, pd.concat([start, own]), "n_Q", 6, r"$\varepsilon_m=8$, not private")
            titled(ax, rf"$\gamma={gamma:g}$, $\varepsilon={epsilon:g}$")
            ax.set(ylim=(0, 38_000), xlim=(0, 100_000))
            thousands(ax, "x", "y")
        row[0].set_ylabel("mean regret (rewards)")
    for ax in axes[1]:
        ax.set_xlabel("$n_Q$ (people in each log)")
    legend(page, axes[0, 0], 6)
    return page


def quality(table: pd.DataFrame) -> Figure:
    """Figure 9: regret against kappa and gamma, and by the order of the logs, which alone has a legend."""
    page, axes = figure(2, 3, width=7.0, height=4.6)
    for row in range(2):
        for column, (panel, name, low) in enumerate((("9a", "kappa", "1"), ("9b", "gamma", "2"))):
            ax, epsilon_m = axes[row, column], (low, "8")[row]
            curve(ax, cells(table, figure=panel, epsilon_m=epsilon_m), name, 6, "")
            titled(ax, rf"({panel[1]}) $\varepsilon_m={epsilon_m}$")
            ax.set(xlabel=rf"$\{name}$", ylim=(0, 19_000))
        ax, n = axes[row, 2], (10_000, 80_000)[row]
        part = cells(table, figure="9c", design="corrected", n_P=n)
        for place, (epsilon, order) in enumerate(
            (epsilon, order) for epsilon in (1.0, 2.0) for order in ("2 then 8", "8 then 2")
        ):
            label = rf"$\varepsilon={epsilon:g}$, $\varepsilon_m={order.replace(' then ', '$ then $')}$"
            curve(ax, cells(part, epsilon=epsilon, epsilon_m=order), "n_Q", place, label)
        titled(ax, f"(c) $n_P$ = {n:,}")
        ax.set(xlabel="$n_Q$ (people in each log)", ylim=(0, None), xlim=(0, None))
        thousands(ax, "x")
        axes[row, 0].set_ylabel("mean regret (rewards)")
    for ax in axes.ravel():
        thousands(ax, "y")
    legend(page, axes[0, 2], 4)
    return page


def ratios(table: pd.DataFrame) -> Figure:
    """Table 2: ratios to ABSE's reward; full markers with auxiliary data, open ones without."""
    names = list(dict.fromkeys(table["data"]))
    page, axes = figure(2, len(names), width=7.0, height=4.0)
    for row, (size, told) in zip(axes, (("n/4", "first quarter"), ("n", "all rounds")), strict=True):
        for ax, data in zip(row, names, strict=True):
            part = cells(table, rounds=size, data=data)
            ax.axhline(1.0, color=GREY, linewidth=0.8)
            for place, method in enumerate(METHODS):
                style = look(place)
                for kind, shift in (("w", 0.06), ("wo", -0.06)):
                    ax.errorbar(
                        np.arange(len(PAIRS)) + 0.25 * (place - 1) + shift,
                        part[f"{method} {kind}"],
                        yerr=1.96 * part[f"{method} {kind}: standard error"],
                        elinewidth=0.8,
                        linestyle="none",
                        marker=style.marker,
                        markersize=4.5,
                        color=style.colour,
                        markerfacecolor=style.colour if kind == "w" else "white",
                        label=f"{LABELS[method]}, {'with' if kind == 'w' else 'without'}",
                    )
            titled(ax, f"{data}, {told}")
            ax.set_xticks(range(len(PAIRS)), [f"{first:g}, {second:g}" for first, second in PAIRS])
        row[0].set_ylabel("reward over ABSE's")
    for ax in axes[1]:
        ax.set_xlabel(r"$\varepsilon$, $\varepsilon_m$")
    legend(page, axes[0, 0], 3)
    return page
