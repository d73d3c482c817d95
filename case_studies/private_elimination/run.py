"""Sajed and Sheffet (2019): Figure 1, growth in T, K and 1/epsilon, and the stopping rule's sample sizes.

The paper does not say what its DP-UCB allows for the noise, nor which counter it has. Read here, with all of
epsilon on each arm: the width of Mishra and Thakurta, whom it cites for the algorithm; what the noise exceeds
with a probability of 1/t or, as the paper has beta = 1/T, of 1/T, by the tail bound of Chan, Shi and Song or
exactly. Counters are binary trees, but for the library's own hybrid one in the last reading. For the
growth, gaps of .3, or means spaced as the paper's, at epsilon = .001, where the private terms dominate.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from adaptinf.typing import FloatArray
from case_studies.outcome import Outcome, Settings
from case_studies.private_elimination import pictures, regret, scaling, stopping

TIMES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
SHORT = {
    regret.PUBLISHED: "published",
    regret.TAIL: "tail",
    regret.EXACT: "exact",
    regret.TAIL_AT_END: "tail_at_end",
    regret.EXACT_AT_END: "exact_at_end",
    regret.HYBRID: "hybrid",
}
FEW = (regret.TAIL_AT_END, regret.EXACT_AT_END)
"""Readings that differ little from the ones they vary: fewer runs."""

Regrets = dict[tuple[str, float], dict[int, FloatArray]]


def run(settings: Settings) -> Outcome:
    """Everything of the study."""
    figures: dict[str, float] = {}
    curves, decided = _regrets(settings)
    table = regret_table(curves)
    _regret_figures(table, figures)
    for epsilon in (0.1, 1.0):
        figures[f"decided_after_{epsilon:g}"] = float(decided[epsilon].mean())
    paths = curve_table(curves)
    growth = scaling.table(settings.runs(2_000, 500))
    _growth_figures(growth, figures)
    samples = stopping.table(settings.runs(20_000, 1_000))
    _stopping_figures(samples, figures)
    return Outcome(
        figures,
        {"regret": table, "curves": paths, "growth": growth, "stopping": samples},
        {
            "figure_1": pictures.figure_1(paths),
            "ratios": pictures.ratios(table),
            "growth": pictures.growth(growth),
            "stopping": pictures.stopping(samples),
        },
    )


def _regrets(settings: Settings) -> tuple[Regrets, dict[float, FloatArray]]:
    """Regrets by design, epsilon and time, and the rounds after which elimination was done, by epsilon."""
    cells = []
    for epsilon in regret.EPSILONS:
        for name in SHORT:
            runs = settings.runs(8 if name in FEW else 30, 1)
            cells.append(regret.Cell(name, epsilon, regret.HORIZON, runs))
        for name in pictures.DRAWN:
            times = TIMES[:5] if settings.quick else TIMES
            cells += [regret.Cell(name, epsilon, time, settings.runs(10, 2)) for time in times]
    found: Regrets = {(name, epsilon): {} for name in regret.NAMES for epsilon in regret.EPSILONS}
    measured = regret.measure_all(cells, settings.n_jobs)
    for cell in sorted(measured, key=lambda cell: cell.time):
        found[cell.name, cell.epsilon][cell.time] = measured[cell]
    decided = {}
    for epsilon in regret.EPSILONS:
        runs = settings.runs(20_000, 2_000)
        costs, decided[epsilon] = regret.elimination(epsilon, runs, settings.n_jobs)
        found[regret.ELIMINATION, epsilon][regret.HORIZON] = costs
    return found, decided


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Mean and its standard error, which one run does not have."""
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return float(values.mean()), float(error)


