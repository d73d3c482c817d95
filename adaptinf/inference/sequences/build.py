"""From a log to the confidence sequence of one quantity."""

from __future__ import annotations

import math

import numpy as np

from adaptinf.inference.scores.inverse import indicators, predictions
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.sequences.bounded_scores import (
    Scores,
    Weights,
    arm_scores,
    augmented_scores,
    inverse_scores,
    running_outcomes,
    score_floors,
)
from adaptinf.inference.sequences.choice import Quantity, Settings
from adaptinf.inference.sequences.from_sums import batch_track
from adaptinf.inference.sequences.laws import DifferenceTrack, SingleTrack, Track
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray, IntArray


def build_track(profile: LogProfile, quantity: Quantity, settings: Settings) -> tuple[Track, float, float]:
    """Sequence of one quantity, its standard error, and its effective number of rewards."""
    if profile.sums is not None:
        return batch_track(profile.sums.cells, quantity, settings)
    log = profile.log
    reward = (log.arrays.reward - settings.low) / settings.width
    mirror = 1.0 if settings.bounded else 0.0
    if settings.estimator == "sample-mean":
        scores = [arm_scores(log.arrays.action, reward, code, mirror) for code in quantity.codes]
        tracks = [_track(x, _ordinals(len(x.lower)), settings, settings.low, settings.width) for x in scores]
        spread = [_std_error(x.lower) * settings.width for x in scores]
        pulls = float(min(len(x.lower) for x in scores))
        if len(tracks) == 1:
            return tracks[0], spread[0], pulls
        return DifferenceTrack(*tracks), math.hypot(*spread), pulls
    weights = quantity.weights
    # Rewards without bounds are taken above the first one, so that their origin does not matter.
    start = reward[0] if settings.estimator == "aipw" and not settings.bounded else 0.0
    own = _propensity_scores(log, reward - start, weights, settings)
    total = weights.positive - weights.negative
    span = (weights.positive + weights.negative) if settings.bounded else 1.0
    origin = (settings.low + start) * total - (settings.width * weights.negative if settings.bounded else 0.0)
    clock = _rewards_used(log, quantity)[-len(own.lower) :]
    track = _track(own, clock, settings, origin, settings.width * span)
    middle = 0.5 * (own.lower + mirror - own.upper)
    return track, _std_error(middle) * settings.width * span, _effective_size(log, quantity)


def _propensity_scores(log: AdaptiveLog, reward: FloatArray, weights: Weights, settings: Settings) -> Scores:
    action, propensity = log.arrays.action, log.arrays.propensity
    assert propensity is not None
    if settings.method.bets and settings.estimator == "ipw":
        return inverse_scores(action, reward, propensity, weights)
    if settings.estimator == "aipw" and not settings.bounded:
        return _unbounded_scores(log, reward, weights)
    if settings.estimator == "aipw":
        outcome = running_outcomes(action, reward, log.n_arms)
    else:
        outcome = np.full((log.n_rounds, log.n_arms), 0.5 if settings.bounded else 0.0)
    score = augmented_scores(action, reward, propensity, weights, outcome, settings.bounded)
    counts = np.arange(1, log.n_rounds + 1)
    mirror = 1.0 if settings.bounded else 0.0
    if not settings.method.anytime:
        return Scores(score, mirror - score, None, None, counts)
    if settings.floor is None:
        smallest = log.arrays.propensities
        assert smallest is not None
    else:
        smallest = np.full((log.n_rounds, log.n_arms), settings.floor)
    return Scores(score, mirror - score, *score_floors(weights, outcome, smallest), counts)


def _unbounded_scores(log: AdaptiveLog, reward: FloatArray, weights: Weights) -> Scores:
    """Augmented scores of all rounds but the first, which nothing predicts; reward (T,), from 0 on."""
    action, propensity = log.arrays.action, log.arrays.propensity
    assert propensity is not None
    every = indicators(action, np.arange(log.n_arms, dtype=np.int64))
    score = augmented_scores(action, reward, propensity, weights, predictions(every, reward), bounded=False)[
        1:
    ]
    return Scores(score, -score, None, None, np.arange(log.n_rounds))


def _track(scores: Scores, clock: IntArray, settings: Settings, origin: float, width: float) -> SingleTrack:
    mirror = 1.0 if settings.bounded else 0.0
    lower, upper = settings.method.sides(scores, clock, settings)
    middle = 0.5 * (scores.lower + mirror - scores.upper)
    mean = np.cumsum(middle) / np.arange(1.0, len(middle) + 1.0)
    shares = 2.0 if settings.method.bets else 1.0
    return SingleTrack(lower, upper, mirror, origin, width, shares, mean, scores.counts)


def _ordinals(count: int) -> IntArray:
    return np.arange(1, count + 1, dtype=np.int64)


def _rewards_used(log: AdaptiveLog, quantity: Quantity) -> IntArray:
    """Rewards that the scores rest on after each round; for a contrast those of the rarer arm."""
    action = log.arrays.action
    if quantity.codes:
        pulls = [np.cumsum(action == code) for code in quantity.codes]
        return np.asarray(np.min(pulls, axis=0), dtype=np.int64)
    return np.cumsum(quantity.weights.arms[np.arange(log.n_rounds), action] != 0.0).astype(np.int64)


def _effective_size(log: AdaptiveLog, quantity: Quantity) -> float:
    arrays = log.arrays
    assert arrays.propensity is not None
    ratio = quantity.weights.arms[np.arange(log.n_rounds), arrays.action] / arrays.propensity
    groups = [arrays.action == code for code in quantity.codes] or [np.ones(log.n_rounds, dtype=np.bool_)]
    return float(effective_size(np.column_stack([np.where(group, ratio, 0.0) for group in groups])).min())


def _std_error(score: FloatArray) -> float:
    return float(np.std(score, ddof=1) / math.sqrt(len(score))) if len(score) > 1 else math.nan
