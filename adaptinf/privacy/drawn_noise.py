"""Noise drawn by a mechanism, and the exact distributions with which it is compared.

All distributions here are distributions of integers. A draw represents an interval of its distribution
function, from P(K < k) to P(K <= k), which contains a hypothetical uniform number; these numbers are
independent if the draws are. A test that uses the end of the interval in favour of the noise is exact at
every scale. The middle of the interval is the uniform number's mean given the draw, so bounds on exponential
moments of the uniform number also hold for the middle (Jensen).

All tests of a call together raise a false alarm with the given probability: each kind of test receives an
equal share of this probability, which its single tests share equally (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from adaptinf.typing import BoolArray, FloatArray, IntArray

LAPLACE, GAUSSIAN = "laplace", "gaussian"
_TABLED, _WIDTHS = 512.0, 40
"""Scale up to which the normal distribution is summed; above it, the error 1 / (24 scale^2) is negligible."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Integer noise in the order in which it was drawn.

    Parameters
    ----------
    units : ndarray of int64, shape (n,)
        The draws.
    scales : ndarray of shape (n,)
        Stated scales of the draws, in the same units.
    runs : ndarray of shape (n,)
        Number of the run, session or file of each draw, from 0; all draws of a run are contiguous.
    places : ndarray of shape (n,)
        Number of each draw's node in its run; nodes with the same name have the same number in all runs.
    names : sequence of str
        Of the places.
    law : {"laplace", "gaussian"}
        Of the noise.
    coins : ndarray of shape (n, lags), optional
        Outcomes of fair coins minus 1/2 around the round of each draw, NaN if there is none.
    before : int
        Number of columns of `coins` that belong to the round itself and to earlier rounds.
    facts : ndarray of shape (n, facts), optional
        Values determined before each draw, in [-1/2, 1/2], NaN if there were none.
    fact_names : sequence of str, optional
        Of these columns.
    own : ndarray of shape (n,), optional
        1/2 if more than half of the coins that entered a node show 1, -1/2 if fewer do, otherwise 0.
    run_names : sequence of str, optional
        Names of the runs, by default "run 1", ...
    """

    units: IntArray
    scales: FloatArray
    runs: IntArray
    places: IntArray
    names: Sequence[str]
    law: str = LAPLACE
    coins: FloatArray | None = None
    before: int = 0
    facts: FloatArray | None = None
    fact_names: Sequence[str] = ()
    own: FloatArray | None = None
    run_names: Sequence[str] = ()

    def __len__(self) -> int:
        return self.units.size

    def name(self, at: int) -> str:
        """The node of a draw, and its run if there are several."""
        node, run = self.names[int(self.places[at])], int(self.runs[at])
        if self.runs[-1] == self.runs[0]:
            return node
        return f"{node} of {self.run_names[run] if self.run_names else f'run {run + 1}'}"


class Intervals(NamedTuple):
    """Properties of draws, each with shape (n,).

    `low`, `high`: ends of the interval of the distribution function; `beyond`, `reached`: -log of the
    probability of a larger size, and of one at least as large; `middle`, `size`: middles of the intervals of
    the number and of its size, minus 1/2; `most`: the probability of the most likely integer, 0.
    """

    low: FloatArray
    high: FloatArray
    beyond: FloatArray
    reached: FloatArray
    middle: FloatArray
    size: FloatArray
    most: FloatArray


def intervals(draws: Draws) -> Intervals:
    """The intervals for draws, by their stated scales."""
    sizes = np.abs(draws.units)
    if draws.law == LAPLACE:
        inverse = 1.0 / draws.scales
        # For k > 0, P(size >= k) = 2 exp(-k / scale) / (1 + exp(-1 / scale)), whose logarithm does not
        # underflow.
        tail = np.log1p(np.exp(-inverse))
        reached = np.where(sizes > 0, sizes * inverse + tail - math.log(2.0), 0.0)
        beyond = (sizes + 1.0) * inverse + tail - math.log(2.0)
    else:
        reached, beyond = _normal_sizes(sizes, draws.scales)
    larger, least = np.exp(-beyond), np.exp(-reached)
    negative, positive = draws.units < 0, draws.units > 0
    low = np.where(negative, 0.5 * larger, np.where(positive, 1.0 - 0.5 * least, 0.5 * larger))
    high = np.where(negative, 0.5 * least, np.where(positive, 1.0 - 0.5 * larger, 1.0 - 0.5 * larger))
    size = 0.5 - 0.5 * (larger + least)
    most = probability(draws, np.zeros(len(draws)))
    return Intervals(low, high, beyond, reached, 0.5 * (low + high) - 0.5, size, most)


def _normal_sizes(sizes: IntArray, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
    """-log of the probabilities of a size at least as large, and of a larger one, shape (n,) each."""
    reached, beyond = np.zeros(sizes.size), np.zeros(sizes.size)
    for scale in np.unique(scales).tolist():
        mine = scales == scale
        few = sizes[mine].astype(np.float64)
        if scale > _TABLED:
            at_least = math.log(2.0) + special.log_ndtr(-(few - 0.5) / scale)
            reached[mine] = np.where(few > 0, -at_least, 0.0)
            beyond[mine] = -math.log(2.0) - special.log_ndtr(-(few + 0.5) / scale)
            continue
        most = math.ceil(_WIDTHS * scale) + 1
        weights = np.exp(-0.5 * (np.arange(most + 1) / scale) ** 2)
        weights[1:] *= 2.0
        upper = np.cumsum(weights[::-1])[::-1] / weights.sum()
        with np.errstate(divide="ignore"):
            tails = -np.log(np.append(upper, 0.0))
        place = np.minimum(sizes[mine], most)
        reached[mine], beyond[mine] = tails[place], tails[place + 1]
    return np.maximum(reached, 0.0), beyond


def probability(draws: Draws, values: FloatArray) -> FloatArray:
    """Probability of a value, shape (n,), given the scale of each draw."""
    inverse = 1.0 / draws.scales
    if draws.law == LAPLACE:
        return np.asarray(np.tanh(0.5 * inverse) * np.exp(-np.abs(values) * inverse))
    return np.asarray(np.exp(-0.5 * (values * inverse) ** 2) / _normalisers(draws.scales))


def multiple_probability(draws: Draws, step: int) -> FloatArray:
    """Probability of a multiple of an integer step, shape (n,): no other remainder is more likely."""
    if draws.law == LAPLACE:
        return np.asarray(np.tanh(0.5 / draws.scales) / np.tanh(0.5 * step / draws.scales))
    return _normalisers(draws.scales / step) / _normalisers(draws.scales)


def _normalisers(scales: FloatArray) -> FloatArray:
    """Sum of exp(-k^2 / (2 scale^2)) over all integers k, directly or by Poisson summation."""
    terms = np.arange(1.0, 8.0)[:, None]
    own = 1.0 + 2.0 * np.exp(-0.5 * (terms / np.minimum(scales, 1.0)) ** 2).sum(axis=0)
    wide = np.maximum(scales, 1.0)
    dual = 1.0 + 2.0 * np.exp(-2.0 * (math.pi * terms * wide) ** 2).sum(axis=0)
    return np.asarray(np.where(scales < 1.0, own, math.sqrt(2.0 * math.pi) * wide * dual))


FALSE_ALARM = 1e-6
"""Probability of any finding, over all tests of a call together, if the noise is correct."""
ODDS = np.log([2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1e3, 1e4, 1e5, 1e6, 1e7])
"""Factors by which an event may be more likely than it should be, in logs."""


class Look(NamedTuple):
    """One kind of test, the bounds of its single tests, and a description of each finding."""

    kind: str
    log_bounds: FloatArray
    words: Callable[[int], str]

    def finding(self, limit: float) -> str:
        """The most significant finding in words, and the number of others; empty if there are none."""
        number = int((self.log_bounds < limit).sum())
        if not number:
            return ""
        first = self.words(int(np.argmin(self.log_bounds)))
        return first if number == 1 else f"{first} (and {number - 1:,} more)"


def limits(looks: Sequence[Look], alarm: float) -> list[float]:
    """Log threshold for a finding at each look, given the joint probability of a false alarm."""
    return [math.log(alarm / len(looks) / max(look.log_bounds.size, 1)) for look in looks]


def too_often(hits: BoolArray, chances: FloatArray) -> float:
    """Log of a bound on the probability of at least this many hits, given a bound for each of them.

    Shapes: hits, chances (n,). The product of (1 + c (hit)) / (1 + c chance) over draws has mean at most 1
    for every c, and so has the mean of several such products: it exceeds 1 / p with probability at most p
    (Ville).
    """
    if not hits.any():
        return 0.0
    count = np.array([float(hits.sum())])
    return -log_mean(np.concatenate([log_products(one, count, chances) for one in ODDS]))


def log_products(odds: float, hits: FloatArray, chances: FloatArray) -> FloatArray:
    """Logs of the products in `too_often` for one factor, and for several numbers of hits."""
    return odds * hits - float(np.log1p(np.expm1(odds) * np.minimum(chances, 1.0)).sum())


def log_mean(logs: FloatArray) -> float:
    """Log of the mean of numbers that are given by their logarithms."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}{'s' if number != 1 else ''}"
