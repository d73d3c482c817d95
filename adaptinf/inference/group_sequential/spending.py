"""Spending functions: how much of a level may be spent at a fraction of the information.

References
----------
Lan, DeMets (1983), "Discrete sequential boundaries for clinical trials". Hwang, Shih, DeCani (1990), "Group
sequential designs using a family of type I error probability spending functions". Kim, DeMets (1987), "Design
and analysis of group sequential tests based on the type I error spending rate function" (powers).
O'Brien, Fleming (1979), "A multiple testing procedure for clinical trials". Pocock (1977), "Group sequential
methods in the design and analysis of clinical trials".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy import special

from adaptinf.typing import FloatArray


def _like_obrien_fleming(fraction: FloatArray, level: float, _: float) -> FloatArray:
    reach = -special.ndtri(0.5 * level)
    return np.asarray(2.0 * special.ndtr(-reach / np.sqrt(fraction)), dtype=np.float64)


def _like_pocock(fraction: FloatArray, level: float, _: float) -> FloatArray:
    return np.asarray(level * np.log1p((math.e - 1.0) * fraction), dtype=np.float64)


def _hwang_shih_decani(fraction: FloatArray, level: float, gamma: float) -> FloatArray:
    if gamma == 0.0:
        return level * fraction
    return np.asarray(level * np.expm1(-gamma * fraction) / math.expm1(-gamma), dtype=np.float64)


def _power(fraction: FloatArray, level: float, rho: float) -> FloatArray:
    return np.asarray(level * fraction**rho, dtype=np.float64)


SPENDING: Mapping[str, Callable[[FloatArray, float, float], FloatArray]] = MappingProxyType(
    {
        "lan-demets-obrien-fleming": _like_obrien_fleming,
        "lan-demets-pocock": _like_pocock,
        "hwang-shih-decani": _hwang_shih_decani,
        "power": _power,
    }
)
"""Functions that return the level spent at each fraction of the information, shape (k,), from the fractions,
the one-sided level and a parameter."""

SHAPES: Mapping[str, float] = MappingProxyType({"obrien-fleming": -0.5, "pocock": 0.0})
"""Exponents of the powers of the information to which critical values of the classical designs are
proportional."""
