"""Regression adjustments against slow versions written from their formulas."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import optimize, special, stats

from adaptinf.inference.regression.anytime import AnytimeReference, anytime_wald
from adaptinf.inference.regression.batched_regression import (
    batched_coefficients,
    batched_wald,
    drifting_wald,
)
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.ellipsoid import EllipsoidReference, confidence_ellipsoid
from adaptinf.inference.regression.least_squares import batch_regressions
from adaptinf.inference.regression.weighted.own_weights import weighted_least_squares

ALPHAS = (0.2, 0.05, 1e-4)


def data(seed: int, rounds: int = 60, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A design matrix with a constant column, and responses."""
    rng = np.random.default_rng(seed)
    design = np.column_stack(
        (np.ones(rounds), rng.normal(size=(rounds, columns - 1)) * [1.0, 3.0][: columns - 1])
    )
    return design, design @ np.arange(1.0, columns + 1.0) + rng.normal(size=rounds)


def normal_equations(design: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients, inverse of X'X, and sum of squared residuals."""
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ response
    return beta, inverse, float(sum((response - design @ beta) ** 2))


# W-decorrelation


def literal_decorrelation(
    design: np.ndarray, response: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights column by column, each minimising ||I - W X||^2 + ridge ||w||^2 given those before it."""
    rounds, size = design.shape
    beta, _, rest = normal_equations(design, response)
    columns: list[np.ndarray] = []
    for t in range(rounds):
        left = np.eye(size)
        for s in range(t):
            left = left - np.outer(columns[s], design[s])

        def gap(w: np.ndarray, left: np.ndarray = left, x: np.ndarray = design[t]) -> np.ndarray:
            return 2.0 * (np.outer(w, x) - left) @ x + 2.0 * ridge * w

        # The gradient is linear: its root is that of the linear system through d + 1 evaluations.
        offset = gap(np.zeros(size))
        slope = np.column_stack([gap(e) - offset for e in np.eye(size)])
        columns.append(np.linalg.solve(slope, -offset))
    weights = np.column_stack(columns)
    variance = rest / (rounds - size)
    estimate = beta + weights @ (response - design @ beta)
    return estimate, variance * weights @ weights.T, np.eye(size) - weights @ design


@pytest.mark.parametrize("ridge", [0.3, 5.0, 200.0])
def test_decorrelation_is_the_literal_one(ridge: float) -> None:
    design, response = data(1)
    estimate, covariance, remainder = literal_decorrelation(design, response, ridge)
    found = decorrelated(design, response, ridge)
    np.testing.assert_allclose(found.estimate, estimate, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.remainder, remainder, rtol=1e-9, atol=1e-11)


def test_the_default_ridge_is_the_smallest_eigenvalue_over_the_log_of_the_rounds() -> None:
    design, response = data(2)
    smallest = min(np.linalg.eigvals(design.T @ design).real)
    assert decorrelated(design, response).ridge == pytest.approx(smallest / math.log(60), rel=1e-9)


# Batched least squares


def batches(seed: int, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    design, response = data(seed, sum(sizes))
    return np.repeat(np.arange(len(sizes)), sizes), design, response


def literal_statistic(
    batch: np.ndarray, design: np.ndarray, response: np.ndarray, row: np.ndarray, value: float
) -> tuple[float, list[float], list[int]]:
    """Sum of the batches' t statistics over the root of their number, those statistics, their df."""
    parts, freedom = [], []
    for b in range(batch[-1] + 1):
        own = batch == b
        beta, inverse, rest = normal_equations(design[own], response[own])
        df = int(own.sum()) - design.shape[1]
        parts.append(float((row @ beta - value) / math.sqrt(rest / df * (row @ inverse @ row))))
        freedom.append(df)
    return sum(parts) / math.sqrt(len(parts)), parts, freedom


def test_batched_coefficients_solve_the_literal_equation() -> None:
    batch, design, response = batches(3, (7, 9, 12, 8))
    found = batch_regressions(batch, design, response)
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, -2.0]])
    estimate, std_error, reference = batched_coefficients(found, rows)
    for k, row in enumerate(rows):
        args = (batch, design, response, row)
        zero = optimize.brentq(lambda v, args=args: literal_statistic(*args, v)[0], -50.0, 50.0, xtol=1e-13)
        assert estimate[k] == pytest.approx(zero, rel=1e-9)
        at_null = literal_statistic(*args, 0.7)[0]
        assert (estimate[k] - 0.7) / std_error[k] == pytest.approx(at_null, rel=1e-9)
    draws = np.random.default_rng(0).standard_t([4, 6, 9, 5], size=(200_000, 4)).sum(axis=1) / 2.0
    shifted = literal_statistic(batch, design, response, rows[0], estimate[0] - 1.5 * std_error[0])[0]
    share = np.mean(np.abs(draws) >= shifted)
    p = math.exp(reference.log_pvalues(estimate[0] - 1.5 * std_error[0])[0])
    assert abs(share - p) < 4.0 * math.sqrt(p * (1.0 - p) / 200_000)


