"""Inverse-weighted scores of a log's arms, and the estimates from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.choice import Choice
from adaptinf.inference.scores.inverse import aipw_scores, indicators, ipw_scores, running_means
from adaptinf.inference.scores.means import ScoreMeans, score_means
from adaptinf.inference.scores.outcome_models import Outcome
from adaptinf.inference.scores.weights import sqrt_weights, two_point_weights, uniform_weights
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["score_estimates", "score_rows"]

_SMALL = 100_000
"""Scores up to which NumPy is quick enough that loading Numba does not pay."""


def score_estimates(log: AdaptiveLog, codes: IntArray, choice: Choice, model: Outcome | None) -> ScoreMeans:
    """Estimates from inverse weighting: in NumPy for short logs, compiled and streamed for long ones."""
    arrays = log.arrays
    own = np.ones(0) if arrays.propensity is None else arrays.propensity
    if log.n_rounds * len(codes) <= _SMALL:
        chosen = indicators(arrays.action, codes)
        every = None if arrays.propensities is None else arrays.propensities[:, codes]
        scores, weights = score_rows(log, codes, choice, model)
        return score_means(chosen, arrays.reward, own, every, scores, weights)
    from adaptinf.inference.scores.streams import streamed_means  # Numba is loaded when it pays

    return streamed_means(
        arrays.action,
        arrays.reward,
        own,
        arrays.propensities,
        codes,
        weights=choice.weights or "uniform",
        decay=choice.decay,
        outcome=None if model is None else model.values,
    )


def score_rows(
    log: AdaptiveLog, codes: IntArray, choice: Choice, model: Outcome | None
) -> tuple[FloatArray, FloatArray]:
    """Scores and weights of inverse weighting, shape (T, k) each."""
    arrays = log.arrays
    chosen = indicators(arrays.action, codes)
    propensity = np.ones(0) if arrays.propensity is None else arrays.propensity
    if model is None:
        scores = ipw_scores(chosen, arrays.reward, propensity)
    else:
        given = model.values
        predicted = running_means(chosen, arrays.reward) if isinstance(given, str) else given
        scores = aipw_scores(chosen, arrays.reward, propensity, predicted)
    every = None if arrays.propensities is None else arrays.propensities[:, codes]
    return scores, _weights(choice, every, log.n_rounds, len(codes))


def _weights(choice: Choice, propensities: FloatArray | None, n_rounds: int, n_arms: int) -> FloatArray:
    if propensities is None or choice.weights == "uniform":
        return uniform_weights(n_rounds, n_arms)
    if choice.decay is None:
        return sqrt_weights(propensities)
    return two_point_weights(propensities, choice.decay)
