"""Private UCB against a literal reading: every decision rebuilt from the rewards and the released sums."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.designs import UCB, PrivateUCB
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, NormalArms, UniformArms

# --- the counters, spelled out as intervals of items ------------------------------------------------------


def binary_nodes(count: int, horizon: int) -> list[tuple[int, int, Fraction]]:
    """(first item, last item, scale at epsilon = 1) of the dyadic intervals that tile 1..count."""
    levels = Fraction(horizon.bit_length())  # floor(log2(horizon)) + 1
    nodes, start = [], 0
    for level in range(horizon.bit_length() - 1, -1, -1):
        if (count - start) >> level:
            nodes.append((start + 1, start + 2**level, levels))
            start += 2**level
    return nodes


def hybrid_nodes(count: int) -> list[tuple[int, int, Fraction]]:
    """Segments between powers of two with half of epsilon, and a binary mechanism in the last block."""
    top = count.bit_length() - 1
    trunk = [(1, 1, Fraction(2))] + [(2 ** (j - 1) + 1, 2**j, Fraction(2)) for j in range(1, top + 1)]
    inside, start = [], 2**top
    for level in range(top - 1, -1, -1):
        if (count - start) >> level:
            inside.append((start + 1, start + 2**level, Fraction(2 * top)))
            start += 2**level
    return trunk + inside


def nodes_of(counter: str, count: int, horizon: int) -> list[tuple[int, int, Fraction]]:
    return hybrid_nodes(count) if counter == "hybrid" else binary_nodes(count, horizon)


# --- the exact tail of a sum of Laplace variables, by residues in rational numbers --------------------------


def product(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    """First terms of the product of two power series of the same length."""
    return [sum((a[i] * b[n - i] for i in range(n + 1)), Fraction(0)) for n in range(len(a))]


def power(base: list[Fraction], exponent: int, length: int) -> list[Fraction]:
    """First terms of the power series base^exponent, by the recurrence of its logarithmic derivative."""
    base = base + [Fraction(0)] * length
    series = [base[0] ** exponent]
    for n in range(1, length):
        terms = ((exponent * k - (n - k)) * base[k] * series[n - k] for k in range(1, n + 1))
        series.append(sum(terms, Fraction(0)) / (n * base[0]))
    return series


@functools.cache
def tail_terms(law: tuple[tuple[Fraction, int], ...]) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Rates and polynomials of P(S > x) = sum over scales of exp(-x/b) * polynomial(x)."""
    terms = []
    for scale, order in law:
        pole = 1 / scale
        series = power([Fraction(2), scale], -order, order)
        series = [c * (-scale) ** -order for c in series]
        series = product(series, power([pole, Fraction(1)], -1, order))
        for other, count in law:
            if other != scale:
                quadratic = [1 - other**2 * pole**2, -2 * other**2 * pole, -(other**2)]
                series = product(series, power(quadratic, -count, order))
        polynomial = [
            float(-series[order - 1 - j] * Fraction((-1) ** j, math.factorial(j))) for j in range(order)
        ]
        terms.append((float(pole), tuple(polynomial)))
    return tuple(terms)


def exact_tail(x: np.ndarray, law: tuple[tuple[Fraction, int], ...]) -> np.ndarray:
    parts = [np.exp(-rate * x) * np.polyval(poly[::-1], x) for rate, poly in tail_terms(law)]
    return np.sum(parts, axis=0)


@functools.cache
def exact_quantiles(law: tuple[tuple[Fraction, int], ...], horizon: int) -> np.ndarray:
    """Quantiles 1 - 1/t for t = 0..horizon (the first two are not defined), at epsilon = 1."""
    t = np.arange(2, horizon + 1)
    low, high = np.zeros(t.size), np.full(t.size, 1.0)
    while np.any(exact_tail(high, law) > 1 / t):
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2
        above = exact_tail(middle, law) > 1 / t
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.concatenate(([np.nan, np.nan], (low + high) / 2))


def law_at(counter: str, count: int, horizon: int) -> tuple[tuple[Fraction, int], ...]:
    scales = [scale for _, _, scale in nodes_of(counter, count, horizon)]
    return tuple((scale, scales.count(scale)) for scale in sorted(set(scales)))


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_exact_tail_is_the_inverse_of_the_characteristic_function(counter: str) -> None:
    for count in (1, 2, 3, 5, 11, 27, 31):
        law = law_at(counter, count, 40)

        def density_of_sine(u: float, law: tuple[tuple[Fraction, int], ...] = law, x: float = 20.0) -> float:
            return np.sin(u * x) / u * math.prod((1 + (float(b) * u) ** 2) ** -m for b, m in law) / np.pi

        area, _ = integrate.quad(density_of_sine, 0.0, 40.0, limit=2000, epsabs=1e-9)
        assert exact_tail(np.array([20.0]), law)[0] == pytest.approx(0.5 - area, abs=2e-6)
        assert exact_tail(np.array([0.0]), law)[0] == pytest.approx(0.5, abs=1e-10)


