"""Contrasts by the t law and combined weights, on logs of a simulator of their own."""

from __future__ import annotations

import functools

import numpy as np
from scipy import special, stats

from adaptinf.inference.arms import Contrast
from adaptinf.inference.scores.inverse import combined_weights
from adaptinf.inference.scores.means import arm_score_means
from adaptinf.log import AdaptiveLog, LogArrays

LEVEL = 0.05


def thompson(runs: int, rounds: int, drift: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two arms of the same normal law and a flat prior, propensities at least .05; (runs, rounds) each."""
    rng = np.random.default_rng(seed)
    count, total = np.zeros((runs, 2)), np.zeros((runs, 2))
    action = np.empty((runs, rounds), dtype=np.int64)
    reward, share = np.empty((runs, rounds)), np.empty((runs, rounds))
    every = np.arange(runs)
    for t in range(rounds):
        seen = np.maximum(count, 1.0)
        mean = total / seen
        chance = special.ndtr((mean[:, 1] - mean[:, 0]) / np.sqrt((1.0 / seen).sum(axis=1)))
        chance = np.where(count.min(axis=1) < 1, 0.5, np.clip(chance, 0.05, 0.95))
        arm = (rng.random(runs) < chance).astype(np.int64)
        y = rng.normal(size=runs) + drift * t / rounds
        count[every, arm] += 1.0
        total[every, arm] += y
        action[:, t], reward[:, t], share[:, t] = arm, y, chance
    return action, reward, share


@functools.cache
def rejections(weights: str, runs: int, rounds: int, drift: float, seed: int) -> tuple[float, float]:
    """Shares of logs in which no difference is rejected at 5%, by the normal law and by t."""
    normal, student = 0, 0
    for action, reward, share in zip(*thompson(runs, rounds, drift, seed), strict=True):
        p = np.column_stack([1.0 - share, share])
        own = p[np.arange(rounds), action]
        h = combined_weights(p) if weights == "combined" else weights
        found = arm_score_means(action, reward, own, p, np.array([0, 1]), weights=h, jointly=True)
        spread = found.covariance
        size = np.sqrt(spread[0, 0] + spread[1, 1] - 2.0 * spread[0, 1])
        ratio = abs(found.above[1] - found.above[0]) / size
        normal += ratio > stats.norm.isf(LEVEL / 2)
        student += ratio > stats.t.isf(LEVEL / 2, found.freedom.min())
    return normal / runs, student / runs


def test_t_holds_its_level_where_the_normal_law_does_not() -> None:
    """200 rounds, floor .05: .080 and .053 in 20,000 runs; four binomial errors of 3,000 runs."""
    error = np.sqrt(LEVEL * (1.0 - LEVEL) / 3_000)
    normal, student = rejections("combined", 3_000, 200, 0.0, 11)
    assert normal > LEVEL + 4.0 * error
    assert abs(student - 0.053) < 4.0 * error


def test_a_common_drift_breaks_own_weights_alone() -> None:
    """1,000 rounds, floor .05, half a standard deviation from start to end."""
    error = np.sqrt(LEVEL * (1.0 - LEVEL) / 800)
    assert rejections("combined", 800, 1_000, 0.5, 12)[1] < 0.06 + 4.0 * error
    assert rejections("sqrt", 800, 1_000, 0.5, 12)[1] > 0.15


def test_contexts_that_move_propensities_within_batches() -> None:
    """Weights by the batch before are unbiased for the mean effect; by a round's own propensities not."""
    rng = np.random.default_rng(13)
    runs, batches, size = 200, 10, 80
    effect = np.array([1.0, -0.5])
    missed, errors, own_errors = 0, [], []
    for _ in range(runs):
        rows = contextual_batches(rng, batches, size, effect)
        log = AdaptiveLog.from_arrays(rows, arms=("a", "b"))
        result = Contrast(log, treatment="b", control="a").fit()
        assert result.weights == "combined"
        told = AdaptiveLog.from_arrays(rows, arms=("a", "b"), context_free=True)
        own_errors.append(Contrast(told, treatment="b", control="a").fit().estimate[0] - effect.mean())
        errors.append(result.estimate[0] - effect.mean())
        low, high = result.conf_int().to_numpy()[0]
        missed += not low <= effect.mean() <= high
    size_of = np.std(errors) / np.sqrt(runs)
    assert abs(np.mean(errors)) < 4.0 * size_of
    assert missed / runs < 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / runs)
    assert abs(np.mean(own_errors)) > 8.0 * size_of


def contextual_batches(rng: np.random.Generator, batches: int, size: int, effect: np.ndarray) -> LogArrays:
    """A site of two kinds; from the second batch on the arm that was better there is drawn more often."""
    rounds = batches * size
    site = rng.integers(0, 2, rounds)
    action, reward, share = np.zeros(rounds, dtype=np.int64), np.zeros(rounds), np.full(rounds, 0.5)
    for batch in range(batches):
        now, past = slice(batch * size, (batch + 1) * size), slice(0, batch * size)
        for kind in (0, 1) if batch else ():
            seen = [reward[past][(site[past] == kind) & (action[past] == arm)].mean() for arm in (0, 1)]
            # One kind of site is explored more, so that the weights of the two kinds differ.
            likely = (0.97, 0.6)[kind]
            share[now] = np.where(
                site[now] == kind, likely if seen[1] > seen[0] else 1.0 - likely, share[now]
            )
        action[now] = rng.random(size) < share[now]
        reward[now] = rng.normal(action[now] * effect[site[now]], 1.0)
    p = np.column_stack([1.0 - share, share])
    return LogArrays(
        action=action,
        reward=reward,
        propensity=p[np.arange(rounds), action],
        propensities=p,
        batch=np.repeat(np.arange(batches), size),
        context={"site": site},
    )
