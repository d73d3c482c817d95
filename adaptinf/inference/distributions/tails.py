"""Tail probabilities in natural logs, accurate even where the probability itself underflows.

Student's t and the binomial distribution both use the logarithm of the regularised incomplete beta function,
and both quantile functions invert it with Newton steps that cannot overshoot.

Privately released sums have normal-Laplace distributions: the sampling error is close to normal, and the
noise of the release is Laplace. All computations use logarithms, and keep their relative precision far beyond
the point where the probability itself underflows.

References
----------
Didonato, Morris (1992), "Algorithm 708: significant digit computation of the incomplete beta
function ratios" (the tails of the two laws as incomplete beta functions). Lentz (1976), on
evaluating continued fractions.
Reed (2006), "The normal-Laplace distribution and its relatives" (one Laplace part); the law with two
follows by partial fractions of the characteristic function.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.typing import FloatArray

LOG_2 = math.log(2.0)
"""The logarithm of 2; for two-sided tests, it is subtracted from log levels and added to log p-values."""

# Smaller tails are computed in logarithms, because doubles end at 5e-324 and lose digits before.
_UNDERFLOW = 1e-280
_TINY = 1e-300
# These loops converge long before; the bounds only guarantee that they end.
_MAX_TERMS = 20_000
_MAX_NEWTON = 200
_NEAR, _FAR = math.log(0.3), -230.0
_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)


def log_normal_tail(z: ArrayLike) -> FloatArray:
    """Log of the standard normal upper tail at the absolute value of z."""
    return np.asarray(special.log_ndtr(-np.abs(np.asarray(z, dtype=float))), dtype=float)


def normal_quantile(log_tail: float) -> float:
    """Point whose upper normal tail has the given log probability."""
    x = -float(special.ndtri_exp(log_tail))
    if x <= 0.0 or math.isinf(x):
        return max(0.0, x)
    # One Newton step restores the digits that the quantile function loses far out in the tail.
    tail = float(special.log_ndtr(-x))
    return x + (tail - log_tail) * math.exp(tail + 0.5 * x * x + _LOG_ROOT_2_PI)


def log_student_tail(t: ArrayLike, df: ArrayLike) -> FloatArray:
    """Log of the upper tail of Student's t at the absolute value of t."""
    size, freedom = np.broadcast_arrays(np.abs(np.asarray(t, dtype=float)), np.asarray(df, dtype=float))
    result = np.full(size.shape, np.nan)
    normal = np.isposinf(freedom)
    result[normal] = log_normal_tail(size[normal])
    student = (freedom > 0) & ~normal & ~np.isnan(size)
    result[student] = _log_student_tail(size[student], freedom[student])
    return result


def log_student_pvalue(t: ArrayLike, df: ArrayLike) -> FloatArray:
    """Log of the two-sided p-value of Student's t."""
    return np.asarray(np.minimum(0.0, LOG_2 + log_student_tail(t, df)), dtype=np.float64)


def _log_student_tail(t: FloatArray, df: FloatArray) -> FloatArray:
    """Ordinary tail probabilities by SciPy, and all others by the logarithm of the incomplete beta function.

    For many degrees of freedom, the argument of the incomplete beta function is so close to 1 that few digits
    remain.
    """
    result = np.empty(t.shape)
    with np.errstate(divide="ignore"):
        result[...] = np.log(special.stdtr(df, -t))
    rest = ~((df >= 1.0) & (result < _NEAR) & (result > _FAR))
    if np.any(rest):
        result[rest] = _log_student_betainc(t[rest], df[rest])
    return result


