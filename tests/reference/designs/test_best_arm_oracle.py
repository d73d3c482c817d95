"""Best-arm designs against literal readings of their pseudo-code, on the same rewards and noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import linalg

from adaptinf.designs.best_arm.arm_collections import optimal_design
from adaptinf.designs.best_arm.fixed_budget import SequentialHalving
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss, ODLinBAI
from adaptinf.designs.mixture import Mixture
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import NormalArms, Tableau


@dataclass
class Course:
    """What a literal run did: pulls by phase, the arms that were left, and the arm that it named."""

    actions: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    last_arm: int = -1
    largest: list[bool] = field(default_factory=list)


class Bandit:
    """Fixed rewards, one row per round; counts and sums start afresh with each phase."""

    def __init__(self, table: np.ndarray, course: Course) -> None:
        self.table, self.course = table, course

    def pull(self, arm: int, times: int) -> float:
        """Sum of the next rewards of an arm."""
        begin = len(self.course.actions)
        assert begin + times <= len(self.table)
        self.course.actions += [arm] * times
        return float(self.table[begin : begin + times, arm].sum())


def printed_sizes(n: int, d: int) -> tuple[int, int, list[int]]:
    """M_1, M and s_1, ..., s_{M+1} by equations (4) to (7), lambda by bisection."""
    low, high = 2.0, 1e12
    if math.pow(low, math.log(d)) >= n - math.ceil(d * d / 4):
        high = low
    for _ in range(200):
        middle = (low + high) / 2
        if math.pow(middle, math.log(d)) >= n - math.ceil(d * d / 4):
            high = middle
        else:
            low = middle
    g = [min(n, math.ceil(d * d / 4))]
    h = [max(n - math.ceil(d * d / 4), 0)]
    for _ in range(60):
        g.append(math.ceil(g[-1] / 2))
        h.append(math.ceil((h[-1] + 1) / high - 1))
    first = next(i for i in range(1, 60) if h[i] == 0)
    phases = first + next(i for i in range(1, 60) if g[i] == 1) - 1
    return first, phases, [g[0] + h[p - 1] if p <= first else g[p - first] for p in range(1, phases + 2)]


def dp_bai(
    table: np.ndarray,
    features: np.ndarray,
    noise_of_sum: float,
    noises: Callable[[int, int], float],
    pulled_in: Callable[[int], list[int]],
    max_det: bool,
) -> Course:
    """Algorithm 1 (or 2); `pulled_in` tells which of several possible collections was taken in a phase."""
    n, d = features.shape
    first, phases, sizes = printed_sizes(n, d)
    course = Course()
    bandit = Bandit(table, course)
    # the printed budget, or what is left after one pull of every arm, where that is less
    pulled = [d if d < math.sqrt(size) else size for size in sizes[:-1]]
    budget = len(table) - max(first * d + (phases - first) * math.ceil(d * d / 4), sum(pulled) - 1)
    active, vectors = list(range(n)), {arm: features[arm] for arm in range(n)}
    for phase in range(phases):
        size = sizes[phase]
        assert size == len(active)
        course.sizes.append(size)
        matrix = np.array([vectors[arm] for arm in active])
        rank = int(np.linalg.matrix_rank(matrix, tol=1e-9))
        basis = linalg.svd(matrix, full_matrices=False)[2][:rank]
        vectors = {arm: basis @ vectors[arm] for arm in active}
        begin = len(course.actions)
        estimates: dict[int, float] = {}

        def mean(arm: int, times: int, begin: int = begin, phase: int = phase) -> float:
            course.scales.append(noise_of_sum / times)
            return bandit.pull(arm, times) / times + noises(phase, arm)

        if max_det and rank < math.sqrt(size):
            times = math.ceil(budget / (phases * rank))
            collection = pulled_in(begin)[:rank]
            square = np.array([vectors[arm] for arm in collection]).T
            determinants = [
                abs(np.linalg.det(np.array([vectors[arm] for arm in chosen])))
                for chosen in itertools.combinations(active, rank)
            ]
            course.largest.append(abs(np.linalg.det(square)) > (1 - 1e-6) * max(determinants))
            for arm in collection:
                estimates[arm] = mean(arm, times)
            known = np.array([estimates[arm] for arm in collection])
            for arm in active:
                coefficients = np.linalg.solve(square, vectors[arm])
                assert np.abs(coefficients).max() <= 1 + 2e-6
                estimates[arm] = float(coefficients @ known)
        else:
            times = math.ceil(budget / (phases * size)) if max_det else len(table) // (phases * size)
            for arm in [arm for arm in pulled_in(begin) if arm in active][:size]:
                estimates[arm] = mean(arm, times)
        course.ends.append(len(course.actions))
        active = sorted(active, key=lambda arm: -estimates[arm])[: sizes[phase + 1]]
    course.last_arm = active[0]
    bandit.pull(active[0], len(table) - len(course.actions))
    return course


def od_lin_bai(
    table: np.ndarray, features: np.ndarray, noisy_moments: Callable[[int], np.ndarray | None], epsilon: float
) -> Course:
    """OD-LinBAI of Yang and Tan, with the released moments in place of the true ones where there are any."""
    n, d = features.shape
    course = Course()
    bandit = Bandit(table, course)
    rounds = max(1, math.ceil(math.log2(d)))
    spare = min(n, d * (d + 1) // 2) + sum(math.ceil(d / 2**r) for r in range(1, rounds))
    share = (len(table) - spare) / rounds
    active, vectors = list(range(n)), features.copy()
    for r in range(1, rounds + 1):
        course.sizes.append(len(active))
        matrix = vectors[active]
        q, triangle, _ = linalg.qr(matrix.T, mode="economic", pivoting=True)
        diagonal = np.diag(triangle)
        rank = int((np.abs(diagonal) > 1e-9 * abs(diagonal[0])).sum())
        if rank < matrix.shape[1]:
            vectors = vectors @ (q * np.sign(diagonal))[:, :rank]
            matrix = vectors[active]
        weights = optimal_design(matrix).weights
        gram, moments = np.zeros((rank, rank)), np.zeros(rank)
        # arms in the order in which they are kept
        for position, arm in enumerate(active):
            if weights[position] > 0:
                times = math.ceil(weights[position] * share - 1e-9)
                gram += times * np.outer(vectors[arm], vectors[arm])
                moments += vectors[arm] * bandit.pull(arm, times)
        course.ends.append(len(course.actions))
        released = noisy_moments(len(course.actions))
        if released is not None:
            course.scales += [np.abs(matrix).sum(axis=1).max() / epsilon] * rank
            moments = released
        theta = np.linalg.solve(gram, moments)
        active = sorted(active, key=lambda arm: -float(vectors[arm] @ theta))[: math.ceil(d / 2**r)]
    course.last_arm = active[0]
    bandit.pull(active[0], len(table) - len(course.actions))
    return course


def replay(log: AdaptiveLog, table: np.ndarray) -> tuple[Any, Any]:
    """The noise that the run drew for a phase and arm, and the arms that it pulled from a round on."""
    actions, ends = log.arrays.action, sorted(set(log.releases["round"]))
    drawn = {}
    for phase, end in enumerate(ends):
        begin = ends[phase - 1] if phase else 0
        for row in log.releases[log.releases["round"] == end].itertuples():
            rows = np.arange(begin, end)[actions[begin:end] == row.group]
            drawn[phase, row.group] = row.value - table[rows, row.group].mean()

    def pulled_in(begin: int) -> list[int]:
        return list(dict.fromkeys(actions[begin:].tolist()))

    return lambda phase, arm: drawn[phase, arm], pulled_in


def instance(n: int, d: int, seed: int, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and a table of rewards in [0, 1] with linear means."""
    rng = np.random.default_rng([n, d, seed])
    features = rng.normal(size=(n, d))
    means = features @ rng.normal(size=d)
    means = 0.1 + 0.8 * (means - means.min()) / (np.ptp(means) or 1.0)
    table = rng.random((horizon, n)) < means
    return features, table.astype(float)


