"""Figures 1 to 3: measured error against measured regret, along alpha, n, epsilon and the rarest context."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.designs import ConSE, DPConSE, Replications
from adaptinf.inference.released.effects import released_estimate
from adaptinf.simulation.environments import FiniteContext
from adaptinf.theory import difference_in_means, frontier
from adaptinf.typing import BoolArray, FloatArray

CONTEXTS = 10
MEANS = [[0.35, 0.65], [0.65, 0.35]] * (CONTEXTS // 2)
GAP, VARIANCE = 0.3, 2 * 0.35 * 0.65
ALPHAS = tuple(round(0.1 * step, 1) for step in range(11))
HORIZONS = (10**4, 10**5, 10**6)
REGIMES = ("n/10", "log^3 n", "4 log n")
MULTIPLES = (1, 2, 4, 8, 16, 32, 64)
FEWEST = 0.5


def rarest(regime: str, horizon: int) -> float:
    """Expected arrivals of the rarest context over the whole run, f_min(n)."""
    log = math.log(horizon)
    return {"n/10": horizon / 10.0, "log^3 n": log**3, "4 log n": 4.0 * log}[regime]


def world(arrivals: float, horizon: int) -> FiniteContext:
    """Ten contexts: the first has so many expected arrivals, the others share the rest."""
    share = arrivals / horizon
    return FiniteContext([share] + [(1.0 - share) / (CONTEXTS - 1)] * (CONTEXTS - 1), MEANS)


def designs(alpha: float) -> dict[str, ConSE | DPConSE]:
    """What is run at every point."""
    return {
        "ConSE": ConSE(alpha=alpha),
        "DP-ConSE, epsilon 1": DPConSE(epsilon=1.0, alpha=alpha),
        "DP-ConSE, epsilon .1": DPConSE(epsilon=0.1, alpha=alpha),
    }


def estimates_of(design: ConSE | DPConSE, sims: Replications) -> FloatArray:
    """ConSE: differences in means. DP-ConSE: what it releases, NaN where it releases none."""
    if isinstance(design, ConSE):
        return difference_in_means(sims)
    numbers = sims.released
    if design.calibration == "published":
        return numbers["estimate"]
    return released_estimate(
        numbers["contrast_sum"],
        numbers["arrivals"],
        epsilon_count=(1.0 - design.contrast_share) * design.epsilon,
        minimum=numbers["t_min"] / 4.0,
    )


def filled(sims: Replications) -> BoolArray:
    """Where ConSE's trial got the T_min arrivals after which the pseudo-code puts out its estimate."""
    arrivals = sims.phase_tallies("estimation", randomised=True)[..., 0].sum(axis=2)
    return np.asarray(arrivals >= np.ceil(sims.outcomes[:, :1]))


def point(design: ConSE | DPConSE, sims: Replications) -> dict[str, Any]:
    """Error, regret and their product over M; no error where a context has an estimate in few runs."""
    values = estimates_of(design, sims)
    missing = np.isnan(values).mean(axis=0)
    regret = sims.regret
    found: dict[str, Any] = {
        "regret": regret.mean(),
        "regret_se": regret.std(ddof=1) / math.sqrt(regret.size),
        "mean T_min": sims.outcomes[:, 0].mean(),
        "runs without an estimate, rarest context": missing[0],
        "runs whose trial is not filled, rarest context": (
            1.0 - filled(sims)[:, 0].mean() if isinstance(design, ConSE) else np.nan
        ),
    }
    names = ("error", "error_se", "product", "product_se")
    if missing.max() > FEWEST:
        return found | dict.fromkeys(names, np.nan)
    measured = frontier(sims, values)
    return found | {name: getattr(measured, name) for name in names}


def frontier_table(runs: int, n_jobs: int, root: np.random.SeedSequence) -> pd.DataFrame:
    """One row per design, regime, horizon and alpha."""
    return pd.DataFrame(list(_points(runs, n_jobs, root)))


def _points(runs: int, n_jobs: int, root: np.random.SeedSequence) -> Iterator[dict[str, Any]]:
    for regime in REGIMES:
        for horizon in HORIZONS:
            arrivals = rarest(regime, horizon)
            for alpha in ALPHAS:
                for name, design in designs(alpha).items():
                    rng = root.spawn(1)[0]
                    sims = design.replicate(world(arrivals, horizon), horizon, runs, rng=rng, n_jobs=n_jobs)
                    place = {"design": name, "f_min": regime, "arrivals": arrivals, "n": horizon}
                    yield place | {"alpha": alpha} | point(design, sims)


def ends_table(curves: pd.DataFrame) -> pd.DataFrame:
    """How far along alpha a curve is a trade: regret within 10% of its smallest buys nothing any more."""
    rows = []
    for key, part in curves.groupby(["design", "f_min", "n"], sort=False):
        smallest = part["regret"].min()
        cheap = part[part["regret"] <= 1.1 * smallest]
        last = cheap.iloc[0]
        rows.append(
            dict(zip(("design", "f_min", "n"), key, strict=True))
            | {
                "regret, alpha 0": part["regret"].iloc[0],
                "regret, alpha 1": part["regret"].iloc[-1],
                "error, alpha 0": part["error"].iloc[0],
                "error, alpha 1": part["error"].iloc[-1],
                "first alpha with regret within 10%": last["alpha"],
                "error there": last["error"],
            }
        )
    return pd.DataFrame(rows)


def existence_table(
    runs: int, n_jobs: int, root: np.random.SeedSequence, horizon: int = 100_000
) -> pd.DataFrame:
    """Share of runs in which the rarest context gets no estimate, along f_min = c log n."""
    rows = []
    for multiple in MULTIPLES:
        env = world(multiple * math.log(horizon), horizon)
        for alpha in (0.0, 1.0):
            plain = ConSE(alpha=alpha)
            sims = plain.replicate(env, horizon, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
            row = {
                "f_min over log n": multiple,
                "alpha": alpha,
                "ConSE's pseudo-code": 1.0 - filled(sims)[:, 0].mean(),
                "ConSE, any two rewards": np.isnan(difference_in_means(sims))[:, 0].mean(),
            }
            for epsilon in (1.0, 10.0):
                private = DPConSE(epsilon=epsilon, alpha=alpha)
                found = private.replicate(env, horizon, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
                missing = np.isnan(estimates_of(private, found))[:, 0]
                row[f"DP-ConSE, epsilon {epsilon:g}"] = missing.mean()
            rows.append(row)
    return pd.DataFrame(rows)
