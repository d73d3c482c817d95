"""How many samples a stopping rule needs: an upper bound for DP-NAS, lower bounds for every rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import choice_problem, number_problem
from adaptinf.simulation.environment import refuse
from adaptinf.typing import FloatArray

__all__ = ["private_lower_bound", "stopping_lower_bound", "stopping_upper_bound"]


def stopping_upper_bound(
    mean: ArrayLike,
    *,
    epsilon: float,
    alpha: float,
    beta: float,
    bound: float = 1.0,
    calibration: str = "corrected",
) -> FloatArray:
    """Samples within which DP-NAS in exponential steps halts with probability at least 1 - beta.

    Parameters
    ----------
    mean : array_like
        Means of the samples, in [-bound, bound].
    epsilon, alpha, beta, bound : float
        Parameters of the rule.
    calibration : {"corrected", "published"}
        The statement that holds, or the paper's.

    Returns
    -------
    ndarray of the shape of `mean`
        t_U = 2000 (t_0 + t_1 + t_2), inf at a mean of 0. With R the bound and a mean m: t_0 = (R / (alpha
        m))^2 L, t_1 = R L / (epsilon |m|), t_2 = R log(1/beta) / (epsilon alpha |m|), L = log(max(1, log(R /
        (alpha |m|)), log(R / (epsilon |m|))) / beta). Published: L = log(log(R / (alpha |m|)) / beta).

    Raises
    ------
    ParameterError
        Listing every parameter that is out of range.

    Notes
    -----
    Proved for beta <= 0.2. The published L is too small for small epsilon, and falls below 0 where alpha |m|
    is close to R, so that the bound can be negative. `DPNAS.sufficient_samples` is far smaller and as sure.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML. Theorem 3.3.

    Examples
    --------
    >>> stopping_upper_bound([0.5, 0.1], epsilon=1.0, alpha=0.1, beta=0.05).round(-3)
    array([ 3411000., 91148000.])
    """
    sizes = _relative_means("stopping_upper_bound", mean, epsilon, alpha, beta, bound, calibration)
    with np.errstate(divide="ignore"):
        accuracy, privacy = 1.0 / (alpha * sizes), 1.0 / (epsilon * sizes)
        inner = np.log(accuracy)
        if calibration == "corrected":
            inner = np.maximum(np.maximum(1.0, inner), np.log(privacy))
        repeated = np.log(inner) - np.log(beta)
        total = accuracy**2 * repeated + privacy * repeated - privacy * np.log(beta) / alpha
    return np.asarray(2000.0 * total)


def private_lower_bound(
    mean: ArrayLike,
    *,
    epsilon: float,
    alpha: float,
    beta: float,
    bound: float = 1.0,
    calibration: str = "corrected",
) -> FloatArray:
    """Samples that every private stopping rule exceeds with probability above 1 - sqrt(beta) - beta.

    Parameters
    ----------
    mean : array_like
        Means of the samples, which take the values -bound and bound.
    epsilon, alpha, beta, bound : float
        Privacy and accuracy of the rule, and the range that it has to serve.
    calibration : {"corrected", "published"}
        The statement that holds for every epsilon, or the paper's.

    Returns
    -------
    ndarray of the shape of `mean`
        log(1/beta) / (2 log(1 + d (e^epsilon - 1))), d = alpha |mean| / ((1 + alpha) bound); published: bound
        log(1/beta) / (12 epsilon alpha |mean|). Inf at a mean of 0.

    Raises
    ------
    ParameterError
        Listing every parameter that is out of range.

    Notes
    -----
    For rules that are epsilon-private in one sample and whose estimate, whatever the law on [-bound, bound],
    is off by alpha |mean| or more with probability at most beta, beta < 1/4.

    References
    ----------
    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on an optimal private
    stopping rule. ICML. Theorem 3.4.

    Examples
    --------
    >>> private_lower_bound([0.5, 0.01], epsilon=0.1, alpha=0.1, beta=0.05).round(1)
    array([  314.1, 15667.2])
    """
    sizes = _relative_means("private_lower_bound", mean, epsilon, alpha, beta, bound, calibration)
    with np.errstate(divide="ignore"):
        if calibration == "published":
            return np.asarray(-np.log(beta) / (12.0 * epsilon * alpha * sizes))
        distance = alpha * sizes / (1.0 + alpha)
        # e^epsilon overflows from 710 on; up there the logarithm is linear
        capped = min(epsilon, 700.0)
        loss = np.log1p(distance * np.expm1(capped)) + np.where(sizes > 0.0, epsilon - capped, 0.0)
        return np.asarray(-0.5 * np.log(beta) / loss)


def stopping_lower_bound(mean: ArrayLike, *, alpha: float, beta: float, bound: float = 1.0) -> FloatArray:
    """Samples that every stopping rule, private or not, takes on average.

    Parameters
    ----------
    mean : array_like
        Means of the samples, which take the values -bound and bound.
    alpha, beta, bound : float
        Accuracy of the rule, and the range that it has to serve.

    Returns
    -------
    ndarray of the shape of `mean`
        (1 - 2 beta) log((1 - beta) / beta) / KL, KL the divergence of the law of this mean from the one with
        mean (1 - alpha) / (1 + alpha) times as large; inf at a mean of 0.

    Raises
    ------
    ParameterError
        Listing every parameter that is out of range.

    Notes
    -----
    For rules that stop with probability 1 and whose estimate, whatever the law on [-bound, bound], is off by
    alpha |mean| or more with probability at most beta, beta < 1/2. About (1 + alpha)^2 bound^2 log(1/beta) /
    (2 alpha^2 mean^2) for small means.

    References
    ----------
    Dagum, P., Karp, R., Luby, M. and Ross, S. (2000). An optimal algorithm for Monte Carlo estimation. SIAM
    Journal on Computing 29.

    Examples
    --------
    >>> stopping_lower_bound([0.5, 0.1], alpha=0.1, beta=0.05).round()
    array([  517., 15908.])
    """
    sizes = _relative_means("stopping_lower_bound", mean, 1.0, alpha, beta, bound, "corrected")
    p, q = 0.5 * (1.0 + sizes), 0.5 * (1.0 + sizes * (1.0 - alpha) / (1.0 + alpha))
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
        divergence = p * np.log(p / q) + rest
        return np.asarray((1.0 - 2.0 * beta) * (np.log1p(-beta) - np.log(beta)) / divergence)


def _relative_means(
    subject: str,
    mean: ArrayLike,
    epsilon: float,
    alpha: float,
    beta: float,
    bound: float,
    calibration: str,
) -> FloatArray:
    """Absolute means as shares of the bound, after a check of all parameters."""
    problems = number_problem("epsilon", epsilon, 0.0, open_low=True)
    problems += number_problem("alpha", alpha, 0.0, 1.0, open_low=True)
    problems += number_problem("beta", beta, 0.0, 0.5, open_low=True)
    problems += number_problem("bound", bound, 0.0, open_low=True)
    problems += choice_problem("calibration", calibration, ("corrected", "published"))
    refuse(subject, problems)
    values = np.abs(np.asarray(mean, dtype=np.float64))
    if not (values <= bound).all():
        refuse(subject, [f"means must lie in [{-bound:g}, {bound:g}], got {np.asarray(mean).tolist()}"])
    return values / bound
