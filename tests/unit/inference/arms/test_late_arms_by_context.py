"""Arms that come and go where contexts move propensities: tables compare them on the rounds in common."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.data.availability import DIFFERENT_ROUNDS
from adaptinf.claims.propensities import AVAILABILITY_ALONE

ROUNDS, JOINS = 1_000, 300
LABELS = ("A", "B", "C")


def frame_of(rng: np.random.Generator, turns: int = 1) -> pd.DataFrame:
    """Equal arms under a level that rises by two standard deviations; C comes late, or comes and goes."""
    time, context = np.arange(ROUNDS), rng.integers(0, 2, ROUNDS)
    there = time >= JOINS if turns == 1 else (time * turns // ROUNDS) % 2 == 1
    share = np.where(context[:, None] == 1, [0.6, 0.2, 0.2], [0.2, 0.3, 0.5])
    share = np.where(there[:, None] | (np.arange(3) < 2), share, 0.0)
    share /= share.sum(axis=1, keepdims=True)
    arm = (rng.random(ROUNDS)[:, None] > share.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    reward = 2.0 * time / ROUNDS + 0.5 * context + rng.standard_normal(ROUNDS)
    told = {f"p_{label}": share[:, k] for k, label in enumerate(LABELS)}
    return pd.DataFrame({"arm": np.array(LABELS)[arm], "reward": reward, **told, "x": context})


def log_of(frame: pd.DataFrame) -> ai.AdaptiveLog:
    names = {label: f"p_{label}" for label in LABELS}
    return ai.AdaptiveLog(frame, action="arm", reward="reward", propensities=names, context="x")


def literal(frame: pd.DataFrame, one: str, other: str) -> float:
    """The mean difference of the scores of two arms over the rounds in which both could be chosen."""
    sums, counts = dict.fromkeys(LABELS, 0.0), dict.fromkeys(LABELS, 0)
    total = rounds = 0.0
    for number, row in enumerate(frame.itertuples()):
        pooled = sum(sums.values()) / number if number else 0.0
        means = {a: sums[a] / counts[a] if counts[a] else pooled for a in (one, other)}
        chance = {a: getattr(row, f"p_{a}") for a in (one, other)}
        if number and min(chance.values()) > 0.0:
            score = {a: means[a] + (row.arm == a) * (row.reward - means[a]) / chance[a] for a in chance}
            total, rounds = total + score[one] - score[other], rounds + 1.0
        sums[row.arm] += row.reward
        counts[row.arm] += 1
    return total / rounds


def test_differences_are_those_of_the_rounds_in_common() -> None:
    frame = frame_of(np.random.default_rng(1))
    result = ai.ArmMeans(log_of(frame)).fit()
    assert result.weights == "joint"
    assert AVAILABILITY_ALONE() in " ".join(result.notes)
    assert not says(result.cautions, DIFFERENT_ROUNDS)
    contrast = ai.Contrast(log_of(frame), treatment="C", control="A").fit()
    assert contrast.weights == "uniform"
    assert contrast.estimate[0] == pytest.approx(literal(frame, "C", "A"), rel=1e-9)
    tested = result.t_test("C - A")
    assert tested.effect[0] == pytest.approx(contrast.estimate[0], rel=1e-12)
    assert tested.conf_int() == pytest.approx(contrast.conf_int().to_numpy(), rel=1e-12)


def test_arms_that_come_and_go_often_keep_their_own_rounds() -> None:
    result = ai.ArmMeans(log_of(frame_of(np.random.default_rng(2), turns=9))).fit()
    assert result.weights == "uniform"
    assert says(result.cautions, DIFFERENT_ROUNDS)


@pytest.mark.slow
def test_equal_arms_are_not_told_apart() -> None:
    runs, rng, alpha = 300, np.random.default_rng(3), 0.05
    rejected = missed = dropped = 0
    for _ in range(runs):
        log = log_of(frame_of(rng))
        result = ai.ArmMeans(log).fit()
        rejected += result.t_test("C - A").pvalue < alpha
        low, high = result.conf_int().to_numpy().T
        missed += bool(np.any((low > 1.25) | (high < 1.25)))
        dropped += not ai.Winner(log).fit().best_arms(alpha)["in_set"]["A"]
    most = stats.binom.ppf(1.0 - 1e-5, runs, alpha)
    assert rejected <= most
    assert dropped <= most
    assert missed <= stats.binom.ppf(1.0 - 1e-5, runs, 3 * alpha)
