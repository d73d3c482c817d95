"""The closed bound on sums of Laplace variables, and private UCB that allows for its noise by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.errors import ParameterError
from adaptinf.privacy.counter_noise import (
    counter_quantiles,
    counter_tail_bounds,
    laplace_sum_quantile,
    laplace_sum_tail_bound,
)
from adaptinf.privacy.tree_sums import noise_nodes, noise_row
from adaptinf.simulation.environments import BernoulliArms

ARMS = BernoulliArms([0.9, 0.5, 0.2])


def literal_bound(scales: list[float], failure: float) -> float:
    """The smallest x = v sqrt(8 L) of the lemma: v above the root sum of squares and sqrt(L) max b."""
    effort = math.log(1.0 / failure)
    v = max(math.sqrt(sum(b * b for b in scales)), math.sqrt(effort) * max(scales))
    return v * math.sqrt(8.0 * effort)


def test_the_formula_and_groups_without_terms() -> None:
    scales = np.array([[2.0, 0.5, 99.0], [2.0, 0.5, 99.0], [0.1, 0.1, 0.2]])
    terms = np.array([[1.0, 3.0, 0.0], [0.0, 9.0, 0.0], [50.0, 1.0, 7.0]])
    failures = np.array([1e-3, 0.4, 1e-12])
    got = laplace_sum_tail_bound(np.log(failures), scales, terms)
    expected = [
        literal_bound([2.0] + [0.5] * 3, 1e-3),
        literal_bound([0.5] * 9, 0.4),
        literal_bound([0.1] * 51 + [0.2] * 7, 1e-12),
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.parametrize("both", [False, True])
def test_the_bound_is_above_the_exact_quantile(both: bool) -> None:
    """Random laws of one to forty variables, failures from .5 down to 1e-15."""
    rng = np.random.default_rng(0)
    n = 400
    scales = rng.lognormal(0.0, 1.0, size=(n, 2))
    terms = np.stack([rng.integers(1, 21, n), rng.integers(0, 21, n)], axis=1).astype(float)
    log_failure = -rng.uniform(math.log(2.0), 35.0, n)
    one_side = log_failure - math.log(2.0) if both else log_failure
    exact = laplace_sum_quantile(one_side, scales, terms)
    bound = laplace_sum_tail_bound(one_side, scales, terms)
    assert (bound > exact).all()
    assert (bound < 4.5 * exact)[one_side < -2.0].all()


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
def test_tables_hold_the_bound_of_every_law(counter: str) -> None:
    horizon = 3_000
    grid, bounds = counter_tail_bounds(counter, horizon)
    other, quantiles = counter_quantiles(counter, horizon)
    np.testing.assert_array_equal(grid, other)
    assert bounds.shape == quantiles.shape
    slots = horizon.bit_length()
    for count in (1, 2, 3, 4, 6, 7, 31, 32, 100, 2_047, 2_999):
        trunk_terms, node_terms, level = noise_nodes(counter, count)
        node = slots if counter == "binary" else 2.0 * level
        scales = [2.0] * trunk_terms + [node] * node_terms
        row = noise_row(counter == "hybrid", slots, count)
        literal = [literal_bound(scales, 1.0 / t) for t in grid]
        np.testing.assert_allclose(bounds[:, row], literal, rtol=1e-12)
        assert (bounds[:, row] > quantiles[:, row]).all()


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
def test_how_much_wider_than_the_quantile_the_bound_is(counter: str) -> None:
    grid, bounds = counter_tail_bounds(counter, 1_000_000)
    quantiles = counter_quantiles(counter, 1_000_000)[1]
    occurring = quantiles[-1] > 0.0
    ratio = (bounds / np.where(occurring, quantiles, 1.0))[grid >= 100.0][:, occurring]
    assert 1.3 < ratio.min() < 1.4
    assert 3.3 < ratio.max() < 3.4


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
def test_private_ucb_decides_by_the_bound(counter: str) -> None:
    horizon, epsilon = 700, 0.8
    design = PrivateUCB(epsilon=epsilon, counter=counter, noise_width="tail-bound")
    differing = 0
    for seed in range(3):
        log = design.run(ARMS, horizon=horizon, rng=seed)
        pulls, sums = np.zeros(3, dtype=int), np.zeros(3)
        for t, (arm, value) in enumerate(zip(log.arrays.action, log.releases["value"], strict=True), 1):
            if t > 3:
                allowance = []
                for count in pulls:
                    trunk_terms, node_terms, level = noise_nodes(counter, int(count))
                    node = horizon.bit_length() if counter == "binary" else 2.0 * level
                    scales = [2.0] * trunk_terms + [node] * node_terms
                    allowance.append(literal_bound(scales, 1.0 / t) / epsilon)
                index = (sums + allowance) / pulls + np.sqrt(2.0 * math.log(t) / pulls)
                best = int(np.argmax(index))
                differing += arm != best
                assert index[best] - index[arm] <= 4e-3 * max(np.array(allowance) / pulls)
            pulls[arm] += 1
            sums[arm] = value
    assert differing <= 0.01 * 3 * horizon


def test_a_wider_allowance_costs_regret_and_no_privacy() -> None:
    bound = PrivateUCB(epsilon=1.0, counter="binary", noise_width="tail-bound")
    exact = PrivateUCB(epsilon=1.0, counter="binary")
    assert bound.guarantee(500, 3) == exact.guarantee(500, 3)
    regrets = [design.replicate(ARMS, 20_000, 64, rng=0).regret.mean() for design in (bound, exact)]
    assert regrets[0] > 1.2 * regrets[1]


def test_where_the_width_of_the_noise_is_refused() -> None:
    with pytest.raises(ParameterError, match="must be one of 'quantile', 'tail-bound', got 'wide'"):
        PrivateUCB(epsilon=1.0, noise_width="wide")
    with pytest.raises(ParameterError, match="noise_width must be omitted: it applies only to the corrected"):
        PrivateUCB(epsilon=1.0, calibration="published", noise_width="tail-bound")
