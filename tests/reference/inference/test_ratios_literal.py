"""Ratio metrics against the delta method written out round by round.

The literal versions and the simulator share no code with the package.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

T = 400
ARMS = ("a", "b", "c")


def rows(seed: int) -> tuple[LogArrays, FloatArray]:
    """Orders and their revenue in batches with propensities of their own; three arms."""
    rng = np.random.default_rng(seed)
    batch = np.arange(T) * 8 // T
    p = (rng.dirichlet([2.0, 2.0, 2.0], size=8) * 0.85 + 0.05)[batch]
    action = np.array([rng.choice(3, p=row) for row in p])
    orders = rng.poisson(1.0 + 0.5 * action)
    prices = [rng.gamma(3.0, 1.0 + 0.2 * k, size=n).sum() for k, n in zip(action, orders, strict=True)]
    arrays = LogArrays(
        action=action,
        reward=np.array(prices),
        propensity=p[np.arange(T), action],
        propensities=p,
        batch=batch,
    )
    return arrays, orders.astype(np.float64)


def scores(arrays: LogArrays, outcome: FloatArray, k: int) -> list[float]:
    """AIPW scores of an arm with its running mean, before its first round that of all arms."""
    p = arrays.propensities
    assert p is not None
    found, own, every = [], list[float](), list[float]()
    for t in range(T):
        past = own or every
        m = math.fsum(past) / len(past) if past else 0.0
        y, mine = float(outcome[t]), int(arrays.action[t]) == k
        found.append(m + (y - m) / p[t, k] if mine else m)
        every.append(y)
        own += [y] * mine
    return found


def mean(values: list[float], h: list[float]) -> float:
    return math.fsum(w * s for w, s in zip(h, values, strict=True)) / math.fsum(h)


def literal(
    arrays: LogArrays, z: FloatArray, codes: list[int], weights: dict[int, list[float]]
) -> tuple[list[float], FloatArray, list[float]]:
    """Ratios, what each round adds to their errors, shape (T, k), and degrees of freedom."""
    p = arrays.propensities
    assert p is not None
    ratios, parts, freedom = [], [], []
    for k in codes:
        h, above, below = weights[k], scores(arrays, arrays.reward, k), scores(arrays, z, k)
        ratio, level = mean(above, h) / mean(below, h), mean(below, h)
        ratios.append(ratio)
        parts.append(
            [w * (y - ratio * x) / level / math.fsum(h) for w, y, x in zip(h, above, below, strict=True)]
        )
        w2 = [(h[t] / p[t, k]) ** 2 for t in range(T) if arrays.action[t] == k]
        freedom.append(math.fsum(w2) ** 2 / math.fsum(w * w for w in w2) - 1.0)
    return ratios, np.array(parts).T, freedom


@pytest.mark.parametrize("seed", [1, 2])
def test_ratios_of_arms(seed: int) -> None:
    """Sqrt weights, the default where means stay: propensities stay within batches."""
    arrays, z = rows(seed)
    p = arrays.propensities
    assert p is not None
    log = AdaptiveLog.from_arrays(arrays, arms=ARMS)
    result = ArmMeans(log, denominator=z).fit(test="t", stationary=True)
    assert (result.estimator, result.weights) == ("aipw", "sqrt")
    weights = {k: [0.0, *np.sqrt(p[1:, k]).tolist()] for k in range(3)}
    ratios, influence, freedom = literal(arrays, z, [0, 1, 2], weights)
    errors = np.sqrt((influence**2).sum(axis=0))
    np.testing.assert_allclose(result.estimate, ratios, rtol=1e-10)
    np.testing.assert_allclose(result.std_error, errors, rtol=1e-10)
    assert result.covariance is not None
    np.testing.assert_allclose(result.covariance, influence.T @ influence, rtol=1e-8, atol=1e-14)
    half = stats.t.ppf(0.95, freedom) * errors
    np.testing.assert_allclose(result.conf_int(0.1)["low"], ratios - half, rtol=1e-9)


def test_the_difference_of_two_ratios() -> None:
    """Combined weights, one per round for both arms."""
    arrays, z = rows(3)
    p = arrays.propensities
    assert p is not None
    log = AdaptiveLog.from_arrays(arrays, arms=ARMS)
    result = Contrast(log, treatment="c", control="a", denominator=z).fit(test="t")
    assert result.weights == "combined"
    h = [0.0, *((1.0 / p[1:, 0] + 1.0 / p[1:, 2]) ** -0.5).tolist()]
    ratios, influence, freedom = literal(arrays, z, [2, 0], {2: h, 0: h})
    error = math.sqrt(float(((influence[:, 0] - influence[:, 1]) ** 2).sum()))
    assert result.estimate[0] == pytest.approx(ratios[0] - ratios[1], rel=1e-10)
    assert result.std_error[0] == pytest.approx(error, rel=1e-10)
    half = stats.t.ppf(0.975, min(freedom)) * error
    assert result.conf_int().to_numpy()[0, 1] == pytest.approx(ratios[0] - ratios[1] + half, rel=1e-9)


def test_sample_means_by_the_textbook() -> None:
    """Variance (s_yy - 2 R s_yz + R^2 s_zz) / (n mean(z)^2), of a log whose arms were drawn evenly."""
    arrays, z = rows(4)
    log = AdaptiveLog.from_arrays(arrays, arms=ARMS)
    result = ArmMeans(log, denominator=z).fit("sample-mean")
    for k in range(3):
        own = arrays.action == k
        y, below = arrays.reward[own], z[own]
        ratio, spread = y.mean() / below.mean(), np.cov(y, below)
        variance = (spread[0, 0] - 2 * ratio * spread[0, 1] + ratio**2 * spread[1, 1]) / own.sum()
        assert result.estimate[k] == pytest.approx(ratio, rel=1e-12)
        assert result.std_error[k] == pytest.approx(math.sqrt(variance) / below.mean(), rel=1e-12)
