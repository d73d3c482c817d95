"""Scores of arms with clustered errors, from sums by batch and totals by unit.

All rounds have the same weight, and the prediction m is the centre of the sums, or 0 if there is no outcome
model. A unit with n rounds, and with totals A of 1 / e and Y of (y - centre) / e, adds (n (m - mean) +
(centre - m) A + Y) / T to the error of an arm's mean. This is a linear combination L of n, A and Y. Its
squares sum to L P L' over units, where P contains the sums of products of n, A and Y.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adaptinf.inference.scores.batch_sums import arm_factors, batch_score_means, correlation_of
from adaptinf.inference.scores.means import ScoreMeans, UnitErrors, negligible
from adaptinf.inference.scores.unit_errors import where_events
from adaptinf.sums.cells import Cells, other_value
from adaptinf.sums.unit_totals import UnitTotals
from adaptinf.typing import FloatArray, IntArray

_CANCELLED = 1e-14
"""If a variance is a smaller share of its terms than this, it is only their rounding error."""
# From this share of zeros on, other rewards count as events, as for rows (`unit_errors`).
_SPIKE = 0.5


def unit_score_means(cells: Cells, totals: UnitTotals, codes: IntArray, *, augmented: bool) -> ScoreMeans:
    """Estimates of arm means with uniform weights and clustered errors; codes has shape (k,)."""
    means = _uniform_means(cells, codes, augmented=augmented)
    factors = _factors(cells, totals, means, augmented=augmented)
    covariance = _covariance(totals, codes, factors, means)
    had, events = totals.by_arm("had")[codes], _units_with_events(cells, totals)[codes]
    covariance = where_events(covariance, events)
    errors = UnitErrors(covariance, _freedom(cells, totals)[codes], had.astype(np.int64), events)
    return replace(means, covariance=covariance, freedom=errors.freedom, by_unit=errors)


def unit_correlation(
    cells: Cells,
    totals: UnitTotals,
    codes: IntArray,
    *,
    augmented: bool,
    multiples: FloatArray | None = None,
) -> FloatArray:
    """Correlation of contrasts, from clustered errors.

    Shapes: codes (P, 2), the first arm minus the second; multiples (P,), of the second arm's mean; returns
    (P, P).
    """
    every = np.arange(totals.n_arms)
    means = _uniform_means(cells, every, augmented=augmented)
    factors = _factors(cells, totals, means, augmented=augmented)
    sign = arm_factors(codes, totals.n_arms, multiples)
    return correlation_of(sign @ _covariance(totals, every, factors, means) @ sign.T)


def _uniform_means(cells: Cells, codes: IntArray, *, augmented: bool) -> ScoreMeans:
    """Means of the scores; codes has shape (k,)."""
    weights = np.ones((len(cells.rounds), len(codes)))
    if not augmented:
        return batch_score_means(cells, codes, weights, augmented=False)
    # Scores are of rewards minus the centre, because predictions are then 0.
    means = batch_score_means(replace(cells, centre=0.0), codes, weights, augmented=False)
    return replace(means, origin=cells.centre, successes=means.successes + cells.centre * means.pulls)


def _factors(cells: Cells, totals: UnitTotals, means: ScoreMeans, *, augmented: bool) -> FloatArray:
    """The coefficients of a unit's n, A and Y in the error of each mean, shape (3, k)."""
    one = np.ones_like(means.above)
    # Without a model `above` is about 0; A restores to the rewards the centre that Y lacks.
    share = np.array([-means.above, (0.0 if augmented else cells.centre) * one, one])
    return share / totals.rounds


def _covariance(totals: UnitTotals, codes: IntArray, factors: FloatArray, means: ScoreMeans) -> FloatArray:
    """Covariance (U / (U - 1)) L P L' of the means; codes (k,), factors (3, k); returns (k, k)."""
    size, n_arms = len(codes), totals.n_arms
    if totals.count < 2:
        return np.full((size, size), np.nan)
    combination = np.zeros((size, 1 + 2 * n_arms))
    place = np.arange(size)
    combination[:, 0] = factors[0]
    combination[place, 1 + codes] = factors[1]
    combination[place, 1 + n_arms + codes] = factors[2]
    found = combination @ totals.pairs @ combination.T * _few(totals)
    terms = np.abs(combination) @ np.abs(totals.pairs) @ np.abs(combination).T * _few(totals)
    variance = np.diag(found)
    error = np.sqrt(np.maximum(variance, 0.0))
    constant = (variance <= _CANCELLED * np.diag(terms)) | negligible(error, means.above, means.origin)
    found[constant, :] = found[:, constant] = 0.0
    return np.asarray(found, dtype=np.float64)


def _few(totals: UnitTotals) -> float:
    return totals.count / (totals.count - 1.0) if totals.count > 1 else 1.0


def _freedom(cells: Cells, totals: UnitTotals) -> FloatArray:
    """Effective number of units assigned to each arm, or of rounds if smaller, minus 1; shape (K,)."""
    squares, fourths = totals.by_arm("squares"), totals.by_arm("fourths")
    units = squares**2 / np.where(fourths > 0.0, fourths, 1.0)
    second, fourth = (cells.moments[power, 0].sum(axis=0) for power in (2, 4))
    rounds = second**2 / np.where(fourth > 0.0, fourth, 1.0)
    return np.asarray(np.maximum(np.minimum(units, rounds) - 1.0, 0.0), dtype=np.float64)


def _units_with_events(cells: Cells, totals: UnitTotals) -> FloatArray:
    """Number of units with an event for each arm, shape (K,); infinite if rewards have no events.

    If rewards take two values, the rarer value is an event. If they take more, and at least half of them are
    0, all other values are events. If another value is equally common, sums do not show this.
    """
    events, others = totals.by_arm("events"), totals.by_arm("others")
    raw = cells.about(0.0).moments[0]
    if other_value(raw[1], raw[2]) is not None:
        return np.minimum(events, others)
    usual = 1.0 - cells.nonzero.sum() / cells.rounds.sum() >= _SPIKE
    return events if usual else np.full(totals.n_arms, np.inf)
