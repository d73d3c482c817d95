"""Policy values with every kind of weights, and CADR, against formulas written out round by round.

The literal versions share no code with the package: floats, loops over all pairs of rounds, sums as printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.inference.policies import policy_weights as policy_weights
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.validity import policies as snapshots_module
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog, LogArrays

K = 3
SIZES = (40, 1, 33, 20, 46)
CHUNK = 17
Propensity = Callable[[int, float], np.ndarray]


@dataclass
class Case:
    log: AdaptiveLog
    snapshots: Any
    propensity: Callable[[int, int], list[float]]
    """Of round t's design at the context of round s."""


def softmax(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    value = np.exp(np.outer(x, coefficients))
    return 0.06 + (1 - 0.06 * K) * value / value.sum(axis=1, keepdims=True)


def draw(rng: np.random.Generator, propensities: np.ndarray, x: np.ndarray) -> AdaptiveLog:
    action = np.array([rng.choice(K, p=p) for p in propensities])
    reward = 2.0 + np.array([0.2, -0.4, 0.7])[action] * x + rng.normal(size=len(x))
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=propensities[np.arange(len(x)), action],
        propensities=propensities,
        context={"x": x},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))


def contextual_case(first_uniform: bool) -> Case:
    """Softmax of the context in batches, with new coefficients in each; the first may be uniform."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=sum(SIZES))
    coefficients = rng.normal(size=(len(SIZES), K))
    batch = np.repeat(np.arange(len(SIZES)), SIZES)
    table = np.stack([softmax(c, x) for c in coefficients])
    policies: list[Any] = [lambda f, c=c: softmax(c, f["x"].to_numpy()) for c in coefficients]
    if first_uniform:
        table[0] = 1 / K
        policies[0] = np.full(K, 1 / K)
    policies[2] = table[2]
    log = draw(rng, table[batch, np.arange(len(x))], x)
    starts = np.cumsum((0, *SIZES[:-1]))
    return Case(log, PolicySnapshots(starts, policies), lambda t, s: table[batch[t], s].tolist())


def context_free_case() -> Case:
    """New propensities in every round, that do not look at the context."""
    rng = np.random.default_rng(8)
    horizon = 120
    rows = 0.02 + 0.94 * rng.dirichlet(np.ones(K), size=horizon)
    log = draw(rng, rows, rng.normal(size=horizon))
    return Case(log, "context-free", lambda t, s: rows[t].tolist())


CASES = {
    "snapshots": contextual_case(False),
    "uniform first batch": contextual_case(True),
    "context-free": context_free_case(),
}


def right_arm(frame: pd.DataFrame) -> np.ndarray:
    x = frame["x"].to_numpy()
    return np.column_stack([x <= 0, np.zeros(len(x)), x > 0]).astype(float)


def smooth(frame: pd.DataFrame) -> np.ndarray:
    return softmax(np.array([0.5, 0.0, -0.5]), frame["x"].to_numpy())


POLICIES = ["b", right_arm, smooth]


def probabilities(case: Case) -> list[list[list[float]]]:
    frame = case.log.frame
    constant = np.tile([0.0, 1.0, 0.0], (case.log.n_rounds, 1))
    return [constant.tolist(), right_arm(frame).tolist(), smooth(frame).tolist()]


def running_means(log: AdaptiveLog, t: int) -> list[float]:
    """Of every arm before round t; of all arms before its first one; the first reward before any."""
    means, rewards = [], [float(y) for y in log.arrays.reward]
    for w in range(K):
        seen = [rewards[s] for s in range(t) if log.arrays.action[s] == w]
        seen = seen or rewards[:t] or rewards[:1]
        means.append(sum(seen) / len(seen))
    return means


def literal_scores(case: Case, pi: list[list[float]], estimator: str) -> list[float]:
    scores = []
    for t in range(case.log.n_rounds):
        m = running_means(case.log, t) if estimator != "ipw" else [0.0] * K
        y, e, total = float(case.log.arrays.reward[t]), case.propensity(t, t), 0.0
        for w in range(K):
            gamma = m[w]
            if case.log.arrays.action[t] == w:
                gamma += (y - m[w]) / e[w]
            total += pi[t][w] * gamma
        scores.append(total)
    return scores


def v(case: Case, pi: list[list[float]], t: int, s: int) -> float:
    """Variance bound of round t's design at the context of round s."""
    e = case.propensity(t, s)
    return sum(pi[s][w] ** 2 / e[w] for w in range(K))


