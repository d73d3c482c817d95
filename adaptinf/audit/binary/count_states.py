"""Final states of a two-arm binary trial, their distribution given total successes, and test statistics."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import special, stats

from adaptinf.errors import ParameterError
from adaptinf.parameters import Callee, Count, number_array, refuse
from adaptinf.texts import unlisted
from adaptinf.typing import BoolArray, FloatArray, IntArray


def certified_maximum(coefficients: FloatArray, tolerance: float = 1e-9) -> tuple[float, float]:
    """Maximum over theta of the sum over s of coefficients[s] Bin(s; T, theta).

    Shapes: coefficients (T + 1,).
    """
    # On an interval, a polynomial lies in the range of its Bernstein coefficients and equals the first and
    # the last of them at the ends. De Casteljau's algorithm halves the interval whose range reaches highest,
    # until no range reaches more than the tolerance above a value that was found.
    whole = np.asarray(coefficients, dtype=np.float64)
    best, place = max((float(whole[0]), 0.0), (float(whole[-1]), 1.0))
    queue = [(-float(whole.max()), 0.0, 1.0, whole.tobytes())]
    while -queue[0][0] > best + tolerance:
        _, low, high, stored = heapq.heappop(queue)
        middle = 0.5 * (low + high)
        left, right = _halves(np.frombuffer(stored))
        if left[-1] > best:
            best, place = float(left[-1]), middle
        for half, start, end in ((left, low, middle), (right, middle, high)):
            heapq.heappush(queue, (-float(half.max()), start, end, half.tobytes()))
    return place, max(best, -queue[0][0])


def _halves(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bernstein coefficients on the first and the second half of the interval."""
    left, right = np.empty_like(coefficients), np.empty_like(coefficients)
    row = coefficients
    for i in range(len(coefficients)):
        left[i], right[-1 - i] = row[0], row[-1]
        row = 0.5 * (row[:-1] + row[1:])
    return left, right


ALTERNATIVES = ("two-sided", "central", "greater", "less")
COUNTS = ("n1", "s1", "n0", "s0")
# Statistics that differ by less, relative to their size, are ties: they have one mathematical value, rounded
# in different ways. scipy.stats.barnard_exact misses such ties: for 3 of 10 against 9 of 10 it gives .00693,
# where .0079556 is right.
TIE = 1e-9

# A statistic takes int arrays of one shape, so one call serves all states; it must be large where arm 1 is
# better.
Statistic: TypeAlias = Callable[[Any, Any, Any, Any], Any]


