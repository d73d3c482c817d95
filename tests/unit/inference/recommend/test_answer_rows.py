"""Rows of `recommend` for several contrasts, lifts, and the winner: from rows and from sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.arms import contrasts, winners
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.recommend.table import Recommendation

ARMS = ai.environments.BernoulliArms([0.4, 0.6, 0.5])
BATCHED = ai.designs.Thompson(floor=0.05, batch_size=100)


def log_of(design: Any = BATCHED, rounds: int = 1_000) -> ai.AdaptiveLog:
    return design.run(ARMS, rounds, rng=0)


def named(table: Recommendation) -> pd.DataFrame:
    return table.frame.set_index("method")


def runs_as_it_says(table: Recommendation) -> None:
    """Valid rows run and carry their label; others raise, or say in their notes that they are not valid."""
    for one in table.methods:
        if one.verdict.valid:
            assert one.run().validity == one.verdict.label, one.verdict.name
        elif one.verdict.baseline:
            assert one.run().validity == "not valid"
        else:
            with pytest.raises((InvalidForLog, ParameterError)):
                one.run().conf_int_corrected()


@pytest.mark.parametrize("design", [BATCHED, ai.designs.EpsilonGreedy(exploration=0.3), ai.designs.UCB()])
def test_the_first_row_is_what_the_models_do_by_themselves(design: Any) -> None:
    log = log_of(design)
    first = ai.recommend(log, "contrasts", control=0).fit()
    default = ai.Contrasts(log, control=0).fit()
    np.testing.assert_array_equal(first.conf_int_simultaneous(), default.conf_int_simultaneous())
    best, usual = ai.recommend(log, "winner").fit(), ai.Winner(log).fit()
    np.testing.assert_array_equal(best.conf_int(), usual.conf_int())
    against = ai.recommend(log, "winner", control=0)
    np.testing.assert_array_equal(against.fit().conf_int(), ai.Winner(log, control=0).fit().conf_int())


def test_rows_from_sums() -> None:
    log = log_of()
    sums = ai.Sums.of_log(log)
    for target, own in (("contrasts", {"control": 0}), ("winner", {}), ("winner", {"runner_up": True})):
        table = ai.recommend(sums, target, **own)
        runs_as_it_says(table)
        assert table.best.verdict.label == "asymptotic"
        assert "sums" in table.best.call
    held = named(ai.recommend(sums, "winner"))["reason"]
    assert "sums" in held[next(name for name in held.index if name.startswith("held-out"))]
    reasons = named(ai.recommend(sums, "contrasts", control=0))["reason"]
    assert reasons["aipw with combined weights"].endswith(contrasts.TOGETHER())


def test_lifts_need_means_of_both_arms() -> None:
    table = ai.recommend(log_of(), "contrasts", control=0, lift=True)
    runs_as_it_says(table)
    frame = named(table)
    assert frame.loc["batched", "reason"] == contrasts.NO_MEANS()
    assert table.best.call == (
        "Contrasts(log, control=0).fit(estimator='aipw', weights='combined', lift=True)"
    )
    few = ai.designs.EpsilonGreedy(exploration=0.3).run(
        ai.environments.BernoulliArms([0.01, 0.02]), 400, rng=0
    )
    warned = named(ai.recommend(few, "contrasts", control=0, lift=True))["warning"]
    assert says(warned["aipw with combined weights"], contrasts.SOME_WITHOUT, fewest=20)


def test_a_method_is_worth_for_all_pairs_what_it_is_for_the_worst() -> None:
    """Two batches of three lack an arm: batched least squares serves the other pair alone."""
    rng = np.random.default_rng(0)
    share = np.repeat([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]], 100, axis=0)
    action = (rng.random(300)[:, None] > np.cumsum(share, axis=1)[:, :2]).sum(axis=1)
    frame = pd.DataFrame({"arm": action, "y": rng.normal(size=300), "batch": np.arange(300) // 100})
    frame[["p0", "p1", "p2"]] = share
    log = ai.AdaptiveLog(frame, action="arm", reward="y", batch="batch", propensities="p{arm}")
    single = named(ai.recommend(log, "contrast", treatment=1, control=0))["label"]
    several = named(ai.recommend(log, "contrasts", control=0))
    assert single["batched"] == "asymptotic"
    assert several.loc["batched", "label"] == "not valid"
    assert several.loc["batched", "reason"].startswith("2 - 0: ")
    runs_as_it_says(ai.recommend(log, "contrasts", control=0))


def test_what_a_winner_is_refused_for() -> None:
    private = ai.designs.PrivateUCB(epsilon=0.05).run(ARMS, 800, rng=0)
    frame = named(ai.recommend(private, "winner"))
    reason = frame.loc["hybrid interval, sample-mean with corrected columns", "reason"]
    assert says(reason, winners.CORRECTED)
    log = log_of()
    held = named(ai.recommend(log, "winner"))
    assert held.filter(like="held-out", axis=0)["label"].tolist() == ["asymptotic"]
    lengths = held["length"]
    means = named(ai.recommend(log))["length"]
    pair = ("aipw with sqrt weights", "alee")
    assert lengths[f"hybrid interval, {pair[1]}"] / lengths[f"hybrid interval, {pair[0]}"] == pytest.approx(
        means[pair[1]] / means[pair[0]]
    )
    stopped = ai.recommend(log, "winner", stopping="data-chosen")
    assert not any(one.verdict.valid for one in stopped.methods)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"target": "contrasts"}, "requires control="),
        ({"target": "contrasts", "control": 0, "runner_up": True}, "runner_up does not apply"),
        ({"target": "winner", "lift": True}, "lift does not apply"),
        ({"target": "contrasts", "control": 9}, "9"),
        ({"target": "winner", "control": 0, "runner_up": True}, "two different comparisons"),
    ],
)
def test_bad_arguments(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        ai.recommend(log_of(), **given)
