"""Does the value that scores have in every round stay the same? Its linear trend, by rows and by sums.

With weights w of a value, propensities e and means m of the arms' own rewards, the scores are
w 1{A = k} (y - m_k) / e + sum w_k m_k. A drift that both arms of a contrast share is none of its value.
"""

from __future__ import annotations

import math

import numpy as np

from adaptinf.inference.inputs.times import middles
from adaptinf.inference.sequences.choice import Quantity
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import LEAST_ROUNDS, standardised, times
from adaptinf.sums.cells import Cells, shifted


def value_trend(profile: LogProfile, quantity: Quantity) -> float:
    """Standardised slope of a value in time; NaN where there is nothing to test."""
    if profile.repeated_units or profile.incomplete or not profile.knows_propensities:
        return math.nan
    if profile.sums is not None:
        return _of_sums(profile.sums.cells, quantity)
    arrays = profile.log.arrays
    assert arrays.propensity is not None
    action, weights, rounds = arrays.action, quantity.weights.arms, profile.log.n_rounds
    count = np.bincount(action, minlength=profile.log.n_arms)
    mean = np.bincount(action, arrays.reward, profile.log.n_arms) / np.maximum(count, 1)
    own = weights[np.arange(rounds), action]
    if not own.any() or count[np.unique(action[own != 0.0])].min() < LEAST_ROUNDS:
        return math.nan
    score = own * (arrays.reward - mean[action]) / arrays.propensity
    if weights.strides[0] != 0:
        score += weights @ mean
    away = times(rounds, arrays.batch)
    return standardised((away - away.mean()) * (score - score.mean()))


def _of_sums(cells: Cells, quantity: Quantity) -> float:
    weights = quantity.weights.arms[0]
    used = weights != 0.0
    number, first = (part[:, used] for part in cells.moments[0, :2])
    if number.sum(axis=0).min(initial=np.inf) < LEAST_ROUNDS or len(cells.rounds) < 2:
        return math.nan
    weights = weights[used]
    mean = first.sum(axis=0) / number.sum(axis=0)
    by_inverse, by_square = shifted(cells.moments[1:3][..., used], -mean)
    total = by_inverse[1] @ weights
    squares = np.maximum(by_square[2], 0.0) @ weights**2
    level = float(total.sum() / cells.rounds.sum())
    time = middles(cells.rounds)
    away = time - float(time @ cells.rounds / cells.rounds.sum())
    size = float(away**2 @ np.maximum(squares - 2.0 * level * total + level**2 * cells.rounds, 0.0))
    slope = float(away @ (total - level * cells.rounds))
    return slope / math.sqrt(size) if 0.0 < size < math.inf else math.nan
