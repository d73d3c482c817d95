"""Linear hypotheses in the forms in which users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.inference.results.hypotheses import linear_hypothesis, wald_statistic
from adaptinf.inference.results.tables import format_number

TERMS = ["z", "y", "x=-1"]


@pytest.mark.parametrize(
    ("restriction", "matrix", "values"),
    [
        ("z = -0.8", [[1, 0, 0]], [-0.8]),
        ("z - y = -0.8, y = 1e-3", [[1, -1, 0], [0, 1, 0]], [-0.8, 0.001]),
        ("z = -1.5E-3", [[1, 0, 0]], [-0.0015]),
        ("z = 2.5e+2", [[1, 0, 0]], [250.0]),
        ("z = -y", [[1, 1, 0]], [0.0]),
        ("z = + y", [[1, -1, 0]], [0.0]),
        ("`x=-1` = -2", [[0, 0, 1]], [-2.0]),
        (["z = -1", "y = 2"], [[1, 0, 0], [0, 1, 0]], [-1.0, 2.0]),
        ({"z": -0.8}, [[1, 0, 0]], [-0.8]),
        ({"y": 1e-300, "x=-1": -1}, [[0, 1, 0], [0, 0, 1]], [1e-300, -1.0]),
    ],
)
def test_signs_and_exponents(restriction: Any, matrix: list[list[float]], values: list[float]) -> None:
    read = linear_hypothesis("wald_test", restriction, TERMS)
    np.testing.assert_array_equal(read.matrix, matrix)
    np.testing.assert_array_equal(read.values, values)


@pytest.mark.parametrize("restriction", ["z = ", "= 2", "w = -1", "z < 2", "", "z / 0 = 1", "z == 3"])
def test_what_is_no_equation(restriction: Any) -> None:
    with pytest.raises(ParameterError, match=r"wald_test: .*the terms are 'z'"):
        linear_hypothesis("wald_test", restriction, TERMS)


@pytest.mark.parametrize("restriction", ["z = y = 0", ["y = 0", "z = y = 1"]])
def test_chained_equations_are_two(restriction: Any) -> None:
    with pytest.raises(ParameterError, match="a single equals sign: write 'a = 0, b = 0' for 'z ="):
        linear_hypothesis("wald_test", restriction, TERMS)


def test_contradictions_are_no_hypothesis() -> None:
    estimate, covariance = np.array([0.1, 0.2, 0.3]), np.eye(3)
    wrong = linear_hypothesis("wald_test", "z = 0, 2 * z = 1", TERMS)
    with pytest.raises(ParameterError, match=r"contradict each other: z = 0, 2 \* z = 1"):
        wald_statistic(estimate, covariance, wrong)
    twice = linear_hypothesis("wald_test", "z = 0.5, 2 * z = 1", TERMS)
    assert wald_statistic(estimate, covariance, twice)[:2] == (pytest.approx(0.16), 1)


def test_tables_of_tests_have_at_most_80_columns_and_the_numbers_of_the_frame() -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6, 0.5])
    log = ai.designs.PrivateUCB(epsilon=0.05).run(arms, horizon=600, rng=0)
    regression = ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit("max-information")
    plain = ai.ArmMeans(ai.designs.EpsilonGreedy(exploration=0.4).run(arms, horizon=600, rng=0)).fit()
    for result in (plain, regression):
        test = result.t_test([f"`{result.terms[1]}` = 0", f"`{result.terms[2]}` = 0.1"])
        text, frame = str(test), test.to_frame()
        assert max(map(len, text.splitlines())) <= 80
        names = [name for name in frame if name.startswith(("estimate", "std", "conf"))]
        for value in frame[names].to_numpy().ravel():
            assert format_number(value) in text
        assert ("corrected" in text) == ("p_value_corrected" in frame)
    assert "p_value_corrected" in frame
