"""Estimates of arm means from sums and from weighted scores.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Welch (1947), "The generalization of 'Student's' problem when several different population
variances are involved". Kish (1965), "Survey Sampling" (effective sample size). Satterthwaite (1946), "An
approximate distribution of estimates of variance components".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.inference.distributions import two_samples as small_samples
from adaptinf.inference.scores.inverse import ArmScores, arm_scores
from adaptinf.typing import BoolArray, FloatArray, IntArray

FEW_SCORES = 100_000
"""Largest number of scores for which NumPy is faster than loading Numba."""
ROUNDING = 1e-14
"""Standard errors below this share of the estimate are regarded as rounding errors of constant scores."""


@dataclass(frozen=True, slots=True)
class SampleMeans:
    """Unweighted means of the arms' rewards, stored relative to an origin; all shapes (K,)."""

    count: FloatArray
    above: FloatArray
    std_error: FloatArray
    origin: float = 0.0

    @property
    def mean(self) -> FloatArray:
        """The means, shape (K,)."""
        return self.above + self.origin


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
        """Difference between two of the estimates, and its standard error."""
        change = self.influence[:, first] - self.influence[:, second]
        return float(self.estimate[first] - self.estimate[second]), float(np.sqrt(change @ change))


@dataclass(frozen=True, slots=True, eq=False)
class UnitErrors:
    """Clustered errors for k estimates, and the numbers of units on which they are based.

    Shapes: covariance (k, k), freedom, units, events (k,). `units` counts the units with a round that is used
    for the estimate, and `events` those among them that have an event (infinite if rewards have no events).
    If fewer than 5 units have an event, the covariance is NaN.
    """

    covariance: FloatArray
    freedom: FloatArray
    units: IntArray
    events: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMeans:
    """Weighted means of scores, and the quantities that tests and tables require.

    Shapes: above (k,), covariance (k, k), pulls, successes, ess, freedom, min_propensity, used, skewness,
    unevenness (k,).

    `above` contains the means minus the origin of their sums. `freedom` is (sum w)^2 / sum w^2 - 1 over the
    rounds of an arm, where w = h^2 / e^2, and `used` counts the rounds with a weight. If d are the
    influences, `skewness` is sum d^3 / (sum d^2)^(3/2). `unevenness` is (sum g^3)^2 / (sum g^2)^3 over the
    rounds of an arm, where g = h / e. For weights that arms share, `movement` is the p-value for slopes over
    time of the arms' contrasts. For joint weights, `squares` is the variance of an estimate relative to that
    of a reward. For the pairs of a table, `products`, with shape (P, P), contains sums of products of the
    errors of all pairs' differences.
    """

    above: FloatArray
    origin: float
    covariance: FloatArray
    pulls: FloatArray
    successes: FloatArray
    ess: FloatArray
    freedom: FloatArray
    min_propensity: FloatArray
    used: FloatArray
    skewness: FloatArray
    unevenness: FloatArray
    by_unit: UnitErrors | None = None
    movement: float = 1.0
    squares: FloatArray | None = None
    products: FloatArray | None = None

    @property
    def estimate(self) -> FloatArray:
        """The means, shape (k,)."""
        return self.above + self.origin


@np.errstate(under="ignore", divide="ignore", invalid="ignore")
def sample_means(
    action: IntArray, reward: FloatArray, n_arms: int, count: FloatArray | None = None
) -> SampleMeans:
    """Means of the arms' rewards, and their standard errors.

    Shapes: action (T,), reward (T,), count (K,), which can be given if it is already known.
    """
    if count is None:
        count = np.bincount(action, minlength=n_arms).astype(np.float64)
    # If all rewards are on one side of 0 and far from it, differences from one of them keep their digits.
    start = reward[0] if reward.size > 0 else 0.0
    far = start != 0.0 and bool(reward.min() > 0.0 if start > 0.0 else reward.max() < 0.0)
    origin = float(reward[0]) if far else 0.0
    moved = reward - origin if far else reward
    above = np.bincount(action, weights=moved, minlength=n_arms) / count
    gap = above[action]
    np.subtract(moved, gap, out=gap)
    gap *= gap
    squares = np.bincount(action, weights=gap, minlength=n_arms)
    variance = np.where(count > 1, squares / (count - 1.0), np.nan)
    return SampleMeans(count, above, np.sqrt(variance / count), origin)


@np.errstate(under="ignore")
def welch(sample: SampleMeans, first: int, second: int) -> tuple[float, float, float]:
    """Difference between two sample means, its standard error, and Welch's degrees of freedom."""
    variance = sample.std_error**2 * sample.count
    moments = ((sample.count[arm], sample.above[arm], variance[arm]) for arm in (first, second))
    result = small_samples.welch(*next(moments), *next(moments))
    return float(result.estimate), float(result.std_error), float(result.df)


def weighted_means(scores: FloatArray, weights: FloatArray) -> WeightedMeans:
    """Weighted means of scores, with each round's contribution to the errors; scores, weights (T, k)."""
    total = weights.sum(axis=0)
    total = np.where(total > 0.0, total, np.nan)
    share = weights / total
    estimate = np.einsum("tk,tk->k", share, scores)
    return WeightedMeans(estimate, share * (scores - estimate))


