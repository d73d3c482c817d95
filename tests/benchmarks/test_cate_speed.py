"""Processor time of group effects: many replications at once, and one long run."""

from __future__ import annotations

import time

import numpy as np
import pytest

from adaptinf.inference.distributions.two_samples import difference_intervals
from adaptinf.inference.effects.group_scores import group_aipw
from adaptinf.inference.released.effects import released_intervals

pytestmark = pytest.mark.benchmark


def best_of(tries, work):
    times = []
    for _ in range(tries):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_fifty_thousand_replications_of_released_intervals():
    rng = np.random.default_rng(1)
    counts = rng.uniform(50, 5_000, (50_000, 3))
    sums = 0.1 * counts + rng.normal(0, 10, counts.shape)
    budget = {"epsilon_sum": 0.6, "epsilon_count": 0.4, "minimum": 20.0}
    assert best_of(2, lambda: released_intervals(sums, counts, **budget)) < 20.0


def test_fifty_thousand_replications_of_differences():
    rng = np.random.default_rng(2)
    counts = rng.integers(10, 500, (50_000, 3, 2))
    ones = rng.binomial(counts, 0.3)
    assert best_of(3, lambda: difference_intervals(counts, ones, ones, binary=True)) < 1.0


def test_one_run_of_two_hundred_thousand_rounds():
    rng = np.random.default_rng(3)
    group = rng.choice(3, 200_000, p=[0.5, 0.3, 0.2])
    share = np.array([0.3, 0.5, 0.8])[group]
    treated = (rng.random(200_000) < share).astype(np.int64)
    reward = rng.binomial(1, 0.4 + 0.2 * treated).astype(float)
    both = np.column_stack([1 - share, share])
    own = np.where(treated == 1, share, 1 - share)
    assert best_of(20, lambda: group_aipw(group, treated, reward, own, 3, both)) < 0.010
