"""Confidence sequences against formulas written out score by score, in plain Python.

The literal versions share no code with the package: lists of floats, one loop over the scores, no closed form
where a formula can be searched for its zero instead.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.sequences.sides import MixtureSide, mixture_scale
from adaptinf.log import AdaptiveLog, LogArrays

LOW, HIGH = -1.0, 3.0
HORIZON = 150
ROUNDS = [1, 2, 5, 20, 77, 150]


def softmax_log(seed: int, n_arms: int = 3, *, binary: bool = False, context: bool = False) -> AdaptiveLog:
    """Softmax of running means with a floor of 0.1; rewards in [-1, 3], by context where there is one."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.2, 0.8, size=n_arms)
    sums, counts = np.zeros(n_arms), np.zeros(n_arms)
    action, reward = np.zeros(HORIZON, dtype=np.int64), np.zeros(HORIZON)
    propensities = np.zeros((HORIZON, n_arms))
    group = rng.integers(0, 2, size=HORIZON)
    for t in range(HORIZON):
        score = np.exp(2.0 * sums / np.maximum(counts, 1.0) * (1.0 if not context else 1.0 - 2.0 * group[t]))
        propensities[t] = 0.1 + (1.0 - 0.1 * n_arms) * score / score.sum()
        propensities[t] /= propensities[t].sum()
        arm = rng.choice(n_arms, p=propensities[t])
        value = rng.beta(4.0 * means[arm], 4.0 * (1.0 - means[arm]))
        value = float(rng.random() < value) if binary else value
        action[t], reward[t] = arm, LOW + (HIGH - LOW) * value
        sums[arm] += value
        counts[arm] += 1
    arrays = LogArrays(
        action=action,
        reward=reward,
        propensity=propensities[np.arange(HORIZON), action],
        propensities=propensities,
        context={"group": group} if context else {},
    )
    return AdaptiveLog.from_arrays(
        arrays,
        arms=tuple("abc"[:n_arms]),
        reward_range=(LOW, HIGH),
        context_free=None if context else True,
    )


def literal_bets(x: list[float], alpha: float) -> tuple[list[float], list[float]]:
    """Bets and centres of Waudby-Smith and Ramdas, each from the scores before."""
    bets, centres = [], []
    total, squares, mean = 0.0, 0.0, 0.5
    for t in range(1, len(x) + 1):
        variance = (0.25 + squares) / t
        bets.append(math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(1 + t))))
        centres.append(mean)
        total += x[t - 1]
        mean = min(max((0.5 + total) / (t + 1), 0.0), 1.0)
        squares += (x[t - 1] - mean) ** 2
    return bets, centres


def literal_betting(x: list[float], floor: list[float], alpha: float, m: float) -> list[float]:
    bets, _ = literal_bets(x, alpha)
    path, log_wealth = [], 0.0
    for value, bet, low in zip(x, bets, floor, strict=True):
        most = 0.5 / (m - low) if m > low else math.inf
        log_wealth += math.log(1 + min(bet, most) * (value - m))
        path.append(log_wealth)
    return path


def literal_bernstein(x: list[float], floor: list[float], alpha: float, m: float) -> list[float]:
    bets, centres = literal_bets(x, alpha)
    path, log_wealth = [], 0.0
    for value, bet, centre, low in zip(x, bets, centres, floor, strict=True):
        scale = 1 - low
        share = min(0.5, bet * scale)
        psi = -math.log(1 - share) - share
        log_wealth += share * (value - m) / scale - psi * ((value - centre) / scale) ** 2
        path.append(log_wealth)
    return path


LITERAL = {"betting": literal_betting, "empirical-bernstein": literal_bernstein}


def literal_limits(
    method: str, scores: tuple[list[float], ...], n: int, alpha: float, split: float
) -> tuple[float, float]:
    """Limits on the unit scale after n scores: halve [0, 1] until the wealth's peak meets the threshold."""

    def bound(x: list[float], floor: list[float]) -> float:
        def peak(m: float) -> float:
            return max(LITERAL[method](x, floor, 0.05, m)[:n], default=0.0)

        if peak(0.0) < math.log(split / alpha):
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if peak(middle) >= math.log(split / alpha) else (low, middle)
        return low

    lower, upper, lower_floor, upper_floor = scores
    return bound(lower, lower_floor), 1 - bound(upper, upper_floor)


def own_scores(log: AdaptiveLog, arm: int) -> tuple[list[float], ...]:
    pairs = zip(log.arrays.action, log.arrays.reward, strict=True)
    x = [(y - LOW) / (HIGH - LOW) for a, y in pairs if a == arm]
    zeros = [0.0] * len(x)
    return x, [1 - value for value in x], zeros, zeros


def count(log: AdaptiveLog, arm: int, t: int) -> int:
    return sum(a == arm for a in log.arrays.action[:t])


