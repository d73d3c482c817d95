"""Batches in which all rewards are equal: the default is a method that answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from claims_said import says

import adaptinf as ai
from adaptinf.claims.arms import batched, sample_means
from adaptinf.claims.regression import adjusted_regression


def frame(size: int = 10, low: float = 0.1) -> pd.DataFrame:
    """Shares and success rates follow the hour; at low rates some batches have no success."""
    rng = np.random.default_rng(1)
    batch = np.arange(960) // size
    busy = (batch * size // 10) % 24 > 12
    share = np.where(busy, 0.8, 0.3)
    treated = rng.random(960) < share
    reward = (rng.random(960) < np.where(busy, low + 0.3, low)).astype(float)
    own = np.where(treated, share, 1.0 - share)
    return pd.DataFrame({"arm": np.where(treated, "B", "A"), "y": reward, "hour": batch, "p": own})


def log_of(rows: pd.DataFrame, **given: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(rows, action="arm", reward="y", batch="hour", adaptive=False, **given)


def test_a_contrast_answers_and_says_why_batches_do_not() -> None:
    log = log_of(frame())
    found = ai.Contrast(log, treatment="B", control="A")
    assert np.isnan(found.fit("batched").params.iloc[0])
    result = found.fit()
    assert result.estimator == "sample-mean"
    assert np.isfinite(result.conf_int().to_numpy()).all()
    assert says(result.cautions, sample_means.MOVED[2])
    assert not says(result.cautions, sample_means.MOVED[1])
    rows = ai.recommend(log, "contrasts", control="A").methods
    assert rows[0].verdict.name == "sample-mean"
    assert says([row.verdict.warning for row in rows if row.verdict.name == "batched"], batched.UNVARYING)
    assert ai.Contrasts(log, control="A").fit().estimator == "sample-mean"


def test_sums_answer_too() -> None:
    sums = ai.aggregate(frame(), action="arm", reward="y", batch="hour", adaptive=False)
    found = ai.Contrast(sums, treatment="B", control="A")
    assert np.isnan(found.fit("batched").params.iloc[0])
    assert np.isfinite(found.fit().conf_int().to_numpy()).all()
    rows = ai.recommend(sums, "contrasts", control="A").methods
    assert says([row.verdict.warning for row in rows if row.verdict.name == "batched"], batched.UNVARYING)


def test_batches_that_answer_still_come_first() -> None:
    result = ai.Contrast(log_of(frame(40, 0.3)), treatment="B", control="A").fit()
    assert result.estimator == "batched"
    assert np.isfinite(result.params.iloc[0])


def test_a_regression_is_weighted_where_batches_do_not_answer() -> None:
    log = log_of(frame(), propensity="p")
    model = ai.AdaptiveOLS.from_formula("y ~ C(arm)", log)
    result = model.fit()
    assert result.adjustment == "weighted"
    pd.testing.assert_series_equal(result.params, model.fit("weighted").params)
    alone = model.fit("batched")
    assert alone.params.isna().all()
    assert says(alone.cautions, adjusted_regression.CONSTANT_IN_A_BATCH)
    assert ai.AdaptiveOLS.from_formula(
        "y ~ C(arm)", log_of(frame(40, 0.3), propensity="p")
    ).fit().adjustment == ("batched")
