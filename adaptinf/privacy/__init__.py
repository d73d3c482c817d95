"""Noise, counters and mechanisms of differential privacy.

Arguments out of range raise one `ParameterError` that lists them all.

Public names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptinf.privacy.counters.counter import Counter
    from adaptinf.privacy.counters.norms import gaussian_norm_bound, laplace_norm_bound
    from adaptinf.privacy.mechanisms.gaussian import analytic_scale, classical_scale, gaussian_delta
    from adaptinf.privacy.mechanisms.integer import DiscreteLaplace, TruncatedLaplace
    from adaptinf.privacy.mechanisms.real import Gaussian, Laplace
    from adaptinf.privacy.mechanisms.sparse_vector import Questions, SparseVector
    from adaptinf.privacy.release import GRID_UNITS, discrete_gaussian, discrete_laplace, to_grid

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
    "Counter": "counters.counter",
    "DiscreteLaplace": "mechanisms.integer",
    "GRID_UNITS": "release",
    "Gaussian": "mechanisms.real",
    "Laplace": "mechanisms.real",
    "Questions": "mechanisms.sparse_vector",
    "SparseVector": "mechanisms.sparse_vector",
    "TruncatedLaplace": "mechanisms.integer",
    "analytic_scale": "mechanisms.gaussian",
    "classical_scale": "mechanisms.gaussian",
    "discrete_gaussian": "release",
    "discrete_laplace": "release",
    "gaussian_delta": "mechanisms.gaussian",
    "gaussian_norm_bound": "counters.norms",
    "laplace_norm_bound": "counters.norms",
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
