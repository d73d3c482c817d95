"""Sample means and contrasts of a uniform design against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from adaptinf import designs
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.log import AdaptiveLog, LogArrays


def uniform_log(seed: int) -> AdaptiveLog:
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 3, size=150)
    reward = rng.normal(np.array([1.0, 1.2, -3.0])[action], np.array([1.0, 2.0, 0.1])[action])
    arrays = LogArrays(action=action, reward=reward)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), design=designs.Uniform().record())


def rewards(log: AdaptiveLog, code: int) -> np.ndarray:
    return log.arrays.reward[log.arrays.action == code]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("treatment", "control"), [(0, 1), (1, 0), (2, 1)])
def test_welch_contrast(treatment: int, control: int, seed: int) -> None:
    log = uniform_log(seed)
    result = Contrast(log, treatment=log.arms[treatment], control=log.arms[control]).fit(
        "sample-mean", test="t"
    )
    ours = rewards(log, treatment), rewards(log, control)
    test = stats.ttest_ind(*ours, equal_var=False)
    assert result.tvalues.iloc[0] == pytest.approx(test.statistic, rel=1e-10)
    assert result.pvalues.iloc[0] == pytest.approx(test.pvalue, rel=1e-10)
    compare = CompareMeans(DescrStatsW(ours[0]), DescrStatsW(ours[1]))
    for alpha in (0.05, 0.2):
        expected = compare.tconfint_diff(alpha=alpha, usevar="unequal")
        np.testing.assert_allclose(result.conf_int(alpha).iloc[0], expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            result.conf_int(alpha).iloc[0], test.confidence_interval(1 - alpha), rtol=1e-10, atol=1e-12
        )
    assert result.bse.iloc[0] == pytest.approx(compare.std_meandiff_separatevar, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_means(seed: int) -> None:
    log = uniform_log(seed)
    result = ArmMeans(log).fit("sample-mean", null=0.9)
    for code in range(3):
        describe = DescrStatsW(rewards(log, code))
        assert result.estimate[code] == pytest.approx(describe.mean, rel=1e-10)
        assert result.std_error[code] == pytest.approx(describe.std_mean, rel=1e-10)
        statistic, pvalue, _ = describe.ttest_mean(0.9)
        assert result.tvalues.iloc[code] == pytest.approx(statistic, rel=1e-10)
        assert result.pvalues.iloc[code] == pytest.approx(pvalue, rel=1e-9)
        np.testing.assert_allclose(result.conf_int(0.1).iloc[code], describe.tconfint_mean(0.1), rtol=1e-10)
    assert np.count_nonzero(result.cov_params() - np.diag(np.diag(result.cov_params()))) == 0