@pytest.mark.parametrize("method", ["betting", "empirical-bernstein"])
@pytest.mark.parametrize("binary", [False, True])
def test_own_rewards_of_each_arm(method: str, binary: bool) -> None:
    log = softmax_log(4, binary=binary)
    result = ConfidenceSequence(log).fit(method=method)
    for alpha in (0.05, 0.2):
        table = result.table(alpha, rounds=ROUNDS).set_index(["term", "t"])
        for arm, label in enumerate(log.arms):
            scores = own_scores(log, arm)
            for t in ROUNDS:
                low, high = literal_limits(method, scores, count(log, arm, t), alpha, 2.0)
                row = table.loc[(label, t)]
                assert row["low"] == pytest.approx(LOW + 4 * low, abs=1e-9)
                assert row["high"] == pytest.approx(LOW + 4 * high, abs=1e-9)
        np.testing.assert_allclose(
            result.conf_int(alpha).to_numpy(), table.xs(150, level="t")[["low", "high"]], atol=1e-12
        )


@pytest.mark.parametrize("method", ["betting", "empirical-bernstein"])
def test_pvalue_is_the_inverse_of_the_largest_wealth(method: str) -> None:
    log = softmax_log(5)
    for null in (-0.8, 0.5, 1.0, 2.9):
        result = ConfidenceSequence(log).fit(method=method, null=null)
        m = (null - LOW) / 4
        for arm in range(3):
            lower, upper, floor, _ = own_scores(log, arm)
            largest = max(
                *LITERAL[method](lower, floor, 0.05, m), *LITERAL[method](upper, floor, 0.05, 1 - m), 0.0
            )
            assert result.log_pvalues.iloc[arm] == pytest.approx(min(0.0, math.log(2) - largest), abs=1e-9)


@pytest.mark.parametrize("method", ["betting", "empirical-bernstein"])
def test_contrast_of_own_rewards_divides_alpha_by_four(method: str) -> None:
    log = softmax_log(6)
    contrast = ConfidenceSequence(log, "contrast", treatment="c", control="a")
    result = contrast.fit(method=method, estimator="sample-mean")
    table = result.table(rounds=ROUNDS).set_index("t")
    for t in ROUNDS:
        first = literal_limits(method, own_scores(log, 2), count(log, 2, t), 0.05, 4.0)
        second = literal_limits(method, own_scores(log, 0), count(log, 0, t), 0.05, 4.0)
        assert table.loc[t, "low"] == pytest.approx(4 * (first[0] - second[1]), abs=1e-9)
        assert table.loc[t, "high"] == pytest.approx(4 * (first[1] - second[0]), abs=1e-9)


def inverse_contrast(log: AdaptiveLog, treatment: int, control: int) -> tuple[list[float], ...]:
    """Half of 1 plus the IPW contrast, with rewards of the control counted from above and from below."""
    lower, upper = [], []
    arrays = log.arrays
    assert arrays.propensity is not None
    for a, reward, e in zip(arrays.action, arrays.reward, arrays.propensity, strict=True):
        y = (reward - LOW) / 4
        first = (a == treatment) / e
        second = (a == control) / e
        lower.append((1 + first * y - (1 + second * (y - 1))) / 2)
        upper.append((1 + second * y - (1 + first * (y - 1))) / 2)
    zeros = [0.0] * len(lower)
    return lower, upper, zeros, zeros


@pytest.mark.parametrize("method", ["betting", "empirical-bernstein"])
@pytest.mark.parametrize("context", [False, True])
def test_inverse_propensity_scores_of_a_contrast(method: str, context: bool) -> None:
    log = softmax_log(7, context=context)
    fit = ConfidenceSequence(log, "contrast", treatment="b", control="a").fit
    table = fit(method=method, estimator="ipw").table(rounds=ROUNDS).set_index("t")
    scores = inverse_contrast(log, 1, 0)
    for t in ROUNDS:
        low, high = literal_limits(method, scores, t, 0.05, 2.0)
        assert table.loc[t, "low"] == pytest.approx(-4 + 8 * low, abs=1e-9)
        assert table.loc[t, "high"] == pytest.approx(-4 + 8 * high, abs=1e-9)
        middle = np.mean([(x + 1 - z) / 2 for x, z in zip(scores[0][:t], scores[1][:t], strict=True)])
        assert table.loc[t, "estimate"] == pytest.approx(-4 + 8 * middle, abs=1e-9)


