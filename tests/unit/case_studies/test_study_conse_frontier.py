"""What the study of estimation against regret computes: its estimators, intervals, regimes and seasons."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.designs import ConSE, DPConSE
from adaptinf.simulation.environments import FiniteContext
from adaptinf.typing import FloatArray, IntArray
from case_studies.conse_frontier import budgets, curves, estimators, intervals, run, seasons

FEATURES = np.array([[1.0, 0.3], [0.2, -1.0]])


@pytest.fixture
def trial() -> tuple[IntArray, FloatArray]:
    rng = np.random.default_rng(3)
    action = rng.integers(0, 2, (3, 43))
    return action, action + rng.standard_normal(action.shape)


def literal_ridge(arms: IntArray, rewards: FloatArray) -> FloatArray:
    design = FEATURES[arms]
    return np.linalg.inv(design.T @ design + np.eye(2)) @ design.T @ rewards


def literal_pseudo_rewards(action: IntArray, reward: FloatArray) -> FloatArray:
    """Doubly robust rewards of one trial, round by round."""
    filled = np.empty((action.size, 2))
    for t in range(action.size):
        others = np.arange(action.size) % estimators.FOLDS != t % estimators.FOLDS
        coefficients = literal_ridge(action[others], reward[others])
        for arm in range(2):
            filled[t, arm] = FEATURES[arm] @ coefficients
        filled[t, action[t]] += (reward[t] - filled[t, action[t]]) / 0.5
    return filled


def test_double_machine_learning_is_the_literal_one(trial: tuple[IntArray, FloatArray]) -> None:
    action, reward = trial
    aipw = estimators.aipw(action, reward, FEATURES)
    contrast = estimators.dr_ridge(action, reward, FEATURES)
    for one in range(action.shape[0]):
        filled = literal_pseudo_rewards(action[one], reward[one])
        assert aipw[one] == pytest.approx((filled[:, 1] - filled[:, 0]).mean(), rel=1e-10)
        arms = np.tile([0, 1], action.shape[1])
        coefficients = literal_ridge(arms, filled.ravel())
        assert contrast[one] == pytest.approx((FEATURES[1] - FEATURES[0]) @ coefficients, rel=1e-10)


def test_refitted_after_every_round_is_the_literal_one(trial: tuple[IntArray, FloatArray]) -> None:
    action, reward = trial[0][0], trial[1][0]
    filled = np.empty((action.size, 2))
    for t in range(action.size):
        filled[t] = FEATURES @ literal_ridge(action[:t], reward[:t])
        filled[t, action[t]] += (reward[t] - filled[t, action[t]]) / 0.5
    coefficients = literal_ridge(np.tile([0, 1], action.size), filled.ravel())
    found = estimators.refitted_dr_ridge(action, reward, FEATURES)
    assert found == pytest.approx((FEATURES[1] - FEATURES[0]) @ coefficients, rel=1e-10)


def test_mean_difference_and_partialling_out(trial: tuple[IntArray, FloatArray]) -> None:
    action, reward = trial
    means = estimators.mean_difference(action, reward)
    partial = estimators.partialling_out(action, reward)
    for one in range(action.shape[0]):
        a, r = action[one], reward[one]
        assert means[one] == pytest.approx(r[a == 1].mean() - r[a == 0].mean())
        left, right = np.empty(a.size), np.empty(a.size)
        for t in range(a.size):
            others = np.arange(a.size) % estimators.FOLDS != t % estimators.FOLDS
            left[t], right[t] = r[t] - r[others].mean(), a[t] - a[others].mean()
        assert partial[one] == pytest.approx((left @ right) / (right @ right))


def test_collinear_features_break_the_contrast_of_the_fit_alone() -> None:
    experiment = budgets.EXPERIMENTS[1]
    found = budgets.estimates(experiment, 800, 40, np.random.default_rng(1))
    assert np.abs(found["DML"]).max() < 0.01
    for name in ("MD", "AIPW", "PLR"):
        assert found[name].mean() == pytest.approx(experiment.effect, abs=6 * math.sqrt(4 / 800 / 40))


def test_fixed_cost_meets_the_two_errors_it_was_made_from() -> None:
    for row, column in zip(budgets.fixed_cost().itertuples(), (0, 1), strict=True):
        for budget in (200, 400):
            printed = budgets.EXPERIMENTS[0].printed[budget][column]
            assert row.constant / (budget - row.cost) == pytest.approx(printed)


def test_first_epoch_costs_more_than_the_largest_budget() -> None:
    # 32 log(16 n) / (1/2)^2 + 1 arrivals, half of them at a gap of 2
    assert budgets.first_epoch_regret() == math.ceil(128 * math.log(16 * 20_000) + 1) > 800


@pytest.mark.parametrize("regime", curves.REGIMES)
def test_rarest_context_has_its_share(regime: str) -> None:
    env = curves.world(curves.rarest(regime, 10**5), 10**5)
    assert env.probabilities.min() * 10**5 == pytest.approx(curves.rarest(regime, 10**5))
    assert env.probabilities[0, 0] == env.probabilities.min()
    assert np.abs(env.effects()) == pytest.approx(np.full(10, curves.GAP))


@pytest.mark.parametrize("design", [ConSE(alpha=0.5), DPConSE(epsilon=1.0, alpha=0.2)])
def test_intervals_are_those_of_cate(design: ConSE | DPConSE) -> None:
    env = FiniteContext([0.5, 0.5], [[0.35, 0.65], [0.65, 0.35]])
    log = design.run(env, horizon=6_000, rng=4)
    sims = design.replicate(env, 6_000, 1, rng=4, by_rounds=True)
    private = isinstance(design, DPConSE)
    fitted = ai.CATE(log, by="feature").fit("released" if private else None)
    if not isinstance(design, DPConSE):
        limits = intervals.welch_intervals(sims)
    else:
        limits = intervals.private_intervals(design, sims)
    np.testing.assert_allclose(limits[0], fitted.conf_int(), rtol=1e-9)
    np.testing.assert_allclose(curves.estimates_of(design, sims)[0], fitted.params, rtol=1e-9)


def test_printed_intervals_and_coverage() -> None:
    limits = intervals.printed_intervals(np.array([[0.3, np.nan], [0.3, 0.1]]), 100.0)
    half = 1.959964 * math.sqrt(0.455 / 100.0)
    np.testing.assert_allclose(limits[0, 0], [0.3 - half, 0.3 + half])
    found = intervals.coverage(limits, np.array([0.3, 0.3]))
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["mean length"] == pytest.approx(2 * half)
    assert found["without an interval"] == pytest.approx(0.25)


def test_a_trial_is_filled_with_t_min_arrivals() -> None:
    env = seasons.falling(0.1, 20_000)
    sims = ConSE(alpha=0.2).replicate(env, 20_000, 64, rng=1)
    trial = sims.tallies[:, 2, :, :, 0].sum(axis=2)
    # 5,000^.8 = 910 arrivals are needed, 500 come
    assert (trial[:, 0] < sims.outcomes[:, 0]).all()
    np.testing.assert_array_equal(curves.filled(sims), [[False, True]] * 64)


def test_seasons_leave_each_half_its_arrivals() -> None:
    half = seasons.HORIZON // 2
    sims = ConSE(alpha=1.0).replicate(seasons.falling(0.3), seasons.HORIZON, 64, rng=1)
    second = sims.phase_tallies("estimation")[..., 0].sum(axis=2).mean(axis=0)
    np.testing.assert_allclose(second, [0.15 * half, 0.85 * half], rtol=0.02)
    for period, share in ((half, 0.1), (seasons.SHORT, 0.5)):
        sims = ConSE(alpha=1.0).replicate(seasons.swapping(period), seasons.HORIZON, 64, rng=2)
        second = sims.phase_tallies("estimation")[..., 0].sum(axis=2).mean(axis=0)
        np.testing.assert_allclose(second / half, [share, 1.0 - share], rtol=0.02)


def test_a_figure_comes_from_exactly_one_row() -> None:
    table = pd.DataFrame({"f_min": ["a", "a"], "alpha": [0.0, 1.0], "value": [3.0, 4.0]})
    assert run.one(table, f_min="a", alpha=1.0)["value"] == 4.0
    with pytest.raises(ValueError, match="2 rows"):
        run.one(table, f_min="a")