def test_the_drifting_form_is_the_literal_one() -> None:
    batch, design, response = batches(4, (7, 9, 12))
    found = batch_regressions(batch, design, response)
    _, parts, freedom = literal_statistic(batch, design, response, np.array([0.0, 1.0, 0.0]), 2.0)
    mapped = [stats.norm.isf(stats.t.sf(abs(t), df)) for t, df in zip(parts, freedom, strict=True)]
    statistic, df, log_p = drifting_wald(found, np.array([[0.0, 1.0, 0.0]]), np.array([2.0]))
    assert statistic == pytest.approx(sum(z * z for z in mapped), rel=1e-9)
    assert df == 3
    assert math.exp(log_p) == pytest.approx(stats.chi2.sf(sum(z * z for z in mapped), 3), rel=1e-9)


def test_the_drifting_form_of_two_restrictions_is_the_literal_one() -> None:
    batch, design, response = batches(5, (9, 11))
    rows, values = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), np.array([2.0, 3.5])
    total = 0.0
    for b in range(2):
        own = batch == b
        beta, inverse, rest = normal_equations(design[own], response[own])
        df = int(own.sum()) - 3
        gap = rows @ beta - values
        f = gap @ np.linalg.inv(rows @ inverse @ rows.T) @ gap / (2.0 * rest / df)
        total += stats.chi2.isf(stats.f.sf(f, 2, df), 2)
    statistic, df, log_p = drifting_wald(batch_regressions(batch, design, response), rows, values)
    assert (df, statistic) == (4, pytest.approx(total, rel=1e-9))
    assert math.exp(log_p) == pytest.approx(stats.chi2.sf(total, 4), rel=1e-9)


def test_the_joint_form_of_one_batch_is_the_f_test() -> None:
    batch, design, response = batches(6, (12,))
    rows, values = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), np.array([2.0, 3.5])
    beta, inverse, rest = normal_equations(design, response)
    gap = rows @ beta - values
    f = gap @ np.linalg.inv(rows @ inverse @ rows.T) @ gap / (2.0 * rest / 9)
    statistic, df, log_p = batched_wald(batch_regressions(batch, design, response), rows, values)
    assert (statistic, df) == (pytest.approx(2.0 * f, rel=1e-9), 2)
    assert math.exp(log_p) == pytest.approx(stats.f.sf(f, 2, 9), abs=1e-11)


