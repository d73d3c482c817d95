"""Simulated bias against the exact one: over every path of a short trial, or every state of a longer one."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

from adaptinf.audit.rerun.simulated_bias import simulate_bias
from adaptinf.designs import UCB, EpsilonGreedy, Mixture, SuccessiveElimination, Uniform
from adaptinf.designs.base import Design
from adaptinf.log import AdaptiveLog, LogArrays

State = tuple[int, int, int, int]
MEANS = [(0.3, 0.6), (0.5, 0.5), (0.9, 0.2)]
RUNS = 60_000
ERRORS = 4.8
"""Monte Carlo errors that a simulated bias may be off: exceeded with probability 1.6e-6."""


def any_log(horizon: int) -> AdaptiveLog:
    """A log whose rewards do not matter, because the means are given."""
    action = np.arange(horizon) % 2
    return AdaptiveLog.from_arrays(LogArrays(action=action, reward=np.ones(horizon)), arms=("a", "b"))


def mean_of(count: int, total: int) -> float:
    return total / count if count else math.inf


def greedy_chances(exploration: float, state: State, step: int) -> tuple[float, float]:
    """Epsilon-greedy: an arm without pulls is best, the first arm wins ties."""
    first = mean_of(*state[:2]) >= mean_of(*state[2:])
    best = (1.0, 0.0) if first else (0.0, 1.0)
    return tuple((1.0 - exploration) * chance + exploration / 2.0 for chance in best)


def paths(horizon: int, means: tuple[float, float], chances: object) -> dict[State, float]:
    """Probability of every final state (pulls and successes of both arms), over all paths."""
    found: dict[State, float] = {(0, 0, 0, 0): 1.0}
    for step in range(horizon):
        after: dict[State, float] = defaultdict(float)
        for state, probability in found.items():
            for arm, chance in enumerate(chances(state, step)):
                for reward in (0, 1):
                    paid = means[arm] if reward else 1.0 - means[arm]
                    following = list(state)
                    following[2 * arm] += 1
                    following[2 * arm + 1] += reward
                    after[tuple(following)] += probability * chance * paid
        found = {state: probability for state, probability in after.items() if probability > 0.0}
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    return found


def exact_bias(states: dict[State, float], means: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Bias of both arms' means and of their difference, given their pulls, and the chances of these."""
    totals, chances = [0.0] * 3, [0.0] * 3
    for (n0, s0, n1, s1), probability in states.items():
        errors = [
            s0 / n0 - means[0] if n0 else None,
            s1 / n1 - means[1] if n1 else None,
            s1 / n1 - s0 / n0 - means[1] + means[0] if n0 and n1 else None,
        ]
        for place, error in enumerate(errors):
            if error is not None:
                totals[place] += probability * error
                chances[place] += probability
    return [total / chance for total, chance in zip(totals, chances, strict=True)], chances


def compare(design: Design, horizon: int, means: tuple[float, float], states: dict[State, float]) -> None:
    found = simulate_bias(any_log(horizon), design, RUNS, rng=17, means=means).frame
    bias, chances = exact_bias(states, means)
    assert found["term"].tolist() == ["a", "b", "b - a"]
    assert found["mean"].tolist() == pytest.approx([*means, means[1] - means[0]])
    for place in range(3):
        error = max(found["bias_se"][place], 1e-12)
        assert abs(found["bias"][place] - bias[place]) <= ERRORS * error
        spread = math.sqrt(chances[place] * max(0.0, 1.0 - chances[place]) / RUNS)
        assert abs(found["pulled"][place] - chances[place]) <= ERRORS * spread + 1e-12


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("exploration", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("horizon", [3, 8])
def test_epsilon_greedy(means: tuple[float, float], exploration: float, horizon: int) -> None:
    def chances(state: State, step: int) -> tuple[float, float]:
        return greedy_chances(exploration, state, step)

    states = paths(horizon, means, chances)
    compare(EpsilonGreedy(exploration=exploration), horizon, means, states)


def test_the_bias_is_one_that_matters() -> None:
    """Greedy in eight rounds: the exact biases are far from 0, so that the comparison can fail."""
    states = paths(8, (0.5, 0.5), lambda state, step: greedy_chances(0.0, state, step))
    bias, chances = exact_bias(states, (0.5, 0.5))
    assert bias[0] < -0.05
    assert bias[1] < -0.05
    assert chances == pytest.approx([1.0] * 3)


def test_uniform_has_no_bias() -> None:
    states = paths(6, (0.3, 0.6), lambda state, step: (0.5, 0.5))
    bias, chances = exact_bias(states, (0.3, 0.6))
    assert bias == pytest.approx([0.0] * 3, abs=1e-12)
    assert chances[:2] == pytest.approx([1.0 - 0.5**6] * 2)
    compare(Uniform(), 6, (0.3, 0.6), states)


def test_a_mixture_is_run_as_a_whole() -> None:
    """UCB's index is not needed where the mixture always overrides."""
    states = paths(6, (0.3, 0.6), lambda state, step: (0.5, 0.5))
    compare(Mixture(UCB(), exploration=1.0), 6, (0.3, 0.6), states)


def elimination_states(horizon: int, means: tuple[float, float], beta: float) -> dict[State, float]:
    """Successive elimination of two arms, pass after pass, over all pairs of sums."""
    left: dict[tuple[int, int], float] = {(0, 0): 1.0}
    done: dict[State, float] = defaultdict(float)
    for passes in range(1, horizon // 2 + 1):
        after: dict[tuple[int, int], float] = defaultdict(float)
        for (s0, s1), probability in left.items():
            for y0 in (0, 1):
                for y1 in (0, 1):
                    paid = (means[0] if y0 else 1 - means[0]) * (means[1] if y1 else 1 - means[1])
                    after[s0 + y0, s1 + y1] += probability * paid
        width = math.sqrt(math.log(4 * 2 * passes**2 / beta) / (2 * passes))
        left = {}
        for (s0, s1), probability in after.items():
            if abs(s0 - s1) / passes > 2.0 * width:
                rest = horizon - 2 * passes
                arm = 0 if s0 > s1 else 1
                for more in range(rest + 1):
                    law = math.comb(rest, more) * means[arm] ** more * (1 - means[arm]) ** (rest - more)
                    state = (passes, s0, passes, s1)
                    final = list(state)
                    final[2 * arm] += rest
                    final[2 * arm + 1] += more
                    done[tuple(final)] += probability * law
            else:
                left[s0, s1] = probability
    for (s0, s1), probability in left.items():
        done[horizon // 2, s0, horizon // 2, s1] += probability
    assert sum(done.values()) == pytest.approx(1.0, abs=1e-10)
    return done


@pytest.mark.parametrize("means", [(0.2, 0.9), (0.6, 0.4)])
def test_successive_elimination(means: tuple[float, float]) -> None:
    states = elimination_states(120, means, beta=1.0)
    compare(SuccessiveElimination(beta=1.0), 120, means, states)


def test_successive_elimination_drops_arms_there() -> None:
    states = elimination_states(120, (0.2, 0.9), beta=1.0)
    assert sum(probability for state, probability in states.items() if state[0] < 60) > 0.5
    assert abs(exact_bias(states, (0.2, 0.9))[0][0]) > 0.003
