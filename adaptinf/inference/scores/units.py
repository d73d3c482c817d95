"""Units with several rounds: predictions without a unit's own rewards, and errors by unit.

Let y be the potential rewards of an arm, and m_t a prediction made before the arm of round t is drawn. The
error of its score, (1{arm chosen} / e_t - 1) (y_t - m_t), has mean 0 given all potential rewards and all that
came before the draw. So these errors are uncorrelated over all rounds, also where a policy that learns from
all units ties them together. What is left of a unit's sum is its own potential rewards, which are independent
of other units'. The sums by unit are therefore uncorrelated, and their squares add up to the variance. One
condition: a unit's potential reward depends on the arm of its round alone, not on those of its earlier rounds
(no carry-over).

Where the arm is drawn once for all rounds of a unit, their errors share one draw, and a prediction from the
unit's own earlier rewards would know how it fell, which biases the score. So a prediction uses other units
alone.

References
----------
Liang, Zeger (1986), "Longitudinal data analysis using generalized linear models" (variance by cluster).
Carter, Schnepel, Steigerwald (2017), "Asymptotic behavior of a t-test robust to cluster heterogeneity"
(effective number of clusters). Zhang, Janson, Murphy (2022), "Statistical inference after adaptive sampling
for longitudinal data" (policies learned from several users).
"""

from __future__ import annotations

import numpy as np

from adaptinf.typing import BoolArray, FloatArray, IntArray

_SPIKE = 0.5
"""Share of the rewards from which on a single value counts as "no event"."""


def totals_by_unit(rows: FloatArray, unit: IntArray) -> FloatArray:
    """Sums of the rows of each unit that occurs; rows (T, k), unit (T,); returns (G, k)."""
    present = np.bincount(unit) > 0
    sums = np.empty((int(present.sum()), rows.shape[1]))
    for k, column in enumerate(rows.T):
        sums[:, k] = np.bincount(unit, weights=column, minlength=len(present))[present]
    return sums


def unit_covariance(influence: FloatArray, unit: IntArray) -> FloatArray:
    """Covariance (G / (G - 1)) sum_u I_u I_u' of estimates, I_u the sum of the influences of unit u.

    Shapes: influence (T, k), unit (T,); returns (k, k), NaN where there is one unit.
    """
    totals = totals_by_unit(influence, unit)
    count = len(totals)
    if count < 2:
        return np.full((influence.shape[1],) * 2, np.nan)
    return np.asarray(totals.T @ totals * (count / (count - 1.0)), dtype=np.float64)


def units_with(rows: FloatArray | BoolArray, unit: IntArray) -> IntArray:
    """Number of units with a row that is not 0; rows (T, k), unit (T,); returns (k,)."""
    found = [np.count_nonzero(np.bincount(unit[column != 0])) for column in np.asarray(rows).T]
    return np.array(found, dtype=np.int64)


def effective_units(weights: FloatArray, chosen: FloatArray, unit: IntArray) -> FloatArray:
    """Effective number of units that had each arm, (sum H^2)^2 / sum H^4 for weights H by unit.

    Shapes: weights, chosen (T, k), unit (T,); returns (k,).

    H is the sum of the weights of all rounds of a unit, so that H^2 is its share of the variance where its
    rounds are alike. It is the number of units that had the arm where all weigh the same, and less where few
    units have most of the rounds.
    """
    had = totals_by_unit(chosen, unit) > 0.0
    squares = np.where(had, totals_by_unit(weights, unit), 0.0) ** 2
    fourth = np.einsum("uk,uk->k", squares, squares)
    return np.asarray(squares.sum(axis=0) ** 2 / np.where(fourth > 0.0, fourth, 1.0), dtype=np.float64)


def others_means(chosen: FloatArray, reward: FloatArray, unit: IntArray) -> tuple[FloatArray, BoolArray]:
    """Mean reward of every arm over the earlier rounds of other units, and where there are any such rounds.

    Shapes: chosen (T, k), reward, unit (T,); returns (T, k), (T,).

    Before other units had an arm it is the mean of all their earlier rewards. Rounds before any reward of
    another unit have no prediction; it is then the first reward, and they must have no weight. Adding a
    constant to all rewards adds it to all predictions.

    Where the arm of a unit is drawn once and the design learns, other units' later arms depend a little on
    how the draw fell, and with them the predictions for the unit's later rounds; not the unit's own rewards.
    """
    origin = float(reward[0]) if len(reward) else 0.0
    level = reward - origin
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    lengths = np.diff(starts, append=len(unit))
    count = _earlier_of_others(np.ones(len(unit)), order, starts, lengths)
    overall = _earlier_of_others(level, order, starts, lengths) / np.maximum(count, 1.0)
    predicted = np.empty(chosen.shape)
    for k, mine in enumerate(chosen.T):
        pulls = _earlier_of_others(mine, order, starts, lengths)
        total = _earlier_of_others(mine * level, order, starts, lengths)
        predicted[:, k] = np.where(pulls > 0.5, total / np.maximum(pulls, 1.0), overall)
    return predicted + origin, count > 0.5


def _earlier_of_others(
    values: FloatArray, order: IntArray, starts: IntArray, lengths: IntArray
) -> FloatArray:
    """Sums of the values over earlier rounds of other units.

    Shapes: values (T,), order (T,) with the rounds by unit, starts, lengths (G,) of the units in it; returns
    (T,).
    """
    every = np.cumsum(values) - values
    sorted_values = values[order]
    running = np.cumsum(sorted_values) - sorted_values
    own = np.empty(len(values))
    own[order] = running - np.repeat(running[starts], lengths)
    return np.asarray(every - own, dtype=np.float64)


def units_with_events(chosen: FloatArray, reward: FloatArray, unit: IntArray) -> FloatArray:
    """Number of units with an event under each arm; infinite where rewards have no events.

    Shapes: chosen (T, k), reward, unit (T,); returns (k,).

    Rewards have events where one value makes up half of them or more: any other value is an event. Where
    there are two values in all, such as 0 and 1, the rarer of the two counts, arm by arm: units that had it.
    """
    values, counts = np.unique(reward, return_counts=True)
    if len(values) == 0 or counts.max() < _SPIKE * len(reward):
        return np.full(chosen.shape[1], np.inf)
    usual = reward == values[np.argmax(counts)]
    events = units_with(chosen * ~usual[:, None], unit)
    if len(values) <= 2:
        events = np.minimum(events, units_with(chosen * usual[:, None], unit))
    return events.astype(np.float64)
