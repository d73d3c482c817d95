"""Noise, counters and mechanisms of differential privacy.

Public names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptinf.privacy.counter import Counter
    from adaptinf.privacy.gaussian import analytic_scale, classical_scale, gaussian_delta
    from adaptinf.privacy.integer_mechanisms import DiscreteLaplace, TruncatedLaplace
    from adaptinf.privacy.mechanisms import Gaussian, Laplace
    from adaptinf.privacy.noise_norms import gaussian_norm_bound, laplace_norm_bound
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
    "Gaussian": "mechanisms",
    "Laplace": "mechanisms",
    "Questions": "sparse_vector",
    "SparseVector": "sparse_vector",
    "TruncatedLaplace": "integer_mechanisms",
    "analytic_scale": "gaussian",
    "classical_scale": "gaussian",
    "discrete_gaussian": "release",
    "discrete_laplace": "release",
    "gaussian_delta": "gaussian",
    "gaussian_norm_bound": "noise_norms",
    "laplace_norm_bound": "noise_norms",
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
