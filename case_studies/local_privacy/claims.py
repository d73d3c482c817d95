"""The study's figures, each with its standard error over runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from case_studies.local_privacy import printed
from case_studies.local_privacy.simulations import EPSILONS, KINDS, cells
from case_studies.local_privacy.table_2 import COLUMNS, METHODS, columns

Claims = dict[str, tuple[float, float]]
SHORT = {"corrected": "corrected", "first edge": "first_edge", "visited bin only": "visited"}


def mean_of(table: pd.DataFrame, **where: Any) -> tuple[float, float]:
    """Mean regret of the one cell with these values, and its standard error."""
    row = cells(table, **where)
    if len(row) != 1:
        raise ValueError(f"{len(row)} cells have {where}")
    return float(row["mean regret"].iloc[0]), float(row["standard error"].iloc[0])


def ratio(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Ratio of two means, with its standard error by the delta method."""
    value = first[0] / second[0]
    return value, abs(value) * float(np.hypot(first[1] / first[0], second[1] / second[0]))


def density_constant(gamma: float, dimension: int = 2) -> float:
    """What makes max_k abs(x_k - 1/2)^gamma a density on the cube."""
    return 2.0**gamma * (dimension + gamma) / dimension


def figure_6(endings: pd.DataFrame) -> Claims:
    found: Claims = {}
    for _, row in endings.iterrows():
        if row["design"] != "published":
            continue
        name, runs = row["auxiliary data"], row["runs"]
        share = float(row["arm 1 dropped"])
        found[f"point_best_lost_{name}"] = share, float(np.sqrt(share * (1.0 - share) / runs))
        found[f"point_regret_{name}"] = float(row["local regret"]), float(row["standard error"])
    corrected = endings[endings["design"] == "corrected"]
    dropped = corrected[[f"arm {arm} dropped" for arm in (1, 2, 3)]].to_numpy()
    return {**found, "point_corrected_dropped": (float(dropped.max()), 0.0)}


def orders(table: pd.DataFrame) -> Claims:
    found: Claims = {}
    for _, row in table.iterrows():
        name = row["epsilon_m"].replace(" ", "_")
        for column, short in (("best arm lost", "lost"), ("undecided", "undecided")):
            found[f"{short}_{name}"] = float(row[column]), float(row[f"{column}: standard error"])
    return found


def figure_7(table: pd.DataFrame) -> Claims:
    found: Claims = {}
    for kind in KINDS:
        for epsilon in EPSILONS:
            name = f"regret_{SHORT[kind]}_{epsilon:g}"
            found[name] = mean_of(table, figure="7a", design=kind, epsilon=epsilon, n_P=80_000)
    for epsilon in (1.0, 8.0, 1024.0):
        where = {"figure": "7a", "design": "corrected", "epsilon": epsilon}
        ends = (mean_of(table, **where, n_P=n) for n in (80_000, 20_000))
        found[f"growth_{epsilon:g}"] = ratio(*ends)
    for kind in ("corrected", "visited bin only"):
        for epsilon in (1.0, 8.0):
            name = f"jumped_{SHORT[kind]}_{epsilon:g}"
            found[name] = mean_of(table, figure="7b", design=kind, epsilon=epsilon, n_P=80_000)
    return found


def spread(measured: pd.DataFrame) -> Claims:
    """How far runs at epsilon = 1,024 spread with auxiliary data, over how far without; the same of means."""
    found: Claims = {}
    for kind, size in (("corrected", 10_000), ("corrected", 80_000), ("visited bin only", 80_000)):
        parts = [
            cells(measured, figure=figure, design=kind, epsilon=1024.0, n_P=size)["regret"]
            for figure in ("7b", "7a")
        ]
        name = f"{SHORT[kind]}_{size // 1000}k"
        means = ((float(part.mean()), float(part.std() / np.sqrt(len(part)))) for part in parts)
        found[f"level_{name}"] = ratio(*means)
        value = float(parts[0].std() / parts[1].std())
        # of a ratio of standard deviations of normal samples
        error = value * float(np.sqrt(sum(0.5 / (len(part) - 1) for part in parts)))
        found[f"spread_{name}"] = value, error
    return found


def figures_8_and_9(table: pd.DataFrame) -> Claims:
    found: Claims = {}
    for kind in ("corrected", "visited bin only"):
        for size in (10_000, 20_000, 50_000, 100_000):
            where = {"figure": "8", "design": kind, "epsilon": 1.0, "epsilon_m": "8", "gamma": 0.0}
            found[f"after_{size // 1000}k_{SHORT[kind]}"] = mean_of(table, **where, n_Q=size)
        for epsilon in (1.0, 2.0):
            where = {"figure": "9c", "design": kind, "epsilon": epsilon, "n_P": 80_000, "n_Q": 50_000}
            orders = (mean_of(table, **where, epsilon_m=each) for each in ("2 then 8", "8 then 2"))
            found[f"order_{SHORT[kind]}_{epsilon:g}"] = ratio(*orders)
    for epsilon_m in ("1", "8"):
        ends = (mean_of(table, figure="9a", epsilon_m=epsilon_m, kappa=kappa) for kappa in (0.0, 1.0))
        found[f"kappa_{epsilon_m}"] = ratio(*ends)
    for epsilon_m in ("2", "8"):
        ends = (mean_of(table, figure="9b", epsilon_m=epsilon_m, gamma=gamma) for gamma in (2.0, 0.0))
        found[f"gamma_{epsilon_m}"] = ratio(*ends)
    return found


def table_2(measured: pd.DataFrame, summary: pd.DataFrame, ranks: pd.DataFrame) -> Claims:
    """Rank sums and marks have no standard error of their own: it is given as that of a count."""
    found: Claims = {}
    for _, row in ranks.iterrows():
        end = "quarter" if row["rounds"] == "n/4" else "whole"
        for name in COLUMNS:
            found[f"ranks_{end}_{name.replace(' ', '_').lower()}"] = float(row[name]), 1.0
    for method in METHODS:
        best = summary["best"].isin([f"{method} w", f"{method} wo"]).sum()
        found[f"best_{method.lower()}"] = float(best), 1.0
    at_n = summary[summary["rounds"] == "n"]
    yardstick = measured[measured["method"] == "ABSE"].groupby("data")["n"].mean()
    for data in dict.fromkeys(measured["data"]):
        row = cells(at_n, data=data, epsilon=2.0, epsilon_m=4.0).iloc[0]
        rewards = columns(measured, data, (2.0, 4.0), "n")
        for method in METHODS:
            error = rewards[f"{method} w"].std() / np.sqrt(len(rewards)) / yardstick[data]
            name = f"ratio_{data.replace(' ', '_')}_{method.lower()}"
            found[name] = float(row[f"{method} w"]), float(error)
    return found


def in_print() -> Claims:
    """What can be checked in the paper without its data."""
    sums = printed.smallest_rank_sums()
    same = sum(sums[size] == list(told) for size, told in printed.RANK_SUMS.items())
    return {
        "constant": (density_constant(1.0), 0.0),
        "printed_rank_sums": (float(same), 0.0),
        "printed_with_unchanged": (float(printed.unchanged(2.0, "w")[0]), 0.0),
        "printed_without_unchanged": (float(printed.unchanged(2.0, "wo")[0]), 0.0),
    }