def difference(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Difference of the sample proportions, arm 1 minus arm 0; 0 if an arm has no pulls."""
    one, zero = _counts(n1, s1, n0, s0)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = one[1] / one[0] - zero[1] / zero[0]
    return np.where((one[0] > 0) & (zero[0] > 0), gap, 0.0)


def unpooled_wald(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Difference divided by its unpooled standard error."""
    # If an arm has no pulls, the statistic is 0, because there is no evidence. If the standard error is 0,
    # the statistic is infinite with the sign of the difference, or 0 if the proportions are equal.
    one, zero = _counts(n1, s1, n0, s0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Products of successes and failures are whole numbers, so a standard error that should be 0 is
        # exactly 0.
        error = np.sqrt(
            one[1] * (one[0] - one[1]) / one[0] ** 3 + zero[1] * (zero[0] - zero[1]) / zero[0] ** 3
        )
    return _ratio(difference(n1, s1, n0, s0), error)


def pooled_score(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Difference divided by its standard error under equal proportions; 0 if an arm has no pulls."""
    one, zero = _counts(n1, s1, n0, s0)
    pulls, successes = one[0] + zero[0], one[1] + zero[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(successes * (pulls - successes) / (pulls * one[0] * zero[0]))
    return _ratio(difference(n1, s1, n0, s0), error)


def fisher_pvalue(n1: Any, s1: Any, n0: Any, s0: Any) -> FloatArray:
    """Fisher's two-sided p-value for the final table, treating the pulls of both arms as fixed."""
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


def normal_pvalue(statistic: FloatArray) -> FloatArray:
    """Two-sided p-value of a statistic, treated as standard normal."""
    return np.asarray(special.erfc(np.abs(statistic) / math.sqrt(2.0)), dtype=np.float64)


def read_statistic(subject: str, statistic: Any) -> Statistic:
    """Look up a statistic by name, or accept a user-defined function."""
    refuse(subject, statistic_problems(statistic))
    found: Statistic = STATISTICS[statistic] if isinstance(statistic, str) else statistic
    return found


def statistic_problems(statistic: Any) -> list[str]:
    """Problems with the name of a statistic, or with a user-defined function."""
    if isinstance(statistic, str) and statistic in STATISTICS:
        return []
    if callable(statistic):
        name = getattr(statistic, "__name__", type(statistic).__name__)
        return Callee(*COUNTS)(name, statistic)
    return [unlisted("statistic", STATISTICS, statistic, ", or a function of counts")]


def evidence(
    subject: str, statistic: Statistic, n1: IntArray, s1: IntArray, n0: IntArray, s0: IntArray
) -> FloatArray:
    """Evaluate a statistic and check its values."""
    values = values_of(subject, statistic, COUNTS, n1, s1, n0, s0)
    name = getattr(statistic, "__name__", type(statistic).__name__)
    if values.shape != n1.shape:
        problem = f"{name} must return one number for each of {n1.size} states, shape {n1.shape}"
        raise ParameterError(subject, [f"{problem}; it returned shape {values.shape}"])
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
    """Values of a user-defined function for arrays of states."""
    name = getattr(function, "__name__", type(function).__name__)
    refuse(subject, Callee(*names)(name, function))
    try:
        return np.asarray(function(*arguments), dtype=np.float64)
    except Exception as error:
        called = f"{name}({', '.join(names)}) is called with integer arrays that contain many states"
        reason = f"{type(error).__name__}: {error}"
        advice = "use np.where instead of if, and NumPy functions such as np.exp instead of math"
        raise ParameterError(
            subject, [f"{called}, shape {np.shape(arguments[0])}, and raised {reason:.200}: {advice}"]
        ) from error


def tail_weights(values: FloatArray, weights: FloatArray, alternative: str, mid_p: bool) -> FloatArray:
    """P-value of every outcome of a discrete distribution; values, weights and result have shape (k,)."""
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


@dataclass(frozen=True, eq=False, slots=True)
class ExactBias:
    """Bias of the sample means of a trial, at each theta of a grid.

    Attributes
    ----------
    arm1, arm0 : ndarray of shape (k,)
        Expected sample mean minus theta, given that the arm was pulled.
    difference : ndarray of shape (k,)
        Bias of the difference, arm 1 minus arm 0, given that both were pulled.
    unpulled1, unpulled0 : ndarray of shape (k,)
        Probability that the arm is never pulled.

    Examples
    --------
    >>> import adaptinf as ai
    >>> law = ai.audit.exact(ai.designs.EpsilonGreedy(exploration=0.2), horizon=20)
    >>> bias = law.bias(0.5, 0.5)
    >>> bool(bias.arm1 < 0.0), bool(bias.arm0 < 0.0)
    (True, True)
    """

    arm1: FloatArray
    arm0: FloatArray
    difference: FloatArray
    unpulled1: FloatArray
    unpulled0: FloatArray


def all_states(horizon: int) -> Iterator[tuple[slice, IntArray, IntArray, IntArray, IntArray]]:
    """Blocks of states after T rounds: their positions, and the counts n1, s1, n0 and s0 in each state."""
    start = 0
    for pulls in range(horizon + 1):
        others = horizon - pulls
        size = (pulls + 1) * (others + 1)
        s1, s0 = np.divmod(np.arange(size), others + 1)
        yield slice(start, start + size), np.full(size, pulls), s1, np.full(size, others), s0
        start += size


def bias_moments(horizon: int) -> Iterator[tuple[slice, FloatArray]]:
    """Blocks of indicators that arm 1, arm 0 and both were pulled, of both means, and of their difference."""
    # A mean without pulls is set to 0, because a NaN would spoil the sums; the indicators beside it exclude
    # such outcomes.
    for place, n1, s1, n0, s0 in all_states(horizon):
        one, zero = n1 > 0, n0 > 0
        mean1, mean0 = s1 / np.maximum(n1, 1), s0 / np.maximum(n0, 1)
        both = one & zero
        yield place, np.stack([one, zero, both, mean1, mean0, both * (mean1 - mean0)]).astype(float)


def block_starts(horizon: int) -> IntArray:
    """Start positions of the blocks, shape (T + 1,)."""
    pulls = np.arange(horizon + 1)
    sizes = (pulls + 1) * (horizon - pulls + 1)
    return np.asarray(np.cumsum(sizes) - sizes)


def log_factorials(horizon: int) -> FloatArray:
    """Log k! for k = 0, ..., T."""
    return np.asarray(special.gammaln(np.arange(horizon + 1) + 1.0))


def outcome_place(subject: str, horizon: int, n1: Any, s1: Any, n0: Any, s0: Any) -> int:
    """Position of an outcome among the states; error messages begin with `subject`."""
    problems = []
    for name, value in {"n1": n1, "s1": s1, "n0": n0, "s0": s0}.items():
        problems += Count(0)(name, value)
    if not problems and n1 + n0 != horizon:
        problems.append(f"n1 + n0 must equal the {horizon} rounds of the trial, got {n1} + {n0}")
    if not problems and (s1 > n1 or s0 > n0):
        problems.append(f"an arm cannot have more successes than pulls, got {s1} of {n1} and {s0} of {n0}")
    if problems:
        raise ParameterError(subject, problems)
    return int(block_starts(horizon)[n1] + s1 * (n0 + 1) + s0)


def outcomes_given(
    weights: FloatArray, horizon: int, successes: int
) -> tuple[IntArray, list[IntArray], FloatArray]:
    """Distribution of the outcome of a trial with equally good arms, given the total number of successes.

    Shapes: weights (states,); returns places (k,), counts (k,), probabilities (k,).
    """
    pulls = np.arange(horizon + 1)
    least = np.maximum(0, successes - (horizon - pulls))
    sizes = np.minimum(pulls, successes) - least + 1
    n1 = np.repeat(pulls, sizes)
    s1 = np.arange(n1.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + least[n1]
    n0, s0 = horizon - n1, successes - s1
    places = block_starts(horizon)[n1] + s1 * (n0 + 1) + s0
    table = log_factorials(horizon)
    ways = table[n1] - table[s1] - table[n1 - s1] + table[n0] - table[s0] - table[n0 - s0]
    ways -= table[horizon] - table[successes] - table[horizon - successes]
    chances = weights[places] * np.exp(ways)
    return places, [n1, s1, n0, s0], chances / chances.sum()


def conditional_pvalues(weights: FloatArray, horizon: int) -> FloatArray:
    """Two-sided conditional p-value of every state, based on the Wald statistic, of shape (states,)."""
    pvalues = np.ones(weights.size)
    for successes in range(horizon + 1):
        places, counts, chances = outcomes_given(weights, horizon, successes)
        pvalues[places] = tail_weights(STATISTICS["wald"](*counts), chances, "two-sided", False)
    return pvalues


def unconditional_region(
    horizon: int, alpha: float, by_total: Callable[[BoolArray], FloatArray]
) -> BoolArray:
    """Largest rejection region based on absolute Wald statistics with size at most alpha at every theta.

    Returns shape (states,).
    """
    values = np.empty((horizon + 1) * (horizon + 2) * (horizon + 3) // 6)
    for place, *counts in all_states(horizon):
        statistic = np.abs(STATISTICS["wald"](*counts))
        with np.errstate(invalid="ignore"):
            values[place] = np.where(np.isinf(statistic), 1.0, statistic / (1.0 + statistic))
    low, high = 0.0, 2.0
    while high - low > TIE:
        middle = 0.5 * (low + high)
        if certified_maximum(by_total(values >= middle))[1] <= alpha:
            high = middle
        else:
            low = middle
    return np.asarray(values >= high)


def pvalue_of(subject: str, test: Any) -> Callable[..., Any]:
    """P-value of a test that ignores the design, as a function of the final counts."""
    if isinstance(test, str) and test == "fisher":
        return fisher_pvalue
    if isinstance(test, str) and test in ("wald", "score"):
        return lambda *counts: normal_pvalue(STATISTICS[test](*counts))
    if callable(test):
        found: Callable[..., Any] = test
        return found
    known = "wald, score, fisher, conditional, unconditional, or a function of counts"
    raise ParameterError(subject, [f"test must be {known}, got {test!r:.60}"])


def checked_thetas(subject: str, *thetas: Any) -> list[FloatArray]:
    """Probabilities of success as flat arrays."""
    found, problems = [], []
    for theta in thetas:
        array = number_array(theta)
        if array is None or not np.all((array >= 0.0) & (array <= 1.0)):
            problems.append(f"theta must be probabilities of success in [0, 1], got {theta!r:.60}")
        else:
            found.append(array.ravel())
    if not problems:
        try:
            np.broadcast_shapes(*(np.shape(theta) for theta in thetas))
        except ValueError:
            problems.append(
                f"all thetas must have the same shape, got {[np.shape(theta) for theta in thetas]}"
            )
    refuse(subject, problems)
    return found


def binomial_law(theta: FloatArray, n: int) -> FloatArray:
    """Binomial probabilities of 0, ..., n successes, shape (k, n + 1)."""
    s = np.arange(n + 1)
    ways = special.gammaln(n + 1.0) - special.gammaln(s + 1.0) - special.gammaln(n - s + 1.0)
    return np.asarray(
        np.exp(ways + special.xlogy(s, theta[:, None]) + special.xlog1py(n - s, -theta[:, None]))
    )
