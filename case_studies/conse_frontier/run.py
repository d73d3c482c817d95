"""Estimation against regret, with and without privacy: Li, Shi and Simchi-Levi (2024), Section 5.

What the paper leaves open was chosen before anything was measured. Tables 2 and 3: normal rewards with
variance 1 and fair coins; "Reg" is read as the number of randomised arrivals and as the pulls of each arm;
"error" is the mean squared error; "DML" regresses doubly robust rewards on the arms' features with ridge 1,
predicted by ridge regressions in 5 folds, and in two other readings is cross-fitted AIPW and partialling out.
Figures 1 to 3 have no numbers: ten contexts, 0/1 rewards with means .35 and .65, and f_min(n), the rarest
context's arrivals, n/10, log^3 n or 4 log n. Seasons: two contexts and 100,000 rounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from case_studies.conse_frontier import budgets, curves, intervals, pictures, seasons
from case_studies.outcome import Outcome, Settings

SEED = 66
SHORT_NAMES = {"ConSE": "conse", "DP-ConSE, epsilon 1": "dp_1", "DP-ConSE, epsilon .1": "dp_01"}
SHORT_REGIMES = {"n/10": "linear", "log^3 n": "polylog", "4 log n": "log"}


def run(settings: Settings) -> Outcome:
    """Measure everything."""
    jobs = settings.n_jobs
    roots = np.random.SeedSequence(SEED).spawn(7)
    points = curves.frontier_table(settings.runs(20_000, 640), jobs, roots[2])
    tables = {
        "tables_2_and_3": budgets.errors_table(settings.runs(20_000, 2_000), roots[0]),
        "fixed_cost": budgets.fixed_cost(),
        "running_times": budgets.running_times(roots[1], settings.runs(5, 1)),
        "frontier": points,
        "ends": curves.ends_table(points),
        "existence": curves.existence_table(settings.runs(20_000, 640), jobs, roots[3]),
        "coverage": intervals.coverage_table(settings.runs(4_000, 256), jobs, roots[4]),
        "calibrations": intervals.calibrations_table(settings.runs(1_000, 128), jobs, roots[5]),
        "seasons": seasons.seasons_table(settings.runs(20_000, 640), jobs, roots[6]),
    }
    drawn = {
        "tables_2_and_3": pictures.budgets(tables["tables_2_and_3"], tables["fixed_cost"]),
        "figure_1": pictures.by_horizon(points),
        "figure_2": pictures.by_epsilon(points),
        "figure_3": pictures.by_regime(points),
        "coverage": pictures.coverage(tables["coverage"]),
        "calibrations": pictures.calibrations(tables["calibrations"]),
        "seasons": pictures.seasons(tables["seasons"]),
    }
    return Outcome(dict(_figures(tables)), tables, drawn)


def one(table: pd.DataFrame, **where: object) -> pd.Series:
    """The only row with these values; column names with underscores for spaces."""
    keep = pd.Series(True, index=table.index)
    for name, value in where.items():
        keep &= table[name.replace("_", " ") if name not in table else name] == value
    if keep.sum() != 1:
        raise ValueError(f"{keep.sum()} rows with {where}")
    return table[keep].iloc[0]


def _figures(tables: dict[str, pd.DataFrame]) -> Iterator[tuple[str, float]]:
    """The study's claims."""
    yield from _budget_figures(tables["tables_2_and_3"], tables["fixed_cost"])
    yield from _curve_figures(tables["frontier"], tables["ends"])
    yield from _existence_figures(tables["existence"])
    yield from _coverage_figures(tables["coverage"])
    yield from _calibration_figures(tables["calibrations"])
    yield from _season_figures(tables["seasons"])


def _budget_figures(errors: pd.DataFrame, cost: pd.DataFrame) -> Iterator[tuple[str, float]]:
    readings = dict(zip(budgets.READINGS, ("arrivals", "pulls"), strict=True))
    for row in errors.itertuples(index=False):
        experiment, reading, budget, _, estimator, error = row[:6]
        if estimator in ("MD", "DML") or (
            experiment == 2 and budget == 800 and reading == "randomised arrivals"
        ):
            yield f"exp_{experiment}_{estimator.lower()}_{budget}_{readings[reading]}", error
    yield "fixed_cost_md", cost["cost"].iloc[0]
    yield "fixed_cost_dml", cost["cost"].iloc[1]
    yield "conse_first_epoch_regret", budgets.first_epoch_regret()


