"""Cautions for means that must stay, for limits that rare or skewed rewards put off, and for skewed units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import rare_outcomes, stationarity, units
from adaptinf.claims.arms import alee
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray


def log_of(reward: FloatArray, seed: int = 1) -> AdaptiveLog:
    """Two arms under a fair coin that the log does not tell of."""
    action = np.random.default_rng(seed).integers(0, 2, len(reward))
    return AdaptiveLog.from_arrays(LogArrays(action=action, reward=reward), arms=("a", "b"))


def test_alee_and_sequences_say_that_means_must_stay() -> None:
    """In a note where no trend is found; as a caution where too few rewards can show one."""
    log = log_of(np.random.default_rng(2).normal(size=400))
    few = log_of(np.random.default_rng(2).normal(size=30))
    assert ai.ArmMeans(log).fit().estimator == "alee"
    sequence = ai.ConfidenceSequence(log)
    for result in (
        ai.ArmMeans(log).fit(),
        ai.Contrast(log, treatment="b", control="a").fit(),
        sequence.fit("asymptotic"),
    ):
        assert result.cautions == ()
        assert says(result.notes, stationarity.NO_TREND)
    assert says(ai.ArmMeans(few).fit().cautions, stationarity.UNTESTED)
    assert not says(ai.ArmMeans(few).fit(stationary=True).cautions, stationarity.UNTESTED)
    assert ai.ArmMeans(log).fit(stationary=True).cautions == ()
    assert ai.Contrast(log, treatment="b", control="a").fit(stationary=True).cautions == ()
    assert sequence.fit("asymptotic", stationary=True).cautions == ()
    for row in ai.recommend(log).methods:
        if row.verdict.valid:
            assert "stationary=True" in row.call
            assert not says(row.run().cautions, stationarity.UNTESTED)
    [caution] = ai.ArmMeans(log).fit(arm_error="self-normalised", stationary=True).cautions
    assert says(caution, alee.UNDERCOVERS)


def test_an_asymptotic_sequence_cautions_of_rare_and_skewed_rewards() -> None:
    """By the squared skewness of all rewards over an arm's count, from .05 on."""
    rng = np.random.default_rng(3)
    rare = log_of((np.arange(2_000) % 100 == 0).astype(float))
    found = ai.ConfidenceSequence(rare).fit("asymptotic", stationary=True).cautions
    assert says(found[0], rare_outcomes.FEW_OUTCOMES, enough=20)
    skewed = np.exp(1.5 * rng.normal(size=1_000))
    log = log_of(skewed)
    centred = skewed - skewed.mean()
    squared = np.mean(centred**3) ** 2 / np.mean(centred**2) ** 3
    counts = np.bincount(log.arrays.action)
    assert squared / counts.max() > 0.05
    [caution] = ai.ConfidenceSequence(log).fit("asymptotic", stationary=True).cautions
    assert says(caution, rare_outcomes.SKEWED_UNCORRECTED, terms="a, b")
    assert (
        ai.ConfidenceSequence(log_of(rng.normal(size=1_000))).fit("asymptotic", stationary=True).cautions
        == ()
    )


@pytest.mark.parametrize(("skewed", "n_units"), [(True, 40), (False, 40), (True, 2_000)])
def test_few_units_with_skewed_means_are_cautioned(skewed: bool, n_units: int) -> None:
    """By the squared skewness of the units' means over the number of units that had the arm, from .05 on."""
    rng = np.random.default_rng(4)
    level = rng.exponential(size=n_units) ** 2 if skewed else rng.normal(size=n_units)
    unit = np.repeat(np.arange(n_units), 5)
    action = rng.integers(0, 2, n_units)[unit]
    frame = pd.DataFrame(
        {
            "arm": np.array(["a", "b"])[action],
            "reward": level[unit] + 0.1 * rng.normal(size=len(unit)),
            "p": 0.5,
            "person": unit,
        }
    )
    log = AdaptiveLog(frame, action="arm", reward="reward", propensity="p", unit="person")
    told = [one for one in ai.ArmMeans(log).fit("aipw").cautions if says(one, units.SKEWED)]
    assert len(told) == (skewed and n_units == 40)


def test_propensities_kept_in_batches_are_fixed_before_contexts() -> None:
    rng = np.random.default_rng(3)
    batch = np.repeat(np.arange(12), rng.integers(2, 9, size=12))
    every = rng.dirichlet([2.0, 2.0, 2.0], size=12)[batch]
    every[np.flatnonzero(batch == 4)[0], 1] *= 1.0 + 1e-12  # rounding of a file
    moved = every.copy()
    last = np.flatnonzero(batch == 7)[-1]
    moved[last] = [moved[last, 0], moved[last, 1] - 0.01, moved[last, 2] + 0.01]
    for propensities, fixed in ((every, [True, True, True]), (moved, [True, False, False])):
        frame = pd.DataFrame({"arm": rng.integers(0, 3, len(batch)), "y": 1.0, "batch": batch})
        frame[[f"propensity_{k}" for k in range(3)]] = propensities
        log = ai.AdaptiveLog(frame, action="arm", reward="y", batch="batch")
        assert profile_of(log).fixed_before_contexts.tolist() == fixed
    alone = ai.AdaptiveLog(frame.assign(batch=np.arange(len(frame))), action="arm", reward="y", batch="batch")
    assert not profile_of(alone).fixed_before_contexts.any()  # batches of one round show nothing


@pytest.mark.parametrize(
    ("least", "n_units", "by_round"), [(0.1, 40, False), (0.1, 60, False), (0.1, 40, True)]
)
def test_units_that_one_draw_gave_an_arm_against_the_odds_are_cautioned(
    least: float, n_units: int, by_round: bool
) -> None:
    """40 units at .1 are 4 that should get the arm, and 60 are 6; draws by round are many."""
    rng = np.random.default_rng(8)
    unit = np.repeat(np.arange(n_units), 20)
    share = np.where(np.arange(n_units) % 2 == 0, least, 0.9)[unit]
    action = (rng.random(len(unit)) < share) if by_round else (rng.random(n_units) < share[::20])[unit]
    frame = pd.DataFrame({"arm": np.array(["a", "b"])[action.astype(int)], "person": unit})
    frame["p_a"], frame["p_b"], frame["y"] = 1.0 - share, share, rng.normal(size=len(unit))
    given = {"propensities": {"a": "p_a", "b": "p_b"}, "unit": "person"}
    log = ai.AdaptiveLog(frame, action="arm", reward="y", **given)
    few = n_units * least < 5.0 and not by_round
    for fit in (ai.ArmMeans(log).fit("ipw"), ai.Contrast(log, treatment="b", control="a").fit("aipw")):
        told = [one for one in fit.cautions if says(one, units.SELDOM_DRAWN)]
        assert len(told) == few
        assert not few or says(told[0], units.SELDOM_DRAWN, units=40, arms="a (4.0), b (4.0)")