CASES = [
    (2, 1, 40),
    (7, 1, 41),
    (4, 2, 7),
    (7, 2, 60),
    (30, 2, 50),
    (9, 3, 40),
    (12, 3, 90),
    (17, 4, 150),
    (16, 5, 300),
]


@pytest.mark.parametrize(("n", "d", "horizon"), CASES)
@pytest.mark.parametrize("max_det", [True, False])
@pytest.mark.parametrize("epsilon", [0.05, 3.0])
def test_dp_bai(n: int, d: int, horizon: int, max_det: bool, epsilon: float) -> None:
    matched = []
    for seed in range(4):
        features, table = instance(n, d, seed, horizon)
        design = DPBAI(epsilon=epsilon, features=features, max_det=max_det)
        log = design.run(Tableau(table, reward_range=(0, 1)), horizon, rng=seed)
        course = dp_bai(table, features, 1 / epsilon, *replay(log, table), max_det)
        np.testing.assert_array_equal(log.arrays.action, course.actions)
        assert log.recommended == course.last_arm
        np.testing.assert_allclose(log.releases["scale"], course.scales, rtol=1e-12)
        assert sorted(set(log.releases["round"])) == course.ends
        assert log.feedback_rounds == course.ends[-1]
        matched += course.largest
    if matched:
        assert np.mean(matched) >= 0.75


