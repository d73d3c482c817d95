"""Table 1 of Chen et al. (2024): which of DP-BAI and DP-BAI-Gauss is said to be better, and which one is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize

from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPBAIGauss
from adaptinf.privacy.real_mechanisms import analytic_scale
from adaptinf.simulation.environments import BernoulliArms, Environment, UniformArms
from adaptinf.theory.best_arm_bounds import hardness
from adaptinf.typing import FloatArray
from case_studies.best_arm import exact
from case_studies.best_arm.setting import THETA, features, seed_of

GAP = 0.1
EPSILON, DELTA = 0.05, 1e-5
STRENGTHS = (0.25, 1.0, 4.0)
DELTAS = (1e-6, 1e-2, 0.3)
MULTIPLES = (0.5, 1.5, 4.5)


def classical_scale(epsilon: float, delta: float) -> float:
    """Standard deviation of the paper's noise of a sum."""
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def statistic(
    bai: float, privacy: float, dimension: int, horizon: float, delta: float
) -> tuple[float, float]:
    """The square in Table 1 over T / (H log d) and over T / (H_BAI log d)."""
    log_d = math.log(dimension)
    square = (horizon / (math.sqrt(math.log(1.25 / delta)) * privacy * log_d)) ** 2
    return square * (bai + privacy) * log_d / horizon, square * bai * log_d / horizon


def table_row(bai: float, privacy: float, dimension: int, horizon: float, delta: float) -> int:
    """Row of Table 1, all constants 1: in rows 1 and 2 it ticks DP-BAI-Gauss, in row 3 DP-BAI."""
    over_all, over_bai = statistic(bai, privacy, dimension, horizon, delta)
    return 1 if over_bai >= 1.0 else 2 if over_all >= 1.0 else 3


def two_arms(horizon: int, epsilon: float, delta: float) -> dict[str, float]:
    """Logs of the exact errors on two arms with 0/1 rewards with means .55 and .45."""
    pulls = exact.half(horizon - 2)
    noises = {
        "DP-BAI": ("laplace", 1.0 / epsilon),
        "DP-BAI-Gauss": ("normal", classical_scale(epsilon, delta)),
        "analytic": ("normal", analytic_scale(epsilon, delta)),
        "DP-BAI with delta": ("laplace", exact.laplace_scale(epsilon, delta)),
    }
    return {name: exact.log_error(pulls, GAP, *noise) for name, noise in noises.items()}


def map_of(panel: str, size: int) -> pd.DataFrame:
    """Table 1's row and the exact errors on a grid of T, and of delta at epsilon = .05 or epsilon at 1e-5."""
    horizons = np.unique(np.round(np.geomspace(10, 1e5, size)).astype(int))
    across = np.geomspace(1e-10, 0.5, size) if panel == "delta" else np.geomspace(0.02, 2.0, size)
    rows = []
    for horizon in horizons.tolist():
        for value in across.tolist():
            epsilon, delta = (EPSILON, value) if panel == "delta" else (value, DELTA)
            hard = hardness(np.eye(2), [0.55, 0.45], epsilon)
            found = {"T": horizon, "epsilon": epsilon, "delta": delta}
            found["row"] = table_row(hard.bai, hard.privacy, 2, horizon, delta)
            found["over all"], found["over BAI"] = statistic(hard.bai, hard.privacy, 2, horizon, delta)
            found |= {f"log error, {name}": e for name, e in two_arms(horizon, epsilon, delta).items()}
            rows.append(found)
    return pd.DataFrame(rows)


def agreement(grid: pd.DataFrame) -> pd.DataFrame:
    """Share of a map in which the ticked design has the smaller exact error, by row of Table 1."""
    normal = grid["log error, DP-BAI-Gauss"] < grid["log error, DP-BAI"]
    analytic = grid["log error, analytic"] < grid["log error, DP-BAI"]
    spent = grid["log error, DP-BAI-Gauss"] < grid["log error, DP-BAI with delta"]
    rows = []
    for row in (1, 2, 3):
        part = grid[grid["row"] == row]
        ticked = row != 3
        rows.append(
            {
                "row": row,
                "ticked": "DP-BAI-Gauss" if ticked else "DP-BAI",
                "points": len(part),
                "ticked is better": float((normal[part.index] == ticked).mean()),
                "with analytic noise": float((analytic[part.index] == ticked).mean()),
                "DP-BAI-Gauss better than Laplace noise that uses delta": float(spent[part.index].mean()),
            }
        )
    return pd.DataFrame(rows)


