"""Treatment effects from privately released sums: estimates, and intervals from the inversion of tests.

A private release consists of a noisy contrast sum and a noisy count of a feature's randomised rounds, or of a
noisy difference in means. All computations in this module are post-processing of these numbers.

References
----------
Li, Shi, Simchi-Levi (2024), "Privacy preserving adaptive experiment design" (the design whose releases
these are). Anderson (1955), on the probability of a symmetric convex set under a symmetric unimodal law
(why the test's p-value falls away from the estimate).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.inference.distributions.tails import log_normal_two_laplace_tail
from adaptinf.parameters import check_alpha, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray

_BISECTIONS = 55
# Golden sections end at 4e-9 of the bracket: near a maximum, doubles cannot distinguish points closer than
# 1e-8.
_SECTIONS = 40
_PEAK_GRID = 33
_BLOCK = 8192
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


@dataclass(frozen=True, slots=True)
class NoisyEffect:
    """A released effect, and the distribution of its error for any true effect.

    If the true effect is d, ``center - d`` is the sum of three independent terms: a normal variable with
    variance (1 - d^2)/size, Laplace noise of scale `scale`, and Laplace noise of scale ``twin + abs(d) *
    slope``.
    """

    center: FloatArray
    size: FloatArray
    scale: FloatArray
    slope: FloatArray
    twin: FloatArray
    valid: BoolArray

    def log_pvalues(self, null: ArrayLike) -> FloatArray:
        """Log of the two-sided p-values of ``effect == null``; shape (...,), NaN if not valid.

        A point between two accepted points is also accepted, so p <= alpha if and only if the interval at
        alpha excludes the null. Effects outside [-1, 1] are impossible.
        """
        return _log_pvalues(self, null)

    def interval(self, log_alpha: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits at ``alpha = exp(log_alpha)``, each of shape (...,).

        Both are NaN if the release is not valid, or if no effect in [-1, 1] is accepted.
        """
        return _limits(self, log_alpha)


def effect_from_sums(
    contrast_sum: ArrayLike,
    arrivals: ArrayLike,
    *,
    epsilon_sum: ArrayLike,
    epsilon_count: ArrayLike,
    minimum: ArrayLike,
) -> NoisyEffect:
    """Compute an effect from a noisy sum of (2a - 1)(r - 1/2) and a noisy count of the rounds summed.

    Parameters
    ----------
    contrast_sum : array_like
        Released sums, which are the true sums plus Laplace noise of scale 1/epsilon_sum; shape (...,).
    arrivals : array_like
        Released counts, which are the true counts plus Laplace noise of scale 2/epsilon_count; shape (...,).
    epsilon_sum, epsilon_count : array_like
        Privacy parameters spent on the two releases, which must be positive.
    minimum : array_like
        Largest count for which there is no estimate (a quarter of the planned number of rounds).

    Returns
    -------
    NoisyEffect
        The effect, whose center is 2 contrast_sum / arrivals.

    Notes
    -----
    Rewards lie in [0, 1] and arms are assigned by a fair coin. The sampling variance that is used, (1 -
    d^2)/arrivals, is exact for binary rewards, and an upper bound for other rewards, for which intervals are
    conservative.
    """
    total, count = np.broadcast_arrays(
        np.asarray(contrast_sum, dtype=float), np.asarray(arrivals, dtype=float)
    )
    budget_sum, budget_count = _positive_budgets(epsilon_sum, epsilon_count)
    valid = (count > np.maximum(minimum, 0.0)) & np.isfinite(total)
    size = np.where(valid, count, 1.0)
    # With a fair coin, a summand has mean d / 2, so center - d = (2 sum - d count) / count, in which the
    # noise of the count is multiplied by d.
    scale = np.broadcast_to(2.0 / (size * budget_sum), size.shape)
    slope = np.broadcast_to(2.0 / (size * budget_count), size.shape)
    center = np.where(valid, 2.0 * total / size, 0.0)
    return NoisyEffect(center, size, scale, slope, np.zeros(size.shape), valid)


