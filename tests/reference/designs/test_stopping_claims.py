"""Numbers in docs/errata/dp_se.md and docs/theory/stopping.md: what the printed statements come to."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from adaptinf.designs.stopping.stopping_kernel import halting_sum
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.errors import ParameterError
from adaptinf.theory.stopping_bounds import (
    private_stopping_limit,
    stopping_limit,
    stopping_time_bound,
    stopping_time_closed_form,
    stopping_time_lower_bound,
)


def printed_bound(mean: float, alpha: float, beta: float, epsilon: float) -> float:
    """2000 (t_0 + t_1 + t_2) as Theorem 3.3 has them, at R = 1."""
    repeated = math.log((1 / beta) * math.log(1 / (alpha * mean)))
    t_0 = repeated / (alpha * mean) ** 2
    t_1 = repeated / (epsilon * mean)
    t_2 = math.log(1 / beta) / (epsilon * alpha * mean)
    return 2000 * (t_0 + t_1 + t_2)


# --- Sajed and Sheffet (2019), Theorem 3.3 ---


@pytest.mark.parametrize(
    ("alpha", "epsilon", "printed"), [(0.95, 100.0, -941.0), (0.92, 1e4, 98.2), (0.93, 1e4, -224.9)]
)
def test_printed_upper_bound_is_below_every_possible_stopping_time(
    alpha: float, epsilon: float, printed: float
) -> None:
    """A constant stream at the bound: the last look before t_U is far short of its threshold."""
    beta = 0.08
    bound = printed_bound(1.0, alpha, beta, epsilon)
    assert bound == pytest.approx(printed, abs=0.5)
    design = DPNAS(epsilon=epsilon, alpha=alpha, beta=beta, steps="exponential")
    rule = design.rule(1.0, 1.0)
    looks = [look for look in range(1, 20) if 2**look <= bound]
    for look in looks:
        short = halting_sum(rule, 2.0**look, float(look)) - 2.0**look
        # B + A_look <= -short: the tail of a sum of two Laplace variables of one scale
        z = short / rule.query_scale
        assert z > 5_000
        assert math.exp(-z) * (2 + z) / 4 == 0.0
        assert 5.9 < halting_sum(rule, 64.0, 6.0) - 64 < 6.9
    assert design.run([1.0] * 256, rng=0).stopping_time == 128
    held = float(stopping_time_closed_form(1.0, alpha, beta, epsilon))
    assert held > 2_000 * math.log(1 / beta) / alpha**2
    assert float(stopping_time_bound(1.0, alpha, beta, epsilon)) == 256 <= held


def test_printed_upper_bound_lacks_an_iterated_logarithm_of_epsilon() -> None:
    """At look k near log2(1/epsilon), c_t alone needs 12 log(8 k^2/beta) R/epsilon samples."""
    alpha, beta = 0.9, 0.08
    tiny = [1e-80, 1e-240]
    printed = [printed_bound(1.0, alpha, beta, e) * e for e in tiny]
    assert printed[0] == pytest.approx(6163, abs=1)
    assert printed[1] == pytest.approx(printed[0], rel=1e-12)
    held = [float(stopping_time_closed_form(1.0, alpha, beta, e)) * e for e in tiny]
    assert held[1] - held[0] == pytest.approx(2000 * math.log(3), rel=1e-6)
    needed = [float(stopping_time_bound(1.0, alpha, beta, e)) * e for e in tiny]
    assert max(needed) < printed[0]  # the gap shows only where log2(1/epsilon) is beyond e^254
    assert 12 * (math.log(8 / beta) + 2 * 254.5) > 6163 > 12 * (math.log(8 / beta) + 2 * 254)


def test_misplaced_bracket_in_the_proof() -> None:
    """log(4 log2(t/beta))/t small does not make h_t small; with beta outside the logarithm it does."""
    alpha, mean, beta, look = 0.1, 1.0, 1e-30, 18
    t = 2.0**look
    level = (alpha * mean / 18) ** 2
    assert math.log(4 * math.log2(t / beta)) / t < level
    width = math.sqrt(2 / t * math.log(16 * look**2 / beta))
    assert 3 * width / alpha > 2 * mean / 3
    assert math.log(4 * look / beta) / t > level


def test_first_half_of_fact_needs_more_than_a_above_one() -> None:
    a, b = 1.01, 1 / 17
    assert math.log(a * math.log(1 / b)) / b > 2.8
    assert math.log(a * math.log(2.8)) / 2.8 < b
    # the second half, which the proof uses, holds
    for factor, small in itertools.product((1.0001, 1.5, 10.0, 1e6), (0.0624, 1e-2, 1e-4, 1e-9)):
        x = 2 * math.log(factor * math.log(1 / small)) / small
        for point in (x, 1.5 * x, 10 * x):
            assert math.log(factor * math.log(point)) / point < small


@pytest.mark.parametrize("beta", [0.2, 0.08, 1e-3, 1e-12])
def test_steps_of_the_proof(beta: float) -> None:
    """At t = 1000 (t_0 + t_1 + t_2) each of the three terms takes at most a third of the mean."""
    for alpha, mean, epsilon in itertools.product(
        (1e-4, 0.1, 0.9, 0.999), (1e-8, 1e-2, 1.0), (1e-12, 1e-3, 1.0, 1e4)
    ):
        t = float(stopping_time_closed_form(mean, alpha, beta, epsilon)) / 2
        look = math.log2(t)
        assert 3 / alpha * math.sqrt(2 / t * math.log(16 * look**2 / beta)) <= mean / 3
        assert 48 * math.log(8 * look**2 / beta) / (epsilon * t) <= mean / 3
        assert 4 * math.log(4 / beta) / (alpha * epsilon * t) <= mean / 3


# --- Theorem 3.4 ---


def test_group_privacy_lemma_holds_up_to_an_epsilon_of_2_9() -> None:
    limit = optimize.brentq(lambda x: math.expm1(x) - 6 * x, 1.0, 5.0)
    assert limit == pytest.approx(2.918, abs=1e-3)
    # one sample, which is a with probability d or 0, reported with probabilities e^eps c and c
    d, epsilon = 1e-3, 10.0
    c = math.exp(-epsilon) / 2
    ratio = (d * math.exp(epsilon) * c + (1 - d) * c) / c
    assert ratio == pytest.approx(23.0, abs=0.1)
    assert math.exp(6 * epsilon * d) == pytest.approx(1.062, abs=1e-3)
    # it is a 10-private mechanism
    assert math.exp(epsilon) * c == pytest.approx(0.5)
    assert (1 - c) / (1 - math.exp(epsilon) * c) <= math.exp(epsilon)


def test_group_privacy_by_coupling_is_attained() -> None:
    """(1 + d (e^eps - 1))^n by counting a's, each of which multiplies the report's probability by e^eps."""
    n, d, epsilon = 12, 0.1, 0.7
    count = np.arange(n + 1)
    report = np.exp(epsilon * (count - n))
    ratio = (stats.binom.pmf(count, n, d) * report).sum() / report[0]
    assert ratio == pytest.approx((1 + d * math.expm1(epsilon)) ** n, rel=1e-12)


def test_our_lower_bound_is_the_larger_where_the_printed_one_is_proved() -> None:
    for epsilon, alpha, mean in itertools.product((1e-3, 0.1, 1.0, 2.9), (0.01, 0.5, 0.99), (0.01, 1.0)):
        asked = (mean, alpha, 0.05, epsilon)
        assert private_stopping_limit(*asked) >= stopping_time_lower_bound(*asked)
    tiny = (0.01, 0.01, 0.05, 1e-3)
    gain = private_stopping_limit(*tiny) / stopping_time_lower_bound(*tiny)
    assert gain == pytest.approx(6 * 1.01, rel=1e-3)


# --- the three functions ---


def test_closed_form_by_hand() -> None:
    inner = math.log(2.0 / (0.2 * 0.3)) / 0.05
    t_0 = 4.0 * math.log(inner) / (0.2 * 0.3) ** 2
    t_1 = 2.0 * math.log(inner) / (0.5 * 0.3)
    t_2 = 2.0 * math.log(1 / 0.05) / (0.5 * 0.2 * 0.3)
    ours = stopping_time_closed_form([-0.3, 0.0], 0.2, 0.05, 0.5, bound=2.0)
    assert ours[0] == pytest.approx(2000 * (t_0 + t_1 + t_2), rel=1e-12)
    assert ours[1] == math.inf
    without = 2000 * 4.0 * math.log(inner) / (0.2 * 0.3) ** 2
    assert stopping_time_closed_form(0.3, 0.2, 0.05, math.inf, bound=2.0) == pytest.approx(without)


@pytest.mark.parametrize("beta", [0.2, 0.08, 0.05, 1e-3, 1e-9])
def test_closed_form_leaves_room_for_a_power_of_two(beta: float) -> None:
    alpha = np.array([1e-3, 0.1, 0.5, 0.9, 0.999])[:, None, None]
    mean = np.array([1e-6, 1e-2, 0.5, 1.0])[:, None]
    epsilon = np.array([1e-9, 1e-3, 0.1, 1.0, 10.0, 1e6])
    ratio = stopping_time_bound(mean, alpha, beta, epsilon) / stopping_time_closed_form(
        mean, alpha, beta, epsilon
    )
    assert 0.001 < ratio.max() <= 0.11


def test_lower_bounds_by_hand() -> None:
    distance = 0.2 * 0.3 / (1.2 * 2.0)
    n = math.log(1 / 0.05) / (2 * math.log(1 + distance * math.expm1(0.5)))
    assert private_stopping_limit(0.3, 0.2, 0.05, 0.5, bound=2.0) == pytest.approx(n)
    p, q = 0.5 + 0.3 / 4, 0.5 + 0.3 * (0.8 / 1.2) / 4
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    ours = stopping_limit([0.3, -0.3, 2.0, 0.0], 0.2, 0.05, bound=2.0)
    assert ours[:2] == pytest.approx(0.9 * math.log(19) / divergence)
    assert ours[2] == pytest.approx(0.9 * math.log(19) / math.log(2 / (1 + 0.8 / 1.2)))
    assert ours[3] == math.inf
    # far out the logarithm is linear in epsilon, without overflow
    far = private_stopping_limit([1.0, 0.0, 1.0], 0.5, 0.05, [2000.0, 2000.0, math.inf])
    assert far[0] == pytest.approx(math.log(20) / (2 * (2000 + math.log(1 / 3))))
    assert far[1] == math.inf
    assert far[2] == 0.0


def test_lower_bound_for_every_rule_is_near_its_limit() -> None:
    alpha, beta, mean = 0.1, 0.01, 0.01
    limit = (1 + alpha) ** 2 / (2 * alpha**2 * mean**2) * (1 - 2 * beta) * math.log((1 - beta) / beta)
    assert stopping_limit(mean, alpha, beta) == pytest.approx(limit, rel=1e-3)
    assert stopping_limit(1e-6, alpha, beta) == pytest.approx(limit * 1e8, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, 0.1, 0.05, 1.0), r"mean must lie in \[-bound, bound\]"),
        ((0.5, 1.0, 0.05, 1.0), "alpha must be above 0 and below 1"),
        ((0.5, 0.1, 0.6, 1.0), "beta must be above 0 and at most 0.2"),
        ((0.5, 0.1, 0.05, 0.0), "epsilon must be above 0"),
        ((0.5, 0.1, 0.05, 1.0, -1.0), "bound must be above 0"),
    ],
)
def test_what_the_functions_refuse(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        stopping_time_closed_form(*arguments)
    with pytest.raises(ParameterError, match=message.replace("0.2", "0.25")):
        private_stopping_limit(*arguments)


# --- which steps ---


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_exponential_steps_suffice_sooner_where_means_are_small(epsilon: float | None) -> None:
    """Their logarithm is that of the number of looks, not of samples."""
    means = np.geomspace(1e-4, 1e-2, 300)
    ratio = stopping_time_bound(means, 0.1, 0.05, epsilon) / stopping_time_bound(
        means, 0.1, 0.05, epsilon, steps="every"
    )
    assert ratio.max() < 0.6
    assert np.exp(np.log(ratio).mean()) == pytest.approx(0.33, abs=0.03)