def crossing(epsilon: float, delta: float, name: str = "DP-BAI-Gauss") -> tuple[float, float]:
    """T from which Table 1 ticks DP-BAI-Gauss, and from which its exact error is the smaller one."""
    hard = hardness(np.eye(2), [0.55, 0.45], epsilon)
    # row 2 begins where the statistic, which is linear in T, is 1
    printed = 1.0 / statistic(hard.bai, hard.privacy, 2, 1.0, delta)[0]

    def lead(log_horizon: float) -> float:
        found = two_arms(2 * round(math.exp(log_horizon) / 2.0), epsilon, delta)
        return found["DP-BAI"] - found[name]

    return printed, math.exp(optimize.brentq(lead, math.log(20.0), math.log(1e6), xtol=1e-4))


@dataclass(frozen=True)
class Instance:
    """Arms of which some cells of Table 1 are simulated."""

    name: str
    features: FloatArray
    theta: FloatArray
    environment: Environment


def instances() -> tuple[Instance, ...]:
    """Two arms, Section 5, eight separate arms, and a hundred arms in four dimensions."""
    rng = np.random.default_rng(seed_of("hundred arms"))
    best = rng.uniform(0.0, 0.5, 96)
    others = rng.dirichlet(np.ones(3), 96) * (1.0 - best)[:, np.newaxis]
    hundred = np.vstack([np.eye(4), np.column_stack([best, others])])
    theta_4, theta_8 = np.array([0.6, 0.4, 0.4, 0.4]), np.array([0.6] + [0.4] * 7)
    section = features()
    return (
        Instance("K = d = 2", np.eye(2), np.array([0.55, 0.45]), BernoulliArms([0.55, 0.45])),
        Instance("K = 30, d = 2", section, THETA, UniformArms(np.zeros(30), 2.0 * section @ THETA)),
        Instance("K = d = 8", np.eye(8), theta_8, BernoulliArms(theta_8)),
        Instance("K = 100, d = 4", hundred, theta_4, BernoulliArms(hundred @ theta_4)),
    )


def simulated(runs: int, n_jobs: int) -> pd.DataFrame:
    """Errors in cells of Table 1: H_pri / H_BAI, delta and T / (H log d) take three values each."""
    cells = itertools.product(instances(), STRENGTHS, MULTIPLES)
    return pd.DataFrame([row for cell in cells for row in _cells(*cell, runs, n_jobs)])


def _cells(
    instance: Instance, strength: float, multiple: float, runs: int, n_jobs: int
) -> Iterator[dict[str, object]]:
    """DP-BAI against DP-BAI-Gauss for each delta."""
    rows, dimension = instance.features, instance.features.shape[1]
    hard = hardness(rows, instance.theta, 1.0)
    bai, privacy = hard.bai, strength * hard.bai
    epsilon = hard.privacy / privacy
    horizon = round(multiple * (bai + privacy) * math.log(dimension))

    def error(design: DPBAI | DPBAIGauss, delta: float) -> float:
        seed = seed_of(f"{instance.name}, {strength}, {multiple}, {delta}")
        found = design.replicate(instance.environment, horizon, runs, rng=seed, n_jobs=n_jobs)
        return float((found.recommended != 0).mean())

    laplace = error(DPBAI(epsilon=epsilon, features=rows), 0.0)
    for delta in DELTAS:
        design = DPBAIGauss(epsilon=epsilon, delta=delta, features=rows, calibration="published")
        row = table_row(bai, privacy, dimension, horizon, delta)
        cell = {"instance": instance.name, "H_pri / H_BAI": strength, "epsilon": epsilon}
        cell |= {"delta": delta, "T": horizon, "T / (H log d)": multiple, "row": row}
        cell["statistic"] = statistic(bai, privacy, dimension, horizon, delta)[0]
        yield cell | compared(laplace, error(design, delta), runs, row)


def compared(laplace: float, normal: float, runs: int, row: int) -> dict[str, object]:
    """Both errors, their difference in standard errors, and whether the design that is ticked wins."""
    spread = math.sqrt((laplace * (1.0 - laplace) + normal * (1.0 - normal)) / runs)
    score = 0.0 if spread == 0.0 else (normal - laplace) / spread
    winner = "undecided" if abs(score) <= 3.0 else "DP-BAI" if score > 0.0 else "DP-BAI-Gauss"
    ticked = "DP-BAI" if row == 3 else "DP-BAI-Gauss"
    verdict = winner if winner == "undecided" else "as ticked" if winner == ticked else "the other one"
    return {
        "error, DP-BAI": laplace,
        "error, DP-BAI-Gauss": normal,
        "score": score,
        "winner": winner,
        "verdict": verdict,
        "runs": runs,
    }
