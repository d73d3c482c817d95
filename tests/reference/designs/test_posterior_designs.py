"""Exploration sampling and top-two Thompson sampling against their formulas and Russo's own rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.audit import with_propensities
from adaptinf.designs import ExplorationSampling, Thompson, TopTwoThompson
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, NormalArms, Tableau

NORMAL = NormalArms([0.0, 0.2, 0.4, 0.5])


def exploration(alpha: np.ndarray) -> np.ndarray:
    q = alpha * (1.0 - alpha)
    return np.asarray(q / q.sum())


def top_two(alpha: np.ndarray, share: float) -> np.ndarray:
    odds = alpha / (1.0 - alpha)
    return np.asarray(alpha * (share + (1.0 - share) * (odds.sum() - odds)))


def on_the_path(log: AdaptiveLog, design: Any) -> np.ndarray:
    """Propensities that a design would have had in another design's log."""
    plain = AdaptiveLog(
        log.frame[["action", "reward"]], action="action", reward="reward", about={"design": design}
    )
    filled = with_propensities(plain)
    assert filled.propensity_status == "exact"
    assert filled.arrays.propensities is not None
    return filled.arrays.propensities


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_normal_posteriors_by_the_formulas(share: float, batch_size: int) -> None:
    options: dict[str, Any] = {"prior": "normal", "batch_size": batch_size, "initial_pulls": 1}
    log = Thompson(**options).run(NORMAL, horizon=120, rng=2)
    alpha = log.arrays.propensities
    assert alpha is not None
    explored = on_the_path(log, ExplorationSampling(**options))
    two = on_the_path(log, TopTwoThompson(**options, leader_share=share))
    for t in range(120):
        if t < 4:
            np.testing.assert_array_equal(explored[t], 0.25)
            continue
        np.testing.assert_allclose(explored[t], exploration(alpha[t]), rtol=1e-9)
        np.testing.assert_allclose(two[t], top_two(alpha[t], share), rtol=1e-9)


@pytest.mark.parametrize("prior", ["beta", "normal"])
def test_two_arms_get_half_each(prior: str) -> None:
    env = BernoulliArms([0.3, 0.7])
    for design in (ExplorationSampling(prior=prior), TopTwoThompson(prior=prior)):
        log = design.run(env, horizon=80, rng=1)
        np.testing.assert_allclose(log.arrays.propensities, 0.5, rtol=1e-9)


def test_frequencies_of_beta_posteriors() -> None:
    """Each round's shares are those of some counts of 40 draws, and on average those of the posterior."""
    counts = np.array(
        [[a, b, 40 - a - b] for a in range(40) for b in range(41 - a) if max(b, 40 - a - b) < 40]
    )
    shares = np.array([exploration(row / 40) for row in counts])
    half = np.arange(41) / 80  # where one arm wins every draw
    certain = np.column_stack([np.full(41, 0.5), half, half[::-1]])
    shares = np.concatenate([shares, *(np.roll(certain, arm, axis=1) for arm in range(3))])
    log = ExplorationSampling(draws=40).run(BernoulliArms([0.4, 0.5, 0.6]), horizon=50, rng=3)
    for p in log.arrays.propensities:
        assert np.abs(shares - p).max(axis=1).min() < 1e-12
    fine = ExplorationSampling(draws=200_000, batch_size=50).run(BernoulliArms([0.1, 0.5, 0.6]), 100, rng=4)
    arms, rewards = fine.arrays.action[:50], fine.arrays.reward[:50]
    draws = np.random.default_rng(5).beta(
        [1 + rewards[arms == a].sum() for a in range(3)],
        [1 + (1 - rewards[arms == a]).sum() for a in range(3)],
        (400_000, 3),
    )
    alpha = np.bincount(draws.argmax(axis=1), minlength=3) / 400_000
    np.testing.assert_allclose(fine.arrays.propensities[60], exploration(alpha), atol=0.006)


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_where_one_arm_wins_every_draw(share: float) -> None:
    """Its limiting share; the others by second places: arm 1 lies far above arm 0."""
    env = Tableau(np.tile([0.0, 0.5, 1.0], (1_000, 1)))
    designs: dict[Any, float] = {
        TopTwoThompson(leader_share=share, draws=50): share,
        ExplorationSampling(draws=50): 0.5,
    }
    for design, leader in designs.items():
        p = design.run(env, horizon=1_000, rng=0).arrays.propensities
        np.testing.assert_allclose(p[-1], [0.0, 1.0 - leader, leader], atol=1e-12)


