"""Policy values after a contextual epsilon-greedy trial in batches: bias, and coverage of 95% intervals.

False alarms are below 1e-4 a test: bands of 4.5 standard errors for means, binomial quantiles for coverage.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog, LogArrays

REPLICATIONS = 300
BATCHES, SIZE, EPSILON, K = 5, 200, 0.2, 3
INTERCEPT, SLOPE = np.array([0.3, 0.4, 0.0]), np.array([0.5, -0.5, 0.0])
TRUE_VALUE = 0.5 * (0.3 + 0.5 * 0.5) + 0.5 * (0.4 + 0.5 * 0.5)
FITS: dict[str, dict[str, object]] = {
    "uniform": {"weights": "uniform", "estimator": "ipw"},
    "stable-variance": {"weights": "stable-variance"},
    "contextual": {"weights": "stable-variance", "contextual": True},
    "cadr": {"estimator": "cadr"},
}


def best_by_sign(frame: pd.DataFrame) -> np.ndarray:
    right = (frame["x"] > 0).to_numpy(float)
    return np.column_stack([right, 1 - right, 0 * right])


def lookup(rows: np.ndarray) -> Callable[[pd.DataFrame], np.ndarray]:
    return lambda frame: rows[(frame["x"].to_numpy() > 0).astype(int)]


def trial(rng: np.random.Generator) -> tuple[AdaptiveLog, PolicySnapshots]:
    """After a uniform batch, each takes the arm of the best mean on the context's side of 0, or any."""
    horizon = BATCHES * SIZE
    x, action, reward = rng.uniform(-1, 1, horizon), np.zeros(horizon, dtype=np.int64), np.zeros(horizon)
    propensities, policies = np.full((horizon, K), 1 / K), [lookup(np.full((2, K), 1 / K))]
    side = (x > 0).astype(int)
    for start in range(0, horizon, SIZE):
        now = slice(start, start + SIZE)
        if start:
            cell = K * side[:start] + action[:start]
            sums = np.bincount(cell, weights=reward[:start], minlength=2 * K)
            means = (sums / np.maximum(np.bincount(cell, minlength=2 * K), 1)).reshape(2, K)
            rows = np.full((2, K), EPSILON / K)
            rows[[0, 1], means.argmax(axis=1)] += 1 - EPSILON
            propensities[now] = rows[side[now]]
            policies.append(lookup(rows))
        passed = rng.random(SIZE)[:, None] > np.cumsum(propensities[now], axis=1)[:, :-1]
        action[now] = passed.sum(axis=1)
        chosen = action[now]
        reward[now] = INTERCEPT[chosen] + SLOPE[chosen] * x[now] + rng.normal(size=SIZE)
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=propensities[np.arange(horizon), action],
        propensities=propensities,
        context={"x": x},
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
    return log, PolicySnapshots(range(0, horizon, SIZE), policies)


@pytest.fixture(scope="module")
def runs() -> dict[str, np.ndarray]:
    """Errors and standard errors, shape (2, replications, 3): best policy, idle arm, difference."""
    rng = np.random.default_rng(20)
    kept: dict[str, list[list[np.ndarray]]] = {name: [] for name in FITS}
    for _ in range(REPLICATIONS):
        log, snapshots = trial(rng)
        values = PolicyValue(log, [best_by_sign, "c"])
        contrast = PolicyContrast(log, best_by_sign, baseline="c")
        for name, options in FITS.items():
            own = {} if name == "uniform" else {"snapshots": snapshots}
            one, two = values.fit(**options, **own), contrast.fit(**options, **own)
            error = np.append(one.estimate, two.estimate) - [TRUE_VALUE, 0.0, TRUE_VALUE]
            kept[name].append([error, np.append(one.std_error, two.std_error)])
    return {name: np.array(values).transpose(1, 0, 2) for name, values in kept.items()}


def test_uniform_inverse_weighting_is_unbiased(runs: dict[str, np.ndarray]) -> None:
    error = runs["uniform"][0]
    assert np.all(np.abs(error.mean(axis=0)) < 4.5 * stats.sem(error, axis=0))


@pytest.mark.parametrize("name", ["stable-variance", "contextual", "cadr"])
def test_bias_is_small_against_the_standard_error(name: str, runs: dict[str, np.ndarray]) -> None:
    error, size = runs[name]
    noise = 4.5 / np.sqrt(REPLICATIONS)
    assert np.all(np.abs(error.mean(axis=0)) < (0.15 + noise) * size.mean(axis=0))


@pytest.mark.parametrize("name", ["stable-variance", "contextual", "cadr"])
def test_standard_errors_are_those_of_the_estimates(name: str, runs: dict[str, np.ndarray]) -> None:
    error, size = runs[name]
    ratio = np.sqrt((size**2).mean(axis=0)) / error.std(axis=0)
    assert np.all(np.abs(ratio - 1) < 0.05 + 4.5 / np.sqrt(2 * REPLICATIONS))


@pytest.mark.parametrize("name", ["stable-variance", "contextual", "cadr"])
def test_coverage(name: str, runs: dict[str, np.ndarray]) -> None:
    error, size = runs[name]
    covered = np.sum(np.abs(error) < stats.norm.ppf(0.975) * size, axis=0)
    assert np.all(covered >= stats.binom.ppf(1e-5, REPLICATIONS, 0.935))
    assert np.all(covered <= stats.binom.ppf(1 - 1e-5, REPLICATIONS, 0.965))


def test_stabilised_weights_are_more_precise_than_uniform_ones(runs: dict[str, np.ndarray]) -> None:
    for name in ("stable-variance", "contextual"):
        assert np.all(runs[name][1].mean(axis=0) < 0.95 * runs["uniform"][1].mean(axis=0))
