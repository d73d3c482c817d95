"""Speed of Thompson sampling, functions in Python, epoch designs and private UCB, measured within one run.

``python tests/benchmarks/bench_designs.py`` prints the figures, ``pytest tests/benchmarks/bench_designs.py``
asserts the ratios. Times are processor time on one core, best of three. LinPriv has a file of its own.
"""

from __future__ import annotations

import functools
import math
import random
import sys
import time
from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest
from bench_private_ucb import PlainUCB, best_time, only_draws

from adaptinf.designs import FunctionDesign, Thompson
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.designs.contextual.private_conse_kernel import window_ends
from adaptinf.privacy.noise import generator, laplace
from adaptinf.simulation.environments import BernoulliArms, FiniteContext

pytestmark = pytest.mark.benchmark

EPSILON = 1.0
MEANS = [0.75, 0.625, 0.5, 0.375, 0.25]
LONG = 50_000_000
ELIMINATION_RUNS, ELIMINATION_LITERAL = 5_000, 200_000
CONSE_HORIZON, CONSE_RUNS, CONSE_LITERAL, ALPHA = 200_000, 5_000, 20_000, 0.4
CONSE_MEANS = [[0.35, 0.65], [0.65, 0.35]] * 5
M = len(CONSE_MEANS)


# --- private successive elimination ----------------------------------------------------------------------


class PlainElimination:
    """The same decisions, one round and one Python object at a time."""

    def __init__(self, horizon: int, seed: int) -> None:
        self.rng, self.horizon = random.Random(seed), horizon

    def noise(self, scale: float) -> float:
        return self.rng.choice((-1.0, 1.0)) * self.rng.expovariate(1.0) * scale

    def run(self) -> list[int]:
        """Pulls of each arm."""
        viable, epoch, t = list(range(len(MEANS))), 0, 0
        pulls = [0] * len(MEANS)
        while len(viable) > 1:
            epoch += 1
            size = 8.0 * len(viable) * epoch**2 * self.horizon
            least = max(32.0 * math.log(size) * 4.0**epoch, 8.0 * math.log(size / 2.0) * 2.0**epoch / EPSILON)
            least += 1.0
            sums, passes = dict.fromkeys(viable, 0.0), 0
            while passes < least:
                passes += 1
                for arm in viable:
                    if t == self.horizon:
                        return pulls
                    t += 1
                    pulls[arm] += 1
                    sums[arm] += 1.0 if self.rng.random() < MEANS[arm] else 0.0
            gap = 2.0 * math.sqrt(math.log(size) / (2.0 * least)) + 2.0 * math.log(size / 2.0) / (
                least * EPSILON
            )
            means = {arm: sums[arm] / passes + self.noise(1.0 / (EPSILON * passes)) for arm in viable}
            highest = max(means.values())
            viable = [arm for arm in viable if highest - means[arm] <= gap]
        while t < self.horizon:
            t += 1
            pulls[viable[0]] += 1
            sums[viable[0]] = sums.get(viable[0], 0.0) + (self.rng.random() < MEANS[viable[0]])
        return pulls


@numba.njit(error_model="numpy")
def elimination_draws(rng: np.random.Generator, means: np.ndarray, horizon: int, runs: int) -> float:
    """What the usual run at T = 5e7 needs: two epochs' sums and noises, and the sum of the rest."""
    total = 0.0
    for _ in range(runs):
        for arm in range(5):
            total += rng.binomial(2_743, means[arm])
            total += laplace(rng, 1.0)
        for arm in range(2):
            total += rng.binomial(11_207, means[arm])
            total += laplace(rng, 1.0)
        total += rng.binomial(horizon - 36_129, means[0])
    return total


@numba.njit(error_model="numpy")
def only_rewards(rng: np.random.Generator, rounds: int) -> float:
    """One 0/1 reward per round."""
    total = 0.0
    for _ in range(rounds):
        total += 1.0 if rng.random() < 0.5 else 0.0
    return total


@functools.cache
def elimination_times() -> dict[str, float]:
    """Seconds a run: by stretches, its random numbers alone, every round's reward alone, plain Python."""
    design = PrivateSuccessiveElimination(epsilon=EPSILON)
    environment, rng = BernoulliArms(MEANS), generator(np.random.SeedSequence(0))
    means = np.array(MEANS)
    design.replicate(environment, LONG, 2, rng=0)
    elimination_draws(rng, means, LONG, 2)
    only_rewards(rng, 10)
    times = best_time(
        lambda: design.replicate(environment, LONG, ELIMINATION_RUNS, rng=0),
        lambda: elimination_draws(rng, means, LONG, ELIMINATION_RUNS),
        lambda: only_rewards(rng, LONG),
        lambda: PlainElimination(ELIMINATION_LITERAL, 0).run(),
    )
    return {
        "design": times[0] / ELIMINATION_RUNS,
        "draws": times[1] / ELIMINATION_RUNS,
        "rewards": times[2],
        "python": times[3] * LONG / ELIMINATION_LITERAL,
    }