def phi(kind: str, value: float) -> float:
    return {"uniform": 1.0, "stable-variance": math.sqrt(1 / value), "min-variance": 1 / value}[kind]


def literal_df(shares: list[float]) -> float:
    """Effective rewards for a value, or of the fewer of those for and against a difference, minus 1."""
    sizes = []
    for sign in (1, -1):
        w = [c**2 for c in shares if sign * c > 0]
        if sum(w) > 0.05 * sum(c**2 for c in shares):
            sizes.append(sum(w) ** 2 / sum(one**2 for one in w))
    return min(sizes) - 1


def literal_noncontextual(
    case, pi, scores, kind, first: float | None
) -> tuple[float, list[float], list[float]]:
    horizon, weights = case.log.n_rounds, []
    for t in range(horizon):
        if t == 0:
            weights.append(0.0 if first is None else phi(kind, first))
        else:
            weights.append(phi(kind, sum(v(case, pi, t, s) for s in range(t)) / t))
    total = sum(weights)
    value = sum(h * g for h, g in zip(weights, scores, strict=True)) / total
    errors = [h * (g - value) / total for h, g in zip(weights, scores, strict=True)]
    return value, errors, [h / total for h in weights]


def literal_contextual(case, pi, scores, kind, start: int) -> tuple[float, list[float], list[float]]:
    horizon = case.log.n_rounds
    h = [[phi(kind, v(case, pi, t, s)) * (t >= start) for s in range(horizon)] for t in range(horizon)]
    z = [sum(h[t][s] for t in range(horizon)) for s in range(horizon)]
    share = [h[t][t] / z[t] for t in range(horizon)]
    share = [one / sum(share) for one in share]
    value = sum(one * g for one, g in zip(share, scores, strict=True))
    b = [one * (g - value) for one, g in zip(share, scores, strict=True)]
    errors = [b[t] - sum(h[t][s] / z[s] * b[s] for s in range(horizon)) for t in range(horizon)]
    errors[:start] = [0.0] * start
    return value, errors, share


