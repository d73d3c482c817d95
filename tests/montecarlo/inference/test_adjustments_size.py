"""Sizes of the regression adjustments by simulation, where theory promises them.

The trials are drawn here, many at once, by a rule that chases the better arm; tolerances are those of a
binomial count with a false alarm below 1e-4.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.distributions.student_sums import MeanStudent
from adaptinf.inference.regression.anytime import anytime_coefficients, anytime_wald
from adaptinf.inference.regression.batched_regression import (
    batched_coefficients,
    batched_wald,
    drifting_wald,
)
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.ellipsoid import EllipsoidReference, confidence_ellipsoid
from adaptinf.inference.regression.least_squares import batch_regressions, least_squares
from adaptinf.inference.regression.weighted.own_weights import stabilising_weights, weighted_least_squares

LOG_ALPHA = math.log(0.05)
RUNS, BATCHES, SIZE = 1_000, 6, 25
ROW, HALF = np.array([[-1.0, 1.0]]), np.array([0.5, 0.5])


def most(runs: int, share: float = 0.05) -> int:
    """Largest number of rejections that is no alarm."""
    return int(stats.binom.isf(5e-5, runs, share))


def least(runs: int, share: float = 0.05) -> int:
    return int(stats.binom.ppf(5e-5, runs, share))


def chased(runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Actions and rewards, shapes (runs, batches * size), of equal arms with normal rewards.

    After a batch in which the arms' means are 1.5 standard errors apart, the lower one is all but given up
    until they are not: an arm that began badly keeps its bad beginning.
    """
    rng = np.random.default_rng(seed)
    action = np.zeros((runs, BATCHES * SIZE), dtype=np.int64)
    reward = rng.normal(size=(runs, BATCHES * SIZE))
    share = np.full(runs, 0.5)
    counts, sums = np.zeros((runs, 2)), np.zeros((runs, 2))
    for b in range(BATCHES):
        rounds = slice(b * SIZE, (b + 1) * SIZE)
        # Each batch has both arms at least twice, so that every regression within a batch exists.
        drawn = (rng.random((runs, SIZE)) < share[:, None]).astype(np.int64)
        drawn[:, :4] = [0, 1, 0, 1]
        action[:, rounds] = drawn
        for arm in (0, 1):
            own = drawn == arm
            counts[:, arm] += own.sum(axis=1)
            sums[:, arm] += np.where(own, reward[:, rounds], 0.0).sum(axis=1)
        means = sums / counts
        z = (means[:, 1] - means[:, 0]) / np.sqrt((1.0 / counts).sum(axis=1))
        share = np.where(z > 1.5, 0.98, np.where(z < -1.5, 0.02, 0.5))
    return action, reward


@pytest.fixture(scope="module")
def trials() -> tuple[np.ndarray, np.ndarray]:
    return chased(RUNS, 1)


def test_batched_least_squares_has_its_size_in_small_batches(trials: tuple[np.ndarray, np.ndarray]) -> None:
    action, reward = trials
    batch = np.repeat(np.arange(BATCHES), SIZE)
    quantile = MeanStudent(np.full(BATCHES, SIZE - 2.0)).quantile(0.025)
    single = joint = drifting = 0
    for a, y in zip(action, reward, strict=True):
        found = batch_regressions(batch, np.eye(2)[a], y)
        (estimate,), (error,), _ = batched_coefficients(found, ROW)
        single += abs(estimate) > quantile * error
        joint += batched_wald(found, np.eye(2), np.zeros(2))[2] <= LOG_ALPHA
        drifting += drifting_wald(found, np.eye(2), np.zeros(2))[2] <= LOG_ALPHA
    for rejections in (single, joint, drifting):
        assert least(RUNS) <= rejections <= most(RUNS)


def test_the_usual_t_test_rejects_equal_arms_too_often() -> None:
    runs = 20_000
    action, reward = chased(runs, 3)
    counts = np.column_stack([(action == arm).sum(axis=1) for arm in (0, 1)])
    sums = np.column_stack([np.where(action == arm, reward, 0.0).sum(axis=1) for arm in (0, 1)])
    means, df = sums / counts, BATCHES * SIZE - 2
    variance = ((reward**2).sum(axis=1) - (sums * means).sum(axis=1)) / df
    t = (means[:, 1] - means[:, 0]) / np.sqrt(variance * (1.0 / counts).sum(axis=1))
    assert np.count_nonzero(np.abs(t) > stats.t.isf(0.025, df)) > most(runs)


