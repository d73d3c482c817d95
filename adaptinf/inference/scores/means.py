"""Estimates of arm means from sums and from weighted scores.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Welch (1947), "The generalization of 'Student's' problem when several different population
variances are involved". Kish (1965), "Survey Sampling" (effective sample size).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.inference.distributions import two_samples as small_samples
from adaptinf.inference.scores.inverse import arm_scores
from adaptinf.typing import FloatArray, IntArray

ROUNDING = 1e-14
"""Standard errors below this share of the estimate are the rounding of scores that are all the same."""


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """Plain means of the arms' rewards; count (K,), mean (K,), std_error (K,)."""

    count: FloatArray
    mean: FloatArray
    std_error: FloatArray


@dataclass(frozen=True, slots=True)
class WeightedMeans:
    """Weighted means of scores; estimate (k,), influence (T, k)."""

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

    Shapes: estimate (k,), covariance (k, k), pulls, successes (k,), ess (k,), min_propensity (k,).
    """

    estimate: FloatArray
    covariance: FloatArray
    pulls: FloatArray
    successes: FloatArray
    ess: FloatArray
    min_propensity: FloatArray


@np.errstate(under="ignore")
def sample_means(action: IntArray, reward: FloatArray, n_arms: int) -> SampleMeans:
    """Means of the arms' rewards, and their standard errors; action (T,), reward (T,)."""
    count = np.bincount(action, minlength=n_arms).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(action, weights=reward, minlength=n_arms) / count
        squares = np.bincount(action, weights=(reward - mean[action]) ** 2, minlength=n_arms)
        variance = np.where(count > 1, squares / (count - 1.0), np.nan)
        return SampleMeans(count, mean, np.sqrt(variance / count))


@np.errstate(under="ignore")
def welch(sample: SampleMeans, first: int, second: int) -> tuple[float, float, float]:
    """Difference of two sample means."""
    variance = sample.std_error**2 * sample.count
    moments = ((sample.count[arm], sample.mean[arm], variance[arm]) for arm in (first, second))
    result = small_samples.welch(*next(moments), *next(moments))
    return float(result.estimate), float(result.std_error), float(result.df)


def weighted_means(scores: FloatArray, weights: FloatArray) -> WeightedMeans:
    """Weighted means of scores, with what each round contributes to their error; scores, weights (T, k)."""
    total = weights.sum(axis=0)
    total = np.where(total > 0.0, total, np.nan)
    share = weights / total
    estimate = np.einsum("tk,tk->k", share, scores)
    return WeightedMeans(estimate, share * (scores - estimate))


def effective_size(weights: FloatArray) -> FloatArray:
    """Effective sample sizes (sum g)^2 / sum g^2; weights (T, k); returns (k,)."""
    squares = np.einsum("tk,tk->k", weights, weights)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(squares > 0.0, squares, 1.0), dtype=np.float64)


def effective_events(ess: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Expected successes or failures, whichever are fewer, in an effective sample size; shape (...,).

    Where they are few, the rounds with large weights rarely hold one, and an estimate and its standard error
    are too small together.
    """
    share = np.asarray(rate, dtype=float)
    return np.asarray(np.asarray(ess, dtype=float) * np.minimum(share, 1.0 - share))


def arm_score_means(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    **options: Any,
) -> ScoreMeans:
    """Estimates of arm means from the scores that `arm_scores` makes of the same arguments."""
    chosen, scores, weights = arm_scores(action, reward, propensity, propensities, codes, **options)
    every = None if propensities is None else propensities[:, codes]
    return score_means(chosen, reward, propensity, every, scores, weights)


def score_means(
    chosen: FloatArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    scores: FloatArray,
    weights: FloatArray,
) -> ScoreMeans:
    """Weighted means of scores of arms, and what tables show of them.

    Shapes: chosen (T, k), reward, propensity (T,), propensities (T, k), scores, weights (T, k).
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
