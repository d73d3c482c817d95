"""What one participant can move, by brute force: the constants under every Laplace scale."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from adaptinf.designs import DPConSE
from adaptinf.privacy.tree_sums import counter_scales, noise_nodes
from adaptinf.simulation.environments import Tableau
from adaptinf.typing import FloatArray

N_FEATURES = 3
RECORDS = tuple(itertools.product(range(N_FEATURES), (0.0, 1.0), (0.0, 1.0)))
EPSILON = 1.0
DESIGN = DPConSE(epsilon=EPSILON, first_window=8)
BUDGETS = {"contrast_sum": 0.6 * EPSILON, "arrivals": 0.4 * EPSILON}
HALF = 5
VARYING = {"first half": (1, 3), "second half": (HALF + 1, HALF + 3)}


@functools.cache
def releases_of_all_databases(half: str, seed: int) -> dict[str, FloatArray]:
    """Releases at the end of a half, shape (records, records, features): two participants take every record.

    The seed fixes everyone's coins and the noise, which cancels in the difference of two databases.
    """
    contexts = np.array([0, 1, 2, 1, 0] * 2)
    rewards = np.tile([[0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 0.0], [1.0, 0.5]], (2, 1))
    released = {name: np.empty((len(RECORDS), len(RECORDS), N_FEATURES)) for name in BUDGETS}
    first, second = VARYING[half]
    at_round = HALF if half == "first half" else 2 * HALF
    for (i, one), (j, other) in itertools.product(enumerate(RECORDS), repeat=2):
        contexts[[first, second]] = one[0], other[0]
        rewards[first], rewards[second] = one[1:], other[1:]
        log = DESIGN.run(Tableau(rewards, contexts, reward_range=(0, 1)), horizon=2 * HALF, rng=seed)
        rows = log.releases[log.releases["round"] == at_round]
        for name, values in released.items():
            of_name = rows[rows["name"] == name].sort_values("group")
            assert list(of_name["group"]) == [0, 1, 2]
            values[i, j] = of_name["value"]
    return released


def moves(values: FloatArray) -> FloatArray:
    """L1 distances of neighbours, shape (2, records, records, records): replaced, by what, beside what."""
    first = np.abs(values[:, None] - values[None]).sum(axis=-1)
    second = np.abs(values[:, :, None] - values[:, None]).sum(axis=-1)
    return np.stack([first, np.moveaxis(second, 0, 2)])


SAME_FEATURE = np.equal.outer([record[0] for record in RECORDS], [record[0] for record in RECORDS])


@pytest.mark.slow
@pytest.mark.parametrize("half", VARYING)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_record_moves_sums_by_one_and_counts_by_two(half: str, seed: int) -> None:
    released = releases_of_all_databases(half, seed)
    sums, counts = moves(released["contrast_sum"]), moves(released["arrivals"])
    assert sums.max() == pytest.approx(1.0)
    assert counts.max() == pytest.approx(2.0)
    loss = BUDGETS["contrast_sum"] * sums + 0.5 * BUDGETS["arrivals"] * counts
    assert loss.max() == pytest.approx(EPSILON)


@pytest.mark.parametrize("half", VARYING)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_reward_moves_one_sum_by_one_and_no_count(half: str, seed: int) -> None:
    released = releases_of_all_databases(half, seed)
    sums, counts = (moves(released[name])[:, SAME_FEATURE] for name in ("contrast_sum", "arrivals"))
    assert sums.max() == pytest.approx(1.0)
    assert counts.max() < 1e-9
    loss = DESIGN.reward_guarantee(2 * HALF, 2)
    assert loss is not None
    assert BUDGETS["contrast_sum"] * sums.max() == pytest.approx(loss.epsilon)


def test_scales_are_sensitivities_over_budgets() -> None:
    log = DESIGN.run(Tableau(np.zeros((10, 2)), [0, 1, 2, 0, 1] * 2, reward_range=(0, 1)), horizon=10, rng=0)
    scales = log.releases.groupby("name")["scale"].unique()
    assert scales["contrast_sum"] == pytest.approx([1.0 / BUDGETS["contrast_sum"]])
    assert scales["arrivals"] == pytest.approx([2.0 / BUDGETS["arrivals"]])


# --- continual sums ---

Node = tuple[int, int]


def dyadic_nodes(count: int, start: int = 0) -> list[Node]:
    """Intervals (a, b] of the binary expansion of `count`, shifted by `start`."""
    nodes, begin = [], 0
    for level in reversed(range(count.bit_length())):
        if count >> level & 1:
            nodes.append((start + begin, start + begin + (1 << level)))
            begin += 1 << level
    return nodes


def sum_nodes(counter: str, epsilon: float, horizon: int, count: int) -> dict[Node, float]:
    """The noisy nodes that make up the sum at `count`, with their scales."""
    trunk, node = counter_scales(counter, epsilon, horizon)
    if counter == "binary":
        return dict.fromkeys(dyadic_nodes(count), node)
    top = count.bit_length() - 1
    segments = {((1 << k) >> 1, 1 << k): trunk for k in range(top + 1)}
    block = dict.fromkeys(dyadic_nodes(count - (1 << top), start=1 << top), node * top)
    return segments | block


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 64, 100])
def test_an_item_costs_a_counter_at_most_epsilon(counter: str, horizon: int) -> None:
    epsilon = 0.5
    nodes: dict[Node, float] = {}
    for count in range(1, horizon + 1):
        parts = sum_nodes(counter, epsilon, horizon, count)
        assert sorted(item for a, b in parts for item in range(a + 1, b + 1)) == list(range(1, count + 1))
        nodes |= parts
    costs = [
        sum(1.0 / scale for (a, b), scale in nodes.items() if a < item <= b) for item in range(1, horizon + 1)
    ]
    assert max(costs) <= epsilon * (1 + 1e-12)
    if counter == "binary" or horizon >= 4:
        assert max(costs) == pytest.approx(epsilon)


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_noise_nodes_counts_the_nodes_of_a_sum(counter: str) -> None:
    horizon = 200
    trunk, node = counter_scales(counter, 1.0, horizon)
    for count in range(1, horizon + 1):
        scales = list(sum_nodes(counter, 1.0, horizon, count).values())
        trunk_terms, node_terms, level = noise_nodes(counter, count)
        assert sorted(scales) == pytest.approx(sorted([trunk] * trunk_terms + [node * level] * node_terms))


def test_an_item_of_a_full_tree_lies_in_one_node_more_than_the_logarithm() -> None:
    nodes = {node for count in range(1, 65) for node in dyadic_nodes(count)}
    assert max(sum(a < item <= b for a, b in nodes) for item in range(1, 65)) == 7
