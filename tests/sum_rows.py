"""Made-up rows of a log, and what their sums must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import adaptinf as ai

NAMES = {"action": "arm", "reward": "y", "batch": "batch"}
PARTS = ("moments", "rounds", "inverse", "expected", "spread", "smallest", "nonzero")


def rows_of(
    seed: int, sizes: tuple[int, ...] = (40, 60, 30), n_arms: int = 3, far: float = 0.0
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(len(sizes)), sizes)
    share = rng.dirichlet(np.full(n_arms, 4.0), len(batch)) * 0.8 + 0.2 / n_arms
    arm = np.array([rng.choice(n_arms, p=row / row.sum()) for row in share])
    frame = pd.DataFrame({"batch": batch, "arm": arm, "y": far + rng.gamma(1.5, 1.0 + arm)})
    return frame.assign(**{f"propensity_{k}": share[:, k] for k in range(n_arms)})


def sums_of_rows(frame: pd.DataFrame, arms: Sequence[int]) -> ai.Sums:
    """What the log itself adds up to."""
    return ai.Sums.of_log(ai.AdaptiveLog(frame, action="arm", reward="y", batch="batch", arms=list(arms)))


def assert_same_cells(found: ai.Sums, expected: ai.Sums) -> None:
    for name in PARTS:
        got, due = getattr(found.cells, name), getattr(expected.cells, name)
        if name == "moments":
            got, due = (
                np.concatenate([got[:4].ravel(), got[4, 0].ravel()]),
                np.concatenate([due[:4].ravel(), due[4, 0].ravel()]),
            )
        np.testing.assert_allclose(got, due, rtol=1e-10, atol=1e-9 * (1.0 + np.abs(due).max() * 1e-3))


def assert_same_contrast(found: ai.Sums, expected: ai.Sums) -> None:
    sums, rows = (ai.Contrast(each, treatment=1, control=0).fit(test="t") for each in (found, expected))
    np.testing.assert_allclose(sums.estimate, rows.estimate, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.std_error, rows.std_error, rtol=1e-10)


def stacked(n_logs: int = 20, n_arms: int = 3) -> tuple[pd.DataFrame, ai.Sums]:
    """Several logs of one set of arms as one table, a batch of one after those of another, and its sums."""
    rng = np.random.default_rng(20)
    logs = [
        rows_of(seed, tuple(int(size) for size in rng.integers(12, 40, rng.integers(1, 5))), n_arms, far)
        for seed, far in enumerate(rng.choice([0.0, 1e4], n_logs))
    ]
    whole = pd.concat([log.assign(batch=log["batch"] + 10 * place) for place, log in enumerate(logs)])
    table = whole.reset_index(drop=True)
    return table, sums_of_rows(table, range(n_arms))


def timed(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[Any]]]:
    """Rows at times, and the periods that these are in, each once."""
    at = pd.Timestamp("2024-02-26T23:30") + pd.to_timedelta(np.arange(len(frame)) * 131, unit="min")
    days = at.normalize()
    starts = {
        "hour": at.floor("h"),
        "day": days,
        "week": days - pd.to_timedelta(at.day_of_week, unit="D"),
        "month": days - pd.to_timedelta(at.day - 1, unit="D"),
    }
    return frame.assign(at=at), {every: sorted(set(start)) for every, start in starts.items()}
