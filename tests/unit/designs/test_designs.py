"""What every design puts into its log, what it promises, and the simple designs spelled out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs import (
    UCB,
    ConSE,
    Design,
    DPConSE,
    EpsilonGreedy,
    ExplorationSampling,
    LinPriv,
    LinUCB,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    SuccessiveElimination,
    Thompson,
    TopTwoThompson,
    Uniform,
)
from adaptinf.errors import ParameterError
from adaptinf.privacy.counter_noise import laplace_sum_quantile
from adaptinf.privacy.tree_sums import noise_row
from adaptinf.simulation.environments import (
    BernoulliArms,
    Environment,
    FiniteContext,
    LinearArms,
    NormalArms,
    Replay,
    Tableau,
    UniformArms,
)
from adaptinf.simulation.replicate import block_stream

THREE_ARMS = BernoulliArms([0.3, 0.5, 0.7])
TWO_ARMS = BernoulliArms([0.3, 0.7])
VECTORS = LinearArms([[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli")
CONTEXTS = FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]])

EVERY: list[tuple[Design, Environment]] = [
    (Uniform(), THREE_ARMS),
    (EpsilonGreedy(exploration=0.2, decay=0.1, batch_size=5), THREE_ARMS),
    (Thompson(draws=20, floor=0.05, batch_size=4), THREE_ARMS),
    (ExplorationSampling(draws=20, batch_size=4), THREE_ARMS),
    (TopTwoThompson(draws=20, leader_share=0.6), THREE_ARMS),
    (UCB(), THREE_ARMS),
    (PrivateUCB(epsilon=1.0), THREE_ARMS),
    (PrivateUCB(epsilon=1.0, calibration="published", counter="binary"), THREE_ARMS),
    (ConSE(alpha=0.3), CONTEXTS),
    (DPConSE(epsilon=1.0, alpha=0.3), CONTEXTS),
    (DPConSE(epsilon=1.0, calibration="published"), CONTEXTS),
    (SuccessiveElimination(), THREE_ARMS),
    (PrivateSuccessiveElimination(epsilon=1.0, beta=0.9), TWO_ARMS),
    (LinUCB(noise_scale=0.5), VECTORS),
    (LinPriv(epsilon=1.0, dimension=2), VECTORS),
]
LENGTH = 800
NAMES = [f"{type(design).__name__}-{i}" for i, (design, _) in enumerate(EVERY)]


@pytest.mark.parametrize(("design", "environment"), EVERY, ids=NAMES)
def test_what_a_log_carries(design: Design, environment: Environment) -> None:
    log = design.run(environment, horizon=LENGTH, rng=0)
    assert log.n_rounds == LENGTH
    assert log.arms == environment.arms
    assert log.reward_range == environment.reward_range
    assert log.design is not None
    assert log.design.name == type(design).__name__
    assert type(design)(**log.design.parameters) == design
    assert log.guarantee == design.guarantee(LENGTH, environment.n_arms)
    assert log.reward_guarantee == design.reward_guarantee(LENGTH, environment.n_arms)
    noisy = isinstance(design, (PrivateUCB, PrivateSuccessiveElimination, LinPriv, DPConSE))
    assert log.noise == ("simulation" if noisy else None)
    assert set(np.unique(log.arrays.action)) <= set(range(environment.n_arms))
    p = log.arrays.propensities
    if isinstance(design, (PrivateUCB, LinPriv)):
        assert p is None
        assert log.propensity_status == "absent"
    else:
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_array_equal(log.arrays.propensity, p[np.arange(LENGTH), log.arrays.action])
        assert log.propensity_status == "exact"
    assert log.frame["t"].tolist() == list(range(1, LENGTH + 1))
    assert log.context == (environment.vector_names or (("feature",) if environment.features else ()))


@pytest.mark.parametrize(("design", "environment"), EVERY, ids=NAMES)
def test_a_log_survives_the_next_run(design: Design, environment: Environment) -> None:
    runs = design.logs(environment, horizon=LENGTH, replications=2, rng=0)
    first = next(runs)
    before = first.arrays.action.copy(), first.arrays.reward.copy(), first.releases.copy()
    next(runs)
    np.testing.assert_array_equal(first.arrays.action, before[0])
    np.testing.assert_array_equal(first.arrays.reward, before[1])
    assert first.releases.equals(before[2])


@pytest.mark.parametrize(("design", "environment"), EVERY, ids=NAMES)
@pytest.mark.parametrize("horizon", [0, 2.5, "10", True])
def test_horizons_that_are_refused(design: Design, environment: Environment, horizon: Any) -> None:
    with pytest.raises(ParameterError, match="horizon must be a whole number of at least"):
        design.run(environment, horizon=horizon, rng=0)


@pytest.mark.parametrize("design", [ConSE(), DPConSE(epsilon=1.0)])
def test_designs_for_two_arms_refuse_three(design: Design) -> None:
    with pytest.raises(ParameterError, match="2 problems") as caught:
        design.run(THREE_ARMS, horizon=1, rng=0)
    assert "horizon must be a whole number of at least 2, got 1" in str(caught.value)
    assert "the environment must have exactly 2 arms, got 3" in str(caught.value)
    log = design.run(BernoulliArms([0.2, 0.8]), horizon=200, rng=0)  # no contexts: one group
    assert log.context == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replications": 0}, "replications must be a whole number"),
        ({"replications": 200, "start": 10}, "start must be a multiple of 64 below replications, got 10"),
        ({"replications": 128, "start": 128}, "start must be a multiple of 64 below replications, got 128"),
        ({"replications": 128, "start": -64}, "start must be a whole number of at least 0"),
        ({"replications": 128, "n_jobs": 0}, "n_jobs, if not -1, must be a whole number"),
        ({"replications": 128, "n_jobs": 1.5}, "n_jobs, if not -1, must be a whole number"),
    ],
)
def test_replications_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Uniform().replicate(THREE_ARMS, horizon=10, rng=0, **options)
    if "n_jobs" not in options:
        with pytest.raises(ParameterError, match=message):
            next(Uniform().logs(THREE_ARMS, horizon=10, rng=0, **options))


# --- the simple designs ---------------------------------------------------------------------------------


def test_uniform_is_a_fair_die_that_never_looks() -> None:
    log = Uniform().run(THREE_ARMS, horizon=30_000, rng=1)
    assert (log.arrays.propensities == 1 / 3).all()
    counts = np.bincount(log.arrays.action, minlength=3)
    assert stats.chisquare(counts).pvalue > 1e-4
    pairs = np.bincount(3 * log.arrays.action[1:] + log.arrays.action[:-1], minlength=9)
    assert stats.chisquare(pairs).pvalue > 1e-4
    after = stats.contingency.crosstab(log.arrays.reward[:-1], log.arrays.action[1:]).count
    assert stats.chi2_contingency(after).pvalue > 1e-4
    assert log.feedback_rounds == 0
    guarantee = Uniform().guarantee(100, 3)
    assert (guarantee.epsilon, guarantee.delta, guarantee.unit) == (0.0, 0.0, "record")


def test_uniform_takes_one_number_a_round_as_epsilon_greedy_that_always_explores() -> None:
    stream = block_stream(np.random.SeedSequence(3), 0)
    draws = stream.random(2 * 1_000).reshape(-1, 2)
    for design in (Uniform(), EpsilonGreedy(exploration=1.0)):
        found = design.run(THREE_ARMS, horizon=1_000, rng=3).arrays
        np.testing.assert_array_equal(found.action, (3 * draws[:, 0]).astype(int))
        np.testing.assert_array_equal(found.reward, draws[:, 1] < np.array([0.3, 0.5, 0.7])[found.action])


@pytest.mark.parametrize("exploration", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_epsilon_greedy_spelled_out(exploration: float, decay: float, batch_size: int) -> None:
    design = EpsilonGreedy(exploration=exploration, decay=decay, batch_size=batch_size)
    environment = NormalArms([-0.2, 0.1, 0.0])
    horizon = 300
    log = design.run(environment, horizon=horizon, rng=3)
    rewards: list[list[float]] = [[], [], []]
    greedy, deviation, variance = 0, 0.0, 0.0
    for t in range(horizon):
        explore = min(1.0, exploration * (t + 1) ** -decay)
        if t % batch_size == 0:
            means = [np.mean(r) if r else np.inf for r in rewards]
            greedy = int(np.argmax(means))
        expected = np.full(3, explore / 3)
        expected[greedy] += 1.0 - explore
        np.testing.assert_allclose(log.arrays.propensities[t], expected, rtol=1e-12)
        arm = log.arrays.action[t]
        deviation += (arm == greedy) - expected[greedy]
        variance += expected[greedy] * (1 - expected[greedy])
        rewards[arm].append(log.arrays.reward[t])
    assert abs(deviation) <= 4.5 * math.sqrt(variance) + 1e-9
    batches = log.arrays.batch
    if batch_size == 1:
        assert batches is None
    else:
        np.testing.assert_array_equal(batches, np.arange(horizon) // batch_size)


def test_epsilon_greedy_explores_every_arm_alike() -> None:
    log = EpsilonGreedy(exploration=1.0).run(THREE_ARMS, horizon=30_000, rng=2)
    assert stats.chisquare(np.bincount(log.arrays.action, minlength=3)).pvalue > 1e-4


def test_ties_go_to_the_first_arm() -> None:
    flat = Tableau(np.full((50, 3), 0.5))
    greedy = EpsilonGreedy(exploration=0.0).run(flat, horizon=50, rng=0)
    assert greedy.arrays.action.tolist() == [0, 1, 2] + [0] * 47
    ucb = UCB().run(flat, horizon=50, rng=0)
    assert ucb.arrays.action[:12].tolist() == [0, 1, 2] * 4


# --- tables of the private index ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("horizon", [60, 5_000])
def test_interpolated_quantiles_at_every_round(counter: str, horizon: int) -> None:
    """Straight lines in log t between four points an octave; t = 3 lies in the middle of a bent stretch."""
    epsilon = 0.5
    tables = PrivateUCB(epsilon=epsilon, counter=counter).program(THREE_ARMS, horizon, recording=False).tables
    t = np.unique(np.concatenate([np.arange(2, 60), np.geomspace(60, horizon, 40).astype(int)]))
    t = t[t <= horizon]
    cell = np.searchsorted(tables.grid[1:], t, side="left")
    for count in (1, 2, 3, 4, 7, 13, 31, 47, horizon):
        row = noise_row(counter == "hybrid", tables.slots, count)
        got = tables.intercept[cell, row] + tables.slope[cell, row] * np.log(t)
        level = count.bit_length() - 1
        if counter == "hybrid":
            scales = [[2.0 / epsilon, 2.0 * level / epsilon]]
            terms = [[level + 1.0, float((count - 2**level).bit_count())]]
        else:
            scales, terms = [[horizon.bit_length() / epsilon]], [[float(count.bit_count())]]
        n = t.size
        exact = laplace_sum_quantile(-np.log(t), np.repeat(scales, n, axis=0), np.repeat(terms, n, axis=0))
        np.testing.assert_allclose(got[t >= 3], exact[t >= 3], rtol=4e-3)
        np.testing.assert_allclose(got[t >= 4], exact[t >= 4], rtol=1e-3)
        np.testing.assert_allclose(got[t >= 32], exact[t >= 32], rtol=2e-4)
        assert abs(got[0]) < 1e-5


def test_what_private_ucb_says_of_its_guarantee() -> None:
    corrected = PrivateUCB(epsilon=0.5).guarantee(1_000, 4)
    assert corrected.epsilon == 0.5
    assert not corrected.reasons
    published = PrivateUCB(epsilon=0.5, calibration="published").guarantee(1_000, 4)
    assert published.epsilon == 0.125
    assert "epsilon / K" in published.reasons[0]
    assert UCB().guarantee(1_000, 4) is None
    log = PrivateUCB(epsilon=0.5).run(THREE_ARMS, horizon=100, rng=0)
    assert log.feedback_rounds == 99
    assert log.reward_guarantee == log.guarantee


def test_actions_do_not_depend_on_the_last_reward() -> None:
    """What `feedback_rounds` = T - 1 says: change the last reward, keep all randomness."""
    rewards = np.random.default_rng(0).uniform(size=(40, 3))
    other = rewards.copy()
    other[-1] = 1.0 - other[-1]
    for design in (UCB(), PrivateUCB(epsilon=1.0), EpsilonGreedy(), Thompson()):
        one = design.run(Tableau(rewards, reward_range=(0, 1)), horizon=40, rng=5).arrays.action
        np.testing.assert_array_equal(
            one, design.run(Tableau(other, reward_range=(0, 1)), horizon=40, rng=5).arrays.action
        )
        early = rewards.copy()
        early[:20] = 1.0 - early[:20]
        assert (one != design.run(Tableau(early, reward_range=(0, 1)), horizon=40, rng=5).arrays.action).any()


def test_releases_of_private_ucb_name_arms_also_where_there_are_contexts() -> None:
    environment = FiniteContext([0.5, 0.5], [[0.1, 0.5, 0.9], [0.9, 0.5, 0.1]])
    log = PrivateUCB(epsilon=1.0).run(environment, horizon=60, rng=0)
    np.testing.assert_array_equal(log.releases["group"], log.arrays.action)


def test_releases_of_dp_conse_name_no_arm_where_there_are_no_contexts() -> None:
    table = pd.DataFrame({"a": ["x", "y"] * 5, "r": [0.0, 1.0] * 5})
    log = DPConSE(epsilon=1.0).run(
        Replay(table, action="a", reward="r", reward_range=(0, 1)), horizon=300, rng=0
    )
    assert set(log.releases["group"]) == {0}


@pytest.mark.parametrize("design", [PrivateUCB(epsilon=1.0), Mixture(PrivateUCB(epsilon=1.0))])
def test_rewards_outside_the_range_of_a_private_sum_are_refused_before_anything_is_collected(
    design: Design,
) -> None:
    for environment in (UniformArms(low=[0.0, 0.0], high=[1.0, 1.5]), Tableau([[-0.5, 1.0]] * 50)):
        with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\], but those of .* rescale"):
            design.run(environment, horizon=50)


def test_rewards_outside_the_range_are_refused_by_designs_with_contexts() -> None:
    environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]], rewards="uniform", half_width=0.5)
    for design in (ConSE(), DPConSE(epsilon=1.0)):
        with pytest.raises(ParameterError, match=r"lie in \[-0.2, 1.2\]"):
            design.replicate(environment, horizon=20_000, replications=2)
