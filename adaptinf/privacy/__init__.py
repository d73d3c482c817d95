"""Noise, counters and mechanisms for differential privacy.

Arguments out of range raise a single `ParameterError` that lists them all.

Public names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptinf.privacy.counter import Counter
    from adaptinf.privacy.counter_noise import gaussian_norm_bound, laplace_norm_bound
    from adaptinf.privacy.integer_mechanisms import DiscreteLaplace, TruncatedLaplace
    from adaptinf.privacy.real_mechanisms import (
        Gaussian,
        Laplace,
        analytic_scale,
        classical_scale,
        gaussian_delta,
    )
    from adaptinf.privacy.release import GRID_UNITS, discrete_gaussian, discrete_laplace, to_grid
    from adaptinf.privacy.sparse_vector import Questions, SparseVector

__all__ = [
    "GRID_UNITS",
    "Counter",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "Questions",
    "SparseVector",
    "TruncatedLaplace",
    "analytic_scale",
    "classical_scale",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_delta",
    "gaussian_norm_bound",
    "laplace_norm_bound",
    "to_grid",
]

_HOMES = {
    "Counter": "counter",
    "DiscreteLaplace": "integer_mechanisms",
    "GRID_UNITS": "release",
    "Gaussian": "real_mechanisms",
    "Laplace": "real_mechanisms",
    "Questions": "sparse_vector",
    "SparseVector": "sparse_vector",
    "TruncatedLaplace": "integer_mechanisms",
    "analytic_scale": "real_mechanisms",
    "classical_scale": "real_mechanisms",
    "discrete_gaussian": "release",
    "discrete_laplace": "release",
    "gaussian_delta": "real_mechanisms",
    "gaussian_norm_bound": "counter_noise",
    "laplace_norm_bound": "counter_noise",
    "to_grid": "release",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"adaptinf.privacy.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
