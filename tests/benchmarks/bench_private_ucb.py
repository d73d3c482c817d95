"""Speed and memory of private UCB, everything measured within one run on one core.

``python tests/benchmarks/bench_private_ucb.py`` prints the figures, ``pytest
tests/benchmarks/bench_private_ucb.py`` asserts the ratios. Times are processor time, best of three.
"""

from __future__ import annotations

import bisect
import functools
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest

from adaptinf.designs import PrivateUCB
from adaptinf.privacy.counter_noise import counter_quantiles
from adaptinf.privacy.noise import generator, laplace
from adaptinf.privacy.tree_sums import counter_scales
from adaptinf.simulation.environments import BernoulliArms

pytestmark = pytest.mark.benchmark

SETTINGS = {"K = 5, T = 100,000": (5, 100_000, 100), "K = 20, T = 500": (20, 500, 20_000)}
LEAST_SHARE = {"K = 5, T = 100,000": 1 / 8, "K = 20, T = 500": 1 / 10}
EPSILON = 1.0
REPEATS = 3


def means_of(n_arms: int) -> list[float]:
    """Equally spaced from 1 down."""
    return [1.0 - arm * (0.05 if n_arms == 20 else 0.1) for arm in range(n_arms)]


def best_time(*tasks: Callable[[], object]) -> list[float]:
    """Shortest processor time of each task; the tasks take turns, so that all see the same machine."""
    best = [math.inf] * len(tasks)
    for _ in range(REPEATS):
        for i, task in enumerate(tasks):
            start = time.process_time()
            task()
            best[i] = min(best[i], time.process_time() - start)
    return best


# --- compiled: the design, and the random numbers alone -------------------------------------------------


@numba.njit(error_model="numpy")
def only_draws(rng: np.random.Generator, rounds: int) -> float:
    """What one round needs: a reward and one Laplace variable."""
    total = 0.0
    for _ in range(rounds):
        total += 1.0 if rng.random() < 0.5 else 0.0
        total += laplace(rng, 2.0)
    return total


@functools.cache
def speeds(setting: str, counter: str) -> dict[str, float]:
    """Rounds a second of the design, of its random numbers alone, and of plain Python."""
    n_arms, horizon, replications = SETTINGS[setting]
    design = PrivateUCB(epsilon=EPSILON, counter=counter)
    environment = BernoulliArms(means_of(n_arms))
    rng = generator(np.random.SeedSequence(0))
    design.replicate(environment, horizon, 2, rng=0)
    only_draws(rng, 10)
    rounds = horizon * replications
    literal = min(horizon, 20_000)
    literal_runs = 20_000 // literal
    times = best_time(
        lambda: design.replicate(environment, horizon, replications, rng=0),
        lambda: only_draws(rng, rounds),
        lambda: [PlainUCB(n_arms, literal, counter, seed).run() for seed in range(literal_runs)],
    )
    return {
        "design": rounds / times[0],
        "draws": rounds / times[1],
        "python": literal * literal_runs / times[2],
    }


# --- plain Python with tree objects ---------------------------------------------------------------------


class Node:
    """An interval of items and its noise."""

    __slots__ = ("first", "last", "noise")

    def __init__(self, first: int, last: int, noise: float) -> None:
        self.first, self.last, self.noise = first, last, noise


class Tree:
    """A continual sum as a list of nodes that tile 1..count."""

    def __init__(self, counter: str, horizon: int, rng: random.Random) -> None:
        self.hybrid = counter == "hybrid"
        self.trunk, self.node = counter_scales(counter, EPSILON, horizon)
        self.rng, self.count, self.total = rng, 0, 0.0
        self.nodes: list[Node] = []

    def add(self, value: float) -> float:
        """Noisy sum after one more item."""
        self.count += 1
        self.total += value
        start = 1 << (self.count.bit_length() - 1) if self.hybrid else 0
        if self.hybrid and self.count == start:
            first, scale = start // 2 + 1, self.trunk
        else:
            inside = self.count - start
            first = self.count - (inside & -inside) + 1
            scale = self.node * (start.bit_length() - 1) if self.hybrid else self.node
        while self.nodes and self.nodes[-1].first >= first:
            self.nodes.pop()
        noise = self.rng.expovariate(1.0) * scale
        self.nodes.append(Node(first, self.count, noise if self.rng.random() < 0.5 else -noise))
        return self.total + sum(node.noise for node in self.nodes)


