"""Rejection rates of regressions: exact where nothing adapts, corrected where actions tell of rewards."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from adaptinf import designs
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.regression.regression_results import FTest
from adaptinf.log import AdaptiveLog, LogArrays

FALSE_ALARM = 1e-4


def test_t_and_f_are_exact_for_normal_errors_where_nothing_adapts() -> None:
    rng = np.random.default_rng(31)
    runs, n = 500, 14
    x, z = rng.normal(size=n), rng.exponential(size=n)
    action = rng.integers(0, 2, n)
    rejected = np.zeros(2)
    for _ in range(runs):
        arrays = LogArrays(action, rng.normal(size=n) + 3.0 * x, context={"x": x, "z": z})
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=designs.Uniform().record())
        result = AdaptiveOLS(log).fit("none")
        rejected += [result.pvalues["z"] <= 0.05, result.wald_test("z = 0, x = 3").pvalue <= 0.05]
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], runs, 0.05)
    assert np.all((low <= rejected) & (rejected <= high)), rejected / runs


def test_corrected_tests_hold_where_the_next_action_tells_of_the_reward() -> None:
    """Each action is the last reward's sign, shown by randomised response: private, and as telling as can be.

    The covariate of a round is the action after it, a function of the action history: for fixed actions the
    t-test is exact, and what it finds is the dependence that the collection has made.
    """
    rng = np.random.default_rng(32)
    runs, n, epsilon = 500, 100, 0.25
    truthful = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    naive = corrected = joint = 0
    for _ in range(runs):
        reward = rng.normal(size=n)
        told = np.where(rng.random(n) < truthful, reward > 0, reward <= 0).astype(np.int64)
        action = np.concatenate(([0], told[:-1]))
        arrays = LogArrays(action, reward, context={"told": told.astype(float)})
        log = AdaptiveLog.from_arrays(
            arrays, arms=(0, 1), reward_guarantee=PrivacyGuarantee(epsilon, unit="reward"), feedback_rounds=n
        )
        result = AdaptiveOLS(log).fit("max-information")
        naive += bool(result.pvalues["told"] <= 0.05)
        corrected += bool(result.pvalues_corrected["told"] <= 0.05)
        test = result.wald_test("told = 0, Intercept = 0")
        assert isinstance(test, FTest)
        joint += test.pvalue_corrected <= 0.05
    most = stats.binom.ppf(1.0 - FALSE_ALARM, runs, 0.05)
    assert naive > most
    assert corrected <= most
    assert joint <= most
