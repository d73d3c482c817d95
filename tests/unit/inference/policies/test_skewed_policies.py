"""Values of policies with rare outcomes and skewed rewards, whatever their coding."""

from __future__ import annotations

import numpy as np
import pytest
from claims_said import says

from adaptinf.claims import rare_outcomes
from adaptinf.claims.laws import GAMMA, HALL
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.distributions.skewed import SkewedSumReference
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

ROUNDS = 800


def log_of(reward: str, origin: float = 0.0, step: float = 1.0) -> AdaptiveLog:
    """Two arms by propensities that wander."""
    rng = np.random.default_rng(2)
    share = np.clip(0.5 + 0.4 * np.sin(np.arange(ROUNDS) / 40.0), 0.1, 0.9)
    action = (rng.random(ROUNDS) < share).astype(np.int64)
    values = {
        "lognormal": lambda: rng.lognormal(size=ROUNDS),
        "normal": lambda: rng.normal(size=ROUNDS),
        "events": lambda: (rng.random(ROUNDS) < 0.03).astype(float),
        "few": lambda: np.where((action == 1) & (np.arange(ROUNDS) > 6), 0.0, rng.normal(size=ROUNDS)),
    }[reward]()
    both = np.column_stack([1.0 - share, share])
    own = both[np.arange(ROUNDS), action]
    arrays = LogArrays(action, origin + step * values, propensity=own, propensities=both)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


def test_the_value_of_an_arm_has_the_law_of_its_mean() -> None:
    log = log_of("lognormal")
    value = PolicyValue(log, ["a", "b"]).fit(weights="uniform")
    means = ArmMeans(log).fit("aipw", "uniform")
    assert isinstance(value.reference, SkewedSumReference)
    np.testing.assert_allclose(value.estimate, means.estimate, rtol=1e-10)
    np.testing.assert_allclose(value.std_error, means.std_error, rtol=1e-10)
    np.testing.assert_allclose(value.conf_int().to_numpy(), means.conf_int().to_numpy(), rtol=1e-8)
    np.testing.assert_allclose(value.log_pvalues, means.log_pvalues, rtol=1e-8)


def test_normal_rewards_keep_student() -> None:
    result = PolicyContrast(log_of("normal"), "b", baseline="a").fit(weights="uniform")
    assert isinstance(result.reference, StudentReference)
    assert result.cautions == ()


def test_few_uncommon_outcomes_leave_no_normal_interval() -> None:
    result = PolicyValue(log_of("few"), ["a", "b"]).fit(weights="uniform")
    assert np.isfinite(result.conf_int().to_numpy()).all()
    (note,) = [note for note in result.notes if says(note, rare_outcomes.COUNTED, enough=10)]
    assert note.values["terms"].startswith("b (")
    contrast = PolicyContrast(log_of("few"), "b", baseline="a").fit(weights="uniform")
    assert np.isnan(contrast.pvalues.iloc[0])  # no reward of a is common, so events cannot be counted
    assert says(contrast.notes, rare_outcomes.NO_INTERVAL, fewest=5)


@pytest.mark.filterwarnings("ignore::adaptinf.errors.AdaptinfWarning")
@pytest.mark.parametrize("reward", ["lognormal", "events"])
@pytest.mark.parametrize(("origin", "step"), [(1e6, 1.0), (0.0, 100.0), (-1.0, 2.0)])
def test_any_coding_gives_the_same_values(reward: str, origin: float, step: float) -> None:
    def fit(log: AdaptiveLog) -> tuple[FloatArray, tuple[str, ...], str]:
        result = PolicyContrast(log, ["b", "uniform"], baseline="a").fit(weights="uniform")
        return result.conf_int().to_numpy(), result.cautions, result.reference.name

    plain, moved = fit(log_of(reward)), fit(log_of(reward, origin, step))
    np.testing.assert_allclose(moved[0], step * plain[0], atol=2e-8 * step)  # 1e6 + y is rounded itself
    assert moved[1:] == plain[1:]
    assert plain[2] == (GAMMA() if reward == "events" else HALL())


def heavy_log(draw: str, seed: int) -> AdaptiveLog:
    """Five arms with propensities that change every 50 rounds, 2,000 rounds."""
    rng = np.random.default_rng(seed)
    both = np.repeat(0.02 + 0.9 * rng.dirichlet(np.full(5, 0.7), 40), 50, axis=0)
    action = (rng.random(2000)[:, None] > both.cumsum(axis=1)).sum(axis=1)
    values = rng.exponential(size=2000) if draw == "exponential" else rng.lognormal(0, 1.5, size=2000)
    arrays = LogArrays(action, values, propensity=both[np.arange(2000), action], propensities=both)
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abcde"))


@pytest.mark.parametrize(("draw", "least", "most"), [("exponential", 0, 1), ("lognormal", 16, 20)])
def test_values_of_heavy_tails_are_cautioned(draw: str, least: int, most: int) -> None:
    """Intervals of lognormal rewards cover .91; those of exponential ones .95."""
    cautioned = 0
    for seed in range(20):
        value = PolicyValue(heavy_log(draw, seed), "uniform").fit()
        assert isinstance(value.reference, SkewedSumReference)
        cautioned += says(value.cautions, rare_outcomes.SKEWED_THOUGH_CORRECTED)
    assert least <= cautioned <= most
