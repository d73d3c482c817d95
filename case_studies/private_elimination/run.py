"""Sajed and Sheffet (2019): Figure 1, growth in T, K and 1/epsilon, and the stopping rule's sample sizes.

Chosen here, as the paper does not say: the width of its DP-UCB (the published one of Mishra and Thakurta with
all of epsilon on each arm, and the exact quantile of the noise with either counter), the times at which
regret is read off, and, for the growth, gaps of .3 at epsilon = .001, where the private terms dominate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from adaptinf import plots
from adaptinf.plots.style import look
from adaptinf.theory import private_elimination_regret
from case_studies.outcome import Outcome, Settings
from case_studies.private_elimination import regret, scaling, stopping

NAMES = {
    regret.ELIMINATION: "elimination",
    regret.PUBLISHED: "ucb_published",
    regret.BINARY: "ucb_exact_binary",
    regret.HYBRID: "ucb_exact_hybrid",
}
DRAWN = (regret.ELIMINATION, regret.PUBLISHED, regret.BINARY)


def run(settings: Settings) -> Outcome:
    """Everything of the study."""
    figures: dict[str, float] = {}
    ends = _ends(settings)
    curves = _curves(settings, ends)
    table = _regret_table(ends, figures)
    _rounds(settings, figures)
    growth = _growth(settings, figures)
    samples = stopping.table(settings.runs(20_000, 1_000))
    _samples(samples, figures)
    pictures = {"figure_1": _figure_1(curves), "growth": _draw_growth(growth)}
    pictures["stopping"] = _draw_stopping(samples)
    tables = {"regret": table, "stopping": samples, "growth": pd.concat(growth.values())}
    return Outcome(figures, tables, pictures)


def _ends(settings: Settings) -> dict[tuple[str, float], Any]:
    """Regret of every run at the horizon, by design and epsilon."""
    ends = {}
    for name in NAMES:
        runs = settings.runs(20_000, 2_000) if name == regret.ELIMINATION else settings.runs(30, 2)
        for epsilon in regret.EPSILONS:
            ends[name, epsilon] = regret.regret_at_end(name, epsilon, runs, settings.n_jobs)
    return ends


def _curves(settings: Settings, ends: dict[tuple[str, float], Any]) -> dict[tuple[str, float], Any]:
    """Regret of single runs by time: at the horizon as in `ends`, before it of fewer runs."""
    times = regret.TIMES[: 9 if not settings.quick else 5]
    runs = settings.runs(10, 2)
    curves = {}
    for name in DRAWN:
        for epsilon in regret.EPSILONS:
            points = {time: regret.regret_at(name, epsilon, time, runs, settings.n_jobs) for time in times}
            curves[name, epsilon] = points | {regret.HORIZON: ends[name, epsilon]}
    return curves


def _regret_table(ends: dict[tuple[str, float], Any], figures: dict[str, float]) -> pd.DataFrame:
    rows = []
    for (name, epsilon), values in ends.items():
        base = ends[regret.ELIMINATION, epsilon].mean()
        ratio = float(values.mean() / base)
        rows.append(
            {
                "design": name,
                "epsilon": epsilon,
                "runs": values.size,
                "mean regret": float(values.mean()),
                "standard error": float(values.std(ddof=1) / np.sqrt(values.size)),
                "ratio to DP-SE": ratio,
            }
        )
        if name == regret.ELIMINATION:
            figures[f"elimination_regret_{epsilon:g}"] = float(values.mean())
        else:
            figures[f"{NAMES[name]}_ratio_{epsilon:g}"] = ratio
    return pd.DataFrame(rows)


def _rounds(settings: Settings, figures: dict[str, float]) -> None:
    for epsilon in (0.1, 1.0):
        rounds = regret.decided_at(epsilon, settings.runs(20_000, 2_000), settings.n_jobs)
        figures[f"decided_after_{epsilon:g}"] = float(rounds.mean())


def _growth(settings: Settings, figures: dict[str, float]) -> dict[str, pd.DataFrame]:
    growth = {}
    for what, name in (("log T", "log_T"), ("K - 1", "arms"), ("1/epsilon", "inverse_epsilon")):
        values, means, errors = scaling.measured(what, settings.runs(2_000, 500))
        if what == "log T":
            line = np.polyval(np.polyfit(values, means, 1), values)
            figures["departure_from_line_in_log_T"] = float(np.abs(means / line - 1.0).max())
        else:
            figures[f"exponent_{name}"] = scaling.exponent(values, means)
        bound = [
            float(
                private_elimination_regret(
                    [0.5 + scaling.GAP / 2] + [0.5 - scaling.GAP / 2] * (arms - 1), horizon, epsilon
                )
            )
            for _, horizon, arms, epsilon in scaling.points(what)
        ]
        growth[what] = pd.DataFrame(
            {"varied": what, "value": values, "regret": means, "standard error": errors, "bound": bound}
        )
    return growth


def _samples(samples: pd.DataFrame, figures: dict[str, float]) -> None:
    figures["stopping_largest_share_of_sufficient"] = float((samples["median"] / samples["sufficient"]).max())
    figures["stopping_smallest_multiple_of_needed"] = float((samples["median"] / samples["needed"]).min())
    figures["stopping_largest_share_of_theorem"] = float((samples["median"] / samples["theorem"]).max())
    figures["stopping_most_often_wrong"] = float((samples["wrong"] / samples["runs"]).max())
    figures["stopping_most_often_late"] = float((samples["late"] / samples["runs"]).max())


def _figure_1(curves: dict[tuple[str, float], Any]) -> Any:
    page, panels = plots.figure(2, 2, width=7.0, height=5.0)
    for place, (ax, epsilon) in enumerate(zip(panels.flat, regret.EPSILONS, strict=True)):
        drawn = {name: curves[name, epsilon] for name in DRAWN}
        legend = "upper left" if place == 0 else "none"
        plots.regret(drawn, ax, log_scale=True, unit="reward", legend=legend)
        ax.set_title(f"epsilon = {epsilon:g}", fontsize=8)
        ax.set_ylim(60.0, 4e6)
    return page


def _draw_growth(growth: dict[str, pd.DataFrame]) -> Any:
    page, panels = plots.figure(1, 3, width=7.0, height=2.4)
    for ax, (what, table) in zip(panels, growth.items(), strict=True):
        measured, bound = look(0), look(1)
        ax.plot(table["value"], table["regret"], color=measured.colour, marker=measured.marker, markersize=3)
        ax.plot(table["value"], table["bound"], color=bound.colour, linestyle=bound.line)
        ax.set_xlabel(what)
        if what != "log T":
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(table["value"], [f"{value:g}" for value in table["value"]], fontsize=6)
            ax.minorticks_off()
        else:
            ax.set_ylim(bottom=0.0)
    panels[0].set_ylabel("regret (reward)")
    panels[0].legend(["measured", "bound"], frameon=False, fontsize=7)
    return page


def _draw_stopping(samples: pd.DataFrame) -> Any:
    page, panels = plots.figure(2, 3, width=7.0, height=4.2)
    for ax, ((alpha, mean), rows) in zip(panels.flat, samples.groupby(["alpha", "mean"]), strict=True):
        style = look(0)
        ax.fill_between(rows["epsilon"], rows["needed"], rows["sufficient"], color=style.colour, alpha=0.15)
        ax.plot(rows["epsilon"], rows["median"], color=style.colour, marker=style.marker, markersize=3)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(3.0, 2e7)
        ax.set_title(f"mean {mean:g}, alpha = {alpha:g}", fontsize=8)
    for ax in panels[1]:
        ax.set_xlabel("epsilon")
    for ax in panels[:, 0]:
        ax.set_ylabel("samples")
    panels[0, 0].legend(["needed to sufficient", "median"], frameon=False, fontsize=7, loc="lower left")
    return page
