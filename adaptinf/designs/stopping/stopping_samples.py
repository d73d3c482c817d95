"""Inputs to a stopping rule applied to given data: samples, and noise, simulated or suitable for release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from numbers import Real
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.parameters import refuse
from adaptinf.privacy.noise import Buffer
from adaptinf.typing import FloatArray, IntArray

_SHOWN = 10


class ArraySamples:
    """Samples that are all available; up to `ahead` looks can be processed at a time."""

    ahead = 512

    def __init__(self, values: FloatArray) -> None:
        self._values = values
        self._position = 0

    def take(self, count: int) -> FloatArray:
        """The next `count` samples, or all that remain if there are fewer."""
        part = self._values[self._position : self._position + count]
        self._position += part.size
        return part


class IteratedSamples:
    """Samples that arrive one at a time, each only when it is needed."""

    ahead = 1

    def __init__(self, values: Iterator[Any], bound: float, replacing: bool, subject: str) -> None:
        self._values = values
        self._bound = bound
        self._replacing = replacing
        self._subject = subject
        self._position = 0

    def take(self, count: int) -> FloatArray:
        """The next `count` samples, or all that remain if there are fewer."""
        return np.fromiter(map(self._number, islice(self._values, count)), dtype=np.float64)

    def _number(self, value: Any) -> float:
        number = _number(value)
        self._position += 1
        if self._replacing and number is not None:
            return 0.0 if math.isnan(number) else number
        if number is None or not abs(number) <= self._bound:
            raise ParameterError(
                self._subject,
                [
                    f"samples must be numbers in {_interval(self._bound)}, got {value!r:.40} at position "
                    f"{self._position - 1}"
                ],
            )
        return number


def open_stream(stream: Any, bound: float, replacing: bool, subject: str) -> ArraySamples | IteratedSamples:
    """Samples from an array, list, tuple or series, all validated first, or from any other iterable."""
    array = hasattr(stream, "__array__")
    if isinstance(stream, (list, tuple)) or (array and np.ndim(stream) > 0):
        return ArraySamples(_checked(stream, bound, subject))
    if array or isinstance(stream, (str, bytes, dict)) or not isinstance(stream, Iterable):
        raise ParameterError(
            subject,
            [
                "stream must be an array, an iterable of numbers or an environment of one arm, got "
                f"{stream!r:.60}"
            ],
        )
    return IteratedSamples(iter(stream), bound, replacing, subject)


def _checked(stream: Any, bound: float, subject: str) -> FloatArray:
    array = _entries(stream)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(
            subject, [f"stream must be a single non-empty row of numbers, got shape {array.shape}"]
        )
    if array.dtype.kind == "O":
        read = [_number(value) for value in array]
        strange = np.array([number is None for number in read])
        values = np.array([0.0 if number is None else number for number in read])
    else:
        values = array.astype(np.float64)
        strange = np.zeros(array.size, dtype=np.bool_)
    problems = [
        *_listed("is not a number", array, strange),
        *_listed("is missing", array, np.isnan(values)),
        *_listed("is infinite", array, np.isinf(values)),
        *_listed(f"is outside {_interval(bound)}", array, np.isfinite(values) & (np.abs(values) > bound)),
    ]
    refuse(subject, problems)
    return values


def _entries(stream: Any) -> NDArray[Any]:
    """The stream as an array of numbers, or of objects if its entries must be examined one by one."""
    try:
        array = np.asarray(stream)
    except ValueError:
        array = np.zeros(0, dtype=object)
    if array.dtype.kind in "biuf":
        return array
    return np.fromiter(iter(stream), dtype=object)


def _listed(what: str, array: NDArray[Any], wrong: NDArray[np.bool_]) -> list[str]:
    places = np.flatnonzero(wrong)
    if not places.size:
        return []
    shown = ", ".join(str(place) for place in places[:_SHOWN])
    more = f", ... ({places.size} in total)" if places.size > _SHOWN else ""
    first = array[places[0]]
    value = first.item() if isinstance(first, np.generic) else first
    return [f"{value!r:.40} {what}: position{'s' if places.size > 1 else ''} {shown}{more}"]


def _number(value: Any) -> float | None:
    """A number, NaN if missing; None for anything else."""
    if value is None or value is pd.NA or value is pd.NaT:
        return math.nan
    if not isinstance(value, (Real, np.bool_)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value == abs(value) else -math.inf


def _interval(bound: float) -> str:
    return f"[{-bound:g}, {bound:g}]"


_LARGEST_BATCH = 1024


class Noise(Protocol):
    """A backend: its units, and a source for each of the three kinds of noise."""

    name: str

    def unit(self, bound: float) -> float:
        """The value of one unit."""

    def scale(self, sensitivity: float, epsilon: Fraction) -> float:
        """Scale of the noise, in units, that makes a statistic with this sensitivity epsilon-private."""

    def to_units(self, values: FloatArray, bound: float) -> FloatArray:
        """Samples in units."""

    def threshold(self, scale: float) -> Any:
        """Source for the noise of the threshold; scales are in units."""

    def looks(self, scale: float, count: int) -> Any:
        """Source for the noise of the next `count` looks."""

    def release(self, scale: float) -> Any:
        """Source for the noise of the final sum."""


class SimulatedNoise:
    """Floating-point noise, fast, seedable and **not private**: the kernel draws from the generator."""

    name = "simulation"

    def __init__(self, stream: np.random.Generator) -> None:
        self._stream = stream

    def unit(self, bound: float) -> float:
        """The value of one unit: samples are used unchanged."""
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
    """Integer noise from OpenDP for samples on a fixed-point grid; requires the extra ``release``.

    Integers below 53 bits are exact as floats, so the compiled halting test can also be used here.
    """

    name = "release"

    def __init__(self) -> None:
        from adaptinf.privacy import release

        self._backend = release
        self._queue = _buffer(np.zeros(0, dtype=np.int64))
        self._batch = 8

    def unit(self, bound: float) -> float:
        """The value of one unit: a grid step."""
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
        """Source for the noise of the next `count` looks; unused noise is kept for later ones."""
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
