"""KL-UCB against a literal version, its closed forms and the bounds that are known of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special

from adaptinf import designs
from adaptinf.designs.arms.kl_ucb import _index, _upper
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import BernoulliArms, Tableau, UniformArms
from adaptinf.typing import FloatArray


def divergence(p: float, q: float) -> float:
    return float(special.rel_entr(p, q) + special.rel_entr(1.0 - p, 1.0 - q))


def literal_index(mean: float, budget: float) -> float:
    """The largest q with kl(mean, q) <= budget, by bracketing."""
    if mean >= 1.0:
        return 1.0
    top = 1.0 - 1e-16
    if divergence(mean, top) <= budget:
        return 1.0
    return float(optimize.brentq(lambda q: divergence(mean, q) - budget, mean, top, xtol=1e-15, rtol=1e-14))


def literal_actions(rewards: FloatArray, log_log: float) -> list[int]:
    """Garivier and Cappé's algorithm 1, round by round."""
    horizon, n_arms = rewards.shape
    counts, sums, actions = np.zeros(n_arms), np.zeros(n_arms), []
    for t in range(1, horizon + 1):
        if t <= n_arms:
            arm = t - 1
        else:
            budget = math.log(t) + log_log * math.log(max(math.log(t), 1.0))
            indices = [literal_index(s / n, budget / n) for s, n in zip(sums, counts, strict=True)]
            arm = int(np.argmax(indices))
        counts[arm] += 1.0
        sums[arm] += rewards[t - 1, arm]
        actions.append(arm)
    return actions


@pytest.mark.parametrize("log_log", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_actions_are_those_of_the_literal_version(log_log: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards = rng.random((400, 4)) ** rng.uniform(0.5, 3.0, 4)  # no two means are equal
    log = designs.KLUCB(log_log=log_log).run(Tableau(rewards), horizon=400, rng=0)
    assert log.arrays.action.tolist() == literal_actions(rewards, log_log)


def test_the_index() -> None:
    means = np.concatenate([[0.0, 1e-12, 1.0 - 1e-12, 1.0], np.linspace(0.01, 0.99, 25)])
    for mean in means:
        for budget in (1e-9, 1e-4, 0.01, 0.3, 2.0, 20.0):
            found = _index(mean, budget, _upper(mean, budget))
            assert found == pytest.approx(literal_index(mean, budget), rel=1e-9, abs=1e-12)
            assert found <= _upper(mean, budget) + 1e-12


def test_closed_form_without_successes() -> None:
    for budget in (1e-6, 0.1, 3.0):
        assert _index(0.0, budget, _upper(0.0, budget)) == pytest.approx(-math.expm1(-budget), rel=1e-14)


@pytest.mark.slow
def test_lost_rounds_approach_the_bound_of_lai_and_robbins() -> None:
    """Pulls of the worse arm over log T: at least 1/kl in the limit, and below UCB1's at any length."""
    env, horizon, runs = BernoulliArms([0.9, 0.8]), 20_000, 256
    own = designs.KLUCB().replicate(env, horizon, runs, rng=1).pulls[:, 1]
    wide = designs.UCB().replicate(env, horizon, runs, rng=1).pulls[:, 1]
    least = math.log(horizon) / divergence(0.8, 0.9)
    error = own.std() / math.sqrt(runs)
    assert 0.5 * least < own.mean() - 4.0 * error
    assert own.mean() + 4.0 * error < 1.6 * least
    assert own.mean() < 0.4 * wide.mean()


def test_bounded_rewards_that_are_not_binary() -> None:
    sims = designs.KLUCB().replicate(UniformArms(low=[0.0, 0.0], high=[1.0, 0.6]), 3_000, 64, rng=2)
    assert sims.pulls[:, 0].mean() > 2_800.0


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="log_log must be at least 0, got -1"):
        designs.KLUCB(log_log=-1.0)
    with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\]"):
        designs.KLUCB().run(UniformArms(low=[0.0, 0.0], high=[2.0, 1.0]), horizon=10, rng=0)