def test_weighted_and_decorrelated_least_squares_repair_the_naive_size() -> None:
    rng, runs, rounds = np.random.default_rng(2), 1_000, 1_000
    weighted = decorrelation = 0
    action, reward, chosen = (
        np.zeros((runs, rounds), dtype=np.int64),
        rng.normal(size=(runs, rounds)),
        np.zeros((runs, rounds)),
    )
    share, counts, sums = np.full(runs, 0.5), np.ones((runs, 2)), np.zeros((runs, 2))
    for t in range(rounds):
        one = rng.random(runs) < share
        action[:, t], chosen[:, t] = one, np.where(one, share, 1.0 - share)
        for arm in (0, 1):
            counts[:, arm] += one == arm
            sums[:, arm] += np.where(one == arm, reward[:, t], 0.0)
        better = sums[:, 1] * counts[:, 0] > sums[:, 0] * counts[:, 1]
        share = np.where(better, 0.9, 0.1)
    for a, y, p in zip(action, reward, chosen, strict=True):
        x = np.eye(2)[a]
        found = weighted_least_squares(x, y, stabilising_weights(a, p, HALF))
        weighted += abs((ROW @ found.estimate)[0]) > 1.96 * math.sqrt((ROW @ found.covariance @ ROW.T)[0, 0])
        other = decorrelated(x, y, ridge=10.0)
        decorrelation += abs((ROW @ other.estimate)[0]) > 1.96 * math.sqrt(
            (ROW @ other.covariance @ ROW.T)[0, 0]
        )
    # Both are asymptotic: one and a half points are allowed for a thousand rounds.
    for rejections in (weighted, decorrelation):
        assert least(runs, 0.035) <= rejections <= most(runs, 0.065)


def test_the_ellipsoid_holds_at_all_rounds_of_a_chase(trials: tuple[np.ndarray, np.ndarray]) -> None:
    action, reward = trials
    alarms = 0
    for a, y in zip(action[:400], reward[:400], strict=True):
        x = np.eye(2)[a]
        alarms += any(
            EllipsoidReference(confidence_ellipsoid(x[:t], y[:t], 1.0, 0.0), np.eye(2)).log_pvalues(0.0).min()
            <= LOG_ALPHA
            for t in (5, 15, 150)
        )
    assert alarms <= most(400)


def test_anytime_tests_survive_monitoring_where_the_usual_ones_do_not() -> None:
    rng, runs, rounds = np.random.default_rng(4), 400, 120
    looks = (6, 10, 15, 20, 30, 40, 60, 80, 100, 120)
    usual = single = joint = 0
    for _ in range(runs):
        x = np.column_stack((np.ones(rounds), rng.integers(0, 2, rounds), rng.normal(size=rounds)))
        x[:4, 1] = [0, 1, 0, 1]
        y = 3.0 + rng.normal(size=rounds)
        logs = []
        for t in looks:
            fit = least_squares(x[:t], y[:t], ("a", "b", "c"))
            law = (fit.coefficient, fit.root @ fit.root.T, fit.rss, fit.df_resid)
            reference = anytime_coefficients(*law, np.eye(3)[1:2])
            p_usual = 2.0 * stats.t.sf(abs(reference.estimate / reference.std_error)[0], fit.df_resid)
            p_joint = anytime_wald(*law, np.eye(3)[1:], np.zeros(2))[2]
            logs.append((math.log(p_usual), reference.log_pvalues(0.0)[0], p_joint))
        least_p = np.min(logs, axis=0)
        usual += least_p[0] <= LOG_ALPHA
        single += least_p[1] <= LOG_ALPHA
        joint += least_p[2] <= LOG_ALPHA
    assert usual > most(runs, 0.1)
    assert max(single, joint) <= most(runs)
    assert min(single, joint) > 0
