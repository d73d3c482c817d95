"""The exact law against enumeration of every path, and its allocation probabilities against integration."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from adaptinf.audit.binary.count_recursion import clipped_frequency, rule_block
from adaptinf.audit.binary.count_rules import allocation, work_space
from adaptinf.audit.binary.exact_law import ExactLaw, exact
from adaptinf.designs import UCB, EpsilonGreedy, Mixture, PlayTheWinner, Thompson, Uniform

State = tuple[int, int, int, int]
BatchLaw = Callable[[State, int, tuple[int, ...]], Any]
"""Probability of the actions of a batch, given the state and the rounds before it."""


@functools.cache
def better(a: int, b: int, c: int, d: int) -> Fraction:
    """P(X > Y) for Beta(a, b) and Beta(c, d) of whole parameters, in whole numbers."""

    def beta(x: int, y: int) -> Fraction:
        return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))

    return sum(
        (beta(c + i, b + d) / ((b + i) * beta(1 + i, b) * beta(c, d)) for i in range(a)), start=Fraction(0)
    )


def paths(horizon: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    return itertools.product(
        itertools.product((0, 1), repeat=horizon), itertools.product((0, 1), repeat=horizon)
    )


def enumerated(horizon: int, edges: list[int], law: BatchLaw) -> dict[State, float]:
    """Number of paths into each final state, each weighed by the probability of its actions."""
    found: dict[State, float] = defaultdict(float)
    cache: dict[Any, float] = {}
    for actions, rewards in paths(horizon):
        state, weight = (0, 0, 0, 0), 1.0
        for before, after in itertools.pairwise(edges):
            key = (state, before, actions[before:after])
            if key not in cache:
                cache[key] = float(law(*key))
            weight *= cache[key]
            n1, s1, n0, s0 = state
            for action, reward in zip(actions[before:after], rewards[before:after], strict=True):
                n1, s1 = n1 + action, s1 + action * reward
                n0, s0 = n0 + 1 - action, s0 + (1 - action) * reward
            state = (n1, s1, n0, s0)
        found[state] += weight
    return found


def single(chance: Callable[[State, int], Any]) -> BatchLaw:
    def law(state: State, before: int, actions: tuple[int, ...]) -> Any:
        up = chance(state, before)
        return up if actions[0] == 1 else 1 - up

    return law


def thompson(state: State, first: int = 1, second: int = 1) -> Fraction:
    n1, s1, n0, s0 = state
    return better(first + s1, second + n1 - s1, first + s0, second + n0 - s0)


def normal_thompson(state: State, before: int) -> float:
    n1, s1, n0, s0 = state
    mean1, mean0 = (
        (0.5 / 2.0 + s1 / 0.25) / (1 / 2.0 + n1 / 0.25),
        (0.5 / 2.0 + s0 / 0.25) / (1 / 2.0 + n0 / 0.25),
    )
    spread = math.sqrt(1 / (1 / 2.0 + n1 / 0.25) + 1 / (1 / 2.0 + n0 / 0.25))
    return float(stats.norm.cdf((mean1 - mean0) / spread))


def greedy(state: State) -> int:
    n1, s1, n0, s0 = state
    if n0 == 0:
        return 0
    return int(n1 == 0 or Fraction(s1, n1) > Fraction(s0, n0))


def upper_bounds(state: State, before: int) -> int:
    n1, s1, n0, s0 = state
    if n0 == 0 or n1 == 0:
        return int(n0 > 0)
    return int(
        s1 / n1 + math.sqrt(0.7 * math.log(before + 1) / n1)
        > s0 / n0 + math.sqrt(0.7 * math.log(before + 1) / n0)
        and (n1, s1) != (n0, s0)
    )


def urn(state: State, before: int) -> Fraction:
    n1, s1, n0, s0 = state
    return (2 + 3 * Fraction(s1 + n0 - s0)) / (4 + 3 * (n1 + n0))


def frequencies(draws: int, floor: Callable[[int], float], share: Callable[[int], float]) -> BatchLaw:
    """Thompson's batch: the frequency among the draws, clipped at the floor of the batch's first round."""

    def law(state: State, before: int, actions: tuple[int, ...]) -> float:
        chance, low = float(thompson(state)), floor(before + 1)
        total = 0.0
        for count in range(draws + 1):
            base = min(max(count / draws, low), 1 - low)
            product = float(stats.binom.pmf(count, draws, chance))
            for i, action in enumerate(actions):
                up = share(before + i + 1) / 2 + (1 - share(before + i + 1)) * base
                product *= up if action else 1 - up
            total += product
        return total

    return law


def dealt(rounds: int, later: BatchLaw) -> BatchLaw:
    """Arms 0 and 1 in turn, then another law."""

    def law(state: State, before: int, actions: tuple[int, ...]) -> Any:
        return int(actions[0] == before % 2) if before < rounds else later(state, before, actions)

    return law


def exploring(exploration: float, decay: float) -> BatchLaw:
    def law(state: State, before: int, actions: tuple[int, ...]) -> float:
        arm, product = greedy(state), 1.0
        for i, action in enumerate(actions):
            explore = min(1.0, exploration * (before + i + 1) ** -decay)
            product *= explore / 2 + (1 - explore) * (action == arm)
        return product

    return law


def mixed(chance: Callable[[State, int], Any], share: float) -> BatchLaw:
    return single(lambda state, before: share / 2 + (1 - share) * float(chance(state, before)))


def every(horizon: int) -> list[int]:
    return list(range(horizon + 1))


def given(n1: Any, s1: Any, n0: Any, s0: Any, t: int) -> Any:
    return (1.0 + s1 + 2.0 * s0 + n1) / (2.0 + 4.0 * (n1 + n0) + t)


CASES: dict[str, tuple[Any, int, list[int], BatchLaw]] = {
    "thompson": (Thompson(), 7, every(7), single(lambda x, t: thompson(x))),
    "prior": (Thompson(prior_parameters=(3.0, 2.0)), 6, every(6), single(lambda x, t: thompson(x, 3, 2))),
    "initial": (
        Thompson(initial_pulls=1),
        6,
        every(6),
        single(lambda x, t: Fraction(1, 2) if t < 2 else thompson(x)),
    ),
    "dealt": (
        Thompson(initial_pulls=2, initial="dealt", floor=(0.45, 0.3), draws=7),
        7,
        every(7),
        dealt(4, frequencies(7, lambda t: 0.45 * t**-0.3, lambda t: 0.0)),
    ),
    "dealt mixture": (
        Mixture(Thompson(initial_pulls=1, initial="dealt"), exploration=0.4),
        6,
        every(6),
        mixed(lambda x, t: t % 2 if t < 2 else thompson(x), 0.4),
    ),
    "floor": (
        Thompson(floor=(0.45, 0.3), draws=7),
        6,
        every(6),
        frequencies(7, lambda t: 0.45 * t**-0.3, lambda t: 0.0),
    ),
    "batch": (Thompson(batch_size=3, draws=5), 7, [0, 3, 6, 7], frequencies(5, lambda t: 0.0, lambda t: 0.0)),
    "everything": (
        Mixture(Thompson(batch_size=2, draws=6, floor=(0.4, 0.2)), exploration=0.6, decay=0.5),
        7,
        [0, 2, 4, 6, 7],
        frequencies(6, lambda t: 0.4 * t**-0.2, lambda t: 0.6 * t**-0.5),
    ),
    "normal": (
        Thompson(prior="normal", prior_parameters=(0.5, 2.0), noise_scale=0.5),
        6,
        every(6),
        single(normal_thompson),
    ),
    "uniform": (Uniform(), 6, every(6), single(lambda x, t: Fraction(1, 2))),
    "greedy": (EpsilonGreedy(exploration=0.3, decay=0.4), 7, every(7), exploring(0.3, 0.4)),
    "greedy batch": (
        EpsilonGreedy(exploration=0.3, decay=0.4, batch_size=3),
        7,
        [0, 3, 6, 7],
        exploring(0.3, 0.4),
    ),
    "ucb": (UCB(width=0.7), 8, every(8), single(upper_bounds)),
    "ucb mixture": (Mixture(UCB(width=0.7), exploration=0.4), 6, every(6), mixed(upper_bounds, 0.4)),
    "urn": (PlayTheWinner(initial=2.0, added=3.0), 7, every(7), single(urn)),
    "given": (given, 6, every(6), single(lambda x, t: given(*x, t + 1))),
}


def weights(law: ExactLaw) -> dict[State, float]:
    """Weighted numbers of paths."""
    found = {}
    for place, *counts in law.states():
        for state, q in zip(zip(*(c.tolist() for c in counts), strict=True), law.weights[place], strict=True):
            n1, s1, n0, s0 = state
            found[state] = float(q) * math.comb(n1, s1) * math.comb(n0, s0)
    return found


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_all_paths(name: str) -> None:
    rule, horizon, edges, literal = CASES[name]
    found, expected = weights(exact(rule, horizon)), enumerated(horizon, edges, literal)
    assert set(expected) <= set(found)
    for state, value in found.items():
        assert value == pytest.approx(expected.get(state, 0.0), rel=1e-12, abs=0.0)


def test_properties_of_a_test_are_sums_over_paths() -> None:
    """Size, power, pulls and bias are those of the enumerated law, at unequal thetas."""
    horizon, one, zero = 7, 0.35, 0.6
    law = exact(Thompson(), horizon)
    expected = enumerated(horizon, every(horizon), single(lambda x, t: thompson(x)))
    chance = {
        (n1, s1, n0, s0): q * one**s1 * (1 - one) ** (n1 - s1) * zero**s0 * (1 - zero) ** (n0 - s0)
        for (n1, s1, n0, s0), q in expected.items()
    }
    assert sum(chance.values()) == pytest.approx(1.0, abs=1e-13)

    def pvalue(n1: Any, s1: Any, n0: Any, s0: Any) -> Any:
        return np.where(np.abs(s1 - s0) >= 3, 0.01, 0.5)

    power = sum(p for (n1, s1, n0, s0), p in chance.items() if abs(s1 - s0) >= 3)
    assert float(law.power(pvalue, one, zero)) == pytest.approx(power, abs=1e-13)
    pulls = sum(p * n1 for (n1, s1, n0, s0), p in chance.items())
    assert float(law.expected_pulls(one, zero)[0]) == pytest.approx(pulls, abs=1e-12)
    bias = law.bias(one, zero)
    seen = sum(p for (n1, *_), p in chance.items() if n1)
    mean = sum(p * s1 / n1 for (n1, s1, n0, s0), p in chance.items() if n1) / seen
    assert float(bias.arm1) == pytest.approx(mean - one, abs=1e-12)
    assert float(bias.unpulled1) == pytest.approx(1.0 - seen, abs=1e-13)
    both = sum(p for (n1, s1, n0, s0), p in chance.items() if n1 and n0)
    gap = sum(p * (s1 / n1 - s0 / n0) for (n1, s1, n0, s0), p in chance.items() if n1 and n0) / both
    assert float(bias.difference) == pytest.approx(gap - (one - zero), abs=1e-12)
    for state, p in list(chance.items())[::7]:
        assert law.probability(*state, one, zero) == pytest.approx(p, abs=1e-14)


@pytest.mark.parametrize("alternative", ["two-sided", "central", "greater", "less"])
@pytest.mark.parametrize("mid_p", [False, True])
def test_conditional_pvalues_are_those_of_enumerated_outcomes(alternative: str, mid_p: bool) -> None:
    horizon = 7
    law = exact(PlayTheWinner(), horizon)
    expected = enumerated(
        horizon, every(horizon), single(lambda x, t: (1 + x[1] + x[2] - x[3]) / Fraction(2 + t))
    )

    def gap(state: State) -> Fraction:
        n1, s1, n0, s0 = state
        return Fraction(s1, n1) - Fraction(s0, n0) if n1 and n0 else Fraction(0)

    def tail(state: State, key: Callable[[Fraction], Fraction]) -> float:
        mine, total, reached = key(gap(state)), 0.0, 0.0
        for other, q in expected.items():
            if other[1] + other[3] == state[1] + state[3]:
                total += q
                theirs = key(gap(other))
                reached += q * (0.5 if mid_p and theirs == mine else float(theirs >= mine))
        return reached / total

    for state in list(expected)[::3]:
        up, down = tail(state, lambda x: x), tail(state, lambda x: -x)
        answer = {
            "two-sided": tail(state, abs),
            "greater": up,
            "less": down,
            "central": min(1.0, 2.0 * min(up, down)),
        }[alternative]
        found = law.conditional_pvalue(*state, statistic="difference", alternative=alternative, mid_p=mid_p)
        assert found == pytest.approx(answer, abs=1e-12)


def integrated(a: float, b: float, c: float, d: float) -> float:
    """P(X > Y) by integration over the logit of Y, with 25 digits."""
    with mpmath.workdps(25):

        def density(x: Any) -> Any:
            y, rest = 1 / (1 + mpmath.exp(-x)), 1 / (1 + mpmath.exp(x))
            return y**c * rest**d / mpmath.beta(c, d) * mpmath.betainc(b, a, 0, rest, regularized=True)

        return float(mpmath.quad(density, [-300, -40, -8, 0, 8, 40, 300]))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 0.5), (0.3, 4.0), (2.5, 0.7)])
def test_probability_that_an_arm_is_better_against_integration(prior: tuple[float, float]) -> None:
    horizon = 61
    first, second = prior
    tables, work = allocation(Thompson(prior_parameters=prior), horizon).tables, work_space(horizon)
    for n1, s1, n0, s0 in [(0, 0, 0, 0), (5, 5, 0, 0), (20, 3, 40, 31), (30, 0, 30, 30), (7, 7, 50, 2)]:
        rule_block(tables, n1, n0, work)
        place = s1 * (n0 + 1) + s0
        one = first + s1, second + n1 - s1
        zero = first + s0, second + n0 - s0
        assert work.up[place] == pytest.approx(integrated(*one, *zero), rel=1e-11)
        assert work.down[place] == pytest.approx(integrated(*zero, *one), rel=1e-11)


def test_probabilities_of_a_long_trial_against_whole_numbers() -> None:
    """Both tails keep their digits: the smallest of these is below 1e-100."""
    horizon = 401
    tables, work = allocation(Thompson(), horizon).tables, work_space(horizon)
    rng = np.random.default_rng(4)
    smallest = 1.0
    for n1, n0 in [(200, 200), (350, 50), (12, 388), (200, 199)]:
        rule_block(tables, n1, n0, work)
        for s1, s0 in [
            (0, n0),
            (n1, 0),
            *((rng.integers(0, n1 + 1), rng.integers(0, n0 + 1)) for _ in range(4)),
        ]:
            up = float(better(int(s1) + 1, n1 - int(s1) + 1, int(s0) + 1, n0 - int(s0) + 1))
            down = float(better(int(s0) + 1, n0 - int(s0) + 1, int(s1) + 1, n1 - int(s1) + 1))
            place = int(s1) * (n0 + 1) + int(s0)
            assert work.up[place] == pytest.approx(up, rel=2e-12, abs=0.0)
            assert work.down[place] == pytest.approx(down, rel=2e-12, abs=0.0)
            smallest = min(smallest, up)
    assert smallest < 1e-100


def test_mean_of_a_clipped_frequency_is_a_binomial_sum() -> None:
    for draws, floor, p in itertools.product(
        (1, 7, 100, 5000), (0.01, 0.2, 0.5), (0.0, 1e-9, 0.03, 0.5, 0.97, 1.0)
    ):
        counts = np.arange(draws + 1)
        literal = float(stats.binom.pmf(counts, draws, p) @ np.clip(counts / draws, floor, 1.0 - floor))
        assert clipped_frequency(p, 1.0 - p, draws, floor) == pytest.approx(literal, abs=1e-12)
    assert clipped_frequency(0.02, 0.98, 0, 0.1) == 0.1


def test_weights_given_the_successes_sum_to_one() -> None:
    """Equal arms leave every sequence of outcomes as likely under any rule: the rest is rounding."""
    for rule in (Thompson(), UCB(), PlayTheWinner(), EpsilonGreedy(), Thompson(batch_size=7, floor=0.1)):
        law = exact(rule, 60)
        total = law.by_total(np.ones(law.weights.size, dtype=bool))
        assert np.abs(total - 1.0).max() < 1e-11


def test_uniform_assignment_is_a_binomial_split() -> None:
    law = exact(Uniform(), 40)
    for place, n1, *_ in law.states():
        np.testing.assert_allclose(
            law.weights[place],
            np.exp(special.gammaln(41) - special.gammaln(n1 + 1) - special.gammaln(41 - n1)) * 0.5**40,
            rtol=1e-12,
        )
