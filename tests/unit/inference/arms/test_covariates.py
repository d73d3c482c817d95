"""Covariate adjustment: what it saves, what does not change it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording

import adaptinf as ai
from adaptinf.claims import propensities
from adaptinf.claims.data import covariates
from adaptinf.claims.data.outcome_models import RIDGE
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.scores.outcome_predictions import running_standardised
from adaptinf.log.validation import nested_options

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
    return ai.AdaptiveLog(rows, action="arm", reward="y", **nested_options(given | options))


def test_the_variance_falls_by_what_is_explained() -> None:
    """To a fifth for a difference, but for what the first rounds cost; the ratio is that of two fits."""
    log = log_of(frame())
    model = ai.Contrast(log, treatment="b", control="a")
    result, plain = model.fit(covariate="prior"), model.fit(estimator="aipw")
    ratio = result.details["variance_ratio"][0]
    assert ratio == pytest.approx((result.std_error[0] / plain.std_error[0]) ** 2, rel=1e-12)
    assert 0.18 < ratio < 0.26
    assert says(result.notes[0], covariates.VARIANCE, names="prior", ratio=f"{ratio:.2f}")
    assert result.estimate[0] == pytest.approx(0.3, abs=4.0 * result.std_error[0])
    means = ai.ArmMeans(log).fit(covariate="prior")
    low, high = sorted(means.details["variance_ratio"])
    assert says(means.notes[0], covariates.VARIANCE, names="prior", ratio=f"{low:.2f} to {high:.2f}")


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
    assert says(both.notes[0], covariates.VARIANCE, names="prior, city")
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
        ("nothing", "covariate 'nothing' is not a context of the log, whose contexts are 'prior', 'city'"),
        ("y", "covariate 'y' is not a context"),
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
    with pytest.raises(ParameterError, match="model: omit outcome="):
        ai.ArmMeans(log).fit(covariate="prior", outcome="running-ridge")
    with pytest.raises(ParameterError, match="covariate= applies to aipw, not to 'sample-mean'"):
        ai.ArmMeans(log).fit("sample-mean", covariate="prior")
    with pytest.raises(ParameterError, match="ridge must be positive"):
        ai.ArmMeans(log).fit(covariate="prior", ridge=0.0)
    with pytest.raises(InvalidForLog, match=wording(propensities.NEEDED)):
        ai.ArmMeans(log_of(rows, propensities=None)).fit(covariate="prior")
    with pytest.raises(InvalidForLog, match="rows"):
        ai.ArmMeans(ai.Sums.of_log(log_of(rows.assign(week=0), batch="week"))).fit(covariate="prior")
    late = rows.assign(known=np.arange(ROUNDS) + 30, week=np.arange(ROUNDS) // 100)
    with pytest.raises(InvalidForLog, match="use rewards before they were known"):
        ai.ArmMeans(log_of(late, outcome_round="known", batch="week")).fit(
            covariate="prior", outcome="batch-mean"
        )


# Late and missing outcomes


def incomplete(seed: int, rounds: int = 300, *, late: bool, missing: bool) -> pd.DataFrame:
    """Outcomes up to 60 rounds late, and missing by arm and city, whose levels differ."""
    rng = np.random.default_rng(seed)
    rows = frame(seed).head(rounds)
    rows["y"] += rows["city"].map({"x": 0.0, "y": 1.0, "z": 3.0})
    if late:
        rows["known"] = np.arange(1, rounds + 1) + rng.integers(0, 60, rounds)
    if missing:
        chance = np.where(rows["arm"] == "b", 0.3, 0.1) + 0.3 * (rows["city"] == "z")
        rows.loc[rng.random(rounds) < chance, "y"] = np.nan
    return rows


def incomplete_log(rows: pd.DataFrame) -> ai.AdaptiveLog:
    options: dict[str, Any] = {"outcome_round": "known"} if "known" in rows else {}
    return log_of(rows, **options, missing="drop" if rows["y"].isna().any() else None)


def literal_ridge(rows: pd.DataFrame, arm: str, strata: np.ndarray | None) -> np.ndarray:
    """For each round a ridge regression from scratch on the arm's rewards that were there by then."""
    rounds, y, arms = len(rows), rows["y"].to_numpy(), rows["arm"].to_numpy()
    x = np.column_stack([np.ones(rounds), running_standardised(rows[["prior"]].to_numpy())])
    if strata is not None:
        x = np.column_stack([x, strata == 1, strata == 2])
    known = rows["known"].to_numpy() if "known" in rows else np.arange(1, rounds + 1)
    there = np.flatnonzero(~np.isnan(y))
    origin = y[min(there, key=lambda s: (known[s], s))]
    found = np.empty(rounds)
    for t in range(rounds):
        past = there[(known[there] <= t) & (arms[there] == arm)]
        gram = x[past].T @ x[past] + np.eye(x.shape[1])
        found[t] = origin + x[t] @ np.linalg.solve(gram, x[past].T @ (y[past] - origin))
    return found


