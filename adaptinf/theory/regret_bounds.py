"""Published and explicit regret bounds for private bandits with finitely many arms or local privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import refuse
from adaptinf.theory.bound_arguments import (
    EACH_COUNT,
    EACH_LEVEL,
    EACH_POSITIVE,
    EACH_SHARE,
    FORM,
    Counts,
    Numbers,
    check_arrays,
    each,
    read_arrays,
    together,
)
from adaptinf.typing import FloatArray, IntArray

_LAST_TERM = 1.0 + 2.0 * math.pi**2 / 3.0


def private_ucb_regret(
    means: ArrayLike, horizon: ArrayLike, epsilon: ArrayLike, pulls: ArrayLike | None = None
) -> FloatArray:
    """Expected regret stated in Theorem 3 of Neel and Roth for a private UCB algorithm.

    Parameters
    ----------
    means : array_like of shape (arms,)
        Mean rewards, in [0, 1].
    horizon : int or array_like
        Rounds T.
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` means no privacy. The parameter is broadcast against the
        horizon.
    pulls : array_like of shape (arms,), optional
        Expected number of pulls N_k of each arm. By default, the T rounds are allocated to the arms in the
        way that maximises the bound.

    Returns
    -------
    float or ndarray
        The bound, in the broadcast shape of horizon and epsilon.

    Notes
    -----
    As printed: the sum over arms with a gap D_k > 0 of min(max(B (ln B + 7), (32 / D_k) ln T) + D_k + 2 pi^2
    D_k / 3, D_k N_k), where B = sqrt(8) / (2 epsilon) ln(4 T^4). All logarithms are natural.

    Each term is interpreted as the contribution of a suboptimal arm to the regret: 32 ln(T) / D_k is D_k
    times the 32 ln(T) / D_k^2 pulls of a UCB algorithm. B (ln B + 7), which does not involve D_k, is D_k
    times the number of pulls, of order 1 / D_k, after which the noise is below a fraction of the gap. (The
    printed "Delta", the smallest gap, does not occur in the formula.) In the paper, N_k is random; here, its
    expectation is used, because the bound concerns expectations. Without `pulls`, the bound is maximised over
    all n_k >= 0 with sum at most T, by assigning pulls to the largest gaps first.

    Use the bound for comparison only: the paper quotes the theorem from another paper, for an algorithm that
    differs from `PrivateUCB`, and Sajed and Sheffet dispute its proof for pure differential privacy.

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.

    Tossou, A. and Dimitrakakis, C. (2016). Algorithms for differentially private multi-armed bandits. AAAI.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.private_ucb_regret([0.9, 0.5], horizon=[1_000, 100_000, 10_000_000], epsilon=1.0).round(1)
    array([ 400. ,  924.1, 1292.5])
    """
    problems: list[str] = []
    mean = _means(means, problems)
    given = read_arrays(problems, horizon=(horizon, EACH_COUNT), epsilon=(epsilon, EACH_LEVEL))
    rounds, level = given.values()
    number = None if pulls is None else Numbers(open_low=False).read("pulls", pulls, problems)
    if number is not None and number.shape != mean.shape:
        problems.append(f"pulls must have one entry per arm, {mean.size}, got shape {number.shape}")
    elif number is not None and not problems and number.sum() > rounds.min() * (1.0 + 1e-12):
        problems.append(f"pulls must sum to at most the horizon, got {number.sum():g}")
    refuse("private_ucb_regret", problems)
    gaps = mean.max() - mean
    apart = gaps > 0.0

    def bound(horizon: int, epsilon: float) -> float:
        allowed = _ucb_arm_regret(gaps[apart], horizon, epsilon)
        if number is None:
            return _worst_division(gaps[apart], allowed / gaps[apart], horizon)
        return float(np.minimum(allowed, gaps[apart] * number[apart]).sum())

    return each(bound, rounds, level)


def private_ucb_worst_case(
    horizon: ArrayLike, n_arms: ArrayLike, epsilon: ArrayLike, form: str = "explicit"
) -> FloatArray:
    """Largest value of `private_ucb_regret` over all possible arm means.

    Parameters
    ----------
    horizon : int or array_like
        Number of rounds T, at least 2.
    n_arms : int or array_like
        Arms K.
    epsilon : float or array_like
        Privacy parameter.
    form : {"explicit", "published"}
        ``"explicit"`` bounds the sum in Theorem 3 for any means, including constants. ``"published"`` is the
        paper's expression, which gives only an order (its constant is taken to be 1), **and it lacks a factor
        K**.

    Returns
    -------
    float or ndarray
        The values, in the broadcast shape of the arguments.

    Notes
    -----
    Explicit: (K - 1) (max(B (ln B + 7), 0) + 1 + 2 pi^2 / 3) + sqrt(32 (K - 1) T ln T), because min(max(a, b)
    + c, d) <= max(a, 0) + c + min(b, d), and min(32 ln(T) / D, D n) <= sqrt(32 n ln T), whose sum over arms
    is bounded by the Cauchy-Schwarz inequality.

    Published: max(ln(T) / epsilon (ln ln T + ln(1 / epsilon)), sqrt(K T ln T)). The first term must be
    counted for every arm: if all gaps are 1, each of K - 1 arms contributes B (ln B + 7), as long as this is
    below T / K. The paper's conclusions are off by the same factor: epsilon must be of the order ln(T)^1.5
    sqrt(K / T) for the second term to dominate, not ln(T)^1.5 / sqrt(K T).

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> print(ai.theory.private_ucb_worst_case(10_000_000, 50, 0.01).round(0))
    7868686.0
    >>> print(ai.theory.private_ucb_worst_case(10_000_000, 50, 0.01, form="published").round(0))
    89772.0
    """
    arrays = check_arrays(
        "private_ucb_worst_case",
        FORM("form", form),
        horizon=(horizon, Counts(2)),
        n_arms=(n_arms, EACH_COUNT),
        epsilon=(epsilon, EACH_LEVEL),
    )

    def explicit(horizon: int, n_arms: int, epsilon: float) -> float:
        others = n_arms - 1
        private = max(_private_term(horizon, epsilon), 0.0)
        return others * (private + _LAST_TERM) + math.sqrt(32.0 * others * horizon * math.log(horizon))

    def published(horizon: int, n_arms: int, epsilon: float) -> float:
        log_rounds = math.log(horizon)
        # As epsilon grows, ln(1 / epsilon) / epsilon tends to 0, but computing it for infinity gives NaN.
        private = 0.0
        if math.isfinite(epsilon):
            private = log_rounds / epsilon * (math.log(log_rounds) - math.log(epsilon))
        return max(private, math.sqrt(n_arms * horizon * log_rounds))

    return each(explicit if form == "explicit" else published, *arrays)


def private_elimination_pulls(
    means: ArrayLike, horizon: ArrayLike, epsilon: ArrayLike, beta: ArrayLike | None = None
) -> FloatArray:
    """Largest number of pulls of each arm under private elimination, except with probability beta.

    Parameters
    ----------
    means : array_like of shape (arms,)
        Mean rewards, in [0, 1].
    horizon : int or array_like
        Rounds T.
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` means no privacy.
    beta : float or array_like, optional
        Failure probability in (0, 1), by default 1 / T.

    Returns
    -------
    ndarray of shape (..., arms)
        The horizon for a best arm; for an arm with a gap D > 0, the smaller of the horizon and the sum of
        ceil(R_e) over epochs e = 1, ..., max(1, ceil(log2(1 / D))).

    Notes
    -----
    Algorithm 3 of Sajed and Sheffet pulls each of the m remaining arms ceil(R_e) times in epoch e, where R_e
    = max(32 log(8 m e^2 / beta) 4^e, 8 log(4 m e^2 / beta) 2^e / epsilon) + 1, and drops arms whose noisy
    mean is more than 2 h_e + 2 c_e below the highest. By Hoeffding's inequality and the tail of Laplace(1 /
    (epsilon R_e)), all means in all epochs are within h_e + c_e of the truth with probability at least 1 -
    beta pi^2 / 12. Then no best arm is dropped, whereas any arm with a gap D above 4 (h_e + c_e) is. The two
    terms of R_e make h_e and c_e each smaller than 2^-e / 8, so every arm with D >= 2^-e has been dropped by
    the end of epoch e. Hence at most m_e arms remain in epoch e: those with gaps below 2^-(e - 1), or all
    arms for e = 1. The bound follows because R_e increases with m.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.private_elimination_pulls([0.75, 0.5, 0.25], horizon=10**7, epsilon=1.0).astype(int)
    array([10000000,    12854,     2471])
    """
    mean, arrays = _elimination_arguments("private_elimination_pulls", means, horizon, epsilon, beta)
    gaps = mean.max() - mean
    spread = np.broadcast_arrays(*arrays)
    rows = zip(*(array.ravel().tolist() for array in spread), strict=True)
    bounds = np.array([_elimination_pulls(gaps, *row) for row in rows])
    return bounds.reshape(*spread[0].shape, gaps.size)


def private_elimination_regret(
    means: ArrayLike,
    horizon: ArrayLike,
    epsilon: ArrayLike,
    beta: ArrayLike | None = None,
    form: str = "explicit",
) -> FloatArray:
    """Bound on the expected regret of private successive elimination for given means.

    Parameters
    ----------
    means : array_like of shape (arms,)
        Mean rewards, in [0, 1].
    horizon : int or array_like
        Rounds T.
    epsilon : float or array_like
        Positive privacy parameter; ``math.inf`` means no privacy.
    beta : float or array_like, optional
        Failure probability in (0, 1), by default 1 / T; the published form always assumes beta = 1 / T.
    form : {"explicit", "published"}
        ``"explicit"`` is a bound with constants. ``"published"`` is Theorem 4.3, which gives only an order:
        the sum over suboptimal arms of log(T) / D, plus K log(T) / epsilon, with its constant taken to be 1.

    Returns
    -------
    float or ndarray
        The values, in the broadcast shape of the arguments.

    Notes
    -----
    Explicit: the largest sum of D_a n_a over all n_a that do not exceed `private_elimination_pulls` and sum
    to at most T, plus beta T times the largest gap, for the runs in which a mean lies outside its limits.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> means = [0.75, 0.625, 0.5, 0.375, 0.25]
    >>> ai.theory.private_elimination_regret(means, 50_000_000, epsilon=[0.1, 1.0]).round(0)
    array([18629., 17912.])
    """
    problems = FORM("form", form)
    if form == "published" and beta is not None:
        problems.append("beta must be omitted for the published form, which uses 1 / horizon")
    refuse("private_elimination_regret", problems)
    mean, arrays = _elimination_arguments("private_elimination_regret", means, horizon, epsilon, beta)
    gaps = mean.max() - mean
    apart = gaps > 0.0

    def explicit(horizon: int, epsilon: float, beta: float) -> float:
        pulls = _elimination_pulls(gaps, horizon, epsilon, beta)
        return _worst_division(gaps[apart], pulls[apart], horizon) + beta * horizon * float(gaps.max())

    def published(horizon: int, epsilon: float, beta: float) -> float:
        inverse = float((1.0 / gaps[apart]).sum())
        return math.log(horizon) * (inverse + mean.size / epsilon)

    return each(explicit if form == "explicit" else published, *arrays)


def private_elimination_worst_case(horizon: ArrayLike, n_arms: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """Order of the regret of private successive elimination for any means (Theorem 4.4).

    Parameters
    ----------
    horizon : int or array_like
        Rounds T.
    n_arms : int or array_like
        Arms K.
    epsilon : float or array_like
        Privacy parameter.

    Returns
    -------
    float or ndarray
        sqrt(T K log T) + K log(T) / epsilon, which is only an order: its constant is taken to be 1.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.private_elimination_worst_case(1_000_000, 5, [0.01, 1.0]).round(0)
    array([15219.,  8380.])
    """
    rounds, arms, level = check_arrays(
        "private_elimination_worst_case",
        horizon=(horizon, EACH_COUNT),
        n_arms=(n_arms, EACH_COUNT),
        epsilon=(epsilon, EACH_LEVEL),
    )
    log_rounds = np.log(rounds)
    order: FloatArray = (np.sqrt(rounds * arms * log_rounds) + arms * log_rounds / level)[()]
    return order


def _means(means: ArrayLike, problems: list[str]) -> FloatArray:
    array = Numbers(0.0, 1.0, open_low=False).read("means", means, problems)
    if array.ndim != 1:
        problems.append(f"means must be a list with one number per arm, got shape {array.shape}")
    return array


def _private_term(horizon: int, epsilon: float) -> float:
    """B (ln B + 7), with limit 0 if epsilon is infinite."""
    scale = math.sqrt(8.0) / (2.0 * epsilon) * (math.log(4.0) + 4.0 * math.log(horizon))
    return scale * (math.log(scale) + 7.0) if scale > 0.0 else 0.0


def _ucb_arm_regret(gaps: FloatArray, horizon: int, epsilon: float) -> FloatArray:
    """Largest contribution of each suboptimal arm to the bound of Theorem 3, whatever its number of pulls."""
    return np.maximum(_private_term(horizon, epsilon), 32.0 / gaps * math.log(horizon)) + gaps * _LAST_TERM


def _worst_division(gaps: FloatArray, most: FloatArray, horizon: int) -> float:
    """Largest sum of gaps * n over n between 0 and `most` that sum to at most the horizon."""
    # This is the fractional knapsack problem, for which filling the largest gaps first is optimal.
    order = np.argsort(-gaps)
    before = np.concatenate([[0.0], np.cumsum(most[order])[:-1]]) if gaps.size else np.zeros(0)
    taken = np.clip(horizon - before, 0.0, most[order])
    return float((gaps[order] * taken).sum())


def _elimination_arguments(
    subject: str, means: ArrayLike, horizon: ArrayLike, epsilon: ArrayLike, beta: ArrayLike | None
) -> tuple[FloatArray, tuple[FloatArray | IntArray, ...]]:
    problems: list[str] = []
    mean = _means(means, problems)
    given: dict[str, Any] = {
        "horizon": (horizon, Counts(2 if beta is None else 1)),
        "epsilon": (epsilon, EACH_LEVEL),
    }
    if beta is not None:
        return mean, check_arrays(subject, problems, **given, beta=(beta, EACH_SHARE))
    rounds, level = check_arrays(subject, problems, **given)
    return mean, (rounds, level, 1.0 / rounds)


def _elimination_pulls(gaps: FloatArray, horizon: int, epsilon: float, beta: float) -> FloatArray:
    pulls = np.full(gaps.size, float(horizon))
    last = np.zeros(gaps.size, dtype=np.int64)
    last[gaps > 0.0] = np.maximum(1, np.ceil(-np.log2(gaps[gaps > 0.0])))
    total = 0.0
    for epoch in range(1, int(last.max(initial=0)) + 1):
        left = int((gaps < 0.5 ** (epoch - 1)).sum()) if epoch > 1 else gaps.size
        total += math.ceil(_epoch_length(left, epoch, epsilon, beta))
        pulls[last == epoch] = min(total, horizon)
        if total >= horizon:
            break
    return pulls


def _epoch_length(n_arms: int, epoch: int, epsilon: float, beta: float) -> float:
    wide = 32.0 * math.log(8.0 * n_arms * epoch**2 / beta) * 4.0**epoch
    noisy = 8.0 * math.log(4.0 * n_arms * epoch**2 / beta) * 2.0**epoch / epsilon
    return max(wide, noisy) + 1.0


# The order is that of a source's parameters: n, epsilon, gamma and kappa.
_SOURCE: tuple[Numbers | Counts, ...] = (
    Counts(0),
    EACH_LEVEL,
    Numbers(open_low=False),
    Numbers(0.0, 1.0, open_low=False),
)


def ldp_regret_exponent(dimension: ArrayLike, margin: ArrayLike, *, private: bool = True) -> FloatArray:
    """Exponent with which the regret of the locally private bandit depends on the number of participants.

    Parameters
    ----------
    dimension : int or array_like
        Dimension d of a context.
    margin : float or array_like
        Margin exponent of the expected rewards (beta in the paper), in (0, d]; it is 1 if the expected
        rewards of the best two arms cross at an angle.
    private : bool
        Whether the noise of the reports is the limiting factor; if not, the variance of the rewards is, as
        for large epsilon.

    Returns
    -------
    float or ndarray
        1 - (1 + margin) / (2 + 2 d), or 1 - (1 + margin) / (2 + d) without privacy.

    Notes
    -----
    The exponent assumes Lipschitz continuous expected rewards and ignores logarithmic factors. Of t
    participants, about t h^d are in a bin with edges of length h. As the noise of t reports is about sqrt(t)
    / epsilon, the mean of a bin is known to within h once h^(d + 1) = 1 / (epsilon sqrt(t)); without privacy,
    this is the case once h^(d + 2) = 1 / t. A participant in such a bin loses at most about h, and the arms
    are that close only for a share h^margin of participants, so the loss is h^(1 + margin) per round.

    References
    ----------
    Ma, Y., Jiang, F., Zhao, Z., Yang, H. and Yu, Y. (2025). Locally private nonparametric contextual
    multi-armed bandits with transfer learning. Theorems 2.5 and 2.6.

    Examples
    --------
    >>> import adaptinf as ai
    >>> private = ai.theory.ldp_regret_exponent(2, 1.0)
    >>> round(float(private), 4), float(ai.theory.ldp_regret_exponent(2, 1.0, private=False))
    (0.6667, 0.5)
    """
    problems: list[str] = []
    axes, share = _smooth(dimension, margin, problems)
    refuse("ldp_regret_exponent", problems)
    spread = 2.0 + (2.0 if private else 1.0) * axes
    return np.asarray(1.0 - (1.0 + share) / spread)[()]


def ldp_transfer_exponent(
    dimension: ArrayLike, margin: ArrayLike, gamma: ArrayLike = 0.0, *, private: bool = True
) -> FloatArray:
    """Exponent with which the regret of a trial of fixed length depends on the size of an auxiliary source.

    Parameters
    ----------
    dimension : int or array_like
        Dimension d of a context.
    margin : float or array_like
        Margin exponent of the expected rewards, in (0, d].
    gamma : float or array_like
        Transfer exponent of the source: in a ball of radius r, the source has at least about r^gamma times
        the trial's share of contexts.
    private : bool
        Whether the noise of the source's reports is the limiting factor; if not, the variance of its rewards
        is.

    Returns
    -------
    float or ndarray
        -(1 + margin) / (2 + 2 d + 2 gamma), or -(1 + margin) / (2 + d + gamma), which is negative.

    Notes
    -----
    The exponent applies if this source is more informative than all other data. The exponent is an upper
    bound, which assumes that contexts are as rare as gamma allows wherever arms are hard to distinguish; if
    they are that rare in only one place, the loss is smaller.

    References
    ----------
    Ma, Y., Jiang, F., Zhao, Z., Yang, H. and Yu, Y. (2025). Locally private nonparametric contextual
    multi-armed bandits with transfer learning. Theorems 3.3 and 3.4.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.ldp_transfer_exponent(2, 1.0, gamma=[0.0, 1.0]).round(4)
    array([-0.3333, -0.25  ])
    """
    problems: list[str] = []
    axes, share = _smooth(dimension, margin, problems)
    shift = Numbers(open_low=False).read("gamma", gamma, problems)
    together(problems, dimension=axes, margin=share, gamma=shift)
    refuse("ldp_transfer_exponent", problems)
    factor = 2.0 if private else 1.0
    return np.asarray(-(1.0 + share) / (2.0 + factor * (axes + shift)))[()]


def ldp_transfer_rate(
    horizon: ArrayLike,
    epsilon: ArrayLike,
    n_arms: ArrayLike,
    dimension: ArrayLike,
    margin: ArrayLike,
    auxiliary: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]] = (),
) -> FloatArray:
    """Rate of the regret of the locally private bandit, possibly with data from auxiliary sources.

    Parameters
    ----------
    horizon : int or array_like
        Number of participants of the trial, at least 2.
    epsilon : float or array_like
        Privacy parameter of the participants' records; ``math.inf`` means no privacy.
    n_arms : int or array_like
        Number of arms, K.
    dimension : int or array_like
        Dimension d of a context.
    margin : float or array_like
        Margin exponent of the expected rewards, in (0, d].
    auxiliary : sequence of tuples (n, epsilon, gamma, kappa)
        For each source: its number of participants, their privacy parameter, the transfer exponent of their
        contexts, and K times the smallest probability of an arm. Each may be a number or an array.

    Returns
    -------
    float or ndarray
        The right-hand side of Theorem 3.4 (or of Theorem 2.6, if there are no sources), with its constant
        taken to be 1, in the broadcast shape of the arguments. The value is not an upper bound on any regret,
        and it exceeds `horizon` if the sources are too small for the theorem to be informative.

    Notes
    -----
    horizon S^(-(1 + margin) / (2 + 2 d)), where S is the sum over the trial and the sources of min(x^a, y^b),
    with x = (kappa / K)^2 n epsilon^2 / log(N), y = (kappa / K) n / log(N), a = (2 + 2 d) / (2 + 2 d + 2
    gamma), b = (2 + 2 d) / (2 + d + gamma), and N the largest n; the trial has gamma = 0 and kappa = 1. S^(-1
    / (2 + 2 d)) is the edge of the finest bin whose mean is known to within its width.

    References
    ----------
    Ma, Y., Jiang, F., Zhao, Z., Yang, H. and Yu, Y. (2025). Locally private nonparametric contextual
    multi-armed bandits with transfer learning. Theorems 2.6 and 3.4.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.theory.ldp_transfer_rate(80_000, [1.0, 2.0, float("inf")], 3, 2, 1.0).round()
    array([8664., 5458., 1646.])
    >>> ai.theory.ldp_transfer_rate(80_000, 1.0, 3, 2, 1.0, [([0, 10_000, 100_000], 8.0, 0.0, 1.0)]).round()
    array([8664., 4437., 2015.])
    """
    problems: list[str] = []
    axes, share = _smooth(dimension, margin, problems)
    arrays: dict[str, FloatArray | IntArray] = {
        "dimension": axes,
        "margin": share,
        "n_arms": EACH_COUNT.read("n_arms", n_arms, problems),
        "horizon": Counts(2).read("horizon", horizon, problems),
        "epsilon": EACH_LEVEL.read("epsilon", epsilon, problems),
    }
    for number, source in enumerate(auxiliary, 1):
        try:
            n, level, shift, policy = source
        except (TypeError, ValueError):
            problems.append(f"auxiliary source {number} must be a tuple (n, epsilon, gamma, kappa)")
            continue
        parts = {"n": n, "epsilon": level, "gamma": shift, "kappa": policy}
        for (part, values), constraint in zip(parts.items(), _SOURCE, strict=True):
            name = f"{part} of auxiliary source {number}"
            arrays[name] = constraint.read(name, values, problems)
    together(problems, **arrays)
    refuse("ldp_transfer_rate", problems)
    return each(_rate, *arrays.values())


def _rate(
    dimension: float, margin: float, n_arms: float, horizon: float, epsilon: float, *sources: float
) -> float:
    rows = [(horizon, epsilon, 0.0, 1.0), *zip(*(iter(sources),) * 4, strict=True)]
    log_size = math.log(max(row[0] for row in rows))
    total = 0.0
    for n, level, gamma, kappa in rows:
        plain = (kappa * n / (n_arms * log_size)) ** ((2.0 + 2.0 * dimension) / (2.0 + dimension + gamma))
        # For infinite epsilon x is infinite, or NaN if kappa is 0; then min(x^a, y^b) is y^b.
        if math.isfinite(level) and plain > 0.0:
            private = (kappa / n_arms * level) ** 2 * n / log_size
            plain = min(plain, private ** ((1.0 + dimension) / (1.0 + dimension + gamma)))
        total += plain
    return float(horizon * total ** (-(1.0 + margin) / (2.0 + 2.0 * dimension)))


def _smooth(dimension: ArrayLike, margin: ArrayLike, problems: list[str]) -> tuple[FloatArray, FloatArray]:
    """Dimension and margin exponent; for continuous rewards, the exponent cannot exceed the dimension."""
    axes = EACH_COUNT.read("dimension", dimension, problems).astype(np.float64)
    share = EACH_POSITIVE.read("margin", margin, problems)
    together(problems, dimension=axes, margin=share)
    if not problems and (share > axes).any():
        problems.append("margin must be at most the dimension, because otherwise one arm is best everywhere")
    return axes, share
