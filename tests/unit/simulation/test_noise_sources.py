"""Generator, Buffer and Recorder as sources of noise, in Python and in compiled code."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from adaptinf.privacy.noise import (
    GAUSSIAN,
    LAPLACE,
    Buffer,
    Nodes,
    Recorder,
    gaussian,
    generator,
    laplace,
    named_laplace,
    uniform,
)


@numba.njit
def compiled_draws(source: Any, scales: np.ndarray) -> np.ndarray:
    out = np.zeros((scales.size, 2))
    for i in range(scales.size):
        out[i, 0] = laplace(source, scales[i])
        out[i, 1] = uniform(source)
    return out


def python_draws(source: Any, scales: np.ndarray) -> np.ndarray:
    return np.array([[laplace(source, scale), uniform(source)] for scale in scales])


def buffer() -> Buffer:
    return Buffer(np.array([0.25, 0.5, 0.75]), np.array([-3.0, 2.0, 7.0]), np.zeros(2, dtype=np.int64))


@pytest.mark.parametrize("draws", [compiled_draws, python_draws])
def test_a_buffer_hands_out_its_values_in_order(draws: Any) -> None:
    source = buffer()
    got = draws(source, np.array([1.0, 100.0]))
    np.testing.assert_array_equal(got, [[-3.0, 0.25], [2.0, 0.5]])  # already scaled: the scale is not used
    assert source.positions.tolist() == [2, 2]
    np.testing.assert_array_equal(draws(source, np.array([5.0])), [[7.0, 0.75]])
    assert source.positions.tolist() == [3, 3]


@pytest.mark.parametrize("use_compiled", [True, False])
def test_a_recorder_notes_scales_and_returns_no_noise(use_compiled: bool) -> None:
    @numba.njit
    def ask(source: Any) -> float:
        return laplace(source, 1.5) + gaussian(source, 4.0)

    source = Recorder(np.full(3, -1.0), np.full(3, -1), np.zeros(1, dtype=np.int64))
    total = ask(source) if use_compiled else laplace(source, 1.5) + gaussian(source, 4.0)
    assert total == 0.0
    assert source.asked[0] == 2
    assert source.scales.tolist() == [1.5, 4.0, -1.0]
    assert source.laws.tolist() == [LAPLACE, GAUSSIAN, -1]


@pytest.mark.parametrize("use_compiled", [True, False])
def test_a_buffer_hands_out_normal_noise_like_any_other(use_compiled: bool) -> None:
    @numba.njit
    def ask(source: Any) -> float:
        return gaussian(source, 100.0)

    source = buffer()
    assert (ask(source) if use_compiled else gaussian(source, 100.0)) == -3.0
    assert source.positions.tolist() == [0, 1]


@pytest.mark.parametrize("use_compiled", [True, False])
def test_a_generator_draws_normal_noise_of_the_scale(use_compiled: bool) -> None:
    def ask(source: Any, out: Any) -> None:
        for row in range(out.shape[0]):
            out[row] = gaussian(source, 3.0)

    out = np.empty(40_000)
    (numba.njit(ask) if use_compiled else ask)(generator(np.random.SeedSequence(8)), out)
    assert stats.kstest(out, stats.norm(scale=3.0).cdf).pvalue > 1e-4


def test_python_and_compiled_code_draw_the_same_numbers() -> None:
    scales = np.linspace(0.1, 9.0, 200)
    one = compiled_draws(generator(np.random.SeedSequence(5)), scales)
    other = python_draws(generator(np.random.SeedSequence(5)), scales)
    np.testing.assert_allclose(one, other, rtol=1e-14)


def test_generator_draws_have_their_laws() -> None:
    scales = np.full(40_000, 3.0)
    got = compiled_draws(generator(np.random.SeedSequence(7)), scales)
    assert stats.kstest(got[:, 0], stats.laplace(scale=3.0).cdf).pvalue > 1e-4
    assert stats.kstest(got[:, 1], "uniform").pvalue > 1e-4
    signs = np.sign(got[:, 0])
    assert abs(np.corrcoef(signs, np.abs(got[:, 0]))[0, 1]) < 4.0 / math.sqrt(scales.size)
    assert abs(np.corrcoef(got[:, 0], got[:, 1])[0, 1]) < 4.0 / math.sqrt(scales.size)


def test_the_generator_is_a_pure_function_of_its_seed() -> None:
    first, again, other = (generator(np.random.SeedSequence(s)).random(5) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("use_compiled", [True, False])
def test_nodes_are_named_and_given_out_as_far_as_they_are_known(use_compiled: bool) -> None:
    def ask(source: Any) -> float:
        nodes = named_laplace(source, 2.0, 1, 7) + 10.0 * named_laplace(source, 3.0, 0, 4)
        return nodes + 100.0 * uniform(source)

    coins = np.random.default_rng(1)
    source = Nodes(
        coins, np.array([5.0, 0.0]), np.zeros(2), np.zeros((2, 2), np.int64), np.zeros(1, np.int64)
    )
    total = numba.njit(ask)(source) if use_compiled else ask(source)
    assert total == 5.0 + 100.0 * np.random.default_rng(1).random()
    assert source.asked[0] == 2
    assert source.scales.tolist() == [2.0, 3.0]
    assert source.names.tolist() == [[1, 7], [0, 4]]
    if use_compiled:
        numba.njit(ask)(source)
        assert source.asked[0] == 4  # beyond the room it counts, and writes nothing
    generator_source = np.random.default_rng(2)
    assert named_laplace(generator_source, 2.0, 0, 1) == laplace(np.random.default_rng(2), 2.0)
