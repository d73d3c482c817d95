"""Best-arm identification under privacy: Chen et al. (2024), Section 5, Appendix E and Table 1.

What the paper leaves open was chosen before these runs; Section 5 and Appendix E had been run once before,
with 1,000 trials a cell, under the same readings. The 27 arms of Section 5 that are random are drawn once.
The baseline rounds its pulls down, as it would exceed its budget otherwise. DP-OD takes the norm that makes
it private, the sum of absolute coordinates. Rewards of Appendix E, which reach 1.1, are divided by 1.1.
DP-BAI-Gauss has delta = 1e-5 and analytic noise in Section 5, the paper's noise in Table 1. "Similar" is
read as .02 apart at most, set with those first runs known. Constants of Table 1's orders are 1. Its cells
are simulated at H_pri / H_BAI = 1/4, 1, 4, delta = 1e-6, .01, .3 and T / (H log d) = .5, 1.5, 4.5; a winner
is named where errors differ by 3 standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import optimize

from adaptinf.designs.best_arm.fixed_budget import max_det_schedule
from adaptinf.theory.best_arm_bounds import dp_bai_error, hardness
from case_studies.best_arm import exact, pictures, regions, setting
from case_studies.outcome import Outcome, Settings

KEYS = {"DP-BAI": "bai", "DP-OD": "od", "DP-BAI-Gauss": "gauss", "OD-LinBAI": "linbai"}
SIMULATED = {"baseline": "baseline", "sequential halving": "halving"}
POINTS = 49


def run(settings: Settings) -> Outcome:
    """Measure everything."""
    section = setting.section_5(settings.runs(20_000, 1_000))
    appendix = setting.appendix_e(settings.runs(20_000, 1_000))
    cells = regions.simulated(settings.runs(20_000, 500), settings.n_jobs)
    by_delta, by_epsilon = (regions.map_of(panel, POINTS) for panel in ("delta", "epsilon"))
    agreement = pd.concat(
        [
            regions.agreement(grid).assign(map=name)
            for name, grid in (("delta", by_delta), ("epsilon", by_epsilon))
        ]
    )
    tables = {
        "section_5": section,
        "appendix_e": appendix,
        "table_1_cells": cells,
        "table_1_verdicts": cells.groupby(["row", "verdict"]).size().rename("cells").reset_index(),
        "table_1_maps": agreement[["map", *agreement.columns[:-1]]],
    }
    drawn = {
        "figure_1": pictures.figure_1(section),
        "figure_2": pictures.figure_2(appendix),
        "table_1": pictures.table_1(by_delta, by_epsilon),
        "table_1_cells": pictures.cells(cells),
    }
    figures = _section(section) | _appendix(appendix) | _against_exact(section, appendix)
    figures |= _maps(agreement) | _limits() | _cells(cells)
    return Outcome({name: float(value) for name, value in figures.items()}, tables, drawn)


def _section(table: pd.DataFrame) -> dict[str, float]:
    """Figure 1's claims, from exact probabilities where there are any."""
    by: dict[tuple[str, int, float], dict[str, float]] = {}
    for row in table.assign(best=table["exact"].fillna(table["success"])).to_dict("records"):
        by.setdefault((row["against"], row["T"], row["epsilon"]), {})[row["design"]] = row["best"]
    figures: dict[str, float] = {}
    for panel in ("T", "epsilon"):
        part = [cell for key, cell in by.items() if key[0] == panel]
        figures[f"above_od_{panel}"] = sum(cell["DP-BAI"] > cell["DP-OD"] for cell in part)
        figures[f"above_baseline_{panel}"] = sum(cell["DP-BAI"] > cell["baseline"] for cell in part)
    figures["least_lead_od"] = min(cell["DP-BAI"] - cell["DP-OD"] for cell in by.values())
    figures["rescaled"] = max(abs(cell["DP-OD, rescaled"] - cell["DP-BAI"]) for cell in by.values())
    last, far = by["T", 500, 0.1], by["epsilon", 200, 1.9]
    for names in (KEYS, SIMULATED):
        figures |= {f"success_500_{key}": last[name] for name, key in names.items()}
    figures["similar_19"] = far["OD-LinBAI"] - far["DP-BAI"]
    without = setting.exact_share("DP-BAI", 200, 1e6)
    figures["similar_limit"] = setting.exact_share("OD-LinBAI", 200, 1e6) - without
    hard = hardness(setting.features(), setting.THETA, 0.1)
    figures |= {"h_bai": hard.bai, "h_pri": hard.privacy, "phases": max_det_schedule(30, 2).phases}
    horizon = 512
    while dp_bai_error(setting.features(), setting.THETA, horizon, 0.1) > 0.05:
        horizon *= 2
    return figures | {"bound_informative": horizon}


