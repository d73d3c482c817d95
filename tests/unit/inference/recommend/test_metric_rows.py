"""Rows of `recommend` for ratio metrics and covariate adjustment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.data import covariates, ratios
from adaptinf.claims.recommendations import NO_SEQUENCE_OF_RATIOS
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.recommend.recommendation import _beside
from adaptinf.inference.recommend.table import Recommendation
from adaptinf.log.validation import nested_options

ROUNDS = 2_000
PAIR = {"treatment": "b", "control": "a"}


def frame() -> pd.DataFrame:
    """Revenue of orders, four fifths of whose variance is explained by earlier spending."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.2, 0.8, size=10)[np.arange(ROUNDS) * 10 // ROUNDS]
    arm = (rng.random(ROUNDS) < share).astype(int)
    prior, orders = rng.normal(50.0, 10.0, ROUNDS), rng.poisson(2.0, ROUNDS)
    reward = 0.2 * (prior - 50.0) + 0.3 * arm + rng.normal(size=ROUNDS) + 5.0 * orders
    rows = pd.DataFrame({"arm": np.array(["a", "b"])[arm], "y": reward, "prior": prior, "orders": orders})
    return rows.assign(
        p_a=1.0 - share, p_b=share, user=np.arange(ROUNDS) // 2, batch=np.arange(ROUNDS) // 200
    )


def log_of(rows: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    given: dict[str, Any] = {"context": "prior", "context_free": True, "propensities": "p_{arm}"}
    return ai.AdaptiveLog(
        rows, action="arm", reward="y", outcomes="orders", **nested_options(given | options)
    )


def checked(table: Recommendation) -> dict[str, float]:
    """Every valid row runs and says what it is; all others raise; lengths of the intervals by name."""
    found = {}
    for one in table.methods:
        if one.verdict.valid:
            result = one.run()
            low, high = result.conf_int().to_numpy()[0]
            assert result.validity == one.verdict.label
            found[one.verdict.name] = high - low
        elif not one.verdict.baseline and not one.call.startswith("ConfidenceSequence"):
            with pytest.raises((InvalidForLog, ParameterError)):
                one.run().conf_int_corrected()
    return found


def test_rows_of_ratios_run_and_expect_the_lengths_that_they_have() -> None:
    """Within 15%: scores of both columns leave no mean to the errors of inverse weighting."""
    table = ai.recommend(log_of(frame()), "contrast", **PAIR, denominator="orders")
    own, expected = checked(table), {one.verdict.name: one.verdict.length for one in table.methods}
    assert table.best.call.startswith("Contrast(log, treatment='b', control='a', denominator='orders').fit(")
    assert len(own) == 8
    for name, length in own.items():
        if "alee" not in name:
            assert expected[name] == pytest.approx(length, rel=0.15), name
    assert says(table.fit().notes, ratios.ESTIMATED, reward="y", below="orders")
    reasons = table.frame.set_index("method")["reason"]
    assert says(reasons["batched"], ratios.DIFFERENCES_ALONE)
    assert says(reasons["betting sequence on sample means"], NO_SEQUENCE_OF_RATIOS)


def test_denominators_of_one_change_no_verdict_on_scores() -> None:
    rows = frame().assign(ones=1.0)
    plain = ai.recommend(log_of(rows)).frame.set_index("method")
    ratio = ai.recommend(log_of(rows), denominator=rows["ones"]).frame.set_index("method")
    for name in ("aipw with sqrt weights", "aipw with uniform weights", "alee"):
        assert ratio.loc[name, "label"] == plain.loc[name, "label"]
        assert ratio.loc[name, "reason"] == plain.loc[name, "reason"]
        assert ratio.loc[name, "length"] == pytest.approx(plain.loc[name, "length"], rel=1e-12)


def test_rows_with_covariates_come_before_those_without_and_are_shorter() -> None:
    table = ai.recommend(log_of(frame()), "contrast", **PAIR, denominator="orders", covariate="prior")
    own = checked(table)
    first, second = (one.verdict for one in table.methods[:2])
    assert (first.name, second.name) == (
        "aipw with combined weights, adjusted",
        "aipw with combined weights",
    )
    assert first.length / second.length == pytest.approx(own[first.name] / own[second.name], rel=0.05)
    assert says(first.assumes, covariates.UNMOVED, names="prior")
    assert table.best.call.endswith("fit(estimator='aipw', weights='combined', covariate='prior')")
    assert says(table.fit().notes[0], covariates.VARIANCE, names="prior")


def test_sequences_stand_beside_the_valid_method_that_leaves_least_unanswered() -> None:
    rows = ai.recommend(log_of(frame()), "contrast", **PAIR).methods
    valid, *_ = [row for row in rows if row.verdict.valid]
    other = replace(valid, verdict=replace(valid.verdict, unanswered=2))
    refused = replace(valid, verdict=replace(valid.verdict, label="not valid", unanswered=2))
    found = [[row.verdict.unanswered for row in _beside(least, rows)] for least in ([refused], [other], [])]
    assert found == [[0] * len(rows), [2] * len(rows), [0] * len(rows)]


def test_what_is_refused_and_why() -> None:
    log = log_of(frame(), batch="batch")
    for given in ({"denominator": "orders"}, {"covariate": "prior"}):
        with pytest.raises(InvalidForLog, match="expected lengths can be computed only from rows"):
            ai.recommend(ai.Sums.of_log(log), **given)
    gaps = frame()
    gaps.loc[3, "y"] = np.nan
    missing = ai.recommend(log_of(gaps, missing="drop"), covariate="prior")
    reasons = missing.frame.set_index("method")["reason"]
    taken_out = covariates.TAKEN_OUT(names="prior")
    assert taken_out in reasons["aipw with uniform weights, adjusted"]
    checked(missing)
    ratios = ai.recommend(log_of(gaps, missing="drop"), denominator="orders")
    assert {one.verdict.reason for one in ratios.methods} == {"rewards are missing"}
    late = frame().assign(seen=np.arange(ROUNDS) + 3)
    checked(ai.recommend(log_of(late, outcome_round="seen"), covariate="prior"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"denominator": "nothing"}, "denominator: there is no column 'nothing'"),
        ({"covariate": "orders"}, "covariate 'orders' is not a context of the log"),
        ({"target": "policy-value", "policy": "a", "covariate": "prior"}, "covariate does not apply to"),
    ],
)
def test_bad_arguments(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        ai.recommend(log_of(frame()), **given)
