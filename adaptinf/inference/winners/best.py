"""Which arms may be the best: comparisons of every arm with the best of the others.

References
----------
Hsu (1984), "Constrained simultaneous confidence intervals for multiple comparisons with the best". Edwards,
Hsu (1983), "Multiple comparisons with the best treatment" (unequal variances). Dunnett (1955), "A multiple
comparison procedure for comparing several treatments with a control".
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special
from scipy.optimize import brentq

from adaptinf.inference.distributions.student_maxima import even_directions, radial_tail, root_of
from adaptinf.typing import BoolArray, FloatArray

_GROUP = 32
"""Directions of nearly the same largest lead that count as one, a power of 2."""


def compared_with_best(
    x: FloatArray, sigma: FloatArray, alpha: float, df: float = math.inf
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Intervals of each mean less the best of the others, p-values of being the best, and who may be it.

    Shapes: x (k,), sigma (k, k); returns (k, 2), (k,) and (k,).
    """
    size = x.size
    errors = difference_errors(sigma)
    tails = lead_tails(sigma, errors, df)
    leads = (x[None, :] - x[:, None]) / errors  # of the column's arm over the row's
    np.fill_diagonal(leads, -math.inf)
    ahead = leads.max(axis=1)
    p = np.array([tail(lead) for tail, lead in zip(tails, ahead, strict=True)])
    limits = np.array([critical_lead(tail, alpha, size, df) for tail in tails])
    kept = ahead < limits
    highs, lows = np.empty(size), np.empty(size)
    for arm in range(size):
        others = np.arange(size) != arm
        gap = x[arm] - x[others]
        highs[arm] = max(0.0, float(np.min(gap + limits[arm] * errors[arm, others])))
        rivals = others & kept
        own = x[arm] - x[rivals] - limits[rivals] * errors[arm, rivals]
        lows[arm] = min(0.0, float(np.min(own, initial=0.0)))
    return np.column_stack((lows, highs)), p, kept


def difference_errors(sigma: FloatArray) -> FloatArray:
    """Standard errors of all differences, 1 on the diagonal; sigma (k, k), returns (k, k)."""
    variances = np.diagonal(sigma)
    squares = variances[:, None] + variances[None, :] - 2.0 * sigma
    np.fill_diagonal(squares, 1.0)
    return np.sqrt(np.maximum(squares, 0.0))


def lead_tails(sigma: FloatArray, errors: FloatArray, df: float) -> list[Callable[[float], float]]:
    """For each arm, the chance by a limit that another one's lead, of equal means, is above it.

    Leads are in standard errors; limits that are not positive have 1. Shapes: sigma and errors (k, k).
    """
    size = len(sigma)
    if size == 2:  # one rival, one t statistic: nothing to average over
        return [lambda limit: _single(limit, df)] * 2
    factor = root_of(sigma)
    largest: list[list[FloatArray]] = [[] for _ in range(size)]
    for directions in even_directions(factor.shape[1], size):
        ends = directions @ factor.T
        for arm in range(size):
            leads = (ends - ends[:, [arm]]) / errors[arm]  # the arm's own lead over itself is 0
            largest[arm].append(np.square(leads.max(axis=1)))
    groups = [np.sort(np.concatenate(parts)).reshape(-1, _GROUP) for parts in largest]
    squares = [near.mean(axis=1) for near in groups]

    def tail_of(arm: int) -> Callable[[float], float]:
        def tail(limit: float) -> float:
            if limit <= 0.0:
                return 1.0
            single = _single(limit, df)
            found = radial_tail(limit, squares[arm], factor.shape[1], df)
            return min(max(found, single), (size - 1) * single)

        return tail

    return [tail_of(arm) for arm in range(size)]


def critical_lead(tail: Callable[[float], float], alpha: float, size: int, df: float) -> float:
    """The limit that a lead of another arm exceeds with probability alpha."""
    share = alpha / max(1, size - 1)
    most = -float(special.ndtri(share) if math.isinf(df) else special.stdtrit(df, share))
    return float(brentq(lambda limit: tail(limit) - alpha, 1e-9, most * (1.0 + 1e-9), xtol=1e-10))


def _single(limit: float, df: float) -> float:
    """Chance that one lead is above a limit, 1 where that is not positive."""
    if limit <= 0.0:
        return 1.0
    return float(special.ndtr(-limit) if math.isinf(df) else special.stdtr(df, -limit))
