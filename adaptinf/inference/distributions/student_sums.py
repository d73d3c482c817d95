"""Distributions of sums and maxima of Student variables.

References
----------
Gil-Pelaez (1951), "Note on the inversion theorem". Olver (1974), "Asymptotics and special functions"
(Debye's expansion of Bessel functions of large order).
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control". Genz,
Bretz (2009), "Computation of multivariate normal and t probabilities" (directions and radii). Šidák (1967),
"Rectangular confidence regions for the means of multivariate normal distributions".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy import linalg, special

from adaptinf.claims.laws import BY_BATCH
from adaptinf.inference.distributions.tails import LOG_2, log_normal_tail, normal_quantile, student_quantile
from adaptinf.typing import FloatArray

NORMAL = 1e6
"""Degrees of freedom above which Student's distribution is treated as normal."""
SMALLEST_TAIL = 1e-10
"""Smallest tail probability that is resolved."""

_MANY = 200.0
_LOG_TINY = math.log(1e-15)
_NODES = 40
# A panel of 40 nodes resolves an integrand that oscillates by this many radians, about six periods.
_PHASE = 40.0
_MOST_PANELS = 8192
_LOG_RESOLVED = math.log(1e-11 / 1e-15)


class MeanStudent:
    """Distribution of a sum of independent Student variables over the square root of their number.

    Shapes: df (B,).

    Tail probabilities are computed from the product of the characteristic functions by numerical inversion.
    The absolute error of tail probabilities is below 1e-12, or 1e-9 if a batch has more than 200 degrees of
    freedom. Beyond the largest point that the quadrature can resolve, the tail at that point is returned,
    which is an upper bound.
    """

    def __init__(self, df: FloatArray) -> None:
        values, repeats = np.unique(np.asarray(df, dtype=np.float64), return_counts=True)
        self._key = (tuple(values.tolist()), tuple(repeats.tolist()))
        self._top = _reach(*self._key)

    def tail(self, x: float) -> float:
        """Probability that the variable exceeds x."""
        panels = 64
        while panels < _MOST_PANELS and abs(x) * self._top > _PHASE * panels:
            panels *= 2
        nodes, weights = _inversion(*self._key, self._top, panels)
        point = min(abs(x), _PHASE * panels / self._top)
        # This is Gil-Pelaez's inversion formula for a symmetric distribution.
        upper = max(0.5 - float(weights @ (np.sin(nodes * point) / nodes)) / math.pi, 0.0)
        return upper if x >= 0.0 else 1.0 - upper

    def norm_tail(self, radius: float, dimension: int) -> float:
        """Probability that a sum of n multivariate Student vectors over sqrt(n) is longer than `radius`.

        The sum is also spherically symmetric, so the distribution of its length follows from the
        characteristic function f of one coordinate. With h = dimension / 2 and the Bessel function J of order
        h,

            P(length <= r) = r^h / (2^(h - 1) Gamma(h)) integral of f(u) J(r u) u^(h - 1) over u > 0.

        In one dimension, the probability is twice `tail`. Beyond the radius at which rounding errors could
        exceed 1e-11, the tail at that radius is returned, which is an upper bound.
        """
        half = 0.5 * dimension
        log_constant = -(half - 1.0) * LOG_2 - math.lgamma(half)
        if dimension > 1:
            radius = min(radius, math.exp((_LOG_RESOLVED - log_constant) / (half - 0.5)))
        panels = 64
        while panels < _MOST_PANELS and radius * self._top > _PHASE * panels:
            panels *= 2
        nodes, weights = _inversion(*self._key, self._top, panels)
        point = min(radius, _PHASE * panels / self._top)
        if point <= 0.0:
            return 1.0
        total = float(weights @ (special.jv(half, nodes * point) * nodes ** (half - 1.0)))
        return min(1.0, max(1.0 - math.exp(half * math.log(point) + log_constant) * total, 0.0))

    def quantile(self, probability: float) -> float:
        """Point that is exceeded with this probability, in (0, 0.5]; NaN if it cannot be resolved."""
        if probability < SMALLEST_TAIL:
            return math.nan
        high = 2.0
        while self.tail(high) > probability:
            if high * self._top > _PHASE * _MOST_PANELS:
                return math.nan
            high *= 2.0
        from scipy.optimize import brentq  # scipy.optimize is slow to load, and few tables need it.

        return float(brentq(lambda x: self.tail(x) - probability, 0.0, high, xtol=1e-13))