@pytest.mark.parametrize(("late", "missing"), [(True, False), (False, True), (True, True)])
def test_predictions_know_what_was_known(late: bool, missing: bool) -> None:
    """Against regressions from scratch: scores of all rounds, and weights from the first known reward on."""
    rows = incomplete(1, late=late, missing=missing)
    strata = np.unique(rows["city"], return_inverse=True)[1] if missing else None
    result = ai.ArmMeans(incomplete_log(rows)).fit(covariate="prior", weights="uniform", keep_scores=True)
    assert result.scores is not None
    y, known = rows["y"].to_numpy(), rows["known"].to_numpy() if late else np.arange(1, len(rows) + 1)
    for place, arm in enumerate("ab"):
        m, chosen = literal_ridge(rows, arm, strata), (rows["arm"] == arm).to_numpy()
        there = chosen & ~np.isnan(y)
        share = np.ones(len(rows))
        if strata is not None:
            for t in range(len(rows)):
                for mine in (chosen[:t], chosen[:t] & (strata[:t] == strata[t])):
                    if (mine & there[:t]).any():
                        share[t] = (mine & there[:t]).sum() / mine.sum()
        wanted = m + np.where(there, (np.nan_to_num(y) - m) / (rows[f"p_{arm}"] * share), 0.0)
        own = there if missing else ~np.isnan(y)
        first = np.array([np.any(own & (known <= t)) for t in range(len(rows))])
        np.testing.assert_array_equal(result.scores["weights"][:, place] > 0.0, first)
        np.testing.assert_allclose(result.scores["scores"][first, place], wanted[first], rtol=1e-9)
    assert says(result.notes, RIDGE, names="prior", known=" known at the time" if late else "")
    assert 0.1 < result.details["variance_ratio"].min() < 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("late", "missing"), [(True, False), (True, True)])
def test_they_cover_what_is_late_and_missing(late: bool, missing: bool) -> None:
    """150 logs whose outcomes are missing by arm and city."""
    covered, ratios = 0, []
    for seed in range(150):
        log = incomplete_log(incomplete(seed + 50, 800, late=late, missing=missing))
        result = ai.Contrast(log, treatment="b", control="a").fit(covariate="prior")
        low, high = result.conf_int().to_numpy()[0]
        covered += low <= 0.3 <= high
        ratios.append(result.details["variance_ratio"][0])
    assert abs(covered / 150 - 0.95) < 4.0 * np.sqrt(0.05 * 0.95 / 150)
    assert np.mean(ratios) < 0.45


def test_running_ridge_of_all_contexts_is_as_late() -> None:
    rows = incomplete(3, late=True, missing=False).drop(columns="city")
    log = log_of(rows, outcome_round="known", context="prior")
    found = ai.ArmMeans(log).fit("aipw", outcome="running-ridge", keep_scores=True)
    later = rows.assign(y=rows["y"].where(rows["known"] <= 100, 1e3))
    moved = ai.ArmMeans(log_of(later, outcome_round="known", context="prior")).fit(
        "aipw", outcome="running-ridge", keep_scores=True
    )
    assert found.scores is not None
    assert moved.scores is not None
    unmoved = np.isin(np.arange(300), np.flatnonzero(rows["known"] <= 100)) & (np.arange(300) <= 100)
    np.testing.assert_allclose(found.scores["scores"][unmoved], moved.scores["scores"][unmoved], rtol=1e-9)


def test_bounds_and_recommendations_take_covariates() -> None:
    rows = incomplete(4, late=False, missing=True)
    log = incomplete_log(rows)
    best = ai.recommend(log, "contrast", covariate="prior").best
    assert best.verdict.name == "aipw with combined weights, adjusted"
    assert best.run().details["variance_ratio"][0] < 0.6
    ends = log_of(rows, missing="worst", reward_range=(-20.0, 20.0))
    found = ai.Contrast(ends, treatment="b", control="a").fit(covariate="prior")
    plain = ai.Contrast(ends, treatment="b", control="a").fit(estimator="aipw")
    assert np.isfinite(found.conf_int().to_numpy()).all()
    assert abs(found.estimate[0] - plain.estimate[0]) < 4.0 * plain.std_error[0]
