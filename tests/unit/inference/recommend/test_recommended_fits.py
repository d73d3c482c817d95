"""What `recommend` lists as valid can be fitted, and gives an interval unless its row says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.claims import policies, rare_outcomes
from adaptinf.claims.arms import winners
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog, LogArrays

WITHOUT = (
    rare_outcomes.UNANSWERED,
    policies.ALL_EQUAL,
    policies.HARDLY_CHOSEN,
    winners.HARDLY_CHOSEN,
    winners.HARDLY_VARIED,
    winners.VERY_LONG,
)
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("arm-means", {}),
    ("contrast", {"treatment": "b", "control": "a"}),
    ("contrasts", {"control": "a"}),
    ("winner", {}),
    ("winner", {"runner_up": True}),
    ("winner", {"control": "a"}),
    ("policy-value", {"policy": "a"}),
    ("policy-value", {"policy": "uniform"}),
)
SEEDS = 24


def odd_log(seed: int) -> AdaptiveLog:
    """Few or many rounds, arms hardly chosen, rewards that are rare, equal, skewed, or rare in one arm."""
    rng = np.random.default_rng(seed)
    size, rounds = (2, 2, 3)[seed % 3], (30, 120, 400)[seed // 3 % 3]
    shares = {
        0: lambda: np.full((rounds, size), 1.0),
        1: lambda: 0.05 + rng.dirichlet(np.full(size, 0.4), rounds // 10).repeat(10, axis=0),
        2: lambda: 0.1 + rng.dirichlet(np.full(size, 0.7), 4)[np.arange(rounds) * 4 // rounds],
    }[seed % 4 % 3]()
    shares /= shares.sum(axis=1, keepdims=True)
    action = (rng.random((rounds, 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
    rate = ((0.04,) * 3, (0.5,) * 3, (0.01,) * 3, (0.01, 0.4, 0.4), (0.0,) * 3, (0.1,) * 3)[seed % 6]
    reward = (rng.random(rounds) < np.array(rate)[action]).astype(float)
    if seed % 6 == 5:
        reward *= rng.lognormal(size=rounds)
    own = shares[np.arange(rounds), action]
    known = {} if seed % 5 == 4 else {"propensity": own, "propensities": shares}
    batch = {"batch": np.arange(rounds) * 4 // rounds} if known and seed % 4 == 2 else {}
    arrays = LogArrays(action, reward, **known, **batch)
    return AdaptiveLog.from_arrays(
        arrays, arms=tuple("abc"[:size]), reward_range=(0, 1) if seed % 6 < 5 else None
    )


def says_so(warning: str) -> bool:
    """Whether a row says that it may give no interval."""
    return any(claim.sentence.partition("{")[0] in warning for claim in WITHOUT)


@pytest.mark.filterwarnings("ignore::adaptinf.errors.AdaptinfWarning")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_valid_rows_give_intervals_or_say_that_they_do_not(seed: int) -> None:
    log = odd_log(seed)
    for target, given in ASKED:
        if target == "policy-value" and log.arrays.propensity is None:
            continue
        rows = [row for row in ai.recommend(log, target, **given).methods if row.verdict.valid]
        for row in rows if target == "winner" else rows[:1]:
            ends = row.run().conf_int().to_numpy()
            assert np.isfinite(ends).all() or says_so(row.verdict.warning), row.call


def test_a_held_out_batch_compares_the_winner_by_weights_of_both() -> None:
    rng = np.random.default_rng(3)
    shares = np.array([[0.5, 0.5], [0.3, 0.7], [0.2, 0.8]]).repeat(100, axis=0)
    action = (rng.random(300) > shares[:, 0]).astype(np.int64)
    arrays = LogArrays(
        action,
        rng.normal(size=300) + action,
        batch=np.arange(300) // 100,
        propensity=shares[np.arange(300), action],
        propensities=shares,
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    found = ai.Winner(log, control="a").fit("aipw", "joint", held_out=1)
    pair = ai.Contrast(log, treatment="b", control="a", rounds=np.arange(300) >= 200).fit("aipw", "combined")
    np.testing.assert_array_equal(found.conf_int().to_numpy(), pair.conf_int().to_numpy())


def test_several_contrasts_by_batch_allow_a_pair_without_variance() -> None:
    action = np.tile([0, 1, 2], 100)
    reward = np.where(action == 2, np.arange(300) % 7 > 3, 0.0).astype(float)
    known = {"propensity": np.full(300, 1 / 3), "propensities": np.full((300, 3), 1 / 3)}
    log = AdaptiveLog.from_arrays(
        LogArrays(action, reward, batch=np.arange(300) // 100, **known), arms=("a", "b", "c")
    )
    ends = ai.Contrasts(log, control="a").fit("batched").conf_int().to_numpy()
    assert np.isnan(ends[0]).all()  # b and a have no success
    ends = ai.Contrasts(log, control="c").fit("batched").conf_int().to_numpy()
    one = ai.Contrast(log, treatment="a", control="c").fit("batched").conf_int().to_numpy()
    np.testing.assert_array_equal(ends[:1], one)


def test_a_winner_with_three_successes_has_limits_by_counts_alone() -> None:
    rng = np.random.default_rng(0)
    shares = np.clip(0.5 + 0.3 * np.sin(np.arange(600) / 30), 0.1, 0.9)[:, None] * [1, -1] + [0, 1]
    action = (rng.random(600) > shares[:, 0]).astype(np.int64)
    reward = np.zeros(600)
    reward[np.flatnonzero(action == 0)[[40, 80, 120]]] = 1.0
    reward[np.flatnonzero(action == 1)[::4]] = 1.0
    own = shares[np.arange(600), action]
    log = AdaptiveLog.from_arrays(
        LogArrays(action, reward, propensity=own, propensities=shares), arms=("a", "b")
    )
    rows = ai.recommend(log, "winner").methods
    assert rows[0].verdict.name == "projection of count-based intervals, aipw with joint weights"
    result = rows[0].run()
    limits = ai.ArmMeans(log).fit().conf_int(0.025).to_numpy()
    np.testing.assert_allclose(result.conf_int().to_numpy()[0], limits[1], rtol=1e-9)
    assert ai.recommend(log, "arm-means").methods[0].verdict.unanswered == 0
    with pytest.raises(InvalidForLog) as caught:
        ai.Winner(log).fit("aipw", "joint", test="t")
    assert "'a'" in caught.value.reason
