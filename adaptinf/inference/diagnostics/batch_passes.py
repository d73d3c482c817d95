"""Sums over the rounds of batches, as passes over rows would give them."""

from __future__ import annotations

import numpy as np

from adaptinf.inference.diagnostics.passes import ScoreSums
from adaptinf.inference.scores.batch_sums import ScoreParts, score_parts, score_products
from adaptinf.sums.cells import Cells
from adaptinf.typing import FloatArray, IntArray


def batch_score_sums(cells: Cells, codes: IntArray, weights: FloatArray, group: IntArray) -> ScoreSums:
    """Estimates of the arms' means and of their drift, with covariances from what each round contributes.

    Shapes: codes (k,), weights (B, k), group (B,).

    The sums of `passes.score_sums` with weights h and times x that all rounds of a batch share, x that of its
    middle, and the scores of `batch_sums`: what a round contributes to two errors is then a product of two
    scores, whose sums over a batch are known.
    """
    parts, h, n = score_parts(cells, codes, augmented=True), weights.copy(), cells.rounds[:, None]
    if cells.rounds[0] == 1.0:
        h[0] = 0.0  # nothing is known of its one reward
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
    """Covariance of sample means less weighted means of scores.

    Shapes: share (B, k), products (B, k, k), estimate, mean, pulls (k,); returns (k, k).

    A round contributes 1{A = k} (y - mean) / pulls - share (score - estimate). Of a round that chose arm l
    the score of k is, less its estimate, d_k - c z, and a z / e more where k = l.
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
    """Sums of squares of weighted scores less the mean of their group; mean (G, k), returns (G, k)."""
    found = np.zeros(mean.shape)
    for one, centre in enumerate(mean):
        squares = np.einsum("bkk->bk", score_products(parts, rounds, centre).cross)
        found[one] = (h**2 * squares)[group == one].sum(axis=0)
    return found


def largest_batch_wealth(pulls: FloatArray, shares: FloatArray, prior: float) -> float:
    """Largest log wealth of bets that are placed when a batch starts, at least 0.

    Shapes: pulls, shares (B, K), choices and the propensities that all rounds of a batch have.
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
