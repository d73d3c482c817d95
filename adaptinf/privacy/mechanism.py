"""Common parts of mechanisms: checks of parameters and of released values, and the two backends."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import LARGEST, SEED, OneOf, Positive, check_fields, number_array, refuse
from adaptinf.privacy.release import GRID_UNITS, to_units
from adaptinf.typing import FloatArray, IntArray, RandomSource

BACKENDS = ("simulation", "release")


def source_problems(rng: RandomSource | None, backend: str) -> list[str]:
    """List problems with a backend, or with a source of randomness for it."""
    problems = OneOf(*BACKENDS)("backend", backend)
    if not problems and backend == "release":
        seeded = ["rng must be omitted: noise from the release backend is never seeded"]
        return [] if rng is None else seeded
    return problems + SEED("rng", rng)


def draws_from(subject: str, rng: RandomSource | None, backend: str) -> np.random.Generator | None:
    """Generator of the simulation backend, or None for the release backend, which takes no seed."""
    refuse(subject, source_problems(rng, backend))
    return None if backend == "release" else np.random.default_rng(rng)


def whole_units(subject: str, values: FloatArray, sensitivity: float, on_grid: bool) -> list[int]:
    """Statistics in grid units; with `on_grid`, an error if one is not a whole number of units."""
    if on_grid:
        measured = values / sensitivity * GRID_UNITS
        if np.any(np.abs(measured - np.rint(measured)) > 1e-15 * np.abs(measured)):
            raise ParameterError(
                subject, ["values must be multiples of sensitivity / 2^20 if on_grid is True"]
            )
    return to_units(values, sensitivity)


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """Base class of all mechanisms: validated parameters, and a guarantee computed from them."""

    epsilon: Positive

    def __post_init__(self) -> None:
        check_fields(self, self._problems)

    def _problems(self) -> list[str]:
        """Problems with the parameters beyond those that their annotated constraints detect."""
        return []

    def guarantee(
        self, unit: str = "reward", model: str = "central", notion: str = "standard"
    ) -> PrivacyGuarantee:
        """Guarantee of one release, for neighbours whose statistics differ by at most the sensitivity.

        Parameters
        ----------
        unit, model, notion : str
            Definition of neighbours: see `PrivacyGuarantee`. The sensitivity must be stated for the same
            definition.
        """
        epsilon, delta, reasons = self._loss()
        return PrivacyGuarantee(epsilon, delta, unit, model, notion, reasons)

    def _loss(self) -> tuple[float, float, tuple[str, ...]]:
        """Epsilon, delta and reasons for one release."""
        return float(self.epsilon), 0.0, ()


def reals(subject: str, values: ArrayLike, name: str = "values") -> FloatArray:
    """Values as an array of floats; an error if they are not numbers."""
    array = number_array(values)
    if array is None:
        raise ParameterError(subject, [f"{name} must be numbers in rows of equal length, got {values!r:.60}"])
    return array


def finite(subject: str, values: ArrayLike) -> FloatArray:
    """Values as an array of finite floats; an error if they are not."""
    array = reals(subject, values)
    if not np.isfinite(array).all():
        raise ParameterError(subject, ["values must be finite"])
    if (np.abs(array) > LARGEST).any():
        raise ParameterError(subject, [f"values must be at most {LARGEST:g} in absolute value"])
    return array


def number(subject: str, value: ArrayLike) -> float:
    """A single finite number; an error otherwise."""
    array = finite(subject, value)
    if array.ndim > 0:
        raise ParameterError(subject, [f"a single number is required, got shape {array.shape}"])
    return float(array)


def whole_numbers(subject: str, values: ArrayLike) -> IntArray:
    """Values as an array of integers; an error if they are not whole."""
    array = finite(subject, values)
    if not ((array == np.rint(array)) & (np.abs(array) < 2.0**53)).all():
        raise ParameterError(subject, ["values must be whole numbers below 2^53"])
    return array.astype(np.int64)


def probabilities(subject: str, p: ArrayLike) -> FloatArray:
    """Probabilities strictly between 0 and 1 as an array; an error otherwise."""
    array = reals(subject, p, "p")
    if not ((array > 0.0) & (array < 1.0)).all():
        raise ParameterError(subject, ["p must lie strictly between 0 and 1"])
    return array
