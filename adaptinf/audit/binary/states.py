"""Final states of a two-arm binary trial: where they stand, and their law given the total of successes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from adaptinf.audit.binary.bernstein import certified_maximum
from adaptinf.audit.binary.statistics import STATISTICS, TIE, fisher_pvalue, normal_pvalue, tail_weights
from adaptinf.errors import ParameterError
from adaptinf.parameters import Count, number_array, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray


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
    """Blocks of states after T rounds: their place, and the counts n1, s1, n0 and s0 of each."""
    start = 0
    for pulls in range(horizon + 1):
        others = horizon - pulls
        size = (pulls + 1) * (others + 1)
        s1, s0 = np.divmod(np.arange(size), others + 1)
        yield slice(start, start + size), np.full(size, pulls), s1, np.full(size, others), s0
        start += size


def bias_moments(horizon: int) -> Iterator[tuple[slice, FloatArray]]:
    """Blocks of moments: whether arm 1, arm 0 and both were pulled, the means and their difference.

    A mean is 0 where its arm was not pulled.
    """
    for place, n1, s1, n0, s0 in all_states(horizon):
        one, zero = n1 > 0, n0 > 0
        mean1, mean0 = s1 / np.maximum(n1, 1), s0 / np.maximum(n0, 1)
        both = one & zero
        yield place, np.stack([one, zero, both, mean1, mean0, both * (mean1 - mean0)]).astype(float)


def block_starts(horizon: int) -> IntArray:
    """Where the blocks begin, shape (T + 1,)."""
    pulls = np.arange(horizon + 1)
    sizes = (pulls + 1) * (horizon - pulls + 1)
    return np.asarray(np.cumsum(sizes) - sizes)


def log_factorials(horizon: int) -> FloatArray:
    """Log k! for k = 0, ..., T."""
    return np.asarray(special.gammaln(np.arange(horizon + 1) + 1.0))


def outcome_place(subject: str, horizon: int, n1: Any, s1: Any, n0: Any, s0: Any) -> int:
    """Where an outcome stands among the states; errors are headed by `subject`."""
    problems = []
    for name, value in {"n1": n1, "s1": s1, "n0": n0, "s0": s0}.items():
        problems += Count(0)(name, value)
    if not problems and n1 + n0 != horizon:
        problems.append(f"n1 + n0 must be the {horizon} rounds of the trial, got {n1} + {n0}")
    if not problems and (s1 > n1 or s0 > n0):
        problems.append(f"an arm cannot have more successes than pulls, got {s1} of {n1} and {s0} of {n0}")
    if problems:
        raise ParameterError(subject, problems)
    return int(block_starts(horizon)[n1] + s1 * (n0 + 1) + s0)


def outcomes_given(
    weights: FloatArray, horizon: int, successes: int
) -> tuple[IntArray, list[IntArray], FloatArray]:
    """Law of the outcome of a trial with equal arms, given the total number of successes.

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
    """Two-sided conditional p-value, by the Wald statistic, of every state; shape (states,)."""
    pvalues = np.ones(weights.size)
    for successes in range(horizon + 1):
        places, counts, chances = outcomes_given(weights, horizon, successes)
        pvalues[places] = tail_weights(STATISTICS["wald"](*counts), chances, "two-sided", False)
    return pvalues


def unconditional_region(
    horizon: int, alpha: float, by_total: Callable[[BoolArray], FloatArray]
) -> BoolArray:
    """Largest set of large absolute Wald statistics whose size is at most alpha at every theta.

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
    """P-value of a test that does not know of the design, as a function of the counts."""
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
            problems.append(f"the thetas must have one shape, got {[np.shape(theta) for theta in thetas]}")
    refuse(subject, problems)
    return found


def binomial_law(theta: FloatArray, n: int) -> FloatArray:
    """Binomial probabilities of 0, ..., n successes, shape (k, n + 1)."""
    s = np.arange(n + 1)
    ways = special.gammaln(n + 1.0) - special.gammaln(s + 1.0) - special.gammaln(n - s + 1.0)
    return np.asarray(
        np.exp(ways + special.xlogy(s, theta[:, None]) + special.xlog1py(n - s, -theta[:, None]))
    )
