"""Tail of the largest of several correlated t statistics that share their degrees of freedom.

References
----------
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control". Genz,
Bretz (2009), "Computation of multivariate normal and t probabilities" (directions and radii). Šidák (1967),
"Rectangular confidence regions for the means of multivariate normal distributions".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import numpy as np
from scipy import linalg, special

from adaptinf.inference.distributions.tails import student_quantile
from adaptinf.typing import FloatArray

_SEED = 20_231_107
_DIRECTIONS = 1 << 16
_CELLS = 1 << 21
_KEPT = 32
"""Rank and size up to which directions are kept: 17 MB."""
_RANK = 1e-10


def max_student_tail(correlation: FloatArray, df: float) -> Callable[[float], float]:
    """Probability that one of k two-sided p-values of t is at most a level, when all nulls are true.

    Shapes: correlation (k, k).

    With Z = A g the numerators (g of r independent normals), u the direction and R the length of g, and s^2
    chi-squared by its degrees of freedom, the largest statistic is (R/s) max|Au|: R^2 / (r s^2) has the F
    law, whose tail is averaged over 65,536 directions (Sobol). Right to about 2e-4 of probability, and far
    out to as many digits. It is at least that of one test and at most Šidák's, which holds for t as well.
    """
    size = len(correlation)
    factor = root_of(correlation)
    rank = factor.shape[1]
    squares = _largest_squares(factor)

    def tail(level: float) -> float:
        if level <= 0.0 or level >= 1.0 or size == 1:
            return min(max(level, 0.0), 1.0)
        limit = float(student_quantile(math.log(0.5 * level), df)[0])
        found = radial_tail(limit, squares, rank, df)
        return min(max(found, level), -math.expm1(size * math.log1p(-level)))

    return tail


def radial_tail(limit: float, squares: FloatArray, rank: int, df: float) -> float:
    """Chance that the largest statistic is above a positive limit, by its squares in every direction.

    Shapes: squares (n,). Infinite degrees of freedom are a known variance.
    """
    with np.errstate(divide="ignore", under="ignore"):
        ratio = limit * limit / squares
        tails = special.chdtrc(rank, ratio) if math.isinf(df) else special.fdtrc(rank, df, ratio / rank)
    return float(np.mean(tails))


def even_directions(rank: int, size: int) -> Iterable[FloatArray]:
    """Directions that cover the sphere evenly, in blocks (n, rank) for work on n rows of a size."""
    width = max(size, rank)
    return _kept_directions(rank) if width <= _KEPT else _directions(rank, width)


@lru_cache(maxsize=4)
def _kept_directions(rank: int) -> tuple[FloatArray, ...]:
    """The directions of a rank that is often wanted again."""
    return tuple(_directions(rank, _KEPT))


def _directions(rank: int, width: int) -> Iterator[FloatArray]:
    """Directions in blocks, shape (n, r), for products of at most so many columns."""
    from scipy.stats import qmc  # scipy.stats loads when needed: longer than a first table

    points = qmc.Sobol(rank, seed=np.random.default_rng(_SEED))
    block = 1 << max(0, (_CELLS // width).bit_length() - 1)
    for start in range(0, _DIRECTIONS, block):
        draws = special.ndtri(points.random(min(block, _DIRECTIONS - start)))
        yield draws / np.linalg.norm(draws, axis=1, keepdims=True)


def _largest_squares(factor: FloatArray) -> FloatArray:
    """Largest squared entries of A u over directions u that cover the sphere evenly; factor (k, r)."""
    size, rank = factor.shape
    return np.concatenate([np.square(u @ factor.T).max(axis=1) for u in even_directions(rank, size)])


def root_of(covariance: FloatArray) -> FloatArray:
    """A factor A of A A', without directions of no variance; covariance (k, k), returns (k, r)."""
    values, vectors = linalg.eigh(covariance)
    kept = values > _RANK * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