@pytest.mark.slow
def test_the_joint_form_is_the_literal_one() -> None:
    batch, design, response = batches(7, (8, 10, 13))
    rows, values = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), np.array([1.6, 4.5])
    total, freedom = np.zeros(2), []
    for b in range(3):
        own = batch == b
        beta, inverse, rest = normal_equations(design[own], response[own])
        freedom.append(int(own.sum()) - 3)
        shape = rest / freedom[-1] * rows @ inverse @ rows.T
        values_of, vectors = np.linalg.eigh(shape)
        total += vectors @ np.diag(values_of**-0.5) @ vectors.T @ (rows @ beta - values)
    norm = float(np.linalg.norm(total)) / math.sqrt(3.0)
    statistic, df, log_p = batched_wald(batch_regressions(batch, design, response), rows, values)
    assert (statistic, df) == (pytest.approx(norm**2, rel=1e-9), 2)

    def transform(u: mpmath.mpf) -> mpmath.mpf:
        """Product of the characteristic functions of Student's t at u / sqrt(3)."""
        value = mpmath.mpf(1)
        for nu in freedom:
            x = mpmath.sqrt(nu) * u / mpmath.sqrt(3)
            value *= mpmath.besselk(mpmath.mpf(nu) / 2, x) * x ** (mpmath.mpf(nu) / 2)
            value /= mpmath.gamma(mpmath.mpf(nu) / 2) * mpmath.mpf(2) ** (mpmath.mpf(nu) / 2 - 1)
        return value

    # In the plane P(norm <= r) = r times the integral of the transform times J_1(r u).
    inside = norm * mpmath.quad(lambda u: transform(u) * mpmath.besselj(1, norm * u), [0, 0.01, 1, 4, 12, 30])
    assert math.exp(log_p) == pytest.approx(float(1 - inside), abs=1e-11)


# Adaptively weighted least squares


def test_weighted_least_squares_is_the_literal_one() -> None:
    design, response = data(8)
    weight = np.random.default_rng(8).uniform(0.2, 3.0, size=60)
    bread, right = np.zeros((3, 3)), np.zeros(3)
    for x, y, w in zip(design, response, weight, strict=True):
        bread += w * np.outer(x, x)
        right += w * y * x
    beta = np.linalg.inv(bread) @ right
    meat = np.zeros((3, 3))
    for x, y, w in zip(design, response, weight, strict=True):
        meat += (w * (y - x @ beta)) ** 2 * np.outer(x, x)
    covariance = np.linalg.inv(bread) @ meat @ np.linalg.inv(bread)
    found = weighted_least_squares(design, response, weight)
    np.testing.assert_allclose(found.estimate, beta, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-13)
    assert found.ess == pytest.approx(sum(weight) ** 2 / sum(weight**2), rel=1e-12)


# The self-normalised ellipsoid


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_ellipsoid_is_the_literal_one(alpha: float) -> None:
    design, response = data(9)
    noise_scale, bound, ridge = 1.2, 4.0, 0.7
    gram = ridge * np.eye(3) + design.T @ design
    theta = np.linalg.inv(gram) @ design.T @ response
    ratio = math.sqrt(np.linalg.det(gram)) / math.sqrt(np.linalg.det(ridge * np.eye(3)))
    radius = noise_scale * math.sqrt(2.0 * math.log(ratio / alpha)) + math.sqrt(ridge) * bound
    found = confidence_ellipsoid(design, response, noise_scale, bound, ridge)
    np.testing.assert_allclose(found.estimate, theta, rtol=1e-9)
    assert found.radius(math.log(alpha)) == pytest.approx(radius, rel=1e-9)
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, -2.0]])
    half = [radius * math.sqrt(row @ np.linalg.inv(gram) @ row) for row in rows]
    reference = EllipsoidReference(found, rows)
    limits = reference.interval(math.log(alpha))
    np.testing.assert_allclose(limits[:, 1] - limits[:, 0], 2.0 * np.array(half), rtol=1e-9)
    np.testing.assert_allclose(limits.mean(axis=1), rows @ theta, rtol=1e-9)


def test_a_joint_restriction_is_rejected_where_no_point_of_the_ellipsoid_satisfies_it() -> None:
    design, response = data(10)
    found = confidence_ellipsoid(design, response, 1.0, 4.0, 0.7)
    rows, values = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), np.array([0.0, 1.0])
    gram = 0.7 * np.eye(3) + design.T @ design
    # The nearest point of the restricted set, by its one free coordinate.
    base, free = np.linalg.lstsq(rows, values)[0], np.linalg.svd(rows)[2][2]

    def distance(x: float) -> float:
        step = base + x * free - found.estimate
        return float(step @ gram @ step)

    nearest = math.sqrt(optimize.minimize_scalar(distance, tol=1e-14).fun)
    statistic, log_p = found.distance(rows, values)
    assert statistic == pytest.approx(nearest, rel=1e-9)
    assert found.radius(log_p) == pytest.approx(nearest, rel=1e-9)


# Anytime-valid t and F


