"""Sizes of the diagnostics where their nulls hold, under designs that adapt.

2,000 runs of a level of .05 have a standard error of .0049; a share outside [.028, .072] has a probability
below 1e-4 for tests whose size is within .003 of .05. The anytime test is exact: its share may be .05 and 3.9
standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf import designs
from adaptinf.designs.base_design import Design
from adaptinf.inference.diagnostics.accumulators import score_sums
from adaptinf.inference.diagnostics.arm_checks import (
    batch_groups,
    common_drift,
    drifts,
    homogeneity,
    mean_differences,
)
from adaptinf.inference.diagnostics.choice_checks import (
    calibration_bins,
    calibration_joint,
    chi_square,
    count_test,
    log_wealth,
)
from adaptinf.inference.scores.score_stream import stream_of
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms

RUNS = 2_000
LOW, HIGH = 0.028, 0.072
LEVEL = math.log(0.05)


def choices(log: AdaptiveLog) -> dict[str, float]:
    """Log p-values of the tests of the choices."""
    e, action = log.arrays.propensities, log.arrays.action
    codes = np.arange(log.n_arms)
    bins = calibration_bins(action, e)
    counts = np.bincount(action, minlength=log.n_arms).astype(float)
    return {
        "arm": chi_square(bins[0].observed - bins[0].expected, np.diag(bins[0].variance)).log_pvalue,
        "joint": calibration_joint(e, bins, codes).log_pvalue,
        "ratio": count_test(counts, e.sum(axis=0), e.T @ e).log_pvalue,
        "anytime": -max(0.0, float(log_wealth(action, e).max())),
    }


def rewards(log: AdaptiveLog) -> dict[str, float]:
    """Log p-values of the tests of drift."""
    arrays, codes = log.arrays, np.arange(log.n_arms)
    batch = arrays.batch
    group = np.zeros(log.n_rounds, dtype=np.int64) if batch is None else batch_groups(batch, most=4)
    every = arrays.propensities
    rounds = stream_of(arrays.action, arrays.reward, arrays.propensity, every, codes, weights="sqrt")
    sums = score_sums(rounds, group)
    slopes = drifts(sums)
    slope, error = common_drift(slopes)
    found = {
        "slope": math.log(2.0) + stats.norm.logsf(abs(slopes.z[0])),
        "common slope": math.log(2.0) + stats.norm.logsf(abs(slope / error)),
    }
    if batch is not None:
        found["batches"] = homogeneity(sums.group_mean[:, 0], sums.group_variance[:, 0]).log_pvalue
    return found


@pytest.mark.parametrize(
    ("design", "means", "horizon"),
    [
        (designs.EpsilonGreedy(exploration=0.4), [0.5, 0.5], 400),
        (designs.Thompson(floor=(0.3, 0.1), batch_size=50), [0.4, 0.5, 0.5], 600),
    ],
    ids=["epsilon-greedy", "thompson"],
)
def test_sizes_under_adaptive_designs(design: Design, means: list[float], horizon: int) -> None:
    logs = design.logs(BernoulliArms(means), horizon, RUNS, rng=41)
    found = [{**choices(log), **rewards(log)} for log in logs]
    shares = {name: np.mean([row[name] <= LEVEL for row in found]) for name in found[0]}
    assert shares.pop("anytime") <= 0.05 + 3.9 * math.sqrt(0.05 * 0.95 / RUNS)
    assert all(LOW < share < HIGH for share in shares.values()), shares


def test_sample_mean_against_aipw_where_propensities_do_not_look_at_rewards() -> None:
    """Propensities that move by a schedule: no bias, and the joint test of both arms has its level."""
    rng = np.random.default_rng(6)
    rounds = 500
    share = np.where(np.arange(rounds) % 3 == 0, 0.2, 0.7)
    e = np.stack([1.0 - share, share], axis=1)
    rejected = 0
    for _ in range(RUNS):
        action = (rng.random(rounds) < share).astype(np.int64)
        reward = (rng.random(rounds) < 0.3 + 0.2 * action).astype(float)
        own, one = e[np.arange(rounds), action], np.zeros(rounds, dtype=np.int64)
        sums = score_sums(stream_of(action, reward, own, e, np.arange(2), weights="sqrt"), one)
        rejected += mean_differences(sums).joint.log_pvalue <= LEVEL
    assert LOW < rejected / RUNS < HIGH


def test_wrong_propensities_are_found() -> None:
    """Propensities that are a tenth off in half of 1,000 rounds."""
    rng = np.random.default_rng(9)
    rounds = 1_000
    logged = np.where(np.arange(rounds) % 2 == 0, 0.3, 0.6)
    right = logged + np.where(np.arange(rounds) % 2 == 0, 0.1, 0.0)
    rejected = np.zeros(2)
    for _ in range(400):
        action = (rng.random(rounds) < right).astype(np.int64)
        e = np.stack([1.0 - logged, logged], axis=1)
        bins = calibration_bins(action, e)[1]
        rejected[0] += chi_square(bins.observed - bins.expected, np.diag(bins.variance)).log_pvalue <= LEVEL
        rejected[1] += -log_wealth(action, e).max() <= LEVEL
    # The noncentrality is (50 / sqrt(105))^2 = 23.8 on two degrees of freedom: a power of .99.
    assert rejected[0] / 400 > 0.96
    assert rejected[1] / 400 > 0.6
