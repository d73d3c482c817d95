"""Multiple tests: p-values adjusted for the number of tests, and levels of single tests.

References
----------
Holm (1979), "A simple sequentially rejective multiple test procedure". Benjamini, Hochberg (1995),
"Controlling the false discovery rate: a practical and powerful approach to multiple testing".
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control". Hothorn,
Bretz, Westfall (2008), "Simultaneous inference in general parametric models". Šidák (1967), "Rectangular
confidence regions for the means of multivariate normal distributions".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from adaptinf.claims import Said, laws, tables
from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.references import JoinedReference, Reference, StudentReference
from adaptinf.inference.distributions.student_sums import max_student_tail
from adaptinf.typing import BoolArray, FloatArray

ADJUSTMENTS = {"holm": "Holm", "bh": "BH"}
"""The names of the adjustments in tables."""
AT_ONCE = "max-t"
"""The name of the adjustment that gives simultaneous inference for all terms of a table."""


def check_adjustment(subject: str, method: object, *also: str) -> None:
    """Refuse an unknown adjustment."""
    if not isinstance(method, str) or method not in (*ADJUSTMENTS, *also):
        more = "".join(f", or {name!r}" for name in also)
        problem = f"the adjustment must be 'holm' or 'bh' (Benjamini and Hochberg){more}, got {method!r:.60}"
        raise ParameterError(subject, [problem])


@np.errstate(under="ignore")
def probabilities(logs: Any) -> FloatArray:
    """Exponentials of log probabilities, shape (k,); 0 if they underflow."""
    return np.asarray(np.exp(np.asarray(logs, dtype=np.float64)), dtype=np.float64)


def adjusted_logs(log_pvalues: FloatArray, method: str) -> FloatArray:
    """Natural logarithms of adjusted p-values, which are accurate even if p-values underflow.

    Shapes: log_pvalues (k,); returns (k,).

    Let p(1) to p(n) be the p-values in ascending order. Holm's adjusted p-values are the running maxima of (n
    - i + 1) p(i), and those of Benjamini and Hochberg are the minima of n p(j) / j over all j >= i. Both are
    at most 1.
    """
    # statsmodels' multipletests does not work with logarithms (a p-value below 1e-323 becomes 0), and it
    # counts NaN as a test.
    adjusted = np.full(len(log_pvalues), np.nan)
    known = np.flatnonzero(~np.isnan(log_pvalues))
    order = known[np.argsort(log_pvalues[known], kind="stable")]
    rank, size = np.arange(1, len(order) + 1), len(order)
    if method == "holm":
        found = np.maximum.accumulate(log_pvalues[order] + np.log(size + 1 - rank))
    else:
        found = np.minimum.accumulate((log_pvalues[order] + np.log(size / rank))[::-1])[::-1]
    adjusted[order] = np.minimum(found, 0.0)
    return adjusted


def adjustment_note(method: str, count: int, *, corrected: bool) -> str:
    """The note that explains the adjusted column of a summary, for this number of p-values."""
    start = "the corrected p-values" if corrected else "the p-values"
    if method == "holm":
        return tables.HOLM(pvalues=start, count=count)
    return tables.BH(pvalues=start, count=count)


def at_once_note(count: int, known: bool) -> str:
    """The note that explains the simultaneous columns of a summary, for this number of terms."""
    return tables.AT_ONCE(count=count, method=simultaneous_law(known))


def simultaneous_law(known: bool) -> Said:
    """The distribution of simultaneous limits, given whether the covariance of the terms is known."""
    return laws.LARGEST_T() if known else laws.BONFERRONI()


_SEED = 20_231_107
_POINTS = 200_000
_STEPS = 100
_CLOSE = 1e-9


def max_normal_tail(level: float, correlation: FloatArray | None, size: int) -> float:
    """Probability that some of k two-sided normal p-values is at most a level if all nulls are true.

    Shapes: correlation (k, k).
    """
    independent = -math.expm1(size * math.log1p(-level)) if level < 1.0 else 1.0
    if correlation is None or size == 1 or level == 0.0:
        return independent
    if np.array_equal(correlation, np.eye(size)):
        return independent
    # scipy.stats takes longer to load than the first table takes without it.
    from scipy.stats import multivariate_normal

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
    """Largest level for single tests at which the probability of any false rejection is at most alpha."""
    low, high = alpha / size, alpha
    if tail(high) <= alpha:
        return high
    if tail(low) < alpha:
        # scipy.optimize takes longer to load than the first table takes without it.
        from scipy import optimize

        low = optimize.brentq(lambda level: tail(level) - alpha, low, high, xtol=_CLOSE * low, maxiter=_STEPS)
    # Rounding error may leave the probability above alpha; steps as small as the uncertainty of the root then
    # reduce it.
    while tail(low) > alpha:
        low *= 1.0 - 2.0 * _CLOSE
    return float(low)


def family_of(
    law: Reference, covariance: FloatArray | None, usable: BoolArray, method: str
) -> tuple[Reference, Callable[[float], float], int]:
    """Distribution of single tests, probability of any false rejection by their level, and number of tests.

    Shapes: covariance (k, k); usable (k,), the terms that have a p-value. The method is ``"max-t"``,
    ``"sidak"`` or ``"bonferroni"``; for t statistics, max-t uses the smallest degrees of freedom.
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
