"""Scores of all pairs with one control in one pass: those of a stream for each pair, and joint errors."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.inference.arms.data import pair_tables
from adaptinf.inference.inputs.rounds import times_of
from adaptinf.inference.results import Results
from adaptinf.inference.scores import joint_levels
from adaptinf.inference.scores.batch_sums import arm_factors
from adaptinf.inference.scores.inverse import arm_scores, combined_weights
from adaptinf.inference.scores.means import weighted_means
from adaptinf.inference.scores.pair_scores import pair_scores
from adaptinf.inference.scores.score_stream import streamed_means
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS, ARMS, BATCHES = 5_000, 4, 10


def rounds(level: float = 3.0) -> LogArrays:
    """Batches with propensities of their own; the last arm joins in the third."""
    rng = np.random.default_rng(7)
    batch = np.arange(ROUNDS) * BATCHES // ROUNDS
    every = 0.1 + rng.dirichlet(np.ones(ARMS), BATCHES)
    every[:2, 3] = 0.0
    every = (every / every.sum(axis=1, keepdims=True))[batch]
    action = (every.cumsum(axis=1) > rng.random((ROUNDS, 1))).argmax(axis=1)
    reward = rng.gamma(2.0, size=ROUNDS) + level * action
    own = every[np.arange(ROUNDS), action]
    return LogArrays(action=action, reward=reward, propensity=own, propensities=every, batch=batch)


def test_the_first_arm_of_a_pair_counts_for_it_and_the_second_against_it() -> None:
    codes = np.array([[1, 0], [2, 0]])
    assert arm_factors(codes, 3).tolist() == [[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
    assert arm_factors(codes, 3, np.array([2.0, 0.5])).tolist() == [[-2.0, 1.0, 0.0], [-0.5, 0.0, 1.0]]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("running", [False, True])
def test_each_pair_has_the_numbers_of_its_own_stream(uniform: bool, running: bool) -> None:
    arrays = rounds()
    columns = (arrays.action, arrays.reward, arrays.propensity, arrays.propensities)
    codes = np.array([[3, 1], [0, 1], [2, 1]])
    time = times_of(ROUNDS, arrays.batch)
    found = pair_scores(columns, codes, time, uniform=uniform, running=running)
    errors = []
    for pair, means in zip(codes, found, strict=True):
        options = {
            "weights": "uniform" if uniform else combined_weights(arrays.propensities[:, pair]),
            "outcome": "running-mean" if running else None,
            "start": int(running),
            "jointly": True,
        }
        own = streamed_means(*columns, pair, batch=arrays.batch, **options)
        for field in fields(own):
            if field.name not in ("by_unit", "squares", "products"):
                one, other = (np.asarray(getattr(each, field.name)) for each in (own, means))
                np.testing.assert_allclose(other, one, rtol=1e-13, err_msg=field.name)
        scored = arm_scores(*columns, pair, **options)
        influence = weighted_means(scored.scores, scored.weights).influence
        errors.append(influence[:, 0] - influence[:, 1])
    np.testing.assert_allclose(found[0].products, np.array(errors) @ np.array(errors).T, rtol=1e-10)


def test_tables_are_the_same_by_one_pass_and_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    def table(few: int, **fitted: object) -> Results:
        monkeypatch.setattr(pair_tables, "FEW_SCORES", few)
        log = AdaptiveLog.from_arrays(rounds(0.1), arms=("a", "b", "c", "d"))
        return ai.Contrasts(log, control="b").fit(**fitted)

    for fitted in ({}, {"estimator": "ipw"}, {"estimator": "aipw", "weights": "uniform"}):
        one, other = table(0, **fitted), table(10**9, **fitted)
        assert one.terms == ("a - b", "c - b", "d - b")
        for name in ("estimate", "std_error", "covariance"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-11, err_msg=name)
        assert (one.notes, one.cautions) == (other.notes, other.cautions)
        assert str(one.summary()) == str(other.summary())


def test_an_arm_without_a_usable_round_has_no_estimate() -> None:
    arrays = rounds()
    every = arrays.propensities.copy()
    every[:, 3] = 0.0
    kept = arrays.action != 3
    columns = (arrays.action[kept], arrays.reward[kept], arrays.propensity[kept], every[kept])
    time = times_of(int(kept.sum()), None)
    found = pair_scores(columns, np.array([[3, 1], [0, 1]]), time, uniform=False, running=True)
    assert np.isnan(found[0].above).all()
    assert np.isfinite(found[1].above).all()
    np.testing.assert_array_equal(found[0].products[0], [0.0, 0.0])


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_joint_means_of_rounds_alike_and_of_each_alone(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches with the same weights at once, and rounds one by one, give the numbers of short logs."""

    def fit(small: int) -> Results:
        monkeypatch.setattr(joint_levels, "_SMALL", small)
        log = AdaptiveLog.from_arrays(rounds(0.1), arms=("a", "b", "c", "d"))
        return ai.ArmMeans(log).fit("aipw", "joint")

    short = fit(10**9)
    monkeypatch.setattr(joint_levels, "_FEWEST_ALIKE", share)
    long = fit(0)
    assert (long.weights, long.notes, long.cautions) == (short.weights, short.notes, short.cautions)
    np.testing.assert_allclose(long.estimate, short.estimate, rtol=1e-12)
    np.testing.assert_allclose(long.covariance, short.covariance, rtol=1e-9)
