"""Tests at a fixed number of rounds say so where the log had another; when they hold all the same."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.audit import (
    exact_interval,
    exact_test,
    randomization_interval,
    randomization_test,
    weighted_randomization_test,
)
from adaptinf.claims import Claim
from adaptinf.claims.logs import stopping
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, NormalArms

COIN = designs.EpsilonGreedy(exploration=1.0)
ARMS = BernoulliArms([0.4, 0.6])
RUNS = {
    "binary": (COIN, ARMS, 40),
    "normal": (COIN, NormalArms([0.0, 0.5]), 40),
    "short": (COIN, ARMS, 8),
    "by order": (designs.UCB(), ARMS, 40),
}


@functools.cache
def made(name: str) -> AdaptiveLog:
    """A log, made when a test asks: every process that collects tests would compile its design."""
    design, arms, rounds = RUNS[name]
    return design.run(arms, rounds, rng=1)


@pytest.mark.parametrize(
    ("name", "test", "why"),
    [
        ("binary", lambda log: randomization_test(log, replications=19), stopping.RERUN),
        ("short", randomization_test, stopping.RERUN),
        ("by order", lambda log: randomization_test(log, replications=19), stopping.REORDERED),
        ("normal", lambda log: randomization_interval(log, replications=39), stopping.RERUN),
        ("binary", lambda log: weighted_randomization_test(log, replications=19), stopping.RERUN),
        ("binary", exact_test, stopping.COUNTED),
        ("binary", lambda log: exact_interval(log, scale="difference"), stopping.COUNTED),
    ],
    ids=["re-run", "enumerated", "by order", "interval", "weighted", "counts", "interval of counts"],
)
def test_the_number_of_rounds_is_read(name: str, test: Any, why: Claim) -> None:
    log = made(name)
    for stated, claim in (("data-chosen", stopping.DATA_CHOSEN), ("planned", stopping.PLANNED)):
        found = test(log.stating(stated))
        assert says(found.cautions, claim, rounds=f"{log.n_rounds} rounds")
        assert says(found.cautions, why)
        assert says(" ".join(str(found).split()), claim)
        if hasattr(found, "assumptions"):
            assert sum("contradicted" in line for line in found.assumptions) == 1
    fixed = test(log.stating("fixed"))
    assert fixed.cautions == ()
    assert "contradicted" not in str(fixed)


def rejected(by_arm: bool, runs: int) -> int:
    """How often a coin's log is rejected at .05 that stops by its arms' means, or by its rewards alone."""
    rng, found = np.random.default_rng(5), 0
    for run in range(runs):
        action, reward = rng.integers(0, 2, 60), rng.integers(0, 2, 60).astype(float)
        for n in range(16, 61, 4):
            arm, won = action[:n], reward[:n]
            apart = abs(won[arm == 1].mean() - won[arm == 0].mean()) if 0 < arm.sum() < n else 0.0
            if apart > 0.3 if by_arm else won.sum() >= 14:
                break
        arrays = LogArrays(action=action[:n], reward=reward[:n], propensity=np.full(n, 0.5))
        log = AdaptiveLog.from_arrays(arrays, arms=(0, 1))
        found += randomization_test(log, COIN, replications=19, rng=run).pvalue <= 0.05
    return found


@pytest.mark.slow
def test_stopping_by_rewards_alone_is_harmless_and_by_arms_is_not() -> None:
    runs = 400
    lo, high = stats.binom.ppf([1e-4, 1.0 - 1e-4], runs, 0.05)
    assert lo <= rejected(by_arm=False, runs=runs) <= high
    assert rejected(by_arm=True, runs=runs) > high
