"""Estimates of arm means from sums and from weighted scores.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Welch (1947), "The generalization of 'Student's' problem when several different population
variances are involved". Kish (1965), "Survey Sampling" (effective sample size).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.inference.distributions import two_samples as small_samples
from adaptinf.typing import FloatArray, IntArray

__all__ = [
    "ROUNDING",
    "SampleMeans",
    "ScoreMeans",
    "WeightedMeans",
    "effective_size",
    "sample_means",
    "score_means",
    "weighted_means",
    "welch",
]

ROUNDING = 1e-14
"""Standard errors below this share of the estimate are the rounding of scores that are all the same."""


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """Plain means of the arms' rewards.

    Attributes
    ----------
    count : ndarray, shape (K,)
        Rewards of each arm.
    mean : ndarray, shape (K,)
        Their mean; NaN without rewards.
    std_error : ndarray, shape (K,)
        Its standard error; NaN with fewer than two rewards.
    """

    count: FloatArray
    mean: FloatArray
    std_error: FloatArray


@dataclass(frozen=True, slots=True)
class WeightedMeans:
    """Weighted means of scores.

    Attributes
    ----------
    estimate : ndarray, shape (k,)
        Sum of weight times score over the sum of weights; NaN where no weight is positive.
    influence : ndarray, shape (T, k)
        Weight times (score - estimate) over the sum of weights.
    """

    estimate: FloatArray
    influence: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Estimated covariance matrix of the estimates, shape (k, k)."""
        return np.asarray(self.influence.T @ self.influence, dtype=np.float64)

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Difference of two of the estimates, and its standard error."""
        change = self.influence[:, first] - self.influence[:, second]
        return float(self.estimate[first] - self.estimate[second]), float(np.sqrt(change @ change))


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMeans:
    """Weighted means of scores, and what tables show of them.

    Attributes
    ----------
    estimate : ndarray, shape (k,)
        Sum of weight times score over the sum of weights; NaN where no weight is positive.
    covariance : ndarray, shape (k, k)
        Estimated covariance matrix of the estimates.
    pulls, successes : ndarray, shape (k,)
        Number and sum of the arm's rewards.
    ess : ndarray, shape (k,)
        Effective sample sizes of weight over propensity among the arm's rounds.
    min_propensity : ndarray, shape (k,)
        Smallest propensity of the arm where all are known, else where it was chosen; NaN where that is none.
    """

    estimate: FloatArray
    covariance: FloatArray
    pulls: FloatArray
    successes: FloatArray
    ess: FloatArray
    min_propensity: FloatArray


def sample_means(action: IntArray, reward: FloatArray, n_arms: int) -> SampleMeans:
    """Means of the arms' rewards, and their standard errors.

    Parameters
    ----------
    action : ndarray of int64, shape (T,)
        Arm codes.
    reward : ndarray, shape (T,)
        Rewards.
    n_arms : int
        Number of arms K, chosen or not.

    Returns
    -------
    SampleMeans
        Arrays of shape (K,).

    Examples
    --------
    >>> sample_means(np.array([0, 1, 0]), np.array([1.0, 5.0, 3.0]), 2).mean
    array([2., 5.])
    """
    count = np.bincount(action, minlength=n_arms).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(action, weights=reward, minlength=n_arms) / count
        squares = np.bincount(action, weights=(reward - mean[action]) ** 2, minlength=n_arms)
        variance = np.where(count > 1, squares / (count - 1.0), np.nan)
        return SampleMeans(count, mean, np.sqrt(variance / count))


def welch(sample: SampleMeans, first: int, second: int) -> tuple[float, float, float]:
    """Difference of two sample means.

    Parameters
    ----------
    sample : SampleMeans
        Of all arms.
    first, second : int
        Codes of the arms; the second is subtracted.

    Returns
    -------
    difference, std_error, df : float
        With Welch's degrees of freedom; NaN where an arm has too few rewards or neither varies.
    """
    variance = sample.std_error**2 * sample.count
    moments = ((sample.count[arm], sample.mean[arm], variance[arm]) for arm in (first, second))
    result = small_samples.welch(*next(moments), *next(moments))
    return float(result.estimate), float(result.std_error), float(result.df)


def weighted_means(scores: FloatArray, weights: FloatArray) -> WeightedMeans:
    """Weighted means of scores, with what each round contributes to their error.

    Parameters
    ----------
    scores, weights : ndarray, shape (T, k)
        Scores, and weights of 0 or more.

    Returns
    -------
    WeightedMeans
        Its covariance is that of the self-normalised estimates; the variance of a difference takes each
        arm's own weights.

    Examples
    --------
    >>> weighted_means(np.array([[1.0], [4.0]]), np.array([[2.0], [1.0]])).estimate
    array([2.])
    """
    total = weights.sum(axis=0)
    total = np.where(total > 0.0, total, np.nan)
    share = weights / total
    estimate = np.einsum("tk,tk->k", share, scores)
    return WeightedMeans(estimate, share * (scores - estimate))


def effective_size(weights: FloatArray) -> FloatArray:
    """Effective sample sizes (sum g)^2 / sum g^2.

    Parameters
    ----------
    weights : ndarray, shape (T, k)
        Weight g that each estimate gives to each reward.

    Returns
    -------
    ndarray, shape (k,)
        Equal weights give the number of rewards; 0 where no reward has a weight.

    Examples
    --------
    >>> effective_size(np.array([[1.0], [1.0], [0.0]]))
    array([2.])
    """
    squares = np.einsum("tk,tk->k", weights, weights)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(squares > 0.0, squares, 1.0), dtype=np.float64)


def score_means(
    chosen: FloatArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    scores: FloatArray,
    weights: FloatArray,
) -> ScoreMeans:
    """Weighted means of scores of arms, and what tables show of them.

    Parameters
    ----------
    chosen : ndarray, shape (T, k)
        Indicators of the arms.
    reward, propensity : ndarray, shape (T,)
        Rewards, and propensities of the chosen arms.
    propensities : ndarray, shape (T, k), or None
        Propensities of the arms.
    scores, weights : ndarray, shape (T, k)
        Scores, and weights of 0 or more.

    Returns
    -------
    ScoreMeans
    """
    weighted = weighted_means(scores, weights)
    covariance = weighted.covariance
    constant = np.sqrt(np.diag(covariance)) <= ROUNDING * np.abs(weighted.estimate)
    covariance[constant, :] = covariance[:, constant] = 0.0
    observed = chosen / propensity[:, None]
    if propensities is None:
        largest = observed.max(axis=0)
        smallest = np.where(largest > 0.0, 1.0 / np.where(largest > 0.0, largest, 1.0), np.nan)
    else:
        smallest = propensities.min(axis=0)
    return ScoreMeans(
        estimate=weighted.estimate,
        covariance=covariance,
        pulls=chosen.sum(axis=0),
        successes=reward @ chosen,
        ess=effective_size(weights * observed),
        min_propensity=smallest,
    )
