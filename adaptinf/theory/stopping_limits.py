"""Sample sizes of stopping rules, proved anew: Theorem 3.3 as it holds, lower bounds with constants."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from adaptinf.parameters import refuse
from adaptinf.theory.arguments import each, stopping_numbers
from adaptinf.typing import FloatArray, IntArray


def stopping_time_closed_form(
    mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, bound: ArrayLike = 1.0
) -> FloatArray:
    """Samples within which DP-NAS in exponential steps halts with probability at least 1 - beta.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; inf is returned for 0.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, above 0 and at most 1/5.
    epsilon : float or array_like
        Privacy parameter, above 0; ``math.inf`` for none.
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        2000 (t0 + t1 + t2) with t0 = R^2 L / (alpha mean)^2, t1 = R L / (epsilon abs(mean)), t2 = R log(1 /
        beta) / (epsilon alpha abs(mean)) and L = log(max(1, log(R / (alpha abs(mean))), log(R / (epsilon
        abs(mean)))) / beta).

    Notes
    -----
    The paper's Theorem 3.3 has L = log(log(R / (alpha abs(mean))) / beta), which is too small where epsilon
    is tiny, and where alpha abs(mean) is near R, down to bounds below 0.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.stopping_time_closed_form([0.5, 0.1], alpha=0.1, beta=0.05, epsilon=1.0).round(-3)
    array([ 3411000., 91148000.])
    """
    arrays = _arguments("stopping_time_closed_form", 0.2, mean, alpha, beta, epsilon, bound)

    def closed(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
        if mean == 0.0:
            return math.inf
        accuracy, privacy = bound / (alpha * abs(mean)), bound / (epsilon * abs(mean))
        inner = max(1.0, math.log(accuracy), math.log(privacy) if privacy > 0.0 else 0.0)
        repeated = math.log(inner) - math.log(beta)
        return 2000.0 * (accuracy**2 * repeated + privacy * (repeated - math.log(beta) / alpha))

    return each(closed, *arrays.values())


def private_stopping_limit(
    mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, bound: ArrayLike = 1.0
) -> FloatArray:
    """Samples that every private rule exceeds with probability at least 1 - sqrt(beta) - beta.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; inf is returned for 0.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, in (0, 1/4]: above, the statement is empty.
    epsilon : float or array_like
        Privacy parameter, above 0; at ``math.inf`` the limit is 0.
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        log(1 / beta) / (2 log(1 + d (e^epsilon - 1))), d = alpha abs(mean) / ((1 + alpha) R).

    Notes
    -----
    The stream takes the values -R and R only. For rules that are epsilon-private in one sample and whose
    estimate, whatever the law on [-R, R], is off by alpha abs(mean) or more with probability at most beta.
    The paper's R log(1 / beta) / (12 alpha abs(mean) epsilon) is proved for epsilon up to 2.9, and about six
    times smaller where epsilon and alpha are small.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.private_stopping_limit([0.5, 0.01], alpha=0.1, beta=0.05, epsilon=0.1).round(1)
    array([  314.1, 15667.2])
    """
    arrays = _arguments("private_stopping_limit", 0.25, mean, alpha, beta, epsilon, bound)

    def limit(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
        distance = alpha * abs(mean) / ((1.0 + alpha) * bound)
        if distance == 0.0:
            return math.inf
        # e^epsilon overflows from 710 on; up there the logarithm is linear
        capped = min(epsilon, 700.0)
        loss = math.log1p(distance * math.expm1(capped)) + (epsilon - capped)
        return -0.5 * math.log(beta) / loss

    return each(limit, *arrays.values())


def stopping_limit(mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, bound: ArrayLike = 1.0) -> FloatArray:
    """Samples that every stopping rule, private or not, takes on average.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; inf is returned for 0.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, in (0, 1/2].
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        (1 - 2 beta) log((1 - beta) / beta) / KL, KL the divergence of the law of this mean from the one with
        mean (1 - alpha) / (1 + alpha) times as large: about (1 + alpha)^2 R^2 log(1 / beta) / (2 alpha^2
        mean^2) for small means.

    Notes
    -----
    The stream takes the values -R and R only. For rules that stop with probability 1 and whose estimate,
    whatever the law on [-R, R], is off by alpha abs(mean) or more with probability at most beta.

    References
    ----------
    Dagum, P., Karp, R., Luby, M. and Ross, S. (2000). An optimal algorithm for Monte Carlo estimation. SIAM
    Journal on Computing 29.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.stopping_limit([0.5, 0.1], alpha=0.1, beta=0.05).round()
    array([  517., 15908.])
    """
    arrays = _arguments("stopping_limit", 0.5, mean, alpha, beta, math.inf, bound)

    def limit(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
        size = abs(mean) / bound
        shift = 2.0 * alpha / (1.0 + alpha) * size
        # P(R) = (1 + size) / 2 against (1 + size - shift) / 2
        divergence = -0.5 * (1.0 + size) * math.log1p(-shift / (1.0 + size))
        if size < 1.0:
            divergence -= 0.5 * (1.0 - size) * math.log1p(shift / (1.0 - size))
        odds = (1.0 - 2.0 * beta) * (math.log1p(-beta) - math.log(beta))
        return odds / divergence if divergence > 0.0 else math.inf

    return each(limit, *arrays.values())


def _arguments(subject: str, largest_beta: float, *arguments: ArrayLike) -> dict[str, FloatArray | IntArray]:
    problems: list[str] = []
    arrays = stopping_numbers(problems, *arguments, largest_beta=largest_beta)
    refuse(subject, problems)
    return arrays
