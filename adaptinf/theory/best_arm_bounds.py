"""Hardness of a best-arm problem, and bounds on the probability that DP-BAI misses the best arm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.designs.best_arm.fixed_budget import max_det_schedule, printed_reserve, reserve
from adaptinf.parameters import COUNT, POSITIVE, OneOf, refuse
from adaptinf.typing import FloatArray

# No coefficient exceeds 1 + 1e-6 in absolute value (`max_det`), so those of two arms differ by at most twice
# that.
_COEFFICIENT = 2.0 * (1.0 + 1e-6)


@dataclass(frozen=True, slots=True)
class Hardness:
    """Hardness of a best-arm problem, in rounds.

    Attributes
    ----------
    bai : float
        H_BAI, the part due to the rewards.
    privacy : float
        H_pri, the part due to privacy.

    Examples
    --------
    >>> import adaptinf as ai
    >>> features = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    >>> found = ai.theory.hardness(features, [0.9, 0.5], epsilon=0.1)
    >>> found.privacy > found.bai
    True
    """

    bai: float
    privacy: float

    @property
    def total(self) -> float:
        """H, the sum of the two parts."""
        return self.bai + self.privacy


def hardness(features: ArrayLike, theta: ArrayLike, epsilon: float) -> Hardness:
    """Hardness of finding the best of several arms with linear means, under differential privacy.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        Feature vector of each arm.
    theta : array_like of shape (dimension,)
        Coefficients: arm i has mean features[i] @ theta.
    epsilon : float
        Privacy parameter; ``math.inf`` means no privacy.

    Returns
    -------
    Hardness
        H_BAI = max of i / gap_(i)^2 and H_pri = max of i / (epsilon gap_(i)) over 2 <= i <= min(d^2, K), with
        gaps in increasing order, starting with 0 for the best arm.

    Raises
    ------
    ParameterError
        If arguments are invalid (the message lists every problem), or if two arms are equally good and best,
        in which case no budget is sufficient.

    Notes
    -----
    For d = 1, the paper's range of i is empty, and i = 2 is used.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR. Section 4.1.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.theory.hardness([[0.0, 1.0], [0.0, 0.9], [1.0, 0.0]], theta=[0.25, 0.5], epsilon=0.1)
    >>> round(found.bai, 6), round(found.privacy, 6)
    (800.0, 400.0)
    """
    problems: list[str] = []
    gaps, dimension = _gaps(features, theta, problems)
    refuse("hardness", problems + _epsilon_problems(epsilon))
    last = max(2, min(dimension**2, gaps.size))
    ranks = np.arange(2, last + 1)
    return Hardness(
        bai=float((ranks / gaps[1:last] ** 2).max()),
        privacy=float((ranks / gaps[1:last]).max() / epsilon),
    )


def dp_bai_error(
    features: ArrayLike, theta: ArrayLike, horizon: int, epsilon: float, *, form: str = "explicit"
) -> float:
    """Bound on the probability that `DPBAI` does not recommend the best arm.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        Feature vector of each arm.
    theta : array_like of shape (dimension,)
        Coefficients.
    horizon : int
        Rounds T.
    epsilon : float
        Positive privacy parameter; ``math.inf`` means no privacy.
    form : {"explicit", "published"}
        ``"explicit"`` is valid at every horizon. ``"published"`` is the last expression in the proof of
        Theorem 4.2, (12 M + 4 M_1 lambda) exp(-T' / (64 M H)), with T' as printed, claimed only for large T.

    Returns
    -------
    float
        The bound, at most 1.

    Raises
    ------
    ParameterError
        If arguments are invalid (the message lists every problem), including a horizon that allows less than
        one pull per arm and phase.

    Notes
    -----
    The explicit bound is for rewards in [0, 1]. In a phase with N pulls of each of r arms, an arm with gap D
    beats the best one with probability at most q = exp(-N D^2 / (8 r)) + exp(-c w) / (1 - w^2)^r, where c =
    epsilon N D / 4 and w = (sqrt(r^2 + c^2) - r) / c. The reason is that the coefficients of two arms differ
    by at most 2 (the code allows for 2 + 2e-6). If every arm is pulled, q is instead exp(-N D^2 / 4) + (1 + x
    / 2) exp(-x) / 2, where x = epsilon N D / 2. The best arm is eliminated in phase p only if s_{p+1} others
    beat it. By Markov's inequality, the probability of this is therefore at most (sum of q over all arms
    except the k closest) / (s_{p+1} - k) for every k < s_{p+1}. The smallest of these values is used, for the
    closest arms and the worst r that a phase can have, and the results are summed over phases.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR. Theorem 4.2.

    Examples
    --------
    >>> import adaptinf as ai
    >>> features = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]
    >>> round(ai.theory.dp_bai_error(features, [0.2, 0.9], horizon=1_000, epsilon=1.0), 6)
    0.023745
    """
    problems = OneOf("explicit", "published")("form", form) + _epsilon_problems(epsilon)
    if form == "published":
        return _published(features, theta, horizon, epsilon, problems)

    def noise(pulls: float, terms: int, gap: FloatArray) -> FloatArray:
        if math.isinf(epsilon):
            return np.zeros_like(gap)
        scale = epsilon * pulls
        if terms == 0:
            # The difference of two Laplace variables of scale 1 has the exact tail (1 + x / 2) exp(-x) / 2.
            return np.asarray(0.5 * (1.0 + 0.25 * scale * gap) * np.exp(-0.5 * scale * gap))
        tilt = 0.5 * gap * scale / _COEFFICIENT
        # For a Laplace variable X, E exp(w X) = 1 / (1 - w^2), and Chernoff's bound is smallest at this w.
        share = (np.sqrt(terms**2 + tilt**2) - terms) / tilt
        return np.asarray(np.exp(-tilt * share) * (1.0 - share**2) ** -float(terms))

    return _explicit("dp_bai_error", features, theta, horizon, noise, problems)


def dp_bai_gauss_error(features: ArrayLike, theta: ArrayLike, horizon: int, scale: float) -> float:
    """Bound on the probability that `DPBAIGauss` does not recommend the best arm.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        Feature vector of each arm.
    theta : array_like of shape (dimension,)
        Coefficients.
    horizon : int
        Rounds T.
    scale : float
        Standard deviation of the noise in a sum of rewards, as calibrated by `privacy.analytic_scale` for a
        sensitivity of 1. Proposition D.3 uses sqrt(2 log(1.25 / delta)) / epsilon.

    Returns
    -------
    float
        The bound, which is at most 1 and valid at every horizon, whereas Proposition D.3 gives only an order.

    Raises
    ------
    ParameterError
        If arguments are invalid; the message lists every problem.

    Notes
    -----
    As for `dp_bai_error`, but with the tail of normal noise, exp(-x^2 / (2 v)) at x = D / 2. The variance v
    of the noise in the difference between two estimates is 2 (scale / N)^2 if every arm is pulled, and at
    most 4 r (scale / N)^2 otherwise.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR. Proposition D.3.

    Examples
    --------
    >>> import adaptinf as ai
    >>> features = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]
    >>> round(ai.theory.dp_bai_gauss_error(features, [0.2, 0.9], horizon=1_000, scale=4.0), 6)
    0.023745
    """
    problems = POSITIVE("scale", scale)

    def noise(pulls: float, terms: int, gap: FloatArray) -> FloatArray:
        variance = (2.0 if terms == 0 else _COEFFICIENT**2 * terms) * (scale / pulls) ** 2
        return np.asarray(np.exp(-(gap**2) / (8.0 * variance)))

    return _explicit("dp_bai_gauss_error", features, theta, horizon, noise, problems)


Noise = Callable[[float, int, FloatArray], FloatArray]


def _explicit(
    subject: str, features: ArrayLike, theta: ArrayLike, horizon: int, noise: Noise, problems: list[str]
) -> float:
    gaps, dimension, budget = _instance(subject, features, theta, horizon, problems)
    schedule = max_det_schedule(gaps.size, dimension)
    total = 0.0
    for size, kept in zip(schedule.sizes[:-1].tolist(), schedule.sizes[1:].tolist(), strict=True):
        closest = gaps[1:size]
        beaten = np.zeros(closest.size)
        # The dimension of the span is known only in the first phase; in later ones the worst dimension
        # counts.
        highest = min(dimension, size)
        for rank in range(highest if size == gaps.size else 1, highest + 1):
            terms = rank if rank * rank < size else 0
            pulls = float(-(-budget // (schedule.phases * (terms or size))))
            spread = 4.0 if terms == 0 else 2.0 * _COEFFICIENT**2 * terms
            beaten = np.maximum(beaten, np.exp(-pulls * closest**2 / spread) + noise(pulls, terms, closest))
        beaten = np.minimum(beaten, 1.0)
        rest = np.cumsum(beaten[::-1])[::-1]
        total += min(rest[k] / (kept - k) if k < rest.size else 0.0 for k in range(kept))
    return float(min(1.0, total))


def _published(
    features: ArrayLike, theta: ArrayLike, horizon: int, epsilon: float, problems: list[str]
) -> float:
    gaps, dimension, _ = _instance("dp_bai_error", features, theta, horizon, problems)
    schedule = max_det_schedule(gaps.size, dimension)
    budget = horizon - printed_reserve(schedule, dimension)
    total = hardness(features, theta, epsilon).total
    front = 12.0 * schedule.phases + 4.0 * schedule.fast_phases * schedule.ratio
    return float(min(1.0, front * math.exp(-budget / (64.0 * schedule.phases * total))))


def _instance(
    subject: str, features: ArrayLike, theta: ArrayLike, horizon: int, problems: list[str]
) -> tuple[FloatArray, int, int]:
    """The gaps in increasing order, the dimension, and T'."""
    gaps, dimension = _gaps(features, theta, problems)
    problems += COUNT("horizon", horizon)
    budget = 0
    if not problems:
        spare = reserve(max_det_schedule(gaps.size, dimension), dimension)
        budget = horizon - spare
        if budget < 1:
            problems.append(f"horizon must be at least {spare + 1}, got {horizon}")
    refuse(subject, problems)
    return gaps, dimension, budget


def _gaps(features: ArrayLike, theta: ArrayLike, problems: list[str]) -> tuple[FloatArray, int]:
    try:
        rows, coefficients = np.asarray(features, dtype=np.float64), np.asarray(theta, dtype=np.float64)
    except (TypeError, ValueError):
        problems.append("features and theta must be numbers")
        return np.zeros(0), 0
    if rows.ndim != 2 or rows.shape[0] < 2 or coefficients.shape != rows.shape[1:] or rows.shape[1] == 0:
        problems.append(
            "features must have one row per arm, of at least 2 arms, and theta one number per column, got "
            f"shapes {rows.shape} and {coefficients.shape}"
        )
        return np.zeros(0), 0
    if not (np.isfinite(rows).all() and np.isfinite(coefficients).all()):
        problems.append("features and theta must be finite")
        return np.zeros(0), 0
    means = rows @ coefficients
    gaps = np.sort(means.max() - means)
    if gaps[1] <= 1e-12 * max(1.0, float(np.abs(means).max())):
        problems.append("one arm must be the best, but two share the largest mean")
    return gaps, rows.shape[1]


def _epsilon_problems(epsilon: float) -> list[str]:
    return [] if epsilon == math.inf else POSITIVE("epsilon", epsilon)
