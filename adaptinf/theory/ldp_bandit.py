"""Regret of the locally private bandit, with and without auxiliary data: rates and powers of sample sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import refuse
from adaptinf.theory.arguments import EACH_COUNT, EACH_LEVEL, EACH_POSITIVE, Counts, Numbers, each, together
from adaptinf.typing import FloatArray, IntArray

_SOURCE: tuple[Numbers | Counts, ...] = (
    Counts(0),
    EACH_LEVEL,
    Numbers(open_low=False),
    Numbers(0.0, 1.0, open_low=False),
)
"""Constraints of a source's n, epsilon, gamma and kappa."""


def ldp_regret_exponent(dimension: ArrayLike, margin: ArrayLike, *, private: bool = True) -> FloatArray:
    """Power of the number of participants in the regret of the locally private bandit.

    Parameters
    ----------
    dimension : int or array_like
        Coordinates of a context, d.
    margin : float or array_like
        Margin exponent of the expected rewards, the paper's beta, in (0, d]; 1 where the best two cross at
        an angle.
    private : bool
        Whether the noise of the reports is what limits; otherwise the rewards are, as at a large epsilon.

    Returns
    -------
    float or ndarray
        1 - (1 + margin) / (2 + 2 d), or 1 - (1 + margin) / (2 + d) without privacy.

    Notes
    -----
    For expected rewards that are Lipschitz continuous, and up to powers of logarithms. A bin of edge h has
    about t h^d participants of t, and their mean is known to h once h^(d + 1) = 1 / (epsilon sqrt(t)), as the
    noise of t reports is about sqrt(t) / epsilon; without privacy, once h^(d + 2) = 1 / t. A participant
    loses at most about h there, and only a share h^margin of all are where arms are that close: h^(1 +
    margin) a round.

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
    """Power of the size of an auxiliary source in the regret of a trial of fixed length.

    Parameters
    ----------
    dimension : int or array_like
        Coordinates of a context, d.
    margin : float or array_like
        Margin exponent of the expected rewards, in (0, d].
    gamma : float or array_like
        Transfer exponent of the source: a ball of radius r has at least about r^gamma times the share of its
        contexts that it has of the trial's.
    private : bool
        Whether the noise of the source's reports is what limits; otherwise its rewards are.

    Returns
    -------
    float or ndarray
        -(1 + margin) / (2 + 2 d + 2 gamma), or -(1 + margin) / (2 + d + gamma): below 0.

    Notes
    -----
    It is the slope where this source tells more than all other data. An upper bound: it takes contexts to be
    as rare as gamma allows wherever it matters, and where they are rare in one spot only, less is lost.

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
    """Rate of the regret of the locally private bandit, after auxiliary sources where there are any.

    Parameters
    ----------
    horizon : int or array_like
        Participants of the trial, at least 2.
    epsilon : float or array_like
        Privacy parameter of their records; ``math.inf`` for none.
    n_arms : int or array_like
        Number of arms, K.
    dimension : int or array_like
        Coordinates of a context, d.
    margin : float or array_like
        Margin exponent of the expected rewards, in (0, d].
    auxiliary : sequence of tuples (n, epsilon, gamma, kappa)
        Of each source its participants, their privacy parameter, the transfer exponent of their contexts
        and K times the smallest probability of an arm; numbers or arrays.

    Returns
    -------
    float or ndarray
        Of the shape that the arguments broadcast to: the right side of Theorem 3.4, its constant taken to be
        1; without sources, of Theorem 2.6. No upper bound on any regret, and above `horizon` where too
        little is known for the theorem to say anything.

    Notes
    -----
    horizon S^(-(1 + margin) / (2 + 2 d)), S the sum over the trial and the sources of min(x^a, y^b), with x =
    (kappa / K)^2 n epsilon^2 / log(N), y = (kappa / K) n / log(N), a = (2 + 2 d) / (2 + 2 d + 2 gamma), b =
    (2 + 2 d) / (2 + d + gamma), N the largest of all n; the trial has gamma = 0 and kappa = 1. S^(-1 / (2 +
    2 d)) is the edge of the finest bin that is known as well as it is wide.

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
        if math.isfinite(level) and plain > 0.0:
            private = (kappa / n_arms * level) ** 2 * n / log_size
            plain = min(plain, private ** ((1.0 + dimension) / (1.0 + dimension + gamma)))
        total += plain
    return float(horizon * total ** (-(1.0 + margin) / (2.0 + 2.0 * dimension)))


def _smooth(dimension: ArrayLike, margin: ArrayLike, problems: list[str]) -> tuple[FloatArray, FloatArray]:
    """Dimension and margin exponent, which no continuous rewards have above the dimension."""
    axes = EACH_COUNT.read("dimension", dimension, problems).astype(np.float64)
    share = EACH_POSITIVE.read("margin", margin, problems)
    together(problems, dimension=axes, margin=share)
    if not problems and (share > axes).any():
        problems.append("margin must be at most the dimension, as otherwise one arm is best everywhere")
    return axes, share
