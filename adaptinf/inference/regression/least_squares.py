"""Least squares by an orthogonal factorisation of centred and scaled columns, with its covariances.

References
----------
White (1980), "A heteroskedasticity-consistent covariance matrix estimator and a direct test for
heteroskedasticity". MacKinnon, White (1985), "Some heteroskedasticity-consistent covariance matrix estimators
with improved finite sample properties". Liang, Zeger (1986), "Longitudinal data analysis using generalized
linear models" (sandwich by cluster). Bell, McCaffrey (2002), "Bias reduction in standard errors for linear
regression with multi-stage samples" (CR2, and its degrees of freedom). Imbens, Kolesár (2016), "Robust
standard errors in small samples: some practical advice". Pustejovsky, Tipton (2018), "Small-sample methods
for cluster-robust variance estimation and hypothesis testing in fixed effects models". Yamamoto,
Nakatsukasa, Yanagisawa, Fukaya (2015), "Roundoff error analysis of the CholeskyQR2 algorithm".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from adaptinf.errors import ParameterError
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray

COVARIANCES = ("classical", "HC0", "HC1", "HC2", "HC3", "CR2", "cluster")
BY_CLUSTER = ("CR2", "cluster")
"""Kinds of covariance that are sums over clusters."""
# Columns are scaled to length 1, so a smaller pivot is the rounding error of a linearly dependent column.
_DEPENDENT = 1e-10
# Centring leaves only rounding error in a column if less than this share of it remains.
_CONSTANT = 1e-12
# Cholesky's method squares the condition number, but a second round repairs condition numbers well beyond
# 1e6.
_WELL_CONDITIONED = 1e-6
# In a combination with smaller coefficients, a column is not named in the error: they are rounding error.
_SHARE = 1e-6
# The constant is in the span of the columns if its projection has the length of the constant itself, up to
# this share.
_SPANNED = 1e-10
_ROWS = 1 << 15
FULL_LEVERAGE = 1e-8
"""Largest distance of a leverage from 1 that is attributed to rounding error."""
_PERFECT = 1e-14
"""Largest size of residuals, relative to rewards, that is attributed to rounding error."""


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """A least-squares fit with n rows and p columns.

    Shapes: coefficient (p,), residual (n,), q (n, p), root (p, p), centred_coefficient (p,), centred_root (p,
    p), back (p, p).
    """

    coefficient: FloatArray
    residual: FloatArray
    q: FloatArray
    root: FloatArray
    centred_coefficient: FloatArray
    centred_root: FloatArray
    back: FloatArray
    total: float
    length: float
    intercept: bool

    @property
    def nobs(self) -> int:
        """Number of rows, n."""
        return len(self.residual)

    @property
    def df_resid(self) -> int:
        """Residual degrees of freedom, n - p."""
        return len(self.residual) - len(self.coefficient)

    @property
    def rss(self) -> float:
        """Residual sum of squares."""
        with np.errstate(under="ignore"):
            return float(self.residual @ self.residual)

    @property
    def perfect(self) -> bool:
        """Whether residuals are 0, up to rounding error."""
        return bool(self.rss <= (_PERFECT * self.length) ** 2)

    @property
    def rsquared(self) -> float:
        """Share of the variation `total` that the fit explains; NaN if there is none."""
        return 1.0 - self.rss / self.total if self.total > 0.0 else float("nan")

    @property
    def decided(self) -> int:
        """Number of rows with leverage 1, up to rounding error, through which the fit passes exactly."""
        return int(np.sum(1.0 - self.leverage() <= FULL_LEVERAGE))

    def leverage(self) -> FloatArray:
        """Diagonal of the hat matrix, shape (n,)."""
        return np.asarray(np.einsum("tj,tj->t", self.q, self.q), dtype=np.float64)

    def middle(self, kind: str, clusters: IntArray | None = None) -> FloatArray:
        """Covariance of q' @ errors, shape (p, p); NaN if it is undefined.

        Shapes: clusters (n,).

        Let e be the residuals and h the leverages. ``"classical"`` is e'e / (n - p) times the identity.
        ``"HC0"`` to ``"HC3"`` are q' diag(w) q with w = e^2, e^2 n / (n - p), e^2 / (1 - h) and e^2 / (1 -
        h)^2. ``"cluster"`` is the sum over clusters of the products of the totals of q e, times G/(G - 1) (n
        - 1)/(n - p). ``"CR2"`` uses totals that are adjusted for the cluster's leverage (`bias_reduced`).
        """
        n, p = self.q.shape
        if n <= p:
            return np.full((p, p), np.nan)
        if kind == "classical":
            return np.diag(np.full(p, self.rss / (n - p)))
        if kind in BY_CLUSTER:
            if clusters is None:
                raise ParameterError("least squares", [f"clusters are required for covariance={kind!r}"])
            if kind == "CR2":
                return bias_reduced(self.q, self.residual, clusters, self.root)[0]
            return _cluster_middle(self.q, self.residual, clusters)
        # statsmodels loses digits if columns are far from 0: at an offset of 1e7 slopes' HC0 is off by 5e-9,
        # HC3 by 6e-4 (here 1e-15). Its HC3 for 1e6 x 10 takes .21 s (here .037), or 1e12 numbers
        # (sandwich_covariance.cov_hc3).
        scaled = self.residual
        if kind in ("HC2", "HC3"):
            left = 1.0 - self.leverage()
            left = np.where(left > FULL_LEVERAGE, left, np.nan)
            scaled = scaled / (np.sqrt(left) if kind == "HC2" else left)
        found = np.zeros((p, p))
        for rows in _parts(n):
            part = self.q[rows] * scaled[rows, None]
            found += part.T @ part
        return found * (n / (n - p)) if kind == "HC1" else found


def least_squares(x: FloatArray, y: FloatArray, names: Sequence[str]) -> LeastSquares:
    """Regress y on the columns of x.

    Shapes: x (n, p), y (n,).

    If a column is constant, the other columns and the rewards are centred first, so that offsets of the
    columns do not reduce precision. The factorisation uses two rounds of Cholesky's method if the columns are
    well conditioned, and otherwise Householder reflections. Residuals are projected twice.
    """
    columns = np.array(x, dtype=np.float64, order="F")
    base, center = _centre(columns)
    back = np.eye(x.shape[1])
    shift = 0.0
    if base is not None:
        back[base] -= center / columns[0, base]
        shift = float(y[0] + (y - y[0]).mean())
    q, centred_root = _orthonormal(columns, center, names)
    level = y - shift
    first = q.T @ level
    residual = level - q @ first
    second = q.T @ residual
    residual -= q @ second
    centred = centred_root @ (first + second)
    if base is not None:
        centred[base] += shift / x[0, base]
    total = q.sum(axis=0)
    n = len(y)
    intercept = base is not None or abs(float(total @ total) - n) <= _SPANNED * n
    about = level - level.mean() if intercept else level
    return LeastSquares(
        coefficient=back @ centred,
        residual=residual,
        q=q,
        root=back @ centred_root,
        centred_coefficient=centred,
        centred_root=centred_root,
        back=back,
        total=float(about @ about),
        length=float(np.linalg.norm(y)),
        intercept=bool(intercept),
    )


def _centre(columns: FloatArray) -> tuple[int | None, FloatArray]:
    """Subtract the means from all columns, in place, if one of them is constant and nonzero.

    Returns the position of that column, or None, and the amounts subtracted.
    """
    center = np.zeros(columns.shape[1])
    if len(columns) == 0:
        return None, center
    constant = np.array([bool((column == column[0]).all()) for column in columns.T]) & (columns[0] != 0.0)
    if not constant.any():
        return None, center
    base = int(np.argmax(constant))
    for j, column in enumerate(columns.T):
        if j != base:
            center[j] = column[0] + (column - column[0]).mean()
            column -= center[j]
    return base, center


def _orthonormal(
    columns: FloatArray, center: FloatArray, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Orthonormal columns, which overwrite the given columns if possible, and the matrix for the mapping."""
    n, p = columns.shape
    if p == 0:
        raise ParameterError("least squares", ["there are no columns for the regression"])
    with np.errstate(over="ignore"):
        gram = columns.T @ columns
    if not np.all(np.isfinite(gram)):
        raise ParameterError("least squares", ["the columns are too large to be squared: rescale them"])
    length = np.sqrt(np.diag(gram))
    # The remainder of a centred column may be rounding error of its mean.
    empty = length <= _CONSTANT * np.sqrt(length**2 + n * center**2)
    size = np.where(empty, 1.0, length)
    unit = gram / np.outer(size, size)
    values = linalg.eigvalsh(unit)
    if n > p and not empty.any() and values[0] > _WELL_CONDITIONED * values[-1]:
        first = linalg.solve_triangular(linalg.cholesky(unit), np.eye(p)) / size[:, None]
        _multiply(columns, first)
        second = linalg.solve_triangular(linalg.cholesky(columns.T @ columns), np.eye(p))
        _multiply(columns, second)
        return columns, np.asarray(first @ second, dtype=np.float64)
    scaled = np.where(empty, 0.0, columns / size)
    problems = dependence_problems(scaled, names)
    refuse("least squares", problems)
    orthonormal, triangle = linalg.qr(scaled, mode="economic")
    root = linalg.solve_triangular(triangle, np.eye(p)) / size[:, None]
    return np.asarray(orthonormal, dtype=np.float64), np.asarray(root, dtype=np.float64)


