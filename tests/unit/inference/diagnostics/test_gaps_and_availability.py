"""Diagnosis where rewards are missing, and where arms come late or leave."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims import diagnosis as claims
from adaptinf.inference.diagnostics.diagnosis_results import AGAINST, CAUTION, FINE, NOT_APPLICABLE

ROUNDS = 900
REWARDS = ("sample mean against AIPW", "common drift", "drift over time", "drift by batch")


def visits(lost: np.ndarray) -> ai.AdaptiveLog:
    """Two arms with even chances, in nine batches; rewards are missing where `lost` says."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"arm": rng.choice(["a", "b"], ROUNDS), "day": np.arange(ROUNDS) // 100, "p": 0.5})
    reward = rng.binomial(1, 0.4, ROUNDS).astype(float)
    frame["y"] = np.where(lost, np.nan, reward)
    names = {"action": "arm", "reward": "y", "propensity": "p", "batch": "day"}
    return ai.AdaptiveLog(frame, **names, missing="drop", reward_range=(0, 1))


def counts(log: ai.AdaptiveLog, lost: np.ndarray) -> pd.DataFrame:
    return pd.crosstab(log.frame["action"].to_numpy(), lost)


def test_what_needs_no_rewards_is_checked_and_the_rest_says_why_not() -> None:
    lost = np.random.default_rng(1).random(ROUNDS) < 0.2
    found = ai.diagnose(visits(lost))
    assert all(row.verdict != NOT_APPLICABLE for row in found.check("propensity calibration"))
    assert [row.statistic for row in found.check("missing rewards")] == pytest.approx(
        (counts(visits(lost), lost)[True] / counts(visits(lost), lost).sum(axis=1)).tolist()
    )
    for name in REWARDS:
        [row] = found.check(name)
        assert (row.verdict, row.advice) == (
            NOT_APPLICABLE,
            claims.NEEDS_REWARDS(missing=int(lost.sum()), rounds=ROUNDS),
        )
    told = [note for note in found.summary().notes if str(row.advice) in note]
    assert told == [
        f"Sample mean against AIPW, {', '.join(REWARDS[1:])}, {claims.COULD_BE_MISSED}: {row.advice}."
    ]
    assert found.concerns == ()


def test_missing_rewards_that_depend_on_the_arm() -> None:
    rng = np.random.default_rng(1)
    arm = visits(np.zeros(ROUNDS, dtype=bool)).frame["action"].to_numpy()
    lost = rng.random(ROUNDS) < np.where(arm == "b", 0.3, 0.1)
    found = ai.diagnose(visits(lost))
    [row] = found.check("missing by arm")
    expected = stats.chi2_contingency(counts(visits(lost), lost), correction=False)
    assert (row.measure, row.verdict) == ("chi2(1)", AGAINST)
    assert row.statistic == pytest.approx(expected.statistic)
    assert np.exp(row.log_pvalue) == pytest.approx(expected.pvalue)
    assert says(row.claims, claims.MISSING_BY_ARM)
    assert found.check("missing by batch")[0].verdict != AGAINST


def test_few_missing_rewards_are_tested_exactly() -> None:
    lost = np.isin(np.arange(ROUNDS), [3, 895, 896, 898])
    log = visits(lost)
    [row] = ai.diagnose(log).check("missing by arm")
    table = counts(log, lost).to_numpy()
    less, greater = (stats.fisher_exact(table, side).pvalue for side in ("less", "greater"))
    assert row.measure == "Fisher's exact"
    assert np.exp(row.log_pvalue) == pytest.approx(min(1.0, 2.0 * min(less, greater)))


def test_missing_rewards_that_depend_on_the_time() -> None:
    chance = np.where(np.arange(ROUNDS) >= 750, 0.5, 0.1)
    lost = np.random.default_rng(2).random(ROUNDS) < chance
    found = ai.diagnose(visits(lost))
    [row] = found.check("missing by batch")
    assert (row.measure, row.verdict) == ("chi2(10)", AGAINST)
    assert says(row.claims, claims.NOT_YET_IN)
    few = np.zeros(ROUNDS, dtype=bool)
    few[-20:] = True
    [row] = ai.diagnose(visits(few)).check("missing by batch")
    assert (row.measure, row.verdict) == ("exact, 12 cells", AGAINST)


def arms_that_move(there: np.ndarray) -> ai.AdaptiveLog:
    """Three arms; the last can be chosen only where `there` says."""
    rng = np.random.default_rng(4)
    chances = np.where(there[:, None], [0.4, 0.3, 0.3], [0.5, 0.5, 0.0])
    frame = pd.DataFrame(chances, columns=[f"propensity_{arm}" for arm in range(3)])
    frame["action"] = [rng.choice(3, p=row) for row in chances]
    frame["reward"], frame["batch"] = rng.normal(size=ROUNDS), np.arange(ROUNDS) // 100
    return ai.AdaptiveLog(frame, action="action", reward="reward", batch="batch")


@pytest.mark.parametrize("summed", [False, True])
def test_a_late_arm_is_no_poor_overlap(*, summed: bool) -> None:
    log = arms_that_move(np.arange(ROUNDS) >= 400)
    found = ai.diagnose(ai.Sums.of_log(log) if summed else log)
    assert [row.statistic for row in found.check("overlap", 2)] == [0.0, 0.0]
    [row] = found.check("availability")
    assert (row.term, row.statistic, row.verdict) == ("2", 400.0, FINE)
    assert says(row.claims, claims.NOT_THERE)
    assert found.concerns == ()


@pytest.mark.parametrize("summed", [False, True])
def test_an_arm_that_left_may_have_left_for_its_rewards(*, summed: bool) -> None:
    log = arms_that_move(np.arange(ROUNDS) < 400)
    found = ai.diagnose(ai.Sums.of_log(log) if summed else log)
    [row] = found.check("availability")
    assert (row.term, row.statistic, row.verdict) == ("2", 500.0, CAUTION)
    assert says(row.claims, claims.WENT_AWAY)


def test_an_arm_that_is_never_drawn_has_poor_overlap_still() -> None:
    log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=200, rng=1)
    found = ai.diagnose(log)
    assert "availability" not in found.questions
    assert found.check("overlap", 0)[0].verdict == CAUTION
