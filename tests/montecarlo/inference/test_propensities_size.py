"""Tests of logged propensities: how often right ones are doubted, and how often lost rows are seen.

All tests of a log together doubt right propensities in at most 1 of 1,000 logs. Counts over five designs are
held to that together, with a probability below 1e-4 of a count beyond the bound.
"""

from __future__ import annotations

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims import propensities
from adaptinf.inference.validity.calibration import ALARM
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext

RARE = 1e-4
ARMS = BernoulliArms([0.5, 0.5])
CONTEXTS = FiniteContext([0.5, 0.5], [[0.3, 0.6], [0.6, 0.3]])
DESIGNS = (
    (designs.Uniform(), ARMS),
    (designs.Thompson(prior="normal", floor=0.1), ARMS),
    (designs.Thompson(prior="normal", floor=0.05, batch_size=40), BernoulliArms([0.4, 0.5, 0.5, 0.5])),
    (designs.TopTwoThompson(prior="normal", floor=0.05), ARMS),
    (designs.EpsilonGreedy(exploration=0.4), CONTEXTS),
)


def doubted(log: AdaptiveLog) -> bool:
    found = profile_of(log).propensities_found
    assert found is not None
    return bool(says(found.cautions, propensities.NOT_FOLLOWED))


def test_right_propensities_are_rarely_doubted() -> None:
    runs, found = 2_000, 0
    for number, (design, env) in enumerate(DESIGNS):
        rng = np.random.default_rng([7, number])
        found += sum(doubted(design.run(env, 400, rng)) for _ in range(runs))
    assert found <= stats.binom.ppf(1.0 - RARE, runs * len(DESIGNS), ALARM)


@pytest.mark.parametrize(("n_arms", "lost"), [(2, 0.2), (4, 0.35)])
def test_rows_of_one_arm_that_are_lost_are_seen(n_arms: int, lost: float) -> None:
    rounds, runs, found = 4_000, 400, 0
    rng = np.random.default_rng(8)
    power, arms = [], tuple(range(n_arms))
    for _ in range(runs):
        action, reward = rng.integers(0, n_arms, rounds), rng.integers(0, 2, rounds).astype(float)
        kept = (action > 0) | (reward == 1.0) | (rng.random(rounds) >= lost)
        every = np.full((int(kept.sum()), n_arms), 1.0 / n_arms)
        arrays = LogArrays(
            action=action[kept], reward=reward[kept], propensity=every[:, 0], propensities=every
        )
        found += doubted(AdaptiveLog.from_arrays(arrays, arms=arms))
        # The score test of the arm's count alone, with all of the level.
        share = every[:, 0]
        off = (action[kept] == 0).sum() - share.sum()
        power.append(abs(off) > stats.norm.isf(ALARM / 2.0) * np.sqrt(share @ (1.0 - share)))
    assert found / runs >= np.mean(power) - (0.1 if n_arms == 2 else 0.2)
