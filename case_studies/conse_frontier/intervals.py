"""Coverage of intervals under ConSE and DP-ConSE, and DP-ConSE as published against corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.designs import ConSE, DPConSE, Replications
from adaptinf.inference.distributions.two_samples import (
    DifferenceReference,
    agresti_caffo,
    choose_difference,
    few_events,
    welch,
)
from adaptinf.inference.released.effects import effect_from_mean, released_intervals
from adaptinf.theory import difference_in_means
from adaptinf.typing import FloatArray
from case_studies.conse_frontier.curves import VARIANCE, estimates_of, rarest, world

Z = 1.959964
LEVEL = 0.05
PLACES = tuple((n, alpha) for n in (10**4, 10**5, 10**6) for alpha in (0.0, 0.2, 0.5, 1.0))
PRIVATE_PLACES = tuple((epsilon, alpha) for epsilon in (0.1, 1.0) for alpha in (0.0, 0.4, 1.0))
PRIVATE_HORIZON = 100_000


def welch_intervals(sims: Replications) -> FloatArray:
    """Limits that `CATE` gives by default for 0/1 rewards, shape (runs, contexts, 2)."""
    tallies = sims.phase_tallies("estimation", randomised=True)
    pulls, sums = tallies[..., 0], tallies[..., 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / pulls
        variances = means * (1.0 - means) * pulls / (pulls - 1.0)
    shape = pulls.shape[:2]
    n0, n1, s0, s1, m0, m1, v0, v1 = (
        part[..., arm].ravel() for part in (pulls, sums, means, variances) for arm in range(2)
    )
    counts = (n1, s1, n0, s0)
    adjusted = agresti_caffo(*counts)
    chosen = choose_difference(welch(n1, m1, v1, n0, m0, v0), adjusted, few_events(*counts))
    return DifferenceReference(chosen).interval(math.log(LEVEL)).reshape(*shape, 2)


def printed_intervals(estimates: FloatArray, size: FloatArray | float) -> FloatArray:
    """Estimate and 1.96 sqrt((v0 + v1) / size), the paper's variance at the true v0 and v1."""
    half = np.broadcast_to(Z * np.sqrt(VARIANCE / np.asarray(size)), estimates.shape)
    return np.stack([estimates - half, estimates + half], axis=-1)


def private_intervals(design: DPConSE, sims: Replications) -> FloatArray:
    """Limits that `CATE` gives for released numbers, shape (runs, contexts, 2)."""
    numbers = sims.released
    if design.calibration == "published":
        scale = 2.0 / (design.epsilon * np.maximum(numbers["length"], 1.0))
        effect = effect_from_mean(numbers["estimate"], numbers["length"], scale=scale)
        return np.stack(effect.interval(math.log(LEVEL)), axis=-1)
    _, low, high = released_intervals(
        numbers["contrast_sum"],
        numbers["arrivals"],
        epsilon_sum=design.contrast_share * design.epsilon,
        epsilon_count=(1.0 - design.contrast_share) * design.epsilon,
        minimum=numbers["t_min"] / 4.0,
        alpha=LEVEL,
    )
    return np.stack([low, high], axis=-1)


def coverage(limits: FloatArray, effects: FloatArray) -> dict[str, float]:
    """Share of intervals that hold the effect, its standard error, mean length, share of missing ones."""
    known = ~np.isnan(limits).any(axis=-1)
    inside = known & (limits[..., 0] <= effects) & (effects <= limits[..., 1])
    share = inside.sum() / max(known.sum(), 1)
    influence = (inside - share * known).sum(axis=1) / max(known.mean() * known.shape[1], 1e-300)
    return {
        "coverage": share,
        "standard error": influence.std(ddof=1) / math.sqrt(influence.size),
        "mean length": float(np.nanmean(limits[..., 1] - limits[..., 0])) if known.any() else np.nan,
        "without an interval": 1.0 - known.mean(),
    }


def coverage_table(runs: int, n_jobs: int, root: np.random.SeedSequence) -> pd.DataFrame:
    """Coverage of 95% intervals over ten equally frequent contexts: ours, and with the paper's variance."""
    return pd.DataFrame(list(_coverage_rows(runs, n_jobs, root)))


def _coverage_rows(runs: int, n_jobs: int, root: np.random.SeedSequence) -> Iterator[dict[str, Any]]:
    for horizon, alpha in PLACES:
        arrivals = rarest("n/10", horizon)
        env = world(arrivals, horizon)
        plain = ConSE(alpha=alpha)
        sims = plain.replicate(env, horizon, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
        means, planned = difference_in_means(sims), sims.outcomes[:, :1]
        scale = max(arrivals ** (1.0 - alpha), math.log(horizon))
        found = {
            ("ConSE", "adaptinf"): welch_intervals(sims),
            ("ConSE", "paper, T_min"): printed_intervals(means, planned),
            ("ConSE", "paper, f_min(n)^(1-alpha)"): printed_intervals(means, scale),
        }
        private = DPConSE(epsilon=1.0, alpha=alpha)
        sims = private.replicate(env, horizon, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
        released, planned = estimates_of(private, sims), sims.outcomes[:, :1]
        found[("DP-ConSE, epsilon 1", "adaptinf")] = private_intervals(private, sims)
        found[("DP-ConSE, epsilon 1", "paper, T_min")] = printed_intervals(released, planned)
        for (design, interval), limits in found.items():
            place = {"design": design, "interval": interval, "n": horizon, "alpha": alpha}
            yield place | coverage(limits, env.effects())


def calibrations_table(
    runs: int, n_jobs: int, root: np.random.SeedSequence, horizon: int = PRIVATE_HORIZON
) -> pd.DataFrame:
    """DP-ConSE as published against corrected, ten equally frequent contexts."""
    rows = []
    env = world(rarest("n/10", horizon), horizon)
    for epsilon, alpha in PRIVATE_PLACES:
        for calibration in ("published", "corrected"):
            design = DPConSE(epsilon=epsilon, alpha=alpha, calibration=calibration)
            sims = design.replicate(env, horizon, runs, rng=root.spawn(1)[0], n_jobs=n_jobs)
            values, planned = estimates_of(design, sims), sims.outcomes[:, :1]
            squares = np.nanmean(np.square(values - env.effects()), axis=1)
            known = squares[~np.isnan(squares)]
            ours = coverage(private_intervals(design, sims), env.effects())
            theirs = coverage(printed_intervals(values, planned), env.effects())
            rows.append(
                {
                    "calibration": calibration,
                    "epsilon": epsilon,
                    "alpha": alpha,
                    "guaranteed epsilon": design.guarantee(horizon, 2).epsilon,
                    "regret": sims.regret.mean(),
                    "regret se": sims.regret.std(ddof=1) / math.sqrt(runs),
                    "mean T_min": planned.mean(),
                    "mean squared error": known.mean(),
                    "error se": known.std(ddof=1) / math.sqrt(known.size),
                    "without an estimate": np.isnan(values).mean(),
                    "coverage, adaptinf": ours["coverage"],
                    "coverage, paper's variance": theirs["coverage"],
                    "coverage se": ours["standard error"],
                    "length, adaptinf": ours["mean length"],
                }
            )
    return pd.DataFrame(rows)
