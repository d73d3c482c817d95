"""Simulators of the scoreboard against literal versions: a log and a round at a time, from the rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from case_studies.scoreboard import designs, worlds
from case_studies.scoreboard.designs import DESIGNS, Assigned
from case_studies.scoreboard.worlds import World

LOGS, ROUNDS = 3, 160
Rule = Callable[[list[float], list[float], int, list[int]], list[float]]


def chance_of_second(n: list[float], sums: list[float]) -> float:
    """Normal posteriors with prior mean .5 and variance .25: that of arm 1 is the larger one."""
    means = [(0.5 + s) / (1 + k) for k, s in zip(n, sums, strict=True)]
    variances = [0.25 / (1 + k) for k in n]
    return NormalDist().cdf((means[1] - means[0]) / math.sqrt(variances[0] + variances[1]))


def clipped(second: float, floor: float) -> list[float]:
    second = min(max(second, floor), 1 - floor)
    return [1 - second, second]


def greedy(n: list[float], sums: list[float], now: int, arms: list[int]) -> list[float]:
    means = [(s + 0.5) / (k + 1) for k, s in zip(n, sums, strict=True)]
    best = means.index(max(means))
    return [0.1 / len(n) + (0.9 if arm == best else 0) for arm in range(len(n))]


def mixed(n: list[float], sums: list[float], now: int, arms: list[int]) -> list[float]:
    weight = 1 / (now + 1) ** 0.24
    second = weight / 2 + (1 - weight) * chance_of_second(n, sums)
    return [1 - second, second]


def biased_coin(n: list[float], sums: list[float], now: int, arms: list[int]) -> list[float]:
    if now < 20:
        return [0.5, 0.5]
    roots = [math.sqrt((s + 0.5) / (k + 1)) for k, s in zip(n, sums, strict=True)]
    target, share = roots[1] / (roots[0] + roots[1]), min(max(arms.count(1) / now, 0.02), 0.98)
    one, other = target * (target / share) ** 2, (1 - target) * ((1 - target) / (1 - share)) ** 2
    return [other / (one + other), one / (one + other)]


def urn(n: list[float], sums: list[float], now: int, arms: list[int]) -> list[float]:
    balls = [1 + sums[0] + n[1] - sums[1], 1 + sums[1] + n[0] - sums[0]]
    return [ball / sum(balls) for ball in balls]


RULES: dict[str, Rule] = {
    "coin": lambda n, sums, now, arms: [1 / len(n)] * len(n),
    "epsilon_greedy": greedy,
    "thompson": lambda n, sums, now, arms: clipped(chance_of_second(n, sums), 1e-9),
    "thompson_floor": lambda n, sums, now, arms: clipped(chance_of_second(n, sums), 0.05),
    "mad": mixed,
    "dbcd": biased_coin,
    "play_the_winner": urn,
}


def thrown(shares: list[float], coin: float) -> int:
    total = 0.0
    for arm, share in enumerate(shares[:-1]):
        total += share
        if coin < total:
            return arm
    return len(shares) - 1


def by_shares(world: World, coins: np.ndarray, rule: Rule) -> tuple[list[list[int]], list[list[list[float]]]]:
    all_arms, all_shares = [], []
    for log in range(len(coins)):
        arms: list[int] = []
        chances = []
        for now in range(coins.shape[1]):
            known = range(max(0, now - world.delay))
            n = [float(sum(arms[t] == arm for t in known)) for arm in range(world.outcomes.shape[2])]
            sums = [
                sum(world.outcomes[log, t, arm] for t in known if arms[t] == arm) for arm in range(len(n))
            ]
            chances.append(rule(n, sums, now, arms))
            arms.append(thrown(chances[-1], coins[log, now]))
        all_arms.append(arms)
        all_shares.append(chances)
    return all_arms, all_shares


def drawn(name: str, arms: int = 2, rounds: int = ROUNDS) -> tuple[World, np.ndarray]:
    rng = np.random.default_rng(5)
    return worlds.world(name, LOGS, rounds, arms, rng), rng.random((LOGS, rounds))


@pytest.mark.parametrize("world", ["equal", "skewed", "delay", "units", "drift"])
@pytest.mark.parametrize("design", RULES)
def test_designs_that_throw_a_coin_follow_their_rules(design: str, world: str) -> None:
    told, coins = drawn(world)
    found = DESIGNS[design](told, coins, np.random.default_rng(6))
    arms, shares = by_shares(told, coins, RULES[design])
    assert found.arms.tolist() == arms
    np.testing.assert_allclose(found.shares, shares, rtol=1e-10)
    assert len({tuple(row) for row in arms}) == LOGS


def test_a_tree_learns_in_each_leaf() -> None:
    world, coins = drawn("leaves")
    found = DESIGNS["tree_thompson"](world, coins, np.random.default_rng(6))
    for log in range(LOGS):
        arms: list[int] = []
        for now in range(ROUNDS):
            same = [t for t in range(now) if world.leaves[log, t] == world.leaves[log, now]]
            n = [float(sum(arms[t] == arm for t in same)) for arm in (0, 1)]
            sums = [sum(world.outcomes[log, t, arm] for t in same if arms[t] == arm) for arm in (0, 1)]
            shares = clipped(chance_of_second(n, sums), 0.05)
            np.testing.assert_allclose(found.shares[log, now], shares, rtol=1e-10)
            arms.append(thrown(shares, coins[log, now]))
        assert found.arms[log].tolist() == arms


def bounds(n: list[int], sums: list[float], now: int) -> int:
    index = [s / k + math.sqrt(math.log(now) / (2 * k)) for k, s in zip(n, sums, strict=True)]
    return index.index(max(index))


def noise_of(number: int, noise: list[float]) -> float:
    """Noise of a running sum of so many outcomes: that of the dyadic blocks which make it up."""
    total, end = 0.0, 0
    for level in reversed(range(number.bit_length())):
        if number >> level & 1:
            end += 1 << level
            total += noise[end - 1]
    return total


@pytest.mark.parametrize("private", [False, True])
def test_upper_bounds_choose_with_and_without_noise(private: bool) -> None:
    world, coins = drawn("better", 3)
    found = DESIGNS["private_ucb" if private else "ucb"](world, coins, np.random.default_rng(6))
    levels = math.ceil(math.log2(ROUNDS)) + 1
    draws = np.random.default_rng(6).laplace(scale=levels, size=(LOGS, ROUNDS))
    first = 30 if private else 3
    for log in range(LOGS):
        n, sums, noise = [0] * 3, [0.0] * 3, [[], [], []]
        for now in range(ROUNDS):
            seen = [s + (noise_of(k, e) if private else 0) for k, s, e in zip(n, sums, noise, strict=True)]
            arm = now % 3 if now < first else bounds(n, seen, now)
            assert found.arms[log, now] == arm
            n[arm] += 1
            sums[arm] += world.outcomes[log, now, arm]
            noise[arm].append(draws[log, now])
    assert found.shares is None


def test_track_and_stop_ends_where_the_ratio_suffices() -> None:
    world, coins = drawn("equal", 3, 900)
    world.outcomes[0, :, 1] = 1.0  # a trial that ends early
    found = DESIGNS["track_and_stop"](world, coins, np.random.default_rng(6))
    for log in range(LOGS):
        n, sums, led, end = [0] * 3, [0.0] * 3, 0, 900
        for now in range(900):
            arm = now % 3
            if now >= 30:
                means = [s / k for k, s in zip(n, sums, strict=True)]
                leader = means.index(max(means))
                ratios = {
                    other: (means[leader] - means[other]) ** 2 / (0.5 * (1 / n[leader] + 1 / n[other]))
                    for other in range(3)
                    if other != leader
                }
                rival = min(ratios, key=lambda other: ratios[other])
                if end == 900 and ratios[rival] > math.log((1 + math.log(now)) / 0.1):
                    end = now
                arm = leader if led <= (now - 30) / 2 else rival
                led += arm == leader
            if now < end:
                assert found.arms[log, now] == arm
            n[arm] += 1
            sums[arm] += world.outcomes[log, now, arm]
        assert found.ends[log] == end
    assert found.ends[0] < 100


def literal_top_two(world: World, coins: np.ndarray, normals: list[np.ndarray]) -> Assigned:
    logs, rounds, n_arms = world.outcomes.shape
    length = rounds // 20
    arms, shares = np.empty((logs, rounds), dtype=int), np.empty((logs, 20, n_arms))
    for log in range(logs):
        for period in range(20):
            share = np.full(n_arms, 1 / n_arms)
            if period:
                posterior = []
                for arm in range(n_arms):
                    mean = variance = 0.0
                    for past in range(period):
                        rows = [t for t in range(past * length, (past + 1) * length) if arms[log, t] == arm]
                        got = world.outcomes[log, rows, arm]
                        mean += np.mean(got) / period if len(got) else 0
                        variance += np.var(got, ddof=1) / len(got) / period**2 if len(got) > 1 else 0
                    posterior.append((mean, math.sqrt(variance)))
                hits = np.zeros(n_arms)
                for draw in normals[period - 1][log]:
                    values = [m + s * z for (m, s), z in zip(posterior, draw, strict=True)]
                    hits[sorted(range(n_arms), key=lambda arm: values[arm])[-2:]] += 1
                share = np.maximum(hits / hits.sum(), 0.01)
                share = share / share.sum()
            shares[log, period] = share
            for t in range(period * length, (period + 1) * length):
                arms[log, t] = thrown(share.tolist(), coins[log, t])
    return Assigned(arms, shares)


def test_top_two_weighs_periods_as_growthbook_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(designs, "DRAWS", 50)
    world, coins = drawn("tenth", 4, 800)
    found = DESIGNS["top_two"](world, coins, np.random.default_rng(6))
    rng = np.random.default_rng(6)
    literal = literal_top_two(world, coins, [rng.standard_normal((LOGS, 50, 4)) for _ in range(19)])
    np.testing.assert_allclose(found.shares, literal.shares, rtol=1e-10)
    assert found.arms.tolist() == literal.arms.tolist()
    assert found.shares.min() < 0.02


def test_beta_draws_choose_the_highest() -> None:
    world, coins = drawn("equal", 5)
    found = DESIGNS["beta_thompson"](world, coins, np.random.default_rng(6))
    rng = np.random.default_rng(6)
    n, sums = [[0] * 5 for _ in range(LOGS)], [[0.0] * 5 for _ in range(LOGS)]
    for now in range(ROUNDS):
        draws = rng.beta(1 + np.array(sums), 1 + np.array(n) - np.array(sums)).tolist()
        for log in range(LOGS):
            arm = draws[log].index(max(draws[log]))
            assert found.arms[log, now] == arm
            n[log][arm] += 1
            sums[log][arm] += world.outcomes[log, now, arm]


@pytest.mark.parametrize(
    ("name", "mean", "deviation"),
    [
        ("equal", 0.5, 0.5),
        ("skewed", 0.1, 0.1732),
        ("drift", 0.5, 0.4865),
        ("rare", 0.02, 0.14),
        ("units", 0.5, 0.5),
    ],
)
def test_worlds_have_the_means_and_deviations_that_they_state(
    name: str, mean: float, deviation: float
) -> None:
    told = worlds.world(name, 200, 400, 2, np.random.default_rng(4))
    assert told.means.tolist() == [mean, mean]
    assert told.deviations == pytest.approx([deviation] * 2, abs=1e-4)
    error = deviation / math.sqrt(200 * 400)
    assert told.outcomes.mean(axis=(0, 1)) == pytest.approx([mean] * 2, abs=6 * error)
    spread = np.sqrt(np.mean((told.outcomes - told.outcomes.mean(axis=0)) ** 2))
    assert spread == pytest.approx(deviation, rel=0.02)


def test_which_arm_is_better_depends_on_the_leaf() -> None:
    told = worlds.world("leaves", 100, 400, 2, np.random.default_rng(4))
    for leaf, means in enumerate(worlds.LEAF_MEANS):
        assert told.outcomes[told.leaves == leaf].mean(axis=0) == pytest.approx(means, abs=0.03)
    with pytest.raises(ValueError, match="no such world: 'flat'"):
        worlds.world("flat", 1, 1, 2, np.random.default_rng(4))
