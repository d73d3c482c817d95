"""MAX-DET collections and G-optimal designs: known answers, an exhaustive search, and bad input."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from adaptinf.designs.best_arm.arm_collections import max_det, optimal_design
from adaptinf.errors import ParameterError


def determinant(rows: np.ndarray) -> float:
    return float(abs(np.linalg.det(rows)))


def exhaustive(features: np.ndarray) -> float:
    """The largest determinant of all collections."""
    dimension = features.shape[1]
    collections = itertools.combinations(range(len(features)), dimension)
    return max(determinant(features[list(chosen)]) for chosen in collections)


def test_the_largest_determinant_is_found_in_most_small_cases() -> None:
    """Normal features: 188 of 200 with 9 arms in 3 dimensions; never below 3/4 of the largest."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(200):
        features = rng.normal(size=(9, 3))
        ratios.append(determinant(features[max_det(features)]) / exhaustive(features))
    assert np.mean(np.array(ratios) > 1.0 - 1e-9) == 188 / 200
    assert 0.75 < min(ratios) <= max(ratios) < 1.0 + 1e-9


def test_two_dimensions_with_integers_are_exhaustively_right_or_locally_so() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        features = rng.integers(-3, 4, size=(7, 2)).astype(float)
        if np.linalg.matrix_rank(features) < 2:
            continue
        chosen = max_det(features)
        assert np.abs(np.linalg.solve(features[chosen].T, features.T)).max() <= 1.0 + 1e-6


def test_one_dimension_is_the_longest_arm() -> None:
    assert max_det([[1.0], [-3.0], [0.0], [2.0]]).tolist() == [1]
    found = optimal_design([[1.0], [-3.0], [0.0], [2.0]])
    assert found.weights.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert found.gap == 0.0


def test_scale_does_not_matter() -> None:
    features = np.random.default_rng(2).normal(size=(40, 5))
    for scale in (1e-99, 1e99):
        np.testing.assert_array_equal(max_det(features * scale), max_det(features))


@pytest.mark.parametrize(("n_arms", "dimension"), [(10_000, 16), (10_000, 64)])
def test_many_arms_take_seconds(n_arms: int, dimension: int) -> None:
    features = np.random.default_rng(3).normal(size=(n_arms, dimension))
    begin = time.perf_counter()
    chosen = max_det(features)
    assert time.perf_counter() - begin < 20.0
    assert np.abs(np.linalg.solve(features[chosen].T, features.T)).max() <= 1.0 + 1e-6


def test_exchange_is_needed() -> None:
    """Pivoting alone leaves a coefficient above 1."""
    features = np.array([[1.0, 0.0], [-0.6, 0.75], [0.6, 0.76]])
    from_pivots = [0, 2]
    assert np.abs(np.linalg.solve(features[from_pivots].T, features.T)).max() > 1.1
    assert max_det(features).tolist() == [1, 2]
    assert determinant(features[[1, 2]]) == pytest.approx(exhaustive(features))


def test_optimal_design_of_known_cases() -> None:
    circle = np.deg2rad(np.arange(0, 180, 36))
    on_circle = np.column_stack([np.cos(circle), np.sin(circle)])
    found = optimal_design(on_circle)
    moments = (on_circle.T * found.weights) @ on_circle
    np.testing.assert_allclose(moments, np.eye(2) / 2, atol=1e-3)
    # a quadratic on [-1, 1]: a third of the pulls at each end and in the middle
    points = np.linspace(-1.0, 1.0, 101)
    quadratic = optimal_design(np.column_stack([np.ones(101), points, points**2]), tol=1e-8)
    np.testing.assert_allclose(quadratic.weights[[0, 50, 100]], 1.0 / 3.0, atol=1e-6)


@pytest.mark.parametrize(("n_arms", "dimension"), [(30, 2), (200, 4), (12, 6), (8, 8), (500, 10)])
def test_kiefer_wolfowitz_gap_and_support(n_arms: int, dimension: int) -> None:
    features = np.random.default_rng(n_arms).normal(size=(n_arms, dimension))
    found = optimal_design(features)
    moments = (features.T * found.weights) @ features
    leverage = np.einsum("ik,kl,il->i", features, np.linalg.inv(moments), features)
    assert leverage.max() / dimension - 1.0 == pytest.approx(found.gap, abs=1e-9)
    assert found.gap <= 1e-6
    assert found.weights.sum() == pytest.approx(1.0)
    assert (found.weights > 0.0).sum() <= min(n_arms, dimension * (dimension + 1) // 2)


def test_the_support_is_cut_to_what_the_budget_allows_for() -> None:
    """400 arms on a circle are all as good: more than three are in use before the cut."""
    angles = np.pi * np.random.default_rng(0).random(400)
    features = np.column_stack([np.cos(angles), np.sin(angles)])
    found = optimal_design(features, tol=1e-9)
    assert (found.weights > 0.0).sum() <= 3
    assert found.gap <= 1e-9


def test_bad_features_are_refused_with_everything_wrong() -> None:
    for function in (max_det, optimal_design):
        with pytest.raises(ParameterError, match=r"span all 2 coordinates.*span only 1[\s\S]*tol must be"):
            function([[1.0, 2.0], [2.0, 4.0]], tol=0.0)
        with pytest.raises(ParameterError, match="span only 0"):
            function([[0.0, 0.0]])
        with pytest.raises(ParameterError, match="those of arms 0, 2 are not"):
            function([[np.nan, 1.0], [1.0, 1.0], [np.inf, 0.0]])
        with pytest.raises(ParameterError, match=r"shape \(3,\): for one coordinate per arm, use features"):
            function([1.0, 2.0, 3.0])
        with pytest.raises(ParameterError, match=r"the largest absolute value is 1e\+200\): divide"):
            function([[1e200, 0.0], [0.0, 1e200]])
        with pytest.raises(ParameterError, match="must be numbers"):
            function([["a", "b"]])
