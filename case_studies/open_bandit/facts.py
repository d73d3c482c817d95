"""What a Thompson log is: its weights, how its policy moves, and what normal intervals are worth there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

from adaptinf import AdaptiveLog

__all__ = [
    "ALPHA",
    "DRAWS",
    "coverage_rows",
    "impressions",
    "overlap_row",
    "policy_row",
    "resampled_coverage",
    "weights",
]

ALPHA = 0.05
DRAWS = 200_000
"""Simulated choices behind a published propensity: all but the exact 1/K are multiples of 1 in 200,000."""


def impressions(path: Path) -> pd.DataFrame:
    """The Thompson log with times, in their order."""
    frame = pd.read_csv(path, usecols=["timestamp", "item_id", "position", "click", "propensity_score"])
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], utc=True, format="ISO8601")
    return frame.sort_values("timestamp", kind="stable", ignore_index=True)


def weights(log: AdaptiveLog) -> np.ndarray:
    """Uniform probability over logged probability, by round."""
    return 1.0 / (log.n_arms * log.arrays.propensity)


def overlap_row(name: str, log: AdaptiveLog) -> dict[str, Any]:
    """What the weights of uniform choice look like."""
    weight = weights(log)
    drawn = log.arrays.propensity * DRAWS
    exact = np.isclose(log.arrays.propensity * log.n_arms, 1.0)
    stand_in = (np.abs(drawn - np.rint(drawn)) > 1e-6) & ~exact
    return {
        "campaign": name,
        "items": log.n_arms,
        "rounds": log.n_rounds,
        "clicks": int(log.arrays.reward.sum()),
        "smallest propensity": log.arrays.propensity.min(),
        "largest weight": weight.max(),
        "share of the largest": weight.max() / weight.sum(),
        "effective sample size": weight.sum() ** 2 / np.sum(weight**2),
        "mean weight": weight.mean(),
        "its standard error": weight.std(ddof=1) / math.sqrt(weight.size),
        "propensities that no simulation gave": int(stand_in.sum()),
    }


def policy_row(name: str, frame: pd.DataFrame, prior: dict[str, list[float]]) -> dict[str, Any]:
    """Does the policy that was trained beforehand still learn in this week?"""
    alpha, beta = np.asarray(prior["alpha"]), np.asarray(prior["beta"])
    first = frame[frame["position"] == 1]
    best = chance_of_being_best(alpha, beta)
    start, end = frame["timestamp"].iloc[0], frame["timestamp"].iloc[-1]
    early = first[first["timestamp"] < start + pd.Timedelta(hours=6)]
    late = first[first["timestamp"] >= end - pd.Timedelta(days=1)]
    gap, change = successive(frame)
    return {
        "campaign": name,
        "clicks before the week": alpha.sum(),
        "impressions before the week": (alpha + beta).sum(),
        "clicks in the sample": int(frame["click"].sum()),
        "correlation with the prior, first 6 h": np.corrcoef(best, shares(early, best.size))[0, 1],
        "correlation with the prior, last day": np.corrcoef(best, shares(late, best.size))[0, 1],
        "same propensity within 30 s": np.mean(change[gap < 30.0] < 1e-9),
        "same propensity after 30 min": np.mean(change[gap >= 1800.0] < 1e-9),
        "median factor after 12 h": float(np.exp(np.median(change[gap >= 43_200.0]))),
    }


def shares(frame: pd.DataFrame, items: int) -> np.ndarray:
    """Share of the impressions that each item has."""
    return np.bincount(frame["item_id"], minlength=items) / len(frame)


def chance_of_being_best(alpha: np.ndarray, beta: np.ndarray, points: int = 4_000) -> np.ndarray:
    """Probability that each of independent Beta draws is the largest, by the midpoint rule."""
    upper = float(stats.beta.ppf(1.0 - 1e-9, alpha, beta).max())
    grid = (np.arange(points) + 0.5) / points * upper
    below = np.log(np.maximum(stats.beta.cdf(grid[:, None], alpha, beta), 1e-300))
    density = stats.beta.logpdf(grid[:, None], alpha, beta)
    return np.exp(density + below.sum(axis=1, keepdims=True) - below).sum(axis=0) * upper / points


def successive(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Seconds between successive showings of an item at a position, and the change of its log-propensity."""
    groups = frame.groupby(["item_id", "position"])
    gap = groups["timestamp"].diff().dt.total_seconds().to_numpy()
    change = np.log(frame["propensity_score"]).groupby([frame["item_id"], frame["position"]]).diff()
    kept = ~np.isnan(gap)
    return gap[kept], np.abs(change.to_numpy()[kept])


def coverage_rows(cases: dict[str, tuple[np.ndarray, float]], runs: int, seed: int) -> pd.DataFrame:
    """How often a normal 95% interval holds the value, in logs resampled from weights, at a click rate."""
    children = np.random.SeedSequence(seed).spawn(len(cases))
    rows = []
    for (name, (weight, rate)), child in zip(cases.items(), children, strict=True):
        share, below = resampled_coverage(weight, rate, runs, np.random.default_rng(child))
        rows.append(
            {
                "weights of": name,
                "click rate": rate,
                "coverage": share,
                "std_error": math.sqrt(share * (1.0 - share) / runs),
                "interval below the value": below,
            }
        )
    return pd.DataFrame(rows)


def resampled_coverage(
    weight: np.ndarray, rate: float, runs: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Coverage of IPW's normal interval, and the share of intervals below the value.

    A round without a click scores 0, so that only the clicks' weights have to be drawn.
    """
    rounds, target = weight.size, rate * weight.mean()
    clicks = rng.binomial(rounds, rate, size=runs)
    drawn = weight[rng.integers(0, rounds, size=int(clicks.sum()))]
    place = np.repeat(np.arange(runs), clicks)
    mean = np.bincount(place, drawn, minlength=runs) / rounds
    square = np.bincount(place, drawn**2, minlength=runs) / rounds
    half = -special.ndtri(ALPHA / 2.0) * np.sqrt((square - mean**2) / rounds)
    return float(np.mean(np.abs(mean - target) <= half)), float(np.mean(mean + half < target))