def _curve_figures(points: pd.DataFrame, ends: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for design, name in SHORT_NAMES.items():
        for horizon in curves.HORIZONS:
            part = points[
                (points["design"] == design) & (points["f_min"] == "n/10") & (points["n"] == horizon)
            ]
            size = f"{horizon:.0e}".replace("+0", "")
            yield f"product_{name}_{size}_alpha_0", part["product"].iloc[0]
            yield f"product_{name}_{size}_alpha_1", part["product"].iloc[-1]
    for regime, short in SHORT_REGIMES.items():
        for design, name in SHORT_NAMES.items():
            row = one(ends, design=design, f_min=regime, n=10**6)
            yield f"regret_span_{name}_{short}", row["regret, alpha 0"] / row["regret, alpha 1"]
    for regime, short in SHORT_REGIMES.items():
        row = one(ends, design="ConSE", f_min=regime, n=10**6)
        yield f"error_span_conse_{short}", row["error, alpha 1"] / row["error, alpha 0"]
    row = one(ends, design="ConSE", f_min="n/10", n=10**6)
    yield "wasted_conse", row["error, alpha 1"] / row["error there"]


def _existence_figures(missing: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for multiple, alpha in ((1, 1.0), (4, 0.0), (4, 1.0), (64, 0.0)):
        row = missing[(missing["f_min over log n"] == multiple) & (missing["alpha"] == alpha)].iloc[0]
        yield f"missing_conse_{multiple}_alpha_{alpha:g}", row["ConSE's pseudo-code"]
        yield f"missing_dp_1_{multiple}_alpha_{alpha:g}", row["DP-ConSE, epsilon 1"]


def _coverage_figures(table: pd.DataFrame) -> Iterator[tuple[str, float]]:
    names = {
        ("ConSE", "adaptinf"): "conse_ours",
        ("ConSE", "paper, T_min"): "conse_paper",
        ("ConSE", "paper, f_min(n)^(1-alpha)"): "conse_paper_f_min",
        ("DP-ConSE, epsilon 1", "adaptinf"): "dp_1_ours",
        ("DP-ConSE, epsilon 1", "paper, T_min"): "dp_1_paper",
    }
    for (design, interval), name in names.items():
        for alpha in (0.0, 1.0):
            row = one(table, design=design, interval=interval, n=100_000, alpha=alpha)
            yield f"coverage_{name}_alpha_{alpha:g}", row["coverage"]


def _calibration_figures(table: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for epsilon, short in ((1.0, "1"), (0.1, "01")):
        for calibration in ("published", "corrected"):
            row = one(table, calibration=calibration, epsilon=epsilon, alpha=0.4)
            yield f"regret_{calibration}_{short}", row["regret"]
            yield f"error_{calibration}_{short}", row["mean squared error"]
            yield f"coverage_{calibration}_{short}", row["coverage, adaptinf"]
    row = one(table, calibration="published", epsilon=1.0, alpha=0.0)
    yield "missing_published_alpha_0", row["without an estimate"]


def _season_figures(table: pd.DataFrame) -> Iterator[tuple[str, float]]:
    def row(kind: str, ratio: float, alpha: float) -> pd.Series:
        found = table[table["seasons"] == kind]
        return found[np.isclose(found["second over first half"], ratio) & (found["alpha"] == alpha)].iloc[0]

    conse, private = "ConSE: no estimate by the pseudo-code", "DP-ConSE: no estimate"
    falls, swap, turns = "the first falls", "9:1, then 1:9", "9:1 and 1:9 by turns of 1,000"
    yield "season_conse_steady", row(falls, 1.0, 0.0)[conse]
    yield "season_conse_half", row(falls, 0.5, 0.0)[conse]
    yield "season_conse_tenth_alpha_02", row(falls, 0.1, 0.2)[conse]
    yield "season_conse_tenth_alpha_04", row(falls, 0.1, 0.4)[conse]
    yield "season_dp_third", row(falls, 0.3, 0.2)[private]
    yield "season_dp_quarter", row(falls, 0.25, 0.2)[private]
    yield "season_dp_fifth", row(falls, 0.2, 0.2)[private]
    yield "season_dp_turns", row(turns, 1.0, 0.2)[private]
    swapped = row(swap, 1.0 / 9.0, 0.2)
    yield "season_dp_swap_small", swapped["DP-ConSE: trial over T_min"]
    yield "season_dp_swap_large", swapped["DP-ConSE: other context's trial over T_min"]
    yield "season_dp_swap_missing", swapped[private]
    yield "season_dp_swap_by_noise", swapped["DP-ConSE: no estimate if the limit were log(n) / epsilon_N"]
    yield (
        "season_dp_swap_error",
        swapped["DP-ConSE: error of that estimate times T_min over 2(v0 + v1)"],
    )
