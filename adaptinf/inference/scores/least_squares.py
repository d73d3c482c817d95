"""Least squares by an orthogonal factorisation of centred and scaled columns, and its covariances.

References
----------
White (1980), "A heteroskedasticity-consistent covariance matrix estimator and a direct test for
heteroskedasticity". MacKinnon, White (1985), "Some heteroskedasticity-consistent covariance matrix estimators
with improved finite sample properties". Liang, Zeger (1986), "Longitudinal data analysis using generalized
linear models" (sandwich by cluster). Yamamoto, Nakatsukasa, Yanagisawa, Fukaya (2015), "Roundoff error
analysis of the CholeskyQR2 algorithm".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from adaptinf.errors import ParameterError
from adaptinf.inference.scores.by_unit.clusters import bias_reduced
from adaptinf.parameters import refuse
from adaptinf.typing import FloatArray, IntArray

COVARIANCES = ("classical", "HC0", "HC1", "HC2", "HC3", "CR2", "cluster")
BY_CLUSTER = ("CR2", "cluster")
"""Those that sum over clusters."""
_DEPENDENT = 1e-10
_CONSTANT = 1e-12
_WELL_CONDITIONED = 1e-6
_SHARE = 1e-6
_SPANNED = 1e-10
FULL_LEVERAGE = 1e-8
"""Distance of a leverage from 1 that counts as rounding."""
_PERFECT = 1e-14
"""Size of residuals, in units of the rewards, that is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """A least-squares fit of n rows on p columns.

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
        """Whether the rewards do not vary about the fit, up to rounding."""
        return bool(self.rss <= (_PERFECT * self.length) ** 2)

    @property
    def rsquared(self) -> float:
        """Share of `total` that the fit explains; NaN where there is nothing to explain."""
        return 1.0 - self.rss / self.total if self.total > 0.0 else float("nan")

    @property
    def decided(self) -> int:
        """Number of rows of leverage 1, up to rounding: the fit goes through them whatever they are."""
        return int(np.sum(1.0 - self.leverage() <= FULL_LEVERAGE))

    def leverage(self) -> FloatArray:
        """Diagonal of the hat matrix, shape (n,)."""
        return np.asarray(np.einsum("tj,tj->t", self.q, self.q), dtype=np.float64)

    def middle(self, kind: str, clusters: IntArray | None = None) -> FloatArray:
        """Covariance of q' @ errors, shape (p, p); NaN where it is not defined.

        Shapes: clusters (n,).

        With residuals e and leverages h: ``"classical"`` is e'e / (n - p) times the identity; ``"HC0"`` to
        ``"HC3"`` are q' diag(w) q with w = e^2, e^2 n / (n - p), e^2 / (1 - h) and e^2 / (1 - h)^2;
        ``"cluster"`` sums the products of each cluster's total of q e, times G/(G - 1) (n - 1)/(n - p), and
        ``"CR2"`` those of totals that are adjusted for the cluster's leverage (`clusters.bias_reduced`).
        """
        n, p = self.q.shape
        if n <= p:
            return np.full((p, p), np.nan)
        if kind == "classical":
            return np.diag(np.full(p, self.rss / (n - p)))
        if kind in BY_CLUSTER:
            if clusters is None:
                raise ParameterError("least squares", [f"clusters are needed for covariance={kind!r}"])
            if kind == "CR2":
                return bias_reduced(self.q, self.residual, clusters, self.root)[0]
            return _cluster_middle(self.q, self.residual, clusters)
        # statsmodels at an offset of 1e7: slopes' HC0 off by 5e-9, HC3 by 6e-4 (here 1e-15); HC3 of 1e6 x 10
        # in .21 s (here .037), or of 1e12 numbers (sandwich_covariance.cov_hc3)
        scaled = self.residual
        if kind in ("HC2", "HC3"):
            left = 1.0 - self.leverage()
            left = np.where(left > FULL_LEVERAGE, left, np.nan)
            scaled = scaled / (np.sqrt(left) if kind == "HC2" else left)
        rows = self.q * scaled[:, None]
        return np.asarray(rows.T @ rows * (n / (n - p) if kind == "HC1" else 1.0), dtype=np.float64)


def least_squares(x: FloatArray, y: FloatArray, names: Sequence[str]) -> LeastSquares:
    """Regress y on the columns of x.

    Shapes: x (n, p), y (n,).

    Where a column is constant the others and the rewards are centred first, so that offsets of the columns
    cost no digits. The factorisation is by two rounds of Cholesky's method where the columns are well
    conditioned, else by Householder's reflections; residuals are projected twice.
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
    """Take the means from all columns, in place, where one of them is constant and not 0.

    Returns the position of that one, or None, and what was taken from each.
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
    """Orthonormal columns, and the triangle that turns the given ones into them."""
    n, p = columns.shape
    if p == 0:
        raise ParameterError("least squares", ["there are no columns to regress on"])
    with np.errstate(over="ignore"):
        gram = columns.T @ columns
    if not np.all(np.isfinite(gram)):
        raise ParameterError("least squares", ["the columns are too large to be squared: rescale them"])
    length = np.sqrt(np.diag(gram))
    # What centring left of a column may be the rounding of its mean.
    empty = length <= _CONSTANT * np.sqrt(length**2 + n * center**2)
    size = np.where(empty, 1.0, length)
    unit = gram / np.outer(size, size)
    values = linalg.eigvalsh(unit)
    if n > p and not empty.any() and values[0] > _WELL_CONDITIONED * values[-1]:
        first = linalg.solve_triangular(linalg.cholesky(unit), np.eye(p)) / size[:, None]
        # Products of transposes keep the rounds of a column side by side in memory.
        q = (first.T @ columns.T).T
        second = linalg.solve_triangular(linalg.cholesky(q.T @ q), np.eye(p))
        return (second.T @ q.T).T, np.asarray(first @ second, dtype=np.float64)
    scaled = np.where(empty, 0.0, columns / size)
    problems = dependence_problems(scaled, names)
    refuse("least squares", problems)
    orthonormal, triangle = linalg.qr(scaled, mode="economic")
    root = linalg.solve_triangular(triangle, np.eye(p)) / size[:, None]
    return np.asarray(orthonormal, dtype=np.float64), np.asarray(root, dtype=np.float64)


def dependence_problems(scaled: FloatArray, names: Sequence[str]) -> list[str]:
    """Which columns are linear combinations of others, and of which; scaled (n, p)."""
    n, p = scaled.shape
    if n < p:
        return [f"{n} rounds cannot tell {p} columns apart: {', '.join(names)}"]
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
            problems.append(f"column {name!r} does not vary: the rounds used say nothing of its coefficient")
            continue
        listed = ", ".join(repr(names[i]) for i in sorted(names.index(part) for part in parts))
        which = "that" if len(parts) == 1 else "those"
        problems.append(
            f"column {name!r} cannot be told apart from {listed}: it is a linear combination of {which}"
        )
    return problems


def _cluster_middle(q: FloatArray, residual: FloatArray, clusters: IntArray) -> FloatArray:
    n, p = q.shape
    count = int(clusters.max()) + 1
    if count < 2:
        return np.full((p, p), np.nan)
    # statsmodels' cov_cluster of these rows is equal to rounding, .051 s against .022 at 1e6 x 10
    totals = np.column_stack([np.bincount(clusters, weights=column * residual) for column in q.T])
    factor = count / (count - 1) * (n - 1) / (n - p)
    return np.asarray(totals.T @ totals * factor, dtype=np.float64)
