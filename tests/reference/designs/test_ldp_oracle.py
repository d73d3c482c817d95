"""The nonparametric bandits against literal readings: lists of bins, sums over all reports, same noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import pytest

from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.bins_kernel import _choose, _finish, _update
from adaptinf.designs.local.cube_designs import ABSE
from adaptinf.designs.local.cube_tree import _choose as abse_choose
from adaptinf.designs.local.cube_tree import _update as abse_update
from adaptinf.privacy.noise import Buffer
from adaptinf.simulation.environments.vector_arms import SmoothArms


@dataclass(eq=False)
class Bin:
    """A bin with all the reports that it ever got."""

    number: int
    low: list[float]
    high: list[float]
    depth: int
    arms: list[int]
    U: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    V: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    t: dict[int, int] = field(default_factory=dict)
    begun: int = 0
    weight: float = 0.0
    spent: float = 0.0
    weighted: dict[int, list[float]] = field(default_factory=dict)
    stages: dict[int, tuple[float, dict[int, list[float]]]] = field(default_factory=dict)

    def holds(self, x: np.ndarray) -> bool:
        inside = [
            low <= value and (value < high or high == 1.0)
            for low, value, high in zip(self.low, x, self.high, strict=True)
        ]
        return all(inside)

    def halves(self, axis: int, numbers: tuple[int, int]) -> tuple[Bin, Bin]:
        middle = (self.low[axis] + self.high[axis]) / 2
        lower, upper = list(self.high), list(self.low)
        lower[axis] = upper[axis] = middle
        first = Bin(numbers[0], list(self.low), lower, self.depth + 1, list(self.arms))
        return first, Bin(numbers[1], upper, list(self.high), self.depth + 1, list(self.arms))

    def longest(self) -> list[int]:
        lengths = [high - low for low, high in zip(self.low, self.high, strict=True)]
        return [axis for axis, length in enumerate(lengths) if length == max(lengths)]


class Draws:
    """Random numbers in the order in which the kernel asks for them."""

    def __init__(self, uniforms: np.ndarray, noises: np.ndarray) -> None:
        self.uniforms, self.noises = iter(uniforms), iter(noises)
        self.handed: list[float] = []

    def one_of(self, items: list[int]) -> int:
        return items[0] if len(items) == 1 else items[int(float(next(self.uniforms)) * len(items))]

    def noise(self, scale: float) -> float:
        self.handed.append(scale * float(next(self.noises)))
        return self.handed[-1]


def corrected(U: float, t: int, epsilon: float, C: float) -> float:
    below = U - math.sqrt(32 * C * t / epsilon**2)
    return math.sqrt(C * (64 * t / epsilon**2 + U / 4)) / below if below > 0 else math.inf


def published(U: float, t: int, epsilon: float, n: int) -> float:
    return math.sqrt(2 * math.log2(n) * max(t / epsilon**2, U) / U**2)


def locally_private(
    design: LDPBandit, contexts: np.ndarray, rewards: np.ndarray, draws: Draws
) -> tuple[list[int], list[Bin], list[Bin]]:
    """Algorithms 2 and 3; returns actions, active bins in order, and all bins by number."""
    d = contexts.shape[1]
    active = [Bin(0, [0.0] * d, [1.0] * d, 0, list(range(rewards.shape[1])))]
    everyone = list(active)
    actions: list[int] = []
    sources: list[Any] = [(part.epsilon, part.contexts, part.log.arrays) for part in design.auxiliary]
    sources.append((design.epsilon, contexts, None))
    sizes = [len(source[1]) for source in sources]
    for m, (epsilon, X, given) in enumerate(sources):
        gap: list[tuple[Bin, int, float]] = []
        if given is None:
            for b in active:
                weigh(design, b, 0, len(X), math.inf, inherited=bool(b.t))
        for i in range(len(X)):
            mine = next(b for b in active if b.holds(X[i]))
            if given is None:
                arm = draws.one_of(mine.arms)
                actions.append(arm)
                y = float(rewards[i, arm])
            else:
                arm, y = int(given.action[i]), float(given.reward[i])
            gap.append((mine, arm, min(1.0, max(0.0, y))))
            if (i + 1) % design.check_every and i + 1 < len(X):
                continue
            for b in list(active):
                b.t[m] = b.t.get(m, 0) + len(gap)
                for k in b.arms:
                    # the participants since the last check, each with noise of their own
                    hits = [y for visited, pulled, y in gap if visited is b and pulled == k]
                    xi = [draws.noise(4 / epsilon) for _ in gap]
                    zeta = [draws.noise(4 / epsilon) for _ in gap]
                    b.U.setdefault((k, m), []).extend(xi + [1.0] * len(hits))
                    b.V.setdefault((k, m), []).extend(zeta + hits)
                    if given is None:
                        own = b.weighted.setdefault(k, [0.0, 0.0, 0.0])
                        own[0] += b.weight * (sum(xi) + len(hits))
                        own[1] += b.weight * (sum(zeta) + sum(hits))
                        own[2] += b.weight**2 * (sum(xi) + len(hits))
                arms, known = list(b.arms), list(everyone)
                radius = check(design, b, sizes, active, everyone, draws)
                if given is None:
                    for new in everyone[len(known) :]:
                        new.begun = i + 1
                        weigh(design, new, i + 1, len(X), math.inf)
                    if len(everyone) > len(known) or b.arms != arms or i + 1 == len(X):
                        b.stages[i + 1] = (b.spent, {k: list(b.weighted[k]) for k in arms})
                    if b in active:
                        weigh(design, b, i + 1, len(X), radius, inherited=min(b.t) < m)
            gap = []
    return actions, active, everyone


def weigh(design: LDPBandit, b: Bin, now: int, n: int, radius: float, *, inherited: bool = False) -> None:
    """Of a life of L participants the first t spend sqrt(t / L); L from radius ~ 1 / sqrt(t)."""
    gap = min(design.check_every, n - now)
    if not gap:
        return
    t = now - b.begun
    life = float(n - b.begun)
    if not inherited and t:
        share = 1.0 if design.calibration == "published" else design.refinement
        aim = share * 2 * math.sqrt(len(b.low)) * 2 ** (-b.depth / len(b.low))
        life = min(life, max(t * (radius / aim) ** 2, 1.1 * (t + gap)))
    spend = (1 - b.spent) * (math.sqrt(t + gap) - math.sqrt(t)) / (math.sqrt(life) - math.sqrt(t))
    b.weight = math.sqrt(spend / gap)
    b.spent += spend


def estimate(design: LDPBandit, b: Bin, k: int, sizes: list[int]) -> tuple[float, float]:
    """Equations (26) to (28), or (13) and a radius where there is no auxiliary log."""
    epsilons = [part.epsilon for part in design.auxiliary] + [design.epsilon]
    U = {m: sum(b.U[k, m]) for m in b.t}
    V = {m: sum(b.V[k, m]) for m in b.t}
    n = max(sizes)
    if not design.auxiliary:
        if design.calibration == "published":
            return V[0] / U[0], published(U[0], b.t[0], epsilons[0], n)
        return V[0] / U[0], corrected(U[0], b.t[0], epsilons[0], design.width)
    weight = {
        m: min(abs(epsilons[m] ** 2 / b.t[m] * U[m]), 1.0 if b.t[m] >= math.log(n) ** 2 else 0.0) for m in b.t
    }
    count = sum(weight[m] * U[m] for m in b.t)
    if count == 0.0:
        return 0.0, math.inf
    f = sum(weight[m] * V[m] for m in b.t) / count
    if design.calibration == "published":
        numerator = sum(weight[m] ** 2 * max(b.t[m] / epsilons[m] ** 2, U[m]) for m in b.t)
        return f, math.sqrt(2 * math.log2(n) * numerator / count**2)
    C = design.width
    noise = sum(weight[m] ** 2 * b.t[m] / epsilons[m] ** 2 for m in b.t)
    own = max(sum(weight[m] ** 2 * U[m] for m in b.t), 0.0)
    below = count - math.sqrt(32 * C * noise)
    return f, math.sqrt(C * (64 * noise + own / 4)) / below if below > 0 else math.inf


def check(
    design: LDPBandit, b: Bin, sizes: list[int], active: list[Bin], everyone: list[Bin], draws: Draws
) -> float:
    """Drop arms of a bin, then halve it; its smallest radius."""
    d = len(b.low)
    told = {k: estimate(design, b, k, sizes) for k in b.arms}
    f, r = {k: told[k][0] for k in told}, {k: told[k][1] for k in told}
    threshold = 2 * math.sqrt(d) * 2 ** (-b.depth / d)
    if design.calibration == "published":
        ready = bool(design.auxiliary) or b.t[0] >= math.log(sizes[-1]) ** 2
        worse = [k for k in b.arms if ready and any(f[i] - 2 * r[i] > f[k] + 2 * r[k] for i in b.arms)]
    else:
        worse = [k for k in b.arms if any(f[i] - f[k] > r[i] + r[k] for i in b.arms)]
        threshold *= design.refinement
    b.arms = [k for k in b.arms if k not in worse]
    if any(r[k] < threshold for k in b.arms):
        axes = b.longest()
        axis = axes[0] if design.axis == "first" else draws.one_of(axes)
        lower, upper = b.halves(axis, (len(everyone), len(everyone) + 1))
        everyone += [lower, upper]
        active[active.index(b)] = lower
        active.append(upper)
    return min(r[k] for k in b.arms)


@numba.njit
def drive(
    tables: Any, state: Any, contexts: Any, rewards: Any, source: Any, actions: Any, outcome: Any
) -> None:
    for step in range(rewards.shape[0]):
        arm = _choose(tables, state, contexts[step], source)
        actions[step] = arm
        _update(tables, state, contexts[step], arm, rewards[step, arm], source)
    _finish(tables, state, outcome)


@numba.njit
def drive_abse(tables: Any, state: Any, contexts: Any, rewards: Any, source: Any, actions: Any) -> None:
    for step in range(rewards.shape[0]):
        arm = abse_choose(tables, state, contexts[step], source)
        actions[step] = arm
        abse_update(tables, state, contexts[step], arm, rewards[step, arm], source)


AUXILIARY = tuple(
    SmoothArms(3, 2).auxiliary(n, gamma, kappa, epsilon, rng=n)
    for n, gamma, kappa, epsilon in ((300, 0.0, 1.0, 60.0), (200, 1.0, 0.5, 8.0))
)
CASES = [
    (LDPBandit(epsilon=60.0), 3, 2, 700),
    (LDPBandit(epsilon=1024.0), 3, 2, 900),
    (LDPBandit(epsilon=1024.0, axis="first", width=4.0), 2, 3, 700),
    (LDPBandit(epsilon=40.0, check_every=7, refinement=0.3, width=3.0), 4, 1, 702),
    (LDPBandit(epsilon=8.0, calibration="published"), 3, 2, 300),
    (LDPBandit(epsilon=100.0, calibration="published", check_every=3), 3, 2, 400),
    (LDPBandit(epsilon=50.0, auxiliary=AUXILIARY), 3, 2, 500),
    (LDPBandit(epsilon=1.0, auxiliary=AUXILIARY[::-1], check_every=9, width=2.0), 3, 2, 205),
    (LDPBandit(epsilon=3.0, auxiliary=AUXILIARY, calibration="published"), 3, 2, 300),
]


@pytest.mark.slow
@pytest.mark.parametrize(("design", "n_arms", "d", "n"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_locally_private_bandit_is_the_literal_one(
    design: LDPBandit, n_arms: int, d: int, n: int, seed: int
) -> None:
    rng = np.random.default_rng([seed, n_arms, d, n])
    environment = SmoothArms(n_arms, d)
    contexts = rng.random((n, d))
    contexts[::17] = np.round(contexts[::17] * 4) / 4  # ends and middles of bins
    rewards = (rng.random((n, n_arms)) < environment.expected(contexts)) * 1.2 - 0.1
    uniforms, noises = rng.random(4 * n), rng.laplace(size=400 * n)
    draws = Draws(uniforms, noises)
    expected, active, everyone = locally_private(design, contexts, rewards, draws)
    program = design.program(environment, n, recording=True)
    state = np.zeros(program.state_shape)
    actions, outcome = np.zeros(n, dtype=np.int64), np.zeros(program.n_outcomes)
    source = Buffer(uniforms, np.array(draws.handed), np.zeros(2, dtype=np.int64))
    drive(program.tables, state, contexts, rewards, source, actions, outcome)
    np.testing.assert_array_equal(actions, expected)
    volume = sum(2.0**-b.depth for b in active if len(b.arms) == 1)
    assert outcome[0] == len(active) > 1
    assert outcome[1] == max(b.depth for b in active)
    assert outcome[3] == pytest.approx(volume, abs=1e-12)
    released = program.tables.released[: int(state[0, 1])]
    for b in everyone:
        rows = {int(row[1]): row for row in released if row[2] == b.number}
        staged = 2 * d + 3 * n_arms
        told = {(row[0], int(row[1])): row[3] for row in released if row[2] == b.number and row[1] >= staged}
        expected_rows = {(end, staged + 3 * n_arms): spent for end, (spent, _) in b.stages.items()}
        for end, (_, weighted) in b.stages.items():
            expected_rows |= {(end, staged + 3 * k + j): weighted[k][j] for k in weighted for j in range(3)}
        assert told == pytest.approx(expected_rows, abs=1e-9)
        np.testing.assert_array_equal([rows[k][3] for k in range(2 * d)], b.low + b.high)
        for k in range(n_arms):
            trial = (k, len(design.auxiliary))
            if trial in b.U:
                assert rows[2 * d + 3 * k + 1][3] == pytest.approx(sum(b.U[trial]), abs=1e-8)
                assert rows[2 * d + 3 * k + 2][3] == pytest.approx(sum(b.V[trial]), abs=1e-8)
                assert rows[2 * d + 3 * k + 1][4] == 4 / design.epsilon
            else:
                assert 2 * d + 3 * k not in rows


@pytest.mark.slow
def test_the_cases_see_drops_in_both_calibrations() -> None:
    for design, n_arms, d, n in (CASES[1], CASES[3], CASES[5]):
        sims = design.replicate(SmoothArms(n_arms, d), n, 16, rng=3)
        assert sims.released["dropped"].mean() > 0.5, design


def binned_elimination(
    L: float, contexts: np.ndarray, rewards: np.ndarray, draws: Draws
) -> tuple[list[int], list[Bin]]:
    """Perchet and Rigollet's policy with arms drawn uniformly."""
    n, d = contexts.shape
    K = rewards.shape[1]
    finest = 0
    while 2.0**-finest > (K * math.log(K) / n) ** (1 / (2 + d)):
        finest += 1
    active = [Bin(0, [0.0] * d, [1.0] * d, 0, list(range(K)))]
    actions: list[int] = []

    def radius(tau: int, T: float) -> float:
        return 2 * math.sqrt(2 * max(math.log(T / tau), 1.0) / tau) if tau else math.inf

    for x, y in zip(contexts, rewards, strict=True):
        b = next(b for b in active if b.holds(x))
        arm = draws.one_of(b.arms)
        actions.append(arm)
        b.V.setdefault((arm, 0), []).append(float(y[arm]))
        side = b.high[0] - b.low[0]
        width = {k: radius(len(b.V.get((k, 0), [])), n * side**d) for k in b.arms}
        mean = {k: float(np.mean(b.V.get((k, 0), 0.0))) for k in b.arms}
        b.arms = [k for k in b.arms if not any(mean[i] - width[i] > mean[k] + width[k] for i in b.arms)]
        c_0 = 2 * L * math.sqrt(d)
        if b.depth < finest and len(b.arms) >= 2 and max(width[k] for k in b.arms) <= 2 * c_0 * side:
            active.remove(b)
            for corner in np.ndindex(*(2,) * d):
                low = [at + bit * side / 2 for at, bit in zip(b.low, corner, strict=True)]
                active.append(Bin(0, low, [at + side / 2 for at in low], b.depth + 1, list(b.arms)))
    return actions, active


@pytest.mark.parametrize(("L", "n_arms", "d"), [(0.5, 3, 1), (0.2, 3, 2), (0.8, 2, 1), (0.6, 5, 1)])
def test_abse_is_the_literal_one(L: float, n_arms: int, d: int) -> None:
    rng = np.random.default_rng([n_arms, d])
    n = 6_000
    environment = SmoothArms(n_arms, d)
    contexts = rng.random((n, d))
    contexts[::13] = np.round(contexts[::13] * 4) / 4
    rewards = (rng.random((n, n_arms)) < environment.expected(contexts)) * 1.0
    uniforms = rng.random(n)
    expected, active = binned_elimination(L, contexts, rewards, Draws(uniforms, np.zeros(0)))
    program = ABSE(lipschitz=L).program(environment, n, recording=True)
    actions = np.zeros(n, dtype=np.int64)
    state = np.zeros(program.state_shape)
    source = Buffer(uniforms, np.zeros(0), np.zeros(2, dtype=np.int64))
    drive_abse(program.tables, state, contexts, rewards, source, actions)
    np.testing.assert_array_equal(actions, expected)
    assert state[0, 3] == len(active) >= 2
    assert min(len(b.arms) for b in active) < n_arms
