"""Scores of arms from sums by batch, with outcome models and weights fixed when a batch starts.

The score of an arm with propensity e in a round is m + 1{arm chosen} (y - m) / e, where m is the prediction
of the arm's reward, and the estimate is sum h (score) / sum h. If m is the arm's mean over earlier batches,
and all rounds of a batch have the same weight h, sums of (y - m)^j / e^p over the arm's rounds are
sufficient. In the first batch, no reward is known in advance, so m is the mean of the batch's other rounds,
over all arms. With the batch's mean u, n rounds and z = y - u, this is m = u - z / (n - 1), and

    score = u - z / (n - 1) + n / (n - 1) 1{arm chosen} z / e.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from adaptinf.inference.inputs.rounds import middles
from adaptinf.inference.scores.means import (
    ScoreMeans,
    movement,
    negligible,
    standardised,
    unevenness,
)
from adaptinf.sums.cells import Cells, shifted
from adaptinf.typing import BoolArray, FloatArray, IntArray


def earlier_means(count: FloatArray, total: FloatArray) -> FloatArray:
    """Mean reward of each arm over earlier batches; before its first reward, the mean of all arms.

    Shapes: count, total (B, K), the numbers of rewards and their sums; returns (B, K). The first row is the
    first batch's own mean.
    """
    before = np.zeros_like(count), np.zeros_like(total)
    for whole, part in zip(before, (count, total), strict=True):
        np.cumsum(part[:-1], axis=0, out=whole[1:])
    pooled = np.divide(total[:1].sum(), count[:1].sum()) * np.ones(len(count))
    pooled[1:] = before[1][1:].sum(axis=1) / before[0][1:].sum(axis=1)
    own = before[1] / np.maximum(before[0], 1.0)
    return np.where(before[0] > 0.0, own, pooled[:, None])


def batch_means(
    action: IntArray, reward: FloatArray, batch: IntArray, codes: IntArray, n_arms: int
) -> tuple[FloatArray, int]:
    """Predictions for the rows of a log, and the first round with a weight.

    Shapes: action, reward, batch (T,), codes (k,); returns (T, k).
    """
    size, origin = int(batch.max(initial=-1)) + 1, float(reward[0]) if len(reward) else 0.0
    place, above = batch * n_arms + action, reward - origin
    count, total = (
        np.bincount(place, weights=weights, minlength=size * n_arms).reshape(size, n_arms).astype(np.float64)
        for weights in (np.ones(len(reward)), above)
    )
    predicted = earlier_means(count, total)[:, codes][batch]
    first = batch == 0
    n = int(np.count_nonzero(first))
    if n > 1:
        others = (above[first].sum() - above[first]) / (n - 1.0)
        predicted[first] = others[:, None]
    return predicted + origin, int(n == 1)


class ScoreProducts(NamedTuple):
    """Sums of powers of scores minus estimates, by batch and arm; cross (B, k, k), others (B, k)."""

    third: FloatArray
    cross: FloatArray


class ScoreParts(NamedTuple):
    """Components of the scores of batches.

    Shapes: level (B, k), gain (B,), loss (B,), about (4, 4, B, k), whole (4, B). `level` is the prediction
    that all rounds share, `gain` the factor of residuals, and `loss` the factor of a round's own z. `about`
    contains sums of z^j / e^p over the arms' rounds, and `whole` sums of z^j over all rounds.
    """

    level: FloatArray
    gain: FloatArray
    loss: FloatArray
    about: FloatArray
    whole: FloatArray


def batch_score_means(cells: Cells, codes: IntArray, weights: FloatArray, *, augmented: bool) -> ScoreMeans:
    """Estimates of arm means, and the quantities that tests and tables require.

    Shapes: codes (k,), weights (B, k), which are 0 if an arm could not be chosen.

    Without an outcome model (`augmented` is False), scores are relative to the origin of rewards.
    """
    cells = cells if augmented else cells.about(0.0)
    parts = score_parts(cells, codes, augmented=augmented)
    h, n = weights.copy(), cells.rounds[:, None]
    if augmented and cells.rounds[0] == 1.0:
        h[0] = 0.0  # A first batch of one round has no earlier reward that could predict its own.
    total = (h * n).sum(axis=0)
    share = h / np.where(total > 0.0, total, np.nan)
    first = n * parts.level + parts.gain[:, None] * parts.about[1, 1]
    estimate = np.einsum("bk,bk->k", share, first)
    scores = score_products(parts, cells.rounds, estimate)
    covariance = np.einsum("bk,bl,bkl->kl", share, share, scores.cross)
    cubes = np.einsum("bk,bk->k", share**3, scores.third)
    found = described_means(cells, codes, h, (estimate, covariance, cubes))
    if not is_pair(share):
        return found
    away, cross = slope_shares(cells.rounds, share), scores.cross
    total = away @ ((first - n * estimate) @ np.array([[1.0], [-1.0]]))
    squares = away**2 @ (cross[:, 0, 0] + cross[:, 1, 1] - 2.0 * cross[:, 0, 1])
    return replace(found, movement=movement(total, squares[None]))


def is_pair(share: FloatArray) -> bool:
    """Whether there are two arms with a single weight; share (B, k)."""
    return share.shape[1] == 2 and np.array_equal(share[:, 0], share[:, 1])


def slope_shares(rounds: FloatArray, share: FloatArray) -> FloatArray:
    """Shares of a pair's scores in its slope over time; rounds (B,), share (B, 2), returns (B,)."""
    time = middles(rounds)
    return np.asarray(share[:, 0] * (time - (rounds * share[:, 0]) @ time))


