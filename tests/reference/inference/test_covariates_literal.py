"""Covariate adjustment against regressions solved anew before every round.

The literal version and the simulator share no code with the package.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

T = 250


def rows(seed: int) -> LogArrays:
    """Earlier spending explains most of the rewards; propensities by batch."""
    rng = np.random.default_rng(seed)
    p = (rng.dirichlet([2.0, 2.0], size=5) * 0.8 + 0.1)[np.arange(T) * 5 // T]
    action = (rng.random(T) < p[:, 1]).astype(np.int64)
    spending = rng.gamma(2.0, 30.0, size=T)
    return LogArrays(
        action=action,
        reward=0.05 * spending + 0.5 * action + rng.normal(size=T) + 7.0,
        propensity=p[np.arange(T), action],
        propensities=p,
        batch=np.arange(T) * 5 // T,
        context={"spending": spending, "other": rng.normal(size=T)},
    )


def standardised(x: FloatArray, t: int) -> float:
    """The entry of a round in standard deviations from the mean of the rounds up to it."""
    known = [float(value) for value in x[: t + 1]]
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    return (known[-1] - mean) / spread if spread > 0.0 else 0.0


def scores(arrays: LogArrays, k: int, penalty: float) -> list[float]:
    """AIPW scores with the ridge regression of the arm's earlier rewards, about the log's first one."""
    p, y = arrays.propensities, arrays.reward
    assert p is not None
    z = np.array([[1.0, standardised(arrays.context["spending"], t)] for t in range(T)])
    found = []
    for t in range(T):
        past = [s for s in range(t) if arrays.action[s] == k]
        gram = z[past].T @ z[past] + penalty * np.eye(2)
        m = float(y[0] + z[t] @ np.linalg.solve(gram, z[past].T @ (y[past] - y[0])))
        found.append(m + (float(y[t]) - m) / p[t, k] * (arrays.action[t] == k))
    return found


@pytest.mark.parametrize("penalty", [1.0, 5.0])
def test_means_and_their_difference(penalty: float) -> None:
    arrays = rows(1)
    p = arrays.propensities
    assert p is not None
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)
    result = ArmMeans(log).fit(covariate="spending", ridge=penalty, test="t", stationary=True)
    assert (result.estimator, result.weights) == ("aipw", "sqrt")
    gamma = np.array([scores(arrays, k, penalty) for k in (0, 1)]).T
    h = np.sqrt(p)
    h[0] = 0.0
    means = (h * gamma).sum(axis=0) / h.sum(axis=0)
    errors = np.sqrt(((h * (gamma - means)) ** 2).sum(axis=0)) / h.sum(axis=0)
    np.testing.assert_allclose(result.estimate, means, rtol=1e-9)
    np.testing.assert_allclose(result.std_error, errors, rtol=1e-8)
    pair = Contrast(log, treatment="b", control="a").fit(covariate=["spending"], ridge=penalty)
    w = (1.0 / p).sum(axis=1) ** -0.5
    w[0] = 0.0
    gap = gamma[:, 1] - gamma[:, 0]
    effect = (w * gap).sum() / w.sum()
    assert pair.estimate[0] == pytest.approx(effect, rel=1e-9)
    assert pair.std_error[0] == pytest.approx(np.sqrt(((w * (gap - effect)) ** 2).sum()) / w.sum(), rel=1e-8)
