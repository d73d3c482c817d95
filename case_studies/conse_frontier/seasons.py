"""Seasonal arrivals: a context that comes less often in the second half than in the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.designs import ConSE, DPConSE
from adaptinf.inference.released.effects import released_estimate
from adaptinf.simulation.environments import FiniteContext
from adaptinf.theory import difference_in_means
from adaptinf.typing import FloatArray
from case_studies.conse_frontier.curves import VARIANCE, estimates_of, filled

HORIZON = 100_000
MEANS = [[0.35, 0.65], [0.65, 0.35]]
RATIOS = (1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)
SEASON_ALPHAS = (0.0, 0.1, 0.2, 0.4)
SHORT = 1_000


def falling(ratio: float, horizon: int = HORIZON) -> FiniteContext:
    """Two equally frequent contexts; in the second half the first falls to `ratio` times its arrivals."""
    share = 0.5 * ratio
    return FiniteContext([[0.5, 0.5], [share, 1.0 - share]], MEANS, period=horizon // 2)


def swapping(period: int) -> FiniteContext:
    """Shares .9 and .1 that change places after so many rounds."""
    return FiniteContext([[0.9, 0.1], [0.1, 0.9]], MEANS, period=period)


def worlds() -> Iterator[tuple[str, float, FiniteContext]]:
    """Every environment: what its seasons are, second over first half's arrivals, and itself."""
    for ratio in RATIOS:
        yield "the first falls", ratio, falling(ratio)
    yield "9:1, then 1:9", 1.0 / 9.0, swapping(HORIZON // 2)
    yield "9:1 and 1:9 by turns of 1,000", 1.0, swapping(SHORT)


def seasons_table(runs: int, n_jobs: int, root: np.random.SeedSequence) -> pd.DataFrame:
    """What becomes of the first context's estimate, and of both contexts' trials, where arrivals change."""
    rows = []
    for seasons, ratio, env in worlds():
        for alpha in SEASON_ALPHAS:
            found = _private(env, alpha, runs, n_jobs, root) | _plain(env, alpha, runs, n_jobs, root)
            rows.append({"seasons": seasons, "second over first half": ratio, "alpha": alpha} | found)
    return pd.DataFrame(rows)


def _plain(
    env: FiniteContext, alpha: float, runs: int, n_jobs: int, root: np.random.SeedSequence
) -> dict[str, Any]:
    sims = ConSE(alpha=alpha).replicate(env, HORIZON, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
    planned = np.ceil(sims.outcomes[:, 0])
    trial = sims.phase_tallies("estimation", randomised=True)[..., 0].sum(axis=2)
    errors = np.square(difference_in_means(sims)[:, 0] - env.effects()[0])
    return {
        "ConSE: no estimate by the pseudo-code": 1.0 - filled(sims)[:, 0].mean(),
        "ConSE: trial over T_min": (trial[:, 0] / planned).mean(),
        "ConSE: error times T_min over 2(v0 + v1)": (errors * planned).mean() / (2.0 * VARIANCE),
    }


def _private(
    env: FiniteContext, alpha: float, runs: int, n_jobs: int, root: np.random.SeedSequence
) -> dict[str, Any]:
    design = DPConSE(epsilon=1.0, alpha=alpha)
    sims = design.replicate(env, HORIZON, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
    planned = sims.outcomes[:, 0]
    trial = sims.phase_tallies("estimation", randomised=True)[..., 0].sum(axis=2)
    numbers = sims.released
    count_budget = (1.0 - design.contrast_share) * design.epsilon
    by_noise: FloatArray = released_estimate(
        numbers["contrast_sum"][:, 0],
        numbers["arrivals"][:, 0],
        epsilon_count=count_budget,
        minimum=np.log(HORIZON) / count_budget,
    )
    errors = np.square(by_noise - env.effects()[0])
    return {
        "DP-ConSE: no estimate": np.isnan(estimates_of(design, sims)[:, 0]).mean(),
        "DP-ConSE: no estimate if the limit were log(n) / epsilon_N": np.isnan(by_noise).mean(),
        "DP-ConSE: trial over T_min": (trial[:, 0] / planned).mean(),
        "DP-ConSE: other context's trial over T_min": (trial[:, 1] / planned).mean(),
        "DP-ConSE: error of that estimate times T_min over 2(v0 + v1)": (
            np.nanmean(errors * planned) / (2.0 * VARIANCE)
        ),
        "DP-ConSE: regret": sims.regret.mean(),
    }
