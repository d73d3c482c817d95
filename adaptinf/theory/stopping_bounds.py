"""Bounds on the sample sizes of the stopping rules NAS and DP-NAS, and of any private rule."""

from __future__ import annotations

import math
from collections.abc import Callable

from numpy.typing import ArrayLike

from adaptinf.parameters import OneOf, problems_of, refuse
from adaptinf.theory.bound_arguments import FORM, each, stopping_numbers
from adaptinf.typing import FloatArray, IntArray

_PUBLISHED = 2000.0


def stopping_time_bound(
    mean: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    epsilon: ArrayLike | None = None,
    bound: ArrayLike = 1.0,
    *,
    form: str = "explicit",
    steps: str = "exponential",
) -> FloatArray:
    """Number of rounds within which DP-NAS (or NAS) stops with probability at least 1 - beta.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; the result for 0 is inf.
    alpha, beta : float or array_like
        Relative error and failure probability, in (0, 1).
    epsilon : float or array_like, optional
        Positive privacy parameter of DP-NAS; ``math.inf`` omits its noise. If None, the rule is NAS, with its
        own widths; only for the explicit form.
    bound : float or array_like
        Largest absolute value R of an observation.
    form : {"explicit", "published"}
        ``"explicit"`` solves the stopping condition under the event used in the proof. ``"published"`` is
        Theorem 3.3: 2000 (t0 + t1 + t2), for beta up to .08 and exponential steps.
    steps : {"exponential", "every"}
        Whether the rule checks at powers of two from t = 2 (Algorithm 2), or at every t (Algorithm 1 and
        NAS).

    Returns
    -------
    float or ndarray
        The values, in the broadcast shape of the arguments.

    Notes
    -----
    Explicit: with probability at least 1 - beta, every mean is within h_t of the truth, and every noise term
    is within the quantile that c_t allows for. The rule then stops no later than at the first t at which it
    checks and

        abs(mean) >= h_t (2 + 1 / alpha) + (2 s1 log(4 / beta) + 2 s2 log(8 m^2 / beta) + s3 log(4 / beta) /
        alpha) / t,

    where h_t = R sqrt((2 / t) log(16 m^2 / beta)), s1 = s2 = 12 R / epsilon and s3 = 4 R / epsilon. For
    exponential steps, m is log2 t; otherwise, m is t. For NAS, h_t is R sqrt((2 / t) log(4 m^2 / beta)), and
    there is no noise.

    Published: t0 = R^2 log(log(x) / beta) / (alpha mean)^2, t1 = R log(log(x) / beta) / (epsilon abs(mean)),
    t2 = R log(1 / beta) / (epsilon alpha abs(mean)), where x = R / (alpha abs(mean)). **As printed, it
    fails** for x near 1, where log(log(x) / beta) tends to minus infinity and the "bound" becomes negative
    (it is returned as printed, or as NaN if log(x) < beta). In principle, it also fails for tiny epsilon.
    `stopping_time_closed_form` is a valid version. Nevertheless, it was at least 12 times the explicit bound
    wherever it was checked with log(x) >= 1 and epsilon >= 1e-3.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Domingo, C., Gavalda, R. and Watanabe, O. (2002). Adaptive sampling methods for scaling up knowledge
    discovery algorithms.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.stopping_time_bound([0.5, 0.1, 0.01], alpha=0.1, beta=0.05, epsilon=1.0).astype(int)
    array([   16384,   524288, 67108864])
    >>> ai.theory.stopping_time_bound([0.5, 0.1, 0.01], 0.1, 0.05, 1.0, form="published").astype(int)
    array([   3410537,   91147842, 9863731154])
    """
    problems = problems_of(form=(form, FORM), steps=(steps, OneOf("exponential", "every")))
    published = form == "published"
    level = math.inf if epsilon is None else epsilon
    arrays = stopping_numbers(problems, mean, alpha, beta, level, bound)
    if published and steps == "every":
        problems.append("steps must be exponential for the published form")
    if published and epsilon is None:
        problems.append("epsilon must be given for the published form")
    if published and (arrays["beta"] > 0.08).any():
        problems.append("beta must be at most 0.08 for the published form")
    refuse("stopping_time_bound", problems)
    if published:
        return each(_published, *arrays.values())
    # With noise, only about a quarter of beta is left for the means: beta / (8 m^2) for each look instead of
    # beta / (2 m^2).
    inside = 4.0 if epsilon is None else 16.0

    def explicit(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
        if mean == 0.0:
            return math.inf
        size = abs(mean) / bound

        def stops(t: int) -> bool:
            looks = t if steps == "every" else t.bit_length() - 1
            width = math.sqrt(2.0 / t * math.log(inside * looks**2 / beta))
            # At R = epsilon = 1 the scales are s1 = s2 = 12 and s3 = 4, which give the factors 2 s1 + s3 /
            # alpha and 2 s2.
            noise = (24.0 + 4.0 / alpha) * math.log(4.0 / beta) + 24.0 * math.log(8.0 * looks**2 / beta)
            return size >= width * (2.0 + 1.0 / alpha) + noise / (epsilon * t)

        return float(_first(stops, steps == "every"))

    return each(explicit, *arrays.values())


def stopping_time_lower_bound(
    mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, bound: ArrayLike = 1.0
) -> FloatArray:
    """Number of samples that any private rule exceeds with probability above 1/4 (Theorem 3.4).

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound] and not 0.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, in (0, 1/4).
    epsilon : float or array_like
        Privacy parameter, above 0.
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        R log(1 / beta) / (12 alpha abs(mean) epsilon).

    Notes
    -----
    The stream takes only the values -R and R. The constant is taken from the proof, whose lemma holds for
    epsilon up to 2.9; for large epsilon, it fails if there are few samples. `private_stopping_limit` is valid
    for every epsilon, and it is larger.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> print(ai.theory.stopping_time_lower_bound(0.01, alpha=0.1, beta=0.05, epsilon=0.1).round(1))
    2496.4
    """
    arrays = _lower_arguments("stopping_time_lower_bound", mean, alpha, beta, epsilon, bound)

    def lower(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
        return -bound * math.log(beta) / (12.0 * alpha * abs(mean) * epsilon)

    return each(lower, *arrays.values())


def stopping_time_order(
    mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, bound: ArrayLike = 1.0
) -> FloatArray:
    """Order of the number of samples that any private rule needs (Corollary 3.6).

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound] and not 0.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, in (0, 1/4).
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` means no privacy.
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        R^2 log(1 / beta) / (alpha mean)^2 + R log(1 / beta) / (epsilon alpha abs(mean)), which is only an
        order: its constant is taken to be 1.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Dagum, P., Karp, R., Luby, M. and Ross, S. (2000). An optimal algorithm for Monte Carlo estimation.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.stopping_time_order([0.5, 0.01], alpha=0.1, beta=0.05, epsilon=1.0).astype(int)
    array([   1258, 2998728])
    """
    arrays = _lower_arguments("stopping_time_order", mean, alpha, beta, epsilon, bound)

    def order(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
        scaled = bound / (alpha * abs(mean))
        return -math.log(beta) * (scaled**2 + scaled / epsilon)

    return each(order, *arrays.values())


def _lower_arguments(subject: str, *arguments: ArrayLike) -> dict[str, FloatArray | IntArray]:
    problems: list[str] = []
    arrays = stopping_numbers(problems, *arguments)
    if (arrays["mean"] == 0.0).any():
        problems.append("mean must not be 0, for which relative error is undefined")
    if (arrays["beta"] >= 0.25).any():
        problems.append("beta must be below 1/4")
    refuse(subject, problems)
    return arrays


def _published(mean: float, alpha: float, beta: float, epsilon: float, bound: float) -> float:
    if mean == 0.0:
        return math.inf
    scaled = bound / (alpha * abs(mean))
    if math.log(scaled) < beta:
        return math.nan
    inner = math.log(math.log(scaled) / beta)
    private = scaled / epsilon * (alpha * inner - math.log(beta))
    return _PUBLISHED * (scaled**2 * inner + private)


def _first(stops: Callable[[int], bool], every: bool) -> int:
    """Number of samples by which the rule always stops; at least 2, because h exceeds R for one sample."""
    high = 2
    while not stops(high):
        high *= 2
    if not every:
        return high
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stops(middle) else (middle, high)
    return high


def stopping_time_closed_form(
    mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, epsilon: ArrayLike, bound: ArrayLike = 1.0
) -> FloatArray:
    """Number of samples within which DP-NAS in exponential steps halts with probability at least 1 - beta.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; the result for 0 is inf.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, above 0 and at most 1/5.
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` means no privacy.
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        2000 (t0 + t1 + t2), where t0 = R^2 L / (alpha mean)^2, t1 = R L / (epsilon abs(mean)), t2 = R log(1 /
        beta) / (epsilon alpha abs(mean)) and L = log(max(1, log(R / (alpha abs(mean))), log(R / (epsilon
        abs(mean)))) / beta).

    Notes
    -----
    The paper's Theorem 3.3 has L = log(log(R / (alpha abs(mean))) / beta), which is too small if epsilon is
    tiny, and if alpha abs(mean) is near R, where the bound can even be negative.

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
    """Number of samples that every private rule exceeds with probability at least 1 - sqrt(beta) - beta.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; the result for 0 is inf.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, in (0, 1/4]: above this, the statement is vacuous.
    epsilon : float or array_like
        Positive privacy parameter; for ``math.inf``, the limit is 0.
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        log(1 / beta) / (2 log(1 + d (e^epsilon - 1))), where d = alpha abs(mean) / ((1 + alpha) R).

    Notes
    -----
    The stream takes only the values -R and R. The limit applies to rules that are epsilon-private with
    respect to one sample, and whose estimate has an error of alpha abs(mean) or more with probability at most
    beta for every distribution on [-R, R]. The paper's R log(1 / beta) / (12 alpha abs(mean) epsilon) is
    proved for epsilon up to 2.9, and is about six times smaller if epsilon and alpha are small.

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
        # This is the distance in total variation from the distribution with (1 - alpha) / (1 + alpha) times
        # this mean: no estimate is close enough to both means.
        distance = alpha * abs(mean) / ((1.0 + alpha) * bound)
        if distance == 0.0:
            return math.inf
        # e^epsilon overflows from 710 on, where the logarithm is linear in epsilon.
        capped = min(epsilon, 700.0)
        # Coupled samples differ with probability `distance`, so each adds log E exp(epsilon 1{differs}) to
        # the loss.
        loss = math.log1p(distance * math.expm1(capped)) + (epsilon - capped)
        return -0.5 * math.log(beta) / loss

    return each(limit, *arrays.values())


def stopping_limit(mean: ArrayLike, alpha: ArrayLike, beta: ArrayLike, bound: ArrayLike = 1.0) -> FloatArray:
    """Expected number of samples that every stopping rule, private or not, needs at least.

    Parameters
    ----------
    mean : float or array_like
        Mean of the stream, in [-bound, bound]; the result for 0 is inf.
    alpha : float or array_like
        Relative error, in (0, 1).
    beta : float or array_like
        Failure probability, in (0, 1/2].
    bound : float or array_like
        Largest absolute value R of an observation.

    Returns
    -------
    float or ndarray
        (1 - 2 beta) log((1 - beta) / beta) / KL, where KL is the divergence of the distribution with this
        mean from the one whose mean is (1 - alpha) / (1 + alpha) times as large: about (1 + alpha)^2 R^2
        log(1 / beta) / (2 alpha^2 mean^2) for small means.

    Notes
    -----
    The stream takes only the values -R and R. The limit applies to rules that stop with probability 1, and
    whose estimate has an error of alpha abs(mean) or more with probability at most beta for every
    distribution on [-R, R].

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
        # Rewards are R or -R: the probabilities of R to be distinguished are (1 + size) / 2 and (1 + size -
        # shift) / 2.
        divergence = -0.5 * (1.0 + size) * math.log1p(-shift / (1.0 + size))
        if size < 1.0:
            divergence -= 0.5 * (1.0 - size) * math.log1p(shift / (1.0 - size))
        # By Wald's identity and the data processing inequality, E N times the divergence is at least kl(beta,
        # 1 - beta).
        odds = (1.0 - 2.0 * beta) * (math.log1p(-beta) - math.log(beta))
        return odds / divergence if divergence > 0.0 else math.inf

    return each(limit, *arrays.values())


def _arguments(subject: str, largest_beta: float, *arguments: ArrayLike) -> dict[str, FloatArray | IntArray]:
    problems: list[str] = []
    arrays = stopping_numbers(problems, *arguments, largest_beta=largest_beta)
    refuse(subject, problems)
    return arrays
