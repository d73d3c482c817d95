"""Hardness of best-arm problems and bounds on DP-BAI's error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPBAIGauss
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.theory.best_arm_bounds import dp_bai_error, dp_bai_gauss_error, hardness


def test_hardness_by_hand() -> None:
    """Gaps 0, .1, .4, .5, .6 in two dimensions: i up to 4."""
    features = np.array([[0.9, 0], [0.8, 0], [0.5, 0], [0.4, 0], [0.3, 0.0]])
    found = hardness(features, [1.0, 7.0], epsilon=0.5)
    assert found.bai == pytest.approx(2 / 0.1**2)
    assert found.privacy == pytest.approx(2 / 0.1 / 0.5)
    assert found.total == found.bai + found.privacy
    # in three dimensions the fifth arm counts
    flat = np.array([[1, 0, 0], [0.5, 0, 0], [0.45, 0, 0], [0.44, 0, 0], [0.43, 0, 0]])
    assert hardness(flat, [1.0, 0, 0], epsilon=1.0).bai == pytest.approx(5 / 0.57**2)
    assert hardness(flat[:, :2], [1.0, 0], epsilon=1.0).bai == pytest.approx(4 / 0.56**2)


def test_hardness_at_the_limits() -> None:
    one = hardness([[1.0], [0.5], [0.2]], [0.8], epsilon=math.inf)
    assert (one.bai, one.privacy) == (pytest.approx(2 / 0.4**2), 0.0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, math.inf])
def test_the_explicit_bound_holds(epsilon: float) -> None:
    features = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0], [0, 0.5, 0.5], [0.3, 0.3, 0.3]])
    theta = np.array([0.9, 0.2, 0.1])
    informative = 0
    for horizon in (100, 400, 1_600):
        bound = dp_bai_error(features, theta, horizon, epsilon)
        design = DPBAI(epsilon=min(epsilon, 1e9), features=features)
        sims = design.replicate(BernoulliArms(features @ theta), horizon, 4_096, rng=1)
        missed = float((sims.recommended != 0).mean())
        assert missed <= bound + 4.0 * math.sqrt(bound * (1 - bound) / 4_096)
        informative += bound < 0.5
    assert informative >= 1


def test_the_explicit_bound_of_two_arms_by_hand() -> None:
    """Two orthogonal arms, one phase: T' = T - 2, half of it for each."""
    bound = dp_bai_error(np.eye(2), [0.8, 0.3], 202, 0.5)
    x = 0.5 * 100 * 0.5 / 2
    by_hand = math.exp(-100 * 0.25 / 4) + 0.5 * (1 + x / 2) * math.exp(-x)
    assert bound == pytest.approx(by_hand, rel=1e-12)


def test_bounds_fall_with_the_horizon_and_epsilon() -> None:
    features = np.random.default_rng(0).normal(size=(40, 4))
    theta = np.array([0.5, 0.1, 0.0, 0.2])
    for form in ("explicit", "published"):
        curve = [
            [dp_bai_error(features, theta, horizon, epsilon, form=form) for horizon in (10**3, 10**5, 10**7)]
            for epsilon in (0.1, 1.0, math.inf)
        ]
        assert (np.diff(curve, axis=0) <= 0).all()
        assert (np.diff(curve, axis=1) <= 0).all()
        assert np.max(curve) <= 1.0
    normal = [dp_bai_gauss_error(features, theta, 10**5, scale) for scale in (1e-9, 10.0, 1e4)]
    assert (np.diff(normal) >= 0).all()
    assert normal[0] == pytest.approx(dp_bai_error(features, theta, 10**5, math.inf))


def test_the_published_bound_by_hand() -> None:
    found = dp_bai_error(np.eye(2), [0.8, 0.3], 100_002, 0.5, form="published")
    assert found == pytest.approx((12 + 4 * 2) * math.exp(-100_000 / (64 * (8 + 8))))


def test_the_gaussian_bound_holds() -> None:
    features, theta = np.array([[1.0, 0], [0, 1], [0.6, 0.6]]), np.array([0.9, 0.2])
    design = DPBAIGauss(epsilon=0.5, delta=0.01, features=features)
    for horizon in (200, 1_000):
        bound = dp_bai_gauss_error(features, theta, horizon, design._noise())
        sims = design.replicate(BernoulliArms(features @ theta), horizon, 4_096, rng=1)
        assert (sims.recommended != 0).mean() <= bound + 4.0 * math.sqrt(bound * (1 - bound) / 4_096)
    assert bound < 0.5


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"two share the largest mean[\s\S]*epsilon"):
        hardness(np.eye(2), [1.0, 1.0], epsilon=0.0)
    with pytest.raises(ParameterError, match=r"shapes \(2, 2\) and \(3,\)"):
        hardness(np.eye(2), [1.0, 1.0, 2.0], epsilon=1.0)
    with pytest.raises(ParameterError, match="must be finite"):
        dp_bai_error([[np.nan], [1.0]], [1.0], 10, 1.0)
    with pytest.raises(ParameterError, match="horizon must be at least 3, got 2"):
        dp_bai_error(np.eye(2)[:, :2], [0.5, 0.2], 2, 1.0)
    with pytest.raises(ParameterError, match="form must be one of"):
        dp_bai_error(np.eye(2), [0.5, 0.2], 100, 1.0, form="other")
    with pytest.raises(ParameterError, match="scale"):
        dp_bai_gauss_error(np.eye(2), [0.5, 0.2], 100, 0.0)