def _parts(n: int) -> list[slice]:
    """Blocks of rows that are small enough for computations to need little memory."""
    return [slice(start, start + _ROWS) for start in range(0, n, _ROWS)]


def _multiply(columns: FloatArray, matrix: FloatArray) -> None:
    """Multiply the rows by a matrix, in place; columns (n, p), matrix (p, p)."""
    for rows in _parts(len(columns)):
        columns[rows] = columns[rows] @ matrix


def dependence_problems(scaled: FloatArray, names: Sequence[str]) -> list[str]:
    """Messages on columns that are linear combinations of others, with these; scaled (n, p)."""
    n, p = scaled.shape
    if n < p:
        return [f"{n} rounds cannot identify the coefficients of {p} columns: {', '.join(names)}"]
    r = linalg.qr(scaled, mode="r", check_finite=False)[0][:p]
    _, triangle, order = linalg.qr(r, mode="economic", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(triangle)) > _DEPENDENT))
    if rank == p:
        return []
    shares = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    problems = []
    for j in np.argsort(order[rank:]):
        name = names[order[rank + j]]
        parts = [names[i] for i, share in zip(order[:rank], shares[:, j], strict=True) if abs(share) > _SHARE]
        if not parts:
            problems.append(
                f"column {name!r} does not vary: the rounds used contain no information about its coefficient"
            )
            continue
        listed = ", ".join(repr(names[i]) for i in sorted(names.index(part) for part in parts))
        which = "that" if len(parts) == 1 else "those"
        problems.append(
            f"column {name!r} cannot be distinguished from {listed}: it is a linear combination of {which}"
        )
    return problems


