"""Inference on means of skewed rewards by Hall's cubic transformation, and on sums of means by MOVER.

References
----------
Hall (1992), "On the removal of skewness by transformation". Zou, Donner (2008), "Construction of confidence
limits about effect measures: a general approach" (MOVER: limits of a difference from those of its parts).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from adaptinf.claims.laws import HALL
from adaptinf.inference.distributions.tails import LOG_2, log_student_pvalue, student_quantile
from adaptinf.typing import FloatArray, IntArray

# A double has 53 significant bits, so this many bisections reach its precision.
_BISECTIONS = 64
_MOST_DOUBLINGS = 1000
_QUARTILE = 0.6744
"""Number below all Student quantiles for the largest alpha, 1/2; limits for smaller quantiles are
interpolated."""
_POINTS = np.concatenate((np.linspace(_QUARTILE, 20.0, 400), np.geomspace(20.0, 1e6, 100)))
"""Quantiles at which limits are checked to move outwards."""
_NEAR = np.geomspace(1e-9, 0.5, 40)
_AROUND = np.concatenate((-_NEAR[::-1], _NEAR))


def hall_quantile(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Quantile of a skewed studentised mean that replaces the symmetric quantile z.

    If g is the skewness, the quantile is x = (3/g) [(1 + g (z - g/6))^(1/3) - 1] with the real cube root c,
    and z if g = 0. It is computed as 3 (z - g/6) / (c^2 + c + 1), because c - 1 = (c^3 - 1) / (c^2 + c + 1),
    so no digits are lost for small g. The quantile increases with z everywhere.
    """
    shifted = z - skewness / 6.0
    with np.errstate(invalid="ignore", over="ignore"):
        root = np.cbrt(1.0 + skewness * shifted)
        moved = 3.0 * shifted / (root * root + root + 1.0)
    return np.where(np.isinf(z) | (skewness == 0.0), z, moved)


def hall_statistic(t: FloatArray, skewness: FloatArray) -> FloatArray:
    """Hall's transformation of a studentised mean, which is the inverse of `hall_quantile`.

    The transformation t + g t^2/3 + g^2 t^3/27 + g/6 = [(1 + g t/3)^3 - 1] / g + g/6 increases with t. In the
    form computed here, t has a factor of at least 1/4, so no digits cancel.
    """
    u = skewness * t / 3.0
    with np.errstate(over="ignore"):
        return np.asarray(t * (1.0 + u + u * u / 3.0) + skewness / 6.0, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class SkewedReference:
    """Two-sided tests and intervals for means of skewed rewards.

    Shapes: estimate, std_error, skewness, df (k,).

    Let d be the influences of an estimate Q, V = sum d^2, s = V^(1/2) and g = sum d^3 / V^(3/2). To first
    order, the studentised error has the distribution function Phi(x) + g (2 x^2 + 1) phi(x) / 6, and its
    transform by `hall_statistic` is normal to second order. The null is inside [Q - s x(z), Q - s x(-z)] if
    and only if the transform h of (Q - null)/s lies between -z and z, so the p-value is that of h. Student's
    t is used instead of the normal distribution, because variances may be estimated from few rounds.

    Hall, P. (1992). On the removal of skewness by transformation. JRSS B 54, 221-228.
    """

    estimate: FloatArray
    std_error: FloatArray
    skewness: FloatArray
    df: FloatArray
    name: str = field(default="t, corrected for skewness (Hall)", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "t", False, True

    def __post_init__(self) -> None:
        names = ("estimate", "std_error", "skewness", "df")
        arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(getattr(self, n), float)) for n in names))
        for name, values in zip(names, arrays, strict=True):
            object.__setattr__(self, name, _usable(values) if name == "std_error" else values.copy())

    @np.errstate(under="ignore")
    def statistics(self, null: float) -> FloatArray:
        """Distances from the null in standard errors, with skewness removed, shape (k,)."""
        return hall_statistic((self.estimate - null) / self.std_error, self.skewness)

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return log_student_pvalue(self.statistics(null), self.df)

    @np.errstate(under="ignore")
    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        z = student_quantile(log_alpha - LOG_2, self.df)
        below = self.std_error * hall_quantile(z, self.skewness)
        above = self.std_error * hall_quantile(z, -self.skewness)
        return np.column_stack((self.estimate - below, self.estimate + above))


