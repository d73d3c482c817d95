"""Scores of arms as linear forms in rewards and additional columns, for ratios and covariates from sums.

Let v = (1, reward, further columns). The score for a round and an arm with propensity e is own'v + 1{arm
chosen} gain'v / e. Predictions, and therefore own and gain, are fixed when a batch starts. Sums of products
of two and three entries of v, divided by powers of e, are therefore sufficient for variances and skewness.
With covariates x, the prediction is

    mean of the arm over earlier batches + slope'(x - mean of x there).

Without covariates, the prediction is the arm's mean alone. The slope is the ridge estimate (S_xx + penalty
diag(s^2))^(-1) S_xy, where S contains the arm's sums of squares and products about its means, and s contains
the covariates' standard deviations over the earlier batches. Before an arm's first round, means and slopes
are those of all arms. In the first batch, nothing is known in advance, so the prediction is the mean of the
batch's other rounds over all arms, as without covariates.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Deng, Xu, Kohavi, Walker (2013), "Improving the sensitivity of online controlled experiments by
utilizing pre-experiment data" (CUPED).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from adaptinf.inference.scores.batch_sums import described_means, is_pair, slope_shares
from adaptinf.inference.scores.means import ScoreMeans, movement
from adaptinf.sums.cells import Cells
from adaptinf.sums.covariate_products import Products
from adaptinf.typing import FloatArray, IntArray

_SAME = 1e-9
"""A covariate is treated as constant if the ratio of its variance to its squared mean is below this value."""
# A variance below this share of the size of its terms is their rounding error.
_ROUNDING = 1e-15


class Scores(NamedTuple):
    """Scores of every arm with each entry of v as reward; own, gain (B, K, D, D), v on the last axis."""

    own: FloatArray
    gain: FloatArray


class Forms(NamedTuple):
    """Contributions of rounds to the errors of P estimates, each of which is based on S arms.

    Shapes: own (B, P, D), gain (B, P, S, D), arms (P, S).
    """

    own: FloatArray
    gain: FloatArray
    arms: IntArray


def earlier_lines(sums: FloatArray, covariates: Sequence[int], penalty: float) -> FloatArray:
    """Predictions of each entry of v from earlier batches; for the first batch, the batch's own means.

    Shapes: sums (D, D, B, K), of products of two entries of v; returns (B, K, D, D), with v on the last axis.
    """
    size, _, n_batches, n_arms = sums.shape
    before = np.zeros_like(sums)
    np.cumsum(sums[:, :, :-1], axis=2, out=before[:, :, 1:])
    pooled = before.sum(axis=3, keepdims=True)
    first = sums[:, :, :1].sum(axis=3, keepdims=True)
    pooled[:, :, :1] = first
    known = np.where(before[0, 0] > 0.0, before, pooled)
    mean = known[0] / known[0, 0]
    lines = np.zeros((n_batches, n_arms, size, size))
    lines[..., 0] = mean.transpose(1, 2, 0)
    if not len(covariates) or n_batches == 1:
        return lines
    x = list(covariates)
    about = known - known[0, 0] * mean[:, None] * mean[None, :]
    level = pooled[0] / pooled[0, 0]
    spread = np.maximum((pooled[x, x] / pooled[0, 0]) - level[x] ** 2, 0.0)
    varies = spread > _SAME * np.maximum(level[x] ** 2, np.finfo(float).tiny)
    usable = np.broadcast_to(varies, (len(x), n_batches, n_arms)).transpose(1, 2, 0)
    both = usable[..., :, None] & usable[..., None, :]
    gram = np.where(both, about[np.ix_(x, x)].transpose(2, 3, 0, 1), 0.0)
    extra = np.where(varies, penalty * spread, 1.0)
    place = np.arange(len(x))
    gram[..., place, place] += np.broadcast_to(extra, (len(x), n_batches, n_arms)).transpose(1, 2, 0)
    target = np.where(usable[..., None], about[x].transpose(2, 3, 0, 1), 0.0)
    slope = np.linalg.solve(gram, target).swapaxes(-1, -2)
    slope[0] = 0.0
    lines[..., x] = slope
    lines[..., 0] -= np.einsum("bkdx,xbk->bkd", slope, mean[x])
    return lines


def batch_lines(
    action: IntArray,
    reward: FloatArray,
    batch: IntArray,
    x: FloatArray,
    codes: IntArray,
    n_arms: int,
    penalty: float,
) -> FloatArray:
    """Predictions for the rows of a log from earlier batches.

    Shapes: action, reward, batch (T,), x (T, X), codes (k,); returns (T, k).
    """
    size, origin = int(batch.max(initial=-1)) + 1, (reward[:1].sum(), x[:1].sum(axis=0))
    v = np.column_stack([np.ones(len(reward)), reward - origin[0], x - origin[1]])
    place, entries = batch * n_arms + action, range(v.shape[1])
    sums = np.array(
        [[np.bincount(place, v[:, a] * v[:, b], minlength=size * n_arms) for b in entries] for a in entries]
    )
    lines = earlier_lines(sums.reshape(*sums.shape[:2], size, n_arms), entries[2:], penalty)
    forms = lines[:, codes, 1][batch]
    return np.asarray(origin[0] + np.einsum("tkd,td->tk", forms, v), dtype=np.float64)


def scores_of(
    products: Products, rounds: FloatArray, covariates: Sequence[int], penalty: float, *, augmented: bool
) -> Scores:
    """Scores with predictions from earlier batches, or by inverse weighting alone; rounds (B,)."""
    whole = np.broadcast_to(np.eye(products.size), (*products.table.shape[-2:], products.size, products.size))
    if not augmented:
        return Scores(np.zeros_like(whole), whole)
    own = earlier_lines(products.table[0, :, :, 0], covariates, penalty)
    gain = whole - own
    n = float(rounds[0])
    if n > 1.0:
        own[0] -= gain[0] / (n - 1.0)
        gain[0] *= n / (n - 1.0)
    return Scores(own, gain)


def totals(products: Products, forms: Forms) -> FloatArray:
    """Sums of scores by batch, shape (B, P)."""
    whole, own = _by_batch(products.table[0, :, 0, 0].sum(axis=-1)), forms.own
    reach = products.table[1, :, 0, 0][:, :, forms.arms]
    return np.asarray(
        np.einsum("bpx,bx->bp", own, whole) + np.einsum("bpsx,xbps->bp", forms.gain, reach), dtype=np.float64
    )


def covariance_of(products: Products, forms: Forms) -> FloatArray:
    """Sums over all batches of products of contributions to the errors of two estimates, shape (P, P)."""
    if forms.arms.shape[1] > 1 and np.all(forms.arms == forms.arms[0]):
        return shared_covariance(products, forms)
    whole = _by_batch(products.table[0, :, :, 0].sum(axis=-1))
    once, twice = (
        products.table[power, :, :, 0][..., forms.arms].transpose(2, 3, 4, 0, 1) for power in (1, 2)
    )
    own, gain = forms.own, forms.gain
    reach = np.einsum("bpsxy,bpsx->bpy", once, gain)
    cross = np.einsum("bpx,bxy,bqy->pq", own, whole, own, optimize=True)
    mixed = np.einsum("bpy,bqy->pq", reach, own)
    found = cross + mixed + mixed.T
    for side in range(forms.arms.shape[1]):
        inside = np.einsum("bpxy,bpx->bpy", twice[:, :, side], gain[:, :, side])
        for other in range(forms.arms.shape[1]):
            same = forms.arms[:, side, None] == forms.arms[None, :, other]
            found += np.where(same, np.einsum("bpy,bqy->pq", inside, gain[:, :, other]), 0.0)
    found[np.diag_indices(len(found))] = _squares(whole, once, twice, forms)
    return np.asarray(found, dtype=np.float64)


def _squares(whole: FloatArray, once: FloatArray, twice: FloatArray, forms: Forms) -> FloatArray:
    """Sums of squares, or 0 if only rounding error is left; whole (B, D, D), once, twice (B, P, S, D, D)."""

    def total(whole: FloatArray, once: FloatArray, twice: FloatArray, forms: Forms) -> FloatArray:
        own, gain = forms.own, forms.gain
        found = np.einsum("bpx,bxy,bpy->bp", own, whole, own, optimize=True)
        found = found + 2.0 * np.einsum("bpsx,bpsxy,bpy->bp", gain, once, own, optimize=True)
        return np.asarray(found + np.einsum("bpsx,bpsxy,bpsy->bp", gain, twice, gain, optimize=True))

    found = total(whole, once, twice, forms)
    sizes = Forms(np.abs(forms.own), np.abs(forms.gain), forms.arms)
    size = total(np.abs(whole), np.abs(once), np.abs(twice), sizes)
    return np.asarray(np.where(np.abs(found) <= _ROUNDING * size, 0.0, found).sum(axis=0))


def shared_covariance(products: Products, forms: Forms) -> FloatArray:
    """Covariance, shape (P, P), if all estimates are based on the same arms, without a loop over pairs."""
    arms = forms.arms[0]
    whole = _by_batch(products.table[0, :, :, 0].sum(axis=-1))
    once, twice = (products.table[power, :, :, 0][..., arms].transpose(2, 3, 0, 1) for power in (1, 2))
    own, gain = forms.own, forms.gain
    cross = np.einsum("bpx,bxy,bqy->pq", own, whole, own, optimize=True)
    reach = np.einsum("bpsx,bsxy->bpy", gain, once, optimize=True)
    mixed = np.einsum("bpy,bqy->pq", reach, own, optimize=True)
    inside = np.einsum("bpsx,bsxy->pbsy", gain, twice, optimize=True).reshape(len(forms.arms), -1)
    squares = inside @ gain.transpose(1, 0, 2, 3).reshape(len(forms.arms), -1).T
    return np.asarray(cross + mixed + mixed.T + squares, dtype=np.float64)


def cubes_of(products: Products, forms: Forms) -> FloatArray:
    """Sums of cubed contributions to the errors of estimates, shape (P,).

    The sums are NaN if sums of products of three columns are unknown.
    """
    own, gain, arms = forms.own, forms.gain, forms.arms
    whole = np.einsum("bpx,bpy,bpz,xyzb->p", own, own, own, products.table[0].sum(axis=-1), optimize=True)
    parts = (
        (3.0, 1, (True, False, False)),
        (3.0, 2, (True, True, False)),
        (1.0, 3, (True, True, True)),
    )
    for place in range(arms.shape[1]):
        for times, power, gained in parts:
            factors = [gain[:, :, place] if one else own for one in gained]
            table = products.table[power][..., arms[:, place]]
            whole = whole + times * np.einsum("bpx,bpy,bpz,xyzbp->p", *factors, table, optimize=True)
    return np.asarray(whole, dtype=np.float64)


def share_of(weights: FloatArray, rounds: FloatArray, *, augmented: bool) -> tuple[FloatArray, FloatArray]:
    """Weights of batches, and the share of each round in the sum of weights; weights (B, k), rounds (B,)."""
    h = weights.copy()
    if augmented and rounds[0] == 1.0:
        h[0] = 0.0  # A first batch of one round has no earlier reward that could predict its own.
    total = rounds @ h
    return h, h / np.where(total > 0.0, total, np.nan)


def forms_of(
    products: Products, scores: Scores, codes: IntArray, share: FloatArray, outcome: FloatArray
) -> tuple[FloatArray, Forms]:
    """Means of an outcome for these arms, shape (k,), and the rounds' contributions to their errors.

    Shapes: codes (k,), share (B, k), outcome (D,) or (k, D), the coefficients of v.
    """
    each = np.broadcast_to(outcome, (len(codes), products.size))
    own, gain = (np.einsum("bkdx,kd->bkx", part[:, codes], each) for part in scores)
    forms = Forms(own * share[..., None], (gain * share[..., None])[:, :, None], codes[:, None])
    estimate = totals(products, forms).sum(axis=0)
    forms.own[..., 0] -= share * estimate
    return estimate, forms


def contrast_of(forms: Forms, multiple: float = 1.0) -> Forms:
    """The first of two estimates minus a multiple of the second."""
    gain = np.stack([forms.gain[:, 0, 0], -multiple * forms.gain[:, 1, 0]], axis=1)
    return Forms(forms.own[:, :1] - multiple * forms.own[:, 1:], gain[:, None], forms.arms.T)


def stacked_forms(forms: Sequence[Forms]) -> Forms:
    """The forms of several estimates as one."""
    own, gain = (np.concatenate([getattr(one, name) for one in forms], axis=1) for name in ("own", "gain"))
    return Forms(own, gain, np.concatenate([one.arms for one in forms]))


def line_score_means(
    cells: Cells, codes: IntArray, weights: FloatArray, covariates: Sequence[str], penalty: float
) -> ScoreMeans:
    """Estimates of arm means with covariates in the predictions; codes (k,), weights (B, k)."""
    assert cells.products is not None
    products = cells.products.only(covariates)
    scores = scores_of(products, cells.rounds, range(2, products.size), penalty, augmented=True)
    h, share = share_of(weights, cells.rounds, augmented=True)
    estimate, forms = forms_of(products, scores, codes, share, np.eye(products.size)[1])
    found = covariance_of(products, forms), cubes_of(products, forms)
    means = described_means(cells.about(products.centres[1]), codes, h, (estimate, *found))
    if not is_pair(share):
        return means
    away = (slope_shares(cells.rounds, share) / np.where(share[:, 0] > 0.0, share[:, 0], 1.0))[:, None, None]
    slope = contrast_of(Forms(forms.own * away, forms.gain * away[..., None], forms.arms))
    squares = covariance_of(products, slope)[0]
    return replace(means, movement=movement(totals(products, slope).sum(axis=0), squares))


def _by_batch(values: FloatArray) -> FloatArray:
    """Move batches to the first axis; values (..., B)."""
    return np.moveaxis(values, -1, 0)
