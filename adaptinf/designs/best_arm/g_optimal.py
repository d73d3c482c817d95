"""G-optimal designs: shares of pulls under which no arm's prediction is more uncertain than need be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.designs.best_arm.determinants import feature_problems, feature_rows, max_det_basis
from adaptinf.designs.best_arm.g_optimal_kernel import balance_rows
from adaptinf.errors import ParameterError
from adaptinf.parameters import Number, refuse
from adaptinf.typing import FloatArray

_MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class OptimalDesign:
    """A G-optimal design, and how far from optimal it is.

    Attributes
    ----------
    weights : ndarray of shape (arms,)
        Shares of pulls; they sum to 1, and at most d (d + 1) / 2 are positive.
    gap : float
        Kiefer-Wolfowitz gap: the largest a'V^-1 a over arms, over d, less 1, with V = sum_i w_i a_i a_i'. It
        is 0 for an optimal design and positive for any other.

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
    """G-optimal design of arms, with its Kiefer-Wolfowitz gap.

    Parameters
    ----------
    features : array_like of shape (arms, dimension)
        One feature vector a row; together they span all coordinates.
    tol : float
        Largest gap, at least 1e-9.

    Returns
    -------
    OptimalDesign
        Weights and gap.

    Raises
    ------
    ParameterError
        Listing what is wrong with the features, or that the gap stayed above tol.

    Notes
    -----
    Frank and Wolfe's algorithm with steps away from arms (Wolfe, Atwood), each of the best length, started at
    equal weights on a MAX-DET collection. Where more than d (d + 1) / 2 weights are positive, weight is moved
    along null vectors of the matrix of the a a' until no more are: V stays, and what is left over is spread
    in proportion, so that the gap does not grow. The gap is computed from the weights that are returned.

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
        raise ParameterError("optimal_design", [f"the gap is still {gap:.3g}: take tol above that"])
    return OptimalDesign(weights, gap)


def _gap(rows: FloatArray, weights: FloatArray) -> float:
    dimension = rows.shape[1]
    root = np.linalg.cholesky((rows.T * weights) @ rows)
    leverage = (np.linalg.solve(root, rows.T) ** 2).sum(axis=0)
    excess: float = leverage.max() / dimension - 1.0
    return max(0.0, float(excess))


def _fewer(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights with at most d (d + 1) / 2 positive ones and V at least what it was."""
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
