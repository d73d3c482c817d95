"""Readings of the z-score, and p-values by method, of the study of false discovery."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

from case_studies.false_discovery import methods, oful
from case_studies.false_discovery.run import histogram, shares


def test_readings_of_the_score_against_statsmodels() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    found = oful.statistics(x, y)
    fitted = OLS(y, x).fit()
    assert found["t"] == pytest.approx(fitted.pvalues[0], rel=1e-9)
    deviation = fitted.bse[0] / np.sqrt(fitted.scale)
    score = fitted.params[0] / deviation
    assert found["z"] == pytest.approx(2 * stats.norm.sf(abs(score)), rel=1e-9)
    assert found["by the variance"] == pytest.approx(2 * stats.norm.sf(abs(score / deviation)), rel=1e-9)
    # a ridge of 1 is one more row with a response of 0 for each column
    longer = OLS(np.concatenate([y, np.zeros(5)]), np.vstack([x, np.eye(5)])).fit()
    deviation = longer.bse[0] / np.sqrt(longer.scale)
    score = longer.params[0] / deviation
    assert found["z, ridge"] == pytest.approx(2 * stats.norm.sf(abs(score)), rel=1e-9)
    by_variance = 2 * stats.norm.sf(abs(score / deviation))
    assert found["by the variance, ridge"] == pytest.approx(by_variance, rel=1e-9)
    assert np.isnan(list(oful.statistics(x[:6], y[:6]).values())).all()


def test_environments_have_the_null_and_unit_contexts() -> None:
    for contexts in oful.CONTEXTS:
        env = oful.environment(contexts, np.random.default_rng(1))
        assert (env.theta[:, 0] == 0.0).all()
        assert np.linalg.norm(env.theta, axis=1) == pytest.approx(np.ones(5))
        assert env.context_norm == pytest.approx(1.0)
    env = oful.environment("intercept", np.random.default_rng(1))
    given = env.tables(oful.HORIZON).vectors.reshape(oful.HORIZON, 5, 5)
    assert (given[:, :, 0] == 1.0 / np.sqrt(2.0)).all()


def test_naive_tests_of_two_arms_against_scipy() -> None:
    log = methods.DESIGNS["batched Thompson"].run(methods.EQUAL, 300, rng=4)
    groups = [log.arrays.reward[log.arrays.action == arm] for arm in (0, 1)]
    found = methods.least_squares_tests(log)
    assert found[methods.NAIVE[1]] == pytest.approx(stats.ttest_ind(*groups).pvalue, rel=1e-9)
    spread = np.sqrt(1 / len(groups[0]) + 1 / len(groups[1]))
    score = abs(groups[1].mean() - groups[0].mean()) / spread
    assert found[methods.NAIVE[0]] == pytest.approx(2 * stats.norm.sf(score), rel=1e-9)


def test_a_refused_log_is_no_rejection() -> None:
    table = pd.DataFrame({"method": ["a"] * 4, "pvalue": [0.01, 0.05, 0.9, np.nan]})
    row = shares(table, ["method"]).iloc[0]
    assert (row["rejected at .05"], row["refused"], row["runs"]) == (0.5, 0.25, 4)
    bins = histogram(table.assign(design="b"), ["design", "method"], bins=2)
    assert bins["share of runs"].tolist() == [0.5, 0.25]
