"""Sums of generated logs, split at random, added up in engines and merged in any order: those of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sum_rows import NAMES, assert_same_cells, rows_of, sums_of_rows

import adaptinf as ai

ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "duckdb": duckdb.from_df,
    "polars-lazy": lambda frame: pl.DataFrame(frame).lazy(),
}
FITS: list[tuple[bool, dict[str, Any]]] = [
    (False, {"estimator": "aipw", "weights": "uniform", "outcome": "batch-mean"}),
    (False, {"estimator": "ipw", "weights": "uniform"}),
    (False, {"estimator": "sample-mean"}),
    (True, {"estimator": "aipw", "weights": "combined", "outcome": "batch-mean"}),
    (True, {"estimator": "aipw", "weights": "uniform", "outcome": "batch-mean"}),
]
"""Whether a contrast is fitted, and how."""
LOGS = given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(8, 40), min_size=1, max_size=5),
    n_arms=st.integers(2, 4),
    far=st.sampled_from([0.0, 1e4]),
    pieces=st.integers(2, 5),
)


def assert_splits(engine: str, seed: int, sizes: list[int], n_arms: int, far: float, pieces: int) -> None:
    frame, rng = rows_of(seed, tuple(sizes), n_arms, far), np.random.default_rng(seed)
    arms = list(range(n_arms))
    piece = rng.integers(pieces, size=len(frame))
    # Each part has a centre of its own, found by the query, and may lack batches and arms.
    parts = [
        ai.aggregate(ENGINES[engine](frame[piece == one].reset_index(drop=True)), **NAMES, arms=arms)
        for one in np.unique(piece)
    ]
    rng.shuffle(parts)
    cut = int(rng.integers(1, len(parts))) if len(parts) > 1 else 1
    merged = reduce(add, [reduce(add, half) for half in (parts[cut:], parts[:cut]) if half])
    whole = ai.aggregate(ENGINES[engine](frame), **NAMES, arms=arms)
    expected = sums_of_rows(frame, arms)
    log = ai.AdaptiveLog(frame, action="arm", reward="y", batch="batch", arms=arms)
    for pair, options in FITS:
        rows, *found = (fitted(data, pair, options) for data in (log, merged, whole))
        for each in found:
            scale = float(np.max(np.nan_to_num(np.abs(rows.covariance))))
            np.testing.assert_allclose(each.estimate, rows.estimate, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(each.covariance, rows.covariance, rtol=1e-10, atol=1e-10 * scale)
    for sums in (merged, whole):
        np.testing.assert_array_equal(sums.batches, np.arange(len(sizes)))
        sums.cells = sums.cells.about(expected.cells.centre)
        assert_same_cells(sums, expected)


def fitted(data: Any, pair: bool, options: dict[str, Any]) -> Any:
    model = ai.Contrast(data, treatment=1, control=0) if pair else ai.ArmMeans(data)
    return model.fit(**options)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=6, deadline=None, derandomize=True)
@LOGS
def test_merged_in_any_order_and_split_sums_are_those_of_the_rows(engine: str, **log: Any) -> None:
    assert_splits(engine, **log)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None, derandomize=True)
@LOGS
def test_sixty_logs_in_any_order_and_split(engine: str, **log: Any) -> None:
    assert_splits(engine, **log)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=500, deadline=None, derandomize=True)
@LOGS
def test_five_hundred_logs_in_any_order_and_split(engine: str, **log: Any) -> None:
    assert_splits(engine, **log)
