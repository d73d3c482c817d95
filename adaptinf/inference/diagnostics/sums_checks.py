"""Checks of sums by batch and arm, as far as sums allow."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from adaptinf.claims import diagnosis as claims
from adaptinf.inference.arms.data.arms_of_sums import batch_weights, cell_means
from adaptinf.inference.arms.question import Question
from adaptinf.inference.diagnostics.accumulators import ScoreSums
from adaptinf.inference.diagnostics.arm_checks import (
    LIMITS,
    Decay,
    Scored,
    availability_checks,
    decay_of,
    nothing_scored,
    overlap_checks,
    score_weights,
    size_checks,
    stretches,
    usable,
)
from adaptinf.inference.diagnostics.choice_checks import (
    CALIBRATION,
    EDGES,
    PRIOR,
    Bins,
    ChiSquare,
    bin_checks,
    chi_square,
    inverse_checks,
    inverse_products,
    merged_bins,
    no_ratio,
    ratio_checks,
)
from adaptinf.inference.diagnostics.diagnosis_results import Check
from adaptinf.inference.scores.batch_sums import ScoreParts, score_parts, score_products
from adaptinf.inference.validity.profile import profile_of
from adaptinf.sums import Sums
from adaptinf.sums.cells import Cells
from adaptinf.typing import FloatArray, IntArray


def batch_score_sums(cells: Cells, codes: IntArray, weights: FloatArray, group: IntArray) -> ScoreSums:
    """Estimates of the arms' means and of their drift, with covariances from each round's contributions.

    Shapes: codes (k,), weights (B, k), group (B,).

    The result is that of `score_sums` in `accumulators`, with the scores of `batch_sums`. Weights h and times
    x are common to all rounds of a batch, whose time is that of its middle. Covariances therefore require
    only the sums over a batch of products of two scores, which are known.
    """
    parts, h, n = score_parts(cells, codes, augmented=True), weights.copy(), cells.rounds[:, None]
    if cells.rounds[0] == 1.0:
        h[0] = 0.0  # A first batch of one round has no earlier reward that could predict its own.
    scores = n * parts.level + parts.gain[:, None] * parts.about[1, 1]
    total = (h * n).sum(axis=0)
    time = ((np.cumsum(cells.rounds) - 0.5 * cells.rounds) / cells.rounds.sum())[:, None]
    groups = int(group.max(initial=0)) + 1
    size = np.stack([(h * n)[group == one].sum(axis=0) for one in range(groups)])
    pulls = parts.about[0, 0].sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = (h * scores).sum(axis=0) / total
        away = time - (h * n * time).sum(axis=0) / total
        spread = (h * n * away**2).sum(axis=0)
        drift = (h * away * scores).sum(axis=0) / spread
        mean = cells.moments[0, 1][:, codes].sum(axis=0) / pulls
        group_mean = np.stack([(h * scores)[group == one].sum(axis=0) for one in range(groups)]) / size
        gain = np.nan_to_num(h * away / spread, posinf=0.0, neginf=0.0)
        own = np.nan_to_num(h / total, posinf=0.0)
    products = score_products(parts, cells.rounds, np.nan_to_num(estimate)).cross
    return ScoreSums(
        estimate + cells.centre,
        mean + cells.centre,
        pulls,
        mean - estimate,
        _change(parts, own, products, np.nan_to_num(estimate), mean, pulls),
        drift,
        np.einsum("bk,bl,bkl->kl", gain, gain, products),
        group_mean + cells.centre,
        _group_variance(parts, cells.rounds, h, group, np.nan_to_num(group_mean)) / size**2,
    )


def _change(
    parts: ScoreParts,
    share: FloatArray,
    products: FloatArray,
    estimate: FloatArray,
    mean: FloatArray,
    pulls: FloatArray,
) -> FloatArray:
    """Covariance of sample means minus weighted means of scores.

    Shapes: share (B, k), products (B, k, k), estimate, mean, pulls (k,); returns (k, k).

    A round contributes 1{A = k} (y - mean) / pulls - share (score - estimate). If the round chose arm l, the
    score of arm k minus its estimate is d_k - c z, plus a z / e if k = l.
    """
    about, far = parts.about, parts.level - mean
    d, c, a = parts.level - estimate, parts.loss[:, None], parts.gain[:, None]
    rewards = about[0, 1] + far * about[0, 0]
    mixed = d[:, :, None] * rewards[:, None, :] - (c * (about[0, 2] + far * about[0, 1]))[:, None, :]
    place = np.arange(len(mean))
    mixed[:, place, place] += a * (about[1, 2] + far * about[1, 1])
    crossed = np.einsum("bk,bkl->kl", share, mixed) / pulls
    squares = (about[0, 2] + 2.0 * far * about[0, 1] + far**2 * about[0, 0]).sum(axis=0)
    both = np.einsum("bk,bl,bkl->kl", share, share, products)
    return np.asarray(both - crossed - crossed.T + np.diag(squares / pulls**2), dtype=np.float64)


def _group_variance(
    parts: ScoreParts, rounds: FloatArray, h: FloatArray, group: IntArray, mean: FloatArray
) -> FloatArray:
    """Sums of squares of weighted scores about the means of their groups; mean (G, k), returns (G, k)."""
    found = np.zeros(mean.shape)
    for one, centre in enumerate(mean):
        squares = np.einsum("bkk->bk", score_products(parts, rounds, centre).cross)
        found[one] = (h**2 * squares)[group == one].sum(axis=0)
    return found


def largest_batch_wealth(pulls: FloatArray, shares: FloatArray, prior: float) -> float:
    """Largest log wealth from bets that are placed at the start of each batch; at least 0.

    Shapes: pulls, shares (B, K), the numbers of choices and the propensities that all rounds of a batch
    share.
    """
    seen, due = np.full(pulls.shape, prior), np.full(pulls.shape, prior)
    np.cumsum(pulls[:-1], axis=0, out=seen[1:])
    np.cumsum((shares * pulls.sum(axis=1, keepdims=True))[:-1], axis=0, out=due[1:])
    seen[1:] += prior
    due[1:] += prior
    odds = seen / due
    fair = (shares * odds).sum(axis=1, keepdims=True) / shares.sum(axis=1, keepdims=True)
    gains = (pulls * np.log(odds / fair)).sum(axis=1)
    return float(np.cumsum(gains).max(initial=0.0))


MOVEMENT = "shares within batches"
# A p-value of 0 is replaced by the smallest positive double, whose logarithm is finite.
_TINIEST = 5e-324
_SAME = 1e-9
"""Propensities are treated as equal if their difference is below this value."""


def choice_checks_of_sums(
    sums: Sums, shares: FloatArray | None, tables: dict[str, pd.DataFrame]
) -> list[Check]:
    """Checks of choices against propensities, and of counts; shares (K,) is a declared allocation."""
    cells = sums.cells
    reason = ""
    if sums.propensity_status == "estimated" or sums.shares:
        reason = claims.CIRCULAR()
    elif cells.knows_every and not np.any((cells.smallest < 1.0) & (cells.expected > 0.0)):
        reason = claims.CERTAIN()
    calibration = [Check(CALIBRATION, "all arms", claims=(reason,))] if reason else _calibration(sums, tables)
    return [*calibration, *_ratio(cells, shares, reason), *_movement(sums)]


def _movement(sums: Sums) -> list[Check]:
    """A row on whether shares, if they replace propensities, change within batches, if this is known."""
    if sums.share_movement is None:
        return []
    log_pvalue = math.log(max(sums.share_movement, _TINIEST))
    found = claims.SHARES_MOVE(), claims.GIVE_PROPENSITIES(), claims.ROWS_TOGETHER()
    return [Check(MOVEMENT, "all arms", "Pearson, by time", log_pvalue=log_pvalue, claims=found)]


def _calibration(sums: Sums, tables: dict[str, pd.DataFrame]) -> list[Check]:
    cells = sums.cells
    if not cells.knows_every:
        count, first, second = (part.sum(axis=0) for part in cells.moments[:3, 0])
        total = inverse_products(sums.n_rounds, count, first - count, second - 2.0 * first + count)
        return inverse_checks(sums, *total)
    mean = _of_batches(cells)
    bins = _bins(cells, mean)

    def joint(found: list[Bins], codes: IntArray) -> ChiSquare | str:
        return _joint(cells, mean[:, codes], found) if cells.constant.all() else claims.VARY_IN_BATCHES()

    return bin_checks(sums, bins, joint, tables)


def _of_batches(cells: Cells) -> FloatArray:
    """The propensities in each batch, averaged over its rounds if they vary; shape (B, K)."""
    # The computed mean of equal numbers may differ from them by rounding and fall into the next bin.
    return np.where(cells.constant, cells.smallest, cells.expected / cells.rounds[:, None])


def _bins(cells: Cells, mean: FloatArray) -> list[Bins | None]:
    """Choices of each arm compared with its propensities, by bins of the batch's mean propensity (B, K)."""
    place, found = np.searchsorted(EDGES, mean), []
    for k in range(mean.shape[1]):
        chance = cells.spread[:, k] > 0.0
        expected, squares = cells.expected[:, k], cells.expected[:, k] - cells.spread[:, k]
        columns = np.stack([cells.rounds, expected, cells.pulls[:, k], squares], axis=1)
        sums = np.zeros((len(EDGES) + 1, 4))
        np.add.at(sums, place[chance, k], columns[chance])
        found.append(merged_bins(sums))
    return found