def regret_table(curves: Regrets) -> pd.DataFrame:
    """Regret at the horizon by design and epsilon, and its ratio to that of elimination."""
    rows = []
    for (name, epsilon), curve in curves.items():
        mean, error = mean_and_error(curve[regret.HORIZON])
        base, base_error = mean_and_error(curves[regret.ELIMINATION, epsilon][regret.HORIZON])
        relative = np.hypot(error / mean, base_error / base)
        rows.append(
            {
                "design": name,
                "epsilon": epsilon,
                "runs": curve[regret.HORIZON].size,
                "mean regret": mean,
                "standard error": error,
                "ratio to DP-SE": mean / base,
                "its standard error": 0.0 if name == regret.ELIMINATION else mean / base * relative,
            }
        )
    return pd.DataFrame(rows)


def curve_table(curves: Regrets) -> pd.DataFrame:
    """Mean regret by time, of the designs that Figure 1 shows."""
    rows = []
    for (name, epsilon), curve in curves.items():
        for time, values in curve.items():
            mean, error = mean_and_error(values)
            rows.append((name, epsilon, time, values.size, mean, error))
    columns = ["design", "epsilon", "rounds", "runs", "mean regret", "standard error"]
    table = pd.DataFrame(rows, columns=columns)
    return table[table["design"].isin(list(pictures.DRAWN))]


def _regret_figures(table: pd.DataFrame, figures: dict[str, float]) -> None:
    means = table.set_index(["design", "epsilon"])["mean regret"]
    ratios = table.set_index(["design", "epsilon"])["ratio to DP-SE"]
    for epsilon in regret.EPSILONS:
        figures[f"elimination_regret_{epsilon:g}"] = float(means[regret.ELIMINATION, epsilon])
    for name, short in SHORT.items():
        figures[f"{short}_five_times"] = float((ratios[name] >= 5.0).sum())
        for epsilon in regret.EPSILONS:
            figures[f"{short}_ratio_{epsilon:g}"] = float(ratios[name, epsilon])
    for name, short in ((regret.ELIMINATION, "elimination"), (regret.PUBLISHED, "published")):
        figures[f"{short}_from_1_to_.1"] = float(means[name, 0.1] / means[name, 1.0])


def _growth_figures(growth: pd.DataFrame, figures: dict[str, float]) -> None:
    for instance, short in ((scaling.EQUAL, "equal"), (scaling.SPACED, "spaced")):
        rows = growth[growth["instance"] == instance].set_index("varied")
        series = {name: rows.loc[name] for name in scaling.VARIED}
        values = {name: part["value"].to_numpy() for name, part in series.items()}
        costs = {name: part["mean regret"].to_numpy() for name, part in series.items()}
        slope, departure = scaling.straight(values["log T"], costs["log T"])
        figures[f"{short}_departure_from_line"] = departure
        figures[f"{short}_slope_in_log_T"] = slope * scaling.SMALL / 4.0
        figures[f"{short}_exponent_arms"] = scaling.exponent(values["K - 1"], costs["K - 1"])
        figures[f"{short}_exponent_epsilon"] = scaling.exponent(values["1/epsilon"], costs["1/epsilon"])
        figures[f"{short}_largest_share_of_bound"] = float((rows["mean regret"] / rows["bound"]).max())


def _stopping_figures(samples: pd.DataFrame, figures: dict[str, float]) -> None:
    needed = samples["needed privately"]
    figures["stopping_largest_share_of_sufficient"] = float((samples["median"] / samples["sufficient"]).max())
    figures["stopping_smallest_multiple_of_private_limit"] = float((samples["median"] / needed).min())
    figures["stopping_smallest_multiple_of_limit"] = float(
        (samples["average"] / samples["needed on average"]).min()
    )
    figures["stopping_largest_share_of_theorem"] = float((samples["median"] / samples["theorem"]).max())
    figures["stopping_most_often_wrong"] = float((samples["wrong"] / samples["runs"]).max())
    figures["stopping_most_often_late"] = float((samples["late"] / samples["runs"]).max())
    asked = (1.0 - np.sqrt(stopping.BETA) - stopping.BETA) * samples["runs"]
    outside = (samples["late"] > stopping.BETA * samples["runs"]) | (samples["above private limit"] < asked)
    figures["stopping_cells_outside"] = float(outside.sum())