@pytest.mark.parametrize("d", [4, 5])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1e6])
def test_dp_bai_where_the_dimension_falls(epsilon: float, d: int) -> None:
    """17 arms, most in a plane. A first phase pulls 4 of them, or all at d = 5; a second one may pull 2."""
    fallen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        flat = 19 - d
        angles = np.pi * (np.arange(flat) + rng.random(flat)) / flat
        inside = np.column_stack([np.cos(angles), np.sin(angles), np.zeros((flat, d - 2))])
        features = np.vstack([inside, np.eye(d)[2:]]) @ linalg.qr(rng.normal(size=(d, d)))[0]
        table = (rng.random((400, 17)) < np.r_[np.full(flat, 0.7), np.full(d - 2, 0.1)]).astype(float)
        log = DPBAI(epsilon=epsilon, features=features).run(
            Tableau(table, reward_range=(0, 1)), 400, rng=seed
        )
        course = dp_bai(table, features, 1 / epsilon, *replay(log, table), True)
        np.testing.assert_array_equal(log.arrays.action, course.actions)
        assert log.recommended == course.last_arm
        fallen += len(course.largest) > (d == 4)
    assert fallen >= 5


def test_dp_bai_with_normal_noise() -> None:
    for calibration, factor in (
        ("published", math.sqrt(2 * math.log(1.25 / 1e-4)) / 0.5),
        ("corrected", None),
    ):
        features, table = instance(16, 5, 3, 300)
        design = DPBAIGauss(epsilon=0.5, delta=1e-4, features=features, calibration=calibration)
        log = design.run(Tableau(table, reward_range=(0, 1)), 300, rng=5)
        scale = design._noise() if factor is None else factor
        course = dp_bai(table, features, scale, *replay(log, table), True)
        np.testing.assert_array_equal(log.arrays.action, course.actions)
        np.testing.assert_allclose(log.releases["scale"], course.scales, rtol=1e-12)
        assert set(log.releases["mechanism"]) == {"gaussian"}