class PlainUCB:
    """The same index, one Python object at a time."""

    def __init__(self, n_arms: int, horizon: int, counter: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.means, self.horizon, self.counter = means_of(n_arms), horizon, counter
        self.trees = [Tree(counter, horizon, self.rng) for _ in range(n_arms)]
        self.sums = [0.0] * n_arms
        grid, table = counter_quantiles(counter, horizon)
        self.grid, self.table = np.log(grid).tolist(), (table / EPSILON).tolist()

    def quantile(self, log_t: float, count: int) -> float:
        row = count.bit_count()
        if self.counter == "hybrid":
            level = count.bit_length() - 1
            row = level * self.horizon.bit_length() + row - 1
        cell = bisect.bisect_left(self.grid, log_t, 1, len(self.grid) - 1) - 1
        share = (log_t - self.grid[cell]) / (self.grid[cell + 1] - self.grid[cell])
        return self.table[cell][row] + share * (self.table[cell + 1][row] - self.table[cell][row])

    def index(self, arm: int, log_t: float) -> float:
        count = self.trees[arm].count
        return (self.sums[arm] + self.quantile(log_t, count)) / count + math.sqrt(2.0 * log_t / count)

    def run(self) -> list[int]:
        """Pulls of each arm."""
        for t in range(1, self.horizon + 1):
            log_t = math.log(t)
            if t <= len(self.means):
                arm = t - 1
            else:
                arm = max(range(len(self.means)), key=lambda a: self.index(a, log_t))
            reward = 1.0 if self.rng.random() < self.means[arm] else 0.0
            self.sums[arm] = self.trees[arm].add(reward)
        return [tree.count for tree in self.trees]


# --- start of a second process, and memory --------------------------------------------------------------

CHILD = """
import json, resource, sys, time, tracemalloc
begin = time.perf_counter()
from adaptinf.designs import PrivateUCB
from adaptinf.simulation.environments import BernoulliArms
n_arms, horizon, replications = map(int, sys.argv[1:4])
environment = BernoulliArms([0.5] * n_arms)
design = PrivateUCB(epsilon=1.0)
design.replicate(environment, 50, 2, rng=0) if sys.argv[4] == "warm" else None
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tracemalloc.start() if sys.argv[4] == "warm" else None
called = time.perf_counter()
sims = design.replicate(environment, horizon, replications, rng=0)
done = time.perf_counter()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
times = {"call": done - called, "imports": called - begin}
memory = {"growth": (after - before) / 2**10, "results": sims.tallies.nbytes / 2**20}
print(json.dumps(times | memory | {"traced": tracemalloc.get_traced_memory()[1] / 2**20}))
"""


def child(n_arms: int, horizon: int, replications: int, warm: bool = False) -> dict[str, float]:
    """Times in seconds and memory in MiB of one replicate in a fresh process."""
    arguments = [str(n_arms), str(horizon), str(replications), "warm" if warm else "cold"]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=True
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures | {"process": time.perf_counter() - start}


@functools.cache
def start_up() -> dict[str, float]:
    """Shortest of three times of a second process, whose kernel comes from the disk cache."""
    child(5, 100, 2)
    runs = [child(5, 100, 2) for _ in range(REPEATS)]
    return {name: min(run[name] for run in runs) for name in ("call", "imports", "process")}


@functools.cache
def memory() -> dict[str, dict[str, float]]:
    """Peaks at a base size, at ten times the rounds, at ten times the replications, and at both."""
    return {
        "640 replications of 2,000 rounds": child(5, 2_000, 640, warm=True),
        "640 replications of 20,000 rounds": child(5, 20_000, 640, warm=True),
        "6,400 replications of 2,000 rounds": child(5, 2_000, 6_400, warm=True),
        "6,400 replications of 20,000 rounds": child(5, 20_000, 6_400, warm=True),
    }


# --- what must hold -------------------------------------------------------------------------------------


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
@pytest.mark.parametrize("setting", list(SETTINGS))
def test_share_of_the_random_numbers_alone(setting: str, counter: str) -> None:
    got = speeds(setting, counter)
    assert got["design"] / got["draws"] >= LEAST_SHARE[setting]


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
@pytest.mark.parametrize("setting", list(SETTINGS))
def test_many_times_faster_than_plain_python(setting: str, counter: str) -> None:
    got = speeds(setting, counter)
    assert got["design"] / got["python"] >= 50.0


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
def test_plain_python_is_the_same_design(counter: str) -> None:
    pulls = np.array([PlainUCB(5, 300, counter, seed).run() for seed in range(60)])
    design = PrivateUCB(epsilon=EPSILON, counter=counter)
    other = design.replicate(BernoulliArms(means_of(5)), 300, 2_000, rng=0).pulls
    error = np.sqrt(pulls.var(axis=0) / 60 + other.var(axis=0) / 2_000)
    assert (np.abs(pulls.mean(axis=0) - other.mean(axis=0)) < 4.5 * error).all()


def test_a_second_process_starts_from_the_cache() -> None:
    assert start_up()["call"] < 2.0


def test_memory_holds_the_results_and_nothing_that_grows_with_rounds() -> None:
    for name, run in memory().items():
        assert run["traced"] < 4.0 * run["results"] + 8.0, name  # 6 are for the table of quantiles
        assert run["growth"] < 4.0 * run["results"] + 8.0, name


def report() -> Iterator[str]:
    """Every figure, a line each."""
    yield f"best of {REPEATS}, processor time, one core; epsilon = {EPSILON:g}, Bernoulli rewards"
    for setting in SETTINGS:
        for counter in ("hybrid", "binary"):
            got = speeds(setting, counter)
            yield f"{setting}, {counter}: {got['design']:.2e} rounds/s"
            share, least = got["design"] / got["draws"], LEAST_SHARE[setting]
            yield f"  random numbers alone {got['draws']:.2e}, share {share:.3f} (at least {least:.3f})"
            yield f"  plain Python {got['python']:.2e}, {got['design'] / got['python']:.0f} times slower"
    started = start_up()
    yield f"second process, kernel from the disk cache: replicate takes {started['call']:.2f} s"
    yield f"  imports before it {started['imports']:.2f} s, whole process {started['process']:.2f} s"
    for name, run in memory().items():
        yield f"{name}: peak of allocations {run['traced']:.1f} MiB, results {run['results']:.1f} MiB"
        yield f"  resident memory grows by {run['growth']:.1f} MiB"


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
