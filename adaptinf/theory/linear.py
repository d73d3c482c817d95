"""Regret of LinPriv: what the paper states, and a bound for the corrected widths with its constants."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from adaptinf.parameters import choice_problem
from adaptinf.privacy.counters import COUNTERS, counter_scales, noise_nodes
from adaptinf.privacy.noise_norms import laplace_norm_bound
from adaptinf.theory.arguments import counts, each, numbers, refuse, together
from adaptinf.typing import FloatArray, IntArray

__all__ = ["counter_norm_bound", "linpriv_regret", "potential_bound"]


def linpriv_regret(
    horizon: ArrayLike,
    n_arms: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    *,
    regularisation: ArrayLike = 1.0,
    failure: ArrayLike = 0.05,
    form: str = "explicit",
    reward_scale: float = 0.5,
    norm: float = 1.0,
    counter: str = "hybrid",
    noise_norm: ArrayLike | None = None,
) -> FloatArray:
    """Regret of LinPriv, reward-private linear UCB with one model an arm.

    Parameters
    ----------
    horizon : int or array_like
        Rounds T.
    n_arms, dimension : int or array_like
        Arms K and coordinates d of a context.
    epsilon : float or array_like
        Privacy parameter, above 0; ``math.inf`` for none.
    regularisation : float or array_like
        The ridge lambda, above 0.
    failure : float or array_like
        Probability with which the bound may be exceeded, in (0, 1).
    form : {"explicit", "published"}
        ``"explicit"`` is a bound with its constants for the corrected widths. ``"published"`` is Theorem 5,
        of order only (the constant is taken to be 1), **and its third term does not follow**: see below.
    reward_scale : float
        Sub-Gaussian scale R of the rewards: 1/2 for rewards in [0, 1] (explicit).
    norm : float
        Largest length S of an arm's coefficients (explicit).
    counter : {"hybrid", "binary"}
        The continual sum of x y (explicit).
    noise_norm : float or array_like, optional
        Bound s on the length of the counters' noise, with half of `failure`; by default `counter_norm_bound`
        (explicit).

    Returns
    -------
    float or ndarray
        Of the shape that the arguments broadcast to. It is not capped: from T on it says nothing.

    Raises
    ------
    ParameterError
        Listing everything that is out of range.

    Notes
    -----
    Explicit: the arm with the highest upper limit costs at most twice its width, and the width at
    a context x of an arm with n pulls is ||x|| in the norm of V^-1, times b(n) = R sqrt(log(det V /
    det(lambda I)) + 2 log(2 K / failure)) + sqrt(lambda) S + s / sqrt(lambda), valid for all rounds and arms
    with probability 1 - failure / 2, and the other half for s. With the determinant lemma, log(det V /
    det(lambda I)) <= d log(1 + n / (d lambda)), b increases in n, and by Cauchy's inequality over pulls and
    over arms (see `potential_bound`)

        regret <= 2 b(T) sqrt(c T K d log(1 + T / (K d lambda))),  c = (1 / lambda) / log(1 + 1 / lambda).

    Contexts have lengths of at most 1 and may depend on the past.

    Published: d sqrt(T K) + sqrt(T K d lambda) + K log(T / K)^1.5 log(K / failure) 2 d log(1 + T / (K d
    lambda)) / (epsilon sqrt(lambda)), NaN for T < K. Its proof adds up lengths ||x|| as if they were squared
    lengths. The sum of the lengths of n contexts is of order sqrt(d n), not d log n: the third term of a
    correct bound grows as sqrt(T), and epsilon = sqrt(K / T) makes it linear in T.

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.
    Abbasi-Yadkori, Y., Pal, D. and Szepesvari, C. (2011). Improved algorithms for linear stochastic bandits.

    Examples
    --------
    >>> (linpriv_regret(10**6, 5, 5, [1.0, 10.0, float("inf")]) / 1000).round()
    array([153547.,  15539.,    205.])
    >>> (linpriv_regret(10**6, 5, 5, [1.0, 10.0, float("inf")], form="published") / 1000).round()
    array([120.,  27.,  16.])
    """
    problems = choice_problem("form", form, ("explicit", "published"))
    problems += choice_problem("counter", counter, COUNTERS)
    arrays: dict[str, FloatArray | IntArray] = {
        "horizon": counts("horizon", horizon, problems),
        "n_arms": counts("n_arms", n_arms, problems),
        "dimension": counts("dimension", dimension, problems),
        "epsilon": numbers("epsilon", epsilon, problems, infinite=True),
        "regularisation": numbers("regularisation", regularisation, problems),
        "failure": numbers("failure", failure, problems, 0.0, 1.0, open_high=True),
    }
    scale = float(numbers("reward_scale", float(reward_scale), problems, open_low=False))
    size = float(numbers("norm", float(norm), problems, open_low=False))
    if noise_norm is not None:
        arrays["noise_norm"] = numbers("noise_norm", noise_norm, problems, open_low=False)
    together(problems, **arrays)
    refuse("linpriv_regret", problems)

    def explicit(
        horizon: int,
        n_arms: int,
        dimension: int,
        epsilon: float,
        ridge: float,
        failure: float,
        noise: float | None = None,
    ) -> float:
        if noise is None:
            noise = _norm_bound(horizon, n_arms, dimension, epsilon, 0.5 * failure, counter)
        log_determinant = dimension * math.log1p(horizon / (dimension * ridge))
        width = scale * math.sqrt(log_determinant + 2.0 * math.log(2.0 * n_arms / failure))
        width += math.sqrt(ridge) * size + noise / math.sqrt(ridge)
        potential = n_arms * _potential(horizon / n_arms, dimension, ridge)
        return 2.0 * width * math.sqrt(horizon * potential)

    def published(
        horizon: int,
        n_arms: int,
        dimension: int,
        epsilon: float,
        ridge: float,
        failure: float,
        noise: float | None = None,
    ) -> float:
        if horizon < n_arms:
            return math.nan
        free = dimension * math.sqrt(horizon * n_arms) + math.sqrt(horizon * n_arms * dimension * ridge)
        private = n_arms * math.pow(math.log(horizon / n_arms), 1.5) * math.log(n_arms / failure)
        private *= 2.0 * dimension * math.log1p(horizon / (n_arms * dimension * ridge))
        return free + private / (epsilon * math.sqrt(ridge))

    return each(explicit if form == "explicit" else published, *arrays.values())


def potential_bound(count: ArrayLike, dimension: ArrayLike, regularisation: ArrayLike = 1.0) -> FloatArray:
    """Largest sum of squared lengths of contexts in the norm of the inverse design matrix before each.

    Parameters
    ----------
    count : int or array_like
        Number of contexts n, each of length at most 1.
    dimension : int or array_like
        Coordinates d.
    regularisation : float or array_like
        The ridge lambda, above 0.

    Returns
    -------
    float or ndarray
        c d log(1 + n / (d lambda)) with c = (1 / lambda) / log(1 + 1 / lambda).

    Raises
    ------
    ParameterError
        Listing everything that is out of range.

    Notes
    -----
    u = ||x||^2 in the norm of V^-1 is at most 1 / lambda, and u / log(1 + u) increases, so that u
    <= c log(1 + u); the logarithms add up to log(det V / det(lambda I)), which is largest for d equal
    eigenvalues. For lambda >= 1, c is at most 1 / log 2 = 1.443. The sum of the lengths themselves is at most
    sqrt(n) times the square root of this bound.

    References
    ----------
    Abbasi-Yadkori, Y., Pal, D. and Szepesvari, C. (2011). Improved algorithms for linear stochastic bandits.

    Examples
    --------
    >>> potential_bound([1, 10, 100], 1).round(3)
    array([1.   , 3.459, 6.658])
    """
    problems: list[str] = []
    number = counts("count", count, problems)
    size = counts("dimension", dimension, problems)
    ridge = numbers("regularisation", regularisation, problems)
    together(problems, count=number, dimension=size, regularisation=ridge)
    refuse("potential_bound", problems)
    return each(_potential, number, size, ridge)


def counter_norm_bound(
    horizon: ArrayLike,
    n_arms: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    failure: ArrayLike,
    counter: str = "hybrid",
) -> FloatArray:
    """Bound on the Euclidean length of the noise of vector counters, at all counts of all arms at once.

    Parameters
    ----------
    horizon : int or array_like
        Largest count T of an arm.
    n_arms, dimension : int or array_like
        Number of counters K, and coordinates d of each.
    epsilon : float or array_like
        Privacy parameter of a counter whose items have L2 length at most 1, hence L1 length at most sqrt(d).
    failure : float or array_like
        Probability with which some noise may be longer, in (0, 1).
    counter : {"hybrid", "binary"}
        The mechanism.

    Returns
    -------
    float or ndarray
        Of the shape that the arguments broadcast to.

    Raises
    ------
    ParameterError
        Listing everything that is out of range.

    Notes
    -----
    A union bound over K T noises, each at the law of the count where it is longest: more terms
    and larger scales make a sum of Laplace variables longer. Of the hybrid counter's counts either the one
    with the most nodes in the block that T lies in is worst, or the last one of the block before.

    Examples
    --------
    >>> counter_norm_bound(1000, 2, 3, [0.5, 1.0], 0.05).round(1)
    array([1410.7,  705.3])
    """
    problems = choice_problem("counter", counter, COUNTERS)
    arrays: dict[str, FloatArray | IntArray] = {
        "horizon": counts("horizon", horizon, problems),
        "n_arms": counts("n_arms", n_arms, problems),
        "dimension": counts("dimension", dimension, problems),
        "epsilon": numbers("epsilon", epsilon, problems, infinite=True),
        "failure": numbers("failure", failure, problems, 0.0, 1.0, open_high=True),
    }
    together(problems, **arrays)
    refuse("counter_norm_bound", problems)

    def bound(horizon: int, n_arms: int, dimension: int, epsilon: float, failure: float) -> float:
        return _norm_bound(horizon, n_arms, dimension, epsilon, failure, counter)

    return each(bound, *arrays.values())


def _potential(count: float, dimension: int, ridge: float) -> float:
    return dimension * math.log1p(count / (dimension * ridge)) / (ridge * math.log1p(1.0 / ridge))


def _norm_bound(
    horizon: int, n_arms: int, dimension: int, epsilon: float, failure: float, counter: str
) -> float:
    trunk, node = counter_scales(counter, epsilon, horizon, math.sqrt(dimension))
    log_failure = math.log(failure) - math.log(n_arms) - math.log(horizon)
    longest = 0.0
    for count in _longest_counts(horizon, counter):
        trunk_terms, node_terms, level = noise_nodes(counter, count)
        bound = laplace_norm_bound(trunk, trunk_terms, level * node, node_terms, dimension, log_failure)
        longest = max(longest, bound)
    return longest


def _longest_counts(horizon: int, counter: str) -> list[int]:
    """Counts up to the horizon of which one has the longest noise."""
    top = 1 << (horizon.bit_length() - 1)
    if counter == "binary":
        return [_most_bits(horizon)]
    before = [top - 1] if top > 1 else []
    return [top + _most_bits(horizon - top), *before]


def _most_bits(limit: int) -> int:
    """A number up to `limit` with the most bits set."""
    filled = (1 << max(limit.bit_length() - 1, 0)) - 1
    return limit if limit.bit_count() >= filled.bit_count() else filled
