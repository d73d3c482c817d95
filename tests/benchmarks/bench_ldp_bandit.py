"""Speed of the locally private bandit with noise in every bin, everything within one run on one core.

``python tests/benchmarks/bench_ldp_bandit.py`` prints the figures, ``pytest
tests/benchmarks/bench_ldp_bandit.py`` asserts the ratios. Times are processor time, best of three.
"""

from __future__ import annotations

import functools
import math
import random
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from bench_private_ucb import best_time

from adaptinf.designs.local.bins import LDPBandit
from adaptinf.simulation.environments.vector_arms import SmoothArms

pytestmark = pytest.mark.benchmark

ARMS, DIMENSION = 3, 2
HORIZON, SHORT = 80_000, 4_000
EPSILONS = (1.0, 8.0, 1024.0)
RUNS = 4
MOST_SECONDS = 0.5
WIDTH, REFINEMENT = 8.0, 0.1


def expected(first: float) -> list[float]:
    """Expected rewards of the arms at a first coordinate."""
    decays = [math.exp(-2.0 * (ARMS * first - arm) ** 2) for arm in range(1, ARMS + 1)]
    return [2.0 * decay / (1.0 + decay) for decay in decays]


# --- plain Python: a bin and an arm at a time ------------------------------------------------------------


class Bin:
    """A box with the noisy sums of each arm that is left."""

    def __init__(self, low: list[float], high: list[float], depth: int, arms: list[int]) -> None:
        self.low, self.high, self.depth, self.participants = low, high, depth, 0
        self.counts, self.sums = dict.fromkeys(arms, 0.0), dict.fromkeys(arms, 0.0)

    def holds(self, context: list[float]) -> bool:
        return all(low <= x < high for low, x, high in zip(self.low, context, self.high, strict=True))

    def halves(self, axis: int) -> list[Bin]:
        middle = 0.5 * (self.low[axis] + self.high[axis])
        high, low = list(self.high), list(self.low)
        high[axis] = low[axis] = middle
        first = Bin(list(self.low), high, self.depth + 1, list(self.counts))
        return [first, Bin(low, list(self.high), self.depth + 1, list(self.counts))]


class PlainLDPBandit:
    """The corrected design with `random` and lists."""

    def __init__(self, epsilon: float, horizon: int, seed: int) -> None:
        self.rng, self.epsilon, self.horizon = random.Random(seed), epsilon, horizon
        self.rate = epsilon / 4.0
        self.bins = [Bin([0.0] * DIMENSION, [1.0] * DIMENSION, 0, list(range(ARMS)))]

    def noise(self) -> float:
        """The difference of two exponential variables is a Laplace variable."""
        return self.rng.expovariate(self.rate) - self.rng.expovariate(self.rate)

    def radius(self, count: float, participants: int) -> float:
        below = count - math.sqrt(32.0 * WIDTH * participants) / self.epsilon
        if below <= 0.0:
            return math.inf
        return math.sqrt(WIDTH * (64.0 * participants / self.epsilon**2 + count / 4.0)) / below

    def check(self, box: Bin) -> list[Bin]:
        """Drop arms; what takes the bin's place."""
        radii = {arm: self.radius(count, box.participants) for arm, count in box.counts.items()}
        if min(radii.values()) == math.inf:
            return [box]
        means = {arm: box.sums[arm] / count for arm, count in box.counts.items()}
        least = max(means[arm] - radii[arm] for arm in radii)
        for arm in [arm for arm in radii if means[arm] + radii[arm] < least]:
            del box.counts[arm], box.sums[arm], radii[arm]
        threshold = REFINEMENT * 2.0 * math.sqrt(DIMENSION) * 2.0 ** (-box.depth / DIMENSION)
        if min(radii.values()) >= threshold:
            return [box]
        lengths = [high - low for low, high in zip(box.low, box.high, strict=True)]
        return box.halves(
            self.rng.choice([axis for axis in range(DIMENSION) if lengths[axis] == max(lengths)])
        )

    def run(self) -> tuple[float, int]:
        """Regret, and bins at the end."""
        regret = 0.0
        for _ in range(self.horizon):
            context = [self.rng.random() for _ in range(DIMENSION)]
            mine = next(box for box in self.bins if box.holds(context))
            arm = self.rng.choice(list(mine.counts))
            means = expected(context[0])
            regret += max(means) - means[arm]
            reward = 1.0 if self.rng.random() < means[arm] else 0.0
            after = []
            for box in self.bins:
                box.participants += 1
                for each in box.counts:
                    came = box is mine and each == arm
                    box.counts[each] += (1.0 if came else 0.0) + self.noise()
                    box.sums[each] += (reward if came else 0.0) + self.noise()
                after += self.check(box)
            self.bins = after
        return regret, len(self.bins)


# --- NumPy: all bins and arms of a participant at once -----------------------------------------------------


