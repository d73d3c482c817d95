"""The noise of a stopping rule on given data: simulated, or integers that may be released."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from adaptinf.privacy.noise import Buffer
from adaptinf.typing import FloatArray, IntArray

_LARGEST_BATCH = 1024


class Noise(Protocol):
    """A backend: the units that it works in, and a source for each of the three kinds of noise."""

    name: str

    def unit(self, bound: float) -> float:
        """What one unit is worth."""

    def scale(self, sensitivity: float, epsilon: Fraction) -> float:
        """Scale of the noise, in units, that makes a statistic of this sensitivity epsilon-private."""

    def to_units(self, values: FloatArray, bound: float) -> FloatArray:
        """Samples in units."""

    def threshold(self, scale: float) -> Any:
        """Source for the noise of the threshold; scales are in units."""

    def looks(self, scale: float, count: int) -> Any:
        """Source for the noise of the next `count` looks."""

    def release(self, scale: float) -> Any:
        """Source for the noise of the final sum."""


class SimulatedNoise:
    """Seedable floating-point noise, fast and **not private**: the kernel draws from the generator itself."""

    name = "simulation"

    def __init__(self, stream: np.random.Generator) -> None:
        self._stream = stream

    def unit(self, bound: float) -> float:
        """What one unit is worth: samples are taken as they are."""
        return 1.0

    def scale(self, sensitivity: float, epsilon: Fraction) -> float:
        """Scale of the noise, in units."""
        return sensitivity / float(epsilon)

    def to_units(self, values: FloatArray, bound: float) -> FloatArray:
        """Samples in units."""
        return values

    def threshold(self, scale: float) -> np.random.Generator:
        """Source for the noise of the threshold."""
        return self._stream

    def looks(self, scale: float, count: int) -> np.random.Generator:
        """Source for the noise of the next `count` looks."""
        return self._stream

    def release(self, scale: float) -> np.random.Generator:
        """Source for the noise of the final sum."""
        return self._stream


class ReleaseNoise:
    """Integer noise from OpenDP for samples on a fixed-point grid; needs the extra ``release``.

    Integers of fewer than 53 bits are exact as floats, so that the compiled halting test serves here too.
    """

    name = "release"

    def __init__(self) -> None:
        from adaptinf.privacy import release

        self._backend = release
        self._queue = _buffer(np.zeros(0, dtype=np.int64))
        self._batch = 8

    def unit(self, bound: float) -> float:
        """What one unit is worth: a grid step."""
        return bound / self._backend.GRID_UNITS

    def scale(self, sensitivity: float, epsilon: Fraction) -> float:
        """Scale of the noise, in units, never rounded down."""
        return self._backend.scale_above(int(sensitivity), epsilon)

    def to_units(self, values: FloatArray, bound: float) -> FloatArray:
        """Samples in units: clipped and rounded to the grid."""
        return self._backend.to_grid(np.clip(values, -bound, bound), bound).astype(np.float64)

    def threshold(self, scale: float) -> Buffer:
        """Source for the noise of the threshold."""
        return _buffer(self._backend.discrete_laplace(scale, 1))

    def looks(self, scale: float, count: int) -> Buffer:
        """Source for the noise of the next `count` looks; what is not used is kept for later ones."""
        unused = self._queue.noises[self._queue.positions[1] :]
        if unused.size < count:
            self._batch = min(2 * self._batch, _LARGEST_BATCH)
            fresh = self._backend.discrete_laplace(scale, max(count, self._batch))
            self._queue = _buffer(np.concatenate([unused, fresh]))
        return self._queue

    def release(self, scale: float) -> Buffer:
        """Source for the noise of the final sum."""
        return _buffer(self._backend.discrete_laplace(scale, 1))


def _buffer(noises: FloatArray | IntArray) -> Buffer:
    return Buffer(np.zeros(0), np.asarray(noises, dtype=np.float64), np.zeros(2, dtype=np.int64))