def described_means(
    cells: Cells, codes: IntArray, h: FloatArray, found: tuple[FloatArray, FloatArray, FloatArray]
) -> ScoreMeans:
    """Estimates, and the other quantities that tests and tables require.

    Shapes: codes (k,), h (B, k), the weights. `found` contains the estimates minus the centre (k,), their
    covariance (k, k), and sums of cubed contributions to their errors (k,).
    """
    estimate, covariance, cubes = found
    constant = negligible(np.sqrt(np.maximum(np.diag(covariance), 0.0)), estimate, cells.centre)
    covariance[constant, :] = covariance[:, constant] = 0.0
    own, pulls = cells.moments[:, 0][:, :, codes], cells.pulls[:, codes]
    gains = [np.einsum("bk,bk->k", h**power, own[power]) for power in range(1, 5)]
    squares, fourths = (np.where(gain > 0.0, gain, 1.0) for gain in (gains[1], gains[3]))
    smallest = np.where(h > 0.0, cells.smallest[:, codes], np.inf).min(axis=0, initial=np.inf)
    return ScoreMeans(
        above=estimate,
        origin=cells.centre,
        covariance=covariance,
        pulls=pulls.sum(axis=0),
        successes=(cells.moments[0, 1][:, codes] + cells.centre * pulls).sum(axis=0),
        ess=gains[0] ** 2 / squares,
        # With one reward the quotient equals 1, up to rounding error.
        freedom=np.where(gains[1] ** 2 > (1.0 + 1e-9) * fourths, gains[1] ** 2 / fourths - 1.0, 0.0),
        min_propensity=np.where(np.isfinite(smallest), smallest, np.nan),
        used=np.einsum("bk,b->k", h > 0.0, cells.rounds),
        skewness=standardised(cubes, np.diag(covariance)),
        unevenness=unevenness(gains[1], gains[2]),
    )


def score_parts(cells: Cells, codes: IntArray, *, augmented: bool) -> ScoreParts:
    """Components of the scores of these arms; codes has shape (k,)."""
    size = len(cells.rounds)
    gain, loss, whole = np.ones(size), np.zeros(size), np.zeros((4, size))
    if not augmented:
        return ScoreParts(np.zeros((size, len(codes))), gain, loss, cells.moments[:4][..., codes], whole)
    level = earlier_means(cells.pulls, cells.moments[0, 1])
    about = shifted(cells.moments[:4], -level)
    n = float(cells.rounds[0])
    if n > 1.0:
        gain[0], loss[0] = n / (n - 1.0), 1.0 / (n - 1.0)
        whole[:, 0] = about[0, :, 0].sum(axis=1)
        whole[1, 0] = 0.0
    return ScoreParts(level[:, codes], gain, loss, about[..., codes], whole)


