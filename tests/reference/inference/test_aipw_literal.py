"""IPW and AIPW with every kind of weights, against formulas written out round by round.

The literal versions share no code with the package: floats, loops over rounds, sums as they are printed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf import designs
from adaptinf.claims.propensities import ROUND_BEFORE
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.scores.inverse import two_point_weights
from adaptinf.log import AdaptiveLog, LogArrays

DECAY = 0.7
HORIZON = 240


def adaptive_log(n_arms: int, seed: int, *, binary: bool = False) -> AdaptiveLog:
    """Softmax of the running means, mixed with a floor (1/K) t^-0.7."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=n_arms)
    sums, counts = np.zeros(n_arms), np.zeros(n_arms)
    action, reward = np.zeros(HORIZON, dtype=np.int64), np.zeros(HORIZON)
    propensities = np.zeros((HORIZON, n_arms))
    for t in range(HORIZON):
        score = np.exp(3.0 * sums / np.maximum(counts, 1.0))
        floor = (t + 1.0) ** -DECAY / n_arms
        propensities[t] = floor + (1.0 - n_arms * floor) * score / score.sum()
        propensities[t] /= propensities[t].sum()
        arm = rng.choice(n_arms, p=propensities[t])
        value = rng.normal(means[arm])
        action[t], reward[t] = arm, float(value > 0) if binary else value + 5.0
        sums[arm] += reward[t] - (0.5 if binary else 5.0)
        counts[arm] += 1
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=propensities[np.arange(HORIZON), action],
        propensities=propensities,
    )
    design = designs.Thompson(floor=(1.0 / n_arms, DECAY)).record()
    return AdaptiveLog.from_arrays(arrays, arms=tuple(range(n_arms)), design=design)


def literal_scores(log: AdaptiveLog, arm: int, estimator: str) -> list[float]:
    propensities = log.arrays.propensities
    assert propensities is not None
    scores, total, count, every = [], 0.0, 0, 0.0
    for t in range(log.n_rounds):
        e = float(propensities[t, arm])
        pulled = int(log.arrays.action[t]) == arm
        y = float(log.arrays.reward[t])
        m = total / count if count > 0 else every / max(t, 1)
        m = m if estimator == "aipw" else 0.0
        scores.append(m + (y - m) / e if pulled else m)
        every += y
        if pulled:
            total, count = total + y, count + 1
    return scores


def literal_weights(log: AdaptiveLog, arm: int, kind: str, estimator: str = "aipw") -> list[float]:
    propensities = log.arrays.propensities
    assert propensities is not None
    horizon, weights, spent = log.n_rounds, [], 0.0
    for t in range(1, horizon + 1):
        e = float(propensities[t - 1, arm])
        if kind == "uniform":
            weights.append(1.0)
        elif kind == "sqrt":
            weights.append(math.sqrt(e))
        else:
            bad = (1 - DECAY) / ((1 - DECAY) + horizon * (t / horizon) ** DECAY - t)
            good = 1 / (1 + horizon - t)
            share = min(1.0, max(0.0, (1 - e) * bad + e * good))
            r = share * (1 - spent)
            spent += r
            weights.append(math.sqrt(max(r * e, 0.0)))
    if estimator == "aipw":
        weights[0] = 0.0  # nothing predicts the first round
    return weights


def literal_parts(log: AdaptiveLog, arm: int, estimator: str, kind: str) -> tuple[float, list[float]]:
    """Estimate, and d_t = h_t (score - estimate) / sum of h."""
    scores, weights = literal_scores(log, arm, estimator), literal_weights(log, arm, kind, estimator)
    total = math.fsum(weights)
    estimate = math.fsum(h * g for h, g in zip(weights, scores, strict=True)) / total
    return estimate, [h * (g - estimate) / total for h, g in zip(weights, scores, strict=True)]