def effective_size(weights: FloatArray) -> FloatArray:
    """Effective sample sizes (sum g)^2 / sum g^2; weights (T, k); returns (k,)."""
    squares = np.einsum("tk,tk->k", weights, weights)
    return np.asarray(weights.sum(axis=0) ** 2 / np.where(squares > 0.0, squares, 1.0), dtype=np.float64)


def degrees_of_freedom(gains: FloatArray) -> FloatArray:
    """Degrees of freedom for weighted means of scores; gains (T, k) is h / e in an arm's rounds.

    Returns shape (k,). The variance of a mean is estimated by the sum of squared residuals times w = h^2 /
    e^2. If the rewards are normal with a common variance, this sum has the mean and the variance of
    chi-squared with (sum w)^2 / sum w^2 degrees of freedom (Satterthwaite 1946), one of which is used for the
    mean.
    """
    return np.maximum(effective_size(gains**2) - 1.0, 0.0)


def standardised(cubes: FloatArray, variance: FloatArray) -> FloatArray:
    """Third moments divided by variances to the power 3/2; 0 if a variance is 0; cubes, variance (k,)."""
    root = np.sqrt(np.where(variance > 0.0, variance, np.inf))
    return np.asarray(cubes / root / root / root, dtype=np.float64)


def unevenness(squares: FloatArray, cubes: FloatArray) -> FloatArray:
    """Factor by which the squared skewness of rewards becomes that of an arm's estimate, shape (k,)."""
    spread = np.where(squares > 0.0, squares, np.inf)
    return np.asarray((cubes / spread) ** 2 / spread, dtype=np.float64)


def movement(slope: FloatArray, squares: FloatArray) -> float:
    """Probability of a slope this large, relative to its standard error, in any arm if nothing changes.

    Shapes: slope, squares (k,), the sums of the slopes and of their squares.
    """
    largest = float(np.max(np.abs(slope) / np.sqrt(np.where(squares > 0.0, squares, np.inf)), initial=0.0))
    tests = len(slope) if len(slope) > 2 else 1  # With two arms, both slopes are those of one contrast.
    return min(1.0, tests * 2.0 * float(special.ndtr(-largest)))


def pair_movement(influence: FloatArray, weight: FloatArray, time: FloatArray) -> float:
    """Probability of a slope at least this large for a contrast; influence (T, 2), weight, time (T,)."""
    total = weight.sum()
    slope = (influence[:, 0] - influence[:, 1]) * (time - weight @ time / (total if total > 0.0 else 1.0))
    return movement(slope.sum(keepdims=True), (slope @ slope)[None])


def negligible(size: FloatArray, above: FloatArray, origin: float) -> BoolArray:
    """Whether standard errors are only rounding errors of constant scores; size, above (k,)."""
    level = np.maximum(np.abs(above), np.abs(above + origin))
    return np.asarray(size <= ROUNDING * level, dtype=np.bool_)


def _smallest(propensities: FloatArray) -> FloatArray:
    """Smallest positive propensities, shape (k,), NaN if there are none; propensities (T, k)."""
    found = np.min(np.where(propensities > 0.0, propensities, np.inf), axis=0, initial=np.inf)
    return np.where(np.isfinite(found), found, np.nan)


def effective_events(ess: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Expected successes or failures, whichever is fewer, in an effective sample size; shape (...,).

    If there are few of them, rounds with large weights rarely contain one, so that an estimate and its
    standard error tend to be too small at the same time.
    """
    share = np.asarray(rate, dtype=float)
    return np.asarray(np.asarray(ess, dtype=float) * np.minimum(share, 1.0 - share))


def arm_score_means(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    codes: IntArray,
    *,
    time: FloatArray | None = None,
    **options: Any,
) -> ScoreMeans:
    """Estimates of arm means from the scores that `arm_scores` computes from the same arguments."""
    scored = arm_scores(action, reward, propensity, propensities, codes, **options)
    every = None if propensities is None else propensities[:, codes]
    return score_means(scored, reward, propensity, every, time)


def score_means(
    scored: ArmScores,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    time: FloatArray | None = None,
) -> ScoreMeans:
    """Weighted means of arms' scores, and the quantities that tests and tables require.

    Shapes: reward, propensity (T,), propensities (T, k), time (T,), which is given for two arms that share
    their weights.
    """
    chosen, weights = scored.chosen, scored.weights
    weighted = weighted_means(scored.scores, weights)
    covariance = weighted.covariance
    constant = negligible(np.sqrt(np.diag(covariance)), weighted.estimate, scored.origin)
    covariance[constant, :] = covariance[:, constant] = 0.0
    observed = chosen / propensity[:, None]
    every = chosen * propensity[:, None] if propensities is None else propensities
    return ScoreMeans(
        above=weighted.estimate,
        origin=scored.origin,
        covariance=covariance,
        pulls=chosen.sum(axis=0),
        successes=reward @ chosen,
        ess=effective_size(weights * observed),
        freedom=degrees_of_freedom(weights * observed),
        min_propensity=_smallest(np.where(weights > 0.0, every, 0.0)),
        used=np.count_nonzero(weights, axis=0).astype(np.float64),
        skewness=standardised(np.einsum("tk,tk,tk->k", *(3 * [weighted.influence])), np.diag(covariance)),
        unevenness=unevenness(*(np.sum((weights * observed) ** power, axis=0) for power in (2, 3))),
        movement=1.0 if time is None else pair_movement(weighted.influence, weights[:, 0], time),
    )
