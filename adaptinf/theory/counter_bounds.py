"""Error of running sums released by the hybrid mechanism, and regret of LinPriv, which uses such sums."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import NON_NEGATIVE, OneOf, problems_of
from adaptinf.privacy.counter_noise import laplace_norm_bound, laplace_sum_quantile
from adaptinf.privacy.tree_sums import COUNTERS, counter_scales, noise_nodes
from adaptinf.theory.bound_arguments import (
    EACH_COUNT,
    EACH_LEVEL,
    EACH_POSITIVE,
    EACH_SHARE,
    FORM,
    Numbers,
    check_arrays,
    each,
)
from adaptinf.typing import FloatArray

_AT_ONCE = 4096


def hybrid_error(count: ArrayLike, epsilon: ArrayLike, delta: ArrayLike, form: str = "exact") -> FloatArray:
    """Error of the hybrid mechanism's mean of `count` items that is exceeded with probability delta.

    Parameters
    ----------
    count : int or array_like
        Number of items t.
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` means no privacy.
    delta : float or array_like
        Probability of a larger error, in (0, 1].
    form : {"exact", "published"}
        ``"exact"`` is the 1 - delta quantile of the absolute noise of the library's hybrid counter at t,
        divided by t. ``"published"`` is the right-hand side of (1) in Theorem 1 of Neel and Roth, which gives
        only an order: its constant is taken to be 1.

    Returns
    -------
    float or ndarray
        The values, in the broadcast shape of the arguments.

    Notes
    -----
    Exact: the noise at t is a sum of k + 1 Laplace(2 / epsilon) and b Laplace(2 k / epsilon) variables, where
    k = floor(log2 t) and b is the number of one-bits in t - 2^k. The quantile is valid at each t separately;
    for a bound on all counts up to T simultaneously, use delta / T.

    Published: log*(log t) (log t)^1.5 Ln(log log t) log(1 / delta) / (epsilon t). The paper prints a supremum
    over t on the left-hand side and t itself on the right; the statement is interpreted as holding at each t.
    Logarithms of t have base 2, like a tree's levels and the "binary iterated logarithm" `iterated_log`;
    log(1 / delta) is natural, and "log t^1.5" is (log t)^1.5. Ln(x) is the product of log^(r) x over r = 0,
    ..., log*(x), exactly as defined. Its last factor falls to 0 as x decreases to 1, 2, 4, 16, ...: the
    expression drops from 5.99 at t = 16 to .29 at t = 17 (epsilon = 1, delta = .05), where the quantile is
    1.56. Without the constant that the paper omits, it is not a bound. For t up to 2, log log t is not
    positive, and the undefined expression is returned as NaN.

    References
    ----------
    Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics.

    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.hybrid_error([1, 100, 10_000], epsilon=1.0, delta=0.05).round(4)
    array([5.9915, 0.5123, 0.0149])
    >>> ai.theory.hybrid_error([1, 100, 10_000], epsilon=1.0, delta=0.05, form="published").round(4)
    array([   nan, 3.268 , 0.2858])
    """
    items, level, failure = check_arrays(
        "hybrid_error",
        OneOf("exact", "published")("form", form),
        count=(count, EACH_COUNT),
        epsilon=(epsilon, EACH_LEVEL),
        delta=(delta, Numbers(0.0, 1.0)),
    )
    if form == "published":
        return each(_published, items, level, failure)
    spread = np.broadcast_arrays(items, failure)
    quantile = _quantiles(spread[0].ravel(), spread[1].ravel()).reshape(spread[0].shape)
    error: FloatArray = (quantile / (level * items))[()]
    return error


def iterated_log(values: ArrayLike) -> FloatArray:
    """Number of times that the binary logarithm must be applied until the result is at most 1.

    Parameters
    ----------
    values : float or array_like
        Finite numbers; the result is 0 for numbers up to 1.

    Returns
    -------
    float or ndarray
        log*, as whole numbers.

    Raises
    ------
    ParameterError
        If a value is not finite.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.iterated_log([1, 2, 4, 16, 17, 65_536])
    array([0., 1., 2., 3., 4., 4.])
    """
    (array,) = check_arrays("iterated_log", values=(values, Numbers(-math.inf)))
    return each(lambda value: float(_steps(value)), array)


def _steps(value: float) -> int:
    steps = 0
    while value > 1.0:
        value = math.log2(value)
        steps += 1
    return steps


def _log_product(value: float) -> float:
    """Ln, the product of the iterated logarithms down to the first one that is at most 1."""
    product = value
    while value > 1.0:
        value = math.log2(value)
        product *= value
    return product


def _published(count: int, epsilon: float, delta: float) -> float:
    if count <= 2:
        return math.nan
    log_count = math.log2(count)
    size = _steps(log_count) * math.pow(log_count, 1.5) * _log_product(math.log2(log_count))
    return size * -math.log(delta) / (epsilon * count)


def _quantiles(counts: np.ndarray, failures: FloatArray) -> FloatArray:
    """Quantiles of the absolute noise for epsilon = 1, one for each distinct distribution and probability."""
    trunk, node = counter_scales("hybrid", 1.0, 1)
    laws = np.array([noise_nodes("hybrid", int(count)) for count in counts], dtype=np.float64).reshape(-1, 3)
    cases, where = np.unique(np.column_stack([laws, failures]), axis=0, return_inverse=True)
    scales = np.column_stack([np.full(len(cases), trunk), node * cases[:, 2]])
    log_tail = np.log(0.5 * cases[:, 3])
    parts = [slice(first, first + _AT_ONCE) for first in range(0, len(cases), _AT_ONCE)]
    solved = [laplace_sum_quantile(log_tail[part], scales[part], cases[part, :2]) for part in parts]
    return np.concatenate(solved)[where.ravel()]


def linpriv_regret(
    horizon: ArrayLike,
    n_arms: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    *,
    failure: ArrayLike | None = None,
    regularisation: ArrayLike = 1.0,
    form: str = "explicit",
    noise_scale: float = 0.5,
    bound: float = 1.0,
    counter: str = "hybrid",
    noise_width: str = "projected",
    noise_norm: ArrayLike | None = None,
) -> FloatArray:
    """Regret of LinPriv, a linear UCB algorithm that protects rewards and has a separate model for each arm.

    Parameters
    ----------
    horizon : int or array_like
        Rounds T.
    n_arms, dimension : int or array_like
        Number of arms K, and dimension d of a context.
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` gives LinUCB.
    failure : float or array_like, optional
        Probability that the regret is larger, in (0, 1); by default 1 / T.
    regularisation : float or array_like
        The ridge parameter lambda, which must be positive.
    form : {"explicit", "published"}
        ``"explicit"`` is a bound with constants for the corrected widths. ``"published"`` is Theorem 5, which
        gives only an order (its constant is taken to be 1), **and its third term does not follow**: see
        below.
    noise_scale, bound : float
        Sub-Gaussian scale R of the rewards, and largest norm S of an arm's coefficients; only for the
        explicit form.
    counter : {"hybrid", "binary"}
        The mechanism for the running sums of x y; only for the explicit form.
    noise_width : {"projected", "ridge"}
        How the design's confidence limits allow for noise; only for the explicit form.
    noise_norm : float or array_like, optional
        A value that the norm s of the counters' noise exceeds with probability at most failure / 2; by
        default `counter_norm_bound`, which `LinPriv` with Laplace noise allows for. Only for the explicit
        form.

    Returns
    -------
    float or ndarray
        The values, in the broadcast shape of the arguments. The bound is not capped; if it exceeds T, it is
        uninformative.

    Notes
    -----
    Explicit: pulling the arm with the highest upper limit costs at most twice the width of its limits. In
    context x, let w = sqrt(x'V^-1 x). The width is w b plus an allowance for noise, where b = R sqrt(log(det
    V / det(lambda I)) + 2 log(2 K / failure)) + sqrt(lambda) S. The allowance is s w / sqrt(lambda)
    ("ridge"), or s times the Euclidean norm of V^-1 x ("projected"), which is never larger. For LinUCB, b
    contains K / failure instead of 2 K / failure, and there is no noise. Over the pulls of an arm, w^2 sums
    to at most `potential_bound`, and the squared norm of V^-1 x to at most d (1 + 1 / lambda) / lambda,
    because x'V^-2 x is (1 + w^2) times the decrease in the trace of V^-1. Applied to pulls and arms, the
    Cauchy-Schwarz inequality gives

        regret <= 2 (b sqrt(T P) + s sqrt(T Q)),  P = c K d log(1 + T / (K d lambda)),

    where b is evaluated at T pulls of one arm and c = (1 / lambda) / log(1 + 1 / lambda). Q is P / lambda;
    for projected widths, it is the smaller of P / lambda and K d (1 + 1 / lambda) / lambda. Contexts have
    norm at most 1 and may depend on the past.

    Published: d sqrt(T K) + sqrt(T K d lambda) + K log(T / K)^1.5 log(K / failure) 2 d log(1 + T / (K d
    lambda)) / (epsilon sqrt(lambda)), NaN for T < K. The paper's proof sums the norms w as if they were
    squared norms. The sum of the norms of n contexts is of the order sqrt(d n), not d log n: the third term
    of a correct bound grows as sqrt(T), and is linear in T for epsilon = sqrt(K / T).

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.

    Abbasi-Yadkori, Y., Pal, D. and Szepesvari, C. (2011). Improved algorithms for linear stochastic bandits.

    Examples
    --------
    >>> import adaptinf as ai
    >>> (ai.theory.linpriv_regret(10**6, 5, 5, [1.0, 10.0, float("inf")]) / 1000).round()
    array([76004.,  7806.,   226.])
    >>> (ai.theory.linpriv_regret(10**6, 5, 5, [1.0, 10.0, float("inf")], form="published") / 1000).round()
    array([365.,  51.,  16.])
    """
    problems = problems_of(
        form=(form, FORM),
        counter=(counter, OneOf(*COUNTERS)),
        noise_width=(noise_width, OneOf("projected", "ridge")),
        noise_scale=(noise_scale, NON_NEGATIVE),
        bound=(bound, NON_NEGATIVE),
    )
    rounds = EACH_COUNT.read("horizon", horizon, [])
    given = {"noise_norm": (noise_norm, Numbers(open_low=False))} if noise_norm is not None else {}
    arrays = check_arrays(
        "linpriv_regret",
        problems,
        horizon=(horizon, EACH_COUNT),
        n_arms=(n_arms, EACH_COUNT),
        dimension=(dimension, EACH_COUNT),
        epsilon=(epsilon, EACH_LEVEL),
        failure=(1.0 / np.maximum(rounds, 2) if failure is None else failure, EACH_SHARE),
        regularisation=(regularisation, EACH_POSITIVE),
        **given,
    )
    if form == "published":
        return each(_published_regret, *arrays)
    explicit = functools.partial(
        _explicit_regret, scale=float(noise_scale), size=float(bound), counter=counter, width=noise_width
    )
    return each(explicit, *arrays)


def _explicit_regret(
    horizon: int,
    n_arms: int,
    dimension: int,
    epsilon: float,
    failure: float,
    ridge: float,
    noise: float | None = None,
    *,
    scale: float,
    size: float,
    counter: str,
    width: str,
) -> float:
    """The bound with all its constants, for one set of arguments."""
    share = n_arms / failure if math.isinf(epsilon) else 2.0 * n_arms / failure
    if noise is None:
        noise = _norm_bound(horizon, n_arms, dimension, epsilon, 0.5 * failure, counter)
    # For a given trace, the determinant is largest if all eigenvalues are equal, and each context adds at
    # most 1 to the trace.
    log_determinant = dimension * math.log1p(horizon / (dimension * ridge))
    radius = scale * math.sqrt(log_determinant + 2.0 * math.log(share)) + math.sqrt(ridge) * size
    # The potential is concave in the pulls, so equal numbers of pulls of all arms are the worst case.
    lengths = n_arms * _potential(horizon / n_arms, dimension, ridge)
    allowances = lengths / ridge
    if width == "projected":
        allowances = min(allowances, n_arms * dimension * (1.0 + 1.0 / ridge) / ridge)
    return 2.0 * math.sqrt(horizon) * (radius * math.sqrt(lengths) + noise * math.sqrt(allowances))


def _published_regret(
    horizon: int,
    n_arms: int,
    dimension: int,
    epsilon: float,
    failure: float,
    ridge: float,
    noise: float | None = None,
) -> float:
    """The expression in the paper, for one set of arguments."""
    if horizon < n_arms:
        return math.nan
    free = dimension * math.sqrt(horizon * n_arms) + math.sqrt(horizon * n_arms * dimension * ridge)
    private = n_arms * math.pow(math.log(horizon / n_arms), 1.5) * math.log(n_arms / failure)
    private *= 2.0 * dimension * math.log1p(horizon / (n_arms * dimension * ridge))
    return free + private / (epsilon * math.sqrt(ridge))


def potential_bound(count: ArrayLike, dimension: ArrayLike, regularisation: ArrayLike = 1.0) -> FloatArray:
    """Largest sum of the contexts' squared norms, each with respect to the inverse design matrix before it.

    Parameters
    ----------
    count : int or array_like
        Number of contexts n, each of norm at most 1.
    dimension : int or array_like
        Coordinates d.
    regularisation : float or array_like
        The ridge parameter lambda, which must be positive.

    Returns
    -------
    float or ndarray
        c d log(1 + n / (d lambda)) with c = (1 / lambda) / log(1 + 1 / lambda).

    Notes
    -----
    The squared norm u = x'V^-1 x is at most 1 / lambda, and u / log(1 + u) is increasing, so u <= c log(1 +
    u). The logarithms sum to log(det V / det(lambda I)), which is largest for d equal eigenvalues. If lambda
    is at least 1, c is at most 1 / log 2 = 1.443. The sum of the norms themselves is at most sqrt(n) times
    the square root of this bound.

    References
    ----------
    Abbasi-Yadkori, Y., Pal, D. and Szepesvari, C. (2011). Improved algorithms for linear stochastic bandits.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.potential_bound([1, 10, 100], 1).round(3)
    array([1.   , 3.459, 6.658])
    """
    number, size, ridge = check_arrays(
        "potential_bound",
        count=(count, EACH_COUNT),
        dimension=(dimension, EACH_COUNT),
        regularisation=(regularisation, EACH_POSITIVE),
    )
    return each(_potential, number, size, ridge)


def counter_norm_bound(
    horizon: ArrayLike,
    n_arms: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    failure: ArrayLike,
    counter: str = "hybrid",
) -> FloatArray:
    """Bound on the Euclidean norm of vector counters' noise, for all counts and arms simultaneously.

    Parameters
    ----------
    horizon : int or array_like
        Largest count T of an arm.
    n_arms, dimension : int or array_like
        Number of counters K, and dimension d of each.
    epsilon : float or array_like
        Privacy parameter of a counter whose items have L2 norm at most 1, hence L1 norm at most sqrt(d).
    failure : float or array_like
        Probability that any noise vector is longer, in (0, 1).
    counter : {"hybrid", "binary"}
        The mechanism.

    Returns
    -------
    float or ndarray
        The values, in the broadcast shape of the arguments.

    Notes
    -----
    By a union bound, `failure` is divided equally among the arms, the share of an arm among the powers of two
    up to T, and the share of a power of two among the counts that begin with it. More terms, larger scales
    and a smaller share lead to longer noise vectors. The worst count is therefore one of two: among the
    counts that begin with the last power of two, the one with the most one-bits, or else the last count
    before these.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.counter_norm_bound(1000, 2, 3, [0.5, 1.0], 0.05).round(1)
    array([1539.7,  769.8])
    """
    arrays = check_arrays(
        "counter_norm_bound",
        OneOf(*COUNTERS)("counter", counter),
        horizon=(horizon, EACH_COUNT),
        n_arms=(n_arms, EACH_COUNT),
        dimension=(dimension, EACH_COUNT),
        epsilon=(epsilon, EACH_LEVEL),
        failure=(failure, EACH_SHARE),
    )

    def bound(horizon: int, n_arms: int, dimension: int, epsilon: float, failure: float) -> float:
        return _norm_bound(horizon, n_arms, dimension, epsilon, failure, counter)

    return each(bound, *arrays)


def _potential(count: float, dimension: int, ridge: float) -> float:
    return dimension * math.log1p(count / (dimension * ridge)) / (ridge * math.log1p(1.0 / ridge))


def _norm_bound(
    horizon: int, n_arms: int, dimension: int, epsilon: float, failure: float, counter: str
) -> float:
    trunk, node = counter_scales(counter, epsilon, horizon, math.sqrt(dimension))
    longest = 0.0
    for count in _longest_counts(horizon):
        trunk_terms, node_terms, factor = noise_nodes(counter, count)
        # The 2^k counts from the power 2^k on share its part of the failure probability. Note that `*` binds
        # more tightly than `<<`.
        parts = n_arms * horizon.bit_length() << (count.bit_length() - 1)
        log_failure = math.log(failure) - math.log(parts)
        bound = laplace_norm_bound(trunk, trunk_terms, factor * node, node_terms, dimension, log_failure)
        longest = max(longest, bound)
    return longest


def _longest_counts(horizon: int) -> list[int]:
    """Two counts up to the horizon, one of which has the longest noise vector."""
    top = 1 << (horizon.bit_length() - 1)
    rest = horizon - top
    # Below `rest`, no number has more one-bits than the largest number 2^k - 1.
    filled = (1 << max(rest.bit_length() - 1, 0)) - 1
    most = rest if rest.bit_count() >= filled.bit_count() else filled
    return [top + most, top - 1] if top > 1 else [top + most]
