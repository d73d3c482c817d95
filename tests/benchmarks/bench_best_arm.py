"""Speed of DP-BAI, everything measured within one run on one core.

``python tests/benchmarks/bench_best_arm.py`` prints the figures, ``pytest
tests/benchmarks/bench_best_arm.py`` asserts the ratios. Times are processor time, best of three.
"""

from __future__ import annotations

import functools
import math
import random
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np
import pytest
from bench_private_ucb import best_time
from scipy import linalg

from adaptinf.designs.best_arm.fixed_budget import max_det_schedule, reserve
from adaptinf.designs.best_arm.linear_best_arm import DPBAI
from adaptinf.privacy.noise import generator, laplace
from adaptinf.simulation.environments import UniformArms

pytestmark = pytest.mark.benchmark


class Setting(NamedTuple):
    """An instance, and how often it is run: compiled, in NumPy, in plain Python, and for the comparison."""

    features: np.ndarray
    means: np.ndarray
    horizon: int
    epsilon: float
    runs: int
    numpy_runs: int
    python_runs: int
    compared: int


def published() -> Setting:
    """Section 5 of Chen et al. (2024): K = 30, d = 2; one phase, two arms of which are pulled."""
    shares = np.random.default_rng(0).uniform(0.0, 0.8, 27)
    features = np.vstack([[[0.0, 1.0], [0.0, 0.9], [10.0, 0.0]], np.column_stack([np.ones(27), shares])])
    return Setting(features, features @ np.array([0.045, 0.5]), 500, 0.1, 20_000, 2_000, 500, 4_000)


def many_phases() -> Setting:
    """Normal features: a collection in the first phase, later at most 81 = d^2 arms, which are all pulled."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(200, 8))
    means = features @ rng.normal(size=8)
    means = 0.1 + 0.4 * (means - means.min()) / np.ptp(means)
    # the constant in the means is one more coordinate
    return Setting(np.column_stack([features, np.ones(200)]), means, 2_000, 1.0, 2_000, 100, 50, 400)


SETTINGS = {"K = 30, d = 2, T = 500": published(), "K = 200, d = 9, T = 2,000": many_phases()}
LEAST_RUNS = {"K = 30, d = 2, T = 500": 1e4, "K = 200, d = 9, T = 2,000": 5e2}


# --- the same design with NumPy, or with a Python loop over rounds -----------------------------------------


class PlainDPBAI:
    """DP-BAI on rewards uniform on [0, 2 mean]; NumPy does the linear algebra."""

    def __init__(self, setting: Setting, by_round: bool) -> None:
        self.setting, self.by_round = setting, by_round
        n_arms, dimension = setting.features.shape
        self.schedule = max_det_schedule(n_arms, dimension)
        self.budget = setting.horizon - reserve(self.schedule, dimension)
        # what the first phase pulls does not depend on the run
        self.first = self.collection(np.arange(n_arms))

    def collection(self, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arms of a collection, and the coefficients of all active arms in terms of it."""
        rows = self.setting.features[active]
        _, values, axes = linalg.svd(rows, full_matrices=False)
        rank = int((values > 1e-9 * values[0]).sum())
        if rank**2 >= active.size:
            return active, np.eye(active.size)
        rows = rows @ axes[:rank].T
        chosen = linalg.qr(rows.T, pivoting=True, mode="r")[1][:rank]
        while True:
            coefficients = linalg.solve(rows[chosen].T, rows.T).T
            arm, place = np.unravel_index(np.abs(coefficients).argmax(), coefficients.shape)
            if abs(coefficients[arm, place]) <= 1.0 + 1e-6:
                return active[chosen], coefficients
            chosen[place] = arm

    def sum_of(self, arm: int, times: int, rng: np.random.Generator, scalar: random.Random) -> float:
        highest = 2.0 * float(self.setting.means[arm])
        if not self.by_round:
            return highest * float(rng.random(times).sum())
        total = 0.0
        for _ in range(times):
            reward = highest * scalar.random()
            total += min(1.0, max(0.0, reward))
        return total

    def run(self, seed: int) -> int:
        """The arm that is named."""
        rng, scalar = np.random.default_rng(seed), random.Random(seed)
        phases, sizes = self.schedule.phases, self.schedule.sizes.tolist()
        active, spent = np.arange(sizes[0]), 0
        for phase in range(phases):
            pulled, coefficients = self.collection(active) if phase else self.first
            times = math.ceil(self.budget / (phases * pulled.size))
            scale = 1.0 / (self.setting.epsilon * times)
            noises = rng.laplace(scale=scale, size=pulled.size)
            known = [self.sum_of(arm, times, rng, scalar) / times for arm in pulled.tolist()]
            estimates = coefficients @ (np.array(known) + noises)
            active = active[np.argsort(-estimates, kind="stable")[: sizes[phase + 1]]]
            spent += times * pulled.size
        self.sum_of(int(active[0]), self.setting.horizon - spent, rng, scalar)
        return int(active[0])