def score_products(parts: ScoreParts, rounds: FloatArray, estimate: FloatArray) -> ScoreProducts:
    """Sums of squares and cubes of d - c z + a w, where w = z / e in an arm's rounds; estimate (k,)."""
    d, n = parts.level - estimate, rounds[:, None]
    a, c = parts.gain[:, None], parts.loss[:, None]
    about, squares, cubes = parts.about, parts.whole[2][:, None], parts.whole[3][:, None]
    # If rounds' own z has no coefficient, its sums must not enter, because they may be NaN.
    own = c > 0.0
    mixed = np.where(own, a * c * about[1, 2], 0.0)
    spread = a * a * about[2, 2] - 2.0 * mixed + c * c * squares
    uneven = np.where(own, 3.0 * a * c * (c * about[1, 3] - a * about[2, 3]) - c**3 * cubes, 0.0)
    third = n * d**3 + 3.0 * d * (d * a * about[1, 1] + spread) + uneven + a**3 * about[3, 3]
    cross = (n * d)[:, :, None] * d[:, None, :] + (c * c * squares)[:, :, None]
    reach = a * about[1, 1]
    cross = cross + d[:, :, None] * reach[:, None, :] + reach[:, :, None] * d[:, None, :]
    cross = cross - mixed[:, :, None] - mixed[:, None, :]
    diagonal = np.arange(len(estimate))
    cross[:, diagonal, diagonal] = n * d * d + 2.0 * d * reach + spread
    return ScoreProducts(third, cross)


def arm_factors(codes: IntArray, n_arms: int, multiples: FloatArray | None = None) -> FloatArray:
    """Factors of the arms in contrasts; codes (P, 2), first arm first; returns (P, K).

    Multiples (P,) of the second arm are subtracted, by default 1.
    """
    found, place = np.zeros((len(codes), n_arms)), np.arange(len(codes))
    found[place, codes[:, 0]] += 1.0
    found[place, codes[:, 1]] -= 1.0 if multiples is None else multiples
    return found


def correlation_of(spread: FloatArray) -> FloatArray:
    """Correlation from a covariance, with 0 for entries with variance 0; both (P, P)."""
    size = np.sqrt(np.diag(spread))
    scale = np.where(size > 0.0, size, 1.0)
    return np.asarray(spread / np.outer(scale, scale), dtype=np.float64)


def shared_means(cells: Cells, codes: IntArray, weights: FloatArray, means: ScoreMeans) -> ScoreMeans:
    """The estimates, with errors for the case that shares in each batch replace propensities.

    Shapes: codes (k,), weights (B, k). Each estimate is then sum w (mean of the arm in the batch), where w is
    the batch's share of the rounds in all batches with a weight. Given the arms, its variance is sum w^2 s^2
    / N, with the batch's own s^2, or that of all batches if N is 1. A common s^2 for all batches would not
    reflect the errors, because small batches have much weight: skewed rewards would affect the estimate but
    not its standard error. Degrees of freedom are Satterthwaite's for equal variances.
    """
    about, used = cells.moments[0][..., codes], weights > 0.0
    # A batch without rounds of an arm has no weight in its mean.
    count = np.where(about[0] > 0.0, about[0], 1.0)
    total = about[1]
    inside = shifted(about, -total / count)
    freedom = np.maximum(about[0] - 1.0, 0.0)
    pooled = inside[2].sum(axis=0) / np.where(freedom.any(axis=0), freedom.sum(axis=0), np.nan)
    own = np.where(freedom > 0.0, inside[2] / np.maximum(freedom, 1.0), pooled)
    rounds = np.where(used, cells.rounds[:, None], 0.0)
    everything = rounds.sum(axis=0)
    share = rounds / np.where(everything > 0.0, everything, np.nan)
    part = share**2 / count
    squared = (part * own).sum(axis=0)
    spread = np.where(freedom > 0.0, part**2 / np.maximum(freedom, 1.0), 0.0).sum(axis=0)
    estimate = (share * total / count).sum(axis=0)
    squared = np.where(negligible(np.sqrt(squared), estimate, means.origin), 0.0, squared)
    cubes = ((share / count) ** 3 * inside[3]).sum(axis=0)
    skewness = standardised(cubes, squared)
    return replace(
        means,
        above=estimate,
        covariance=np.diag(squared),
        skewness=skewness,
        freedom=np.where(spread > 0.0, part.sum(axis=0) ** 2 / np.where(spread > 0.0, spread, 1.0), 0.0),
    )


def lagged_weights(inverse: FloatArray, rounds: FloatArray, possible: BoolArray) -> FloatArray:
    """Weights of batches, from the mean of sum(1 / e) over arms in the previous batch; the first is 1.

    Shapes: inverse (B, k), rounds (B,), possible (B,), the batches in which all of the arms could be chosen.
    """
    mean = np.where(possible, inverse.sum(axis=1), 0.0) / rounds
    last = np.maximum.accumulate(np.where(possible, np.arange(len(rounds)), -1))
    before = np.concatenate([[-1], last[:-1]])
    fixed = np.where(before >= 0, 1.0 / np.sqrt(np.where(before >= 0, mean[before], 1.0)), 1.0)
    return np.where(possible, fixed, 0.0)
