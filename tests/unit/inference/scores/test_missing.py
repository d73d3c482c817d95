"""Scores of rounds whose reward may be missing, against the formula written out round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adaptinf.inference.scores.missing import observed_counts, observed_scores, past_rewards, strata


def literal_past(
    action: Any, reward: Any, observed: Any, stratum: Any, code: int, known: Any, t: int
) -> tuple[float, float, int]:
    """Mean, share and count of one arm before one round, by filtering the rounds that were known by then."""
    before = [s for s in range(len(action)) if known[s] <= t]
    pooled = [reward[s] for s in before if observed[s]]
    drawn = [s for s in before if action[s] == code]
    seen = [s for s in drawn if observed[s]]
    mean = float(np.mean([reward[s] for s in seen])) if seen else float(np.mean(pooled)) if pooled else 0.0
    share = len(seen) / len(drawn) if seen else 1.0
    here = [s for s in seen if stratum[s] == stratum[t]]
    if here:
        mean = float(np.mean([reward[s] for s in here]))
        share = len(here) / sum(stratum[s] == stratum[t] for s in drawn)
    return mean, share, len(seen)


def log_of(seed: int, rounds: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    observed = rng.random(rounds) < 0.6
    return {
        "action": rng.integers(0, 3, rounds),
        "reward": np.where(observed, rng.normal(5.0, 1.0, rounds), np.nan),
        "observed": observed,
        "stratum": rng.integers(0, 3, rounds),
    }


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_past_rewards_are_those_of_the_rounds_that_were_known(stratified: bool, late: bool) -> None:
    for seed in range(5):
        log = log_of(seed)
        rounds = len(log["action"])
        if not stratified:
            log["stratum"] = np.zeros(rounds, dtype=int)
        rng = np.random.default_rng(seed + 100)
        known = np.arange(1, rounds + 1) + (rng.integers(0, 20, rounds) if late else 0)
        known = np.minimum(known, rounds)
        codes = np.array([2, 0])
        found = past_rewards(**log, codes=codes, known=known if late else None)
        for j, code in enumerate(codes):
            for t in range(rounds):
                wanted = literal_past(*log.values(), code, known, t)
                got = found.mean[t, j], found.share[t, j], found.count[t, j]
                assert got == pytest.approx(wanted, abs=1e-12), (seed, t, code)


def test_no_row_depends_on_rewards_that_were_not_known() -> None:
    log, codes = log_of(7), np.arange(3)
    known = np.minimum(np.arange(1, 61) + 10, 60)
    before = past_rewards(**log, codes=codes, known=known)
    for s in np.flatnonzero(log["observed"])[:20]:
        changed = log["reward"].copy()
        changed[s] += 100.0
        after = past_rewards(**{**log, "reward": changed}, codes=codes, known=known)
        moved = np.flatnonzero((after.mean != before.mean).any(axis=1))
        assert moved.min(initial=60) >= known[s]


def test_scores_by_the_formula() -> None:
    rng = np.random.default_rng(3)
    chosen = np.eye(2)[rng.integers(0, 2, 30)]
    observed = rng.random(30) < 0.5
    reward = np.where(observed, rng.normal(size=30), np.nan)
    probability, outcome = rng.uniform(0.2, 1.0, (30, 2)), rng.normal(size=(30, 2))
    found = observed_scores(chosen, reward, observed, probability, outcome)
    for t in range(30):
        for k in range(2):
            gain = (reward[t] - outcome[t, k]) / probability[t, k] if chosen[t, k] and observed[t] else 0.0
            assert found[t, k] == pytest.approx(outcome[t, k] + gain, abs=1e-12)


def test_all_observed_is_the_running_mean() -> None:
    log = log_of(1)
    log |= {"observed": np.ones(60, dtype=bool), "reward": np.arange(60.0), "stratum": np.zeros(60, dtype=int)}
    found = past_rewards(**log, codes=np.arange(3))
    assert np.array_equal(found.share, np.ones((60, 3)))
    assert found.mean[59, 0] == pytest.approx(log["reward"][:59][log["action"][:59] == 0].mean())


def test_counts_by_arm() -> None:
    drawn, seen = observed_counts(np.array([0, 0, 1, 2]), np.array([True, False, True, False]), 4)
    assert drawn.tolist() == [2, 1, 1, 0]
    assert seen.tolist() == [1, 1, 0, 0]


def test_contexts_join_the_strata_while_these_are_few() -> None:
    context = {
        "town": np.array(["x", "y", "x", "y"], dtype=object),
        "age": np.array([20.5, 30.0, 41.0, 52.0]),
        "man": np.array([True, True, False, False]),
    }
    codes, used, left_out = strata(context, 4, most=4)
    assert (used, left_out) == (("town", "man"), ("age",))
    assert len(set(codes.tolist())) == 4
    assert strata({}, 4, most=4)[0].tolist() == [0, 0, 0, 0]