def _log_student_betainc(t: FloatArray, df: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        log_ratio = 2.0 * (np.log(t) - 0.5 * np.log(df))
    # The tail P(T > t) is half of I_x(df/2, 1/2) at x = df / (df + t^2).
    log_x = -np.logaddexp(0.0, log_ratio)
    log_complement = -np.logaddexp(0.0, -log_ratio)
    tail = log_betainc(0.5 * df, np.full(df.shape, 0.5), log_x, log_complement)
    return np.asarray(tail - np.log(2.0), dtype=float)


def log_f_tail(statistic: float, df: float, df_denom: float) -> float:
    """Log of the upper tail of the F distribution, or of chi-squared if df_denom is infinite."""
    if math.isnan(statistic) or not (df > 0.0 and df_denom > 0.0):
        return math.nan
    if math.isinf(df_denom):
        return log_chi2_tail(df * statistic, df)
    if statistic <= 0.0:
        return 0.0
    if math.isinf(statistic):
        return -math.inf
    half, other = 0.5 * df, 0.5 * df_denom
    ratio = statistic * (df / df_denom)
    # Either x or 1 - x may be rounded to 1, so the smaller of the two is used, which keeps its digits.
    x, complement = 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)
    small = ratio > 1.0
    tail = float(special.betainc(other, half, x) if small else special.betaincc(half, other, complement))
    if tail > 0.5:
        return math.log1p(-float(special.betainc(half, other, complement)))
    if tail > _UNDERFLOW:
        return math.log(tail)
    logs = -np.log1p(np.array([[ratio], [1.0 / ratio]]))
    return float(_log_betainc_far(np.array([other]), np.array([half]), logs[0], logs[1])[0])


def student_quantile(log_tail: float, df: ArrayLike) -> FloatArray:
    """Points whose upper Student tails have the given log probability."""
    freedom = np.atleast_1d(np.asarray(df, dtype=float))
    quantile = np.full(freedom.shape, np.nan)
    valid = freedom > 0
    start = normal_quantile(log_tail)
    if start == 0.0 or not np.isfinite(start):
        quantile[valid] = start
        return quantile
    normal = np.isposinf(freedom)
    quantile[normal] = start
    ordinary = valid & ~normal & (freedom >= 1.0) & (_FAR < log_tail < _NEAR)
    quantile[ordinary] = _student_ordinary(log_tail, freedom[ordinary])
    rest = valid & ~normal & ~ordinary
    if np.any(rest):
        quantile[rest] = _student_newton(log_tail, freedom[rest], start)
    return quantile


def _student_ordinary(log_tail: float, df: FloatArray) -> FloatArray:
    """SciPy's quantile, improved by a Newton step in log t, because its accuracy depends on the version."""
    t = -special.stdtrit(df, math.exp(log_tail))
    tail = np.log(special.stdtr(df, -t))
    log_t = np.log(t)
    slope = np.exp(_log_student_density(log_t, df) + log_t - tail)
    return np.asarray(t * np.exp((tail - log_tail) / slope), dtype=np.float64)


def _student_newton(log_tail: float, df: FloatArray, start: float) -> FloatArray:
    """Newton's method in log t, where the log tail is concave; started on the right, it never overshoots."""
    log_t = np.full(df.shape, np.log(start))
    ceiling = np.log(np.finfo(float).max)
    last = np.full(df.shape, np.inf)
    for _ in range(_MAX_NEWTON):
        inside = np.minimum(log_t, ceiling)
        tail = _log_student_tail(np.exp(inside), df)
        slope = np.exp(_log_student_density(inside, df) + inside - tail)
        step = (tail - log_tail) / slope
        log_t = inside + step
        # If a tiny step is not smaller than the one before, only rounding error of the tail is left.
        rounding = (np.abs(step) < 1e-7) & (np.abs(step) >= np.abs(last))
        if np.all(rounding | (step == 0.0) | ((inside >= ceiling) & (step > 0))):
            break
        last = step
    return np.asarray(np.where(log_t > ceiling, np.inf, np.exp(np.minimum(log_t, ceiling))), dtype=float)


def _log_student_density(log_t: FloatArray, df: FloatArray) -> FloatArray:
    spread = np.logaddexp(0.0, 2.0 * log_t - np.log(df))
    return np.asarray(
        -special.betaln(0.5 * df, np.full(df.shape, 0.5)) - 0.5 * np.log(df) - 0.5 * (df + 1.0) * spread,
        dtype=float,
    )