@dataclass(frozen=True, slots=True, eq=False)
class SkewedSumReference:
    """Two-sided tests and intervals for sums of means of skewed rewards.

    Shapes: estimate (k,), std_error, skewness (k, m), df (k,), correlation (k, m, m).

    The sum has m parts, such as one mean and the negative of another, whose skewness has the opposite sign.
    Let a_1, ..., a_m be the distances of the lower limits of the parts, at quantile z, from their estimates.
    The distance of the lower limit of the sum from its estimate is then the square root of sum_ij r_ij a_i
    a_j, where r contains the correlations of the parts. The upper limit is analogous. For a difference of two
    means, the lower limit is MOVER's

        d - [(q1 - l1)^2 + (u0 - q0)^2 - 2 r (q1 - l1)(u0 - q0)]^(1/2).

    Without skewness, the interval is that of Student's t with the variance of the sum. Limits move outwards
    as z increases, so p-values are obtained from intervals by inversion. If the correlations would make the
    interval shorter at some z, they are multiplied by the largest factor that avoids this, which makes the
    interval longer.

    Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general
    approach. Statistics in Medicine 27, 1693-1702.
    """

    estimate: FloatArray
    std_error: FloatArray
    skewness: FloatArray
    df: FloatArray
    correlation: FloatArray | None = None
    name: str = field(default=HALL(), init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "t", False, True

    def __post_init__(self) -> None:
        parts, skewness = np.broadcast_arrays(np.asarray(self.std_error, float), self.skewness)
        estimate, df = np.broadcast_arrays(np.atleast_1d(np.asarray(self.estimate, float)), self.df)
        size = parts.shape[1]
        given = np.eye(size) if self.correlation is None else np.asarray(self.correlation, float)
        correlation = np.array(np.broadcast_to(given, (*parts.shape, size)))
        moved = {
            "estimate": estimate.copy(),
            "std_error": _usable(parts),
            "skewness": np.array(skewness, dtype=float),
            "df": np.array(df, dtype=float),
        }
        for name, values in moved.items():
            object.__setattr__(self, name, values)
        object.__setattr__(self, "correlation", _nested(self.std_error, self.skewness, correlation))

    @np.errstate(under="ignore")
    def statistics(self, null: float) -> FloatArray:
        """Student quantiles of intervals that end at the null, with the sign of estimate minus null."""
        distance = self.estimate - null
        return np.asarray(np.sign(distance) * self._quantile(distance), dtype=np.float64)

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return log_student_pvalue(self.statistics(null), self.df)

    @np.errstate(under="ignore")
    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        z = student_quantile(log_alpha - LOG_2, self.df)
        below, above = self._reach(z, self.skewness), self._reach(z, -self.skewness)
        return np.column_stack((self.estimate - below, self.estimate + above))

    def differences(self, rows: IntArray, columns: IntArray, df: FloatArray) -> SkewedSumReference:
        """Distribution of differences between independent sums at these positions; rows, columns, df (p,)."""
        # The constructor always sets this field; None is only its default argument.
        assert self.correlation is not None
        size = self.std_error.shape[1]
        joint = np.zeros((len(rows), 2 * size, 2 * size))
        joint[:, :size, :size], joint[:, size:, size:] = self.correlation[rows], self.correlation[columns]
        return SkewedSumReference(
            self.estimate[rows] - self.estimate[columns],
            np.hstack((self.std_error[rows], self.std_error[columns])),
            np.hstack((self.skewness[rows], -self.skewness[columns])),
            df,
            joint,
        )

    def _reach(self, z: FloatArray, skewness: FloatArray) -> FloatArray:
        """Distance of a limit from the estimate; z (k,), skewness (k, m); returns (k,)."""
        # The constructor always sets this field; None is only its default argument.
        assert self.correlation is not None
        least = np.maximum(z, _QUARTILE)
        parts = self.std_error * hall_quantile(least[:, None], skewness)
        largest = parts.max(axis=1)
        scale = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
        with np.errstate(invalid="ignore"):
            shares = parts / scale[:, None]
            square = np.einsum("ki,kij,kj->k", shares, self.correlation, shares)
        reach = scale * np.sqrt(np.maximum(square, 0.0)) * np.minimum(z / _QUARTILE, 1.0)
        return np.where(np.isinf(largest), np.inf, reach)

    def _quantile(self, distance: FloatArray) -> FloatArray:
        """The z at which a limit equals the null, found by bisection; distance, to the null, (k,)."""
        skewness = np.where(distance[:, None] > 0.0, self.skewness, -self.skewness)
        target = np.abs(distance)
        known = np.isfinite(target) & np.all(np.isfinite(self.std_error), axis=1)
        high = np.ones(target.shape)
        for _ in range(_MOST_DOUBLINGS):
            short = known & (self._reach(high, skewness) < target)
            if not np.any(short):
                break
            high = np.where(short, 2.0 * high, high)
        low = np.where(high > 1.0, 0.5 * high, 0.0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            short = self._reach(middle, skewness) < target
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.where(known, high, np.nan)


def skewed_difference(
    estimate: FloatArray,
    std_error: FloatArray,
    skewness: FloatArray,
    df: FloatArray,
    correlation: FloatArray,
) -> SkewedSumReference:
    """Distribution of the second of two means minus the first.

    Shapes: estimate, df, correlation (k,), std_error, skewness (k, 2).
    """
    apart = np.repeat(np.eye(2)[None], len(estimate), axis=0)
    apart[:, 0, 1] = apart[:, 1, 0] = -np.nan_to_num(correlation)
    signed = skewness * np.array([-1.0, 1.0])
    return SkewedSumReference(estimate, std_error, np.nan_to_num(signed), df, apart)


def _nested(std_error: FloatArray, skewness: FloatArray, correlation: FloatArray) -> FloatArray:
    """Correlations for which both limits move outwards as z increases.

    Shapes: std_error, skewness (k, m), correlation (k, m, m); returns (k, m, m).

    The squared distance of a limit from the estimate, sum_ij r_ij a_i a_j, increases if sum_i a_i a_i' is at
    least -sum_(i != j) r_ij a_i a_j'. For each term, all r_ij off the diagonal are multiplied by the largest
    factor, at most 1, for which this holds.
    """
    terms, size = std_error.shape
    others = correlation * (1.0 - np.eye(size))
    share = np.ones(terms)
    if not np.any(others):
        return correlation
    for signed in (skewness, -skewness):
        # Where 1 + g (z - g/6) is 0, a part's limit changes infinitely fast, so points around it are checked
        # as well.
        with np.errstate(divide="ignore", invalid="ignore"):
            turning = np.where(signed < 0.0, signed / 6.0 - 1.0 / signed, 1.0)
        near = np.maximum(turning[:, :, None] * (1.0 + _AROUND), _QUARTILE)
        z = np.concatenate((np.broadcast_to(_POINTS, (terms, len(_POINTS))), near.reshape(terms, -1)), axis=1)
        g, s = signed[:, None, :], std_error[:, None, :]
        reach = s * hall_quantile(z[:, :, None], g)
        root = np.cbrt(1.0 + g * (z[:, :, None] - g / 6.0))
        speed = s / np.maximum(root * root, 1e-300)
        gain = np.einsum("kzi,kzi->kz", reach, speed)
        loss = -np.einsum("kzi,kij,kzj->kz", reach, others, speed)
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = np.where(loss > gain, 0.999 * gain / loss, 1.0)
        share = np.minimum(share, allowed.min(axis=1))
    return np.asarray(np.eye(size) * correlation + share[:, None, None] * others, dtype=np.float64)


def _usable(std_error: FloatArray) -> FloatArray:
    return np.where((std_error > 0.0) & np.isfinite(std_error), std_error, np.nan)