class ArrayLDPBandit:
    """The corrected design with one array over bins and arms."""

    def __init__(self, epsilon: float, horizon: int, seed: int) -> None:
        self.rng, self.epsilon, self.horizon = np.random.default_rng(seed), epsilon, horizon
        self.low, self.high = np.zeros((1, DIMENSION)), np.ones((1, DIMENSION))
        self.depth, self.participants = np.zeros(1), np.zeros(1)
        self.left = np.ones((1, ARMS), dtype=bool)
        self.sums = np.zeros((2, 1, ARMS))

    def check(self) -> None:
        counts, rewards = self.sums
        spread = self.participants[:, None] / self.epsilon**2
        below = counts - np.sqrt(32.0 * WIDTH * spread)
        if not (self.left & (below > 0.0)).any():
            return
        variance = np.maximum(64.0 * spread + counts / 4.0, 0.0)
        usable = self.left & (below > 0.0)
        radius = np.where(usable, np.sqrt(WIDTH * variance) / np.where(usable, below, 1.0), np.inf)
        means = np.where(usable, rewards / np.where(usable, counts, 1.0), 0.0)
        least = (means - radius).max(axis=1, keepdims=True)
        self.left &= ~(means + radius < least)
        threshold = REFINEMENT * 2.0 * math.sqrt(DIMENSION) * 2.0 ** (-self.depth / DIMENSION)
        narrow = np.where(self.left, radius, np.inf).min(axis=1) < threshold
        if narrow.any():
            self.halve(narrow)

    def halve(self, narrow: np.ndarray) -> None:
        chosen = np.flatnonzero(narrow)
        length = self.high[chosen] - self.low[chosen]
        score = np.where(length == length.max(axis=1, keepdims=True), self.rng.random(length.shape), -1.0)
        axis = score.argmax(axis=1)
        middle = 0.5 * (self.low[chosen, axis] + self.high[chosen, axis])
        upper, lower = self.high[chosen].copy(), self.low[chosen].copy()
        upper[np.arange(chosen.size), axis] = lower[np.arange(chosen.size), axis] = middle
        self.low = np.concatenate([self.low[~narrow], self.low[chosen], lower])
        self.high = np.concatenate([self.high[~narrow], upper, self.high[chosen]])
        self.depth = np.concatenate([self.depth[~narrow], *(2 * [self.depth[chosen] + 1.0])])
        self.participants = np.concatenate([self.participants[~narrow], np.zeros(2 * chosen.size)])
        self.left = np.concatenate([self.left[~narrow], *(2 * [self.left[chosen]])])
        fresh = np.zeros((2, 2 * chosen.size, ARMS))
        self.sums = np.concatenate([self.sums[:, ~narrow], fresh], axis=1)

    def run(self) -> tuple[float, int]:
        """Regret, and bins at the end."""
        regret = 0.0
        for _ in range(self.horizon):
            context = self.rng.random(DIMENSION)
            mine = int(((self.low <= context) & (context < self.high)).all(axis=1).argmax())
            arm = int(self.rng.choice(np.flatnonzero(self.left[mine])))
            means = expected(float(context[0]))
            regret += max(means) - means[arm]
            self.sums += self.rng.laplace(scale=4.0 / self.epsilon, size=self.sums.shape)
            self.participants += 1.0
            self.sums[0, mine, arm] += 1.0
            self.sums[1, mine, arm] += float(self.rng.random() < means[arm])
            self.check()
        return regret, self.depth.size


# --- what must hold ----------------------------------------------------------------------------------------


@functools.cache
def speeds(epsilon: float) -> dict[str, float]:
    """Seconds a run: the design over the long horizon, and all three over the short one."""
    design, environment = LDPBandit(epsilon=epsilon), SmoothArms(ARMS, DIMENSION)
    design.replicate(environment, 10, 1, rng=0)
    times = best_time(
        lambda: design.replicate(environment, HORIZON, RUNS, rng=0),
        lambda: design.replicate(environment, SHORT, 20, rng=0),
        lambda: PlainLDPBandit(epsilon, SHORT, 0).run(),
        lambda: ArrayLDPBandit(epsilon, SHORT, 0).run(),
    )
    bins = design.replicate(environment, HORIZON, RUNS, rng=0).released["bins"].mean()
    few = design.replicate(environment, SHORT, 20, rng=0).released["bins"].mean()
    return {
        "long": times[0] / RUNS,
        "short": times[1] / 20,
        "python": times[2],
        "numpy": times[3],
        "bins": float(bins),
        "few": float(few),
    }


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_run_takes_less_than_half_a_second_and_plain_python_much_longer(epsilon: float) -> None:
    got = speeds(epsilon)
    assert got["long"] < MOST_SECONDS
    assert got["python"] >= 20.0 * got["short"]
    assert got["numpy"] >= 10.0 * got["short"]


@pytest.mark.parametrize("plain", [PlainLDPBandit, ArrayLDPBandit])
def test_plain_python_is_the_same_design(plain: type[PlainLDPBandit] | type[ArrayLDPBandit]) -> None:
    epsilon, horizon, runs = 200.0, 1_500, 60
    found = np.array([plain(epsilon, horizon, seed).run() for seed in range(runs)])
    sims = LDPBandit(epsilon=epsilon).replicate(SmoothArms(ARMS, DIMENSION), horizon, 1_000, rng=0)
    for ours, theirs in zip((sims.regret, sims.released["bins"]), found.T, strict=True):
        error = math.sqrt(ours.var() / ours.size + theirs.var(ddof=1) / runs)
        assert abs(ours.mean() - theirs.mean()) <= 4.5 * error
    assert sims.released["bins"].mean() > 3.0  # bins were halved
    assert sims.released["dropped"].mean() > 0.5


def report() -> Iterator[str]:
    """Every figure, a line each."""
    yield f"best of three, processor time, one core; K = {ARMS}, d = {DIMENSION}, corrected radius"
    for epsilon in EPSILONS:
        got = speeds(epsilon)
        yield (
            f"epsilon = {epsilon:g}, n = {HORIZON:,}: {got['long']:.3f} s a run (below {MOST_SECONDS:g}), "
            f"{got['bins']:.1f} bins at the end"
        )
        each = got["short"] / SHORT
        yield f"  n = {SHORT:,}: {1e6 * each:.2f} us a participant, {got['few']:.1f} bins at the end"
        for name, told in (("numpy", "NumPy, all bins at once"), ("python", "plain Python, a bin at a time")):
            slower = got[name] / got["short"]
            yield f"  {told} {1e6 * got[name] / SHORT:.1f} us, {slower:.0f} times slower"


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