@pytest.mark.slow
@pytest.mark.parametrize(("t", "df", "precision", "size"), [(2.3, 5, 1.0, 12.0), (-0.4, 40, 0.2, 300.0)])
def test_the_bayes_factor_is_a_ratio_of_mixed_student_densities(
    t: float, df: int, precision: float, size: float
) -> None:
    # The statistic is Student's noncentral t with shift delta / sigma * sqrt(size).
    shift = np.arange(-30.0, 30.0, 0.02)
    density = np.array([noncentral_t(t, df, s) for s in shift])
    prior = stats.norm.pdf(shift, scale=math.sqrt(size / precision))
    factor = float(density @ prior) * 0.02 / stats.t.pdf(t, df)
    ratio = precision / (precision + size)
    reference = AnytimeReference(np.array([t]), np.array([1.0]), float(df), np.array([ratio]))
    assert reference.log_pvalues(0.0)[0] == pytest.approx(min(0.0, -math.log(factor)), rel=1e-9)
    assert reference.log_factor(0.0)[0] == pytest.approx(math.log(factor), rel=1e-9)


def noncentral_t(t: float, df: int, shift: float) -> float:
    """Density of the noncentral t: that of t v around the shift, over the law of v = s / sigma."""
    nodes, weights = special.roots_genlaguerre(150, 0.5 * df - 0.5)
    # With w = df v^2 / 2 the law of v is gamma, and the integrand smooth.
    v = np.sqrt(2.0 * nodes / df)
    # weights carry w^(df/2 - 1/2) e^-w; the density of w is w^(df/2 - 1) e^-w / Gamma(df / 2).
    inside = np.exp(-0.5 * (t * v - shift) ** 2) * v / np.sqrt(nodes)
    return float(weights @ inside) / math.gamma(0.5 * df) / math.sqrt(2.0 * math.pi)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_anytime_interval_is_where_the_factor_reaches_one_over_alpha(alpha: float) -> None:
    reference = AnytimeReference(np.array([1.0]), np.array([0.5]), 20.0, np.array([0.01]))

    def factor(null: float) -> float:
        t = (1.0 - null) / 0.5
        return 0.5 * math.log(0.01) + 10.5 * math.log((1 + t * t / 20) / (1 + 0.01 * t * t / 20))

    low, high = reference.interval(math.log(alpha))[0]
    edge = optimize.brentq(lambda v: factor(v) + math.log(alpha), 1.0, 1e4, xtol=1e-13)
    assert high == pytest.approx(edge, rel=1e-9)
    assert low == pytest.approx(2.0 - edge, rel=1e-9)


def test_the_joint_bayes_factor_is_the_integral_of_likelihoods() -> None:
    design, response = data(11, 14)
    rows, values = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([1.7, 3.1])
    precision = 0.8
    nuisance, tested = design[:, :1], design[:, 1:]
    project = np.eye(14) - nuisance @ np.linalg.inv(nuisance.T @ nuisance) @ nuisance.T
    y, z = project @ (response - tested @ values), project @ tested

    def marginal(spread: np.ndarray) -> float:
        """Likelihood of y with covariance sigma^2 spread, integrated over sigma by d sigma / sigma.

        On the 13 dimensions that the nuisance leaves, with v = 1 / sigma.
        """
        form = y @ np.linalg.inv(spread) @ y
        integral = mpmath.quad(lambda v: v**12 * mpmath.exp(-form * v * v / 2), [0, 0.5, 1, 2, 4, 12])
        return float(integral) / math.sqrt(np.linalg.det(spread))

    factor = marginal(np.eye(14) + z @ z.T / precision) / marginal(np.eye(14))
    beta, inverse, rest = normal_equations(design, response)
    statistic, df, log_p, log_factor = anytime_wald(beta, inverse, rest, 11, rows, values, precision)
    gap = rows @ beta - values
    f = gap @ np.linalg.inv(rows @ inverse @ rows.T) @ gap / (2 * rest / 11)
    assert (statistic, df) == (pytest.approx(f, rel=1e-9), 2)
    assert log_factor == pytest.approx(math.log(factor), rel=1e-9)
    assert log_p == min(0.0, -log_factor)