def log_binomial_tails(
    successes: ArrayLike, trials: ArrayLike, rate: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Logs of the lower and the upper binomial tail, both of which include the observed count."""
    count, total, theta = np.broadcast_arrays(
        np.asarray(successes, dtype=float), np.asarray(trials, dtype=float), np.asarray(rate, dtype=float)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rate, log_complement = np.log(theta), np.log1p(-theta)
    # By symmetry, P(S >= s) = I_p(s, n - s + 1) gives the other tail if successes and failures are exchanged.
    at_least = np.where(count == 0, 0.0, _masked(count, total - count + 1, log_rate, log_complement))
    at_most = np.where(count == total, 0.0, _masked(total - count, count + 1, log_complement, log_rate))
    outside = (theta < 0) | (theta > 1)
    undefined = (total < 1) | np.isnan(theta)
    for tail in (at_most, at_least):
        tail[outside] = -np.inf
        tail[undefined] = np.nan
    return at_most, at_least


def _masked(a: FloatArray, b: FloatArray, log_x: FloatArray, log_complement: FloatArray) -> FloatArray:
    result = np.full(a.shape, np.nan)
    valid = (a > 0) & (b > 0) & ~np.isnan(log_x) & ~np.isnan(log_complement)
    result[valid] = log_betainc(a[valid], b[valid], log_x[valid], log_complement[valid])
    return result


@np.errstate(under="ignore")
def binomial_limits(
    successes: ArrayLike, trials: ArrayLike, log_tail: float
) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson limits for the given log probability of each tail."""
    count, total = np.broadcast_arrays(
        np.atleast_1d(np.asarray(successes, dtype=float)), np.asarray(trials, dtype=float)
    )
    lower, upper = np.zeros(count.shape), np.ones(count.shape)
    some, not_all = count > 0, count < total
    lower[some] = np.exp(_log_betainc_inverse(count[some], (total - count + 1)[some], log_tail))
    upper[not_all] = -np.expm1(_log_betainc_inverse((total - count)[not_all], (count + 1)[not_all], log_tail))
    # Rounding error must not return impossible rates of exactly 0 or 1 to the interval.
    lower[some] = np.maximum(lower[some], np.nextafter(0.0, 1.0))
    upper[not_all] = np.minimum(upper[not_all], np.nextafter(1.0, 0.0))
    for limit in (lower, upper):
        limit[~(total >= 1)] = np.nan
    return lower, upper


def log_betainc(a: FloatArray, b: FloatArray, log_x: FloatArray, log_complement: FloatArray) -> FloatArray:
    """Log of the regularised incomplete beta function I_x(a, b)."""
    complement = special.betainc(b, a, np.exp(log_complement))
    direct = special.betainc(a, b, np.exp(log_x))
    result = np.empty(a.shape)
    upper = complement < 0.5
    result[upper] = np.log1p(-complement[upper])
    plain = ~upper & (direct > _UNDERFLOW)
    result[plain] = np.log(direct[plain])
    far = ~upper & ~plain
    if np.any(far):
        result[far] = _log_betainc_far(a[far], b[far], log_x[far], log_complement[far])
    return result


def _log_betainc_far(
    a: FloatArray, b: FloatArray, log_x: FloatArray, log_complement: FloatArray
) -> FloatArray:
    """Log of I_x(a, b) for x far below the mean, by Lentz's method for the continued fraction."""
    x = np.exp(log_x)
    front = a * log_x + b * log_complement - np.log(a) - special.betaln(a, b)
    numerator = np.ones(a.shape)
    denominator = 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    value = denominator.copy()
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            denominator = 1.0 / _nonzero(1.0 + coefficient * denominator)
            numerator = _nonzero(1.0 + coefficient / numerator)
            change = denominator * numerator
            value = value * change
        if np.all(np.abs(change - 1.0) < 4e-16):
            break
    return np.asarray(front + np.log(value), dtype=float)


def _nonzero(x: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.abs(x) < _TINY, _TINY, x), dtype=float)


def _log_betainc_inverse(a: FloatArray, b: FloatArray, log_value: float) -> FloatArray:
    """Solve log I_x(a, b) = log_value for log x, for b >= 1.

    The log of I is concave in log x and lies below the line a log x - log(a B(a, b)). Newton steps that start
    at the root of this line therefore approach the solution without overshooting.
    """
    log_beta = special.betaln(a, b)
    log_x = np.minimum((log_value + np.log(a) + log_beta) / a, -np.finfo(float).tiny)
    if not np.isfinite(log_value):
        return np.asarray(log_x, dtype=float)
    for _ in range(_MAX_NEWTON):
        log_complement = np.log(-np.expm1(log_x))
        current = log_betainc(a, b, log_x, log_complement)
        slope = np.exp(a * log_x + (b - 1.0) * log_complement - log_beta - current)
        moved = np.minimum(log_x + (log_value - current) / slope, -np.finfo(float).tiny)
        settled = np.abs(moved - log_x) <= 4e-16 * np.abs(moved)
        log_x = moved
        if np.all(settled):
            break
    return np.asarray(log_x, dtype=float)


