"""Statistics of a two-arm binary trial that are functions of its final counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import special, stats

from adaptinf.errors import ParameterError
from adaptinf.parameters import Callee, refuse
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, IntArray

ALTERNATIVES = ("two-sided", "central", "greater", "less")
COUNTS = ("n1", "s1", "n0", "s0")
TIE = 1e-9
"""Statistics within this share of each other are ties: one mathematical value, rounded differently."""
# scipy.stats.barnard_exact loses such ties: .00693 for 3 of 10 against 9 of 10, where .0079556 is right

Statistic: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""``statistic(n1, s1, n0, s0)`` for int arrays of one shape: an array of it, large where arm 1 is better."""


def difference(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Difference of the sample proportions, arm 1 minus arm 0; 0 where an arm has no pulls."""
    one, zero = _counts(n1, s1, n0, s0)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = one[1] / one[0] - zero[1] / zero[0]
    return np.where((one[0] > 0) & (zero[0] > 0), gap, 0.0)


def unpooled_wald(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Difference over its unpooled standard error.

    Where an arm has no pulls the statistic is 0. Where the standard error is 0 it is infinite with the sign
    of the difference, or 0 where the proportions are equal.
    """
    one, zero = _counts(n1, s1, n0, s0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Successes times failures are whole numbers, so that a standard error of 0 is exactly 0.
        error = np.sqrt(
            one[1] * (one[0] - one[1]) / one[0] ** 3 + zero[1] * (zero[0] - zero[1]) / zero[0] ** 3
        )
    return _ratio(difference(n1, s1, n0, s0), error)


def pooled_score(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Difference over its standard error under equal proportions; 0 where an arm has no pulls."""
    one, zero = _counts(n1, s1, n0, s0)
    pulls, successes = one[0] + zero[0], one[1] + zero[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(successes * (pulls - successes) / (pulls * one[0] * zero[0]))
    return _ratio(difference(n1, s1, n0, s0), error)


def fisher_pvalue(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Fisher's two-sided p-value of the final table, which takes the pulls of both arms for fixed."""
    one, zero = _counts(n1, s1, n0, s0)
    shape = one[0].shape
    keys, inverse = np.unique(
        np.stack([x.ravel() for x in (one[0], zero[0], one[1] + zero[1])]).astype(np.int64),
        axis=1,
        return_inverse=True,
    )
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(keys.shape[1] + 1))
    observed, pvalue = one[1].ravel().astype(np.int64), np.empty(one[1].size)
    for (pulls, others, total), low, high in zip(keys.T, bounds[:-1], bounds[1:], strict=True):
        where = order[low:high]
        if pulls + others == 0:
            pvalue[where] = 1.0
            continue
        least, most = max(0, total - others), min(pulls, total)
        density = stats.hypergeom.pmf(np.arange(least, most + 1), pulls + others, total, pulls)
        ranked = np.sort(density)
        reached = np.searchsorted(ranked, density[observed[where] - least] * (1.0 + 1e-7), side="right")
        pvalue[where] = np.minimum(np.cumsum(ranked)[reached - 1], 1.0)
    return pvalue.reshape(shape)


STATISTICS: dict[str, Statistic] = {"wald": unpooled_wald, "score": pooled_score, "difference": difference}
"""Named statistics."""


def normal_pvalue(statistic: FloatArray) -> FloatArray:
    """Two-sided p-value of a statistic that is taken for standard normal."""
    return np.asarray(special.erfc(np.abs(statistic) / math.sqrt(2.0)), dtype=np.float64)


def read_statistic(subject: str, statistic: Any) -> Statistic:
    """A statistic by name, or a function of the user's."""
    refuse(subject, statistic_problems(statistic))
    found: Statistic = STATISTICS[statistic] if isinstance(statistic, str) else statistic
    return found


def statistic_problems(statistic: Any) -> list[str]:
    """What is wrong with a statistic's name, or with a user's function."""
    if isinstance(statistic, str) and statistic in STATISTICS:
        return []
    if callable(statistic):
        name = getattr(statistic, "__name__", type(statistic).__name__)
        return Callee(*COUNTS)(name, statistic)
    return [unlisted("statistic", STATISTICS, statistic, ", or a function of counts")]


def evidence(
    subject: str, statistic: Statistic, n1: IntArray, s1: IntArray, n0: IntArray, s0: IntArray
) -> FloatArray:
    """Values of a statistic, checked."""
    values = values_of(subject, statistic, COUNTS, n1, s1, n0, s0)
    name = getattr(statistic, "__name__", type(statistic).__name__)
    if values.shape != n1.shape:
        problem = f"{name} must give one number for each of {n1.size} states, shape {n1.shape}"
        raise ParameterError(subject, [f"{problem}; it gave shape {values.shape}"])
    missing = np.isnan(values)
    if missing.any():
        first = int(np.argmax(missing))
        here = zip(COUNTS, (n1, s1, n0, s0), strict=True)
        state = ", ".join(f"{label}={int(count[first])}" for label, count in here)
        problem = f"{name} is NaN in {int(missing.sum())} of {n1.size} states, first at {state}"
        raise ParameterError(subject, [f"{problem}: return a number for every state, such as 0"])
    return values


def values_of(
    subject: str, function: Callable[..., Any], names: tuple[str, ...], *arguments: Any
) -> FloatArray:
    """What a user's function gives for arrays of states."""
    name = getattr(function, "__name__", type(function).__name__)
    refuse(subject, Callee(*names)(name, function))
    try:
        return np.asarray(function(*arguments), dtype=np.float64)
    except Exception as error:
        called = f"{name}({', '.join(names)}) is called with int arrays of many states at once"
        reason = f"{type(error).__name__}: {error}"
        advice = "use np.where instead of if, and np.exp and the like instead of math"
        raise ParameterError(
            subject, [f"{called}, shape {np.shape(arguments[0])}, and raised {reason:.200}: {advice}"]
        ) from error


def tail_weights(values: FloatArray, weights: FloatArray, alternative: str, mid_p: bool) -> FloatArray:
    """P-value of every outcome of a discrete law; values (k,), weights (k,); returns (k,)."""
    if alternative == "two-sided":
        return _at_least(np.abs(values), weights, mid_p)
    if alternative == "greater":
        return _at_least(values, weights, mid_p)
    if alternative == "less":
        return _at_least(-values, weights, mid_p)
    both = np.minimum(_at_least(values, weights, mid_p), _at_least(-values, weights, mid_p))
    return np.asarray(np.minimum(2.0 * both, 1.0))


def _at_least(values: FloatArray, weights: FloatArray, mid_p: bool) -> FloatArray:
    order = np.argsort(-values, kind="stable")
    ranked, sums = -values[order], np.concatenate([[0.0], np.cumsum(weights[order])])
    slack = np.where(np.isfinite(values), TIE * np.maximum(np.abs(values), TIE), 0.0)
    through = sums[np.searchsorted(ranked, -values + slack, side="right")]
    if mid_p:
        through = 0.5 * (through + sums[np.searchsorted(ranked, -values - slack, side="left")])
    return np.asarray(np.minimum(through, 1.0))


def _counts(*counts: Any) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    n1, s1, n0, s0 = np.broadcast_arrays(*(np.asarray(entry, dtype=np.float64) for entry in counts))
    return (n1, s1), (n0, s0)


def _ratio(gap: FloatArray, error: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = gap / error
    return np.where(gap == 0.0, 0.0, np.where(error > 0.0, ratio, np.copysign(np.inf, gap)))
