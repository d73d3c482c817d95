"""The locally private linear bandit against a literal reading: all iterates kept, same noise."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.designs.local.local_linear_kernel import _choose, _update
from adaptinf.designs.mixture import Mixture
from adaptinf.privacy.noise import Buffer, generator
from adaptinf.simulation.environments.vector_arms import SmoothArms


class Arm:
    """One arm's parameter vector, with every iterate and every weight that it ever had."""

    def __init__(self, p: int, radius: float, step: float) -> None:
        self.radius, self.step = radius, step
        self.theta = np.zeros(p)
        self.iterates: list[np.ndarray] = []
        self.precisions: list[float] = []

    def take(self, report: np.ndarray, epsilon: float) -> None:
        p = len(self.theta)
        variance = 4 * (p + 1) * (p + 2) / (3 * epsilon**2)
        rho2 = p + p * variance
        self.precisions.append(1 / rho2)
        rate = self.step * self.radius / (rho2 * math.sqrt(sum(self.precisions)))
        moved = self.theta - rate * report
        self.theta = moved * min(1.0, self.radius / float(np.linalg.norm(moved) or 1.0))
        self.iterates.append(self.theta)

    def average(self) -> np.ndarray:
        if not self.iterates:
            return np.zeros_like(self.theta)
        weights = np.array(self.precisions) * np.cumsum(self.precisions)
        return np.asarray((weights[:, None] * np.array(self.iterates)).sum(axis=0) / weights.sum())