def augmented(
    log: AdaptiveLog, policy: np.ndarray, floor: float | None, constant: bool
) -> tuple[list[float], ...]:
    """AIPW scores of a policy on rewards in [0, 1], with the bounds of every outcome of a round."""
    arrays = log.arrays
    assert arrays.propensities is not None
    n_arms = log.n_arms
    sums, counts = [0.0] * n_arms, [0] * n_arms
    lower, upper, below, above = [], [], [], []
    for t, (a, reward) in enumerate(zip(arrays.action, arrays.reward, strict=True)):
        y = (reward - LOW) / 4
        model = [s / max(n, 1) for s, n in zip(sums, counts, strict=True)]
        e = arrays.propensities[t]
        direct = sum(p * m for p, m in zip(policy[t], model, strict=True))
        score = direct + policy[t][a] / e[a] * (y - model[a])
        lower.append(score)
        upper.append(1 - score)
        least = [floor] * n_arms if floor is not None else list(e)
        corners = [policy[t]] if constant else list(np.eye(n_arms))
        extremes = [
            sum(p * m for p, m in zip(corner, model, strict=True))
            + corner[k] / least[k] * (outcome - model[k])
            for corner in corners
            for k in range(n_arms)
            if corner[k] > 0
            for outcome in (0.0, 1.0)
        ]
        below.append(min(0.0, *extremes))
        above.append(min(0.0, *(1 - value for value in extremes)))
        sums[a] += y
        counts[a] += 1
    return lower, upper, below, above


@pytest.mark.parametrize("method", ["betting", "empirical-bernstein"])
@pytest.mark.parametrize("case", ["arm", "mixed", "by context", "by round", "by round, but constant"])
def test_augmented_scores_of_policies(method: str, case: str) -> None:
    log = softmax_log(8, context=case == "by context")
    rows = np.tile({"arm": [0.0, 1.0, 0.0]}.get(case, [0.2, 0.5, 0.3]), (HORIZON, 1))
    floor = 0.09 if case == "by context" else None
    if case in ("by context", "by round"):
        rows[::3] = [0.7, 0.1, 0.2]
    policy = {"arm": "b", "mixed": rows[0]}.get(case, rows)
    fit = ConfidenceSequence(log, "policy-value", policy=policy).fit
    result = fit(method=method, estimator="aipw", floor=floor)
    scores = augmented(log, rows, floor, constant=not case.startswith("by"))
    table = result.table(rounds=ROUNDS).set_index("t")
    for t in ROUNDS:
        low, high = literal_limits(method, scores, t, 0.05, 2.0)
        assert table.loc[t, "low"] == pytest.approx(LOW + 4 * low, abs=1e-9)
        assert table.loc[t, "high"] == pytest.approx(LOW + 4 * high, abs=1e-9)
        assert table.loc[t, "estimate"] == pytest.approx(LOW + 4 * np.mean(scores[0][:t]), abs=1e-9)


def mixture_width(v: float, rho: float, alpha: float) -> float:
    return math.sqrt((v + rho) * (math.log(1 + v / rho) + 2 * math.log(1 / alpha)))


def running_intersection(
    centres: list[float], widths: list[float], start: tuple[float, float]
) -> list[tuple[float, float]]:
    limits = [start]
    for centre, width in zip(centres, widths, strict=True):
        limits.append((max(limits[-1][0], centre - width), min(limits[-1][1], centre + width)))
    return limits


def best_scale(v: float, alpha: float) -> float:
    """Scale of the mixture by golden-section search for the smallest bound."""
    low, high = v / 1000, v
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if mixture_width(v, a, alpha) < mixture_width(v, b, alpha) else (a, high)
    return (low + high) / 2


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
def test_mixture_scale_gives_the_smallest_bound(alpha: float) -> None:
    assert mixture_scale(40.0, alpha) == pytest.approx(best_scale(40.0, alpha), rel=1e-6)
    printed = 40.0 / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))
    best = mixture_width(40.0, mixture_scale(40.0, alpha), alpha)
    assert best <= mixture_width(40.0, printed, alpha) < 1.002 * best