@dataclass(frozen=True, slots=True, eq=False)
class BatchedReference:
    """Test and interval for a difference from batched least squares.

    Shapes: df (B,).

    If the distribution is not normal, p-values below 2e-10 are not resolved. They are reported as 2e-10 (or
    more, for batches of three or four rewards), and there are no intervals for smaller alphas.
    """

    estimate: float
    std_error: float
    df: FloatArray | None
    exact: bool = field(default=False, init=False)
    uses_std_error = True

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return "normal" if self.normal else BY_BATCH()

    @property
    def statistic(self) -> str:
        """Symbol of the statistic in tables."""
        return "z" if self.normal else "t"

    @property
    def normal(self) -> bool:
        """Whether the batches are large enough for the normal distribution."""
        return self.df is None

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural log of the two-sided p-value, shape (1,)."""
        if not self.std_error > 0.0:
            return np.array([math.nan])
        z = abs(self.estimate - null) / self.std_error
        if self.df is None:
            return np.minimum(0.0, LOG_2 + log_normal_tail(np.array([z])))
        return np.array([min(0.0, math.log(2.0 * max(MeanStudent(self.df).tail(z), SMALLEST_TAIL)))])

    def interval(self, log_alpha: float) -> FloatArray:
        """Interval at level 1 - exp(log_alpha), shape (1, 2)."""
        if not self.std_error > 0.0:
            return np.full((1, 2), np.nan)
        if self.df is None:
            quantile = float(normal_quantile(log_alpha - LOG_2))
        else:
            quantile = MeanStudent(self.df).quantile(0.5 * math.exp(log_alpha))
        half = quantile * self.std_error
        return np.array([[self.estimate - half, self.estimate + half]])


def _log_student_transform(u: FloatArray, df: float) -> FloatArray:
    """Log of the characteristic function of Student's t at positive u."""
    if df > NORMAL:
        return np.asarray(-0.5 * u**2)
    order, x = 0.5 * df, math.sqrt(df) * u
    if df > _MANY:
        log_bessel = _log_bessel(order, x)
        return np.asarray(log_bessel + order * np.log(x) - special.gammaln(order) - (order - 1.0) * LOG_2)
    # The transform is K_h(x) x^h / (Gamma(h) 2^(h - 1)) with h = df / 2 (Hurst 1995); kve(x) = exp(x) K(x)
    # does not underflow.
    bessel = special.kve(order, x)
    # The Bessel function overflows only for arguments so small that two terms of the series are exact.
    small = ~np.isfinite(bessel)
    square = 0.25 * np.where(small, x, 0.0) ** 2
    series = np.log1p(-square / (order - 1.0) * (1.0 - 0.5 * square / (order - 2.0))) if small.any() else 0.0
    bessel = np.where(small, 1.0, bessel)
    full = np.log(bessel) - x + order * np.log(x) - special.gammaln(order) - (order - 1.0) * LOG_2
    return np.asarray(np.where(small, series, full), dtype=np.float64)


def _log_bessel(order: float, x: FloatArray) -> FloatArray:
    """Log of the Bessel function K of a large order, by Debye's expansion."""
    z = x / order
    root = np.sqrt(1.0 + z * z)
    p = 1.0 / root
    first = (3.0 * p - 5.0 * p**3) / 24.0
    second = (81.0 * p**2 - 462.0 * p**4 + 385.0 * p**6) / 1152.0
    third = (30375.0 * p**3 - 369603.0 * p**5 + 765765.0 * p**7 - 425425.0 * p**9) / 414720.0
    series = np.log1p(-first / order + second / order**2 - third / order**3)
    exponent = root + np.log(z / (1.0 + root))
    return np.asarray(0.5 * np.log(0.5 * math.pi * p / order) - order * exponent + series)


def _log_transform(u: FloatArray, df: tuple[float, ...], repeats: tuple[int, ...]) -> FloatArray:
    root = math.sqrt(sum(repeats))
    parts = [
        times * _log_student_transform(u / root, freedom) for freedom, times in zip(df, repeats, strict=True)
    ]
    return np.asarray(np.sum(parts, axis=0))


