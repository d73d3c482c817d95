"""The weighted form: literal propensities on given paths, enumerated p-values, uniformity, refusals."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from adaptinf import designs
from adaptinf.audit.randomization.randomization_tests import (
    _Walker,
    importance_p_value,
    weighted_randomization_test,
)
from adaptinf.audit.randomization.rerun_plan import make_plan
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, NormalArms

REWARDS = np.array([0.3, 1.2, -0.5, 0.9, 2.0, -1.1, 0.4, 0.7])


def greedy_propensities(path: np.ndarray, rewards: np.ndarray, exploration: float) -> np.ndarray:
    """Propensities of epsilon-greedy for the arms of a path, from the definition."""
    counts, sums, found = np.zeros(2), np.zeros(2), []
    for arm, reward in zip(path, rewards, strict=True):
        means = [sums[k] / counts[k] if counts[k] else math.inf for k in (0, 1)]
        greedy = int(means[1] > means[0])
        found.append(exploration / 2 + (1 - exploration) * (arm == greedy))
        counts[arm] += 1
        sums[arm] += reward
    return np.array(found)


def epsilon_log(action: np.ndarray, exploration: float) -> AdaptiveLog:
    e = greedy_propensities(action, REWARDS, exploration)
    both = np.where(action[:, None] == np.arange(2), e[:, None], 1 - e[:, None])
    arrays = LogArrays(action=action, reward=REWARDS, propensity=e, propensities=both)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), propensity_status="exact")


def test_propensities_on_given_paths() -> None:
    design = designs.EpsilonGreedy(exploration=0.3)
    plan = make_plan(epsilon_log(np.array([0, 1, 1, 0, 1, 0, 1, 1]), 0.3), design, None, "assignment", 0)
    walker = _Walker(plan)
    for path in itertools.product((0, 1), repeat=8):
        arms = np.array(path)
        tallies = walker.walk(arms, walker.stream(0))
        np.testing.assert_allclose(
            walker.record.propensity, greedy_propensities(arms, REWARDS, 0.3), rtol=1e-12
        )
        np.testing.assert_array_equal(tallies[:, 0], np.bincount(arms, minlength=2))
        np.testing.assert_allclose(tallies[:, 1], np.bincount(arms, weights=REWARDS, minlength=2), atol=1e-12)


def test_propensities_of_the_urn_on_given_paths() -> None:
    log = PlayTheWinner().run(BernoulliArms([0.4, 0.6, 0.5]), 40, rng=1)
    plan = make_plan(log, PlayTheWinner(), None, "assignment", 0)
    walker = _Walker(plan)
    path = np.random.default_rng(0).integers(0, 3, 40)
    walker.walk(path, walker.stream(0))
    urn = np.ones(3)
    for t, (arm, reward) in enumerate(zip(path, log.arrays.reward, strict=True)):
        np.testing.assert_allclose(walker.record.propensities[t], urn / urn.sum(), rtol=1e-12)
        urn += np.where(np.arange(3) == arm, reward, (1 - reward) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["uniform", "pilot", "given"])
def test_the_p_value_tends_to_the_enumerated_one(reference: str) -> None:
    action = np.array([0, 1, 1, 0, 1, 0, 1, 1])

    def absolute(a: np.ndarray, y: np.ndarray, x: object) -> np.ndarray:
        sums = [(y * (a == arm)).sum(axis=-1) for arm in (0, 1)]
        return np.abs(sums[1] - 1.5 * sums[0])

    observed = absolute(action, REWARDS, None)
    exact = sum(
        greedy_propensities(np.array(path), REWARDS, 0.4).prod()
        for path in itertools.product((0, 1), repeat=8)
        if absolute(np.array(path), REWARDS, None) >= observed - 1e-12
    )
    test = weighted_randomization_test(
        epsilon_log(action, 0.4),
        designs.EpsilonGreedy(exploration=0.4),
        absolute,
        20_000,
        0,
        reference=[0.7, 0.3] if reference == "given" else reference,
        vectorised=True,
    )
    weights = np.exp(test.log_weights)
    assert abs(weights.mean() - 1.0) < 4.2 * weights.std() / math.sqrt(20_000)
    error = math.sqrt(exact * (1 - exact) / test.effective_sample_size)
    assert abs(test.pvalue_conservative - exact) < 5.0 * error
    assert test.reference == reference


def test_the_p_value_by_hand() -> None:
    log_weights = np.log(np.array([1.0, 2.0, 4.0, 0.5]))
    beyond, tied = np.array([True, False, False, True]), np.array([False, True, False, False])
    found = importance_p_value(log_weights, math.log(2.5), beyond, tied, 0.25)
    assert found == pytest.approx(((1.5 + 0.25 * 4.5) / 10.0, 6.0 / 10.0))
    shifted = importance_p_value(log_weights - 5_000, math.log(2.5) - 5_000, beyond, tied, 0.25)
    assert shifted == pytest.approx(found)
    none = importance_p_value(np.full(4, -math.inf), -3.0, beyond, tied, 0.25)
    assert none == (0.25, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "reference"),
    [
        (designs.EpsilonGreedy(exploration=0.3), "uniform"),
        (designs.Thompson(draws=3), "uniform"),
        (PlayTheWinner(), "pilot"),
    ],
)
def test_uniform_under_the_null(design: designs.Design, reference: str) -> None:
    """Few rounds and paths, uneven weights: p is uniform all the same, for posterior frequencies too."""
    runs, found, whole = 1_000, [], []
    for seed, log in enumerate(design.logs(BernoulliArms([0.4, 0.4]), 14, runs, rng=8)):
        test = weighted_randomization_test(log, design, "difference", 19, seed, reference=reference)
        found.append(test.pvalue)
        whole.append(test.pvalue_conservative)
    for level in (0.05, 0.1, 0.3, 0.6, 0.9):
        error = math.sqrt(level * (1 - level) / runs)
        assert abs(np.mean(np.array(found) <= level) - level) < 4.3 * error
        assert np.mean(np.array(whole) <= level) < level + 4.0 * error


def test_collapsed_weights_are_named() -> None:
    log = designs.EpsilonGreedy(exploration=0.1).run(NormalArms([0.0, 0.5]), 300, rng=0)
    test = weighted_randomization_test(log, replications=199)
    assert test.effective_sample_size < 10
    assert "the weights have degenerated" in str(test)
    easy = weighted_randomization_test(designs.Uniform().run(NormalArms([0.0, 0.5]), 300, rng=0))
    assert easy.effective_sample_size == pytest.approx(1_000)
    assert easy.notes == ()
    np.testing.assert_allclose(easy.log_weights, 0.0, atol=1e-9)


def test_what_is_refused() -> None:
    two = NormalArms([0.0, 0.5])
    mixed = designs.Mixture(designs.UCB(), 0.3)
    with pytest.raises(InvalidForLog, match="which rounds of the Mixture were overridden"):
        weighted_randomization_test(mixed.run(two, 50, rng=0), mixed)
    private = designs.PrivateUCB(epsilon=1.0)
    with pytest.raises(InvalidForLog, match="no exact propensities"):
        weighted_randomization_test(private.run(BernoulliArms([0.4, 0.5]), 50, rng=0))
    with pytest.raises(ParameterError, match="no random draws of its own"):
        weighted_randomization_test(designs.UCB().run(two, 50, rng=0))
    log = designs.EpsilonGreedy(exploration=0.4).run(two, 50, rng=0)
    wrong = dataclasses.replace(log.arrays, propensity=np.full(50, 0.5), propensities=np.full((50, 2), 0.5))
    other = AdaptiveLog.from_arrays(wrong, arms=(0, 1), design=log.design, propensity_status="exact")
    with pytest.raises(ParameterError, match=r"logged propensities differ from those of EpsilonGreedy"):
        weighted_randomization_test(other)
    for odd in ("best", [0.5, 0.4], [1.0, 0.0], [[0.5, 0.5]], None, [0.3, 0.3, 0.4]):
        with pytest.raises(ParameterError, match="reference"):
            weighted_randomization_test(log, reference=odd)  # type: ignore[arg-type]


def test_frequencies_that_agree_by_luck_are_not_taken_for_the_designs() -> None:
    """One batch of posterior draws a run: two walks agree now and then, and the log is right all the same."""
    design = designs.Thompson(batch_size=20)
    for seed in range(30):
        log = design.run(BernoulliArms([0.5, 0.5]), 20, rng=seed)
        test = weighted_randomization_test(log, design, replications=19, rng=9_000 + seed)
        assert 0.0 < test.pvalue <= 1.0
