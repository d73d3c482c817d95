"""No coefficient exceeds 1 + tol, and no exchange of one vector gains more, whatever the features."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from adaptinf.designs.best_arm.arm_collections import feature_problems, max_det, optimal_design
from adaptinf.designs.best_arm.arm_collections_kernel import basis_coefficients, orthogonal_coordinates

shapes = st.tuples(st.integers(1, 30), st.integers(1, 6))
features = shapes.flatmap(
    lambda shape: arrays.arrays(np.float64, shape, elements=st.floats(-10.0, 10.0, width=16))
)


@settings(max_examples=200, deadline=None)
@given(rows=features, tol=st.sampled_from([1e-9, 1e-6, 0.1]))
def test_coefficients_are_at_most_one_plus_tol(rows: np.ndarray, tol: float) -> None:
    if feature_problems(rows):
        assert np.linalg.matrix_rank(rows) < rows.shape[1] or np.linalg.cond(rows) > 1e6
        return
    chosen = max_det(rows, tol=tol)
    assert len(set(chosen.tolist())) == rows.shape[1]
    coefficients = np.linalg.solve(rows[chosen].T, rows.T)
    assert np.abs(coefficients).max() <= 1.0 + tol + 1e-9


@settings(max_examples=60, deadline=None)
@given(rows=features)
def test_optimal_designs_are_optimal(rows: np.ndarray) -> None:
    if feature_problems(rows):
        return
    dimension = rows.shape[1]
    found = optimal_design(rows, tol=1e-4)
    assert 0.0 <= found.gap <= 1e-4
    assert (found.weights >= 0.0).all()
    assert abs(found.weights.sum() - 1.0) < 1e-12
    assert (found.weights > 0.0).sum() <= dimension * (dimension + 1) // 2


@settings(max_examples=100, deadline=None)
@given(shape=st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(1, 6)), seed=st.integers(0, 10**6))
def test_reduction_keeps_lengths_angles_and_rank(shape: tuple[int, int, int], seed: int) -> None:
    n, dimension, inner = shape
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, inner)) @ rng.normal(size=(inner, dimension))
    reduced, basis = np.zeros((n, dimension)), np.zeros(dimension, dtype=np.int64)
    rank = orthogonal_coordinates(
        rows,
        np.arange(n),
        n,
        dimension,
        np.zeros((n, dimension)),
        np.zeros((dimension, dimension)),
        reduced,
        basis,
    )
    assert rank == np.linalg.matrix_rank(rows) == min(n, dimension, inner)
    part = reduced[:, :rank]
    np.testing.assert_allclose(part @ part.T, rows @ rows.T, atol=1e-9 * np.abs(rows @ rows.T).max())
    coefficients = np.zeros((n, dimension))
    basis_coefficients(reduced, basis, n, rank, coefficients)
    np.testing.assert_allclose(
        coefficients[:, :rank] @ rows[basis[:rank]], rows, atol=1e-6 * np.abs(rows).max()
    )