def log_chi2_tail(statistic: float, df: float) -> float:
    """Natural log of the upper tail of chi-squared, accurate even where the tail underflows."""
    tail = float(special.chdtrc(df, statistic))
    if tail > 1e-290:
        return math.log(tail)
    # Far out, the asymptotic expansion of the incomplete gamma function needs only a few terms.
    half, x = 0.5 * df, 0.5 * statistic
    series, term = 1.0, 1.0
    for j in range(1, 12):
        term *= (half - j) / x
        series += term
    return (half - 1.0) * math.log(x) - x - math.lgamma(half) + math.log(series)


_ROOT_HALF = np.sqrt(0.5)
# The smaller scale is kept above this share of the larger one: a scale of 0 would be divided by, and such a
# small one changes nothing.
_NEGLIGIBLE = 1e-12
_DIRECT = -5.0
_COINCIDE = 1e-4
_SPREAD = 5e-5


def log_normal_laplace_tail(x: ArrayLike, sigma: ArrayLike, scale: ArrayLike) -> FloatArray:
    """Log of P(sigma Z + Laplace(scale) > x) for x >= 0.

    With z = x/sigma and k = sigma/scale, the tail is a sum of three terms, two of which would overflow by
    themselves. The terms are expressed by the scaled complementary error function, except that the growing
    term is computed directly if its argument is below -5.
    """
    point, spread, width = np.broadcast_arrays(
        np.asarray(x, dtype=float), np.asarray(sigma, dtype=float), np.asarray(scale, dtype=float)
    )
    return _log_tail(point, np.maximum(spread, _NEGLIGIBLE * width), np.maximum(width, _NEGLIGIBLE * spread))


def _log_tail(x: FloatArray, sigma: FloatArray, scale: FloatArray) -> FloatArray:
    z, k = x / sigma, sigma / scale
    difference = k - z
    far = difference < _DIRECT
    exponent = np.where(far, 0.5 * k * k - x / scale, -0.5 * z * z)
    growing = 0.5 * special.erfcx(np.maximum(difference, _DIRECT) * _ROOT_HALF)
    rest = special.erfcx(z * _ROOT_HALF) - 0.5 * special.erfcx((k + z) * _ROOT_HALF)
    if np.any(far):
        growing = np.where(far, special.ndtr(-difference), growing)
        rest = np.where(far, rest * np.exp(-0.5 * difference * difference), rest)
    return np.asarray(exponent + np.log(0.5 * (growing + rest)), dtype=float)


def log_normal_two_laplace_tail(
    x: ArrayLike, sigma: ArrayLike, scale_a: ArrayLike, scale_b: ArrayLike
) -> FloatArray:
    """Log of P(sigma Z + Laplace(scale_a) + Laplace(scale_b) > x) for x >= 0.

    Partial fractions give (a^2 T_a - b^2 T_b) / (a^2 - b^2), where T_a and T_b are the tails with one Laplace
    variable. If the squares nearly coincide, the scales are moved apart symmetrically, which causes a
    relative error of about 2.5e-9 times (x/scale)^2.
    """
    larger = np.maximum(scale_a, scale_b).astype(float)
    smaller = np.minimum(scale_a, scale_b).astype(float)
    close = larger * larger - smaller * smaller < _COINCIDE * larger * larger
    middle = 0.5 * (larger + smaller)
    larger = np.where(close, middle * (1.0 + _SPREAD), larger)
    smaller = np.where(close, middle * (1.0 - _SPREAD), smaller)
    upper = log_normal_laplace_tail(x, sigma, larger)
    lower = _lower_tail(x, sigma, smaller, upper)
    weight = np.square(smaller / np.where(larger > 0.0, larger, 1.0))
    return np.asarray(upper + np.log((1.0 - weight * np.exp(lower - upper)) / (1.0 - weight)), dtype=float)


def _lower_tail(x: ArrayLike, sigma: ArrayLike, smaller: FloatArray, upper: FloatArray) -> FloatArray:
    """Tail for the smaller scale; if this scale is 0, the tail has weight 0 and must not be computed."""
    positive = np.broadcast_to(smaller > 0.0, upper.shape)
    if not np.any(positive):
        return upper
    return np.where(positive, log_normal_laplace_tail(x, sigma, np.where(positive, smaller, 1.0)), upper)
