"""A few arms that represent all others: MAX-DET collections and G-optimal designs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from adaptinf.designs.best_arm.arm_collections_kernel import balance_rows, exchange_rows
from adaptinf.errors import ParameterError
from adaptinf.parameters import Number, refuse
from adaptinf.typing import FloatArray, IntArray

_RANK_TOLERANCE = 1e-10
_REFRESHES = 50


def feature_rows(features: Any) -> FloatArray:
    """Features as an array with one row per arm, divided by their largest entry; the scale is immaterial."""
    rows = np.array(features, dtype=np.float64)
    return np.ascontiguousarray(rows / np.abs(rows).max())


def feature_problems(features: Any, *, distinct: bool = False) -> list[str]:
    """List problems with feature vectors, which must span their space and, if required, be `distinct`."""
    try:
        rows = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        return [f"features must be numbers, one row per arm, got {features!r:.60}"]
    if rows.ndim != 2 or 0 in rows.shape:
        hint = ": for one coordinate per arm, use features.reshape(-1, 1)" if rows.ndim == 1 else ""
        return [
            f"features must have one row per arm and one column per coordinate, got shape {rows.shape}{hint}"
        ]
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        return [f"features must be finite, but those of {_listed(bad)} are not"]
    problems = []
    n, dimension = rows.shape
    largest = float(np.abs(rows).max())
    if largest > 0.0 and not 1e-100 <= largest <= 1e100:
        return [
            f"features are too large or too small (the largest absolute value is {largest:g}): divide "
            f"them by a constant"
        ]
    rank = _rank(rows)
    if rank < dimension:
        problems.append(
            f"features must span all {dimension} coordinates, but those of the {n} arms span only {rank}: "
            f"rewrite them in {rank or 'some'} coordinates, for example by a singular value decomposition"
        )
    if distinct:
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        twins = np.flatnonzero(first[inverse.ravel()] != np.arange(n))
        if twins.size:
            pairs = [f"{int(first[inverse.ravel()[twin]])} and {int(twin)}" for twin in twins[:5]]
            more = f" and {twins.size - 5} more" if twins.size > 5 else ""
            problems.append(
                f"arms must have distinct features, but these are equal: arms {'; '.join(pairs)}{more}. "
                "Equal features imply equal means, so there is no single best arm; keep only one arm for "
                "each set of features"
            )
    return problems


def max_det(features: ArrayLike, tol: float = 1e-6) -> IntArray:
    """Row indices of a MAX-DET collection: arms in terms of which all arms have small coefficients.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        One feature vector per row; together they span the whole space.
    tol : float
        Tolerance, at least 1e-9: no coefficient of any arm exceeds 1 + tol in absolute value.

    Returns
    -------
    ndarray of int, shape (dimension,)
        Row positions, sorted.

    Raises
    ------
    ParameterError
        If the features are invalid (the message lists every problem): not finite, do not span their space, or
        so nearly dependent that coefficients cannot be computed to within tol.

    Notes
    -----
    A collection is MAX-DET if its absolute determinant is the largest possible. Designs require only that all
    coefficients are at most 1, and such a collection is computed here: starting from a QR decomposition with
    pivoting, one vector at a time is exchanged while a coefficient exceeds 1 + tol. An exchange at
    coefficient c multiplies the determinant by c, so there are at most of the order of d log(d) / tol
    exchanges. The result is a local maximum, which is often, but not always, the largest determinant.

    References
    ----------
    Chen, Z., Karthik, P. N., Chee, Y. M. and Tan, V. Y. F. (2024). Fixed-budget differentially private best
    arm identification. ICLR.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.max_det([[0.0, 1.0], [0.0, 0.9], [10.0, 0.0], [1.0, 0.5]])
    array([0, 2])
    """
    refuse("max_det", feature_problems(features) + Number(1e-9)("tol", tol))
    basis, _ = max_det_basis(feature_rows(features), float(tol))
    return np.sort(basis)


def max_det_basis(rows: FloatArray, tol: float) -> tuple[IntArray, FloatArray]:
    """MAX-DET collection of rows that span their space, and the coefficients of all rows in terms of it.

    Shapes: rows (arms, dimension); returns basis (dimension,), coefficients (arms, dimension).
    """
    dimension = rows.shape[1]
    pivots = linalg.qr(rows.T, mode="r", pivoting=True)[1]
    basis = np.ascontiguousarray(pivots[:dimension], dtype=np.int64)
    for _ in range(_REFRESHES):
        coefficients = np.ascontiguousarray(np.linalg.solve(rows[basis].T, rows.T).T)
        if not exchange_rows(coefficients, 1.0 + tol, basis):
            return basis, coefficients
    raise ParameterError(
        "max_det",
        [
            f"the features are too close to linear dependence for coefficients to be accurate within "
            f"tol={tol:g}: use a larger tol"
        ],
    )


def _rank(rows: FloatArray) -> int:
    largest = np.abs(rows).max()
    if largest == 0.0:
        return 0
    triangle = linalg.qr((rows / largest).T, mode="r", pivoting=True)[0]
    diagonal = np.abs(np.diag(triangle))
    return int((diagonal > _RANK_TOLERANCE * diagonal[0]).sum())


def _listed(positions: IntArray) -> str:
    shown = ", ".join(str(int(position)) for position in positions[:5])
    return f"arm{'s' if positions.size > 1 else ''} {shown}{', ...' if positions.size > 5 else ''}"


_MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class OptimalDesign:
    """A G-optimal design, and its distance from optimality.

    Attributes
    ----------
    weights : ndarray of shape (arms,)
        Shares of pulls; they sum to 1, and at most d (d + 1) / 2 are positive.
    gap : float
        Kiefer-Wolfowitz gap: the largest a'V^-1 a over all arms, divided by d, minus 1, where V = sum_i w_i
        a_i a_i'. The gap is 0 for an optimal design and positive for any other.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.designs.optimal_design([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
    >>> found.weights.round(2).tolist()
    [0.5, 0.5, 0.0]
    """

    weights: FloatArray
    gap: float


def optimal_design(features: ArrayLike, tol: float = 1e-6) -> OptimalDesign:
    """G-optimal design for a set of arms, with its Kiefer-Wolfowitz gap.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        One feature vector per row; together they span the whole space.
    tol : float
        Largest gap, at least 1e-9.

    Returns
    -------
    OptimalDesign
        The weights and the gap.

    Raises
    ------
    ParameterError
        If the features are invalid (the message lists every problem), or the gap remains above tol.

    Notes
    -----
    The weights are computed by Frank and Wolfe's algorithm with away steps (Wolfe, Atwood) and exact line
    search, started from equal weights on a MAX-DET collection. If more than d (d + 1) / 2 weights are
    positive, weight is moved along linear dependencies of the matrices a a' until this no longer holds: V
    stays the same, and any weight left over is spread proportionally, so the gap does not grow. The gap is
    computed from the returned weights.

    References
    ----------
    Kiefer, J. and Wolfowitz, J. (1960). The equivalence of two extremum problems. Canadian Journal of
    Mathematics.
    Ahipasaoglu, S. D., Sun, P. and Todd, M. J. (2008). Linear convergence of a modified Frank-Wolfe algorithm
    for computing minimum-volume enclosing ellipsoids. Optimization Methods and Software.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.designs.optimal_design([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> found.weights, found.gap
    (array([0.5, 0.5, 0. ]), 0.0)
    """
    refuse("optimal_design", feature_problems(features) + Number(1e-9)("tol", tol))
    basis, coefficients = max_det_basis(feature_rows(features), max(1e-9, 0.1 * float(tol)))
    n, dimension = coefficients.shape
    weights, work = np.zeros(n), (np.zeros(n), np.zeros((dimension, dimension)), np.zeros(dimension))
    balance_rows(coefficients, basis, 0.5 * float(tol), _MOST_STEPS, weights, *work)
    weights = _fewer(coefficients, weights / weights.sum())
    gap = _gap(coefficients, weights)
    if not gap <= tol:
        raise ParameterError("optimal_design", [f"the gap is still {gap:.3g}: choose a larger tol"])
    return OptimalDesign(weights, gap)


def _gap(rows: FloatArray, weights: FloatArray) -> float:
    dimension = rows.shape[1]
    root = np.linalg.cholesky((rows.T * weights) @ rows)
    leverage = (np.linalg.solve(root, rows.T) ** 2).sum(axis=0)
    excess: float = leverage.max() / dimension - 1.0
    return max(0.0, float(excess))


def _fewer(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights with at most d (d + 1) / 2 positive entries, and V at least as large as before."""
    upper = np.triu_indices(rows.shape[1])
    limit = upper[0].size
    weights = weights.copy()
    while (support := np.flatnonzero(weights)).size > limit:
        part = support[: limit + 1]
        products = rows[part][:, upper[0]] * rows[part][:, upper[1]]
        null = np.linalg.svd(products.T)[2][-1]
        null = -null if null.sum() < 0.0 else null
        ratios = np.where(null > 0.0, weights[part] / np.where(null > 0.0, null, 1.0), np.inf)
        first = int(np.argmin(ratios))
        weights[part] = np.maximum(0.0, weights[part] - ratios[first] * null)
        weights[part[first]] = 0.0
    return np.asarray(weights / weights.sum(), dtype=np.float64)