def _positive_budgets(epsilon_sum: ArrayLike, epsilon_count: ArrayLike) -> tuple[FloatArray, FloatArray]:
    budgets = {
        "epsilon_sum": np.asarray(epsilon_sum, dtype=float),
        "epsilon_count": np.asarray(epsilon_count, dtype=float),
    }
    problems = [f"{name} must be positive" for name, value in budgets.items() if not np.all(value > 0)]
    refuse("released effect", problems)
    return budgets["epsilon_sum"], budgets["epsilon_count"]


def effect_from_mean(estimate: ArrayLike, length: ArrayLike, *, scale: ArrayLike) -> NoisyEffect:
    """Compute an effect from a noisy difference in means over a declared number of rounds.

    If each arm has half of the rounds, the variance of the difference is twice the sum of the arms' variances
    divided by `length`, which is at most (1 - d^2)/length for rewards in [0, 1].
    """
    center, size, noise = np.broadcast_arrays(
        np.asarray(estimate, dtype=float), np.asarray(length, dtype=float), np.asarray(scale, dtype=float)
    )
    valid = np.isfinite(center) & (size > 0) & (noise > 0)
    return NoisyEffect(
        np.where(valid, center, 0.0),
        np.where(valid, size, 1.0),
        np.where(valid, noise, 1.0),
        np.zeros(size.shape),
        np.zeros(size.shape),
        valid,
    )


def effect_from_two_means(difference: ArrayLike, pulls: ArrayLike, *, scale: ArrayLike) -> NoisyEffect:
    """Compute an effect from the noisy means of two arms with equally many pulls.

    Let rewards lie in [0, 1] with means m_1 and m_0, and let d = m_1 - m_0 and s = m_1 + m_0. The variance of
    the difference is at most (s - (s^2 + d^2)/2)/pulls, which is largest for s = 1, where it is (1 - d^2)/(2
    pulls). Each mean has its own Laplace noise.
    """
    center, size, noise = np.broadcast_arrays(
        np.asarray(difference, dtype=float), np.asarray(pulls, dtype=float), np.asarray(scale, dtype=float)
    )
    nothing = np.zeros(size.shape)
    return NoisyEffect(center, 2.0 * size, noise, nothing, noise, np.isfinite(center) & (size > 0.0))


def released_estimate(
    contrast_sum: ArrayLike, arrivals: ArrayLike, *, epsilon_count: ArrayLike, minimum: ArrayLike
) -> FloatArray:
    """Compute 2 D/N (1 - 8/(epsilon_count N)^2), without the second-order bias due to noise in the count.

    Parameters
    ----------
    contrast_sum, arrivals : array_like
        Released sums D and counts N, shape (...,).
    epsilon_count : array_like
        Privacy parameter spent on the counts.
    minimum : array_like
        The estimate is NaN if N is at most this value, because a ratio whose denominator may become 0 through
        noise has no mean.

    Returns
    -------
    ndarray
        Shape (...,).

    Examples
    --------
    >>> from adaptinf.inference.released.effects import released_estimate
    >>> released_estimate([20.0, 1.0], [100.0, 4.0], epsilon_count=0.4, minimum=25.0).round(4)
    array([0.398,   nan])
    """
    total, count = np.asarray(contrast_sum, dtype=float), np.asarray(arrivals, dtype=float)
    valid = count > np.maximum(minimum, 0.0)
    size = np.where(valid, count, 1.0)
    # The noise of N has variance 2 (2 / epsilon)^2, so E 1/N is about (1 + 8 / (epsilon n)^2) / n, which this
    # factor corrects.
    shrink = 1.0 - 8.0 / np.square(np.asarray(epsilon_count, dtype=float) * size)
    return np.asarray(np.where(valid, 2.0 * total / size * shrink, np.nan), dtype=float)


