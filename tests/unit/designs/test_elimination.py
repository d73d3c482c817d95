"""Successive elimination: what is refused, promised, released and reported."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import elimination_epochs, shortest_horizon
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.simulation.environments import (
    BernoulliArms,
    FiniteContext,
    NormalArms,
    Tableau,
    UniformArms,
)

THREE = BernoulliArms([0.2, 0.9, 0.6])
EVERY: list[Design] = [
    SuccessiveElimination(beta=0.5),
    SuccessiveElimination(beta=0.5, check="epochs"),
    PrivateSuccessiveElimination(epsilon=1.0, beta=0.5),
]
NAMES = ["every-round", "epochs", "private"]
every_design = pytest.mark.parametrize("design", EVERY, ids=NAMES)


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", True, None])
def test_epsilon_must_be_a_positive_number(epsilon: Any) -> None:
    with pytest.raises(ParameterError, match="epsilon must be"):
        PrivateSuccessiveElimination(epsilon=epsilon)


@pytest.mark.parametrize("beta", [0, -0.1, 1.5, math.nan, "half", True])
def test_beta_must_be_a_probability_above_zero(beta: Any) -> None:
    with pytest.raises(ParameterError, match="beta must be"):
        SuccessiveElimination(beta=beta)
    with pytest.raises(ParameterError, match="beta must be"):
        PrivateSuccessiveElimination(epsilon=1.0, beta=beta)


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ParameterError, match="3 problems") as caught:
        PrivateSuccessiveElimination(epsilon=-1.0, beta=2.0, calibration="mended")
    assert "calibration must be one of 'corrected', 'published', got 'mended'" in str(caught.value)
    with pytest.raises(ParameterError, match="2 problems") as caught:
        SuccessiveElimination(beta=0.0, check="sometimes")
    assert "check must be one of 'every-round', 'epochs', got 'sometimes'" in str(caught.value)


@every_design
def test_one_arm_is_refused(design: Design) -> None:
    with pytest.raises(ParameterError, match="must have at least 2 arms, got 1"):
        design.run(BernoulliArms([0.5]), horizon=100_000, rng=0)


@every_design
@pytest.mark.parametrize(
    "environment", [UniformArms([0.0, 0.2], [1.0, 1.5]), Tableau(np.full((100_000, 2), -0.5))]
)
def test_rewards_outside_the_unit_interval_are_refused(design: Design, environment: Any) -> None:
    with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\]"):
        design.run(environment, horizon=100_000, rng=0)


@pytest.mark.parametrize(
    "design",
    [
        PrivateSuccessiveElimination(epsilon=1.0),
        PrivateSuccessiveElimination(epsilon=0.01, beta=0.1),
        SuccessiveElimination(check="epochs"),
    ],
)
@pytest.mark.parametrize("n_arms", [2, 7])
def test_a_horizon_too_short_for_one_epoch_is_refused_with_the_one_that_is_not(
    design: Any, n_arms: int
) -> None:
    epsilon = getattr(design, "epsilon", math.inf)
    needed = shortest_horizon(n_arms, design.beta, epsilon)
    environment = BernoulliArms(np.linspace(0.1, 0.9, n_arms))
    for horizon in (1, n_arms, needed // 2, needed - 1):
        with pytest.raises(ParameterError, match=f"horizon must be at least {needed:,}") as caught:
            design.run(environment, horizon=horizon, rng=0)
        assert f"got {horizon:,}: no arms would ever be compared" in str(caught.value)
    sims = design.replicate(environment, needed, 1, rng=0)
    assert sims.released["epochs"].tolist() == [[1.0]]
    beta = 1.0 / needed if design.beta is None else design.beta
    lengths, _ = elimination_epochs(n_arms, needed, beta, epsilon)
    if design.beta is not None:
        assert n_arms * lengths[n_arms, 0] == needed
    assert n_arms * lengths[n_arms, 0] <= needed


def test_every_round_needs_one_pass() -> None:
    with pytest.raises(ParameterError, match="horizon must be at least 3, one pull of each arm, got 2"):
        SuccessiveElimination().run(THREE, horizon=2, rng=0)
    assert SuccessiveElimination().run(THREE, horizon=3, rng=0).arrays.action.tolist() == [0, 1, 2]


# --- epochs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 1.0, math.inf])
@pytest.mark.parametrize(
    ("n_arms", "horizon", "beta"), [(2, 10**4, 0.3), (5, 5 * 10**7, 2e-8), (40, 10**9, 1)]
)
def test_lengths_and_thresholds_spelled_out(n_arms: int, horizon: int, beta: float, epsilon: float) -> None:
    lengths, thresholds = elimination_epochs(n_arms, horizon, beta, epsilon)
    assert lengths.shape == thresholds.shape
    for m in range(2, n_arms + 1):
        for e in range(1, lengths.shape[1] + 1):
            r = 32 * math.log(8 * m * e * e / beta) * 4**e
            r = max(r, 8 * math.log(4 * m * e * e / beta) * 2**e / epsilon) + 1
            h = math.sqrt(math.log(8 * m * e * e / beta) / (2 * r))
            c = math.log(4 * m * e * e / beta) / (r * epsilon)
            assert lengths[m, e - 1] == math.ceil(r)
            assert thresholds[m, e - 1] == pytest.approx(2 * h + 2 * c, rel=1e-12)
            assert 4 * (h + c) < 2.0**-e  # an arm with a gap of 2^-e goes in epoch e
    begun = 2 * np.concatenate([[0.0], np.cumsum(lengths[2])])
    assert begun[lengths.shape[1] - 1] <= horizon < begun[lengths.shape[1]]


def test_known_lengths_of_the_published_setting() -> None:
    """By hand: 128 log(2e9) + 1 = 2742.3, 512 log(3.2e9) + 1 = 11206.8, 160 log(1e9) + 1 = 3316.7."""
    lengths, _ = elimination_epochs(5, 50_000_000, 2e-8, 1.0)
    assert (lengths[5, 0], lengths[2, 1]) == (2743, 11207)
    lengths, _ = elimination_epochs(5, 50_000_000, 2e-8, 0.1)
    assert lengths[5, 0] == 3317


# --- what a run leaves ----------------------------------------------------------------------------------


def test_releases_of_private_elimination() -> None:
    design = PrivateSuccessiveElimination(epsilon=0.5, beta=0.5)
    log = design.run(THREE, horizon=20_000, rng=3)
    releases = log.releases
    lengths, _ = elimination_epochs(3, 20_000, 0.5, 0.5)
    first = releases.iloc[:3]
    assert set(releases["name"]) == {"noisy_mean"}
    assert set(releases["mechanism"]) == {"laplace"}
    assert first["group"].tolist() == [0, 1, 2]
    assert (first["round"] == 3 * lengths[3, 0]).all()
    np.testing.assert_allclose(first["scale"], 1.0 / (0.5 * lengths[3, 0]), rtol=1e-14)
    arms, rewards = log.arrays.action, log.arrays.reward
    for row in first.itertuples():
        mean = rewards[: row.round][arms[: row.round] == row.group].mean()
        assert 0.0 < abs(row.value - mean) < 30.0 * row.scale
    assert log.noise == "simulation"
    assert log.phases == ()


@every_design
def test_outcomes_and_rounds_tell_the_same(design: Design) -> None:
    log = design.run(THREE, horizon=15_000, rng=4)
    released = design.replicate(THREE, 15_000, 1, rng=4, by_rounds=True).released
    decided, last = int(released["decided_at"][0, 0]), int(released["last_arm"][0, 0])
    arms = log.arrays.action
    assert last == 1
    assert (arms[decided:] == last).all()
    assert arms[decided - 1] != last or arms[decided - 2] != last
    np.testing.assert_array_equal(log.arrays.propensities, np.eye(3)[arms])
    assert log.feedback_rounds == decided


@every_design
def test_a_horizon_before_the_decision_leaves_no_arm_and_no_round(design: Design) -> None:
    flat = Tableau(np.full((9_000, 3), 0.5))
    sims = design.replicate(flat, 9_000, 2, rng=0)
    if isinstance(design, PrivateSuccessiveElimination):
        assert sims.released["epochs"].min() >= 1
    assert np.isnan(sims.released["decided_at"]).all()
    assert np.isnan(sims.released["last_arm"]).all()


def test_an_epoch_that_is_cut_short_releases_and_drops_nothing() -> None:
    design = PrivateSuccessiveElimination(epsilon=1.0, beta=0.5)
    lengths, _ = elimination_epochs(2, 10**6, 0.5, 1.0)
    first = 2 * int(lengths[2, 0])
    whole = first + 2 * int(lengths[2, 1])
    table = np.tile([1.0, 0.9], (whole, 1))  # a gap that the second epoch sees and the first does not
    cut = design.run(Tableau(table, reward_range=(0, 1)), horizon=whole - 1, rng=0)
    assert cut.releases["round"].tolist() == [first] * 2
    assert cut.feedback_rounds == first
    np.testing.assert_array_equal(cut.arrays.action, np.arange(whole - 1) % 2)
    done = design.run(Tableau(table, reward_range=(0, 1)), horizon=whole, rng=0)
    assert done.releases["round"].tolist() == [first] * 2 + [whole] * 2
    assert done.feedback_rounds == whole - 1
    outcomes = design.replicate(Tableau(table), whole - 1, 1, rng=0).outcomes
    np.testing.assert_array_equal(outcomes, [[1.0, np.nan, np.nan]])
    outcomes = design.replicate(Tableau(table), whole, 1, rng=0).outcomes
    np.testing.assert_array_equal(outcomes, [[2.0, whole, 0.0]])
    for by_rounds in (True, False):
        options: dict[str, Any] = {"replications": 20, "rng": 0, "by_rounds": by_rounds}
        cut_sims = design.replicate(BernoulliArms([0.9, 1.0]), horizon=whole - 1, **options)
        assert set(cut_sims.outcomes[:, 0]) == {1.0}
        np.testing.assert_array_equal(cut_sims.pulls, [[whole // 2, whole // 2 - 1]] * 20)
        sims = design.replicate(BernoulliArms([0.9, 1.0]), horizon=whole + 100, **options)
        np.testing.assert_array_equal(sims.outcomes, [[2.0, whole, 1.0]] * 20)
        np.testing.assert_array_equal(sims.pulls, [[whole // 2, whole // 2 + 100]] * 20)


def test_rewards_are_logged_as_they_come_and_clipped_in_the_means() -> None:
    design = PrivateSuccessiveElimination(epsilon=2.0, beta=0.9)
    log = design.run(NormalArms([3.0, -4.0]), horizon=1_500, rng=0)
    assert log.arrays.reward.min() < -1.0
    assert log.arrays.reward.max() > 2.0
    values = log.releases.iloc[:2]["value"].to_numpy()
    assert abs(values[0] - 1.0) < 0.05
    assert abs(values[1]) < 0.05


def test_ties_drop_nothing_and_order_decides_nothing() -> None:
    flat = Tableau(np.full((600, 4), 0.5))
    log = SuccessiveElimination(beta=1.0).run(flat, horizon=600, rng=0)
    np.testing.assert_array_equal(log.arrays.action, np.arange(600) % 4)


# --- privacy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_the_guarantee_does_not_depend_on_arms_epochs_or_calibration(calibration: str) -> None:
    design = PrivateSuccessiveElimination(epsilon=0.7, calibration=calibration)
    expected = PrivacyGuarantee(epsilon=0.7)
    for horizon, n_arms in ((10**4, 2), (10**9, 50)):
        assert design.guarantee(horizon, n_arms) == expected
        assert design.reward_guarantee(horizon, n_arms) == expected
    assert SuccessiveElimination().guarantee(100, 3) is None
    corrected = PrivateSuccessiveElimination(epsilon=0.7).run(THREE, horizon=9_000, rng=0)
    other = design.run(THREE, horizon=9_000, rng=0)
    np.testing.assert_array_equal(corrected.arrays.action, other.arrays.action)


def test_a_reward_moves_one_released_mean_by_at_most_epsilon_scales() -> None:
    """The same noise throughout: what is left of the difference of two databases is the sensitivity."""
    horizon, epsilon = 3_000, 0.4
    design = PrivateSuccessiveElimination(epsilon=epsilon, beta=0.9)
    rewards = np.random.default_rng(0).binomial(1, 0.5, size=(horizon, 2)).astype(float)
    base = design.run(Tableau(rewards, reward_range=(0, 1)), horizon=horizon, rng=6)
    first = int(base.releases["round"].iloc[0])
    losses = []
    for row in (0, 1, first - 1, first, horizon - 1):
        other = rewards.copy()
        other[row] = 1.0 - other[row]
        log = design.run(Tableau(other, reward_range=(0, 1)), horizon=horizon, rng=6)
        np.testing.assert_array_equal(log.arrays.action, base.arrays.action)
        moved = np.abs(log.releases["value"] - base.releases["value"]) / base.releases["scale"]
        assert (moved > 1e-9).sum() == (1 if row < base.feedback_rounds else 0)
        losses.append(moved.sum())
    np.testing.assert_allclose(losses[:3], epsilon, rtol=1e-9)
    assert losses[-1] == 0.0


def test_no_action_depends_on_rewards_after_the_last_comparison() -> None:
    horizon = 12_000
    rewards = np.random.default_rng(1).binomial(1, [0.2, 0.8, 0.5], size=(horizon, 3)).astype(float)
    for design in EVERY:
        log = design.run(Tableau(rewards, reward_range=(0, 1)), horizon=horizon, rng=2)
        assert log.feedback_rounds < horizon - 1
        other = rewards.copy()
        other[log.feedback_rounds :] = 1.0 - other[log.feedback_rounds :]
        again = design.run(Tableau(other, reward_range=(0, 1)), horizon=horizon, rng=2)
        np.testing.assert_array_equal(again.arrays.action, log.arrays.action)
        early = rewards.copy()
        early[: log.feedback_rounds] = 1.0 - early[: log.feedback_rounds]
        assert (
            design.run(Tableau(early, reward_range=(0, 1)), horizon=horizon, rng=2).arrays.action
            != log.arrays.action
        ).any()


# --- the shortcut ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "private", "free"),
    [
        (THREE, True, True),
        (NormalArms([0.2, 0.4]), False, True),
        (UniformArms([0.0, 0.0], [1.0, 0.5]), False, False),
        (Tableau(np.full((30_000, 2), 0.5)), False, False),
        (FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]]), False, False),
    ],
)
def test_where_there_is_a_shortcut(environment: Any, private: bool, free: bool) -> None:
    for design, has in zip(EVERY, (free, free, private), strict=True):
        if has:
            design.replicate(environment, 20_000, 1, rng=0, by_rounds=False)
        else:
            with pytest.raises(ParameterError, match="no shortcut"):
                design.replicate(environment, 20_000, 1, rng=0, by_rounds=False)
            one = design.replicate(environment, 20_000, 2, rng=0)
            two = design.replicate(environment, 20_000, 2, rng=0, by_rounds=True)
            np.testing.assert_array_equal(one.tallies, two.tallies)


@every_design
@pytest.mark.parametrize("by_rounds", [True, False])
def test_replicates_depend_on_seed_and_number_alone(design: Design, by_rounds: bool) -> None:
    options: dict[str, Any] = {"horizon": 6_001, "rng": 9, "by_rounds": by_rounds}
    whole = design.replicate(THREE, replications=200, **options)
    again = design.replicate(THREE, replications=200, n_jobs=2, **options)
    part = design.replicate(THREE, replications=170, start=128, **options)
    np.testing.assert_array_equal(whole.tallies, again.tallies)
    np.testing.assert_array_equal(whole.outcomes, again.outcomes)
    np.testing.assert_array_equal(whole.tallies[128:170], part.tallies)
    np.testing.assert_array_equal(whole.outcomes[128:170], part.outcomes)
    np.testing.assert_array_equal(whole.pulls.sum(axis=1), 6_001)


def test_squares_of_a_stretch_are_squares() -> None:
    sims = SuccessiveElimination().replicate(THREE, 5_000, 64, rng=0)
    np.testing.assert_array_equal(sims.tallies[..., 2], sims.tallies[..., 1])
    sims = SuccessiveElimination().replicate(NormalArms([5.0, 2.0], scale=0.5), 5_000, 64, rng=0)
    counts, sums, squares = (sims.tallies[:, 0, 0, :, part] for part in range(3))
    within = squares - sums**2 / counts
    assert (within[counts > 1.0] >= 0.0).all()
    np.testing.assert_allclose(within[:, 0] / (counts[:, 0] - 1.0), 0.25, rtol=0.15)
