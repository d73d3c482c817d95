"""Randomisation tests against literal statistics, literal re-runs and whole enumerations."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf import designs
from adaptinf.audit.randomization.randomization_tests import randomization_test
from adaptinf.audit.randomization.rerun_plan import (
    difference,
    largest_studentised,
    plan_root,
    shifted,
    studentised,
    tally_path,
    variance_ratio,
)
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, LinearArms, NormalArms
from adaptinf.simulation.replicate import block_stream


def sample(sizes: list[int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(arm, 1.0 + arm, size) for arm, size in enumerate(sizes)]


def tallies_of(groups: list[np.ndarray]) -> np.ndarray:
    return np.array([[[g.size, g.sum(), (g**2).sum()] for g in groups]])


class TestStatistics:
    def test_studentised_is_the_two_sample_t(self) -> None:
        groups = sample([7, 12, 5])
        for first, second in itertools.permutations(range(3), 2):
            expected = stats.ttest_ind(groups[first], groups[second], equal_var=True).statistic
            assert studentised(tallies_of(groups), first, second)[0] == pytest.approx(expected, rel=1e-9)

    def test_the_largest_over_pairs(self) -> None:
        groups = sample([7, 12, 5])
        expected = max(
            abs(stats.ttest_ind(a, b, equal_var=True).statistic) for a, b in itertools.combinations(groups, 2)
        )
        assert largest_studentised(tallies_of(groups))[0] == pytest.approx(expected, rel=1e-9)

    def test_variance_ratio_is_the_one_way_f(self) -> None:
        groups = sample([7, 12, 5])
        expected = stats.f_oneway(*groups).statistic
        assert variance_ratio(tallies_of(groups))[0] == pytest.approx(expected, rel=1e-9)
        with_none = [*groups, np.zeros(0)]
        assert variance_ratio(tallies_of(with_none))[0] == pytest.approx(expected, rel=1e-9)

    def test_shifted_takes_the_effect_from_every_reward(self) -> None:
        groups = sample([7, 12])
        moved = [groups[0], groups[1] - 0.7]
        np.testing.assert_allclose(shifted(tallies_of(groups), 1, 0.7), tallies_of(moved), rtol=1e-12)

    def test_where_nothing_can_be_computed(self) -> None:
        none = np.array([[[5.0, 3.0, 3.0], [0.0, 0.0, 0.0]]])
        assert studentised(none, 1, 0)[0] == difference(none, 1, 0)[0] == variance_ratio(none)[0] == 0.0
        constant = np.array([[[5.0, 0.5, 0.05], [3.0, 0.3, 0.03]]])
        assert studentised(constant, 1, 0)[0] == variance_ratio(constant)[0] == 0.0
        apart = np.array([[[5.0, 5.0, 5.0], [3.0, 0.0, 0.0]]])
        assert studentised(apart, 1, 0)[0] == -math.inf
        assert variance_ratio(apart)[0] == math.inf
        single = tallies_of(sample([1, 6]))
        expected = stats.ttest_ind(*sample([1, 6]), equal_var=True).statistic
        assert studentised(single, 0, 1)[0] == pytest.approx(expected, rel=1e-9)

    def test_tallies_of_a_path(self) -> None:
        action, reward = np.array([0, 2, 2, 0]), np.array([1.0, 2.0, 4.0, 3.0])
        assert tally_path(action, reward, 3).tolist() == [[2, 4, 10], [0, 0, 0], [2, 6, 20]]


def literal_ucb(rewards: np.ndarray, n_arms: int, width: float) -> np.ndarray:
    """UCB1 written round by round on rewards that any arm would get."""
    counts, sums = np.zeros(n_arms), np.zeros(n_arms)
    action = np.empty(rewards.size, dtype=np.int64)
    for t, reward in enumerate(rewards):
        if t < n_arms:
            arm = t
        else:
            arm = int(np.argmax(sums / counts + np.sqrt(width * math.log(t + 1) / counts)))
        counts[arm] += 1
        sums[arm] += reward
        action[t] = arm
    return action


def t_statistic(action: np.ndarray, reward: np.ndarray) -> float:
    return float(stats.ttest_ind(reward[action == 1], reward[action == 0], equal_var=True).statistic)


def spawned(rng: int, *keys: int) -> np.random.SeedSequence:
    root = plan_root(rng)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *keys))


def test_re_runs_of_ucb_by_order_number_for_number() -> None:
    log = designs.UCB(width=0.8).run(NormalArms([0.0, 0.4]), horizon=60, rng=3)
    test = randomization_test(log, rng=5, replications=99)
    expected = []
    for run in range(99):
        if run % 64 == 0:
            stream = block_stream(spawned(5, 0), run)
        rows = log.arrays.reward[stream.permutation(60)]
        expected.append(t_statistic(literal_ucb(rows, 2, 0.8), rows))
    np.testing.assert_allclose(test.draws, expected, rtol=1e-9)
    observed = t_statistic(log.arrays.action, log.arrays.reward)
    assert test.statistic == pytest.approx(observed, rel=1e-9)
    assert test.exceedances == int((np.abs(expected) > abs(observed)).sum())
    assert test.pvalue == (1 + test.exceedances) / 100
    assert test.resample == "order"
    by_path = randomization_test(
        log, statistic=lambda a, y, x: abs(t_statistic(a, y)), resample="order", rng=5, replications=99
    )
    np.testing.assert_allclose(by_path.draws, np.abs(expected), rtol=1e-9)
    assert by_path.pvalue == test.pvalue


def test_re_runs_of_play_the_winner_by_assignment_number_for_number() -> None:
    log = PlayTheWinner().run(BernoulliArms([0.3, 0.6]), horizon=50, rng=3)
    test = randomization_test(
        log, PlayTheWinner(), "difference", rng=5, replications=79, alternative="greater"
    )
    expected = []
    for run in range(79):
        if run % 64 == 0:
            stream = block_stream(spawned(5, 0), run)
        urn, action = np.ones(2), np.empty(50, dtype=np.int64)
        for t, reward in enumerate(log.arrays.reward):
            action[t] = int(stream.random() * urn.sum() >= urn[0])
            urn[action[t] if reward else 1 - action[t]] += 1
        means = [log.arrays.reward[action == arm].mean() for arm in (0, 1)]
        expected.append(means[1] - means[0])
    np.testing.assert_allclose(test.draws, expected, rtol=1e-9, atol=1e-15)
    own = float(np.random.default_rng(spawned(5, 2)).random())
    breakers = np.concatenate([block_stream(spawned(5, 1), first).random(64) for first in (0, 64)])[:79]
    gap = np.array(expected) - test.statistic
    beyond = (gap > 1e-12) | ((np.abs(gap) <= 1e-12) & (breakers > own))
    assert test.pvalue == (1 + beyond.sum()) / 80
    assert test.ties == (np.abs(gap) <= 1e-12).sum()


@pytest.mark.parametrize("design", [designs.EpsilonGreedy(exploration=0.4), designs.Uniform()])
def test_the_p_value_tends_to_the_enumerated_one(design: Any) -> None:
    """All paths of eight rounds with their probabilities, each computed from its definition."""
    rewards = np.array([0.3, 1.2, -0.5, 0.9, 2.0, -1.1, 0.4, 0.7])
    exploration = getattr(design, "exploration", 1.0)
    action = np.array([0, 1, 1, 0, 1, 0, 1, 1])

    def absolute(a: np.ndarray, y: np.ndarray, x: Any) -> float:
        return abs(y[a == 1].sum() - 1.5 * y[a == 0].sum())

    log = AdaptiveLog.from_arrays(LogArrays(action=action, reward=rewards), arms=("a", "b"))
    above = 0.0
    for path in itertools.product((0, 1), repeat=8):
        counts, sums, probability = np.zeros(2), np.zeros(2), 1.0
        for arm, reward in zip(path, rewards, strict=True):
            means = [sums[k] / counts[k] if counts[k] else math.inf for k in (0, 1)]
            greedy = int(means[1] > means[0])
            probability *= exploration / 2 + (1 - exploration) * (arm == greedy)
            counts[arm] += 1
            sums[arm] += reward
        if absolute(np.array(path), rewards, None) >= absolute(action, rewards, None) - 1e-12:
            above += probability
    test = randomization_test(log, design, absolute, replications=4_999, rng=0)
    share = (test.exceedances + test.ties) / 4_999
    assert abs(share - above) < 4.2 * math.sqrt(above * (1 - above) / 4_999)


def test_contexts_travel_with_their_rewards() -> None:
    theta = [[0.6, 0.2], [0.1, 0.7]]
    environment = LinearArms(theta, contexts="orthant", rewards="bernoulli", shared=True)
    log = designs.LinUCB().run(environment, horizon=80, rng=0)
    pairs = set(zip(log.arrays.context["x1"].tolist(), log.arrays.reward.tolist(), strict=True))

    def all_there(action: np.ndarray, reward: np.ndarray, context: dict[str, np.ndarray]) -> float:
        assert set(zip(context["x1"].tolist(), reward.tolist(), strict=True)) == pairs
        return float(context["x1"][0])

    test = randomization_test(log, statistic=all_there, replications=19)
    assert len(set(test.draws.tolist())) > 5
    still = randomization_test(
        designs.Mixture(designs.LinUCB(), 0.5).run(environment, horizon=80, rng=0),
        designs.Mixture(designs.LinUCB(noise_scale=0.5), 0.5),
        lambda a, y, x: float(x["x1"][0]),
        replications=19,
    )
    assert set(still.draws.tolist()) == {still.statistic}
    assert still.resample == "assignment"


def test_rewards_far_from_zero_lose_nothing() -> None:
    near = designs.EpsilonGreedy(exploration=0.5).run(NormalArms([0.0, 0.2]), horizon=150, rng=1)
    action, reward = near.arrays.action, near.arrays.reward
    logs = [AdaptiveLog.from_arrays(LogArrays(action, reward + shift), arms=(0, 1)) for shift in (0.0, 1e8)]
    first, second = (randomization_test(log, designs.Uniform(), replications=199) for log in logs)
    np.testing.assert_allclose(first.draws, second.draws, rtol=1e-5)
    assert first.pvalue == second.pvalue