def test_normal_mixture_on_own_rewards_and_scores() -> None:
    log = softmax_log(9)
    t_opt, alpha = 60, 0.1
    table = ConfidenceSequence(log).fit("normal-mixture", alpha, t_opt=t_opt).table(alpha, rounds=ROUNDS)
    own = own_scores(log, 1)[0]
    rho = mixture_scale(0.25 * t_opt, alpha)
    centres = [sum(own[:n]) / n for n in range(1, len(own) + 1)]
    widths = [mixture_width(n / 4, rho, alpha) / n for n in range(1, len(own) + 1)]
    expected = running_intersection(centres, widths, (0.0, 1.0))
    rows = table[table["term"] == "b"].set_index("t")
    for t in ROUNDS:
        low, high = expected[count(log, 1, t)]
        assert rows.loc[t, "low"] == pytest.approx(LOW + 4 * low, abs=1e-9)
        assert rows.loc[t, "high"] == pytest.approx(LOW + 4 * high, abs=1e-9)

    known = ConfidenceSequence(log, arms=["b"]).fit("normal-mixture", alpha, t_opt=t_opt, sigma=0.7)
    rho = mixture_scale(0.49 * t_opt, alpha)
    widths = [mixture_width(0.49 * n, rho, alpha) / n for n in range(1, len(own) + 1)]
    expected = running_intersection([LOW + 4 * c for c in centres], widths, (LOW, HIGH))
    np.testing.assert_allclose(known.conf_int(alpha).to_numpy()[0], expected[-1], atol=1e-9)

    scored = ConfidenceSequence(log, arms=["b"]).fit("normal-mixture", alpha, t_opt=t_opt, estimator="ipw")
    arrays = log.arrays
    assert arrays.propensities is not None
    x, v = [], []
    for a, reward, e in zip(arrays.action, arrays.reward, arrays.propensities[:, 1], strict=True):
        x.append(0.5 + (a == 1) * ((reward - LOW) / 4 - 0.5) / e)
        v.append((0.5 / e) ** 2)
    rho = mixture_scale(v[0] * t_opt, alpha)
    total, spent = np.cumsum(x), np.cumsum(v)
    centres = [total[n] / (n + 1) for n in range(HORIZON)]
    widths = [mixture_width(spent[n], rho, alpha) / (n + 1) for n in range(HORIZON)]
    low, high = running_intersection(centres, widths, (0.0, 1.0))[-1]
    np.testing.assert_allclose(
        scored.conf_int(alpha).to_numpy()[0], [LOW + 4 * low, LOW + 4 * high], atol=1e-9
    )


def test_mixture_wealth_is_the_integral_over_normal_bets() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0.8, 1.0, size=12)
    rho, sigma, mean = 3.0, 1.3, 0.1
    variance = sigma**2 * np.arange(1.0, 13.0)
    largest = 0.0
    for n in range(1, 13):
        excess, v = float(np.sum(x[:n] - mean)), float(variance[n - 1])

        def density(bet: float, excess: float = excess, v: float = v) -> float:
            normal = math.exp(-0.5 * bet**2 * rho) * math.sqrt(rho / (2 * math.pi))
            return math.exp(bet * excess - 0.5 * bet**2 * v) * normal

        integral = quad(density, -20, 20, points=[0.0, excess / (v + rho)], limit=200)[0]
        largest = max(largest, math.log(integral) if excess > 0 else 0.0)
    assert largest > 1.0
    side = MixtureSide.of_scores(x, variance, rho, -math.inf)
    assert side.peak(mean) == pytest.approx(largest, abs=1e-9)


@pytest.mark.parametrize("estimator", ["sample-mean", "ipw", "aipw"])
def test_asymptotic_sequence_as_published(estimator: str) -> None:
    log = softmax_log(10)
    t_opt, start, alpha = 80, 20, 0.05
    result = ConfidenceSequence(log, arms=["a"]).fit(
        "asymptotic", t_opt=t_opt, start=start, estimator=estimator
    )
    if estimator == "sample-mean":
        x = own_scores(log, 0)[0]
    elif estimator == "aipw":
        x = augmented(log, np.tile([1.0, 0.0, 0.0], (HORIZON, 1)), None, True)[0]
    else:
        arrays = log.arrays
        assert arrays.propensity is not None
        rows = zip(arrays.action, arrays.reward, arrays.propensity, strict=True)
        x = [0.5 + (a == 0) / e * ((y - LOW) / 4 - 0.5) for a, y, e in rows]
    limits = [(0.0, 1.0)]
    fixed = None
    for n in range(1, len(x) + 1):
        mean = sum(x[:n]) / n
        variance = sum((value - mean) ** 2 for value in x[:n]) / n
        low, high = limits[-1]
        if (n if estimator == "sample-mean" else count(log, 0, n)) >= start:
            fixed = fixed or variance
            # rho^2 = (-W(-alpha^2/e) - 1)/(sigma^2 t_opt), with W from its own equation
            u = 10.0
            for _ in range(200):
                u = 1 + 2 * math.log(1 / alpha) + math.log(u)
            squared = (u - 1) / (fixed * t_opt)
            inner = n * variance * squared + 1
            width = math.sqrt(2 * inner / (n**2 * squared) * math.log(math.sqrt(inner) / alpha))
            low, high = max(low, mean - width), min(high, mean + width)
        limits.append((low, high))
    assert any(a != b for a, b in pairwise(limits))
    table = result.table(rounds=ROUNDS).set_index("t")
    for t in ROUNDS:
        n = count(log, 0, t) if estimator == "sample-mean" else t
        assert table.loc[t, "low"] == pytest.approx(LOW + 4 * limits[n][0], abs=1e-9)
        assert table.loc[t, "high"] == pytest.approx(LOW + 4 * limits[n][1], abs=1e-9)
