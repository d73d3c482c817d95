"""Covariate adjustment: what it saves, what does not change it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.scores.outcome_models import running_standardised

ROUNDS = 1_000


def frame(seed: int = 0) -> pd.DataFrame:
    """Four fifths of the rewards' variance is explained by what was spent before."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.2, 0.8, size=10)[np.arange(ROUNDS) * 10 // ROUNDS]
    arm = (rng.random(ROUNDS) < share).astype(int)
    prior = rng.normal(50.0, 10.0, size=ROUNDS)
    reward = 0.2 * (prior - 50.0) + 0.3 * arm + rng.normal(size=ROUNDS)
    rows = pd.DataFrame({"arm": np.array(["a", "b"])[arm], "y": reward, "prior": prior})
    rows["city"] = np.array(["x", "y", "z"])[rng.integers(3, size=ROUNDS)]
    return rows.assign(p_a=1.0 - share, p_b=share, orders=rng.poisson(2.0, size=ROUNDS) + 1.0)


def log_of(rows: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    given: dict[str, Any] = {"context": ["prior", "city"], "context_free": True, "propensities": "p_{arm}"}
    return ai.AdaptiveLog(rows, action="arm", reward="y", **(given | options))


def test_the_variance_falls_by_what_is_explained() -> None:
    """To a fifth for a difference, but for what the first rounds cost; the ratio is that of two fits."""
    log = log_of(frame())
    model = ai.Contrast(log, treatment="b", control="a")
    result, plain = model.fit(covariate="prior"), model.fit(estimator="aipw")
    ratio = result.details["variance_ratio"][0]
    assert ratio == pytest.approx((result.std_error[0] / plain.std_error[0]) ** 2, rel=1e-12)
    assert 0.18 < ratio < 0.26
    assert f"the variance is {ratio:.2f} times that without it" in result.notes[0]
    assert result.estimate[0] == pytest.approx(0.3, abs=4.0 * result.std_error[0])
    means = ai.ArmMeans(log).fit(covariate="prior")
    low, high = sorted(means.details["variance_ratio"])
    assert f"variances are {low:.2f} to {high:.2f} times those without it" in means.notes[0]


def test_a_covariate_that_explains_nothing_costs_little() -> None:
    rows = frame().assign(prior=np.random.default_rng(9).normal(size=ROUNDS))
    result = ai.Contrast(log_of(rows), treatment="b", control="a").fit(covariate="prior")
    assert result.details["variance_ratio"][0] == pytest.approx(1.0, abs=0.02)


def test_its_unit_and_origin_change_nothing() -> None:
    rows = frame()
    one = ai.ArmMeans(log_of(rows)).fit(covariate="prior")
    other = ai.ArmMeans(log_of(rows.assign(prior=1e6 + 1e-3 * rows["prior"]))).fit(covariate="prior")
    np.testing.assert_allclose(other.estimate, one.estimate, rtol=1e-6)
    np.testing.assert_allclose(other.std_error, one.std_error, rtol=1e-6)


def test_other_contexts_have_no_part_and_labels_may() -> None:
    rows = frame()
    alone = ai.ArmMeans(log_of(rows, context=["prior"])).fit(covariate="prior")
    np.testing.assert_array_equal(ai.ArmMeans(log_of(rows)).fit(covariate="prior").estimate, alone.estimate)
    both = ai.ArmMeans(log_of(rows)).fit(covariate=["prior", "city"])
    assert "by prior, city" in both.notes[0]
    assert not np.array_equal(both.estimate, alone.estimate)


def test_standardised_rows_look_back() -> None:
    x = np.random.default_rng(3).normal(5.0, 2.0, size=(50, 2))
    found = running_standardised(x)
    np.testing.assert_array_equal(running_standardised(x[:20]), found[:20])
    np.testing.assert_allclose(found[-1], (x[-1] - x.mean(axis=0)) / x.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(running_standardised(np.full((9, 1), 1e9)), np.zeros((9, 1)))


def test_ratio_metrics_and_contrasts_take_covariates() -> None:
    rows = frame()
    rows["y"] = rows["orders"] * (rows["y"] + 10.0)
    log = log_of(rows)
    result = ai.Contrasts(log, control="a", denominator=rows["orders"]).fit(covariate="prior")
    assert 0.15 < result.details["variance_ratio"][0] < 0.4
    one = ai.Contrast(log, treatment="b", control="a", denominator=rows["orders"]).fit(covariate="prior")
    assert result.std_error[0] == one.std_error[0]
    lift = ai.Contrasts(log, control="a").fit(covariate="prior", lift=True)
    model = ai.ArmMeans(log).fit(covariate="prior", weights="uniform")
    assert lift.std_error[0] < 2.0 * model.std_error.sum() / model.estimate[0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("nothing", "covariate 'nothing' is no context of the log, whose contexts are 'prior', 'city'"),
        ("y", "covariate 'y' is no context"),
        ([], "covariate names no column"),
        (["prior", "prior"], "covariate names a column more than once"),
        (3, "covariate must be a list of labels"),
        ([["prior"]], "covariate must be given by labels"),
    ],
)
def test_bad_covariates(given: Any, told: str) -> None:
    log = log_of(frame())
    for model in (ai.ArmMeans(log), ai.Contrast(log, treatment="b", control="a")):
        with pytest.raises(ParameterError, match=told):
            model.fit(covariate=given)


def test_what_takes_no_covariate() -> None:
    rows = frame()
    log = log_of(rows)
    with pytest.raises(ParameterError, match="leave outcome= out"):
        ai.ArmMeans(log).fit(covariate="prior", outcome="running-ridge")
    with pytest.raises(ParameterError, match="covariate= belongs to aipw, not to 'sample-mean'"):
        ai.ArmMeans(log).fit("sample-mean", covariate="prior")
    with pytest.raises(ParameterError, match="ridge must be positive"):
        ai.ArmMeans(log).fit(covariate="prior", ridge=0.0)
    with pytest.raises(InvalidForLog, match="needs propensities"):
        ai.ArmMeans(log_of(rows, propensities=None)).fit(covariate="prior")
    with pytest.raises(InvalidForLog, match="rows"):
        ai.ArmMeans(ai.Sums.of_log(log_of(rows.assign(week=0), batch="week"))).fit(covariate="prior")
    late = rows.assign(known=np.arange(ROUNDS) + 30, week=np.arange(ROUNDS) // 100)
    with pytest.raises(InvalidForLog, match="fitted on rewards before they were known"):
        ai.ArmMeans(log_of(late, outcome_round="known", batch="week")).fit(
            covariate="prior", outcome="batch-mean"
        )
