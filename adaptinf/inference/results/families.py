"""The chance that any of several tests rejects, and the level at which it is alpha.

References
----------
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control". Hothorn,
Bretz, Westfall (2008), "Simultaneous inference in general parametric models". Šidák (1967), "Rectangular
confidence regions for the means of multivariate normal distributions".
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from adaptinf.inference.distributions.base import Reference, StudentReference
from adaptinf.inference.distributions.joined import JoinedReference
from adaptinf.inference.distributions.student_maxima import max_student_tail
from adaptinf.typing import BoolArray, FloatArray

_SEED = 20_231_107
_POINTS = 200_000
_STEPS = 100
_CLOSE = 1e-9


def max_normal_tail(level: float, correlation: FloatArray | None, size: int) -> float:
    """Probability that one of k two-sided normal p-values is at most a level, when all nulls are true.

    Shapes: correlation (k, k).
    """
    independent = -math.expm1(size * math.log1p(-level)) if level < 1.0 else 1.0
    if correlation is None or size == 1 or level == 0.0:
        return independent
    if np.array_equal(correlation, np.eye(size)):
        return independent
    from scipy.stats import multivariate_normal  # scipy.stats loads when needed: longer than a first table

    limit = -float(special.ndtri(0.5 * level))
    inside = multivariate_normal.cdf(
        np.full(size, limit),
        cov=correlation,
        allow_singular=True,
        lower_limit=np.full(size, -limit),
        maxpts=_POINTS,
        abseps=1e-6,
        releps=0.0,
        rng=np.random.default_rng(_SEED),
    )
    return float(min(max(1.0 - float(inside), level), independent))


def familywise_level(tail: Callable[[float], float], alpha: float, size: int) -> float:
    """Largest level of the single tests at which the chance of any false rejection is at most alpha."""
    low, high = alpha / size, alpha
    if tail(high) <= alpha:
        return high
    if tail(low) < alpha:
        from scipy import optimize  # loads when needed: longer than a first table

        low = optimize.brentq(lambda level: tail(level) - alpha, low, high, xtol=_CLOSE * low, maxiter=_STEPS)
    # Where rounding leaves the chance above alpha, steps as small as the root is uncertain do.
    while tail(low) > alpha:
        low *= 1.0 - 2.0 * _CLOSE
    return float(low)


def family_of(
    law: Reference, covariance: FloatArray | None, usable: BoolArray, method: str
) -> tuple[Reference, Callable[[float], float], int]:
    """Law of the single tests, chance of any false rejection by their level, and their number.

    Shapes: covariance (k, k), usable (k,), terms that have a p-value. The method is ``"max-t"``, ``"sidak"``
    or ``"bonferroni"``; of t statistics the largest takes the fewest degrees of freedom of any.
    """
    size = int(usable.sum())
    if method == "sidak":
        return law, lambda level: max_normal_tail(level, None, size), size
    if method == "bonferroni" or covariance is None or size == 0:
        return law, lambda level: min(1.0, size * level), size
    spread = covariance[np.ix_(usable, usable)]
    scale = np.sqrt(np.diag(spread))
    if not np.all(scale > 0.0):
        return law, lambda level: min(1.0, size * level), size
    correlation = spread / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    if isinstance(law, StudentReference) and np.all(np.isfinite(law.df[usable])):
        least = float(law.df[usable].min())
        common = StudentReference(law.estimate, law.std_error, np.full(len(law.df), least))
        return common, max_student_tail(correlation, least), size
    if isinstance(law, JoinedReference) and np.any(np.isfinite(law.df[usable])):
        return law, max_student_tail(correlation, float(law.df[usable].min())), size
    return law, lambda level: max_normal_tail(level, correlation, size), size
