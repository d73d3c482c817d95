"""Speed of randomisation tests: 999 re-runs of UCB at 10,000 rounds under 2 s.

``python tests/benchmarks/bench_randomization.py`` prints the figures, ``pytest
tests/benchmarks/bench_randomization.py`` asserts them. Times are processor time of one core, best of three,
after the kernels have been compiled.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from adaptinf.audit.randomization.randomization_intervals import randomization_interval
from adaptinf.audit.randomization.randomization_tests import randomization_test, weighted_randomization_test
from adaptinf.designs import UCB, EpsilonGreedy, PrivateUCB, Uniform
from adaptinf.simulation.environments import BernoulliArms, NormalArms

pytestmark = pytest.mark.benchmark

ARMS, NORMAL = BernoulliArms([0.5, 0.55]), NormalArms([0.0, 0.1])
ROUNDS, REPEATS = 10_000, 3
LIMITS = {
    "UCB by order": 2.0,
    "private UCB by order": 6.0,
    "epsilon-greedy by assignment": 1.0,
    "epsilon-greedy, a function of paths": 3.0,
    "UCB, interval from 199 re-runs an effect": 10.0,
    "uniform, 999 weighted paths": 3.0,
}


def tasks() -> dict[str, Callable[[], object]]:
    """What is timed."""
    ucb = UCB().run(ARMS, ROUNDS, rng=0)
    private = PrivateUCB(epsilon=1.0).run(ARMS, ROUNDS, rng=0)
    greedy = EpsilonGreedy().run(ARMS, ROUNDS, rng=0)
    normal = UCB().run(NORMAL, ROUNDS, rng=0)
    even = Uniform().run(ARMS, ROUNDS, rng=0)
    return {
        "UCB by order": lambda: randomization_test(ucb),
        "private UCB by order": lambda: randomization_test(private),
        "epsilon-greedy by assignment": lambda: randomization_test(greedy),
        "epsilon-greedy, a function of paths": lambda: randomization_test(
            greedy, statistic=lambda action, reward, context: (action * reward).sum(axis=1), vectorised=True
        ),
        "UCB, interval from 199 re-runs an effect": lambda: randomization_interval(normal),
        "uniform, 999 weighted paths": lambda: weighted_randomization_test(even),
    }


@functools.cache
def times() -> dict[str, float]:
    """Shortest processor time of each task, in seconds."""
    every = tasks()
    best = dict.fromkeys(every, math.inf)
    for task in every.values():
        task()
    for _ in range(REPEATS):
        for name, task in every.items():
            start = time.process_time()
            task()
            best[name] = min(best[name], time.process_time() - start)
    return best


@pytest.mark.parametrize("name", list(LIMITS))
def test_time(name: str) -> None:
    assert times()[name] < LIMITS[name]


def report() -> Iterator[str]:
    """Every figure, a line each."""
    yield f"{ROUNDS:,} rounds, 999 re-runs where nothing else is said; processor time, best of {REPEATS}"
    for name, seconds in times().items():
        yield f"{name}: {seconds:.2f} s (limit {LIMITS[name]:g} s)"


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