def released_std_error(effect: NoisyEffect) -> FloatArray:
    """Standard deviation of the effect's error at the observed effect, shape (...,); NaN if not valid."""
    squared = np.square(np.clip(effect.center, -1.0, 1.0))
    second = effect.twin + np.sqrt(squared) * effect.slope
    noise = 2.0 * (np.square(effect.scale) + np.square(second))
    return np.asarray(np.where(effect.valid, np.sqrt((1.0 - squared) / effect.size + noise), np.nan))


def released_intervals(
    contrast_sums: ArrayLike,
    arrivals: ArrayLike,
    *,
    epsilon_sum: ArrayLike,
    epsilon_count: ArrayLike,
    minimum: ArrayLike,
    alpha: float = 0.05,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates and intervals for many replications at once."""
    check_alpha("released_intervals", alpha)
    effect = effect_from_sums(
        contrast_sums, arrivals, epsilon_sum=epsilon_sum, epsilon_count=epsilon_count, minimum=minimum
    )
    estimate = released_estimate(contrast_sums, arrivals, epsilon_count=epsilon_count, minimum=minimum)
    low, high = effect.interval(float(np.log(alpha)))
    return estimate, low, high


@dataclass(frozen=True, slots=True)
class ReleasedReference:
    """Reference distribution of released effects, with p-values and intervals from the same test.

    If the test may only spend a share of the level, its p-values are divided by that share.
    """

    effect: NoisyEffect
    share: float = 1.0
    name: str = "normal + Laplace (inverted test)"
    exact: bool = False
    statistic, normal, uses_std_error = "z", False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return np.asarray(np.minimum(self.effect.log_pvalues(null) - np.log(self.share), 0.0), dtype=float)

    def interval(self, log_alpha: float) -> FloatArray:
        """Limits at level ``1 - exp(log_alpha)``, shape (k, 2)."""
        return np.stack(self.effect.interval(log_alpha + float(np.log(self.share))), axis=-1)


@dataclass(frozen=True, slots=True)
class _Folded:
    """The valid effects, shape (m,), mirrored so that no centre is negative."""

    center: FloatArray
    size: FloatArray
    scale: FloatArray
    slope: FloatArray
    twin: FloatArray


def _folded_blocks(effect: NoisyEffect) -> Iterator[tuple[IntArray, FloatArray, _Folded]]:
    """Positions, signs and mirrored effects, in blocks that stay in the processor's cache."""
    positions = np.flatnonzero(effect.valid)
    center, *others = (
        np.broadcast_to(part, effect.valid.shape).reshape(-1)
        for part in (effect.center, effect.size, effect.scale, effect.slope, effect.twin)
    )
    for start in range(0, positions.size, _BLOCK):
        rows = positions[start : start + _BLOCK]
        sign = np.where(center[rows] < 0.0, -1.0, 1.0)
        yield rows, sign, _Folded(sign * center[rows], *(part[rows] for part in others))


def _log_pvalues(effect: NoisyEffect, null: ArrayLike) -> FloatArray:
    nulls = np.broadcast_to(np.asarray(null, dtype=float), effect.valid.shape).reshape(-1)
    result = np.full(effect.valid.size, np.nan)
    for rows, sign, folded in _folded_blocks(effect):
        result[rows] = _log_envelope(folded, sign * nulls[rows])
    return result.reshape(effect.valid.shape)


def _limits(effect: NoisyEffect, log_alpha: float) -> tuple[FloatArray, FloatArray]:
    limits = np.full((2, effect.valid.size), np.nan)
    for rows, sign, folded in _folded_blocks(effect):
        inner, outer = _folded_limits(folded, log_alpha)
        limits[0, rows] = np.where(sign > 0, inner, -outer)
        limits[1, rows] = np.where(sign > 0, outer, -inner)
    low, high = limits.reshape((2, *effect.valid.shape))
    return low, high


def _log_p(folded: _Folded, value: FloatArray) -> FloatArray:
    """Log of the test's two-sided p-value at candidate effects in [-1, 1], shape (m,)."""
    spread = np.sqrt((1.0 - value) * (1.0 + value) / folded.size)
    tail = log_normal_two_laplace_tail(
        np.abs(folded.center - value), spread, folded.scale, folded.twin + np.abs(value) * folded.slope
    )
    return np.asarray(np.minimum(tail + np.log(2.0), 0.0), dtype=float)


def _log_envelope(folded: _Folded, null: FloatArray) -> FloatArray:
    """The log of the test's p-value, raised if effects on both sides of the null have larger p-values."""
    inside = np.abs(null) <= 1.0
    value = np.clip(null, -1.0, 1.0)
    peak, at_peak, at_minus, at_plus = _anchors(folded)
    left = np.maximum(at_minus, np.where(peak <= value, at_peak, -np.inf))
    right = np.maximum(at_plus, np.where(peak >= value, at_peak, -np.inf))
    raised = np.maximum(_log_p(folded, value), np.minimum(left, right))
    return np.where(inside, raised, -np.inf)


def _folded_limits(folded: _Folded, log_alpha: float) -> tuple[FloatArray, FloatArray]:
    """Hull of the accepted effects, by bisection outwards from accepted points; NaN if there are none."""
    peak, at_peak, at_minus, at_plus = _anchors(folded)
    by_peak, by_plus = at_peak > log_alpha, at_plus > log_alpha
    one = np.ones(peak.shape)
    low = _bisect(folded, np.where(by_peak, peak, one), np.where(by_peak, -one, peak), log_alpha)
    high = _bisect(folded, peak, one, log_alpha)
    low = np.where(at_minus > log_alpha, -1.0, low)
    high = np.where(by_plus, 1.0, high)
    none = ~(by_peak | by_plus)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def _bisect(folded: _Folded, accepted: FloatArray, rejected: FloatArray, log_alpha: float) -> FloatArray:
    for _ in range(_BISECTIONS):
        middle = 0.5 * (accepted + rejected)
        keep = _log_p(folded, middle) > log_alpha
        accepted = np.where(keep, middle, accepted)
        rejected = np.where(keep, rejected, middle)
    return accepted


def _anchors(folded: _Folded) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The effect with the peak of the p-value inside [-1, 1], and the log p-values there, at -1 and at 1.

    From the peak towards either end, the p-value falls. The p-value may rise again near the end, because the
    noise of the count grows with the effect. These three points determine which effects the hull contains.
    """
    peak = np.minimum(folded.center, 1.0)
    beyond = np.flatnonzero(folded.center > 1.0)
    if beyond.size:
        parts = (folded.center, folded.size, folded.scale, folded.slope, folded.twin)
        rows = _Folded(*(part[beyond] for part in parts))
        peak[beyond] = _inner_peak(rows)
    one = np.ones(peak.shape)
    return peak, _log_p(folded, peak), _log_p(folded, -one), _log_p(folded, one)


def _inner_peak(folded: _Folded) -> FloatArray:
    """First local maximum of the p-value on [1/centre, 1], for centres beyond 1."""
    angle = np.linspace(0.0, 1.0, _PEAK_GRID)[:, None]
    # Without noise, (center - d)^2 / (1 - d^2) is smallest at d = 1 / center, and noise moves the peak
    # upwards. The grid is denser near 1, where the variance falls steeply.
    start = np.arcsin(1.0 / folded.center)
    grid = np.sin(start + (0.5 * np.pi - start) * angle)
    values = np.stack([_log_p(folded, row) for row in grid])
    falls = np.vstack([values[:-1] >= values[1:], np.ones((1, folded.center.size), dtype=bool)])
    first = np.argmax(falls, axis=0)
    columns = np.arange(folded.center.size)
    low, high = grid[np.maximum(first - 1, 0), columns], grid[np.minimum(first + 1, _PEAK_GRID - 1), columns]
    return _golden_section(folded, low, high)


def _golden_section(folded: _Folded, low: FloatArray, high: FloatArray) -> FloatArray:
    for _ in range(_SECTIONS):
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        keep_left = _log_p(folded, left) >= _log_p(folded, right)
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    return 0.5 * (low + high)