def _cluster_middle(q: FloatArray, residual: FloatArray, clusters: IntArray) -> FloatArray:
    n, p = q.shape
    count = int(clusters.max()) + 1
    if count < 2:
        return np.full((p, p), np.nan)
    # statsmodels' cov_cluster gives the same result, but in .051 s instead of .022 s for 1e6 x 10.
    totals = np.column_stack([np.bincount(clusters, weights=column * residual) for column in q.T])
    factor = count / (count - 1) * (n - 1) / (n - p)
    return np.asarray(totals.T @ totals * factor, dtype=np.float64)


_ALONE = 1e-8
"""Largest distance of a cluster's leverage from 1 that is attributed to rounding error."""
_KEPT = 1_000_000
"""Largest number of entries of the clusters' matrices that a result stores for further combinations."""
# This many numbers in the matrices of some clusters take 32 MB as doubles.
_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ClusterFreedom:
    """Degrees of freedom for combinations of coefficients whose variance is summed over G clusters.

    Shapes: adjusted, carried (G, p, p), root (p, p), own (p,), the degrees of freedom of the coefficients.

    Let q be the orthonormal rows of a cluster, S = q'q and B = (I - S)^(-1/2). The variance of w'q'y is
    estimated by the sum over clusters of (w'B q'e)^2. For independent errors with a common variance, this is
    a quadratic form with the matrix W = diag(w'B S B w) - V V', where V contains S B w by cluster, and it has
    about (tr W)^2 / tr W^2 degrees of freedom. Matrices with more than a million entries are not stored; a
    combination then has the smallest degrees of freedom of its terms.
    """

    root: FloatArray
    own: FloatArray
    adjusted: FloatArray | None = None
    carried: FloatArray | None = None

    def of(self, row: FloatArray) -> float:
        """Degrees of freedom of a combination; row has shape (p,)."""
        if self.adjusted is None or self.carried is None or np.count_nonzero(row) == 1:
            return float(np.min(self.own[row != 0.0], initial=np.inf))
        return float(_satterthwaite(self.adjusted, self.carried, row[None, :] @ self.root)[0])


def bias_reduced(
    q: FloatArray, residual: FloatArray, clusters: IntArray, root: FloatArray
) -> tuple[FloatArray, ClusterFreedom]:
    """Covariance of q'errors by CR2, and the degrees of freedom of the coefficients root q'y.

    Shapes: q (n, p), with orthonormal columns; residual (n,); clusters (n,), with codes 0 to G - 1; root (p,
    p); returns (p, p). Entries are NaN for a coefficient that a single cluster determines, which has no
    degrees of freedom.
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
    """B S B, S B and B for each cluster, and which coefficients a single cluster determines.

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
    """Sums over clusters of a, b, a^2 and a b, where a = w'B S B w and b = V'V; adds V V' to `outer`.

    Shapes: adjusted, carried (G, p, p), rows (k, p), outer (k, p, p); returns (4, k).
    """
    spread = np.einsum("ki,gij,kj->gk", rows, adjusted, rows, optimize=True)
    lever = np.einsum("gij,kj->gki", carried, rows)
    square = np.einsum("gki,gki->gk", lever, lever)
    outer += np.einsum("gki,gkj->kij", lever, lever, optimize=True)
    parts = (spread, square, spread**2, spread * square)
    return np.array([part.sum(axis=0) for part in parts])


def _ratio(sums: FloatArray, outer: FloatArray) -> FloatArray:
    """The ratio (tr W)^2 / tr W^2; sums (4, k), outer (k, p, p); returns (k,)."""
    total = sums[2] - 2.0 * sums[3] + np.einsum("kij,kij->k", outer, outer)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((sums[0] - sums[1]) ** 2 / total, dtype=np.float64)
