"""Audits of the low-order bits of released floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.audit.privacy.lower_bound import bit_codes, lowest_bit
from adaptinf.privacy import Counter, Gaussian, Laplace

MECHANISMS: dict[str, Any] = {
    "laplace": Laplace(epsilon=1.0, sensitivity=2.0),
    "gaussian": Gaussian(epsilon=1.0, delta=0.01),
    "classical": Gaussian(epsilon=0.9, delta=0.01, calibration="classical"),
    "binary": Counter(epsilon=1.0, mechanism="binary", horizon=31),
    "hybrid": Counter(epsilon=1.0),
    "normal": Counter(epsilon=1.0, delta=0.01, mechanism="binary", horizon=15, dimension=2, noise="gaussian"),
    "wide": Counter(epsilon=1.0, low=-2.0, high=3.0),
}
BINARY = MECHANISMS["binary"]


class TestDigits:
    def test_lowest_bits(self) -> None:
        values = [1.0, -0.75, 6.0, 0.1, 2.0**-1074, -(2.0**-1022), 0.0, 2.0**1023]
        expected = [0, -2, 1, -55, -1074, -1022, 1024, 1023]
        assert lowest_bit(values).tolist() == expected
        for value, exponent in zip(values[:-2], expected[:-2], strict=True):
            assert math.ldexp(value, -exponent) % 2 == 1
        # alike: sign, power of two below, and lowest bit
        codes = bit_codes([[1.25, 1.75, -1.25, 1.5, 2.25, np.nan, 0.0, 1024.0 + 2.0**-10]])[0]
        assert codes[0] == codes[1] == -codes[2]
        assert np.unique(codes).size == 7

    @pytest.mark.parametrize(
        "name", ["laplace", "gaussian", "classical", "binary", "hybrid", "normal", "wide"]
    )
    def test_simulated_floats_give_themselves_away(self, name: str) -> None:
        result = epsilon_lower_bound(MECHANISMS[name], view="digits", runs=100_000, rng=0)
        assert result.refuted
        assert result.epsilon > 3.0

    def test_the_leak_of_a_laplace_variable_at_a_million_runs(self) -> None:
        target = Laplace(epsilon=1.0)
        result = epsilon_lower_bound(target, view="digits", runs=1_000_000, rng=0)
        assert result.epsilon > 8.3
        assert result.hits[1] == 0
        assert "with lowest set bit 2^-5" in result.event
        assert "other such kinds" in result.event
        unrounded = epsilon_lower_bound(target, decimals=None, runs=200_000, rng=0)
        assert unrounded.epsilon > 4.0
        rounded = epsilon_lower_bound(target, decimals=9, runs=200_000, rng=0)
        assert not rounded.refuted

    def test_unrounded_scores_of_a_counter_fail_as_well(self) -> None:
        assert epsilon_lower_bound(BINARY, decimals=None, runs=100_000, rng=0).refuted
        assert not epsilon_lower_bound(BINARY, runs=100_000, rng=0).refuted

    @pytest.mark.parametrize("view", ["digits", "releases"])
    def test_integer_noise_passes_unrounded(self, view: str) -> None:
        for target, runs, floor in (
            (Laplace(epsilon=1.0), 30_000, 0.85),
            (Gaussian(epsilon=1.0, delta=0.01), 5_000, 0.2),
            (Counter(epsilon=1.0, mechanism="binary", horizon=3, backend="release"), 2_000, 0.3),
        ):
            backend = None if isinstance(target, Counter) else "release"
            result = epsilon_lower_bound(target, view=view, backend=backend, decimals=None, runs=runs)
            assert not result.refuted
            if view == "releases":
                assert result.epsilon > floor

    def test_infinite_outputs_are_a_kind_of_their_own(self) -> None:
        assert len(set(bit_codes([[0.0], [math.inf], [-math.inf], [math.nan], [1e308]])[:, 0])) == 5

        def overflowing(side: int, runs: int, rng: np.random.Generator) -> Any:
            return np.where(rng.random(runs) < 0.5, math.inf if side else -math.inf, 0.0)[:, None]

        found = epsilon_lower_bound(overflowing, view="digits", runs=10_000, rng=0)
        assert found.epsilon > 3.0
        assert found.event in ("the output is plus infinity", "the output is minus infinity")

    def test_digits_of_a_callable(self) -> None:
        def noisy(side: int, runs: int, rng: np.random.Generator) -> Any:
            return side + rng.laplace(size=runs)

        found = epsilon_lower_bound(noisy, view="digits", runs=10_000, rng=0)
        assert found.epsilon > 4.0
        assert found.event.startswith("the output is ")
