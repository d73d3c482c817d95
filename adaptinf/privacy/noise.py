"""Sources of a kernel's random numbers.

A kernel does not distinguish whether its noise is drawn now or was drawn before: it calls ``laplace(source,
scale)``, ``gaussian(source, scale)`` and ``uniform(source)``, and the type of ``source`` decides.

A ``Generator`` gives a fresh draw: the simulation backend, which is fast, seedable and **not private**. The
other sources are the following:

- `Buffer`: the next value that was drawn in advance.
- `Recorder`: zero, after the scale that was requested has been recorded.
- `Nodes`, by ``named_laplace``: the noise of a named node, or zero if it is not known yet.
- `Told`: no noise, but sums that already include theirs, which a kernel uses in place of its own.
- `Fixed`: uniform numbers that are all the same, and no noise, so that a choice is made again from what was
  released.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from adaptinf.typing import FloatArray, IntArray

LAPLACE, GAUSSIAN = range(2)
"""Distributions of noise, as recorded by a `Recorder`."""


class Buffer(NamedTuple):
    """Values drawn in advance, returned in order; uniforms (n,), noises (m,), positions (2,)."""

    uniforms: FloatArray
    noises: FloatArray
    positions: IntArray


class Recorder(NamedTuple):
    """Records the distributions and scales of requested noise; scales (m,), laws (m,), asked (1,)."""

    scales: FloatArray
    laws: IntArray
    asked: IntArray


class Nodes(NamedTuple):
    """Noise of named nodes, as far as it is known, and the coins of a run.

    Shapes: values, scales (room,), names (room, 2), asked (1,), the number of requests.
    """

    coins: np.random.Generator
    values: FloatArray
    scales: FloatArray
    names: IntArray
    asked: IntArray


class Told(NamedTuple):
    """Sums with their noise, computed elsewhere in integers; values, scales (n,), place (1,)."""

    values: FloatArray
    scales: FloatArray
    place: IntArray


class Fixed(NamedTuple):
    """A constant value for all coins; if a choice requests noise, it gets a value that is not released."""

    coin: float


def laplace(source: Any, scale: float) -> float:
    """One Laplace draw with the given scale from a source."""
    if isinstance(source, Buffer):
        return float(_buffer_noise(source, scale))
    if isinstance(source, Recorder):
        return float(_recorder_laplace(source, scale))
    if isinstance(source, Fixed):
        return float(_no_noise(source, scale))
    return float(_generator_laplace(source, scale))


def named_laplace(source: Any, scale: float, stream: int, place: int) -> float:
    """One Laplace draw from a source, for the node at a position in a stream; a node is requested once."""
    if isinstance(source, Nodes):
        return float(_node_laplace(source, scale, stream, place))
    return laplace(source, scale)


def gaussian(source: Any, scale: float) -> float:
    """One centred normal draw with the given standard deviation from a source."""
    if isinstance(source, Buffer):
        return float(_buffer_noise(source, scale))
    if isinstance(source, Recorder):
        return float(_recorder_gaussian(source, scale))
    if isinstance(source, Nodes):
        return float(_nodes_gaussian(source, scale))
    if isinstance(source, Fixed):
        return float(_no_noise(source, scale))
    return float(_generator_gaussian(source, scale))


def uniform(source: Any) -> float:
    """One uniform draw on [0, 1) from a source."""
    if isinstance(source, Buffer):
        return float(_buffer_uniform(source))
    if isinstance(source, Nodes):
        return float(source.coins.random())
    if isinstance(source, Fixed):
        return float(source.coin)
    return float(source.random())


def _generator_laplace(source: Any, scale: Any) -> Any:
    return math.copysign(source.standard_exponential() * scale, source.random() - 0.5)


def _buffer_noise(source: Any, scale: Any) -> Any:
    position = source.positions[1]
    source.positions[1] = position + 1
    return source.noises[position]


def _recorder_laplace(source: Any, scale: Any) -> Any:
    source.scales[source.asked[0]] = scale
    source.laws[source.asked[0]] = LAPLACE
    source.asked[0] += 1
    return 0.0


def _generator_gaussian(source: Any, scale: Any) -> Any:
    return source.standard_normal() * scale


def _recorder_gaussian(source: Any, scale: Any) -> Any:
    source.scales[source.asked[0]] = scale
    source.laws[source.asked[0]] = GAUSSIAN
    source.asked[0] += 1
    return 0.0


def _nodes_gaussian(source: Any, scale: Any) -> Any:
    """No node is normal: a kernel that requests normal noise receives a value that is never released."""
    return math.nan


def _generator_uniform(source: Any) -> Any:
    return source.random()


def _buffer_uniform(source: Any) -> Any:
    position = source.positions[0]
    source.positions[0] = position + 1
    return source.uniforms[position]


def _node_laplace(source: Any, scale: Any, stream: Any, place: Any) -> Any:
    node = source.asked[0]
    source.asked[0] = node + 1
    if node >= source.values.shape[0]:
        return 0.0
    source.scales[node] = scale
    source.names[node, 0] = stream
    source.names[node, 1] = place
    return source.values[node]


def _unnamed_laplace(source: Any, scale: Any, stream: Any, place: Any) -> Any:
    return laplace(source, scale)


def _node_uniform(source: Any) -> Any:
    return source.coins.random()


def _fixed_uniform(source: Any) -> Any:
    return source.coin


def _no_noise(source: Any, scale: Any) -> Any:
    return math.nan


def is_source(source: Any, kind: type) -> bool:
    """Whether the Numba type of a source is of some kind."""
    return getattr(source, "instance_class", None) is kind


@overload(laplace, jit_options={"forceinline": True})
def _laplace_for(source: Any, scale: Any) -> Any:
    if is_source(source, Buffer):
        return _buffer_noise
    if is_source(source, Recorder):
        return _recorder_laplace
    return _no_noise if is_source(source, Fixed) else _generator_laplace


@overload(gaussian, jit_options={"forceinline": True})
def _gaussian_for(source: Any, scale: Any) -> Any:
    if is_source(source, Buffer):
        return _buffer_noise
    if is_source(source, Recorder):
        return _recorder_gaussian
    if is_source(source, Fixed):
        return _no_noise
    return _nodes_gaussian if is_source(source, Nodes) else _generator_gaussian


@overload(named_laplace, jit_options={"forceinline": True})
def _named_laplace_for(source: Any, scale: Any, stream: Any, place: Any) -> Any:
    return _node_laplace if is_source(source, Nodes) else _unnamed_laplace


@overload(uniform, jit_options={"forceinline": True})
def _uniform_for(source: Any) -> Any:
    if is_source(source, Buffer):
        return _buffer_uniform
    if is_source(source, Fixed):
        return _fixed_uniform
    return _node_uniform if is_source(source, Nodes) else _generator_uniform


def generator(rng: np.random.SeedSequence) -> np.random.Generator:
    """The fast generator used by simulations."""
    return np.random.Generator(np.random.SFC64(rng))