def _joint(cells: Cells, mean: FloatArray, bins: list[Bins]) -> ChiSquare:
    """Joint test for all bins of several arms; mean (B, k), the propensities that a batch's rounds share."""
    starts = np.concatenate([[0], np.cumsum([part.rounds.size for part in bins])])
    share = np.zeros((len(mean), starts[-1]))
    for k, (part, start) in enumerate(zip(bins, starts[:-1], strict=True)):
        chance = (mean[:, k] > 0.0) & (mean[:, k] < 1.0)
        place = start + part.merged[np.searchsorted(EDGES, mean[:, k])]
        share[np.flatnonzero(chance), place[chance]] = mean[chance, k]
    covariance = -(share * cells.rounds[:, None]).T @ share
    for part, start in zip(bins, starts[:-1], strict=True):
        own = slice(start, start + part.rounds.size)
        covariance[own, own] = np.diag(part.variance)
    return chi_square(np.concatenate([part.observed - part.expected for part in bins]), covariance)


def _ratio(cells: Cells, shares: FloatArray | None, reason: str) -> list[Check]:
    if shares is not None:
        reason = ""
    elif not reason and not cells.knows_every:
        reason = claims.NEEDS_EVERY()
    elif not reason and not cells.constant.all():
        reason = claims.VARY_IN_BATCHES()
    if not reason and cells.pulls.shape[1] == 1:
        reason = claims.ONE_ARM()
    if reason:
        return no_ratio(reason)
    every = _of_batches(cells)
    if shares is not None:
        every = np.broadcast_to(shares, cells.pulls.shape)
    products = (every * cells.rounds[:, None]).T @ every
    wealth = largest_batch_wealth(cells.pulls, every, PRIOR)
    total = (every * cells.rounds[:, None]).sum(axis=0)
    return ratio_checks(cells.pulls.sum(axis=0), total, products, wealth, declared=shares is not None)


