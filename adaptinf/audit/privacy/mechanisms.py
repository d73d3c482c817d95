"""Runs of mechanisms on two neighbouring inputs, and the exact log-likelihood ratio of what they release.

Runs are arrays: one call of a mechanism's own `release` draws thousands of them. Where a mechanism fits its
noise to the size of the array that it is given, or stops early, its release backend is called once a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from adaptinf.audit.privacy.digits import bit_codes, digits_event
from adaptinf.audit.privacy.lower_bound import Found, LearnedScore
from adaptinf.audit.privacy.sources import CHUNK, DEFAULT_RUNS, child
from adaptinf.privacy.integer_mechanisms import DiscreteLaplace, TruncatedLaplace
from adaptinf.privacy.mechanism import Mechanism
from adaptinf.privacy.noise import generator
from adaptinf.privacy.real_mechanisms import Gaussian, Laplace
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.privacy.sparse_vector import SparseVector
from adaptinf.typing import FloatArray

_QUESTIONS = 8
"""Statistics that a sparse vector is asked about: more make the likeliest telling answer rarer."""

Pair = tuple[FloatArray, FloatArray]


@singledispatch
def worst_inputs(mechanism: Mechanism) -> Pair:
    """Two arrays of statistics, as far apart as the mechanism allows, whose releases differ most.

    Returns shape first, second (d,).
    """
    raise TypeError(f"no neighbouring inputs are known for {type(mechanism).__name__}")


@worst_inputs.register(Laplace)
@worst_inputs.register(Gaussian)
@worst_inputs.register(DiscreteLaplace)
def _shifted_inputs(mechanism: Any) -> Pair:
    return np.zeros(1), np.full(1, float(mechanism.sensitivity))


@worst_inputs.register
def _truncated_inputs(mechanism: TruncatedLaplace) -> Pair:
    first = np.full(mechanism.sensitivity, float(mechanism.lowest))
    return first, first + 1.0


@worst_inputs.register
def _sparse_inputs(mechanism: SparseVector) -> Pair:
    last = np.arange(_QUESTIONS) == _QUESTIONS - 1
    return np.where(last, mechanism.sensitivity, 0.0), np.where(last, 0.0, mechanism.sensitivity)


def pair_problems(mechanism: Mechanism, first: FloatArray, second: FloatArray) -> list[str]:
    """Say what is wrong with two inputs that a mechanism's guarantee is to hold for."""
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        return [f"neighbours must be two sequences of one length, got shapes {first.shape}, {second.shape}"]
    if not np.isfinite([first, second]).all():
        return ["neighbours must be finite"]
    whole = isinstance(mechanism, (DiscreteLaplace, TruncatedLaplace))
    if whole and np.any(np.concatenate([first, second]) % 1.0):
        return [f"neighbours must be whole numbers, which {type(mechanism).__name__} is for"]
    moved: float
    change = np.abs(second - first)
    if isinstance(mechanism, Gaussian):
        size, moved = "L2", float(np.sqrt((change**2).sum()))
    elif isinstance(mechanism, SparseVector):
        size, moved = "every statistic", float(change.max())
    else:
        size, moved = "L1", float(change.sum())
    allowed = float(getattr(mechanism, "sensitivity", np.inf))
    if not 0.0 < moved <= allowed * (1.0 + 1e-12):
        return [f"neighbours must differ, by at most the sensitivity {allowed:g} in {size}, got {moved:g}"]
    return []


@singledispatch
def sample(
    mechanism: Any, values: FloatArray, runs: int, rng: np.random.Generator | None, backend: str
) -> FloatArray:
    """What so many independent releases of the same statistics give; values (d,); returns (runs, d)."""
    return np.asarray(mechanism.release(np.tile(values, (runs, 1)), rng, backend), dtype=np.float64)


@sample.register(Laplace)
@sample.register(Gaussian)
def _real_sample(
    mechanism: Any, values: FloatArray, runs: int, rng: np.random.Generator | None, backend: str
) -> FloatArray:
    if backend == "simulation":
        return np.asarray(mechanism.release(np.tile(values, (runs, 1)), rng))
    on_grid = not np.any(values / mechanism.sensitivity * GRID_UNITS % 1.0)
    if values.size == 1 and on_grid:
        # the noise of a number on the grid does not depend on how many are released with it
        return np.asarray(mechanism.release(np.tile(values, (runs, 1)), backend=backend, on_grid=True))
    return np.array([mechanism.release(values, backend=backend) for _ in range(runs)])


@sample.register
def _sparse_sample(
    mechanism: SparseVector, values: FloatArray, runs: int, rng: np.random.Generator | None, backend: str
) -> FloatArray:
    if rng is None:
        answers = (mechanism.release(values, backend=backend) for _ in range(runs))
        return np.array([[float((~given).sum())] for given in answers])
    threshold = rng.laplace(scale=mechanism.threshold_scale, size=(runs, 1))
    above = values + rng.laplace(scale=mechanism.query_scale, size=(runs, values.size)) >= threshold
    below = np.where(above.any(axis=1), above.argmax(axis=1), values.size)
    return np.asarray(below[:, None], dtype=np.float64)


@singledispatch
def log_ratio(mechanism: Any, outputs: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Log-likelihood ratio of releases, second statistics against first.

    Shapes: outputs (runs, d), first, second (d,); returns (runs,).
    """
    distance = np.abs(outputs - first) - np.abs(outputs - second)
    return np.asarray((distance / mechanism.scale).sum(axis=1))


@log_ratio.register
def _gaussian_ratio(
    mechanism: Gaussian, outputs: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    return (outputs - 0.5 * (first + second)) @ (second - first) / mechanism.scale**2


@log_ratio.register
def _truncated_ratio(
    mechanism: TruncatedLaplace, outputs: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    totals = [
        np.log1p(np.exp(-mechanism.rate) - np.exp(-mechanism.rate * (m + 1.0))) for m in (first, second)
    ]
    distance = np.abs(outputs - first) - np.abs(outputs - second)
    return np.asarray(mechanism.rate * distance.sum(axis=1) + float((totals[0] - totals[1]).sum()))


@log_ratio.register
def _sparse_ratio(
    mechanism: SparseVector, outputs: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    law = np.log(mechanism.stopping_law(second)) - np.log(mechanism.stopping_law(first))
    return np.asarray(law[outputs[:, 0].astype(np.int64)])


@dataclass(frozen=True, eq=False)
class MechanismSource:
    """Releases of a mechanism on two neighbouring inputs."""

    mechanism: Mechanism
    pair: Pair
    view: str
    backend: str
    root: np.random.SeedSequence
    default_runs: int = DEFAULT_RUNS

    @property
    def name(self) -> str:
        """The mechanism and its inputs."""
        first, second = (", ".join(f"{value:g}" for value in side) for side in self.pair)
        return f"{self.mechanism!r}, {self.backend} noise: ({first}) against ({second})"

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        """Scores of shape (runs,), or codes of bits, shape (runs, numbers)."""
        rng = None if self.backend == "release" else generator(child(self.root, side, start // CHUNK))
        released = sample(self.mechanism, self.pair[side], stop - start, rng, self.backend)
        if self.view == "digits":
            return bit_codes(released)
        return log_ratio(self.mechanism, released, *self.pair)

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        """The event in words."""
        if learned is not None:
            return digits_event(found, learned, "the release")
        subject = "number of statistics called below"
        what = subject if isinstance(self.mechanism, SparseVector) else "release"
        side = "least" if found.upper else "most"
        return f"the log-likelihood ratio of the {what} is at {side} {found.cut:.9g}"
