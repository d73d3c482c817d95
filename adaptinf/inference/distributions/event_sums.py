"""Inference on weighted sums of rare events: gamma limits for Poisson counts, and MOVER for differences.

References
----------
Fay, Feuer (1997), "Confidence intervals for directly standardized rates: a method based on the gamma
distribution". Zou, Donner (2008), "Construction of confidence limits about effect measures: a general
approach" (MOVER: limits of a difference from those of its parts).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from adaptinf.claims.laws import GAMMA
from adaptinf.inference.distributions.sample_shape import common_outcome
from adaptinf.inference.distributions.tails import LOG_2, normal_quantile
from adaptinf.typing import BoolArray, FloatArray

_LEAST = -700.0
"""Logarithm of the smallest tail probability for which gamma quantiles are computed."""
_BISECTIONS = 64


def gamma_limits(
    total: FloatArray, variance: FloatArray, largest: FloatArray, tail: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Limits of the mean of a weighted sum of counts, each with error probability `tail`.

    `total` is the sum of the events' weights, `variance` that of their squares, and `largest` is the largest
    possible weight of the next event. Call these y, v and w. The lower limit is a quantile of the gamma
    distribution with mean y and variance v, and the upper limit is a quantile of the one with mean y + w and
    variance v + w^2. If all weights are equal, these are the exact limits of a Poisson mean.
    """
    least = _gamma_quantile(total, variance, tail, special.gammaincinv)
    most = _gamma_quantile(total + largest, variance + largest**2, tail, special.gammainccinv)
    return least, most


def _gamma_quantile(
    mean: FloatArray, variance: FloatArray, tail: FloatArray, inverse: np.ufunc
) -> FloatArray:
    """Quantile of a gamma distribution; 0 if the mean is 0."""
    some = (mean > 0.0) & (variance > 0.0)
    scale = np.divide(variance, mean, out=np.ones(mean.shape), where=some)
    shape = np.divide(mean, scale, out=np.ones(mean.shape), where=some)
    return np.where(some, scale * inverse(shape, tail), mean)


@dataclass(frozen=True, slots=True, eq=False)
class EventSums:
    """Sums over the rounds with uncommon rewards (events), in two parts for each of k estimates.

    Shapes: total, variance, largest (k, 2).

    Events of the first part raise an estimate, and events of the second lower it. For each part, `total` is
    the sum of the events' contributions, `variance` the sum of their squares, and `largest` the largest
    contribution that an event in any round could have made.
    """

    total: FloatArray
    variance: FloatArray
    largest: FloatArray

    def of(self, rows: slice | BoolArray) -> EventSums:
        """The sums for some of the estimates."""
        return EventSums(self.total[rows], self.variance[rows], self.largest[rows])

    def enlarged(self, std_error: FloatArray) -> EventSums:
        """The sums, with variances increased to the squared standard errors if these are larger."""
        known = self.variance.sum(axis=1)
        ratio = np.divide(std_error**2, known, out=np.ones(known.shape), where=known > 0.0)
        return replace(self, variance=self.variance * np.fmax(ratio, 1.0)[:, None])


def event_sums(share: FloatArray, reward: FloatArray, values: tuple[float, float] | None = None) -> EventSums:
    """Sums of the uncommon rewards that enter k estimates; share (T, k), reward (T,).

    `share` is the amount that one unit of a round's reward adds to an estimate. An event is a reward that
    differs from the most common one among the rounds whose rewards raise the estimate, or among those whose
    rewards lower it; if no reward is common there, the sums are NaN. A further event is assumed to be at most
    as large as the largest reward in the log, or as the larger of the two `values` that rewards can take,
    which matters if all rewards are equal.
    """
    sums = np.zeros((3, share.shape[1], 2))
    low, high = (np.inf, -np.inf) if values is None else values
    ends = np.array([reward.max(initial=high), reward.min(initial=low)])
    for j, own in enumerate(share.T):
        for used in (own > 0.0, own < 0.0):
            if not used.any():
                continue
            common = common_outcome(reward[used])
            sums[:, j] += (
                np.nan if common is None else _sides(own[used], reward[used] - common, ends - common)
            )
    return EventSums(*sums)


def _sides(share: FloatArray, above: FloatArray, ends: FloatArray) -> FloatArray:
    """Total, sum of squares and largest gain of the events that raise or lower an estimate, shape (3, 2).

    Shapes: share, above (n,), ends (2,). `ends` contains the largest and the smallest possible event.
    """
    gains, reach = share * above, share[:, None] * ends
    found = []
    for side in (1.0, -1.0):
        gain = np.maximum(side * gains, 0.0)
        found.append([gain.sum(), gain @ gain, max(0.0, float((side * reach).max()))])
    return np.array(found).T