def test_private_elimination_takes_less_than_a_millisecond() -> None:
    got = elimination_times()
    assert got["design"] < 1e-3
    assert got["design"] < 8.0 * got["draws"]
    assert got["design"] < got["python"] / 10_000.0


def test_plain_elimination_is_the_same_design() -> None:
    horizon, runs = 40_000, 100
    pulls = np.array([PlainElimination(horizon, seed).run() for seed in range(runs)])
    other = (
        PrivateSuccessiveElimination(epsilon=EPSILON)
        .replicate(BernoulliArms(MEANS), horizon, 4_000, rng=0)
        .pulls
    )
    error = np.sqrt(pulls.var(axis=0) / runs + other.var(axis=0) / 4_000)
    assert (np.abs(pulls.mean(axis=0) - other.mean(axis=0)) <= 4.5 * error + 1e-9).all()


# --- private UCB ----------------------------------------------------------------------------------------


@functools.cache
def ucb_times(counter: str) -> dict[str, float]:
    """Seconds of a run of T = 5e7 rounds, of its random numbers alone, and of plain Python."""
    design = PrivateUCB(epsilon=EPSILON, counter=counter)
    environment, rng = BernoulliArms(MEANS), generator(np.random.SeedSequence(0))
    design.replicate(environment, 50, 2, rng=0)
    only_draws(rng, 10)
    literal = 20_000
    times = best_time(
        lambda: design.replicate(environment, LONG, 1, rng=0),
        lambda: only_draws(rng, LONG),
        lambda: PlainUCB(len(MEANS), literal, counter, 0).run(),
    )
    return {"design": times[0], "draws": times[1], "python": times[2] * LONG / literal}


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
def test_private_ucb_stays_within_eight_times_its_random_numbers(counter: str) -> None:
    got = ucb_times(counter)
    assert got["design"] <= 8.0 * got["draws"]
    assert got["design"] <= got["python"] / 50.0


# --- DP-ConSE -------------------------------------------------------------------------------------------


class PlainDPConSE:
    """The same trial, one participant at a time."""

    def __init__(self, horizon: int, seed: int) -> None:
        self.rng, self.n, self.ends = random.Random(seed), horizon, window_ends(horizon).tolist()
        self.epsilon_sum, self.epsilon_count = 0.6 * EPSILON, 0.4 * EPSILON
        self.log_two = math.log(2.0 * M * len(self.ends) * horizon)
        self.contrast, self.arrivals = [0.0] * M, [0.0] * M
        self.pooled, self.totals = [0.0] * M, [0.0] * M
        self.better: list[int | None] = [None] * M
        self.pulls = [[0, 0] for _ in range(M)]

    def noise(self, scale: float) -> float:
        return self.rng.choice((-1.0, 1.0)) * self.rng.expovariate(1.0) * scale

    def assign(self, feature: int, arm: int, randomised: bool) -> None:
        self.pulls[feature][arm] += 1
        reward = 1.0 if self.rng.random() < CONSE_MEANS[feature][arm] else 0.0
        if randomised:
            self.contrast[feature] += (2 * arm - 1) * (reward - 0.5)

    def window_ends(self) -> None:
        for j in range(M):
            arrivals = self.arrivals[j] + self.noise(2.0 / self.epsilon_count)
            self.totals[j] += arrivals
            if self.better[j] is None:
                contrast = self.contrast[j] + self.noise(1.0 / self.epsilon_sum)
                self.pooled[j] += contrast
                upper = max(arrivals + 2.0 / self.epsilon_count * self.log_two, 0.0)
                threshold = math.sqrt(0.5 * upper * (self.log_two + math.log(2.0)))
                if abs(contrast) > threshold + self.log_two / self.epsilon_sum:
                    self.better[j] = int(contrast > 0.0)
        self.contrast, self.arrivals = [0.0] * M, [0.0] * M

    def run(self) -> list[list[int]]:
        """Pulls of each context and arm."""
        half, window = self.n // 2, 0
        for t in range(1, half + 1):
            j = int(self.rng.random() * M)
            self.arrivals[j] += 1.0
            arm = self.better[j]
            randomised = arm is None
            self.assign(j, int(self.rng.random() < 0.5) if arm is None else arm, randomised)
            if t == self.ends[window]:
                self.window_ends()
                window += 1
        totals = [max(1.0, total) for total in self.totals]
        better = [int(p > 0.0) if b is None else b for p, b in zip(self.pooled, self.better, strict=True)]
        t_min = max(4.0 * math.log(self.n) / self.epsilon_count, min(totals) ** (1.0 - ALPHA))
        inclusion = [min(1.0, t_min / total) for total in totals]
        for _ in range(half, self.n):
            j = int(self.rng.random() * M)
            if self.rng.random() < inclusion[j]:
                self.arrivals[j] += 1.0
                self.assign(j, int(self.rng.random() < 0.5), True)
            else:
                self.assign(j, better[j], False)
        self.released = [
            (c + self.noise(1.0 / self.epsilon_sum), n + self.noise(2.0 / self.epsilon_count))
            for c, n in zip(self.contrast, self.arrivals, strict=True)
        ]
        return self.pulls


