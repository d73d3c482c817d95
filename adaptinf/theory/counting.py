"""Error of the hybrid mechanism's running means: the paper's expression, and the exact quantile."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import OneOf
from adaptinf.privacy.counter_noise import laplace_sum_quantile
from adaptinf.privacy.tree_sums import counter_scales, noise_nodes
from adaptinf.theory.arguments import EACH_COUNT, EACH_LEVEL, Numbers, check_arrays, each
from adaptinf.typing import FloatArray

_AT_ONCE = 4096


def hybrid_error(count: ArrayLike, epsilon: ArrayLike, delta: ArrayLike, form: str = "exact") -> FloatArray:
    """Error of the hybrid mechanism's mean of `count` items that is exceeded with probability delta.

    Parameters
    ----------
    count : int or array_like
        Number of items t.
    epsilon : float or array_like
        Privacy parameter, above 0; ``math.inf`` for none.
    delta : float or array_like
        Probability of a larger error, in (0, 1].
    form : {"exact", "published"}
        ``"exact"`` is the 1 - delta quantile of the absolute noise of the library's hybrid counter at t,
        divided by t. ``"published"`` is the right-hand side of (1) in Theorem 1 of Neel and Roth, of order
        only: its constant is taken to be 1.

    Returns
    -------
    float or ndarray
        Of the shape that the arguments broadcast to.

    Notes
    -----
    Exact: the noise at t is a sum of k + 1 Laplace(2 / epsilon) and b Laplace(2 k / epsilon)
    variables, k = floor(log2 t) and b the number of one-bits of t - 2^k. The quantile holds at each t on its
    own; for all counts up to T at once take delta / T.

    Published: log*(log t) (log t)^1.5 Ln(log log t) log(1 / delta) / (epsilon t). The paper prints a supremum
    over t on the left and t on the right: it is read at each t. Logarithms of t have base 2, as a tree's
    levels and the "binary iterated logarithm" `iterated_log` have, log(1 / delta) is natural, and "log t^1.5"
    is (log t)^1.5. Ln(x) is the product of log^(r) x over r = 0, ..., log*(x), to the letter. Its last factor
    falls to 0 as x comes down to 1, 2, 4, 16, ...: the expression drops from 5.99 at t = 16 to .29 at t = 17
    (epsilon = 1, delta = .05), where the quantile is 1.56. Without the constant that the paper leaves out it
    is no bound. For t up to 2, log log t is not above 0 and the expression makes no sense: NaN.

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
    """How often the binary logarithm has to be taken until the result is at most 1.

    Parameters
    ----------
    values : float or array_like
        Numbers, finite; 0 for those up to 1.

    Returns
    -------
    float or ndarray
        log*, whole numbers.

    Raises
    ------
    ParameterError
        If a value is not a finite number.

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
    """Ln: the product of the iterated logarithms, down to the first one that is at most 1."""
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
    """Quantiles of the absolute noise at epsilon = 1; every law and probability is worked out once."""
    trunk, node = counter_scales("hybrid", 1.0, 1)
    laws = np.array([noise_nodes("hybrid", int(count)) for count in counts], dtype=np.float64).reshape(-1, 3)
    cases, where = np.unique(np.column_stack([laws, failures]), axis=0, return_inverse=True)
    scales = np.column_stack([np.full(len(cases), trunk), node * cases[:, 2]])
    log_tail = np.log(0.5 * cases[:, 3])
    parts = [slice(first, first + _AT_ONCE) for first in range(0, len(cases), _AT_ONCE)]
    solved = [laplace_sum_quantile(log_tail[part], scales[part], cases[part, :2]) for part in parts]
    return np.concatenate(solved)[where.ravel()]