def scored_sums(sums: Sums) -> Scored:
    """Sums of scores for the rounds that were summed."""
    cells, profile = sums.cells, profile_of(sums)
    total = cells.moments[0].sum(axis=1)
    pulls = total[0]
    inside = total[2] - total[1] ** 2 / np.maximum(pulls, 1.0)
    codes, refused = usable(sums, profile.impossible, pulls, inside <= 1e-12 * total[2])
    if not codes.size:
        return nothing_scored(refused)
    choice = score_weights(sums, codes)
    group = stretches(cells.rounds)
    weights = batch_weights(Question(profile, codes), choice.weights or "uniform")
    counts = np.stack([cell_means(cells)[0][group == one].sum(axis=0) for one in range(int(group[-1]) + 1)])
    found = batch_score_sums(cells, codes, weights, group)
    settled = bool(cells.constant.all()) and bool((np.ptp(cells.smallest, axis=0) <= _SAME).all())
    return Scored(codes, refused, choice.weights, found, inside[codes], counts[:, codes], settled)


def fitted_batch_decay(cells: Cells) -> Decay:
    """The rate at which the smallest propensities decrease; all rounds of a batch have its propensity."""
    ends = np.cumsum(cells.rounds)
    starts = ends - cells.rounds
    smallest = np.where(cells.smallest > 0.0, cells.smallest, np.inf)

    def least(start: int, stop: int) -> FloatArray:
        return np.asarray(smallest[(starts < stop) & (ends > start)].min(axis=0, initial=np.inf))

    return decay_of(int(cells.rounds.sum()), least)


def arm_checks_of_sums(sums: Sums, tables: dict[str, pd.DataFrame]) -> list[Check]:
    """Rows on effective sample sizes and overlap."""
    cells = sums.cells
    pulls, gain, squares = (part.sum(axis=0) for part in cells.moments[:3, 0])
    size = gain**2 / np.where(squares > 0.0, squares, 1.0)
    if "arms" in tables:
        tables["arms"]["ess"] = size[[sums.arms.index(arm) for arm in tables["arms"]["arm"]]]
    counts = {limit: cells.rounds @ (cells.smallest < limit) for limit in LIMITS}
    exact = cells.knows_every and bool(cells.constant.all())
    scope = claims.BELOW if exact else claims.BATCHES_BELOW
    drawn = ((cells.smallest > 0.0) & (cells.smallest < 1.0)).any(axis=0)
    absent = np.where(drawn, cells.rounds @ (cells.smallest <= 0.0), 0.0)
    return [
        *size_checks(sums, size, pulls),
        *overlap_checks(sums, counts, scope, absent),
        *availability_checks(sums, absent, cells.smallest[-1]),
    ]
