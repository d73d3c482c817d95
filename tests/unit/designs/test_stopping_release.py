"""DPNAS with exact noise: its scales, whole sums, and decisions that follow from them in whole numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.stopping.stopping_kernel import halting_sum
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.designs.stopping.stopping_samples import ReleaseNoise, SimulatedNoise, _buffer
from adaptinf.privacy.noise import Buffer, laplace
from adaptinf.privacy.release import GRID_UNITS, to_grid
from adaptinf.simulation.replicate import block_stream, seed_sequence

STEPS = pytest.mark.parametrize("steps", ["every", "exponential"])
MOVES = 2 * GRID_UNITS
"""What one sample in [-bound, bound] can move a sum by, in units of bound / 2^20."""


class Noted(ReleaseNoise):
    """Exact noise, which is written down in the order of its use."""

    def __init__(self) -> None:
        super().__init__()
        self.scales: list[float] = []
        self.sources: list[Buffer] = []

    def _noted(self, scale: float, source: Buffer) -> Buffer:
        self.scales.append(scale)
        if not any(source is one for one in self.sources):
            self.sources.append(source)
        return source

    def threshold(self, scale: float) -> Buffer:
        return self._noted(scale, super().threshold(scale))

    def looks(self, scale: float, count: int) -> Buffer:
        return self._noted(scale, super().looks(scale, count))

    def release(self, scale: float) -> Buffer:
        return self._noted(scale, super().release(scale))

    def used(self) -> list[int]:
        """What was used: the noise of the threshold, of the looks, and of the sum."""
        taken = [source.noises[: source.positions[1]].tolist() for source in self.sources]
        return [int(noise) for noise in itertools.chain(*taken)]


class Rehearsed(SimulatedNoise):
    """Simulated draws in the units of a release; their scales are whole multiples of a power of two."""

    def unit(self, bound: float) -> float:
        return bound / GRID_UNITS

    def to_units(self, values: Any, bound: float) -> Any:
        return to_grid(np.clip(values, -bound, bound), bound).astype(np.float64)

    def _one(self, scale: float) -> Buffer:
        return _buffer(np.array([laplace(self._stream, scale / GRID_UNITS) * GRID_UNITS]))

    def threshold(self, scale: float) -> Any:
        return self._one(scale)

    def looks(self, scale: float, count: int) -> Any:
        assert count == 1
        return self._one(scale)

    def release(self, scale: float) -> Any:
        return self._one(scale)


def test_exact_scales_spend_no_more_than_epsilon_and_hardly_less() -> None:
    """12, 12 and 4 times 2^20 over epsilon, rounded up: in rational numbers the parts make up epsilon."""
    source, loss = ReleaseNoise(), Fraction(0)
    for epsilon in [1.0, 3.0, 0.7, 1e-5, *np.random.default_rng(0).uniform(0.01, 5.0, 2_000).tolist()]:
        rule = DPNAS(epsilon=epsilon, alpha=0.2, beta=0.1, bound=3.0).rule(
            float(GRID_UNITS), 3.0 / GRID_UNITS, source.scale
        )
        whole = Fraction(epsilon)
        for scale, times in ((rule.threshold_scale, 12), (rule.query_scale, 12), (rule.release_scale, 4)):
            exact = times * GRID_UNITS / whole
            assert exact <= Fraction(scale) <= exact * (1 + Fraction(1, 2**52))
        spent = Fraction(MOVES) / Fraction(rule.threshold_scale)
        spent += 2 * Fraction(MOVES) / Fraction(rule.query_scale)
        spent += Fraction(MOVES) / Fraction(rule.release_scale)
        assert spent <= whole
        loss = max(loss, 1 - spent / whole)
    assert loss < Fraction(1, 2**51)


def test_a_sample_moves_whole_sums_by_at_most_the_sensitivity() -> None:
    """Streams that differ in one sample, which may be anything: out of range, between units, at the ends."""
    rng, source, most = np.random.default_rng(1), ReleaseNoise(), 0
    for bound in (1.0, 0.3, 7.0):
        for _ in range(300):
            first = rng.uniform(-1.2 * bound, 1.2 * bound, 40)
            second, place = first.copy(), int(rng.integers(40))
            second[place] = rng.choice([-bound, bound, np.inf, -np.inf, rng.normal()])
            first[place] = -np.sign(second[place]) * bound if rng.random() < 0.5 else first[place]
            units = np.array([source.to_units(stream, bound) for stream in (first, second)])
            assert np.array_equal(units, np.rint(units))
            sums = np.cumsum(units, axis=1)
            most = max(most, int(np.abs(np.abs(sums[0]) - np.abs(sums[1])).max()))
            assert int(np.abs(sums[0] - sums[1]).max()) <= MOVES
    assert most <= MOVES


def test_the_sensitivity_is_attained() -> None:
    units = ReleaseNoise().to_units(np.array([[0.3, 0.3], [-0.3, 0.3]]), 0.3).sum(axis=1)
    assert units[0] - units[1] == MOVES


@STEPS
def test_decisions_follow_from_whole_sums_and_noise_in_rational_numbers(steps: str) -> None:
    """Literally: it halts at the first look with |S| - B - A >= the threshold, and puts out (S + L) / t."""
    rule = DPNAS(epsilon=1.7, alpha=0.4, beta=0.1, bound=0.3, steps=steps)
    rng = np.random.default_rng(3)
    for seed in range(3):
        samples = rng.uniform(-0.02, 0.3, 40_000)
        source = Noted()
        result = rule._run(iter(samples), None, None, source)
        assert result.stopped, seed
        own = rule.rule(float(GRID_UNITS), 0.3 / GRID_UNITS, source.scale)
        sums = np.cumsum([round(x / 0.3 * GRID_UNITS) for x in samples.tolist()])
        drawn = source.used()
        threshold, looks, last = drawn[0], drawn[1:-1], drawn[-1]
        times = range(1, 40_001) if steps == "every" else [2**k for k in range(1, 16)]
        for look, (time, noise) in enumerate(zip(times, looks, strict=False), 1):
            needed = Fraction(halting_sum(own, float(time), float(look)))
            halts = Fraction(abs(int(sums[time - 1])) - threshold - noise) >= needed
            assert halts == (time == result.stopping_time)
        assert len(looks) == look
        assert result.estimate == 0.3 / GRID_UNITS * (int(sums[time - 1]) + last) / time


@STEPS
@pytest.mark.parametrize("epsilon", [0.75, 3.0, 1.5])
def test_on_the_noise_of_a_simulation_a_release_is_that_simulation_bit_for_bit(
    steps: str, epsilon: float
) -> None:
    rule = DPNAS(epsilon=epsilon, alpha=0.4, beta=0.2, steps=steps)
    samples = np.random.default_rng(2).integers(-GRID_UNITS // 8, GRID_UNITS, 40_000) / GRID_UNITS
    for seed in range(3):
        simulated = rule.run(iter(samples), rng=seed)
        noise = Rehearsed(block_stream(seed_sequence(seed), 0))
        released = rule._run(iter(samples), None, None, noise)
        assert simulated.stopped
        assert (released.estimate, released.stopping_time) == (simulated.estimate, simulated.stopping_time)


def test_every_node_has_the_law_of_its_promise() -> None:
    """Threshold, looks and sum over 600 runs: discrete Laplace of scale 12, 12 and 4 over epsilon."""
    rule, samples = DPNAS(epsilon=2.0, alpha=0.5, beta=0.3, steps="exponential"), np.full(2_048, 0.9)
    drawn = []
    for _ in range(600):
        source = Noted()
        assert rule._run(samples, None, None, source).stopped
        assert set(source.scales[1:-1]) == {source.scales[1]}
        drawn.append(source.used())
    parts = [[run[0] for run in drawn], [look for run in drawn for look in run[1:-1]]]
    parts.append([run[-1] for run in drawn])
    for noises, times in zip(parts, (12, 12, 4), strict=True):
        scale = times * GRID_UNITS / 2.0
        assert stats.kstest(np.array(noises) / scale, stats.laplace().cdf).pvalue > 1e-6
        sizes = np.abs(noises) / scale
        assert abs(float(sizes.mean()) - 1.0) < 5.0 / math.sqrt(sizes.size)
    assert abs(stats.pearsonr(parts[0], parts[2])[0]) < 5.0 / math.sqrt(600.0)