@pytest.mark.parametrize(("n", "d", "horizon"), [*CASES, (40, 8, 600)])
def test_dp_od(n: int, d: int, horizon: int) -> None:
    for seed, epsilon in itertools.product(range(3), (0.1, 5.0)):
        features, table = instance(n, d, seed, horizon)
        log = DPOD(epsilon=epsilon, features=features).run(
            Tableau(table, reward_range=(0, 1)), horizon, rng=seed
        )
        released = log.releases

        def moments(end: int, released: Any = released) -> np.ndarray:
            return np.asarray(released.loc[released["round"] == end, "value"])

        course = od_lin_bai(table, features, moments, epsilon)
        np.testing.assert_array_equal(log.arrays.action, course.actions)
        assert log.recommended == course.last_arm
        np.testing.assert_allclose(released["scale"], course.scales, rtol=1e-9)


def test_noisy_moments_are_moments_plus_little_noise_at_a_large_epsilon() -> None:
    features, table = instance(12, 4, 1, 400)
    log = DPOD(epsilon=1e9, features=features).run(Tableau(table, reward_range=(0, 1)), 400, rng=1)
    first = int(log.releases["round"].min())
    actions, rewards = log.arrays.action[:first], log.arrays.reward[:first]
    released = log.releases.loc[log.releases["round"] == first, "value"]
    np.testing.assert_allclose(released, features[actions].T @ rewards, atol=1e-6)


@pytest.mark.parametrize(("n", "d", "horizon"), [*CASES, (40, 8, 600)])
def test_od_lin_bai(n: int, d: int, horizon: int) -> None:
    """Continuous rewards: no ties."""
    for seed in range(4):
        features, table = instance(n, d, seed, horizon)
        table = table * np.random.default_rng(seed).random(table.shape)
        log = ODLinBAI(features=features).run(Tableau(table, reward_range=(0, 1)), horizon, rng=seed)
        course = od_lin_bai(table, features, lambda end: None, math.inf)
        np.testing.assert_array_equal(log.arrays.action, course.actions)
        assert log.recommended == course.last_arm
        assert log.guarantee is None


@pytest.mark.parametrize(("n", "horizon"), [(2, 2), (3, 30), (8, 100), (30, 500), (100, 701)])
def test_sequential_halving(n: int, horizon: int) -> None:
    for seed in range(4):
        table = np.random.default_rng(seed).random((horizon, n))
        log = SequentialHalving().run(Tableau(table, reward_range=(0, 1)), horizon, rng=seed)
        course = Course()
        bandit = Bandit(table, course)
        active, rounds = list(range(n)), math.ceil(math.log2(n))
        for _ in range(rounds):
            times = horizon // (len(active) * rounds)
            means = {arm: bandit.pull(arm, times) / times for arm in active}
            active = sorted(active, key=lambda arm: -means[arm])[: math.ceil(len(active) / 2)]
        bandit.pull(active[0], horizon - len(course.actions))
        np.testing.assert_array_equal(log.arrays.action, course.actions)
        assert log.recommended == active[0]


def test_overridden_rounds_are_skipped() -> None:
    """Without them a mixture is the design itself, on the rewards that are left."""
    features, _ = instance(7, 2, 0, 1)
    design = DPBAI(epsilon=1e9, features=features)
    mixture = Mixture(design, exploration=0.3)
    log = mixture.run(NormalArms([0.5] * 7, scale=1.0), 300, rng=4)
    kept = np.array(log.phases)[log.arrays.phase] == "exploration"
    assert log.recommended is None
    assert 180 < kept.sum() < 240
    sequence = log.arrays.action[kept]
    assert (np.diff(sequence) != 0).sum() <= 2


def test_what_enters_a_mean_is_clipped() -> None:
    features, _ = instance(7, 2, 0, 1)
    log = DPBAI(epsilon=1e9, features=features).run(NormalArms([0.5] * 7, scale=1.0), 300, rng=4)
    for row in log.releases.itertuples():
        rewards = log.arrays.reward[: row.round][log.arrays.action[: row.round] == row.group]
        assert row.value == pytest.approx(np.clip(rewards, 0.0, 1.0).mean(), abs=1e-6)
        assert abs(rewards.mean() - row.value) > 1e-3
