"""The continual-sum mechanisms against literal trees whose nodes are intervals of items."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import PrivateUCB
from adaptinf.errors import ParameterError
from adaptinf.privacy.counter_noise import counter_quantiles
from adaptinf.privacy.noise import Buffer, Recorder, generator, laplace
from adaptinf.privacy.tree_sums import (
    CONTINUAL_SUMS,
    COUNTERS,
    bit_count,
    counter_scales,
    counter_slots,
    next_noise,
    noise_nodes,
    noise_row,
    noise_variance,
    top_bit,
    trailing_zeros,
)


class LiteralTree:
    """Nodes with noise of their own; the running sum at n adds the nodes that tile 1..n."""

    def __init__(self, counter: str, epsilon: float, horizon: int) -> None:
        self.counter, self.epsilon, self.horizon = counter, epsilon, horizon
        self.noise: dict[tuple[int, int], float] = {}

    def block(self, start: int, items: int, levels: int) -> list[tuple[int, int]]:
        """Dyadic intervals of a binary mechanism that began after item `start`."""
        nodes, done = [], 0
        for level in reversed(range(levels)):
            if items & (1 << level):
                nodes.append((start + done + 1, start + done + (1 << level)))
                done += 1 << level
        return nodes

    def tiling(self, count: int) -> list[tuple[int, int]]:
        if self.counter == "binary":
            return self.block(0, count, self.horizon.bit_length())
        top = int(math.log2(count))
        trunk = [(1, 1)] + [(2 ** (j - 1) + 1, 2**j) for j in range(1, top + 1)]
        return trunk + self.block(2**top, count - 2**top, top)

    def scale(self, node: tuple[int, int]) -> float:
        if self.counter == "binary":
            return self.horizon.bit_length() / self.epsilon
        first, last = node
        if last & (last - 1) == 0 and first == last // 2 + 1:
            return 2.0 / self.epsilon  # a segment that ends at a power of two
        return 2.0 * int(math.log2(last)) / self.epsilon

    def total(self, count: int, draw: Callable[[float], float]) -> float:
        nodes = self.tiling(count)
        assert sum(last - first + 1 for first, last in nodes) == count
        for node in nodes:
            if node not in self.noise:
                self.noise[node] = draw(self.scale(node))
        return sum(self.noise[node] for node in nodes)


def empty_state(horizon: int, columns: int = 1) -> np.ndarray:
    return np.zeros((1 + counter_slots(horizon), columns))


@numba.njit
def running(
    hybrid: bool, trunk: float, node: float, state: np.ndarray, column: int, counts: int, source: Any
) -> np.ndarray:
    noise = np.zeros(counts)
    for count in range(1, counts + 1):
        noise[count - 1] = next_noise(hybrid, trunk, node, state, 0, column, count, source)
    return noise


def kernel_noise(counter: str, epsilon: float, horizon: int, counts: int, source: Any) -> np.ndarray:
    trunk, node = counter_scales(counter, epsilon, horizon)
    state = empty_state(horizon)
    return running(counter == "hybrid", trunk, node, state, 0, counts, source)


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 100, 255, 256, 1000])
def test_noise_is_that_of_the_literal_tree(counter: str, horizon: int) -> None:
    rng = np.random.default_rng(horizon)
    draws = rng.laplace(size=horizon)
    buffer = Buffer(np.zeros(0), draws, np.zeros(2, dtype=np.int64))
    got = kernel_noise(counter, 0.7, horizon, horizon, buffer)
    assert buffer.positions.tolist() == [0, horizon]
    tree, left = LiteralTree(counter, 0.7, horizon), iter(draws)
    expected = [tree.total(count, lambda scale: next(left)) for count in range(1, horizon + 1)]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("horizon", [1, 6, 64, 300])
def test_scales_asked_for_are_those_of_the_literal_tree(counter: str, horizon: int) -> None:
    recorder = Recorder(np.zeros(horizon), np.zeros(horizon, dtype=np.int64), np.zeros(1, dtype=np.int64))
    assert not kernel_noise(counter, 0.4, horizon, horizon, recorder).any()
    asked: list[float] = []

    def note(scale: float) -> float:
        asked.append(scale)
        return 0.0

    tree = LiteralTree(counter, 0.4, horizon)
    for count in range(1, horizon + 1):
        tree.total(count, note)
    assert recorder.asked[0] == horizon
    np.testing.assert_allclose(recorder.scales, asked, rtol=1e-14)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 31, 32, 33, 500])
def test_binary_item_lies_in_no_more_nodes_than_levels(horizon: int) -> None:
    tree = LiteralTree("binary", 1.0, horizon)
    nodes = {node for count in range(1, horizon + 1) for node in tree.tiling(count)}
    memberships = [sum(a <= item <= b for a, b in nodes) for item in range(1, horizon + 1)]
    levels = math.floor(math.log2(horizon)) + 1
    assert max(memberships) <= levels == counter_slots(horizon)
    assert memberships[0] == levels  # the first item is in a node of every level: one fewer would not do
    assert counter_scales("binary", 2.0, horizon, sensitivity=3.0) == (0.0, pytest.approx(1.5 * levels))


def test_hybrid_item_spends_half_in_the_trunk_and_half_in_its_block() -> None:
    tree, horizon = LiteralTree("hybrid", 0.8, 0), 2**9 - 1
    nodes = {node for count in range(1, horizon + 1) for node in tree.tiling(count)}
    for item in range(1, horizon + 1):
        spent = sum(1.0 / tree.scale(node) for node in nodes if node[0] <= item <= node[1])
        assert spent <= 0.8 + 1e-12
    for k in range(1, 9):
        inside = {n for n in nodes if 2**k < n[0] and n[1] < 2 ** (k + 1)}
        assert {item for a, b in inside for item in range(a, b + 1)} == set(range(2**k + 1, 2 ** (k + 1)))
        depth = [sum(a <= item <= b for a, b in inside) for item in range(2**k + 1, 2 ** (k + 1))]
        assert len(depth) == 2**k - 1
        assert max(depth) == k


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_variance_and_nodes_count_the_literal_tree(counter: str) -> None:
    horizon, epsilon = 200, 0.6
    tree, counts = LiteralTree(counter, epsilon, horizon), np.arange(1, horizon + 1)
    exact = [sum(2 * tree.scale(node) ** 2 for node in tree.tiling(int(n))) for n in counts]
    np.testing.assert_allclose(noise_variance(counter, epsilon, horizon, counts), exact, rtol=1e-13)
    grid = counts.reshape(20, 10)
    assert noise_variance(counter, epsilon, horizon, grid).shape == (20, 10)
    for n in counts:
        trunk_terms, node_terms, level = noise_nodes(counter, int(n))
        scales = sorted(tree.scale(node) for node in tree.tiling(int(n)))
        trunk, node = counter_scales(counter, epsilon, horizon)
        assert scales == pytest.approx(sorted([trunk] * trunk_terms + [node * level] * node_terms))


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_sampled_noise_has_the_exact_variance_and_covariance(counter: str) -> None:
    """Noise at m <= n shares the nodes that both tilings have."""
    horizon, runs = 13, 40_000
    source = generator(np.random.SeedSequence(3))
    sample = np.array([kernel_noise(counter, 1.0, horizon, horizon, source) for _ in range(runs)])
    tree = LiteralTree(counter, 1.0, horizon)
    for m, n in [(1, 1), (7, 7), (13, 13), (4, 6), (5, 7), (12, 13), (3, 4), (9, 13)]:
        shared = set(tree.tiling(m)) & set(tree.tiling(n))
        exact = sum(2 * tree.scale(node) ** 2 for node in shared)
        products = sample[:, m - 1] * sample[:, n - 1]
        assert abs(products.mean() - exact) < 4.5 * products.std() / math.sqrt(runs)


def test_streams_in_columns_do_not_mix() -> None:
    trunk, node = counter_scales("hybrid", 1.0, 50)
    state, draws = empty_state(50, columns=2), np.random.default_rng(0).laplace(size=(2, 50))
    for column in (0, 1):
        buffer = Buffer(np.zeros(0), draws[column], np.zeros(2, dtype=np.int64))
        alone = kernel_noise("hybrid", 1.0, 50, 50, buffer)
        buffer.positions[:] = 0
        np.testing.assert_array_equal(running(True, trunk, node, state, column, 50, buffer), alone)


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_rows_tell_laws_apart(counter: str) -> None:
    slots = counter_slots(500)
    row_of: dict[tuple[int, int, int], int] = {}
    for count in range(1, 501):
        law = noise_nodes(counter, count)
        law = law if law[1] else (law[0], 0, law[0])
        row = noise_row(counter == "hybrid", slots, count)
        assert row_of.setdefault(law, row) == row
    assert len(set(row_of.values())) == len(row_of)


def test_bits() -> None:
    @numba.njit
    def of(value: int) -> tuple[int, int, int]:
        return trailing_zeros(value), bit_count(value), top_bit(value)

    for value in [1, 2, 3, 12, 40, 2**31, 2**40 + 2**5, 2**62 + 1]:
        text = bin(value)[2:]
        assert of(value) == (len(text) - len(text.rstrip("0")), text.count("1"), len(text) - 1)


def test_sampled_noise_passes_against_the_exact_law() -> None:
    """At count 3 of the binary counter: two Laplace(2) variables, whose distribution is known."""
    source = generator(np.random.SeedSequence(8))
    sample = np.array([kernel_noise("binary", 1.0, 3, 3, source)[2] for _ in range(20_000)])

    def exact(x: np.ndarray) -> np.ndarray:
        y = np.abs(x) / 2.0
        upper = np.exp(-y) * (y + 2.0) / 4.0
        return np.where(x > 0, 1.0 - upper, upper)

    assert stats.kstest(sample, exact).pvalue > 1e-4


def test_the_logarithmic_counter_is_the_trunk_with_all_of_epsilon() -> None:
    assert counter_scales("logarithmic", 0.5, 1000, sensitivity=3.0) == (6.0, 0.0)
    tree = LiteralTree("hybrid", 0.5, 0)
    for count in range(1, 200):
        last = 1 << (count.bit_length() - 1)
        trunk = tree.tiling(last)
        assert noise_nodes("logarithmic", count) == (len(trunk), 0, len(trunk) - 1)
        # half of the hybrid one's trunk noise: it has no block to pay for
        exact = sum(2 * (tree.scale(node) / 2.0) ** 2 for node in trunk)
        assert noise_variance("logarithmic", 0.5, 1000, np.array([count]))[0] == pytest.approx(exact)


def test_kernels_know_the_counters_that_release_at_every_count_only() -> None:
    assert COUNTERS == ("binary", "hybrid")
    assert (*COUNTERS, "logarithmic") == CONTINUAL_SUMS
    with pytest.raises(ParameterError, match="counter must be one of 'binary', 'hybrid', got 'logarithmic'"):
        PrivateUCB(epsilon=1.0, counter="logarithmic")
    with pytest.raises(ParameterError, match="counter must be one of 'binary', 'hybrid', got 'logarithmic'"):
        counter_quantiles("logarithmic", 100)


def test_unknown_counter_is_refused() -> None:
    with pytest.raises(
        ParameterError, match="must be one of 'binary', 'hybrid', 'logarithmic', got 'ternary'"
    ):
        counter_scales("ternary", 1.0, 10)


def test_generator_laplace_inside_a_kernel() -> None:
    @numba.njit
    def draw(source: Any, count: int) -> np.ndarray:
        out = np.zeros(count)
        for i in range(count):
            out[i] = laplace(source, 2.5)
        return out

    sample = draw(generator(np.random.SeedSequence(1)), 50_000)
    assert stats.kstest(sample, stats.laplace(scale=2.5).cdf).pvalue > 1e-4
