"""The winner if rewards are skewed for the number of its rounds: part of simultaneous intervals."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.arms import winners as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.winners.projected import ProjectedLaw
from adaptinf.inference.winners.winner_law import WinnerLaw

NAMES = "ABCDEFGHIJ"
RATE, ARMS, PERIODS, LENGTH, FLOOR = 0.9, 10, 20, 500, 0.01


def frame(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arms, rewards, propensities and batches of equal arms, of which the design avoids the higher ones."""
    wins, pulls = np.ones(ARMS), np.full(ARMS, 2.0)
    arm, reward, every = [], [], []
    for period in range(PERIODS):
        share = np.full(ARMS, FLOOR if period else 1.0 / ARMS)
        if period:
            draws = rng.beta(wins, pulls - wins + 1.0, (500, ARMS))
            lead = np.argsort(draws, axis=1)[:, :2]
            counts = np.bincount(lead.ravel(), minlength=ARMS) / 1_000
            share = FLOOR + (1.0 - ARMS * FLOOR) * counts
        chosen = rng.choice(ARMS, LENGTH, p=share / share.sum())
        outcome = (rng.random(LENGTH) < RATE).astype(float)
        wins += np.bincount(chosen, outcome, ARMS)
        pulls += np.bincount(chosen, minlength=ARMS)
        arm.append(chosen), reward.append(outcome), every.append(np.tile(share / share.sum(), (LENGTH, 1)))
    return *(np.concatenate(part) for part in (arm, reward, every)), np.repeat(np.arange(PERIODS), LENGTH)


def log_of(seed: int) -> ai.AdaptiveLog:
    arm, reward, every, batch = frame(np.random.default_rng(seed))
    names = [f"p{label}" for label in NAMES]
    data = pd.DataFrame(every, columns=names).assign(
        arm=[*np.array(list(NAMES))[arm]], reward=reward, batch=batch
    )
    return ai.AdaptiveLog(data, action="arm", reward="reward", propensities="p{arm}", batch="batch")


def test_the_interval_is_that_of_the_arm_at_a_tenth_of_the_level() -> None:
    log = log_of(1)
    found, means = ai.Winner(log).fit(), ai.ArmMeans(log).fit()
    assert isinstance(found.reference, ProjectedLaw)
    assert found.validity == "asymptotic"
    own = means.conf_int(alpha=0.05 / ARMS).loc[found.winner]
    np.testing.assert_allclose(found.conf_int().to_numpy()[0], own, rtol=1e-12)
    assert says(found.notes, claims.PROJECTED_SKEWED)
    assert not says(found.notes, claims.HYBRID)
    # The estimate accounts for selection, so it is below the highest one.
    assert own.iloc[0] < found.estimate[0] < means.params[found.winner]


def test_the_conditional_interval_and_the_best_arms_are_available() -> None:
    found = ai.Winner(log_of(1)).fit(method="conditional")
    assert isinstance(found.reference, WinnerLaw)
    assert ai.Winner(log_of(1)).fit().best_arms()["in_set"].loc[found.winner]


@pytest.mark.parametrize("method", ["hybrid", "projection"])
def test_without_skewness_nothing_changes(method: str) -> None:
    arms = ai.environments.BernoulliArms([0.5] * 5)
    log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=2_000, rng=0)
    assert isinstance(ai.Winner(log).fit(method=method).reference, WinnerLaw)


def test_the_difference_from_a_control_is_part_of_simultaneous_differences() -> None:
    log = log_of(1)
    found = ai.Winner(log, control="A").fit()
    assert isinstance(found.reference, ProjectedLaw)
    pair = ai.Contrast(log, treatment=found.winner, control="A").fit()
    np.testing.assert_allclose(
        found.conf_int().to_numpy(), pair.conf_int(alpha=0.05 / (ARMS - 1)).to_numpy(), rtol=1e-12
    )


@pytest.mark.slow
def test_the_highest_of_rates_near_one_is_covered() -> None:
    """Hybrid intervals of normal distributions contain the truth in .91 of these logs."""
    limits = []
    for seed in range(400):
        # If an arm has fewer than 5 outcomes of 0, there is no interval.
        with contextlib.suppress(InvalidForLog):
            limits.append(ai.Winner(log_of(seed)).fit().conf_int().to_numpy()[0])
    low, high = np.array(limits).T
    assert len(low) > 300
    assert np.mean((low <= RATE) & (high >= RATE)) >= 0.94