def _appendix(table: pd.DataFrame) -> dict[str, float]:
    """Figure 2's claims."""
    unit = table[table["noise"] == "unit rewards"]
    cells = unit.set_index(["T", "epsilon", "design", "y"])["exact"].sort_index()
    figures: dict[str, float] = {"falling": 0, "even": 0}
    for horizon, epsilon in setting.PAIRS:
        od = cells[horizon, epsilon, "DP-OD"]
        bai = cells[horizon, epsilon, "DP-BAI"]
        figures["falling"] += bool((np.diff(od) < 0.0).all())
        figures["even"] = max(figures["even"], bai.max() - bai.min())
        key = f"{horizon}_{round(10 * epsilon)}"
        figures |= {f"e_bai_{key}": bai[1], f"e_od_1_{key}": od[1], f"e_od_28_{key}": od[28]}
    both = table.set_index(["T", "epsilon", "design", "y", "noise"])["exact"].unstack("noise")
    return figures | {"as_printed": (both["as printed"] - both["unit rewards"]).abs().max()}


def _against_exact(section: pd.DataFrame, appendix: pd.DataFrame) -> dict[str, float]:
    """Simulation against exact probabilities."""
    rows = pd.concat([section, appendix])
    rows = rows[rows["exact"].notna()]
    measured, known = (rows[name].to_numpy(dtype=np.float64) for name in ("success", "exact"))
    score = np.abs(measured - known) / np.sqrt(
        known * (1.0 - known) / rows["runs"].to_numpy(dtype=np.float64)
    )
    return {"known_cells": len(rows), "worst_score": score.max(), "mean_square_score": np.mean(score**2)}


def _maps(table: pd.DataFrame) -> dict[str, float]:
    """Shares of the maps in which the ticked design is better."""
    figures = {}
    for row in table.to_dict("records"):
        key = f"{row['map']}_{row['row']}"
        figures[f"map_{key}"] = row["ticked is better"]
        figures[f"map_analytic_{key}"] = row["with analytic noise"]
    spent = table["DP-BAI-Gauss better than Laplace noise that uses delta"] * table["points"]
    return figures | {"map_uses_delta": spent.sum() / table["points"].sum()}


def _limits() -> dict[str, float]:
    """Where the two designs cross on two arms, and what their ratio tends to."""
    printed, true = regions.crossing(regions.EPSILON, regions.DELTA)
    analytic = regions.crossing(regions.EPSILON, regions.DELTA, "analytic")[1]
    at = regions.two_arms(round(true), regions.EPSILON, regions.DELTA)["DP-BAI"]
    figures = {"crossing_printed": printed, "crossing_true": true, "crossing_analytic": analytic}
    figures["crossing_log10_error"] = at / math.log(10.0)
    for horizon in (1_002, 10_002):
        found = regions.two_arms(horizon, 1.0, 1e-5)
        figures[f"ratio_{horizon}"] = math.exp(found["DP-BAI-Gauss"] - found["DP-BAI"])
    figures["error_bai_1002"] = math.exp(regions.two_arms(1_002, 1.0, 1e-5)["DP-BAI"])
    figures["error_gauss_1002"] = math.exp(regions.two_arms(1_002, 1.0, 1e-5)["DP-BAI-Gauss"])
    figures["ratio_limit"] = exact.limit(regions.GAP, regions.classical_scale(1.0, 1e-5), 1.0)

    def excess(delta: float) -> float:
        return exact.limit(regions.GAP, regions.classical_scale(1.0, delta), 1.0) - 1.0

    def lead(delta: float) -> float:
        found = regions.two_arms(1_000, regions.EPSILON, delta)
        return found["analytic"] - found["DP-BAI"]

    figures["delta_analytic"] = optimize.brentq(lead, 1e-6, 0.1)
    return figures | {"delta_limit": optimize.brentq(excess, 0.01, 0.9)}


def _cells(table: pd.DataFrame) -> dict[str, float]:
    """Simulated cells by row of Table 1."""
    figures: dict[str, float] = {}
    for row in (1, 2, 3):
        part = table[table["row"] == row]
        for key, verdict in (("ticked", "as ticked"), ("other", "the other one"), ("undecided", "undecided")):
            figures[f"cells_{row}_{key}"] = int((part["verdict"] == verdict).sum())
    return figures
