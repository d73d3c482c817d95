"""How many copies of its data a log and a fit take at most: of arrays, which tracemalloc counts exactly."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai

BATCHES, ROOM = 100, 75_000_000
"""ROOM: bytes for blocks and samples of rows, which do not grow with the log."""


def frame(rows: int, n_arms: int) -> pd.DataFrame:
    """A batched design's log: labels, rewards, batches and every arm's propensity."""
    rng = np.random.default_rng(0)
    shares = 0.9 * rng.dirichlet(np.full(n_arms, 5.0), BATCHES) + 0.1 / n_arms
    batch = np.repeat(np.arange(BATCHES), rows // BATCHES)
    above = rng.random(rows)[:, None] > np.cumsum(shares, axis=1)[batch, :-1]
    columns = {"action": above.sum(axis=1), "reward": rng.normal(size=rows), "batch": batch}
    return pd.DataFrame(columns | {f"propensity_{k}": shares[batch, k] for k in range(n_arms)})


def peak(call: Callable[[], Any]) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "n_arms"), [(4_000_000, 2), (2_000_000, 8)])
def test_a_log_and_its_fits_take_few_copies_of_the_data(rows: int, n_arms: int) -> None:
    table = frame(rows, n_arms)
    copy = 8 * rows * (3 + n_arms)
    roles = {"action": "action", "reward": "reward", "batch": "batch"}
    few = ai.AdaptiveLog(table.iloc[::9], **roles)  # loads what is used
    ai.ArmMeans(few).fit(), ai.Contrast(few, treatment=1, control=0).fit()

    log, made = peak(lambda: ai.AdaptiveLog(table, **roles))
    means, first = peak(lambda: ai.ArmMeans(log).fit())
    contrast, second = peak(lambda: ai.Contrast(log, treatment=1, control=0).fit())
    # The log itself is a copy, and the chosen arm's propensity: (4 + K) of 3 + K columns.
    assert made < 1.35 * copy + ROOM
    assert first < 0.2 * copy + ROOM
    assert second < 0.5 * copy + ROOM
    assert contrast.estimate[0] == pytest.approx(means.estimate[1] - means.estimate[0], abs=0.01)
