"""Covariance by cluster with the bias-reduced linearisation CR2, and Satterthwaite's degrees of freedom.

References
----------
Bell, McCaffrey (2002), "Bias reduction in standard errors for linear regression with multi-stage samples".
Imbens, Kolesár (2016), "Robust standard errors in small samples: some practical advice". Pustejovsky, Tipton
(2018), "Small-sample methods for cluster-robust variance estimation and hypothesis testing in fixed effects
models".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.typing import BoolArray, FloatArray, IntArray

_ALONE = 1e-8
"""Distance of a cluster's leverage from 1 that counts as rounding."""
_KEPT = 1_000_000
"""Numbers of all clusters' matrices that a result keeps for other combinations of coefficients."""
_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ClusterFreedom:
    """Degrees of freedom of combinations of coefficients whose variance is summed over G clusters.

    Shapes: adjusted, carried (G, p, p), root (p, p), own (p,), the coefficients' own.

    With orthonormal rows q of a cluster, S = q'q and B = (I - S)^(-1/2), the variance of w'q'y is estimated
    by the sum of (w'B q'e)^2. For independent errors of one variance that is a quadratic form with the matrix
    W = diag(w'B S B w) - V V', V = S B w by cluster, and has about (tr W)^2 / tr W^2 degrees of freedom.
    Matrices of more than a million numbers are not kept: a combination has then the fewest of its terms.
    """

    root: FloatArray
    own: FloatArray
    adjusted: FloatArray | None = None
    carried: FloatArray | None = None

    def of(self, row: FloatArray) -> float:
        """Of one combination; row (p,)."""
        if self.adjusted is None or self.carried is None or np.count_nonzero(row) == 1:
            return float(np.min(self.own[row != 0.0], initial=np.inf))
        return float(_satterthwaite(self.adjusted, self.carried, row[None, :] @ self.root)[0])


def bias_reduced(
    q: FloatArray, residual: FloatArray, clusters: IntArray, root: FloatArray
) -> tuple[FloatArray, ClusterFreedom]:
    """Covariance of q'errors by CR2, and the degrees of freedom of coefficients root q'y.

    Shapes: q (n, p) with orthonormal columns, residual, clusters (n,), 0 to G - 1, root (p, p); returns (p,
    p). NaN for what a coefficient that one cluster alone decides would add: such have no freedom.
    """
    n_clusters, size = int(clusters.max()) + 1, q.shape[1]
    totals = np.column_stack([np.bincount(clusters, weights=column * residual) for column in q.T])
    middle, own = np.zeros((size, size)), np.zeros((4, size))
    outer = np.zeros((size, size, size))
    alone = np.zeros(size, dtype=bool)
    kept: list[tuple[FloatArray, FloatArray]] = []
    step = max(1, _AT_ONCE // size**2)
    order = np.argsort(clusters, kind="stable")
    first = np.searchsorted(clusters[order], np.arange(0, n_clusters + step, step))
    for start, low, high in zip(range(0, n_clusters, step), first, first[1:], strict=False):
        rows = order[low:high]
        count = min(step, n_clusters - start)
        adjusted, carried, inner, lost = _matrices(q[rows], clusters[rows] - start, count, root)
        alone |= lost
        scores = np.einsum("gij,gj->gi", inner, totals[start : start + count])
        middle += scores.T @ scores
        own += _moments(adjusted, carried, root, outer)
        if n_clusters * size**2 <= _KEPT:
            kept.append((adjusted, carried))
    freedom = _ratio(own, outer)
    freedom[alone] = np.nan
    arrays = kept[0] if len(kept) == 1 else (None, None)
    return middle, ClusterFreedom(root, freedom, *arrays)


def _matrices(
    q: FloatArray, clusters: IntArray, count: int, root: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """B S B, S B and B of each cluster, and which coefficients one of them decides alone.

    Shapes: q (n, p), clusters (n,), root (p, p); returns (count, p, p) each, (p,).
    """
    size = q.shape[1]
    gram = np.empty((count, size, size))
    for i in range(size):
        for j in range(i + 1):
            gram[:, i, j] = np.bincount(clusters, weights=q[:, i] * q[:, j], minlength=count)
            gram[:, j, i] = gram[:, i, j]
    share, basis = np.linalg.eigh(gram)
    left = 1.0 - share
    decided = left <= _ALONE
    scale = np.where(decided, 0.0, 1.0 / np.sqrt(np.where(decided, 1.0, left)))
    inner = np.einsum("gik,gk,gjk->gij", basis, scale, basis)
    carried = np.einsum("gik,gk,gjk->gij", basis, share * scale, basis)
    adjusted = np.einsum("gik,gk,gjk->gij", basis, share * scale**2, basis)
    alone = np.zeros(size, dtype=bool)
    if decided.any():
        along = np.abs(root @ basis[decided.any(axis=1)]) * decided[decided.any(axis=1)][:, None, :]
        alone = along.max(axis=(0, 2)) > _ALONE * np.linalg.norm(root, axis=1)
    return adjusted, carried, inner, alone


def _satterthwaite(adjusted: FloatArray, carried: FloatArray, rows: FloatArray) -> FloatArray:
    """Degrees of freedom of combinations; adjusted, carried (G, p, p), rows (k, p); returns (k,)."""
    outer = np.zeros((len(rows), rows.shape[1], rows.shape[1]))
    return _ratio(_moments(adjusted, carried, rows, outer), outer)


def _moments(adjusted: FloatArray, carried: FloatArray, rows: FloatArray, outer: FloatArray) -> FloatArray:
    """Sums over clusters of a, |V|^2, a^2 and a |V|^2, where a = w'B S B w; adds V V' to `outer`.

    Shapes: adjusted, carried (G, p, p), rows (k, p), outer (k, p, p); returns (4, k).
    """
    spread = np.einsum("ki,gij,kj->gk", rows, adjusted, rows, optimize=True)
    lever = np.einsum("gij,kj->gki", carried, rows)
    square = np.einsum("gki,gki->gk", lever, lever)
    outer += np.einsum("gki,gkj->kij", lever, lever, optimize=True)
    parts = (spread, square, spread**2, spread * square)
    return np.array([part.sum(axis=0) for part in parts])


def _ratio(sums: FloatArray, outer: FloatArray) -> FloatArray:
    """(tr W)^2 / tr W^2; sums (4, k), outer (k, p, p); returns (k,)."""
    total = sums[2] - 2.0 * sums[3] + np.einsum("kij,kij->k", outer, outer)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((sums[0] - sums[1]) ** 2 / total, dtype=np.float64)