def literal_cadr(case: Case, pis: list[tuple[float, list[list[float]]]], burn_in: int) -> tuple[float, float]:
    """The policies with their signs: one policy, or one minus another; rewards less the first one."""
    log, origin = case.log, float(case.log.arrays.reward[0])
    predicted = [[m - origin for m in running_means(log, s)] for s in range(log.n_rounds)]

    def rebuilt(t: int, s: int) -> float:
        m, a = predicted[s], int(log.arrays.action[s])
        total = 0.0
        for sign, pi in pis:
            total += sign * sum(pi[s][w] * m[w] for w in range(K))
            total += (
                sign * pi[s][a] / case.propensity(t, s)[a] * (float(log.arrays.reward[s]) - origin - m[a])
            )
        return total

    weights, scores = [], []
    for t in range(burn_in, log.n_rounds):
        ratio = []
        for s in range(t):
            a = int(log.arrays.action[s])
            ratio.append(case.propensity(t, s)[a] / case.propensity(s, s)[a])
        d = [rebuilt(t, s) for s in range(t)]
        mean = sum(r * x for r, x in zip(ratio, d, strict=True)) / t
        second = sum(r * x**2 for r, x in zip(ratio, d, strict=True)) / t
        centred = sum(r * (x - mean) ** 2 for r, x in zip(ratio, d, strict=True)) / t
        variance = max(second - mean**2, centred / 10)
        if variance > 1e-12 * second:
            weights.append(1 / math.sqrt(variance))
            scores.append(rebuilt(t, t))
    total = sum(weights)
    estimate = sum(w * d for w, d in zip(weights, scores, strict=True)) / total
    return estimate + origin * sum(sign for sign, _ in pis), math.sqrt(len(weights)) / total


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that batches and chunks overlap in every way."""
    monkeypatch.setattr(snapshots_module, "CHUNK", CHUNK)
    monkeypatch.setattr(policy_weights, "_BLOCK", 500)


def first_variance(name: str, case: Case, position: int) -> float | None:
    """What stands for the mean over earlier contexts at t = 1: known where nothing looks at contexts."""
    if position == 0 and name != "snapshots":
        return v(case, probabilities(case)[0], 0, 0)
    return None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("estimator", ["ipw", "aipw"])
@pytest.mark.parametrize("kind", ["uniform", "stable-variance", "min-variance"])
@pytest.mark.parametrize("contextual", [False, True])
def test_weighted_scores(name: str, estimator: str, kind: str, contextual: bool) -> None:
    case = CASES[name]
    if kind == "uniform" and contextual:
        contextual_literal, given = True, None
    else:
        contextual_literal, given = contextual, contextual
    result = PolicyValue(case.log, POLICIES).fit(kind, given, estimator, snapshots=case.snapshots)
    estimates, errors, shares = [], [], []
    action, start = case.log.arrays.action.tolist(), int(estimator != "ipw")
    for position, pi in enumerate(probabilities(case)):
        scores = literal_scores(case, pi, estimator)
        if contextual_literal:
            one = literal_contextual(case, pi, scores, kind, start)
        else:
            first = 1.0 if kind == "uniform" else first_variance(name, case, position)
            one = literal_noncontextual(case, pi, scores, kind, None if start else first)
        estimates.append(one[0])
        errors.append(one[1])
        shares.append([c * pi[t][action[t]] / case.propensity(t, t)[action[t]] for t, c in enumerate(one[2])])
    covariance = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in errors] for x in errors]
    np.testing.assert_allclose(result.estimate, estimates, rtol=1e-9)
    df = [literal_df(share) for share in shares]
    np.testing.assert_allclose(result.reference.df, df, rtol=1e-9)
    np.testing.assert_allclose(result.cov_params().to_numpy(), covariance, rtol=1e-9, atol=1e-14)
    contrast = PolicyContrast(case.log, POLICIES[:2], baseline=smooth).fit(
        kind, given, estimator, snapshots=case.snapshots
    )
    for j in range(2):
        error = math.sqrt(sum((a - b) ** 2 for a, b in zip(errors[j], errors[2], strict=True)))
        np.testing.assert_allclose(contrast.estimate[j], estimates[j] - estimates[2], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(contrast.std_error[j], error, rtol=1e-9)
        change = [a - b for a, b in zip(shares[j], shares[2], strict=True)]
        assert contrast.reference.df[j] == pytest.approx(literal_df(change), rel=1e-9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("burn_in", [1, 12])
def test_cadr(name: str, burn_in: int) -> None:
    case = CASES[name]
    options = {"estimator": "cadr", "snapshots": case.snapshots, "burn_in": burn_in}
    result = PolicyValue(case.log, POLICIES).fit(**options)
    pis = probabilities(case)
    for j, pi in enumerate(pis):
        estimate, error = literal_cadr(case, [(1.0, pi)], burn_in)
        np.testing.assert_allclose(result.estimate[j], estimate, rtol=1e-9)
        np.testing.assert_allclose(result.std_error[j], error, rtol=1e-9)
    contrast = PolicyContrast(case.log, right_arm, baseline="b").fit(**options)
    estimate, error = literal_cadr(case, [(1.0, pis[1]), (-1.0, pis[0])], burn_in)
    np.testing.assert_allclose(contrast.estimate, estimate, rtol=1e-9)
    np.testing.assert_allclose(contrast.std_error, error, rtol=1e-9)


def literal_own_forecast(case: Case, d: list[list[float]], t: int, *, constant: bool) -> float:
    """Of round t's design at the contexts of earlier rounds, or at its own where neither looks at any."""
    seen = [t] if constant else range(t)
    size = sum(d[s][w] ** 2 for s in seen for w in range(K))
    if size == 0.0:
        return float(K)
    return sum(d[s][w] ** 2 / case.propensity(t, s)[w] for s in seen for w in range(K)) / size


def literal_lagged_forecast(log: AdaptiveLog, d: list[list[float]], t: int) -> float:
    """Of the batch before, a round without batches, and of more until policies differed in 50 rounds."""
    batch = range(log.n_rounds) if log.arrays.batch is None else log.arrays.batch.tolist()
    value = size = 0.0
    differed = 0
    for s in reversed(range(t)):
        if batch[s] == batch[t] or not any(d[s]):
            continue
        if batch[s] < batch[t] - 1 and differed >= 50:
            break
        differed += 1
        value += sum(d[s][w] ** 2 / float(log.arrays.propensities[s, w]) for w in range(K))
        size += sum(d[s][w] ** 2 for w in range(K))
    return value / size if size > 0.0 else float(K)