def test_normal_posteriors_far_apart_stay_numbers() -> None:
    """Gaps of 3 to 1,000 standard deviations: shares sum to 1, and the runner-up gets the rest."""
    for gap in (3.0, 5.0, 30.0, 60.0, 1_000.0):
        rewards = np.tile([-3.0 * gap, -gap, 0.0], (300, 1))
        design = TopTwoThompson(prior="normal", prior_parameters=(0.0, 1e6))
        log = design.run(Tableau(rewards), horizon=300, rng=0)
        p = log.arrays.propensities
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(p[-1], [0.0, 0.5, 0.5], atol=0.01)


def test_russos_rule_as_it_is_told() -> None:
    """Draw; with probability 1/2 pull the leader, else draw again until another arm leads."""
    rng, mean, spread = np.random.default_rng(7), np.array([0.3, 0.1, 0.0]), np.array([0.2, 0.3, 0.5])
    runs = 40_000
    first = (mean + spread * rng.standard_normal((runs, 3))).argmax(axis=1)
    pulled, open_ = first.copy(), rng.random(runs) < 0.5
    while open_.any():
        again = (mean + spread * rng.standard_normal((open_.sum(), 3))).argmax(axis=1)
        rows = np.flatnonzero(open_)
        pulled[rows] = again
        open_[rows] = again == first[rows]
    precision = 1.0 / spread**2 - 1.0  # the prior's is 1
    counts = np.round(precision * 100).astype(int)  # of rewards with a standard deviation of 10
    means = mean * (1.0 + counts / 100) / (counts / 100)
    arms = np.repeat(np.arange(3), counts)
    frame = pd.DataFrame({"arm": np.append(arms, 0), "y": np.append(np.repeat(means, counts), 0.0)})
    log = AdaptiveLog(frame, action="arm", reward="y")
    design = TopTwoThompson(prior="normal", noise_scale=10.0)
    p = with_propensities(log, design).arrays.propensities[-1]
    share = np.bincount(pulled, minlength=3) / runs
    assert (np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / runs)).all()


@pytest.mark.parametrize("design", [ExplorationSampling, TopTwoThompson])
def test_what_a_log_says(design: Any) -> None:
    log = design(floor=0.1, batch_size=20, initial_pulls=4).run(BernoulliArms([0.2, 0.5, 0.6]), 100, rng=0)
    assert log.arrays.propensities.min() >= 0.1 - 1e-12
    assert log.propensity_status == "exact"
    assert log.guarantee is None
    np.testing.assert_array_equal(np.unique(log.arrays.batch, return_counts=True)[1], [12, 20, 20, 20, 20, 8])
    traits = log.design.traits
    assert (traits.uses_context, traits.floor.scale, traits.stability) == ("no", 0.1, None)
    assert not design()._has_shortcut(NORMAL)
    with pytest.raises(ParameterError, match="draws"):
        design(draws=0)
    with pytest.raises(ParameterError, match="leader_share must be"):
        TopTwoThompson(leader_share=0.0)


def test_arms_are_drawn_with_the_logged_propensities() -> None:
    p, a = [], []
    for design in (ExplorationSampling(draws=20), TopTwoThompson(draws=20)):
        for log in design.logs(BernoulliArms([0.4, 0.5, 0.5]), horizon=80, replications=100, rng=2):
            p.append(log.arrays.propensities)
            a.append(np.eye(3)[log.arrays.action])
    p, a = np.concatenate(p), np.concatenate(a)
    assert not a[p == 0.0].any()
    z = []
    for arm in range(3):
        cells = np.digitize(p[:, arm], [0.1, 0.3, 0.45, 0.55])
        for cell in range(5):
            rows = cells == cell
            variance = (p[rows, arm] * (1 - p[rows, arm])).sum()
            if variance > 10.0:
                z.append((a[rows, arm] - p[rows, arm]).sum() / np.sqrt(variance))
    assert len(z) > 8
    assert stats.chi2.sf(np.sum(np.square(z)), len(z)) > 1e-4
