"""Batched least squares: differences that move between batches are seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.arms import batched
from adaptinf.inference.arms.batched import batch_contrasts, moving_pvalue


def frame(turn: float, batches: int = 8, size: int = 60, seed: int = 1) -> pd.DataFrame:
    """Two arms by a coin, whose difference turns in the middle, or goes to and fro where it is below 0."""
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(batches), size)
    arm = rng.integers(0, 2, len(batch))
    move = (
        np.where(batch < batches / 2, turn, -turn) if turn >= 0.0 else -turn * np.where(batch % 2, 1.0, -1.0)
    )
    return pd.DataFrame({"arm": arm, "y": rng.normal(size=len(batch)) + move * arm + batch, "b": batch})


def fit(data: pd.DataFrame) -> ai.ContrastResults:
    log = ai.AdaptiveLog(data, action="arm", reward="y", batch="b")
    return ai.Contrast(log, treatment=1, control=0).fit(estimator="batched")


def test_differences_that_move_are_told_and_only_they() -> None:
    for turn, seen in ((0.0, False), (0.6, True), (-0.6, True)):
        found = fit(frame(turn))
        assert says(found.cautions, batched.DIFFERENCE_MOVES) == seen
        (note,) = [one for one in found.notes if "constant over time" in one]
        assert ("contradicted" in note) == seen
    sums = ai.aggregate(frame(0.6), action="arm", reward="y", batch="b")
    assert says(
        ai.Contrast(sums, treatment=1, control=0).fit(estimator="batched").cautions, batched.DIFFERENCE_MOVES
    )


def test_the_statistic_by_hand() -> None:
    data = frame(0.2)
    found = batch_contrasts(*(data[name].to_numpy() for name in ("b", "arm", "y")), 1, 0)
    weight = found.precision**2 / (found.df / (found.df - 2.0))
    gap = found.difference - weight @ found.difference / weight.sum()
    t = found.precision * gap
    q = (stats.norm.isf(stats.t.sf(np.abs(t), found.df)) ** 2).sum()
    time = np.arange(8) - weight @ np.arange(8) / weight.sum()
    slope = (weight * time) @ gap / np.sqrt((weight * time) @ time)
    p = 2.0 * min(stats.chi2.sf(q, 7), 2.0 * stats.norm.sf(abs(slope)))
    assert moving_pvalue(found) == pytest.approx(min(1.0, p), rel=1e-6)


def test_few_batches_and_few_rounds_tell_nothing() -> None:
    for data in (frame(0.6, batches=2), frame(0.6, size=12)):
        (note,) = [one for one in fit(data).notes if "constant over time" in one]
        assert "Cannot be checked from this log" in note.partition("constant over time")[0]
    alarms = sum(says(fit(frame(0.0, 5, 40, seed)).cautions, batched.DIFFERENCE_MOVES) for seed in range(300))
    assert alarms <= 3