@functools.lru_cache(maxsize=256)
def _reach(df: tuple[float, ...], repeats: tuple[int, ...]) -> float:
    """Point at which the characteristic function becomes negligible."""
    top = 8.0
    while float(_log_transform(np.array([top]), df, repeats)[0]) > _LOG_TINY:
        top *= 1.25
    return top


@functools.lru_cache(maxsize=64)
def _inversion(
    df: tuple[float, ...], repeats: tuple[int, ...], top: float, panels: int
) -> tuple[FloatArray, FloatArray]:
    """Nodes u, and at each node the quadrature weight times the characteristic function of the mean."""
    # Panels shrink towards 0, because with few degrees of freedom the transform is not smooth there.
    step = top / panels
    edges = np.concatenate(([0.0], step * 2.0 ** np.arange(-40.0, 0.0), np.linspace(step, top, panels)))
    points, shares = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = (edges[:-1, None] + half * (1.0 + points)).ravel()
    weights = (half * shares).ravel() * np.exp(_log_transform(nodes, df, repeats))
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


_SEED = 20_231_107
_DIRECTIONS = 1 << 16
_CELLS = 1 << 21
_KEPT = 32
"""Largest rank and size for which directions are cached, which takes 17 MB."""
_RANK = 1e-10


def max_student_tail(correlation: FloatArray, df: float) -> Callable[[float], float]:
    """Probability that one of k two-sided t p-values is at most a given level when all nulls are true.

    Shapes: correlation (k, k).

    Let Z = A g be the numerators, where g contains r independent normal variables and has direction u and
    length R, and let s^2 be chi-squared divided by its degrees of freedom. The largest statistic is then R/s
    times the largest absolute entry of A u. Since R^2 / (r s^2) has an F distribution, the tail of this
    distribution is averaged over 65,536 directions from a Sobol sequence. The relative error of the result is
    about 2e-4, also far in the tail. The result is at least the probability for one test, and at most Šidák's
    bound, which is also valid for t.
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
    """Probability that the largest statistic exceeds a positive limit, averaged over directions.

    `squares` contains the largest squares by direction, shape (n,). If the variance is known, the degrees of
    freedom are infinite.
    """
    with np.errstate(divide="ignore", under="ignore"):
        ratio = limit * limit / squares
        tails = special.chdtrc(rank, ratio) if math.isinf(df) else special.fdtrc(rank, df, ratio / rank)
    return float(np.mean(tails))


def even_directions(rank: int, size: int) -> Iterable[FloatArray]:
    """Directions that cover the sphere evenly, in blocks of shape (n, rank)."""
    width = max(size, rank)
    return _kept_directions(rank) if width <= _KEPT else _directions(rank, width)


@lru_cache(maxsize=4)
def _kept_directions(rank: int) -> tuple[FloatArray, ...]:
    """The cached directions for a rank that is needed often."""
    return tuple(_directions(rank, _KEPT))


def _directions(rank: int, width: int) -> Iterator[FloatArray]:
    """Blocks of directions, shape (n, r), for products whose number of columns is at most `width`."""
    from scipy.stats import qmc  # scipy.stats takes longer to load than the first table takes without it.

    points = qmc.Sobol(rank, seed=np.random.default_rng(_SEED))
    block = 1 << max(0, (_CELLS // width).bit_length() - 1)
    for start in range(0, _DIRECTIONS, block):
        draws = special.ndtri(points.random(min(block, _DIRECTIONS - start)))
        yield draws / np.linalg.norm(draws, axis=1, keepdims=True)


def _largest_squares(factor: FloatArray) -> FloatArray:
    """Largest squared entry of A u for each of the evenly spread directions u; factor, which is A, (k, r)."""
    size, rank = factor.shape
    return np.concatenate([np.square(factor @ u.T).max(axis=0) for u in even_directions(rank, size)])


def root_of(covariance: FloatArray) -> FloatArray:
    """A factor A with A A' equal to the covariance, without null directions; takes (k, k), returns (k, r)."""
    values, vectors = linalg.eigh(covariance)
    kept = values > _RANK * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