@numba.njit(error_model="numpy")
def only_draws(rng: np.random.Generator, rounds: int, noises: int) -> float:
    """One uniform reward a round, and the noise of the means."""
    total = 0.0
    for _ in range(rounds):
        total += rng.random()
    for _ in range(noises):
        total += laplace(rng, 2.0)
    return total


@functools.cache
def speeds(name: str) -> dict[str, float]:
    """Runs a second of the design, of its random numbers alone, of NumPy and of a loop over rounds."""
    setting = SETTINGS[name]
    design = DPBAI(epsilon=setting.epsilon, features=setting.features)
    environment = UniformArms(np.zeros(setting.means.size), 2.0 * setting.means)
    vectorised, looped = PlainDPBAI(setting, by_round=False), PlainDPBAI(setting, by_round=True)
    rng = generator(np.random.SeedSequence(0))
    design.replicate(environment, setting.horizon, 2, rng=0)
    only_draws(rng, 2, 2)
    times = best_time(
        lambda: design.replicate(environment, setting.horizon, setting.runs, rng=0),
        lambda: only_draws(rng, setting.horizon * setting.runs, 2 * setting.runs),
        lambda: [vectorised.run(seed) for seed in range(setting.numpy_runs)],
        lambda: [looped.run(seed) for seed in range(setting.python_runs)],
    )
    counts = (setting.runs, setting.runs, setting.numpy_runs, setting.python_runs)
    rates = [count / seconds for count, seconds in zip(counts, times, strict=True)]
    return dict(zip(("design", "draws", "numpy", "python"), rates, strict=True))


@pytest.mark.parametrize("name", list(SETTINGS))
def test_runs_a_second(name: str) -> None:
    got = speeds(name)
    assert got["design"] >= LEAST_RUNS[name]
    assert got["design"] >= 0.1 * got["draws"]
    assert got["design"] >= 1.5 * got["numpy"]
    assert got["design"] >= 5.0 * got["python"]


@pytest.mark.parametrize("by_round", [False, True])
@pytest.mark.parametrize("name", list(SETTINGS))
def test_plain_python_is_the_same_design(name: str, by_round: bool) -> None:
    setting = SETTINGS[name]
    plain = PlainDPBAI(setting, by_round)
    runs, many = setting.compared, 4_096
    found = np.array([plain.run(seed) for seed in range(runs)])
    design = DPBAI(epsilon=setting.epsilon, features=setting.features)
    environment = UniformArms(np.zeros(setting.means.size), 2.0 * setting.means)
    other = design.replicate(environment, setting.horizon, many, rng=0).recommended
    for arm in np.argsort(-setting.means)[:3]:
        share = float((other == arm).mean())
        error = math.sqrt(share * (1.0 - share) * (1.0 / runs + 1.0 / many))
        assert abs(float((found == arm).mean()) - share) <= 4.5 * error + 1.0 / runs
    best = float((other == setting.means.argmax()).mean())
    assert 0.1 < best < 0.99  # the comparison can fail


def report() -> Iterator[str]:
    """Every figure, a line each."""
    yield "best of three, processor time, one core; rewards uniform on [0, 2 mean]"
    for name, setting in SETTINGS.items():
        got = speeds(name)
        slower = {key: got["design"] / got[key] for key in ("numpy", "python")}
        phases = max_det_schedule(*setting.features.shape).phases
        least = f"at least {LEAST_RUNS[name]:,.0f}"
        yield f"DP-BAI, {name}, phases: {phases}: {got['design']:,.0f} runs/s ({least})"
        yield f"  random numbers alone {got['draws']:,.0f}, share {got['design'] / got['draws']:.2f}"
        yield f"  NumPy, an arm's rewards at once {got['numpy']:,.0f}, {slower['numpy']:.1f} times slower"
        yield f"  plain Python, a round at a time {got['python']:,.0f}, {slower['python']:.0f} times slower"


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