def event_sums_of_cells(
    coefficient: FloatArray, moments: FloatArray, smallest: FloatArray, values: tuple[float, float]
) -> EventSums:
    """Sums of uncommon rewards from which k estimates are computed, if rewards have two `values`.

    Shapes: coefficient (B, k, S), the weight of a reward in an estimate, times the propensity e of the chosen
    arm, moments (5, 4, B, S), sums of y^j / e^p as in `Cells`, about 0, smallest (B, S).

    It is assumed that one more event could have had the smallest propensity of any cell.
    """
    low, high = values
    step, sums = high - low, np.zeros((3, coefficient.shape[1], 2))
    count, inverse, square = moments[:3, 0]
    highs = (moments[:3, 1] - low * moments[:3, 0]) / step
    for j in range(coefficient.shape[1]):
        own = coefficient[:, j]
        for side in (own > 0.0, own < 0.0):
            used = side & (count > 0.0)
            n, k = float(count[used].sum()), float(highs[0][used].sum())
            if n == 0.0:
                continue
            if max(k, n - k) < 1.5:
                sums[:, j] = np.nan
                continue
            lows_are_common = k <= n - k
            events = highs if lows_are_common else np.stack([count, inverse, square]) - highs
            size = step * np.abs(own[used])
            found = size @ events[1][used], size**2 @ events[2][used], (size / smallest[used]).max()
            raises = bool(own[used][0] > 0.0) == lows_are_common
            sums[:, j, 0 if raises else 1] += found
    return EventSums(*sums)


@dataclass(frozen=True, slots=True, eq=False)
class EventSumReference:
    """Two-sided tests and intervals for estimates that few events determine.

    Shapes: estimate (k,), sums (k, 2).

    Apart from terms that vary little if events are rare, the estimate is a sum over the events, with weights
    that depend on the past alone. Let y_1, l_1 and u_1 be the total and the limits of the part that raises
    the estimate, and y_2, l_2 and u_2 those of the part that lowers it. By MOVER, the distances of the limits
    from the estimate are

        [(y_1 - l_1)^2 + (u_2 - y_2)^2]^(1/2) below and [(u_1 - y_1)^2 + (y_2 - l_2)^2]^(1/2) above.

    P-values are obtained from intervals by inversion.

    Fay, M. P. and Feuer, E. J. (1997). Confidence intervals for directly standardized rates: a method based
    on the gamma distribution. Statistics in Medicine 16, 791-801.
    """

    estimate: FloatArray
    sums: EventSums
    name: str = field(default=GAMMA(), init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "z", False, False

    def statistics(self, null: float) -> FloatArray:
        """Normal quantiles of the p-values, with the sign of estimate minus null, shape (k,)."""
        tails = self.log_pvalues(null) - LOG_2
        sizes = [0.0 if tail >= -LOG_2 else normal_quantile(tail) for tail in tails.tolist()]
        return np.asarray(np.sign(self.estimate - null) * np.array(sizes) + 0.0 * tails, dtype=np.float64)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,); -inf if no interval reaches the null."""
        distance = self.estimate - null
        size = np.abs(distance)
        low = np.full(size.shape, _LEAST)
        high = np.full(size.shape, -LOG_2)
        never = self._reach(np.full(size.shape, -np.inf), distance) < size
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            within = self._reach(middle, distance) >= size
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        found = np.where(self._reach(np.full(size.shape, -LOG_2), distance) >= size, 0.0, low + LOG_2)
        return np.where(np.isnan(size), np.nan, np.where(never, -np.inf, found))

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        tail = np.full(self.estimate.shape, log_alpha - LOG_2)
        below = self._reach(tail, np.ones(tail.shape))
        above = self._reach(tail, -np.ones(tail.shape))
        return np.column_stack((self.estimate - below, self.estimate + above))

    @np.errstate(under="ignore")
    def _reach(self, log_tail: FloatArray, side: FloatArray) -> FloatArray:
        """Distance from the estimate to the lower limit if `side` is positive, or else to the upper limit."""
        total = self.sums.total
        tail = np.where(log_tail < _LEAST, 0.0, np.exp(log_tail))[:, None]
        least, most = gamma_limits(
            total, self.sums.variance, self.sums.largest, np.broadcast_to(tail, total.shape)
        )
        down, up = total - least, most - total
        swapped = np.where(side[:, None] > 0.0, [True, False], [False, True])
        return np.asarray(np.hypot(*np.where(swapped, down, up).T), dtype=np.float64)