# --- the decisions ---------------------------------------------------------------------------------------


def replay(log: AdaptiveLog) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Round, chosen arm, pulls and last released sum of each arm before the round."""
    releases = log.releases
    assert releases["round"].tolist() == list(range(1, log.n_rounds + 1))
    assert set(releases["name"]) == {"noisy_sum"}
    assert releases["group"].tolist() == log.arrays.action.tolist()
    pulls, sums = np.zeros(log.n_arms, dtype=int), np.zeros(log.n_arms)
    for t, (arm, value) in enumerate(zip(log.arrays.action, releases["value"], strict=True), start=1):
        yield t, int(arm), pulls.copy(), sums.copy()
        pulls[arm] += 1
        sums[arm] = value


def check_decisions(log: AdaptiveLog, bonus: object, slack: float) -> int:
    """Compare every choice with the literal index; returns how many needed the slack."""
    doubtful = 0
    for t, arm, pulls, sums in replay(log):
        if t <= log.n_arms:
            assert arm == t - 1
            continue
        width, noise_bound = bonus(t, pulls)  # type: ignore[operator]
        index = sums / pulls + width + noise_bound / pulls
        if arm != int(np.argmax(index)):
            doubtful += 1
            best = int(np.argmax(index))
            allowed = slack * (noise_bound[best] / pulls[best] + noise_bound[arm] / pulls[arm]) + 1e-12
            assert index[best] - index[arm] <= allowed, (t, arm, best, index)
    return doubtful


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize(
    ("means", "horizon", "epsilon", "width", "seed"),
    [
        ([0.9, 0.5, 0.2], 700, 1.0, 2.0, 1),
        ([0.5, 0.5], 511, 0.3, 0.5, 2),
        ([0.5, 0.52], 512, 20.0, 2.0, 3),
        (list(np.linspace(0.05, 1.0, 20)), 500, 2.0, 2.0, 4),
        ([0.4], 30, 1.0, 2.0, 5),
    ],
)
def test_corrected_decisions(
    counter: str, means: list[float], horizon: int, epsilon: float, width: float, seed: int
) -> None:
    design = PrivateUCB(epsilon=epsilon, counter=counter, width=width)
    for rng in range(seed, seed + 3):
        log = design.run(BernoulliArms(means), horizon=horizon, rng=rng)

        def bonus(t: int, pulls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            quantile = [exact_quantiles(law_at(counter, int(n), horizon), horizon)[t] for n in pulls]
            return np.sqrt(width * np.log(t) / pulls), np.array(quantile) / epsilon

        doubtful = check_decisions(log, bonus, slack=1e-3)
        assert doubtful <= 0.01 * horizon


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize(("relaxation", "delta"), [(True, None), (False, None), (False, 0.05), (True, 1e-3)])
def test_published_decisions(counter: str, relaxation: bool, delta: float | None) -> None:
    means, horizon, epsilon = [0.9, 0.8, 0.3, 0.1], 600, 8.0
    design = PrivateUCB(
        epsilon=epsilon, calibration="published", counter=counter, relaxation=relaxation, delta=delta
    )
    failure = 1 / horizon if delta is None else delta
    k = len(means)
    gamma = k * math.log(horizon) ** 2 * math.log(k * horizon * math.log(horizon) / failure) / epsilon

    def bonus(t: int, pulls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.sqrt(2 * np.log(t / failure) / pulls), np.full(k, gamma if relaxation else 0.0)

    for seed in range(3):
        log = design.run(BernoulliArms(means), horizon=horizon, rng=seed)
        assert check_decisions(log, bonus, slack=0.0) == 0


def test_published_relaxation_nearly_forces_round_robin() -> None:
    """Both gamma and the noise scale with 1 / epsilon, so no epsilon lets the data speak."""
    environment = BernoulliArms(np.linspace(1.0, 0.05, 20))
    for epsilon in (0.05, 1.0):
        design = PrivateUCB(epsilon=epsilon, calibration="published")
        pulls = design.replicate(environment, horizon=500, replications=128, rng=0).pulls
        assert np.abs(pulls - 25).max() <= 6
        assert np.mean(np.abs(pulls - 25) <= 1) > 0.9
    free = PrivateUCB(epsilon=10.0, calibration="published", relaxation=False)
    pulls = free.replicate(environment, horizon=500, replications=128, rng=0).pulls
    assert np.mean(np.abs(pulls - 25) <= 1) < 0.2


@pytest.mark.parametrize("width", [2.0, 0.5])
def test_ucb_decisions(width: float) -> None:
    environment = UniformArms(low=[0.0, 0.1, 0.2], high=[1.0, 0.9, 0.9])
    for seed in range(3):
        log = UCB(width=width).run(environment, horizon=800, rng=seed)
        pulls, sums = np.zeros(3), np.zeros(3)
        for t, (arm, reward) in enumerate(zip(log.arrays.action, log.arrays.reward, strict=True), start=1):
            if t <= 3:
                assert arm == t - 1
            else:
                index = sums / pulls + np.sqrt(width * math.log(t) / pulls)
                assert index[arm] >= index.max() - 1e-12
            pulls[arm] += 1
            sums[arm] += reward
        assert len(log.releases) == 0


# --- the noise in the released sums -------------------------------------------------------------------------


def fresh_draws(noise: np.ndarray, counter: str, horizon: int) -> tuple[list[float], list[float]]:
    """The draw that each count adds, and its scale at epsilon = 1.

    Every node is first used at the count that is its last item, so the noise there minus the noise just
    before its first item is the node's own draw.
    """
    draws, scales = [], []
    for count in range(1, noise.size + 1):
        last = [node for node in nodes_of(counter, count, horizon) if node[1] == count]
        assert len(last) == 1
        first, _, scale = last[0]
        before = noise[first - 2] if first > 1 else 0.0
        draws.append(noise[count - 1] - before)
        scales.append(float(scale))
    return draws, scales


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("calibration", ["corrected", "published"])
@pytest.mark.parametrize("clipped", [False, True])
def test_released_sums_carry_independent_laplace_nodes(counter: str, calibration: str, clipped: bool) -> None:
    horizon, epsilon, n_arms = 3000, 0.7, 3
    environment = NormalArms([0.3, 0.6, 1.2]) if clipped else BernoulliArms([0.3, 0.6, 0.5])
    design = PrivateUCB(epsilon=epsilon, counter=counter, calibration=calibration)
    share = epsilon / n_arms if calibration == "published" else epsilon
    standardised = []
    for seed in range(2):
        log = design.run(environment, horizon=horizon, rng=seed)
        reward = log.arrays.reward
        assert (reward.min() < 0.0) == clipped
        for arm in range(n_arms):
            rows = log.arrays.action == arm
            noise = log.releases["value"].to_numpy()[rows] - np.cumsum(np.clip(reward[rows], 0.0, 1.0))
            draws, scales = fresh_draws(noise, counter, horizon)
            standardised.append(np.array(draws) * share / np.array(scales))
    draws = np.concatenate(standardised)
    assert draws.size == 2 * horizon
    assert stats.kstest(draws, stats.laplace.cdf).pvalue > 1e-4
    neighbours = np.corrcoef(np.sign(draws[1:]), np.sign(draws[:-1]))[0, 1]
    assert abs(neighbours) < 4.0 / math.sqrt(draws.size)


@pytest.mark.parametrize(("counter", "levels"), [("binary", 10), ("hybrid", None)])
def test_an_item_lies_in_as_many_nodes_as_the_budget_pays_for(counter: str, levels: int | None) -> None:
    """Sum over an item's nodes of 1 / scale is the epsilon that it spends: at most 1, and 1 is reached."""
    horizon = 1000
    nodes = {node for count in range(1, horizon + 1) for node in nodes_of(counter, count, horizon)}
    spent = [sum(1 / scale for a, b, scale in nodes if a <= item <= b) for item in range(1, horizon + 1)]
    assert max(spent) <= 1
    if levels is not None:
        assert max(sum(a <= item <= b for a, b, _ in nodes) for item in range(1, horizon + 1)) <= levels
    else:
        assert max(spent) == 1


@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_guarantee_is_what_one_counter_spends(calibration: str) -> None:
    guarantee = PrivateUCB(epsilon=0.8, calibration=calibration).guarantee(horizon=500, n_arms=4)
    assert guarantee.epsilon == pytest.approx(0.8 if calibration == "corrected" else 0.2)
    assert (guarantee.unit, guarantee.model, guarantee.notion) == ("reward", "central", "standard")
    assert guarantee.delta == 0.0
