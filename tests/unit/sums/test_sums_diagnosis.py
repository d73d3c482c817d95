"""Diagnosis of sums beside that of the rows, and beside slow sums over the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import diagnosis as claims
from adaptinf.inference.diagnostics.sums_checks import batch_score_sums, largest_batch_wealth
from adaptinf.inference.scores.batch_sums import batch_means

SIZES = (40, 160, 90, 200, 120, 190)
SHARES = np.array([0.45, 0.35, 0.2])
SAME = ("propensity calibration", "sample ratio", "decay of propensities", "effective sample size", "overlap")
NAMES = {"batch": "day", "arm": "arm", "n": "n", "sum": "sum", "sum_squares": "squares"}


def batched(seed: int, *, drift: float = 0.0, within: float = 0.0) -> ai.AdaptiveLog:
    """Normal rewards of three arms; propensities move from batch to batch, and within by up to `within`."""
    rng = np.random.default_rng(seed)
    parts = []
    for day, n in enumerate(SIZES):
        share = np.roll(SHARES, day % 3) + within * rng.uniform(-1.0, 1.0, (n, 1)) * np.array(
            [1.0, -1.0, 0.0]
        )
        arm = (rng.random((n, 1)) > np.cumsum(share, axis=1)[:, :-1]).sum(axis=1)
        reward = 5.0 + 0.2 * arm + drift * day + rng.normal(size=n)
        columns = {"day": day, "arm": arm, "y": reward}
        parts.append(pd.DataFrame(columns | {f"propensity_{k}": share[:, k] for k in range(3)}))
    rows = pd.concat(parts, ignore_index=True)
    return ai.AdaptiveLog(rows, action="arm", reward="y", batch="day")


def rows_of(diagnosis: Any, names: tuple[str, ...]) -> pd.DataFrame:
    frame = diagnosis.to_frame()
    return frame[frame["check"].isin(names)].reset_index(drop=True)


def test_what_no_outcome_model_enters_is_that_of_the_rows() -> None:
    log = batched(1)
    found, rows = (ai.diagnose(data) for data in (ai.Sums.of_log(log), log))
    first, second = (rows_of(each, SAME).drop(columns="p_holm") for each in (found, rows))
    pd.testing.assert_frame_equal(first, second, rtol=1e-9)
    for name in ("calibration", "decay"):
        pd.testing.assert_frame_equal(found.tables[name], rows.tables[name], rtol=1e-9)
    np.testing.assert_allclose(found.tables["drift"]["sd"], rows.tables["drift"]["sd"], rtol=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "by batch"])
def test_scores_are_sums_over_rows(kind: str) -> None:
    log = batched(2, within=0.1)
    arrays, codes = log.arrays, np.array([0, 2])
    assert arrays.batch is not None
    assert arrays.propensity is not None
    h = np.ones((6, 2)) if kind == "uniform" else np.random.default_rng(0).uniform(0.5, 2.0, (6, 2))
    group = np.array([0, 0, 1, 1, 2, 2])
    found = batch_score_sums(ai.Sums.of_log(log).cells, codes, h, group)

    predicted, _ = batch_means(arrays.action, arrays.reward, arrays.batch, codes, 3)
    own = arrays.action[:, None] == codes
    score = predicted + own * (arrays.reward[:, None] - predicted) / arrays.propensity[:, None]
    weight, ends = h[arrays.batch], np.cumsum(SIZES)
    time = ((ends - 0.5 * np.array(SIZES)) / ends[-1])[arrays.batch][:, None]
    total = weight.sum(axis=0)
    estimate = (weight * score).sum(axis=0) / total
    away = time - (weight * time).sum(axis=0) / total
    spread = (weight * away**2).sum(axis=0)
    pulls = own.sum(axis=0)
    mean = (own * arrays.reward[:, None]).sum(axis=0) / pulls
    slope = weight * away * (score - estimate) / spread
    change = own * (arrays.reward[:, None] - mean) / pulls - weight * (score - estimate) / total
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(found.estimate, estimate, **close)
    np.testing.assert_allclose(found.mean, mean, **close)
    np.testing.assert_allclose(found.change, mean - estimate, **close)
    np.testing.assert_allclose(found.change_covariance, change.T @ change, **close)
    np.testing.assert_allclose(found.drift, (weight * away * score).sum(axis=0) / spread, **close)
    np.testing.assert_allclose(found.drift_covariance, slope.T @ slope, **close)
    for place in range(3):
        inside = group[arrays.batch] == place
        size = weight[inside].sum(axis=0)
        level = (weight * score)[inside].sum(axis=0) / size
        np.testing.assert_allclose(found.group_mean[place], level, **close)
        squares = ((weight * (score - level))[inside] ** 2).sum(axis=0)
        np.testing.assert_allclose(found.group_variance[place], squares / size**2, **close)


def test_bets_on_batches_are_products_over_their_rounds() -> None:
    pulls, shares = (
        np.array([[6.0, 4.0], [9.0, 1.0], [2.0, 8.0]]),
        np.array([[0.5, 0.5], [0.6, 0.4], [0.3, 0.7]]),
    )
    seen, due, wealth, largest = np.full(2, 10.0), np.full(2, 10.0), 0.0, 0.0
    for count, share in zip(pulls, shares, strict=True):
        bet = share * seen / due
        bet /= bet.sum()
        wealth += float(count @ np.log(bet / share))
        largest = max(largest, wealth)
        seen, due = seen + count, due + share * count.sum()
    assert largest_batch_wealth(pulls, shares, 10.0) == pytest.approx(largest, rel=1e-12)
    assert largest > 0.0


def test_drift_is_found() -> None:
    still, moved = (ai.diagnose(ai.Sums.of_log(batched(3, drift=drift))) for drift in (0.0, 0.2))
    assert still.concerns == ()
    assert {row.name for row in moved.concerns} >= {"common drift", "drift over time", "drift by batch"}


def test_propensities_that_vary_within_batches_say_what_sums_lack() -> None:
    found = ai.diagnose(ai.Sums.of_log(batched(4, within=0.1)))
    (row,) = found.check("sample ratio")
    assert says(row.claims, claims.VARY_IN_BATCHES)
    assert found.check("propensity calibration", 0)[0].measure.startswith("chi2")
    assert found.check("propensity calibration", "all arms")[0].advice == row.advice
    assert found.check("overlap", 0)[0].measure == claims.BATCHES_BELOW(limit=0.01)
    declared = ai.diagnose(ai.Sums.of_log(batched(4)), expected=[1, 1, 1]).check("sample ratio")[0]
    assert declared.statistic == pytest.approx(
        ai.diagnose(batched(4), expected=[1, 1, 1]).check("sample ratio")[0].statistic, rel=1e-9
    )


def test_shares_are_not_held_against_the_choices_they_were_made_of() -> None:
    table = ai.Sums.of_log(batched(5)).frame.rename(columns={"batch": "day", "sum_squares": "squares"})
    found = ai.diagnose(ai.Sums(table.drop(columns="propensity"), **NAMES))
    for name in ("propensity calibration", "sample ratio", "sample ratio, anytime"):
        (row,) = found.check(name)
        assert says(row.claims, claims.CIRCULAR)
    assert math.isfinite(found.check("sample mean against AIPW", 0)[0].statistic)
