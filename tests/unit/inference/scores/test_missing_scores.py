"""Scores of rounds whose reward may be missing, against the formula written out round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.scores.inverse import ArmScores
from adaptinf.inference.scores.missing import (
    SeenRounds,
    observed_counts,
    past_rewards,
    seen_scores,
    strata,
)


def literal_past(
    action: Any, reward: Any, observed: Any, stratum: Any, code: int, known: Any, t: int
) -> tuple[float, float, int]:
    """Mean, share and count of one arm before one round, by filtering earlier rounds and known rewards."""
    arrived = [s for s in range(len(action)) if known[s] <= t and observed[s]]
    pooled = [reward[s] for s in arrived]
    mine = [s for s in arrived if action[s] == code]
    drawn = [s for s in range(t) if action[s] == code]
    mean = float(np.mean([reward[s] for s in mine])) if mine else float(np.mean(pooled)) if pooled else 0.0
    share = float(np.mean([observed[s] for s in drawn])) if any(observed[s] for s in drawn) else 1.0
    if here := [reward[s] for s in mine if stratum[s] == stratum[t]]:
        mean = float(np.mean(here))
    cell = [observed[s] for s in drawn if stratum[s] == stratum[t]]
    return mean, float(np.mean(cell)) if any(cell) else share, len(mine)


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


@pytest.mark.parametrize("origin", [0.0, 3.0])
def test_scores_by_the_formula(origin: float) -> None:
    rng = np.random.default_rng(3)
    chosen = np.eye(2)[rng.integers(0, 2, 30)]
    observed = rng.random(30) < 0.5
    reward = np.where(observed, rng.normal(size=30), np.nan)
    e, pi, outcome = rng.uniform(0.2, 1.0, 30), rng.uniform(0.2, 1.0, 30), rng.normal(size=(30, 2))
    weights, ready = rng.random((30, 2)), rng.random((30, 2)) < 0.8
    complete = ArmScores(chosen, np.zeros((30, 2)), weights, origin)
    found = seen_scores(complete, reward, e, outcome, SeenRounds(observed, pi, ready))
    for t in range(30):
        for k in range(2):
            drawn = bool(chosen[t, k]) and bool(observed[t])
            gain = (reward[t] - outcome[t, k]) / (e[t] * pi[t]) if drawn else 0.0
            assert found.scores[t, k] + origin == pytest.approx(outcome[t, k] + gain, abs=1e-12)
            assert found.weights[t, k] == (weights[t, k] if ready[t, k] else 0.0)
            assert found.chosen[t, k] == drawn


def test_all_observed_is_the_running_mean() -> None:
    log = log_of(1)
    log |= {
        "observed": np.ones(60, dtype=bool),
        "reward": np.arange(60.0),
        "stratum": np.zeros(60, dtype=int),
    }
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


def adaptive_logs(runs: int, rounds: int, share: Any) -> dict[str, Any]:
    """Epsilon-greedy of .2 on the observed rewards, all runs at once; share observed by arm and stratum."""
    rng = np.random.default_rng(20_261_123)
    sums, counts, every = np.zeros((runs, 2)), np.zeros((runs, 2)), np.arange(runs)
    kept: dict[str, list[Any]] = {name: [] for name in ("action", "reward", "observed", "stratum", "e1")}
    for _ in range(rounds):
        means = np.where(counts > 0, sums / np.maximum(counts, 1), 5.0)
        e1 = np.where(means[:, 1] > means[:, 0], 0.9, 0.1)
        action, stratum = (rng.random(runs) < e1).astype(int), rng.integers(0, 2, runs)
        observed = rng.random(runs) < share[action, stratum]
        reward = np.where(observed, rng.normal(5.0 + stratum, 1.0), np.nan)
        np.add.at(sums, (every[observed], action[observed]), reward[observed])
        np.add.at(counts, (every[observed], action[observed]), 1.0)
        for name, values in zip(kept, (action, reward, observed, stratum, e1), strict=True):
            kept[name].append(values)
    return {name: np.array(values).T for name, values in kept.items()}


@pytest.mark.slow
@pytest.mark.parametrize("share", [[[0.9, 0.9], [0.5, 0.5]], [[0.9, 0.4], [0.5, 0.8]]])
def test_differences_are_covered_where_leaving_rounds_out_fails(share: Any) -> None:
    runs, rounds, codes = 800, 600, np.arange(2)
    share = np.array(share)
    logs = adaptive_logs(runs, rounds, share)
    stratified = not np.array_equal(share[:, 0], share[:, 1])
    estimates, covered, naive = [], 0, []
    for run in range(runs):
        action, reward, observed, stratum, e1 = (values[run] for values in logs.values())
        cells = stratum if stratified else np.zeros(rounds, dtype=int)
        past = past_rewards(action, reward, observed, cells, codes)
        chosen, e = np.eye(2)[action], np.where(action == 1, e1, 1.0 - e1)
        weights = np.repeat((1.0 / np.sqrt(1.0 / e1 + 1.0 / (1.0 - e1)))[:, None], 2, axis=1)
        ready = np.repeat((past.count > 0).all(axis=1)[:, None], 2, axis=1)
        seen = SeenRounds(observed, past.share[np.arange(rounds), action], ready)
        found = seen_scores(ArmScores(chosen, chosen, weights, 0.0), reward, e, past.mean, seen)
        h = found.weights[:, 0]
        gap = found.scores[:, 1] - found.scores[:, 0]
        estimate = h @ gap / h.sum()
        estimates.append(estimate)
        covered += abs(estimate) <= 1.96 * np.sqrt((h * (gap - estimate)) @ (h * (gap - estimate))) / h.sum()
        naive.append(np.nanmean(reward[action == 1]) - np.nanmean(reward[action == 0]))
    assert covered >= stats.binom.ppf(1e-4, runs, 0.94)
    assert abs(np.mean(estimates)) < 4.0 * np.std(estimates) / np.sqrt(runs)
    if stratified:
        assert np.mean(naive) > 0.2