class Draws:
    """Noise and uniform draws in the order in which the kernel asks for them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.noises: list[float] = []
        self.uniforms: list[float] = []

    def vector(self, p: int, epsilon: float) -> np.ndarray:
        laplace = self.rng.laplace(scale=2 / epsilon, size=p + 1)
        uniform = self.rng.random(p)
        self.noises += laplace.tolist()
        self.uniforms += uniform.tolist()
        return np.asarray(np.abs(laplace).sum() * (2 * uniform - 1))


def locally_private(
    design: LDPLinear, contexts: np.ndarray, rewards: np.ndarray, draws: Draws
) -> tuple[list[int], list[Arm]]:
    """The warm-up and the greedy stage, after the reports of the auxiliary participants."""
    n, K = rewards.shape
    radius = design.radius or (4.0 if design.link == "logistic" else 1.0)
    p = contexts.shape[1] + int(design.intercept)
    arms = [Arm(p, radius, design.step) for _ in range(K)]

    def regressors(x: np.ndarray) -> np.ndarray:
        return np.append(2 * x - 1, 1.0) if design.intercept else x

    def gradient(x: np.ndarray, k: int, y: float) -> np.ndarray:
        z = regressors(x)
        u = float(arms[k].theta @ z)
        mean = 1 / (1 + math.exp(-u)) if design.link == "logistic" else min(1.0, max(0.0, u))
        return np.asarray((mean - min(1.0, max(0.0, y))) * z)

    def report_all(x: np.ndarray, k: int, y: float, epsilon: float) -> None:
        own = gradient(x, k, y)
        for j in range(K):
            arms[j].take((own if j == k else 0.0) + draws.vector(p, epsilon), epsilon)

    for part in design.auxiliary:
        given = part.log.arrays
        for x, k, y in zip(part.contexts, given.action, given.reward, strict=True):
            report_all(x, int(k), float(y), part.epsilon)
    spread = math.sqrt(4 * (p + 1) * (p + 2) / 3) / design.epsilon
    warm_up = K * math.ceil(math.sqrt(n) * (1 + spread)) if design.warm_up is None else design.warm_up
    actions = []
    for t in range(n):
        x = contexts[t]
        k = t % K if t < warm_up else int(np.argmax([arm.average() @ regressors(x) for arm in arms]))
        actions.append(k)
        if t < warm_up:
            own = gradient(x, k, rewards[t, k])
            arms[k].take(own + draws.vector(p, design.epsilon), design.epsilon)
        else:
            report_all(x, k, rewards[t, k], design.epsilon)
    return actions, arms


@numba.njit
def drive(tables: Any, state: Any, contexts: Any, rewards: Any, source: Any, actions: Any) -> None:
    for step in range(rewards.shape[0]):
        arm = _choose(tables, state, contexts[step], source)
        actions[step] = arm
        _update(tables, state, contexts[step], arm, rewards[step, arm], source)


AUXILIARY = tuple(
    SmoothArms(3, 2).auxiliary(n, gamma, kappa, epsilon, rng=n)
    for n, gamma, kappa, epsilon in ((90, 0.0, 1.0, 40.0), (60, 1.0, 0.5, 3.0))
)
CASES = [
    (LDPLinear(epsilon=30.0), 3, 2, 300),
    (LDPLinear(epsilon=1.0), 3, 2, 300),
    (LDPLinear(epsilon=20.0, warm_up=31, step=0.3), 4, 1, 250),
    (LDPLinear(epsilon=2.0, warm_up=0, radius=0.4, step=3.0), 2, 3, 200),
    (LDPLinear(epsilon=50.0, link="identity", warm_up=60), 3, 2, 300),
    (LDPLinear(epsilon=5.0, link="identity", intercept=False, warm_up=20), 3, 3, 200),
    (LDPLinear(epsilon=4.0, intercept=False, warm_up=10), 2, 1, 200),
    (LDPLinear(epsilon=10.0, auxiliary=AUXILIARY, warm_up=30), 3, 2, 200),
    (LDPLinear(epsilon=1.0, auxiliary=AUXILIARY[::-1], link="identity", warm_up=0), 3, 2, 150),
]


@pytest.mark.slow
@pytest.mark.parametrize(("design", "n_arms", "d", "n"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_linear_bandit_is_the_literal_one(
    design: LDPLinear, n_arms: int, d: int, n: int, seed: int
) -> None:
    rng = np.random.default_rng([seed, n_arms, d, n])
    contexts = rng.random((n, d))
    rewards = (rng.random((n, n_arms)) < SmoothArms(n_arms, d).expected(contexts)) * 1.2 - 0.1
    draws = Draws(rng)
    expected, arms = locally_private(design, contexts, rewards, draws)
    program = design.program(SmoothArms(n_arms, d), n, recording=True)
    state, actions = np.zeros(program.state_shape), np.zeros(n, dtype=np.int64)
    noises, uniforms = np.array(draws.noises), np.array(draws.uniforms)
    source = Buffer(uniforms, noises, np.zeros(2, dtype=np.int64))
    drive(program.tables, state, contexts, rewards, source, actions)
    np.testing.assert_array_equal(actions, expected)
    assert source.positions.tolist() == [uniforms.size, noises.size]
    p = d + int(design.intercept)
    np.testing.assert_allclose(state[1:, 2 : 2 + p], [arm.theta for arm in arms], atol=1e-9)
    averages = np.array([arm.average() for arm in arms])
    np.testing.assert_allclose(state[1:, 2 + p : 2 + 2 * p], averages, atol=1e-9)
    released = program.tables.released
    assert state[0, 1] == len(released) == n_arms * p
    values = released[:, 3].reshape(n_arms, p)
    for x in contexts[:5]:
        z = np.append(2 * x - 1, 1.0) if design.intercept else x
        raw = np.append(x, 1.0) if design.intercept else x
        np.testing.assert_allclose(values @ raw, averages @ z, atol=1e-9)


@pytest.mark.slow
def test_the_cases_see_every_arm_chosen_and_projections() -> None:
    for design, n_arms, d, n in CASES[:1] + CASES[2:5]:
        sims = design.replicate(SmoothArms(n_arms, d), n, 8, rng=3)
        greedy = sims.tallies[:, 1, 0, :, 0].sum(axis=0)
        assert (greedy > 0).sum() >= 2, design
    assert CASES[3][0].replicate(SmoothArms(2, 3), 200, 2, rng=3).released["projected"].min() > 5


@pytest.mark.parametrize("link", ["logistic", "identity"])
@pytest.mark.parametrize("exploration", [0.0, 0.4])
def test_with_a_huge_epsilon_it_is_plain_stochastic_gradient_descent(link: str, exploration: float) -> None:
    """No noise at all: a step of radius / sqrt(p t), averages with weights 1, 2, 3, ...

    In a mixture, overridden rounds report the arm that was pulled.
    """
    design: Any = LDPLinear(epsilon=1e12, link=link, warm_up=100)
    if exploration > 0.0:
        design = Mixture(design, exploration=exploration)
    log = design.run(SmoothArms(3, 2), 900, rng=4)
    assert log.arrays.propensities is not None
    arrays = log.arrays
    z = np.stack([2 * arrays.context["x1"] - 1, 2 * arrays.context["x2"] - 1, np.ones(900)], axis=1)
    radius = 4.0 if link == "logistic" else 1.0
    theta, total, count = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)
    for t in range(900):
        average = total / np.maximum(count * (count + 1) / 2, 1.0)[:, None]
        proposal = t % 3 if t < 100 else int(np.argmax(average @ z[t]))
        assert arrays.propensities[t, proposal] == pytest.approx(1.0 - exploration * 2 / 3)
        arm = int(arrays.action[t])
        mean = theta[arm] @ z[t]
        mean = 1 / (1 + np.exp(-mean)) if link == "logistic" else np.clip(mean, 0.0, 1.0)
        for k in [arm] if t < 100 else [0, 1, 2]:
            count[k] += 1
            gradient = (mean - arrays.reward[t]) * z[t] * (k == arm)
            theta[k] -= radius / math.sqrt(3 * count[k]) * gradient
            theta[k] *= min(1.0, radius / max(np.linalg.norm(theta[k]), 1e-300))
            total[k] += count[k] * theta[k]
    average = total / (count * (count + 1) / 2)[:, None]
    table = log.releases.pivot(index="group", columns="name", values="value")
    slopes = table[["coefficient_x1", "coefficient_x2"]].to_numpy()
    np.testing.assert_allclose(slopes, 2 * average[:, :2], atol=1e-7)
    np.testing.assert_allclose(table["intercept"], average[:, 2] - average[:, :2].sum(axis=1), atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("link", "error", "share"), [("logistic", 0.35, 0.1), ("identity", 0.12, 0.1)])
def test_where_the_model_holds_it_finds_the_parameters(link: str, error: float, share: float) -> None:
    """Regret is a tenth of uniform choice's at most, and parameters are near those that made the data."""
    rng = np.random.default_rng(5)
    n = 40_000
    if link == "logistic":
        truth = np.array([[2.0, 0.0, 0.3], [-2.0, 0.5, 0.3]])
    else:
        truth = np.array([[0.4, 0.0, 0.5], [-0.4, 0.1, 0.5]])
    x = rng.random((n, 2))
    mean = np.column_stack([2 * x - 1, np.ones(n)]) @ truth.T
    mean = 1 / (1 + np.exp(-mean)) if link == "logistic" else mean
    rewards = (rng.random((n, 2)) < mean) * 1.0
    for design in (LDPLinear(epsilon=1024.0, link=link), LDPLinear(epsilon=1024.0, link=link, warm_up=n)):
        program = design.program(SmoothArms(2, 2), n, recording=False)
        state, actions = np.zeros(program.state_shape), np.zeros(n, dtype=np.int64)
        drive(program.tables, state, x, rewards, generator(np.random.SeedSequence(6)), actions)
        regret = (mean.max(axis=1) - mean[np.arange(n), actions]).sum()
        uniform = (mean.max(axis=1) - mean.mean(axis=1)).sum()
        if design.warm_up is None:
            assert regret < share * uniform
        else:
            np.testing.assert_allclose(state[1:, 5:8], truth, atol=error)
