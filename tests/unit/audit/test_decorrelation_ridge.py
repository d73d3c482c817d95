"""The ridge of W-decorrelation from simulated experiments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.rerun.simulated_counts import decorrelation_ridge
from adaptinf.designs import EpsilonGreedy, Uniform
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import BernoulliArms

ARMS = BernoulliArms([0.3, 0.7])


def indicators(log: Any) -> np.ndarray:
    return np.eye(2)[log.arrays.action]


def test_the_default_is_the_smallest_number_of_pulls() -> None:
    quick = decorrelation_ridge(EpsilonGreedy(exploration=0.2), ARMS, 200, 60, 0.1, rng=3)
    slow = decorrelation_ridge(EpsilonGreedy(exploration=0.2), ARMS, 200, 60, 0.1, matrix=indicators, rng=3)
    np.testing.assert_allclose(quick.eigenvalues, slow.eigenvalues, rtol=1e-9)
    assert quick.ridge == pytest.approx(np.sort(quick.eigenvalues)[5] / math.log(200.0), rel=1e-9)
    assert "the 0.1 quantile" in str(quick)


def test_a_matrix_counts_in_its_units() -> None:
    one = decorrelation_ridge(Uniform(), ARMS, 100, 20, matrix=indicators, rng=1)
    ten = decorrelation_ridge(Uniform(), ARMS, 100, 20, matrix=lambda log: 10.0 * indicators(log), rng=1)
    assert ten.ridge == pytest.approx(100.0 * one.ridge, rel=1e-9)


def test_columns_that_are_not_independent_are_refused() -> None:
    with pytest.raises(
        ParameterError, match=r"in 100.0% of the experiments the columns are linearly dependent"
    ):
        decorrelation_ridge(Uniform(), ARMS, 50, 5, matrix=lambda log: np.ones((50, 2)), rng=1)


@pytest.mark.parametrize("rows", [np.ones(50), np.ones((49, 1)), np.full((50, 1), np.nan)])
def test_what_is_no_matrix_is_refused(rows: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="matrix must return finite numbers"):
        decorrelation_ridge(Uniform(), ARMS, 50, 5, matrix=lambda log: rows, rng=1)


def test_all_problems_are_listed() -> None:
    arguments: Any = ("Uniform", ARMS, 1, 0, 2.0)
    with pytest.raises(ParameterError) as caught:
        decorrelation_ridge(*arguments, matrix=3, rng=-1)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 6