def check_combined(case: Case, policies: list[Any], forecast: Callable[..., float], **options: Any) -> None:
    """Differences from the last of the policies against sums written out."""
    log, table = case.log, dict(zip(["b", right_arm, smooth], probabilities(case), strict=True))
    pis = [[[1.0, 0.0, 0.0]] * log.n_rounds if one == "a" else table[one] for one in policies]
    result = PolicyContrast(log, policies[:-1], baseline=policies[-1]).fit(**options)
    assert result.weights == "combined"
    covariance_of, action = [], log.arrays.action.tolist()
    for j, pi in enumerate(pis[:-1]):
        d = [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(pi, pis[-1], strict=True)]
        scores = [
            a - b for a, b in zip(*(literal_scores(case, one, "aipw") for one in (pi, pis[-1])), strict=True)
        ]
        h = [0.0] + [
            forecast(d, t, all(isinstance(one, str) for one in (policies[j], policies[-1]))) ** -0.5
            for t in range(1, log.n_rounds)
        ]
        total = sum(h)
        estimate = sum(a * b for a, b in zip(h, scores, strict=True)) / total
        covariance_of.append([a * (b - estimate) / total for a, b in zip(h, scores, strict=True)])
        share = [a / total * d[t][action[t]] / case.propensity(t, t)[action[t]] for t, a in enumerate(h)]
        assert result.estimate[j] == pytest.approx(estimate, rel=1e-9, abs=1e-12)
        assert result.reference.df[j] == pytest.approx(literal_df(share), rel=1e-9)
        sizes = [
            sum(one) ** 2 / sum(c**2 for c in one)
            for one in ([c for c in share if c > 0], [c for c in share if c < 0])
        ]
        assert result.details["ess"][j] == pytest.approx(min(sizes), rel=1e-9)
    covariance = [
        [sum(a * b for a, b in zip(x, y, strict=True)) for y in covariance_of] for x in covariance_of
    ]
    np.testing.assert_allclose(result.cov_params().to_numpy(), covariance, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("policies", [["b", right_arm, smooth], ["b", "a"]])
def test_combined_weights_of_a_known_design(name: str, policies: list[Any]) -> None:
    case = CASES[name]

    def forecast(d: list[list[float]], t: int, constant: bool) -> float:
        return literal_own_forecast(case, d, t, constant=constant and name == "context-free")

    check_combined(case, policies, forecast, snapshots=case.snapshots)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("policies", [["b", right_arm, smooth], ["b", "a"]])
def test_combined_weights_of_past_rounds(batched: bool, policies: list[Any]) -> None:
    case = CASES["snapshots"]
    arrays = case.log.arrays
    batch = np.repeat(np.arange(len(SIZES)), SIZES) if batched else None
    log = AdaptiveLog.from_arrays(
        LogArrays(
            action=arrays.action,
            reward=arrays.reward,
            propensity=arrays.propensity,
            propensities=arrays.propensities,
            batch=batch,
            context=arrays.context,
        ),
        arms=case.log.arms,
    )
    case = Case(log, None, case.propensity)
    check_combined(case, policies, lambda d, t, _: literal_lagged_forecast(log, d, t))


def test_stated_to_be_stationary_weights_are_each_policys_own() -> None:
    """What is the default without a drift, against its formula."""
    case = CASES["snapshots"]
    result = PolicyValue(case.log, POLICIES).fit(stationary=True, snapshots=case.snapshots)
    contrast = PolicyContrast(case.log, right_arm, baseline="b").fit(
        stationary=True, snapshots=case.snapshots
    )
    found = [
        literal_noncontextual(case, pi, literal_scores(case, pi, "aipw"), "stable-variance", None)
        for pi in probabilities(case)
    ]
    np.testing.assert_allclose(result.estimate, [one[0] for one in found], rtol=1e-12)
    np.testing.assert_allclose(result.std_error, [math.hypot(*one[1]) for one in found], rtol=1e-12)
    assert contrast.estimate[0] == pytest.approx(found[1][0] - found[0][0], rel=1e-12)
    gaps = [a - b for a, b in zip(found[1][1], found[0][1], strict=True)]
    assert contrast.std_error[0] == pytest.approx(math.hypot(*gaps), rel=1e-12)