def uncommon(log: AdaptiveLog, arm: int) -> float:
    """Successes or failures of an arm, whichever are fewer; infinite for rewards that are neither."""
    own = log.arrays.reward[log.arrays.action == arm].tolist()
    return min(own.count(0.0), own.count(1.0)) if set(own) <= {0.0, 1.0} else math.inf


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_arms", [2, 3, 5])
@pytest.mark.parametrize("kind", ["uniform", "sqrt", "two-point"])
@pytest.mark.parametrize("estimator", ["ipw", "aipw"])
def test_arm_means(estimator: str, kind: str, n_arms: int, seed: int) -> None:
    log = adaptive_log(n_arms, seed, binary=seed == 2)
    result = ArmMeans(log).fit(estimator, kind)
    covariance = result.cov_params().to_numpy()
    parts = [literal_parts(log, arm, estimator, kind) for arm in range(n_arms)]
    rare = [uncommon(log, arm) < 5 for arm in range(n_arms)]
    for arm, (estimate, d) in enumerate(parts):
        assert result.estimate[arm] == pytest.approx(estimate, rel=1e-9, abs=1e-9)
        if rare[arm]:
            assert np.isnan(covariance[arm]).all()
            continue
        assert result.std_error[arm] == pytest.approx(math.sqrt(math.fsum(x * x for x in d)), rel=1e-9)
        for other, (_, d_other) in enumerate(parts):
            joint = math.fsum(x * y for x, y in zip(d, d_other, strict=True))
            if rare[other]:
                assert np.isnan(covariance[arm, other])
                continue
            assert covariance[arm, other] == pytest.approx(joint, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("estimator", ["ipw", "aipw"])
def test_sqrt_weights_of_the_round_before(estimator: str) -> None:
    """Where nobody says that contexts had no part, one that the log lacks may move a round's own."""
    arrays = adaptive_log(3, seed=6).arrays
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
    assert arrays.propensities is not None
    result = ArmMeans(log).fit(estimator, "sqrt")
    for arm in range(3):
        scores = literal_scores(log, arm, estimator)
        weights = [math.sqrt(1 / 3)] + [math.sqrt(float(e)) for e in arrays.propensities[:-1, arm]]
        weights[0] *= estimator == "ipw"
        total = math.fsum(weights)
        estimate = math.fsum(h * g for h, g in zip(weights, scores, strict=True)) / total
        squares = math.fsum((h * (g - estimate)) ** 2 for h, g in zip(weights, scores, strict=True))
        assert result.estimate[arm] == pytest.approx(estimate, rel=1e-10)
        assert result.std_error[arm] == pytest.approx(math.sqrt(squares) / total, rel=1e-10)
    assert any(ROUND_BEFORE() in note for note in result.notes)


@pytest.mark.parametrize("n_arms", [2, 3, 5])
@pytest.mark.parametrize("kind", ["uniform", "sqrt", "two-point"])
@pytest.mark.parametrize("estimator", ["ipw", "aipw"])
def test_contrast(estimator: str, kind: str, n_arms: int) -> None:
    log = adaptive_log(n_arms, seed=11)
    result = Contrast(log, treatment=n_arms - 1, control=0).fit(estimator, kind)
    first, d_first = literal_parts(log, n_arms - 1, estimator, kind)
    second, d_second = literal_parts(log, 0, estimator, kind)
    variance = math.fsum((x - y) ** 2 for x, y in zip(d_first, d_second, strict=True))
    assert result.estimate[0] == pytest.approx(first - second, rel=1e-9, abs=1e-9)
    assert result.std_error[0] == pytest.approx(math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("kind", ["uniform", "sqrt", "two-point"])
def test_effective_sample_size(kind: str) -> None:
    log = adaptive_log(3, seed=4)
    result = ArmMeans(log).fit("aipw", kind)
    propensity = log.arrays.propensity
    assert propensity is not None
    for arm in range(3):
        weights = literal_weights(log, arm, kind)
        g = [
            weights[t] / float(propensity[t]) for t in range(log.n_rounds) if int(log.arrays.action[t]) == arm
        ]
        assert result.ess.iloc[arm] == pytest.approx(
            math.fsum(g) ** 2 / math.fsum(x * x for x in g), rel=1e-9
        )


def test_scores_look_only_back() -> None:
    """What happens in a round changes no earlier score, and nothing is known of the first."""
    log = adaptive_log(2, seed=7)
    kept = ArmMeans(log).fit("aipw", "sqrt", keep_scores=True).scores
    assert kept is not None
    arrays = log.arrays
    late = np.where(np.arange(HORIZON) >= 100, 1000.0, arrays.reward)
    changed = LogArrays(
        action=arrays.action, reward=late, propensity=arrays.propensity, propensities=arrays.propensities
    )
    again = (
        ArmMeans(AdaptiveLog.from_arrays(changed, arms=log.arms)).fit("aipw", "sqrt", keep_scores=True).scores
    )
    assert again is not None
    np.testing.assert_array_equal(again["scores"][:100], kept["scores"][:100])
    np.testing.assert_array_equal(kept["weights"][0], 0.0)
    np.testing.assert_array_equal(kept["influence"][0], 0.0)
    assert (kept["weights"][1:] > 0.0).all()


def test_the_chosen_arms_propensity_is_enough_for_uniform_weights() -> None:
    log = adaptive_log(3, seed=9)
    arrays = LogArrays(action=log.arrays.action, reward=log.arrays.reward, propensity=log.arrays.propensity)
    alone = AdaptiveLog.from_arrays(arrays, arms=log.arms)
    for estimator in ("ipw", "aipw"):
        np.testing.assert_array_equal(
            ArmMeans(alone).fit(estimator, "uniform").estimate,
            ArmMeans(log).fit(estimator, "uniform").estimate,
        )


def test_two_point_budget_at_a_long_horizon() -> None:
    """The shares are spent exactly once: the squares of h / sqrt(e) add up to one."""
    rng = np.random.default_rng(3)
    propensities = rng.uniform(0.01, 0.99, size=(20_000, 2))
    for decay in (0.0, 0.5, 0.9):
        weights = two_point_weights(propensities, decay)
        np.testing.assert_allclose((weights**2 / propensities).sum(axis=0), 1.0, rtol=1e-9)