@numba.njit(error_model="numpy")
def conse_draws(rng: np.random.Generator, sizes: np.ndarray, runs: int) -> float:
    """What a run by windows needs where the third one decides: arrivals, coins, rewards, noises."""
    total = 0.0
    for _ in range(runs):
        for window in range(sizes.size):
            here = sizes[window] // M
            for _ in range(M):
                total += rng.binomial(sizes[window], 1.0 / M)
                if window < 3:
                    total += rng.binomial(here, 0.5)
                    total += rng.binomial(here // 2, 0.35) + rng.binomial(here // 2, 0.65)
                    total += laplace(rng, 1.0)
                else:
                    total += rng.binomial(here, 0.65)
                total += laplace(rng, 1.0)
        for _ in range(M):
            total += rng.binomial(CONSE_HORIZON // 2, 1.0 / M) + rng.binomial(CONSE_HORIZON // 2 // M, 0.02)
            total += rng.binomial(200, 0.5) + rng.binomial(100, 0.35) + rng.binomial(100, 0.65)
            total += rng.binomial(CONSE_HORIZON // 2 // M - 200, 0.65)
            total += laplace(rng, 1.0) + laplace(rng, 1.0)
    return total


@functools.cache
def conse_times() -> dict[str, float]:
    """Seconds a run: by windows, its random numbers alone, plain Python."""
    design = DPConSE(epsilon=EPSILON, alpha=ALPHA)
    environment = FiniteContext([1.0 / M] * M, CONSE_MEANS)
    rng, sizes = generator(np.random.SeedSequence(0)), np.diff(window_ends(CONSE_HORIZON), prepend=0)
    design.replicate(environment, CONSE_HORIZON, 2, rng=0)
    conse_draws(rng, sizes, 2)
    times = best_time(
        lambda: design.replicate(environment, CONSE_HORIZON, CONSE_RUNS, rng=0),
        lambda: conse_draws(rng, sizes, CONSE_RUNS),
        lambda: PlainDPConSE(CONSE_LITERAL, 0).run(),
    )
    return {
        "design": times[0] / CONSE_RUNS,
        "draws": times[1] / CONSE_RUNS,
        "python": times[2] * CONSE_HORIZON / CONSE_LITERAL,
    }


def test_dp_conse_makes_five_thousand_runs_a_second() -> None:
    got = conse_times()
    assert got["design"] < 1.0 / 5_000.0
    assert got["design"] < 8.0 * got["draws"]
    assert got["design"] < got["python"] / 1_000.0


def test_plain_dp_conse_is_the_same_design() -> None:
    horizon, runs = 8_000, 60
    pulls = np.array([PlainDPConSE(horizon, seed).run() for seed in range(runs)])
    environment = FiniteContext([1.0 / M] * M, CONSE_MEANS)
    other = DPConSE(epsilon=EPSILON, alpha=ALPHA).replicate(environment, horizon, 4_000, rng=0).pulls
    error = np.sqrt(pulls.var(axis=0) / runs + other.var(axis=0) / 4_000)
    assert (np.abs(pulls.mean(axis=0) - other.mean(axis=0)) < 5.0 * error).all()


# --- Thompson sampling with propensities, and functions in Python -------------------------------------------


def alternated(first: Callable[[], object], second: Callable[[], object], rounds: int = 5) -> float:
    """Median ratio of processor times, first over second, called in turn."""
    ratios = []
    for _ in range(rounds):
        start = time.process_time()
        first()
        middle = time.process_time()
        second()
        ratios.append((middle - start) / (time.process_time() - middle))
    return float(np.median(ratios))


@functools.cache
def exact_gain(n_arms: int, horizon: int) -> float:
    """How many times faster exact propensities of Beta posteriors are than 100 draws a round."""
    environment, runs = BernoulliArms(np.linspace(0.3, 0.6, n_arms)), max(1, 4_000 // horizon)
    drawn, exact = (
        functools.partial(design.replicate, environment, rng=0, by_rounds=True)
        for design in (Thompson(draws=100), Thompson())
    )
    drawn(horizon=10, replications=1)
    exact(horizon=10, replications=1)
    return 5 * alternated(
        lambda: drawn(horizon=horizon, replications=runs),
        lambda: exact(horizon=horizon, replications=5 * runs),
    )


@pytest.mark.parametrize(("n_arms", "least"), [(2, 20.0), (5, 5.0), (20, 8.0)])
def test_exact_propensities_are_faster_than_draws(n_arms: int, least: float) -> None:
    assert exact_gain(n_arms, 1_000) > least
    assert exact_gain(n_arms, 20_000) > least


def choose(state: tuple[list[int], list[float]], context: object, rng: np.random.Generator) -> list[float]:
    """The arm with the higher smoothed mean, mostly."""
    pulls, sums = state
    best = max(range(len(pulls)), key=lambda arm: (sums[arm] + 1.0) / (pulls[arm] + 2.0))
    return [0.8 * (arm == best) + 0.2 / len(pulls) for arm in range(len(pulls))]


def update(
    state: tuple[list[int], list[float]], context: object, arm: int, reward: float
) -> tuple[list[int], list[float]]:
    """Counts and sums after a reward."""
    pulls, sums = list(state[0]), list(state[1])
    pulls[arm] += 1
    sums[arm] += reward
    return pulls, sums


def plain_loop(horizon: int) -> list[int]:
    """The same functions in a loop that checks nothing and keeps the actions."""
    rng, state, actions = np.random.default_rng(0), ([0, 0], [0.0, 0.0]), []
    for _ in range(horizon):
        arm = int(rng.random() >= choose(state, None, rng)[0])
        state = update(state, None, arm, float(rng.random() < (0.3, 0.6)[arm]))
        actions.append(arm)
    return actions


@functools.cache
def function_costs() -> dict[str, float]:
    """A run and a replicate of a design of functions, over a plain loop of as many rounds."""
    environment, horizon = BernoulliArms([0.3, 0.6]), 20_000
    design = FunctionDesign(choose, update, start=([0, 0], [0.0, 0.0]))
    design.run(environment, 10, rng=0)
    return {
        "run": alternated(lambda: design.run(environment, horizon, rng=0), lambda: plain_loop(horizon)),
        "replicate": alternated(
            lambda: design.replicate(environment, horizon, 1, rng=0), lambda: plain_loop(horizon)
        ),
    }


def test_a_function_design_costs_at_most_two_plain_loops() -> None:
    assert max(function_costs().values()) < 2.0


def report() -> Iterator[str]:
    """Every figure, a line each."""
    for n_arms in (2, 5, 20):
        gains = ", ".join(
            f"{exact_gain(n_arms, horizon):.1f} at T = {horizon:,}" for horizon in (1_000, 20_000)
        )
        yield f"Thompson with propensities, K = {n_arms}: exact over 100 draws, times as fast: {gains}"
    costs = function_costs()
    yield f"FunctionDesign over a plain loop: run {costs['run']:.2f}, replicate {costs['replicate']:.2f}"
    yield f"best of three, processor time, one core; epsilon = {EPSILON:g}, 0/1 rewards"
    got = elimination_times()
    run = got["design"]
    yield f"private elimination, K = 5, T = {LONG:,}: {1e3 * run:.4f} ms a run (below 1)"
    yield f"  its random numbers alone {1e3 * got['draws']:.4f} ms, {run / got['draws']:.1f} times"
    yield f"  every round's reward alone {got['rewards']:.2f} s, {got['rewards'] / run:.1e} times slower"
    yield f"  plain Python {got['python']:.1f} s, {got['python'] / run:.1e} times slower"
    for counter in ("hybrid", "binary"):
        got = ucb_times(counter)
        run = got["design"]
        yield f"private UCB, K = 5, T = {LONG:,}, {counter}: {run:.2f} s a run"
        yield f"  random numbers alone {got['draws']:.2f} s, {run / got['draws']:.2f} times (at most 8)"
        yield f"  plain Python {got['python']:.0f} s, {got['python'] / run:.0f} times slower"
    got = conse_times()
    run = got["design"]
    yield f"DP-ConSE, n = {CONSE_HORIZON:,}, M = {M}: {1.0 / run:,.0f} runs/s (at least 5,000)"
    yield f"  its random numbers alone {1.0 / got['draws']:,.0f} runs/s, {run / got['draws']:.1f} times"
    yield f"  plain Python {1.0 / got['python']:.1f} runs/s, {got['python'] / run:,.0f} times slower"
    yield (
        f"plain Python was timed over {ELIMINATION_LITERAL:,}, 20,000 and {CONSE_LITERAL:,} rounds and is "
        "scaled to the length"
    )


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
