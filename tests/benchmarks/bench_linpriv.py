"""Speed of LinPriv, everything measured within one run on one core.

``python tests/benchmarks/bench_linpriv.py`` prints the figures, ``pytest tests/benchmarks/bench_linpriv.py``
asserts them. Times are processor time, best of three.
"""

from __future__ import annotations

import functools
import math
import random
import sys

import numba
import numpy as np
import pytest
from bench_private_ucb import best_time

from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.privacy.noise import generator, laplace
from adaptinf.simulation.environments.vector_arms import LinearArms

pytestmark = pytest.mark.benchmark

SIZE, HORIZON, REPLICATIONS, LITERAL = 5, 100_000, 20, 2_000


def coefficients() -> np.ndarray:
    """Nonnegative unit vectors, one per arm."""
    theta = np.abs(np.random.default_rng(0).normal(size=(SIZE, SIZE)))
    return np.asarray(theta / np.linalg.norm(theta, axis=1)[:, None])


@numba.njit(error_model="numpy")
def only_draws(rng: np.random.Generator, rounds: int) -> float:
    """What one round needs: five context vectors, a reward and a Laplace variable for each coordinate."""
    total = 0.0
    for _ in range(rounds):
        for _ in range(SIZE * SIZE):
            total += rng.standard_normal()
        total += 1.0 if rng.random() < 0.5 else 0.0
        for _ in range(SIZE):
            total += laplace(rng, 2.0)
    return total


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


class PlainLinPriv:
    """The same decisions with lists: inverses by rank-one updates, one list of nodes an arm."""

    def __init__(self, design: LinPriv, theta: np.ndarray, seed: int) -> None:
        self.rng, self.theta = random.Random(seed), theta.tolist()
        self.tables = design.tables(SIZE, SIZE, LITERAL)
        self.bounds = self.tables.bounds.tolist()
        self.inverse = [[[float(k == j) for j in range(SIZE)] for k in range(SIZE)] for _ in range(SIZE)]
        self.sums = [[0.0] * SIZE for _ in range(SIZE)]
        self.estimate = [[0.0] * SIZE for _ in range(SIZE)]
        self.nodes: list[list[tuple[int, list[float]]]] = [[] for _ in range(SIZE)]
        self.counts, self.log_det = [0] * SIZE, [0.0] * SIZE

    def context(self) -> list[float]:
        draw = [abs(self.rng.gauss(0.0, 1.0)) for _ in range(SIZE)]
        length = math.sqrt(dot(draw, draw))
        return [x / length for x in draw]

    def index(self, arm: int, x: list[float]) -> float:
        product = [dot(row, x) for row in self.inverse[arm]]
        count = self.counts[arm]
        bound = self.bounds[count.bit_length() - 1][count.bit_count()] if count else 0.0
        radius = 0.5 * math.sqrt(self.log_det[arm] + 2.0 * self.tables.log_share) + 1.0
        width = math.sqrt(dot(product, x)) * radius + bound * math.sqrt(dot(product, product))
        return dot(self.estimate[arm], x) + width

    def noise(self, arm: int) -> list[float]:
        count = self.counts[arm]
        level = count.bit_length() - 1
        inside = count - (1 << level)
        first = count - (inside & -inside) + 1 if inside else count // 2 + 1
        scale = self.tables.node * level if inside else self.tables.trunk
        nodes = self.nodes[arm]
        while nodes and nodes[-1][0] >= first:
            nodes.pop()
        fresh = []
        for _ in range(SIZE):
            draw = self.rng.expovariate(1.0) * scale
            fresh.append(draw if self.rng.random() < 0.5 else -draw)
        nodes.append((first, fresh))
        return [sum(node[k] for _, node in nodes) for k in range(SIZE)]

    def run(self) -> list[int]:
        """Pulls of each arm."""
        for _ in range(LITERAL):
            contexts = [self.context() for _ in range(SIZE)]
            indices = [self.index(arm, contexts[arm]) for arm in range(SIZE)]
            arm = indices.index(max(indices))
            x = contexts[arm]
            reward = 1.0 if self.rng.random() < dot(x, self.theta[arm]) else 0.0
            self.counts[arm] += 1
            product = [dot(row, x) for row in self.inverse[arm]]
            quadratic = dot(product, x)
            self.log_det[arm] += math.log1p(quadratic)
            for k in range(SIZE):
                for j in range(SIZE):
                    self.inverse[arm][k][j] -= product[k] * product[j] / (1.0 + quadratic)
                self.sums[arm][k] += x[k] * reward
            noisy = [total + extra for total, extra in zip(self.sums[arm], self.noise(arm), strict=True)]
            self.estimate[arm] = [dot(row, noisy) for row in self.inverse[arm]]
        return self.counts


@functools.cache
def speeds() -> dict[str, float]:
    """Rounds a second of the designs, of LinPriv's random numbers alone, and of plain Python."""
    environment = LinearArms(coefficients(), contexts="orthant", rewards="bernoulli")
    laplace_design, normal = LinPriv(epsilon=1.0), LinPriv(epsilon=1.0, delta=1e-6)
    designs = {"LinPriv": laplace_design, "LinPriv, normal noise": normal, "LinUCB": LinUCB()}
    rng = generator(np.random.SeedSequence(0))
    for design in designs.values():
        design.replicate(environment, HORIZON, 1, rng=0)
    only_draws(rng, 10)
    laplace_design.tables(SIZE, SIZE, LITERAL)
    rounds = HORIZON * REPLICATIONS
    tasks = [
        functools.partial(design.replicate, environment, HORIZON, REPLICATIONS, rng=0)
        for design in designs.values()
    ]
    *times, draws, python = best_time(
        *tasks,
        lambda: only_draws(rng, rounds),
        lambda: PlainLinPriv(laplace_design, environment.theta, 1).run(),
    )
    figures = {name: rounds / spent for name, spent in zip(designs, times, strict=True)}
    return figures | {"draws": rounds / draws, "python": LITERAL / python}


def test_a_million_rounds_a_second() -> None:
    assert speeds()["LinPriv"] > 1e6
    assert speeds()["LinPriv, normal noise"] > 1e6


def test_ratios() -> None:
    assert speeds()["LinPriv"] > speeds()["draws"] / 8
    assert speeds()["LinPriv"] > 50 * speeds()["python"]


def test_plain_python_makes_the_same_kind_of_decisions() -> None:
    """The plain loop is the same design: pulls of the best arm agree in the mean."""
    environment = LinearArms(coefficients(), contexts="orthant", rewards="bernoulli")
    design = LinPriv(epsilon=200.0)
    ours = design.replicate(environment, LITERAL, 256, rng=1).pulls
    plain = np.array([PlainLinPriv(design, environment.theta, seed).run() for seed in range(6)])
    error = np.sqrt(ours.var(axis=0) / 6 + ours.var(axis=0) / 256)
    assert (np.abs(plain.mean(axis=0) - ours.mean(axis=0)) < 5 * error).all()


if __name__ == "__main__":
    for name, value in speeds().items():
        ratio = speeds()["LinPriv"] / value
        sys.stdout.write(f"{name:>22}: {value:12,.0f} rounds/s; LinPriv is {ratio:.2f} times as fast\n")
